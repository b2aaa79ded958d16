"""Ranges of items that come with a private bit: the AUC of a score, and means over ranges of keys.

A pair (bit, x) is the item bit * domain + x of a protocol over twice the domain, whose tree asks
for the bit first. So both halves answer ranges of x with the error of a tree, and the bit is as
private as x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency import Estimate, Oracle
from frequency.core import (
    Aggregate,
    Answer,
    Channel,
    OfPopulation,
    Protocol,
    channel_of,
    conditions,
)
from frequency.exceptions import InvalidValue
from frequency.schema import Domain
from mechdesign.base import Floats, Integers, bit_source, checked_counts
from rangeq.core import RangeProtocol, checked_ends
from rangeq.local.item_sets import PaddedSets, SetEstimate

#: The protocol that reports on a pair, or on a set of pairs.
Inner: TypeAlias = Oracle | RangeProtocol | PaddedSets

PAIR = ("bit", "item")  #: The attributes of a pair.


class PairedEstimate(OfPopulation):
    """The estimate of pairs of a bit and an item.

    Attributes
    ----------
    n : int
        The number of users: see `OfPopulation`.
    estimate : Estimate or SetEstimate
        Of the pairs as items: those with bit 0, then those with bit 1.
    """

    def __init__(self, estimate: Estimate | SetEstimate) -> None:
        self.estimate = estimate
        self.n, self.reports = estimate.n, estimate.reports
        self._lower, self._upper = np.split(estimate.frequencies, 2)

    def of_population(self, n: int) -> PairedEstimate:
        """The same estimate, about more users: see `OfPopulation.of_population`."""
        return PairedEstimate(self.estimate.of_population(n))

    def answer(self, where: Any) -> Answer:
        """The fraction of the population with this bit, or these items, or both.

        Parameters
        ----------
        where : mapping
            Of "bit", "item" or both: see `frequency.core.answer.conditions`. Of sets of pairs, how
            many such pairs a user has on average.

        Returns
        -------
        Answer
            With its variance and intervals.

        Raises
        ------
        InvalidQuestion
            What is no question.
        """
        sizes = (2, len(self._lower))
        question = conditions(where, PAIR, sizes)
        weights = question.weights(dict(enumerate(sizes)))
        value, variance = self.estimate.linear(weights.reshape(-1, weights.shape[-1]))
        return Answer(value.reshape(question.shape), variance.reshape(question.shape))

    def auc(self) -> Answer:
        """The chance that a random item with bit 1 exceeds one with bit 0, ties counting one half.

        Thesis, equation 7.1, which drops ties. The error is that of the linear terms (the delta
        method) of a ratio of products of estimates, right for many users; the products' own bias,
        of the order of the variance, is not taken off.

        Returns
        -------
        Answer
            With its variance and intervals.
        """
        value, slope = auc_and_slope(self._lower, self._upper)
        known = bool(np.isfinite(slope).all())
        return Answer(value, self.estimate.linear(slope).variance if known else np.inf)

    def mean(self, first: npt.ArrayLike, last: npt.ArrayLike) -> Answer:
        """The mean value of the keys in first .. last, for items made by `Paired.keyed`.

        A ratio of two estimates; the variance is that of its linear terms, and both are worth
        little where the range holds few users.

        Parameters
        ----------
        first, last : array_like
            Closed ranges of keys, integers or arrays.

        Returns
        -------
        Answer
            Floats, or arrays of the ends' shape.

        Raises
        ------
        InvalidRange
            A ValueError, for ends that are not ranges of keys.
        """
        keys = np.arange(len(self._lower))
        a, b = checked_ends(first, last, len(keys))
        inside = ((keys >= a[..., None]) & (keys <= b[..., None])).astype(np.float64)
        low, high = inside @ self._lower, inside @ self._upper
        means = np.divide(high - low, high + low, out=np.full_like(low, np.nan), where=high != -low)
        weights = np.concatenate(
            [(-1 - means[..., None]) * inside, (1 - means[..., None]) * inside], -1
        )
        weights = np.nan_to_num(weights / (high + low)[..., None]).reshape(-1, 2 * len(keys))
        variance = np.asarray(self.estimate.linear(weights).variance).reshape(means.shape)
        return Answer(means, variance)


def auc_and_slope(lower: Floats, upper: Floats) -> tuple[float, Floats]:
    """Return the AUC of a population, and its derivative by each frequency: shape (2 domain,)."""
    below = np.cumsum(lower) - lower / 2  # of bit 0 below each item, half of those at it
    above = upper.sum() - np.cumsum(upper) + upper / 2
    pairs = float(lower.sum() * upper.sum())
    value = float(upper @ below) / pairs
    # The derivative of a quotient: that of the pairs won, less the value times that of all pairs
    slope = np.concatenate([above - value * upper.sum(), below - value * lower.sum()]) / pairs
    return value, slope


@dataclass(frozen=True)
class Paired(Protocol):
    """Pairs of a bit and an item, as the items of a protocol over an even domain.

    Thesis, section 7.1.2. Values are rows of a bit and an item: ``privatize([[1, 17], [0, 3]])``.
    Of keys with numeric values, `keyed` makes the items that ``channel.privatize`` takes; of users
    with sets of them, the sets that a `PaddedSets` takes.

    Parameters
    ----------
    protocol : RangeProtocol, Oracle or PaddedSets
        Over twice the domain of the items. With a frequency oracle the error of a range grows with
        its length: the flat baseline of the source.

    Raises
    ------
    ValueError
        If its domain is odd.
    TypeError
        It is no such protocol.
    """

    protocol: Inner

    def __post_init__(self) -> None:
        if not isinstance(self.protocol, (Oracle, RangeProtocol, PaddedSets)):
            raise TypeError(
                "protocol must be a frequency oracle, a range protocol or PaddedSets, got"
                f" {type(self.protocol).__name__}"
            )
        if self.protocol.domain % 2:
            raise ValueError(
                "pairs need a protocol over twice their domain, an even number, got"
                f" {self.protocol.domain}"
            )

    @property
    def channel(self) -> Channel:
        return channel_of(self.protocol)

    @property
    def domain(self) -> int:
        """The number of items that a bit comes with."""
        return self.protocol.domain // 2

    @property
    def attributes(self) -> Domain:
        """The attributes of a pair: the bit, and the item."""
        return Domain(dict(zip(PAIR, (2, self.domain), strict=True)))

    @property
    def takes(self) -> dict[str, Any]:
        pair = self.attributes.takes(numbered=True)
        if isinstance(self.protocol, PaddedSets):
            return {**self.protocol.takes, "of": pair}
        return pair

    def items_of(self, values: Any) -> Any:
        if isinstance(self.protocol, PaddedSets):
            return [self._of_rows(pairs) if np.size(pairs) else [] for pairs in values]
        return self._of_rows(values)

    def _of_rows(self, pairs: Any) -> Integers:
        rows = self.attributes.records(pairs)
        return rows[:, 0] * self.domain + rows[:, 1]

    def estimate(self, aggregate: Aggregate) -> PairedEstimate:
        """AUC and means, from an aggregate of the pairs' reports.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        PairedEstimate
            All values are NaN with no reports.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        return PairedEstimate(self.protocol.estimate(aggregate))

    def items(self, bits: npt.ArrayLike, values: npt.ArrayLike) -> Integers:
        """Turn bits and items into the items that the channel's `privatize` takes.

        Parameters
        ----------
        bits, values : array_like
            Shape (users,): 0 or 1, and items in 0 .. domain-1.

        Returns
        -------
        numpy.ndarray
            Shape (users,), int64: bit * domain + item.

        Raises
        ------
        InvalidValue
            For the first bad one.
        """
        ones = checked_counts(bits, 1, InvalidValue)
        return ones * self.domain + checked_counts(values, self.domain - 1, InvalidValue)

    def keyed(
        self, keys: npt.ArrayLike, values: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> Integers:
        """Turn keys and numeric values into the items that the channel's `privatize` takes.

        The bit is 1 with probability (1 + value) / 2, which is right on average. The rounding is
        part of the client.

        Parameters
        ----------
        keys, values : array_like
            Shape (users,): items in 0 .. domain-1, and numbers in [-1, 1].
        rng : numpy.random.Generator, optional
            As for `Oracle.privatize`.

        Returns
        -------
        numpy.ndarray
            Shape (users,), int64.

        Raises
        ------
        ValueError, InvalidValue
            For the first value outside of [-1, 1], and for the first bad key.
        """
        numbers = np.asarray(values, dtype=np.float64)
        bad = ~((numbers >= -1) & (numbers <= 1))
        if bad.any():
            index = int(np.argmax(bad))
            raise ValueError(
                f"values[{index}] = {numbers.flat[index]} is not in [-1, 1]; nothing was drawn"
            )
        items = self.items(np.zeros(numbers.shape, dtype=np.int64), keys)
        # 53 bits of a word against the binary number (1 + value) / 2: exact, but for values smaller
        # than 2^-52.
        drawn = (bit_source(rng)(numbers.size) >> np.uint64(11)).astype(np.float64) / 2.0**53
        return items + self.domain * (drawn < (1 + numbers.ravel()) / 2).reshape(items.shape)
