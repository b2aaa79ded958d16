"""The mechanism with the least convex objective, made exact, and the certificate of its gap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from mechdesign.base import Floats, precision
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
from mechdesign.losses import Costs
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.optimisation.certificate import Certificate, dual_bound
from mechdesign.optimisation.formulation import mechanism_program
from mechdesign.privacy import Privacy
from mechdesign.properties import Property

_ROUNDS = 60  # the most linear programs that are solved for one certificate

_CLOSE = 1e-8  # the relative gap, in floats, at which no more planes are added

_LEAST = 1e-14  # entries of tables of floats are at least this: slopes are finite there

_GRID_BITS = 64  # costs are rounded down to multiples of 2^-64


def minimised(
    statement: Statement, privacy: Privacy, properties: Sequence[Property]
) -> tuple[Mechanism, ConvexCertificate]:
    """Return a mechanism with nearly the least objective, and a bound on its excess."""
    # A conic solver suggests the table. It is made exact, and mixed with a mechanism that satisfies
    # every constraint with a margin, as much as is needed for exact privacy and properties, and for
    # convex constraints that hold in balls.
    program = statement.program
    wanted = tuple(properties)
    # Only the constraints of this program are used: they do not depend on the loss.
    free = Costs([[0] * program.inputs.size] * program.outputs.size)
    groups = mechanism_program(program.outputs, program.inputs, privacy, free, wanted).constraints
    polytope = Polytope(program.size, groups)
    suggested = optimum(statement, polytope, 1.0)
    scale = abs(_float_objective(program, suggested.clip(_LEAST)))
    if not 1e-2 < scale < 1e2 and 0 < scale < math.inf:  # tolerances of solvers are absolute
        suggested = optimum(statement, polytope, scale)
    # The mechanism and the planes are made from the same floats but independently of each other: an
    # error in either shows as a gap, never as a false claim.
    mechanism = _repaired(statement, polytope, privacy, suggested)
    suggestion = _planes(program, polytope, suggested.clip(_LEAST))
    certificate = _certified(program, mechanism, wanted, suggestion)
    verdict = certificate.verify(mechanism)
    if not verdict:
        raise CertificateRejected(f"the design failed its own check: {verdict.reason}")
    return Mechanism.from_parts(mechanism, certificate.linear), certificate


def _repaired(
    statement: Statement, polytope: Polytope, privacy: Privacy, suggested: Floats
) -> Mechanism:
    """Return an exact mechanism near the suggested table that satisfies all constraints."""
    program = statement.program
    forms = list(polytope.forms(equality=False))
    tight = np.zeros(len(forms), dtype=np.bool_)
    inside, margin = interior(statement, polytope, tight)
    # No margin means that some inequalities are equations in disguise, such as P[0, 0] >= 0 under
    # properties that force it to 0. Mixing cannot repair those: they have to join the equations. A
    # solver with tolerance 1e-12 or so returns a margin of 0 well below this threshold.
    if margin < 1e-7:
        tight = always_tight(statement, polytope)
        inside, margin = interior(statement, polytope, tight)
    if margin <= 0:
        raise Infeasible("no mechanism satisfies the convex constraints with a margin")
    fixed = [form for form, always in zip(forms, tight, strict=True) if always]
    slack = [form for form, always in zip(forms, tight, strict=True) if not always]
    # Pivots are chosen by size in the interior table: rounding errors of the free variables end in
    # entries that are large there, whose signs they cannot change.
    equations = Equations([*polytope.forms(equality=True), *fixed], inside.ravel())
    x, inner = equations.solution(suggested.ravel()), equations.solution(inside.ravel())
    # Both ends satisfy the equations exactly, and so does every mixture of them. Linear
    # inequalities give the least share in closed form; the convex ones are only tested, and the
    # share is doubled until they hold, which by convexity they do from some share on.
    share = least_share(slack, x, inner)
    while share is not None:
        entries = np.array(mixed(x, inner, share), dtype=object)
        rows = entries.reshape(program.outputs.size, program.inputs.size).tolist()
        mechanism = Mechanism(rows, privacy, outputs=program.outputs, inputs=program.inputs)
        if _satisfied(program, mechanism):
            return mechanism
        if share == 1:
            break
        # The start 2^-50 is about the rounding of the suggested table; it matters where share is 0.
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
    """Return planes and multipliers that prove a bound near the optimum."""
    with precision(PRECISION):
        relaxation = Relaxation(program, polytope, near)
        best = relaxation.solve()
        value = _float_objective(program, near)
        for _ in range(_ROUNDS):
            if value - best.value <= _CLOSE * abs(value):
                break
            # Kelley's method jumps between vertices of the relaxation, and planes that touch at a
            # vertex say little about the optimum. Planes at points between the vertex and the conic
            # solution, which is nearly optimal, raise the bound in far fewer programs (an in-out
            # method). Not as far as the edge, where slopes may be infinite.
            far = np.maximum(best.matrix, near / 10)
            if not sum(relaxation.touch(near + step * (far - near)) for step in (1.0, 0.3, 0.03)):
                break
            suggestion = relaxation.solve()
            slack = _CLOSE * abs(value)
            # More planes can only raise the bound, and it cannot pass the value of a feasible
            # table: what breaks either rule is rounding of the linear solver, and later rounds
            # would follow it.
            if not best.value - slack <= suggestion.value <= value + slack:
                break  # the solver is at the end of its precision
            best = suggestion
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
    """Return the certificate that follows from suggested planes and multipliers."""
    minorant = program.minorant(found.planes, found.multipliers)
    # By Lagrangian duality: minorant(x) <= objective(x) on every feasible table, whatever the
    # planes and multipliers are, so that only the quality of the bound depends on floats. Exact
    # coefficients of a minorant are products of many rationals; short ones keep the rest fast.
    # Costs are rounded down, which only lowers what is proved.
    scale = 1 << _GRID_BITS
    rounded = Affine(
        minorant.constant, {v: Fraction(c * scale // 1, scale) for v, c in minorant.terms.items()}
    )
    costs = costs_of(rounded, program.outputs.size, program.inputs.size)
    linear = mechanism_program(
        program.outputs, program.inputs, mechanism.privacy, costs, properties
    )
    # The solver's duals are listed as `Polytope` stacks its matrices: equations and inequalities
    # apart, each in the order of the groups.
    names = {True: iter(found.equalities.tolist()), False: iter(found.inequalities.tolist())}
    multipliers: dict[str, dict[int, Fraction]] = {}
    left = list(linear.cost)
    for group in linear.constraints:
        chosen = {}
        for r, cells in enumerate(group.cells.tolist()):
            value = rational(next(names[group.equality]))
            # Tiny multipliers are noise that would lengthen the proof, and a negative one of an
            # inequality is not dual feasible. Leaving one out keeps the proof valid, see below.
            if abs(value) < Fraction(1, 10**14) or (value < 0 and not group.equality):
                continue
            chosen[r] = value
            for v, coefficient in zip(cells, group.coefficients, strict=True):
                # Invariant: left = cost - A'y, the reduced costs of the multipliers chosen so far.
                left[v] -= coefficient * value
        multipliers[group.name] = chosen
    # Dual feasibility needs left >= 0. Each entry is in exactly one column sum, with coefficient 1,
    # so that lowering its multiplier by the worst deficit of the column repairs every deficit at a
    # price of as much in the bound; where all entries have a surplus, the bound gains it.
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
    """Linear equations, forms that are to be 0, solved for some of the variables by the others.

    Raises Infeasible where they contradict each other. Shapes: `near` (variables,), where solutions
    will be asked for: of the variables of an equation, one that is large there is expressed by the
    others.
    """

    def __init__(self, forms: Iterable[Affine], near: Floats) -> None:
        self.solved: dict[int, Affine] = {}
        # Short equations first: P[i, j] = 0 and P[i, j] = r P[i, k] substitute without fill-in,
        # which the long column sums would spread over all later equations.
        for form in sorted(forms, key=lambda form: len(form.terms)):
            rest = self._substituted(form)
            if rest.is_constant:
                if rest.constant:
                    raise Infeasible("no mechanism satisfies all the equations (proved)")
                continue
            # The term that contributes most to the equation, not the largest coefficient: a
            # variable near 0 would take up the rounding of all others and might become negative.
            v = max(rest.terms, key=lambda v: abs(float(rest.terms[v]) * near[v]))
            self.solved[v] = Affine.variable(v) - rest / rest.terms[v]

    def _substituted(self, form: Affine) -> Affine:
        # A loop, since a solution may bring in variables that were solved for later.
        while known := self.solved.keys() & form.terms.keys():
            for v in known:
                if v in form.terms:
                    form = form + form.terms[v] * (self.solved[v] - Affine.variable(v))
        return form

    def solution(self, near: Floats) -> list[Fraction]:
        """Return an exact solution near a table of floats, flat."""
        x = [rational(value) for value in near.tolist()]
        # Back substitution: the solution for v contains only free variables and those solved later.
        for v in reversed(self.solved):
            x[v] = self.solved[v].at(x.__getitem__, Fraction)
        return x


def least_share(
    forms: Iterable[Affine], x: Sequence[Fraction], inside: Sequence[Fraction]
) -> Fraction | None:
    """Return the least share of ``inside`` in a mixture with ``x`` that makes no form negative.

    None where there is none. It is a multiple of 2^-60 unless it is 1.
    """
    # There is none if a form is negative at ``inside``, or at ``x`` and 0 there.
    share = Fraction(0)
    for form in forms:
        here, there = form.at(x.__getitem__, Fraction), form.at(inside.__getitem__, Fraction)
        if there < 0 or (there == 0 and here < 0):
            return None
        # (1 - s) here + s there >= 0 from s = here / (here - there) on, where there > 0 > here.
        if here < 0:
            share = max(share, here / (here - there))
    # Rounded up, so that all forms stay at least 0; to a grid, as the exact share would add its
    # denominator to that of every entry.
    return min(Fraction(1), Fraction(-(-share * (1 << 60) // 1), 1 << 60))


def mixed(x: Sequence[Fraction], inside: Sequence[Fraction], share: Fraction) -> list[Fraction]:
    """Return the mixture ``(1 - share) x + share inside``."""
    return [a + share * (b - a) for a, b in zip(x, inside, strict=True)]
