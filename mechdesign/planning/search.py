"""The least epsilon, or the fewest users, at which a predicted error reaches a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mechdesign.exceptions import MechanismError

LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 1000), Fraction(16)
"""The ends of a search for an epsilon.

Beyond the larger one, likelihood ratios exceed eight million, which is hardly any protection.
"""

LARGEST_N = 10**12
"""The largest number of users of a search."""

_DIGITS = 4
"""The significant digits of an epsilon that was searched for; it is rounded up."""


class Unreachable(MechanismError):
    """The error that no candidate reaches the target.

    Attributes: ``error``, asked for, and ``least``, the least that any candidate is predicted to
    have within the bounds.
    """

    def __init__(self, error: float, least: float, within: str) -> None:
        self.error, self.least, self.within = error, least, within
        best = (
            f"the least predicted is {least:.4g}"
            if math.isfinite(least)
            else "no candidate has a predicted error there"
        )
        super().__init__(f"no candidate reaches an error of {error:.4g} {within}: {best}")


@dataclass(frozen=True)
class Scale:
    """A scale: the numbers that a search may try, in order: ``value(0) .. value(last)``.

    ``rank(x)`` is about the last rank whose number is at most x.

    The search begins at ``start``, and expects errors to fall as the numbers to the power
    -``power``.
    """

    value: Callable[[int], Any]
    rank: Callable[[float], int]
    last: int
    start: float
    power: float


USERS = Scale(lambda rank: rank + 1, lambda n: math.floor(n) - 1, LARGEST_N - 1, 1e6, 0.5)


def epsilons(largest: Fraction) -> Scale:
    """Return the scale of decimals of four digits from 0.001 to ``largest``."""
    steps = 9 * 10 ** (_DIGITS - 1)

    def value(rank: int) -> Fraction:
        power, digits = divmod(rank, steps)
        return Fraction(LEAST_EPSILON * 10**power * (1 + Fraction(10 * digits, 10**_DIGITS)))

    def rank(epsilon: float) -> int:
        times = epsilon / float(LEAST_EPSILON)
        power = math.floor(math.log10(times))
        return int(power * steps + math.floor((times / math.pow(10, power) - 1) * steps / 9))

    last = max(rank(float(largest)) + 1, -1)
    while last >= 0 and value(last) > largest:
        last -= 1
    return Scale(value, rank, last, 1.0, 1.0)


def least(error: Callable[[Any], float], target: float, scale: Scale) -> Any:
    """Return the least number at which the error is at most the target; None if there is none.

    Errors are expected to fall. The search keeps a bracket and tries the number at which a power
    law through its ends reaches the target, which is exact for power laws; every third time it
    tries the middle. If errors do not fall throughout, the number found reaches the target and the
    number before it does not.
    """
    # Invariant: the error at rank `below` exceeds the target, that at `above` does not; both begin
    # outside of the scale. Each try narrows the bracket, and so the search ends.
    below, above = -1, scale.last + 1
    ends: dict[bool, tuple[float, float]] = {}
    guess, tries = scale.start, 0
    while above - below > 1:
        rank = min(max(scale.rank(guess), below + 1), above - 1)
        value = scale.value(rank)
        predicted = error(value)
        reached = predicted <= target
        below, above = (below, rank) if reached else (rank, above)
        ends[reached] = float(value), predicted
        tries += 1
        if len(ends) == 1:  # a larger step than the power law asks for, growing with each try
            factor = min(
                max((max(predicted, 1e-300) / target) ** (1 / scale.power), 0.1),
                10.0 if math.isinf(predicted) else 1e12,
            )
            further = 4.0**tries / 1e4 if tries > 1 else 0.0
            guess = float(value) * (factor / (1 + further) if reached else factor * (1 + further))
            continue
        (low, large), (high, small) = ends[False], ends[True]
        share = 0.5
        # Interpolation in logarithms; every third try halves, as interpolation alone may creep
        # towards one end.
        if tries % 3 and math.isfinite(large) and small > 0:
            share = math.log(large / target) / math.log(large / small)
        guess = low * (high / low) ** share
    return None if above > scale.last else scale.value(above)
