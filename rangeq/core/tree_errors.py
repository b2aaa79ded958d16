"""The errors of estimates that add up along a tree, and the variances of queries.

Given a node's final estimate, its children take fixed parts of its error, V_c / S for child c, and
independent errors of covariance diag(V) - V V' / S, where S is the sum of the V of the children. A
query with the weights w on cells has in each node the mean W of its children's W, weighted by V; in
cells W = w. So its variance is that of W times the root, and over all nodes the sum of

    sum over children of V_c W_c^2 - (sum over children of V_c W_c)^2 / S.

V depends on the level and, along each attribute, on whether the node is the last, which may be
smaller: a table of shape (2,) * attributes for each level. See `rangeq.core.tree_inference` for the
V of constrained inference, and `rangeq.core.tree_inference` for those of wavelets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers
from rangeq.core.boxes import BoxTree, sums_of_children
from rangeq.core.workload_sums import pairs_in_blocks, queries

Numbers: TypeAlias = npt.NDArray[Any]  #: float64, or objects that are Fractions: exact throughout.

_AT_ONCE = 1 << 16  # how many numbers a working array may have


class TreeErrors:
    """The variances of queries, from V and S of the nodes.

    `variances` are V for the levels 0 .. height, of shape (2,) * attributes: by whether a node is
    the last along each attribute. For level 0 the final variance of the root.
    """

    def __init__(self, tree: BoxTree, variances: Sequence[Numbers]) -> None:
        self.tree, self.variances = tree, variances
        self.sums = [
            children_sums(tree, level, variances[level + 1]) for level in range(tree.height)
        ]

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """Return the variance of a weighted sum of cells, by definition.

        A cell's weight is the product of those of its places, given for each attribute.
        """
        tree, total = self.tree, 0.0
        mean = np.ones(())  # W
        for factor in weights:
            mean = np.multiply.outer(mean, factor)
        for level in range(tree.height - 1, -1, -1):
            weighted = scaled(mean.copy(), self.variances[level + 1])
            total += float((weighted * mean).sum())
            sums = sums_of_children(weighted, tree.fanouts[level])
            mean = scaled(sums.copy(), 1 / self.sums[level])
            total -= float((sums * mean).sum())
        return total + float(self.variances[0].flat[-1] * (mean**2).sum())

    def variance(self, first: Integers, last: Integers) -> Numbers:
        """Return the variances of the sums over boxes of cells.

        Along an attribute a range holds nodes wholly, or cuts one at either end; all nodes that are
        held or cut alike along every attribute are alike. So it takes O(height * 16^attributes)
        steps for each. Shapes: `first` and `last` (attributes, boxes), closed ends; returns
        (boxes,).
        """
        count = first.shape[1]
        result = np.empty(count, dtype=self.variances[-1].dtype)
        step = max(1, _AT_ONCE >> 2 * len(self.tree.shape))
        for start in range(0, count, step):
            part = slice(start, start + step)
            result[part] = self._variance(first[:, part], last[:, part] + 1)
        return result

    def _variance(self, first: Integers, after: Integers) -> Numbers:
        tree, (d, count) = self.tree, first.shape
        inner = (slice(None), *(slice(2),) * d)
        weights = np.ones((count, *(4,) * d), dtype=self.variances[-1].dtype)
        total = np.zeros(count, dtype=weights.dtype)
        kinds = [Kinds(tree, tree.height, i, first[i], after[i]) for i in range(d)]
        for level in range(tree.height - 1, -1, -1):
            variances = _chosen(self.variances[level + 1], kinds)
            squares, sums = variances * weights**2, variances * weights
            above = [Kinds(tree, level, i, first[i], after[i]) for i in range(d)]
            for i in range(d):
                number = above[i].children(kinds[i])
                squares, sums = along(number, squares, i, 1), along(number, sums, i, 1)
            whole = _chosen(self.sums[level], above)
            weights = sums / whole
            squares = squares - sums * weights
            weights[inner], squares[inner] = 1, 0  # and not what rounding makes of it
            if not level:
                squares = squares + self.variances[0].flat[-1] * weights**2
            for i in range(d - 1, -1, -1):
                shape = (count, *(1,) * i, 4)
                squares = (squares * above[i].number.reshape(shape)).sum(axis=-1)
            total += squares
            kinds = above
        return total

    def mean(self) -> Any:
        """The mean of `variance` of all boxes: O(4^attributes height^(attributes + 1)) steps."""
        # A node's W^2 stands in the terms of its parent and of its children: over all nodes, V - S
        # times the sum over boxes of W^2, and V alone for cells. In a node that is the last along
        # some attributes W weighs its cells along these by where they leave the last nodes of the
        # levels below.
        tree, h = self.tree, self.tree.height
        kind = self.variances[-1].dtype
        runs = [_runs(tree, i).astype(kind) for i in tree.attributes]
        weights = {last: np.ones((1,) * len(last), dtype=kind) for last in self._types}
        total = kind.type(0) if kind == np.float64 else Fraction(0)
        for level in range(h, -1, -1):
            if level < h:
                weights = {last: self._weights(level, last, weights) for last in self._types}
            for last in self._types:
                term = weights[last]
                for i, is_last in enumerate(last):
                    if is_last:
                        term = along(runs[i][level:, level:], term, i)
                    else:
                        width, n = tree.widths[level][i], tree.shape[i]
                        term = term * pairs_in_blocks(n, width, tree.nodes[level][i] - 1)
                variance = self.variances[level][last]
                if level < h:
                    variance -= self.sums[level][last]
                total += variance * (weights[last] * term).sum()
        return total / math.prod(queries(n, "all ranges") for n in tree.shape)

    @property
    def _types(self) -> list[tuple[int, ...]]:
        return list(product((0, 1), repeat=len(self.tree.shape)))

    def _weights(
        self, level: int, last: tuple[int, ...], below: dict[tuple[int, ...], Numbers]
    ) -> Numbers:
        """Return cells' weights in W of a node, by their run along attributes it is last of."""
        lengths = [self.tree.height - level + 1 if is_last else 1 for is_last in last]
        result = np.empty(lengths, dtype=self.variances[-1].dtype)
        for child in self._types:
            if all(c <= p for c, p in zip(child, last, strict=True)):
                where = tuple(
                    (slice(1, None) if c else slice(1)) if p else slice(None)
                    for c, p in zip(child, last, strict=True)
                )
                part = self.variances[level + 1][child] / self.sums[level][last]
                result[where] = part * below[child]
        return result


def children_sums(tree: BoxTree, level: int, variances: Numbers) -> Numbers:
    """Return S of the nodes of a level, of shape (2,) * attributes: sums over their children."""
    for i in tree.attributes:
        inner, fewer = tree.fanouts[level][i], tree.children_of_last(level, i)
        number = np.array([[inner, 0], [fewer - 1, 1]]).astype(variances.dtype)
        variances = along(number, variances, i)
    return variances


def scaled(values: Floats, table: Numbers) -> Floats:
    """Multiply the values of a level's nodes by the entries of a table, in place."""
    # Slices and not one factor a node: a level of leaves is as large as memory allows
    for last in product((0, 1), repeat=table.ndim):
        values[tuple(slice(-1, None) if end else slice(-1) for end in last)] *= float(table[last])
    return values


class Kinds:
    """The nodes of a level along one attribute, as ranges hold them.

    There are four kinds: those wholly in the range but for the last of the attribute; the last,
    wholly in it; the one that the start of the range cuts, which its end may cut as well; and the
    one that only its end cuts.

    Shapes: `first` and `after` (ranges,), the ends, ``after`` excluded; `number` (ranges, 4), how
    many of each kind there are, and `last` (ranges, 4), 1 for kinds that are the last node of the
    attribute.
    """

    def __init__(
        self, tree: BoxTree, level: int, attribute: int, first: Integers, after: Integers
    ) -> None:
        width, nodes = tree.widths[level][attribute], tree.nodes[level][attribute]
        self._fanout = tree.fanouts[level][attribute] if level < tree.height else 1
        self._in_last = tree.children_of_last(level, attribute) if level < tree.height else 1
        self.start, self.end = first // width, after // width  # the nodes that are cut
        at_end = after == tree.shape[attribute]
        cut = first % width != 0
        self.both = cut & (self.start == self.end) & ~at_end
        end_cut = (after % width != 0) & ~at_end & ~self.both
        self.inside = -(-first // width), np.where(at_end, nodes, self.end)
        whole = np.maximum(self.inside[1] - self.inside[0], 0)
        with_last = (whole > 0) & (self.inside[1] == nodes)
        kinds = [whole - with_last, with_last, cut, end_cut]
        self.number = np.stack(kinds, axis=1).astype(np.int64)
        self.last = np.zeros_like(self.number)
        self.last[:, 1] = 1
        self.last[:, 2] = self.start == nodes - 1
        self.last[:, 3] = self.end == nodes - 1
        self._nodes = nodes

    def children(self, below: Kinds) -> Integers:
        """Return how many children of each kind a node of each kind has: shape (ranges, 4, 4)."""
        result = np.zeros((len(self.start), 4, 4), dtype=np.int64)
        result[:, 0, 0] = self._fanout
        result[:, 1, 0], result[:, 1, 1] = self._in_last - 1, 1
        for kind, node in ((2, self.start), (3, self.end)):
            low = np.maximum(below.inside[0], node * self._fanout)
            high = np.minimum(below.inside[1], (node + 1) * self._fanout)
            whole = np.maximum(high - low, 0)
            with_last = (whole > 0) & (high == below._nodes)
            result[:, kind, 0], result[:, kind, 1] = whole - with_last, with_last
        result[:, 2, 2] = below.number[:, 2]
        result[:, 2, 3] = below.number[:, 3] * self.both
        result[:, 3, 3] = below.number[:, 3] * ~self.both
        return result


def _chosen(table: Numbers, kinds: Sequence[Kinds]) -> Numbers:
    """A table by the kinds of nodes: shape (ranges, 4, ..)."""
    d = len(kinds)
    where = (
        kind.last.reshape(-1, *(1,) * i, 4, *(1,) * (d - 1 - i)) for i, kind in enumerate(kinds)
    )
    return table[tuple(where)]


def _runs(tree: BoxTree, attribute: int) -> Numbers:
    """Count the triples (range, item, item of it) by the items' runs: (height + 1, height + 1)."""
    # Run r = 0, 1, .. has the items of the last node of level r that are not in that of level r +
    # 1; the last run is the last item. Integers as objects.
    n = tree.shape[attribute]
    starts = [
        (nodes[attribute] - 1) * widths[attribute]
        for nodes, widths in zip(tree.nodes, tree.widths, strict=True)
    ]
    sizes = [b - a for a, b in zip(starts, [*starts[1:], n], strict=True)]
    before = [size * (2 * start + size + 1) // 2 for start, size in zip(starts, sizes, strict=True)]
    beyond = [size * (n + 1) - total for size, total in zip(sizes, before, strict=True)]
    result = np.empty((len(sizes), len(sizes)), dtype=object)
    for r, s in product(range(len(sizes)), repeat=2):
        result[r, s] = (
            pairs_in_blocks(n, sizes[r], 1, starts[r])
            if r == s
            else before[min(r, s)] * beyond[max(r, s)]
        )
    return result


def along(matrix: Numbers, values: Numbers, axis: int, batch: int = 0) -> Numbers:
    """Return a matrix (m, n), or one of each of a batch, times the values along one axis."""
    moved = np.moveaxis(values, axis + batch, batch)
    flat = moved.reshape(*moved.shape[: batch + 1], -1)
    product_ = np.matmul(matrix, flat).reshape(*flat.shape[:batch], -1, *moved.shape[batch + 1 :])
    return np.moveaxis(product_, batch, axis + batch)
