"""The mechanism of least convex objective, made exact, and the certificate of its gap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from mechdesign.base.linear_algebra import Floats
from mechdesign.base.numbers import precision
from mechdesign.certificate import Certificate, dual_bound
from mechdesign.convex.atoms import Affine, OutsideDomain, rational
from mechdesign.convex.certificate import PRECISION, ConvexCertificate, objective_of
from mechdesign.convex.reading import ConvexProgram, costs_of
from mechdesign.convex.relaxation import (
    Polytope,
    Relaxation,
    Suggestion,
    always_tight,
    interior,
    optimum,
)
from mechdesign.convex.statement import Statement
from mechdesign.exceptions import CertificateRejected, Infeasible, SolverFailure
from mechdesign.formulation import mechanism_program
from mechdesign.losses import Costs
from mechdesign.mechanism import Mechanism
from mechdesign.privacy import Privacy
from mechdesign.properties import Property

_ROUNDS = 60
"""The most linear programs that are solved for one certificate."""

_CLOSE = 1e-8
"""The relative gap, in floats, at which no more planes are added."""

_LEAST = 1e-14
"""Entries of tables of floats are at least this: slopes are finite there."""

_GRID_BITS = 64
"""Costs are rounded down to multiples of 2^-64."""


def minimised(
    statement: Statement, privacy: Privacy, properties: Sequence[Property]
) -> tuple[Mechanism, ConvexCertificate]:
    """The mechanism of least objective, about, and a proof of how much it can be improved.

    A conic solver suggests the table. It is made exact, and mixed with a mechanism that satisfies
    every constraint with a margin, as much as is needed for exact privacy and properties, and for
    convex constraints that hold in balls.
    """
    program = statement.program
    wanted = tuple(properties)
    free = Costs([[0] * program.inputs.size] * program.outputs.size)
    groups = mechanism_program(program.outputs, program.inputs, privacy, free, wanted).constraints
    polytope = Polytope(program.size, groups)
    suggested = optimum(statement, polytope, 1.0)
    scale = abs(_float_objective(program, suggested.clip(_LEAST)))
    if not 1e-2 < scale < 1e2 and 0 < scale < math.inf:  # tolerances of solvers are absolute
        suggested = optimum(statement, polytope, scale)
    mechanism = _repaired(statement, polytope, privacy, suggested)
    found = _planes(program, polytope, suggested.clip(_LEAST))
    certificate = _certified(program, mechanism, wanted, found)
    verdict = certificate.verify(mechanism)
    if not verdict:
        raise CertificateRejected(f"the design failed its own check: {verdict.reason}")
    return Mechanism.from_parts(mechanism, certificate.linear), certificate


def _repaired(
    statement: Statement, polytope: Polytope, privacy: Privacy, suggested: Floats
) -> Mechanism:
    """An exact mechanism near the suggested table that satisfies everything."""
    program = statement.program
    forms = list(polytope.forms(equality=False))
    tight = np.zeros(len(forms), dtype=np.bool_)
    inside, margin = interior(statement, polytope, tight)
    if margin < 1e-7:
        tight = always_tight(statement, polytope)
        inside, margin = interior(statement, polytope, tight)
    if margin <= 0:
        raise Infeasible("no mechanism satisfies the convex constraints with a margin")
    fixed = [form for form, always in zip(forms, tight, strict=True) if always]
    slack = [form for form, always in zip(forms, tight, strict=True) if not always]
    equations = Equations([*polytope.forms(equality=True), *fixed], inside.ravel())
    x, inner = equations.solution(suggested.ravel()), equations.solution(inside.ravel())
    share = least_share(slack, x, inner)
    while share is not None:
        entries = np.array(mixed(x, inner, share), dtype=object)
        rows = entries.reshape(program.outputs.size, program.inputs.size).tolist()
        mechanism = Mechanism(rows, privacy, outputs=program.outputs, inputs=program.inputs)
        if _satisfied(program, mechanism):
            return mechanism
        if share == 1:
            break
        share = min(Fraction(1), max(2 * share, Fraction(1, 1 << 50)))
    raise SolverFailure("the solution of the conic solver could not be made exact")


def _satisfied(program: ConvexProgram, mechanism: Mechanism) -> bool:
    """Whether the convex constraints hold and the objective is finite, in balls."""
    with precision(PRECISION):
        values = program.balls(mechanism)
        try:
            objective_of(program, mechanism)
        except OutsideDomain:
            return False
        return all(values.at(form) <= 0 for form in program.constraints)


def _planes(program: ConvexProgram, polytope: Polytope, near: Floats) -> Suggestion:
    """Planes and multipliers that prove about the optimum."""
    with precision(PRECISION):
        relaxation = Relaxation(program, polytope, near)
        best = relaxation.solve()
        value = _float_objective(program, near)
        for _ in range(_ROUNDS):
            if value - best.value <= _CLOSE * abs(value):
                break
            # Not as far as the edge, where slopes may be infinite.
            far = np.maximum(best.matrix, near / 10)
            if not sum(relaxation.touch(near + step * (far - near)) for step in (1.0, 0.3, 0.03)):
                break
            found = relaxation.solve()
            slack = _CLOSE * abs(value)
            if not best.value - slack <= found.value <= value + slack:
                break  # the solver is at the end of its precision
            best = found
    return best


def _float_objective(program: ConvexProgram, matrix: Floats) -> float:
    _, values = program.floats(matrix)
    return float(program.objective.at(values.__getitem__, float))


def _certified(
    program: ConvexProgram,
    mechanism: Mechanism,
    properties: tuple[Property, ...],
    found: Suggestion,
) -> ConvexCertificate:
    """The certificate that follows from suggested planes and multipliers."""
    minorant = program.minorant(found.planes, found.multipliers)
    # Costs are rounded down, which only lowers what is proved.
    scale = 1 << _GRID_BITS
    rounded = Affine(
        minorant.constant, {v: Fraction(c * scale // 1, scale) for v, c in minorant.terms.items()}
    )
    costs = costs_of(rounded, program.outputs.size, program.inputs.size)
    linear = mechanism_program(
        program.outputs, program.inputs, mechanism.privacy, costs, properties
    )
    names = {True: iter(found.equalities.tolist()), False: iter(found.inequalities.tolist())}
    multipliers: dict[str, dict[int, Fraction]] = {}
    left = list(linear.cost)
    for group in linear.constraints:
        chosen = {}
        for r, cells in enumerate(group.cells.tolist()):
            value = rational(next(names[group.equality]))
            if abs(value) < Fraction(1, 10**14) or (value < 0 and not group.equality):
                continue
            chosen[r] = value
            for v, coefficient in zip(cells, group.coefficients, strict=True):
                left[v] -= coefficient * value
        multipliers[group.name] = chosen
    # The multipliers of the column sums take up what is wrong with the others.
    sums = multipliers["column sums"]
    for j in range(program.inputs.size):
        least = min(left[j :: program.inputs.size])
        sums[j] = sums.get(j, Fraction(0)) + least
    certificate = Certificate(
        mechanism.privacy,
        costs,
        properties,
        mechanism.loss(costs),
        dual_bound(linear, multipliers),
        multipliers,
    )
    with precision(PRECISION):
        return ConvexCertificate.of(
            program, mechanism, found.planes, found.multipliers, certificate
        )


# ------------------------------------------------------------------------------------------------
# Exact mechanisms near tables of floats: equations by elimination, inequalities by mixing.


class Equations:
    """Equations in exact forms, solved for some of the variables by the others.

    Parameters
    ----------
    forms : iterable of Affine
        Each is to be 0.
    near : numpy.ndarray of float64
        Where solutions will be asked for: of the variables of an equation, one that is large there
        is expressed by the others.

    Raises Infeasible where the equations contradict each other.
    """

    def __init__(self, forms: Iterable[Affine], near: Floats) -> None:
        self.solved: dict[int, Affine] = {}
        for form in sorted(forms, key=lambda form: len(form.terms)):
            rest = self._substituted(form)
            if rest.is_constant:
                if rest.constant:
                    raise Infeasible("no mechanism satisfies all the equations (proved)")
                continue
            v = max(rest.terms, key=lambda v: abs(float(rest.terms[v]) * near[v]))
            self.solved[v] = Affine.variable(v) - rest / rest.terms[v]

    def _substituted(self, form: Affine) -> Affine:
        while known := self.solved.keys() & form.terms.keys():
            for v in known:
                if v in form.terms:
                    form = form + form.terms[v] * (self.solved[v] - Affine.variable(v))
        return form

    def solution(self, near: Floats) -> list[Fraction]:
        """An exact solution near a table of floats, flat."""
        x = [rational(value) for value in near.tolist()]
        for v in reversed(self.solved):
            x[v] = self.solved[v].at(x.__getitem__, Fraction)
        return x


def least_share(
    forms: Iterable[Affine], x: Sequence[Fraction], inside: Sequence[Fraction]
) -> Fraction | None:
    """The least share of ``inside`` in a mixture with ``x`` that makes no form negative.

    None where there is none: a form is negative at ``inside``, or at ``x`` and 0 there. The share
    is a multiple of 2^-60 unless it is 1.
    """
    share = Fraction(0)
    for form in forms:
        here, there = form.at(x.__getitem__, Fraction), form.at(inside.__getitem__, Fraction)
        if there < 0 or (there == 0 and here < 0):
            return None
        if here < 0:
            share = max(share, here / (here - there))
    return min(Fraction(1), Fraction(-(-share * (1 << 60) // 1), 1 << 60))


def mixed(x: Sequence[Fraction], inside: Sequence[Fraction], share: Fraction) -> list[Fraction]:
    """``(1 - share) x + share inside``."""
    return [a + share * (b - a) for a, b in zip(x, inside, strict=True)]
