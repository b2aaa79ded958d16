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
        """The variances of the sums over ranges: O(height) for each.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Integer arrays of one shape, 0 <= first <= last < leaves.

        Returns
        -------
        numpy.ndarray of float64
            Of the ends' shape.
        """
        share = (last - first + 1) / self.tree.leaves
        contrasts = np.array([float(variance) for variance in self.contrasts])
        return share**2 * float(self.everything) + self.tree.range_form(first, last, contrasts)

    def mean(self, moments: Sequence[Fraction], d: int = 1) -> Fraction:
        """The mean variance of the queries of a workload, exactly.

        Parameters
        ----------
        moments : sequence of Fraction
            `Tree.moments` of the workload.
        d : int, default 1
            The dimensions: with several, of all boxes of such queries.

        Returns
        -------
        Fraction
            In the unit of the variances.
        """
        total = self.everything * (moments[0] / self.tree.leaves) ** d
        for (above, below), width, variance in zip(
            pairwise(moments), self.tree.widths, self.contrasts, strict=True
        ):
            total += variance * (below**d - above**d) / width**d
        return total


def tree_over(domain: int, fanouts: Sequence[int]) -> Tree:
    """The tree with so many children of each node from the top.

    Parameters
    ----------
    domain : int
        The number of cells, at least 1.
    fanouts : sequence of int
        From the root down.

    Returns
    -------
    Tree
        That of a single cell gets a second leaf, which nobody asks for.
    """
    return Tree(domain, (max(2, fanouts[0]), *fanouts[1:]))


def tree_spectrum(tree: Tree, variances: Sequence[Fraction | None], d: int = 1) -> Spectrum:
    """The spectrum of least squares on a tree whose root is not asked.

    So the total is what the top nodes sum to.

    Parameters
    ----------
    tree : Tree
        The tree.
    variances : sequence of Fraction or None
        The variance of the noise of each level from the top; None: the level is not asked.
    d : int, default 1
        The dimensions: a tree that splits each in this way.

    Returns
    -------
    Spectrum
        Exactly.
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
    """The mean variance over all ranges, or boxes, as sums of the fewest nodes.

    Parameters
    ----------
    tree : Tree
        The tree.
    variances : sequence of Fraction or None
        The variance of the noise of each level from the top; None: the level is not asked, and
        counts as without noise.
    d : int, default 1
        The dimensions: with several, the mean over all boxes.

    Returns
    -------
    Fraction
        Exactly.
    """
    used = zip(nodes_used(tree, root=False, d=d), variances, strict=True)
    return (
        sum((n * v for n, v in used if v is not None), Fraction(0))
        / queries(tree.domain, "all ranges") ** d
    )
