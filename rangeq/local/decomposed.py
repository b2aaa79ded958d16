"""DecomposedHistogram: HH_B without consistency, whose ranges are sums of the fewest nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core import Aggregate, Oracle
from mechdesign.base import Floats, Items
from rangeq.core import (
    NodeLaw,
    NodeSums,
    RangeEstimate,
    average_nodes,
    before,
    even_rmse,
    inverse,
    level_estimates,
    queries,
    runs,
    spread,
    squared_nodes,
)
from rangeq.local.hierarchy import LevelHistograms

_AT_ONCE = 1 << 20  # the most weights of nodes to hold at a time


@dataclass(frozen=True)
class DecomposedHistogram(LevelHistograms):
    """HH_B without consistency (range queries, section 4.4): ranges are sums of the fewest nodes.

    The frequencies of items are the leaves' own estimates, and a range of several items is in
    general *not* the sum of those: nodes and their children are estimated from different users and
    contradict each other. Weighted sums of frequencies (`linear`, `linear_variance`,
    `difference_variance`) are about the leaves, `range` and `average_rmse` about the nodes.
    `HierarchicalHistogram` combines all levels, and errs less.

    With V the variance of the oracle for all users, and h levels that are all as likely, the
    sources bound the variance of a range of r items by (2 B - 1) V h (ceil(log_B r) + 1) (Theorem
    4.3, Lemma 4.4, equation 1; thesis Theorem 6 counts 2 (B - 1) nodes a level).

    Parameters
    ----------
    domain, epsilon, branching, oracle, probabilities : as of `HierarchicalHistogram`
        The number of items, the privacy loss of one report, and the levels of the tree.

    Raises
    ------
    ValueError
        A branching, names or probabilities that do not fit the domain or each other.

    Examples
    --------
    >>> from frequency import Between
    >>> protocol = DecomposedHistogram(domain=64, epsilon=1.0, branching=4, oracle="OUE")
    >>> estimate = protocol.estimate(protocol.simulate(np.full(64, 1000), np.random.default_rng(1)))
    >>> weights = np.arange(64) // 34 == 0
    >>> estimate.answer(Between(3, 36)).variance < estimate.linear(weights).variance / 4
    True
    """

    privacy_source: ClassVar[str] = "range queries, section 4.4"

    @property
    def _last(self) -> Oracle:
        """The oracle over the leaves."""
        return self.parts[-1]

    def estimate(self, aggregate: Aggregate) -> RangeEstimate:
        """Unbiased estimates of items and ranges: a range is no difference of two prefixes.

        `RangeEstimate.frequencies` are the leaves, and `linear` is about sums of them; `range` and
        what follows from it (`prefix`, `cdf`, `quantile`, `monotone`) is about sums of nodes.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        RangeEstimate
            Of `nodes`; NaN with infinite variances if there are no reports.

        Raises
        ------
        IncompatibleAggregate
            For the aggregate of another protocol.
        """
        if self.channel.require_own(aggregate).n:
            levels = level_estimates(self.channel, self.parts, aggregate)
        else:
            levels = [np.full(nodes, np.nan) for nodes in self.tree.nodes]
        nodes = NodeSums(self.tree, [before(level) for level in levels])
        return RangeEstimate(self, aggregate, None, nodes)

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        return level_estimates(self.channel, self.parts, aggregate)[-1][: self.domain]

    # ------------------------------------------------------------ ranges, by nodes

    @cached_property
    def _laws(self) -> list[NodeLaw | None]:
        """The law of each level's nodes; None where its oracle treats them unlike."""
        return [NodeLaw.of(oracle) if oracle.symmetric else None for oracle in self.parts]

    def _of_ranges(
        self, n: int, users: Floats, cumulated: Sequence[Floats], first: Items, last: Items
    ) -> Floats:
        """The variances of ranges, from so many users and sums before nodes on each level."""
        total, inside = np.zeros(first.shape), np.zeros(first.shape)
        for level, (law, sums, each) in enumerate(
            zip(self._laws, cumulated, inverse(users), strict=True)
        ):
            left, end, start, right = runs(self.tree, first, last, level)
            # At most two runs of nodes a level: those left and right of what coarser levels cover
            number = end - left + right - start
            share = sums[end] - sums[left] + sums[right] - sums[start]
            if law is not None:
                variance = law.drawn(number, share)
            else:
                ends = (side.ravel() for side in (left, end, start, right))
                variance = _drawn(self.parts[level], np.diff(sums), *ends).reshape(number.shape)
            total += np.multiply(variance, each, out=np.zeros(first.shape), where=number > 0)
            inside += share
        total -= inside * (1 - inside) / n  # what disjoint samples share
        whole = (first == 0) & (last == self.tree.leaves - 1)
        return np.where(whole, 0.0, np.maximum(total, 0.0))

    def range_variances(self, estimate: RangeEstimate, first: Items, last: Items) -> Floats:
        assert estimate.nodes is not None
        users = self.channel.part_users(estimate.aggregate)
        return self._of_ranges(estimate.reports, users, estimate.nodes.nearest, first, last)

    def average_rmse(
        self, n: int, workload: str = "ranges", frequencies: npt.ArrayLike | None = None
    ) -> float:
        """Return the root of the average variance of ranges over a workload, by nodes.

        Parameters
        ----------
        n, workload, frequencies : as of `RangeProtocol.average_rmse`
            The number of users, and what is asked of which population.

        Returns
        -------
        float
            As a fraction of the population.

        Raises
        ------
        ValueError
            As for `RangeProtocol.average_rmse`.
        """
        tree, users, domain = self.tree, self.channel.expected_users(n), self.domain
        laws = [law for law in self._laws if law is not None]
        if frequencies is None and len(laws) < tree.height:
            frequencies = np.full(domain, 1 / domain)
        if frequencies is None:
            nodes, squares = average_nodes(tree, workload), squared_nodes(tree, workload)
            levels = zip(laws, tree.widths, strict=True)
            parts = np.array([law.moments(width / domain) for law, width in levels])
            costs, asked = nodes * parts[:, 0] + squares * parts[:, 1], nodes > 0
            variance = float(costs[asked] @ inverse(users)[asked])
            return even_rmse(domain, n, workload, variance)
        population = tree.padded(self._population(frequencies))
        cumulated = [before(tree.sums(population, level)) for level in range(tree.height)]
        single, total = workload == "ranges", 0.0
        for start in range(1 if workload == "prefixes" else domain):
            last = np.arange(start + single, domain)
            total += float(
                self._of_ranges(n, users, cumulated, np.full_like(last, start), last).sum()
            )
        return (total / max(queries(domain, workload), 1)) ** 0.5

    # ------------------------------------------------------------ items and their sums, by leaves

    def variances_from(self, n: int, users: Floats, weights: Floats, frequencies: Floats) -> Floats:
        if not users[-1]:
            return np.full(len(weights), np.inf)
        padded, leaves = self.tree.padded(weights), self.tree.padded(frequencies)
        variances = self._last.linear_variance(1, padded, leaves) / users[-1]
        result: Floats = variances + spread(weights, frequencies) * (1 / users[-1] - 1 / n)
        return result

    def variance_slope(self, n: int) -> float:
        users = self.channel.expected_users(n)[-1]
        return self._last.variance_slope(1) / float(users) if users else 0.0

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        part = self.channel.part_aggregate(aggregate, len(self.parts) - 1)
        if not part.n:
            return np.full(len(frequencies), np.inf)
        f = np.clip(frequencies, 0.0, 1.0)
        variances = self._last.variances_of(part, self._last.frequencies_of(part, None), None)
        return variances[: self.domain] + f * (1 - f) * (1 / part.n - 1 / aggregate.n)

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        part = self.channel.part_aggregate(aggregate, len(self.parts) - 1)
        if not part.n:
            return np.full(len(weights), np.inf)
        padded, leaves = self.tree.padded(weights), self._last.frequencies_of(part, None)
        variances = self._last.linear_variances_of(padded, part, leaves, None)
        # Users of the leaves' level are a sample without replacement of all: the share 1 / part.n
        # less 1 / n of the spread between users
        return variances + np.maximum(spread(weights, frequencies), 0.0) * (
            1 / part.n - 1 / aggregate.n
        )


def _drawn(
    oracle: Oracle, nodes: Floats, left: Items, end: Items, start: Items, right: Items
) -> Floats:
    """Variances of `NodeLaw.drawn` for two runs of nodes, by an oracle that treats nodes unlike."""
    variances, node = np.empty(len(left)), np.arange(len(nodes))
    step = max(1, _AT_ONCE // len(nodes))
    for k in range(0, len(left), step):
        part = np.s_[k : k + step, None]
        inside = (left[part] <= node) & (node < end[part])
        inside |= (start[part] <= node) & (node < right[part])
        weights = inside.astype(np.float64)
        variances[k : k + step] = oracle.linear_variance(1, weights, nodes) + spread(weights, nodes)
    return variances
