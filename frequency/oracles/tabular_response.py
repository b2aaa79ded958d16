"""Any mechanism as an oracle: whatever `mechdesign` designs can be deployed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from frequency.core import EnumeratedOracle, Oracle, local_privacy
from frequency.oracles.hadamard_response import HRR
from frequency.oracles.local_hashing import OLH
from frequency.oracles.projective_geometry import ProjectiveGeometry
from frequency.oracles.randomized_response import GRR
from frequency.oracles.subset_selection import SubsetSelection
from frequency.oracles.unary_encoding import OUE, SUE
from mechdesign import Mechanism, Privacy, PrivacyViolation
from mechdesign.base import Rational, set_fields, shown


@dataclass(frozen=True, init=False)
class Tabular(EnumeratedOracle):
    """Any `Mechanism` as an oracle: its inputs are the items.

    A report is the ``output`` drawn for the user's item.

    The privacy is the mechanism's: with ``neighbours="all"`` that is local privacy; a mechanism for
    adjacent counts, or at limited precision k, protects only items at most 1, or k, apart from each
    other to that degree. ``epsilon`` is -ln of its alpha, rounded up; under a `Metric` that is for
    one unit of distance, and ``audit().allowed`` is a power of `max_ratio`.

    Parameters
    ----------
    mechanism : Mechanism
        One input for each item; its columns must be linearly independent.

    Raises
    ------
    PrivacyViolation
        The table does not keep the privacy it claims.
    NotIdentifiable
        The columns of the table are linearly dependent (fewer outputs than items, or a uniform
        mechanism), or nearly so.
    """

    mechanism: Mechanism

    def __init__(self, mechanism: Mechanism) -> None:
        if not isinstance(mechanism, Mechanism):
            raise TypeError(
                f"mechanism must be a mechdesign.Mechanism, got {type(mechanism).__name__}"
            )
        mechanism.audit().require()
        set_fields(
            self, mechanism=mechanism, domain=mechanism.inputs, epsilon=mechanism.privacy.epsilon
        )
        self._require_identifiable()

    @property
    def privacy(self) -> Privacy:
        return self.mechanism.privacy

    @property
    def law(self) -> Mechanism:
        return self.mechanism


# ------------------------------------------------------------------------------------------------
# Which oracle tells of the parts of a protocol: by name, by class, or a designed mechanism.


#: The oracles that a protocol may be given by name.
NAMED: dict[str, type[Oracle]] = {
    kind.__name__: kind for kind in (GRR, SUE, OUE, SubsetSelection, ProjectiveGeometry, OLH, HRR)
}

#: A name of `NAMED`; a class of oracles, or any function that makes one from a number of items and
#: an epsilon; or, for as many items as it has, an oracle or a mechanism of `mechdesign`.
OracleChoice: TypeAlias = str | Callable[[int, Any], Oracle] | Oracle | Mechanism


def require_choice(choice: Any) -> None:
    """Refuse what is no choice of an oracle."""
    if isinstance(choice, str):
        if choice not in NAMED:
            raise ValueError(f"oracle must be one of {', '.join(NAMED)}; unknown: {shown(choice)}")
    elif not callable(choice) and not isinstance(choice, (Oracle, Mechanism)):
        raise ValueError(
            "oracle must be a name, a class of oracles, an oracle or a mechanism, got"
            f" {shown(choice)}"
        )


def choices_of(oracle: Any, levels: int) -> tuple[OracleChoice, ...]:
    """A choice for each of some levels."""
    given = tuple(oracle) if isinstance(oracle, (tuple, list)) else (oracle,) * levels
    for choice in given:
        require_choice(choice)
    if len(given) != levels:
        raise ValueError(
            f"oracle must be one of {', '.join(NAMED)}, or one for each level; {len(given)} for"
            f" {levels} levels"
        )
    return given


def name_of(choice: OracleChoice) -> str:
    """A short name for a choice."""
    if isinstance(choice, str):
        return choice
    return getattr(choice, "__name__", type(choice).__name__)


def oracle_over(choice: OracleChoice, domain: int, epsilon: float | Rational) -> Oracle:
    """The oracle that is meant."""
    require_choice(choice)
    if isinstance(choice, str):
        return NAMED[choice](domain, epsilon)
    if isinstance(choice, Mechanism):
        found: Any = Tabular(choice)
    else:
        found = choice if isinstance(choice, Oracle) else choice(domain, epsilon)
    if not isinstance(found, Oracle):
        raise TypeError(f"{shown(choice)} made no oracle, but a {type(found).__name__}")
    if found.domain != domain:
        raise ValueError(f"an oracle of {found.domain} items cannot tell of {domain}")
    if found.privacy.neighbours != "all":
        raise ValueError(
            "the mechanism must be a local one, neighbours='all', to tell of single users"
        )
    audit, allowed = found.audit(), 1 / local_privacy(epsilon).alpha
    if audit.ratio > allowed:
        raise PrivacyViolation(audit.ratio, allowed, audit.output, audit.inputs)
    return found
