"""Boxes as sums of the fewest nodes of a tree, without inference (Qardaji et al., section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechdesign.base import Floats, Integers
from rangeq.core import BoxTree, blocks_inside, queries


class FewestNodes:
    """The nodes that make up boxes, and the variances of their sums.

    A node is used if it lies in the box and its parent does not; the root is not asked. `variances`
    are those of the noise of the levels 1 .. height: floats, or Fractions for exact results.
    """

    def __init__(self, tree: BoxTree, variances: Sequence[Any]) -> None:
        self.tree, self.variances = tree, variances

    def inside(self, level: int, first: Integers, last: Integers) -> tuple[Integers, Integers]:
        """The nodes of a level in boxes: along each attribute one run, of the ends' shape."""
        column = (-1, *(1,) * (first.ndim - 1))
        widths = np.reshape(self.tree.widths[level], column)
        at_end = last + 1 == np.reshape(self.tree.shape, column)
        start = -(-first // widths)
        nodes = np.reshape(self.tree.nodes[level], column)
        end = np.where(at_end, nodes, (last + 1) // widths)
        return (start, np.maximum(end, start)) if level else (start, start)

    def below_inside(
        self, level: int, first: Integers, last: Integers
    ) -> tuple[Integers, Integers]:
        """Return the nodes of a level whose parents lie within boxes, as `inside`."""
        column = (-1, *(1,) * (first.ndim - 1))
        start, end = self.inside(level - 1, first, last)
        fanouts = np.reshape(self.tree.fanouts[level - 1], column)
        nodes = np.reshape(self.tree.nodes[level], column)
        return np.minimum(start * fanouts, nodes), np.minimum(end * fanouts, nodes)

    def chosen(self, weights: Sequence[Floats]) -> list[tuple[list[Floats], list[Floats]]]:
        """The nodes within a product of sets of places, and those whose parents are."""
        tree, result = self.tree, []
        within = [np.zeros(1) for _ in tree.attributes]  # the root is not asked
        for level in range(1, tree.height + 1):
            below = [
                np.repeat(within[i], tree.fanouts[level - 1][i])[: tree.nodes[level][i]]
                for i in tree.attributes
            ]
            within = [
                np.minimum.reduceat(own, np.arange(0, len(own), tree.widths[level][i]))
                for i, own in enumerate(weights)
            ]
            result.append((within, below))
        return result

    def variance(self, first: Integers, last: Integers) -> Any:
        """Return the variances of the sums over boxes: shape (boxes,)."""
        total: Any = np.zeros(first.shape[1])
        for level, variance in enumerate(self.variances, 1):
            used = np.zeros(first.shape[1], dtype=np.int64)
            for sign, runs in ((1, self.inside), (-1, self.below_inside)):
                start, end = runs(level, first, last)
                used += sign * np.prod(end - start, axis=0)
            total = total + variance * used
        return total

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """The variance of the sum over a product of sets of places."""
        return sum(
            float(variance) * (_product(within) - _product(below))
            for variance, (within, below) in zip(self.variances, self.chosen(weights), strict=True)
        )

    def used(self) -> list[int]:
        """Count the nodes of the levels 1 .. height that all boxes use together, exactly."""
        tree, result = self.tree, []
        for level in range(1, tree.height + 1):
            within = below = 1
            for i, (n, width) in enumerate(zip(tree.shape, tree.widths[level], strict=True)):
                within *= _inside_all(n, width)
                parent, nodes = tree.widths[level - 1][i], tree.nodes[level - 1][i]
                fanout, fewer = tree.fanouts[level - 1][i], tree.children_of_last(level - 1, i)
                # All parents have as many children, but for the last
                last = n - (nodes - 1) * parent
                below *= fanout * (_inside_all(n, parent) - (n - last + 1)) + fewer * (n - last + 1)
            result.append(within - (below if level > 1 else 0))
        return result

    def mean(self) -> Any:
        """The mean of `variance` over all boxes."""
        total = sum(n * variance for n, variance in zip(self.used(), self.variances, strict=True))
        return total / math.prod(queries(n, "all ranges") for n in self.tree.shape)


def _product(weights: Sequence[Floats]) -> float:
    return math.prod(float(own.sum()) for own in weights)


def _inside_all(n: int, width: int) -> int:
    """Count the pairs of a range of n places and a block in it; the last may be short."""
    rest = n % width
    return blocks_inside(n, width) + (n - rest + 1 if rest else 0)
