"""The mixture of most likelihood: Kiefer and Wolfowitz's estimate of a mixing distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base.linear_algebra import cholesky

Array = npt.NDArray[np.float64]

_FIRST = 20
"""Rounds of expectation maximisation, after which the places of atoms show."""

_ROUNDS = 200
_LEAST = 1e-13
"""The least weight of an atom: what is below cannot be told from 0."""


def likeliest_mixture(kernel: Any, counts: Array, tolerance: float = 1e-8) -> Array:
    """Return the weights p that maximise sum_r counts_r log (kernel @ p)_r over distributions.

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

    Shapes: `kernel` (rows, atoms), `counts` (rows,); returns (atoms,).
    """
    share = counts / counts.sum()
    columns = scipy.sparse.csc_array(kernel)
    p = np.full(columns.shape[1], 1.0 / columns.shape[1])
    # EM is slow at the end, and quick at the beginning: after a few rounds the likely places show.
    for _ in range(_FIRST):
        p *= columns.T @ (share / (columns @ p))
        p /= p.sum()
    whole = p
    # Few atoms from here on, since the model below is dense in them: some optimum has no more atoms
    # than there are different rows (Lindsay 1983).
    p = _at_peaks(whole)
    if (columns @ p).min() <= 0.0:
        p = whole
    for _ in range(_ROUNDS):
        g = columns @ p
        derivatives = columns.T @ (share / g)
        # KKT: at the optimum D is 1 at every atom and at most 1 elsewhere.
        if derivatives.max() <= 1.0 + tolerance:
            break
        ends = np.pad(derivatives, 1, constant_values=-1.0)
        # Atoms are added at local maxima of D only: its neighbours are all above 1, too, and say
        # the same.
        peaks = (derivatives >= ends[:-2]) & (derivatives >= ends[2:]) & (derivatives > 1.0)
        atoms = np.flatnonzero((p > 0.0) | peaks)
        some = columns[:, atoms]
        relative = scipy.sparse.diags_array(1.0 / g) @ some
        gradient = derivatives[atoms] - 1.0
        step = _maximum(relative, share, gradient, p[atoms]) - p[atoms]
        change, rise, total = relative @ step, float(gradient @ step), float(step.sum())
        length = 1.0
        while length > 1e-9:
            ratio = 1.0 + length * change
            # Armijo's rule, for the objective less the sum of the weights. By ratios to the present
            # point, so that a gain of 1e-12 is not lost in the size of the objective.
            if ratio.min() > 0.0 and share @ np.log(ratio) - length * total >= 0.01 * length * rise:
                break
            length /= 2.0
        else:  # no step that floats can tell from none grows the likelihood
            break
        p[atoms] = np.maximum(p[atoms] + length * step, 0.0)
        # What is dropped may come back: D says so in the next round.
        p[p < _LEAST * p.max()] = 0.0
        p /= p.sum()
    return p


def _at_peaks(weights: Array) -> Array:
    """Return weights gathered at their local maxima: each from the basin around it."""
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


def _maximum(relative: Any, share: Array, gradient: Array, start: Array) -> Array:
    """Return the x >= 0 at which the quadratic model of the objective at a start is largest.

    The curvature is W'W for the rows W = sqrt(share) relative: a product, so it has a Cholesky
    factor in every order of summation. With curvature = U'U, the model is least squares in U x.
    """
    rows = scipy.sparse.diags_array(np.sqrt(share)) @ relative
    curvature = (rows.T @ rows).toarray()
    diagonal = np.full(len(curvature), 1e-12 * curvature.diagonal().max())
    root = cholesky(curvature, diagonal)
    target = root.T @ start + scipy.linalg.solve_triangular(root, gradient, lower=True)
    most = 10 * len(root) + 100
    return np.asarray(scipy.optimize.nnls(root.T, target, maxiter=most)[0], dtype=np.float64)
