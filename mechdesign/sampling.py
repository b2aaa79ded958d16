"""Exact sampling from integer weights, vectorised over users.

A draw compares the binary expansion of a uniform U in [0, 1) with the cumulative probabilities,
sixty-four bits at a time: the answer is the number of outputs whose cumulative probability is at
most U. The first word almost always decides; when it does not, more words are read until it is
decided. So the output has *exactly* the distribution of the integer table, whatever its
denominator, and no float is on the path.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.exceptions import InvalidCount

Words: TypeAlias = npt.NDArray[np.uint64]
BitSource: TypeAlias = Callable[[int], Words]
"""Given k, k uniform 64-bit words."""

_CHUNK = 1 << 16
"""Draws handled at a time, so that the working arrays stay in cache."""

_GUIDE_ENTRIES = 1 << 18
"""Size of the table that answers most draws with one look-up."""

_UNDECIDED = -1


def bit_source(rng: np.random.Generator | None) -> BitSource:
    """Words from the operating system (None) or from a seeded generator."""
    if rng is None:
        return lambda size: np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be None or a numpy.random.Generator, got {type(rng).__name__}")
    return lambda size: rng.integers(0, 1 << 64, size=size, dtype=np.uint64)


class Sampler:
    """Draws from the columns of ``weights / denominator`` (rows are outputs; every column sums to
    ``denominator``).
    """

    def __init__(self, weights: Sequence[Sequence[int]], denominator: int) -> None:
        self._cumulative = [list(accumulate(column)) for column in zip(*weights, strict=True)]
        self._denominator = denominator
        # Output of U is the number of thresholds <= U; the first word u decides unless u is the
        # integer part of one.
        self._thresholds = [
            np.array(
                [(c << 64) // denominator for c in cumulative if c < denominator], dtype=np.uint64
            )
            for cumulative in self._cumulative
        ]
        inputs = len(self._cumulative)
        self._bits = max(4, min(12, (_GUIDE_ENTRIES // inputs).bit_length() - 1))
        self._guide = np.stack([self._cells(thresholds) for thresholds in self._thresholds]).ravel()

    def _cells(self, thresholds: Words) -> npt.NDArray[np.int32]:
        """The output for each leading ``_bits`` bits of a word, or _UNDECIDED where the rest
        matters.
        """
        first = np.arange(1 << self._bits, dtype=np.uint64) << np.uint64(64 - self._bits)
        last = first + np.uint64((1 << (64 - self._bits)) - 1)
        # A word *equal* to a threshold is not decided either, hence the strict count on the left
        # end.
        below, above = (
            np.searchsorted(thresholds, first, side="left"),
            np.searchsorted(thresholds, last, side="right"),
        )
        return np.where(below == above, below, _UNDECIDED).astype(np.int32)

    def draw(
        self, counts: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> npt.NDArray[np.int64]:
        """One output for each input in ``counts``; same shape. InvalidCount before anything is
        drawn.
        """
        source = bit_source(rng)
        inputs = checked_counts(counts, len(self._cumulative) - 1)
        return self.outputs(inputs.ravel(), source).reshape(inputs.shape)

    def outputs(self, inputs: npt.NDArray[np.int64], source: BitSource) -> npt.NDArray[np.int64]:
        """One output for each input of a one-dimensional array of valid ones."""
        result = np.empty(inputs.shape, dtype=np.int64)
        for start in range(0, len(inputs), _CHUNK):
            part = inputs[start : start + _CHUNK]
            result[start : start + _CHUNK] = self._draw(part, source(len(part)), source)
        return result

    def _draw(
        self, inputs: npt.NDArray[np.int64], words: Words, source: BitSource
    ) -> npt.NDArray[np.int32]:
        outputs: npt.NDArray[np.int32] = self._guide[
            (inputs << self._bits) | (words >> np.uint64(64 - self._bits)).astype(np.int64)
        ]
        undecided = np.flatnonzero(outputs == _UNDECIDED)
        if len(undecided):
            order = undecided[np.argsort(inputs[undecided], kind="stable")]
            ends = np.flatnonzero(np.diff(inputs[order])) + 1
            for group in np.split(order, ends):
                thresholds, found = self._thresholds[inputs[group[0]]], words[group]
                outputs[group] = np.searchsorted(thresholds, found, side="right")
                tied = np.searchsorted(thresholds, found, side="left") != outputs[group]
                for k in group[tied]:  # probability about outputs / 2**64 a draw
                    outputs[k] = self._slow(int(inputs[k]), int(words[k]), source)
        return outputs

    def _slow(self, column: int, prefix: int, source: BitSource) -> int:
        """The obvious definition: extend U = prefix / 2**64 by words until no cumulative
        probability lies inside its cell.
        """
        bits = 64
        while True:
            # U is in [prefix, prefix + 1) / 2**bits; count the cumulative probabilities <= each
            # end's last point.
            low, high = prefix * self._denominator, (prefix + 1) * self._denominator - 1
            scaled = [c << bits for c in self._cumulative[column]]
            at_most_low, at_most_high = bisect_right(scaled, low), bisect_right(scaled, high)
            if at_most_low == at_most_high:
                return at_most_low
            prefix, bits = (prefix << 64) | int(source(1)[0]), bits + 64


def checked_counts(
    counts: npt.ArrayLike,
    largest: int,
    refusal: Callable[[int | tuple[int, ...], object, int], Exception] = InvalidCount,
) -> npt.NDArray[np.int64]:
    """``counts`` as int64 in 0 .. largest, or ``refusal(position, value, largest)`` for the first
    that is not such an integer.
    """
    values = np.asarray(counts)
    if isinstance(counts, np.ma.MaskedArray):
        # A masked entry is a missing count, not the number under the mask.
        values = counts.data.astype(object)
        values[np.ma.getmaskarray(counts)] = None
    elif values.dtype.kind not in "biuf":
        # Not asarray: that makes strings of all entries if one is
        values = np.array(counts, dtype=object)
    if values.dtype.kind in "biu":
        bad = (
            np.zeros(values.shape, dtype=bool)
            if values.dtype.kind == "b"
            else (values < 0) | (values > largest)
        )
        if values.dtype.kind == "b" and largest < 1:
            bad = values.astype(bool)
    elif values.dtype.kind == "f":
        # Lest the comparison rounds ``largest``
        values = values.astype(np.float64) if values.dtype.itemsize < 8 else values
        bad = ~((values >= 0) & (values <= largest) & (values == np.floor(values)))
    else:
        bad = np.array(
            [not _is_count(value, largest) for value in values.ravel()], dtype=bool
        ).reshape(values.shape)
    if bad.any():
        position = np.unravel_index(int(np.argmax(bad.ravel())), values.shape)
        index = int(position[0]) if len(position) == 1 else tuple(int(k) for k in position)
        raise refusal(
            index,
            values[position].item() if values.dtype.kind != "O" else values[position],
            largest,
        )
    return values.astype(np.int64)


def _is_count(value: object, largest: int) -> bool:
    try:
        return not isinstance(value, (str, bytes)) and 0 <= value <= largest and value == int(value)  # type: ignore[operator, call-overload]
    except (TypeError, ValueError, OverflowError):
        return False
