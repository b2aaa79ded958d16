"""Questions about released tables of counts, and the answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from frequency.exceptions import InvalidQuestion
from frequency.schema import Categorical, Schema
from mechdesign.base.text import printable
from rangeq.cli.answer_rows import AnswerRow
from rangeq.cli.answering import SEEDED, AskedText
from rangeq.cli.where_text import where_of

PEOPLE = "people"


class TableSource(NamedTuple):
    """A released table of counts: of groups, of several attributes, or of regions.

    Attributes
    ----------
    released : TableRelease, ContingencyRelease or RegionRelease
        With ``questions``, ``answer`` and ``statement``.
    confidence : float
        Of each interval by itself, in (0, 1).
    """

    released: Any
    confidence: float

    @property
    def n(self) -> None:
        """The number of people is not released."""

    @property
    def schema(self) -> Schema:
        """The axes of the table, as attributes that conditions are about."""
        axes = self.released.questions
        return Schema([Categorical(*axis) for axis in zip(axes.names, axes.labels, strict=True)])

    def answers(self, asked: Sequence[AskedText]) -> list[AnswerRow]:
        """The answers to questions: see `EstimateSource.answers`."""
        return [row for one in asked for row in self._answers(one)]

    def _answers(self, one: AskedText) -> Iterator[AnswerRow]:
        if one.kind == "quantile":
            raise InvalidQuestion("a table of counts has no quantiles")
        if one.kind == "where":
            yield self._row(one.text.strip(), where_of(one.text, self.schema))
            return
        axes = self.released.questions
        names = [name.strip() for name in one.text.split(",") if name.strip()] or [*axes.names]
        if one.text.strip() in axes.names:  # names may hold commas
            names = [one.text.strip()]
        labels = [axes.labels[place] for place in axes.kept(names)]
        names = [axes.names[place] for place in axes.kept(names)]
        for cell in product(*labels):
            where = dict(zip(names, cell, strict=True))
            yield self._row(" and ".join(f"{name} {label}" for name, label in where.items()), where)

    def _row(self, question: str, where: dict[str, Any]) -> AnswerRow:
        answer = self.released.answer(where)
        low, high = (int(end) for end in answer.interval(self.confidence))
        error = math.sqrt(max(float(answer.variance), 0))
        return AnswerRow(question, float(answer.value), error, low, high, PEOPLE)

    def usual(self) -> list[AskedText]:
        """Every cell, or region."""
        return [AskedText("marginal", "")]

    def notes(self, rows: Sequence[AnswerRow]) -> list[str]:
        """What is to be known of answers, in sentences."""
        notes = [
            "Answers are estimates without bias of numbers of people, and may be negative; each"
            f" interval holds the truth with a probability of about {100 * self.confidence:.12g}%,"
            " by itself."
        ]
        if self.released.statement.reproducible:
            notes.append(SEEDED)
        return notes

    def picture(self, asked: Sequence[AskedText], kind: Any = None) -> Any:
        """Nothing is drawn: ValueError."""
        raise ValueError(f"no picture is drawn of {printable(repr(self.released))}")
