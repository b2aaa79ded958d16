"""What the tests of mechanisms for local privacy have in common."""

from __future__ import annotations

import random
from fractions import Fraction

from mechdesign import Privacy
from mechdesign.losses import prior

HALF = Fraction(1, 2)


def local(alpha: Fraction | int | str) -> Privacy:
    """Any two items are to be told apart by no more than alpha."""
    return Privacy(alpha=alpha, neighbours="all")


def some_prior(items: int, seed: int) -> tuple[Fraction, ...]:
    """An uneven distribution of items."""
    rng = random.Random(seed)
    return prior([rng.randint(1, 50) for _ in range(items)])
