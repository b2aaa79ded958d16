"""A proof that no mechanism meets a request, and its check, which does not depend on its search.

By Farkas' lemma the constraints ``a_r x >= b_r`` (some with equality) have no solution x >= 0 if
and only if there are multipliers y, not negative on inequalities, with ``sum_r y_r a_r <= 0`` in
every variable and ``sum_r y_r b_r > 0``: a solution x would give
``0 >= sum_r y_r a_r x >= sum_r y_r b_r > 0``. The check rebuilds the constraints from the request
and adds them up in integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from types import MappingProxyType

from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import exact
from mechdesign.base.text import brief
from mechdesign.certificate import Verification, dual_bound
from mechdesign.exceptions import Infeasible
from mechdesign.formulation import PRIVACY, stated_constraints
from mechdesign.index_table import IndexTable
from mechdesign.lp.basis import Program
from mechdesign.lp.constraints import Constraints
from mechdesign.privacy import Privacy
from mechdesign.properties import Property
from mechdesign.values import Values


@dataclass(frozen=True)
class Request:
    """A request: what is asked of a mechanism, whatever it costs.

    Attributes
    ----------
    outputs, inputs : Values
        What the rows and the columns of its table stand for.
    privacy : Privacy
        Also where privacy is not asked for: properties may depend on it.
    properties : tuple of Property
        Those asked for.
    private : bool, default True
        Whether privacy is asked for.
    """

    outputs: Values
    inputs: Values
    privacy: Privacy
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
        checked = {
            str(name): MappingProxyType(
                {index(r): exact(value, "a multiplier") for r, value in chosen.items()}
            )
            for name, chosen in self.multipliers.items()
        }
        set_fields(self, multipliers=MappingProxyType(checked))

    def __reduce__(self) -> tuple[object, ...]:
        multipliers = {name: dict(chosen) for name, chosen in self.multipliers.items()}
        return FarkasProof, (self.request, multipliers)

    @property
    def excess(self) -> Fraction:
        """The sum of the right sides, where the left sides add up to at most 0.

        Raises ValueError where they do not.
        """
        # Farkas' lemma is duality for the cost 0: a dual bound above 0 on an optimum that would be
        # 0.
        nothing = (Fraction(0),) * (self.request.outputs.size * self.request.inputs.size)
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
    possible : Privacy or None
        The strongest privacy found at which some mechanism meets all that was asked for (proved).
        None: none was found up to an epsilon of 10, or privacy is not part of the conflict.
    impossible : Privacy or None
        The weakest privacy found at which none does (proved). None: privacy is not part of the
        conflict. The epsilons of both are usually six digits long, and the last digits differ by 1.
    """

    def __init__(
        self,
        proof: FarkasProof,
        possible: Privacy | None = None,
        impossible: Privacy | None = None,
    ) -> None:
        self.proof, self.possible, self.impossible = proof, possible, impossible
        self.conflict = proof.request.requirements
        super().__init__(_sentence(proof.request, possible, impossible))


def _sentence(request: Request, possible: Privacy | None, impossible: Privacy | None) -> str:
    names, anyhow, remedy = [item.text for item in request.properties], ", at any epsilon", ""
    if impossible is not None:
        names.append(f"privacy at epsilon {request.privacy.epsilon:.6g}")
        anyhow, refused = "", f"{impossible.epsilon:.6g}"
        if possible is not None:
            remedy = (
                "; all that was asked for is possible from an epsilon of"
                f" {possible.epsilon:.6g} on, not at {refused}"
            )
        elif impossible != request.privacy:
            remedy = f"; an epsilon of {refused} is not enough, either"
    together = f"{', '.join(names[:-1])} and {names[-1]} together" if names[1:] else names[0]
    return f"no mechanism meets {together}{anyhow} (proved){remedy}"
