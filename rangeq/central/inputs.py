"""Histograms, integers, and numbers that may be floats, checked."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechdesign._support.arrays import Integers
from mechdesign._support.numbers import Rational, exact, is_whole
from mechdesign._support.text import shown

LARGEST_DOMAIN = 1 << 26
"""Cells that a histogram may have."""

LARGEST_TOTAL = 1 << 52
"""Users that a histogram may hold: up to there, noisy sums of counts are exact in 64-bit integers
and in floats.
"""


class InvalidHistogram(ValueError):
    """Counts that are not a histogram over the domain. Nothing was drawn.

    Attributes
    ----------
    index : int or None
        The first bad cell; None if it is not a single one.
    """

    def __init__(self, message: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(f"{message}; nothing was drawn")


def fraction(value: float | Rational, name: str) -> Fraction:
    """A float as the binary number that it is; anything else must be exact.

    Parameters
    ----------
    value : float, Fraction, int, str or Decimal
        The number.
    name : str
        What it is called in error messages.

    Returns
    -------
    Fraction
        The same number.

    Raises
    ------
    ValueError
        An infinity, NaN, or what is no number.
    """
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value}")
        return Fraction(float(value))
    return exact(value, name)


def histogram(counts: npt.ArrayLike, domain: int) -> Integers:
    """Counts as int64, checked.

    Parameters
    ----------
    counts : array_like
        Shape (domain,): integers >= 0 of an integer type, of sum at most 2^52.
    domain : int
        The number of cells, at least 1.

    Returns
    -------
    numpy.ndarray of int64
        Shape (domain,).

    Raises
    ------
    InvalidHistogram
        Anything else.
    """
    if isinstance(counts, np.ma.MaskedArray):
        raise InvalidHistogram("a masked array has counts that are missing")
    try:
        values = np.asarray(counts)
    except ValueError:
        raise InvalidHistogram(
            f"counts must be {domain} integers, got rows of different lengths"
        ) from None
    if values.shape != (domain,):
        raise InvalidHistogram(f"counts must have shape ({domain},), got {values.shape}")
    if values.dtype.kind not in "iuO":
        raise InvalidHistogram(f"counts must be of an integer type, got {values.dtype}")
    if values.dtype.kind == "O":
        bad = np.array([not is_whole(v) or not 0 <= v <= LARGEST_TOTAL for v in values])
    else:
        bad = (values < 0) | (values > LARGEST_TOTAL)
    if bad.any():
        k = int(np.argmax(bad))
        raise InvalidHistogram(
            f"counts[{k}] = {shown(values[k])} is not an integer from 0 to 2^52", k
        )
    exactly = values.astype(np.int64)
    half = (1 << 26) - 1
    # Two halves: no sum overflows
    total = (int((exactly >> 26).sum()) << 26) + int((exactly & half).sum())
    if total > LARGEST_TOTAL:
        raise InvalidHistogram(f"the counts sum to {total}, more than 2^52")
    return exactly
