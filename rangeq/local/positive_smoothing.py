"""The most probable distribution of a Gaussian posterior on a circular domain: a convex problem.

By the alternating direction method of multipliers: the quadratic part is diagonal plus low rank in
the frequencies, the constraints are item by item.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from frequency.postprocess import norm_sub
from mechdesign.base.arrays import Floats
from mechdesign.base.definite import posterior_root
from rangeq.local.circle_coordinates import coordinates, items_of

_TURNS, _EVERY = 1000, 10
"""How often at most, and how often in between two looks at what is achieved."""

_RELAXED = 1.6
"""By what factor a step goes beyond the point that it is drawn to."""

_STIFF = 10.0
"""The first penalty of what violates the constraints, in typical precisions of the posterior."""

_BALANCE = 3.0
"""The ratio of the two residuals at which the penalty changes."""


class MostProbable(NamedTuple):
    """A distribution, and whether it is as near to the optimum as was asked for."""

    distribution: Floats
    converged: bool


def most_probable(
    mean: Floats,
    precisions: Floats,
    lean: Floats,
    root: Floats,
    shape: tuple[int, int],
    tolerance: float,
) -> MostProbable:
    """The distribution x that minimises (x - mean)' C^-1 (x - mean), C the posterior's covariance.

    In `coordinates`, where C is diag(1 / precisions) + lean' root root' lean.

    Parameters
    ----------
    mean : numpy.ndarray of float64
        Shape (coordinates,).
    precisions : numpy.ndarray of float64
        Shape (coordinates,), positive.
    lean : numpy.ndarray of float64
        Shape (rank, coordinates).
    root : numpy.ndarray of float64
        Shape (rank, rank).
    shape : tuple of int
        The items of the circular domain, and those of the domain: the others hold nothing.
    tolerance : float
        How far prefix sums may be from the optimum, about.

    Returns
    -------
    MostProbable
        The distribution, shape (domain,), non-negative and of sum 1 in any case.
    """
    size, domain = shape
    start = items_of(mean, 1.0, size)
    if start.min() >= 0 and size == domain:
        return MostProbable(start / start.sum(), True)
    # By Woodbury's formula C^-1 is diag(precisions) - pushed' middle middle' pushed.
    pushed, along = precisions * lean, root.T @ lean
    seen = along * np.sqrt(precisions)
    middle, _ = posterior_root(root, seen @ seen.T)
    target = precisions * mean - (middle @ (middle.T @ (pushed @ mean))) @ pushed
    rho = _STIFF * float(np.exp(np.mean(np.log(np.minimum(precisions, precisions.min() * 1e6)))))
    z = np.concatenate([norm_sub(start[:domain]), np.zeros(size - domain)])
    dual = np.zeros(size)
    stale, converged = True, False
    for turn in range(1, _TURNS + 1):
        if stale:
            shift, stale = precisions + rho, False
            up = pushed / shift
            # Of C^-1 + rho: p - p^2 / (p + rho) is p rho / (p + rho), which is no difference
            seen = along * np.sqrt(precisions * (rho / shift))
            small, _ = posterior_root(root, seen @ seen.T)
        right = (target + rho * coordinates(z - dual)) / shift
        x = items_of(right + (small @ (small.T @ (pushed @ right))) @ up, 1.0, size)
        before, relaxed = z, _RELAXED * x - (_RELAXED - 1) * z
        z = np.maximum(relaxed + dual, 0.0)
        z[domain:] = 0.0
        dual = dual + relaxed - z
        if turn % _EVERY == 0:
            apart, moved = np.abs(np.cumsum(x - z)).max(), np.abs(np.cumsum(z - before)).max()
            converged = bool(apart < tolerance and moved < tolerance / 3)
            if converged:
                break
            primal, other = float(np.linalg.norm(x - z)), float(np.linalg.norm(z - before))
            # Balance the two residuals
            if turn < _TURNS // 2 and max(primal, other) > _BALANCE * min(primal, other):
                factor = float(np.clip(np.sqrt(primal / max(other, 1e-300)), 0.1, 10.0))
                rho, dual, stale = rho * factor, dual / factor, True
    return MostProbable(norm_sub(z[:domain]), converged)
