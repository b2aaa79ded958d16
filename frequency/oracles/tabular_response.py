"""Any mechanism as an oracle: whatever `mechdesign` designs can be deployed."""

from __future__ import annotations

from dataclasses import dataclass

from frequency.core.enumerated_oracle import EnumeratedOracle
from mechdesign import Mechanism, Privacy
from mechdesign.base.frozen import set_fields


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
