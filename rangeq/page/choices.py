"""What has been chosen on the page so far: all of it stands in the page's address.

Every choice is an option of ``mechdesign curate``, which alone reads the table, and draws.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from itertools import count, starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frequency.schema import Attribute, Numeric, Schema, Text
from frequency.schema.attribute import ItemAttribute
from mechdesign import Privacy, plan
from mechdesign.base import ReadOptions, brief, fraction, listed, opened_table
from rangeq.central import GroupedSums, MarginalCounts, Release, for_each_row, key_rules
from rangeq.central.choice import usual_task
from rangeq.central.inputs import LARGEST_DIMENSION, cells_along
from rangeq.central.persons import LARGEST_ROWS

#: The kinds of questions, and what each is called.
KINDS = {
    "counts": "How many people there are, by groups or bins",
    "means": "Means and sums of numbers, perhaps by groups",
    "quantiles": "The median, or other quantiles, of a number",
    "keys": "Which values of a column there are, and how many people have each",
}

#: The endings of files that are tables of people, and of what was released.
TABLES = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".xlsx", ".sav", ".dta", ".xpt")
SCHEMAS, RELEASES = (".toml",), (".release",)

_NAME = re.compile(r"[\w()+-][\w ().+-]{0,99}")

MOST_EPSILON = 20  #: Beyond it nothing is protected.

MOST_PEOPLE = 10**9  #: The most people that may be expected.

_SHOWN_PEOPLE = 1000  # of a picture of means, before they are as many as are expected


class InvalidChoice(ValueError):
    """Something on the page that cannot be chosen: its message is for the person there."""


def files_in(folder: Path, endings: Sequence[str]) -> list[str]:
    """Return the names of the files in a folder, none of them elsewhere, with one of some endings.

    Parameters
    ----------
    folder : Path
        The folder that was opened.
    endings : sequence of str
        Such as ".csv".

    Returns
    -------
    list of str
        In the order of the alphabet. Links are left out: they may lead out of the folder.
    """
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
    """The choices of a person on the page.

    Attributes
    ----------
    table, schema : str
        Names of files in the folder.
    kind : str
        One of `KINDS`.
    attribute, by, number : tuple of str
        What is counted; the groups, and the numbers, of means.
    quantile : str
        Fractions, with commas between them.
    person, rows : str
        The column that says who somebody is, if there are several rows of each, and how many count.
    epsilon, delta : str
        The privacy loss.
    people : str
        About how many there are, from public knowledge: for pictures and fractions alone.
    ledger, out : str
        Names of files: the ledger that is spent from, and the release.
    """

    table: str = ""
    schema: str = ""
    kind: str = "counts"
    attribute: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    quantile: str = "0.1, 0.5, 0.9"
    person: str = ""
    rows: str = "1"
    epsilon: str = "1"
    delta: str = ""
    people: str = "1000"
    ledger: str = ""
    out: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Sequence[str]]) -> Choices:
        """Read the fields of a form, or of an address.

        Parameters
        ----------
        given : mapping of str to sequence of str
            The values of each field; others are left out.

        Returns
        -------
        Choices
        """
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
        if self.kind not in KINDS:
            raise InvalidChoice("choose a question")
        names = (*self.by, *self.number) if self.kind == "means" else self.attribute
        unknown = next((name for name in names if name not in known.names), None)
        if unknown is not None:
            raise InvalidChoice(f"the schema has no column {unknown}")
        if self.kind == "means" and not self.number:
            raise InvalidChoice("choose a number whose mean is wanted")
        if not names:
            raise InvalidChoice("choose one column at least")
        if self.kind in ("quantiles", "keys") and len(names) > 1:
            raise InvalidChoice("choose one column")
        schema = known.project(names)
        texts = [attribute.name for attribute in schema if isinstance(attribute, Text)]
        if self.kind == "keys" and not texts:
            raise InvalidChoice(f"{names[0]} has a list of labels already: count people by it")
        if self.kind != "keys" and texts:
            raise InvalidChoice(f"nobody listed the values of {texts[0]}: ask which there are")
        if self.kind == "counts" and len(schema) > LARGEST_DIMENSION:
            raise InvalidChoice(f"choose at most {LARGEST_DIMENSION} columns")
        if self.kind == "quantiles" and not schema.attributes[0].ordered:
            raise InvalidChoice(f"{names[0]} has no order, and so no quantiles")
        return schema

    @property
    def most(self) -> int:
        """How many rows of a person count."""
        if not self.person:
            if self.rows != "1":
                raise InvalidChoice(
                    "several rows of a person count only if a column says whose row each is"
                )
            return 1
        if not self.rows.isdecimal() or not 1 <= int(self.rows) <= LARGEST_ROWS:
            raise InvalidChoice(f"rows of a person are 1 to {LARGEST_ROWS}")
        return int(self.rows)

    @property
    def loss(self) -> Fraction:
        """Epsilon."""
        try:
            epsilon = fraction(pointed(self.epsilon), "epsilon")
        except (ValueError, TypeError):
            raise InvalidChoice("epsilon is a number above 0, such as 0.5") from None
        if not 0 < epsilon <= MOST_EPSILON:
            raise InvalidChoice(f"epsilon is a number above 0, and at most {MOST_EPSILON}")
        return epsilon

    @property
    def failure(self) -> Fraction | None:
        """Delta, which only keys need; None of other questions."""
        if self.kind != "keys":
            return None
        try:
            delta = fraction(pointed(self.delta), "delta")
        except (ValueError, TypeError):
            raise InvalidChoice("delta is a small number, such as 1e-6") from None
        if not 0 < delta < Fraction(1, 100):
            raise InvalidChoice("delta is above 0, and below 0.01")
        return delta

    @property
    def expected(self) -> int:
        """How many people there are, about."""
        if not self.people.isdecimal() or not 1 <= int(self.people) <= MOST_PEOPLE:
            raise InvalidChoice("how many people there are, about: a whole number")
        return int(self.people)

    @property
    def fractions(self) -> tuple[str, ...]:
        """The quantiles."""
        texts = tuple(text.strip() for text in self.quantile.split(",") if text.strip())
        try:
            numbers = [fraction(text, "a quantile") for text in texts]
        except (ValueError, TypeError):
            numbers = []
        if not numbers or min(numbers) < 0 or max(numbers) > 1:
            raise InvalidChoice("quantiles are fractions from 0 to 1, such as 0.1, 0.5, 0.9")
        return texts

    @property
    def written(self) -> str:
        """The name of the release."""
        stem = self.table.split(".")[0] or "people"
        name = self.out.removesuffix(RELEASES[0]) or f"{stem} {self.kind}"
        if _NAME.fullmatch(name) is None:
            raise InvalidChoice(
                "the file's name has up to 100 letters, digits, blanks, points and hyphens, and"
                " begins with none of the last three"
            )
        return name + RELEASES[0]

    def named_anew(self, folder: Path) -> Choices:
        """Return the same with a name that no file has."""
        stem = replace(self, out="").written.removesuffix(RELEASES[0])
        names = (f"{stem}{f' {number}' if number > 1 else ''}" for number in count(1))
        taken = files_in(folder, RELEASES)
        return replace(self, out=next(name for name in names if name + RELEASES[0] not in taken))

    # ------------------------------------------------------------------------------------ commands

    def arguments(self, folder: Path) -> list[str]:
        """Return the command that does the same: arguments of ``mechdesign``."""
        self.asked(folder)
        given = ["curate", self.table, "--schema", self.schema]
        if self.kind == "means":
            given += [word for name in self.number for word in ("--mean", name)]
            given += [word for name in self.by for word in ("--by", name)]
        else:
            given += [word for name in self.attribute for word in ("--attribute", name)]
        if self.kind == "quantiles":
            given += [word for text in self.fractions for word in ("--quantile", text)]
        _ = self.loss
        given += ["--epsilon", pointed(self.epsilon)]
        if self.failure is not None:
            given += ["--delta", pointed(self.delta)]
        most = self.most
        if self.person:
            if self.person not in self.columns(folder):
                raise InvalidChoice(f"the table has no column {self.person}")
            given += ["--person", self.person, "--max-rows", str(most)]
        if self.ledger:
            file_in(folder, self.ledger, (".json",))
            given += ["--ledger", self.ledger]
        return [*given, "--out", self.written]

    def shell(self, folder: Path) -> str:
        """Return the command as a shell takes it."""
        return shlex.join(["mechdesign", *self.arguments(folder)])

    def python(self, folder: Path) -> str:
        """Return what does the same in Python."""
        words = [json.dumps(word, ensure_ascii=False) for word in self.arguments(folder)]
        arguments = ",\n    ".join(words)
        return f"from mechdesign.cli import main\n\nmain([\n    {arguments},\n])\n"

    def notebook(self, folder: Path) -> str:
        """Return the same as a Jupyter notebook, with the questions after it."""
        cells = [self.python(folder), _ASKING.format(release=json.dumps(self.written))]
        return json.dumps(
            {
                "nbformat": 4,
                "nbformat_minor": 5,
                "metadata": {},
                "cells": [
                    {
                        "id": f"cell-{number}",
                        "cell_type": "code",
                        "metadata": {},
                        "execution_count": None,
                        "outputs": [],
                        "source": source.splitlines(keepends=True),
                    }
                    for number, source in enumerate(cells)
                ],
            },
            indent=1,
        )

    # --------------------------------------------------------------------------------- predictions

    def predicted(self, folder: Path) -> Prediction:
        """Return the errors of answers, which follow from the choices, and never from the table."""
        schema, epsilon, delta = self.asked(folder), self.loss, self.failure
        return _predicted(self.kind, schema, (epsilon, delta, self.most), self._particular())

    def _particular(self) -> Any:
        """What else predictions of a kind need."""
        if self.kind == "means":
            return len(self.number)
        return self.fractions if self.kind == "quantiles" else None

    def reaching(self, folder: Path, error: str) -> Choices:
        """Return the same with the epsilon at which an answer errs by so much.

        Parameters
        ----------
        folder : Path
            The folder that was opened.
        error : str
            The standard error of the first answer of `predicted`, in its unit.

        Returns
        -------
        Choices
            With an epsilon of three digits.
        """
        try:
            wanted = float(pointed(error))
        except ValueError:
            wanted = math.nan
        if not (math.isfinite(wanted) and wanted > 0):
            raise InvalidChoice("the error that is wanted is a number above 0")
        # Errors are nearly in proportion to 1 / epsilon, so that few steps find it
        found = replace(self, epsilon="1")
        for _ in range(5):
            reached = found.predicted(folder).answers[0].error
            if abs(reached / wanted - 1) < 0.01:
                break
            epsilon = float(found.loss) * reached / wanted
            if not 1e-4 <= epsilon <= float(MOST_EPSILON):
                raise InvalidChoice(f"no epsilon up to {MOST_EPSILON} reaches this error")
            found = replace(found, epsilon=f"{epsilon:.3g}")
        return found

    def example(self, folder: Path) -> Any:
        """Return an estimate such as a release would have of people who are spread evenly."""
        schema, rng = self.asked(folder), np.random.default_rng(1)
        prediction = self.predicted(folder)
        people, mechanism = self.expected, prediction.mechanism
        if self.kind not in ("counts", "means") or mechanism is None:
            return None
        told: dict[str, Any] = {}
        counts: Any
        if self.kind == "means":
            sums = GroupedSums(schema, len(self.number))
            few = sums.count([_spread(schema, rng)], mechanism)
            times = max(people // _SHOWN_PEOPLE, 1)
            tables = {view: table * times for view, table in few.tables.items()}
            counts, told = MarginalCounts(few.sizes, tables, few.parts), {"sums": sums}
        else:
            sizes = cells_along(schema)
            number = math.prod(sizes)
            counts = np.diff(np.arange(number + 1) * people // number).reshape(sizes)
        return Release.draw(schema, mechanism, counts, rng, **told).estimate

    def statement(self, folder: Path) -> str:
        """Return a paragraph on method, for who publishes the answers."""
        whom = f"one person, of whom up to {self.most} rows count" if self.person else "one row"
        loss = f"epsilon {brief(self.loss)}"
        if self.failure is not None:
            loss += f" and delta {brief(self.failure)}"
        names = self.asked(folder).names
        what = f"the column {names[0]}" if len(names) == 1 else f"the columns {listed(names)}"
        errors = "; ".join(str(answer) for answer in self.predicted(folder).answers)
        bias = " and answers are without bias" if self.kind in ("counts", "means") else ""
        return (
            f"The numbers were released with differential privacy, {loss}, with respect to {whom}"
            f" more or less, by mechdesign, which read {what} of the table, as {self.schema}"
            f" describes them in public. Noise was drawn once{bias}. Standard errors: {errors}."
            " They do not include errors of the table itself."
        )


_ASKING = """from rangeq.central import load_release

estimate = load_release({release}).estimate
print(estimate.schema)
"""


class PredictedAnswer(NamedTuple):
    """An answer that people will ask for, and its standard error."""

    what: str
    error: float  # standard, or root mean square
    unit: str

    def __str__(self) -> str:
        return f"{self.what} {self.error:.4g} {self.unit}"


class Prediction(NamedTuple):
    """Predicted errors of the chosen mechanism, and of others."""

    answers: Sequence[PredictedAnswer]
    others: Sequence[tuple[str, float, bool]]  # name, error, and whether it is chosen
    mechanism: Any  # None of keys
    error_is: str
    lines: Sequence[str] = ()


@lru_cache(maxsize=64)
def _predicted(
    kind: str, schema: Schema, loss: tuple[Fraction, Fraction | None, int], particular: Any
) -> Prediction:
    epsilon, delta, rows = loss
    if kind == "keys":
        assert delta is not None
        rules = key_rules(epsilon, delta, rows)
        answers = [PredictedAnswer("the number of people of a value", rules[0].deviation, "people")]
        others = [(rule.kind, rule.deviation, rule is rules[0]) for rule in rules]
        return Prediction(answers, others, None, "standard error, in people", [*map(str, rules)])
    if kind == "means":
        sums = GroupedSums(schema, particular)
        mechanism = sums.mechanism(for_each_row(Privacy.from_epsilon(epsilon), rows))
        users, *totals = sums.standard_errors(mechanism)
        answers = [PredictedAnswer(*users[:2], "people"), *starmap(PredictedAnswer, totals)]
        return Prediction(answers, (), mechanism, "standard error")
    quantiles = kind == "quantiles"
    asked = {"q": particular} if quantiles else {}
    found = plan(usual_task(schema, quantiles), schema, epsilon=epsilon / rows, **asked)
    told = [(each.name, float(each.error), each is found.best) for each in found.candidates]
    answers = [PredictedAnswer("the rank of a quantile", float(found.best.error), "people")]
    if kind == "counts":
        answers = list(_of_attributes(schema, found.best.protocol))
    return Prediction(answers, told, found.best.protocol, found.task.error_is)


def _of_attributes(schema: Schema, mechanism: Any) -> Iterator[PredictedAnswer]:
    """The number of people of one item of each attribute, and in half of an ordered one."""
    for place, attribute in enumerate(schema):
        first = np.zeros((len(schema), 1), dtype=np.int64)
        last = np.array(schema.sizes, dtype=np.int64)[:, None] - 1
        bins = getattr(attribute, "bins", attribute.size)
        first[place], last[place] = bins // 2, bins // 2
        error = math.sqrt(float(mechanism.errors.variance(first, last)[0]))
        yield PredictedAnswer(f"people of one {attribute.name}", error, "people")
        if attribute.ordered and bins > 2:
            first[place], last[place] = bins // 4, bins // 4 + bins // 2 - 1
            error = math.sqrt(float(mechanism.errors.variance(first, last)[0]))
            yield PredictedAnswer(f"people in half of {attribute.name}", error, "people")


def _spread(schema: Schema, rng: np.random.Generator) -> dict[str, Any]:
    """Rows of people whose values are spread evenly."""

    def column(attribute: Attribute) -> Any:
        if isinstance(attribute, Numeric):
            low, high = map(float, attribute.bounds)
            values = rng.uniform(low, high, _SHOWN_PEOPLE)
            return np.rint(values) if attribute.whole else values
        assert isinstance(attribute, ItemAttribute)
        items = rng.integers(0, attribute.bins, _SHOWN_PEOPLE).tolist()
        return [attribute.item_labels[item] for item in items]

    return {attribute.name: column(attribute) for attribute in schema}
