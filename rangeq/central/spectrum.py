"""Variances of ranges under exact noise: one for each level of contrasts, and one for the total.

Both least squares on a complete tree and the Haar wavelet have the generalised Haar basis as
eigenvectors of their precision matrix: the contrasts among the children of a node, with one
eigenvalue a level (see `rangeq.core.tree`), and the vector of ones. Padding beyond the domain is
not known to be empty, nor the total: unlike under local privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mechdesign._support.arrays import Floats, Integers
from rangeq.core.node_decomposition import nodes_used
from rangeq.core.tree import Tree
from rangeq.core.tree_consistency import contrast_precisions
from rangeq.core.workload_sums import queries


class Spectrum(NamedTuple):
    """The variances of a tree's estimates, in its generalised Haar basis.

    Attributes
    ----------
    tree : Tree
        The tree.
    everything : Fraction
        The variance of the sum of all leaves.
    contrasts : tuple of Fraction
        Those of a contrast of unit length among the children of nodes of the levels 0 .. height -
        1.
    """

    tree: Tree
    everything: Fraction
    contrasts: tuple[Fraction, ...]

    def variance(self, first: Integers, last: Integers) -> Floats:
        """The variances of the sums over first .. last, of any one shape: O(height) for each."""
        share = (last - first + 1) / self.tree.leaves
        contrasts = np.array([float(variance) for variance in self.contrasts])
        return share**2 * float(self.everything) + self.tree._range(first, last, contrasts)

    def mean(self, moments: Sequence[Fraction], d: int = 1) -> Fraction:
        """The mean variance of queries of these `Tree.moments`.

        With d dimensions: of all boxes of such queries.
        """
        total = self.everything * (moments[0] / self.tree.leaves) ** d
        for (above, below), width, variance in zip(
            pairwise(moments), self.tree.widths, self.contrasts, strict=True
        ):
            total += variance * (below**d - above**d) / width**d
        return total


def tree_over(domain: int, fanouts: Sequence[int]) -> Tree:
    """The tree with so many children of each node from the top.

    That of a single cell gets a second, which nobody asks for.
    """
    return Tree(domain, (max(2, fanouts[0]), *fanouts[1:]))


def tree_spectrum(tree: Tree, variances: Sequence[Fraction | None], d: int = 1) -> Spectrum:
    """Least squares on a tree whose level l has noise of variance variances[l].

    None: the level is not asked. The root is not, so the total is what the top nodes sum to. With d
    dimensions: a tree that splits each in this way.
    """
    precisions = contrast_precisions(
        tree, [Fraction(0) if v is None else 1 / v for v in variances], d
    )
    return Spectrum(
        tree,
        tree.branching[0] ** d / precisions[0],
        tuple(1 / precision for precision in precisions),
    )


def average_of_nodes(tree: Tree, variances: Sequence[Fraction | None], d: int = 1) -> Fraction:
    """The mean variance over all ranges, or boxes, as sums of the fewest nodes."""
    used = zip(nodes_used(tree, root=False, d=d), variances, strict=True)
    return (
        sum((n * v for n, v in used if v is not None), Fraction(0))
        / queries(tree.domain, "all ranges") ** d
    )
