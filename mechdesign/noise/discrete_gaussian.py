"""Discrete Gaussian noise, exactly: integers, with a rational sigma^2.

It is drawn from 64-bit words: no float decides between two draws, but where a proved bound on its
error leaves no doubt. Source: Canonne, Kamath and Steinke, The discrete Gaussian for differential
privacy, NeurIPS 2020.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
from flint import arb

from mechdesign.base import (
    BitSource,
    Booleans,
    Floats,
    Integers,
    Rational,
    Words,
    ball,
    brief,
    exact,
    precision,
)
from mechdesign.noise.discrete_laplace import DiscreteLaplace

#: The limits of sigma^2: a draw stays inside 64 bits but with probability below exp(-2^59).
LEAST_SIGMA2, LARGEST_SIGMA2 = Fraction(1, 1 << 16), Fraction(1 << 64)

# A bound above the relative error of an acceptance probability that is computed in floats.
_ERROR = 2.0**-40

_CHUNK = 1 << 16

# The sigma^2 up to which the variance is summed; beyond, it is sigma^2 to within e^-1200 of it.
_SERIES = Fraction(64)


class DiscreteGaussian:
    """The distribution with ``Pr[X = x]`` proportional to ``exp(-x^2 / (2 sigma2))`` on integers.

    Added to integers that one user moves by a vector v, it keeps rho-zCDP with rho = |v|^2 / (2
    sigma2), as Gaussian noise does (Canonne et al., theorem 14).

    Parameters
    ----------
    sigma2 : Fraction, int, str or Decimal
        sigma^2, an exact rational from 2^-16 to 2^64; floats are refused (`InexactNumber`).

    Raises
    ------
    ValueError
        For a number outside that range.
    """

    def __init__(self, sigma2: Rational) -> None:
        self.sigma2 = exact(sigma2, "sigma2")
        if not LEAST_SIGMA2 <= self.sigma2 <= LARGEST_SIGMA2:
            raise ValueError(
                f"sigma^2 must lie between 2^-16 and 2^64, got {brief(self.sigma2, 12)}"
            )
        # Proposals have alpha = 1 - 1/t, near exp(-1 / sigma)
        self._t = max(2, math.isqrt(math.floor(self.sigma2)) + 1)
        self._proposal = DiscreteLaplace(alpha=Fraction(self._t - 1, self._t))

    @cached_property
    def variance(self) -> float:
        """The variance, rounded up: at most sigma^2, and nearly that unless it is small."""
        if self.sigma2 > _SERIES:
            value = self.sigma2
            nearest = float(value)
            return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
        with precision(128):
            rate = -1 / (2 * ball(self.sigma2))
            # Beyond 16 deviations, and 16, the rest is below e^-127 of the sums
            last = 16 * (math.isqrt(math.ceil(self.sigma2)) + 1)
            weights = [(x, (rate * x * x).exp()) for x in range(1, last + 1)]
            mass = 1 + 2 * sum((w for _, w in weights), arb(0))
            square = 2 * sum((x * x * w for x, w in weights), arb(0))
            bound = (square / mass + arb(2) ** -64).upper()
            return math.nextafter(float(bound), math.inf)

    def draw(self, size: int, source: BitSource) -> Integers:
        """Return independent draws of the noise, shape (size,).

        Parameters
        ----------
        size : int
            How many, at least 0.
        source : callable
            Gives as many random 64-bit words as it is asked for.
        """
        result = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            waiting = np.arange(start, min(start + _CHUNK, size))
            while len(waiting):
                tried = self._proposal.draw(len(waiting), source)
                taken = self._accepted(tried, source)
                result[waiting[taken]] = tried[taken]
                # Rejection: whoever was refused proposes again; the draws accepted are independent.
                waiting = waiting[~taken]
        return result

    def _accepted(self, tried: Integers, source: BitSource) -> Booleans:
        """Return whether U < exp(-g) for new uniform numbers U, where g is that of each draw."""
        # exp(-y^2 / (2 sigma2)) over alpha^|y| is exp(-(|y| - c)^2 / (2 sigma2)) up to a factor,
        # with c = -ln(alpha) sigma2.
        words: Words = source(len(tried))
        chances, uniform = self._chances(tried), words * 2.0**-64
        # Floats decide where their proved error leaves no doubt, for nearly all; the rest by balls.
        taken: Booleans = uniform < chances * (1 - _ERROR) - 2.0**-64
        open_ = ~taken & (uniform <= chances * (1 + _ERROR) + 2.0**-64)
        for k in np.flatnonzero(open_):
            taken[k] = self._below(int(tried[k]), int(words[k]), source)
        return taken

    def _chances(self, tried: Integers) -> Floats:
        """Return exp(-g), to within 2^-41 of it, or below 2^-64."""
        # c, 2 sigma2 and each operation are within 2^-53 of what they stand for, and |y| is exact
        # below 2^53, beyond which exp(-g) is below 2^-64. With s = |y| - c, whose error is at most
        # 2^-53 (c + |s|), that of g = s^2 / (2 sigma2) is at most 2^-53 (|s| c / sigma2 + 8 g). As
        # ln(t / (t - 1)) < 1 / sqrt(t (t - 1)) and sigma2 < t^2, c^2 < 2 sigma2; so |s| c / sigma2
        # < 2 sqrt(g) <= 1 + g, and the error is below 2^-53 (1 + 9 g), that is 2^-44 if exp(-g) >=
        # 2^-64; exp adds less than 2^-50.
        centre, twice = self._floats
        away = np.abs(tried).astype(np.float64) - centre
        chances: Floats = np.exp(-np.minimum(away * away / twice, 700.0))
        return chances

    @cached_property
    def _floats(self) -> tuple[float, float]:
        """The numbers c and 2 sigma2, to nearest."""
        with precision(128):
            centre = self._centre()
        return float(centre.mid()), float(2 * self.sigma2)

    def _centre(self) -> arb:
        """Return c, a ball."""
        return ball(Fraction(self._t, self._t - 1)).log() * ball(self.sigma2)

    def _below(self, tried: int, prefix: int, source: BitSource) -> bool:
        """Whether U < exp(-g), where words extend U = prefix / 2^64 until that is known."""
        words = 1
        while True:
            with precision(64 * words + 192):
                away = abs(tried) - self._centre()
                scaled = (-away * away / (2 * ball(self.sigma2))).exp() * arb(2) ** (64 * words)
                if scaled >= prefix + 1:
                    return True
                if scaled <= prefix:
                    return False
            prefix, words = (prefix << 64) | int(source(1)[0]), words + 1

    def __repr__(self) -> str:
        return f"DiscreteGaussian({brief(self.sigma2, 12)})"
