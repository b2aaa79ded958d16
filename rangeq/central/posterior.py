"""The posterior of a released histogram: a positive distribution, decided by evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from frequency.core import Answer, cut, normal_quantile
from mechdesign.base import Floats, Integers, one_thread
from mechdesign.exceptions import MechanismError
from rangeq.central.estimate import Errors, Summed
from rangeq.core import KERNELS, Told, posterior_densities

#: The most cells of a histogram with a posterior.
MOST_CELLS = 1 << 9


class NoPosterior(MechanismError, ValueError):
    """There are no users to be distributed, or too many cells or attributes."""


class PosteriorErrors:
    """The expected squared errors of sums of cells, from a posterior covariance.

    Parameters
    ----------
    covariance : numpy.ndarray of float64
        Shape (cells, cells): squared users.
    """

    def __init__(self, covariance: Floats) -> None:
        self._covariance = covariance
        self._sums = np.pad(covariance.cumsum(axis=0).cumsum(axis=1), (1, 0))

    def variance(self, first: Integers, last: Integers) -> Floats:
        """Return those of the sums over ranges: see `Errors`.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Shape (1, ranges): closed ends.

        Returns
        -------
        numpy.ndarray of float64
            Shape (ranges,): squared users.
        """
        low, high = first[0], last[0] + 1
        sums = self._sums
        ranges = sums[high, high] - sums[low, high] - sums[high, low] + sums[low, low]
        return np.maximum(ranges, 0.0)

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """Return that of the sum over a set of cells: see `Errors`.

        Parameters
        ----------
        weights : sequence of numpy.ndarray of float64
            One array, of shape (cells,): 1 for the cells in the set, else 0.

        Returns
        -------
        float
            Squared users.
        """
        (one,) = weights
        return max(float(one @ self._covariance @ one), 0.0)

    def mean(self) -> float:
        """The mean over all ranges, in squared users."""
        cells = np.arange(len(self._covariance))
        first, last = np.meshgrid(cells, cells, indexing="ij")
        kept = first <= last
        return float(self.variance(first[kept][None], last[kept][None]).mean())


class PosteriorEstimate(Summed):
    """What a histogram probably is, given what was released of it: never negative.

    The noisy numbers are the data, the noise that was drawn the likelihood, by its variances. The
    prior takes the logarithm of the distribution for a Gaussian process: smooth, with a trend, with
    points or ends of their own, even; which of these is decided by their evidence, see
    `rangeq.core.density`. Nothing is spent, and nothing of the table is looked at again.

    Answers are biased: where data are as the priors have them they err less than the unbiased ones,
    at low epsilon by a third, and intervals are shorter. Their variances are expected squared
    errors, intervals hold on average over questions and kinds of data, not for each: at steps and
    spikes that the noise just hides they hold less often.

    Attributes
    ----------
    mechanism : HistogramMechanism
        What released it.
    counts : numpy.ndarray of float64
        The expected number of users in each cell, read-only.
    """

    def __init__(self, mechanism: Any, cells: Floats, covariance: Floats) -> None:
        super().__init__(mechanism, cells)
        self._own = PosteriorErrors(covariance)

    @property
    def _errors(self) -> Errors:
        return self._own

    def half_width(self, deviation: Any, confidence: float) -> Any:
        return normal_quantile(confidence) * deviation

    def _answered(self, value: Any, variance: Any) -> Answer:
        return cut(super()._answered(value, variance), 0.0, np.inf)


@one_thread
def posterior_of(
    mechanism: Any, estimate: Floats, precision: Floats, variance: float
) -> PosteriorEstimate:
    """Return the posterior of a histogram of one attribute.

    Parameters
    ----------
    mechanism : HistogramMechanism
        What released it.
    estimate : numpy.ndarray of float64
        Shape (cells,): the unbiased least squares estimate.
    precision : numpy.ndarray of float64
        Shape (cells, cells): the inverse of its covariance matrix.
    variance : float
        Of the estimated number of users.

    Returns
    -------
    PosteriorEstimate
        For the estimated number of users.

    Raises
    ------
    NoPosterior
        The estimated number of users is below 1.
    """
    users = float(estimate.sum())
    if not users >= 1:
        raise NoPosterior(
            f"the estimated number of users is {users:.4g}: noise hides that there are any"
        )
    told = Told(users * (precision @ estimate), users**2 * precision, np.ones(len(estimate)))
    (density,) = posterior_densities([told], KERNELS)
    shares = density.frequencies
    # Of a number of users that is not known either
    covariance = users**2 * density.covariance + variance * np.outer(shares, shares)
    return PosteriorEstimate(mechanism, users * shares, covariance)
