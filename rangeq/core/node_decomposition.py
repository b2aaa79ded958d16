"""Ranges as sums of the fewest nodes of a tree, for estimates that are not consistent.

Range queries, section 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.postprocess import norm_sub
from mechdesign.base.linear_algebra import Floats, Integers
from rangeq.core.tree import Tree
from rangeq.core.workload_sums import blocks_inside, queries


def runs(
    tree: Tree, first: Integers, last: Integers, level: int
) -> tuple[Integers, Integers, Integers, Integers]:
    """The nodes of one level in the decomposition of first .. last, as two runs.

    A node is used when it lies in the range and its parent does not: to the right of the first cut
    within the parent that it cuts, and to the left of the second.
    """
    child, size = tree.widths[level], tree.branching[level]
    parent, after = child * size, last + 1
    left, right = -(-first // child), after // child
    within = first // parent == after // parent
    end = np.where(within, right, (first // parent + 1) * size)
    start = np.where(within, right, after // parent * size)
    return left, np.where(within | (first % parent != 0), np.maximum(end, left), left), start, right


def added_up(
    tree: Tree,
    cumulated: Sequence[npt.NDArray[Any]],
    first: Integers,
    last: Integers,
) -> Any:
    """The values of the nodes that make up first .. last, added up; see `runs`.

    Shapes: `cumulated` (nodes of the level + 1,).
    """
    parts = ((sums, *runs(tree, first, last, level)) for level, sums in enumerate(cumulated))
    return sum(
        sums[end] - sums[left] + sums[right] - sums[start]
        for sums, left, end, start, right in parts
    )


@dataclass(frozen=True)
class NodeSums:
    """Estimates of a tree's nodes that need not agree, of which ranges are sums.

    Attributes
    ----------
    tree : Tree
        Over the domain.
    cumulated : list of numpy.ndarray of float64
        For each level from the top the sums of the estimates before each node, and of all.
    """

    tree: Tree
    cumulated: list[Floats]

    @cached_property
    def nearest(self) -> list[Floats]:
        """As ``cumulated``, of the distribution nearest to each level's estimates."""
        levels = [norm_sub(np.diff(sums)) for sums in self.cumulated]
        return [np.concatenate([[0.0], np.cumsum(level)]) for level in levels]

    def between(self, first: Integers, last: Integers) -> Floats:
        """The answers of checked ranges."""
        # Nothing is used of any level when the range is the root.
        whole = (first == 0) & (last == self.tree.leaves - 1)
        result: Floats = whole + added_up(self.tree, self.cumulated, first, last)
        return result


def nodes_used(tree: Tree, workload: str = "all ranges") -> list[int]:
    """How many nodes of each level all queries of a workload use together, exactly; see `runs`.

    In O(height) steps.
    """
    inside = [blocks_inside(tree.domain, width, workload) for width in (tree.leaves, *tree.widths)]
    return [
        below - size * above
        for (above, below), size in zip(pairwise(inside), tree.branching, strict=True)
    ]


def average_nodes(tree: Tree, workload: str) -> Floats:
    """How many nodes of each level a query of a workload uses on average.

    The result has shape (height,).
    """
    return np.array(
        [used / max(queries(tree.domain, workload), 1) for used in nodes_used(tree, workload)]
    )


def squared_nodes(tree: Tree, workload: str) -> Floats:
    """The mean over a workload of the squared number of nodes used of each level.

    In O(height * branching) steps.

    The result has shape (height,).
    """
    total, result = max(queries(tree.domain, workload), 1), np.empty(tree.height)
    for level, (child, size) in enumerate(zip(tree.widths, tree.branching, strict=True)):
        whole, rest = divmod(tree.domain, child * size)
        # How many ends lie so many whole children into their parent, of all parents and of the
        # last, incomplete one. Behind a start lie as many children as before an end at its mirror.
        children = np.arange(size, dtype=np.float64)
        every = np.full(size, float(child))
        last = np.clip(rest + 1 - children * child, 0, child)
        if workload == "prefixes":
            result[level] = (whole * every + last) @ children**2 / total
            continue
        mean, square = every @ children, every @ children**2
        # Parents of the start before that of the end, all pairs; then both in the same one.
        pairs = whole * (whole - 1) / 2
        apart = pairs * 2 * (child * size * square + mean**2)
        apart += whole * (last.sum() * square + 2 * (last @ children) * mean)
        apart += whole * child * size * (last @ children**2)
        within = children**2 + child * (children - 1) * children * (2 * children - 1) / 6
        result[level] = (apart + (whole * every + last) @ within) / total
    if workload == "ranges":
        result[-1] -= tree.domain / total  # single items are leaves
    return result
