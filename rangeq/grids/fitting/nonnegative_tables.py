"""Tables of two attributes without negative cells, from tables with noise."""

from __future__ import annotations

import numpy as np

from mechdesign._support.arrays import Floats

_ROUNDS = 100
_NEVER = -1e6
"""Far below any sum of cells."""

_TINY = 1e-300
"""Keeps quotients of nothing by nothing finite."""


def nonnegative(table: Floats) -> Floats:
    """A table whose cells are at least 0, and whose sums of many cells are nearly the same.

    From the whole down the mass of each block is shared out to its quarters: to the nearest shares
    that are at least 0. Norm-sub of all cells at once takes what it adds to negative ones from all,
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
    size = 1 << (max(table.shape) - 1).bit_length()
    signed = np.zeros((size, size))
    signed[: table.shape[0], : table.shape[1]] = table
    levels = [signed]
    while len(levels[-1]) > 1:
        half = len(levels[-1]) // 2
        levels.append(levels[-1].reshape(half, 2, half, 2).sum(axis=(1, 3)))
    # Quarters beyond the table have no share
    inside = np.zeros((size, size), dtype=bool)
    inside[: table.shape[0], : table.shape[1]] = True
    found = levels.pop()
    while levels:
        half = len(found)
        width = size // (2 * half)
        there = inside[::width, ::width]
        values = np.where(there, levels.pop(), _NEVER)
        quarters = values.reshape(half, 2, half, 2).transpose(0, 2, 1, 3).reshape(-1, 4)
        shares = _nearest(quarters, found.ravel()).reshape(half, half, 2, 2)
        found = shares.transpose(0, 2, 1, 3).reshape(2 * half, 2 * half)
    return found[: table.shape[0], : table.shape[1]]


def _nearest(values: Floats, sums: Floats) -> Floats:
    """The nearest rows that are at least 0 and have these sums: shapes (rows, k) and (rows,)."""
    ordered = -np.sort(-values, axis=1)
    counts = np.arange(1, values.shape[1] + 1)
    over = (ordered.cumsum(axis=1) - sums[:, None]) / counts
    kept = np.maximum((ordered > over).sum(axis=1), 1)
    return np.maximum(values - over[np.arange(len(values)), kept - 1][:, None], 0.0)


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
