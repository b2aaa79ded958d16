"""The flat method: one histogram over the items, and ranges by adding up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.oracles.choice import OracleChoice
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Floats
from rangeq.core.cuts import Cuts
from rangeq.core.protocol import ConsistentTree
from rangeq.local.hierarchy import HierarchicalHistogram, LevelHistograms


@dataclass(frozen=True)
class Flat(LevelHistograms, ConsistentTree):
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

    @cached_property
    def _histogram(self) -> HierarchicalHistogram:
        """The hierarchical histogram of one level that this is."""
        return HierarchicalHistogram(self.domain, self.epsilon, self.branching, self.oracle)

    @property
    def alike(self) -> bool:
        return self._histogram.alike

    def _contrasts(self, users: Floats) -> Floats:
        return self._histogram._contrasts(users)

    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        return self._histogram._level_weights(leaves, users, level)

    def _cuts(self, users: Floats, mass: Floats) -> Cuts:
        return self._histogram._cuts(users, mass)

    def _leaves(self, aggregate: Aggregate) -> Floats:
        return self._histogram._leaves(aggregate)
