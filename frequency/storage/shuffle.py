"""Reports in an order that tells nothing of the rows that they are of.

All reports of a table are as private as each of them if their order does not depend on what is
hidden. Of a table that is sorted, such as by age, it does: the last reports are of the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile

import numpy as np
import numpy.typing as npt

from frequency.core.channel import Reports
from mechdesign.base.randomness import BitSource

_PILES = 1 << 7
"""A power of two, at most 256: each pile has to fit in memory."""

_HELD = 1 << 18
"""Bytes of a pile that are held in memory, not in a temporary file."""


def shuffled(
    parts: Iterable[Reports], dtype: np.dtype[np.void], source: BitSource
) -> Iterator[Reports]:
    """Return the same reports: each goes to a random pile, and each pile into random order.

    Whatever their order was, the distribution of what comes out is the same.

    Each has shape (reports,).
    """
    with ExitStack() as stack:
        piles = [stack.enter_context(SpooledTemporaryFile(_HELD)) for _ in range(_PILES)]
        for part in parts:
            chosen = source(-(-len(part) // 8)).view(np.uint8)[: len(part)] % _PILES
            ends = np.cumsum(np.bincount(chosen, minlength=_PILES))
            order = np.argsort(chosen, kind="stable")
            for pile, reports in zip(piles, np.split(part[order], ends[:-1]), strict=True):
                pile.write(reports.tobytes())
        for pile in piles:
            pile.seek(0)
            reports = np.frombuffer(pile.read(), dtype)
            if len(reports):
                yield reports[_permutation(len(reports), source)]


def _permutation(size: int, source: BitSource) -> npt.NDArray[np.intp]:
    """Return a random order of so many, each with the same probability."""
    while True:
        words = source(size)
        order = np.argsort(words)
        ranked = words[order]
        if (ranked[1:] != ranked[:-1]).all():  # equal words would not tell which comes first
            return order
