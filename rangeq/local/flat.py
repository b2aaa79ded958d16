"""The flat method: one histogram over the items, and ranges by adding up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from frequency.oracles.choice import OracleChoice
from mechdesign.base.frozen import set_fields
from rangeq.local.hierarchy import HierarchicalHistogram


@dataclass(frozen=True)
class Flat(HierarchicalHistogram):
    """One histogram over the items, and ranges by adding up (range queries, section 4.2).

    The estimates are shifted to sum to 1, since every user is somewhere: a range of r items then
    has the variance r (1 - r/D) V instead of the r V of Fact 1, which ``DecomposedHistogram(D,
    epsilon, D)`` has. `rangeq.central.CentralFlat` trusts a curator.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: as for `RangeProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    oracle : str, class, Oracle or Mechanism, default "OUE"
        Over the items themselves: see `frequency.oracles.choice`.
    branching : int or tuple of int, default ()
        Not used: there is one level.
    probabilities : sequence, optional
        Not used: there is one level.
    """

    privacy_source: ClassVar[str] = "range queries, section 4.2"

    branching: int | tuple[int, ...] = ()
    oracle: OracleChoice | tuple[OracleChoice, ...] = "OUE"

    def __post_init__(self) -> None:
        if isinstance(self.domain, (int, np.integer)):
            set_fields(self, branching=(max(2, int(self.domain)),))
        super().__post_init__()
