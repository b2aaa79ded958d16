"""How a budget is split over the levels of a tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import scipy

from mechdesign._support.arrays import Floats
from mechdesign._support.numbers import Rational
from mechdesign._support.text import shown
from rangeq.central.inputs import fraction

Budget: TypeAlias = Literal["equal", "geometric", "optimal"] | Sequence[float | Rational]
"""How epsilon is split over the levels of a tree: by a rule, or in proportion to weights, from the
top.
"""


def equal(h: int) -> list[Fraction]:
    """The same weight for each of h levels."""
    return [Fraction(1)] * h


def geometric(h: int) -> list[Fraction]:
    """Every level having 2^(1/3) times as much as the one above (Cormode et al. 2012)."""
    return [Fraction(2.0 ** (level / 3)) for level in range(h)]


def best_shares(sizes: Floats, gains: Floats) -> list[Fraction]:
    """Shares of epsilon for a small average variance of a tree with inference.

    Shares w >= 0 of sum 1 for a small sum of gains[i] / (sum over l >= i of sizes[l] w[l]^2). That
    is not convex: a level without a share is a tree without it, and every such tree may have its
    own minimum. So the search starts from equal shares and from the trees that keep every k-th
    level.

    Parameters
    ----------
    sizes : numpy.ndarray of float64
        Shape (height,): the cells below a node of each level.
    gains : numpy.ndarray of float64
        Shape (height,): what a unit of variance of each level's contrasts adds, times ``sizes``.

    Returns
    -------
    list of Fraction
        One share for each level from the top; the last is above 0.
    """
    h = len(sizes)
    if h == 1:
        return [Fraction(1)]

    def value(w: Floats) -> tuple[float, Floats]:
        precision = np.cumsum((sizes * w * w)[::-1])[::-1]
        slope = np.cumsum(gains / precision**2)
        return float((gains / precision).sum()), -2 * sizes * w * slope

    def objective(logs: Floats) -> tuple[float, Floats]:
        w = np.exp(logs - logs.max())
        total = w.sum()
        w /= total
        found, gradient = value(w)
        return math.log(found), w * (gradient - gradient @ w) / found

    best = np.full(h, 1 / h)
    for step in range(1, h + 1):
        start = np.full(h, -5.0 if step > 1 else 0.0)
        start[::-step] = 0.0
        logs = scipy.optimize.minimize(
            objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}
        ).x
        w = np.exp(logs - logs.max())
        for trial in (
            w / w.sum(),
            np.where(w < 1e-3 * w.max(), 0.0, w) / w[w >= 1e-3 * w.max()].sum(),
        ):
            if trial[-1] > 0 and value(trial)[0] < value(best)[0]:
                best = trial
    # A tiny share adds no precision and needs enormous noise.
    return [Fraction(float(share)) if share > 1e-6 else Fraction(0) for share in best]


def weight(value: float | Rational) -> Fraction:
    """One that was given, exactly; ValueError below 0."""
    result = fraction(value, "a weight")
    if result < 0:
        raise ValueError(f"weights must be at least 0, got {shown(value)}")
    return result
