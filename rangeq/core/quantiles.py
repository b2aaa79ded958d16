"""Quantiles of a distribution function that noise has made to fall here and there."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.answer import plain
from mechdesign._support.arrays import Floats, Integers
from mechdesign._support.text import shown


def quantile(cdf: Floats, phi: npt.ArrayLike) -> Any:
    """The least items with at least the fraction phi at or below them.

    An estimated cdf may reach phi more than once. Then the answer is the middle between the first
    item that reaches it and the first after which all do; the first alone would be biased low by
    the noise. Monotone in phi.

    Parameters
    ----------
    cdf : numpy.ndarray of float64
        Shape (items,), of sum about 1.
    phi : array_like
        In [0, 1]: a number, or an array.

    Returns
    -------
    int or numpy.ndarray
        Items, of the shape of ``phi``.

    Raises
    ------
    ValueError
        For a phi outside of [0, 1], or a cdf that is not known.
    """
    if np.isnan(cdf[-1]):
        raise ValueError("no reports: there are no quantiles")
    wanted = fractions(phi)
    return plain((first_reaching(cdf, wanted) + reaching_for_good(cdf, wanted)) // 2)


def first_reaching(cdf: Floats, phi: Floats) -> Integers:
    """The first items with at least phi at or below them.

    Parameters
    ----------
    cdf : numpy.ndarray of float64
        Shape (items,).
    phi : numpy.ndarray of float64
        From 0 to 1.

    Returns
    -------
    numpy.ndarray of int64
        Shaped like ``phi``; the last item where none reaches it.
    """
    # A cdf summed up in floats may end just below 1
    found = np.searchsorted(np.maximum.accumulate(cdf), phi - 1e-12)
    return np.minimum(found, len(cdf) - 1)


def reaching_for_good(cdf: Floats, phi: Floats) -> Integers:
    """The first items with at least phi at or below them and all later ones.

    Parameters
    ----------
    cdf : numpy.ndarray of float64
        Shape (items,).
    phi : numpy.ndarray of float64
        From 0 to 1.

    Returns
    -------
    numpy.ndarray of int64
        Shaped like ``phi``; the last item where none does.
    """
    return first_reaching(np.minimum.accumulate(cdf[::-1])[::-1], phi)


def fractions(phi: npt.ArrayLike) -> Floats:
    """Numbers from 0 to 1; ValueError for others."""
    wanted = np.asarray(phi, dtype=np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"phi must lie in [0, 1], got {shown(phi)}")
    return wanted
