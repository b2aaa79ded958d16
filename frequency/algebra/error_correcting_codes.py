"""Binary codes of constant rate and distance, decoded from real-valued sums.

Reed-Solomon codes outside, biorthogonal ones inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.algebra.exact_draws import WORD_BITS
from frequency.algebra.finite_field import Field, VectorSpace, field_of, walsh_hadamard
from mechdesign.base import Floats, Items, Words, set_fields, whole

_RANKS = 4  # the number of values of a block that the decoder tries

_AT_ONCE = 1 << 22  # the number of numbers that the decoder holds at a time, about


@dataclass(frozen=True)
class Code:
    """A code: words of up to 64 bits as vectors of signs.

    A word is cut into symbols of ``symbol`` bits; these are the values of a polynomial over
    F_{2^symbol} at as many points, and its values at all ``blocks`` points, twice as many, are the
    outer code (Reed-Solomon, systematic): two words differ in more than half of the blocks. A
    block's symbol becomes 2^(symbol - 1) signs, the first-order Reed-Muller code, in which two
    symbols differ in half of the signs or in all. The relative distance is above 1/4; the rate,
    symbol / 2^symbol, does not depend on ``bits``.

    Parameters
    ----------
    bits : int
        The length of a word, 1 .. 64.
    symbol : int
        1 .. 8, with room for the blocks among 2^symbol points: long ones are more reliable, and the
        codewords longer. `best` ones are as long as they can be and waste few bits.

    Raises
    ------
    ValueError
        A parameter out of range, or a symbol without room.
    """

    bits: int
    symbol: int

    def __post_init__(self) -> None:
        bits = whole(self.bits, "bits", 1, WORD_BITS)
        symbol = whole(self.symbol, "symbol", 1, 8, what="a number of bits")
        set_fields(self, bits=bits, symbol=symbol)
        if self.blocks > 1 << self.symbol:
            raise ValueError(
                f"{self.blocks} blocks have no room among the {1 << self.symbol} points of symbols"
                f" of {self.symbol} bits"
            )

    @classmethod
    def best(cls, bits: int) -> Code:
        """Return the code with the fewest symbols of up to 8 bits, all of about the same length."""
        symbols = -(-bits // 8)
        return cls(bits, -(-bits // symbols))

    @property
    def symbols(self) -> int:
        """The number of symbols of a word."""
        return -(-self.bits // self.symbol)

    @property
    def blocks(self) -> int:
        """The number of symbols of a codeword."""
        return 2 * self.symbols

    @property
    def length(self) -> int:
        """The number of signs of a codeword."""
        return self.blocks << (self.symbol - 1)

    @property
    def distance(self) -> Fraction:
        """The least share of signs in which two codewords differ, or less."""
        return Fraction(self.blocks - self.symbols + 1, 2 * self.blocks)

    @property
    def described(self) -> list[Any]:
        """Symbol, field and generator matrix: all that a client must know of the code."""
        return [self.symbol, self._field.described, self._all.tolist()]

    @property
    def _field(self) -> Field:
        return field_of(1 << self.symbol)

    @cached_property
    def _all(self) -> npt.NDArray[np.int64]:
        return self._through(np.arange(self.symbols)[None])[0]

    def _through(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how the values at some points decide those at all points: Lagrange's matrices.

        Shapes: points (sets, symbols); returns (sets, blocks, symbols).
        """
        field, x = self._field, np.arange(self.blocks)
        result = np.ones((len(places), self.blocks, self.symbols), dtype=np.int64)
        for i, point in enumerate(places.T):
            for j, other in enumerate(places.T):
                if i != j:  # subtracting is adding, and that is exclusive or
                    factor = field.multiply(
                        x[None] ^ other[:, None], field.inverse(point ^ other)[:, None]
                    )
                    result[:, :, i] = field.multiply(result[:, :, i], factor)
        return result

    def _cut(self, words: Words) -> npt.NDArray[np.int64]:
        """Return the symbols of words: shape (symbols, *words.shape)."""
        mask = np.uint64((1 << self.symbol) - 1)
        return np.stack(
            [
                (words >> np.uint64(self.symbol * i) & mask).astype(np.int64)
                for i in range(self.symbols)
            ]
        )

    def minus(self, words: Words, index: Items) -> npt.NDArray[np.int64]:
        """Return which signs of codewords are -1.

        Parameters
        ----------
        words : numpy.ndarray of uint64
            uint64, words of ``bits`` bits.
        index : numpy.ndarray of int64
            Places in the codeword, 0 .. length - 1, of a shape that broadcasts with that of the
            words.

        Returns
        -------
        numpy.ndarray of int64
            1 where the sign of the word's codeword at that place is -1, else 0.
        """
        block, place = index >> (self.symbol - 1), index & ((1 << (self.symbol - 1)) - 1)
        value = np.zeros(np.broadcast_shapes(words.shape, index.shape), dtype=np.int64)
        for i, symbol in enumerate(self._cut(words)):
            value ^= self._field.multiply(self._all[block, i], symbol)
        return (np.bitwise_count(value & place) ^ (value >> (self.symbol - 1))).astype(np.int64) & 1

    def decode(self, sums: npt.ArrayLike, soft: bool = True) -> Words:
        """Return the word whose codeword correlates most with each row of sums, of those tried.

        Every block's symbols are scored by a fast Hadamard transform of its sums. Of the most
        reliable blocks, as many as decide a word, the best symbols are tried, changed in up to two
        blocks at a time (ordered statistics decoding of order 2, Fossorier and Lin 1995), and the
        codeword of the highest score wins.

        Parameters
        ----------
        sums : array_like
            Shape (rows, length): real numbers, near a multiple of a codeword.
        soft : bool, default True
            False: only the sums' signs count (0 is +): Bassily and Smith 2015, Algorithm 4.

        Returns
        -------
        numpy.ndarray of uint64
            Shape (rows,).
        """
        given = np.asarray(sums, dtype=np.float64)
        if not soft:
            given = np.where(given < 0, -1.0, 1.0)
        step = max(1, _AT_ONCE // (len(self._tries) * self.blocks * self.symbols))
        words = [self._decode(given[start : start + step]) for start in range(0, len(given), step)]
        return np.concatenate([np.zeros(0, dtype=np.uint64), *words])

    @cached_property
    def _tries(self) -> npt.NDArray[np.int64]:
        """The ranks of the symbols to try in the reliable blocks: shape (tries, symbols)."""
        ranks = min(_RANKS if self.symbols > 2 else 2 * _RANKS, 1 << self.symbol)
        rows = [np.zeros(self.symbols, dtype=np.int64)]
        for order in (1, 2):
            for places in combinations(range(self.symbols), order):
                for changed in product(range(1, ranks), repeat=order):
                    rows.append(np.zeros(self.symbols, dtype=np.int64))
                    rows[-1][list(places)] = changed
        return np.array(rows)

    def _decode(self, sums: Floats) -> Words:
        rows, half = len(sums), 1 << (self.symbol - 1)
        # A symbol's codeword is a row of the Walsh-Hadamard matrix or its negative: one transform
        # gives the correlations with all of them.
        transformed = walsh_hadamard(sums.reshape(-1, half)).reshape(rows, self.blocks, half)
        scores = np.concatenate([transformed, -transformed], axis=2)
        ranked = np.argsort(-scores, axis=2, kind="stable")[:, :, : int(self._tries.max()) + 1]
        best = np.take_along_axis(scores, ranked[:, :, :2], axis=2)
        # By how far the best symbol is ahead of the second. Any so many blocks decide a word
        # (maximum distance separable), so that the most reliable ones may be taken.
        reliable = np.argsort(best[:, :, 1] - best[:, :, 0], axis=1, kind="stable")[
            :, : self.symbols
        ]
        through = self._through(reliable)
        lists = np.take_along_axis(ranked, reliable[:, :, None], axis=1)
        symbols = lists[:, np.arange(self.symbols), self._tries]  # (rows, tries, symbols)
        values = np.zeros((rows, len(self._tries), self.blocks), dtype=np.int64)
        for i in range(self.symbols):
            values ^= self._field.multiply(through[:, None, :, i], symbols[:, :, None, i])
        total = np.take_along_axis(scores[:, None], values[..., None], axis=3)[..., 0].sum(axis=2)
        # The last symbol's highest bits are 0 in every word
        spare = self.symbols * self.symbol - self.bits
        total[values[:, :, self.symbols - 1] >> (self.symbol - spare) != 0] = -np.inf
        chosen = values[np.arange(rows), total.argmax(axis=1), : self.symbols].astype(np.uint64)
        chosen[:, -1] &= np.uint64((1 << (self.symbol - spare)) - 1)
        word = np.zeros(rows, dtype=np.uint64)
        for i in range(self.symbols):
            word |= chosen[:, i] << np.uint64(self.symbol * i)
        return word


# ------------------------------------------------------------------------------------------------
# The incidence transform of few counts in a large plane: their lines are walked, point by point.
#
# A hash to many values is over a field whose plane has many more points than there are items.


# The number of points of lines that take as long as the transform of a point of the plane.
_POINTS_AS_FAST = 8

# The largest order of a field: products of two elements of larger ones exceed 32 bits.
_LARGEST = 1 << 16


def walkable(space: VectorSpace, counts: npt.NDArray[np.int64], domain: int) -> bool:
    """Whether `walked` takes these counts, (..., directions, q), and is faster than `incident`."""
    if space.t != 2 or space.field.k > 1 or space.q > _LARGEST or counts.ndim != 2:
        return False
    points = np.count_nonzero(counts) * -(-domain // space.q)
    return points <= _POINTS_AS_FAST * space.size


def walked(space: VectorSpace, counts: npt.NDArray[np.int64], domain: int) -> npt.NDArray[np.int64]:
    """Return the first ``domain`` entries of ``space.incident(counts)``, if it is `walkable`."""
    q, rows = space.q, -(-domain // space.q)
    result = np.zeros((rows, q), dtype=np.int64)
    # A vector is (its number mod q, the rest); direction 0 is (1, 0), and direction 1 + a is (a, 1)
    result += counts[0]
    result += counts[1, :rows, None]
    places = np.flatnonzero(counts[2:])
    times = counts[2:].ravel()[places]
    direction, value = divmod(places, q)
    # In each row a line has one point, inverse (value - row): from row to row it moves by -inverse.
    # a x + row = value
    inverse = space.field.inverse(direction + 1)
    first = (inverse * value % q).astype(np.uint32)
    step = (q - inverse).astype(np.uint32)
    for row in range(rows):
        x = (first + np.uint32(row) * step) % np.uint32(q)
        np.add.at(result[row], x.astype(np.intp), times)
    return result.ravel()[:domain]
