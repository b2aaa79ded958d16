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

from mechdesign.base import Booleans
from mechdesign.exceptions import Infeasible
from mechdesign.lp.basis import ONE, ZERO, Factorization, Program, to_fmpq


@dataclass(frozen=True)
class Basis:
    """A basis: the sets of columns, and of constraints by their slacks, that are basic.

    A constraint whose slack is not basic is tight. As many variables are basic as there are
    constraints, slacks included.
    """

    columns: Booleans
    rows: Booleans

    def exchanged(self, leaving: int, entering: int) -> Basis:
        """Return the basis after one step; slacks are numbered after the columns."""
        joined = np.concatenate([self.columns, self.rows])
        joined[leaving], joined[entering] = False, True
        return Basis(joined[: len(self.columns)], joined[len(self.columns) :])


@dataclass(frozen=True)
class LinearConstraint:
    """A constraint ``sum coefficient x[variable] >= bound``, or ``==``."""

    terms: Mapping[int, fmpq]
    bound: fmpq
    equality: bool


@dataclass(frozen=True)
class Problem:
    """A linear program: minimise cost x over x >= 0 subject to the constraints."""

    constraints: Sequence[LinearConstraint]
    cost: Sequence[fmpq]

    @classmethod
    def of(cls, program: Program) -> Problem:
        """Return the same program, with a `LinearConstraint` for each constraint."""
        constraints = []
        for group in program.constraints:
            # FLINT's rationals, not Fraction: they are several times as fast, and all that follows
            # is bound by rational arithmetic.
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
        """The constraints that are equations, as a mask."""
        return np.array([each.equality for each in self.constraints], dtype=np.bool_)

    def slack(self, x: Sequence[fmpq]) -> list[fmpq]:
        """Return the left side minus the bound of every constraint."""
        return [
            sum((a * x[v] for v, a in each.terms.items()), -each.bound) for each in self.constraints
        ]

    def reduced(self, y: Sequence[fmpq]) -> list[fmpq]:
        """Return the reduced cost, cost - A'y, of every variable at the multipliers y."""
        reduced = list(self.cost)
        for value, constraint in zip(y, self.constraints, strict=True):
            # Multipliers of constraints that are not tight are 0: most of them.
            if value != 0:
                for v, a in constraint.terms.items():
                    reduced[v] -= a * value
        return reduced


class Vertex:
    """The exact solution of a basis, primal (x, slack), dual (y, reduced), or SingularBasis."""

    def __init__(self, problem: Problem, basis: Basis) -> None:
        self.problem, self.basis = problem, basis
        self.inside = basis.columns.tolist()
        self.tight = np.flatnonzero(~basis.rows).tolist()
        # Only basic columns and tight rows: a basic slack appears in its own row alone and needs no
        # equation, and nonbasic variables are 0. That square system has the size of the tight set
        # instead of the number of constraints.
        rows = [
            {v: a for v, a in problem.constraints[r].terms.items() if self.inside[v]}
            for r in self.tight
        ]
        self.factors = Factorization(rows, np.flatnonzero(basis.columns).tolist())
        values = self.factors.solve([problem.constraints[r].bound for r in self.tight])
        self.x = [values.get(v, ZERO) for v in range(len(self.inside))]
        # Complementary slackness: multipliers of rows that are not tight are 0, and basic columns
        # have the reduced cost 0, which is the transposed system.
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
        """The distance of the worst variable, slacks included, from its bounds."""
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
        """The absolute value of the worst negative reduced cost, slacks included."""
        return max(
            ZERO,
            -min(self.reduced),
            *(
                # The slack of an inequality has the reduced cost y; an equality's slack is fixed,
                # and its multiplier may have any sign.
                -y
                for y, each in zip(self.y, self.problem.constraints, strict=True)
                if not each.equality
            ),
        )

    @property
    def optimal(self) -> bool:
        """Whether the vertex is primal and dual feasible, exactly: then it is optimal."""
        return self.primal_violation == 0 and self.dual_violation == 0

    def nonbasic(self) -> Iterator[tuple[int, fmpq]]:
        """Yield variables that may enter the basis, with their reduced costs, in order."""
        yield from ((v, d) for v, d in enumerate(self.reduced) if not self.inside[v])
        yield from (
            (len(self.x) + r, self.y[r])
            for r in self.tight
            if not self.problem.constraints[r].equality
        )

    def basic(self) -> Iterator[tuple[int, fmpq, bool]]:
        """Yield basic variables with their values, in order, and whether they are fixed."""
        yield from ((v, value, False) for v, value in enumerate(self.x) if self.inside[v])
        for r in np.flatnonzero(self.basis.rows).tolist():
            yield len(self.x) + r, self.slack[r], self.problem.constraints[r].equality

    def row(self, variable: int) -> dict[int, fmpq]:
        """Return the rates at which a basic variable changes with nonbasic ones, where not 0."""
        size = len(self.x)
        terms = (
            {variable: ONE} if variable < size else self.problem.constraints[variable - size].terms
        )
        # A row of the tableau, B^-T first: one transposed system instead of one system per column.
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
        """Return the rates at which basic variables change with a nonbasic one, where not 0."""
        size = len(self.x)
        constraints = self.problem.constraints
        if variable < size:
            right = [-constraints[r].terms.get(variable, ZERO) for r in self.tight]
        else:
            right = [ONE if size + r == variable else ZERO for r in self.tight]
        change = {v: value for v, value in self.factors.solve(right).items() if value != 0}
        # Basic columns keep the tight rows tight; what changes the other slacks is read off their
        # rows.
        moved = {**change, variable: ONE} if variable < size else change
        for r in np.flatnonzero(self.basis.rows).tolist():
            terms = constraints[r].terms
            total = sum((a * moved[v] for v, a in terms.items() if v in moved), ZERO)
            if total != 0:
                change[size + r] = total
        return change


def reoptimised(vertex: Vertex, steps: int) -> Vertex:
    """Return an optimal vertex, by exact simplex steps; the last one if ``steps`` do not suffice.

    Raises Infeasible when there is no feasible point: that is then a proof.
    """
    # The first half of the steps takes the largest violation each time, which is quick; the second
    # half Bland's rule, the first violation, which cannot cycle.
    left = steps
    # Near an optimum found in floats few values are negative, and repairing them by the dual method
    # keeps the costs nearly optimal; phase 1 with artificial variables would lose that.
    if vertex.primal_violation > 0:
        vertex, left = _dual_simplex(vertex, steps)
    while vertex.primal_violation == 0 and left > 0:
        # Invariant: the vertex is primal feasible, and the objective never rises.
        negative = [(v, cost) for v, cost in vertex.nonbasic() if cost < 0]
        if not negative:
            break
        entering, _ = min(negative, key=lambda each: each[1]) if 2 * left > steps else negative[0]
        change = vertex.column(entering)
        # Ratio test: what falls to 0 first leaves. A fixed slack is 0 and must stay so: it blocks
        # in either direction, with the ratio 0, and leaves for good.
        blocking = [
            (value / abs(change[v]), v)
            for v, value, fixed in vertex.basic()
            if v in change and (fixed or change[v] < 0)
        ]
        # `min` of pairs breaks ties by the smaller number, as Bland's rule demands. Something
        # always blocks in programs whose feasible set is bounded, such as those with column sums.
        vertex, left = (
            Vertex(vertex.problem, vertex.basis.exchanged(min(blocking)[1], entering)),
            left - 1,
        )
    return vertex


def _dual_simplex(vertex: Vertex, steps: int) -> tuple[Vertex, int]:
    """Return a feasible vertex, by the dual simplex method, and the number of steps left."""
    # Costs are raised just enough that no reduced cost is negative.
    problem = vertex.problem
    # The dual method needs reduced costs of at least 0 to begin with. Basic columns have the
    # reduced cost 0, so that raising those of nonbasic ones changes neither the basis nor its
    # multipliers.
    cost = [c - min(d, ZERO) for c, d in zip(problem.cost, vertex.reduced, strict=True)]
    for value, constraint in zip(vertex.y, problem.constraints, strict=True):
        if value < 0 and not constraint.equality:
            for v, a in constraint.terms.items():
                # c - value * a_r has the multiplier y_r - value = 0, and the same reduced costs.
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
        # Ratio test of the dual: the first reduced cost to reach 0 enters, so that all stay at
        # least 0.
        change = vertex.row(leaving)
        sign = 1 if value < 0 else -1
        entering = [
            (d / (sign * change[v]), v)
            for v, d in vertex.nonbasic()
            if v in change and sign * change[v] > 0
        ]
        # Farkas: the leaving variable is its value plus terms that can only move it further
        # outside, for every x and slack of at least 0. That row of the tableau proves
        # infeasibility.
        if not entering:
            raise Infeasible("no mechanism has all of these properties at this privacy (proved)")
        vertex, left = (
            Vertex(vertex.problem, vertex.basis.exchanged(leaving, min(entering)[1])),
            left - 1,
        )
    # Feasibility does not depend on costs: the primal method goes on with the true ones.
    return Vertex(problem, vertex.basis), left
