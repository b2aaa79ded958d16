"""Vertices of a program in exact arithmetic, and exact simplex steps between them.

This is quick only when few steps are needed: floats are expected to find a basis near an optimal
one. A variable is a number below the number of columns, or that number plus r for the slack of
constraint r; the slack of an equality must be 0 and is called fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from flint import fmpq

from mechdesign.base.linear_algebra import Booleans
from mechdesign.exceptions import Infeasible
from mechdesign.lp.basis import ONE, ZERO, Factorization, Program, to_fmpq


@dataclass(frozen=True)
class Basis:
    """A basis: which columns, and the slacks of which constraints, are basic.

    A constraint whose slack is not basic is tight. As many variables are basic, slacks included,
    as there are constraints.
    """

    columns: Booleans
    rows: Booleans

    def exchanged(self, leaving: int, entering: int) -> Basis:
        """The basis after one step; slacks are numbered after the columns."""
        joined = np.concatenate([self.columns, self.rows])
        joined[leaving], joined[entering] = False, True
        return Basis(joined[: len(self.columns)], joined[len(self.columns) :])


@dataclass(frozen=True)
class LinearConstraint:
    """``sum coefficient x[variable] >= bound``, or ``==``."""

    terms: Mapping[int, fmpq]
    bound: fmpq
    equality: bool


@dataclass(frozen=True)
class Problem:
    """Minimise cost x over x >= 0 subject to the constraints."""

    constraints: Sequence[LinearConstraint]
    cost: Sequence[fmpq]

    @classmethod
    def of(cls, program: Program) -> Problem:
        """The same program, with a `LinearConstraint` for each constraint."""
        constraints = []
        for group in program.constraints:
            coefficients = [to_fmpq(c) for c in group.coefficients]
            bound = to_fmpq(group.bound)
            for cells in group.cells.tolist():
                terms: dict[int, fmpq] = {}
                for v, a in zip(cells, coefficients, strict=True):
                    terms[v] = terms[v] + a if v in terms else a
                constraints.append(
                    LinearConstraint(
                        {v: a for v, a in terms.items() if a != 0}, bound, group.equality
                    )
                )
        return cls(constraints, [to_fmpq(value) for value in program.cost])

    @cached_property
    def equality(self) -> Booleans:
        """Which constraints are equations."""
        return np.array([each.equality for each in self.constraints], dtype=np.bool_)

    def slack(self, x: Sequence[fmpq]) -> list[fmpq]:
        """Left side minus bound of every constraint."""
        return [
            sum((a * x[v] for v, a in each.terms.items()), -each.bound) for each in self.constraints
        ]

    def reduced(self, y: Sequence[fmpq]) -> list[fmpq]:
        """The reduced cost of every variable at the multipliers y."""
        reduced = list(self.cost)
        for value, constraint in zip(y, self.constraints, strict=True):
            if value != 0:
                for v, a in constraint.terms.items():
                    reduced[v] -= a * value
        return reduced


class Vertex:
    """The exact solution of a basis, primal (x, slack) and dual (y, reduced).

    Raises SingularBasis when the basis has none.
    """

    def __init__(self, problem: Problem, basis: Basis) -> None:
        self.problem, self.basis = problem, basis
        self.inside = basis.columns.tolist()
        self.tight = np.flatnonzero(~basis.rows).tolist()
        rows = [
            {v: a for v, a in problem.constraints[r].terms.items() if self.inside[v]}
            for r in self.tight
        ]
        self.factors = Factorization(rows, np.flatnonzero(basis.columns).tolist())
        values = self.factors.solve([problem.constraints[r].bound for r in self.tight])
        self.x = [values.get(v, ZERO) for v in range(len(self.inside))]
        self.y = [ZERO] * len(problem.constraints)
        for r, value in zip(
            self.tight,
            self.factors.solve_transposed(self._basic(enumerate(problem.cost))),
            strict=True,
        ):
            self.y[r] = value
        self.slack, self.reduced = problem.slack(self.x), problem.reduced(self.y)

    def _basic(self, terms: Iterable[tuple[int, fmpq]]) -> dict[int, fmpq]:
        return {v: a for v, a in terms if self.inside[v] and a != 0}

    @cached_property
    def primal_violation(self) -> fmpq:
        """How far the worst variable, slacks included, is outside its bounds."""
        return max(
            ZERO,
            -min(self.x),
            *(
                abs(s) if each.equality else -s
                for s, each in zip(self.slack, self.problem.constraints, strict=True)
            ),
        )

    @cached_property
    def dual_violation(self) -> fmpq:
        """How negative the worst reduced cost is, slacks included."""
        return max(
            ZERO,
            -min(self.reduced),
            *(
                -y
                for y, each in zip(self.y, self.problem.constraints, strict=True)
                if not each.equality
            ),
        )

    @property
    def optimal(self) -> bool:
        """Whether no constraint is violated and no reduced cost has the wrong sign, exactly."""
        return self.primal_violation == 0 and self.dual_violation == 0

    def nonbasic(self) -> Iterator[tuple[int, fmpq]]:
        """Variables that may enter the basis, with their reduced costs, in order."""
        yield from ((v, d) for v, d in enumerate(self.reduced) if not self.inside[v])
        yield from (
            (len(self.x) + r, self.y[r])
            for r in self.tight
            if not self.problem.constraints[r].equality
        )

    def basic(self) -> Iterator[tuple[int, fmpq, bool]]:
        """Basic variables with their values, in order, and whether they are fixed."""
        yield from ((v, value, False) for v, value in enumerate(self.x) if self.inside[v])
        for r in np.flatnonzero(self.basis.rows).tolist():
            yield len(self.x) + r, self.slack[r], self.problem.constraints[r].equality

    def row(self, variable: int) -> dict[int, fmpq]:
        """How a basic variable changes with every nonbasic one, where it does."""
        size = len(self.x)
        terms = (
            {variable: ONE} if variable < size else self.problem.constraints[variable - size].terms
        )
        pull = self.factors.solve_transposed(self._basic(terms.items()))
        change = {v: a for v, a in terms.items() if not self.inside[v]}
        for r, value in zip(self.tight, pull, strict=True):
            if value != 0:
                change[size + r] = value
                for v, a in self.problem.constraints[r].terms.items():
                    if not self.inside[v]:
                        change[v] = change.get(v, ZERO) - a * value
        return change

    def column(self, variable: int) -> dict[int, fmpq]:
        """How every basic variable changes with a nonbasic one, where it does."""
        size = len(self.x)
        constraints = self.problem.constraints
        if variable < size:
            right = [-constraints[r].terms.get(variable, ZERO) for r in self.tight]
        else:
            right = [ONE if size + r == variable else ZERO for r in self.tight]
        change = {v: value for v, value in self.factors.solve(right).items() if value != 0}
        moved = {**change, variable: ONE} if variable < size else change
        for r in np.flatnonzero(self.basis.rows).tolist():
            terms = constraints[r].terms
            total = sum((a * moved[v] for v, a in terms.items() if v in moved), ZERO)
            if total != 0:
                change[size + r] = total
        return change


def reoptimised(vertex: Vertex, steps: int) -> Vertex:
    """An optimal vertex, by exact simplex steps; the last vertex if ``steps`` did not suffice.

    The first half of the steps takes the largest violation each time, which is quick; the second
    half Bland's rule, the first violation, which cannot cycle. Raises Infeasible when there is no
    feasible point: that is then a proof.
    """
    left = steps
    if vertex.primal_violation > 0:
        vertex, left = _dual_simplex(vertex, steps)
    while vertex.primal_violation == 0 and left > 0:
        negative = [(v, cost) for v, cost in vertex.nonbasic() if cost < 0]
        if not negative:
            break
        entering, _ = min(negative, key=lambda each: each[1]) if 2 * left > steps else negative[0]
        change = vertex.column(entering)
        blocking = [
            (value / abs(change[v]), v)
            for v, value, fixed in vertex.basic()
            if v in change and (fixed or change[v] < 0)
        ]
        vertex, left = (
            Vertex(vertex.problem, vertex.basis.exchanged(min(blocking)[1], entering)),
            left - 1,
        )
    return vertex


def _dual_simplex(vertex: Vertex, steps: int) -> tuple[Vertex, int]:
    """A feasible vertex, by the dual simplex method.

    Costs are raised just enough that no reduced cost is negative.
    """
    problem = vertex.problem
    cost = [c - min(d, ZERO) for c, d in zip(problem.cost, vertex.reduced, strict=True)]
    for value, constraint in zip(vertex.y, problem.constraints, strict=True):
        if value < 0 and not constraint.equality:
            for v, a in constraint.terms.items():
                cost[v] -= a * value
    vertex = Vertex(replace(problem, cost=cost), vertex.basis)
    left = steps
    while left > 0:
        outside = [
            (v, value) for v, value, fixed in vertex.basic() if value < 0 or (fixed and value > 0)
        ]
        if not outside:
            break
        leaving, value = (
            max(outside, key=lambda each: abs(each[1])) if 2 * left > steps else outside[0]
        )
        change = vertex.row(leaving)
        sign = 1 if value < 0 else -1
        entering = [
            (d / (sign * change[v]), v)
            for v, d in vertex.nonbasic()
            if v in change and sign * change[v] > 0
        ]
        if not entering:
            raise Infeasible("no mechanism has all of these properties at this privacy (proved)")
        vertex, left = (
            Vertex(vertex.problem, vertex.basis.exchanged(leaving, min(entering)[1])),
            left - 1,
        )
    return Vertex(problem, vertex.basis), left
