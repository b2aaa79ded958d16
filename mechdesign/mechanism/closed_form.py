"""Closed forms: the laws of mechanisms that need no table, for counts 0 .. n of any n to 2^62.

A law knows the distribution of its outputs for every count by formulas in alpha: geometric noise
(also called discrete Laplace noise), clamped or not, whose clamped one is GM; EM; and UM. Each
formula is written once, and evaluated in rational numbers where these are short, else in balls
whose precision grows until the result is known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from flint import arb, fmpq

from mechdesign.base import (
    BitSource,
    Integers,
    ball,
    brief,
    exact,
    precision,
    rational_of,
    set_fields,
    whole,
)
from mechdesign.exceptions import TooLarge
from mechdesign.mechanism.values import LARGEST, Counts, Unbounded, Values
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.noise.sampling import uniform

#: A rational number or a ball: what formulas are evaluated in.
Number: TypeAlias = Any

#: Up to this n a closed form is also a table, and that is used: it draws the same numbers as ever.
SMALL = 64

# A formula is evaluated in rational numbers where alpha^n has at most so many bits.
_EXACT_BITS = 1 << 16

# Otherwise a value is rounded up, by less than 2^-_ROUNDED of it, or to 2^-_LEAST if it is smaller.
_ROUNDED, _LEAST = 80, 4096

# A table of a closed form may have so many bits.
_TABLE_BITS = 1 << 31

# The most counts that a loss adds up one by one, where there is no formula for all of them.
_COUNTS = 4096


class CountPosterior(NamedTuple):
    """What one output says about the count, for counts that are equally likely."""

    chance: Fraction  # the probability of the output
    right: Fraction | None  # that it is the true count; None: no count is this output
    likeliest: int
    most: Fraction  # the probability of the likeliest count
    extent: tuple[int, int, Fraction]  # the shortest range with a probability, and that


@dataclass(frozen=True)
class Law(ABC):
    """The distributions of the outputs for the counts 0 .. n.

    Parameters
    ----------
    n : int
        The largest count, 0 .. 2^62.
    alpha : Fraction
        Outputs change their probability by a factor of at most 1/alpha from a count to the next.
        Numbers that are returned are exact, or rounded up by less than 2^-80 of them where the
        exact ones have more than about 2^16 bits; those below 2^-4096 are rounded up to that.
    """

    n: int
    alpha: Fraction

    #: The name in files.
    name: ClassVar[str]

    def __post_init__(self) -> None:
        set_fields(self, n=whole(self.n, "n", 0, LARGEST), alpha=exact(self.alpha, "alpha"))
        if not 0 < self.alpha <= 1:
            raise ValueError(f"alpha must lie in (0, 1], got {brief(self.alpha)}")

    @property
    def outputs(self) -> Values:
        """What may be released."""
        return Counts(0, self.n)

    @property
    def ratio(self) -> Fraction:
        """The largest factor between the probabilities of an output for neighbouring counts."""
        return 1 / self.alpha if self.n else Fraction(1)

    @property
    @abstractmethod
    def holds(self) -> frozenset[str]:
        """The short names of those of the seven properties that hold."""

    @abstractmethod
    def power(self, output: int, count: int) -> int:
        """The power of alpha in the probability of an output."""

    @abstractmethod
    def factor(self, a: Number, output: int) -> Number:
        """The probability of an output is this times alpha to its `power`."""

    @abstractmethod
    def draw(self, counts: Integers, source: BitSource) -> Integers:
        """Draw an output for each count, exactly: shape (counts,)."""

    @abstractmethod
    def _moment(self, a: Number, p: int, d: int) -> Number:
        """The mean of |error|^p where |error| > d, for counts that are equally likely."""

    @abstractmethod
    def _moment_of(self, a: Number, count: int, p: int, d: int) -> Number:
        """The mean of |error|^p where |error| > d, for one count."""

    @abstractmethod
    def _chance(self, a: Number, error: int) -> Number:
        """The probability of an error, for counts that are equally likely."""

    @abstractmethod
    def _at_most(self, a: Number, output: int, count: int) -> Number:
        """The probability of this output or a smaller one."""

    @abstractmethod
    def _row(self, a: Number, output: int, first: int, last: int) -> Number:
        """The sum of alpha to the `power` of an output, over counts first .. last."""

    @abstractmethod
    def _bias_of(self, a: Number, count: int) -> Number:
        """The mean error for one count of at most n / 2: at least 0."""

    @property
    @abstractmethod
    def extreme_counts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The counts of largest and of smallest mean square error."""

    def _value(self, formula: Callable[[Number], Number]) -> Fraction:
        """Evaluate a formula in alpha."""
        if self._short:
            value = formula(fmpq(self.alpha.numerator, self.alpha.denominator))
            return Fraction(int(value.p), int(value.q)) if isinstance(value, fmpq) else value
        bits = 256
        while True:
            with precision(bits):
                value = arb(formula(ball(self.alpha)))
                least = arb(2) ** -_LEAST
                if value.rad() <= arb(2) ** -_ROUNDED * abs(value) or abs(value) <= least:
                    if not abs(value) > least:
                        return Fraction(value != 0, 1 << _LEAST)
                    return rational_of(value.upper())
            bits *= 2

    def _above(self, formula: Callable[[Number], Number], level: Fraction) -> bool:
        """Whether the value of a formula is above a level."""
        bits = 128
        while not self._short and bits <= 1 << 16:
            with precision(bits):
                value, threshold = formula(ball(self.alpha)), ball(level)
                if value > threshold:
                    return True
                if value <= threshold:
                    return False
            bits *= 4
        return bool(formula(fmpq(*self.alpha.as_integer_ratio())) > fmpq(*level.as_integer_ratio()))

    @property
    def _short(self) -> bool:
        return self.n * self.alpha.denominator.bit_length() <= _EXACT_BITS

    def moment(self, p: int, d: int = 0) -> Fraction:
        """The mean of |error|^p where |error| > d, for counts that are equally likely."""
        return self._value(lambda a: self._moment(a, p, d))

    def moment_of(self, count: int, p: int, d: int = 0) -> Fraction:
        """The mean of |error|^p where |error| > d, for one count."""
        return self._value(lambda a: self._moment_of(a, count, p, d))

    def chance(self, error: int) -> Fraction:
        """The probability of an error, output minus input, for counts that are equally likely."""
        return self._value(lambda a: self._chance(a, error))

    def bias_of(self, count: int) -> Fraction:
        """The mean error for one count; 0 for counts that are equally likely, by symmetry."""
        size = self._value(lambda a: self._bias_of(a, min(count, self.n - count)))
        return -size if 2 * count > self.n else size

    def entry(self, output: int, count: int) -> Fraction:
        """Pr[output | count]."""
        return self._value(lambda a: self.factor(a, output) * a ** self.power(output, count))

    def posterior(self, output: int, share: Fraction) -> CountPosterior:
        """Return what an output says about the count, and the shortest range with a share of it."""
        likeliest = min(max(output, 0), self.n)
        if self.power(output, 0) == self.power(output, likeliest):
            likeliest = 0  # of equally likely ones the first
        size = self._least(
            lambda size: self._above_share(output, *self._widest(output, size), share), self.n + 1
        )
        first, last = self._widest(output, size)

        def chance(a: Number) -> Number:
            return self.factor(a, output) * self._row(a, output, 0, self.n) / (self.n + 1)

        return CountPosterior(
            self._value(chance),
            self._part(output, output, output) if 0 <= output <= self.n else None,
            likeliest,
            self._part(output, likeliest, likeliest),
            (first, last, self._part(output, first, last)),
        )

    def _part(self, output: int, first: int, last: int) -> Fraction:
        """The probability of a range of counts, given an output."""
        return self._value(
            lambda a: self._row(a, output, first, last) / self._row(a, output, 0, self.n)
        )

    def _above_share(self, output: int, first: int, last: int, share: Fraction) -> bool:
        """Whether a range of counts has a probability of at least ``share``, given an output."""
        if (first, last) == (0, self.n):
            return True
        return not self._above(
            lambda a: 1 - self._row(a, output, first, last) / self._row(a, output, 0, self.n),
            1 - share,
        )

    def _widest(self, output: int, size: int) -> tuple[int, int]:
        """The range of so many counts with the largest probability, given an output."""
        # The powers fall towards the output and rise beyond it: a range moves on while what it
        # gains at its end is more than what it loses.
        start = self._least(
            lambda start: self.power(output, start) <= self.power(output, start + size),
            self.n + 1 - size,
            0,
        )
        return start, start + size - 1

    @staticmethod
    def _least(test: Callable[[int], bool], most: int, least: int = 1) -> int:
        """The least integer, up to ``most``, from which on a test is true."""
        while least < most:
            middle = (least + most) // 2
            least, most = (least, middle) if test(middle) else (middle + 1, most)
        return least

    @abstractmethod
    def interval(self, output: int, half: Fraction) -> tuple[int, int]:
        """Return the counts that are not rejected at this level on either side, for an output.

        A count is rejected if so small an output, or one so large, has a probability of at most
        ``half`` under it; if all are, those whose smaller probability is largest are taken.
        """

    def loss(self, p: int, d: int, prior: tuple[Fraction, ...] | None, worst: bool) -> Fraction:
        """The loss |error|^p beyond d: averaged over a prior (None: uniform), or the worst."""
        if not worst and (prior is None or len(set(prior)) == 1):
            return self.moment(p, d)
        if self.n >= _COUNTS:
            raise TooLarge(self.n, 0.05 * self.n, 0, "the mean over equally likely counts: any n")
        each = [self.moment_of(count, p, d) for count in range(self.n + 1)]
        weighed = [
            weight * value
            for weight, value in zip(prior or (Fraction(1),) * (self.n + 1), each, strict=True)
        ]
        return max(weighed) if worst else sum(weighed, Fraction(0))

    def weights(self) -> tuple[list[list[int]], int]:
        """Return the table: integer weights (outputs, inputs), and what each column sums to.

        Raises TooLarge if it had more than 2^31 bits, and NotSquare if it had no end.
        """
        outputs = self.outputs
        top, bottom = self.alpha.as_integer_ratio()
        bits = (self.n + 1) * outputs.size * max(self.n // 2, 8) * bottom.bit_length()
        if bits > _TABLE_BITS:
            size = int(min(bits / 4, 2.0**62))
            raise TooLarge(self.n, bits / 2e8, size, "it releases, and tells its errors, without")
        assert isinstance(outputs, Counts)
        labels = range(outputs.low, outputs.high + 1)
        powers = [[self.power(i, j) for j in range(self.n + 1)] for i in labels]
        most = max(map(max, powers))
        scaled = [top**k * bottom ** (most - k) for k in range(most + 1)]
        factors = [self.factor(self.alpha, i) for i in labels]
        common = math.lcm(*(factor.denominator for factor in factors))
        whole_factors = [int(factor * common) for factor in factors]
        weights = [
            [factor * scaled[k] for k in row]
            for factor, row in zip(whole_factors, powers, strict=True)
        ]
        return weights, common * bottom**most


def series(g: Callable[[int], int], first: int, last: int | None, degree: int, a: Number) -> Number:
    """Return the sum of g(k) a^k over k = first .. last, for a polynomial g of some degree.

    ``last`` is None for a sum without end. In Newton's basis, with C(t, r) for k = first + t,
    S_r = sum C(t, r) a^t obeys (1 - a) S_r = a S_(r-1) - C(N + 1, r) a^(N+1), t = 0 .. N.
    """
    if last is not None and last < first:
        return 0 * a
    differences = [g(first + r) for r in range(degree + 1)]
    steps = 0 if last is None else last - first + 1
    if a == 1:
        total = 0 * a
        for r in range(degree + 1):
            total += differences[0] * math.comb(steps, r + 1)
            differences = [y - x for x, y in pairwise(differences)]
        return total
    end = 0 * a if last is None else a**steps
    part, total = (1 - end) / (1 - a), 0 * a
    for r in range(degree + 1):
        total += differences[0] * part
        differences = [y - x for x, y in pairwise(differences)]
        part = (a * part - math.comb(steps, r + 1) * end) / (1 - a)
    return total * a**first


def power_sum(p: int, first: int, last: int) -> int:
    """Return the sum of t^p over t = first .. last, 0 if there are none."""
    if last < first:
        return 0
    return int(series(lambda t: t**p, first, last, p, Fraction(1)))


def _powers(a: Number, count: int) -> Number:
    """Return 1 + a + ... + a^(count - 1)."""
    return (1 - a**count) / (1 - a)


@dataclass(frozen=True)
class GeometricLaw(Law):
    """The count plus two-sided geometric noise: Pr[noise = x] is proportional to alpha^|x|.

    Parameters
    ----------
    n, alpha : int, Fraction
        As of `Law`; alpha is below 1.
    margin : int or None, default 0
        The output is clamped to -margin .. n + margin: with 0 it is GM (Definition 22). None: it is
        any integer.
    """

    margin: int | None = 0
    name = "geometric"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha == 1:
            raise ValueError("geometric noise needs an alpha below 1")
        if self.margin is not None:
            margin = whole(self.margin, "margin", 0, LARGEST - self.n)
            if not self.n and not margin:
                raise ValueError("noise on a count that is 0 needs a margin")
            set_fields(self, margin=margin)

    @property
    def outputs(self) -> Values:
        if self.margin is None:
            return Unbounded()
        return Counts(-self.margin, self.n + self.margin)

    @property
    def holds(self) -> frozenset[str]:
        n, a, margin = self.n, self.alpha, self.margin
        names = {"RH", "RM", "S"}
        if margin is None:
            return frozenset({*names, "CM", "CH", "F"})  # infinitely many have no uniform guess
        inner = margin > 0 or n > 1  # whether some count is no bound, so that its chance is least
        if (1 - a if inner else 1) / (1 + a) * self.outputs.size >= 1:
            names.add("WH")  # Lemma 13
        # The bound at a distance d has a^d, and the output before it (1 - a) a^(d-1): Lemma 14
        if not inner or 2 * a <= 1:
            names |= {"CM", "CH"}
        elif margin and a ** min(margin, 1 << 10) <= 1 - a:
            names.add("CH")
        return frozenset(names | ({"F"} if margin or n <= 1 else set()))

    def power(self, output: int, count: int) -> int:
        return abs(output - count)

    def factor(self, a: Number, output: int) -> Number:
        bounds = () if self.margin is None else (-self.margin, self.n + self.margin)
        return (1 if output in bounds else 1 - a) / (1 + a)

    @property
    def _noise(self) -> DiscreteLaplace:
        return _noise(self.alpha)

    def draw(self, counts: Integers, source: BitSource) -> Integers:
        outputs = counts + self._noise.draw(len(counts), source)
        if self.margin is None:
            return outputs
        clamped: Integers = np.clip(outputs, -self.margin, self.n + self.margin)
        return clamped

    def _moment(self, a: Number, p: int, d: int) -> Number:
        n, margin = self.n, self.margin
        first = max(d + 1, 1)
        # One of two sides. Errors below the margin do not reach a bound from any count; one of e
        # reaches it from one count, and stays below it from n + margin - e others.
        total = (n + 1) * series(lambda e: e**p, first, margin and margin - 1, p, a)
        if margin is not None:
            first, last = max(first, margin), n + margin
            total = (0 * a if not margin else total) + series(
                lambda e: e**p * (last - e), first, last, p + 1, a
            )
            total += series(lambda e: e**p, first, last, p, a) / (1 - a)
        return 2 * (1 - a) / (1 + a) * total / (n + 1)

    def moment(self, p: int, d: int = 0) -> Fraction:
        if p == d == 0:  # a short number, whatever n
            right = self._chance(fmpq(*self.alpha.as_integer_ratio()), 0)
            return 1 - Fraction(int(right.p), int(right.q))
        return super().moment(p, d)

    def _moment_of(self, a: Number, count: int, p: int, d: int) -> Number:
        total = 0 * a
        for bound in self._distances(count):
            end = None if bound is None else bound - 1
            total += (1 - a) * series(lambda e: e**p, max(d + 1, 1), end, p, a)
            if bound is not None and bound > d:
                total += bound**p * a**bound
        return total / (1 + a)

    def _distances(self, count: int) -> tuple[int | None, int | None]:
        """How far the bounds are from a count."""
        if self.margin is None:
            return None, None
        return count + self.margin, self.n - count + self.margin

    def _chance(self, a: Number, error: int) -> Number:
        n, margin, size = self.n, self.margin, abs(error)
        if margin is None:
            return (1 - a) / (1 + a) * a**size
        inside = min(max(n + margin - size, 0), n + 1)
        at_bound = int(0 <= n + margin - size <= n)
        if not error:
            inside, at_bound = n + 1 - 2 * at_bound, 2 * at_bound
        return (inside * (1 - a) + at_bound) * a**size / ((1 + a) * (n + 1))

    def _at_most(self, a: Number, output: int, count: int) -> Number:
        if self.margin is not None and not -self.margin <= output < self.n + self.margin:
            return (1 if output > 0 else 0) + 0 * a
        error = output - count
        return a**-error / (1 + a) if error < 0 else 1 - a ** (error + 1) / (1 + a)

    def interval(self, output: int, half: Fraction) -> tuple[int, int]:
        # Both tails are a^d / (1 + a) at a distance d, whatever the bounds.
        reach = _geometric_reach(self.alpha, half)
        low, high = min(max(output - reach, 0), self.n), max(min(output + reach, self.n), 0)
        if self.margin is not None:
            low = 0 if output == -self.margin else low
            high = self.n if output == self.n + self.margin else high
        return low, high

    def _row(self, a: Number, output: int, first: int, last: int) -> Number:
        if last <= output or first >= output:
            apart = output - last if last <= output else first - output
            return a**apart * _powers(a, last - first + 1)
        return _powers(a, output - first + 1) + _powers(a, last - output + 1) - 1

    def _bias_of(self, a: Number, count: int) -> Number:
        # At a distance d noise exceeds a bound by a^(d + 1) / ((1 - a) (1 + a)) in the mean.
        if self.margin is None:
            return 0 * a
        below, above = count + self.margin, self.n - count + self.margin
        return (a ** (below + 1) - a ** (above + 1)) / ((1 - a) * (1 + a))

    @property
    def extreme_counts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.margin is None:
            return (), ()
        # From a bound at distance h to h + 1 the mean square grows by 2 w(h) / (1 + alpha), with
        # w(h) = (2h + 1) alpha^(h+1) / 2, which is log-concave: along the counts up to the middle
        # it first falls, as w(h) is below that of the other bound, and then rises.
        n, margin = self.n, self.margin
        span = n + 2 * margin - 1  # h of one bound and of the other

        def rises(h: int) -> bool:
            other = span - h
            return self._above(
                lambda a: (2 * h + 1) - (2 * other + 1) * a ** (other - h), Fraction(0)
            )

        turn = self._least(rises, -(-span // 2), margin) - margin
        # Beside the turn the mean square may be the same, as where 3 = 5 alpha
        near = {turn - 1, turn} if turn and self._short else {turn}
        squares = {count: self.moment_of(count, 2) for count in {0, *near, n // 2}}

        def those_of(square: Fraction) -> tuple[int, ...]:
            chosen = {count for count in squares if squares[count] == square}
            return tuple(sorted(chosen | {n - count for count in chosen}))

        return those_of(max(squares.values())), those_of(min(squares.values()))


@lru_cache(16)
def _noise(alpha: Fraction) -> DiscreteLaplace:
    """Geometric noise; its tables are made once for laws of any n."""
    return DiscreteLaplace(alpha=alpha)


@lru_cache(256)
def _geometric_reach(alpha: Fraction, half: Fraction) -> int:
    """The largest d for which alpha^d / (1 + alpha) is above ``half``, below 1/2."""
    law = GeometricLaw(LARGEST, alpha, None)  # decides in balls

    def rejected(d: int) -> bool:
        return not law._above(lambda a: a**d / (1 + a), half)

    beyond = next(1 << k for k in range(1024) if rejected(1 << k))
    return Law._least(rejected, beyond, 0) - 1


@dataclass(frozen=True)
class FairLaw(Law):
    """EM, the explicit fair mechanism (eq. 6.15): every column has the same powers of alpha.

    They are 0 once, and 1, 2, .. twice each, for odd n the last, (n + 1) / 2, once. From a count at
    the distance m from the nearer end, those up to m are at that distance on both sides, and from
    there on two by two on the longer one.
    """

    name = "explicit fair"

    @property
    def holds(self) -> frozenset[str]:
        return frozenset({"RH", "RM", "CH", "CM", "F", "WH", "S"})

    def power(self, output: int, count: int) -> int:
        distance, margin = abs(output - count), min(count, self.n - count)
        return distance if distance < margin else -(-(distance + margin) // 2)

    def factor(self, a: Number, output: int) -> Number:
        return 1 / _ladder(a, self.n)

    def draw(self, counts: Integers, source: BitSource) -> Integers:
        sizes = self._signed_powers(len(counts), source)
        powers, second = np.abs(sizes), sizes > 0
        mirrored = counts > self.n // 2
        margins = np.where(mirrored, self.n - counts, counts)
        # On the longer side the outputs of power k are at the distances 2k - m - 1 and 2k - m; only
        # the first of them exists for the last power of odd n.
        near = powers <= margins
        outputs = np.where(
            near,
            np.where(second, margins + powers, margins - powers),
            2 * powers - np.where(second, 1, 0),
        )
        return np.where(mirrored, self.n - outputs, outputs)

    def _signed_powers(self, size: int, source: BitSource) -> Integers:
        """Draw the power of an output and, by the sign, which of the two outputs it is."""
        result = np.empty(size, dtype=np.int64)
        waiting = np.arange(size)
        half = self.n // 2
        while len(waiting):
            if self._wide:
                tried = uniform(len(waiting), self.n + 1, source) - half
                kept = self._noise.geometric(len(waiting), source) >= np.abs(tried)
            else:
                tried = self._noise.draw(len(waiting), source)
                kept = (tried >= -half) & (tried <= self.n - half)
            result[waiting[kept]] = tried[kept]
            waiting = waiting[~kept]
        return result

    @property
    def _noise(self) -> DiscreteLaplace:
        return _noise(self.alpha)

    @cached_property
    def _wide(self) -> bool:
        """Whether noise would mostly fall outside, so that outputs are proposed uniformly."""
        return self.n * float(1 - self.alpha) < 1

    def _moment(self, a: Number, p: int, d: int) -> Number:
        n, half = self.n, self.n // 2

        # Over the counts, of the power k: those with a margin of k or more have it at the distance
        # k, the others, two of each margin, at those of `draw`.
        def all_of(k: int) -> int:
            ladder = power_sum(p, k, 2 * k - 1) + power_sum(p, k + 1, 2 * k)
            return int(2 * ((n + 1 - 2 * k) * k**p + ladder))

        def beyond(k: int) -> int:
            least = power_sum(p, 1, d)
            return 2 * (power_sum(p, 1, 2 * k - 1) + power_sum(p, 1, 2 * k) - 2 * least)

        total = series(beyond, d // 2 + 1, min(d, half), p + 1, a)
        total += series(all_of, max(d + 1, 1), half, p + 1, a)
        if n % 2:
            k = half + 1
            total += 2 * power_sum(p, max(n - k + 1, d + 1), n) * a**k
        return total / _ladder(a, n) / (n + 1)

    def _moment_of(self, a: Number, count: int, p: int, d: int) -> Number:
        n, half, margin = self.n, self.n // 2, min(count, self.n - count)
        total = 2 * series(lambda k: k**p, max(d + 1, 1), margin, p, a)

        def longer(less: int) -> Number:
            """Of the outputs of power k on the longer side those at the distance 2k - less."""
            first = max(margin + 1, (d + less) // 2 + 1)
            return series(lambda k: (2 * k - less) ** p, first, half, p, a)

        total += longer(margin + 1) + longer(margin)
        if n % 2 and n - margin > d:
            total += (n - margin) ** p * a ** (half + 1)
        return total / _ladder(a, n)

    def _chance(self, a: Number, error: int) -> Number:
        n, size = self.n, abs(error)
        if not size:
            return 1 / _ladder(a, n)
        if size > n:
            return 0 * a
        # At the distance e the powers are e, or (e + m) / 2 rounded up for m up to e - 1.
        last = size + min(size - 1, n - size)
        total = max(n + 1 - 2 * size, 0) * a**size
        total += _ladder(a, last) - _ladder(a, size - 1)
        return total / _ladder(a, n) / (n + 1)

    def _at_most(self, a: Number, output: int, count: int) -> Number:
        n = self.n
        if not 0 <= output < n:
            return (1 if output >= n else 0) + 0 * a
        if 2 * count > n:
            return 1 - self._at_most(a, n - output - 1, n - count)
        if output >= 2 * count:
            return _ladder(a, output) / _ladder(a, n)
        if output <= count:
            return a ** (count - output) * _powers(a, output + 1) / _ladder(a, n)
        total = _powers(a, count + 1) + _powers(a, output - count + 1) - 1
        return total / _ladder(a, n)

    def interval(self, output: int, half: Fraction) -> tuple[int, int]:
        n = self.n
        if 2 * output > n:
            low, high = self.interval(n - output, half)
            return n - high, n - low
        low = self._least(
            lambda count: self._above(lambda a: 1 - self._at_most(a, output - 1, count), half), n, 0
        )
        high = self._least(
            lambda count: not self._above(lambda a: self._at_most(a, output, count), half), n + 1, 0
        )
        # The lower tail is the same, and largest, for the counts up to half of the output.
        return (low, high - 1) if high else (0, -(-output // 2))

    def _row(self, a: Number, output: int, first: int, last: int) -> Number:
        # Counts up to half of the output, and as far on the other side, have one power each.
        n = self.n
        left, right = output // 2, -(-(n + output) // 2)
        total = 0 * a
        if first <= left:
            total += (min(last, left) - first + 1) * a ** (-(-output // 2))
        if last >= right:
            total += (last - max(first, right) + 1) * a ** (-(-(n - output) // 2))
        first, last = max(first, left + 1), min(last, right - 1)
        if first > last:
            return total
        if last <= output or first >= output:
            apart = output - last if last <= output else first - output
            return total + a**apart * _powers(a, last - first + 1)
        return total + _powers(a, output - first + 1) + _powers(a, last - output + 1) - 1

    def _bias_of(self, a: Number, count: int) -> Number:
        n, half = self.n, self.n // 2
        total = series(lambda k: 4 * k - 2 * count - 1, count + 1, half, 1, a)
        if n % 2:
            total += (n - count) * a ** (half + 1)
        return total / _ladder(a, n)

    @property
    def extreme_counts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        # 2k - m - 1 and 2k - m fall as m grows, and are k and k + 1 before they become k and k
        return (0, self.n), (self.n // 2, self.n - self.n // 2)


def _ladder(a: Number, steps: int) -> Number:
    """Return the sum of alpha^(t / 2), powers rounded up, over t = 0 .. steps."""
    half, odd = divmod(steps, 2)
    total = 2 * _powers(a, half + 1) - 1
    return total + a ** (half + 1) if odd else total


@dataclass(frozen=True)
class UniformLaw(Law):
    """UM (Definition 23): a uniformly distributed output, whatever the count; alpha is 1."""

    alpha: Fraction = Fraction(1)
    name = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha != 1:
            raise ValueError("the uniform mechanism has alpha = 1")

    @property
    def holds(self) -> frozenset[str]:
        return frozenset({"RH", "RM", "CH", "CM", "F", "WH", "S"})

    def power(self, output: int, count: int) -> int:
        return 0

    def factor(self, a: Number, output: int) -> Number:
        return a / (self.n + 1)

    def draw(self, counts: Integers, source: BitSource) -> Integers:
        return uniform(len(counts), self.n + 1, source)

    def _moment(self, a: Number, p: int, d: int) -> Number:
        n = self.n
        total = series(lambda e: e**p * (n + 1 - e), max(d + 1, 1), n, p + 1, a)
        return 2 * total / (n + 1) ** 2

    def _moment_of(self, a: Number, count: int, p: int, d: int) -> Number:
        first = max(d + 1, 1)
        total = power_sum(p, first, count) + power_sum(p, first, self.n - count)
        return total * a / (self.n + 1)

    def _chance(self, a: Number, error: int) -> Number:
        return max(self.n + 1 - abs(error), 0) * a / (self.n + 1) ** 2

    def _at_most(self, a: Number, output: int, count: int) -> Number:
        return min(max(output + 1, 0), self.n + 1) * a / (self.n + 1)

    def interval(self, output: int, half: Fraction) -> tuple[int, int]:
        return 0, self.n

    def _row(self, a: Number, output: int, first: int, last: int) -> Number:
        return (last - first + 1) * a

    def _bias_of(self, a: Number, count: int) -> Number:
        return (self.n - 2 * count) * a / 2

    @property
    def extreme_counts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (0, self.n), (self.n // 2, self.n - self.n // 2)


#: The closed forms by their names in files.
LAWS: dict[str, type[Law]] = {law.name: law for law in (GeometricLaw, FairLaw, UniformLaw)}
