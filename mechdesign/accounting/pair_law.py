"""Pair laws: the likelihoods of reports of two values, relative to a law that hides them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb

from mechdesign.base import Floats, Rational, ball, brief, fraction, precision, rational_of
from mechdesign.exceptions import UnboundedRatio
from mechdesign.privacy import exact_epsilon

_ATTACKS = 2  # the number of attacks on a table that are tried

#: The largest likelihood ratio of several pairs: floats end there.
#:
#: :meta hide-value:
LARGEST_RATIO = 1 << 900

_UNBOUNDED = (
    "an output is possible under one input and impossible under another: nothing hides it, whatever"
    " the other users hold"
)


class PairClass(NamedTuple):
    """A class of reports y with the same likelihoods, relative to a measure omega(y).

    omega is a blanket, at most the probability of a report under every value; or, of an attack, the
    probability under one value.
    """

    weight: Fraction  # the measure omega of the class, above 0
    first: Fraction  # the probability of a report under the first value, over omega; at least 0
    second: Fraction  # the same under the second value


#: The type of all reports in classes: ``weight * first`` adds up to 1, and so does ``weight *
#: second``; the weights add up to at most 1.
PairLaw: TypeAlias = tuple[PairClass, ...]


def merged(classes: Iterable[PairClass]) -> PairLaw:
    """Return the same law, with the classes of equal likelihoods made one, in order of these."""
    weights: defaultdict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    for weight, first, second in classes:
        weights[first, second] += weight
    return tuple(PairClass(weight, *pair) for pair, weight in sorted(weights.items()) if weight)


def require_pair_law(law: Sequence[PairClass]) -> PairLaw:
    """Return the law itself; ValueError if its weights and ratios are none that reports have."""
    law = tuple(PairClass(*item) for item in law)
    if any(item.weight <= 0 or min(item.first, item.second) < 0 for item in law):
        raise ValueError("the classes of a pair law have weights above 0 and ratios of at least 0")
    sums = [sum((w * r for w, *pair in law for r in pair[k : k + 1]), Fraction(0)) for k in (0, 1)]
    if sums != [1, 1] or sum(item.weight for item in law) > 1:
        raise ValueError(
            "the probabilities of a pair law add up to 1 for both values, and its weights to at"
            " most 1"
        )
    return law


class PairLaws:
    """A collection of pair laws, of which the largest delta is wanted.

    Parameters
    ----------
    laws : sequence of PairLaw
        As protocols state them.

    Raises
    ------
    ValueError
        Numbers that are no law.
    """

    def __init__(self, laws: Sequence[Sequence[PairClass]]) -> None:
        self._laws = tuple(dict.fromkeys(map(require_pair_law, laws)))

    def __len__(self) -> int:
        return len(self._laws)

    def __getitem__(self, k: int) -> PairLaw:
        return self._laws[k]

    @property
    def rows(self) -> Sequence[Sequence[int]] | None:
        """The table of all reports (rows) and values, in units of the sum of a column, if known."""
        return None  # the classes of a law may be of many reports

    @cached_property
    def largest_ratio(self) -> Fraction:
        """The largest likelihood ratio of two values, at least 1."""
        most = Fraction(1)
        for law in self._laws:
            for _, first, second in law:
                if not first or not second:
                    raise UnboundedRatio(_UNBOUNDED)
                most = max(most, first / second, second / first)
        return most

    @cached_property
    def largest(self) -> Fraction:
        """The largest likelihood, relative to omega."""
        return max(
            (max(first, second) for law in self._laws for _, first, second in law),
            default=Fraction(1),
        )

    @property
    def terms(self) -> int:
        """The number of roundings that a number of `floats` has seen, at most."""
        return 1

    @cached_property
    def floats(self) -> list[Floats]:
        """The laws as weights, firsts and seconds: shape (3, classes) each, rounded to nearest."""
        return [np.array([[float(x) for x in item] for item in law]).T for law in self._laws]


class TableLaws(PairLaws):
    """The pair laws of all ordered pairs of inputs of a table, under its largest blanket.

    omega is the least probability of an output under any input; if it is 0 where another is not,
    UnboundedRatio is raised.
    Shapes: `weights` (outputs, inputs), probabilities in units of the sum of each column.
    """

    # Laws are made when asked for, as there are many pairs; pairs with the same law count once.

    def __init__(self, weights: Sequence[Sequence[int]]) -> None:
        self._rows = [row for row in weights if any(row)]
        if not all(map(all, self._rows)):
            raise UnboundedRatio(_UNBOUNDED)
        self._omega = [min(row) for row in self._rows]
        self._total = sum(row[0] for row in self._rows)
        ratios = [
            [Fraction(w, low) for w in row]
            for row, low in zip(self._rows, self._omega, strict=True)
        ]
        # Ratios are numbered, so that laws of thousands of pairs are compared as arrays of
        # integers, and exact rationals are handled once each.
        self._ratios = sorted({ratio for row in ratios for ratio in row})
        if self._ratios[-1] > LARGEST_RATIO:
            raise UnboundedRatio(
                "an output is more than 2^900 times as likely under one input as under another"
            )
        place = {ratio: k for k, ratio in enumerate(self._ratios)}
        self._places = np.array([[place[ratio] for ratio in row] for row in ratios])
        kinds = {low: k for k, low in enumerate(dict.fromkeys(self._omega))}
        kind = np.array([kinds[low] for low in self._omega])
        pairs: dict[bytes, tuple[int, int]] = {}
        for pair in permutations(range(len(self._rows[0])), 2):
            # Sorted: laws that differ by the order of outputs only are the same. With the blanket's
            # weight in the number, equal multisets are equal laws.
            classes = self._classes(pair) * len(kinds) + kind
            classes.sort()
            pairs.setdefault(classes.tobytes(), pair)
        self._pairs = list(pairs.values())

    def _classes(self, pair: tuple[int, int]) -> npt.NDArray[np.int64]:
        """Return a number for the two likelihoods of each output: shape (outputs,)."""
        first, second = pair
        codes: npt.NDArray[np.int64] = (
            self._places[:, first] * len(self._ratios) + self._places[:, second]
        )
        return codes

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, k: int) -> PairLaw:
        weights: defaultdict[int, int] = defaultdict(int)
        for number, low in zip(self._classes(self._pairs[k]).tolist(), self._omega, strict=True):
            weights[number] += low
        return tuple(
            PairClass(
                Fraction(weight, self._total),
                *(self._ratios[place] for place in divmod(number, len(self._ratios))),
            )
            for number, weight in sorted(weights.items())
        )

    @property
    def rows(self) -> Sequence[Sequence[int]]:
        return self._rows

    @cached_property
    def largest_ratio(self) -> Fraction:
        return self._ratios[-1]  # of the least one, which is 1

    @property
    def largest(self) -> Fraction:
        return self._ratios[-1]

    @property
    def terms(self) -> int:
        return len(self._rows)

    @cached_property
    def floats(self) -> list[Floats]:
        omega = np.array([low / self._total for low in self._omega])
        ratios = np.array([float(ratio) for ratio in self._ratios])
        laws = []
        for pair in self._pairs:
            classes, place = np.unique(self._classes(pair), return_inverse=True)
            first, second = np.divmod(classes, len(ratios))
            laws.append(np.array([np.bincount(place, omega), ratios[first], ratios[second]]))
        return laws


def attack_laws_of(weights: Sequence[Sequence[int]]) -> tuple[PairLaw, ...]:
    """Return the laws when all others have one value, for the values that reveal a user the most.

    Shapes: `weights` (outputs, inputs).
    """
    rows = [row for row in weights if any(row)]
    total = sum(row[0] for row in rows)
    least = 2.0**-1000  # of rows whose probabilities are 0 in floats
    table = np.array([[max(w / total, least) for w in row] for row in rows])
    scores = []
    for common in range(table.shape[1]):
        # The chi-square distance sum (p_x - p_z)^2 / p_common is the variance of the likelihood
        # ratio that the sum of n reports has to hide: the larger, the more a test of many reports
        # tells.
        scaled = table / np.sqrt(table[:, [common]])
        squares = (scaled**2).sum(axis=0)
        apart = squares[:, None] + squares[None, :] - 2 * scaled.T @ scaled
        first, second = np.unravel_index(np.argsort(apart, axis=None)[-_ATTACKS:], apart.shape)
        scores += [
            (apart[x, z], common, int(x), int(z))
            for x, z in zip(first, second, strict=True)
            if x != z
        ]
    best = sorted(scores, reverse=True)[:_ATTACKS]
    return tuple(
        dict.fromkeys(
            merged(
                PairClass(
                    Fraction(row[common], total),
                    Fraction(row[x], row[common]),
                    Fraction(row[z], row[common]),
                )
                for row in rows
            )
            for _, common, x, z in best
        )
    )


# ------------------------------------------------------------------------------------------------
# PrivacyCurve: delta as a function of epsilon, bounded on both sides, and its inverse.


_CLOSE = 2e-4  # the tolerance of an epsilon, relative to it

_SMOOTHINGS = (0.05, 0.02)  # the smoothings for upper bounds: the less, the tighter and the slower

_FINEST = 0.005  # the smoothing where one bound is asked for

_SHIFT = 0.03  # the smoothing for lower bounds

_ENOUGH = 1.03  # the factor by which less smoothing must improve a bound to be searched with

#: The first epsilon above 0 that is tried, and the largest where ratios have no bound.
_FIRST, _LARGEST = 2.0**-4, 2048.0

_LIMIT = Fraction(1 << 20)  # the largest epsilon whose e^epsilon is written out

_BITS = 128  # the precision in bits of e^epsilon as a rational number


class PrivacyCurve(ABC):
    """A privacy curve: bounds on delta(epsilon), the largest hockey-stick divergence of neighbours.

    The numbers are rounded to the safe side: upper bounds up, lower bounds down.
    """

    @property
    @abstractmethod
    def largest_epsilon(self) -> float:
        """An epsilon where delta is 0: at least the log of the largest likelihood ratio, or inf."""

    @abstractmethod
    def above(self, ratio: Fraction, smoothing: float) -> arb:
        """Return at least delta at ln(ratio): a ball whose upper end is the bound.

        Parameters
        ----------
        ratio : Fraction
            e^epsilon, at least 1.
        smoothing : float
            How much may be lost: see `mechdesign.accounting.inversion`.
        """

    def nearly(self, ratio: Fraction, smoothing: float) -> arb:
        """Return about the same as `above`, perhaps less, in less time: where to search."""
        return self.above(ratio, smoothing)

    @abstractmethod
    def below(self, ratio: Fraction, smoothing: float) -> arb:
        """Return at most delta at ln(ratio): a ball whose lower end is the bound."""

    @precision()
    def delta(self, epsilon: float | Rational) -> float:
        """Return an upper bound on delta.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            At least 0.

        Returns
        -------
        float
            0 to 1, rounded up.

        Raises
        ------
        ValueError
            An epsilon that is not finite or below 0.
        """
        # Delta falls as epsilon rises: e^epsilon is rounded down for upper bounds, up for lower
        # ones.
        ratio = exp_below(exact_epsilon(epsilon))
        return min(1.0, *(float_above(self.above(ratio, x)) for x in (*_SMOOTHINGS, _FINEST)))

    @precision()
    def delta_at_least(self, epsilon: float | Rational) -> float:
        """Return a lower bound on delta: no better accounting could show less.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            At least 0.

        Returns
        -------
        float
            0 to 1, rounded down.

        Raises
        ------
        ValueError
            An epsilon that is not finite or below 0.
        """
        asked = exact_epsilon(epsilon)
        if asked > _LIMIT:
            return 0.0  # nothing is proved there
        ratio = exp_above(asked)
        return _float_below(self.below(ratio, 2 * _FINEST))

    @precision()
    def epsilon(self, delta: float | Rational) -> float:
        """Return an epsilon that holds with this delta.

        Parameters
        ----------
        delta : float, Fraction, int, str or Decimal
            Strictly between 0 and 1. A float stands for the binary number that it is.

        Returns
        -------
        float
            The least found for which ``delta(epsilon) <= delta`` is proved; ``math.inf`` if there
            is none.

        Raises
        ------
        ValueError
            A delta that is not between 0 and 1.
        """
        target = exact_delta(delta)
        coarse, fine = _SMOOTHINGS

        # The cheap curve says where to begin; the bound itself is then computed a few times only.
        near = 0.0
        if type(self).nearly is not PrivacyCurve.nearly:
            near = self._crossing(self.nearly, coarse, target)[0]
        proved = self._crossing(self.above, coarse, target, near)[1]
        if proved in (0, math.inf):
            return proved
        ratio = exp_below(Fraction(proved))
        if self.above(ratio, coarse) <= self.above(ratio, fine) * _ENOUGH:
            return proved
        return min(proved, self._crossing(self.above, fine, target, 0.98 * proved)[1])

    @precision()
    def epsilon_at_least(self, delta: float | Rational) -> float:
        """Return a lower bound on the epsilon that holds with this delta.

        Parameters
        ----------
        delta : float, Fraction, int, str or Decimal
            Strictly between 0 and 1.

        Returns
        -------
        float
            The largest found for which ``delta(epsilon) > delta`` is proved; 0 if there is none.

        Raises
        ------
        ValueError
            A delta that is not between 0 and 1.
        """
        target = exact_delta(delta)
        proved = self._crossing(self.below, _SHIFT, target)[0]
        if proved:
            return proved
        # Where the deviation is large for small epsilons only, little is proved of those; but what
        # is proved of a larger one holds
        most = self.epsilon(delta)
        tried = (most * step / 8 for step in range(7, 0, -1)) if most < math.inf else ()
        return next((x for x in tried if self.delta_at_least(x) > target), 0.0)

    def _crossing(
        self,
        bound: Callable[[Fraction, float], arb],
        smoothing: float,
        target: Fraction,
        start: float = 0.0,
    ) -> tuple[float, float]:
        """Return two epsilons, nearly equal: a bound is above the target at the first only."""
        # Both are 0 if it is nowhere above; if it is at the largest one that is tried, both are
        # that.
        upward = bound != self.below

        def bounded(epsilon: float) -> arb:
            rounded = exp_below if upward else exp_above
            value = bound(rounded(Fraction(epsilon)), smoothing)
            end = value.upper() if upward else value.lower()
            if end.is_nan():  # nothing is known
                return arb.pos_inf() if upward else arb(0)
            return end

        def margin(epsilon: float) -> float:
            return _margin(bounded(epsilon), target)

        at_start = bounded(start)
        low, at_low = start, _margin(at_start, target)
        if at_low <= 0:
            return (low, low) if start == 0 else self._crossing(bound, smoothing, target)
        most = self.largest_epsilon
        top = _LARGEST if most == math.inf else most
        # For a normal privacy loss delta(0) is its deviation / sqrt(2 pi)
        step = 4 * _CLOSE * start or min(_FIRST, float(at_start) * (1 + at_low))
        # Invariant: the bound is above the target at `low`. Steps at least double, so that a
        # bracket is found in few bounds wherever the start is.
        while (at_high := margin(high := min(top, low + step))) > 0:
            if high == top:
                return top, most
            # A little beyond where the line through the two points ends
            ahead = 1.1 * at_high * step / max(at_low - at_high, 1e-9)
            low, at_low, step = high, at_high, min(max(ahead, 2 * step), 64 * step)
        # Invariant: above the target at `low`, proved not to be at `high`. Bisection would take
        # twice as many bounds, each of which is a sum of thousands of terms in balls; plain regula
        # falsi may keep one end for ever, and so the value there is halved when it stays twice.
        # The Illinois method (regula falsi)
        side = 0
        while high - low > _CLOSE * high:
            edge = _CLOSE / 2 * high
            middle = (low * at_high - high * at_low) / (at_high - at_low)
            middle = min(max(middle, low + edge), high - edge)
            value = margin(middle)
            if value > 0:
                low, at_low = middle, value
                at_high = at_high / 2 if side == 1 else at_high
                side = 1
            else:
                high, at_high = middle, value
                at_low = at_low / 2 if side == -1 else at_low
                side = -1
        return low, high


def _margin(bound: arb, target: Fraction) -> float:
    """Return a number above 0 if the bound is above the target; nearly linear in epsilon."""
    with precision(_BITS):
        goal = ball(target)
        if not bound > 0:
            return -1e3

        # sqrt(-2 log delta) is about linear for a normal distribution
        def scale(x: arb) -> float:
            return math.sqrt(max(0.0, -2 * float(x.log())))

        apart = scale(goal) - scale(bound)
        # The sign is that of the rigorous comparison, whatever the logarithms were rounded to.
        return max(apart, 1e-12) if not bound <= goal else min(apart, 0.0)


def exact_delta(delta: float | Rational) -> Fraction:
    """Return the exact delta, without rounding; ValueError unless strictly between 0 and 1."""
    value = fraction(delta, "delta", "strictly between 0 and 1")
    if not 0 < value < 1:
        raise ValueError(
            f"delta must be strictly between 0 and 1, got {brief(value)}: at 0 the epsilon is that"
            " of the largest likelihood ratio, and 1 promises nothing"
        )
    return value


def exp_below(epsilon: Fraction) -> Fraction:
    """Return a rational number from 1 to e^epsilon, nearly equal to that up to epsilon 2^20."""
    # Beyond 2^20 it is the same as there.
    with precision(_BITS + 16):
        return max(Fraction(1), rational_of(ball(min(epsilon, _LIMIT)).exp().lower()))


def exp_above(epsilon: Fraction) -> Fraction:
    """Return a rational number of at least e^epsilon, nearly equal to it."""
    with precision(_BITS + 16):
        return rational_of(ball(epsilon).exp().upper()) if epsilon else Fraction(1)


def log_above(ratio: Fraction) -> float:
    """Return the logarithm, rounded up."""
    with precision(_BITS):
        return float_above(ball(ratio).log()) if ratio != 1 else 0.0


@precision()
def float_above(x: arb) -> float:
    """Return the upper end of a ball, rounded up; infinite if it has none."""
    top = x.upper()
    if not top.is_finite():
        return math.inf
    value = float(top)
    # float() rounds to nearest: one step up where that was downwards.
    return value if arb(value) >= top else math.nextafter(value, math.inf)


@precision()
def _float_below(x: arb) -> float:
    bottom = x.lower()
    if not bottom.is_finite() or not bottom > 0:
        return 0.0
    value = float(bottom)
    return value if arb(value) <= bottom else math.nextafter(value, 0.0)
