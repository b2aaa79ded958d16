"""Counts of few reports over many places: only those that are not 0 are kept, and written."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_SMALL = 1 << 12
"""So few counts are kept as they are."""

_SPARSE = 8
"""Of more, at most one in so many must differ from 0 for the others to be left out."""


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """An array of integers, most of them 0.

    Attributes
    ----------
    shape : tuple of int
        Of the array.
    places : numpy.ndarray of int64
        Shape (k,), ascending: where it is not 0, the last index counting fastest.
    values : numpy.ndarray of int64
        Shape (k,): what is there.
    """

    shape: tuple[int, ...]
    places: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]

    @property
    def pays(self) -> bool:
        """Whether there are so few that `sparse` keeps them like this."""
        return _pays(len(self.places), math.prod(self.shape))

    def dense(self) -> npt.NDArray[np.int64]:
        """The array itself, read-only."""
        counts = np.zeros(math.prod(self.shape), dtype=np.int64)
        counts[self.places] = self.values
        counts.setflags(write=False)
        return counts.reshape(self.shape)

    def part(self, place: slice, shape: tuple[int, ...]) -> SparseCounts:
        """Some of the counts, in the order of their places, as an array of this shape."""
        first, last = np.searchsorted(self.places, [place.start, place.stop])
        return SparseCounts(shape, self.places[first:last] - place.start, self.values[first:last])

    def plus(
        self, other: SparseCounts | npt.NDArray[np.int64]
    ) -> SparseCounts | npt.NDArray[np.int64]:
        """The sum of two arrays of the same shape."""
        if not isinstance(other, SparseCounts):
            total = other.flatten()
            total[self.places] += self.values
            return total.reshape(self.shape)
        places, which = np.unique(np.concatenate([self.places, other.places]), return_inverse=True)
        values = np.zeros(len(places), dtype=np.int64)
        np.add.at(values, which, np.concatenate([self.values, other.values]))
        some = values != 0
        few = SparseCounts(self.shape, places[some], values[some])
        return few if _pays(int(some.sum()), math.prod(self.shape)) else few.dense()

    def widths(self) -> tuple[int, int]:
        """The bytes of a place, and of a value with its sign: 1, 2, 4 or 8."""
        least = min(int(self.values.min(initial=0)), -1 - int(self.values.max(initial=0)))
        return _place_width(self.shape), np.min_scalar_type(least).itemsize

    def to_bytes(self) -> bytes:
        """All places, and then all values, little-endian."""
        place, value = self.widths()
        places, values = self.places.astype(f"<u{place}"), self.values.astype(f"<i{value}")
        return places.tobytes() + values.tobytes()

    @staticmethod
    def from_bytes(body: memoryview, shape: tuple[int, ...], number: object) -> SparseCounts:
        """What `to_bytes` wrote of so many counts that are not 0."""
        size = math.prod(shape)
        if type(number) is not int or size >= 1 << 53 or number < 0 or not _pays(number, size):
            raise ValueError(f"{number} counts of {size} are not written by their places")
        place = _place_width(shape)
        width, rest = divmod(len(body) - place * number, number) if number else (1, len(body))
        if width not in (1, 2, 4, 8) or rest:
            raise ValueError(f"{len(body)} bytes are not {number} counts and their places")
        places = np.frombuffer(body[: place * number], dtype=f"<u{place}").astype(np.int64)
        values = np.frombuffer(body[place * number :], dtype=f"<i{width}").astype(np.int64)
        found = SparseCounts(shape, places, values)
        if (
            (np.diff(places) <= 0).any()
            or places.max(initial=0) >= size
            or not values.all()
            or found.widths() != (place, width)
        ):
            raise ValueError("places out of order, or counts of 0, or too wide")
        return found


def sparse(counts: npt.NDArray[np.int64]) -> SparseCounts | npt.NDArray[np.int64]:
    """The counts that are not 0, where they are few; otherwise all, made read-only."""
    if counts.size > _SMALL and _pays(int(np.count_nonzero(counts)), counts.size):
        places = np.flatnonzero(counts)
        return SparseCounts(counts.shape, places, counts.ravel()[places].astype(np.int64))
    counts.setflags(write=False)
    return counts


def _place_width(shape: tuple[int, ...]) -> int:
    """The bytes of the narrowest integer that holds all places."""
    return np.min_scalar_type(max(math.prod(shape) - 1, 0)).itemsize


def _pays(number: int, size: int) -> bool:
    return size > _SMALL and number * _SPARSE <= size
