"""Exact factorisation of the square systems of a basis, in rational arithmetic.

The constraint matrix of a basis consists mostly of rows with one or two variables. Seen as edges
between variables they form connected components, in each of which one unknown, the root,
determines all the others: ``x = slope * root + shift``. A component with one row more than its
spanning tree determines its root, too. Only the few long rows (column sums) connect components: a
dense system of about n/2 or n unknowns is left, which FLINT solves exactly. The transposed system
is solved by the same components, from the leaves of their trees to the roots.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat

from mechdesign.base import Integers
from mechdesign.lp.constraints import Constraints, canonical

ZERO, ONE = fmpq(0), fmpq(1)


class SingularBasis(ArithmeticError):
    """The error for a basis whose rows are linearly dependent."""


class Factorization:
    """The factorisation of a square matrix whose row r is ``{variable: coefficient}``.

    Coefficients are not 0. It solves systems with the matrix and its transpose. Raises
    SingularBasis for dependent rows.
    """

    def __init__(self, rows: Sequence[Mapping[int, fmpq]], variables: Sequence[int]) -> None:
        if len(rows) != len(variables):
            raise SingularBasis(f"{len(rows)} rows for {len(variables)} variables")
        self.rows, self.variables = rows, variables
        self.long = [r for r, row in enumerate(rows) if len(row) > 2]
        incident: dict[int, list[int]] = {v: [] for v in variables}
        for r, row in enumerate(rows):
            if not row:
                raise SingularBasis("a row without variables")
            if len(row) <= 2:
                for v in row:
                    incident[v].append(r)
        # Privacy constraints P[i, j] >= r P[i, k] and bounds have at most two variables: a sparse
        # LU in rationals would fill in and its numbers grow, while along a tree each unknown is one
        # multiple of the root's, a product of at most as many ratios as the tree is deep.
        self.component: dict[int, int] = {}
        self.slope: dict[int, fmpq] = {}
        self.roots: list[int] = []
        # For each component, in the order in which they were reached: (row, known variable,
        # variable it determines).
        self.trees: list[list[tuple[int, int, int]]] = []
        self.spare: list[int | None] = []  # the row that determines the root
        for v in variables:
            if v not in self.component:
                self._walk(v, incident)
        free = [k for k, row in enumerate(self.spare) if row is None]
        self.position = {k: place for place, k in enumerate(free)}
        # Rows are tree edges, spare rows and long rows; a component of size s has s - 1 edges. A
        # square matrix hence has as many long rows as components without a spare row: the dense
        # system is square.
        system = [[ZERO] * len(free) for _ in free]
        # In long row r, x[v] = slope[v] root + shift[v]: only slopes enter the matrix.
        for entries, r in zip(system, self.long, strict=True):
            for v, a in rows[r].items():
                if (number := self.component[v]) in self.position:
                    entries[self.position[number]] += a * self.slope[v]
        self.dense = fmpq_mat(len(free), len(free), [entry for row in system for entry in row])

    def _walk(self, root: int, incident: Mapping[int, Sequence[int]]) -> None:
        number = len(self.roots)
        self.component[root], self.slope[root] = number, ONE
        # Depth first, with a stack: chains of privacy constraints may exceed the recursion limit.
        tree, spare, used, stack = list[tuple[int, int, int]](), list[int](), set[int](), [root]
        while stack:
            u = stack.pop()
            for r in incident[u]:
                if r in used:
                    continue
                used.add(r)
                row = self.rows[r]
                # A row of one variable is a loop at it, and closes a cycle like any row that joins
                # two variables that have been reached.
                v = next((v for v in row if v != u), u)
                if v in self.component:
                    spare.append(r)
                    continue
                # From row[u] x[u] + row[v] x[v] = right: slopes solve the homogeneous equation.
                self.component[v], self.slope[v] = number, -row[u] * self.slope[u] / row[v]
                tree.append((r, u, v))
                stack.append(v)
        # s unknowns with s - 1 edges and two more rows are overdetermined, hence dependent; a spare
        # row that the slopes satisfy (a cycle whose ratios multiply to 1) is a combination of the
        # edges.
        if len(spare) > 1:
            raise SingularBasis("a component has more rows than variables")
        if spare and self._pull(spare[0]) == 0:
            raise SingularBasis("the rows of a cycle are dependent")
        self.roots.append(root)
        self.trees.append(tree)
        self.spare.append(spare[0] if spare else None)

    def _pull(self, r: int) -> fmpq:
        """Return the coefficient of the root in a row within one component."""
        return sum((a * self.slope[v] for v, a in self.rows[r].items()), ZERO)

    def _dense(self, system: fmpq_mat, right: list[fmpq]) -> list[fmpq]:
        if not right:
            return []
        try:
            # FLINT solves over the rationals by fraction-free elimination or Dixon's lifting:
            # Gaussian elimination in fractions would spend its time on their growth.
            return system.solve(fmpq_mat(len(right), 1, right)).entries()
        except ZeroDivisionError as error:
            raise SingularBasis("the long rows are dependent") from error

    def solve(self, right: Sequence[fmpq]) -> dict[int, fmpq]:
        """Return the x with ``row r of the matrix times x == right[r]``."""
        # By superposition: x = shift + slope * root, in each component.
        x = dict.fromkeys(self.variables, ZERO)  # first the shifts, as if every root were 0
        for tree in self.trees:
            for r, u, v in tree:
                x[v] = (right[r] - self.rows[r][u] * x[u]) / self.rows[r][v]

        def left(r: int) -> fmpq:
            return sum((a * x[v] for v, a in self.rows[r].items()), ZERO)

        # Roots of components with a spare row do not depend on the others, and come first: their
        # values are part of what long rows have left for the dense system.
        known = {
            k: (right[r] - left(r)) / self._pull(r)
            for k, r in enumerate(self.spare)
            if r is not None
        }
        for v in self.variables:
            if (root := known.get(self.component[v], ZERO)) != 0:
                x[v] += self.slope[v] * root
        roots = self._dense(self.dense, [right[r] - left(r) for r in self.long])
        for v in self.variables:
            if (number := self.component[v]) in self.position:
                x[v] += self.slope[v] * roots[self.position[number]]
        return x

    def solve_transposed(self, right: Mapping[int, fmpq]) -> list[fmpq]:
        """Return the y with ``sum_r y[r] * (row r of the matrix) == right``, 0 where not given."""
        # Weighted by slope[v] and summed over a component, the multipliers of the short rows
        # of its tree cancel: what is left determines the multipliers of the long rows, and then of
        # the row outside the tree.
        totals = [ZERO] * len(self.position)
        for v, value in right.items():
            if (number := self.component[v]) in self.position:
                totals[self.position[number]] += self.slope[v] * value
        y = [ZERO] * len(self.rows)
        # Invariant: need[v] is what the rows that are not settled yet must add up to in variable v.
        need = {v: right.get(v, ZERO) for v in self.variables}

        def settle(r: int, value: fmpq) -> None:
            y[r] = value
            if value != 0:
                for v, a in self.rows[r].items():
                    need[v] -= a * value

        for r, value in zip(self.long, self._dense(self.dense.transpose(), totals), strict=True):
            settle(r, value)
        for root, tree, spare in zip(self.roots, self.trees, self.spare, strict=True):
            if spare is not None:
                total = sum((self.slope[v] * need[v] for _, _, v in tree), need[root])
                settle(spare, total / self._pull(spare))
            # Leaves first: each v then has one row left, the edge to its parent.
            for r, _, v in reversed(tree):
                settle(r, need[v] / self.rows[r][v])
        return y


def to_fmpq(value: Fraction) -> fmpq:
    """Return the same number as a rational number of FLINT."""
    return fmpq(value.numerator, value.denominator)


def to_fraction(value: fmpq) -> Fraction:
    """Return the same number as a Fraction."""
    return Fraction(int(value.p), int(value.q))


# ------------------------------------------------------------------------------------------------
# Basic solutions of linear inequalities in exact arithmetic.
#
# A point of a face is moved to a vertex of that face.


def basic(
    point: Mapping[int, fmpq],
    rows: Sequence[Mapping[int, fmpq]],
    bounds: Sequence[fmpq],
    free: Collection[int] = (),
) -> tuple[dict[int, fmpq], list[fmpq]]:
    """Return a vertex of the smallest face of ``x >= 0, rows x >= bounds`` around a point."""
    # Variables and slacks that are 0 at the point stay 0. The point itself is returned if it is a
    # vertex.
    slack = [
        sum((a * point[v] for v, a in row.items()), -bound)
        for row, bound in zip(rows, bounds, strict=True)
    ]
    # Variables by their number, and the slack of row r as -1 - r.
    values = {**point, **{-1 - r: value for r, value in enumerate(slack)}}
    support = [v for v, value in point.items() if value != 0]
    tight = [row for row, value in zip(rows, slack, strict=True) if value == 0]
    directions = list[dict[int, fmpq]]()
    # Directions in which nothing that is 0 changes; their number is the dimension of the face.
    for change in _kernel([[row.get(v, ZERO) for v in support] for row in tight], len(support)):
        direction = {v: a for v, a in zip(support, change, strict=True) if a != 0}
        for r, row in enumerate(rows):
            moved = sum((a * direction[v] for v, a in row.items() if v in direction), ZERO)
            if moved != 0:
                direction[-1 - r] = moved
        directions.append(direction)
    while directions:
        direction = directions.pop()
        # The first value to reach 0 stops the step, so that none becomes negative; free ones stop
        # it only where nothing else moves.
        bounded = [v for v in direction if v not in free]
        first = min(bounded or direction, key=lambda v: abs(values[v] / direction[v]))
        step = values[first] / direction[first]
        for v, a in direction.items():
            values[v] -= step * a
        # The variable that has reached 0 must stay there: elimination takes it out of the remaining
        # directions, which stay independent. Each step lowers the dimension of the face by one.
        directions = [_without(first, other, direction) for other in directions]
    return {v: values[v] for v in point}, [values[-1 - r] for r in range(len(rows))]


def pivots(matrix: Sequence[Sequence[fmpq]]) -> list[int]:
    """Return the columns of a matrix independent of those before them, as many as its rank."""
    return _reduced(matrix)[1]


def _reduced(matrix: Sequence[Sequence[fmpq]]) -> tuple[fmpq_mat, list[int]]:
    """Return the reduced row echelon form, and the pivot column of each of its nonzero rows."""
    width = len(matrix[0]) if matrix else 0
    echelon, rank = fmpq_mat(len(matrix), width, [a for row in matrix for a in row]).rref()
    return echelon, [next(k for k in range(width) if echelon[row, k] != 0) for row in range(rank)]


def _kernel(matrix: Sequence[Sequence[fmpq]], width: int) -> Iterator[list[fmpq]]:
    """Yield independent vectors that span all x with ``matrix x = 0``."""
    echelon, leading = _reduced(matrix)
    for free in sorted({*range(width)} - {*leading}):
        vector = [ZERO] * width
        vector[free] = ONE
        for row, k in enumerate(leading):
            # In reduced form each pivot column has a single 1: x[k] + sum over free columns = 0.
            vector[k] = -echelon[row, free]
        yield vector


def _without(v: int, vector: Mapping[int, fmpq], other: Mapping[int, fmpq]) -> dict[int, fmpq]:
    """Return a vector minus the multiple of another that makes component v zero."""
    if v not in vector:
        return dict(vector)
    share = vector[v] / other[v]
    total = {k: vector.get(k, ZERO) - share * other.get(k, ZERO) for k in {**vector, **other}}
    return {k: a for k, a in total.items() if a != 0}


# ------------------------------------------------------------------------------------------------
# Program: a linear program as data, exact rational sparse constraints over non-negative variables.
#
# Nothing here depends on how a program is solved.


@dataclass(frozen=True)
class Program:
    """A linear program: minimise ``sum cost[v] x[v]`` over x >= 0 subject to ``constraints``."""

    cost: tuple[Fraction, ...]
    constraints: tuple[Constraints, ...]

    @property
    def variables(self) -> int:
        """The number of variables."""
        return len(self.cost)


# ------------------------------------------------------------------------------------------------
# Orbit reduction by symmetry: a program in which the variables that a symmetry swaps are one.


@dataclass(frozen=True)
class Reduced:
    """A reduced program: one variable for each orbit of a symmetry, and no constraint twice."""

    program: Program
    # Shape (variables,): for each variable of the original, the one of ``program`` it became.
    orbit: Integers
    # ``origin[g][r]`` is the constraint of ``program``, numbered through all groups, that stands
    # for constraint r of group g; -1 if constraint r is vacuous, or repeats an earlier one.
    origin: tuple[Integers, ...]
    # ``sign[g][r]`` is -1 if that constraint is constraint r negated, else 1.
    sign: tuple[Integers, ...]

    def expand(self, multipliers: Sequence[Fraction]) -> list[dict[int, Fraction]]:
        """Return dual values of the original program, by group, from those of the smaller one."""
        # Constraints that became one share its value equally. The result is feasible and has the
        # same value, because the set of constraints merged into one is closed under the symmetry.
        # Counted from -1 on, so that vacuous and repeated constraints fall into the bin that is cut
        # off.
        merged = np.bincount(np.concatenate(self.origin) + 1, minlength=len(multipliers) + 1)[
            1:
        ].tolist()
        share = [value / count for value, count in zip(multipliers, merged, strict=True)]
        return [
            {
                # Equal shares: multipliers that are constant on orbits pull equally at the
                # variables of an orbit, so that reduced costs that are at least 0 in sum are so for
                # each of them.
                r: sign * share[f]
                for r, (f, sign) in enumerate(zip(origin.tolist(), signs.tolist(), strict=True))
                if f >= 0 and share[f]
            }
            for origin, signs in zip(self.origin, self.sign, strict=True)
        ]


def reduce_by_symmetry(program: Program, symmetry: Integers) -> Reduced | None:
    """Return the orbit reduction by a symmetry (an involution); None for an asymmetric program.

    Averaging a mechanism with its image keeps feasibility and cost (Theorem 8), and so the optimum,
    when costs and constraints are unchanged: that is checked, constraint by constraint.
    """
    if any(program.cost[v] != program.cost[w] for v, w in enumerate(symmetry.tolist())):
        return None
    size = len(program.constraints)
    before_and_after = list(
        canonical(
            [*program.constraints, *(group.relabelled(symmetry) for group in program.constraints)]
        )
    )
    # As sets of codes, regardless of order and group: the symmetry may carry a constraint into
    # another group.
    before, after = (
        {row.tobytes() for codes, _ in half for row in codes}
        for half in (before_and_after[:size], before_and_after[size:])
    )
    if before != after:
        return None
    # Orbits of an involution have one or two elements: the lesser stands for both.
    return _merged(program, np.minimum(np.arange(program.variables), symmetry))


def unreduced(program: Program) -> Reduced:
    """Return the program without vacuous and repeated constraints, as `reduce_by_symmetry` does."""
    return _merged(program, np.arange(program.variables))


def _merged(program: Program, representative: Integers) -> Reduced:
    _, orbit = np.unique(representative, return_inverse=True)
    cost = [Fraction(0)] * (int(orbit.max()) + 1)
    for value, v in zip(program.cost, orbit.tolist(), strict=True):
        # Summed, not averaged: the reduced variable is the common value of its orbit.
        cost[v] += value
    groups, origins, signs = list[Constraints](), list[Integers](), list[Integers]()
    # Reduced constraint -> its number, and the sign of the one that stands for it
    seen: dict[bytes, tuple[int, int]] = {}
    renamed = [group.relabelled(orbit) for group in program.constraints]
    repeated = _repeated(program.constraints)
    for group, again, (code, sign) in zip(renamed, repeated, canonical(renamed), strict=True):
        kept, origin = [], np.full(len(code), -1, dtype=np.int64)
        # A constraint that is in the program twice takes part once: shares are equal among
        # *different* constraints.
        for r in np.flatnonzero(~(group.vacuous() | again)).tolist():
            key = code[r].tobytes()
            if key not in seen:
                seen[key] = (len(seen), int(sign[r]))
                kept.append(r)
            origin[r] = seen[key][0]
            sign[r] *= seen[key][1]
        groups.append(replace(group, cells=group.cells[kept]))
        origins.append(origin)
        signs.append(sign)
    return Reduced(Program(tuple(cost), tuple(groups)), orbit, tuple(origins), tuple(signs))


def _repeated(groups: Sequence[Constraints]) -> list[npt.NDArray[np.bool_]]:
    """Return which constraints repeat an earlier one."""
    seen: set[bytes] = set()
    repeated = []
    for codes, _ in canonical(groups):
        again = np.zeros(len(codes), dtype=np.bool_)
        for r, code in enumerate(codes):
            key = code.tobytes()
            again[r] = key in seen
            seen.add(key)
        repeated.append(again)
    return repeated


@dataclass(frozen=True)
class Places:
    """The places of variables in a table, shape (variables,), -1 for those that are no entries."""

    outputs: Integers
    inputs: Integers
    #: Exponents of alpha, each of shape (variables,): entries alpha^exponent are first guesses.
    guesses: Sequence[Integers]

    @property
    def distances(self) -> Integers:
        """The distances of the entries from the diagonal."""
        distances: Integers = np.abs(self.outputs - self.inputs)
        return distances

    def renumbered(self, orbit: Integers) -> Places:
        """Return the places of variables ``orbit[v]``, each that of the first v."""
        _, first = np.unique(orbit, return_index=True)
        return Places(
            self.outputs[first], self.inputs[first], [each[first] for each in self.guesses]
        )
