"""A proof that no mechanism meets a request, and its check, which does not depend on its search.

By Farkas' lemma the constraints ``a_r x >= b_r`` (some with equality) have no solution x >= 0 if
and only if there are multipliers y, not negative on inequalities, with ``sum_r y_r a_r <= 0`` in
every variable and ``sum_r y_r b_r > 0``: a solution x would give
``0 >= sum_r y_r a_r x >= sum_r y_r b_r > 0``. The check rebuilds the constraints from the request
and adds them up in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np

from mechdesign.approximate_privacy import Promise
from mechdesign.base import brief, set_fields
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.lp.basis import Program, unreduced
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.exact_solution import certify
from mechdesign.mechanism.table import IndexTable
from mechdesign.mechanism.values import Values
from mechdesign.optimisation.certificate import Verification, dual_bound, exact_multipliers
from mechdesign.optimisation.formulation import (
    PRIVACY,
    compact,
    slacks_of,
    stated_constraints,
)
from mechdesign.properties import Property, irredundant


@dataclass(frozen=True)
class Request:
    """A request: what is asked of a mechanism, whatever it costs.

    Attributes
    ----------
    outputs, inputs : Values
        What the rows and the columns of its table stand for.
    privacy : Privacy or ApproximatePrivacy
        Also where privacy is not asked for: properties may depend on it.
    properties : tuple of Property
        Those asked for.
    private : bool, default True
        Whether privacy is asked for.
    """

    outputs: Values
    inputs: Values
    privacy: Promise
    properties: tuple[Property, ...]
    private: bool = True

    @property
    def requirements(self) -> tuple[str, ...]:
        """The names of what is asked for: ``"privacy"``, and the texts of the properties."""
        return ("privacy",) * self.private + tuple(item.text for item in self.properties)

    def constraints(self) -> list[Constraints]:
        """Return all constraints, named; those that others imply may be left out."""
        at = IndexTable(self.outputs, self.inputs)
        stated = stated_constraints(at, self.privacy, self.properties)
        return [group for group in stated if self.private or group.kind != PRIVACY]

    @property
    def variables(self) -> int:
        """The number of variables of the constraints: the entries of the table, and slacks."""
        at = IndexTable(self.outputs, self.inputs)
        return at.size + slacks_of(at, self.privacy).size

    def refusal(self, possible: Promise | None, impossible: Promise | None) -> str:
        """Say that no mechanism meets the request, and from which privacy on one does.

        Parameters
        ----------
        possible, impossible : Privacy, ApproximatePrivacy or None
            As of `Incompatible`.

        Returns
        -------
        str
        """
        names, anyhow, remedy = [item.text for item in self.properties], ", at any epsilon", ""
        if impossible is not None:
            besides = f", delta {brief(self.privacy.delta)}" if self.privacy.delta else ""
            names.append(f"privacy at epsilon {self.privacy.epsilon:.6g}{besides}")
            anyhow, refused = "", f"{impossible.epsilon:.6g}"
            if possible is not None:
                remedy = (
                    "; all that was asked for is possible from an epsilon of"
                    f" {possible.epsilon:.6g} on, not at {refused}"
                )
            elif impossible != self.privacy:
                remedy = f"; an epsilon of {refused} is not enough, either"
        return f"no mechanism meets {together(names)}{anyhow} (proved){remedy}"


@dataclass(frozen=True)
class FarkasProof:
    """A Farkas proof: multipliers by which the constraints of a request contradict each other.

    Attributes
    ----------
    request : Request
        What no mechanism meets.
    multipliers : mapping of str to (mapping of int to Fraction)
        The proof, read-only: name of a group of constraints -> number of the constraint in it ->
        multiplier.
    """

    request: Request
    multipliers: Mapping[str, Mapping[int, Fraction]]

    def __post_init__(self) -> None:
        set_fields(self, multipliers=exact_multipliers(self.multipliers))

    def __reduce__(self) -> tuple[object, ...]:
        multipliers = {name: dict(chosen) for name, chosen in self.multipliers.items()}
        return FarkasProof, (self.request, multipliers)

    @property
    def excess(self) -> Fraction:
        """The sum of the right sides; ValueError unless the left sides add up to at most 0."""
        # Farkas' lemma is duality for the cost 0: a dual bound above 0 on an optimum that would be
        # 0.
        nothing = (Fraction(0),) * self.request.variables
        program = Program(nothing, tuple(self.request.constraints()))
        return dual_bound(program, self.multipliers)

    def verify(self) -> Verification:
        """Rebuild the constraints and add them up, exactly."""
        try:
            excess = self.excess
        except ValueError as error:
            return Verification(False, f"the multipliers prove nothing: {error}")
        if excess <= 0:
            return Verification(False, f"the constraints add up to 0 >= {brief(excess)}")
        return Verification(True, f"the constraints add up to 0 >= {brief(excess)}")


class Incompatible(Infeasible):
    """The error that no mechanism meets a request: the proof, and what would have to change.

    Attributes
    ----------
    conflict : tuple of str
        Requirements, by name, that no mechanism meets together: ``"privacy"`` and the texts of
        properties. They are as few as possible: any fewer of those asked for are met by some
        mechanism, which has been proved, too. That the probabilities of the outputs are at least 0
        and sum to 1 is no requirement.
    proof : FarkasProof
        That no mechanism meets them.
    possible : Privacy, ApproximatePrivacy or None
        The strongest privacy found at which some mechanism meets all that was asked for (proved).
        None: none was found up to an epsilon of 10, or privacy is not part of the conflict.
    impossible : Privacy, ApproximatePrivacy or None
        The weakest privacy found at which none does (proved). None: privacy is not part of the
        conflict. The epsilons of both are usually six digits long, and the last digits differ by 1.
    """

    def __init__(
        self,
        proof: FarkasProof,
        possible: Promise | None = None,
        impossible: Promise | None = None,
    ) -> None:
        self.proof, self.possible, self.impossible = proof, possible, impossible
        self.conflict = proof.request.requirements
        super().__init__(proof.request.refusal(possible, impossible))


def together(names: Sequence[str]) -> str:
    """Return names of requirements for a sentence: alone, or "a, b and c together"."""
    return f"{', '.join(names[:-1])} and {names[-1]} together" if names[1:] else names[0]


# ------------------------------------------------------------------------------------------------
# What conflicts in a request that no mechanism meets, and the epsilon from which it can be met.
#
# A request is decided by a program that always has a solution: what the uniform mechanism violates
# may be violated, at a price. The least price is 0 if and only if a mechanism meets the request; if
# it is not, the multipliers of the optimum are a Farkas proof that none does. The program is solved
# exactly, so that either answer is proved.


LARGEST_EPSILON = Decimal(10)  #: The largest epsilon at which a request is tried.

_LEAST_EPSILON = Decimal("1e-9")  # the least that is told apart from 0

_FIRST_EPSILON = Decimal("0.1")  # the least that is tried first

_DIGITS = 6  # significant digits of an epsilon that is tried


def incompatible(
    request: Request, progress: Callable[[str], None] | None = None
) -> Incompatible | None:
    """The error for a request that no mechanism meets; None if one does. Either is proved."""
    say = progress or (lambda text: None)
    say("looking for a contradiction")
    proof = refutation(request)
    if proof is None:
        return None
    say("looking for the smallest conflict")
    conflict = smallest_conflict(request)
    if not conflict.request.private:
        return Incompatible(conflict)
    say("looking for the smallest epsilon")
    return Incompatible(conflict, *critical_privacy(proof))


def refutation(request: Request) -> FarkasProof | None:
    """Return a proof that no mechanism meets a request; None if one does, which is proved, too.

    Raises SolverFailure when neither could be proved.
    """
    outputs, inputs = request.outputs.size, request.inputs.size
    groups = request.constraints()
    program = stated = Program((Fraction(0),) * request.variables, tuple(groups))
    shorter = None
    if request.private:
        monotone = request.outputs == request.inputs and any(
            item.short == "RM" for item in irredundant(request.properties)
        )
        shorter = compact(stated, outputs, inputs, request.privacy, monotone)
        program = shorter.program
    priced = _priced(program, outputs)
    if not any(priced.cost):
        return None
    reduced = unreduced(priced)
    solution = certify(reduced.program)
    if not any(x and price for x, price in zip(solution.x, reduced.program.cost, strict=True)):
        return None
    multipliers = reduced.expand(solution.multipliers)
    names = [group.name for group in groups]
    return FarkasProof(
        request,
        shorter.restored(multipliers) if shorter else dict(zip(names, multipliers, strict=True)),
    )


def _priced(program: Program, outputs: int) -> Program:
    """The program of the least price: violations cost 1 where 1 / outputs is a violation."""
    groups, variables = list[Constraints](), program.variables
    for group in program.constraints:
        uniform = sum(group.coefficients, Fraction(0)) / outputs
        if uniform < group.bound or (group.equality and uniform > group.bound):
            signs = (Fraction(1), Fraction(-1))[: 1 + group.equality]
            bought = np.arange(len(group.cells) * len(signs)).reshape(-1, len(signs)) + variables
            variables += bought.size
            cells = np.hstack([group.cells, bought])
            group = replace(group, cells=cells, coefficients=group.coefficients + signs)
        groups.append(group)
    free, price = (Fraction(0),), (Fraction(1),)
    cost = free * program.variables + price * (variables - program.variables)
    return Program(cost, tuple(groups))


def smallest_conflict(request: Request) -> FarkasProof:
    """Return the proof that some requirements of a request conflict, as few as possible.

    By hitting sets of corrections (Ignatiev, Previti, Liffiton and Marques-Silva, CP 2015).
    """
    # A conflict has a requirement in common with every *correction*: a set such that all others are
    # met by a mechanism. So a smallest set that has one in common with some corrections is a
    # smallest conflict if it is a conflict at all; if not, it leads to another correction. All that
    # is said about sets of requirements is proved.
    # The properties by their numbers, and then privacy: of two conflicts that are equally small,
    # one without privacy says more.
    size = len(request.properties)
    everything = range(size + request.private)
    proofs, corrections = dict[frozenset[int], FarkasProof](), list[frozenset[int]]()

    def conflicts(chosen: frozenset[int]) -> bool:
        if any(known <= chosen for known in proofs):
            return True
        properties = tuple(request.properties[k] for k in sorted(chosen - {size}))
        proof = refutation(replace(request, properties=properties, private=size in chosen))
        if proof is not None:
            proofs[chosen] = proof
        return proof is not None

    while True:
        chosen = next(
            frozenset(some)
            for count in range(len(everything) + 1)
            for some in combinations(everything, count)
            if not any(each.isdisjoint(some) for each in corrections)
        )
        if conflicts(chosen):
            return proofs[chosen]
        for item in everything:
            if item not in chosen and not conflicts(chosen | {item}):
                chosen |= {item}
        corrections.append(frozenset(everything) - chosen)


def critical_privacy(proof: FarkasProof) -> tuple[Promise | None, Promise]:
    """Return the strongest privacy at which a request can be met, and the weakest at which not.

    Both are proved. Their epsilons follow each other among the numbers of six significant digits,
    unless one between them could not be decided exactly.
    """
    # All smaller epsilons are then impossible, and all larger ones possible, if no property becomes
    # stronger with epsilon.
    request = proof.request
    up, down = Context(_DIGITS, ROUND_CEILING), Context(_DIGITS, ROUND_FLOOR)

    def at(epsilon: Decimal) -> Request:
        return replace(request, privacy=request.privacy.at(epsilon))

    low = max(down.create_decimal(Decimal(request.privacy.epsilon)), _LEAST_EPSILON)
    high: Decimal | None = None
    before = last = low, proof.excess
    guess = min(max(up.multiply(4, low), _FIRST_EPSILON), max(LARGEST_EPSILON, low))
    while high is None or up.next_plus(low) < high:
        if low >= LARGEST_EPSILON:
            return None, proof.request.privacy
        try:
            candidate = refutation(at(guess))
        except SolverFailure:
            break
        if candidate is None:
            high, guess = guess, up.sqrt(up.multiply(low, guess))
        else:
            low, proof = guess, candidate
            before, last = last, (low, candidate.excess)
            guess = min(up.multiply(4, low), LARGEST_EPSILON)
            if high is not None:
                # The least price goes to 0: the last two predict where, by a secant.
                guess = min(_zero(before, last, up) or up.sqrt(up.multiply(low, high)), high)
        if high is not None:
            guess = min(max(guess, up.next_plus(low)), up.next_minus(high))
    return None if high is None else at(high).privacy, proof.request.privacy


def _zero(
    first: tuple[Decimal, Fraction], second: tuple[Decimal, Fraction], context: Context
) -> Decimal | None:
    """Return where the line through two points (place, height) is at height 0; None if never."""
    fall = first[1] - second[1]
    if fall <= 0:
        return None
    place = Fraction(second[0]) + second[1] * (Fraction(second[0]) - Fraction(first[0])) / fall
    return context.divide(Decimal(place.numerator), Decimal(place.denominator))
