"""Discrete Laplace noise, exactly: two-sided geometric noise with a rational alpha.

It is drawn from 64-bit words, with no float on the path.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
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

Ints = npt.NDArray[np.int64]

#: The largest 1 / (1 - alpha): an answer then stays inside 64 bits but with probability below
#: exp(-2^15).
LARGEST_SCALE = 1 << 46

_CHUNK = 1 << 16  # the draws handled at a time, so that the working arrays stay in cache

_TAIL_BITS = 40  # the negative binary logarithm of the probability beyond the table, about

_DIGIT = 6  # the bits of a digit of U; a digit has a table of 2^6 powers


def laplace_variance(rate: float) -> float:
    """The variance of discrete Laplace noise with alpha = exp(-rate), in floats."""
    # 2 alpha / (1 - alpha)^2 = 1 / (cosh(rate) - 1): by sines little cancels, and nothing overflows
    return 0.5 * (1 / math.sinh(rate / 2)) ** 2


class DiscreteLaplace:
    """The distribution with ``Pr[X = x]`` proportional to ``alpha^|x|`` on the integers.

    Parameters
    ----------
    alpha : Fraction, int, str or Decimal
        An exact rational in (0, 1), at most 1 - 2^-46; floats are refused (`InexactNumber`).

    Raises
    ------
    ValueError
        For an alpha outside that range.
    """

    def __init__(self, *, alpha: Rational) -> None:
        self.alpha = exact(alpha, "alpha")
        if not 0 < self.alpha <= 1 - Fraction(1, LARGEST_SCALE):
            raise ValueError(
                f"alpha must lie above 0 and at most at 1 - 2^-46, got {brief(self.alpha, 20)}"
            )
        rate = _rate(self.alpha)
        # S = 2^shift; U is accepted with probability above exp(-1/32)
        self._shift = max(0, math.floor(-math.log2(rate)) - 5)
        self._stride = 1 << self._shift
        self._length = max(1, math.ceil(_TAIL_BITS * math.log(2) / (rate * self._stride)))

    @property
    def variance(self) -> Fraction:
        """The variance 2 alpha / (1 - alpha)^2, exactly: less than that of continuous noise."""
        return 2 * self.alpha / (1 - self.alpha) ** 2

    @property
    def fourth_moment(self) -> Fraction:
        """The fourth moment, the mean of X^4, exactly."""
        alpha = self.alpha
        return 2 * alpha * (1 + 10 * alpha + alpha**2) / (1 - alpha) ** 4

    @cached_property
    def _powers(self) -> Words:
        """The first words of alpha^(S k) for k = length .. 1: ascending."""
        return np.array(
            [self._leading(self._stride * k, 1) for k in range(self._length, 0, -1)],
            dtype=np.uint64,
        )

    @cached_property
    def _digits(self) -> list[Words]:
        """The first words of the powers that each digit of U stands for; digit 0 is unused."""
        tables = []
        for place in range(0, self._shift, _DIGIT):
            powers = [
                self._leading(digit << place, 1)
                for digit in range(1, 1 << min(_DIGIT, self._shift - place))
            ]
            tables.append(np.array([0, *powers], dtype=np.uint64))
        return tables

    def draw(self, size: int, source: BitSource) -> Ints:
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
            part = result[start : start + _CHUNK]
            # The difference of two independent geometric numbers is discrete Laplace.
            part[:] = self.geometric(len(part), source)
            part -= self.geometric(len(part), source)
        return result

    def geometric(self, size: int, source: BitSource) -> Ints:
        """Return independent draws of G with ``Pr[G >= k] = alpha^k``, k >= 0.

        Parameters
        ----------
        size : int
            How many, at least 0.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        numpy.ndarray of int64
            Shape (size,).
        """
        # G = S T + U, independent: T geometric with the ratio alpha^S, by a table, and U the
        # remainder, with probability proportional to alpha^U, by rejection.
        result = self._table_draw(source(size), source)
        # Geometric numbers have no memory: beyond the end of the table the draw begins anew.
        beyond = np.flatnonzero(result == self._length)
        while len(beyond):
            more = self._table_draw(source(len(beyond)), source)
            result[beyond] += more
            beyond = beyond[more == self._length]
        return (result << self._shift) + self._remainders(size, source) if self._shift else result

    def _table_draw(self, words: Words, source: BitSource) -> Ints:
        """Return min(T, length) from the first words of as many uniform numbers."""
        powers = self._powers
        not_above = np.searchsorted(powers, words, side="right")
        result = self._length - not_above
        # A word that equals the first word of a power does not decide: more words do.
        # Probability about length / 2^64 a draw
        for k in np.flatnonzero((not_above > 0) & (powers[not_above - 1] == words)):
            result[k] = self._slow(int(words[k]), source)
        return result.astype(np.int64)

    def _slow(self, prefix: int, source: BitSource) -> int:
        """Return a draw from the table by its obvious definition."""
        # U = prefix / 2^64 is extended by words until no power lies inside its cell.
        words = 1
        while True:
            powers = [self._leading(self._stride * k, words) for k in range(1, self._length + 1)]
            least, most = (
                sum(power > prefix for power in powers),
                sum(power >= prefix for power in powers),
            )
            if least == most:
                return least
            prefix, words = (prefix << 64) | int(source(1)[0]), words + 1

    def _remainders(self, size: int, source: BitSource) -> Ints:
        """Return U in 0 .. S-1 with probability proportional to alpha^U."""
        result = np.empty(size, dtype=np.int64)
        waiting = np.arange(size)
        while len(waiting):
            tried = (source(len(waiting)) >> np.uint64(64 - self._shift)).astype(np.int64)
            accepted = np.arange(len(waiting))
            # alpha^U is the product of the powers of its digits: each is an independent Bernoulli
            # trial, and the number is accepted if all succeed.
            for i, table in enumerate(self._digits):
                digits = (tried[accepted] >> (_DIGIT * i)) & ((1 << _DIGIT) - 1)
                words = source(len(accepted))
                below = (words < table[digits]) | (digits == 0)
                for k in np.flatnonzero((words == table[digits]) & (digits > 0)):
                    below[k] = self._below(int(digits[k]) << (_DIGIT * i), int(words[k]), source)
                accepted = accepted[below]
            result[waiting[accepted]] = tried[accepted]
            waiting = np.delete(waiting, accepted)
        return result

    def _below(self, exponent: int, prefix: int, source: BitSource) -> bool:
        """Whether U < alpha^exponent, where words extend U = prefix / 2^64 until that is known."""
        words = 1
        while (power := self._leading(exponent, words)) == prefix:
            prefix, words = (prefix << 64) | int(source(1)[0]), words + 1
        return prefix < power

    def _leading(self, exponent: int, words: int) -> int:
        """Return floor(alpha^exponent * 2^(64 words)), exponent >= 1."""
        # The loop ends: alpha^exponent * 2^(64 words) is an integer only if the denominator of
        # alpha is a power of two, and then enough precision makes both bounds exact.
        spare = 64
        while True:
            low, high = _power(self.alpha, exponent, 64 * words + spare)
            # Ziv's strategy: the bounds agree in the digits wanted, or the precision is doubled.
            if low >> spare == high >> spare:
                return low >> spare
            spare *= 2

    def __repr__(self) -> str:
        return f"DiscreteLaplace(alpha={brief(self.alpha, 12)})"


def _rate(alpha: Fraction) -> float:
    """Return about -ln(alpha), also where alpha is no float."""
    if alpha > Fraction(1, 2):
        return -math.log1p(-float(1 - alpha))
    return math.log(alpha.denominator) - math.log(alpha.numerator)


def _power(alpha: Fraction, exponent: int, bits: int) -> tuple[int, int]:
    """Return integers low <= alpha^exponent * 2^bits <= high, by squaring, rounded outwards."""
    # Each of the squarings doubles the relative error of those before it.
    work = bits + 2 * exponent.bit_length() + 8
    below = (alpha.numerator << work) // alpha.denominator
    above = -((-alpha.numerator << work) // alpha.denominator)
    low = high = 1 << work
    for digit in f"{exponent:b}":
        low, high = (low * low) >> work, -((-high * high) >> work)
        if digit == "1":
            low, high = (low * below) >> work, -((-high * above) >> work)
    return low >> (work - bits), -(-high >> (work - bits))


# ------------------------------------------------------------------------------------------------
# Discrete Gaussian noise, exactly: integers, with a rational sigma^2.
#
# It is drawn from 64-bit words: no float decides between two draws, but where a proved bound on its
# error leaves no doubt. Source: Canonne, Kamath and Steinke, The discrete Gaussian for differential
# privacy, NeurIPS 2020.


#: The limits of sigma^2: a draw stays inside 64 bits but with probability below exp(-2^59).
LEAST_SIGMA2, LARGEST_SIGMA2 = Fraction(1, 1 << 16), Fraction(1 << 64)

# A bound above the relative error of an acceptance probability that is computed in floats.
_ERROR = 2.0**-40


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
        return np.exp(-np.minimum(away * away / twice, 700.0))

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
