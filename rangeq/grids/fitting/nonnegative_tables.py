"""Tables of two attributes without negative cells, from tables with noise."""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Floats, Integers
from rangeq.core.halving import halved

_ROUNDS = 100

_TINY = 1e-300
"""Keeps quotients of nothing by nothing finite."""


def nonnegative(table: Floats) -> Floats:
    """A table whose cells are at least 0, and whose sums of many cells are nearly the same.

    By `halved`. Norm-sub of all cells at once takes what it adds to negative ones from all,
    wherever they are: of a table that is mostly noise in its cells little is left of larger sums.

    Parameters
    ----------
    table : numpy.ndarray of float64
        Shape (rows, columns): of a sum above 0.

    Returns
    -------
    numpy.ndarray of float64
        Of the same shape and sum; the table itself if no cell is negative.
    """
    if (table >= 0).all():
        return table
    before = np.pad(table.cumsum(axis=0).cumsum(axis=1), [(1, 0), (1, 0)])

    def box_sums(first: Integers, last: Integers) -> Floats:
        (top, left), (bottom, right) = first, last + 1
        lower: Floats = before[bottom, right] - before[bottom, left]
        return lower - before[top, right] + before[top, left]

    return halved(box_sums, table.shape, float(table.sum()))


def with_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """A table brought to its margins by iterative proportional fitting.

    Parameters
    ----------
    table : numpy.ndarray of float64
        Shape (rows, columns), at least 0.
    rows, columns : numpy.ndarray of float64
        The margins, of sum 1 each.

    Returns
    -------
    numpy.ndarray of float64
        Of the same shape: nearly with these margins, where cells of 0 allow for them.
    """
    kernel = table + 1e-9 * np.outer(rows, columns)
    right = np.ones(len(columns))
    for _ in range(_ROUNDS):
        left = rows / np.maximum(kernel @ right, _TINY)
        right = columns / np.maximum(kernel.T @ left, _TINY)
    return np.asarray(left[:, None] * kernel * right)
