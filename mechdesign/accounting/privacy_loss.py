"""PrivacyLoss: the privacy loss distribution of a finite mechanism, in exact rationals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeAlias

import numpy as np

from mechdesign.accounting.pair_law import LARGEST_RATIO, exp_above, log_above
from mechdesign.base import Floats, Rational, exact
from mechdesign.exceptions import UnboundedRatio
from mechdesign.mechanism.table import Table
from mechdesign.privacy import EPSILON_LIMIT, Metric, Privacy, exact_epsilon

#: The number of points of a profile, and the inverse of the units of their numbers.
_POINTS, _UNITS = 64, 1 << 56

#: The most releases whose ratios are listed, the most of these ratios, and of one release's.
_RELEASES, _LISTED, _LISTED_ALONE = 16, 64, 256

#: The type of likelihood ratios, ascending, with their probabilities under the first neighbour.
Ratios: TypeAlias = tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True)
class PrivacyLoss:
    """The distribution of the likelihood ratio of two neighbours, under the first of them.

    The pair dominates: for every epsilon no neighbours of the mechanism have a larger delta. Then
    composed pairs dominate compositions, also adaptive ones (Zhu, Dong and Wang, AISTATS 2022,
    theorem 10).

    Parameters
    ----------
    ratios : tuple of (Fraction, Fraction)
        Likelihood ratios above 0, ascending, and the probability of each under the first
        neighbour, above 0.
    infinite : Fraction
        The probability of outputs that the second neighbour makes impossible.
    attained : PrivacyLoss, optional
        That of two neighbours that there are, for lower bounds; None: this is one.

    Raises
    ------
    ValueError
        Numbers that no two distributions have.
    """

    ratios: Ratios
    infinite: Fraction = Fraction(0)
    attained: PrivacyLoss | None = None

    def __post_init__(self) -> None:
        places = [ratio for ratio, _ in self.ratios]
        probabilities = [p for _, p in self.ratios]
        if (
            sorted(set(places)) != places
            or min([*places, *probabilities], default=1) <= 0
            or self.infinite < 0
            or sum(probabilities, self.infinite) != 1
            or sum((p / ratio for ratio, p in self.ratios), Fraction(0)) > 1
        ):
            raise ValueError(
                "a privacy loss has ascending ratios above 0, whose probabilities add up to 1 under"
                " the first distribution, and to at most 1 under the second"
            )

    @property
    def known(self) -> PrivacyLoss:
        """The privacy loss of neighbours that there are: compositions lose at least as much."""
        return self if self.attained is None else self.attained

    @classmethod
    def of(cls, table: Table) -> PrivacyLoss:
        """Return the privacy loss of a table, for all of its neighbouring inputs.

        Exact if all ordered pairs of neighbours have the same distribution; otherwise the least one
        above all of them, up to rounding upwards.

        Parameters
        ----------
        table : Table
            Its audited entries count, not its claim.

        Returns
        -------
        PrivacyLoss
            Of ratio 1 only, if there are no neighbours.

        Raises
        ------
        UnboundedRatio
            Of several pairs, one has a likelihood ratio above 2^900 that is not infinite.
        ValueError
            Neighbours at several distances (`Metric`): there is no one privacy loss.
        """
        if isinstance(table.promise.neighbours, Metric):
            raise ValueError(
                "under a metric neighbours are at several distances: there is no one privacy loss"
            )
        weights = table.sampler.weights
        total = sum(row[0] for row in weights)
        # Both orders of each pair: the hockey-stick divergence is not symmetric.
        distinct: dict[tuple[Ratios, Fraction], None] = {}
        for j, k in table.promise.pairs(table.inputs).tolist():
            for first, second in ((j, k), (k, j)):
                distinct[_pair(weights, first, second, total)] = None
        if not distinct:
            return NO_LOSS
        pairs = [cls(ratios, infinite) for ratios, infinite in distinct]
        if len(pairs) == 1:
            return pairs[0]
        real = max(pairs, key=_spread)
        top = max(pair.ratios[-1][0] for pair in pairs if pair.ratios)
        if top > LARGEST_RATIO:
            raise UnboundedRatio(
                "an output is more than 2^900 times as likely under one input as under another"
            )
        above = max(pair.infinite for pair in pairs)
        # The curves of several pairs cross: the least distribution above all of them belongs to no
        # pair. Under the second neighbour delta(r) = E (ratio - r)_+ is a call function, plus the
        # infinite part.
        law = dominating(
            [_under_second(pair) for pair in pairs],
            (Fraction(0), top),
            (Fraction(1), above),
            1.0,
        )
        return cls._from_second(law, above, real)

    @classmethod
    def pure(cls, epsilon: Privacy | float | Rational) -> PrivacyLoss:
        """Return the privacy loss of any mechanism with this epsilon: of randomised response.

        No mechanism with the same epsilon has a larger delta anywhere (Kairouz, Oh and Viswanath,
        ICML 2015, theorem 3.3).

        Parameters
        ----------
        epsilon : Privacy, float, Fraction, int, str or Decimal
            At least 0; alpha is rounded to the larger epsilon.

        Returns
        -------
        PrivacyLoss
            With two ratios, or one if epsilon is 0. An epsilon above 1024 is treated as infinite.
        """
        if isinstance(epsilon, Privacy):
            ratio = 1 / epsilon.alpha
        elif (asked := exact_epsilon(epsilon)) > EPSILON_LIMIT:
            return cls((), Fraction(1), NO_LOSS)
        else:
            ratio = exp_above(asked)
        if ratio == 1:
            return NO_LOSS
        return cls(((1 / ratio, 1 / (1 + ratio)), (ratio, ratio / (1 + ratio))))

    @classmethod
    def from_profile(cls, points: Iterable[tuple[Fraction, Fraction]]) -> PrivacyLoss:
        """Return the least one whose delta is at least that of a mechanism at some epsilons.

        Between the points delta is linear in e^epsilon, which is above, as it is convex
        (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, PETS 2022: connecting the dots).

        Parameters
        ----------
        points : iterable of (Fraction, Fraction)
            e^epsilon, at least 1, and at least delta there, for both orders of all neighbours.

        Returns
        -------
        PrivacyLoss
            Nothing is known of it from below.

        Raises
        ------
        ValueError
            No points, or numbers out of range.
        """
        upper = sorted(
            (exact(ratio, "e^epsilon"), exact(delta, "delta")) for ratio, delta in points
        )
        if not upper or upper[0][0] < 1 or not all(0 <= delta <= 1 for _, delta in upper):
            raise ValueError(
                "a profile has points (e^epsilon, delta) with epsilon >= 0, delta <= 1"
            )
        # Delta never rises: bounds that do are tightened by those before them.
        falling = accumulate((delta for _, delta in upper), min)
        upper = [(ratio, delta) for (ratio, _), delta in zip(upper, falling, strict=True)]
        # delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon), of the other order
        lower = [(1 / ratio, 1 - 1 / ratio + delta / ratio) for ratio, delta in upper]
        ends = [(Fraction(0), Fraction(1)), *lower, *upper]
        law = masses(lower_hull(sorted(dict(ends).items())))
        return cls._from_second(law, upper[-1][1], NO_LOSS)

    def delta(self, ratio: Fraction) -> Fraction:
        """Return delta at the logarithm of a ratio: exact for this pair of distributions."""
        # E (1 - e^(epsilon - L))_+ under the first neighbour: the hockey-stick divergence.
        above = (p * (1 - ratio / value) for value, p in self.ratios if value > ratio)
        return sum(above, self.infinite)

    def epsilon(self, delta: Fraction) -> float:
        """Return the least epsilon that holds with a delta, for this pair, rounded up.

        Between ratios delta is linear in e^epsilon, so that it is found in closed form.
        """
        if self.infinite > delta:
            return math.inf
        above = below = Fraction(0)  # of the ratios passed: their probabilities under both
        # Invariant: delta(r) = infinite + above - r below from the ratio passed last down to the
        # next.
        for ratio, p in reversed(((Fraction(1), Fraction(0)), *self.ratios)):
            if ratio <= 1 or self.infinite + above - ratio * below > delta:
                break
            above, below = above + p, below + p / ratio
        crossing = (self.infinite + above - delta) / below if below else Fraction(1)
        return log_above(max(Fraction(1), crossing))

    @classmethod
    def together(cls, losses: Mapping[PrivacyLoss, int]) -> PrivacyLoss | None:
        """Return that of several releases, exactly; None if it has too many ratios to list.

        Parameters
        ----------
        losses : mapping of PrivacyLoss to int
            How often each occurs.
        """
        releases = sum(losses.values())
        if releases == 1:
            (alone,) = losses
            return alone if len(alone.ratios) <= _LISTED_ALONE else None
        # Products of two ratios r1^i r2^(times - i) are times + 1 numbers; of more, up to the
        # power.
        sizes = (
            times + 1 if len(loss.ratios) == 2 else max(1, len(loss.ratios)) ** times
            for loss, times in losses.items()
        )
        if releases > _RELEASES or math.prod(sizes) > _LISTED:
            return None
        listed, possible = {Fraction(1): Fraction(1)}, Fraction(1)
        for loss, times in losses.items():
            possible *= (1 - loss.infinite) ** times
            for _ in range(times):
                product: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
                for ratio, p in listed.items():
                    for factor, q in loss.ratios:
                        product[ratio * factor] += p * q
                listed = product
        return cls(tuple(sorted(listed.items())), 1 - possible)

    @cached_property
    def points(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The points of e^epsilon and delta for `from_profile`: at most 66, rounded up."""
        places = [ratio for ratio, _ in self.ratios if ratio > 1]
        step = -(-len(places) // _POINTS)
        # Delta is exact at the rounded ratio, and rounded up there: a point of a curve that is
        # above. Any subset of points will do, as the chord between two is above the convex curve.
        rounded = {Fraction(math.floor(ratio * _UNITS), _UNITS) for ratio in places[::-step]}
        points = {
            ratio: Fraction(math.ceil(self.delta(ratio) * _UNITS**2), _UNITS**2)
            for ratio in {Fraction(1), *rounded}
        }
        if places:
            top = Fraction(math.ceil(places[-1] * _UNITS), _UNITS)
            points[top] = Fraction(math.ceil(self.infinite * _UNITS**2), _UNITS**2)
        return tuple(sorted(points.items()))

    @classmethod
    def _from_second(
        cls, law: Iterable[tuple[Fraction, Fraction]], infinite: Fraction, attained: PrivacyLoss
    ) -> PrivacyLoss:
        """Return the loss with this distribution of the ratio under the second neighbour."""
        ratios = tuple((ratio, q * ratio) for q, ratio in law if ratio)
        return cls(ratios, infinite, attained)


NO_LOSS = PrivacyLoss(
    ((Fraction(1), Fraction(1)),)
)  #: The privacy loss of what depends on no user.


def _pair(
    weights: Sequence[Sequence[int]], first: int, second: int, total: int
) -> tuple[Ratios, Fraction]:
    """Return the ratios of two columns, and the probability of what the second makes impossible."""
    masses_by_ratio: defaultdict[Fraction, int] = defaultdict(int)
    infinite = 0
    for row in weights:
        if row[first] and row[second]:
            masses_by_ratio[Fraction(row[first], row[second])] += row[first]
        else:
            infinite += row[first]
    ratios = tuple(
        (ratio, Fraction(weight, total)) for ratio, weight in sorted(masses_by_ratio.items())
    )
    return ratios, Fraction(infinite, total)


def _under_second(loss: PrivacyLoss) -> tuple[Floats, Floats, float]:
    pairs = [(float(p / ratio), float(ratio)) for ratio, p in loss.ratios]
    probabilities, ratios = np.array(pairs).reshape(-1, 2).T
    return probabilities, ratios, float(loss.infinite)


def _spread(loss: PrivacyLoss) -> tuple[Fraction, float]:
    """Return the key by which neighbours are compared: how well many outputs tell them apart."""
    logs = [math.log(ratio.numerator) - math.log(ratio.denominator) for ratio, _ in loss.ratios]
    # The second moment of the loss decides in the limit of many releases (central limit theorem).
    # This only chooses for which neighbours lower bounds are proved.
    return loss.infinite, sum(
        float(p) * log**2 for log, (_, p) in zip(logs, loss.ratios, strict=True)
    )


# ------------------------------------------------------------------------------------------------
# The least finite law above several others in increasing convex order.
#
# X is below Y in this order if E(X - t)_+ <= E(Y - t)_+ for every t: the call function of Y is at
# least that of X. Then E f(X) <= E f(Y) for all increasing convex f, and sums of independent copies
# are in the same order. So one law answers for all pairs of values of a user.


_LEAST_POINTS = 512  # the largest number of values of the dominating law


def dominating(
    laws: Sequence[tuple[Floats, Floats, float]],
    ends: tuple[Fraction, Fraction],
    calls: tuple[Fraction, Fraction],
    scale: float,
    terms: int = 1,
) -> list[tuple[Fraction, Fraction]]:
    """Return a law that is above all of the given ones.

    Shapes: `laws` (values,).
    """
    # Its call function is the largest of theirs, rounded up, at up to 512 points: those where it
    # bends, if they are not more. Between them it is linear, which is above, as call functions are
    # convex.
    points = _points(laws, ends)
    grid = np.array([float(point) for point in points])
    most = np.zeros(len(grid))
    for probabilities, values, constant in laws:
        order = np.argsort(values)
        sorted_values, mass = values[order], probabilities[order]
        # Sums over the values above each point
        above = np.concatenate([np.cumsum((mass * sorted_values)[::-1])[::-1], [0.0]])
        mass_above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
        first = np.searchsorted(sorted_values, grid, side="right")
        np.maximum(most, above[first] - grid * mass_above[first] + constant, out=most)
    # A sum of m numbers errs by at most m units in the last place of the sum of absolute values,
    # and rounded numbers by as many as they were rounded: the margin is more than twice of both.
    roundings = terms + max(len(values) for _, values, _ in laws) + 64
    margin = roundings * 2.0**-50 * (scale + np.abs(grid))
    heights = [Fraction(height) for height in (most + margin).tolist()]
    # The ends are exact, as the call function at the lower end is the mean: with margins there the
    # law would have a mean that no distribution of likelihood ratios has.
    heights[0], heights[-1] = calls
    return masses(lower_hull(list(zip(points, heights, strict=True))))


def _points(
    laws: Sequence[tuple[Floats, Floats, float]], ends: tuple[Fraction, Fraction]
) -> list[Fraction]:
    low, high = map(float, ends)
    # The maximum of call functions bends where any of them does; points so close that floats hardly
    # tell them apart are one.
    bends = np.unique(np.concatenate([values for _, values, _ in laws]))
    apart = np.diff(bends, prepend=-np.inf) > 1e-12 * (high - low)
    bends = bends[apart & (bends > low) & (bends < high)]
    if len(bends) > _LEAST_POINTS:
        bends = bends[np.linspace(0, len(bends) - 1, _LEAST_POINTS).round().astype(int)]
    return [ends[0], *map(Fraction, bends.tolist()), ends[1]]


def lower_hull(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Return the corners of the largest convex function below some points."""
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in points:
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            # A turn to the left, by cross products: exact, and without divisions (Andrew's monotone
            # chain).
            if (y1 - y0) * (x - x0) < (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def masses(hull: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Return the law with a call function, but for what is left of that at its last corner."""
    # The second derivative of E (X - t)_+ is the law of X: its slope rises by the mass of each
    # value, from -1 below all of them to 0 above.
    slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(hull)]
    bends = zip([Fraction(-1), *slopes], [*slopes, Fraction(0)], hull, strict=True)
    return [(after - before, x) for before, after, (x, _) in bends if after > before]
