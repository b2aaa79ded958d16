"""Permanent reports as fingerprints: how many of n users they single out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from mechdesign.base import ball, precision

_BITS = 128  # of balls: each term has a relative error far below that of a float

# So many bits of a report at most are told apart by how many are set: with more of them at an
# epsilon that is worth a collection every user has a report of their own.
_PLACES = 1 << 13


class Fingerprints(NamedTuple):
    """The law of the permanent reports of users whose values are spread evenly.

    A report is one of ``public`` public draws, all equally likely, or with values that are so
    together with them; and ``places`` bits, of which one is 1 with the probability ``own`` and the
    others with ``other``. With the probability 1 - ``told`` all are of the latter kind.
    """

    public: int
    places: int = 0
    own: Fraction = Fraction(1, 2)
    other: Fraction = Fraction(1, 2)
    told: Fraction = Fraction(1)

    def kinds(self) -> Iterator[tuple[int, arb]]:
        """Yield how many reports are alike, and the probability of each, as a ball."""
        public, places = self.public, self.places
        if places == 0:
            yield public, 1 / arb(public)
            return
        own, other, told = map(ball, (self.own, self.other, self.told))
        patterns = 1
        for ones in range(places + 1):
            none = other**ones * (1 - other) ** (places - ones)
            likelihood = (ones * own / other + (places - ones) * (1 - own) / (1 - other)) / places
            mean = none * (1 - told + told * likelihood)
            yield public * patterns, mean / public
            patterns = patterns * (places - ones) // (ones + 1)

    def linked(self, n: int, missed: Fraction = Fraction(0), days: int = 1) -> float:
        """Return the share of n users who are linked, rounded up: see `linked_share`.

        Each of two periods has so many ``days``, on each of which the permanent report is
        ``missed`` with this probability.
        """
        if n == 1 or self.places > _PLACES:
            return 1.0
        if self.public == 1 and self.places == 0:  # one report, which tells nothing
            return math.nextafter(1 / n, 1)
        with precision(_BITS):
            hidden = ball(missed) ** days
            shown, total = 1 - hidden, arb(0)
            for number, p in self.kinds():
                nobody = ((-shown * p).log1p() * n).exp()  # shows a given report
                some = -((-shown * p).log1p() * n).expm1()
                if hidden > 0:  # then the user may be one of those of whom nothing is seen
                    some += p * (nobody - shown**n * ((-p).log1p() * n).exp())
                total += number * some
            upper = float(((shown * total + hidden) / n).upper())
        return min(1.0, math.nextafter(upper, 2))
