"""Public random bits: functions that client and server both know from a seed, exactly 5-wise independent.

A bit of item x is the inner product over GF(2) of 129 random bits with (1, x, x^3), x an element of GF(2^64). Any five different
such vectors are linearly independent (they are columns of the check matrix of an extended BCH code of distance 6), so the bits of
any five items are independent and uniform over the choice of the random bits. Those are the output of SHAKE-256 on the seed, the
same on every machine.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.uint64]

_MODULUS = np.uint64(0b11011)
"""x^64 = x^4 + x^3 + x + 1."""


class PublicBits:
    """``rows`` functions from items 0 .. 2^64 - 1 to bits."""

    def __init__(self, label: str, seed: int, rows: int) -> None:
        stream = hashlib.shake_256(f"frequency:{label}:{seed}".encode()).digest(17 * rows)
        words = np.frombuffer(stream[: 16 * rows], dtype="<u8").astype(np.uint64).reshape(2, rows)
        self._linear, self._cubic = words
        self._constant = np.frombuffer(stream[16 * rows :], dtype=np.uint8) & 1

    def bits(self, row: npt.NDArray[np.int64], features: tuple[Words, Words]) -> npt.NDArray[np.uint8]:
        """The bits of ``features(items)`` under these rows (broadcast against each other), as 0 and 1."""
        x, cube = features
        word = (self._linear[row] & x) ^ (self._cubic[row] & cube)
        return (np.bitwise_count(word) ^ self._constant[row]) & np.uint8(1)


def features(items: npt.NDArray[np.int64]) -> tuple[Words, Words]:
    """x and x^3 in GF(2^64) of each item: what `PublicBits.bits` takes. Items of 2^63 and more are given less 2^64."""
    x = items.astype(np.uint64)
    one, top = np.uint64(1), np.uint64(63)
    square, cube = np.zeros_like(x), np.zeros_like(x)
    places = int(x.max(initial=0)).bit_length()
    for shifted in (square, cube):
        power = x if shifted is square else square.copy()
        for place in range(places):
            shifted ^= power * (x >> np.uint64(place) & one)
            power = (power << one) ^ (power >> top) * _MODULUS
    return x, cube
