"""Keys that nobody listed: which labels of a column are released, and how many users each has.

Diagnoses, towns or products are no public list: that a rare one is there tells of somebody. Under
(epsilon, delta) a key may be released if it has so many users that one of them hardly matters. Let
pi(n) be the probability that a key of n users is kept. One user more or less allows

    pi(n) <= e^epsilon pi(n - 1) + delta,    1 - pi(n) >= e^-epsilon (1 - pi(n - 1) - delta),

and the largest numbers from pi(0) = 0 on are the optimum for users with one key each (Desfontaines,
Voss, Gipson and Mandayam, PETS 2022: Differentially private partition selection). The steps q(n) =
pi(n) - pi(n - 1) rise from delta by e^epsilon at most, and fall again: so they are the law of noise
X of which -X and n - X have likelihood ratios within e^epsilon, but for delta at the ends. A key is
kept if n - X is above 0, for X = 0, 1, .. with the probabilities q(1), q(2), ..; that happens with
the probability pi(n), and the noisy number n - X is released with it, at no further cost: for all
epsilon and delta the best rule for keys also tells how many users they have.

Users with several keys each move several counts. The same rule then has a part of epsilon and
delta for each key; Gaussian noise is in proportion to the root of their number, and a threshold
hides keys that only one user has. Of many keys the latter keeps more.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import scipy
from flint import arb

from frequency.core import ConfidenceInterval, normal_quantile
from mechdesign import ApproximateDP, Privacy
from mechdesign.accounting.pair_law import exp_above
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.base import (
    Booleans,
    Floats,
    Integers,
    Rational,
    ball,
    bit_source,
    brief,
    precision,
    set_fields,
    whole,
)
from mechdesign.exceptions import MechanismError
from mechdesign.noise.discrete import LARGEST_SIGMA2, DiscreteGaussian
from mechdesign.noise.sampling import Sampler
from rangeq.central.inputs import LARGEST_TOTAL, InvalidHistogram

#: The most keys of a user.
MOST_KEYS = 1 << 16

# The part of delta that rounding to so many binary places may take.
_SPARE, _BITS = Fraction(1, 1 << 32), 96

_LONGEST = 1 << 20  # the steps of the optimal rule, at most

_FINE = 1 << 20  # into so many units a user is divided where noise is Gaussian

_SHARES = tuple(Fraction(k, 16) for k in (1, 2, 4, 8, 12, 14, 15))  # of delta, for noise

_HALVINGS = 64  # of intervals in which ends are sought


@dataclass(frozen=True, init=False, repr=False)
class KeyRule(ABC):
    """The base of rules by which keys are kept, with noisy numbers of their users.

    A key's number is its users, times `unit`, plus noise; it is kept if that is at least `least`.

    Attributes
    ----------
    epsilon, delta : Fraction
        What a release keeps, for one user more or less.
    keys : int
        The most keys of a user.
    """

    epsilon: Fraction
    delta: Fraction
    keys: int

    kind: ClassVar[str]  #: The name of the rule in files.

    def __init__(self, epsilon: float | Rational, delta: float | Rational, keys: int = 1) -> None:
        promise = ApproximateDP(epsilon, delta)
        number = whole(keys, "keys", 1, MOST_KEYS, what="a number of keys")
        set_fields(self, epsilon=promise.epsilon, delta=promise.delta, keys=number)
        self._require_possible()

    @abstractmethod
    def _require_possible(self) -> None:
        """Raise ValueError for a promise that the rule cannot keep."""

    @property
    @abstractmethod
    def unit(self) -> int:
        """How much one user adds to a number."""

    @property
    @abstractmethod
    def least(self) -> int:
        """The least number that is released."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the noise, in users."""

    @property
    @abstractmethod
    def shift(self) -> float:
        """The mean of the noise, in users."""

    @abstractmethod
    def audit(self) -> bool:
        """Return whether the promise is kept, by exact numbers or proved bounds.

        Returns
        -------
        bool
        """

    @abstractmethod
    def survival(self, number: Any, users: Any) -> Floats:
        """Return the probability that the number of a key is at least this one.

        Parameters
        ----------
        number : array_like
            Numbers, as they are released.
        users : array_like
            How many users the key has: floats are rounded down where noise is in whole users.

        Returns
        -------
        numpy.ndarray of float64
            Of their common shape.
        """

    @abstractmethod
    def _noise(self, size: int, rng: np.random.Generator | None) -> Integers:
        """Draw noise."""

    @property
    def cost(self) -> PrivacyLoss:
        """What a ledger records of a release."""
        return PrivacyLoss.from_profile([(exp_above(self.epsilon), self.delta)])

    def kept(self, users: Any) -> Floats:
        """Return the probability that a key with so many users is kept.

        Parameters
        ----------
        users : array_like
            At least 1.

        Returns
        -------
        numpy.ndarray of float64
        """
        return self.survival(self.least, users)

    def from_users(self, probability: float) -> int:
        """Return the least number of users with which a key is kept with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        int
            At least 1.
        """
        low, high = 0, 1
        while self.kept(high) < probability:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.kept(middle) >= probability else (middle, high)
        return high

    def release(self, users: Any, rng: np.random.Generator | None = None) -> tuple[Any, Any]:
        """Decide which keys are kept, and draw their numbers, once.

        Every call is a release of its own.

        Parameters
        ----------
        users : array_like
            Shape (keys,): how many users each key has, integers of at least 1.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness; a generator's results can be repeated, and
            are not private.

        Returns
        -------
        tuple of numpy.ndarray
            Booleans (keys,): which are kept; and their numbers, (kept,) of int64.

        Raises
        ------
        InvalidHistogram
            What is no number of users.
        MechanismError
            The rule does not keep its promise; nothing was drawn.
        """
        if not self.audit():
            raise MechanismError(f"{self!r} does not keep its promise")
        given = np.asarray(users)
        if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
            raise InvalidHistogram("users of keys are an array of integers")
        if given.size and (given.min() < 1 or given.max() > LARGEST_TOTAL // _FINE):
            raise InvalidHistogram("a key has from 1 to 2^32 users")
        numbers = given.astype(np.int64) * self.unit + self._noise(given.size, rng)
        kept: Booleans = numbers >= self.least
        return kept, numbers[kept]

    def estimates(self, numbers: Integers) -> Floats:
        """Return the users of keys from their numbers, without bias before some are left out.

        Parameters
        ----------
        numbers : numpy.ndarray of int64
            As `release` gave them.

        Returns
        -------
        numpy.ndarray of float64
        """
        return numbers / self.unit - self.shift

    def interval(self, numbers: Integers, confidence: float = 0.95) -> ConfidenceInterval[Floats]:
        """Return intervals for the users of keys that were kept, given that they were.

        Of all keys with as many users that are kept, as many intervals hold as said, or more.

        Parameters
        ----------
        numbers : numpy.ndarray of int64
            As `release` gave them.
        confidence : float, default 0.95
            In (0, 1).

        Returns
        -------
        ConfidenceInterval
            Users, at least 1.
        """
        normal_quantile(confidence)  # refuses what is none
        distinct, places = np.unique(numbers, return_inverse=True)
        tail = (1 - confidence) / 2

        def above(users: Floats) -> Booleans:
            at_least = self.survival(distinct, users) / self.survival(self.least, users)
            return np.asarray(at_least > tail)

        def too_many(users: Floats) -> Booleans:
            # Not given that it is kept: that would say that numbers near the least are of nobody
            return np.asarray(1 - self.survival(distinct + 1, users) <= tail)

        # Both tails are monotone in the number of users: the first that is in, and the first out
        ends = []
        for wanted in (above, too_many):
            low = np.ones(len(distinct))
            high = np.floor(distinct / self.unit + 64 * self.deviation + 64)
            for _ in range(_HALVINGS):
                middle = np.floor((low + high) / 2)
                found = wanted(middle)
                high = np.where(found, middle, high)
                low = np.minimum(np.where(found, low, middle + 1), high)
            ends.append(high)
        first, last = ends[0], np.maximum(ends[1] - 1, 1.0)
        return ConfidenceInterval(first[places], last[places])

    def __repr__(self) -> str:
        numbers = f"{brief(self.epsilon)}, {brief(self.delta)}, {self.keys}"
        return f"{type(self).__name__}({numbers})"

    def __str__(self) -> str:
        half, most = self.from_users(0.5), self.from_users(0.95)
        return (
            f"{self.kind}: keys of {half} users are kept half of the time, of {most} 95 %; standard"
            f" error {self.deviation:.3g} users"
        )


@dataclass(frozen=True, init=False, repr=False)
class OptimalKeys(KeyRule):
    """The rule that keeps most keys of users with one each; of several each has a part.

    Parameters
    ----------
    epsilon, delta : float, Fraction, int, str or Decimal
        As of `ApproximateDP`.
    keys : int, default 1
        The most keys of a user.

    Raises
    ------
    ValueError
        Numbers out of range, or of which a rule would have more than 2^20 steps.

    Examples
    --------
    >>> rule = OptimalKeys(1, "1e-6")
    >>> rule.from_users(0.5), f"{float(rule.kept(1)):.2g}", rule.audit()
    (14, '1e-06', True)
    """

    kind: ClassVar[str] = "optimal"

    @property
    def unit(self) -> int:
        return 1

    def _require_possible(self) -> None:
        self._alpha  # noqa: B018  what is too small is refused here
        # Up to the middle the steps grow from delta, by e^epsilon each
        rate = float(self.epsilon / self.keys)
        steps = 2 * math.log1p(rate * self.keys / min(float(self.delta), 0.5)) / rate
        if steps > _LONGEST:
            raise ValueError(f"epsilon {brief(self.epsilon)} for {self.keys} keys is too small")

    @cached_property
    def _alpha(self) -> Fraction:
        return Privacy.from_epsilon(self.epsilon / self.keys).alpha

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The steps q(1), q(2), .. of the probabilities, times `whole`."""
        up, down = self._alpha.denominator, self._alpha.numerator
        share = self.delta / self.keys * (1 - _SPARE)
        delta = share.numerator * self.whole // share.denominator
        weights, kept = [], 0
        while kept < self.whole:
            rising = kept * up // down + delta
            left = max(self.whole - kept - delta, 0)
            falling = self.whole - -(-left * down // up)
            kept, before = min(rising, falling, self.whole), kept
            weights.append(kept - before)
        return tuple(weights)

    @cached_property
    def whole(self) -> int:
        """The sum of the weights: a power of two."""
        return 1 << (_BITS + math.ceil(self.keys / self.delta).bit_length())

    def audit(self) -> bool:
        # What is released of n users is made of n - X: its divergence from n + 1 - X, in both
        # orders, is the sum of what ratios exceed 1 / alpha by
        ratio, weights = 1 / self._alpha, (0, *self.weights, 0)
        for first, second in ((weights, weights[1:]), (weights[1:], weights)):
            over = sum(
                (max(p - ratio * q, Fraction(0)) for p, q in zip(first, second, strict=False)),
                Fraction(0),
            )
            if over > self.delta / self.keys * self.whole:
                return False
        return sum(self.weights) == self.whole

    @property
    def least(self) -> int:
        return 1

    @cached_property
    def _law(self) -> Floats:
        return np.array([weight / self.whole for weight in self.weights])

    @cached_property
    def _cumulative(self) -> Floats:
        """The probabilities of X below 0, 1, ..: from both ends, as small ones count."""
        sums = [0, *accumulate(self.weights)]
        return np.array([total / self.whole for total in sums])

    @property
    def shift(self) -> float:
        return -float(self._law @ np.arange(len(self._law)))

    @property
    def deviation(self) -> float:
        places = np.arange(len(self._law))
        return float(np.sqrt(self._law @ (places + self.shift) ** 2))

    def survival(self, number: Any, users: Any) -> Floats:
        # n - X >= number for X <= n - number
        most = np.floor(users) - np.asarray(number) + 1
        return self._cumulative[np.clip(most, 0, len(self._law)).astype(np.int64)]

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler([[weight] for weight in self.weights], self.whole)

    def _noise(self, size: int, rng: np.random.Generator | None) -> Integers:
        drawn = self._sampler.outputs(np.zeros(size, dtype=np.int64), bit_source(rng))
        return -drawn


@dataclass(frozen=True, init=False, repr=False)
class GaussianKeys(KeyRule):
    """The rule with Gaussian noise, for users with several keys each, and a threshold.

    A part of delta is for the noise, and the rest bounds the probability that one of a user's keys
    that nobody else has is kept.

    Parameters
    ----------
    epsilon, delta : float, Fraction, int, str or Decimal
        As of `ApproximateDP`.
    keys : int, default 1
        The most keys of a user.

    Raises
    ------
    ValueError
        Numbers out of range.

    Examples
    --------
    >>> GaussianKeys(1, "1e-6", 100).from_users(0.5) < OptimalKeys(1, "1e-6", 100).from_users(0.5)
    True
    """

    kind: ClassVar[str] = "gaussian"

    @cached_property
    def unit(self) -> int:
        # As fine as noise may be, of the largest variance that is tried
        ratio = ApproximateDP(self.epsilon, self.delta * min(_SHARES)).noise_ratio
        spare = LARGEST_SIGMA2 / (self.keys * ratio)
        return int(min(_FINE, 1 << (max(math.floor(spare), 1).bit_length() - 1) // 2))

    def _require_possible(self) -> None:
        self._parts  # noqa: B018  what is too small is refused here

    @cached_property
    def _parts(self) -> tuple[int, DiscreteGaussian, Fraction]:
        """The least threshold, its noise, and the part of delta that the noise has."""
        found = []
        for share in _SHARES:
            part = self.delta * share
            ratio = ApproximateDP(self.epsilon, part).noise_ratio
            # Up to a whole number, which is short
            noise = DiscreteGaussian(math.ceil(self.keys * self.unit**2 * ratio))
            found.append((self._threshold(noise, self.delta - part), part, noise))
        least, part, noise = min(found, key=lambda each: each[:2])
        return least, noise, part

    def _threshold(self, noise: DiscreteGaussian, delta: Fraction) -> int:
        """The least number that a key of one user reaches with a probability within delta."""
        low, high = self.unit, self.unit + (math.isqrt(int(noise.sigma2)) + 1) << 10
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._hides(middle, noise, delta) else (middle, high)
        return high

    def _hides(self, least: int, noise: DiscreteGaussian, delta: Fraction) -> bool:
        """Whether one of a user's own keys is kept with a probability within delta, proved."""
        # Sums of exp(-x^2 / (2 sigma^2)) over x >= t are below the integral from t - 1 on, and over
        # all integers above the integral, by Poisson's summation
        with precision(192):
            away = arb(least - self.unit - 1) / (2 * ball(noise.sigma2)).sqrt()
            beyond = away.erfc() / 2
            return bool(beyond * self.keys <= ball(delta))

    def audit(self) -> bool:
        least, noise, part = self._parts
        enough = noise.sigma2 >= (
            self.keys * self.unit**2 * ApproximateDP(self.epsilon, part).noise_ratio
        )
        return enough and self._hides(least, noise, self.delta - part)

    @property
    def least(self) -> int:
        return self._parts[0]

    @property
    def shift(self) -> float:
        return 0.0

    @property
    def deviation(self) -> float:
        return math.sqrt(float(self._parts[1].sigma2)) / self.unit

    def survival(self, number: Any, users: Any) -> Floats:
        away = (np.asarray(number) - 0.5) / self.unit - np.asarray(users)
        return np.asarray(scipy.special.ndtr(-away / self.deviation))

    def _noise(self, size: int, rng: np.random.Generator | None) -> Integers:
        return self._parts[1].draw(size, bit_source(rng))


#: The rules, by the names that files have for them.
RULES: dict[str, type[KeyRule]] = {rule.kind: rule for rule in (OptimalKeys, GaussianKeys)}


def key_rules(epsilon: Any, delta: Any, keys: int = 1) -> Sequence[KeyRule]:
    """Return the rules that keep a promise, that which keeps keys of the fewest users first.

    Parameters
    ----------
    epsilon, delta : float, Fraction, int, str or Decimal
        As of `ApproximateDP`.
    keys : int, default 1
        The most keys of a user.

    Returns
    -------
    sequence of KeyRule
        One at least.

    Raises
    ------
    ValueError
        Numbers out of range.
    """
    found: list[KeyRule] = []
    with suppress(ValueError):  # of many keys each part may be too small
        found.append(OptimalKeys(epsilon, delta, keys))
    found.append(GaussianKeys(epsilon, delta, keys))
    return sorted(found, key=lambda rule: rule.from_users(0.5))
