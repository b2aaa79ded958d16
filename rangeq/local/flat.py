"""The flat method: one histogram over the items, and ranges by adding up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rangeq.local.hierarchy import HierarchicalHistogram


@dataclass(frozen=True)
class Flat(HierarchicalHistogram):
    """Flat (range queries 4.2): any oracle of `frequency` over the items themselves, by name.
    `central.CentralFlat` trusts a curator.

    The estimates are shifted to sum to 1, since everybody is somewhere: a range of r items then has
    variance r (1 - r/D) V instead of the r V of Fact 1, which ``DecomposedHistogram(D, epsilon, D)``
    has. ``branching`` and ``probabilities`` are of no use here.
    """

    branching: int | tuple[int, ...] = ()
    oracle: str | tuple[str, ...] = "OUE"

    def __post_init__(self) -> None:
        if isinstance(self.domain, (int, np.integer)):
            object.__setattr__(self, "branching", (max(2, int(self.domain)),))
        super().__post_init__()
