"""Ranges as sums of the fewest nodes of a tree (range queries 4.3), for estimates that are not made consistent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from frequency.aggregate import Aggregate
from frequency.estimate import Linear
from rangeq.estimate import RangeEstimate
from rangeq.tree import Floats, Integers, Tree, spread

if TYPE_CHECKING:
    from rangeq.hierarchy import HierarchicalHistogram


def runs(tree: Tree, first: Integers, last: Integers, level: int) -> tuple[Integers, Integers, Integers, Integers]:
    """The nodes of one level in the decomposition of first .. last: two runs, start and end (exclusive) of each.

    A node is used when it lies in the range and its parent does not: to the right of the first cut within the parent that it
    cuts, and to the left of the second.
    """
    child, size = tree.widths[level], tree.branching[level]
    parent, after = child * size, last + 1
    left, right = -(-first // child), after // child
    within = first // parent == after // parent
    end = np.where(within, right, (first // parent + 1) * size)
    start = np.where(within, right, after // parent * size)
    return left, np.where(within | (first % parent != 0), np.maximum(end, left), left), start, right


def average_nodes(tree: Tree, workload: str) -> Floats:
    """How many nodes of each level are used, the mean over a workload of `rangeq.tree.WORKLOADS`: O(domain * height)."""
    d = tree.domain
    cuts = np.arange(d + 1)
    result = np.zeros(tree.height)
    for level in range(tree.height):
        child, size = tree.widths[level], tree.branching[level]
        parent = child * size
        cut = cuts % parent != 0
        before = cuts // child - cuts // parent * size  # children before a cut
        behind = np.where(cut, (cuts // parent + 1) * size + -cuts // child, 0)  # and after it
        if workload == "prefixes":
            result[level] = before[1:].sum() / d
            continue
        # Over all pairs of cuts A < B: children behind A and before B; where both cut one parent that counts all its children once
        # too often, and where both cut one child, once too seldom.
        total = (behind * (d - cuts)).sum() + (before * cuts).sum()
        total -= size * (np.minimum(d, (cuts // parent + 1) * parent - 1) - cuts)[cut].sum()
        total += (np.minimum(d, (cuts // child + 1) * child - 1) - cuts)[cuts % child != 0].sum()
        ranges = d * (d + 1) // 2
        if workload == "ranges":
            total, ranges = total - (d if level == tree.height - 1 else 0), ranges - d
        result[level] = total / max(ranges, 1)
    return result


class DecomposedEstimate(RangeEstimate):
    """Answers by decomposition. A range's answer is not the difference of two prefixes' answers."""

    def __init__(self, oracle: HierarchicalHistogram, aggregate: Aggregate, levels: Sequence[Floats], per_node: Floats) -> None:
        super().__init__(oracle, aggregate, None)
        self._tree, self._per_node = oracle.tree, per_node
        self._cumulated = [np.concatenate([[0.0], np.cumsum(level)]) for level in levels]
        self.frequencies = levels[-1][: oracle.domain].copy()
        self.frequencies.setflags(write=False)

    @cached_property
    def _sums(self) -> Floats:
        last = np.arange(len(self.frequencies))
        return np.concatenate([[0.0], self._values(np.zeros_like(last), last)])

    def range(self, first: npt.ArrayLike, last: npt.ArrayLike) -> Any:
        a, b = self._ends(first, last)
        values = self._values(a, b)
        return values.item() if values.ndim == 0 else values

    def _values(self, first: Integers, last: Integers) -> Floats:
        # Nothing is used of any level when the range is the root.
        total = ((first == 0) & (last == self._tree.leaves - 1)).astype(np.float64)
        for level, sums in enumerate(self._cumulated):
            left, end, start, right = runs(self._tree, first, last, level)
            total = total + sums[end] - sums[left] + sums[right] - sums[start]
        return total

    def variance(self, first: npt.ArrayLike, last: npt.ArrayLike) -> Any:
        """The variance of `range` when the nodes of a level are independent, as they are for OUE and SUE, and others nearly."""
        a, b = self._ends(first, last)
        total = np.zeros(a.shape)
        for level, variance in enumerate(self._per_node):
            left, end, start, right = runs(self._tree, a, b, level)
            used = end - left + right - start
            total = total + np.where(used > 0, variance, 0.0) * used
        inside = np.clip(self._values(a, b), 0.0, 1.0)  # what disjoint samples share, as for consistent estimates
        total = np.maximum(total - inside * (1 - inside) / self.n, 0.0)
        return total.item() if total.ndim == 0 else total

    @cached_property
    def variances(self) -> Floats:
        item = np.arange(len(self.frequencies))
        result: Floats = self.variance(item, item)
        return result

    def linear(self, weights: npt.ArrayLike) -> Linear:
        """A weighted sum of the leaves' estimates, whose variance counts them as independent."""
        value = super().linear(weights).value
        rows, f = np.atleast_2d(np.asarray(weights, dtype=np.float64)), self.frequencies
        variance = np.maximum((rows**2).sum(axis=1) * self._per_node[-1] - spread(rows, f) / self.n, 0.0)
        return Linear(value, float(variance[0]) if np.ndim(weights) == 1 else variance)
