"""Constrained inference: the least-squares estimate from noisy counts of all levels of a tree.

Hay et al. 2010; Qardaji, Yang, Li 2013, section 3.3, for levels of any variances, any number of
attributes, and nodes of different numbers of children: cells beyond the ends of the attributes do
not exist.

From below, a node's count is estimated by its own noisy count and its children's estimates, of
variance V; by the children's alone, which add up, of variance S, the sum of their V. From above,
child c is given the part V_c / S of what its parent's final estimate differs from that sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechdesign.base.linear_algebra import Floats, Integers
from rangeq.central.box_tree import BoxTree, sums_of_children
from rangeq.central.tree_errors import TreeErrors, by_node, children_sums


class Inference(TreeErrors):
    """Weighted least squares over the levels of a tree, and its errors.

    Parameters
    ----------
    tree : BoxTree
        The tree; its root is not asked.
    noise : sequence of float or Fraction or None
        The variances of the noise of the levels 1 .. height; None: the level is not asked. The
        cells are. With Fractions all variances are exact.
    """

    def __init__(self, tree: BoxTree, noise: Sequence[float | Fraction | None]) -> None:
        self.noise = (None, *noise)
        kind = object if isinstance(noise[-1], Fraction) else np.float64
        variances = [np.full((2,) * len(tree.shape), noise[-1], dtype=kind)]
        for level in range(tree.height - 1, -1, -1):
            below, own = children_sums(tree, level, variances[-1]), self.noise[level]
            variances.append(below if own is None else 1 / (1 / own + 1 / below))
        super().__init__(tree, variances[::-1])

    def estimate(self, noisy: Sequence[Integers]) -> Floats:
        """The cells, from noisy counts."""
        tree, h = self.tree, self.tree.height
        best: list[Floats] = [np.zeros(0)] * (h + 1)
        best[h] = noisy[-1].astype(np.float64)
        for level in range(h - 1, -1, -1):
            below = sums_of_children(best[level + 1], tree.fanouts[level])
            if self.noise[level] is not None:
                # V / S of what the children say, and the rest of the node's own count
                part = by_node(tree, self.variances[level] / self.sums[level], level)
                below += (1 - part) * (noisy[level - 1] - below)
            best[level] = below
        solution = best[0]
        for level in range(h):
            missing = solution - sums_of_children(best[level + 1], tree.fanouts[level])
            missing /= by_node(tree, self.sums[level], level)
            solution = best[level + 1]
            for i, nodes in enumerate(solution.shape):
                missing = np.repeat(missing, tree.fanouts[level][i], axis=i)
                missing = missing[(slice(None),) * i + (slice(nodes),)]
            missing *= by_node(tree, self.variances[level + 1], level + 1)
            solution += missing
        return solution
