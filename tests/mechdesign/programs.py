"""Linear programs of mechanisms for counts, and what they are made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from mechdesign import Privacy
from mechdesign.losses import L0, L1, Loss
from mechdesign.lp.basis import Program, reduce_by_symmetry, unreduced
from mechdesign.optimisation.formulation import mechanism_program, reflection
from mechdesign.properties import SEVEN, resolve

NINE = Privacy(alpha="9/10")
HALF = Privacy(alpha="1/2")
SUBSETS = [
    subset for k in range(8) for subset in itertools.combinations([item.short for item in SEVEN], k)
]
"""All sets of the seven properties, by their short names."""


def build(
    n: int,
    privacy: Privacy = NINE,
    loss: Loss | None = None,
    wanted: Iterable[Any] = (),
    reduced: bool = True,
) -> Program:
    """The program of a mechanism for counts up to n, reduced by symmetry where that is allowed."""
    program = mechanism_program(
        n + 1, n + 1, privacy, loss or L0(), [resolve(item) for item in wanted]
    )
    return (
        (
            reduce_by_symmetry(program, reflection(n + 1, n + 1, program.variables))
            if reduced
            else None
        )
        or unreduced(program)
    ).program


def full(n: int, privacy: Privacy, loss: Loss | None = None, wanted: Iterable[Any] = ()) -> Program:
    """The program of a mechanism for counts up to n as it is stated; for L1 if no loss is given."""
    return mechanism_program(
        n + 1, n + 1, privacy, loss or L1(), [resolve(item) for item in wanted]
    )
