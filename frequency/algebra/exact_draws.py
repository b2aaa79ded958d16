"""Exact draws from 64-bit words: every probability is an integer over 2^64.

The privacy of an oracle is a ratio of two such integers. They are chosen such that it is
at most exp(epsilon), and the same integers are used by the draw, the audit and the estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import isqrt

import numpy as np
import numpy.typing as npt

from mechdesign.base import BitSource, Words
from mechdesign.noise.sampling import uniform as uniform

WORD_BITS = 64  #: The length of a word.

WORD = 1 << WORD_BITS  #: The number of values of a word: the denominator of every probability.


@dataclass(frozen=True)
class TruthOrLie:
    """A draw of k outcomes: the first k - 1 intervals of ``lie`` words are lies, others the truth.

    ``lie`` is the one number that words are compared with, and it determines the distribution.
    """

    k: int  #: The number of outcomes, 1 <= k < 2^64.
    lie: int  #: How many of the 2^64 words stand for each of the k - 1 lies.

    @classmethod
    def within(cls, ratio: Fraction, k: int) -> TruthOrLie:
        """Return the least lie with ``truth / lie`` at most ``ratio`` >= 1, for 1 <= k < 2^64.

        Parameters
        ----------
        ratio : Fraction
            The likelihood ratio allowed, at least 1.
        k : int
            The number of outcomes, 1 <= k < 2^64.

        Returns
        -------
        TruthOrLie
            The law with the largest probability of the truth that keeps the ratio.
        """
        # truth / lie <= ratio means lie >= 2^64 / (ratio + k - 1): the ceiling of that, in
        # integers, as a float could be off by a thousand units.
        return cls(k, -int(-WORD // (ratio + k - 1)))

    @property
    def truth(self) -> int:
        """The number of words that are the truth: those that the lies leave."""
        return WORD - (self.k - 1) * self.lie

    @property
    def p(self) -> Fraction:
        """The probability of the truth."""
        return Fraction(self.truth, WORD)

    @property
    def q(self) -> Fraction:
        """The probability of a particular lie."""
        return Fraction(self.lie, WORD)

    def require(self) -> None:
        """Raise ValueError unless the truth is more probable than a lie."""
        if self.truth <= self.lie:
            raise ValueError(
                f"epsilon is too small for {self.k} outcomes in units of 2^-64: reports would say"
                " nothing"
            )

    @property
    def ratio(self) -> Fraction:
        """The likelihood ratio truth / lie, or 1 when there is nothing to lie about."""
        return Fraction(self.truth, self.lie) if self.k > 1 else Fraction(1)

    @property
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        """The probabilities of a lie and of the truth, relative to a uniform outcome's."""
        return self.k * self.q, self.k * self.p

    def draw(self, size: int, source: BitSource) -> npt.NDArray[np.int64]:
        """Return outcomes relative to the true one.

        Parameters
        ----------
        size : int
            The number of draws, at least 0.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        numpy.ndarray of int64
            Shape (size,): 0 for the truth, 1 .. k-1 for the lies.
        """
        if self.k == 1:
            return np.zeros(size, dtype=np.int64)
        words = source(size)
        if size == 1:  # a client's one report: Python's integers are several times as fast
            place = int(words[0]) // self.lie
            return np.array([place + 1 if place < self.k - 1 else 0], dtype=np.int64)
        if self.k == 2:
            return (words < np.uint64(self.lie)).astype(np.int64)
        interval = words // np.uint64(self.lie)
        lies = interval < np.uint64(self.k - 1)
        # Products, since `where` is slow at what changes from one entry to the next
        interval += np.uint64(1)
        interval *= lies
        return interval.astype(np.int64)


def root(value: Fraction, degree: int = 2) -> Fraction:
    """Return a rational at most the root of ``value``, and within one part in 2^64 of it."""
    power = (value.numerator << 64 * degree) // value.denominator
    if degree == 2:
        return Fraction(isqrt(power), WORD)
    # Newton's method for whole numbers, from above: it falls until it is the whole part of the
    # root.
    result = 1 << -(-power.bit_length() // degree)
    while (lower := ((degree - 1) * result + power // result ** (degree - 1)) // degree) < result:
        result = lower
    return Fraction(result, WORD)


def bernoulli(size: int, numerator: int, source: BitSource) -> npt.NDArray[np.bool_]:
    """Return independent bits with probability ``numerator`` / 2^64 of being true.

    Parameters
    ----------
    size : int
        The number of draws, at least 0.
    numerator : int
        0 .. 2^64.
    source : callable
        Gives as many random 64-bit words as it is asked for.

    Returns
    -------
    numpy.ndarray of bool
        Shape (size,).
    """
    if numerator == WORD:
        return np.ones(size, dtype=np.bool_)
    return source(size) < np.uint64(numerator)


def chances(
    probabilities: Sequence[Fraction], which: npt.NDArray[np.int64], source: BitSource
) -> npt.NDArray[np.bool_]:
    """Return independent bits, each true with a given probability, whatever the denominators.

    Shapes: `which` (size,), places among the probabilities; returns (size,).
    """
    parts = [divmod(probability * WORD, 1) for probability in probabilities]
    certain = np.array([places == WORD for places, _ in parts])
    threshold = np.array([min(places, WORD - 1) for places, _ in parts], dtype=np.uint64)[which]
    words = source(len(which))
    # A word is compared with the first 64 binary places of the probability, and where it equals
    # them, which is hardly ever, another one with the places that follow
    result: npt.NDArray[np.bool_] = (words < threshold) | certain[which]
    rest = [fraction for _, fraction in parts]
    tied = np.flatnonzero((words == threshold) & np.array(list(map(bool, rest)))[which])
    if len(tied):
        result[tied] = chances(rest, which[tied], source)
    return result


def bernoulli_bits(size: int, numerator: int, source: BitSource, denominator: int = WORD) -> Words:
    """Return words, (size,), whose 64 bits are independent, each 1 with a rational probability."""
    result = np.zeros(size, dtype=np.uint64)
    undecided = np.full(size, WORD - 1, dtype=np.uint64)
    where, rest = np.arange(0), numerator
    # Every bit compares the binary expansion of its own uniform number with that of the
    # probability, most significant place first. Half of the bits are decided at each place, so that
    # a word needs about eight random words and not sixty-four
    for place in count():
        drawn = source(len(undecided))
        digit, rest = divmod(2 * rest, denominator)
        if digit:
            below = undecided & ~drawn  # a 0 where the probability has a 1: less
            undecided = undecided & drawn
            if len(where):
                result[where] |= below
            else:
                result |= below
        else:
            undecided = undecided & ~drawn
        if not rest:
            break  # what agrees with the probability so far is not less than it
        if place > 4:  # few words have a bit left to decide: go on with those alone
            left = np.flatnonzero(undecided)
            if not len(left):
                break
            undecided, where = undecided[left], where[left] if len(where) else left
    return result


@dataclass(frozen=True)
class UnaryBits:
    """A draw of independent bits, one for each place.

    A bit is 1 with probability ``own`` / 2^64 at the user's own place, ``other`` / 2^64 elsewhere:
    the two numbers that words are compared with, and they determine the distribution.
    """

    own: int
    other: int

    @classmethod
    def symmetric(cls, ratio: Fraction) -> UnaryBits:
        """Return bits that are as often true at every place, and together keep the ratio."""
        # Two items differ at two places: each bit may have the root of the ratio.
        bit = TruthOrLie.within(root(ratio), 2)
        return cls(bit.truth, bit.lie)

    @property
    def p(self) -> Fraction:
        """The probability of a 1 at the user's place."""
        return Fraction(self.own, WORD)

    @property
    def q(self) -> Fraction:
        """The probability of a 1 at another place."""
        return Fraction(self.other, WORD)

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of a report's probabilities under two places: their bits decide it."""
        return self.p * (1 - self.q) / (self.q * (1 - self.p))

    def draw(self, places: npt.NDArray[np.int64], width: int, source: BitSource) -> Words:
        """Return ``width`` bits of each user at a place: shape (users, ceil(width / 64))."""
        users, lanes = len(places), -(-width // 64)
        words = bernoulli_bits(users * lanes, self.other, source).reshape(users, lanes)
        rows, lane, place = np.arange(users), places >> 6, (places & 63).astype(np.uint64)
        bit = bernoulli(users, self.own, source).astype(np.uint64)
        words[rows, lane] = words[rows, lane] & ~(np.uint64(1) << place) | bit << place
        return words
