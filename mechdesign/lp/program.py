"""Program: a linear program as data, exact rational sparse constraints over non-negative variables.

Nothing here depends on how a program is solved.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mechdesign.lp.constraints import Constraints


@dataclass(frozen=True)
class Program:
    """Minimise ``sum cost[v] x[v]`` over x >= 0 subject to ``constraints``."""

    cost: tuple[Fraction, ...]
    constraints: tuple[Constraints, ...]

    @property
    def variables(self) -> int:
        """The number of variables."""
        return len(self.cost)
