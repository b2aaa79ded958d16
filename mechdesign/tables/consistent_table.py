"""Consistent tables: cells, margins and total that agree, with fractions or in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechdesign.base.linear_algebra import Booleans, Floats, Integers
from mechdesign.base.text import aligned
from mechdesign.tables.axes import Axes, Where
from mechdesign.tables.least_squares import LeastSquares
from mechdesign.tables.weighted_estimate import MeasurementErrors, WeightedEstimate


@dataclass(frozen=True, eq=False, repr=False)
class ConsistentTable:
    """A least squares estimate of a contingency table: its cells, margins and total agree.

    Every estimate is unbiased, so that cells may be negative and are no whole numbers.

    Parameters
    ----------
    axes : Axes
        The names and labels.
    fit : LeastSquares
        Of the cells, in the order of a flat array.
    cells : numpy.ndarray of float64
        Of the table's shape: the estimates of the cells.
    errors : MeasurementErrors
        Of what was measured: of the cells, and then of sums; those of public sums are 0.
    sizes : numpy.ndarray of int64
        Of the table's shape: the largest possible count of each cell.
    within : tuple of str or None
        The axes of the groups whose sums are public, and the largest count of each of their cells.
    """

    axes: Axes
    fit: LeastSquares
    cells: Floats
    errors: MeasurementErrors
    sizes: Integers
    within: tuple[str, ...] | None

    def estimate(self, where: Where) -> WeightedEstimate:
        """Return the number of people in all cells that have some labels.

        Parameters
        ----------
        where : mapping of str to str or sequence of str
            As for `Axes.where`; nothing for the total.

        Returns
        -------
        WeightedEstimate
            Its value, variance and confidence intervals.

        Raises
        ------
        InvalidTable
            There is no such axis or label.
        """
        chosen = self.axes.where(where)
        (coefficients,) = self.fit.coefficients(chosen.reshape(1, -1).astype(np.float64))
        value = float(self.cells[chosen].sum())
        return WeightedEstimate(value, coefficients, self.errors, self._people(chosen))

    def _people(self, chosen: Booleans) -> int:
        """Return the most people that can be in some cells."""
        sizes = np.where(chosen, self.sizes, 0).ravel()
        if self.within is None:
            return int(sizes.sum())
        # Everybody of each of the groups
        groups = self.axes.groups(self.within)
        most = np.zeros(groups.max() + 1, dtype=np.int64)
        np.maximum.at(most, groups, sizes)
        return int(most.sum())

    def margin(self, names: Sequence[str]) -> Floats:
        """The sums over all axes but some, which agree with the cells and with each other.

        Parameters
        ----------
        names : sequence of str
            The axes that are kept; none for the total.

        Returns
        -------
        numpy.ndarray of float64
            With these axes, in the table's order.

        Raises
        ------
        InvalidTable
            There is no such axis.
        """
        return self.axes.margin(self.cells, names)

    @property
    def variances(self) -> Floats:
        """The unbiased estimates of the variances of the cells; they may be negative.

        It takes a number of steps that grows with the square of the number of cells.
        """
        return self._variances[0]

    @property
    def worst_variances(self) -> Floats:
        """The variances of the cells in the worst case, whatever the true counts."""
        return self._variances[2]

    @property
    def standard_errors(self) -> Floats:
        """The roots of `variances`, each moved to the least or largest possible one beyond it."""
        estimated, least, worst = self._variances
        return np.sqrt(np.minimum(np.maximum(estimated, least), worst))

    @cached_property
    def _variances(self) -> list[Floats]:
        """The variances: estimated, least and worst."""
        squares = [np.zeros((0, 3))]
        measured = np.stack([self.errors.variances, self.errors.least, self.errors.worst], axis=1)
        # Measurements are independent: a sum's variance has the squares of its weights. By parts,
        # as all coefficients of all cells would not fit into memory.
        squares += [each**2 @ measured for each in self.fit.cell_coefficients()]
        return [column.reshape(self.axes.shape) for column in np.concatenate(squares).T]

    def __str__(self) -> str:
        rows = [(*self.axes.names, "estimate", "standard error")]
        pairs = zip(self.cells.ravel(), self.standard_errors.ravel(), strict=True)
        for labels, (value, error) in zip(self.axes.cells(), pairs, strict=True):
            rows.append((*labels, f"{value:.1f}", f"{error:.1f}"))
        return "\n".join(aligned(rows))

    def __repr__(self) -> str:
        return f"<ConsistentTable of {' x '.join(map(str, self.axes.shape))} cells>"


@dataclass(frozen=True, eq=False, repr=False)
class WholeTable:
    """The table of whole numbers that is nearest to what was measured. **It is biased.**

    Its cells are whole numbers from 0 to the largest possible; margins and total are their sums,
    and public sums hold exactly. Among all such tables it has the least sum of squares, of cells
    and of measured sums, each divided by its variance: what `ConsistentTable` minimises without
    these bounds. Bounds push estimates inwards: cells near 0 are too large on average, and full
    ones too small, by as much as their standard error. So totals of many cells should come from
    `ConsistentTable`, whose errors cancel.

    How large the bias is depends on the unknown counts. It was measured where these are the cells
    of this very table, by further draws from the same mechanisms, which cost no privacy.

    Parameters
    ----------
    axes : Axes
        The names and labels.
    cells : numpy.ndarray of int64
        Of the table's shape.
    draws : int
        The number of draws, at least 2.
    bias : numpy.ndarray of float64
        Of the table's shape: the mean over the draws of the cell less its true count.
    standard_errors : numpy.ndarray of float64
        Of the table's shape: of the bias, as the mean of so many draws.
    """

    axes: Axes
    cells: Integers
    draws: int
    bias: Floats
    standard_errors: Floats

    def margin(self, names: Sequence[str]) -> Integers:
        """The sums over all axes but some, which agree with the cells and with each other.

        Parameters
        ----------
        names : sequence of str
            The axes that are kept; none for the total.

        Returns
        -------
        numpy.ndarray of int64
            With these axes, in the table's order.

        Raises
        ------
        InvalidTable
            There is no such axis.
        """
        return self.axes.margin(self.cells, names)

    def __str__(self) -> str:
        rows = [(*self.axes.names, "count", "bias", "its error")]
        columns = (self.cells.ravel().tolist(), self.bias.ravel(), self.standard_errors.ravel())
        rows += [
            (*labels, str(count), f"{bias:+.2f}", f"{error:.2f}")
            for labels, count, bias, error in zip(self.axes.cells(), *columns, strict=True)
        ]
        note = (
            f"biased: whole numbers of at least 0; measured over {self.draws} draws with these"
            f" counts as the true ones, {self.bias.sum():+.2f} in the total"
        )
        return "\n".join([*aligned(rows), note])

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.axes.shape))
        return f"<WholeTable of {shape} cells, biased by {self.bias.sum():+.3g} in all>"
