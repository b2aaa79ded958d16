"""A proof that a mechanism is optimal, and its check, which does not depend on how it was found.

The proof is weak duality. A mechanism with the wanted properties is a point x >= 0 of a linear
program ``min c x`` subject to constraints ``a_r x >= b_r`` (some with equality). Multipliers y, not
negative on inequalities, with ``sum_r y_r a_r <= c`` in every variable give
``c x >= sum_r y_r b_r`` for *every* such mechanism. The check rebuilds the program from the
statement (privacy, loss, properties), evaluates both sides in integers, and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from operator import index
from types import MappingProxyType

from mechdesign.approximate_privacy import Promise
from mechdesign.base import brief, exact, set_fields
from mechdesign.exceptions import MechanismError
from mechdesign.losses import L0, Loss
from mechdesign.lp.basis import Program
from mechdesign.mechanism.table import Table
from mechdesign.optimisation.formulation import mechanism_program
from mechdesign.optimisation.theory import closed_form
from mechdesign.properties import Property


@dataclass(frozen=True)
class Verification:
    """Whether what a certificate says about a mechanism is true; usable as a condition.

    Attributes
    ----------
    holds : bool
        Whether every part of the claim was checked and found true.
    reason : str
        The first check that failed; else what was proved: "optimal", or how much the loss can
        exceed the least possible one.
    """

    holds: bool
    reason: str

    def __bool__(self) -> bool:
        return self.holds


@dataclass(frozen=True)
class Certificate:
    """An optimality claim about a mechanism, with its proof.

    The claim is: this mechanism costs ``objective``, and none with these properties costs less than
    ``bound``.

    Attributes
    ----------
    privacy : Privacy or ApproximatePrivacy
        The privacy that every competing mechanism has.
    loss : Loss
        What they are compared by.
    properties : tuple of Property
        The properties that every competing mechanism has.
    objective : Fraction
        The exact loss of the mechanism (the plain expectation, or the worst case).
    bound : Fraction
        An exact lower bound on the loss of every mechanism with these properties and this privacy.
    multipliers : mapping of str to (mapping of int to Fraction)
        The proof, read-only: name of a group of constraints -> number of the constraint in it ->
        multiplier. Of a closed form above n = 64 there may be none: the proof is then that of
        `mechdesign.optimisation.theory.closed_form`, for L0 and this n.
    """

    privacy: Promise
    loss: Loss
    properties: tuple[Property, ...]
    objective: Fraction
    bound: Fraction
    multipliers: Mapping[str, Mapping[int, Fraction]]

    def __post_init__(self) -> None:
        # The check below is exact only if the numbers given are: no floats, and no integers that
        # overflow.
        set_fields(
            self,
            properties=tuple(self.properties),
            objective=exact(self.objective, "the objective"),
            bound=exact(self.bound, "the bound"),
            multipliers=exact_multipliers(self.multipliers),
        )

    def __reduce__(self) -> tuple[object, ...]:
        multipliers = {name: dict(chosen) for name, chosen in self.multipliers.items()}
        return Certificate, (
            self.privacy,
            self.loss,
            self.properties,
            self.objective,
            self.bound,
            multipliers,
        )

    @property
    def gap(self) -> Fraction:
        """objective - bound >= 0: a bound on the excess over the optimum; 0 proves optimality."""
        return self.objective - self.bound

    @property
    def optimal(self) -> bool:
        """Whether no mechanism with these properties costs less: the gap is exactly 0."""
        return self.gap == 0

    def verify(self, mechanism: Table) -> Verification:
        """Check privacy, properties, loss and bound from scratch, in exact arithmetic."""
        try:
            return self._verified(mechanism)
        except (MechanismError, ValueError) as error:
            # A loss or property that does not fit a table of this shape
            return Verification(False, str(error))

    def _verified(self, mechanism: Table) -> Verification:
        if mechanism.promise != self.privacy:
            return Verification(
                False,
                f"the certificate is about {self.privacy!r}, the mechanism claims"
                f" {mechanism.promise!r}",
            )
        audit = mechanism.audit()
        if not audit.holds:
            return Verification(False, audit.failure)
        for item in self.properties:
            if not item.holds(mechanism):
                return Verification(False, f"the mechanism lacks the property {item.text}")
        objective = mechanism.loss(self.loss)
        if objective != self.objective:
            return Verification(
                False,
                f"the loss is {brief(objective, 12)}, not {brief(self.objective, 12)} as certified",
            )
        try:
            bound = self._proved_bound(mechanism)
        except ValueError as error:
            return Verification(False, f"the multipliers prove nothing: {error}")
        if bound != self.bound:
            return Verification(
                False,
                f"the multipliers prove the bound {brief(bound, 12)}, not {brief(self.bound, 12)}",
            )
        if self.gap < 0:
            return Verification(False, "the bound exceeds the objective")
        return Verification(
            True, "optimal" if self.optimal else f"within {brief(self.gap, 3)} of optimal"
        )

    def _proved_bound(self, mechanism: Table) -> Fraction:
        """The bound that the multipliers prove, or without them theory for a closed form."""
        if mechanism.closed is not None and not self.multipliers:
            if self.loss != L0():
                raise ValueError(f"nothing is known of {self.loss!r} without multipliers")
            return closed_form(mechanism.closed.n, self.privacy.pure, self.properties).bound
        program = mechanism_program(
            mechanism.output_values,
            mechanism.input_values,
            self.privacy,
            self.loss,
            self.properties,
        )
        return dual_bound(program, self.multipliers)

    def __str__(self) -> str:
        wanted = " ".join(item.text for item in self.properties) or "none"
        proof = (
            "proved optimal, gap exactly 0"
            if self.optimal
            else f"gap at most {brief(self.gap, 3)} (proved)"
        )
        return (
            f"{self.loss!r} = {brief(self.objective, 10)} under {self.privacy!r}, properties"
            f" {wanted}: {proof}"
        )


def exact_multipliers(
    given: Mapping[str, Mapping[int, Fraction]],
) -> Mapping[str, Mapping[int, Fraction]]:
    """Return the multipliers of groups of constraints, read-only, as exact numbers."""
    return MappingProxyType(
        {
            str(name): MappingProxyType(
                {index(r): exact(value, "a multiplier") for r, value in chosen.items()}
            )
            for name, chosen in given.items()
        }
    )


def dual_bound(program: Program, multipliers: Mapping[str, Mapping[int, Fraction]]) -> Fraction:
    """The lower bound on the program that multipliers prove. ValueError when they prove none."""
    groups = {group.name: group for group in program.constraints}
    for name, chosen in multipliers.items():
        if name not in groups:
            raise ValueError(f"there are no constraints called {name!r}")
        count = len(groups[name].cells)
        if any(not 0 <= r < count for r in chosen):
            raise ValueError(f"constraints {name!r} are 0 .. {count - 1}")
        if not groups[name].equality and any(value < 0 for value in chosen.values()):
            raise ValueError(f"a multiplier of the inequalities {name!r} is negative")
    # Integers throughout: y = whole / scale_y, coefficients = whole / scale_a.
    scale_y = lcm(
        *(value.denominator for chosen in multipliers.values() for value in chosen.values())
    )
    scale_a = lcm(*(c.denominator for name in multipliers for c in groups[name].coefficients))
    pulled = [0] * program.variables
    bound = Fraction(0)
    for name, chosen in multipliers.items():
        group = groups[name]
        terms = [int(c * scale_a) for c in group.coefficients]
        cells = group.cells[list(chosen)].tolist()
        for row, value in zip(cells, chosen.values(), strict=True):
            whole = value.numerator * (scale_y // value.denominator)
            for v, term in zip(row, terms, strict=True):
                pulled[v] += term * whole
        bound += group.bound * sum(chosen.values(), Fraction(0)) if group.bound else 0
    scale = scale_y * scale_a
    for v, cost in enumerate(program.cost):
        if pulled[v] * cost.denominator > cost.numerator * scale:
            raise ValueError(f"they exceed the cost of variable {v}")
    return bound
