"""Histograms that might be true: without negative numbers, or of whole users.

They are biased, and have no variances: cells that are empty become positive on average. What is
unbiased is the estimate that they are made from.
"""

from __future__ import annotations

import numpy as np
import scipy

from mechdesign.base.arrays import Floats, Integers
from rangeq.central.matrix_mechanism.strategy import Strategy

_ROUNDS = 2000


def nonnegative_counts(strategy: Strategy, estimate: Floats) -> Floats:
    """The least-squares estimate among histograms without negative numbers.

    It minimises (x - z)'M'M (x - z) over x >= 0, for the unbiased estimate z: the distance of the
    strategy's numbers from the noisy ones.

    Parameters
    ----------
    strategy : Strategy
        Of the estimate.
    estimate : numpy.ndarray of float64
        z, of shape ``strategy.sizes``.

    Returns
    -------
    numpy.ndarray of float64
        Of the same shape.
    """
    unit = float(strategy.l2_squared)
    scale = max(float(np.abs(estimate).max()), 1.0)
    target = estimate / scale

    def distance(flat: Floats) -> tuple[float, Floats]:
        away = flat.reshape(estimate.shape) - target
        slope = strategy.normal(away) / unit
        return 0.5 * float(np.sum(away * slope)), slope.ravel()

    found = scipy.optimize.minimize(
        distance,
        np.maximum(target, 0.0).ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=scipy.optimize.Bounds(0.0, np.inf),
        options={"maxiter": _ROUNDS, "maxfun": 2 * _ROUNDS, "ftol": 1e-15, "gtol": 1e-10},
    )
    result: Floats = scale * found.x.reshape(estimate.shape)
    return result


def whole_counts(counts: Floats) -> Integers:
    """Whole numbers next to others, of the same total up to rounding that.

    Numbers are rounded down; the largest remainders are rounded up instead.

    Parameters
    ----------
    counts : numpy.ndarray of float64
        At least 0.

    Returns
    -------
    numpy.ndarray of int64
        Of the same shape: each less than 1 away.
    """
    flat = counts.ravel()
    down = np.floor(flat)
    up = round(float(flat.sum() - down.sum()))
    # The first of equal remainders, so that the result is the same everywhere
    order = np.argsort(down - flat, kind="stable")[:up]
    whole: Integers = down.astype(np.int64)
    whole[order] += 1
    return whole.reshape(counts.shape)
