"""Answers as rows: to read, as CSV, as JSON, or as a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple, Self

from mechdesign.base import aligned, comma_separated, untaken

MOST_DRAWN = 200  #: The most answers of a picture.

#: The columns of CSV, and the keys of an answer in JSON.
HEADINGS = ["question", "value", "standard error", "low", "high", "unit", "interpolated"]

FORMAT, VERSION = "mechdesign.answers", 1


class AnswerRow(NamedTuple):
    """The answer to one question; None stands for what is not known."""

    question: str
    value: Any  # dates as text
    error: Any  # its standard error
    low: Any  # the ends of its interval
    high: Any
    unit: str  # of the value, such as "fraction of the users" or "years"
    interpolated: bool = False  # whether users are taken to be even within bins
    inner: tuple[Any, Any] | None = None  # of a model, the interval that holds on average
    average: bool = False  # whether its only interval is that: see `Answer.holds_on_average`
    cell: Mapping[str, str] = {}  # of one of the cells of some attributes, their labels


class AnswerList(NamedTuple):
    """Answers, and what they have in common."""

    rows: Sequence[AnswerRow]  # in the order of the questions
    n: float | None  # of users who reported; of a release an estimate, if it has one
    confidence: float  # of each interval by itself
    notes: Sequence[str]  # what is to be known of them, in sentences
    counted: str = "users"  # what n is a number of

    @classmethod
    def of(
        cls, source: Any, rows: Sequence[AnswerRow], confidence: float, asked: Sequence[Any] = ()
    ) -> Self:
        """What a source answered to questions, with what is to be known of it."""
        return cls(rows, source.n, confidence, source.notes(rows, asked), source.counted)

    @property
    def reported(self) -> str:
        """The number of users, or of rows, in words."""
        if self.n is None:
            return f"the number of {self.counted} was not released"
        if isinstance(self.n, int):
            return f"{self.n} user{'s' * (self.n != 1)} reported"
        return f"about {max(self.n, 0):.0f} {self.counted}"  # noise may make it negative

    @staticmethod
    def words(row: AnswerRow) -> list[str]:
        """The question, the value, the error and the interval, as `table` shows them."""
        return _rounded(row)

    def csv(self, spreadsheet: bool = False) -> str:
        """A line for each answer, empty where something is not known."""
        # The labels of a cell behind, each in the column of its attribute
        names = list(dict.fromkeys(name for row in self.rows for name in row.cell))
        rows = [
            [*(untaken(heading, names) for heading in HEADINGS), *names],
            *(
                [*map(_cell, row[: len(HEADINGS)]), *(row.cell.get(name, "") for name in names)]
                for row in self.rows
            ),
        ]
        return comma_separated(rows, spreadsheet=spreadsheet)

    def json(self) -> str:
        """An object with the number of users, the confidence, notes and a list of answers."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "n": self.n,
            "confidence": self.confidence,
            "notes": list(self.notes),
            "answers": [
                {
                    **dict(zip(HEADINGS, map(_known, row), strict=False)),
                    **({"cell": dict(row.cell)} if row.cell else {}),
                }
                for row in self.rows
            ],
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def table(self) -> str:
        """To read: as many digits as the standard errors are worth."""
        percent = f"{100 * self.confidence:.12g}%"
        head = ["question", "value", "standard error", f"{percent} interval", "unit"]
        rows = [[*_rounded(row), row.unit] for row in self.rows]
        return "\n".join([self.reported, *aligned([head, *rows]), *self.notes]) + "\n"


def _known(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "yes" if value else "no"
    known = _known(value)
    return "" if known is None else known


def _rounded(row: AnswerRow) -> list[str]:
    """The question, the value, the error and the interval, to two digits of the error."""
    value, error, low, high = (_known(number) for number in row[1:5])
    mark = " *" if row.interpolated else ""
    numbers = [end for end in (low, high) if isinstance(end, float)]
    worth = error if error is not None else abs(numbers[-1] - numbers[0]) / 4 if numbers else 0.0
    digits = 1 - math.floor(math.log10(worth)) if worth > 0 else 4

    def text(one: Any) -> str:
        if one is None:
            return ""
        return f"{one:.{min(max(digits, 0), 12)}f}" if isinstance(one, float) else str(one)

    span = "" if low is None else f"{text(low)} to {text(high)}"
    return [row.question, text(value) + mark, text(error), span]


def compared(
    title: str,
    labels: Sequence[str],
    rows: Sequence[AnswerRow],
    confidence: float,
    *,
    as_given: bool = False,
) -> Any:
    """The picture of answers about some groups: points with intervals, the largest first or not."""
    from frequency.schema.plot import groups  # loads matplotlib

    pairs = [pair for pair in zip(labels, rows, strict=True) if pair[1].low is not None]
    if not pairs:
        raise ValueError("--plot with --by draws a question whose answers have intervals")
    if len(pairs) > MOST_DRAWN:
        raise ValueError(f"{len(pairs)} answers are more than a picture shows: {MOST_DRAWN}")
    inner = [row.inner for _, row in pairs]
    return groups(
        [label for label, _ in pairs],
        [row.value for _, row in pairs],
        ([row.low for _, row in pairs], [row.high for _, row in pairs]),
        inner=None if None in inner else tuple(zip(*inner, strict=True)),
        measure=pairs[0][1].unit,
        title=title,
        confidence=confidence,
        as_given=as_given,
    )
