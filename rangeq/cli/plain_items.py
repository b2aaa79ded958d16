"""Estimates of protocols without a schema, as those of surveys of numbered items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.core.answer import Answer, conditions
from frequency.core.oracle import Oracle
from frequency.core.protocol import channel_of
from frequency.exceptions import InvalidQuestion
from frequency.schema import (
    Attribute,
    Numeric,
    Schema,
    Survey,
    SurveyEstimate,
    Text,
)
from frequency.schema.attribute import MOST_ITEMS, Coded
from frequency.schema.survey import domain_of, wrapped
from mechdesign.base.text import printable, shown
from rangeq.local.item_sets import SetEstimate
from rangeq.local.paired import PairedEstimate

ITEM = "item"
"""What the only attribute is called."""


@dataclass(frozen=True)
class NumberedItems(Attribute):
    """Items 0 .. items - 1, too many to list.

    Parameters
    ----------
    name : str
        The attribute's name.
    items : int
        How many there are.
    """

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
        if isinstance(given, tuple):
            low, high = given
            first = 0 if low is None else self._item(low)
            last = self.items - 1 if high is None else self._item(high)
            if first > last:
                raise InvalidQuestion(f"{printable(self.name)}: {first} is above {last}")
            return first, last
        if isinstance(given, list):
            return [self._item(one) for one in given]
        return given if isinstance(given, np.ndarray) else self._item(given)

    def _item(self, given: Any) -> int:
        text = str(given).strip()
        if not (text.isascii() and text.isdigit()) or not int(text) < self.items:
            raise InvalidQuestion(f"{printable(self.name)} is {self.values}, got {shown(given)}")
        return int(text)

    def _content(self) -> dict[str, Any]:
        return {"items": self.items}


class FewItems:
    """The estimates of an oracle over more items than can be listed: of those that are asked for.

    Parameters
    ----------
    protocol : Oracle or GenProt
        What was asked.
    aggregate : Aggregate
        Of its reports.
    domain : int
        The number of items.
    """

    def __init__(self, protocol: Any, aggregate: Aggregate, domain: int) -> None:
        self._protocol, self._aggregate, self._domain = protocol, aggregate, domain

    @property
    def n(self) -> int:
        """The number of users."""
        return self._aggregate.n

    def answer(self, where: Any) -> Answer:
        """As `Estimate.answer`."""
        _, (asked,) = conditions(where, (ITEM,), (self._domain,))
        if asked.first.ndim == 0 and asked.size > MOST_ITEMS:
            raise InvalidQuestion(f"the range has more than {MOST_ITEMS} items: ask for fewer")
        items = asked.items
        if items is None and asked.first.ndim == 0:
            items = np.arange(int(asked.first), int(asked.last) + 1)
        elif items is None:
            items = np.unique(asked.first)
        told: Answer = self._protocol.estimate(self._aggregate, items=items).answer(where)
        return told


def estimate_of(protocol: Any, aggregate: Aggregate) -> SurveyEstimate:
    """The estimate of any protocol, in the units of its schema if it has one."""
    if isinstance(protocol, Survey):
        return protocol.estimate(aggregate)
    asked, domain = wrapped(protocol), domain_of(protocol)
    universe = getattr(asked, "universe", None)
    if universe is not None:
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
    own = estimate.estimate if isinstance(estimate, PairedEstimate) else estimate
    measure = "items of a user" if isinstance(own, SetEstimate) else "fraction of the users"
    return SurveyEstimate(Schema(attributes), estimate, measure)


def _numbers(name: str, size: int) -> Attribute:
    """Items that are called by their numbers."""
    if size > MOST_ITEMS:
        return NumberedItems(name, items=size)
    return Numeric(name, low=0, high=size - 1, whole=True)
