"""The mixture of most likelihood: Kiefer and Wolfowitz's estimate of a mixing distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

Array = npt.NDArray[np.float64]

_FIRST = 20
"""Rounds of expectation maximisation, after which the places of atoms show."""

_ROUNDS = 200
_LEAST = 1e-13
"""The least weight of an atom: what is below cannot be told from 0."""


def likeliest_mixture(kernel: Any, counts: Array, tolerance: float = 1e-8) -> Array:
    """The weights p that maximise sum_r counts_r log (kernel @ p)_r over all distributions.

    The objective is concave, and its directional derivatives towards each single atom bound how far
    it is from its maximum: at p with g = kernel @ p, sum_r counts_r log(g*_r / g_r) <= the sum of
    the counts times (max_j D_j - 1), where D_j is the mean over the counts of kernel_rj / g_r, as
    log t <= t - 1. It returns once that bound is below ``tolerance`` per count.

    The method is the constrained Newton method of Y. Wang, *On fast computation of the
    non-parametric maximum likelihood estimate of a mixing distribution*, JRSS B 69 (2007): atoms
    are added where D has a local maximum above 1, and all weights follow a quadratic model of the
    objective, halved until it grows. As in Y. Kim, P. Carbonetto, M. Stephens and M. Anitescu, *A
    fast algorithm for maximum likelihood estimation of mixture proportions using sequential
    quadratic programming*, JCGS 29 (2020), the sum is free in the model: the maximum of
    the objective less the sum of the weights has sum 1 of itself.

    Parameters
    ----------
    kernel : numpy.ndarray or scipy.sparse array
        Shape (rows, atoms): non-negative likelihoods of each row under each atom; every row has one
        that is positive. The factors of rows cancel.
    counts : numpy.ndarray of float64
        Shape (rows,): how often each row was observed, above 0.
    tolerance : float, default 1e-8
        The bound at which it returns, per observation, in natural logarithms.

    Returns
    -------
    numpy.ndarray of float64
        Shape (atoms,): weights, most of them 0, with sum 1.
    """
    share = counts / counts.sum()
    columns = scipy.sparse.csc_array(kernel)
    p = np.full(columns.shape[1], 1.0 / columns.shape[1])
    for _ in range(_FIRST):
        p *= columns.T @ (share / (columns @ p))
        p /= p.sum()
    whole = p
    p = _at_peaks(whole)
    if (columns @ p).min() <= 0.0:
        p = whole
    for _ in range(_ROUNDS):
        g = columns @ p
        derivatives = columns.T @ (share / g)
        if derivatives.max() <= 1.0 + tolerance:
            break
        ends = np.pad(derivatives, 1, constant_values=-1.0)
        peaks = (derivatives >= ends[:-2]) & (derivatives >= ends[2:]) & (derivatives > 1.0)
        atoms = np.flatnonzero((p > 0.0) | peaks)
        some = columns[:, atoms]
        relative = scipy.sparse.diags_array(1.0 / g) @ some
        curvature = (relative.T @ scipy.sparse.diags_array(share) @ relative).toarray()
        curvature[np.diag_indices_from(curvature)] += 1e-12 * curvature.diagonal().max()
        gradient = derivatives[atoms] - 1.0
        step = _quadratic(curvature, gradient + curvature @ p[atoms], p[atoms]) - p[atoms]
        change, rise, total = relative @ step, float(gradient @ step), float(step.sum())
        length = 1.0
        while length > 1e-9:
            ratio = 1.0 + length * change
            if ratio.min() > 0.0 and share @ np.log(ratio) - length * total >= 0.01 * length * rise:
                break
            length /= 2.0
        else:  # no step that floats can tell from none grows the likelihood
            break
        p[atoms] = np.maximum(p[atoms] + length * step, 0.0)
        p[p < _LEAST * p.max()] = 0.0
        p /= p.sum()
    return p


def _at_peaks(weights: Array) -> Array:
    """Weights gathered at their local maxima: each from the basin around it."""
    ends = np.pad(weights, 1, constant_values=-1.0)
    peaks = np.flatnonzero((weights >= ends[:-2]) & (weights > ends[2:]))
    between = [
        first + int(np.argmin(weights[first:last]))
        for first, last in zip(peaks[:-1].tolist(), peaks[1:].tolist(), strict=True)
    ]
    basins = np.add.reduceat(weights, [0, *between])
    gathered = np.zeros_like(weights)
    gathered[peaks] = basins / basins.sum()
    return gathered


def _quadratic(h: Array, r: Array, start: Array) -> Array:
    """The x >= 0 that minimises x'hx / 2 - r'x, from a start: Lawson and Hanson's active sets."""
    x, free = start.copy(), start > 0.0
    for _ in range(4 * len(x) + 100):
        while free.any():
            places = np.flatnonzero(free)
            solution = scipy.linalg.solve(h[np.ix_(places, places)], r[places], assume_a="sym")
            blocked = solution <= 0.0
            if not blocked.any():
                x[:] = 0.0
                x[places] = solution
                break
            now = x[places]
            length = now[blocked] / (now[blocked] - solution[blocked] + 1e-300)
            x[places] = np.maximum(now + length.min() * (solution - now), 0.0)
            out = places[blocked][np.argmin(length)]
            x[out], free[out] = 0.0, False
        gradient = np.where(free, -np.inf, r - h @ x)
        entering = int(np.argmax(gradient))
        if gradient[entering] <= 1e-11:
            break
        free[entering] = True
    return x
