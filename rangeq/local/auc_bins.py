"""How many bins to cut a score into, for the AUC: discretisation against noise.

Thesis, section 7.1.2: "the first key challenge is to analytically find an expression for error in
estimation as a function of D under suitable smoothness assumptions on the input distribution".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from mechdesign.base.text import shown
from rangeq.local.item_sets import PaddedSets
from rangeq.local.paired import Paired, auc_and_slope

POWERS_OF_TWO = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""The numbers of bins to choose from."""


class AucError(NamedTuple):
    """The error that the AUC of a score in so many bins is predicted to have.

    Attributes
    ----------
    bins : int
        The number of bins.
    discretisation : float
        A bound on the bias from ties within bins, for densities of this smoothness.
    noise : float
        The standard deviation from the protocol, to first order, where both classes are even.
    """

    bins: int
    discretisation: float
    noise: float

    @property
    def rmse(self) -> float:
        """The root of the mean square error, at most."""
        return math.hypot(self.discretisation, self.noise)


def auc_error(pairs: Paired, n: int, smoothness: float, positives: float = 0.5) -> AucError:
    """What the AUC of a score, cut into equal bins, will err by.

    Let the score have a density in each class, on [0, 1], with slopes of at most L in absolute
    value. In D bins the pairs of scores in one bin count one half each, and the AUC is wrong by at
    most

        L / (4 D^2).

    Of a bin of width h, it is wrong by the integral of p(x) q(y) s(x, y), where p and q are the
    densities and s is 1/2 - [x > y], which changes its sign with x and y exchanged: by half of that
    of (p(x) q(y) - p(y) q(x)) s(x, y). The difference is at most L |x - y| (p(y) + q(y)), the
    integral of |x - y| over x at most h^2 / 2, and |s| is 1/2; the bin's error is at most L h^2 / 8
    times its share of both classes, which add up to 2. (As h tends to 0, the bias is (h^2 / 12)
    times the integral of p q' - p' q.)

    The noise is that of the weighted sum of frequencies that the AUC is to first order, for even
    densities. For trees it hardly grows with D, for frequency oracles with its root. Scores that
    gather in few bins have more, by about half in the tests (tests/rangeq/local/test_auc_bins.py):
    there the number of bins that was chosen has less than twice the error of the best.

    Parameters
    ----------
    pairs : Paired
        Over as many items as there are bins, of one pair a user.
    n : int
        The number of users, at least 1.
    smoothness : float
        L, above 0, for scores scaled to [0, 1]: 2 for a density that grows linearly from 0, 4
        for a triangle over all of [0, 1], 0.24 / s^2 for a normal one of deviation s.
    positives : float, default 0.5
        The fraction of users with bit 1, guessed: strictly between 0 and 1.

    Returns
    -------
    AucError
        Bias and deviation.

    Raises
    ------
    ValueError
        An argument out of range.
    TypeError
        Pairs in sets.
    """
    for name, value, most in (("smoothness", smoothness, math.inf), ("positives", positives, 1.0)):
        fine = not isinstance(value, bool) and isinstance(value, (int, float))
        if not fine or not 0 < value < most:
            raise ValueError(
                f"{name} must be a number above 0 and below {most}, got {shown(value)}"
            )
    if isinstance(pairs.protocol, PaddedSets):
        raise TypeError("the AUC of sets of pairs is not predicted")
    bins = pairs.domain
    held = np.repeat([1 - positives, positives], bins) / bins
    _, slope = auc_and_slope(held[:bins], held[bins:])
    (variance,) = pairs.protocol.linear_variance(n, slope[None], held)
    return AucError(bins, smoothness / (4 * bins**2), math.sqrt(max(float(variance), 0.0)))


def best_bins(
    make: Callable[[int], Paired],
    n: int,
    smoothness: float,
    positives: float = 0.5,
    candidates: Iterable[int] = POWERS_OF_TWO,
) -> AucError:
    """The number of bins for which the AUC has the least predicted error.

    Parameters
    ----------
    make : callable
        Makes the protocol from a number of bins: ``lambda bins: Paired(HaarHRR(2 * bins, 1.0))``.
    n, smoothness, positives : int, float, float
        As for `auc_error`.
    candidates : iterable of int, default `POWERS_OF_TWO`
        The numbers of bins to choose from.

    Returns
    -------
    AucError
        ``bins``, and the error predicted.

    Raises
    ------
    ValueError
        An argument out of range, or no candidates.

    >>> from rangeq import HaarHRR
    >>> best_bins(lambda bins: Paired(HaarHRR(2 * bins, 1.0)), n=100_000, smoothness=8.0).bins
    32
    """
    found = [auc_error(make(bins), n, smoothness, positives) for bins in candidates]
    if not found:
        raise ValueError("there are no candidates to choose from")
    return min(found, key=lambda error: error.rmse)
