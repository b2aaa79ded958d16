"""Histograms, integers, and numbers that may be floats, checked."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Integers
from mechdesign.base.numbers import Rational, exact, is_whole, whole
from mechdesign.base.text import from_text, shown

LARGEST_DOMAIN = 1 << 26
"""Cells that a histogram may have."""

LARGEST_DIMENSION = 8
"""Attributes that a histogram may have."""

LARGEST_TOTAL = 1 << 52
"""Users that a histogram may hold: up to there, noisy sums of counts are exact in 64-bit integers
and in floats.
"""

_LONGEST_NUMBER = 1 << 12


class InvalidHistogram(ValueError):
    """Counts that are not a histogram over the domain. Nothing was drawn.

    Attributes
    ----------
    index : int or tuple of int or None
        The first bad cell, by its places along several attributes; None if it is not a single one.
    """

    def __init__(self, message: str, index: int | tuple[int, ...] | None = None) -> None:
        self.index = index
        super().__init__(f"{message}; nothing was drawn")


def fraction(value: float | Rational, name: str) -> Fraction:
    """A float as the binary number that it is; anything else must be exact."""
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
        return Fraction(float(value))
    return exact(value, name)


def stored_number(text: Any) -> Fraction:
    """A number that a file holds, as `mechdesign.base.text.to_text` wrote it."""
    if isinstance(text, str) and len(text) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} characters, more than {_LONGEST_NUMBER}")
    return from_text(text)


def checked_quantiles(q: Any) -> tuple[Fraction, ...]:
    """Quantiles that are asked for, exactly."""
    asked = tuple(fraction(one, "q") for one in (q if isinstance(q, (tuple, list)) else (q,)))
    if not asked or min(asked) < 0 or max(asked) > 1:
        raise ValueError(f"q must be numbers from 0 to 1, one at least, got {shown(q)}")
    return asked


def checked_shape(shape: object) -> tuple[int, ...]:
    """The number of cells along each attribute."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not 1 <= len(given) <= LARGEST_DIMENSION:
        raise ValueError(
            f"shape must be an integer, or one for each of at most {LARGEST_DIMENSION} attributes,"
            f" got {shown(shape)}"
        )
    sizes = tuple(
        whole(size, "shape", 1, LARGEST_DOMAIN, what="a number of cells") for size in given
    )
    if math.prod(sizes) > LARGEST_DOMAIN:
        raise ValueError(f"shape {shown(sizes)} has {math.prod(sizes)} cells, more than 2^26")
    return sizes


def histogram(counts: npt.ArrayLike, shape: tuple[int, ...]) -> Integers:
    """Counts as int64, checked."""
    if isinstance(counts, np.ma.MaskedArray):
        raise InvalidHistogram("a masked array has counts that are missing")
    try:
        values = np.asarray(counts)
    except ValueError:
        raise InvalidHistogram(
            f"counts must be integers of shape {shape}, got rows of different lengths"
        ) from None
    if values.shape != shape:
        raise InvalidHistogram(f"counts must have shape {shape}, got {values.shape}")
    if values.dtype.kind not in "iuO":
        raise InvalidHistogram(f"counts must be of an integer type, got {values.dtype}")
    if values.dtype.kind == "O":
        bad = np.array([not is_whole(v) or not 0 <= v <= LARGEST_TOTAL for v in values.flat])
    else:
        bad = ((values < 0) | (values > LARGEST_TOTAL)).ravel()
    if bad.any():
        k = int(np.argmax(bad))
        places = tuple(int(place) for place in np.unravel_index(k, shape))
        (found,) = values.ravel()[k : k + 1].tolist()
        raise InvalidHistogram(
            f"counts[{', '.join(map(str, places))}] = {shown(found)} is not an integer"
            " from 0 to 2^52",
            places if len(shape) > 1 else k,
        )
    exactly = values.astype(np.int64)
    half = (1 << 26) - 1
    # Two halves: no sum overflows
    total = (int((exactly >> 26).sum()) << 26) + int((exactly & half).sum())
    if total > LARGEST_TOTAL:
        raise InvalidHistogram(f"the counts sum to {total}, more than 2^52")
    return exactly
