"""The number of ones among independent bits: short sums for its law, on a circle, in balls.

The notation, and why the sums are short, is that of `mechdesign.accounting.shuffled_bits`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
import scipy
from flint import acb, acb_mat, arb

from mechdesign.base import ball, precision

_BITS = 128  # the precision of the logarithms of odds

_NEGLIGIBLE = 34.0  # the negative logarithm of what is left out, relative to the largest term

_HALVINGS = 12  # the number of bisections by which the tilt is found

AHEAD = 8  #: How many numbers of ones are looked at together.


@dataclass(frozen=True)
class Bits:
    """The ones among n bits, for one order of two neighbours: see the module.

    Attributes
    ----------
    low, high : Fraction
        The least and the largest probability of a one, 0 < low < high < 1. User 1 has the larger
        one in the first dataset. Values with probabilities between them are mixtures of the two,
        and reveal no more.
    others : int
        The number of the other users, at least 0.
    """

    low: Fraction
    high: Fraction
    others: int

    @property
    def mirrored(self) -> Self:
        """The other order of the neighbours, with zeros for ones."""
        return type(self)(1 - self.high, 1 - self.low, self.others)

    @lru_cache(maxsize=64)  # noqa: B019
    def circle(self, tilt: float, period: int, count: int) -> Circle:
        return Circle(self, tilt, period, count)

    @cached_property
    def log_odds(self) -> tuple[float, float]:
        """The logarithms of the odds of a one, in floats."""
        with precision(_BITS):
            first, second = (float(ball(p / (1 - p)).log()) for p in (self.low, self.high))
        return first, second

    def tilted(self, m: float, tilt: float) -> tuple[float, float, float, float]:
        """Return mean, variance and third moment of S with weights e^(tilt k), and the slope."""
        p, q = (float(scipy.special.expit(odds + tilt)) for odds in self.log_odds)
        u, v = (float(scipy.special.expit(-odds - tilt)) for odds in self.log_odds)
        k = self.others - m
        return (
            k * p + m * q,
            k * p * u + m * q * v,
            k * p * u * (u - p) + m * q * v * (v - q),
            q - p,
        )


class AtRatio:
    """The constants of the module for one ratio t = e^epsilon, as balls.

    Attributes
    ----------
    low, high : arb
        The probabilities a and b.
    gain, loss, more : arb
        The numbers c, w and t - 1; c is above 0.
    tilt : float
        The logarithm of w / c, where the ratio f(k - 1) / f(k) is at the threshold: about the tilt
        there.
    """

    def __init__(self, bits: Bits, ratio: Fraction) -> None:
        gain = bits.high - ratio * bits.low
        self.low, self.high = ball(bits.low), ball(bits.high)
        self.gain, self.loss, self.more = ball(gain), ball(gain + ratio - 1), ball(ratio - 1)
        self.tilt = float((self.loss / self.gain).log())


@dataclass(frozen=True)
class Box:
    """Compositions first <= m <= last, and thresholds k = slope m + y with low <= y <= high."""

    first: int
    last: int
    slope: float
    low: float
    high: float

    def k(self, m: int, y: arb) -> arb:
        """The threshold k at a composition and an offset."""
        return arb(self.slope) * m + y


def _powers(z: acb, count: int) -> list[acb]:
    powers = [acb(1)]
    while len(powers) < count:
        powers.append(powers[-1] * z)
    return powers


class Circle:
    """Points on one side of a circle, which are few, and the logarithms that M is made of."""

    def __init__(self, bits: Bits, tilt: float, period: int, count: int) -> None:
        self.tilt, self.period = tilt, period
        a, b = ball(bits.low), ball(bits.high)
        step = 2 * arb.pi() / period
        #: The logarithms s of the points z.
        self.steps = [acb(arb(tilt), step * j) for j in range(count)]
        self.points = [s.exp() for s in self.steps]
        self.first = [(1 - a + a * z).log() for z in self.points]
        self.second = [(1 - b + b * z).log() for z in self.points]
        #: Weights of the mean over all points: those on the other side are conjugate.
        self.weights = [arb(1) / period, *[arb(2) / period] * (count - 1)]
        #: 1, 1 / z, 1 / z^2 ... of each point: to go from k to k + 1.
        self.ahead = acb_mat([_powers(1 / z, AHEAD) for z in self.points])


class CircleSum:
    """The short sum for g and h around a composition m and a number k of ones."""

    def __init__(self, bits: Bits, at: AtRatio, m: float, k: float) -> None:
        self._at, self._bits = at, bits
        self._others = others = bits.others
        saddle = self._saddle(m, k)
        # As for the mean of a positive part, whose transform 1 / s^2 moves the saddle point away
        # from 0. Rounded, so that points are those of another epsilon.
        variance = max(bits.tilted(m, saddle)[1], 0.25)
        tilt = (saddle + math.sqrt(saddle**2 + 8 / variance)) / 2
        self._tilt = tilt = math.exp2(round(8 * math.log2(tilt)) / 8)
        deviation = max(math.sqrt(bits.tilted(m, tilt)[1]), 0.5)
        radius = arb(tilt).exp()

        def size(s: float) -> float:
            """log M, in floats."""
            z = arb(s).exp()
            first, second = 1 + at.low * (z - 1), 1 + at.high * (z - 1)
            return float((others - m) * first.log() + m * second.log())

        # From below comes back about r^-P, from above M(q) q^(-k - P) r^P: relative to M(r) r^-k
        here = size(tilt)
        down = (_NEGLIGIBLE + max(0.0, k * tilt - here)) / tilt
        self._beyond, up = min(
            (
                (x, (size(tilt + x) - here + _NEGLIGIBLE) / x - k)
                for x in (2 / deviation, 8 / deviation)
            ),
            key=lambda pair: pair[1],
        )
        length = max(down, min(up, others + 2.0 - k) + AHEAD, 1.0)
        self._period = period = (
            2 * math.ceil(math.exp2(math.ceil(8 * math.log2(length)) / 8) / 2) + 1
        )
        half = (period - 1) // 2
        look = min(half, int(10 * period / (2 * math.pi * deviation)) + 16)
        cosines = np.cos(2 * math.pi / period * np.arange(look + 1))
        fall = np.zeros(look + 1)
        for odds, times in zip(bits.log_odds, (others - m, m), strict=True):
            spread = float(scipy.special.expit(odds + tilt) * scipy.special.expit(-odds - tilt))
            # |1 - p + p z|^2 over its value on the real axis, with the tilted p
            fall += times / 2 * np.log1p(np.maximum(-2 * spread * (1 - cosines), -1 + 2e-16))
        count = min(int(np.searchsorted(-fall, _NEGLIGIBLE)), look) + 1
        self._complete = count == half + 1
        self._circle = circle = bits.circle(tilt, period, count)
        c, w, more = at.gain, at.loss, at.more
        pairs = list(zip(circle.weights, circle.points, strict=True))
        self._of_g = [x * z * (c - more / (z - 1)) for x, z in pairs]
        self._of_h = [x * (c * z - w) for x, z in pairs]
        # |K|, and |c z - w|, are at most this.
        self._largest = radius * (c + more / (radius - 1)) + w

    def _saddle(self, m: float, k: float) -> float:
        """Return a tilt, at least 0 and at most that of the ratio, with about k ones on average."""
        bits, low, high = self._bits, 0.0, self._at.tilt
        for _ in range(_HALVINGS):
            mean, variance, _, _ = bits.tilted(m, high)
            if mean - k <= math.sqrt(variance):
                break
            middle = (low + high) / 2
            low, high = (low, middle) if bits.tilted(m, middle)[0] > k else (middle, high)
        return high

    def rows(self, m: arb, k: arb, count: int, step: arb | None = None) -> list[list[arb]]:
        """Return the sums for g, and those for h, at k, k + step, ... (by default 1)."""
        kept, circle = self._others - m, self._circle
        exponents = zip(circle.first, circle.second, circle.steps, strict=True)
        terms = [(kept * u + m * v - k * s).exp() for u, v, s in exponents]
        kernels = [
            [x * e for x, e in zip(of, terms, strict=True)] for of in (self._of_g, self._of_h)
        ]
        if step is None and count <= AHEAD:
            ahead = circle.ahead
        else:
            turns = [(-s * (1 if step is None else step)).exp() for s in circle.steps]
            ahead = acb_mat([_powers(z, count) for z in turns])
        found = (acb_mat(kernels) * ahead).tolist()
        return [[value.real for value in row[:count]] for row in found]

    def chernoff(self, m: int, k: int) -> arb:
        """Return at least Pr[S >= k]."""
        u, v = self._circle.first[0].real, self._circle.second[0].real
        return ((self._others - m) * u + m * v - k * arb(self._tilt)).exp().min(arb(1))

    def bends(self, box: Box) -> list[tuple[arb, arb]]:
        """Return at least the second derivatives along m and along k, of g and of h."""
        along_m, along_k = [arb(0), arb(0)], [arb(0), arb(0)]
        slope, circle = arb(box.slope), self._circle
        for u, v, s, *kernels in zip(
            circle.first, circle.second, circle.steps, self._of_g, self._of_h, strict=True
        ):
            turn = v - u - slope * s
            size = self._size(box, u.real, turn.real, s.real).exp()
            squares = turn.real**2 + turn.imag**2, s.real**2 + s.imag**2
            for i, kernel in enumerate(kernels):
                weight = abs(kernel) * size
                along_m[i] += weight * squares[0]
                along_k[i] += weight * squares[1]
        return list(zip(along_m, along_k, strict=True))

    def error(self, box: Box) -> arb:
        """Return at least what the sums for g and h are off at whole m and k in a rectangle."""
        at, circle, slope = self._at, self._circle, arb(box.slope)
        tilt, period = arb(self._tilt), self._period
        back = (-tilt * period).exp()
        total = (at.gain + at.loss) * back / (1 - back)
        # Beyond the support, which ends at N + 1 for g and h, nothing comes back from above.
        if period <= self._others + 3 - math.floor(box.slope * box.first + box.low):
            s = tilt + arb(self._beyond)
            q = s.exp()
            first = (1 - at.low + at.low * q).log()
            turn = (1 - at.high + at.high * q).log() - first - slope * s
            size = self._size(box, first, turn, s).exp()
            x = (-arb(self._beyond) * period).exp()
            total += (at.gain * q + at.loss) * size * x / (1 - x)
        if not self._complete:
            # |1 - p + p z| falls along the circle: the last point seen bounds those beyond.
            first, second = circle.first[-1].real, circle.second[-1].real
            size = self._size(box, first, second - first - slope * tilt, tilt)
            total += self._largest * size.exp()
        return total

    def _size(self, box: Box, first: arb, turn: arb, tilt: arb) -> arb:
        """Return the largest real part of an exponent, which is linear, on a rectangle."""
        ends = (arb(box.first) * turn).max(arb(box.last) * turn)
        return self._others * first + ends - arb(box.low) * tilt
