"""RangeProtocol: every user reports on one random level of resolution, by that level's oracle."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core import (
    UNNUMBERED,
    Aggregate,
    Channel,
    Oracle,
    Protocol,
    json_integers,
    local_privacy,
    weights_of,
)
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign import Privacy
from mechdesign.base import Floats, Items, Rational, set_fields, whole
from rangeq.core.estimate import RangeEstimate
from rangeq.core.levels import Cuts, Levels
from rangeq.core.tree import Tree, mean_over, spread

_AT_ONCE = 1 << 20  # how many weights of sums of items to hold at a time


class EvenErrors(NamedTuple):
    """The variances of estimates of an even population whose ranges are the sums of their items.

    They are from independent samples of so many users on each level, ``users``; infinite where
    those do not tell.
    """

    # Of ranges: `ranges(first, last, users)`, of the ends' shape
    ranges: Callable[[Items, Items, Floats], Floats]
    # Of weights @ frequencies: `sums(weights, users)`, weights (..., domain)
    sums: Callable[[Floats, Floats], Floats]
    # The mean of those of ranges: `average(users, workload)`
    average: Callable[[Floats, str], float]

    @classmethod
    def of(
        cls,
        domain: int,
        ranges: Callable[[Items, Items, Floats], Floats],
        sums: Callable[[Floats, Floats], Floats],
    ) -> EvenErrors:
        """With averages from the variances of all prefixes, of their sum and of all items."""

        def average(users: Floats, workload: str) -> float:
            item = np.arange(domain)
            prefixes = ranges(np.zeros_like(item), item, users)
            of_sum = sums((domain - item).astype(np.float64)[None], users)
            return mean_over(workload, prefixes, float(of_sum[0]), ranges(item, item, users))

        return cls(ranges, sums, average)


@dataclass(frozen=True)
class RangeProtocol(Protocol):
    """Protocols for one ordered attribute under local privacy, whose estimate answers ranges.

    Every user reports on one level: `parts` are the channels of the levels, the coarsest first, and
    `part_weights` their probabilities in units of 2^-64. All items together are the whole
    population: that is known.

    How ranges are answered, and so what their errors are, is for the subclasses: those with `even`
    errors add up items, `rangeq.DecomposedHistogram` nodes.

    Parameters
    ----------
    domain : int
        The number of items, which are the integers 0 .. domain-1.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, above 0: an exact number, or a float.

    Raises
    ------
    ValueError
        For a domain or epsilon out of range.
    """

    domain: int
    epsilon: float | Rational

    #: The most items that the protocol takes.
    largest_domain: ClassVar[int] = Channel.largest_domain

    def __post_init__(self) -> None:
        for item in fields(self)[2:]:  # lists and NumPy's integers would make parameters differ
            value = getattr(self, item.name)
            if isinstance(value, np.integer):
                set_fields(self, **{item.name: int(value)})
            elif isinstance(value, Iterable) and not isinstance(value, str):
                plain = (int(each) if isinstance(each, np.integer) else each for each in value)
                set_fields(self, **{item.name: tuple(plain)})
        domain = whole(self.domain, "domain", 1, self.largest_domain, what="a number of items")
        set_fields(self, domain=domain)
        _ = self.privacy  # an epsilon out of range is refused

    @cached_property
    def privacy(self) -> Privacy:
        return local_privacy(self.epsilon)

    @property
    def max_ratio(self) -> Fraction:
        return 1 / self.privacy.alpha

    @property
    @abstractmethod
    def parts(self) -> tuple[Channel, ...]:
        """The channels of the levels."""

    @property
    def probabilities(self) -> Sequence[Any] | None:
        """The probability of each level; None: all the same."""
        return None

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        """The probability of each level, in units of 2^-64."""
        return weights_of(len(self.parts), self.probabilities, "level")

    @property
    def tree(self) -> Tree | None:
        """The tree over the domain whose nodes the levels tell of, if there is one."""
        return None

    @property
    def even(self) -> EvenErrors | None:
        """The errors for an even population, where a range's answer is the sum of its items."""
        return None

    @cached_property
    def channel(self) -> Levels:
        """The channel that turns an item into a report on one level."""
        name = type(self).__name__
        return Levels(self.domain, self.epsilon, name, self.parts, self.part_weights, self.tree)

    def estimate(self, aggregate: Aggregate) -> RangeEstimate:
        """Return unbiased estimates of items and ranges.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        RangeEstimate
            NaN with infinite variances if there are no reports.

        Raises
        ------
        IncompatibleAggregate
            For the aggregate of another protocol.
        """
        return RangeEstimate(self, self.channel.require_own(aggregate), None)

    # What an estimate needs: see `Oracle` for each.

    @abstractmethod
    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        """Return unbiased estimates of all items.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports, at least one.
        items : None
            All of them: ranges need the whole domain.

        Returns
        -------
        numpy.ndarray of float64
            Shape (domain,).
        """

    @abstractmethod
    def variances_from(self, n: int, users: Floats, weights: Floats, frequencies: Floats) -> Floats:
        """Return the variances of sums of estimates, from so many users on each level.

        Disjoint random samples of the users report on the levels: the variances of the samples'
        means add up, less what they share. Exact, but that so sampled means of few users vary more,
        by n / (n - 1).

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        users : numpy.ndarray of float64
            Shape (parts,): how many report on each level.
        weights, frequencies : numpy.ndarray of float64
            Shape (sums, domain), of the estimates of single items; shape (domain,), of sum 1.

        Returns
        -------
        numpy.ndarray of float64
            Shape (sums,): infinite where those levels do not tell.
        """

    # ---------------------------------- what follows from that, slowly: many protocols know it anew

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        """Return the variances of weights @ estimates for n users with these frequencies.

        With the expected number of users on each level: see `variances_from`.

        Parameters
        ----------
        n, weights, frequencies : as of `variances_from`
            The number of users, the weights of items, and the fractions of the population.

        Returns
        -------
        numpy.ndarray
            Shape (sums,).

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """
        return self.variances_from(n, self.channel.expected_users(n), weights, frequencies)

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Return the variances of weighted sums of estimates, given the users of each level.

        For the distribution nearest to the estimates: a proper population, so that nobody is not
        taken for certain where nobody is seen.

        Parameters
        ----------
        weights, frequencies : numpy.ndarray of float64
            Shape (sums, domain); shape (domain,), what `frequencies_of` gives.
        aggregate, items : as of `frequencies_of`
            Of this protocol's reports, at least one; None.

        Returns
        -------
        numpy.ndarray of float64
            Shape (sums,).
        """
        users = self.channel.part_users(aggregate)
        return self.variances_from(aggregate.n, users, weights, norm_sub(frequencies))

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Return the variances of the estimates of single items.

        Parameters
        ----------
        aggregate, items : as of `frequencies_of`
            Of this protocol's reports, at least one; None.
        frequencies : numpy.ndarray of float64
            Shape (domain,): what `frequencies_of` gives.

        Returns
        -------
        numpy.ndarray of float64
            Shape (domain,).
        """
        item = np.arange(self.domain)
        if self.even is not None:
            sums = before(norm_sub(frequencies))
            return self._plugged_in(self.even, aggregate, sums, item, item)
        return self._of_indicators(aggregate, frequencies, item, item)

    def variance_slope(self, n: int) -> float:
        """0, since the variance depends on all frequencies: intervals are normal."""
        return 0.0

    # Users are sampled to levels without replacement: the variances below are those of independent
    # samples, less what they share.

    def range_variances(self, estimate: RangeEstimate, first: Items, last: Items) -> Floats:
        """Return the variances of an estimate's answers to ranges.

        Parameters
        ----------
        estimate : RangeEstimate
            Of this protocol, n > 0.
        first, last : numpy.ndarray of int64
            Checked ends of ranges, of one shape.

        Returns
        -------
        numpy.ndarray of float64
            Of the ends' shape: squared fractions of the population.
        """
        if self.even is not None:
            sums = estimate.nearest_sums
            return self._plugged_in(self.even, estimate.aggregate, sums, first, last)
        return self._of_indicators(estimate.aggregate, estimate.frequencies, first, last)

    #: The largest domain over which the variances of ranges are those of the estimated population.
    #:
    #: Of protocols with `even` errors; beyond it that takes too long, and they are those of an even
    #: population.
    largest_plugged_in: ClassVar[int] = 4096

    def _plugged_in(
        self, known: EvenErrors, aggregate: Aggregate, sums: Floats, first: Items, last: Items
    ) -> Floats:
        inside, users = (last - first + 1) / self.domain, self.channel.part_users(aggregate)
        variances = known.ranges(first, last, users)
        even = np.array(variances - inside * (1 - inside) / aggregate.n)
        if self.domain > self.largest_plugged_in:
            return np.maximum(even, 0.0)
        some = np.isfinite(even) & (last - first + 1 < self.domain)
        if some.any():
            even[some] = self._of_population(aggregate, sums, first[some], last[some])
        return np.maximum(even, 0.0)

    def _of_population(
        self, aggregate: Aggregate, sums: Floats, first: Items, last: Items
    ) -> Floats:
        """The variances of ranges of a population, of which ``sums`` come before each item."""
        return self._of_indicators(aggregate, np.diff(sums), first, last)

    def _of_indicators(
        self, aggregate: Aggregate, frequencies: Floats, first: Items, last: Items
    ) -> Floats:
        """The variances of ranges as those of sums of items, so many at a time."""
        ends, item = np.stack([first.ravel(), last.ravel()], axis=1), np.arange(self.domain)
        step = max(1, _AT_ONCE // self.domain)
        variances = [
            self.linear_variances_of(
                ((part[:, :1] <= item) & (item <= part[:, 1:])).astype(np.float64),
                aggregate,
                frequencies,
                None,
            )
            for part in np.split(ends, range(step, len(ends), step))
        ]
        return np.concatenate(variances).reshape(first.shape)

    # ---------------------------------------------------------------------------- known beforehand

    def average_rmse(
        self, n: int, workload: str = "ranges", frequencies: npt.ArrayLike | None = None
    ) -> float:
        """The root of the average variance over a workload, for n users.

        Noise, sampling of levels and of coefficients are included.

        The sources bound it (range queries, Lemma 4.2, Theorem 4.5 and equation 3; thesis Lemma 8
        and Theorem 7); here it is computed, from the variances of all prefixes.

        Parameters
        ----------
        n : int
            The number of users.
        workload : str, default "ranges"
            "ranges" (all 0 <= a < b < domain), "all ranges" (single items too) or "prefixes".
        frequencies : array_like, optional
            Shape (domain,): of the population, for small domains only (see `largest_population`).
            None: all items are equally frequent.

        Returns
        -------
        float
            As a fraction of the population; infinite if some query of the workload is unknown.

        Raises
        ------
        ValueError
            For an unknown workload, and for frequencies that are no distribution over a small
            domain.
        """
        if frequencies is None and self.even is not None:
            variance = self.even.average(self.channel.expected_users(n), workload)
            return even_rmse(self.domain, n, workload, variance)
        even = np.full(self.domain, 1 / self.domain)
        f, d = self._population(even if frequencies is None else frequencies), self.domain
        # A sum takes several times as many numbers as there are items
        step = max(1, _AT_ONCE // d)
        starts = range(0, d, step)
        prefixes, items = (
            np.concatenate(
                [self.linear_variance(n, rows(min(step, d - k), d, k), f) for k in starts]
            )
            for rows in (np.tri, np.eye)
        )
        all_prefixes = np.arange(d, 0.0, -1.0)  # how often each item is in a prefix
        (sums,) = self.linear_variance(n, all_prefixes[None], f)
        return max(mean_over(workload, prefixes, float(sums), items), 0.0) ** 0.5

    #: The largest domain for which `average_rmse` takes frequencies.
    largest_population: ClassVar[int] = 4096

    def _population(self, frequencies: npt.ArrayLike) -> Floats:
        """``frequencies`` as numbers; ValueError unless they are those of a small population."""
        f, d = np.asarray(frequencies, dtype=np.float64), self.domain
        if (
            f.shape != (d,)
            or not (f >= 0).all()
            or abs(f.sum() - 1) > 1e-9
            or d > self.largest_population
        ):
            raise ValueError(
                f"frequencies must be {d} numbers of at least 0 that sum to 1, for a domain of at"
                f" most {self.largest_population}"
            )
        return f


@dataclass(frozen=True)
class ConsistentTree(RangeProtocol):
    """Trees whose nodes are the sums of their children: see `rangeq.core.tree` for their errors.

    An estimate's errors are those of the distribution nearest to it: a proper population, so that
    nodes in which nobody is seen are not taken for certain. They are known in a few steps where
    nodes are alike.
    """

    largest_plugged_in: ClassVar[int] = RangeProtocol.largest_domain

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The tree over the domain."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Oracle, ...]:
        """The oracle of each level 1 .. height: its domain is the nodes of the level."""

    @property
    @abstractmethod
    def alike(self) -> bool:
        """Whether the errors for an even population are exact: all nodes of a level are alike."""

    def _cuts(self, users: Floats, mass: Floats) -> Cuts | None:
        """Ranges' variances from independent samples of so many users of a population, or None.

        Shapes: `users` (height,), `mass` (leaves + 1,), the fraction of the population before each
        leaf.
        """
        # None where they are not known in a few steps, although nodes are alike
        return None

    @abstractmethod
    def _leaves(self, aggregate: Aggregate) -> Floats:
        """Unbiased estimates of all leaves."""

    @abstractmethod
    def _contrasts(self, users: Floats) -> Floats:
        """Return the variance of a unit contrast among the children of each level of parents.

        Of `users` on each level of an even population.
        """

    @abstractmethod
    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        """Return the weights of a level's nodes in queries from their leaves': (queries, nodes)."""

    def _shared(self, users: Floats) -> Floats | None:
        """The part of the error of all items' sum that each prefix gives up: (domain + 1,)."""
        # None without padding, in which nobody is: all items sum to 1. From 0 to 1.
        if self.tree.leaves == self.domain:
            return None
        ends = np.arange(-1, self.domain)
        shared = self.tree.with_everything(ends, self._contrasts(users))
        return shared / shared[-1]

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        leaves = self._leaves(aggregate)[: self.domain]
        shared = self._shared(self.channel.part_users(aggregate))
        return leaves if shared is None else leaves + np.diff(shared) * (1 - leaves.sum())

    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        return self.tree.range_variance(first, last, self._contrasts(users))

    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        return self.tree.linear_variance(weights, self._contrasts(users))

    def _own_average(self, users: Floats, workload: str) -> float:
        return self.tree.average_variance(self._contrasts(users), workload)

    @property
    def even(self) -> EvenErrors:
        return EvenErrors(self._own_range_variance, self._own_linear_variance, self._own_average)

    def variances_from(self, n: int, users: Floats, weights: Floats, frequencies: Floats) -> Floats:
        known = np.isfinite(self._own_linear_variance(weights, users))
        tree, shared = self.tree, self._shared(users)
        if shared is not None:
            weights = weights - (weights @ np.diff(shared))[:, None]
        leaves, leaf_frequencies = tree.padded(weights), tree.padded(frequencies)
        total = -spread(weights, frequencies) / n
        for level, oracle in enumerate(self.parts):
            if not users[level]:
                continue
            level_weights, nodes = (
                self._level_weights(leaves, users, level),
                tree.sums(leaf_frequencies, level),
            )
            total += (
                oracle.linear_variance(1, level_weights, nodes) + spread(level_weights, nodes)
            ) / users[level]
        return np.where(known, np.maximum(total, 0.0), np.inf)

    def average_rmse(
        self, n: int, workload: str = "ranges", frequencies: npt.ArrayLike | None = None
    ) -> float:
        if frequencies is None and not self.alike:
            frequencies = np.full(self.domain, 1 / self.domain)
        return super().average_rmse(n, workload, frequencies)

    def _of_population(
        self, aggregate: Aggregate, sums: Floats, first: Items, last: Items
    ) -> Floats:
        users, inside = self.channel.part_users(aggregate), sums[last + 1] - sums[first]
        mass = np.pad(sums, (0, self.tree.leaves - self.domain), mode="edge")
        cuts = self._cuts(users, mass) if self.alike else None
        if cuts is None:
            return super()._of_population(aggregate, sums, first, last)
        return cuts.ranges(first, last) - inside * (1 - inside) / aggregate.n


def level_estimates(
    channel: Levels, oracles: Sequence[Oracle], aggregate: Aggregate
) -> list[Floats]:
    """Estimate the items of each level from its own oracle; zeros where nobody reported."""
    parts = [(oracle, channel.part_aggregate(aggregate, k)) for k, oracle in enumerate(oracles)]
    return [
        oracle.frequencies_of(part, None) if part.n else np.zeros(oracle.domain)
        for oracle, part in parts
    ]


def before(values: Floats) -> Floats:
    """The sums of the values before each place, and of all of them."""
    return np.concatenate([[0.0], np.cumsum(values)])


def even_rmse(domain: int, n: int, workload: str, variance: float) -> float:
    """The root of a mean variance over a workload for n users of an even population."""
    masses = np.arange(1, domain + 1) / domain
    all_prefixes = masses[::-1] * domain  # how often each item is in a prefix
    sums = float((all_prefixes**2).mean() - all_prefixes.mean() ** 2)
    shared = mean_over(
        workload, masses * (1 - masses), sums, np.full(domain, masses[0] * (1 - masses[0]))
    )
    return max(variance - shared / n, 0.0) ** 0.5


# ------------------------------------------------------------------------------------------------
# RecordChannel: channels whose users hold records, rows of a table.


@dataclass(frozen=True)
class RecordChannel(Channel):
    """A channel whose items are rows of a table, one column an attribute.

    Parameters
    ----------
    domain : int
        The number of different records.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    attributes : Domain
        Of the records.
    """

    attributes: Domain

    largest_domain: ClassVar[int] = UNNUMBERED

    @property
    def takes(self) -> dict[str, Any]:
        return self.attributes.takes(numbered=False)

    def items_of(self, values: Any) -> Items:
        return self.attributes.records(values)

    def _every_item(self) -> Items:
        return np.stack(np.unravel_index(super()._every_item(), self.attributes.sizes), axis=1)

    def _attack_items(self) -> list[Items]:
        """Records that tell a user apart well: see `Channel._attack_items`."""
        if self.domain == 1:
            return []
        sizes = np.array(self.attributes.sizes)
        first, last, odd = np.zeros_like(sizes), sizes - 1, np.arange(len(sizes)) % 2
        other = np.where(sizes > 2, sizes // 2, odd * last)
        if (sizes > 1).sum() == 1:  # and there may be no third record
            other = np.where(sizes > 2, sizes // 2, last)
        return [np.stack(rows) for rows in ((first, last, other), (first, last, last))]

    def combination(self, places: Sequence[int]) -> list[Any]:
        """Return the expression of `combined` in descriptions: its name, and what it needs."""
        return [
            "combine",
            [json_integers([place, self.attributes.sizes[place]]) for place in places],
        ]

    def combined(self, records: Items, places: Sequence[int]) -> Items:
        """Return the values of some attributes as one number, the last one's counting fastest.

        Shapes: `records` (users, attributes); returns (users,). Combinations of values are at most
        2^62.
        """
        result = np.zeros(len(records), dtype=np.int64)
        for place in places:
            result *= self.attributes.sizes[place]
            result += records[:, place]
        return result
