"""Consistent tables: cells, margins and total that agree, with fractions or in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base import Booleans, Floats, Integers, aligned
from mechdesign.exceptions import SolverFailure
from mechdesign.tables.axes import Axes, Where
from mechdesign.tables.estimates import MeasurementErrors, WeightedEstimate

# ------------------------------------------------------------------------------------------------
# Weighted least squares: one estimate of cells from measurements of the cells and of sums of them.
#
# Measurements y of the cells, z of the sums M x, and known sums, errors independent. With the
# variances D and E that the measurements are weighted by, least squares gives
#
#     x = y + D M' (E + M D M')^-1 (z - M y),
#
# which is linear in y and z. So it is unbiased whatever the weights are, as long as these do not
# depend on what was measured; and the variance of a weighted sum of cells follows from the
# measurements' true variances, or is estimated without bias from unbiased estimates of them.


#: The type of a ``scipy.sparse.csr_array`` of float64, whose types know little of arithmetic.
Sparse: TypeAlias = Any

_AT_ONCE = 1 << 22  # the largest number of numbers of a working array

# The least variance of measured sums, as a share of the variance of the sum of their cells.
#
# Weights may be anything, but sums known from several sides must not make the equations singular.
_LEAST_SHARE = 1e-9


class LeastSquares:
    """The weighted least squares estimate of cells whose sums were measured, too.

    No cell is in two sums that are known, of variance 0. Variances are public; measurements are
    weighted by them. Shapes: `variances` (cells,), at least 0; `sums` (sums, cells), M, of zeros
    and ones; `sum_variances` (sums,).
    """

    def __init__(self, variances: Floats, sums: Sparse, sum_variances: Floats) -> None:
        self.variances, self.sums = variances, sums
        sizes = sums @ variances
        self._weighed = (sums * variances[None, :]).tocsr()
        measured = np.where(sum_variances > 0, np.maximum(sum_variances, sizes * _LEAST_SHARE), 0.0)
        # Of cells that all are certain nothing is left to say
        self._all = measured + np.where((sizes == 0) & (measured == 0), 1.0, 0.0)

    @cached_property
    def _matrix(self) -> Sparse:
        return scipy.sparse.csc_array(
            scipy.sparse.diags_array(self._all) + self._weighed @ self.sums.T
        )

    def _solve(self, right: Floats) -> Floats:
        """Return (E + M D M')^-1 times the columns."""
        if not len(self._all):
            return right
        solution: Floats = self._factors.solve(right)
        # One step of iterative refinement: known sums, with variance 0, are to hold to rounding.
        solution += self._factors.solve(right - self._matrix @ solution)
        return solution

    @cached_property
    def _factors(self) -> Any:
        # Sparse LU of a system in the sums: there are far fewer than cells, and M has few entries
        # in each row and column. Factorised once, for all right sides.
        return scipy.sparse.linalg.splu(self._matrix)

    def fit(self, measured: Floats, measured_sums: Floats) -> Floats:
        """Return the estimates of the cells.

        Shapes: `measured` and the result (cells,), `measured_sums` (sums,).
        """
        missing = self._solve(measured_sums - self.sums @ measured)
        cells: Floats = measured + self._weighed.T @ missing
        return cells

    def coefficients(self, weights: Floats) -> Floats:
        """Return the weights of the measurements in weighted sums of the estimated cells.

        Shapes: `weights` (queries, cells); returns (queries, cells + sums).
        """
        of_sums = self._solve(self._weighed @ weights.T).T
        return np.hstack([weights - of_sums @ self.sums, of_sums])

    def cell_coefficients(self) -> Iterator[Floats]:
        """Yield the `coefficients` of each cell, (some cells, cells + sums) at a time."""
        cells = len(self.variances)
        step = max(1, _AT_ONCE // max(cells, 1))
        for start in range(0, cells, step):
            yield self.coefficients(np.eye(min(step, cells - start), cells, start))


def indicators(groups: npt.NDArray[np.int64]) -> Sparse:
    """Return the sums over groups of cells as a matrix of zeros and ones, (groups, cells)."""
    places: Any = groups, np.arange(len(groups))
    shape: Any = int(groups.max(initial=-1)) + 1, len(groups)
    return scipy.sparse.csr_array((np.ones(len(groups)), places), shape=shape)


# ------------------------------------------------------------------------------------------------
# The nearest table of whole numbers: an integer program, of a flow where the table has two axes.
#
# Least squares over whole numbers is separable and convex: a sum of squares of single cells and of
# single sums. A square of a whole number is, at whole numbers, a polygon with a corner at each. So
# the program is linear in the lengths of the polygons' edges; with rows, columns and a grand total
# it is a flow, whose vertices are whole already, and more families of sums need branching.


# So many edges of a polygon are laid out on either side at first; beyond them it goes straight.
_EDGES = 4

_FAR = 1 << 12  # how far towards their targets the polygons of sums are laid out at first

# No measurement weighs more than one over this as much as the least certain cell.
_LEAST_WEIGHT = 1e-6

_WHOLE = 1e-6  # how far from whole numbers a solver may leave them


class Measured(NamedTuple):
    """Measurements of cells, and of sums of them, that a table is fitted to."""

    values: Floats  # shape (cells,)
    variances: Floats  # shape (cells,), at least 0; the squares are divided by them
    sums: Sparse  # shape (sums, cells), of zeros and ones
    sum_values: Floats  # shape (sums,)
    sum_variances: Floats  # shape (sums,); 0: the sum is known, and whole

    @property
    def known(self) -> Booleans:
        """The sums that are known, as a mask."""
        return np.equal(self.sum_variances, 0)

    def objective(self, cells: Integers) -> float:
        """Return the sum of weighted squares at cells (cells,), known sums left out."""
        off = (self.sums @ cells - self.sum_values)[~self.known]
        weights, sum_weights = self.weights
        return float(
            (weights * (cells - self.values) ** 2).sum() + (sum_weights[~self.known] * off**2).sum()
        )

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """The factors of the squares of cells and sums: at most 10^6, of cells at least 1."""
        unit = self.variances.max(initial=0.0) or 1.0
        least = unit * _LEAST_WEIGHT
        return unit / np.maximum(self.variances, least), unit / np.maximum(
            self.sum_variances, least
        )


def nearest_whole(measured: Measured, largest: Integers, start: Floats) -> Integers:
    """Return the table of whole numbers with the least sum of weighted squares.

    Shapes: `largest`, `start` and the result (cells,).
    """
    known = measured.known
    weights, sum_weights = measured.weights
    # All squares: first of the cells, then of the sums that were measured
    squares = _Squares(
        np.concatenate([measured.values, measured.sum_values[~known]]),
        np.concatenate([weights, sum_weights[~known]]),
    )
    parts: list[Sparse] = [scipy.sparse.eye_array(len(largest)), measured.sums[~known]]
    numbers: Sparse = scipy.sparse.csr_array(scipy.sparse.vstack(parts))
    whole_sums = np.rint(measured.sum_values[known])
    high = numbers @ largest
    near = numbers @ np.clip(np.rint(start), 0, largest)
    # Few sums, which the bounds of many cells push far from their targets
    others = np.clip(np.rint(squares.targets), near - _FAR, near + _FAR)
    others[: len(largest)] = near[: len(largest)]
    first, last = np.minimum(near, others) - _EDGES, np.maximum(near, others) + _EDGES
    while True:
        first, last = np.clip(first, 0.0, high), np.clip(last, 0.0, high)
        polygons = _Polygons(squares, first, last, high)
        cells = _solved(polygons, measured.sums[~known], measured.sums[known], whole_sums)
        reached = numbers @ cells
        # Beyond its edges a polygon is below the square, and one step beyond it meets it
        below, above = reached < first - 1, reached > last + 1
        if not (below | above).any():
            break
        more = 2 * (last - first) + _EDGES
        first = np.where(below, reached - more, first)
        last = np.where(above, reached + more, last)
    if (measured.sums[known] @ cells != whole_sums).any() or (
        (cells < 0) | (cells > largest)
    ).any():
        raise SolverFailure("HiGHS returned a table whose known sums are off")
    return cells


class _Squares(NamedTuple):
    """Squares of the distance from targets, each times a factor."""

    targets: Floats
    factors: Floats

    def rise(self, which: Integers | slice, start: Floats) -> Floats:
        """The rise of a square from a whole number to the next."""
        return self.factors[which] * (2 * (start - self.targets[which]) + 1)


class _Polygons:
    """Squares at whole numbers, from ``first`` to ``last``, and straight on from 0 to ``high``."""

    def __init__(self, squares: _Squares, first: Floats, last: Floats, high: Floats) -> None:
        # Shapes: `first` to `high` (numbers,), the attributes but `first` (edges,)
        self.first = first
        count = (last - first).astype(np.int64)
        inside = np.repeat(np.arange(len(count)), count)
        step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        every, each = slice(None), np.arange(len(count))
        # The square of each edge, and -1 for those to the left of `first`
        self.of = np.concatenate([inside, each, each])
        self.signs = np.concatenate([np.ones(len(inside)), -np.ones(len(each)), np.ones(len(each))])
        # What a step along an edge costs, and how long the edge is
        self.costs = np.concatenate(
            [
                squares.rise(inside, first[inside] + step),
                -squares.rise(every, first - 1),
                squares.rise(every, last),
            ]
        )
        self.lengths = np.concatenate([np.ones(len(inside)), first, high - last])

    @property
    def matrix(self) -> Sparse:
        """The effect of steps along the edges on each number: shape (numbers, edges)."""
        places = (self.of, np.arange(len(self.of)))
        return scipy.sparse.csr_array((self.signs, places), shape=(len(self.first), len(self.of)))


def _solved(
    polygons: _Polygons,
    sums: Sparse,
    known: Sparse,
    known_sums: Floats,
) -> Integers:
    """The best table: linear, since steps along edges of rising cost are taken in order."""
    cells = sums.shape[1]
    steps, first = polygons.matrix, polygons.first
    parts: list[Sparse] = [sums @ steps[:cells] - steps[cells:], known @ steps[:cells]]
    constraints: Any = scipy.sparse.csc_array(scipy.sparse.vstack(parts))
    right = np.concatenate(
        [first[cells:] - sums @ first[:cells], known_sums - known @ first[:cells]]
    )
    bounds = scipy.optimize.Bounds(np.zeros(len(polygons.costs)), polygons.lengths)
    # A flow has a vertex of whole numbers, which the simplex method finds
    solve: Any = scipy.optimize.linprog  # its types know no sparse matrices
    solution = solve(
        polygons.costs,
        A_eq=constraints if len(right) else None,
        b_eq=right if len(right) else None,
        bounds=np.stack([bounds.lb, bounds.ub], axis=1),
        method="highs-ds",
    )
    if solution.x is None or (np.abs(solution.x - np.rint(solution.x)) > _WHOLE).any():
        solution = scipy.optimize.milp(
            polygons.costs,
            integrality=(polygons.of < cells).astype(np.int64),
            bounds=bounds,
            constraints=scipy.optimize.LinearConstraint(constraints, right, right),
            options={"mip_rel_gap": 0.0},
        )
    if solution.x is None or solution.status != 0:
        raise SolverFailure(f"no table of whole numbers: HiGHS says {solution.message!s:.200}")
    reached: Integers = (first[:cells] + steps[:cells] @ np.rint(solution.x)).astype(np.int64)
    return reached


@dataclass(frozen=True, eq=False, repr=False)
class ConsistentTable:
    """A least squares estimate of a contingency table: its cells, margins and total agree.

    Every estimate is unbiased, so that cells may be negative and are no whole numbers.

    Parameters
    ----------
    axes : Axes
        The attributes of the table.
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
        """Return the sums over all axes but some, in the table's order; they agree with the cells.

        Parameters
        ----------
        names : sequence of str
            The axes that are kept; none for the total.

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
        The attributes of the table.
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
        """Return the sums over all axes but some, in the table's order; they agree with the cells.

        Parameters
        ----------
        names : sequence of str
            The axes that are kept; none for the total.

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
