"""Samples: the counts of an aggregate, for comparing collectors.

They are sums over independent reports; a `Sample` says how one report's vector varies.

Channels state it of their own counts; `frequency.storage.collector_checks` tests it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats


class Sample(NamedTuple):
    """Sums of vectors over ``n`` independent reports.

    One report's vector has the covariance diag(spread) - common common'.

    Attributes
    ----------
    n : int
        The number of reports, at least 0.
    sums : numpy.ndarray of float64
        Shape (cells,): of the reports' vectors.
    spread : numpy.ndarray of float64
        Shape (cells,): see above.
    common : numpy.ndarray of float64, optional
        Shape (cells,): see above; None: 0.
    fixed : bool
        Whether every report's vector has the same sum. The covariance may then differ by a multiple
        of 1 1', and cells without ``common`` are kinds of reports.
    known : bool
        Whether ``spread`` is not estimated but known, the probabilities of the cells.
    view : int
        Samples of different views are not independent of each other.
    """

    n: int
    sums: Floats
    spread: Floats
    common: Floats | None = None
    fixed: bool = False
    known: bool = False
    view: int = 0


def cells(n: int, counts: npt.ArrayLike, view: int = 0) -> Sample:
    """Return the sample of n reports by their kind, from `counts` (cells,)."""
    sums = np.asarray(counts, dtype=np.float64).ravel()
    return Sample(n, sums, sums / max(n, 1), fixed=True, view=view)


def public(n: int, counts: npt.ArrayLike, probabilities: Sequence[float] | Floats) -> Sample:
    """Return the sample of n reports by kind, (cells,), where the probabilities are known."""
    return Sample(
        n,
        np.asarray(counts, dtype=np.float64).ravel(),
        np.asarray(probabilities, dtype=np.float64),
        None,
        True,
        True,
    )


def signs(n: int, counts: npt.ArrayLike, share: float) -> Sample:
    """The sums of the signs of each index, `counts` (indices,)."""
    sums = np.asarray(counts, dtype=np.float64).ravel()
    return Sample(n, sums, np.full(len(sums), share), sums / max(n, 1))


def bits(n: int, counts: npt.ArrayLike, q: float) -> Sample:
    """Return the sample of the bits of n reports, `counts` (bits,).

    A bit is 1 with probability ``q`` unless it is that of the user's item.
    """
    sums = np.asarray(counts, dtype=np.float64).ravel()
    mean = sums / max(n, 1)
    return Sample(n, sums, mean * (1 - mean) + (mean - q) ** 2, mean - q)


# ------------------------------------------------------------------------------------------------
# Counts of few reports over many places: only those that are not 0 are kept, and written.


_SMALL = 1 << 12  # so few counts are kept as they are

_SPARSE = 8  # of more, at most one in so many must differ from 0 for the others to be left out


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """An array of integers, most of them 0."""

    shape: tuple[int, ...]
    #: Shape (k,), ascending: where it is not 0, the last index counting fastest.
    places: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]  #: Shape (k,): what is there.

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
        """Return the counts at a range of places, as an array of this shape."""
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
        """Read `to_bytes` of so many counts that are not 0."""
        size = math.prod(shape)
        if type(number) is not int or size >= 1 << 53 or number < 0 or not _pays(number, size):
            raise ValueError(f"{number} counts of {size} are not written by their places")
        place = _place_width(shape)
        width, rest = divmod(len(body) - place * number, number) if number else (1, len(body))
        if width not in (1, 2, 4, 8) or rest:
            raise ValueError(f"{len(body)} bytes are not {number} counts and their places")
        places = np.frombuffer(body[: place * number], dtype=f"<u{place}").astype(np.int64)
        values = np.frombuffer(body[place * number :], dtype=f"<i{width}").astype(np.int64)
        counts = SparseCounts(shape, places, values)
        if (
            (np.diff(places) <= 0).any()
            or places.max(initial=0) >= size
            or not values.all()
            or counts.widths() != (place, width)
        ):
            raise ValueError("places out of order, or counts of 0, or too wide")
        return counts


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
