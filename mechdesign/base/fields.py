"""The values that fields of files may hold: each has one declared type and range.

A `Format` is declared once, of `FieldType`s that are made of others: what a file may hold, what an
object has in its place, and how it is written. Nothing is guessed: a count is no flag, a text no
number, and a list no text.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from mechdesign.base.files import opened, replacing
from mechdesign.base.text import (
    from_text,
    integer_from_text,
    integer_to_text,
    reason,
    shown,
    to_text,
)
from mechdesign.exceptions import InvalidFile, InvalidMechanism

#: Integers of files are less than this in absolute value, unless a field says otherwise.
WORD = 1 << 63

_INTEGER = "(?:[0-9]+|0x[0-9a-f]+)"
_WHOLE, _FRACTION = re.compile(f"-?{_INTEGER}"), re.compile(f"-?{_INTEGER}(?:/{_INTEGER})?")


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class FieldType:
    """The values that a field may hold."""

    what: str  # the same in words
    # given a value and the name of its place, raises ValueError for what may not be there
    check: Callable[[Any, str], None]
    read: Callable[[Any], Any] = _same  # what an object has in the place of a value
    write: Callable[[Any], Any] = _same  # the value of what an object has

    def require(self, value: Any, place: str = "") -> Any:
        """The value itself."""
        self.check(value, place)
        return value

    def __or__(self, other: FieldType) -> FieldType:
        def check(value: Any, place: str) -> None:
            try:
                self.check(value, place)
            except ValueError as first:
                try:
                    other.check(value, place)
                except ValueError as second:
                    # What is wrong deeper inside says more than that it is neither
                    inside = [
                        error
                        for error in (first, second)
                        if isinstance(error, _Wrong) and error.place != place
                    ]
                    if len(inside) == 1:
                        raise inside[0] from None
                    raise _wrong(value, place, what) from None

        what = f"{self.what}, or {other.what}"
        return FieldType(what, check)


class _Wrong(ValueError):
    """A field that holds what it may not, and its place."""

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place


def _wrong(value: Any, place: str, what: str) -> _Wrong:
    return _Wrong(f"{place or 'it'} must be {what}, got {shown(value)}", place)


def _those(what: str, test: Callable[[Any], bool]) -> FieldType:
    def check(value: Any, place: str) -> None:
        if not test(value):
            raise _wrong(value, place, what)

    return FieldType(what, check)


FLAG = _those("true or false", lambda value: isinstance(value, bool))
TEXT = _those("a text", lambda value: isinstance(value, str))
NOTHING = _those("null", lambda value: value is None)
INTEGER_TEXT = replace(
    _those(
        "an integer as text", lambda value: isinstance(value, str) and bool(_WHOLE.fullmatch(value))
    ),
    read=integer_from_text,
    write=integer_to_text,
)
FRACTION_TEXT = replace(
    _those(
        "a fraction as text",
        lambda value: isinstance(value, str) and bool(_FRACTION.fullmatch(value)),
    ),
    read=from_text,
    write=to_text,
)
NUMBER = _those(
    "a finite number", lambda value: type(value) in (int, float) and math.isfinite(value)
)
#: Of content that a declaration of its own checks.
ANYTHING = _those("anything", lambda value: True)


def whole_number(low: int = -WORD, high: int = WORD - 1) -> FieldType:
    """An integer from ``low`` to ``high``."""
    what = f"an integer from {_legible(low)} to {_legible(high)}"
    return _those(what, lambda value: type(value) is int and low <= value <= high)


def _legible(limit: int) -> str:
    """A limit of 64 bits by its power of two."""
    return {-WORD: "-2^63", WORD - 1: "2^63 - 1"}.get(limit, str(limit))


def one_of(*texts: str) -> FieldType:
    """One of some texts."""
    return _those(
        f"one of {', '.join(texts)}", lambda value: isinstance(value, str) and value in texts
    )


def matching(what: str, pattern: str) -> FieldType:
    """A text that matches a regular expression."""
    expression = re.compile(pattern)
    return _those(what, lambda value: isinstance(value, str) and bool(expression.fullmatch(value)))


def optional(field: FieldType) -> FieldType:
    """The field, or null."""
    return replace(
        field | NOTHING,
        read=lambda value: None if value is None else field.read(value),
        write=lambda value: None if value is None else field.write(value),
    )


def list_of(field: FieldType, most: int | None = None) -> FieldType:
    """A list, of at most so many; in an object a tuple."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or (most is not None and len(value) > most):
            raise _wrong(value, place, what)
        for k, entry in enumerate(value):
            field.check(entry, f"{place}[{k}]")

    what = "a list" if most is None else f"a list of at most {most}"
    return FieldType(
        what,
        check,
        lambda value: tuple(map(field.read, value)),
        lambda value: [*map(field.write, value)],
    )


def row_of(*fields: FieldType) -> FieldType:
    """A list with one entry for each of some fields; in an object a tuple."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) != len(fields):
            raise _wrong(value, place, what)
        for k, (entry, field) in enumerate(zip(value, fields, strict=True)):
            field.check(entry, f"{place}[{k}]")

    what = f"a list of {len(fields)}"
    return FieldType(
        what,
        check,
        lambda value: tuple(f.read(entry) for f, entry in zip(fields, value, strict=True)),
        lambda value: [f.write(entry) for f, entry in zip(fields, value, strict=True)],
    )


def array_of(field: FieldType) -> FieldType:
    """The field, or lists of lists of it."""

    def check(value: Any, place: str) -> None:
        (every if isinstance(value, list) else field).check(value, place)

    every = list_of(FieldType(field.what, check))
    return FieldType(f"{field.what}, or lists of them", check)


#: Integers of 64 bits, or lists of lists of them: in an object an array.
INTEGERS = replace(
    array_of(whole_number()),
    read=lambda value: np.array(value, np.int64),
    write=lambda value: value.tolist(),
)

_PLAIN = (bool, int, float, str, NoneType)


def require_declared(kind: type, arguments: Mapping[str, Any]) -> None:
    """Raise ValueError unless arguments have the types that a class declares of them."""
    declared = get_type_hints(kind if is_dataclass(kind) else vars(kind).get("__init__", kind))
    for name, value in arguments.items():
        if name in declared and not _is_of(value, declared[name]):
            words = str(declared[name]) if get_origin(declared[name]) else declared[name].__name__
            raise ValueError(f"{name} must be {words}, got {shown(value)}")


def _is_of(value: Any, declared: Any) -> bool:
    parts = get_args(declared)
    if get_origin(declared) in (Union, UnionType):
        return any(_is_of(value, part) for part in parts)
    if get_origin(declared) is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if isinstance(value, (list, tuple)) and get_origin(declared) in (tuple, list, Sequence):
        if get_origin(declared) is not tuple or parts[1:] == (...,):
            return all(_is_of(entry, parts[0]) for entry in value)
        return len(value) == len(parts) and all(map(_is_of, value, parts))
    if declared is float:
        return type(value) in (int, float)
    if get_origin(declared) in (tuple, list, Sequence):
        return False
    if declared in _PLAIN or isinstance(value, _PLAIN):
        return declared in (Any, type(value))
    return True


def table_of(field: FieldType, key: FieldType = TEXT) -> FieldType:
    """An object with any keys."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(value, place, "an object")
        for name, entry in value.items():
            key.check(name, f"a key of {place}")
            field.check(entry, f"{place}[{shown(name)}]")

    return FieldType(
        "an object",
        check,
        lambda value: {key.read(name): field.read(entry) for name, entry in value.items()},
        lambda value: {key.write(name): field.write(entry) for name, entry in value.items()},
    )


def record(fields: Mapping[str, FieldType], kind: Callable[..., Any] = dict) -> FieldType:
    """An object with these keys, all of them and no others.

    It is read as what ``kind`` makes of its entries, and written from the attributes of that.
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(value, place, what)
        inside = f"{place}: " if place else ""
        for name in fields:
            if name not in value:
                raise _Wrong(f"{inside}the key {name!r} is missing", f"{place}.{name}")
        for key in value:
            if key not in fields:
                known = ", ".join(fields)
                raise _Wrong(f"{inside}unknown key {shown(key)}; known: {known}", f"{place}.{key}")
        for name, field in fields.items():
            field.check(value[name], f"{place}.{name}" if place else name)

    def write(value: Any) -> dict[str, Any]:
        entry = value.__getitem__ if isinstance(value, dict) else partial(getattr, value)
        return {name: field.write(entry(name)) for name, field in fields.items()}

    what = f"an object with the keys {', '.join(fields)}"
    return FieldType(
        what,
        check,
        lambda value: kind(**{name: field.read(value[name]) for name, field in fields.items()}),
        write,
    )


# ------------------------------------------------------------------------------------------------
# Fields of frozen dataclasses, set while the instance is made.


def set_fields(instance: Any, **values: Any) -> None:
    """Store values in a frozen dataclass; only for ``__init__`` and ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


# ------------------------------------------------------------------------------------------------
# JSON that can be read in one way only, and JSON files with a digest.
#
# No key of an object may be repeated or unknown, versions are integers, and each field holds what
# the format declares of it: see `mechdesign.base.fields`.


JSON_DEPTH = 64  #: The deepest nesting of lists and objects that `from_json` reads.

JSON_BYTES = 1 << 28  #: The longest text that `from_json` reads.


def from_json(text: str | bytes) -> Any:
    """Return what a JSON text says, if it can be read in one way only."""
    if len(text) > JSON_BYTES:
        raise ValueError(f"{len(text)} bytes are more than the {JSON_BYTES} that are read")
    try:
        value = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=_object,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError as error:
        raise ValueError(f"nested deeper than {JSON_DEPTH}") from error
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise ValueError(reason(error)) from error
    require_shallow(value)
    return value


def require_shallow(value: Any) -> None:
    """Raise ValueError for lists and objects that are nested deeper than `JSON_DEPTH`."""
    level, depth = [value], 0
    while level := [
        inner
        for outer in level
        if isinstance(outer, (list, dict))
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]:
        depth += 1
        if depth > JSON_DEPTH:
            raise ValueError(f"nested deeper than {JSON_DEPTH}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} occurs twice")
    return content


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.20} is no finite number")
    return value


@contextmanager
def intact(path: str | os.PathLike[str], what: str = "malformed") -> Iterator[None]:
    """Turns the errors of malformed content into InvalidFile, in plain words."""
    try:
        yield
    except (InvalidFile, InvalidMechanism):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InvalidFile(f"{path}: {what}: {reason(error):.300}") from error
    except RecursionError as error:
        raise InvalidFile(f"{path}: {what}: {reason(error)}") from error


def require_same(written: Any, given: Any) -> None:
    """Raise ValueError unless what was read is written as it was found, to the type."""
    text, given_text = (json.dumps(value, sort_keys=True) for value in (written, given))
    if text == given_text:
        return
    if isinstance(written, dict) and isinstance(given, dict):
        for key in sorted({*written, *given}):
            require_same(written.get(key), given.get(key))
    raise ValueError(f"it holds {shown(given)} where {shown(written)} follows from the rest")


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the key "format" of a file; empty if it is no JSON object that has one."""
    with opened(path) as stream:
        text = stream.read(JSON_BYTES + 1)
    try:
        content = from_json(text)
    except ValueError:
        return ""
    kind = content.get("format") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else ""


def require_version(version: Any, versions: Collection[int]) -> int:
    """The version of a file, if it is one of those that are read."""
    if type(version) is not int or version not in versions:
        read = ", ".join(map(str, versions))
        raise ValueError(f"version {shown(version)}, this library reads version {read}")
    return version


@dataclass(frozen=True)
class Format:
    """A kind of JSON document: its name, and its fields in each version that is read."""

    name: str
    versions: Mapping[int, Mapping[str, FieldType]]  # the last one is written
    sealed: bool = True  # whether a document holds a digest of the rest of it

    @property
    def part(self) -> FieldType:
        """A document within another one, which is read by a class of its own."""
        return replace(record(self.versions[max(self.versions)]), read=_same)

    def require(self, content: Any) -> dict[str, Any]:
        """The content of a document; ValueError unless it is of this format, and intact."""
        if not isinstance(content, dict) or content.get("format") != self.name:
            kind = self.name.rpartition(".")[2]
            raise ValueError(f"not a {kind} file (format {self.name!r} expected)")
        version = require_version(content.get("version"), self.versions)
        fields = {"format": TEXT, "version": ANYTHING, **self.versions[version]}
        if self.sealed:
            fields["digest"] = TEXT
            if "digest" in content and content["digest"] != digest_of(content):
                raise ValueError(
                    "the digest does not match: the file was changed after it was written"
                )
        try:
            record(fields).require(content)
        except ValueError as error:
            raise ValueError(f"malformed: {error}") from error
        return content

    def load(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return what a file of this format holds, as JSON has it."""
        try:
            with opened(path) as stream:
                content = from_json(stream.read(JSON_BYTES + 1))
        except UnicodeDecodeError as error:
            kind = self.name.rpartition(".")[2]
            raise InvalidFile(f"{path}: binary, as an aggregate is, and no {kind} file") from error
        except ValueError as error:
            raise InvalidFile(f"{path}: not JSON, or cut short: {error}") from error
        try:
            return self.require(content)
        except ValueError as error:
            raise InvalidFile(f"{path}: {error!s:.300}") from error

    def read(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return what an object has in the place of each field of a document."""
        fields = self.versions[content.get("version", max(self.versions))]
        return {name: field.read(content[name]) for name, field in fields.items()}

    def written(self, values: Any) -> dict[str, Any]:
        """The document of an object, or of a dictionary, that has what `read` returns."""
        version = max(self.versions)
        content = record(self.versions[version]).write(values)
        content = {"format": self.name, "version": version, **content}
        return {**content, "digest": digest_of(content)} if self.sealed else content

    def require_same(self, values: Any, content: dict[str, Any], but: str = "") -> None:
        """Raise ValueError unless an object is written as its document has it, to the type."""
        fields = self.versions[content["version"]]
        written = record(fields).write(values)
        for name in fields:
            if name != but:
                require_same(written[name], content[name])

    def save(self, path: str | os.PathLike[str], values: Any) -> None:
        """Write a file that `load` reads, in one step or not at all."""
        text = spelt(json.dumps(self.written(values), indent=1, allow_nan=False) + "\n")
        with replacing(path) as stream:
            stream.write(text)


class Document(ABC):
    """An object that is kept in a JSON file, and made and checked again from what that says."""

    form: ClassVar[Format]

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return what its file says, as `Format.read` returns it.

        Returns
        -------
        dict of str to object
            By the names of the fields.

        Raises
        ------
        ValueError
            `load` would refuse the file, since it takes too long to check.
        """

    @classmethod
    @abstractmethod
    def of_content(cls, content: dict[str, Any], where: str) -> Self:
        """Return the object of a document.

        Parameters
        ----------
        content : dict of str to object
            What the file says, as JSON has it: its fields have been checked.
        where : str
            What errors call the file.

        Returns
        -------
        object
            Of this class.

        Raises
        ------
        ValueError
            It says something that is not true.
        """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file (.json) that `load` reads, replacing one in one step or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            Where; what is there is replaced.

        Raises
        ------
        ValueError
            `load` would refuse the file, since it takes too long to check.
        """
        self.form.save(path, self.content())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `save` wrote; its mechanisms and their privacy are checked again.

        Parameters
        ----------
        path : str or os.PathLike
            The file.

        Returns
        -------
        object
            Equal to the one that was saved.

        Raises
        ------
        InvalidFile
            Not such a file, another version, truncated, or changed since it was written.
        InvalidMechanism, PrivacyViolation
            It is intact but claims what is not true.
        """
        content = cls.form.load(path)
        with intact(path):
            return cls.of_content(content, str(path))


def spelt(text: str) -> bytes:
    """The bytes of a JSON text that is to be written."""
    content = text.encode()
    if len(content) > JSON_BYTES:
        raise ValueError(
            f"the file would have {len(content)} bytes, more than the {JSON_BYTES} that are read"
        )
    return content


def digest_of(content: dict[str, Any]) -> str:
    """SHA-256 of everything in a JSON file but its own digest."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    return (
        "sha256:"
        + hashlib.sha256(
            json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
    )
