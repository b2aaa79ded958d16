"""Sources of answers from what was collected: an aggregate with its protocol, or a release."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from frequency.core import Aggregate, Answer, Oracle, channel_of, conditions, message_kind
from frequency.exceptions import IncompatibleAggregate, InvalidQuestion
from frequency.schema import Attribute, Categorical, Numeric, Schema, Survey, SurveyEstimate, Text
from frequency.schema.attribute import MOST_ITEMS, Coded
from frequency.schema.survey import domain_of, universe_of, wrapped
from frequency.storage import load_aggregate, load_protocol
from mechdesign import InvalidFile
from mechdesign.base import Between, format_of, printable, shown
from mechdesign.cli.options import release_kinds
from rangeq.central import ReleasedKeys, ReleasedQuantiles, load_release
from rangeq.cli.answer_rows import AnswerRow, compared
from rangeq.cli.answering import SEEDED, AskedText, EstimateSource, QuantileSource
from rangeq.cli.where_text import where_of
from rangeq.local.item_sets import SetEstimate
from rangeq.local.paired import PairedEstimate

# ------------------------------------------------------------------------------------------------
# Estimates of protocols without a schema, as those of surveys of numbered items.


ITEM = "item"  #: What the only attribute is called.


@dataclass(frozen=True)
class NumberedItems(Attribute):
    """Items 0 .. items - 1, too many to list."""

    items: int = 1

    kind: ClassVar[str] = "items"
    ordered: ClassVar[bool] = True

    @property
    def size(self) -> int:
        return self.items

    @property
    def values(self) -> str:
        return f"an integer from 0 to {self.items - 1}"

    def coded(self, values: Any) -> Coded:
        raise TypeError("users' values are not read here")

    def asked(self, given: Any) -> Any:
        if isinstance(given, Between):
            first = 0 if given.first is None else self._item(given.first)
            last = self.items - 1 if given.last is None else self._item(given.last)
            if first > last:
                raise InvalidQuestion(f"{printable(self.name)}: {first} is above {last}")
            return Between(first, last)
        if isinstance(given, list):
            return [self._item(item) for item in given]
        return given if isinstance(given, np.ndarray) else self._item(given)

    def _item(self, given: Any) -> int:
        text = str(given).strip()
        if not (text.isascii() and text.isdigit()) or not int(text) < self.items:
            raise InvalidQuestion(f"{printable(self.name)} is {self.values}, got {shown(given)}")
        return int(text)

    def _content(self) -> dict[str, Any]:
        return {"items": self.items}


class FewItems:
    """The estimates of an oracle over more items than can be listed: those that are asked for."""

    def __init__(self, protocol: Any, aggregate: Aggregate, domain: int) -> None:
        self._protocol, self._aggregate, self._domain = protocol, aggregate, domain

    @property
    def n(self) -> int:
        """The number of users."""
        return self._aggregate.n

    def answer(self, where: Any) -> Answer:
        """Answer as `Estimate.answer` does."""
        _, (asked,) = conditions(where, (ITEM,), (self._domain,))
        if asked.first.ndim == 0 and asked.size > MOST_ITEMS:
            raise InvalidQuestion(f"the range has more than {MOST_ITEMS} items: ask for fewer")
        items = asked.items
        if items is None and asked.first.ndim == 0:
            items = np.arange(int(asked.first), int(asked.last) + 1)
        elif items is None:
            items = np.unique(asked.first)
        return self._protocol.estimate(self._aggregate, items=items).answer(where)


def estimate_of(protocol: Any, aggregate: Aggregate) -> SurveyEstimate:
    """The estimate of any protocol, in the units of its schema if it has one."""
    if isinstance(protocol, Survey):
        return protocol.estimate(aggregate)
    asked, domain = wrapped(protocol), domain_of(protocol)
    if (universe := universe_of(protocol)) is not None:
        kind = Text(ITEM, universe.bits // 8) if universe.text else _numbers(ITEM, universe.size)
        return SurveyEstimate(Schema([kind]), protocol.find(aggregate))
    if domain is not None:
        names = [name if name.strip() else f"attribute {k}" for k, name in enumerate(domain, 1)]
        attributes = [*map(_numbers, names, domain.sizes)]
        estimate = protocol.estimate(aggregate)
    else:
        items = getattr(asked, "domain", channel_of(asked).domain)
        attributes = [_numbers(ITEM, items)]
        many = isinstance(asked, Oracle) and items > MOST_ITEMS
        estimate = FewItems(protocol, aggregate, items) if many else protocol.estimate(aggregate)
    if not hasattr(estimate, "answer"):
        raise ValueError(f"{type(asked).__name__} does not answer questions about items")
    inner = estimate.estimate if isinstance(estimate, PairedEstimate) else estimate
    measure = "items of a user" if isinstance(inner, SetEstimate) else "fraction of the users"
    return SurveyEstimate(Schema(attributes), estimate, measure)


def _numbers(name: str, size: int) -> Attribute:
    """Items that are called by their numbers."""
    if size > MOST_ITEMS:
        return NumberedItems(name, items=size)
    return Numeric(name, low=0, high=size - 1, whole=True)


PEOPLE = "people"


class TableSource(NamedTuple):
    """A released table of counts: of groups, of several attributes, or of regions."""

    released: Any  # with `questions`, `answer` and `statement`
    confidence: float  # of each interval by itself, in (0, 1)
    counted: str = "people"  # what n would be a number of

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
        return [row for question in asked for row in self._answers(question)]

    def _answers(self, one: AskedText) -> Iterator[AnswerRow]:
        if one.kind in ("quantile", "mean", "sum"):
            raise InvalidQuestion("a table of counts has no quantiles, and no means and sums")
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
        """Return questions about every cell, or region."""
        return [AskedText("marginal", "")]

    def notes(self, rows: Sequence[AnswerRow], asked: Sequence[AskedText] = ()) -> list[str]:
        """Return what is to be known of answers, in sentences."""
        notes = [
            "Answers are estimates without bias of numbers of people, and may be negative; each"
            f" interval holds the truth with a probability of about {100 * self.confidence:.12g}%,"
            " by itself."
        ]
        if self.released.statement.reproducible:
            notes.append(SEEDED)
        return notes

    def picture(self, asked: Sequence[AskedText], kind: Any = None) -> Any:
        """The picture of the cells that are asked about, or of all."""
        if kind is not None:
            raise ValueError("--kind is of an estimate: a released table is drawn as points")
        rows = self.answers(asked or self.usual())
        return compared("", [row.question for row in rows], rows, self.confidence)


Source: TypeAlias = EstimateSource | QuantileSource | TableSource


COLLECTED = """
collected [file]  an aggregate, which collect wrote, or a curator's release
--protocol FILE [file]  of the aggregate (.json); a release needs none
"""


def source_of(collected: Path, protocol: Path | None, confidence: float = 0.95) -> Source:
    """Read what was collected, ready to answer."""
    if protocol is None:
        return _release(collected, confidence)
    return _aggregate(collected, protocol, confidence)


def _aggregate(collected: Path, given: Path, confidence: float) -> EstimateSource:
    """Read an aggregate as a source of answers."""
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
    inner = protocol.protocol if isinstance(protocol, Survey) else protocol
    name = type(wrapped(inner)).__name__
    return EstimateSource(name, estimate_of(protocol, aggregate), confidence)


def _release(collected: Path, confidence: float) -> Source:
    """Read a curator's release as a source of answers."""
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
    if isinstance(released, ReleasedKeys) and not released.labels:
        raise InvalidQuestion(f"{collected}: no key has enough users to be released")
    return EstimateSource(
        "the release", released.estimate, confidence, reproducible=released.reproducible
    )
