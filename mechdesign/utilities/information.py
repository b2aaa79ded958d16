"""MutualInformation: the information of an output about the item, in nats."""

from __future__ import annotations

import heapq
import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import scipy
from flint import arb, fmpq

from mechdesign.base import Booleans, Floats, Rational, set_fields
from mechdesign.lp.basis import ONE, ZERO, to_fmpq, to_fraction
from mechdesign.lp.highs import to_float
from mechdesign.utilities.sublinear_utility import (
    BestDecision,
    Merged,
    Number,
    Pattern,
    Utility,
    alike,
    distribution,
    hypotheses,
    lower,
    shares,
    summed,
    upper,
)


@dataclass(frozen=True, repr=False)
class MutualInformation(Utility):
    """The mutual information of the item and the output in nats, for an exact prior of items."""

    prior: tuple[Fraction, ...]

    def __init__(self, prior: Iterable[Rational]) -> None:
        set_fields(self, prior=distribution(prior))

    @property
    def items(self) -> int:
        return len(self.prior)

    def worth(self, row: Sequence[fmpq]) -> Number:
        # mu(row) = sum p_x r_x log r_x - m log m, with m = sum p_x r_x: equal entries share a
        # logarithm, and rows of two levels need two.
        mass: dict[fmpq, Fraction] = defaultdict(Fraction)
        for weight, entry in zip(self.prior, row, strict=True):
            mass[entry] += weight
        mean = sum((to_fmpq(weight) * entry for entry, weight in mass.items()), ZERO)
        terms = (to_fmpq(weight) * entry * arb(entry).log() for entry, weight in mass.items())
        return sum(terms, -mean * arb(mean).log())

    def classes(self) -> list[list[int]]:
        return alike(self.prior)

    def warm_start(self, alpha: fmpq) -> tuple[list[Pattern], list[fmpq]] | None:
        """Return no patterns, and prices in proportion to the prior."""
        # They would be optimal if for every probability there were a set of items that has it.
        a = to_float(alpha)

        def per_mean(mass: float) -> float:
            # The utility of a row of two levels per unit of its mean, if the items at level 1 have
            # any probability: the largest of it, over all sets, bounds what any mechanism reaches.
            mean = a + (1 - a) * mass
            return -(a * math.log(a or 1) * (1 - mass) - mean * math.log(mean)) / mean

        most = -float(
            scipy.optimize.minimize_scalar(
                per_mean, bounds=(1e-9, 1.0), method="bounded", options={"xatol": 1e-12}
            ).fun
        )
        return [], [to_fmpq(Fraction(most) * weight) for weight in self.prior]

    def pricing(self, prices: Sequence[fmpq], alpha: fmpq) -> tuple[fmpq, list[Pattern]]:
        """Return a bound, linear in the row for every t and minimised over t, and near patterns.

        Parameters
        ----------
        prices : sequence of flint.fmpq
            One exact number for each item, shape (items,).
        alpha : flint.fmpq
            The lower of the two entries of a row, in (0, 1].

        Returns
        -------
        tuple[fmpq, list[Pattern]]
            As of `Utility.pricing`: in nats, and as many patterns as items, some equal.
        """
        # For every t > 0, ``-m log m <= t - m - m log t``, where m is the mean of the row under the
        # prior. The patterns are found by exchanging items for as long as that raises information
        # less price, from patterns with the items of least price for their prior at level 1.
        prior = [to_fmpq(weight) for weight in self.prior]

        def bound(t: fmpq) -> fmpq:
            # Tangent of the concave -m log m at t. What is left is a sum over items, each at its
            # better level: separable, so that 2^items patterns need no enumeration. Every t proves
            # a bound, so that t itself may come from floats.
            slope = -arb(t).log() - 1
            high = (upper(p * slope - y) for p, y in zip(prior, prices, strict=True))
            low = (
                upper(alpha * (p * (slope + arb(alpha).log()) - y))
                for p, y in zip(prior, prices, strict=True)
            )
            return sum(map(max, high, low), t)

        def float_bound(t: float) -> float:
            return to_float(bound(to_fmpq(Fraction(float(t)))))

        bounds = (to_float(alpha), 1.0)
        best = scipy.optimize.minimize_scalar(
            float_bound, bounds=bounds, method="bounded", options={"xatol": 1e-12}
        )
        p, y = np.array([[to_float(value) for value in values] for values in (prior, prices)])
        order = np.argsort(y / np.maximum(p, 1e-300))
        starts = np.argsort(order)[None, :] < np.arange(1, self.items + 1)[:, None]
        climbed = (_climbed(start, p, y, to_float(alpha)) for start in starts)
        return bound(to_fmpq(Fraction(float(best.x)))), [
            tuple(pattern.tolist()) for pattern in climbed
        ]


def _climbed(chosen: Booleans, p: Floats, y: Floats, alpha: float) -> Booleans:
    """Return a local maximum of information less price, under exchanges of items."""
    # An exchange is of at most one item for at most one other.
    p, y = np.append(p, 0.0), np.append(y, 0.0)  # the last stands for no item, on either side
    inside = np.append(chosen, True)

    def net(mass: Floats, price: Floats) -> Floats:
        mean = alpha + (1 - alpha) * mass
        return alpha * math.log(alpha) * (1 - mass) - mean * np.log(mean) - (1 - alpha) * price

    while True:
        # A row of two levels has a utility that depends on the mass at level 1 only: all exchanges
        # are valued at once, additions and removals among them by the item that is none.
        leave, enter = np.flatnonzero(inside), np.append(np.flatnonzero(~inside), len(p) - 1)
        mass, price = (p[:-1] @ inside[:-1], y[:-1] @ inside[:-1])
        after = net(mass - p[leave][:, None] + p[enter], price - y[leave][:, None] + y[enter])
        out, into = divmod(int(after.argmax()), len(enter))
        # The last item at level 1 may be replaced, but not removed.
        if after[out, into] <= net(mass, price) + 1e-15 or not (
            inside[:-1].sum() > 1 or into < len(enter) - 1
        ):
            return inside[:-1]
        inside[leave[out]], inside[enter[into]] = False, True
        inside[-1] = True


# ------------------------------------------------------------------------------------------------
# Divergences between the outputs under two hypotheses about the items. Natural logarithms.


_Item: TypeAlias = tuple[fmpq, fmpq, fmpq]

_MAX_INTERVALS = 4_000
_MAX_RATIOS = 200
_FINE = fmpq(1, 1 << 40)


@dataclass(frozen=True, repr=False)
class Divergence(Utility):
    """The utility that is an f-divergence of the outputs under two hypotheses about the items.

    It is the sum over outputs of b f(a/b), with f convex, where a and b are the probabilities of
    the output under the exact distributions ``first`` and ``second`` over the items. A subclass
    gives the slopes of b f(a/b).

    Attributes
    ----------
    first, second : tuple of Fraction
        Exact weights, shape (items,), which sum to 1.

    Raises
    ------
    InvalidPrior
        Weights that are negative or do not sum to 1.
    ValueError
        Different numbers of items.
    """

    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]

    def __init__(self, first: Iterable[Rational], second: Iterable[Rational]) -> None:
        left, right = hypotheses(first, second)
        set_fields(self, first=left, second=right)

    @abstractmethod
    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        """Return the derivatives of b f(a/b) where a/b = t > 0: f'(t) and f(t) - t f'(t)."""

    @property
    def items(self) -> int:
        return len(self.first)

    def worth(self, row: Sequence[fmpq]) -> Number:
        a = sum(
            (to_fmpq(weight) * entry for weight, entry in zip(self.first, row, strict=True)), ZERO
        )
        b = sum(
            (to_fmpq(weight) * entry for weight, entry in zip(self.second, row, strict=True)), ZERO
        )
        # Euler's identity for functions that are homogeneous of degree 1: the value is the sum of
        # the arguments times the derivatives.
        by_a, by_b = self.slopes(a / b)
        return a * by_a + b * by_b

    def merged(self) -> Merged:
        """Merge items of equal likelihood ratio: which was held tells nothing about hypotheses."""
        weights = [a + b for a, b in zip(self.first, self.second, strict=True)]
        keys = [
            a / weight if weight else None for a, weight in zip(self.first, weights, strict=True)
        ]
        label, share = shares(keys, weights)
        return Merged(
            type(self)(summed(self.first, label), summed(self.second, label)), label, share
        )

    def warm_start(self, alpha: fmpq) -> tuple[list[Pattern], list[fmpq]]:
        """Return patterns and prices of a `BestDecision` that bounds the divergence from below."""
        # Each of its decisions is a likelihood ratio t, for which the utility of a row is replaced
        # by a linear lower bound, which is exact for rows of that ratio. Ratios are added until the
        # bound is nearly the utility for every row.
        columns = [(to_fmpq(a), to_fmpq(b)) for a, b in zip(self.first, self.second, strict=True)]
        # No row has a ratio outside of alpha .. 1 / alpha, as a and b are means of its entries.
        ratios = {alpha, ONE, 1 / alpha}
        while True:
            slopes = [self.slopes(t) for t in sorted(ratios)]
            gains = (
                # Rounded down: tangents of the convex b f(a/b) bound it from below, and must go on
                # doing so.
                [to_fraction(lower(a * by_a + b * by_b)) for a, b in columns]
                for by_a, by_b in slopes
            )
            patterns, prices = BestDecision(gains).warm_start(alpha)
            bound, near = self.pricing(prices, alpha)
            rows = ([ONE if high else alpha for high in pattern] for pattern in near)
            sums = (
                [
                    sum((c[side] * entry for c, entry in zip(columns, row, strict=True)), ZERO)
                    for side in (0, 1)
                ]
                for row in rows
            )
            # The ratios of the rows that pricing finds, where the tangents are least tight;
            # rounded, since each round would double the length of the numbers.
            more = {_rounded(a / b) for a, b in sums} - ratios
            if not more or len(ratios) > _MAX_RATIOS or bound <= 2 * _FINE * max(map(abs, prices)):
                return patterns + near, prices
            ratios |= more

    def pricing(self, prices: Sequence[fmpq], alpha: fmpq) -> tuple[fmpq, list[Pattern]]:
        """Return a proved bound and near patterns, by branch and bound over the likelihood ratio t.

        Parameters
        ----------
        prices : sequence of flint.fmpq
            One exact number for each item, shape (items,).
        alpha : flint.fmpq
            The lower of the two entries of a row, in (0, 1].

        Returns
        -------
        tuple[fmpq, list[Pattern]]
            As of `Utility.pricing`.
        """
        # The utility of a row is the largest ``sum_x h_x(t) row[x]`` over t. Here h_x(t) = first[x]
        # slope_a + second[x] slope_b rises up to t = first[x] / second[x] and falls from there,
        # which gives bounds on every interval, and the best row for every t.
        values = _Values(self, prices, alpha)
        best, patterns = ZERO, list[Pattern]()
        heap = [(-values.bound(alpha, 1 / alpha), alpha, 1 / alpha)]
        enough = _FINE * max(map(abs, prices))
        for _ in range(_MAX_INTERVALS):
            # Column generation needs a pattern near the best and a bound of the right order only:
            # both tighten by themselves as the prices become optimal.
            if -heap[0][0] <= best * 3 / 2 + enough:
                break
            _, low, high = heapq.heappop(heap)
            middle = _between(low, high)
            reached, pattern = values.best_row(middle)
            if reached > best / 2:
                patterns.append(pattern)
            best = max(best, reached)
            for part in ((low, middle), (middle, high)):
                heapq.heappush(heap, (-values.bound(*part), *part))
        return -heap[0][0], patterns


class _Values:
    """The value of the items of a row, less their prices, as functions of the likelihood ratio.

    An item is a tuple (a, b, y): its probabilities under the two hypotheses, and its price.
    """

    def __init__(self, divergence: Divergence, prices: Sequence[fmpq], alpha: fmpq) -> None:
        self.items = [
            (to_fmpq(a), to_fmpq(b), y)
            for a, b, y in zip(divergence.first, divergence.second, prices, strict=True)
        ]
        self.alpha = alpha
        self.slopes = lru_cache(maxsize=None)(divergence.slopes)

    def at(self, item: _Item, t: fmpq) -> Number:
        """Return the value of the item, less its price, at the ratio t."""
        a, b, y = item
        by_a, by_b = self.slopes(t)
        return a * by_a + b * by_b - y

    def most(self, item: _Item, low: fmpq, high: fmpq) -> fmpq:
        """Return the largest value over low .. high: it rises up to t = a / b, and falls then."""
        a, b, _ = item
        return upper(self.at(item, high if a >= high * b else max(low, a / b)))

    def bound(self, low: fmpq, high: fmpq) -> fmpq:
        """Return an upper bound on a row's value less its price, for ratios in low .. high."""
        # Items that are at the same level for all of these ratios are bounded together, more
        # tightly.
        fixed, rest = (ZERO, ZERO, ZERO), ZERO
        for item in self.items:
            most = self.most(item, low, high)
            # Unimodal: the least value is at an end, the largest inside or at an end.
            least = min(lower(self.at(item, low)), lower(self.at(item, high)))
            # Decided for every ratio here: the sum of these items is an item itself, whose maximum
            # over t is at one ratio, where their own maxima would each be at another.
            if most <= 0 or least >= 0:
                level = self.alpha if most <= 0 else ONE
                a, b, y = item
                fixed = fixed[0] + level * a, fixed[1] + level * b, fixed[2] + level * y
            else:
                rest += most
        return self.most(fixed, low, high) + rest if fixed[0] or fixed[1] else rest - fixed[2]

    def best_row(self, t: fmpq) -> tuple[fmpq, Pattern]:
        """Return an upper bound on a row's value less its price at ratio t, and the best row."""
        values = [upper(self.at(item, t)) for item in self.items]
        reached = sum((max(value, self.alpha * value) for value in values), ZERO)
        return reached, tuple(value > 0 for value in values)


class KullbackLeibler(Divergence):
    """The relative entropy of the outputs under the first hypothesis from the second, in nats."""

    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        return arb(t).log() + 1, -t


class ChiSquareDivergence(Divergence):
    """Pearson's divergence: the sum over outputs of (a - b)^2 / b. Rational."""

    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        return 2 * (t - 1), 1 - t * t


class Hellinger(Divergence):
    """The squared Hellinger distance, 1 - sum over outputs of sqrt(a b)."""

    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        root = arb(t).sqrt()
        return (1 - 1 / root) / 2, (1 - root) / 2


def _rounded(value: fmpq) -> fmpq:
    """Return a number rounded down to about 30 digits, so that numbers stay short; value > 0."""
    shift = 100 + int(value.q).bit_length() - int(value.p).bit_length()
    return (value * fmpq(2) ** shift).floor() / fmpq(2) ** shift


def _between(low: fmpq, high: fmpq) -> fmpq:
    """Return the midpoint, geometric where high / low is large."""
    apart = (int(high.p) * int(low.q)).bit_length() - (int(low.p) * int(high.q)).bit_length()
    # By bit lengths: the exact geometric mean is irrational, and any point between will do.
    return low * (1 << (apart // 2)) if apart > 3 else (low + high) / 2
