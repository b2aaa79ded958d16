"""What reports tell of local terms: posteriors and evidence of all their coefficients.

For terms D(x, y) = p(x) q(y) sum_ij c_ij w_i(x) v_j(y) of a pair, with c_ij ~ N(0, tau^2), beside a
table that is known. The scores that it leaves unexplained have the mean I N G D H and the
covariance I N G x H: with functions orthogonal under G and under H coefficients are told one by
one, but for what reports on halves tell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mechdesign.base.arrays import Floats
from rangeq.grids.wavegrid.interactions import Pair
from rangeq.grids.wavegrid.term_kinds import TermBasis

SCALES = np.geomspace(0.02, 16.0, 12)
"""tau, each as likely: relative deviations of a density from P."""


def scores_of(unexplained: Floats, both: tuple[TermBasis, TermBasis]) -> Floats:
    """Of the coefficients of local terms.

    Parameters
    ----------
    unexplained : numpy.ndarray of float64
        What a fit leaves in the table: shape (cells, cells), see `Pair.unexplained`.
    both : tuple of (TermBasis, TermBasis)
        The functions of both attributes.

    Returns
    -------
    numpy.ndarray of float64
        Shape (functions of the first, of the second).
    """
    left, right = both
    return np.asarray(left.functions.T @ unexplained @ right.functions)


class Shrinkage(NamedTuple):
    """What reports tell of the coefficients of a kind of local terms, whatever they say.

    For each tau of `SCALES`. The precision of the coefficients is diagonal but for the outer
    product of what reports on halves tell (Sherman and Morrison).

    Attributes
    ----------
    alone : numpy.ndarray of float64
        Their variances without reports on halves: shape (scales, a, b).
    along : numpy.ndarray of float64
        These times what reports on halves tell: shape (scales, a, b).
    stretched, lost : numpy.ndarray of float64
        The factor that halves add to the determinant of tau^2 times the precision, and the
        logarithm of that: shape (scales,).
    """

    alone: Floats
    along: Floats
    stretched: Floats
    lost: Floats

    @classmethod
    def of(cls, pair: Pair, both: tuple[TermBasis, TermBasis]) -> Shrinkage:
        """For a kind of terms.

        Parameters
        ----------
        pair : Pair
            What is known of it.
        both : tuple of (TermBasis, TermBasis)
            The functions of both attributes.

        Returns
        -------
        Shrinkage
            Of their products.
        """
        left, right = both
        precision = pair.precision * np.outer(left.told, right.told)
        halves = np.sqrt(pair.halves.precision) * np.outer(
            left.functions.T @ pair.halves.left, right.functions.T @ pair.halves.right
        )
        grown = 1 + np.multiply.outer(SCALES**2, precision)
        alone = (SCALES**2)[:, None, None] / grown
        along = alone * halves
        stretched = 1 + _sums(along, halves)
        return cls(alone, along, stretched, np.log(grown).sum(axis=(1, 2)) + np.log(stretched))

    def evidence(self, scores: Floats) -> Floats:
        """The logarithms of it, beyond that of no terms: shape (scales,)."""
        pulled = _sums(self.along, scores) ** 2 / self.stretched
        told = _sums(self.alone, scores**2)
        return np.asarray(0.5 * (told - pulled - self.lost))

    def times_covariance(self, tables: Floats) -> Floats:
        """Some tables of coefficients times the covariance of these.

        Parameters
        ----------
        tables : numpy.ndarray of float64
            Shape (tables, a, b).

        Returns
        -------
        numpy.ndarray of float64
            Shape (scales, tables, a b).
        """
        flat = tables.reshape(len(tables), self.along[0].size)
        along = self.along.reshape(len(SCALES), 1, flat.shape[1])
        pulled = (along @ flat.T).transpose(0, 2, 1) / self.stretched[:, None, None]
        result = self.alone.reshape(along.shape) * flat
        result -= pulled * along
        return np.asarray(result)

    def posterior(self, scores: Floats) -> tuple[Floats, Floats]:
        """Means and variances of the coefficients: shape (scales, a, b)."""
        means = self.times_covariance(scores[None]).reshape(self.alone.shape)
        # Of the others halves tell at least nothing
        stretched = self.stretched[:, None, None]
        others = np.maximum(stretched - self.along**2 / self.alone, 1.0)
        return means, self.alone * (others / stretched)


def _sums(tables: Floats, weights: Floats) -> Floats:
    """Of the products of each table with the weights: shape (tables,)."""
    return np.asarray(tables.reshape(len(tables), -1) @ weights.ravel())
