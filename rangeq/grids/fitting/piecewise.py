"""Distributions of one or two attributes that are uniform within cells, as answers to ranges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechdesign.base.arrays import Floats, Items
from rangeq.grids.cells import Edges


def _position(edges: Edges, ends: Items) -> tuple[Items, Floats]:
    """The cell before each boundary between values, and which part of it lies before the boundary.

    Boundaries are 0 .. size.
    """
    bounds = np.array(edges)
    cell = np.minimum(np.searchsorted(bounds, ends, side="right") - 1, len(edges) - 2)
    return cell, (ends - bounds[cell]) / (bounds[cell + 1] - bounds[cell])


@dataclass(frozen=True, eq=False)
class Line:
    """The distribution of one attribute, uniform within cells.

    Parameters
    ----------
    edges : tuple of int
        Where the cells begin, and the size.
    cells : numpy.ndarray of float64
        Shape (cells,): their frequencies.
    """

    edges: Edges
    cells: Floats

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.cells)])

    def answers(self, left: Items, right: Items) -> Floats:
        """The frequencies of ranges of values.

        Parameters
        ----------
        left, right : numpy.ndarray of int64
            Arrays of one shape, 0 <= left <= right < size.

        Returns
        -------
        numpy.ndarray of float64
            Of the ends' shape.
        """
        return self._before(right + 1) - self._before(left)

    def _before(self, ends: Items) -> Floats:
        cell, part = _position(self.edges, ends)
        result: Floats = (1 - part) * self._sums[cell] + part * self._sums[cell + 1]
        return result


@dataclass(frozen=True, eq=False)
class Plane:
    """The distribution of two attributes, uniform within cells.

    Parameters
    ----------
    edges : tuple of (tuple of int, tuple of int)
        Of each attribute: where the cells begin, and the size.
    cells : numpy.ndarray of float64
        Shape (cells of one, cells of the other): their frequencies.
    """

    edges: tuple[Edges, Edges]
    cells: Floats

    @cached_property
    def _sums(self) -> Floats:
        rows, columns = self.cells.shape
        result = np.zeros((rows + 1, columns + 1))
        result[1:, 1:] = self.cells.cumsum(axis=0).cumsum(axis=1)
        return result

    def quadrants(self, left: Items, right: Items) -> Floats:
        """The frequencies inside and outside of both ranges.

        They sum to the sum of the cells. None is negative if no cell is, rounding left aside.

        Parameters
        ----------
        left, right : numpy.ndarray of int64
            Shape (queries, 2): the ends of closed ranges, one of each attribute.

        Returns
        -------
        numpy.ndarray of float64
            Shape (queries, 2, 2): inside first, along the axis of each attribute.
        """
        (i, s), (j, t) = (
            _position(self.edges[axis], np.stack([left[:, axis], right[:, axis] + 1]))
            for axis in (0, 1)
        )
        i, s, j, t = i[:, None], s[:, None], j[None], t[None]
        sums = self._sums
        # Before each of two rows' ends and two columns' ends.
        corner = (1 - s) * ((1 - t) * sums[i, j] + t * sums[i, j + 1]) + s * (
            (1 - t) * sums[i + 1, j] + t * sums[i + 1, j + 1]
        )
        rows = ((1 - s) * sums[i, -1] + s * sums[i + 1, -1])[:, 0]
        columns = ((1 - t) * sums[-1, j] + t * sums[-1, j + 1])[0]
        inside = corner[1, 1] - corner[0, 1] - corner[1, 0] + corner[0, 0]
        row, column = rows[1] - rows[0], columns[1] - columns[0]
        result = np.empty((len(left), 2, 2))
        result[:, 0, 0], result[:, 0, 1] = inside, row - inside
        result[:, 1, 0], result[:, 1, 1] = column - inside, sums[-1, -1] - row - column + inside
        return result

    def marginal(self, axis: int) -> Line:
        """The distribution of one of the two attributes."""
        return Line(self.edges[axis], self.cells.sum(axis=1 - axis))

    def values(self) -> Floats:
        """The frequency of every pair of values: shape (size of the first, size of the second)."""
        rows, columns = (np.diff(edges) for edges in self.edges)
        density = self.cells / np.multiply.outer(rows, columns)
        return np.repeat(np.repeat(density, rows, axis=0), columns, axis=1)
