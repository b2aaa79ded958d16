"""The program of a loss that only tells right from wrong, in three variables for each input.

Such a loss, L0 above all, depends on the diagonal alone. Of column j there remain the truth
d_j = P[j, j], all that is too large, U_j = sum of P[i, j] over i > j, and all that is too small,
L_j. Privacy between adjacent counts, summed over the outputs on one side of the diagonal, becomes

    U_j >= alpha (U_j+1 + d_j+1),    U_j+1 + d_j+1 >= alpha U_j,

and its mirror image for L. In a row monotone table the last alpha is 1. Column honesty becomes
d_j+1 >= P[j, j+1] >= alpha d_j, its mirror image, and U_j <= (n - j) d_j, L_j <= j d_j. All of
these are sums of constraints of the stated program, and so multipliers of one are multipliers of
the other: the optimum is a lower bound, with a certificate.

Conversely, a table with these d, U and L is filled in from the diagonal outwards. An entry of
column j, above output j, lies between alpha times its neighbour in column j + 1 and that neighbour
itself (1 / alpha times it, where the table need not be row monotone); in a column honest table it
is at most d_j. All are as small as that allows, but for those next to the diagonal: these are as
large as they can be, until the sum is U_j. Without column honesty this always succeeds, so the
bound is attained. With it no case is known where it fails; a certificate tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import lcm
from typing import TypeAlias

import numpy as np
from flint import fmpq, nmod_mat

from mechdesign.approximate_privacy import Promise
from mechdesign.base import Floats, Integers
from mechdesign.lp.basis import ONE, ZERO, Program, reduce_by_symmetry, to_fmpq, to_fraction
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism.table import Table
from mechdesign.optimisation.certificate import Certificate
from mechdesign.optimisation.formulation import mechanism_program, reflection
from mechdesign.requirements import Inequality, Linear

# The names of groups of constraints that a stated program may have.
_STATED = {"column sums", "privacy", "RH", "RM", "CH", "CM", "F", "WH", "S"}

# The type of stated constraints: names of groups, and numbers of constraints in them.
_Parts: TypeAlias = Iterable[tuple[str, Integers]]


@dataclass(frozen=True)
class _Sums:
    """A group of constraints that are sums of stated ones: constraint r is that of ``parts(r)``."""

    constraints: Constraints
    parts: Callable[[int], _Parts]


@dataclass(frozen=True)
class DiagonalProgram:
    """A program in d_0 .. d_n, U_0 .. U_n and L_0 .. L_n, in this order."""

    stated: Program  # the one that it stands for, of a table for counts 0 .. n; see `of`
    size: int  # n + 1
    alpha: Fraction  # that of the privacy between adjacent counts, below 1

    @classmethod
    def of(cls, stated: Program, size: int, privacy: Promise) -> DiagonalProgram | None:
        """Return that of a program of `mechanism_program` with ``size`` outputs, if it has one."""
        # None where it has another loss, other properties, neighbours other than adjacent counts,
        # or a symmetry that its loss has not.
        names = {group.name for group in stated.constraints}
        if (
            size < 2
            or stated.variables != size**2
            or privacy.delta
            or privacy.neighbours != "adjacent"
            or privacy.alpha == 1
            or not names <= _STATED
            or ("S" in names and stated.cost != stated.cost[::-1])
        ):
            return None
        # The loss may tell too large from too small, but not how far: all costs above the diagonal
        # of a column are equal, and all below.
        columns = [stated.cost[j::size] for j in range(size)]
        if any(len({*c[:j]}) > 1 or len({*c[j + 1 :]}) > 1 for j, c in enumerate(columns)):
            return None
        return cls(stated, size, privacy.alpha)

    @cached_property
    def program(self) -> Program:
        """The smaller program."""
        cost, size, zero = self.stated.cost, self.size, Fraction(0)
        upper, lower = (*cost[-size:-1], zero), (zero, *cost[1:size])
        return Program(
            (*cost[:: size + 1], *upper, *lower), tuple(each.constraints for each in self._sums)
        )

    @property
    def symmetry(self) -> Integers:
        """The central reflection, d_j <-> d_n-j and U_j <-> L_n-j, as a permutation."""
        numbers = np.arange(3 * self.size)
        return np.concatenate([numbers[: self.size][::-1], numbers[self.size :][::-1]])

    @property
    def sizes(self) -> Floats:
        """The order of magnitude of each variable: they are alike."""
        return np.ones(self.program.variables)

    def table(self, x: Sequence[Fraction]) -> list[list[Fraction]] | None:
        """Return a table with these d, U and L, rows are outputs; None if filling it in fails."""
        truth, upper, lower = (
            list(map(to_fmpq, x[k * self.size :][: self.size])) for k in range(3)
        )
        above, below = self._filled(truth, upper), self._filled(truth[::-1], lower[::-1])
        if above is None or below is None:
            return None
        columns = [
            [*reversed(under), diagonal, *over]
            for under, diagonal, over in zip(reversed(below), truth, above, strict=True)
        ]
        return [[to_fraction(entry) for entry in row] for row in zip(*columns, strict=True)]

    def restored(
        self, multipliers: Sequence[Mapping[int, Fraction]]
    ) -> dict[str, dict[int, Fraction]]:
        """Return dual values of the stated program by name of group, from those by its number."""
        # A multiplier of a sum of constraints is a multiplier of each of its terms: nonnegative
        # ones stay so, and left and right sides add up to the same.
        stated: dict[str, dict[int, Fraction]] = {}
        for each, chosen in zip(self._sums, multipliers, strict=True):
            for r, value in chosen.items():
                for name, numbers in each.parts(r):
                    total = stated.setdefault(name, {})
                    for number in numbers.tolist():
                        total[number] = total.get(number, Fraction(0)) + value
        return stated

    def _filled(self, truth: Sequence[fmpq], sums: Sequence[fmpq]) -> list[list[fmpq]] | None:
        """Return the entries P[j + 1, j] .. P[n, j] of every column j, with these ``sums``."""
        alpha = to_fmpq(self.alpha)
        most = ONE if self._groups.keys() & {"RM", "RH"} else 1 / alpha
        honest = bool(self._groups.keys() & {"CM", "CH"})
        columns: list[list[fmpq]] = [[]]
        # From the last column on, as the entries of column j are bounded by those of column j + 1.
        for j in range(self.size - 2, -1, -1):
            neighbours = [truth[j + 1], *columns[-1]]
            column = [alpha * entry for entry in neighbours]
            left = sums[j] - sum(column, ZERO)
            for k, entry in enumerate(neighbours):
                room = (min(most * entry, truth[j]) if honest else most * entry) - column[k]
                added = min(room, left)
                # The sum is less than the least that the neighbours allow, or an entry may not
                # reach it.
                if added < 0:
                    return None
                column[k] += added
                left -= added
            if left != 0:
                return None
            columns.append(column)
        return columns[::-1]

    @cached_property
    def _groups(self) -> dict[str, Constraints]:
        return {group.name: group for group in self.stated.constraints}

    @cached_property
    def _sums(self) -> list[_Sums]:
        return [*self._sums_of_privacy(), *self._sums_of_properties()]

    @cached_property
    def _at(self) -> Integers:
        """The numbers of the entries of the table, as an array of its shape."""
        return np.arange(self.size**2).reshape(self.size, self.size)

    def _sums_of_privacy(self) -> Iterator[_Sums]:
        """Yield the sums of the columns, of privacy and of row monotonicity."""
        at, alpha = self._at, self.alpha
        truth, upper, lower = np.arange(3 * self.size).reshape(3, self.size)
        inward = "RM" if "RM" in self._groups else "privacy"
        most = Fraction(1) if "RM" in self._groups else alpha
        find = self._pairs
        yield _sums(
            [truth, upper, lower], (1, 1, 1), lambda j: [("column sums", np.array([j]))], equals=1
        )
        yield _sums([np.array([upper[-1], lower[0]])], (1,), lambda _: [], equals=0)
        outward = (1, -alpha, -alpha)
        yield _sums(
            [upper[:-1], upper[1:], truth[1:]],
            outward,
            lambda j: [find("privacy", at[j + 1 :, j], at[j + 1 :, j + 1])],
        )
        yield _sums(
            [lower[1:], lower[:-1], truth[:-1]],
            outward,
            lambda j: [find("privacy", at[: j + 1, j + 1], at[: j + 1, j])],
        )
        yield _sums(
            [upper[1:], truth[1:], upper[:-1]],
            (1, 1, -most),
            lambda j: [find(inward, at[j + 1 :, j + 1], at[j + 1 :, j])],
        )
        yield _sums(
            [lower[:-1], truth[:-1], lower[1:]],
            (1, 1, -most),
            lambda j: [find(inward, at[: j + 1, j], at[: j + 1, j + 1])],
        )

    def _sums_of_properties(self) -> Iterator[_Sums]:
        """Yield the sums of column honesty, fairness and weak honesty."""
        at, alpha, size = self._at, self.alpha, self.size
        truth, upper, lower = np.arange(3 * size).reshape(3, size)
        if "WH" in self._groups:
            least = self._groups["WH"].bound
            yield _sums([truth], (1,), lambda j: [("WH", np.array([j]))], at_least=least)
        if "F" in self._groups:
            yield _sums(
                [truth[:-1], truth[1:]], (1, -1), lambda j: [("F", np.array([j]))], equals=0
            )
        if not self._groups.keys() & {"CM", "CH"}:
            return
        yield _sums(
            [truth[1:], truth[:-1]],
            (1, -alpha),
            lambda j: [self._pairs("privacy", at[j, j + 1], at[j, j]), *self._honest(j + 1, [j])],
        )
        yield _sums(
            [truth[:-1], truth[1:]],
            (1, -alpha),
            lambda j: [
                self._pairs("privacy", at[j + 1, j], at[j + 1, j + 1]),
                *self._honest(j, [j + 1]),
            ],
        )
        for j in range(size):
            for part, outputs in ((upper, range(j + 1, size)), (lower, range(j))):
                cells = [truth[j : j + 1], part[j : j + 1]]
                yield _sums(cells, (len(outputs), -1), partial(self._share, j, outputs))

    def _pairs(self, name: str, larger: Integers, smaller: Integers) -> tuple[str, Integers]:
        """Return the constraints of a group between these entries of the table."""
        cells = np.column_stack([np.atleast_1d(larger), np.atleast_1d(smaller)])
        return name, self._groups[name].find(cells)

    def _honest(self, j: int, outputs: Iterable[int]) -> _Parts:
        """Yield P[j, j] >= P[i, j] for each of the outputs i, other than j."""
        for i in outputs:
            way = self._at[np.arange(j, i, 1 if i > j else -1), j]
            # Monotone columns state it step by step: a chain of neighbouring entries adds up to it.
            if "CM" in self._groups:
                yield self._pairs("CM", way, np.append(way[1:], self._at[i, j]))
            else:
                yield self._pairs("CH", way[:1], self._at[i, j])

    def _share(self, j: int, outputs: Iterable[int], _: int) -> _Parts:
        """Return the same, as the parts of the only constraint of a group."""
        return self._honest(j, outputs)


def _sums(
    terms: Sequence[Integers],
    coefficients: Sequence[int | Fraction],
    parts: Callable[[int], _Parts],
    at_least: Fraction = Fraction(0),
    equals: int | None = None,
) -> _Sums:
    """Return the constraints with these terms, each an array of variables, as a group."""
    bound = at_least if equals is None else Fraction(equals)
    constraints = Constraints(
        np.column_stack(terms), tuple(map(Fraction, coefficients)), bound, equals is not None
    )
    return _Sums(constraints, parts)


# ------------------------------------------------------------------------------------------------
# Ties between optimal mechanisms: those as good as an optimum, and whether it is unique.
#
# A linear program may have many optima, and which of them a solver finds depends on its version. A
# second objective chooses among them: that the loss is no larger than the optimum is a linear
# requirement, so the second program is an ordinary one, and its certificate is, too.


# The most variables of programs that are decided: a rank takes some ten seconds then.
_MOST_VARIABLES = 1 << 12

_PRIME = (1 << 61) - 1


def no_worse(table: Table, certificate: Certificate) -> list[Linear]:
    """Return the requirement that a mechanism costs no more than ``certificate.objective``."""
    costs = certificate.loss.costs(table.output_values, table.input_values)
    weights = certificate.loss.weights(table.inputs)
    columns = [
        {(i, j): row[j] * weight for i, row in enumerate(costs)} for j, weight in enumerate(weights)
    ]
    # The worst case is a maximum: each input's cost is bounded. A mean is one sum.
    if not certificate.loss.worst_case:
        columns = [{cell: cost for column in columns for cell, cost in column.items()}]
    stated = [
        Inequality(column, "<=", certificate.objective)
        for column in columns
        if any(column.values())
    ]
    return [Linear(stated)] if stated else []


def is_unique(table: Table, certificates: Iterable[Certificate]) -> bool:
    """Whether it is proved that no other table has all that certificates prove of this one.

    Where the last program and the table are unchanged by the central reflection, only such tables
    are compared: `design` returns no other.
    """
    # A certificate without gap tells which inequalities every optimal table obeys as equations:
    # those with a multiplier that is not 0; and which of its entries are 0: those whose cost the
    # multipliers do not reach. If these equations have one solution, there is one such table. They
    # have, if the rank modulo a prime is full, as the rank is never larger there.
    zero, equations, variables = set[int](), list[Mapping[int, Fraction]](), 0
    for certificate in certificates:
        program = mechanism_program(
            table.output_values,
            table.input_values,
            certificate.privacy,
            certificate.loss,
            certificate.properties,
        )
        variables = max(variables, program.variables)
        if variables > _MOST_VARIABLES:
            return False
        tight = list(_tight(program, certificate))
        # Complementary slackness: a positive reduced cost forces its variable to 0 in every
        # optimum, and a positive multiplier its constraint to equality.
        reached = dict(enumerate(program.cost))
        for equation, multiplier in tight:
            for v, c in equation.items():
                reached[v] -= multiplier * c
        zero |= {v for v, cost in reached.items() if cost > 0}
        equations += [equation for equation, _ in tight]
        equations.append(dict(enumerate(program.cost)))
        image = reflection(table.outputs, table.inputs, program.variables, certificate.privacy)
        symmetric = reduce_by_symmetry(program, image) is not None
    cells = [weight for row in table.weights for weight in row]
    if symmetric and cells == cells[::-1]:
        unit, size = Fraction(1), len(cells)
        equations += [{v: unit, size - 1 - v: -unit} for v in range(size // 2)]
    return _full_rank(equations, [v for v in range(variables) if v not in zero])


def _tight(
    program: Program, certificate: Certificate
) -> Iterator[tuple[Mapping[int, Fraction], Fraction]]:
    """Yield the constraints that all optima obey as equations, each with its multiplier."""
    for group in program.constraints:
        chosen = certificate.multipliers.get(group.name, {})
        numbers = range(len(group.cells)) if group.equality else [r for r in chosen if chosen[r]]
        for r in numbers:
            equation = dict[int, Fraction]()
            for v, c in zip(group.cells[r].tolist(), group.coefficients, strict=True):
                equation[v] = equation.get(v, Fraction(0)) + c
            yield equation, chosen.get(r, Fraction(0))


def _full_rank(equations: list[Mapping[int, Fraction]], variables: list[int]) -> bool:
    """Whether the equations determine these variables, the others being given."""
    place = {v: k for k, v in enumerate(variables)}
    # Modulo a prime of one word, since a rank over the rationals would take numbers of thousands of
    # digits. A minor that is not 0 there is not 0 over the rationals: full rank is proved; a
    # smaller rank might be bad luck, and proves nothing.
    matrix = nmod_mat(len(equations), len(variables), _PRIME)
    for r, equation in enumerate(equations):
        scale = lcm(*(c.denominator for c in equation.values()))
        for v, c in equation.items():
            if v in place:
                matrix[r, place[v]] = int(c * scale) % _PRIME
    return bool(matrix.rank() == len(variables))
