"""Discrete Laplace noise, exactly: two-sided geometric noise with a rational alpha.

It is drawn from 64-bit words, with no float on the path.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mechdesign.base import BitSource, Rational, Words, brief, exact

Ints = npt.NDArray[np.int64]

#: The largest 1 / (1 - alpha): an answer then stays inside 64 bits but with probability below
#: exp(-2^15).
LARGEST_SCALE = 1 << 46

_CHUNK = 1 << 16  # the draws handled at a time, so that the working arrays stay in cache

_TAIL_BITS = 40  # the negative binary logarithm of the probability beyond the table, about

_DIGIT = 6  # the bits of a digit of U; a digit has a table of 2^6 powers


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
        size, source : int, callable
            As for `draw`.

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
