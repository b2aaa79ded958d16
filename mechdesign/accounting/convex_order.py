"""The least finite law above several others in increasing convex order.

X is below Y in this order if E(X - t)_+ <= E(Y - t)_+ for every t: the call function of Y is at
least that of X. Then E f(X) <= E f(Y) for all increasing convex f, and sums of independent copies
are in the same order. So one law answers for all pairs of values of a user.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from mechdesign.base.arrays import Floats

_POINTS = 512
"""The most values of the law found."""


def dominating(
    laws: Sequence[tuple[Floats, Floats, float]],
    ends: tuple[Fraction, Fraction],
    calls: tuple[Fraction, Fraction],
    scale: float,
    terms: int = 1,
) -> list[tuple[Fraction, Fraction]]:
    """A law that is above all of the given ones.

    Its call function is the largest of theirs, rounded up, at up to 512 points: those where it
    bends, if they are not more. Between them it is linear, which is above, as call functions are
    convex.

    Parameters
    ----------
    laws : sequence of (numpy.ndarray, numpy.ndarray, float)
        The probabilities and the values of each, shapes (values,), and a constant that is added to
        its call function; in floats.
    ends : tuple of Fraction
        No value of a law is below the first or above the second, which is larger.
    calls : tuple of Fraction
        At least all call functions, with their constants, at the two ends.
    scale : float
        At least the mean of the absolute values of each law, and of the numbers they are
        differences of.
    terms : int, default 1
        How many roundings each probability has seen, at most; each value at most four.

    Returns
    -------
    list of (Fraction, Fraction)
        Probabilities above 0, which sum to 1, and values, ascending. The call function is that
        of the law, and the second of ``calls`` as a constant.
    """
    points = _points(laws, ends)
    grid = np.array([float(point) for point in points])
    most = np.zeros(len(grid))
    for probabilities, values, constant in laws:
        order = np.argsort(values)
        sorted_values, mass = values[order], probabilities[order]
        # Sums over the values above each point
        above = np.concatenate([np.cumsum((mass * sorted_values)[::-1])[::-1], [0.0]])
        held = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
        first = np.searchsorted(sorted_values, grid, side="right")
        np.maximum(most, above[first] - grid * held[first] + constant, out=most)
    # A sum of m numbers errs by at most m units in the last place of the sum of absolute values,
    # and rounded numbers by as many as they were rounded: the margin is more than twice of both.
    roundings = terms + max(len(values) for _, values, _ in laws) + 64
    margin = roundings * 2.0**-50 * (scale + np.abs(grid))
    heights = [Fraction(height) for height in (most + margin).tolist()]
    heights[0], heights[-1] = calls
    return masses(lower_hull(list(zip(points, heights, strict=True))))


def _points(
    laws: Sequence[tuple[Floats, Floats, float]], ends: tuple[Fraction, Fraction]
) -> list[Fraction]:
    low, high = map(float, ends)
    found = np.unique(np.concatenate([values for _, values, _ in laws]))
    apart = np.diff(found, prepend=-np.inf) > 1e-12 * (high - low)
    found = found[apart & (found > low) & (found < high)]
    if len(found) > _POINTS:
        found = found[np.linspace(0, len(found) - 1, _POINTS).round().astype(int)]
    return [ends[0], *map(Fraction, found.tolist()), ends[1]]


def lower_hull(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The corners of the largest convex function below some points.

    Parameters
    ----------
    points : list of (Fraction, Fraction)
        Ascending places, and heights.

    Returns
    -------
    list of (Fraction, Fraction)
        Some of the points, the first and the last one among them.
    """
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def masses(hull: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The law with a call function, but for what is left of that at its last corner.

    Parameters
    ----------
    hull : list of (Fraction, Fraction)
        The corners of a convex function that falls, nowhere by more than 1.

    Returns
    -------
    list of (Fraction, Fraction)
        Probabilities above 0 and values.
    """
    slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(hull)]
    bends = zip([Fraction(-1), *slopes], [*slopes, Fraction(0)], hull, strict=True)
    return [(after - before, x) for before, after, (x, _) in bends if after > before]
