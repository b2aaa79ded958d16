"""The guideline for the granularities of TDG and HDG (section 4.6)."""

from __future__ import annotations

import math

ALPHA1 = 0.7
"""The constant of the non-uniformity error of a 1-D query, which is taken to be ALPHA1 / g1."""
ALPHA2 = 0.03
"""The constant of the non-uniformity error of a 2-D query, taken to be ALPHA2 times the frequency
of the cells that its border cuts, 2 / g2.
"""


def granularities(
    d: int, n: int, epsilon: float, c: int, alpha1: float = ALPHA1, alpha2: float = ALPHA2
) -> tuple[int, int]:
    """The granularities (g1, g2) of 1-D and 2-D grids of HDG, by the guideline of section 4.6.

    For n users in d + C(d, 2) groups of the same size.

    Parameters
    ----------
    d, n : int
        The numbers of attributes and of users, at least 1.
    epsilon : float
        The privacy loss of a report, above 0.
    c : int
        The number of values of an attribute: of several, ask for each.
    alpha1 : float, default 0.7
        The constant of the non-uniformity of 1-D grids: see `ALPHA1`.
    alpha2 : float, default 0.03
        The constant of the non-uniformity of 2-D grids: see `ALPHA2`.

    Returns
    -------
    tuple
        Two powers of two, of at least 2 and at most c.

    Raises
    ------
    ValueError
        For numbers out of range.

    Examples
    --------
    >>> granularities(d=6, n=10**6, epsilon=1.0, c=64)
    (16, 4)
    """
    if min(d, n, c) < 1 or not epsilon > 0:
        raise ValueError(
            f"d, n and c must be at least 1 and epsilon positive, got {d}, {n}, {c} and {epsilon}"
        )
    users = n / (d * (d + 1) // 2)
    return line_granularity(users, epsilon, c, alpha1), plane_granularity(users, epsilon, c, alpha2)


def line_granularity(users: float, epsilon: float, c: int, alpha1: float = ALPHA1) -> int:
    """The granularity g1 of a 1-D grid that so many users report on (section 4.6).

    Noise of g1 / 2 cells, 2 g1 e^eps / (users (e^eps - 1)^2), and non-uniformity (alpha1 / g1)^2
    are least in sum at the cube root of users (e^eps - 1)^2 alpha1^2 / e^eps. The source prints,
    and its Table 2 uses, the cube root of half of that: taken is the power of two nearest to it,
    the larger of two that are as near.
    """
    return _nearest_power((users * _gain(epsilon) ** 2 * alpha1**2 / 2) ** (1 / 3), c)


def plane_granularity(users: float, epsilon: float, c: int, alpha2: float = ALPHA2) -> int:
    """The granularity g2 of a 2-D grid that so many users report on (section 4.6).

    Noise of (g2 / 2)^2 cells, g2^2 e^eps / (users (e^eps - 1)^2), and non-uniformity (2 alpha2 /
    g2)^2 are least in sum at the square root of 2 alpha2 (e^eps - 1) (users / e^eps)^(1/2). Taken
    is the power of two nearest to it, as above.
    """
    return _nearest_power(math.sqrt(2 * alpha2 * _gain(epsilon) * math.sqrt(users)), c)


def _gain(epsilon: float) -> float:
    """The ratio (e^eps - 1) / e^(eps / 2)."""
    # As a hyperbolic sine: no difference of nearly equal numbers at a small epsilon, and no
    # overflow
    return 2 * math.sinh(min(epsilon, 700.0) / 2)


def _nearest_power(value: float, largest: int) -> int:
    # No power of two need fit the number of values: the last line may return it itself
    value = min(value, float(largest))
    below = 1 << max(math.floor(math.log2(value)), 1) if value >= 2 else 2
    return min(below if value - below < 2 * below - value else 2 * below, largest)
