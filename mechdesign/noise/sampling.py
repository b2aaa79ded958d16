"""Exact sampling from integer weights, vectorised over users.

A draw compares the binary expansion of a uniform U in [0, 1) with the cumulative probabilities,
sixty-four bits at a time: the answer is the number of outputs whose cumulative probability is at
most U. The first word almost always decides; when it does not, more words are read until it is
decided. So the output has *exactly* the distribution of the integer table, whatever its
denominator, and no float is involved.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from mechdesign.base import BitSource, Words, bit_source, checked_counts

_CHUNK = 1 << 16  # draws handled at a time, so that the working arrays stay in cache

_GUIDE_ENTRIES = 1 << 18  # size of the table that answers most draws with one look-up

_UNDECIDED = -1


class Sampler:
    """Draws from the columns of ``weights / denominator``, which sum to 1; rows are outputs."""

    def __init__(self, weights: Sequence[Sequence[int]], denominator: int) -> None:
        self._outputs, self._denominator = len(weights), denominator
        # The output of U is the number of thresholds <= U. A threshold is a word and the rest, in
        # units of 1/denominator; the first word of U decides unless it equals that of a threshold.
        self._thresholds: list[Words] = []
        self._rests: list[list[int]] = []
        for column in zip(*weights, strict=True):
            ends = [divmod(c << 64, denominator) for c in accumulate(column) if c < denominator]
            self._thresholds.append(np.array([word for word, _ in ends], dtype=np.uint64))
            self._rests.append([rest for _, rest in ends])
        self._bits = max(4, min(12, (_GUIDE_ENTRIES // len(self._rests)).bit_length() - 1))

    @property
    def weights(self) -> list[tuple[int, ...]]:
        """The distribution of draws, from their thresholds: the given weights times 2^64.

        Rows are outputs; all columns have the same sum.
        """
        columns = []
        for words, rests in zip(self._thresholds, self._rests, strict=True):
            ends = [w * self._denominator + r for w, r in zip(words.tolist(), rests, strict=True)]
            ends += [self._denominator << 64] * (self._outputs - len(ends))
            columns.append([end - start for start, end in pairwise([0, *ends])])
        return list(zip(*columns, strict=True))

    @cached_property
    def _guide(self) -> npt.NDArray[np.int32]:
        """The cells of all inputs, one after the other."""
        return np.stack([self._cells(thresholds) for thresholds in self._thresholds]).ravel()

    def _cells(self, thresholds: Words) -> npt.NDArray[np.int32]:
        """Return the output for the leading ``_bits`` bits of a word, or _UNDECIDED."""
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
        """Return one output for each input in ``counts``, of the same shape.

        Raises InvalidCount before anything is drawn.
        """
        source = bit_source(rng)
        inputs = checked_counts(counts, len(self._rests) - 1)
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
                thresholds, group_words = self._thresholds[inputs[group[0]]], words[group]
                below = np.searchsorted(thresholds, group_words, side="left")
                above = np.searchsorted(thresholds, group_words, side="right")
                outputs[group] = above
                for at in np.flatnonzero(
                    below != above
                ):  # probability about outputs / 2**64 a draw
                    tied = self._rests[inputs[group[0]]][below[at] : above[at]]
                    outputs[group[at]] = below[at] + self._slow(tied, source)
        return outputs

    def _slow(self, rests: list[int], source: BitSource) -> int:
        """The number of rests that are at most that of U, by reading words until it is known."""
        prefix, bits = 0, 0
        while True:
            # That of U is in [prefix, prefix + 1) / 2**bits: count the rests <= each of its ends.
            low, high = prefix * self._denominator, (prefix + 1) * self._denominator - 1
            scaled = [rest << bits for rest in rests]
            at_most_low, at_most_high = bisect_right(scaled, low), bisect_right(scaled, high)
            if at_most_low == at_most_high:
                return at_most_low
            prefix, bits = (prefix << 64) | int(source(1)[0]), bits + 64


def uniform(size: int, k: int, source: BitSource) -> npt.NDArray[np.int64]:
    """Return uniform integers in 0 .. k-1, by rejection: exactly uniform; shape (size,)."""
    if k & (k - 1) == 0:
        return (
            np.zeros(size, dtype=np.int64)
            if k == 1
            else (source(size) >> np.uint64(65 - k.bit_length())).astype(np.int64)
        )
    # k intervals of `step` words, equally long, and a rest of fewer than k words that is drawn
    # again.
    step = np.uint64((1 << 64) // k)
    result = source(size) // step
    while len(over := np.flatnonzero(result >= np.uint64(k))):
        result[over] = source(len(over)) // step
    return result.astype(np.int64)
