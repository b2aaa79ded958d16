"""Dummy reports that a shuffler adds: their numbers, and the privacy of what is published.

The published collection is the multiset of all reports: how many there are of each kind. Z_y
dummies of kind y are among them, independent for each kind, with

    Pr[Z_y = z] proportional to alpha^|z - centre|,   0 <= z <= 2 centre.

Let the user's report be of kind y under one dataset, y' under the other. Two counts differ, each by
one. Each has a likelihood ratio of 1 / alpha or alpha, but at the end that the other dataset does
not reach. Such an end has the probability e = Pr[Z = 0], and the ratio 1 / alpha the probability
m = Pr[1 <= Z <= centre], so that at r = e^epsilon >= 1 the hockey-stick divergence is

    H_r = 2e - e^2 + m^2 (1 - r alpha^2)_+,

whatever the reports of all other users are: they may collude.

A user's report is itself random. Let t be the total variation distance between the reports of two
values. Both are mixtures, of weight 1 - t of a part that they share, of weight t of parts of their
own. Collecting the shared part on one side (Balle, Barthe and Gaboardi, NeurIPS 2018, theorem 2)
gives

    delta(epsilon) <= t H_(1 + (r - 1) / t).

The augmented shuffle model is that of Murakami, Sei and Eriguchi (IEEE S&P 2025), whose users send
their items without noise, so that t = 1. Theirs are other distributions of dummies.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from flint import arb

from mechdesign.accounting.pair_law import PrivacyCurve, exact_delta, exp_below, float_above
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.base import BitSource, Rational, ball, brief, precision
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.privacy import exact_epsilon

LARGEST_CENTRE = 1 << 24  #: The most dummies of a kind that a shuffler adds on average.

_BITS = 192  # the precision in bits

_SCALE = 1 << 40  # the denominator of alpha


@dataclass(frozen=True)
class DummyCounts:
    """The distribution of the number of dummies of one kind: see the module."""

    alpha: Fraction  # in (0, 1): nearer 1 hides more
    centre: int  # the mean, at least 1

    @classmethod
    @precision()
    def hiding(cls, ratio: Fraction, delta: Fraction) -> DummyCounts:
        """Return nearly the least dummies with ``H_ratio <= delta``."""
        # The least multiple of 1 / _SCALE with alpha^2 ratio >= 1, rounded up in integers: then the
        # term (1 - r alpha^2)_+ vanishes, and delta is that of the two ends alone.
        alpha = Fraction(math.isqrt(math.ceil(_SCALE**2 / ratio) - 1) + 1, _SCALE)
        if alpha < 1:

            def enough(centre: int) -> bool:
                return bool(cls(alpha, centre).divergence(ratio) <= ball(delta))

            centres = range(1, LARGEST_CENTRE + 1)
            place = bisect_left(centres, True, key=enough)
            if place < len(centres):
                return cls(alpha, centres[place])
        raise ValueError(
            f"epsilon {math.log(ratio):.3g} with delta {brief(delta)} takes more than"
            f" {LARGEST_CENTRE} dummies of each kind"
        )

    @cached_property
    def end(self) -> arb:
        """The probability Pr[Z = 0], the same as Pr[Z = 2 centre]."""
        return self._of(self.centre)

    @cached_property
    def middle(self) -> arb:
        """The probability Pr[Z = centre]."""
        return self._of(0)

    def _of(self, distance: int) -> arb:
        with precision(_BITS):
            alpha = ball(self.alpha)
            whole = 1 + alpha - 2 * alpha ** (self.centre + 1)
            return alpha**distance * (1 - alpha) / whole

    def divergence(self, ratio: Fraction) -> arb:
        """Return H_ratio, for a ratio of at least 1, as a ball."""
        with precision(_BITS):
            beyond = (1 - ball(ratio * self.alpha**2)).max(arb(0))
            more = (1 + self.middle) / 2 - self.end
            return 2 * self.end - self.end**2 + more**2 * beyond

    def least_divergence(self, ratio: Fraction, kinds: Sequence[tuple[Fraction, Fraction]]) -> arb:
        """Return a lower bound on the divergence of two counts when the report's kind is random."""
        with precision(_BITS):
            end, high, low = self.end, (1 + self.middle) / 2, (1 - self.middle) / 2
            # Any test of the two counts gives a lower bound, Pr[guess | first] - r Pr[guess |
            # second]: one looks at the ends only, the other also at which side of the centre the
            # counts are on.
            # The probability of the guess if the report is of the first kind, the second, another
            tests = (
                (2 * end - end**2, arb(0), end - end**2),
                (
                    high * (high - end) + end * (2 - high),
                    low**2,
                    low * (high - end) + end - end**2,
                ),
            )
            best = arb(0)
            for p, q, rest in tests:
                power, level = (
                    rest + ball(first) * (p - rest) + ball(second) * (q - rest)
                    for first, second in kinds
                )
                best = best.max(power - ball(ratio) * level)
            return best

    @property
    def variance(self) -> float:
        """The variance of the number of dummies of one kind."""
        distances = np.arange(self.centre + 1)
        weights = float(self.alpha) ** distances
        return float(2 * (weights @ distances**2) / (2 * weights.sum() - 1))

    def draw(self, kinds: int, source: BitSource) -> npt.NDArray[np.int64]:
        """Return ``kinds`` independent numbers of dummies, exactly of this distribution."""
        noise = DiscreteLaplace(alpha=self.alpha)
        result = noise.draw(kinds, source)
        # Rejection: the conditional law of discrete Laplace noise, exactly. Drawing again only what
        # is beyond leaves the others as they are, which are independent.
        while len(beyond := np.flatnonzero(np.abs(result) > self.centre)):
            result[beyond] = noise.draw(len(beyond), source)
        return result + self.centre


class AmongDummies(PrivacyCurve):
    """The privacy of users' reports among dummies, when all other users may collude.

    Neighbouring datasets differ in the value of one user.

    Attributes
    ----------
    counts : DummyCounts
        How many dummies there are of each kind.
    distance : Fraction
        At least the total variation distance between the reports of any two values; above 0.
    """

    largest_epsilon = math.inf

    def __init__(
        self,
        counts: DummyCounts,
        distance: Fraction,
        attack: Sequence[tuple[Fraction, Fraction]],
    ) -> None:
        self.counts, self.distance, self._attack = counts, distance, tuple(attack)

    @classmethod
    def keeping(
        cls,
        epsilon: float | Rational,
        delta: float | Rational,
        distance: Fraction,
        attack: Sequence[tuple[Fraction, Fraction]],
    ) -> AmongDummies:
        """Return the one with nearly the least dummies that keeps (epsilon, delta).

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            Above 0.
        delta : float, Fraction, int, str or Decimal
            Strictly between 0 and 1.
        distance : Fraction
            See `AmongDummies`.
        attack : sequence of (Fraction, Fraction)
            For the lower bounds: see `DummyCounts.least_divergence`.

        Returns
        -------
        AmongDummies

        Raises
        ------
        ValueError
            An epsilon or delta out of range, or so small that it takes too many dummies.
        """
        ratio, target = exp_below(exact_epsilon(epsilon)), exact_delta(delta)
        if ratio == 1:
            raise ValueError(
                "epsilon must be above 0, and not nearly 0: dummies do not hide a report perfectly"
            )
        counts = DummyCounts.hiding(1 + (ratio - 1) / distance, target / distance)
        return cls(counts, distance, attack)

    def above(self, ratio: Fraction, smoothing: float) -> arb:
        with precision(_BITS):
            divergence = self.counts.divergence(1 + (ratio - 1) / self.distance)
            return ball(self.distance) * divergence

    def below(self, ratio: Fraction, smoothing: float) -> arb:
        return self.counts.least_divergence(ratio, self._attack)

    @cached_property
    def profile(self) -> PrivacyLoss:
        """The privacy loss as a distribution, to be composed with others.

        Nothing is known of it from below.

        Returns
        -------
        PrivacyLoss
            Exactly that of the bound, up to rounding upwards: delta is linear in e^epsilon up to
            where it is least.
        """
        last = 1 + self.distance * (1 / self.counts.alpha**2 - 1)
        points = [(r, Fraction(float_above(self.above(r, 0.0)))) for r in (Fraction(1), last)]
        return PrivacyLoss.from_profile(points)
