"""Sums over boxes of an array: exact for integers, and for floats nearly so."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Integers


class BoxSums:
    """The sums over any boxes of an array, 2^axes steps for each.

    Floats are split into integers and rests of at most a half, and each kind is cumulated by
    itself: so the error does not grow with the size of the values.

    Parameters
    ----------
    values : numpy.ndarray
        Integers, or floats of less than 2^63.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        whole = np.rint(values)
        self._parts = [_cumulated(whole.astype(np.int64))]
        if values.dtype.kind == "f":
            self._parts.append(_cumulated(values - whole))

    def between(self, first: Integers, after: Integers) -> Any:
        """The sums over boxes.

        Shapes: `first` and `after` (axes, ...).
        """
        total: Any = 0
        for part in self._parts:
            sums: Any = 0
            for ends in product((0, 1), repeat=len(first)):
                corner = tuple(
                    last if end else start
                    for end, start, last in zip(ends, first, after, strict=True)
                )
                sums = sums + (-1) ** (len(first) - sum(ends)) * part[corner]
            total = total + sums
        return total


def _cumulated(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    result = np.zeros(tuple(size + 1 for size in values.shape), dtype=values.dtype)
    inner = result[(slice(1, None),) * values.ndim]
    inner[...] = values
    for axis in range(values.ndim):
        np.cumsum(inner, axis=axis, out=inner)
    return result
