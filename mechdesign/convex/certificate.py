"""A proof that no mechanism has a convex objective far below that of a given one, and its check.

Each convex function is replaced by a plane that is proved to lie below it everywhere, so that the
objective, with the convex constraints added, is nowhere below an affine form of the table: its
minorant. An ordinary certificate, by linear programming duality, bounds that from below for all
mechanisms. The check needs neither cvxpy nor a solver: planes are proved by conjugates in ball
arithmetic, the rest is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.base import ball, brief, exact, precision, set_fields
from mechdesign.convex.atoms import OutsideDomain, upper
from mechdesign.convex.reading import (
    ConvexProgram,
    NoMinorant,
    SupportingPlane,
    rounded_up,
    shift_of,
)
from mechdesign.losses import Costs
from mechdesign.mechanism.table import Table
from mechdesign.optimisation.certificate import Certificate, Verification

PRECISION = 192  #: The precision of the balls, in bits.


@dataclass(frozen=True)
class ConvexCertificate:
    """A claim about a mechanism and a convex objective, with its proof.

    The claim is: this mechanism satisfies the constraints, its objective is at most ``objective``,
    and that of no mechanism with the same privacy, properties and constraints is below ``bound``.

    Attributes
    ----------
    program : ConvexProgram
        The objective and the convex constraints, exactly as they were read.
    objective : Fraction
        The objective of the mechanism, in the user's units: exact where it is linear, otherwise
        rounded up by less than 2^-70 of its scale.
    bound : Fraction
        A proved lower bound on the objective of every mechanism that satisfies the constraints.
    planes : tuple of SupportingPlane
        One below each convex function of the program.
    multipliers : tuple of Fraction
        One for each convex constraint, at least 0.
    linear : Certificate
        The ordinary certificate of the mechanism for the minorant as a loss, up to a constant; its
        gap bounds how much of it any mechanism can save. It states privacy and properties, linear
        constraints among them.
    """

    program: ConvexProgram
    objective: Fraction
    bound: Fraction
    planes: tuple[SupportingPlane, ...]
    multipliers: tuple[Fraction, ...]
    linear: Certificate

    def __post_init__(self) -> None:
        set_fields(
            self,
            objective=exact(self.objective, "the objective"),
            bound=exact(self.bound, "the bound"),
        )

    @classmethod
    def of(
        cls,
        program: ConvexProgram,
        table: Table,
        planes: tuple[SupportingPlane, ...],
        multipliers: tuple[Fraction, ...],
        linear: Certificate,
    ) -> ConvexCertificate:
        """Return the certificate with the objective and the bound that follow, not verified yet.

        Parameters
        ----------
        program : ConvexProgram
            The program that the mechanism is for.
        table : Table
            The mechanism.
        planes : tuple of SupportingPlane
            One for each node of the program.
        multipliers : tuple of Fraction
            One for each convex constraint.
        linear : Certificate
            That of the mechanism for the minorant.

        Returns
        -------
        ConvexCertificate
        """
        with precision(PRECISION):
            value = objective_of(program, table)
            bound = _bound(program, planes, multipliers, linear)
        return cls(program, value, bound, planes, multipliers, linear)

    @property
    def gap(self) -> Fraction:
        """The difference objective - bound >= 0: a bound on the excess over the optimum."""
        return self.objective - self.bound

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective's absolute value; infinite if only that is 0."""
        if not self.gap:
            return 0.0
        return float(self.gap / abs(self.objective)) if self.objective else float("inf")

    def verify(self, mechanism: Table) -> Verification:
        """Check everything from scratch, in exact and in ball arithmetic.

        Parameters
        ----------
        mechanism : Table
            What the claim is about.

        Returns
        -------
        Verification
            Whether every part of the claim was found true, and what was not.
        """
        program = self.program
        values = mechanism.output_values, mechanism.input_values
        if values != (program.outputs, program.inputs):
            return Verification(False, "the certificate is about other outputs or inputs")
        # The linear certificate comes first: it checks privacy, properties and that the multipliers
        # are dual feasible, and it is exact. What follows is about the convex part only.
        verdict = self.linear.verify(mechanism)
        if not verdict:
            return verdict
        with precision(PRECISION):
            try:
                reason = self._refuted(mechanism)
            except (NoMinorant, OutsideDomain) as error:
                reason = f"the planes prove nothing: {error}"
        if reason:
            return Verification(False, reason)
        return Verification(
            True, "optimal" if not self.gap else f"within {brief(self.gap, 3)} of optimal"
        )

    def _refuted(self, mechanism: Table) -> str:
        """Return the first claim that is not true as a text, else an empty text."""
        program = self.program
        sizes = [len(node.arguments) for node in program.nodes]
        if [len(plane.slope) for plane in self.planes] != sizes:
            return "the planes belong to another program"
        # By Fenchel's inequality f(u) >= s u - f*(s): a constant of at most -f*(s) is the whole
        # proof.
        for k, (node, plane) in enumerate(zip(program.nodes, self.planes, strict=True)):
            if not plane.proved(node.atom):
                return f"plane {k} is not proved to lie below {node.atom.name}"
        # Redundant where the conjugates are right: a test of their formulas against the values of
        # the functions, at a few tables, so that a slip in one of the two is noticed.
        for table in _tried(mechanism):
            if (number := exceeded(program, self.planes, table)) is not None:
                name = program.nodes[number].atom.name
                return f"plane {number} exceeds {name} somewhere: a wrong gradient"
        # Equality, not >=: the bound is recomputed by the same exact arithmetic, and a stored bound
        # that differs at all was not made from these planes.
        bound = _bound(program, self.planes, self.multipliers, self.linear)
        if bound != self.bound:
            return f"the planes prove the bound {brief(bound, 12)}, not {brief(self.bound, 12)}"
        values = program.balls(mechanism)
        for number, form in enumerate(program.constraints):
            # A comparison of balls is true only if it holds for all their points: `not <=` refuses
            # what is undecided, where `>` would let it pass.
            if not values.at(form) <= 0:
                return f"convex constraint {number} is not proved to hold"
        value = objective_of(program, mechanism)
        if value != self.objective:
            return f"the objective is {brief(value, 12)}, not {brief(self.objective, 12)}"
        return "the bound exceeds the objective" if self.gap < 0 else ""

    def __str__(self) -> str:
        wanted = " ".join(item.text for item in self.linear.properties) or "none"
        proof = (
            "proved optimal, gap exactly 0"
            if not self.gap
            else f"gap at most {brief(self.gap, 3)} (proved)"
        )
        return (
            f"{self.program.text} = {brief(self.objective, 10)} under {self.linear.privacy!r},"
            f" properties {wanted}: {proof}"
        )


def objective_of(program: ConvexProgram, table: Table) -> Fraction:
    """Return the objective at a table, exact where it is linear, otherwise rounded up in balls."""
    if all(v < program.size for v in program.objective.terms):
        entries = [entry for row in table.table for entry in row]
        return program.objective.at(entries.__getitem__, Fraction)
    value = program.balls(table).at(program.objective)
    if not value.is_finite():
        raise OutsideDomain("the objective is not finite at this mechanism")
    # Up, since the claim is an upper bound; to a grid, so that the number is short and does not
    # depend on the last bits of the ball.
    return rounded_up(upper(value))


def exceeded(
    program: ConvexProgram, planes: tuple[SupportingPlane, ...], table: Table
) -> int | None:
    """Return the first node whose plane is above its function at a table, in balls; else None."""
    values = program.balls(table)
    for k, plane in enumerate(planes):
        value = values.values[program.size + k]
        # A function that is infinite here is above every plane.
        if value.is_finite():
            below = sum(
                (ball(s) * u for s, u in zip(plane.slope, values.arguments[k], strict=True)),
                ball(plane.constant),
            )
            # Proved to be above. Where the plane touches, the balls overlap and nothing is claimed.
            if below > value:
                return k
    return None


def _tried(mechanism: Table) -> Iterator[Table]:
    """Yield tables at which planes are tried: this one, the uniform one, and nearly true ones."""
    outputs, inputs = mechanism.outputs, mechanism.inputs
    yield mechanism
    # From no information to nearly none lost: planes that touch at the optimum are far below their
    # functions at one end of this range or the other.
    for sharp in (0, 1, 5, 100):
        rows = [
            [1 + sharp * (i * inputs // outputs == j) for j in range(inputs)]
            for i in range(outputs)
        ]
        sums = [sum(column) for column in zip(*rows, strict=True)]
        yield Table(
            [[Fraction(w, s) for w, s in zip(row, sums, strict=True)] for row in rows],
            mechanism.privacy,
            outputs=mechanism.output_values,
            inputs=mechanism.input_values,
        )


def _bound(
    program: ConvexProgram,
    planes: tuple[SupportingPlane, ...],
    multipliers: tuple[Fraction, ...],
    linear: Certificate,
) -> Fraction:
    minorant = program.minorant(planes, multipliers)
    loss = linear.loss
    # `shift_of` compares costs with the minorant entry by entry, with weight 1 / inputs each:
    # another prior or a worst case would make that comparison meaningless.
    if not isinstance(loss, Costs) or loss.worst_case or loss.prior is not None:
        raise NoMinorant("the linear certificate is not about the minorant")
    return linear.bound + shift_of(minorant, loss)
