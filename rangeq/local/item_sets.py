"""Ranges when every user holds a set of items: two rounds, the second about the frequent ones.

Thesis, section 7.1.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from frequency import Estimate, InvalidValue, ProjectiveGeometry
from frequency.algebra.exact_draws import uniform
from frequency.core.oracle import Oracle
from mechdesign._support.arrays import Floats, Integers
from mechdesign._support.frozen import set_fields
from mechdesign._support.numbers import Rational, exact, whole
from mechdesign._support.randomness import bit_source
from mechdesign.sampling import checked_counts
from mechdesign.symbolic.proof_rules import BudgetShare, CompositionProof, ProcessedProof
from rangeq.core.estimate import Distribution, RangeEstimate
from rangeq.core.protocol import RangeProtocol
from rangeq.local.haar import HaarHRR


@dataclass(frozen=True)
class ItemSets:
    """Ranges over sets of items: each user reports twice, on one random slot of a padded set.

    Each report has half of epsilon. In the first round an oracle finds the ``heavy`` most frequent
    items; in the second, users keep what they have of those, and a range protocol estimates them.
    What is estimated is the number of users with an item over the number of users; a range holds
    the sum over its heavy items, the others count as 0. Items of users with more than ``size``
    items are lost in proportion, which biases frequencies downwards: choose a size that covers most
    users.

    Parameters
    ----------
    domain : int
        Items are 0 .. domain-1.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of both reports together, for a change of the whole set.
    size : int
        Slots in the first round, at least 1: public, not read off the sets.
    heavy : int
        How many items the second round is about, at least 1.

    Raises
    ------
    ValueError
        For numbers that are not positive integers, or an epsilon out of range.
    """

    domain: int
    epsilon: float | Rational
    size: int
    heavy: int

    def __post_init__(self) -> None:
        for name in ("domain", "size", "heavy"):
            set_fields(self, **{name: whole(getattr(self, name), name, 1)})
        _ = self.first, self.second

    @property
    def _half(self) -> float | Rational:
        return self.epsilon / 2 if isinstance(self.epsilon, float) else exact(self.epsilon) / 2

    @cached_property
    def first(self) -> Oracle:
        """The oracle of the first round; its last item, ``domain``, stands for an empty slot."""
        return ProjectiveGeometry(self.domain + 1, self._half)

    @cached_property
    def second(self) -> RangeProtocol:
        """The range protocol of the second round, with the same last item."""
        return HaarHRR(self.domain + 1, self._half)

    def proof(self) -> CompositionProof:
        """Why both reports together are private, for every alpha in (0, 1): see `Channel.proof`."""
        half, how = Fraction(1, 2), "about a random slot of the set"
        reports = (
            ProcessedProof(protocol.proof(), how, name=f"the {name} report")
            for name, protocol in (("first", self.first), ("second", self.second))
        )
        return CompositionProof(
            tuple(BudgetShare(half, 1, report) for report in reports),
            name=type(self).__name__,
            source="thesis, section 7.1.2",
        )

    @property
    def slots(self) -> int:
        """Slots in the second round: no set that fits the first has more heavy items."""
        return min(self.size, self.heavy)

    def sampled(
        self, sets: Sequence[npt.ArrayLike], rng: np.random.Generator | None = None
    ) -> Integers:
        """A random slot of each user's set, for `first.privatize`. On the device.

        Parameters
        ----------
        sets : sequence of array_like
            The items of each user: arrays of integers in 0 .. domain-1; repeated ones count once.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness, or a generator for results that can be
            repeated.

        Returns
        -------
        numpy.ndarray
            Shape (users,), int64: an item, or ``domain`` for an empty slot.

        Raises
        ------
        InvalidValue
            For the first item out of range.
        """
        return self._sampled(sets, self.size, rng)

    def frequent(self, estimate: Estimate) -> Integers:
        """The heavy items by the first round's estimate.

        Parameters
        ----------
        estimate : Estimate
            Of `first`.

        Returns
        -------
        numpy.ndarray of int64
            Shape (heavy,), or fewer: ascending.
        """
        order = np.argsort(-estimate.frequencies[: self.domain], kind="stable")
        return np.sort(order[: self.heavy])

    def sampled_again(
        self,
        sets: Sequence[npt.ArrayLike],
        frequent: npt.ArrayLike,
        rng: np.random.Generator | None = None,
    ) -> Integers:
        """A random slot of each user's frequent items, for `second.privatize`. On the device.

        Parameters
        ----------
        sets : sequence of array_like
            As for `sampled`.
        frequent : array_like
            The items that `frequent` found: shape (heavy,).
        rng : numpy.random.Generator, optional
            As for `sampled`.

        Returns
        -------
        numpy.ndarray
            Shape (users,), int64: an item, or ``domain`` for an empty slot.

        Raises
        ------
        InvalidValue
            For the first item out of range.
        """
        kept = checked_counts(frequent, self.domain - 1, InvalidValue)
        return self._sampled(
            (np.intersect1d(self._checked(items), kept) for items in sets), self.slots, rng
        )

    def distribution(self, estimate: RangeEstimate, frequent: npt.ArrayLike) -> Distribution:
        """The users with each item over all users, from the second round's estimate.

        Parameters
        ----------
        estimate : RangeEstimate
            Of the second round.
        frequent : array_like
            The items that it was about: shape (heavy,).

        Returns
        -------
        Distribution
            0 for items that are not frequent. Its ``range`` adds up, and need not stay below 1.

        Raises
        ------
        InvalidValue
            For a frequent item out of range.
        """
        kept = checked_counts(frequent, self.domain - 1, InvalidValue)
        values: Floats = np.zeros(self.domain)
        values[kept] = self.slots * estimate.frequencies[kept]
        return Distribution(values, estimate.n)

    def _checked(self, items: npt.ArrayLike) -> Integers:
        return (
            np.unique(checked_counts(items, self.domain - 1, InvalidValue))
            if np.size(items)
            else np.zeros(0, dtype=np.int64)
        )

    def _sampled(
        self, sets: Iterable[npt.ArrayLike], slots: int, rng: np.random.Generator | None
    ) -> Integers:
        source = bit_source(rng)
        distinct = [self._checked(items) for items in sets]
        if not distinct:
            return np.zeros(0, dtype=np.int64)
        # A set that is too large has its slots drawn from all of it: the same as cutting it at
        # random first.
        held = np.array([max(len(items), slots) for items in distinct])
        chosen = np.zeros(len(distinct), dtype=np.int64)
        for number in np.unique(held):
            mine = np.flatnonzero(held == number)
            chosen[mine] = uniform(len(mine), int(number), source)
        return np.array(
            [
                items[k] if k < len(items) else self.domain
                for items, k in zip(distinct, chosen, strict=True)
            ]
        )
