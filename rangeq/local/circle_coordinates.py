"""Coordinates on a circular domain in which all that is stationary there is diagonal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechdesign.base.arrays import Floats

Transform = npt.NDArray[np.complex128]
"""What `numpy.fft.rfft` gives: shape (..., size // 2 + 1)."""


def coordinates(items: Floats) -> Floats:
    """Values of the items of a circular domain, but for their sum, in the basis of its frequencies.

    Real and orthonormal: what is stationary on the circular domain has independent coordinates.

    Parameters
    ----------
    items : numpy.ndarray of float64
        Shape (..., size), size at least 2.

    Returns
    -------
    numpy.ndarray of float64
        Shape (..., 2 (size // 2)): a pair, of one variance, for each frequency 1, 2, ... The second
        one of the last pair is 0 if size is even.
    """
    return of_transform(np.fft.rfft(items), items.shape[-1])


def of_transform(transform: Transform, size: int) -> Floats:
    """The `coordinates` of what has this `numpy.fft.rfft`: shape (..., size // 2 + 1)."""
    result: Floats = np.ascontiguousarray(transform[..., 1:] * _scale(size)).view(np.float64)
    return result


def transform_of(values: Floats, total: float, size: int) -> Transform:
    """The `numpy.fft.rfft` of what has these `coordinates` and this sum."""
    return np.insert(values.view(np.complex128) / _scale(size), 0, total, axis=-1)


def items_of(values: Floats, total: float, size: int) -> Floats:
    """The values of the items that have these `coordinates` and this sum: shape (..., size)."""
    return np.fft.irfft(transform_of(values, total, size), size)


def _scale(size: int) -> Floats:
    result = np.full(size // 2, np.sqrt(2 / size))
    if size % 2 == 0:
        result[-1] = np.sqrt(1 / size)
    return result
