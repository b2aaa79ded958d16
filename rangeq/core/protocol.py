"""RangeProtocol: every user reports on one randomly chosen level of resolution, by that level's own
oracle.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.channel import Channel, Floats, Items
from frequency.core.mixture import Mixture
from frequency.core.oracle import Oracle
from rangeq.core.estimate import RangeEstimate
from rangeq.core.tree import Tree, mean_over, spread


@dataclass(frozen=True)
class RangeProtocol(Mixture, Oracle):
    """Protocols for one ordered attribute under local privacy: the verbs of `frequency.Oracle`, and
    an estimate that knows ranges.

    Every user reports on one level, 0 the coarsest. The sum of all items is the population: known.
    """

    kind: ClassVar[str] = "level"

    @property
    @abstractmethod
    def levels(self) -> tuple[Channel, ...]:
        """What users report on, the coarsest first."""

    @property
    @abstractmethod
    def level_weights(self) -> tuple[int, ...]:
        """The probability of each level, in units of 2^-64."""

    @property
    def parts(self) -> tuple[Channel, ...]:
        return self.levels

    @property
    def part_weights(self) -> tuple[int, ...]:
        return self.level_weights

    def estimate(self, aggregate: Aggregate, items: npt.ArrayLike | None = None) -> RangeEstimate:
        """Unbiased estimates of items and ranges. ``items`` must be None: ranges need the whole
        domain.
        """
        if items is not None:
            raise ValueError("a range protocol estimates its whole domain; items must be None")
        return RangeEstimate(self, self._own(aggregate), None)

    # Users are sampled to levels without replacement: the variances below are those of independent
    # samples, less what they share.

    @abstractmethod
    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        """The variances of ranges from independent samples of so many users on each level; infinite
        where those do not tell.
        """

    @abstractmethod
    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        """The same of weights @ frequencies: weights have shape (..., domain)."""

    def _range_variance(
        self, aggregate: Aggregate, first: Items, last: Items, fraction: Floats
    ) -> Floats:
        inside = np.clip(fraction, 0.0, 1.0)
        own = self._own_range_variance(first, last, self._users(aggregate))
        return np.maximum(own - inside * (1 - inside) / aggregate.n, 0.0)

    def _variances(self, aggregate: Aggregate, frequencies: Floats, items: Items | None) -> Floats:
        item = np.arange(self.domain)
        return self._range_variance(aggregate, item, item, frequencies)

    def _slope(self, n: int) -> float:
        return 0.0

    def _linear_variance(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        own = self._own_linear_variance(weights, self._users(aggregate))
        return np.maximum(own - spread(weights, frequencies) / aggregate.n, 0.0)

    # ---------------------------------------------------------------------------- known beforehand

    def average_rmse(
        self, n: int, workload: str = "ranges", frequencies: npt.ArrayLike | None = None
    ) -> float:
        """The root of the average variance over a workload, for n users: noise, sampling of levels
        and of coefficients included.

        Parameters
        ----------
        workload
            "ranges" (all 0 <= a < b < domain), "all ranges" (single items too) or "prefixes".
        frequencies
            Shape (domain,): of the population, for small domains only (see `largest_population`).
            None: all items are equally frequent.
        """
        if frequencies is None:
            return even_rmse(self.domain, n, workload, self._average_variance(n, workload))
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
        prefixes = np.tri(d)
        both = np.concatenate([prefixes, prefixes.sum(axis=0)[None], np.eye(d)])
        variances = self.linear_variance(n, both, f)
        return (
            max(mean_over(workload, variances[:d], float(variances[d]), variances[d + 1 :]), 0.0)
            ** 0.5
        )

    largest_population: ClassVar[int] = 4096
    """The largest domain for which `average_rmse` takes frequencies."""

    @abstractmethod
    def _average_variance(self, n: int, workload: str) -> float:
        """The mean over a workload of `_own_range_variance`, for the expected number of users on
        each level.
        """

    @abstractmethod
    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        """The variances of weights @ estimates for n users with these frequencies: weights have
        shape (sums, domain).

        With the expected number of users on each level. Disjoint random samples of the users report
        on the levels: the variances of the samples' means add up, less what they share. Exact, but
        that so sampled means of few users vary more, by n / (n - 1).
        """

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        """The variance of a single item's estimate, the mean over items; of a light item, whatever
        ``frequency``.
        """
        item = np.arange(self.domain)
        mean = float(self._own_range_variance(item, item, self._expected_users(n)).mean())
        return mean if np.ndim(frequency) == 0 else np.full(np.shape(frequency), mean)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        d = held or self.domain
        weights = np.eye(d, self.domain)
        weights[:, :d] -= 1 / d
        return float(
            2 * self._own_linear_variance(weights, self._expected_users(n)).sum() / max(d - 1, 1)
        )


@dataclass(frozen=True)
class TreeProtocol(RangeProtocol):
    """Protocols whose levels are those of a tree: see `rangeq.core.tree` for their errors."""

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The tree over the domain."""

    @property
    @abstractmethod
    def levels(self) -> tuple[Oracle, ...]:
        """The oracle of each level 1 .. height: its domain is the nodes of the level."""

    @abstractmethod
    def _leaves(self, aggregate: Aggregate) -> Floats:
        """Unbiased estimates of all leaves."""

    @abstractmethod
    def _contrasts(self, users: Floats) -> Floats:
        """The variance of a contrast of unit length among the children of each level of parents,
        for so many users a level.
        """

    @abstractmethod
    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        """How much each node's estimate of one level counts in a query: shape (queries, nodes),
        from its weights of the leaves.
        """

    def _nodes(self, level: int, items: Items) -> Items:
        return items // self.tree.widths[level]

    def _held(self, level: int, counts: Items) -> Items:
        return self.tree.sums(self.tree.padded(counts), level)

    def _details(self) -> dict[str, Any]:
        return {"branching": list(self.tree.branching), **super()._details()}

    def _frequencies(self, aggregate: Aggregate, items: Items | None) -> Floats:
        leaves = self._leaves(aggregate)[: self.domain]
        if self.tree.leaves == self.domain:
            return leaves
        # Nobody is in the padding: all items sum to 1, and each gives up what it shares with the
        # error of the sum.
        contrasts = self._contrasts(self._users(aggregate))
        shared = np.diff(self.tree.with_everything(np.arange(-1, self.domain), contrasts))
        return leaves + shared / shared.sum() * (1 - leaves.sum())

    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        return self.tree.range_variance(first, last, self._contrasts(users))

    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        return self.tree.linear_variance(weights, self._contrasts(users))

    def _average_variance(self, n: int, workload: str) -> float:
        return self.tree.average_variance(self._contrasts(self._expected_users(n)), workload)

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        tree, users = self.tree, self._expected_users(n)
        # The estimates give up what they share with the error of their sum
        if tree.leaves > self.domain:
            shared = np.diff(
                tree.with_everything(np.arange(-1, self.domain), self._contrasts(users))
            )
            weights = weights - (weights @ (shared / shared.sum()))[:, None]
        leaves, held = tree.padded(weights), tree.padded(frequencies)
        total = -spread(weights, frequencies) / n
        for level, oracle in enumerate(self.levels):
            if not users[level]:
                continue
            own, nodes = self._level_weights(leaves, users, level), tree.sums(held, level)
            total += (oracle.linear_variance(1, own, nodes) + spread(own, nodes)) / users[level]
        return np.maximum(total, 0.0)


def even_rmse(domain: int, n: int, workload: str, variance: float) -> float:
    """The root of a mean variance of independent samples of an even population, less what disjoint
    samples of n users share.
    """
    held = np.arange(1, domain + 1) / domain
    all_prefixes = held[::-1] * domain  # how often each item is in a prefix
    sums = float((all_prefixes**2).mean() - all_prefixes.mean() ** 2)
    shared = mean_over(workload, held * (1 - held), sums, np.full(domain, held[0] * (1 - held[0])))
    return max(variance - shared / n, 0.0) ** 0.5
