"""Sets of items: each user reports on a random slot of a padded set (thesis, section 7.1.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency import Answer, Estimate, InvalidValue, Oracle
from frequency.algebra import uniform
from frequency.core import (
    Aggregate,
    Channel,
    ConfidenceInterval,
    JointLaw,
    OfPopulation,
    Protocol,
    Reports,
    Step,
    channel_of,
    conditions,
    forwarded,
    joint_law_of,
    json_integer,
)
from frequency.oracles import OracleChoice, oracle_over
from frequency.postprocess import norm_sub
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw
from mechdesign.base import (
    Between,
    BitSource,
    Floats,
    Integers,
    Items,
    Rational,
    checked_counts,
    exact,
    set_fields,
    shown,
    whole,
)
from mechdesign.symbolic import BudgetShare, CompositionProof, ProcessedProof
from rangeq.core import RangeProtocol
from rangeq.local.haar import HaarHRR

#: The protocol that reports on a slot: a frequency oracle, or a range protocol.
Base: TypeAlias = Oracle | RangeProtocol

#: A class of range protocols, or a function that makes one from a number of items and epsilon.
Ranges: TypeAlias = Callable[[int, Any], RangeProtocol]


_SLOTS = 2  # the most items of the sets of an attack


@dataclass(frozen=True)
class Slots(Channel):
    """A uniform slot of the user's padded set, and another channel's report of what is in it.

    The last item of the other channel stands for an empty slot. A set of more items than slots has
    them drawn from all of it: the same as cutting it at random first.

    Parameters
    ----------
    domain : int
        The number of items.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, for a change of the whole set.
    base, size : Channel and int
        Of one item more, and the number of slots that a set is padded to.
    kept : tuple of int or None
        The items that count, ascending; None: all. Users drop the others.
    """

    base: Channel
    size: int
    kept: tuple[int, ...] | None

    def _details(self) -> dict[str, Any]:
        return {"size": self.size, "kept": self.kept, "base": {**self.base.parameters}}

    @property
    def takes(self) -> dict[str, Any]:
        kept = None if self.kept is None else list(self.kept)
        return {"kind": "set", "size": json_integer(self.domain), "kept": kept, "of": None}

    @property
    def client_half(self) -> Step:
        then = self.base.client_half
        return {"do": "slots", "size": self.size, "empty": self.domain, "then": then}

    def items_of(self, values: Any) -> Items:
        """Write sets as rows, shape (users, the largest set): ascending distinct items, then -1."""
        sets = [self._of_user(user, items) for user, items in enumerate(values)]
        sizes = np.array([len(items) for items in sets], dtype=np.int64)
        rows = np.full((len(sets), max(int(sizes.max(initial=0)), 1)), -1, dtype=np.int64)
        if sizes.any():
            first = np.repeat(np.cumsum(sizes) - sizes, sizes)
            places = np.arange(len(first)) - first
            rows[np.repeat(np.arange(len(sets)), sizes), places] = np.concatenate(sets)
        return rows

    def _of_user(self, user: int, items: Any) -> Items:
        given = list(items) if isinstance(items, (set, frozenset)) else items
        if np.ndim(given) > 1:
            raise ValueError(
                f"the items of a user must be one-dimensional, got shape {np.shape(given)}"
            )
        if not np.size(given):
            return np.zeros(0, dtype=np.int64)
        try:
            distinct = np.unique(checked_counts(given, self.domain - 1, InvalidValue))
        except InvalidValue as error:
            place = error.index if isinstance(error.index, int) else error.index[0]
            raise InvalidValue((user, place), error.value, error.largest) from None
        return distinct if self.kept is None else distinct[np.isin(distinct, self.kept)]

    def _every_item(self) -> Items:
        return super()._every_item()[:, None]

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        self.base.fill(self.drawn(items, source), reports, source)

    def drawn(self, items: Items, source: BitSource) -> Items:
        sizes = (items >= 0).sum(axis=1)
        slots, chosen = np.maximum(sizes, self.size), np.zeros(len(items), dtype=np.int64)
        # Exact draws of uniform slots: all sets of one number of slots at once
        for number in np.unique(slots):
            mine = np.flatnonzero(slots == number)
            chosen[mine] = uniform(len(mine), int(number), source)
        inside = items[np.arange(len(items)), np.minimum(chosen, items.shape[1] - 1)]
        return np.where(chosen < sizes, inside, self.domain)

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        users_of, slots = np.zeros(self.domain + 1, dtype=np.int64), (items >= 0).sum(axis=1)
        for row, size, users in zip(items, slots.tolist(), counts.tolist(), strict=True):
            drawn = rng.multinomial(users, np.full(max(size, self.size), 1 / max(size, self.size)))
            users_of[row[:size]] += drawn[:size]
            users_of[-1] += drawn[size:].sum()
        some = np.flatnonzero(users_of)
        return self.base.simulated_counts(some, users_of[some], rng)

    # The rest is the other channel's.

    report_dtype = forwarded("base.report_dtype")
    report_bits = forwarded("base.report_bits")
    batch_size = forwarded("base.batch_size")
    possible = forwarded("base.possible")
    counts_shape = forwarded("base.counts_shape")
    counts_of = forwarded("base.counts_of")
    sign_sums = forwarded("base.sign_sums")
    samples = forwarded("base.samples")
    likelihoods = forwarded("base.likelihoods")
    blank = forwarded("base.blank")
    likelihood = forwarded("base.likelihood")
    menus = forwarded("base.menus")
    candidate = forwarded("base.candidate")

    def of_base(self, aggregate: Aggregate) -> Aggregate:
        """Return the same counts as an aggregate of the other channel."""
        return aggregate.under(self.base.signature)

    def consistent(self, aggregate: Aggregate) -> bool:
        return self.base.consistent(self.of_base(aggregate))

    def joint_law(self, items: Items) -> JointLaw:
        sets = [[item for item in row if item >= 0] for row in items.tolist()]
        slots = [max(len(members), self.size) for members in sets]
        sets = [
            members + [self.domain] * (k - len(members))
            for members, k in zip(sets, slots, strict=True)
        ]
        different = sorted({item for members in sets for item in members})
        place = {item: k for k, item in enumerate(different)}
        return joint_law_of(
            (
                probability,
                [
                    sum((likelihoods[place[item]] for item in members), Fraction(0)) / len(members)
                    for members in sets
                ],
            )
            for probability, likelihoods in self.base.joint_law(np.array(different))
        )

    def dominating_law(self) -> PairLaw:
        return self.base.dominating_law()  # a report is told of a slot that is not public

    @property
    def _one_set(self) -> bool:
        """Whether all users drop all of their items."""
        return self.kept is not None and not self.kept

    def pair_laws(self) -> tuple[PairLaw, ...]:
        return () if self._one_set else (self.dominating_law(),)

    def _attack_items(self) -> list[Items]:
        if self._one_set:
            return []
        kept = list(range(min(self.domain, 2 * _SLOTS)) if self.kept is None else self.kept)
        size = max(min(self.size, len(kept) // 2, _SLOTS), 1)
        first, other, empty = np.full((3, size), -1)
        first[:] = kept[:size]
        other[: len(kept) - size] = kept[size : 2 * size]
        return [np.stack(rows) for rows in ((first, other, empty), (first, empty, other))]

    def audit(self) -> Audit:
        # An empty set and a full one tell as much as two items
        return self.base.audit()

    def proof(self) -> ProcessedProof:
        name, how = type(self).__name__, "about a random slot of the set"
        return ProcessedProof(self.base.proof(), how, name=name)


class SetEstimate(OfPopulation):
    """The numbers of items of each kind that users have, on average, with errors.

    Unbiased for users with no more items than slots. Variances are those of the protocol and of the
    draw of slots, for users drawn at random: for given users they are a little too large.

    Attributes
    ----------
    n : int
        The number of users: see `OfPopulation`. With no reports values are NaN, variances infinite.
    frequencies : numpy.ndarray of float64
        Shape (domain,), read-only: the part of the users who have an item; 0 for items that do not
        count.
    """

    def __init__(self, slots: Slots, estimate: Estimate) -> None:
        self._slots, self._estimate = slots, estimate
        self.n, self.reports = estimate.n, estimate.reports
        self._counted = np.ones(slots.domain)
        if slots.kept is not None:
            self._counted = np.isin(np.arange(slots.domain), slots.kept).astype(np.float64)
        self.frequencies: Floats = np.where(
            self._counted > 0, slots.size * estimate.frequencies[:-1], 0.0
        )
        self.frequencies.setflags(write=False)

    def of_population(self, n: int) -> SetEstimate:
        """The same estimate, about more users: see `OfPopulation.of_population`."""
        return SetEstimate(self._slots, self._estimate.of_population(n))

    def linear(self, weights: npt.ArrayLike) -> Answer:
        """The mean over users of the weights of their items, added up, and its variance.

        Parameters
        ----------
        weights : array_like
            Shape (domain,), or (sums, domain) for several sums. Finite.

        Returns
        -------
        Answer
            Floats, or arrays of shape (sums,).

        Raises
        ------
        ValueError
            Weights of another shape, or that are not finite.
        """
        given, size = np.asarray(weights, dtype=np.float64), self._slots.size
        if given.ndim not in (1, 2) or given.shape[-1] != self._slots.domain:
            raise ValueError(
                f"weights must be {self._slots.domain} finite numbers, one an item, or rows of"
                f" them; got shape {given.shape}"
            )
        counted = given * self._counted
        value, variance = self._estimate.linear(
            np.concatenate([counted, 0 * counted[..., :1]], axis=-1)
        )
        if self.reports:  # and the variance of the weight of a random user's slot
            # A user's slot is a random part of the set: the variance of its weight over users, from
            # estimated frequencies of slots, non-negative as they are squared
            slots = norm_sub(self._estimate.frequencies)[:-1]
            variance = variance + (counted**2 @ slots - (counted @ slots) ** 2) / self.n
        return Answer(size * value, size**2 * variance)

    def answer(self, where: Any) -> Answer:
        """The mean number of these items that a user has; of one item, the fraction of users.

        Parameters
        ----------
        where : int, list, tuple, numpy.ndarray or mapping
            An item, a list of items, or the ends ``(first, last)`` of a closed range; integer
            arrays in place of items are many questions: see `frequency.core.answer.conditions`.

        Returns
        -------
        Answer
            At least 0 and perhaps above 1, up to noise; its variance and intervals are known.

        Raises
        ------
        InvalidQuestion
            What is no question.
        """
        shape, (asked,) = conditions(where, ("item",), (self._slots.domain,))
        weights = asked.weights(np.arange(self._slots.domain))
        if not shape:
            return self.linear(weights)
        value, variance = self.linear(weights.reshape(-1, self._slots.domain))
        return Answer(value.reshape(shape), variance.reshape(shape))

    @property
    def variances(self) -> Floats:
        """The variances of the frequencies: shape (domain,)."""
        return self.answer(np.arange(self._slots.domain)).variance

    def interval(self, confidence: float = 0.95) -> ConfidenceInterval[Floats]:
        """Intervals that each cover the true frequency of an item with about this probability.

        Parameters
        ----------
        confidence : float, default 0.95
            Strictly between 0 and 1.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shape (domain,).

        Raises
        ------
        ValueError
            Another confidence.
        """
        return self.answer(np.arange(self._slots.domain)).interval(confidence)

    def range(self, first: npt.ArrayLike, last: npt.ArrayLike) -> Any:
        """The number of items in first .. last that a user has: the value of `answer`.

        Parameters
        ----------
        first, last : array_like
            Ends of closed ranges: integers, or arrays that broadcast.

        Returns
        -------
        float or numpy.ndarray
            Of the ends' shape.

        Raises
        ------
        InvalidQuestion
            Other ends.
        """
        return self.answer(Between(first, last)).value


@dataclass(frozen=True)
class PaddedSets(Protocol):
    """A protocol for sets of items: users report on a random slot of the set, padded to a size.

    Thesis, section 7.1.2, after Qin et al. 2016. The estimate is of the mean number of items of a
    range that a user has, with variances and intervals. The privacy loss is that of one report, for
    a change of the whole set, as a slot is chosen before anything is reported.

    A larger size loses no items, but multiplies deviations: the sum over all items of more than
    ``size`` is lost in proportion, which biases frequencies downwards. `best_size` weighs the two.

    Parameters
    ----------
    protocol : Oracle or RangeProtocol
        Any, over one item more than the users' sets: the last one stands for an empty slot.
    size : int
        The number of slots that a set is padded to, at least 1: public, not read off the sets.
    kept : sequence of int, optional
        The items that count, such as those that an earlier round found: users drop all others, and
        their frequencies are 0. None: all.

    Raises
    ------
    ValueError
        Sizes or items out of range.
    TypeError
        It is no such protocol.
    """

    protocol: Base
    size: int
    kept: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.protocol, (Oracle, RangeProtocol)):
            raise TypeError(
                "protocol must be a frequency oracle or a range protocol, got"
                f" {type(self.protocol).__name__}"
            )
        if self.protocol.domain < 2:
            raise ValueError("protocol must have a second item, for empty slots")
        set_fields(self, size=whole(self.size, "size", 1, 1 << 32, what="a number of slots"))
        if self.kept is not None:
            kept = np.unique(checked_counts(self.kept, self.domain - 1, InvalidValue))
            set_fields(self, kept=tuple(kept.tolist()))

    @property
    def domain(self) -> int:
        """The number of items: 0 .. domain-1."""
        return self.protocol.domain - 1

    @cached_property
    def channel(self) -> Slots:
        """The channel that turns a set into a report."""
        base = channel_of(self.protocol)
        return Slots(self.domain, base.epsilon, base, self.size, self.kept)

    def privatize(self, values: Any, rng: np.random.Generator | None = None) -> Reports:
        """Draw one private report for each user.

        Parameters
        ----------
        values : sequence of array_like or set
            The items of each user, integers in 0 .. domain-1; repeated ones count once.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Raises
        ------
        InvalidValue
            Names the first bad item by its user and place; nothing has been drawn.
        """
        return super().privatize(values, rng)

    def estimate(self, aggregate: Aggregate) -> SetEstimate:
        """Estimate the numbers of items of each kind that users have on average.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        SetEstimate
            All values are NaN with no reports.

        Raises
        ------
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        of_base = self.channel.of_base(self.channel.require_own(aggregate))
        return SetEstimate(self.channel, self.protocol.estimate(of_base))


def best_size(protocol: Base, n: int, sizes: npt.ArrayLike) -> int:
    """The number of slots of least predicted error, for a guess of how large users' sets are.

    Of the number of items that a user has in the lower half of all, where half of them are: the
    mean square error is that of the items lost, squared, plus the variance of the noise and of the
    draw of slots. Thesis 7.1.2 takes a size that covers nine in ten sets.

    Parameters
    ----------
    protocol : Oracle or RangeProtocol
        As `PaddedSets` takes it.
    n : int
        The number of users, at least 1.
    sizes : array_like
        Shape (largest + 1,): the numbers of users, or shares, guessed to have 0, 1, 2, .. items; at
        least 0, some above. A guess, not read off the sets.

    Returns
    -------
    int
        1 to the largest of these sizes.

    Raises
    ------
    ValueError
        Other sizes, or no number of users.
    """
    given = np.asarray(sizes, dtype=np.float64)
    if given.ndim != 1 or not np.isfinite(given).all() or (given < 0).any() or not given.sum() > 0:
        raise ValueError(f"sizes must be numbers of users with 0, 1, .. items, got {shown(sizes)}")
    share, numbers = given / given.sum(), np.arange(len(given))
    lower = np.arange(protocol.domain) < max((protocol.domain - 1) // 2, 1)
    even = np.full(protocol.domain, 1 / protocol.domain)
    (noise,) = protocol.linear_variance(n, lower[None].astype(np.float64), even)
    errors = []
    for slots in range(1, max(int(np.flatnonzero(given).max()), 1) + 1):
        # A set of more items than slots keeps as many as there are slots; of these, and of those
        # lost, half are in the lower half of the items
        kept = float(share @ np.minimum(numbers, slots))
        drawn = kept / (2 * slots)
        lost = (float(share @ numbers) - kept) / 2
        errors.append(lost**2 + slots**2 * (float(noise) + drawn * (1 - drawn) / n))
    return 1 + int(np.argmin(errors))


@dataclass(frozen=True)
class ItemSets:
    """Ranges over sets of items in two rounds, the second about the frequent items alone.

    Thesis, section 7.1.2. Each user reports twice, each time with half of epsilon, on a slot of a
    padded set (`PaddedSets`). In the first round an oracle finds the ``heavy`` most frequent items;
    in the second, users keep what they have of those, and a range protocol estimates them. A range
    holds the sum over its heavy items, the others count as 0. Items of users with more than
    ``size`` items are lost in proportion: choose a size that covers most users.

    Parameters
    ----------
    domain : int
        Items are 0 .. domain-1.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of both reports together, for a change of the whole set.
    size, heavy : int
        Slots in the first round, public, not read off the sets; the items that the second is about:
        at least 1.
    oracle : str, class, Oracle or Mechanism, default "ProjectiveGeometry"
        Of the first round, over domain + 1 items: see `frequency.oracles.randomized_response`.
    ranges : callable, default HaarHRR
        Makes the second round's range protocol from a number of items and an epsilon, as its class
        does.

    Raises
    ------
    ValueError
        For numbers that are not positive integers, or an epsilon out of range.
    """

    domain: int
    epsilon: float | Rational
    size: int
    heavy: int
    oracle: OracleChoice = "ProjectiveGeometry"
    ranges: Ranges = HaarHRR

    def __post_init__(self) -> None:
        for name in ("domain", "size", "heavy"):
            set_fields(self, **{name: whole(getattr(self, name), name, 1)})
        _ = self.first, self.second([0])

    @property
    def _half(self) -> float | Rational:
        return self.epsilon / 2 if isinstance(self.epsilon, float) else exact(self.epsilon) / 2

    @cached_property
    def first(self) -> PaddedSets:
        """The first round."""
        return PaddedSets(oracle_over(self.oracle, self.domain + 1, self._half), self.size)

    def proof(self) -> CompositionProof:
        """Prove both reports together private, for every alpha in (0, 1): see `Channel.proof`."""
        rounds = (self.first, self.second([0]))
        return CompositionProof(
            tuple(BudgetShare(Fraction(1, 2), 1, each.proof()) for each in rounds),
            name=type(self).__name__,
            source="thesis, section 7.1.2",
        )

    def frequent(self, estimate: SetEstimate) -> Integers:
        """The heavy items by the first round's estimate.

        Parameters
        ----------
        estimate : SetEstimate
            Of `first`.

        Returns
        -------
        numpy.ndarray of int64
            Shape (heavy,), or fewer: ascending.
        """
        order = np.argsort(-estimate.frequencies, kind="stable")
        return np.sort(order[: self.heavy])

    def second(self, frequent: Sequence[int] | Integers) -> PaddedSets:
        """The second round.

        Parameters
        ----------
        frequent : array_like
            The items that it is about: what `frequent` found.

        Returns
        -------
        PaddedSets
            No set that fits the first round has more of these items than this one has slots.

        Raises
        ------
        InvalidValue
            For the first item out of range.
        """
        kept = tuple(checked_counts(frequent, self.domain - 1, InvalidValue).tolist())
        slots = min(self.size, self.heavy)
        return PaddedSets(self.ranges(self.domain + 1, self._half), slots, kept)
