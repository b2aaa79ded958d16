"""The nearest table of whole numbers: an integer program, of a flow where the table has two axes.

Least squares over whole numbers is separable and convex: a sum of squares of single cells and of
single sums. A square of a whole number is, at whole numbers, a polygon with a corner at each. So
the program is linear in the lengths of the polygons' edges; with rows, columns and a grand total it
is a flow, whose vertices are whole already, and more families of sums need branching.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from mechdesign.base.linear_algebra import Booleans, Floats, Integers
from mechdesign.exceptions import SolverFailure
from mechdesign.tables.least_squares import Sparse

_EDGES = 4
"""So many edges of a polygon are laid out on either side at first; beyond them it goes straight."""

_FAR = 1 << 12
"""How far towards their targets the polygons of sums are laid out at first."""

_LEAST_SHARE = 1e-6
"""No measurement weighs more than one over this as much as the least certain cell."""

_WHOLE = 1e-6
"""How far from whole numbers a solver may leave them."""


class Measured(NamedTuple):
    """Measurements of cells, and of sums of them, that a table is fitted to.

    Attributes
    ----------
    values : numpy.ndarray of float64
        Shape (cells,).
    variances : numpy.ndarray of float64
        Shape (cells,): at least 0; the squares are divided by them.
    sums : scipy.sparse.csr_array
        Shape (sums, cells), of zeros and ones.
    sum_values : numpy.ndarray of float64
        Shape (sums,).
    sum_variances : numpy.ndarray of float64
        Shape (sums,); 0: the sum is known, and whole.
    """

    values: Floats
    variances: Floats
    sums: Sparse
    sum_values: Floats
    sum_variances: Floats

    @property
    def known(self) -> Booleans:
        """Which sums are known."""
        return np.equal(self.sum_variances, 0)

    def objective(self, cells: Integers) -> float:
        """The sum of weighted squares, known sums left out.

        Shapes: `cells` (cells,).
        """
        off = (self.sums @ cells - self.sum_values)[~self.known]
        weights, sum_weights = self.weights
        return float(
            (weights * (cells - self.values) ** 2).sum() + (sum_weights[~self.known] * off**2).sum()
        )

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """What squares of cells and sums are multiplied by: at most 10^6, of cells at least 1."""
        unit = self.variances.max(initial=0.0) or 1.0
        least = unit * _LEAST_SHARE
        return unit / np.maximum(self.variances, least), unit / np.maximum(
            self.sum_variances, least
        )


def nearest_whole(measured: Measured, largest: Integers, start: Floats) -> Integers:
    """The table of whole numbers with the least sum of weighted squares.

    Shapes: `largest` (cells,), `start` (cells,); returns (cells,).
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
        """What a square grows by from a whole number to the next."""
        return self.factors[which] * (2 * (start - self.targets[which]) + 1)


class _Polygons:
    """Squares at whole numbers, from ``first`` to ``last``, and straight on from 0 to ``high``.

    Attributes
    ----------
    of : numpy.ndarray of int64
        Shape (edges,): which square each edge belongs to.
    signs : numpy.ndarray of float64
        Shape (edges,): -1 for those to the left of ``first``.
    costs, lengths : numpy.ndarray of float64
        Shape (edges,): what a step along an edge costs, and how long it is.
    """

    def __init__(self, squares: _Squares, first: Floats, last: Floats, high: Floats) -> None:
        self.first = first
        count = (last - first).astype(np.int64)
        inside = np.repeat(np.arange(len(count)), count)
        step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        every, each = slice(None), np.arange(len(count))
        self.of = np.concatenate([inside, each, each])
        self.signs = np.concatenate([np.ones(len(inside)), -np.ones(len(each)), np.ones(len(each))])
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
        """What steps along the edges add to each number: shape (numbers, edges)."""
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
    found = solve(
        polygons.costs,
        A_eq=constraints if len(right) else None,
        b_eq=right if len(right) else None,
        bounds=np.stack([bounds.lb, bounds.ub], axis=1),
        method="highs-ds",
    )
    if found.x is None or (np.abs(found.x - np.rint(found.x)) > _WHOLE).any():
        found = scipy.optimize.milp(
            polygons.costs,
            integrality=(polygons.of < cells).astype(np.int64),
            bounds=bounds,
            constraints=scipy.optimize.LinearConstraint(constraints, right, right),
            options={"mip_rel_gap": 0.0},
        )
    if found.x is None or found.status != 0:
        raise SolverFailure(f"no table of whole numbers: HiGHS says {found.message!s:.200}")
    reached: Integers = (first[:cells] + steps[:cells] @ np.rint(found.x)).astype(np.int64)
    return reached
