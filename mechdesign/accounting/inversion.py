"""Rigorous bounds on means of sums of many independent variables, each with few values.

For S a sum of independent variables and a function f that never falls, is 0 below 0 and has the
transform F(z) = integral of e^(-zx) f(x) dx for Re z > 0,

    E f(S) = 1/(2 pi) * integral over t of M(c + it) F(c + it) dt,    M(z) = E e^(zS),

for any c > 0. All of it is done in ball arithmetic (python-flint), and no error is estimated:

- The trapezoidal sum with step h is the sum over all integers k of
  e^(-ckP) E f(S + kP), P = 2 pi / h (Poisson's summation formula). As f is never negative, it is at
  least E f(S): an upper bound whatever the step. For the lower bound, the other terms are bounded
  by Chernoff's inequality.
- The tail of the sum is bounded absolutely. It would fall slowly; so S is smoothed. For the upper
  bound a normal variable is added whose effect is known to be upwards (a mean-preserving spread, as
  a convex function of S is averaged). For the lower bound, a bounded variable that is never
  positive is added: f never falls.

c is the saddle point, where the tilted distribution of S has its bulk at the values that matter, so
that no digits cancel. What is chosen in floats (c, h, how much is smoothed) decides how tight the
bounds are, never whether they hold.

The formula is that of the saddle-point accountant (Alghamdi, Gomez, Asoodeh, Calmon, Kosut and
Sankar, ICML 2023), whose error estimates are not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from flint import acb, acb_mat, arb

from mechdesign.base import Floats, precision

#: The periods P, relative to the standard deviation of the tilted S.
_UPPER_PERIOD, _LOWER_PERIOD = 16.0, 24.0

_FOLD = 8  # the number of uniform variables that are added for the lower bound

_NEGLIGIBLE = 28.0  # the negative logarithm of what is left of an integrand where its sum ends

_UNSEEN = 40.0  # the negative logarithm of single terms below which they are left out

_HALVINGS = 40  # the number of bisections by which the saddle point is found

# The bound below which sums are not looked at: logarithms in balls end there.
_LEAST = arb(2) ** -150

_BLOCK = 64  # the number of terms that have a factor in common

_BITS = 128  # the precision in bits, beyond those that the number of summands takes


@dataclass(frozen=True)
class Summands:
    """A group of independent variables with the same distribution."""

    # Of each value, above 0. What they lack to 1 is that of the value 0 if `complete`, and of minus
    # infinity otherwise.
    probabilities: tuple[arb, ...]
    values: tuple[arb, ...]  # finite
    times: int  # how many variables, at least 1
    complete: bool

    @cached_property
    def logarithms(self) -> Floats:
        """The logarithms of the probabilities, that of the value 0 as the last one; in floats."""
        logs = [float(p.log()) for p in self.probabilities]
        return np.array([*logs, _log(self.missing)])

    @cached_property
    def missing(self) -> arb:
        """The probability of the value 0 beyond those listed."""
        rest = 1 - sum(self.probabilities, arb(0))
        return rest.nonnegative_part() if self.complete else arb(0)

    @cached_property
    def floats(self) -> Floats:
        """The values, with 0 as the last one; in floats."""
        return np.array([*map(float, self.values), 0.0])

    def moments(self, tilt: float, period: float, rows: int, bits: int) -> acb_mat:
        """Return E e^(zX) of one variable at z = tilt + 2 pi i j / period, row by row."""
        # The last ones are kept: another epsilon of a composition takes them again.
        asked = tilt, period, rows, bits
        if asked not in self._kept:
            self._kept.clear()
            c, h = arb(tilt), 2 * arb.pi() / arb(period)
            # e^((c + i h (64 r + j)) x) = e^((c + 64 i h r) x) e^(i h j x): giant steps and baby
            # steps, whose products are one matrix product. Exponentials are most of the work, and
            # few are left.
            pairs = list(zip(self.probabilities, self.values, strict=True))
            places = [acb(c, h * (_BLOCK * row)) for row in range(rows)]
            giant = [[p * (z * x).exp() for p, x in pairs] + [acb(self.missing)] for z in places]
            baby = [[(acb(0, h * column) * x).exp() for column in range(_BLOCK)] for _, x in pairs]
            self._kept[asked] = acb_mat(giant) * acb_mat([*baby, [acb(1)] * _BLOCK])
        return self._kept[asked]

    @cached_property
    def _kept(self) -> dict[tuple[float, float, int, int], acb_mat]:
        return {}

    @cached_property
    def largest(self) -> arb:
        """The largest value, or 0 if that is possible and larger."""
        possible = [*self.values, arb(0)] if self.missing.upper() > 0 else self.values
        return reduce(arb.max, possible, arb.neg_inf())


def _log(p: arb) -> float:
    return float(p.log()) if p.lower() > 0 else -math.inf


class Function:
    """The function f(x) = max(x, 0), the positive part, with the transform 1 / z^2."""

    #: The mean, twice and over the variance, of the normal variable whose effect is upwards.
    drift = 0

    @staticmethod
    def transform(z: Any) -> Any:
        """Return F(z), of balls or of arrays."""
        return 1 / (z * z)

    @staticmethod
    def factor(t: arb) -> arb:
        """Return at least the maximum of f(x) e^(-tx) over x, for t > 0."""
        # x e^(-tx) is largest at x = 1 / t.
        return 1 / (t * arb.const_e())

    @staticmethod
    def slope(t: float) -> float:
        """Return minus the derivative of log F, in floats."""
        return 2 / t

    @staticmethod
    def curvature(t: float) -> float:
        """Return the second derivative of log F, in floats."""
        return 2 / t**2


class Advantage(Function):
    """The function f(x) = max(1 - e^(-x), 0), with the transform 1 / (z (z + 1)).

    Of a privacy loss L under the first of two distributions, E f(L - epsilon) is delta(epsilon).
    """

    # Under the second distribution it is the mean of a convex function of e^L, so that a normal
    # variable N, to be added to L, has an effect upwards if E e^N = 1 there: that is the privacy
    # loss of a normal mechanism, and its mean under the first is half its variance.
    drift = 1

    @staticmethod
    def transform(z: Any) -> Any:
        return 1 / (z * (z + 1))

    @staticmethod
    def factor(t: arb) -> arb:
        # Both factors of (1 - e^(-x)) e^(-tx) are at most 1 for x >= 0.
        return arb(1)

    @staticmethod
    def slope(t: float) -> float:
        return 1 / t + 1 / (t + 1)

    @staticmethod
    def curvature(t: float) -> float:
        return 1 / t**2 + 1 / (t + 1) ** 2


@dataclass(frozen=True)
class Mean:
    """The mean E f(S - shift) for the sum S of some summands, one at least: see the module."""

    parts: Sequence[Summands]
    shift: arb
    function: type[Function]

    def upper(self, smoothing: float) -> arb:
        """Return at least the mean: a ball whose upper end is the bound."""
        if self._most < _LEAST:
            return self._most
        with precision(self._precision):
            tilt, deviation = self._saddle
            added = smoothing * self._scale
            period = _UPPER_PERIOD * deviation
            c, variance = arb(tilt), arb(added) ** 2
            # Where the transform e^(-variance t^2 / 2) of the added normal variable is e^-28.
            reach = math.sqrt(2 * _NEGLIGIBLE) / added

            # The normal variable's moment generating function, and the shift, in one exponent.
            square, linear = variance / 2, variance * self.function.drift / 2 - self.shift

            def smooth(z: acb) -> acb:
                return (z * (square * z + linear)).exp()

            total, end = self._trapezoids(tilt, period, reach, smooth)
            # |F| is at most 1 / t^2, and what is left at most that of a normal density
            # |M(c + it)| <= M(c), Chernoff's factor; and the integral of e^(-v t^2 / 2) / t^2
            # beyond T is at most e^(-v T^2 / 2) / (v T^3). Both sides of the line: 2 / (2 pi).
            rest = (variance * (c * c + self.function.drift * c - end * end) / 2).exp()
            return total + self._chernoff(c) * rest / (arb.pi() * variance * end**3)

    def nearly(self, smoothing: float) -> float:
        """Return about `upper`, in floats: where to search for bounds, not one."""
        with precision(self._precision):  # in which the parts are rounded to floats
            stacked, (tilt, deviation) = self._stacked, self._saddle
        added, step = smoothing * self._scale, 2 * math.pi / (_UPPER_PERIOD * deviation)
        z = tilt + 1j * step * np.arange(1 + math.sqrt(2 * _NEGLIGIBLE) / added // step)
        exponents = z * (added**2 * (z + self.function.drift) / 2 - float(self.shift))
        for logarithms, values, times in stacked:
            real = logarithms + tilt * values
            # Log-sum-exp: moments of many releases overflow, their logarithms do not.
            most = real.max(axis=1, keepdims=True)
            turned = np.exp(1j * values[..., None] * z.imag)
            powers = np.log((np.exp(real - most)[..., None] * turned).sum(axis=1))
            exponents += (times[:, None] * (most + powers)).sum(axis=0)
        terms = (np.exp(exponents) * self.function.transform(z)).real
        return float((terms.sum() - terms[0] / 2) * step / math.pi)

    def lower(self, smoothing: float) -> arb:
        """Return at most the mean: a ball whose lower end is the bound."""
        if self._most < _LEAST:
            return arb(0)
        with precision(self._precision):
            tilt, deviation = self._saddle
            added = smoothing * self._scale
            period = _LOWER_PERIOD * deviation
            c, half = arb(tilt), arb(added) / _FOLD
            reach = _FOLD * 2 / added

            def smooth(z: acb) -> acb:
                # Eight uniform variables from -2 added / 8 to 0: bounded, so that at most `added` *
                # 2 is lost, and their transform falls like t^-8, where a single one would need a
                # far longer sum.
                y = half * z
                return ((-y).exp() * y.sinh() / y) ** _FOLD * (-z * self.shift).exp()

            total, end = self._trapezoids(tilt, period, reach, smooth)
            # |(e^(-2y) - 1) / 2y| <= 1 / |y| for Re y > 0
            rest = 1 / (half**_FOLD * end ** (_FOLD + 1) * (_FOLD + 1))
            total -= self._chernoff(c) * rest / arb.pi()
            # The other terms of Poisson's formula: S + kP at half the tilt, S - kP at a larger one
            low, high = c / 2, c + 8 / arb(deviation)
            for t, apart in ((low, c - low), (high, high - c)):
                ratio = (-apart * arb(period)).exp()
                total -= self._chernoff(t) * self.function.factor(t) * ratio / (1 - ratio)
            return total.nonnegative_part()

    @cached_property
    @precision()
    def _most(self) -> arb:
        """The largest value of S less the shift, if that is above 0; f is at most that."""
        most = sum((part.times * part.largest for part in self.parts), arb(0)) - self.shift
        return most if most.upper() > 0 else arb(0)

    @property
    def _precision(self) -> int:
        # A power of n multiplies the relative error of a ball by n.
        return _BITS + max(part.times for part in self.parts).bit_length()

    def _chernoff(self, t: arb) -> arb:
        """Return E e^(t (S - shift)) for real t."""
        moment = (-t * self.shift).exp()
        for part in self.parts:
            terms = zip(part.probabilities, part.values, strict=True)
            moment *= sum((p * (t * x).exp() for p, x in terms), part.missing) ** part.times
        return moment

    def _trapezoids(
        self, tilt: float, period: float, reach: float, smooth: Callable[[acb], acb]
    ) -> tuple[arb, arb]:
        """Return the trapezoidal sum on both sides up to at least ``reach``, and where it ends."""
        # All factors are transforms of what is never negative, and largest on the real axis: where
        # the power of one is negligible beside that at the tilt, so is the term beside the first.
        c, h = arb(tilt), 2 * arb.pi() / arb(period)
        rows = max(1, math.ceil(reach * period / (2 * math.pi) / _BLOCK))
        factors: list[tuple[list[acb], int]] = []
        seen: Sequence[int] = range(1, rows * _BLOCK)
        for part in self.parts:
            moments, times = part.moments(tilt, period, rows, self._precision).entries(), part.times
            least = moments[0].real * (arb(-_UNSEEN) / times).exp()
            seen = [j for j in seen if not moments[j].abs_upper() < least]
            factors.append((moments, times))

        def term(j: int) -> arb:
            z = acb(c, h * j)
            value: acb = self.function.transform(z) * smooth(z)
            for moments, times in factors:
                value *= moments[j] ** times
            return value.real

        # The integrand at c - it is the conjugate of that at c + it: one side, doubled, with half
        # of the term at 0.
        first = term(0)
        total = sum(map(term, seen), first / 2)
        unseen = (rows * _BLOCK - 1 - len(seen)) * first * arb(-_UNSEEN).exp()
        # What was left out is at most so much in absolute value, of either sign: a ball around 0.
        total += arb(0, unseen.upper())
        return total * h / arb.pi(), h * (rows * _BLOCK - 1)

    @cached_property
    def _stacked(self) -> list[tuple[Floats, Floats, Floats]]:
        """The logarithms of probabilities, values and times, of parts with equally many values."""
        parts: dict[int, list[Summands]] = {}
        for part in self.parts:
            parts.setdefault(len(part.floats), []).append(part)
        return [
            (
                np.array([part.logarithms for part in alike]),
                np.array([part.floats for part in alike]),
                np.array([part.times for part in alike], dtype=np.float64),
            )
            for alike in parts.values()
        ]

    @property
    def _scale(self) -> float:
        """The scale to which a smoothing is relative."""
        tilt, deviation = self._saddle
        return min(deviation, max(3 / tilt, deviation / 20))

    @cached_property
    def _saddle(self) -> tuple[float, float]:
        """The saddle point: the tilt where the integrand is least, and the deviation there."""
        size = max(float(np.abs(part.floats).max()) for part in self.parts)
        shift = float(self.shift)
        size = max(size, abs(shift) / sum(part.times for part in self.parts))

        def moments(t: float) -> tuple[float, float]:
            mean, variance = -shift, 0.0
            for logarithms, values, times in self._stacked:
                exponents = logarithms + t * values
                p = np.exp(exponents - exponents.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                # Not by a library of products: the same on every processor
                means = (p * values).sum(axis=1)
                mean += float((times * means).sum())
                variances = (p * (values - means[:, None]) ** 2).sum(axis=1)
                variance += float((times * variances).sum())
            return mean, variance

        # The logarithm of M(t) F(t) is convex: its derivative, the tilted mean minus F's slope,
        # rises, and bisection finds its zero. On the logarithm of t, as that may be of any order of
        # magnitude.
        low, high = (math.log(scale / size) for scale in (1e-15, 1e15))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            t = math.exp(middle)
            if moments(t)[0] < self.function.slope(t):
                low = middle
            else:
                high = middle
        t = _rounded(math.exp(high))
        return t, _rounded(math.sqrt(moments(t)[1] + self.function.curvature(t)))


def _rounded(x: float) -> float:
    """Return a number rounded to a power of 2^(1/4): often the same for another epsilon."""
    return math.exp2(round(4 * math.log2(x)) / 4)
