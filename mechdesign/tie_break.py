"""Ties between optimal mechanisms: those as good as an optimum, and whether it is unique.

A linear program may have many optima, and which of them a solver finds depends on its version. A
second objective chooses among them: that the loss is no larger than the optimum is a linear
requirement, so the second program is an ordinary one, and its certificate is, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import lcm

from flint import nmod_mat

from mechdesign.certificate import Certificate
from mechdesign.formulation import mechanism_program, reflection
from mechdesign.lp.basis import Program
from mechdesign.lp.symmetry import reduce_by_symmetry
from mechdesign.requirements import Inequality, Linear
from mechdesign.table import Table

_MOST_VARIABLES = 1 << 12
"""The most variables of programs that are decided: a rank takes some ten seconds then."""

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

    A certificate without gap tells which inequalities every optimal table obeys as equations: those
    with a multiplier that is not 0; and which of its entries are 0: those whose cost the
    multipliers do not reach. If these equations have one solution, there is one such table. They
    have, if the rank modulo a prime is full, as the rank is never larger there.

    Where the last program and the table are unchanged by the central reflection, only such tables
    are compared: `design` returns no other.
    """
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
        image = reflection(table.outputs, table.inputs, program.variables)
        symmetric = reduce_by_symmetry(program, image) is not None
    cells = [weight for row in table.weights for weight in row]
    if symmetric and cells == cells[::-1]:
        one, size = Fraction(1), len(cells)
        equations += [{v: one, size - 1 - v: -one} for v in range(size // 2)]
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
