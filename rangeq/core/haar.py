"""The Haar transform along any axes, and the least-squares estimate from noisy coefficients.

Xiao, Wang, Gehrke 2010. Of n cells: the total, and for every inner node of the binary tree the
difference left half - right half. Cells beyond n do not exist. If n is no power of two some nodes
have no right half, their differences tell their counts once more, and there are more coefficients
than cells: least squares weighs them. Of several axes all products of levels are taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers
from rangeq.core.boxes import BoxTree, sums_of_children
from rangeq.core.tree_errors import TreeErrors


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
            own, below = levels[level][-1], last[0]
            p = known[level + 1]
            last.insert(0, own + 2 * below if halves[level] == 2 else (p * below + own) / (p + 1))
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
