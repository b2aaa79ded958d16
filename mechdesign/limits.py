"""Limits on a mechanism in a file: the cost of checking it is estimated before it is checked.

A short file can hold numbers that take hours to compare: a long alpha to the power of a distance,
or denominators without a common factor. The estimates here are in nanoseconds of Python's integers
on an ordinary machine, and rather too large than too small.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from mechdesign.base.text import from_text
from mechdesign.privacy import DISTANCE_LIMIT

WORK = 1_000_000_000
"""Estimated nanoseconds that checking a file may take, for each full or partial megabyte of it."""

MOST_PROPERTIES = 64
"""How many properties a certificate may name."""

_PUNCTUATION = re.compile("[^0-9a-fx/]+")
"""What separates the numbers in the text of a property."""

_STEP = 400
"""Nanoseconds for a comparison or a sum of short numbers, and the loop around it."""

_CONSTRAINT = 500
"""Nanoseconds for a constraint of a certificate's program: to build it and to hold it in memory."""

_ROOT = 700_000
"""Nanoseconds for the most expensive irrational cost."""


class Work:
    """The work left for checking the ``content`` of a JSON file: at first `WORK` a megabyte."""

    def __init__(self, content: Any) -> None:
        self._left: float = WORK * -(-len(json.dumps(content)) // 1_000_000)

    def spend(self, nanoseconds: float) -> None:
        """Deduct nanoseconds; ValueError if that is more than what is left."""
        self._left -= nanoseconds
        if self._left < 0:
            raise ValueError(
                "it would take too long to check: its numbers are too long, or too many"
            )

    def multiply(self, times: int, first: int, second: int) -> None:
        """Spend ``times`` products of numbers of so many limbs, and a comparison or sum of each."""
        self.spend(times * (_STEP + 1.5 * first * second))

    def gcd(self, first: int, second: int) -> None:
        """Spend a greatest common divisor of numbers of so many limbs."""
        self.spend(_STEP + 5 * first * second + 40 * (first + second))

    def common(self, fractions: Iterable[str]) -> int:
        """Read fractions; the limbs of the longest numerator over their common denominator."""
        scale, longest = 1, 1
        for text in fractions:
            half = limbs(text)
            self.gcd(half, half)
            value = from_text(text)
            self.gcd(_limbs(scale), _limbs(value.denominator))
            scale = math.lcm(scale, value.denominator)
            longest = max(longest, _limbs(value.numerator))
        return _limbs(scale) + longest


def limbs(text: Any) -> int:
    """An upper bound on the limbs (digits of Python's integers) of a number in this text."""
    return len(text) * 4 // 30 + 1 if isinstance(text, str) else 1


def _limbs(value: int) -> int:
    return value.bit_length() // 30 + 1


def check_affordable(content: dict[str, Any], work: Work) -> None:
    """Refuse a mechanism, as it is in a file, that would take too long to check."""
    rows = content["weights"]
    outputs, inputs = len(rows), max(map(len, rows), default=0)
    entry = max((limbs(weight) for row in rows for weight in row), default=1)
    entry = max(entry, limbs(content["denominator"]))
    pairs, distances = _pairs(content["neighbours"], inputs)
    alpha = limbs(content["alpha"])
    work.gcd(alpha, alpha)
    # The table: its sums, the common factor of its entries, and the number in a message.
    work.gcd(entry, entry)
    work.multiply(outputs * inputs, entry, entry // 4)
    # The audit. Where all inputs are neighbours, equally far, it looks at one row.
    power = alpha * max(distances, default=1)
    alike = pairs == math.comb(inputs, 2) and len(distances) == 1
    scale = alpha * (max(distances, default=1) - min(distances, default=1)) + 1
    work.spend(pairs * 1000)
    work.multiply(len(distances), power, power)
    work.gcd(entry + power, entry + power)
    compared = 2 * pairs * (1 if alike else outputs)
    work.multiply(compared, entry + scale, 2 * (entry + scale))
    if content["certificate"] is not None:
        work.spend(2 * pairs * outputs * _CONSTRAINT + 2 * len(distances) * inputs**2 * _STEP)
        _certificate(content["certificate"], work, outputs, inputs, entry, power)


def _certificate(
    content: dict[str, Any], work: Work, outputs: int, inputs: int, entry: int, power: int
) -> None:
    """Deduct the estimate for a certificate, whose constraints are built and combined exactly."""
    cells = outputs * inputs
    properties = content["properties"]
    if len(properties) > MOST_PROPERTIES:
        raise ValueError(f"a certificate with more than {MOST_PROPERTIES} properties")
    for text in properties:
        parameter = max(map(limbs, _PUNCTUATION.split(text)))
        terms = text.count("P[") if isinstance(text, str) else 0
        work.gcd(parameter, parameter)
        work.spend(6 * cells * _CONSTRAINT + 20 * terms * _CONSTRAINT)
        work.multiply(4 * cells + terms, entry, max(parameter, power))
    for name in ("objective", "bound"):
        work.gcd(limbs(content[name]), limbs(content[name]))
    loss = content["loss"]
    prior = work.common(loss["prior"] or ())
    if "costs" in loss:
        cost = work.common(value for row in loss["costs"] for value in row)
    else:
        work.gcd(limbs(loss["power"]), limbs(loss["power"]))
        cost = 100 * max(outputs, inputs).bit_length() // 30 + 4
        work.spend(max(outputs, inputs) * (_ROOT if "/" in loss["power"] else 0))
    work.multiply(cells, entry, cost)
    work.multiply(cells, cost, prior)
    work.gcd(entry + cost + prior, entry + cost + prior)
    chosen = [value for group in content["multipliers"].values() for value in group.values()]
    multiplier = work.common(chosen) + power
    work.multiply(2 * cells + 4 * len(chosen), multiplier, max(power, cost))
    work.multiply(cells, multiplier + cost, cost + prior)


def _pairs(neighbours: Any, inputs: int) -> tuple[int, set[int]]:
    """The number of pairs of neighbours, and their distances."""
    if isinstance(neighbours, dict):
        table = neighbours.get("distances", [])
        upper = [entry for j, row in enumerate(table) for entry in row[:j] if entry is not None]
        found = {entry for entry in upper if type(entry) is int and 0 < entry <= DISTANCE_LIMIT}
        return len(upper), found
    if isinstance(neighbours, list):
        return len(neighbours), {1}
    reach = {"adjacent": 1, "all": inputs}.get(neighbours, neighbours)
    reach = min(reach, inputs - 1) if isinstance(reach, int) else 0
    return max(0, reach * (2 * inputs - reach - 1) // 2), {1}
