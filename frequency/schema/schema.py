"""Schema: the attributes that a table of users has, and its rows as items."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.schema.attribute import Attribute, Boolean, Categorical, Text
from frequency.schema.column import columns_of
from frequency.schema.domain import MOST_ATTRIBUTES, Domain
from frequency.schema.numeric import Dates, Numeric, Ordered, Ordinal
from mechdesign.base import (
    JSON_BYTES,
    aligned,
    digest_of,
    from_json,
    intact,
    listed,
    opened,
    replacing,
    require_declared,
    require_shallow,
    require_version,
    set_fields,
    shown,
    spelt,
)

_KINDS: dict[str, type[Attribute]] = {
    kind.kind: kind for kind in (Categorical, Numeric, Dates, Boolean, Text)
}


class Encoded(NamedTuple):
    """The rows of a table as items.

    Attributes
    ----------
    columns : tuple of numpy.ndarray
        One for each attribute, shape (users,): int64 items, of short text the strings. Of the users
        who report, in the order of the rows.
    clipped : dict of str to int
        How many values of each attribute were put into its first or last bin, or cut short; only
        attributes that have any.
    skipped : int
        How many users do not report, since a value is missing.
    reports : numpy.ndarray of bool, optional
        Which of the table's rows those are that report; None: all.
    """

    columns: tuple[npt.NDArray[Any], ...]
    clipped: dict[str, int]
    skipped: int
    reports: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Schema:
    """A schema: attributes of users with names, units, values, and what missing ones become.

    A schema is public. It must not be made from the private data: nothing here reads it off them.

    Parameters
    ----------
    attributes : sequence of Attribute
        `Categorical`, `Ordinal`, `Numeric`, `Dates`, `Boolean` and `Text`, of distinct names.
    public_source : str, default ""
        What a draft was made from, by somebody who declared it public.

    Raises
    ------
    ValueError
        No attributes or more than 256, two of one name, or what is no attribute.

    Examples
    --------
    >>> from frequency.schema import Categorical, Numeric
    >>> species = Categorical("species", ["Adelie", "Chinstrap", "Gentoo"])
    >>> mass = Numeric("mass", low=2000, high=7000, bins=50, unit="grams", missing="item")
    >>> schema = Schema([species, mass])
    >>> print(schema)
    name     kind         items  values                            unit   missing  outside
    species  categorical  3      one of Adelie, Chinstrap, Gentoo         refuse   refuse
    mass     numeric      51     a number from 2000 to 7000        grams  item     refuse
    >>> schema.encode({"species": ["Gentoo", "Adelie"], "mass": [5000.0, None]}).columns
    (array([2, 0]), array([30, 50]))
    """

    attributes: Sequence[Attribute]
    public_source: str = ""

    def __post_init__(self) -> None:
        given = self.attributes
        attributes = tuple(given) if isinstance(given, (list, tuple)) else ()
        if not attributes or not all(isinstance(attribute, Attribute) for attribute in attributes):
            raise ValueError(f"a schema is a list of attributes, got {shown(given)}")
        if len(attributes) > MOST_ATTRIBUTES:
            raise ValueError(f"there are {len(attributes)} attributes, more than {MOST_ATTRIBUTES}")
        names = [attribute.name for attribute in attributes]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two attributes have the name {shown(twice)}")
        set_fields(self, attributes=attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of items of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def domain(self) -> Domain:
        """The names and numbers of items, as protocols for several attributes take them."""
        return Domain(dict(zip(self.names, self.sizes, strict=True)))

    @property
    def apart(self) -> dict[str, int]:
        """The numbers of an ordered attribute's items without neighbours: the last ones.

        Only attributes that have some are in it.
        """
        # They stand for values outside, and for missing ones
        return {
            attribute.name: len(attribute.extra)
            for attribute in self
            if isinstance(attribute, Ordered) and attribute.extra
        }

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(f"the schema has no attribute {name!r}; it has {listed(self.names)}")

    def project(self, names: Sequence[str]) -> Schema:
        """The schema of some of the attributes.

        Parameters
        ----------
        names : sequence of str
            Distinct names; a single string is one.

        Returns
        -------
        Schema
            Of these, in the order asked for.

        Raises
        ------
        ValueError
            Other names, or none.
        """
        wanted = (names,) if isinstance(names, str) else tuple(names)
        unknown = [name for name in wanted if name not in self.names]
        if unknown:
            raise ValueError(
                f"the schema has no attribute {shown(unknown[0])}; it has {listed(self.names)}"
            )
        return Schema([self[name] for name in wanted], self.public_source)

    def encode(self, table: Any, steps: Mapping[str, Fraction] | None = None) -> Encoded:
        """The rows of a table as items.

        Parameters
        ----------
        table : DataFrame or mapping
            Of pandas, polars (eager or lazy), pyarrow (also batches and readers), Dask, a relation
            of DuckDB, or of names to columns (arrays or lists), with a column for each attribute;
            others are not looked at. Texts are read as the numbers and dates that they spell. With
            one attribute: perhaps the column itself. Its columns have to fit into memory: see
            `frequency.storage.table.blocks`.
        steps : mapping of str to Fraction, optional
            Numeric attributes that are in whole steps from their least value, instead of items: see
            `Numeric.in_steps`.

        Returns
        -------
        Encoded
            The items, and what the policies did.

        Raises
        ------
        InvalidCell
            The first value of the first such column that no policy takes.
        UnknownColumn
            A column that is missing or there twice, or what is no table.
        """
        coded = [
            attribute.in_steps(column, steps[attribute.name])
            if steps and attribute.name in steps and isinstance(attribute, Numeric)
            else attribute.coded(column)
            for attribute, column in zip(
                self.attributes, columns_of(table, self.names), strict=True
            )
        ]
        clipped = {
            name: coded_column.clipped
            for name, coded_column in zip(self.names, coded, strict=True)
            if coded_column.clipped
        }
        columns = tuple(coded_column.items for coded_column in coded)
        skipping = [
            _absent(items)
            for attribute, items in zip(self.attributes, columns, strict=True)
            if attribute.skips
        ]
        reports = ~np.logical_or.reduce(skipping) if skipping else np.True_
        if reports.all():
            return Encoded(columns, clipped, 0)
        skipped = int(reports.size - reports.sum())
        kept = np.asarray(reports)
        return Encoded(tuple(items[kept] for items in columns), clipped, skipped, kept)

    # ---------------------------------------------------------------------------------------- files

    def content(self) -> dict[str, Any]:
        """Return what files hold: attributes with what makes them, as TOML and JSON have it."""
        source = {"public_source": self.public_source} if self.public_source else {}
        return {**source, "attributes": [attribute.content() for attribute in self.attributes]}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the content: of equal schemas the same."""
        return digest_of(self.content())

    @staticmethod
    def of_content(content: Any) -> Schema:
        """The schema with this content.

        Parameters
        ----------
        content : dict
            As `content` gives it, and as files hold it.

        Returns
        -------
        Schema
            Equal to the one whose content it is.

        Raises
        ------
        ValueError
            It is no content of a schema: the first thing wrong.
        """
        _require_keys(content, "the schema", {"attributes", "public_source"}, "attributes")
        source = content.get("public_source", "")
        if not isinstance(content["attributes"], list) or not isinstance(source, str):
            raise ValueError("attributes is a list of them, and public_source a text")
        return Schema([_attribute(item, k) for k, item in enumerate(content["attributes"])], source)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Schema:
        """The schema in a file, TOML or JSON by its name.

        Parameters
        ----------
        path : str or os.PathLike
            Ends in .toml or .json.

        Returns
        -------
        Schema
            Equal to the one that was saved.

        Raises
        ------
        InvalidFile
            It holds no schema; the first thing wrong. A digest, if there is one, must be right.
        """
        content = content_in(path)
        digest = content.pop("digest", None)
        with intact(path, "no schema"):
            schema = Schema.of_content(content)
            if digest is not None and digest != schema.digest:
                raise ValueError(
                    "the digest does not match: the file was changed after it was written. To"
                    " accept what it holds now, delete the line of the digest"
                )
        return schema

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as TOML or JSON, replacing the file in one step or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            Ends in .toml or .json.

        Raises
        ------
        ValueError
            Another name, or a file of more than 2^28 bytes.
        """
        save_content(path, {"digest": self.digest, **self.content()})

    def __str__(self) -> str:
        rows = [["name", "kind", "items", "values", "unit", "missing", "outside"]]
        rows += [
            [
                attribute.name,
                f"{attribute.kind}, ordered" if isinstance(attribute, Ordinal) else attribute.kind,
                _number(attribute.size),
                attribute.values,
                attribute.unit,
                attribute.missing,
                attribute.outside,
            ]
            for attribute in self.attributes
        ]
        source = f"\ndrafted from {self.public_source}" if self.public_source else ""
        return "\n".join(aligned(rows)) + source


def _attribute(content: Any, place: int) -> Attribute:
    where = f"attribute {place + 1}"
    name = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(name, str) or name not in _KINDS:
        given = shown(name if isinstance(content, dict) else content)
        raise ValueError(f"{where}: its kind is one of {listed(_KINDS)}, got {given}")
    kind = _KINDS[content["kind"]]
    if isinstance(content.get("name"), str):
        where += f", {shown(content['name'])}"
    rest = {key: value for key, value in content.items() if key != "kind"}
    if kind is Categorical and "ordered" in rest:
        if type(ordered := rest.pop("ordered")) is not bool:
            raise ValueError(f"{where}: ordered is true or false, got {shown(ordered)}")
        kind = Ordinal if ordered else Categorical
    _require_keys(rest, where, {field.name for field in fields(kind)}, "name")
    if isinstance(rest.get("labels"), list):  # in which integers stand for their text
        rest["labels"] = [str(label) if type(label) is int else label for label in rest["labels"]]
    try:
        require_declared(kind, rest)
        return kind(**rest)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def _require_keys(content: Any, where: str, known: set[str], needed: str) -> None:
    if not isinstance(content, dict):
        raise ValueError(f"{where} is {shown(content)}")
    unknown = sorted({*content} - known)
    if unknown:
        raise ValueError(f"{where} has no {shown(unknown[0])}; it may have {listed(sorted(known))}")
    if needed not in content:
        raise ValueError(f"{where} lacks {needed!r}")


def _absent(items: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows have no item."""
    if items.dtype == object:
        return np.asarray(items == None)  # noqa: E711
    return np.asarray(items < 0)


def _number(size: int) -> str:
    return str(size) if size < 1 << 32 else f"2^{size.bit_length() - 1}"


# ------------------------------------------------------------------------------------------------
# Schemas in files: TOML for people, JSON for programs.


FORMAT, VERSION = "mechdesign.schema", 1

LONGEST_KEY = 32  #: The most parts of a key with dots in a TOML file.

DEEPEST = 32  #: The depth to which lists and tables of a TOML file may be nested in each other.

# The words of a TOML text: keys and their dots, brackets, and what holds neither.
_WORDS = re.compile(
    r"""
      (?P<part> [A-Za-z0-9_-]++
              | \"{3} (?: [^"\\] | \\. | "(?!"") )*+ (?: \"{3,5} | \Z )
              | '{3} (?: [^'] | '(?!'') )*+ (?: '{3,5} | \Z )
              | " (?: [^"\\\n] | \\. )*+ "?
              | ' [^'\n]*+ '? )
    | (?P<dot> \. ) | (?P<space> [ \t]++ )
    | (?P<open> [\[{] ) | (?P<close> [\]}] )
    | (?P<comment> \# [^\n]*+ ) | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def text_of(content: dict[str, Any], path: str | os.PathLike[str]) -> str:
    """The text of a file."""
    full = {"format": FORMAT, "version": VERSION, **content}
    if _suffix(path) == ".json":
        return json.dumps(full, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    import tomli_w

    return tomli_w.dumps(full)


def save_content(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write such a file, replacing it in one step or not at all."""
    text = spelt(text_of(content, path))
    with replacing(path) as stream:
        stream.write(text)


def content_in(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what such a file holds."""
    suffix = _suffix(path)
    with opened(path) as stream:
        text = stream.read(JSON_BYTES + 1)
    with intact(path, "no schema"):
        if len(text) > JSON_BYTES:
            raise ValueError(f"longer than {JSON_BYTES} bytes")
        content = from_json(text) if suffix == ".json" else _from_toml(text)
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise ValueError(f"not a schema file (format {FORMAT!r} expected)")
        require_version(content.pop("version", None), [VERSION])
    return content


def _from_toml(text: bytes) -> Any:
    import tomllib

    spelt = text.decode()
    _require_shallow(spelt)
    content = tomllib.loads(spelt)
    require_shallow(content)  # a key of many parts is as many tables
    return content


def _require_shallow(text: str) -> None:
    """Raise ValueError for longer keys, or a deeper nesting, than a schema may have.

    One step for each word; what this misreads after a text's first error, no reader reaches.
    """
    parts = depth = 0
    joined = False
    # The time and the memory of the standard library's reader grow with the square of a key's parts
    for word in _WORDS.finditer(text):
        kind = word.lastgroup
        if kind == "part":
            parts, joined = (parts + 1 if joined else 1), False
        elif kind == "dot":
            joined = True
        elif kind != "space":
            parts, joined = 0, False
            depth += (kind == "open") - (kind == "close")
        if parts > LONGEST_KEY or depth > DEEPEST:
            line = 1 + text.count("\n", 0, word.start())
            raise ValueError(
                f"line {line}: a key has at most {LONGEST_KEY} parts, and lists and tables are"
                f" nested at most {DEEPEST} deep"
            )


def _suffix(path: str | os.PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in (".toml", ".json"):
        raise ValueError(f"{path}: the name of a schema's file ends in .toml or .json")
    return suffix
