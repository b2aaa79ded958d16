"""Distributions that agree with one another, from noisy grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from frequency.postprocess import norm_sub
from mechdesign.base import Floats, Integers, Items
from rangeq.core import cumulated, halved
from rangeq.grids.cells import Edges, Grid, common, refined

# ------------------------------------------------------------------------------------------------
# Phase 2, removing negativity and inconsistency: distributions that agree on every attribute.
#
# Multi-dimensional ranges, section 4.2.


_MOST_ROUNDS = 50
_TOLERANCE = 1e-9


class _Share(NamedTuple):
    """A grid's part in the estimate of an attribute."""

    grid: int
    axis: int  # of the grid
    starts: list[int]  # the cells of the axis that begin a block
    sizes: Floats  # |S| of each block
    precision: float  # of a cell


class Agreement:
    """The consistency step: estimates of an attribute's cells become their weighted mean.

    For each attribute the blocks are the finest whose frequencies all its grids estimate. A grid's
    frequency of a block is the sum of |S| of its cells, so its variance is |S| times a cell's; the
    mean of least variance weighs each grid by its cells' precision over |S|; and each of the |S|
    cells takes an equal share of what is missing to the mean. Where the blocks of a grid have
    different |S|, weights differ between blocks, and means might not sum to 1: each then gives up
    what is too much in proportion to its variance, as in least squares with a known sum.

    `precisions` are one over the variance of a cell of each grid: proportional to its users; 0 for
    a grid that says nothing. Where all grids of an attribute are such, they count alike.
    """

    def __init__(self, grids: Sequence[Grid], precisions: Sequence[float] | Floats) -> None:
        self._attributes: list[list[_Share]] = []
        for place in sorted({place for grid in grids for place in grid.places}):
            inside = [
                (number, grid.places.index(place))
                for number, grid in enumerate(grids)
                if place in grid.places
            ]
            blocks = common(*(grids[number].edges[axis] for number, axis in inside))
            heard = any(precisions[number] for number, _ in inside)
            shares = []
            for number, axis in inside:
                grid = grids[number]
                starts = [grid.edges[axis].index(edge) for edge in blocks[:-1]]
                sizes = np.diff([*starts, grid.shape[axis]]) * (grid.cells // grid.shape[axis])
                shares.append(
                    _Share(
                        number,
                        axis,
                        starts,
                        sizes.astype(np.float64),
                        float(precisions[number]) if heard else 1.0,
                    )
                )
            if len(shares) > 1:
                self._attributes.append(shares)

    def apply(self, tables: Sequence[Floats]) -> list[Floats]:
        """Return new tables that agree on every attribute; all must have one sum, which stays."""
        result = [table.copy() for table in tables]
        for shares in self._attributes:
            said = [_blocks(result[share.grid], share) for share in shares]
            # A block's estimate is a sum of |S| cells: variance |S| times a cell's, so precision
            # over |S|
            weights = [share.precision / share.sizes for share in shares]
            total = np.sum(weights, axis=0)
            mean = (
                np.sum(
                    [weight * estimate for weight, estimate in zip(weights, said, strict=True)],
                    axis=0,
                )
                / total
            )
            # Lagrange multiplier of the known sum: the least-squares correction of means with
            # variances 1 / total is in proportion to these. Where |S| is the same in all blocks it
            # is 0
            mean += (said[0].sum() - mean.sum()) / total / (1 / total).sum()
            for share, estimate in zip(shares, said, strict=True):
                table = result[share.grid]
                lengths = np.diff([*share.starts, table.shape[share.axis]])
                # An equal share for each cell is the least-squares change of cells with equal
                # variances
                missing = np.repeat((mean - estimate) / share.sizes, lengths)
                table += missing.reshape(
                    [-1 if axis == share.axis else 1 for axis in range(table.ndim)]
                )
        return result


def _blocks(table: Floats, share: _Share) -> Floats:
    """The sum of a table over each block of an axis."""
    line = (
        table.sum(axis=tuple(axis for axis in range(table.ndim) if axis != share.axis))
        if table.ndim > 1
        else table
    )
    return np.add.reduceat(line, share.starts)


def clean(
    grids: Sequence[Grid], tables: Sequence[Floats], precisions: Sequence[float] | Floats
) -> list[Floats]:
    """Return distributions, one for each grid, that agree on the attributes.

    Norm-sub, which leaves no negative cell and a sum of 1, first and last, and the consistency step
    by turns, until neither changes anything. What then disagrees does so by less than 1e-9, or is
    what 50 rounds leave.

    Parameters
    ----------
    grids : sequence of Grid
        Any, of one or more attributes each.
    tables : sequence of numpy.ndarray of float64
        The estimated frequencies of each grid's cells, shaped as the grid.
    precisions : sequence of float or numpy.ndarray of float64
        One over the variance of a cell of each grid; 0 for a grid that says nothing.

    Returns
    -------
    list of numpy.ndarray of float64
        The tables, of the same shapes.
    """
    agreement = Agreement(grids, precisions)
    current = [_distribution(table) for table in tables]
    for _ in range(_MOST_ROUNDS):
        # Alternating steps: each undoes a little of the other, and their distance shrinks; the last
        # one is norm-sub, so that what is returned is a distribution even if they still disagree
        agreed = agreement.apply(current)
        current, before = [_distribution(table) for table in agreed], current
        if (
            max(
                (float(np.abs(new - old).max()) for new, old in zip(current, before, strict=True)),
                default=0.0,
            )
            < _TOLERANCE
        ):
            break
    return current


def agreeing(
    grids: Sequence[Grid], tables: Sequence[Floats], precisions: Sequence[float] | Floats
) -> list[Floats]:
    """Apply the step of consistency alone to tables, brought to a sum of 1 by a constant."""
    # Linear, so that cells may be negative, and what is unbiased stays so: where cells are many and
    # each mostly noise, that is far better for sums of them than `clean`
    shifted = [table + (1 - table.sum()) / table.size for table in tables]
    return Agreement(grids, precisions).apply(shifted)


def _distribution(table: Floats) -> Floats:
    return norm_sub(table.ravel()).reshape(table.shape)


# ------------------------------------------------------------------------------------------------
# Answers to queries of many attributes from those of pairs, by weighted update.
#
# Multi-dimensional ranges, section 4.4, Algorithm 2.


_ENTROPY_ROUNDS = 100
_NUMBERS = 1 << 20  # the most numbers to work on at a time


def weighted_update(tables: Floats, attributes: int, tolerance: float) -> tuple[Floats, Floats]:
    """Return the answers of queries over ``attributes`` attributes, from those of all their pairs.

    Each query has 2^lambda (or 3^lambda) parts: the records that are inside or outside of each of
    its ranges. Beginning with equal parts, those which make up a quadrant of a pair are scaled such
    that they sum to the quadrant's answer, pair after pair, until a round changes the parts of no
    query by more than ``tolerance`` in sum (or 100 rounds, for quadrants that no distribution has).

    Algorithm 2 as printed scales to the answer of the query's own quadrant only, and leaves the sum
    of all parts free: three full ranges would then have the answer 0.78. Here all four quadrants of
    a pair count, as in the constraints of appendix A.8, whose distribution of most entropy is what
    this converges to.

    Parameters
    ----------
    tables : numpy.ndarray of float64
        Shape (queries, pairs, s, s), non-negative: for the pairs (j, k), j < k, in the order of
        ``itertools.combinations``; each attribute has s sets of values, inside of the range (index
        0) and outside of it, or else below and above.

    Returns
    -------
    The parts, shape (queries, s, ..., s), and the mean over queries of the change in each round.
    """
    m, _, sets, _ = tables.shape
    shape = (sets,) * attributes
    # Queries last: sums over parts then run along them
    parts = np.full((*shape, m), float(sets) ** -attributes)
    last = np.moveaxis(tables, 0, -1)
    changes: list[float] = []
    step = max(1, _NUMBERS // sets**attributes)
    # Blocks of queries, so that the working arrays stay in the cache
    for start in range(0, m, step):
        block = slice(start, start + step)
        for round_, change in enumerate(
            _update(parts[..., block], last[..., block], attributes, tolerance)
        ):
            if round_ == len(changes):
                changes.append(0.0)
            changes[round_] += change / m
    return np.moveaxis(parts, -1, 0), np.array(changes)


def _update(parts: Floats, tables: Floats, attributes: int, tolerance: float) -> list[float]:
    """Update parts in place; return the sum over queries of the change of each round."""
    pairs = list(combinations(range(attributes), 2))
    others = [tuple(axis for axis in range(attributes) if axis not in pair) for pair in pairs]
    active, changes = np.arange(parts.shape[-1]), []
    z, wanted = parts.copy(), np.ascontiguousarray(tables)
    for _ in range(_ENTROPY_ROUNDS):
        before = z.copy()
        for number, axes in enumerate(others):
            sums = z
            for axis in axes:  # one by one: sums do not depend on how many queries there are
                sums = sums.sum(axis=axis, keepdims=True)
            # Iterative proportional fitting: the step that meets one constraint with the least
            # relative entropy to what was there. A sum of 0 stays 0
            z *= np.divide(
                wanted[number].reshape(sums.shape), sums, out=np.ones(sums.shape), where=sums > 0
            )
        before -= z
        change = np.abs(before, out=before).reshape(-1, len(active)).sum(axis=0)
        changes.append(float(change.sum()))
        going = change > tolerance
        if going.all():
            continue
        # Queries that are done leave the working arrays, which shrink
        parts[..., active[~going]] = z[..., ~going]
        active, z, wanted = active[going], z[..., going], wanted[..., going]
        if not len(active):
            break
    parts[..., active] = z
    return changes


# ------------------------------------------------------------------------------------------------
# Tables of two attributes without negative cells, from tables with noise.


_ROUNDS = 100

_TINY = 1e-300  # A positive number that keeps quotients of nothing by nothing finite


def nonnegative(table: Floats) -> Floats:
    """Return a table of non-negative cells, whose sums of many cells are nearly the same."""
    # By `halved`: norm-sub of all cells at once takes what it adds to negative ones from all,
    # wherever they are, and of a table that is mostly noise leaves little of larger sums
    if (table >= 0).all():
        return table
    # A summed-area table: `halved` asks for sums of boxes of all sizes
    before = cumulated(table)

    def box_sums(first: Integers, last: Integers) -> Floats:
        (top, left), (bottom, right) = first, last + 1
        lower: Floats = before[bottom, right] - before[bottom, left]
        return lower - before[top, right] + before[top, left]

    return halved(box_sums, table.shape, float(table.sum()))


def with_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Bring a table to its margins by iterative proportional fitting."""
    # A little of the independent table, so that the margins can be met wherever zeros leave no
    # table with them
    kernel = table + 1e-9 * np.outer(rows, columns)
    right = np.ones(len(columns))
    for _ in range(_ROUNDS):
        left = rows / np.maximum(kernel @ right, _TINY)
        right = columns / np.maximum(kernel.T @ left, _TINY)
    return np.asarray(left[:, None] * kernel * right)


# ------------------------------------------------------------------------------------------------
# Distributions of one or two attributes that are uniform within cells, as answers to ranges.


def _position(edges: Edges, ends: Items) -> tuple[Items, Floats]:
    """Return the cell before each boundary 0 .. size, and the part of it before the boundary."""
    bounds = np.array(edges)
    cell = np.minimum(np.searchsorted(bounds, ends, side="right") - 1, len(edges) - 2)
    return cell, (ends - bounds[cell]) / (bounds[cell + 1] - bounds[cell])


@dataclass(frozen=True, eq=False)
class Line:
    """The distribution of one attribute, uniform within cells."""

    edges: Edges  #: The starts of the cells, and the size.
    cells: Floats  #: Shape (cells,): their frequencies.

    @cached_property
    def _sums(self) -> Floats:
        return cumulated(self.cells)

    def answers(self, left: Items, right: Items) -> Floats:
        """Return the frequencies of ranges of values.

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
        return (1 - part) * self._sums[cell] + part * self._sums[cell + 1]


@dataclass(frozen=True, eq=False)
class Plane:
    """The distribution of two attributes, uniform within cells."""

    edges: tuple[Edges, Edges]  #: Of each attribute: the starts of the cells, and the size.
    cells: Floats  #: Shape (cells of one, cells of the other): their frequencies.

    @cached_property
    def _sums(self) -> Floats:
        return cumulated(self.cells)

    def quadrants(self, left: Items, right: Items) -> Floats:
        """Return the frequencies inside and outside of both ranges.

        Parameters
        ----------
        left, right : numpy.ndarray of int64
            Shape (queries, 2): the ends of closed ranges, one of each attribute.

        Returns
        -------
        numpy.ndarray of float64
            Shape (queries, 2, 2): inside first, along the axis of each attribute. They sum to the
            sum of the cells; none is negative if no cell is, rounding left aside.
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


# ------------------------------------------------------------------------------------------------
# Response matrices: the joint distribution of a pair from its grid and both finer 1-D grids.
#
# Multi-dimensional ranges, section 4.3, Algorithm 1.


_RESPONSE_ROUNDS = 1000


class Response(NamedTuple):
    """The result of `response_matrices`."""

    planes: list[Plane]  #: The matrix of each pair.
    changes: Floats  #: Shape (rounds,): the mean over pairs of the change in each round.


def response_matrices(
    lines: Sequence[Line],
    pairs: Sequence[tuple[int, int]],
    planes: Sequence[Plane],
    tolerance: float,
) -> Response:
    """Weighted update: scale each cell of the uniform matrix to its frequency, grid after grid.

    The 2-D grid comes last, so that the matrix sums to its cells. Where the 1-D grids leave nothing
    of a cell that the 2-D grid gives something, that is spread evenly over the cell. Entries are
    the same within cells of all grids, so that a matrix is kept as the cells of all three grids'
    common refinement, whatever the sizes of the attributes.

    Where no 1-D cell straddles two rows or columns of 2-D cells, as with the guideline's powers of
    two, one round is enough: a 2-D cell is divided as the 1-D grids divide its row and its column,
    independently, and further rounds change nothing.

    Parameters
    ----------
    lines, planes : sequence of Line and of Plane
        The 1-D grid of each attribute, and the 2-D grid of each pair: non-negative.
    pairs : sequence of (int, int)
        Pairs (j, k) of attributes.
    tolerance : float
        A round is the last (as the 1000th is) if all changes of a matrix's entries sum to less.

    Returns
    -------
    Response
        The matrices, and how much each round changed.
    """
    result: list[Plane | None] = [None] * len(pairs)
    alike: dict[tuple[Edges, ...], list[int]] = {}
    for number, ((j, k), plane) in enumerate(zip(pairs, planes, strict=True)):
        # Pairs that are cut alike are updated as one stack
        alike.setdefault((lines[j].edges, lines[k].edges, *plane.edges), []).append(number)
    changes = np.zeros(_RESPONSE_ROUNDS)
    for (line_j, line_k, plane_j, plane_k), numbers in alike.items():
        rows, columns = refined(line_j, plane_j), refined(line_k, plane_k)
        first = np.stack([lines[pairs[number][0]].cells for number in numbers])
        second = np.stack([lines[pairs[number][1]].cells for number in numbers])
        both = np.stack([planes[number].cells for number in numbers])
        even = np.multiply.outer(np.diff(rows) / rows[-1], np.diff(columns) / columns[-1])
        matrices = np.repeat(even[None], len(numbers), axis=0)
        in_j, in_k = _Cells(line_j, rows), _Cells(line_k, columns)
        plane_rows, plane_columns = _Cells(plane_j, rows), _Cells(plane_k, columns)
        for round_ in range(_RESPONSE_ROUNDS):
            before = matrices.copy()
            matrices *= in_j.spread(_factor(first, in_j.sums(matrices.sum(axis=2), 1)), 1)[
                :, :, None
            ]
            matrices *= in_k.spread(_factor(second, in_k.sums(matrices.sum(axis=1), 1)), 1)[
                :, None, :
            ]
            in_cells = plane_columns.sums(plane_rows.sums(matrices, 1), 2)
            matrices *= plane_columns.spread(plane_rows.spread(_factor(both, in_cells), 1), 2)
            change = np.abs(matrices - before).sum(axis=(1, 2))
            changes[round_] += change.sum() / len(pairs)
            if change.max() < tolerance:
                break
        # What the 2-D grid gives to cells that the 1-D grids have emptied: multiplication cannot
        # bring it back, so it is added evenly
        lost = np.where(in_cells > 0, 0.0, both) / plane_columns.sums(plane_rows.sums(even, 0), 1)
        matrices += even * plane_columns.spread(plane_rows.spread(lost, 1), 2)
        for number, matrix in zip(numbers, matrices, strict=True):
            result[number] = Plane((rows, columns), matrix)
    return Response([plane for plane in result if plane is not None], np.trim_zeros(changes, "b"))


class _Cells:
    """Cells of an axis as runs of the cells of a refinement."""

    def __init__(self, edges: Edges, fine: Edges) -> None:
        self._starts = np.searchsorted(fine, edges[:-1])
        self._which = np.repeat(
            np.arange(len(self._starts)), np.diff([*self._starts, len(fine) - 1])
        )

    def sums(self, values: Floats, axis: int) -> Floats:
        return np.add.reduceat(values, self._starts, axis=axis)

    def spread(self, values: Floats, axis: int) -> Floats:
        return np.take(values, self._which, axis=axis)


def _factor(wanted: Floats, held: Floats) -> Floats:
    # 0 / 0: a cell that is empty stays so, whatever the factor
    return np.divide(wanted, held, out=np.ones_like(held), where=held > 0)


# ------------------------------------------------------------------------------------------------
# Damped Gauss-Newton: the maximum of a log-posterior that is a function of least squares.


State = TypeVar("State")
Known = TypeVar("Known")

_TRIES = 8  # the most times that a step that gains nothing is damped more


class Expansion(NamedTuple, Generic[Known]):
    """The quadratic expansion of a function around a point of P parameters."""

    known: Known  # what the caller keeps of it
    gradient: Floats  # of the function: shape (P,)
    # That of least squares, negated so that it is positive definite: shape (P, P)
    hessian: Floats


def climb(
    point: Floats,
    objective: Callable[[Floats, State | None], tuple[float, State]],
    expansion: Callable[[Floats, State], Expansion[Known]],
    steps: int,
    least_gain: float,
) -> tuple[Floats, float, State, Expansion[Known]]:
    """Take steps of damped Gauss-Newton (Levenberg and Marquardt) uphill."""
    value, state = objective(point, None)
    here, damping = expansion(point, state), 1e-3
    for _ in range(steps):
        for _ in range(_TRIES):
            # Relative to the diagonal (Marquardt), so that the units of the parameters do not
            # matter
            damped = here.hessian + damping * np.diag(np.diag(here.hessian))
            step = np.linalg.solve(damped, here.gradient)
            new, moved = objective(point + step, state)
            if new > value:
                break
            # A refused step is tried again with the same expansion, which is the costly part; below
            # 1e-2 a factor of 10 would hardly shorten it
            damping = max(10 * damping, 1e-2)
        else:
            break
        # Towards plain Gauss-Newton after a success, which converges in a few steps near the mode
        gain, value, state, point, damping = new - value, new, moved, point + step, damping / 10
        here = expansion(point, state)
        # Invariant: value, state and expansion belong to `point`, and the value never falls
        if gain < least_gain:
            break
    return point, value, state, here
