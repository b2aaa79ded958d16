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
from functools import cached_property

import numpy as np
from flint import fmpq
from scipy import sparse

from mechdesign import exact
from mechdesign.exact import Row, SingularBasis, to_fmpq, to_fraction
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.program import Program
from mechdesign.rows import Rows
from mechdesign.solve import Basis, BoolArray, FloatArray, FloatProgram, Progress, solve

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
    problem = _Problem.of(program)
    vertex, refinements = _best_vertex(problem, max_refinements, progress)
    x, y = vertex.x, vertex.y
    if vertex.primal_violation > 0:
        x = _mixed(problem, vertex, _interior(problem, progress))
    if vertex.dual_violation > 0:
        y = _bounding(problem, y, len(program.rows[0].cells))
    return Solution([to_fraction(value) for value in x], [to_fraction(value) for value in y], refinements)


@dataclass(frozen=True)
class _Problem:
    """Minimise cost x over x >= 0 and the rows, exactly and in floats."""

    lines: list[Row]
    equality: BoolArray
    cost: list[fmpq]

    @classmethod
    def of(cls, program: Program) -> _Problem:
        lines = [line for group in program.rows for line in exact_rows(group)]
        equality = np.concatenate([np.full(len(group.cells), group.equality) for group in program.rows])
        return cls(lines, equality, [to_fmpq(value) for value in program.cost])

    @cached_property
    def floats(self) -> FloatProgram:
        start = np.cumsum([0, *(len(line.terms) for line in self.lines)])
        known: dict[fmpq, float] = {}
        index = [v for line in self.lines for v, _ in line.terms]
        data = [known[a] if a in known else known.setdefault(a, _to_float(a)) for line in self.lines for _, a in line.terms]
        matrix = sparse.csr_array((np.array(data), np.array(index), start), shape=(len(self.lines), len(self.cost)))
        bounds = np.array([_to_float(line.bound) for line in self.lines])
        prices = np.array([_to_float(c) for c in self.cost])
        return FloatProgram(matrix, bounds, np.where(self.equality, bounds, np.inf), np.zeros(len(prices)), prices)

    def slack(self, x: Sequence[fmpq]) -> list[fmpq]:
        """Left side minus bound of every row."""
        return [sum((a * x[v] for v, a in line.terms), -line.bound) for line in self.lines]

    def reduced(self, y: Sequence[fmpq]) -> list[fmpq]:
        """Cost minus what the multipliers pull on every variable."""
        reduced = list(self.cost)
        for value, line in zip(y, self.lines, strict=True):
            if value != 0:
                for v, a in line.terms:
                    reduced[v] -= a * value
        return reduced


def _best_vertex(problem: _Problem, max_refinements: int, progress: Progress | None) -> tuple[_Vertex, int]:
    """An optimal vertex, or the best one found, and how many refinements it took."""
    try:
        vertex = _Vertex(problem, solve(problem.floats, progress=progress).basis)
    except (Infeasible, SolverFailure):
        vertex = _Vertex(problem, solve(problem.floats, presolve=False, progress=progress).basis)
    best = vertex
    for attempt in range(max_refinements):
        if vertex.optimal:
            return vertex, attempt
        if progress is not None:
            progress(f"refinement {attempt + 1}")
        try:
            vertex = vertex.refined(progress)
        except (SolverFailure, Infeasible):  # the magnified program was too much for floats: keep what there is
            return best, attempt
        best = min(best, vertex, key=lambda each: max(each.primal_violation, each.dual_violation))
    return best, max_refinements


class _Vertex:
    """The exact solution of a basis, primal and dual, and how far it is from optimal."""

    def __init__(self, problem: _Problem, basis: Basis) -> None:
        self.problem, self.basis = problem, basis
        tight = np.flatnonzero(~basis.rows).tolist()
        inside = basis.columns.tolist()
        lines = [problem.lines[r] for r in tight]
        rows = [Row(tuple((v, a) for v, a in line.terms if inside[v]), line.bound) for line in lines]
        try:
            values, multipliers = exact.solve(rows, np.flatnonzero(basis.columns).tolist(), problem.cost)
        except SingularBasis as error:
            raise SolverFailure(f"the solver's basis has no exact solution: {error}") from error
        self.x = [values.get(v, _ZERO) for v in range(len(inside))]
        self.y = [_ZERO] * len(problem.lines)
        for r, value in zip(tight, multipliers, strict=True):
            self.y[r] = value
        self.slack, self.reduced = problem.slack(self.x), problem.reduced(self.y)
        equality = problem.equality.tolist()
        # A basis may contain an equality row; then its slack is a violation, whatever its sign.
        broken = max((abs(value) for value, equal in zip(self.slack, equality, strict=True) if equal), default=_ZERO)
        self.signed_slack = [value for value, equal in zip(self.slack, equality, strict=True) if not equal]
        self.signed_y = [value for value, equal in zip(self.y, equality, strict=True) if not equal]
        self.primal_violation = max(broken, -min(self.x), -min(self.signed_slack, default=_ZERO))
        self.dual_violation = max(_ZERO, -min(self.reduced), -min(self.signed_y, default=_ZERO))

    @property
    def optimal(self) -> bool:
        return self.primal_violation == 0 and self.dual_violation == 0

    def refined(self, progress: Progress | None) -> _Vertex:
        """The vertex of a better basis: the program in the distances from here, magnified, with explicit slack variables."""
        program, equality = self.problem.floats, self.problem.equality
        inequality = np.flatnonzero(~equality)
        rows, variables = program.matrix.shape
        slack = sparse.csr_array(
            (-np.ones(len(inequality)), (inequality, np.arange(len(inequality)))), shape=(rows, len(inequality))
        )
        distance = _magnified([*self.x, *self.signed_slack], self.primal_violation)
        residual = np.where(equality, -_magnified(self.slack, self.primal_violation), 0.0)
        zoomed = FloatProgram(
            sparse.csr_array(sparse.hstack([program.matrix, slack], format="csr")),
            residual,
            residual,
            np.where(distance < _FAR, -distance, -np.inf),
            np.minimum(_magnified([*self.reduced, *self.signed_y], self.dual_violation), _FAR),
        )
        start = Basis(np.concatenate([self.basis.columns, self.basis.rows[inequality]]), self.basis.rows & equality)
        found = solve(zoomed, start, progress=progress).basis
        basic_rows = found.rows.copy()
        basic_rows[inequality] |= found.columns[variables:]
        return _Vertex(self.problem, Basis(found.columns[:variables], basic_rows))


def _interior(problem: _Problem, progress: Progress | None) -> list[fmpq]:
    """A point that satisfies the equalities, and every inequality with room to spare."""
    # The most room that all inequalities, x >= 0 among them, can have at once; half of it is asked for below.
    room = len(problem.cost)
    roomy = [
        line if equal else Row((*line.terms, (room, -_ONE)), line.bound)
        for line, equal in zip(problem.lines, problem.equality.tolist(), strict=True)
    ]
    roomy += [Row(((v, _ONE), (room, -_ONE)), _ZERO) for v in range(room)]
    equality = np.concatenate([problem.equality, np.zeros(room, dtype=np.bool_)])
    most = -solve(_Problem(roomy, equality, [_ZERO] * room + [-_ONE]).floats, progress=progress).value
    if most <= 0:
        raise SolverFailure("no strictly feasible mechanism was found to repair a rounding error with")
    margin = fmpq(1, 1 << max(0, 1 - math.frexp(most / 2)[1]))
    # In x - margin, so that x >= margin is x' >= 0.
    shifted = [
        Row(line.terms, line.bound + (0 if equal else margin) - margin * sum((a for _, a in line.terms), _ZERO))
        for line, equal in zip(problem.lines, problem.equality.tolist(), strict=True)
    ]
    vertex, _ = _best_vertex(_Problem(shifted, problem.equality, problem.cost), MAX_REFINEMENTS, progress)
    return [value + margin for value in vertex.x]


def _mixed(problem: _Problem, vertex: _Vertex, interior: Sequence[fmpq]) -> list[fmpq]:
    """A feasible point near the vertex, on the way to a strictly feasible one."""
    room = problem.slack(interior)
    share = _ZERO
    for value, free, equal in zip(vertex.slack, room, problem.equality.tolist(), strict=True):
        if equal and (value != 0 or free != 0):
            raise SolverFailure("the equalities could not be satisfied exactly")
        if not equal:
            share = max(share, _share(value, free))
    for value, free in zip(vertex.x, interior, strict=True):
        share = max(share, _share(value, free))
    # Rounded up to a power of two, for the sake of short numbers.
    share = fmpq(1, 1 << max(0, int(share.q).bit_length() - int(share.p).bit_length() - 1))
    return [(1 - share) * value + share * free for value, free in zip(vertex.x, interior, strict=True)]


def _share(value: fmpq, room: fmpq) -> fmpq:
    """How much of ``room`` makes ``value`` non-negative."""
    if room <= 0:
        raise SolverFailure("no strictly feasible mechanism was found to repair a rounding error with")
    return -value / (room - value) if value < 0 else _ZERO


def _bounding(problem: _Problem, y: Sequence[fmpq], columns: int) -> list[fmpq]:
    """Multipliers near y that prove a bound: signs clipped, then those of the column sums lowered until no cost is exceeded.

    The first ``columns`` rows are the column sums: each variable but the worst case occurs in one, with a positive
    coefficient.
    """
    y = [value if equal or value > 0 else _ZERO for value, equal in zip(y, problem.equality.tolist(), strict=True)]
    column = {v: (r, a) for r in range(columns) for v, a in problem.lines[r].terms}
    for worst in (v for v in range(len(problem.cost)) if v not in column):
        pull = problem.cost[worst] - problem.reduced(y)[worst]
        if pull > problem.cost[worst]:  # every other cost is 0 then, so that scaling keeps the rest
            y = [value * problem.cost[worst] / pull for value in y]
    lowered = list(y)
    for v, excess in enumerate(problem.reduced(y)):
        if excess < 0 and v in column:
            r, a = column[v]
            lowered[r] = min(lowered[r], y[r] + excess / a)
    return lowered


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
