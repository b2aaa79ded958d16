"""A histogram without negative numbers that answers boxes as an estimate does, by halving boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mechdesign.base.linear_algebra import Floats, Integers


def halved(
    box_sums: Callable[[Integers, Integers], Floats], sizes: Sequence[int], total: float
) -> Floats:
    """Share a total out to cells: box by box, to two halves at a time.

    The halves get what is nearest to their estimates, of all that is not negative and adds up to
    the box's. So noise in empty cells does not add up, as it does where negative cells are set to
    0: boxes of any size err about as the estimate does, or less.

    Shapes: `box_sums` (attributes, boxes) or (boxes,).
    """
    result = np.zeros(sizes)
    first = np.zeros((len(sizes), 1), dtype=np.int64)
    last = np.array(sizes, dtype=np.int64)[:, None] - 1
    mass = np.array([float(total)])
    while mass.size:
        length = last - first
        single = ~length.any(axis=0)
        result[tuple(first[:, single])] = mass[single]
        first, last, mass, length = (each[..., ~single] for each in (first, last, mass, length))
        # Along the longest side of each box
        side = length.argmax(axis=0), np.arange(mass.size)
        end, begin = last.copy(), first.copy()
        end[side] = (first[side] + last[side]) // 2
        begin[side] = end[side] + 1
        lead = box_sums(first, end) - box_sums(begin, last)
        lower = np.clip((mass + lead) / 2, 0.0, mass)
        first, last = np.hstack([first, begin]), np.hstack([end, last])
        mass = np.concatenate([lower, mass - lower])
    return result
