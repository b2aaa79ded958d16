"""Ranges as sums of the fewest nodes of a tree (range queries 4.3), for estimates that are not made
consistent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.estimate import Linear
from rangeq.core.estimate import RangeEstimate
from rangeq.core.tree import Floats, Integers, Tree, spread
from rangeq.core.workload_sums import blocks_inside, queries

if TYPE_CHECKING:
    from rangeq.local.hierarchy import HierarchicalHistogram


def runs(
    tree: Tree, first: Integers, last: Integers, level: int, root: bool = True
) -> tuple[Integers, Integers, Integers, Integers]:
    """The nodes of one level in the decomposition of first .. last: two runs, start and end
    (exclusive) of each.

    A node is used when it lies in the range and its parent does not: to the right of the first cut
    within the parent that it cuts, and to the left of the second. ``root=False``: the root is not
    known, and its children make up the whole range.
    """
    child, size = tree.widths[level], tree.branching[level]
    parent, after = child * size, last + 1
    left, right = -(-first // child), after // child
    within = first // parent == after // parent if root or level else np.full(left.shape, True)
    end = np.where(within, right, (first // parent + 1) * size)
    start = np.where(within, right, after // parent * size)
    return left, np.where(within | (first % parent != 0), np.maximum(end, left), left), start, right


def added_up(
    tree: Tree,
    cumulated: Sequence[npt.NDArray[Any]],
    first: Integers,
    last: Integers,
    root: bool = True,
) -> Any:
    """The nodes that make up first .. last, added up from the prefix sums of each level, the empty
    one first; like `runs`.
    """
    parts = ((sums, *runs(tree, first, last, level, root)) for level, sums in enumerate(cumulated))
    return sum(
        sums[end] - sums[left] + sums[right] - sums[start]
        for sums, left, end, start, right in parts
    )


def variance_of_nodes(
    tree: Tree,
    per_node: Sequence[float] | Floats,
    first: Integers,
    last: Integers,
    root: bool = True,
) -> Any:
    """The variance of that sum, for independent nodes whose variance depends on their level;
    infinite ones may be unused.
    """
    total = np.zeros(first.shape)
    for level, variance in enumerate(per_node):
        left, end, start, right = runs(tree, first, last, level, root)
        used = end - left + right - start
        total = total + np.where(used > 0, variance, 0.0) * used
    return total


def nodes_used(
    tree: Tree, workload: str = "all ranges", root: bool = True, d: int = 1
) -> list[int]:
    """How many nodes of each level all queries of a workload use together, exactly; like `runs`.
    O(height).

    With d dimensions: boxes of a grid of domain^d cells, by a tree that splits each dimension like
    this one.
    """
    inside = [
        blocks_inside(tree.domain, width, workload) ** d for width in (tree.leaves, *tree.widths)
    ]
    inside[0] *= root
    return [
        below - size**d * above
        for (above, below), size in zip(pairwise(inside), tree.branching, strict=True)
    ]


def average_nodes(tree: Tree, workload: str) -> Floats:
    """How many nodes of each level are used, the mean over a workload of `rangeq.core.tree.WORKLOADS`."""
    return np.array(
        [used / max(queries(tree.domain, workload), 1) for used in nodes_used(tree, workload)]
    )


class DecomposedEstimate(RangeEstimate):
    """Answers by decomposition. A range's answer is not the difference of two prefixes' answers."""

    def __init__(
        self,
        oracle: HierarchicalHistogram,
        aggregate: Aggregate,
        levels: Sequence[Floats],
        per_node: Floats,
    ) -> None:
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
        whole = (first == 0) & (last == self._tree.leaves - 1)
        result: Floats = whole + added_up(self._tree, self._cumulated, first, last)
        return result

    def variance(self, first: npt.ArrayLike, last: npt.ArrayLike) -> Any:
        """The variance of `range` when the nodes of a level are independent, as they are for OUE
        and SUE, and others nearly.
        """
        a, b = self._ends(first, last)
        total = variance_of_nodes(self._tree, self._per_node, a, b)
        # What disjoint samples share, as for consistent estimates
        inside = np.clip(self._values(a, b), 0.0, 1.0)
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
        variance = np.maximum(
            (rows**2).sum(axis=1) * self._per_node[-1] - spread(rows, f) / self.n, 0.0
        )
        return Linear(value, float(variance[0]) if np.ndim(weights) == 1 else variance)
