"""Convex functions of a few numbers: values in balls, and the planes that lie below them.

A plane below a convex function f is a slope s and a constant: ``f(u) >= s u - f*(s)`` for every u,
where the conjugate ``f*(s)`` is the largest value of ``s u - f(u)``. Each class knows its conjugate
in closed form, so that a plane is proved by its slope alone: wherever the slope came from, no
gradient need be trusted. Concave functions are stated by their negative.

`Atom.value` and `Atom.conjugate` are rigorous: balls (python-flint's ``arb``) that contain the
number. `Atom.slope` and `Atom.rounded` only suggest.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from numbers import Rational
from typing import ClassVar, TypeVar

import numpy as np
from flint import arb

from mechdesign.base import Floats, ball

Slope = tuple[Fraction, ...]  #: The type of an exact slope, one number for each argument.

_GRID = 1 << 60  # the grid of slopes: they are rounded to multiples of 1 / _GRID

_TINY = 1e-30


def rational(value: float) -> Fraction:
    """Return the multiple of 1 / 2^60 nearest to a float."""
    # A fixed grid, not `limit_denominator`: sums of slopes keep the denominator 2^60, where
    # unrelated denominators would multiply in the exact minorant.
    return Fraction(round(Fraction(value) * _GRID), _GRID)


class OutsideDomain(ArithmeticError):
    """The error for a slope at which the conjugate is infinite: no plane of it lies below."""


@dataclass(frozen=True)
class Atom(ABC):
    """A convex function of ``arguments`` real numbers, infinite outside of its domain."""

    name: ClassVar[str]  #: The name in messages.

    @abstractmethod
    def value(self, u: Sequence[arb]) -> arb:
        """Return a ball that contains the value; not finite where the domain may be left."""

    @abstractmethod
    def conjugate(self, slope: Slope) -> arb:
        """Return a ball with the largest value of ``slope u - f(u)``; OutsideDomain if infinite."""

    @abstractmethod
    def slope(self, u: Floats) -> Floats:
        """Return a slope of a plane that touches the function near ``u``, in floats."""

    def slopes(self, u: Floats) -> list[Floats]:
        """Return slopes of planes that are worth having near ``u``: all, where they are few."""
        return [self.slope(u)]

    def rounded(self, slope: Floats) -> Slope:
        """Return an exact slope near this one at which the conjugate is finite."""
        return tuple(map(rational, slope.tolist()))


@dataclass(frozen=True)
class Largest(Atom):
    """The function max(u)."""

    name = "max"

    def value(self, u: Sequence[arb]) -> arb:
        return reduce(lambda a, b: a.max(b), u)

    def conjugate(self, slope: Slope) -> arb:
        # max is the support function of the simplex: its conjugate is 0 there and infinite
        # elsewhere. All functions that are homogeneous of degree 1 here have a conjugate of that
        # kind, so that the slope alone decides, exactly.
        if min(slope) < 0 or sum(slope) != 1:
            raise OutsideDomain("the slopes of max are at least 0 and sum to 1")
        return arb(0)

    def slope(self, u: Floats) -> Floats:
        return _unit(len(u), int(np.argmax(u)))

    def slopes(self, u: Floats) -> list[Floats]:
        # All faces at once: there are as many as arguments, and the relaxation of max is then
        # exact.
        return [_unit(len(u), k) for k in range(len(u))]

    def rounded(self, slope: Floats) -> Slope:
        return _simplex(slope)


@dataclass(frozen=True)
class LargestSum(Atom):
    """The function that sums the ``count`` largest of u; of a fraction, so much of the next one."""

    count: Fraction  # above 0, at most the number of arguments
    name = "sum_largest"

    def value(self, u: Sequence[arb]) -> arb:
        # Balls that overlap have no order, so that sorting them proves nothing. Linear programming
        # duality does: any q bounds the value from above, any admissible weights from below, and
        # the two meet up to the radii where q is the smallest entry chosen.
        # Bounded above by count q + sum max(u - q, 0) for every q, and below by every choice.
        chosen = self.rounded(self.slope(np.array([float(each.mid()) for each in u])))
        level = min((each.mid() for each, share in zip(u, chosen, strict=True) if share), key=float)
        above = sum(((each - level).max(arb(0)) for each in u), ball(self.count) * level)
        below = sum((ball(share) * each for share, each in zip(chosen, u, strict=True)), arb(0))
        return above.union(below)

    def conjugate(self, slope: Slope) -> arb:
        if min(slope) < 0 or max(slope) > 1 or sum(slope) != self.count:
            raise OutsideDomain(f"these slopes lie in [0, 1] and sum to {self.count}")
        return arb(0)

    def slope(self, u: Floats) -> Floats:
        slope = np.zeros(len(u))
        # Weights 1, ..., 1, the fractional part of count, 0, ..., 0, in decreasing order of u.
        slope[np.argsort(-u)] = np.clip(float(self.count) - np.arange(len(u)), 0.0, 1.0)
        return slope

    def rounded(self, slope: Floats) -> Slope:
        return _capped(slope, self.count)


@dataclass(frozen=True)
class Square(Atom):
    """The function u^2."""

    name = "square"

    def value(self, u: Sequence[arb]) -> arb:
        return u[0] ** 2

    def conjugate(self, slope: Slope) -> arb:
        return ball(slope[0] ** 2 / 4)

    def slope(self, u: Floats) -> Floats:
        return 2 * u


@dataclass(frozen=True)
class QuadOverLin(Atom):
    """The function u^2 / v, where v > 0."""

    name = "quad_over_lin"

    def value(self, u: Sequence[arb]) -> arb:
        return u[0] ** 2 / u[1] if u[1] > 0 else arb.nan()

    def conjugate(self, slope: Slope) -> arb:
        # (2 w, -w^2), or steeper: (u - w v)^2 / v >= 0.
        if slope[1] > -(slope[0] ** 2) / 4:
            raise OutsideDomain("the slope in the denominator is at most -s^2 / 4")
        return arb(0)

    def slope(self, u: Floats) -> Floats:
        ratio = u[0] / max(u[1], _TINY)
        return np.array([2 * ratio, -(ratio**2)])

    def rounded(self, slope: Floats) -> Slope:
        first = rational(slope[0])
        # On the boundary of the conjugate's domain, where the planes touch; rounding the second
        # slope by itself would leave the domain half of the time.
        return first, -(first**2) / 4


@dataclass(frozen=True)
class EuclideanNorm(Atom):
    """The function (sum u^2)^(1/2)."""

    name = "norm2"

    def value(self, u: Sequence[arb]) -> arb:
        # Squares of balls around 0 may reach below 0 by rounding, where the root would be
        # undefined.
        return sum((each**2 for each in u), arb(0)).nonnegative_part().sqrt()

    def conjugate(self, slope: Slope) -> arb:
        # The support function of the unit ball: its conjugate is 0 there (the dual norm).
        if sum(each**2 for each in slope) > 1:
            raise OutsideDomain("the slopes of a norm have a norm of at most 1")
        return arb(0)

    def slope(self, u: Floats) -> Floats:
        length = float(np.linalg.norm(u))
        return u / length if length > 0 else np.zeros(len(u))

    def rounded(self, slope: Floats) -> Slope:
        slopes = super().rounded(slope)
        length = sum(each**2 for each in slopes)
        # `length` is the square of a norm. Its exact root is irrational, so that the slope is
        # divided by the square itself, which exceeds 1 by about 2^-60 only.
        # 1 / length is at most the inverse of its root, where the length is at least 1.
        return slopes if length <= 1 else tuple(each / length for each in slopes)


@dataclass(frozen=True)
class Exponential(Atom):
    """The function e^u."""

    name = "exp"

    def value(self, u: Sequence[arb]) -> arb:
        return u[0].exp()

    def conjugate(self, slope: Slope) -> arb:
        # f*(s) = s log s - s, attained at u = log s.
        return _times_log(slope[0], "exp") - ball(slope[0])

    def slope(self, u: Floats) -> Floats:
        # Capped so that it is finite; any slope makes a valid plane.
        return np.exp(np.minimum(u, 500.0))

    def rounded(self, slope: Floats) -> Slope:
        return (max(Fraction(0), rational(slope[0])),)


@dataclass(frozen=True)
class MinusLog(Atom):
    """The function -log(u), where u > 0."""

    name = "log"

    def value(self, u: Sequence[arb]) -> arb:
        return -u[0].log() if u[0] > 0 else arb.nan()

    def conjugate(self, slope: Slope) -> arb:
        if slope[0] >= 0:
            raise OutsideDomain("the slope of -log is below 0")
        # f*(s) = -1 - log(-s), attained at u = -1 / s.
        return -1 - ball(-slope[0]).log()

    def slope(self, u: Floats) -> Floats:
        return -1 / np.maximum(u, _TINY)

    def rounded(self, slope: Floats) -> Slope:
        return (min(Fraction(-1, _GRID), rational(slope[0])),)


@dataclass(frozen=True)
class MinusEntropy(Atom):
    """The function u log(u), 0 at 0, where u >= 0."""

    name = "entr"

    def value(self, u: Sequence[arb]) -> arb:
        return arb(0) if u[0] == 0 else u[0] * u[0].log() if u[0] > 0 else arb.nan()

    def conjugate(self, slope: Slope) -> arb:
        # f*(s) = e^(s - 1), attained at u = e^(s - 1): finite for every s, so that no slope needs
        # care.
        return (ball(slope[0]) - 1).exp()

    def slope(self, u: Floats) -> Floats:
        return 1 + np.log(np.maximum(u, _TINY))


@dataclass(frozen=True)
class RelativeEntropy(Atom):
    """The function u log(u / v), 0 where u = 0; where u >= 0 and v > 0, or both are 0."""

    name = "rel_entr"

    def value(self, u: Sequence[arb]) -> arb:
        if u[0] == 0:
            return arb(0) if u[1] >= 0 else arb.nan()
        return u[0] * (u[0] / u[1]).log() if u[0] > 0 and u[1] > 0 else arb.nan()

    def conjugate(self, slope: Slope) -> arb:
        # (a, -b) with b >= e^(a - 1): u log(u / v) is homogeneous, so the constant is 0.
        if not ball(-slope[1]) >= (ball(slope[0]) - 1).exp():
            raise OutsideDomain("the slope in the second argument is at most -e^(s - 1)")
        return arb(0)

    def slope(self, u: Floats) -> Floats:
        # A difference of logarithms, since the quotient of tiny numbers may over- or underflow.
        first = 1 + math.log(max(float(u[0]), _TINY)) - math.log(max(float(u[1]), _TINY))
        return np.array([first, -math.exp(min(first - 1, 500.0))])

    def rounded(self, slope: Floats) -> Slope:
        first = rational(slope[0])
        # Rounded away from 0, to the side on which the conjugate is finite.
        return first, -upper((ball(first) - 1).exp())


@dataclass(frozen=True)
class LogSumExp(Atom):
    """The function log(sum e^u)."""

    name = "log_sum_exp"

    def value(self, u: Sequence[arb]) -> arb:
        return sum((each.exp() for each in u), arb(0)).log()

    def conjugate(self, slope: Slope) -> arb:
        # f*(s) = sum s log s on the simplex, infinite elsewhere: f(u + c) = f(u) + c forces the sum
        # to 1.
        if sum(slope) != 1:
            raise OutsideDomain("the slopes of log_sum_exp sum to 1")
        return sum((_times_log(each, "log_sum_exp") for each in slope), arb(0))

    def slope(self, u: Floats) -> Floats:
        # Shifted by the maximum, so that no exponential overflows (log-sum-exp); the slope is the
        # softmax.
        weights = np.exp(u - u.max())
        result: Floats = weights / weights.sum()
        return result

    def rounded(self, slope: Floats) -> Slope:
        return _simplex(slope)


@dataclass(frozen=True)
class RealPower(Atom):
    """The function u^p, or -u^p where 0 < p < 1, on the domain that cvxpy gives it."""

    # Neither 0 nor 1. The domain is u > 0 for p < 0, every u for p = 2, 4, 8, ..., else u >= 0.
    p: Fraction
    name = "power"

    @property
    def even(self) -> bool:
        """Whether the domain is the whole line."""
        p = self.p
        # cvxpy takes only powers of two as even; u^6 has the domain u >= 0 there, and the planes
        # below it have to be those of the same function.
        return p > 1 and p.denominator == 1 and p.numerator & (p.numerator - 1) == 0

    def value(self, u: Sequence[arb]) -> arb:
        if self.even:
            return u[0] ** int(self.p)
        if u[0] == 0 and self.p > 0:
            return arb(0)
        if not u[0] > 0:
            return arb.nan()
        return self._sign * self._raised(u[0], self.p)

    @property
    def _sign(self) -> int:
        return -1 if 0 < self.p < 1 else 1

    @staticmethod
    def _raised(u: arb, p: Fraction) -> arb:
        if p.denominator == 1:
            return u ** int(p)
        # Roots and integer powers of balls are tighter than exp(p log u).
        if p.denominator == 2:
            return u.sqrt() ** int(p.numerator)
        return (u.log() * ball(p)).exp()

    def conjugate(self, slope: Slope) -> arb:
        # At the u where slope = f'(u), the value is (p - 1) f(u).
        p, s = self.p, slope[0]
        # Slopes of the wrong sign: on u >= 0 the supremum of s u - u^p is at u = 0 for s <= 0, and
        # is 0; a decreasing function has no plane that rises.
        if p > 1:
            s = abs(s) if self.even else max(s, Fraction(0))
        elif s > 0 or (s == 0 and p > 0):
            raise OutsideDomain("the slope of a decreasing function is below 0")
        ratio = s / (p * self._sign)
        if ratio == 0:
            return arb(0)
        return ball((p - 1) * self._sign) * self._raised(ball(ratio), p / (p - 1))

    def slope(self, u: Floats) -> Floats:
        p = float(self.p)
        if self.even:
            return np.asarray(p * u ** (int(self.p) - 1))
        # So far inside the domain that u^(p - 1) stays below about 1 / _TINY.
        inside = np.maximum(u, _TINY ** (1 / (1 + abs(p))))
        return np.asarray(self._sign * p * inside ** (p - 1))

    def rounded(self, slope: Floats) -> Slope:
        exact = rational(slope[0])
        return (exact if self.p > 1 else min(exact, Fraction(-1, _GRID)),)


@dataclass(frozen=True)
class MinusGeometricMean(Atom):
    """The function -prod u^w, where u >= 0."""

    weights: tuple[Fraction, ...]  # above 0; they sum to 1
    name = "geo_mean"

    def value(self, u: Sequence[arb]) -> arb:
        if all(each >= 0 for each in u) and any(each == 0 for each in u):
            return arb(0)
        if not all(each > 0 for each in u):
            return arb.nan()
        return -self._log_mean(u).exp()

    def _log_mean(self, u: Iterable[arb]) -> arb:
        pairs = zip(self.weights, u, strict=True)
        return sum((ball(w) * each.log() for w, each in pairs), arb(0))

    def conjugate(self, slope: Slope) -> arb:
        # Weighted arithmetic and geometric means:
        # prod u^w <= prod (r u)^w <= sum w r u for slopes -w r, where prod r^w >= 1.
        ratios = [-s / w for s, w in zip(slope, self.weights, strict=True)]
        if min(ratios) <= 0 or not self._log_mean(map(ball, ratios)) >= 0:
            raise OutsideDomain("-s / w has a geometric mean of at least 1")
        return arb(0)

    def slope(self, u: Floats) -> Floats:
        weights = np.array([float(w) for w in self.weights])
        logs = np.log(np.maximum(u, _TINY))
        result: Floats = -weights * np.exp(weights @ logs - logs)
        return result

    def rounded(self, slope: Floats) -> Slope:
        ratios = [
            max(Fraction(1, _GRID), rational(-s / float(w)))
            for s, w in zip(slope.tolist(), self.weights, strict=True)
        ]
        mean = self._log_mean(map(ball, ratios)).exp()
        # Raising all ratios raises their geometric mean in proportion.
        # Enough to be at least 1 after this rounding, too.
        scale = max(Fraction(1), upper(1 / mean) + Fraction(1, 1 << 40))
        return tuple(-w * scale * ratio for w, ratio in zip(self.weights, ratios, strict=True))


@dataclass(frozen=True)
class MatrixFraction(Atom):
    """The function v' M^-1 v for a positive definite M: the arguments are v, and M row by row."""

    size: int  # the length of v
    name = "matrix_frac"

    def value(self, u: Sequence[arb]) -> arb:
        k = self.size
        right, rows = list(u[:k]), [list(u[k + k * i : k + k * i + k]) for i in range(k)]
        total = arb(0)
        for i in range(k):  # elimination; the pivots of a positive definite matrix are above 0
            if not rows[i][i] > 0:
                return arb.nan()
            # With L D L' = M and L w = v, v' M^-1 v = sum w_i^2 / d_i. No pivoting: a pivot that is
            # not proved to be above 0 leaves M's definiteness undecided.
            total += right[i] ** 2 / rows[i][i]
            for r in range(i + 1, k):
                factor = rows[r][i] / rows[i][i]
                right[r] -= factor * right[i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i], strict=True)]
        return total

    def conjugate(self, slope: Slope) -> arb:
        # The expanded square is v' M^-1 v - 2 w'v + w'M w, so that this plane has the constant 0:
        # (2 w, -w w'): (v - M w)' M^-1 (v - M w) >= 0.
        k = self.size
        if slope[k:] != tuple(-a * b / 4 for a in slope[:k] for b in slope[:k]):
            raise OutsideDomain("the slope in the matrix is -s s' / 4")
        return arb(0)

    def slope(self, u: Floats) -> Floats:
        k = self.size
        # Least squares, since the suggested M may be singular to rounding.
        w = np.linalg.lstsq(u[k:].reshape(k, k), u[:k], rcond=None)[0]
        result: Floats = np.concatenate([2 * w, -np.outer(w, w).ravel()])
        return result

    def rounded(self, slope: Floats) -> Slope:
        first = super().rounded(slope[: self.size])
        return (*first, *(-a * b / 4 for a in first for b in first))


def upper(value: arb) -> Fraction:
    """Return an exact number at least as large as every number in a finite ball."""
    return _exactly(value.upper())


def lower(value: arb) -> Fraction:
    """Return an exact number at most as large as every number in a finite ball."""
    return _exactly(value.lower())


def _exactly(point: arb) -> Fraction:
    rounded = point.fmpq()
    return Fraction(int(rounded.p), int(rounded.q))


def _times_log(value: Fraction, name: str) -> arb:
    if value < 0:
        raise OutsideDomain(f"the slopes of {name} are at least 0")
    # 0 log 0 = 0, by continuity; the ball of log 0 would be undefined.
    return ball(value) * ball(value).log() if value else arb(0)


def _unit(size: int, k: int) -> Floats:
    unit = np.zeros(size)
    unit[k] = 1.0
    return unit


def _simplex(slope: Iterable[float]) -> Slope:
    return _capped(slope, Fraction(1))


def _capped(slope: Iterable[float], total: Fraction) -> Slope:
    """Return numbers in [0, 1] near these that sum to ``total``, exactly."""
    numbers = [min(max(Fraction(0), rational(each)), Fraction(1)) for each in slope]
    rest = total - sum(numbers)
    # What rounding left is absorbed by the number farthest from both bounds; the loop goes on only
    # where that one hits a bound. Invariant: sum(numbers) + rest == total.
    for k in sorted(range(len(numbers)), key=lambda k: abs(numbers[k] - Fraction(1, 2))):
        moved = min(max(numbers[k] + rest, Fraction(0)), Fraction(1))
        rest, numbers[k] = rest - (moved - numbers[k]), moved
    return tuple(numbers)


# ------------------------------------------------------------------------------------------------
# Affine forms with exact coefficients, and what an expression does with them.


Number = TypeVar("Number")


@dataclass(frozen=True, eq=False)
class Affine:
    """An affine form ``constant + sum terms[v] x[v]``, exact and immutable.

    Sums, differences, multiples and quotients by exact numbers are affine forms too, so that an
    array of them, of type object, follows the arithmetic of numpy.

    Attributes
    ----------
    constant : Fraction
        What is added.
    terms : mapping of int to Fraction
        Number of a variable -> its coefficient, never 0.
    """

    constant: Fraction
    terms: Mapping[int, Fraction] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object) -> Affine:
        """Return the form itself, or that of an exact number. TypeError for anything else."""
        if isinstance(value, Affine):
            return value
        if isinstance(value, Rational):
            return cls(Fraction(value))
        raise TypeError(f"{value!r:.60} is neither an affine form nor an exact number")

    @classmethod
    def variable(cls, number: int) -> Affine:
        """Return the form x[number]."""
        return cls(Fraction(0), {number: Fraction(1)})

    @property
    def is_constant(self) -> bool:
        """Whether no variable occurs."""
        return not self.terms

    def at(self, x: Callable[[int], Number], convert: Callable[[Fraction], Number]) -> Number:
        """Return the value at x, in the arithmetic of ``Number``: floats or balls."""
        total = convert(self.constant)
        for v, coefficient in self.terms.items():
            total = total + convert(coefficient) * x(v)  # type: ignore[operator]
        return total

    def __add__(self, other: object) -> Affine:
        try:
            right = Affine.of(other)
        except TypeError:
            return NotImplemented
        terms = dict(self.terms)
        for v, coefficient in right.terms.items():
            total = terms.get(v, 0) + coefficient
            # No coefficient is 0: `is_constant` and the linearity test of statements rely on it.
            if total:
                terms[v] = total
            else:
                del terms[v]
        return Affine(self.constant + right.constant, terms)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return self * -1

    def __sub__(self, other: object) -> Affine:
        return self + -Affine.of(other)

    def __rsub__(self, other: object) -> Affine:
        return -self + other

    def __mul__(self, other: object) -> Affine:
        try:
            right = Affine.of(other)
        except TypeError:
            return NotImplemented
        if not right.is_constant:
            if not self.is_constant:
                raise ArithmeticError("a product of two expressions of the table is not affine")
            return right * self
        factor = right.constant
        terms = {v: c * factor for v, c in self.terms.items()} if factor else {}
        return Affine(self.constant * factor, terms)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Affine:
        right = Affine.of(other)
        if not right.is_constant:
            raise ArithmeticError("a quotient by an expression of the table is not affine")
        return self * (1 / right.constant)

    def __rtruediv__(self, other: object) -> Affine:
        return Affine.of(other) / self


def combined(weights: Iterable[Fraction], forms: Iterable[Affine]) -> Affine:
    """Return the sum of the forms, each times its weight."""
    terms: dict[int, Fraction] = {}
    constant = Fraction(0)
    for weight, form in zip(weights, forms, strict=True):
        # In one dictionary: adding forms one by one would copy the sum each time, quadratically.
        if weight:
            constant += weight * form.constant
            for v, coefficient in form.terms.items():
                terms[v] = terms.get(v, Fraction(0)) + weight * coefficient
    return Affine(constant, {v: c for v, c in terms.items() if c})
