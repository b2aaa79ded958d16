"""Alphas to try, and tables that break privacy, for tests of formulas in alpha."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction as Q
from random import Random

from flint import fmpq, fmpz_poly

from mechdesign import Metric
from mechdesign.lp.basis import to_fmpq, to_fraction
from mechdesign.symbolic import SymbolicMechanism
from mechdesign.symbolic.critical_regions import CriticalRegion, Unproved
from mechdesign.symbolic.semialgebraic import Region, Root

ONE = fmpz_poly([1])
ALL, NONE = Region((), (True,)), Region((), (False,))
TINY = Q(1, 10**9)
RAMP = Metric([[0, 1, 3], [1, 0, 2], [3, 2, 0]])  # at distance d, alpha^d is allowed
NEAR = Metric([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
PARTLY = Metric([[0, 5, None], [5, 0, 2], [None, 2, 0]])


def rationals(seed, size, largest=60):
    """Random rational numbers in (0, 1)."""
    random = Random(seed)
    return [
        Q(random.randint(1, d - 1), d) for d in (random.randint(2, largest) for _ in range(size))
    ]


def near(point):
    """Rational numbers in (0, 1) very close to a point on both sides, and the point if it is
    rational.
    """
    low, high = point.bracket(TINY) if isinstance(point, Root) else (point, point)
    return [alpha for alpha in (low - TINY, low, high, high + TINY) if 0 < alpha < 1]


def proved(pieces: Iterable[CriticalRegion | Unproved]) -> list[CriticalRegion]:
    """The same pieces, none of which may be without a proof."""
    found = []
    for piece in pieces:
        assert isinstance(piece, CriticalRegion), str(piece)
        found.append(piece)
    return found


def evaluated(polynomial, alpha):
    return to_fraction(fmpq(1) * polynomial(to_fmpq(alpha)))


def moved(table, source, target, j, amount):
    """The table with some of column j moved from one output to another."""
    weights = [list(row) for row in table.weights]
    weights[source][j] -= amount
    weights[target][j] += amount
    return SymbolicMechanism(weights, table.denominator, table.neighbours)
