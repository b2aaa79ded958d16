"""The number of ones among shuffled bits: its privacy exactly, but for bounds that nearly meet.

A report is 1 with probability a or b, a < b, by the user's value. Among the N = n - 1 other users,
m have the larger probability; S is the number of ones among their reports, f(k) = Pr[S = k]. User 1
has b in the first dataset, a in its neighbour. With t = e^epsilon, c = b - t a > 0 and w = c + t -
1, the laws P and P' of the number of all ones give

    h(k) = P(k) - t P'(k) = c f(k - 1) - w f(k).

1. *One threshold.* f(k - 1) / f(k) never falls, as f is log-concave: its generating function is a
   product of polynomials of degree one. So h changes its sign once, at the threshold T, and

       delta_m = sum over k >= T of h(k) = max over k of g(k),
       g(k) = sum over j >= k of h(j) = c f(k - 1) - (t - 1) Pr[S >= k].

   The other order of the neighbours is this one with zeros for ones: 1 - b and 1 - a for a and b.
2. *Thresholds move slowly.* Let T' be the threshold with one of the others less, f' the law of
   their ones. A user of probability p more makes f(k - 1) / f(k) the mediant of that ratio of f' at
   k - 1 and at k, with weights p f'(k - 1) and (1 - p) f'(k): T is T' or T' + 1, and the larger the
   larger p is. So from m to m + 1 the threshold stays, or rises by one.
3. *All compositions at once.* g(k) is the coefficient at z^k of K(z) M(z) for |z| > 1, with

       M(z) = (1 - a + a z)^(N - m) (1 - b + b z)^m,   K(z) = z (c - (t - 1) / (z - 1)).

   The mean of K(z) M(z) z^-k over P points of a circle, |z| = r > 1, is the sum over all l of g(k +
   l P) r^(l P). What is not g(k) is at most (c + w) r^-P / (1 - r^-P) from below; from above at
   most (c q + w) M(q) q^-k x / (1 - x), x = (r / q)^P, for any q > r (Chernoff). Most points count
   nothing: |M| falls from the real axis to the other side. What is left is a short sum of
   exponentials of m and k, which may be real numbers from here on. On a rectangle of m and y, with
   k = slope m + y, it is at most its largest value at a corner plus an eighth of the squared sides
   times its largest second derivatives (linear interpolation), which are bounded term by term.

The maximum over m is found by branch and bound on intervals of m. Where f is wide, thresholds are
real: those outside a range of y are excluded by 1, as h < 0 on its lowest unit interval, h > 0 on
its highest, and one integer is in each. Where f is narrow they are integers, in a range given by 2.

All of it is in balls (python-flint). Floats choose circles and rectangles only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise

import numpy as np
import scipy
from flint import arb, arb_poly

from mechdesign.accounting.bit_sums import AHEAD, AtRatio, Bits, Box, CircleSum
from mechdesign.base import Floats, ball, precision

_BITS = 128  # the precision in bits, beyond those of the number of users

_LISTED = 64  # up to so many others everything is listed

# How much of the largest delta may be added to it, up to some variances of the number of ones: of
# narrow and of wide laws little, where that takes hardly longer.
_TOLERANCES = (
    (300, Fraction(1, 10_000)),
    (2000, Fraction(1, 500)),
    (100_000, Fraction(1, 2000)),
    (math.inf, Fraction(1, 5000)),
)

# The variance from which thresholds may be taken as real numbers, and that up to which this is not
# even tried.
_WIDE, _NARROW = 300.0, 9.0

_ENDS = 4  # how many compositions at either end are evaluated first

_LEAST = arb(2) ** -150  # the delta below which nothing is searched

# The delta below which the search of narrow laws, which would take many intervals, is given up.
_TINY = arb(2) ** -45

_MOST_PIECES = 16  # into how many an interval is split at once

_MOST_PARTS = 400  # into how many parts a range of thresholds is cut

_MOST_INTERVALS = 2000  # after so many the search is given up

_UNIT = 4  # into how many parts unit intervals are cut to prove a sign

_STEPS = 64  # how often a threshold is looked for elsewhere

_FEW = 100  # how many reports may differ from the likely ones for their law to be listed

_PLACES = np.arange(int(_FEW + 12 * math.sqrt(_FEW)))

_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class ShuffledBits(Bits):
    """The privacy of n shuffled bits, for one order of two neighbours: see the module."""

    def delta(self, ratio: Fraction) -> tuple[arb, arb]:
        """Return bounds on the largest delta of all compositions of the others.

        Parameters
        ----------
        ratio : Fraction
            e^epsilon, at least 1.

        Returns
        -------
        tuple of arb
            At most delta, and at least delta: nearly the same, unless the search is given up.
        """
        if self.high <= ratio * self.low:
            return arb(0), arb(0)
        with precision(self._bits):
            if self.others <= _LISTED:
                delta = self._listed(ratio)
                return delta, delta
            return _Search(self, ratio).bounds()

    def delta_at_ends(self, ratio: Fraction) -> arb:
        """Return at most the largest delta, and about that: of others who are nearly all alike."""
        if self.high <= ratio * self.low:
            return arb(0)
        with precision(self._bits):
            if self.others <= _LISTED:
                return self._listed(ratio)
            return _Search(self, ratio).at_ends()

    def _listed(self, ratio: Fraction) -> arb:
        """Return the largest delta by listing all compositions and all numbers of ones."""
        a, b, gain = ball(self.low), ball(self.high), self.high - ratio * self.low
        # Exact, before they are balls: both may be far smaller than a and b.
        difference = arb_poly([ball(1 - ratio - gain), ball(gain)])
        zeros, ones = ([arb_poly([1])] * (self.others + 1) for _ in range(2))
        for m in range(self.others):
            zeros[m + 1] = zeros[m] * arb_poly([1 - a, a])
            ones[m + 1] = ones[m] * arb_poly([1 - b, b])
        deltas = (
            sum((h.max(arb(0)) for h in zeros[self.others - m] * ones[m] * difference), arb(0))
            for m in range(self.others + 1)
        )
        return reduce(arb.max, deltas)

    @property
    def wide(self) -> bool:
        """Whether the number of ones has so large a variance that the search takes no time."""
        return self._variance > _WIDE

    @property
    def _variance(self) -> Fraction:
        """The least variance of the number of ones."""
        return self.others * min(p * (1 - p) for p in (self.low, self.high))

    @cached_property
    def nearly(self) -> Fraction:
        """How much of delta is added to it at most, nearly always."""
        return next(tolerance for most, tolerance in _TOLERANCES if self._variance <= most)

    @property
    def _bits(self) -> int:
        # Exponents are multiplied by the number of users, and with them their errors.
        return _BITS + self.others.bit_length()


def orders_of_bits(rows: Sequence[Sequence[int]], n: int) -> tuple[ShuffledBits, ...]:
    """Return the two orders of neighbours, those that differ, for a table of two reports.

    Shapes: `rows` (2, values), probabilities in units of the sum of each column.
    """
    total, ones = rows[0][0] + rows[1][0], rows[1]
    if min(ones) == max(ones):
        return ()
    bits = ShuffledBits(Fraction(min(ones), total), Fraction(max(ones), total), n - 1)
    return tuple(dict.fromkeys((bits, bits.mirrored)))


class _Search:
    """Branch and bound over the compositions, for one ratio."""

    def __init__(self, bits: ShuffledBits, ratio: Fraction) -> None:
        self.bits, self.at = bits, AtRatio(bits, ratio)
        self._nearly = ball(bits.nearly)
        self.best = arb(0)  # a lower bound on the largest delta
        self._thresholds: dict[int, int] = {}
        self._laws: dict[float, tuple[Floats, int]] = {}
        self.accepted = arb(0)  # an upper bound on that of all compositions done with

    def at_ends(self) -> arb:
        n = self.bits.others
        for m in sorted({*range(min(_ENDS, n + 1)), *range(max(0, n + 1 - _ENDS), n + 1)}):
            self._threshold(m)
        return self.best

    def bounds(self) -> tuple[arb, arb]:
        self.at_ends()
        if self.at.gain <= self._enough:
            return self.best, self.at.gain  # no delta is larger
        if self.best < (_LEAST if self.bits.wide else _TINY):
            return self.best, self.at.gain
        intervals, looked = [(0, self.bits.others)], 0
        while intervals:
            looked += 1
            if looked > _MOST_INTERVALS:
                return self.best, self.at.gain
            first, last = intervals.pop()
            pieces = 0 if self._negligible(first, last) else self._pieces(first, last)
            intervals += _split(first, last, pieces) if pieces else []
        return self.best, self.accepted.max(self._enough)

    def _threshold(self, m: int) -> int:
        """Return about the threshold; raise the lower bound by the delta there."""
        if m in self._thresholds:
            return self._thresholds[m]
        k = min(max(round(self._guess(m)), 1), self.bits.others + 1)
        around = CircleSum(self.bits, self.at, m, k)
        begin = k - AHEAD // 2
        for _ in range(_STEPS):
            of_g, of_h = around.rows(arb(m), arb(begin), AHEAD)
            if of_h[0] > 0 and begin > 0:
                begin -= AHEAD - 2
            elif of_h[-1] < 0 and begin + AHEAD <= self.bits.others:
                begin += AHEAD - 2
            else:
                break
        within = range(max(begin, 0), min(begin + AHEAD, self.bits.others + 2))
        k = max(within, key=lambda k: of_g[k - begin])
        # Any k gives a lower bound on delta.
        error = around.error(Box(m, m, 0.0, k, k))
        self.best = self.best.max(arb((of_g[k - begin] - error).lower()))
        self._thresholds[m] = k
        return k

    def _pieces(self, first: int, last: int) -> int:
        """Bound delta for an interval; return into how many it is to be split, 0 if done with."""
        # What thresholds move by from m to m + 1, which is about the difference of the means
        drift = self.bits.tilted((first + last) / 2, self.at.tilt)[3]
        slope = round(drift)
        if self._few:
            slope = sum(self._likely) % 2
            apart = self._guess(last) - self._guess(first) - slope * (last - first)
            close = abs(apart) <= 2
        else:
            close = abs(drift - slope) * (last - first) <= 1
        if close:
            return self._with_whole_thresholds(first, last, slope)
        return self._with_real_thresholds(first, last)

    @cached_property
    def _likely(self) -> tuple[bool, bool]:
        """Whether each of the two values is likelier to report a one."""
        return self.bits.low > _HALF, self.bits.high > _HALF

    @cached_property
    def _few(self) -> bool:
        """Whether few reports differ from the likely ones, whatever the composition."""
        p, q = self.bits.low, self.bits.high
        return self.bits.others * max(min(p, 1 - p), min(q, 1 - q)) < _FEW

    def _law(self, m: float) -> tuple[Floats, int]:
        """Return the law of the number of ones in floats, and the least number listed."""
        if m not in self._laws:
            least, laws = 0, []
            for odds, times, likely in zip(
                self.bits.log_odds, (self.bits.others - int(m), int(m)), self._likely, strict=True
            ):
                # Of the unlikely reports: p^k (1 - p)^(times - k) times / k ...
                odds = -odds if likely else odds
                logs = (
                    scipy.special.gammaln(times + 1.0)
                    - scipy.special.gammaln(np.maximum(times - _PLACES, 0) + 1.0)
                    - scipy.special.gammaln(_PLACES + 1.0)
                    + _PLACES * odds
                    - times * np.logaddexp(0, odds)
                )
                law = np.where(times >= _PLACES, np.exp(logs), 0.0)
                laws.append(law[::-1] if likely else law)
                least += times - len(law) + 1 if likely else 0
            self._laws[m] = np.convolve(laws[0], laws[1]), least
        return self._laws[m]

    def _negligible(self, first: int, last: int) -> bool:
        """Whether all deltas of an interval are proved to be below the largest one found."""
        if not self._few:
            return False
        # T is at least K, or m + K, if h is below 0 before that at the one end, by 2; delta is at
        # most c Pr[S >= T - 1], which rises with m, or falls in the other frame.
        slope = sum(self._likely) % 2
        begin, end = (last, first) if slope else (first, last)
        law, least = self._law(end)
        above = np.cumsum(law[::-1])[::-1] * float(self.at.gain)
        k = least + int(np.searchsorted(-above, -float(self.best) / 10))
        before = k + slope * (begin - end)
        if before > 0:
            around = CircleSum(self.bits, self.at, begin, before)
            (h,) = around.rows(arb(begin), arb(before), 1)[1]
            if not h < -around.error(Box(begin, begin, 0.0, before, before)):
                return False
        tail = self.at.gain * CircleSum(self.bits, self.at, end, k).chernoff(end, k)
        return bool(tail <= self._enough)

    def _guess(self, m: float) -> float:
        """Return about the threshold, as a real number."""
        bits = self.bits
        if self._few:
            law, least = self._law(m)
            past = np.flatnonzero(law[:-1] * float(self.at.gain) >= law[1:] * float(self.at.loss))
            past = past[law[past] > 1e-280]  # not where floats end
            return float(least + (past[0] + 1 if len(past) else len(law) - 1))
        # f(k) is about e^(log M - s k) / sqrt(2 pi V) at the tilt s of mean k: minus the derivative
        # of its logarithm is s + V' / 2 V^2 at the middle between k - 1 and k.
        _, variance, third, _ = bits.tilted(m, self.at.tilt)
        shift = third / (2 * max(variance, 0.25) ** 2)
        return bits.tilted(m, self.at.tilt - min(max(shift, -1.0), 1.0))[0] + 0.5

    @property
    def _enough(self) -> arb:
        return self.best.max(_LEAST) * (1 + self._nearly)

    def _with_real_thresholds(self, first: int, last: int) -> int:
        """Bound delta for an interval; return into how many it is to be split, 0 if done with."""
        middle, sides = (first + last) / 2, (first, last)
        _, variance, _, slope = self.bits.tilted(middle, self.at.tilt)
        if variance < _NARROW:
            return 2
        around, wide = CircleSum(self.bits, self.at, middle, self._guess(middle)), variance > _WIDE
        ys = [self._guess(m) - slope * m for m in sides]
        margin = 1.5 + 0.05 * math.sqrt(variance)
        box = Box(first, last, slope, min(ys) - margin, max(ys) + margin)
        (along_m, along_k), (steps_m, steps_k) = around.bends(box)
        eighth, error = arb((last - first) ** 2) / 8, around.error(box)
        # A unit interval of y at either side, where h must have the sign that excludes what is
        # beyond
        rest = steps_m * eighth + steps_k / (8 * _UNIT**2) + error
        for y, sign in ((arb(box.low), -1), (arb(box.high) - 1, 1)):
            for m in sides:
                _, of_h = around.rows(arb(m), box.k(m, y), _UNIT + 1, arb(1) / _UNIT)
                if not all(sign * h > rest for h in of_h):
                    return 2
        goal, rest = self._enough * self._nearly, along_m * eighth
        pieces = _root(rest / goal, _MOST_PIECES)
        if pieces > 1 and wide:
            return pieces
        width = arb(box.high) - arb(box.low)
        parts = _root(along_k * width**2 / (8 * goal), _MOST_PARTS)
        largest = arb.neg_inf()
        for m in sides:
            of_g, _ = around.rows(arb(m), box.k(m, arb(box.low)), parts + 1, width / parts)
            largest = max_of([largest, *of_g])
        bound = largest + rest + along_k * (width / parts) ** 2 / 8 + error
        if bound <= self._enough:
            return 0
        if not wide:
            return 2
        self.accepted = self.accepted.max(bound)
        return 0

    def _with_whole_thresholds(self, first: int, last: int, slope: int) -> int:
        """The same, where thresholds are integers: k = y, or k = m + y, whichever moves less."""
        # From m to m + 1 the threshold stays or rises by one: k falls nowhere, and k - m rises
        # nowhere. One end tells the least y, the other the largest.
        most, sides, middle = self.bits.others + 1, {first, last}, (first + last) // 2
        near = self._threshold(first) if first == last else round(self._guess(middle))
        start, count = near - slope * middle - AHEAD // 2, AHEAD
        around = CircleSum(self.bits, self.at, middle, near)
        begin, end = (last, first) if slope else (first, last)
        error = around.error(Box(first, last, slope, start, start))
        sums = {m: around.rows(arb(m), arb(slope * m + start), count) for m in sides}
        passed = [
            i for i in range(count) if slope * begin + start + i <= 0 or sums[begin][1][i] < -error
        ]
        reached = [
            i for i in range(count) if slope * end + start + i >= most or sums[end][1][i] > error
        ]
        if not passed or not reached:
            if first == last:
                self.accepted = self.accepted.max(self.at.gain)  # no delta is larger
            return 2 * (last > first)
        low, high = min(passed[-1] + 1, reached[0]), reached[0]
        rest = error
        if last > first:
            box = Box(first, last, slope, start + low, start + high)
            rest += around.bends(box)[0][0] * arb((last - first) ** 2) / 8
        bound = max_of([g for of_g, _ in sums.values() for g in of_g[low : high + 1]]) + rest
        if bound <= self._enough:
            return 0
        if last > first and not rest <= self._enough * self._nearly / 2:
            return 2
        self.accepted = self.accepted.max(bound)
        return 0


def max_of(values: Sequence[arb]) -> arb:
    """Return the largest of some balls, at least one."""
    return reduce(arb.max, values)


def _split(first: int, last: int, pieces: int) -> Sequence[tuple[int, int]]:
    """Return intervals that have all whole numbers from the first to the last among them."""
    pieces = min(pieces, last - first + 1)
    ends = [first + (last - first + 1) * part // pieces for part in range(pieces + 1)]
    return [(begin, end - 1) for begin, end in pairwise(ends)]


def _root(squared: arb, most: int) -> int:
    """Return the square root of what a ball is at most, rounded up, from 1 to ``most``."""
    size = float(squared.upper())
    return min(most, math.ceil(math.sqrt(max(1.0, min(size, 1e12)))))
