"""What was collected, as a source of answers: an aggregate with its protocol, or a release."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from frequency.core.aggregate import message_kind
from frequency.exceptions import IncompatibleAggregate, InvalidQuestion
from frequency.schema import Categorical, Schema, Survey
from frequency.schema.survey import wrapped
from frequency.storage import load_aggregate, load_protocol
from mechdesign import InvalidFile
from mechdesign.base.strict_json import format_of
from mechdesign.base.text import printable
from mechdesign.cli.options import release_kinds
from rangeq.central import ReleasedQuantiles, load_release
from rangeq.cli.answer_rows import AnswerRow
from rangeq.cli.answering import SEEDED, AskedText, EstimateSource, QuantileSource
from rangeq.cli.plain_items import estimate_of
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


Source: TypeAlias = EstimateSource | QuantileSource | TableSource


def add_collected(parser: argparse.ArgumentParser) -> None:
    """Add ``collected`` and ``--protocol``, which `source_of` takes."""
    parser.add_argument(
        "collected", type=Path, help="an aggregate, which collect wrote, or a curator's release"
    )
    parser.add_argument(
        "--protocol", type=Path, help="of the aggregate (.json); a release needs none"
    )


def source_of(collected: Path, protocol: Path | None, confidence: float = 0.95) -> Source:
    """What was collected, ready to answer."""
    if protocol is None:
        return _release(collected, confidence)
    return _aggregate(collected, protocol, confidence)


def _aggregate(collected: Path, given: Path, confidence: float) -> EstimateSource:
    """What an aggregate answers."""
    protocol = load_protocol(given)
    try:
        aggregate = load_aggregate(collected, protocol)
    except IncompatibleAggregate as error:
        if message_kind(collected) not in ("aggregate", "damaged"):
            raise InvalidFile(
                f"{collected} is not an aggregate: mechdesign collect makes one of reports"
            ) from error
        raise InvalidFile(f"{collected}: {error}") from error
    if not aggregate.n:
        raise ValueError(f"{collected} holds no reports: there is nothing to estimate from")
    own = protocol.protocol if isinstance(protocol, Survey) else protocol
    name = type(wrapped(own)).__name__
    return EstimateSource(name, estimate_of(protocol, aggregate), confidence)


def _release(collected: Path, confidence: float) -> Source:
    """What a curator's release answers."""
    try:
        released = load_release(collected)
    except InvalidFile as error:
        kind = release_kinds().get(format_of(collected))
        if kind is not None:
            return TableSource(kind.load().load(collected), confidence)
        if message_kind(collected) == "aggregate":
            raise InvalidFile(
                f"{collected} is an aggregate: add --protocol FILE.json, that of its reports"
            ) from error
        raise InvalidFile(f"{error}; --protocol says what an aggregate is of") from error
    if isinstance(released, ReleasedQuantiles):
        return QuantileSource(released)
    return EstimateSource(
        "the release", released.estimate, confidence, reproducible=released.reproducible
    )
