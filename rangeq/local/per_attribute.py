"""Ranges of every attribute, each from users who report on it (range queries, section 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.core import Aggregate, Answer, Channel, Conditions, Mixture, Protocol, conditions
from frequency.exceptions import InvalidQuestion
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base import Items, Rational, listed, set_fields, shown
from rangeq.core import AttributeQuantiles, RangeEstimate, RangeProtocol, RecordChannel
from rangeq.local.haar import HaarHRR
from rangeq.local.item_sets import Ranges

_AT_ONCE = 1 << 22  # the most weights of items to hold at a time


@dataclass(frozen=True)
class OneAttribute(RecordChannel, Mixture):
    """The channel of one random attribute of the record, with another attribute if one is given."""

    channels: tuple[Channel, ...]  # of the attributes that are reported on
    given: str | None  # the attribute that is reported with each of them

    kind: ClassVar[str] = "attribute"

    @property
    def _protocol_name(self) -> str:
        return "Attribute"

    @property
    def parts(self) -> tuple[Channel, ...]:
        return self.channels

    def _details(self) -> dict[str, Any]:
        names = [[name, self.attributes[name]] for name in self.attributes]
        return {"attributes": names, "given": self.given, **super()._details()}

    @cached_property
    def asked(self) -> tuple[tuple[str, ...], ...]:
        """The attributes that each part is about: one, perhaps after the given one."""
        before = () if self.given is None else (self.given,)
        return tuple((*before, name) for name in self.attributes if name != self.given)

    def part_expression(self, part: int) -> list[Any]:
        return self.combination(self.attributes.places(self.asked[part]))

    def part_items(self, part: int, items: Items) -> Items:
        return self.combined(items, self.attributes.places(self.asked[part]))


class PerAttributeEstimate(AttributeQuantiles):
    """The estimate of each attribute, and of each with the given one.

    Unbiased. Variances are those of the protocols' noise and of the draw of users to attributes.

    Attributes
    ----------
    n : int
        The number of reports. With none all values are NaN, all variances infinite.
    domain : Domain
        The attributes.
    """

    joined = 1  #: the most attributes that may be asked about together

    def __init__(self, protocol: PerAttribute, aggregate: Aggregate) -> None:
        self.n, self.domain, self._asked = aggregate.n, protocol.domain, protocol.channel.asked
        self._given = protocol.given
        self._parts: list[RangeEstimate] = [
            of_attribute.estimate(protocol.channel.part_aggregate(aggregate, part))
            for part, of_attribute in enumerate(protocol.protocols)
        ]

    @property
    def _records(self) -> Domain:
        return self.domain

    def answer(self, where: Mapping[Any, Any]) -> Answer:
        """The fraction of the population with these values.

        Parameters
        ----------
        where : mapping
            Of one attribute, or the given one, or both: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            With its variance and intervals.

        Raises
        ------
        InvalidQuestion
            What is no question, or one about two attributes none of which is the given one.
        """
        shape, asked = conditions(where, self.domain.names, self.domain.sizes)
        wanted = (self.domain.names[condition.place] for condition in asked)
        others = [name for name in wanted if name != self._given]
        if len(others) > 1:
            raise InvalidQuestion(
                f"nobody reports on {listed(others)} together: ask for one of them"
                + (f", with or without {self._given}" if self._given is not None else "")
            )
        parts = [
            (names, part)
            for names, part in zip(self._asked, self._parts, strict=True)
            if part.n and (not others or others[0] in names)
        ]
        if not parts:
            return Answer(np.full(shape, np.nan), np.full(shape, np.inf))
        value, variance = np.zeros((2, math.prod(shape)))
        users = sum(part.n for _, part in parts)
        # Those of one attribute are a sample of the users; all together are the users
        drawn = 1 / users - 1 / self.n
        # Disjoint groups of users, one for each attribute: their mean weighed by users is that of
        # all of them
        for names, part in parts:
            share, population = part.n / users, norm_sub(part.frequencies)
            sizes = dict(
                zip(self.domain.places(names), self.domain.project(names).sizes, strict=True)
            )
            step = max(1, _AT_ONCE // len(population))
            for start in range(0, len(value), step):
                batch = slice(start, start + step)
                some = [
                    each._replace(first=each.first.ravel()[batch], last=each.last.ravel()[batch])
                    for each in asked
                ]
                rows = Conditions(value[batch].shape, tuple(some)).weights(sizes)
                values, noise = part.linear(rows)
                value[batch] += share * values
                spread = np.maximum(rows**2 @ population - (rows @ population) ** 2, 0.0)
                variance[batch] += share**2 * (noise + drawn * spread)
        return Answer(value.reshape(shape), variance.reshape(shape))


@dataclass(frozen=True)
class PerAttribute(Protocol):
    """A protocol in which every user reports on one random attribute, by a range protocol.

    With a ``given`` attribute, such as a private class, each report is about it too, jointly and
    under the same epsilon: a pair (class, value) is the item class * size + value of a protocol
    over the product, whose tree asks for the class first. `PerAttribute.of` makes it from a class
    of range protocols.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    protocols : sequence of RangeProtocol
        One for each attribute but the given one, in their order: over as many items as the
        attribute has values, times those of the given one. All of the same privacy loss.
    given : str, optional
        The attribute that is reported with each of the others; None: each is reported alone.

    Raises
    ------
    ValueError
        Protocols or names that do not fit the domain or each other.
    """

    domain: Domain
    protocols: tuple[RangeProtocol, ...]
    given: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise ValueError(f"domain must be a frequency.schema.Domain, got {shown(self.domain)}")
        if self.given is not None:
            self.domain.checked([self.given])
        set_fields(self, protocols=tuple(self.protocols))
        sizes = self.sizes(self.domain, self.given)
        if (
            not all(isinstance(protocol, RangeProtocol) for protocol in self.protocols)
            or [protocol.domain for protocol in self.protocols] != sizes
            or not sizes
        ):
            raise ValueError(
                f"protocols must be range protocols over {shown(sizes)} items, got"
                f" {shown(self.protocols)}"
            )
        if len({protocol.privacy for protocol in self.protocols}) > 1:
            raise ValueError("protocols must all have the same privacy loss")

    @staticmethod
    def sizes(domain: Domain, given: str | None) -> list[int]:
        """Return the numbers of items that the protocol of each attribute must have.

        Parameters
        ----------
        domain : Domain
            The attributes.
        given : str or None
            The one that is reported with each other.

        Returns
        -------
        list of int
            One for each attribute but the given one.
        """
        times = 1 if given is None else domain[given]
        return [times * domain[name] for name in domain if name != given]

    @classmethod
    def of(
        cls,
        domain: Domain,
        epsilon: float | Rational,
        given: str | None = None,
        ranges: Ranges = HaarHRR,
    ) -> PerAttribute:
        """Make the protocol with range protocols of one kind.

        Parameters
        ----------
        domain, given : as of `PerAttribute`
            The attributes and their numbers of values, and the one that is reported with each
            other.
        epsilon : float, Fraction, int, str or Decimal
            The privacy loss of one report: of the whole record.
        ranges : callable, default HaarHRR
            The class of range protocols, or what makes one from a number of items and an epsilon.

        Returns
        -------
        PerAttribute
            The protocol.

        Raises
        ------
        ValueError
            An epsilon out of range, or names that are not of the domain.
        """
        if given is not None:
            domain.checked([given])
        return cls(domain, tuple(ranges(size, epsilon) for size in cls.sizes(domain, given)), given)

    @cached_property
    def channel(self) -> OneAttribute:
        """The channel that turns a record into a report on one attribute."""
        channels = tuple(protocol.channel for protocol in self.protocols)
        epsilon = self.protocols[0].epsilon
        return OneAttribute(self.domain.size, epsilon, self.domain, channels, self.given)

    @property
    def takes(self) -> dict[str, Any]:
        return self.domain.takes(numbered=False)

    def items_of(self, values: Any) -> Any:
        return self.domain.records(values)

    def estimate(self, aggregate: Aggregate) -> PerAttributeEstimate:
        """Ranges of every attribute.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        PerAttributeEstimate
            All values are NaN with no reports.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        return PerAttributeEstimate(self, self.channel.require_own(aggregate))
