"""What has been chosen on the page so far: all of it stands in the page's address.

Every choice is an option of a command, which alone reads the table, and draws.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

from frequency.schema import Schema, Text
from mechdesign.base import ReadOptions, fraction, opened_table
from rangeq.central.inputs import LARGEST_DIMENSION
from rangeq.central.persons import LARGEST_ROWS

#: The kinds of questions, and what each is called.
KINDS = {
    "counts": "How many people there are, by groups or bins",
    "means": "Means and sums of numbers, perhaps by groups",
    "quantiles": "The median, or other quantiles, of a number",
    "keys": "Which values of a column there are, and how many people have each",
    "perturbed": "Counts by groups, with the noise of a perturbation table and cell keys",
}

#: The question that is asked of people's devices instead, where they trust nobody.
_TASKS = {"counts": "marginals", "quantiles": "quantiles", "keys": "heavy-hitters"}

KEYS = 256  #: The number of cell keys.

#: The endings of files that are tables of people, and of what was released.
TABLES = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".xlsx", ".sav", ".dta", ".xpt")
SCHEMAS, RELEASES = (".toml",), (".release",)

_NAME = re.compile(r"[\w()+-][\w ().+-]{0,99}")

MOST_EPSILON = 20  #: Beyond it nothing is protected.

MOST_PEOPLE = 10**9  #: The most people that may be expected.


class InvalidChoice(ValueError):
    """Something on the page that cannot be chosen: its message is for the person there."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def files_in(folder: Path, endings: Sequence[str]) -> list[str]:
    """Return the names of files with some endings in a folder: of no link, which may lead out."""
    found = [
        entry.name
        for entry in folder.iterdir()
        if not entry.is_symlink() and entry.is_file() and not entry.name.startswith(".")
    ]
    return sorted(name for name in found if name.lower().endswith(tuple(endings)))


def pointed(text: str) -> str:
    """Return a number with a point, where somebody wrote a comma."""
    return text.replace(",", ".") if text.count(",") == 1 and "." not in text else text


def file_in(folder: Path, name: str, endings: Sequence[str]) -> Path:
    """Return the path of a file that `files_in` lists; InvalidChoice for any other."""
    if name not in files_in(folder, endings):
        raise InvalidChoice(f"there is no such file in the folder: {name or '(none)'}")
    return folder / name


@dataclass(frozen=True)
class Choices:
    """The choices of a person on the page."""

    table: str = ""  # names of files in the folder
    schema: str = ""
    kind: str = "counts"  # one of `KINDS`
    trust: str = "curator"  # who may see the table, or "nobody": devices add the noise
    attribute: tuple[str, ...] = ()  # what is counted
    by: tuple[str, ...] = ()  # the groups, and the numbers, of means
    number: tuple[str, ...] = ()
    quantile: str = "0.1, 0.5, 0.9"
    person: str = ""  # the column that says whose row each is, if there are several of each
    rows: str = "1"  # and how many of them count
    epsilon: str = "1"
    delta: str = ""
    people: str = "1000"  # about how many there are, from public knowledge
    largest: str = "10"  # of a perturbation table: the largest count with noise of its own,
    noise: str = "5"  # the largest noise,
    blocked: str = "0"  # and the largest of the small counts that are never published
    ledger: str = ""  # that is spent from
    out: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Sequence[str]]) -> Choices:
        """Read the fields of a form, or of an address."""
        found: dict[str, Any] = {}
        for field in fields(cls):
            values = given.get(field.name, ())
            if field.name in ("attribute", "by", "number"):
                found[field.name] = tuple(dict.fromkeys(value for value in values if value))
            elif values:  # what is left empty is not what it is at first
                found[field.name] = values[-1].strip()
        return cls(**found)

    def pairs(self) -> list[tuple[str, str]]:
        """Return the fields that differ from their defaults, for an address or hidden fields."""
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                values = value if isinstance(value, tuple) else (value,)
                found += [(field.name, each) for each in values]
        return found

    # ----------------------------------------------------------------------------------- questions

    def columns(self, folder: Path) -> list[str]:
        """Return the names of the table's columns: no value of the table is read."""
        with opened_table(file_in(folder, self.table, TABLES), ReadOptions()) as table:
            return list(table.names)

    def known(self, folder: Path) -> Schema:
        """Return the schema that was chosen."""
        return Schema.load(file_in(folder, self.schema, SCHEMAS))

    def asked(self, folder: Path) -> Schema:
        """Return the attributes that the question is about; InvalidChoice if it is none."""
        known = self.known(folder)
        if self.kind not in KINDS or self.trust not in ("curator", "nobody"):
            raise InvalidChoice("choose a question", "kind")
        names = (*self.by, *self.number) if self.kind == "means" else self.attribute
        unknown = next((name for name in names if name not in known.names), None)
        if unknown is not None:
            raise InvalidChoice(f"the schema has no column {unknown}")
        if self.trust == "nobody" and self.kind not in _TASKS:
            raise InvalidChoice("devices are asked for counts, quantiles, or values", "trust")
        if self.kind == "means" and not self.number:
            raise InvalidChoice("choose a number whose mean is wanted", "number")
        if not names:
            raise InvalidChoice("choose one column at least", "attribute")
        if self.kind in ("quantiles", "keys") and len(names) > 1:
            raise InvalidChoice("choose one column", "attribute")
        schema = known.project(names)
        texts = [attribute.name for attribute in schema if isinstance(attribute, Text)]
        if self.kind == "keys" and not texts:
            raise InvalidChoice(
                f"{names[0]} has a list of labels already: count people by it", "attribute"
            )
        if self.kind not in ("keys", "perturbed") and texts:
            raise InvalidChoice(
                f"nobody listed the values of {texts[0]}: ask which there are", "attribute"
            )
        if self.kind == "counts" and len(schema) > LARGEST_DIMENSION:
            raise InvalidChoice(f"choose at most {LARGEST_DIMENSION} columns", "attribute")
        if self.kind == "quantiles" and not schema.attributes[0].ordered:
            raise InvalidChoice(f"{names[0]} has no order, and so no quantiles", "attribute")
        return schema

    @property
    def most(self) -> int:
        """How many rows of a person count."""
        if not self.person:
            if self.rows != "1":
                raise InvalidChoice(
                    "several rows of a person count only if a column says whose row each is",
                    "person",
                )
            return 1
        return self._whole("rows", 1, LARGEST_ROWS, f"rows of a person are 1 to {LARGEST_ROWS}")

    def _whole(self, name: str, least: int, most: int, what: str) -> int:
        """A field that is a whole number."""
        text = getattr(self, name)
        if not text.isdecimal() or not least <= int(text) <= most:
            raise InvalidChoice(what, name)
        return int(text)

    def _exact(self, name: str, what: str) -> Fraction:
        """A field that is a number above 0."""
        try:
            number = fraction(pointed(getattr(self, name)), name)
        except (ValueError, TypeError):
            number = Fraction(0)
        if number <= 0:
            raise InvalidChoice(what, name)
        return number

    @property
    def loss(self) -> Fraction:
        """Epsilon."""
        epsilon = self._exact("epsilon", "epsilon is a number above 0, such as 0.5")
        if epsilon > MOST_EPSILON:
            raise InvalidChoice(f"epsilon is at most {MOST_EPSILON}", "epsilon")
        return epsilon

    @property
    def failure(self) -> Fraction | None:
        """Delta, which only keys need; None of other questions."""
        if self.kind != "keys" or self.trust == "nobody":
            return None
        delta = self._exact("delta", "delta is a small number above 0, such as 1e-6")
        if delta >= Fraction(1, 100):
            raise InvalidChoice("delta is below 0.01", "delta")
        return delta

    @property
    def expected(self) -> int:
        """How many people there are, about."""
        what = "how many people there are, about: a whole number"
        return self._whole("people", 1, MOST_PEOPLE, what)

    @property
    def fractions(self) -> tuple[str, ...]:
        """The quantiles."""
        texts = tuple(text.strip() for text in self.quantile.split(",") if text.strip())
        try:
            numbers = [fraction(text, "a quantile") for text in texts]
        except (ValueError, TypeError):
            numbers = []
        if not numbers or min(numbers) < 0 or max(numbers) > 1:
            raise InvalidChoice(
                "quantiles are fractions from 0 to 1, such as 0.1, 0.5, 0.9", "quantile"
            )
        return texts

    @property
    def written(self) -> str:
        """The name of the release."""
        stem = self.table.split(".")[0] or "people"
        kind = f"asked for {self.kind}" if self.trust == "nobody" else self.kind
        name = self.out.removesuffix(self.ending) or f"{stem} {kind}"
        if _NAME.fullmatch(name) is None:
            raise InvalidChoice(
                "the file's name has up to 100 letters, digits, blanks, points and hyphens, and"
                " begins with none of the last three",
                "out",
            )
        return name + self.ending

    @property
    def ending(self) -> str:
        """How the name of what is written ends: a release, a protocol, or a table."""
        if self.trust == "nobody":
            return ".json"
        return ".csv" if self.kind == "perturbed" else RELEASES[0]

    def named_anew(self, folder: Path) -> Choices:
        """Return the same with a name that no file has."""
        stem = replace(self, out="").written.removesuffix(self.ending)
        names = (f"{stem}{f' {number}' if number > 1 else ''}" for number in count(1))
        free = (name for name in names if not (folder / f"{name}{self.ending}").exists())
        return replace(self, out=next(free))

    @property
    def rules(self) -> tuple[int, int, int]:
        """The largest count with noise of its own, the largest noise, and what is blocked."""
        ends = {"largest": (1, 100), "noise": (1, 20), "blocked": (0, 10)}
        largest, noise, blocked = (
            self._whole(name, least, most, f"this is a whole number from {least} to {most}")
            for name, (least, most) in ends.items()
        )
        return largest, noise, blocked

    def task(self, schema: Schema) -> str:
        """What devices are asked for."""
        if self.kind != "counts":
            return _TASKS[self.kind]
        if len(schema) > 1:
            return "marginals"
        return "ranges" if schema.attributes[0].ordered else "frequencies"

    # ------------------------------------------------------------------------------------ commands

    def commands(self, folder: Path) -> list[list[str]]:
        """Return the commands that are run, one after the other: arguments of ``mechdesign``."""
        schema = self.asked(folder)
        epsilon = ["--epsilon", pointed(self.epsilon)]
        _, attributes = self.loss, [word for n in self.attribute for word in ("--attribute", n)]
        if self.trust == "nobody":
            given = ["protocol", self.task(schema), "--schema", self.schema, *attributes]
            return [[*given, *epsilon, "--n", str(self.expected), "--out", self.written]]
        if self.kind == "perturbed":
            return self._perturbing(folder, epsilon)
        given = ["curate", self.table, "--schema", self.schema]
        if self.kind == "means":
            given += [word for name in self.number for word in ("--mean", name)]
            given += [word for name in self.by for word in ("--by", name)]
        else:
            given += attributes
        if self.kind == "quantiles":
            given += [word for text in self.fractions for word in ("--quantile", text)]
        given += epsilon
        if self.failure is not None:
            given += ["--delta", pointed(self.delta)]
        most = self.most
        if self.person:
            if self.person not in self.columns(folder):
                raise InvalidChoice(f"the table has no column {self.person}", "person")
            given += ["--person", self.person, "--max-rows", str(most)]
        if self.ledger:
            file_in(folder, self.ledger, (".json",))
            given += ["--ledger", self.ledger]
        return [[*given, "--out", self.written]]

    @property
    def aside(self) -> tuple[str, str]:
        """The names of the table with secret record keys, and of the perturbation table."""
        return f"{self.table.split('.')[0]} keyed.csv", f"{Path(self.written).stem} noise.csv"

    def _perturbing(self, folder: Path, epsilon: list[str]) -> list[list[str]]:
        """The commands for a perturbation table: keys of people are drawn once."""
        (largest, noise, blocked), (keyed, table) = self.rules, self.aside
        if self.person:
            raise InvalidChoice("cell keys are for tables with one row for each person", "person")
        rules = ["--largest", str(largest), "--noise", str(noise), "--blocked", str(blocked)]
        # Without bias a count of 0 has no noise, so that an empty cell may be seen
        rules += ["--protected", "1", *["--keep-zeros"] * (blocked > 0)]
        found = [["design-perturbation", *rules, *epsilon, "--keys", str(KEYS), "--out", table]]
        if not (folder / keyed).exists():
            key = ["--record-key", "record key", "--keys", str(KEYS)]
            found.append(["draw-record-keys", self.table, *key, "--out", keyed])
        by = [word for name in self.attribute for word in ("--by", name)]
        key = ["--record-key", "record key", "--totals", "--out", self.written]
        return [*found, ["perturb-table", keyed, "--table", table, *by, *key]]

    def afterwards(self) -> list[list[str]]:
        """Return what is run where people are asked, once the protocol is written."""
        if self.trust != "nobody":
            return []
        by = ["--protocol", self.written]
        reports, aggregate = Path(self.written).stem, f"{Path(self.written).stem}.agg"
        return [
            ["privatize", "answers.csv", *by, "--out", f"{reports}.parquet"],
            ["collect", f"{reports}.parquet", *by, "--out", aggregate],
            ["query", aggregate, *by, "--table"],
        ]

    def shell(self, folder: Path) -> str:
        """Return the commands as a shell takes them."""
        return "\n".join(shlex.join(["mechdesign", *each]) for each in self.commands(folder))
