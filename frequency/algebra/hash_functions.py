"""Public random bits that client and server compute from a seed, exactly 5-wise independent.

A bit of item x is the inner product over GF(2) of 129 random bits with (1, x, x^3), x an element of
GF(2^64). Any five different such vectors are linearly independent (they are columns of the check
matrix of an extended BCH code of distance 6), so the bits of any five items are independent and
uniform over the choice of the random bits. Those are the output of SHAKE-256 on the seed, the same
on every machine.
"""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mechdesign.base import Words

_MODULUS = np.uint64(0b11011)  # the modulus of GF(2^64): x^64 = x^4 + x^3 + x + 1

#: The largest number of items that are hashed with all bits of a hash in one array.
#:
#: For a client's one item that takes a tenth of the time. Of many items the bits are computed one
#: after the other, in less memory.
FEW = 256


#: The most public functions to bits of an oracle: clients and server keep 17 bytes of each.
MOST_FUNCTIONS = 1 << 24


class PublicBits:
    """A family of public functions from items 0 .. 2^64 - 1 to bits.

    Functions are chosen by ``seed``, at least 0; different labels have independent ones. There are
    up to `MOST_FUNCTIONS` rows of them, of which 17 bytes each are kept once a bit is asked for.
    """

    def __init__(self, label: str, seed: int, rows: int) -> None:
        self.text, self.rows = f"frequency:{label}:{seed}", rows

    @cached_property
    def _table(self) -> tuple[Words, Words, npt.NDArray[np.uint8]]:
        """The linear, cubic and constant parts of all functions, made once a bit is asked for."""
        rows = self.rows
        stream = hashlib.shake_256(self.text.encode()).digest(17 * rows)
        words = np.frombuffer(stream, "<u8", 2 * rows).astype(np.uint64, copy=False)
        constant = np.frombuffer(stream, np.uint8, offset=16 * rows) & np.uint8(1)
        return words[:rows], words[rows:], constant

    def bits(
        self, row: npt.NDArray[np.int64], features: tuple[Words, Words]
    ) -> npt.NDArray[np.uint8]:
        """Return the bits of items under some of the functions, as 0 and 1."""
        x, cube = features
        linear, cubic, constant = self._table
        word = (linear[row] & x) ^ (cubic[row] & cube)
        return (np.bitwise_count(word) ^ constant[row]) & np.uint8(1)


def features(items: npt.NDArray[np.int64]) -> tuple[Words, Words]:
    """Return x and x^3 in GF(2^64) of each item; items of 2^63 and more are given less 2^64."""
    x = items.astype(np.uint64)
    if x.size == 1:
        return x, np.full(x.shape, _cubed(x.item()), dtype=np.uint64)
    unit, top = np.uint64(1), np.uint64(63)
    square, cube = np.zeros_like(x), np.zeros_like(x)
    places = int(x.max(initial=0)).bit_length()
    # Twice x: x x, and then x^2 x. Russian peasant multiplication over GF(2), with the power
    # reduced by the modulus at each doubling, for all items at once.
    for shifted in (square, cube):
        power = x if shifted is square else square.copy()
        for place in range(places):
            shifted ^= power * (x >> np.uint64(place) & unit)
            power = (power << unit) ^ (power >> top) * _MODULUS
    return x, cube


def _cubed(x: int) -> int:
    """Return x^3 in GF(2^64), by Python's integers: for one item in a tenth of the time."""
    result, modulus = x, 1 << 64 | int(_MODULUS)
    for _ in range(2):
        power, result, rest = result, 0, x
        while rest:
            if rest & 1:
                result ^= power
            power <<= 1
            if power >> 64:
                power ^= modulus
            rest >>= 1
    return result


class LinearHash:
    """A public random function from words to ``places`` bits.

    h(x) = M x + b over GF(2) with a random matrix M and vector b. The values of any two different
    words are independent and uniform, and h(x ^ y) = h(x) ^ h(y) ^ h(0): the hashes of many words
    that differ from few in their last bits cost one exclusive or each.

    It is chosen by ``label`` and ``seed``, as `PublicBits` are. Of words of several integers of 64
    bits, along the last axis, the first ``limbs`` are hashed; None: a word is one integer.
    """

    def __init__(self, label: str, seed: int, places: int, limbs: int | None = None) -> None:
        self.text, self._limbs = f"frequency:{label}:{seed}", limbs
        stream = hashlib.shake_256(self.text.encode()).digest(8 * places * (limbs or 1) + 8)
        words = np.frombuffer(stream, dtype="<u8").astype(np.uint64)
        self._rows = words[1:].reshape(places, limbs or 1)
        self._constant = int(words[0]) & ((1 << places) - 1)
        self._powers = 1 << np.arange(places, dtype=np.int64)

    def __call__(self, words: Words) -> npt.NDArray[np.int64]:
        """Return the hash of each word, 0 .. 2^places - 1: of their shape, without limbs."""
        limbs = words[..., None] if self._limbs is None else words[..., : self._limbs]
        if limbs[..., 0].size <= FEW:
            mixed = np.bitwise_xor.reduce(limbs[..., None, :] & self._rows, axis=-1)
            few: npt.NDArray[np.int64] = (np.bitwise_count(mixed) & 1) @ self._powers
            return few ^ self._constant
        result = np.full(limbs.shape[:-1], self._constant, dtype=np.int64)
        for place, row in enumerate(self._rows):
            mixed = limbs[..., 0] & row[0]
            for limb in range(1, len(row)):
                mixed ^= limbs[..., limb] & row[limb]
            result ^= (np.bitwise_count(mixed) & 1).astype(np.int64) << place
        return result

    @property
    def zero(self) -> int:
        """The hash h(0)."""
        return self._constant


class Coins:
    """A source of public random words of each user, any of them computed when it is needed.

    The k-th word of a user is a function of both, and of the seed; ``first`` words are skipped.
    Privacy does not depend on their quality, so that a fast mixing function suffices (SplitMix64;
    Steele, Lea and Flood, OOPSLA 2014). Shapes: `users` (users,), a number of each.
    """

    def __init__(self, users: Words, seed: int = 0, first: int = 0) -> None:
        self._users, self._seed, self._first = users.astype(np.uint64), seed, first

    def __len__(self) -> int:
        return len(self._users)

    def __getitem__(self, chosen: npt.NDArray[np.int64] | slice) -> Coins:
        return Coins(self._users[chosen], self._seed, self._first)

    def after(self, count: int) -> Coins:
        """Return the words from the count-th on."""
        return Coins(self._users, self._seed, self._first + count)

    def words(self, place: npt.ArrayLike) -> Words:
        """Return the words at some places, 0 or more.

        Shape (users,) for one place or one a user, (users, c) for rows of them.
        """
        at = np.atleast_1d(np.asarray(place, dtype=np.uint64)) + np.uint64(self._first + 1)
        users = self._users[:, None] if at.ndim == 2 else self._users
        return _mixed(_mixed(users + np.uint64(self._seed)) + at * _GOLDEN)

    def uniform(self, place: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
        """Return public numbers in 0 .. k-1, each with probability 1 / k to within 2^-64."""
        return scaled(self.words(place), k)


def scaled(words: Words, k: int) -> npt.NDArray[np.int64]:
    """Return the whole part of k times each word's fraction of 2^64."""
    # The upper half of a product of 128 bits, from two products of 64 bits; exact for k up to 2^32.
    half, factor = np.uint64(32), np.uint64(k)
    low = (words & np.uint64(0xFFFFFFFF)) * factor >> half
    return ((words >> half) * factor + low >> half).astype(np.int64)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(words: Words) -> Words:
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
