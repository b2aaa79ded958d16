"""Hierarchical histograms HH_B, over the nodes of every level of a tree: consistent, or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core import Aggregate, Oracle, forwarded
from frequency.oracles import OracleChoice, choices_of, oracle_over
from mechdesign.base import Floats, Items, Rational, set_fields
from rangeq.core import (
    ConsistentTree,
    Cuts,
    NodeLaw,
    NodeSums,
    RangeEstimate,
    RangeProtocol,
    Tree,
    average_nodes,
    before,
    consistent,
    contrast_precisions,
    even_rmse,
    inverse,
    level_estimates,
    queries,
    runs,
    spread,
    squared_nodes,
)


@dataclass(frozen=True)
class LevelHistograms(RangeProtocol):
    """A histogram over the nodes of every level of a tree, each by an oracle of its own.

    See `HierarchicalHistogram` for ``branching``, ``oracle`` and ``probabilities``.
    """

    branching: int | tuple[int, ...] = 4
    oracle: OracleChoice | tuple[OracleChoice, ...] = "OUE"
    probabilities: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.part_weights, self.parts  # what is wrong with them is wrong now

    @cached_property
    def tree(self) -> Tree:
        return Tree.of(self.domain, self.branching)

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        return level_oracles(self.oracle, self.tree.nodes, self.epsilon)


@dataclass(frozen=True)
class HierarchicalHistogram(LevelHistograms, ConsistentTree):
    """HH_B with consistency (range queries, section 4.5): every node is the sum of its children.

    All levels are combined by least squares, which is the most accurate. `DecomposedHistogram`
    leaves them as they are. TreeOUE, TreeHRR and TreeOLH of the paper are this, by ``oracle``.

    Least squares multiply the variance of a node by at most B / (B + 1) (Lemma 4.6; thesis Lemma
    10). With V the variance of the oracle for all users, the source bounds the variance of a range
    of r items for B = 8 by V log2(r) log2(D) / 2 (equation 2).

    Parameters
    ----------
    domain, epsilon : as of `RangeProtocol`
        The number of items, and the privacy loss of one report.
    branching : int or tuple of int, default 4
        Children of a node: one number for all levels (the first level has as many nodes as cover
        the domain), or a list from the top. Leaves beyond the domain are padding, always empty and
        never in an answer.
    oracle : str, class, Oracle, Mechanism or tuple of these, default "OUE"
        The oracle of all levels, or one for each: a name such as "OUE", "HRR", "OLH", "GRR" or
        "SubsetSelection", a class of oracles, or for a level of as many nodes an oracle or a
        mechanism of `mechdesign`. See `frequency.oracles.randomized_response`.
    probabilities : sequence of exact rationals, optional
        Of each level from the top, exact rationals that sum to 1; None: all the same.

    Raises
    ------
    ValueError
        A branching, names or probabilities that do not fit the domain or each other.
    """

    privacy_source: ClassVar[str] = "range queries, section 4.4"

    @cached_property
    def _per_user(self) -> Floats:
        """A unit contrast's variance from one random user of an even population, for each level."""
        return per_user_of_levels(self.parts, self.tree.occupied)

    def _contrasts(self, users: Floats) -> Floats:
        return inverse(contrast_precisions(self.tree, users / self._per_user))

    def _shares(self, users: Floats) -> tuple[Floats, Floats]:
        """The weights of a level in contrasts above: up[a] * down[l] for levels a <= l."""
        # A contrast at level a is estimated at level l through sums of n_l / n_a nodes, with as
        # many times the variance: its precision there is p_l n_a / n_l, and its share of the
        # least-squares estimate that over the sum of those of all levels from a down. So shares are
        # products of a factor of a and one of l
        precisions, nodes = users / self._per_user, np.array(self.tree.nodes)
        contrasts = inverse(contrast_precisions(self.tree, precisions))
        return np.where(np.isfinite(contrasts), nodes * contrasts, 0.0), precisions / nodes

    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        up, down = self._shares(users)
        nodes = self.tree.nodes
        total = np.zeros((len(leaves), nodes[level]))
        for above in range(
            level + 1
        ):  # a contrast between nodes above is seen through the sums of nodes below them
            total += (up[above] * down[level]) * np.repeat(
                self.tree.coverage(leaves, above), nodes[level] // nodes[above], axis=1
            )
        return total

    @cached_property
    def alike(self) -> bool:
        return all(oracle.symmetric for oracle in self.parts)

    @cached_property
    def _laws(self) -> list[NodeLaw]:
        return [NodeLaw.of(oracle) for oracle in self.parts]

    def _cuts(self, users: Floats, mass: Floats) -> Cuts:
        up, down = self._shares(users)
        nodes, each = np.array(self.tree.nodes), np.where(users > 0, inverse(users), 0.0)
        # A report on a level enters with the weight `down`, squared in a variance; `each` is one
        # over the users of the level
        contrast = np.array([law.contrast for law in self._laws]) * down**2 * each * nodes
        of_users = np.array([law.held for law in self._laws]) * down**2 * each
        means = np.tril(np.outer(down * np.sqrt(each), up))
        return Cuts(
            self.tree,
            up**2 / nodes * _below(contrast),
            up,
            _below(of_users),
            means,
            mass,
            self._shared(users),
        )

    def _leaves(self, aggregate: Aggregate) -> Floats:
        return consistent(
            self.tree,
            level_estimates(self.channel, self.parts, aggregate),
            self.channel.part_users(aggregate) / self._per_user,
        )


def _below(values: Floats) -> Floats:
    """The sums over each level and those below it."""
    return np.cumsum(values[::-1])[::-1]


def level_oracles(
    oracle: OracleChoice | Sequence[OracleChoice], nodes: Sequence[int], epsilon: float | Rational
) -> tuple[Oracle, ...]:
    """The oracle of each level of so many nodes, by one choice for all or one for each."""
    choices = zip(choices_of(oracle, len(nodes)), nodes, strict=True)
    return tuple(oracle_over(choice, number, epsilon) for choice, number in choices)


def per_user_of_levels(oracles: Sequence[Oracle], held: Sequence[int]) -> Floats:
    """The `per_user` of each level, so many nodes of which are held."""
    levels = zip(oracles, held, strict=True)
    return np.array([per_user(oracle, number) for oracle, number in levels])


def per_user(oracle: Oracle, held: int) -> float:
    """The variance of a unit contrast between nodes, from one user drawn at random."""
    # A unit contrast of two nodes is their difference over the root of 2, hence half of its noise;
    # sampling adds the frequency of a node, 1 / held, if the population is even
    return oracle.difference_variance(1, max(held, 2)) / 2 + 1 / max(held, 2)


# ------------------------------------------------------------------------------------------------
# The flat method: one histogram over the items, and ranges by adding up.


@dataclass(frozen=True)
class Flat(LevelHistograms, ConsistentTree):
    """One histogram over the items, and ranges by adding up (range queries, section 4.2).

    The estimates are shifted to sum to 1, since every user is somewhere: a range of r items then
    has the variance r (1 - r/D) V instead of the r V of Fact 1, which ``DecomposedHistogram(D,
    epsilon, D)`` has. `rangeq.central.CentralFlat` trusts a curator.

    Parameters
    ----------
    domain, epsilon : as of `RangeProtocol`
        The number of items, and the privacy loss of one report.
    oracle : str, class, Oracle or Mechanism, default "OUE"
        Over the items themselves: see `frequency.oracles.randomized_response`.
    branching : int or tuple of int, default ()
        Not used: there is one level.
    probabilities : sequence, optional
        Not used: there is one level.
    """

    privacy_source: ClassVar[str] = "range queries, section 4.2"

    branching: int | tuple[int, ...] = ()
    oracle: OracleChoice | tuple[OracleChoice, ...] = "OUE"

    def __post_init__(self) -> None:
        if isinstance(self.domain, (int, np.integer)):
            set_fields(self, branching=(max(2, int(self.domain)),))
        super().__post_init__()

    @cached_property
    def _histogram(self) -> HierarchicalHistogram:
        """The hierarchical histogram of one level that this is."""
        return HierarchicalHistogram(self.domain, self.epsilon, self.branching, self.oracle)

    alike = forwarded("_histogram.alike")
    _contrasts = forwarded("_histogram._contrasts")
    _level_weights = forwarded("_histogram._level_weights")
    _cuts = forwarded("_histogram._cuts")
    _leaves = forwarded("_histogram._leaves")


# ------------------------------------------------------------------------------------------------
# DecomposedHistogram: HH_B without consistency, whose ranges are sums of the fewest nodes.


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
        return variances + spread(weights, frequencies) * (1 / users[-1] - 1 / n)

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
