"""Splits of a budget over the levels of a tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import scipy

from mechdesign.base import Floats, Rational, shown
from mechdesign.privacy import Privacy
from rangeq.central.inputs import fraction
from rangeq.core import BoxTree, LevelInference, pairs_together, queries

#: How epsilon is split over the levels of a tree: by a rule, or in proportion to weights, from the
#: top.
Budget: TypeAlias = Literal["equal", "geometric", "optimal"] | Sequence[float | Rational]


def equal(h: int) -> list[Fraction]:
    """The same weight for each of h levels."""
    return [Fraction(1)] * h


def geometric(h: int) -> list[Fraction]:
    """Return weights that grow by 2^(1/3) from each level to the next (Cormode et al. 2012)."""
    return [Fraction(2.0 ** (level / 3)) for level in range(h)]


def exact_split(alpha: Fraction, weights: Sequence[Fraction]) -> tuple[Fraction | None, ...]:
    """Alphas of levels whose product is exactly a given one."""
    asked = [level for level, own in enumerate(weights) if own]
    epsilon, total = Fraction(Privacy(alpha=alpha).epsilon), sum(weights)
    result: list[Fraction | None] = [None] * len(weights)
    rest = alpha
    for level in asked[1:]:
        result[level] = part = Privacy.from_epsilon(epsilon * weights[level] / total).alpha
        rest /= part
    if not rest < 1:
        raise ValueError("the first weight above 0 is too small a share of all weights")
    result[asked[0]] = rest
    return tuple(result)


def best_shares(tree: BoxTree) -> list[Fraction]:
    """Find shares of epsilon for a small average variance of a tree with inference."""
    # First as if no cells were missing at the ends: shares w >= 0 of sum 1 for a small sum of
    # gains[i] / (sum over l >= i of sizes[l] w[l]^2), where `sizes` are the cells below a node, and
    # `gains` what a unit of variance of a level's contrasts adds, times these. That is not convex:
    # a level without a share is a tree without it, and every such tree may have its own minimum. So
    # the search starts from equal shares and from the trees that keep every k-th level. Where cells
    # are missing, it goes on from the best with the variance as it is.
    h = tree.height
    if h == 1:
        return [Fraction(1)]
    sizes = np.array([math.prod(widths) for widths in tree.widths[1:]], dtype=np.float64)
    moments = [
        math.prod(
            pairs_together(n, width) / (width * queries(n, "all ranges"))
            for n, width in zip(tree.shape, widths, strict=True)
        )
        for widths in tree.widths[1:]
    ]
    gains = np.diff([0.0, *moments])

    def full(w: Floats) -> tuple[float, Floats]:
        precision = np.cumsum((sizes * w * w)[::-1])[::-1]
        slope = np.cumsum(gains / precision**2)
        return float((gains / precision).sum()), -2 * sizes * w * slope

    def objective(logs: Floats) -> tuple[float, Floats]:
        w = _shares(logs)
        found, gradient = full(w)
        return math.log(found), w * (gradient - gradient @ w) / found

    def value(w: Floats) -> float:
        return float(LevelInference(tree, [1 / own**2 if own else None for own in w]).mean())

    even = np.full(h, 1 / h)
    best = even
    for step in range(1, h + 1):
        start = np.full(h, -5.0 if step > 1 else 0.0)
        start[::-step] = 0.0
        w = _shares(
            scipy.optimize.minimize(
                objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}
            ).x
        )
        for trial in (w, np.where(w < 1e-3 * w.max(), 0.0, w) / w[w >= 1e-3 * w.max()].sum()):
            if trial[-1] > 0 and full(trial)[0] < full(best)[0]:
                best = trial
    # A tiny share adds no precision and needs enormous noise.
    best = np.where(best > 1e-6, best, 0.0)
    if any(n % width for n, width in zip(tree.shape, tree.widths[0], strict=True)):
        asked = np.flatnonzero(best)

        def with_ends(logs: Floats) -> float:
            w = np.zeros(h)
            w[asked] = _shares(logs)
            return math.log(value(w))

        found = scipy.optimize.minimize(
            with_ends, np.log(best[asked]), method="L-BFGS-B", options={"maxiter": 50}
        )
        trial = np.zeros(h)
        trial[asked] = _shares(found.x)
        best = min(trial, best, even, key=value)
    return [Fraction(float(share)) for share in best]


def _shares(logs: Floats) -> Floats:
    # A search may try steps so far that a share, and what is divided by it, would be 0
    w = np.exp(np.maximum(logs - logs.max(), -100.0))
    result: Floats = w / w.sum()
    return result


def weight(value: float | Rational) -> Fraction:
    """Return a given weight, exactly; ValueError below 0."""
    result = fraction(value, "a weight")
    if result < 0:
        raise ValueError(f"weights must be at least 0, got {shown(value)}")
    return result
