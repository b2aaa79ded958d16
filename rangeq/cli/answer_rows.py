"""Answers as rows: to read, as CSV, or as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

from mechdesign.base.csv_rows import comma_separated
from mechdesign.base.text import aligned

HEADINGS = ["question", "value", "standard error", "low", "high", "unit", "interpolated"]
"""The columns of CSV, and the keys of an answer in JSON."""

FORMAT, VERSION = "mechdesign.answers", 1


class AnswerRow(NamedTuple):
    """The answer to one question.

    Attributes
    ----------
    question : str
        What was asked.
    value : float, int or str
        The answer; dates as text.
    error : float or None
        Its standard error; None where it is not known, here and below.
    low, high : float, int, str or None
        The ends of its interval.
    unit : str
        What the value is in, such as "fraction of the users" or "years".
    interpolated : bool
        Whether users are taken to be even within bins.
    """

    question: str
    value: Any
    error: Any
    low: Any
    high: Any
    unit: str
    interpolated: bool = False


class AnswerList(NamedTuple):
    """Answers, and what they have in common.

    Attributes
    ----------
    rows : sequence of AnswerRow
        In the order of the questions.
    n : int, float or None
        How many users reported; of a curator's release an estimate, or None where it has none.
    confidence : float
        Of each interval by itself.
    notes : sequence of str
        What is to be known of them, in sentences.
    """

    rows: Sequence[AnswerRow]
    n: float | None
    confidence: float
    notes: Sequence[str]

    @property
    def reported(self) -> str:
        """How many users there are, in words."""
        if self.n is None:
            return "the number of users was not released"
        if isinstance(self.n, int):
            return f"{self.n} user{'s' * (self.n != 1)} reported"
        return f"about {max(self.n, 0):.0f} users"  # noise may make it negative

    def csv(self, spreadsheet: bool = False) -> str:
        """A line for each answer, empty where something is not known."""
        rows = [HEADINGS, *(map(_cell, row) for row in self.rows)]
        return comma_separated(rows, spreadsheet=spreadsheet)

    def json(self) -> str:
        """An object with the number of users, the confidence, notes and a list of answers."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "n": self.n,
            "confidence": self.confidence,
            "notes": list(self.notes),
            "answers": [dict(zip(HEADINGS, map(_known, row), strict=True)) for row in self.rows],
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def table(self) -> str:
        """To read: as many digits as the standard errors are worth."""
        percent = f"{100 * self.confidence:.12g}%"
        head = ["question", "value", "standard error", f"{percent} interval", "unit"]
        rows = [[*_rounded(row), row.unit] for row in self.rows]
        return "\n".join([self.reported, *aligned([head, *rows]), *self.notes]) + "\n"


def _known(value: Any) -> Any:
    """As JSON has it."""
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
    value, error, low, high = (_known(one) for one in row[1:5])
    mark = " *" if row.interpolated else ""
    numbers = [one for one in (low, high) if isinstance(one, float)]
    worth = error if error is not None else abs(numbers[-1] - numbers[0]) / 4 if numbers else 0.0
    digits = 1 - math.floor(math.log10(worth)) if worth > 0 else 4

    def text(one: Any) -> str:
        if one is None:
            return ""
        return f"{one:.{min(max(digits, 0), 12)}f}" if isinstance(one, float) else str(one)

    span = "" if low is None else f"{text(low)} to {text(high)}"
    return [row.question, text(value) + mark, text(error), span]
