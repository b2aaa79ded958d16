"""Constrained inference: the least-squares estimate from noisy counts of the nodes of a tree.

Hay et al. 2010 (range queries, section 4.5; Qardaji, Yang, Li 2013, section 3.3), for counts of any
variances. `TreeInference` takes any tree, with a variance for each node; `LevelInference` is the
fast path for trees over ordered cells, whose nodes of a level are alike. Both go up and down once.
From below, a node's best estimate weighs its own count y of variance O by h, and the sum of its
children's best estimates, of variance S (the sum of their V), by the rest:

    h = S / (O + S),   best = (1 - h) below + h y,   V = O S / (O + S), or 1/V = 1/O + 1/S.

From above, child c is given the part V_c / S of what its parent's final estimate x differs from the
sum of its children's best:

    x_c = best_c + (V_c / S) (x - below).

The estimate is linear in the counts whatever the variances are that it weighs by. So with other
true variances of the counts its own follow as well, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers
from rangeq.core.boxes import BoxTree, sums_of_children
from rangeq.core.tree import Tree
from rangeq.core.workload_sums import pairs_in_blocks, queries

# ------------------------------------------------------------------------------------------------
# The errors of estimates that add up along a tree, and the variances of queries.
#
# Given a node's final estimate, its children take fixed parts of its error, V_c / S for child c,
# and independent errors of covariance diag(V) - V V' / S, where S is the sum of the V of the
# children. A query with the weights w on cells has in each node the mean W of its children's W,
# weighted by V; in cells W = w. So its variance is that of W times the root, and over all nodes
# the sum of
#
#     sum over children of V_c W_c^2 - (sum over children of V_c W_c)^2 / S.
#
# V depends on the level and, along each attribute, on whether the node is the last, which may be
# smaller: a table of shape (2,) * attributes for each level.


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
        # Along attributes that no box restricts, as of marginals, no node is cut
        ends = np.array(self.tree.shape)[:, None] - 1
        free = ((first == 0) & (last == ends)).all(axis=1)
        step = max(1, _AT_ONCE >> int((2 - free).sum()))
        for start in range(0, count, step):
            part = slice(start, start + step)
            result[part] = self._variance(first[:, part], last[:, part] + 1, free)
        return result

    def _variance(self, first: Integers, after: Integers, free: npt.NDArray[np.bool_]) -> Numbers:
        tree, (d, count) = self.tree, first.shape
        inner = (slice(None), *(slice(2),) * d)
        sides = [2 if is_free else 4 for is_free in free]
        weights = np.ones((count, *sides), dtype=self.variances[-1].dtype)
        total = np.zeros(count, dtype=weights.dtype)

        def at(level: int) -> list[Kinds]:
            return [Kinds(tree, level, i, first[i], after[i], sides[i]) for i in range(d)]

        kinds = at(tree.height)
        for level in range(tree.height - 1, -1, -1):
            variances = _chosen(self.variances[level + 1], kinds)
            squares, sums = variances * weights**2, variances * weights
            above = at(level)
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
                shape = (count, *(1,) * i, sides[i])
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
        self,
        tree: BoxTree,
        level: int,
        attribute: int,
        first: Integers,
        after: Integers,
        side: int = 4,
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
        self.number = np.stack(kinds[:side], axis=1).astype(np.int64)
        self.last = np.zeros_like(self.number)
        self.last[:, 1] = 1
        if side == 4:
            self.last[:, 2] = self.start == nodes - 1
            self.last[:, 3] = self.end == nodes - 1
        self._nodes, self._side = nodes, side

    def children(self, below: Kinds) -> Integers:
        """Return how many children of each kind a node of each kind has: (ranges, side, side)."""
        result = np.zeros((len(self.start), self._side, self._side), dtype=np.int64)
        result[:, 0, 0] = self._fanout
        result[:, 1, 0], result[:, 1, 1] = self._in_last - 1, 1
        if self._side == 2:
            return result
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
    """A table by the kinds of nodes: shape (ranges, side, ..)."""
    d = len(kinds)
    where = (
        kind.last.reshape(-1, *(1,) * i, kind.last.shape[1], *(1,) * (d - 1 - i))
        for i, kind in enumerate(kinds)
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


# ------------------------------------------------------------------------------------------------
# The errors of constrained inference and of wavelets.


# ------------------------------------------------------------------------------------------------
# The Haar transform along any axes, and the least-squares estimate from noisy coefficients.
#
# Xiao, Wang, Gehrke 2010. Of n cells: the total, and for every inner node of the binary tree the
# difference left half - right half. Cells beyond n do not exist. If n is no power of two some nodes
# have no right half, their differences tell their counts once more, and there are more coefficients
# than cells: least squares weighs them. Of several axes all products of levels are taken.


class Haar(TreeErrors):
    """The Haar coefficients of n >= 1 cells, and the errors of estimates from them.

    Variances are in units of that of a coefficient, exactly.
    """

    def __init__(self, n: int) -> None:
        tree = BoxTree((n,), ((2,),) * (n - 1).bit_length() or ((1,),))
        # What is known of the count of the last node of each level from below; that of others only
        # by the total. With both halves, the right one of precision p, the node's count is the
        # difference and twice that of the right half.
        known = [Fraction(0)]
        for level in range(tree.height - 1, -1, -1):
            p = known[0]
            if tree.children_of_last(level, 0) == 2:
                known.insert(0, 1 / (1 + 4 / p) if p else p)
            else:
                known.insert(0, p + (n > 1))
        self.known = known
        # A difference tells as much of both halves as a count of each, of variance 1/2
        variances = [np.array([Fraction(1, 2), 1 / (2 + p)], dtype=object) for p in known]
        variances[0][:] = 1 / (1 + known[0])
        super().__init__(tree, variances)

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of coefficients of each level: the total, and the inner nodes from the top."""
        inner = self.tree.nodes[:-1] if self.tree.shape[0] > 1 else ()
        return (1, *(nodes for (nodes,) in inner))

    def coefficients(self, cells: Integers) -> Integers:
        """Return the coefficients, in the order of `levels`, of cells (n, ...)."""
        levels = []
        while len(cells) > 1:
            differences = cells[::2].copy()
            differences[: len(cells) // 2] -= cells[1::2]
            levels.append(differences)
            cells = sums_of_children(cells, (2,))
        return np.concatenate([cells, *levels[::-1]])

    def estimate(self, coefficients: Floats) -> Floats:
        """Return the cells of least squares: shape (n, ...)."""
        total, *levels = np.split(coefficients, np.cumsum(self.levels)[:-1])
        known = [float(p) for p in self.known]
        halves = [self.tree.children_of_last(level, 0) for level in range(len(levels))]
        # What is known of the last nodes from below: a node with both halves is its difference and
        # twice its right half, one without is measured again by its difference
        last = [np.zeros_like(total[0])]
        for level in range(len(levels) - 1, -1, -1):
            difference, below = levels[level][-1], last[0]
            p = known[level + 1]
            last.insert(
                0,
                difference + 2 * below
                if halves[level] == 2
                else (p * below + difference) / (p + 1),
            )
        nodes = (total + known[0] * last[0]) / (1 + known[0])
        # From above: halves are those of the node and its difference, but for the last node's right
        # half, of which there is a measurement of precision p besides one of precision 4
        for level, differences in enumerate(levels):
            children = np.empty((2 * len(nodes), *nodes.shape[1:]))
            children[1::2] = (nodes - differences) / 2
            if halves[level] == 2:
                p = known[level + 1]
                right = p * last[level + 1] + 2 * (nodes[-1] - differences[-1])
                children[-1] = right / (p + 4)
            else:
                children[-1] = 0
            children[::2] = nodes - children[1::2]
            nodes = children[: self.tree.nodes[level + 1][0]]
        return nodes


def blocks(transforms: Sequence[Haar]) -> dict[tuple[int, ...], tuple[slice, ...]]:
    """Return where the coefficients of each product of levels lie."""
    ends = [np.cumsum((0, *haar.levels)).tolist() for haar in transforms]
    levels = product(*(range(len(haar.levels)) for haar in transforms))
    return {
        level: tuple(slice(*end[k : k + 2]) for k, end in zip(level, ends, strict=True))
        for level in levels
    }


def cells_of(
    transforms: Sequence[Haar], levels: Mapping[tuple[int, ...], npt.NDArray[Any]]
) -> Floats:
    """Return the least-squares cells from coefficients by level."""
    cells = np.zeros([sum(haar.levels) for haar in transforms])
    places = blocks(transforms)
    for level, coefficients in levels.items():
        cells[places[level]] = coefficients
    # The weights of a product are products, so that the axes are solved one after another
    for axis, haar in enumerate(transforms):
        cells = np.moveaxis(haar.estimate(np.moveaxis(cells, axis, 0)), 0, axis)
    return cells


def _merged(noise: Any, below: Numbers) -> tuple[Numbers, Numbers]:
    """Return V and h of nodes whose counts have the variances ``noise``, from their S."""
    # The noise may be infinite, and either may be 0
    total = noise + below
    part = np.divide(below, total, out=np.zeros_like(below), where=total != 0)
    # O h and not (1 - h) S, which loses its digits where a count is far better than its leaves.
    # Where h is 0 the children tell all there is, or are certain, and V = S either way
    return np.multiply(noise, part, out=below.copy(), where=part > 0), part


class LevelInference(TreeErrors):
    """Weighted least squares over the levels of a tree whose root is not asked, and its errors.

    `noise` are the variances of the noise of the levels 1 .. height, above 0; None: the level is
    not asked. With Fractions all variances are exact. Where the cells are not asked, errors are
    unknown.
    """

    def __init__(self, tree: BoxTree, noise: Sequence[float | Fraction | None]) -> None:
        kind = object if isinstance(noise[-1], Fraction) else np.float64
        ones: Numbers = np.full((2,) * len(tree.shape), 1, dtype=kind)
        # Below the lowest level that is asked nothing tells cells apart: they share evenly, as if
        # of variance 1 each; and of that level's nodes nothing is known but their own counts
        lowest = max(
            (level for level, level_noise in enumerate(noise, 1) if level_noise is not None),
            default=0,
        )
        variances: list[Numbers] = []
        self._parts: list[Numbers | None] = []  # h
        for level in range(tree.height, -1, -1):
            below = children_sums(tree, level, variances[-1]) if variances else ones
            level_noise = noise[level - 1] if level else None
            variance, part = below, None
            if level_noise is not None:
                variance, part = (
                    _merged(level_noise, below) if level < lowest else (level_noise * ones, ones)
                )
            variances.append(variance)
            self._parts.append(part)
        self._parts.reverse()
        super().__init__(tree, variances[::-1])

    def estimate(self, noisy: Sequence[npt.NDArray[Any]], root: float | None = None) -> Floats:
        """Return the cells of least squares."""
        tree, h = self.tree, self.tree.height
        best: list[Floats] = [np.zeros(tree.shape)] * (h + 1)
        for level in range(h, 0, -1):
            part, below = self._parts[level], best[level]
            if part is not None:
                below += scaled(noisy[level - 1] - below, part)
            best[level - 1] = sums_of_children(below, tree.fanouts[level - 1])
        solution = best[0] if root is None else np.full_like(best[0], root)
        for level in range(h):
            # Children are added up once more, which is less memory than to keep all sums
            missing = solution - sums_of_children(best[level + 1], tree.fanouts[level])
            scaled(missing, 1 / self.sums[level])
            solution = best[level + 1]
            for i, nodes in enumerate(solution.shape):
                missing = np.repeat(missing, tree.fanouts[level][i], axis=i)
                missing = missing[(slice(None),) * i + (slice(nodes),)]
            solution += scaled(missing, self.variances[level + 1])
        return solution


class TreeInference:
    """Weighted least squares over any tree, and the variances of what it estimates.

    Shapes: `parents` (nodes,), the number of each node's parent, which is smaller than its own, -1
    for roots, nodes of less depth first; `noise` (nodes,), O, the variances that counts are
    weighted by, at least 0, infinite where a node was not asked. Leaves are.
    """

    def __init__(self, parents: Integers, noise: Floats) -> None:
        self.parents, self.noise = parents, noise
        self._levels = _levels(parents)
        inner = np.zeros(len(parents), dtype=np.bool_)
        inner[parents[parents >= 0]] = True
        below = np.zeros(len(parents))  # S
        variances = np.where(inner, 0.0, noise)  # V
        self._part = np.where(inner, 0.0, 1.0)  # h: of a leaf only its own count is known
        for nodes, above in self._upwards():
            here = nodes[inner[nodes]]
            variances[here], self._part[here] = _merged(noise[here], below[here])
            _add(below, above, variances[nodes])
        whole = np.where(parents >= 0, below[parents], 0.0)
        # Parts that all are certain have nothing to share
        self._share = np.where(whole > 0, variances / np.where(whole > 0, whole, 1.0), 0.0)

    def sums(self, leaves: Floats) -> Floats:
        """The sums of the leaves below each node; of inner nodes the values are 0."""
        result = leaves.copy()
        for nodes, above in self._upwards():
            _add(result, above, result[nodes])
        return result

    def above(self, values: Floats) -> Floats:
        """The sums of values of each node and of those that it is a part of."""
        result = values.copy()
        for nodes, above in self._downwards():
            result[nodes] += result[above]
        return result

    def _upwards(self) -> list[tuple[Integers, Integers]]:
        """The nodes of each depth and their parents, the deepest first."""
        return [(nodes, self.parents[nodes]) for nodes in reversed(self._levels)]

    def _downwards(self) -> list[tuple[Integers, Integers]]:
        """The nodes of each depth but the first, and their parents."""
        return [(nodes, self.parents[nodes]) for nodes in self._levels[1:]]

    def estimate(self, counts: Floats) -> Floats:
        """The least squares estimates of all nodes: those of children add up to their parent's."""
        best, below = np.zeros(len(counts)), np.zeros(len(counts))
        for nodes, above in self._upwards():
            part = self._part[nodes]
            best[nodes] = (1 - part) * below[nodes] + part * counts[nodes]
            _add(below, above, best[nodes])
        for nodes, above in self._downwards():
            best[nodes] += self._share[nodes] * (best[above] - below[above])
        return best

    def variances(self, true: Floats) -> Floats:
        """Return the variances of the estimates of all nodes, in one pass over the tree each way.

        It is linear in the variances of the counts, `true` (nodes,): unbiased estimates of these
        give unbiased estimates.
        """
        # x = kept best + apart, where what is apart is independent of the node's own part of the
        # tree; ``loose`` is the variance of that
        best, below = np.zeros(len(true)), np.zeros(len(true))
        for nodes, above in self._upwards():
            part = self._part[nodes]
            best[nodes] = (1 - part) ** 2 * below[nodes] + part**2 * true[nodes]
            _add(below, above, best[nodes])
        kept, loose = np.ones(len(true)), np.zeros(len(true))
        for nodes, above in self._downwards():
            part, share = self._part[above], self._share[nodes]
            missing = kept[above] * (1 - part) - 1
            kept[nodes] = 1 + share * missing
            others = missing**2 * (below[above] - best[nodes])
            measurement = (kept[above] * part) ** 2 * true[above]
            loose[nodes] = share**2 * (others + measurement + loose[above])
        return kept**2 * best + loose

    def coefficients(self, weights: Floats) -> Floats:
        """The weights of the counts in a weighted sum of the estimates of nodes: (nodes,)."""
        # The passes of `estimate` backwards
        final, of_best, of_below = weights.copy(), np.zeros_like(weights), np.zeros_like(weights)
        for nodes, above in reversed(self._downwards()):
            passed = self._share[nodes] * final[nodes]
            _add(final, above, passed)
            _add(of_below, above, -passed)
        of_best += final
        of_below += (1 - self._part) * of_best
        for nodes, above in self._downwards():
            of_best[nodes] += of_below[above]
            of_below[nodes] += (1 - self._part[nodes]) * of_below[above]
        return self._part * of_best


def _levels(parents: Integers) -> list[Integers]:
    """The nodes of each depth, from the roots down."""
    depths = np.zeros(len(parents), dtype=np.int64)
    for node, parent in enumerate(parents.tolist()):
        depths[node] = depths[parent] + 1 if parent >= 0 else 0
    ends = np.flatnonzero(np.diff(depths)) + 1
    return np.split(np.arange(len(parents)), ends)


def _add(sums: Floats, places: Integers, values: Floats) -> None:
    """Add values to the sums of their places, but for those of roots."""
    inside = places >= 0
    np.add.at(sums, places[inside], values[inside])


def contrast_precisions(tree: Tree, precisions: Sequence[Any] | Floats) -> npt.NDArray[Any]:
    """Return the precisions Q_1 .. Q_height of contrasts among the children of nodes, by level."""
    # A contrast at a node of level j is seen by every level below, by level l through sums over the
    # nodes under each child. So Q_{j+1} is the sum over l > j of tau_l / (number of level-l nodes
    # under a child): 1/V of the module's recurrence. With equal precisions the weights of both
    # passes are the printed (B^i - B^(i-1)) / (B^i - 1) and (B^(i-1) - 1) / (B^i - 1).
    # In precisions, as levels on which nobody reports have none: variances would be infinite
    result = np.array(precisions, dtype=np.result_type(np.asarray(precisions), np.float64))
    for level in range(tree.height - 2, -1, -1):
        result[level] += result[level + 1] / tree.branching[level + 1]
    return result


def consistent(
    tree: Tree, estimates: Sequence[Floats], precisions: Sequence[float] | Floats, root: float = 1.0
) -> Floats:
    """Return the leaves of least squares under a known root.

    Parameters
    ----------
    tree : Tree
        The tree.
    root : float, default 1.0
        The sum of all leaves.
    estimates : sequence of numpy.ndarray of float64
        One array for each level 1 .. height: shape (nodes of the level,).
    precisions : sequence of float or numpy.ndarray of float64
        tau_l of each level, at least 0; of one of precision 0 the estimates may be anything.

    Returns
    -------
    numpy.ndarray of float64
        Shape (leaves,). Where no level tells the children of a node apart, they share equally.
    """
    boxes = BoxTree((tree.leaves,), tuple((size,) for size in tree.branching))
    noise = [1 / float(precision) if precision else None for precision in precisions]
    return LevelInference(boxes, noise).estimate(estimates, root)
