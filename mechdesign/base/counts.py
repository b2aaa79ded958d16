"""Arrays of counts, checked: what may come from users is refused before it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.exceptions import InvalidCount


def checked_counts(
    counts: npt.ArrayLike,
    largest: int,
    refusal: Callable[[int | tuple[int, ...], object, int], Exception] = InvalidCount,
) -> npt.NDArray[np.int64]:
    """``counts`` as int64 in 0 .. largest.

    Raises ``refusal(position, value, largest)`` for the first that is not such an integer.
    """
    values = np.asarray(counts)
    if isinstance(counts, np.ma.MaskedArray):
        # A masked entry is a missing count, not the number under the mask.
        values = counts.data.astype(object)
        values[np.ma.getmaskarray(counts)] = None
    elif values.dtype.kind not in "biuf":
        # Not asarray: that makes strings of all entries if one is
        values = np.array(counts, dtype=object)
    elif values.dtype.kind in "iu" and _all_within(values, largest):
        return values.astype(np.int64)
    if values.dtype.kind in "biu":
        bad = (
            np.zeros(values.shape, dtype=bool)
            if values.dtype.kind == "b"
            else (values < 0) | (values > largest)
        )
        if values.dtype.kind == "b" and largest < 1:
            bad = values.astype(bool)
    elif values.dtype.kind == "f":
        # A comparison in a narrower float would round ``largest``
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


def _all_within(values: npt.NDArray[np.integer[Any]], largest: int) -> bool:
    """Whether integers lie in 0 .. largest."""
    if values.size == 1:  # a client's one item: several times as fast as with numpy
        return bool(0 <= values.item() <= largest)
    return not values.size or bool(values.min() >= 0 and int(values.max()) <= largest)


def _is_count(value: Any, largest: int) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    try:
        return bool(0 <= value <= largest and value == int(value))
    except (TypeError, ValueError, OverflowError):
        return False
