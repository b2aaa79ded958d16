"""Divergences between the outputs under two hypotheses about the items. Natural logarithms."""

from __future__ import annotations

import heapq
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, fmpq

from mechdesign._support.numbers import Rational
from mechdesign.lp.basis import ONE, ZERO, to_fmpq, to_fraction
from mechdesign.utilities.decisions import BestDecision
from mechdesign.utilities.sublinear_utility import (
    Merged,
    Number,
    Pattern,
    Utility,
    hypotheses,
    lower,
    shares,
    summed,
    upper,
)

_MAX_INTERVALS = 4_000
_MAX_RATIOS = 200
_FINE = fmpq(1, 1 << 40)


@dataclass(frozen=True, repr=False)
class Divergence(Utility):
    """An f-divergence of the outputs under two hypotheses about the items.

    It is the sum over outputs of b f(a/b), with f convex, where a and b are the probabilities of
    the output under the exact distributions ``first`` and ``second`` over the items. A subclass
    gives the slopes of b f(a/b).

    Attributes
    ----------
    first, second
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
        object.__setattr__(self, "first", left)
        object.__setattr__(self, "second", right)

    @abstractmethod
    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        """The derivatives of b f(a/b) by a and by b where a/b = t > 0: f'(t) and f(t) - t f'(t)."""

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
        by_a, by_b = self.slopes(a / b)
        return a * by_a + b * by_b

    def merged(self) -> Merged:
        """Items with the same likelihood ratio are one.

        Which of them it was does not help to tell the hypotheses apart.
        """
        weights = [a + b for a, b in zip(self.first, self.second, strict=True)]
        keys = [
            a / weight if weight else None for a, weight in zip(self.first, weights, strict=True)
        ]
        label, share = shares(keys, weights)
        return Merged(
            type(self)(summed(self.first, label), summed(self.second, label)), label, share
        )

    def likely(self, alpha: fmpq) -> tuple[list[Pattern], list[fmpq]]:
        """Patterns and prices of a `BestDecision` that bounds the divergence from below.

        It decides between likelihood ratios t, for each of which the worth of a row is replaced by
        a linear function. That is no more than its worth, and exact at its own ratio: ratios are
        added until no row is worth noticeably more.
        """
        columns = [(to_fmpq(a), to_fmpq(b)) for a, b in zip(self.first, self.second, strict=True)]
        ratios = {alpha, ONE, 1 / alpha}
        while True:
            slopes = [self.slopes(t) for t in sorted(ratios)]
            gains = (
                [to_fraction(lower(a * by_a + b * by_b)) for a, b in columns]
                for by_a, by_b in slopes
            )
            patterns, prices = BestDecision(gains).likely(alpha)
            bound, found = self.pricing(prices, alpha)
            rows = ([ONE if high else alpha for high in pattern] for pattern in found)
            sums = (
                [
                    sum((c[side] * entry for c, entry in zip(columns, row, strict=True)), ZERO)
                    for side in (0, 1)
                ]
                for row in rows
            )
            more = {_rounded(a / b) for a, b in sums} - ratios
            if not more or len(ratios) > _MAX_RATIOS or bound <= 2 * _FINE * max(map(abs, prices)):
                return patterns + found, prices
            ratios |= more

    def pricing(self, prices: Sequence[fmpq], alpha: fmpq) -> tuple[fmpq, list[Pattern]]:
        """Branch and bound over the likelihood ratio t of the row.

        A row is worth the largest ``sum_x h_x(t) row[x]`` over t, where h_x = first[x] slope_a +
        second[x] slope_b rises up to t = first[x] / second[x] and falls from there: bounds on an
        interval follow, and for every t the best row.

        Parameters
        ----------
        prices
            One exact number for each item, shape (items,).
        alpha
            The lower of the two entries of a row, in (0, 1].

        Returns
        -------
        tuple[fmpq, list[Pattern]]
            A proved upper bound on ``worth(row) - prices row``, and patterns of rows that come near
            it.
        """
        columns = [
            (to_fmpq(a), to_fmpq(b), y)
            for a, b, y in zip(self.first, self.second, prices, strict=True)
        ]
        known: dict[fmpq, tuple[Number, Number]] = {}

        def net(a: fmpq, b: fmpq, y: fmpq, t: fmpq) -> Number:
            by_a, by_b = known[t] if t in known else known.setdefault(t, self.slopes(t))
            return a * by_a + b * by_b - y

        def largest(a: fmpq, b: fmpq, y: fmpq, low: fmpq, high: fmpq) -> fmpq:
            return upper(net(a, b, y, high if a >= high * b else max(low, a / b)))

        def bound(low: fmpq, high: fmpq) -> fmpq:
            # What is at the same level for all t goes together, without slack
            fixed, rest = (ZERO, ZERO, ZERO), ZERO
            for column in columns:
                most = largest(*column, low, high)
                least = min(lower(net(*column, low)), lower(net(*column, high)))
                if most <= 0 or least >= 0:
                    level = alpha if most <= 0 else ONE
                    fixed = (
                        fixed[0] + level * column[0],
                        fixed[1] + level * column[1],
                        fixed[2] + level * column[2],
                    )
                else:
                    rest += most
            return largest(*fixed, low, high) + rest if fixed[0] or fixed[1] else rest - fixed[2]

        best, patterns = ZERO, list[Pattern]()
        heap = [(-bound(alpha, 1 / alpha), alpha, 1 / alpha)]
        enough = _FINE * max(map(abs, prices))
        for _ in range(_MAX_INTERVALS):
            if -heap[0][0] <= best * 3 / 2 + enough:
                break
            _, low, high = heapq.heappop(heap)
            middle = _between(low, high)
            values = [upper(net(*column, middle)) for column in columns]
            reached = sum((max(value, alpha * value) for value in values), ZERO)
            if reached > best / 2:
                patterns.append(tuple(value > 0 for value in values))
            best = max(best, reached)
            for part in ((low, middle), (middle, high)):
                heapq.heappush(heap, (-bound(*part), *part))
        return -heap[0][0], patterns


class KullbackLeibler(Divergence):
    """The relative entropy of the outputs under the first hypothesis from the second, in nats."""

    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        return arb(t).log() + 1, -t


class ChiSquareDivergence(Divergence):
    """Pearson's: the sum over outputs of (a - b)^2 / b. Rational."""

    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        return 2 * (t - 1), 1 - t * t


class Hellinger(Divergence):
    """The squared Hellinger distance, 1 - sum over outputs of sqrt(a b)."""

    def slopes(self, t: fmpq) -> tuple[Number, Number]:
        root = arb(t).sqrt()
        return (1 - 1 / root) / 2, (1 - root) / 2


def _rounded(value: fmpq) -> fmpq:
    """To some thirty digits in binary, so that numbers stay short; value > 0."""
    shift = 100 + int(value.q).bit_length() - int(value.p).bit_length()
    return (value * fmpq(2) ** shift).floor() / fmpq(2) ** shift


def _between(low: fmpq, high: fmpq) -> fmpq:
    """Half way: by ratio where it is large."""
    apart = (int(high.p) * int(low.q)).bit_length() - (int(low.p) * int(high.q)).bit_length()
    return low * (1 << (apart // 2)) if apart > 3 else (low + high) / 2
