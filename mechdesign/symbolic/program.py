"""The linear program of a design for all alpha at once, and its parametric vertices.

A vertex of the program at one alpha is the solution of a square system of tight constraints. Solved
over the rational functions in alpha, the system gives every entry, and every multiplier of the
proof, as a rational function. These are feasible, hence optimal, exactly where certain polynomials
keep their signs.

A design was found by another program, shorter but of the same optimum
(`mechdesign.optimisation.formulation`). So its table, and more often its multipliers, need not be
basic in this one; `mechdesign.lp.basis` makes them so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from flint import fmpq, fmpq_mat, fmpz, fmpz_mat, fmpz_poly

from mechdesign.exceptions import SolverFailure
from mechdesign.losses import Loss
from mechdesign.lp.basis import ZERO, Reduced, basic, pivots, reduce_by_symmetry, to_fmpq, unreduced
from mechdesign.optimisation.formulation import mechanism_program, reflection
from mechdesign.optimisation.optimal import Design
from mechdesign.privacy import Neighbours, Privacy
from mechdesign.properties import Property
from mechdesign.symbolic.semialgebraic import (
    NIL,
    AlphaInterval,
    Polynomials,
    RationalFunction,
    Region,
    nonnegative,
)
from mechdesign.symbolic.table import SAMPLES, SymbolicMechanism, constraints_in_alpha


@dataclass(frozen=True, eq=False)
class Proof:
    """A proof that a bound is optimal on ``interval``: multipliers, as rational functions of alpha.

    ``numerators[r] / denominator`` belongs to constraint r of the reduced program.
    """

    interval: AlphaInterval
    numerators: tuple[fmpz_poly, ...]
    denominator: fmpz_poly


class _AlphaConstraint(NamedTuple):
    """``scale`` times a constraint ``sum terms[v] x[v] >= bound``, or ``==``, of polynomials."""

    terms: Mapping[int, fmpz_poly]
    bound: fmpz_poly
    equality: bool
    scale: int


@dataclass(frozen=True, eq=False)
class ParametricVertex:
    """A parametric vertex: the solution of one basis for all alpha, and where it is optimal."""

    interval: AlphaInterval
    numerators: tuple[fmpz_poly, ...]
    denominator: fmpz_poly
    mechanism: SymbolicMechanism
    objective: RationalFunction
    proof: Proof


class _Point(NamedTuple):
    """A point: a vertex at one alpha and multipliers that are basic, both with slacks."""

    terms: list[dict[int, fmpq]]
    x: dict[int, fmpq]
    slack: list[fmpq]
    y: dict[int, fmpq]
    reduced: list[fmpq]


class _Pair(NamedTuple):
    """A pair of a point ``x / denominator`` for all alpha, and multipliers ``y / scale``."""

    x: list[fmpz_poly]
    denominator: fmpz_poly
    y: list[fmpz_poly]
    scale: fmpz_poly


class AlphaProgram:
    """The program of a statement, reduced by symmetry, with polynomials in alpha."""

    def __init__(
        self, size: int, neighbours: Neighbours, loss: Loss, properties: tuple[Property, ...]
    ) -> None:
        self.size, self.neighbours, self.loss, self.properties = size, neighbours, loss, properties

        def reduced_program(privacy: Privacy) -> Reduced:
            program = mechanism_program(size, size, privacy, loss, properties)
            return reduce_by_symmetry(
                program, reflection(size, size, program.variables)
            ) or unreduced(program)

        privacy = Privacy(alpha=SAMPLES[0], neighbours=neighbours)
        # Names of groups do not depend on alpha, nor does the reduction: `constraints_in_alpha`
        # checks that the cells are the same at all of its samples.
        self.names = [
            group.name
            for group in mechanism_program(size, size, privacy, loss, properties).constraints
        ]
        self.reduction = reduced_program(privacy)
        self.orbit: list[int] = self.reduction.orbit.tolist()
        self.constraints = list[_AlphaConstraint]()
        for group in constraints_in_alpha(
            lambda privacy: reduced_program(privacy).program.constraints, neighbours
        ):
            for cells in group.cells.tolist():
                terms = dict.fromkeys(cells, NIL)
                for v, coefficient in zip(cells, group.coefficients, strict=True):
                    terms[v] += coefficient
                nonzero = {v: a for v, a in terms.items() if a}
                self.constraints.append(
                    _AlphaConstraint(nonzero, group.bound, group.equality, group.scale)
                )
        cost = self.reduction.program.cost
        self.scale = math.lcm(*(value.denominator for value in cost))
        self.cost = [int(value * self.scale) for value in cost]

    def feasible(self, x: Sequence[fmpz_poly], denominator: fmpz_poly) -> Region:
        """Return where ``x / denominator`` satisfies all constraints, signs included."""
        slacks = [
            sum((a * x[v] for v, a in each.terms.items()), -each.bound * denominator)
            for each in self.constraints
        ]
        # An equation is two inequalities: its slack has to be the polynomial 0, or it holds at
        # roots only.
        negated = (
            -slack for slack, each in zip(slacks, self.constraints, strict=True) if each.equality
        )
        return nonnegative([*x, *slacks, *negated], denominator)

    def valid(self, y: Sequence[fmpz_poly], denominator: fmpz_poly) -> Region:
        """Return where the multipliers ``y / denominator`` are dual feasible and prove a bound."""
        reduced = [cost * denominator for cost in self.cost]
        for value, constraint in zip(y, self.constraints, strict=True):
            if value:
                for v, a in constraint.terms.items():
                    reduced[v] -= a * value
        signed = (
            value for value, each in zip(y, self.constraints, strict=True) if not each.equality
        )
        return nonnegative([*reduced, *signed], denominator)

    def value(self, x: Sequence[fmpz_poly], denominator: fmpz_poly) -> RationalFunction:
        """Return the cost of the point ``x / denominator``."""
        return RationalFunction(
            sum((c * p for c, p in zip(self.cost, x, strict=True)), NIL), denominator * self.scale
        )

    def bound(self, y: Sequence[fmpz_poly], denominator: fmpz_poly) -> RationalFunction:
        """Return the bound that multipliers ``y / denominator`` prove where they are `valid`."""
        total = sum(
            (each.bound * value for value, each in zip(y, self.constraints, strict=True)), NIL
        )
        return RationalFunction(total, denominator * self.scale)

    def point(
        self, table: SymbolicMechanism, objective: RationalFunction
    ) -> tuple[list[fmpz_poly], fmpz_poly] | None:
        """Return the point of a table and its worst case, if any; None if it is asymmetric."""
        flat = [weight * objective.denominator for row in table.weights for weight in row]
        denominator = table.denominator * objective.denominator
        flat += [objective.numerator * table.denominator] * (len(self.orbit) - len(flat))
        x = [NIL] * len(self.cost)
        for v, weight in zip(self.orbit, flat, strict=True):
            x[v] = weight
        return (
            (x, denominator)
            if all(x[v] == weight for v, weight in zip(self.orbit, flat, strict=True))
            else None
        )

    def vertex(self, design: Design) -> ParametricVertex:
        """Return the parametric vertex of which an optimal design is the value at its alpha."""
        # A design that lies between several vertices is replaced by one of them.
        alpha = design.mechanism.privacy.alpha
        if alpha == 1:
            raise ValueError(
                "rational functions are for alpha in (0, 1), the design is for alpha = 1"
            )
        point = self._point(design)
        # Where a basis is optimal at one alpha only, the constants are, too, and need no more
        # proof.
        for make in (self._rational_functions, _constants):
            vertex = self._optimal(alpha, make(point))
            if vertex is not None:
                return vertex
        raise SolverFailure("the design, or the rational functions that fit it, are not optimal")

    def _optimal(self, alpha: Fraction, pair: _Pair) -> ParametricVertex | None:
        """Return a table and its proof, and where they are optimal; None if not at ``alpha``."""
        cells = [pair.x[v] for v in self.orbit[: self.size**2]]
        table = tuple(tuple(cells[k : k + self.size]) for k in range(0, len(cells), self.size))
        if any(sum(column, NIL) != pair.denominator for column in zip(*table, strict=True)):
            return None
        objective = self.value(pair.x, pair.denominator)
        primal = self.feasible(pair.x, pair.denominator).around(alpha)
        dual = self.valid(pair.y, pair.scale).around(alpha)
        # Complementary slackness makes both objectives equal for every basis of its own; compared
        # here, since primal and dual may have been made from different ones.
        if primal is None or dual is None or self.bound(pair.y, pair.scale) != objective:
            return None
        interval = AlphaInterval.of(max(primal.low, dual.low), min(primal.high, dual.high))
        if not (primal.region & dual.region).covers(interval):
            return None  # there is a pole between
        return ParametricVertex(
            interval,
            tuple(pair.x),
            pair.denominator,
            SymbolicMechanism(table, pair.denominator, self.neighbours),
            objective,
            Proof(interval, tuple(pair.y), pair.scale),
        )

    def _rational_functions(self, point: _Point) -> _Pair:
        """Return the rational functions of which a vertex is the value, by one of its bases."""
        rows, columns = self._basis(point)
        place = {v: k for k, v in enumerate(columns)}
        square = [[NIL] * len(columns) for _ in rows]
        for entries, r in zip(square, rows, strict=True):
            for v, a in self.constraints[r].terms.items():
                if v in place:
                    entries[place[v]] = a
        solution, denominator = solved(square, [self.constraints[r].bound for r in rows])
        # B x = b and B'y = c: the same basis gives the primal and the dual solution.
        transposed = [list(column) for column in zip(*square, strict=True)]
        multipliers, scale = solved(transposed, [fmpz_poly([self.cost[v]]) for v in columns])
        x, y = [NIL] * len(self.cost), [NIL] * len(self.constraints)
        for v, value in zip(columns, solution, strict=True):
            x[v] = value
        for r, value in zip(rows, multipliers, strict=True):
            y[r] = value
        return _Pair(x, denominator, y, scale)

    def _basis(self, point: _Point) -> tuple[list[int], list[int]]:
        """Return a basis of a vertex: independent tight constraints, and as many columns."""
        # At an alpha where one basis is replaced by another, an equality may be implied by other
        # constraints at this alpha only. The rational functions then need not satisfy it elsewhere.
        x, y, reduced = point.x, point.y, point.reduced
        tight = [r for r, value in enumerate(point.slack) if value == 0]
        # First what must be basic, last the equalities that others imply; -1 - r is the slack of
        # constraint r.
        needed = [v for v, value in x.items() if value != 0]
        idle = [r for r in tight if y[r] == 0]
        order = needed + [-1 - r for r in idle if not self.constraints[r].equality]
        order += [v for v, value in x.items() if value == 0 and reduced[v] == 0]
        order += [-1 - r for r in idle if self.constraints[r].equality]
        matrix = [
            [point.terms[r].get(v, ZERO) if v >= 0 else fmpq(v == -1 - r) for v in order]
            for r in tight
        ]
        # Greedy, in this order: independent of all before it. The columns of positive variables
        # come first, and are independent at a vertex; columns and slacks with the reduced cost 0
        # complete the basis so that it is dual feasible, too (complementary slackness).
        chosen = {order[k] for k in pivots(matrix)}
        if len(chosen) < len(tight) or not chosen.issuperset(needed):
            raise SolverFailure("the table and the multipliers of the design do not fit")
        rows = [r for r in tight if -1 - r not in chosen]
        return rows, [v for v in order if v >= 0 and v in chosen]

    def _point(self, design: Design) -> _Point:
        """Return the table and the multipliers of a design, made basic."""
        alpha, size = to_fmpq(design.mechanism.privacy.alpha), self.size
        flat = [to_fmpq(entry) for row in design.mechanism.table for entry in row]
        flat += [to_fmpq(design.certificate.objective)] * (len(self.orbit) - size**2)
        share, table = Counter(self.orbit), dict.fromkeys(range(len(self.cost)), ZERO)
        for v, value in zip(self.orbit, flat, strict=True):
            # The mean over an orbit: a design that is not symmetric is replaced by one that is, at
            # the same loss.
            table[v] += value / share[v]
        terms = [{v: a(alpha) for v, a in each.terms.items()} for each in self.constraints]
        # The dual polyhedron in the same form: -A'y >= -c, y >= 0 but for equations, which are
        # free.
        columns: list[dict[int, fmpq]] = [{} for _ in self.cost]
        for r, row in enumerate(terms):
            for v, a in row.items():
                columns[v][r] = -a
        x, slack = basic(table, terms, [each.bound(alpha) for each in self.constraints])
        y, reduced = basic(
            self._multipliers(design),
            columns,
            [-fmpq(cost) for cost in self.cost],
            {r for r, each in enumerate(self.constraints) if each.equality},
        )
        return _Point(terms, x, slack, y, reduced)

    def _multipliers(self, design: Design) -> dict[int, fmpq]:
        """Return the multipliers of a design, of the constraints of the reduced program."""
        y = dict.fromkeys(range(len(self.constraints)), ZERO)
        for name, origin, sign in zip(
            self.names, self.reduction.origin, self.reduction.sign, strict=True
        ):
            for r, value in design.certificate.multipliers.get(name, {}).items():
                if origin[r] >= 0:
                    y[origin[r]] += (
                        int(sign[r])
                        * to_fmpq(value)
                        * self.scale
                        / self.constraints[origin[r]].scale
                    )
        return y


def _constants(point: _Point) -> _Pair:
    """Return the same numbers for every alpha; they may be feasible at one alpha only."""
    return _Pair(*_whole(point.x.values()), *_whole(point.y.values()))


def _whole(values: Iterable[fmpq]) -> tuple[list[fmpz_poly], fmpz_poly]:
    """Return the numerators and the common denominator of rational numbers."""
    kept = list(values)
    scale = math.lcm(*(int(value.q) for value in kept))
    return [fmpz_poly([(value * scale).p]) for value in kept], fmpz_poly([scale])


def solved(square: Sequence[Polynomials], right: Polynomials) -> tuple[list[fmpz_poly], fmpz_poly]:
    """Return the numerators and common denominator that solve a linear system, in lowest terms."""
    # By Cramer's rule they are determinants, whose coefficients are bounded by the product of the
    # row sums below. A polynomial with coefficients less than half of b in size can be read off its
    # value at b, in base b: it is enough to solve one system of integers.
    bound = math.prod(
        sum(int(abs(c)) for p in (*row, side) for c in p.coeffs())
        for row, side in zip(square, right, strict=True)
    )
    # One more for the sign: digits are balanced, from minus half of the base to half of it
    # (Kronecker substitution). Elimination over polynomials would cost a gcd at each step.
    bits = bound.bit_length() + 1
    base, size = fmpz(1) << bits, len(square)
    matrix = fmpz_mat(size, size, [p(base) for row in square for p in row])
    determinant = matrix.det()
    values = fmpq_mat(matrix).solve(fmpq_mat(size, 1, [fmpq(p(base)) for p in right])).entries()
    numerators, denominator = (
        [_digits(int((value * determinant).p), bits) for value in values],
        _digits(int(determinant), bits),
    )
    common = denominator
    for numerator in numerators:
        common = common.gcd(numerator)
    return [numerator // common for numerator in numerators], denominator // common


def _digits(value: int, bits: int) -> fmpz_poly:
    """Return the polynomial with this value at 2^bits, of coefficients below half of that."""
    digits, base = list[int](), 1 << bits
    while value:
        digit = value & (base - 1)
        # The upper half of the digits stands for negative coefficients, with a carry into the next.
        if digit >> (bits - 1):
            digit -= base
        digits.append(digit)
        value = (value - digit) >> bits
    return fmpz_poly(digits)
