"""From a basis found in floats to an exact primal and dual solution of a program, and so to a proof of optimality.

1. HiGHS suggests an optimal basis. Its rows are solved exactly (`exact.solve`): a vertex x and multipliers y.
2. If x or y breaks a sign condition, however slightly, the program is re-centred at (x, y) and magnified until that
   violation is of size one, and HiGHS continues from the basis: iterative refinement of linear programs (Gleixner, Steffy
   and Wolter, INFORMS J. Computing 28(3), 2016, section 3), with exact vertices. Repeat until no sign is wrong: then x is optimal,
   and y proves it.
3. Should that not end, x is mixed with a strictly feasible point just enough to be feasible, exactly, and y is clipped to
   signs that are allowed and completed to a valid bound. The gap between the two is then not 0, but it is still rigorous.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq
from scipy import sparse

from mechdesign import exact
from mechdesign.exact import Row, SingularBasis, to_fmpq, to_fraction
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.program import Program
from mechdesign.rows import Rows
from mechdesign.solve import Basis, BoolArray, FloatArray, FloatProgram, Progress, optimal_basis

MAX_REFINEMENTS = 60
_FAR = 1e9
"""A magnified distance or cost beyond this is as good as this."""


@dataclass(frozen=True)
class Solution:
    """A feasible point of a program and multipliers that bound every other, both exact.

    ``multipliers[r]`` belongs to row r, counted through all groups. ``refinements`` counts the repairs that were needed.
    """

    x: list[Fraction]
    multipliers: list[Fraction]
    refinements: int


def certify(program: Program, progress: Progress | None = None, max_refinements: int = MAX_REFINEMENTS) -> Solution:
    """Solve a program of `mechanism_program`, folded or not, exactly.

    Raises
    ------
    Infeasible
        There is no feasible point.
    SolverFailure
        Not even an approximate answer could be turned into an exact one.
    """
    lines = [line for group in program.rows for line in exact_rows(group)]
    equality = np.concatenate([np.full(len(group.cells), group.equality) for group in program.rows])
    cost = [to_fmpq(value) for value in program.cost]
    floats = float_program(lines, equality, cost)
    vertex = _Vertex(lines, equality, cost, optimal_basis(floats, progress=progress))
    refinements = 0
    while not vertex.optimal and refinements < max_refinements:
        refinements += 1
        if progress is not None:
            progress(f"refinement {refinements}")
        try:
            better = _Vertex(lines, equality, cost, vertex.refined(floats, progress))
        except (SolverFailure, Infeasible):  # the magnified program was too much for floats: keep what there is
            break
        if max(better.primal_violation, better.dual_violation) >= max(vertex.primal_violation, vertex.dual_violation):
            break
        vertex = better
    x, y = vertex.x, vertex.y
    if vertex.primal_violation > 0:
        x = _mixed(x, vertex.slack, lines, equality, _interior(lines, equality, len(cost), progress))
    if vertex.dual_violation > 0:
        y = _bounding(y, lines, equality, cost, len(program.rows[0].cells))
    return Solution([to_fraction(value) for value in x], [to_fraction(value) for value in y], refinements)


class _Vertex:
    """The exact solution of a basis, primal and dual, and how far it is from optimal."""

    def __init__(self, lines: Sequence[Row], equality: BoolArray, cost: Sequence[fmpq], basis: Basis) -> None:
        self.lines, self.equality, self.basis = lines, equality, basis
        tight = np.flatnonzero(~basis.rows).tolist()
        columns = np.flatnonzero(basis.columns).tolist()
        inside = basis.columns
        rows = [Row(tuple((v, a) for v, a in lines[r].terms if inside[v]), lines[r].bound) for r in tight]
        try:
            values, tight_y = exact.solve(rows, columns, cost)
        except SingularBasis as error:
            raise SolverFailure(f"the solver's basis has no exact solution: {error}") from error
        self.x = [_ZERO] * len(cost)
        for v, value in values.items():
            self.x[v] = value
        self.y = [_ZERO] * len(lines)
        for r, value in zip(tight, tight_y, strict=True):
            self.y[r] = value
        self.slack = [sum((a * self.x[v] for v, a in line.terms), -line.bound) for line in lines]
        self.reduced = _reduced(self.y, lines, cost)
        self.signed_slack = [value for value, equal in zip(self.slack, equality, strict=True) if not equal]
        self.signed_y = [value for value, equal in zip(self.y, equality, strict=True) if not equal]
        self.primal_violation = max(_ZERO, -min(self.x), -min(self.signed_slack, default=_ZERO))
        self.dual_violation = max(_ZERO, -min(self.reduced), -min(self.signed_y, default=_ZERO))
        if any(value != 0 for value, equal in zip(self.slack, equality, strict=True) if equal):
            raise Infeasible("the equalities that were asked for contradict each other")

    @property
    def optimal(self) -> bool:
        return self.primal_violation == 0 and self.dual_violation == 0

    def refined(self, program: FloatProgram, progress: Progress | None) -> Basis:
        """A better basis: the program in the distances from this vertex, magnified, with explicit slack variables."""
        inequality = np.flatnonzero(~self.equality)
        rows, variables = program.matrix.shape
        slack = sparse.csr_array(
            (-np.ones(len(inequality)), (inequality, np.arange(len(inequality)))), shape=(rows, len(inequality))
        )
        zero = np.zeros(rows)
        zoomed = FloatProgram(
            sparse.csr_array(sparse.hstack([program.matrix, slack], format="csr")),
            zero,
            zero,
            np.where(
                (distance := _magnified([*self.x, *self.signed_slack], self.primal_violation)) < _FAR,
                -distance,
                -np.inf,
            ),
            np.minimum(_magnified([*self.reduced, *self.signed_y], self.dual_violation), _FAR),
        )
        start = Basis(np.concatenate([self.basis.columns, self.basis.rows[inequality]]), self.basis.rows & self.equality)
        found = optimal_basis(zoomed, start, progress)
        basic_rows = found.rows.copy()
        basic_rows[inequality] |= found.columns[variables:]
        return Basis(found.columns[:variables], basic_rows)


def _interior(lines: Sequence[Row], equality: BoolArray, variables: int, progress: Progress | None) -> list[fmpq]:
    """A point that satisfies the equalities, and every inequality strictly: the vertex that maximises the least slack."""
    room = variables
    widened = [
        line if equal else Row((*line.terms, (room, -_ONE)), line.bound)
        for line, equal in zip(lines, equality.tolist(), strict=True)
    ]
    widened += [Row(((v, _ONE), (room, -_ONE)), _ZERO) for v in range(variables)]
    equality = np.concatenate([equality, np.zeros(variables, dtype=np.bool_)])
    cost = [_ZERO] * variables + [-_ONE]
    basis = optimal_basis(float_program(widened, equality, cost), progress=progress)
    return _Vertex(widened, equality, cost, basis).x[:variables]


def _mixed(
    x: Sequence[fmpq], slack: Sequence[fmpq], lines: Sequence[Row], equality: BoolArray, interior: Sequence[fmpq]
) -> list[fmpq]:
    """The point nearest to x on the way to a strictly feasible point that satisfies everything."""
    share = _ZERO
    for line, value, equal in zip(lines, slack, equality.tolist(), strict=True):
        if not equal and value < 0:
            share = max(share, _share(value, sum((a * interior[v] for v, a in line.terms), -line.bound)))
    for value, room in zip(x, interior, strict=True):
        if value < 0:
            share = max(share, _share(value, room))
    return [(1 - share) * value + share * room for value, room in zip(x, interior, strict=True)]


def _share(violation: fmpq, room: fmpq) -> fmpq:
    if room <= 0:
        raise SolverFailure("no strictly feasible mechanism was found to repair a rounding error with")
    return violation / (violation - room)


def _bounding(y: Sequence[fmpq], lines: Sequence[Row], equality: BoolArray, cost: Sequence[fmpq], columns: int) -> list[fmpq]:
    """Multipliers near y that prove a bound: signs clipped, then those of the column sums lowered until no cost is exceeded.

    The first ``columns`` lines are the column sums: each variable but the worst case occurs in one, with a positive coefficient.
    """
    y = [value if equal or value > 0 else _ZERO for value, equal in zip(y, equality.tolist(), strict=True)]
    column = {v: (r, a) for r in range(columns) for v, a in lines[r].terms}
    for worst in (v for v in range(len(cost)) if v not in column):
        total = sum((a * y[r] for r, line in enumerate(lines) for v, a in line.terms if v == worst), _ZERO)
        if total > cost[worst]:  # every other cost is 0 then, so that scaling keeps the rest
            y = [value * cost[worst] / total for value in y]
    lowered = list(y)
    for v, excess in enumerate(_reduced(y, lines, cost)):
        if excess < 0 and v in column:
            r, a = column[v]
            lowered[r] = min(lowered[r], y[r] + excess / a)
    return lowered


def _reduced(y: Sequence[fmpq], lines: Sequence[Row], cost: Sequence[fmpq]) -> list[fmpq]:
    reduced = list(cost)
    for value, line in zip(y, lines, strict=True):
        if value != 0:
            for v, a in line.terms:
                reduced[v] -= a * value
    return reduced


def exact_rows(group: Rows) -> list[Row]:
    """The rows of a group with repeated variables added up."""
    coefficients = [to_fmpq(c) for c in group.coefficients]
    bound = to_fmpq(group.bound)
    lines = []
    for cells in group.cells.tolist():
        if len(cells) == 2 and cells[0] != cells[1]:
            lines.append(Row(((cells[0], coefficients[0]), (cells[1], coefficients[1])), bound))
            continue
        terms: dict[int, fmpq] = {}
        for v, a in zip(cells, coefficients, strict=True):
            terms[v] = terms[v] + a if v in terms else a
        lines.append(Row(tuple((v, a) for v, a in terms.items() if a != 0), bound))
    return lines


def float_program(lines: Sequence[Row], equality: BoolArray, cost: Sequence[fmpq]) -> FloatProgram:
    start = np.cumsum([0, *(len(line.terms) for line in lines)])
    known: dict[fmpq, float] = {}
    index = [v for line in lines for v, _ in line.terms]
    data = [known[a] if a in known else known.setdefault(a, float(to_fraction(a))) for line in lines for _, a in line.terms]
    matrix = sparse.csr_array((np.array(data), np.array(index), start), shape=(len(lines), len(cost)))
    bounds = np.array([float(to_fraction(line.bound)) for line in lines])
    prices = np.array([float(to_fraction(c)) for c in cost])
    return FloatProgram(matrix, bounds, np.where(equality, bounds, np.inf), np.zeros(len(cost)), prices)


def _magnified(values: Sequence[fmpq], unit: fmpq) -> FloatArray:
    """``values`` in units of a violation (as they are if there is none), none farther than _FAR."""
    scale = 1 / unit if 0 < unit < 1 else fmpq(1)
    return np.array([_to_float(value * scale) for value in values])


def _to_float(value: fmpq) -> float:
    try:
        return int(value.p) / int(value.q)
    except OverflowError:
        return math.copysign(math.inf, int(value.p))


_ZERO, _ONE = fmpq(0), fmpq(1)
