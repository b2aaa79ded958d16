"""Trust: the candidates of a task under one central promise, and who is trusted with what.

Central epsilon, and delta, are about what is published of all users: two datasets are neighbours if
they differ in the value of one user, and n is public. Tasks here are made of others: their
candidates have the local epsilon, or are the mechanisms of a curator, that keep that promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import PrivacyCurve, exp_above, exp_below, float_above
from mechdesign.accounting.shuffling import TRUST as SHUFFLER_TRUST
from mechdesign.base import set_fields
from mechdesign.exceptions import MechanismError, UnstatedLikelihoods
from mechdesign.planning.task import InvalidRequest, Offer, Task, all_names, offered

# ------------------------------------------------------------------------------------------------
# The least epsilon, or the fewest users, at which a predicted error reaches a target.


#: The ends of a search for an epsilon.
#:
#: Beyond the larger one, likelihood ratios exceed eight million, which is hardly any protection.
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 1000), Fraction(16)

LARGEST_N = 10**12  #: The largest number of users of a search.

_EPSILON_DIGITS = 4  # the significant digits of an epsilon that was searched for; it is rounded up


class Unreachable(MechanismError):
    """The error that no candidate reaches the target ``error``: ``least`` is the best possible."""

    is_answer = True

    def __init__(self, error: float, least: float, within: str) -> None:
        self.error, self.least, self.within = error, least, within
        best = (
            f"the least predicted is {least:.4g}"
            if math.isfinite(least)
            else "no candidate has a predicted error there"
        )
        super().__init__(f"no candidate reaches an error of {error:.4g} {within}: {best}")


@dataclass(frozen=True)
class Scale:
    """A scale: the numbers that a search may try, in order: ``value(0) .. value(last)``."""

    value: Callable[[int], Any]
    rank: Callable[[float], int]  # about the last rank whose number is at most the argument
    last: int
    start: float  # where the search begins
    power: float  # errors are expected to fall as numbers to the power -``power``


USERS = Scale(lambda rank: rank + 1, lambda n: math.floor(n) - 1, LARGEST_N - 1, 1e6, 0.5)


def epsilons(largest: Fraction) -> Scale:
    """Return the scale of decimals of four digits from 0.001 to ``largest``."""
    steps = 9 * 10 ** (_EPSILON_DIGITS - 1)

    def value(rank: int) -> Fraction:
        power, digits = divmod(rank, steps)
        return Fraction(
            LEAST_EPSILON * 10**power * (1 + Fraction(10 * digits, 10**_EPSILON_DIGITS))
        )

    def rank(epsilon: float) -> int:
        times = epsilon / float(LEAST_EPSILON)
        power = math.floor(math.log10(times))
        return int(power * steps + math.floor((times / math.pow(10, power) - 1) * steps / 9))

    last = max(rank(float(largest)) + 1, -1)
    while last >= 0 and value(last) > largest:
        last -= 1
    return Scale(value, rank, last, 1.0, 1.0)


def least(error: Callable[[Any], float], target: float, scale: Scale) -> Any:
    """Return the least number at which the error is at most the target; None if there is none.

    Errors are expected to fall. If they do not throughout, the number found reaches the target and
    the number before it does not.
    """
    # The search keeps a bracket and tries the number at which a power law through its ends reaches
    # the target, which is exact for power laws; every third time it tries the middle.
    # Invariant: the error at rank `below` exceeds the target, that at `above` does not; both begin
    # outside of the scale. Each try narrows the bracket, and so the search ends.
    below, above = -1, scale.last + 1
    ends: dict[bool, tuple[float, float]] = {}
    guess, tries = scale.start, 0
    while above - below > 1:
        rank = min(max(scale.rank(guess), below + 1), above - 1)
        value = scale.value(rank)
        predicted = error(value)
        reached = predicted <= target
        below, above = (below, rank) if reached else (rank, above)
        ends[reached] = float(value), predicted
        tries += 1
        if len(ends) == 1:  # a larger step than the power law asks for, growing with each try
            factor = min(
                max((max(predicted, 1e-300) / target) ** (1 / scale.power), 0.1),
                10.0 if math.isinf(predicted) else 1e12,
            )
            further = 4.0**tries / 1e4 if tries > 1 else 0.0
            guess = float(value) * (factor / (1 + further) if reached else factor * (1 + further))
            continue
        (low, large), (high, small) = ends[False], ends[True]
        share = 0.5
        # Interpolation in logarithms; every third try halves, as interpolation alone may creep
        # towards one end.
        if tries % 3 and math.isfinite(large) and small > 0:
            share = math.log(large / target) / math.log(large / small)
        guess = low * (high / low) ** share
    return None if above > scale.last else scale.value(above)


#: The kinds of trust: in nobody, in a shuffler, or in a curator.
LOCAL, SHUFFLED, CURATOR = TRUSTS = ("local", "shuffled", "curator")

CURATOR_TRUST = (
    "The curator is trusted with every user's true value, to keep it, and to publish nothing but"
    " the release"
)

_HALF = (
    "Mechanisms have half of epsilon, which is lost by one user more or less: a changed value is"
    " both."
)

_DIGITS = 4  # the significant digits of a local epsilon that was searched for; it is rounded down

_SMOOTHING = 0.02  # the smoothing of the bounds on delta in a search: see `PrivacyCurve.above`

# The relative margin by which a local epsilon is certified at a smaller central one.
#
# `PrivacyCurve.epsilon` then finds no more than was promised: it is within half of that of the
# least.
_MARGIN = Fraction(2, 10**4)

#: The relative excess of sqrt(-2 ln delta) over its goal at which a search ends, and the one that
#: it aims at.
_CLOSE, _AIM = 0.004, 0.001

_STEPS = 16  # the steps after which a search ends, with the largest local epsilon certified by then


@dataclass(frozen=True)
class _Promised(Task):
    """The question of a task in which users report, under one promise about all of them."""

    asked: Task  # its ``domain`` is that of this task

    @property
    def question(self) -> str:
        return self.asked.question

    @property
    def error_is(self) -> str:
        return self.asked.error_is


@dataclass(frozen=True)
class ByShuffler(_Promised):
    """A task's protocols, at the largest local epsilons whose shuffled reports keep a promise.

    They are certified by an upper bound of `mechdesign.accounting.shuffled`, and never below the
    central epsilon, which any reports of that epsilon keep.
    """

    delta: Fraction  # of the central promise

    trust: ClassVar[str] = SHUFFLED
    trusted: ClassVar[str] = (
        f"{SHUFFLER_TRUST}. If it does not, what holds is the local epsilon of each report."
    )

    def __post_init__(self) -> None:
        asked = self.asked
        set_fields(
            self,
            symbols=asked.symbols,
            advice=asked.advice,
            described=asked.described,
            one_population=asked.one_population,
        )

    @property
    def central_delta(self) -> Fraction:
        return self.delta

    @property
    def baseline(self) -> str:
        return self.asked.baseline

    @property
    def names(self) -> tuple[str, ...]:
        return all_names(self.asked)

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        asked = name, epsilon, n
        if asked not in self._offers:
            self._offers[asked] = self._offer(name, epsilon, n)
        return self._offers[asked]

    @cached_property
    def _offers(self) -> dict[tuple[str, float | Fraction, int], Offer]:
        """The offers that were searched for, which takes long."""
        return {}

    def _offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        def collection(local: float | Fraction) -> PrivacyCurve:
            curve = shuffled(offered(self.asked, name, local, n).protocol, n)
            if curve.of_one_day:
                raise InvalidRequest(
                    "reports of several days are not to be shuffled on each of them: they are made"
                    " of the same permanent reports; plan for one day"
                )
            return curve

        try:
            local = largest_local_epsilon(collection, epsilon, self.delta, n)
        except UnstatedLikelihoods as error:
            raise ValueError(str(error)) from error
        return replace(offered(self.asked, name, local, n), local_epsilon=local)


def largest_local_epsilon(
    collection: Callable[[float | Fraction], PrivacyCurve],
    epsilon: float | Fraction,
    delta: Fraction,
    n: int,
) -> float | Fraction:
    """Return the largest local epsilon found whose shuffled reports provably keep a promise."""
    collection(epsilon)
    ratio = exp_below(Fraction(epsilon) * (1 - _MARGIN))
    goal = _score(float(delta))

    def score(local: Fraction) -> float:
        """Return a number above the goal if the promise is kept, nearly linear in logarithms."""
        try:
            bound = float_above(collection(local).above(ratio, _SMOOTHING))
        except ValueError:
            return 0.0
        return min(_score(bound), goal) if bound > delta else max(_score(bound), goal)

    # Reports that keep epsilon alone keep it shuffled: a lower end that needs no proof. Invariant:
    # the promise is proved at `low`.
    low: float | Fraction = epsilon
    high = LARGEST_EPSILON
    # About what amplification allows: e^local is proportional to n epsilon^2
    guess = 2 * math.log(float(epsilon)) + math.log(n / (goal * goal))
    known: list[tuple[float, float]] = []
    for _ in range(_STEPS):
        middle = (float(low) + float(high)) / 2
        local = _rounded(guess if low < guess < high else middle)
        if not low < local < high:
            break
        reached = score(local)
        low, high = (local, high) if reached >= goal else (low, local)
        if goal <= reached <= goal * (1 + _CLOSE):
            break
        if 0 < reached < math.inf:
            known.append((float(local), math.log(reached)))
        guess = _aim(known, math.log(goal * (1 + _AIM)))
    return low


def _aim(known: list[tuple[float, float]], goal: float) -> float:
    """Return where a line through the last two points, or one of slope -1/2, reaches the goal."""
    if not known:
        return math.nan
    (x, y), slope = known[-1], -0.5
    if len(known) > 1 and (y - known[-2][1]) * (x - known[-2][0]) < 0:
        slope = (y - known[-2][1]) / (x - known[-2][0])
    return x + (goal - y) / slope


def _score(delta: float) -> float:
    return math.sqrt(-2 * math.log(delta)) if 0 < delta < 1 else (0.0 if delta >= 1 else math.inf)


def _rounded(epsilon: float) -> Fraction:
    """Return the decimal of a few digits below a number."""
    step = Fraction(10) ** (math.floor(math.log10(epsilon)) + 1 - _DIGITS)
    return math.floor(Fraction(epsilon) / step) * step


@dataclass(frozen=True)
class ByCurator(_Promised):
    """A task of the mechanisms of a curator that answer the question of a task of reports.

    They keep epsilon, with a delta of 0 or at most the promised one. Their errors, in users, are
    brought to the task's unit.
    """

    curated: Task  # the curator's own task
    changed: int  # how often a mechanism's epsilon is lost when a user's value changes
    delta: Fraction | None  # of the central promise, if it has one

    trust: ClassVar[str] = CURATOR

    def __post_init__(self) -> None:
        set_fields(self, described=self.curated.described)

    @property
    def trusted(self) -> str:
        return f"{CURATOR_TRUST}. {_HALF}" if self.changed == 2 else f"{CURATOR_TRUST}."

    @property
    def central_delta(self) -> Fraction:
        return self.delta or Fraction(0)

    @property
    def names(self) -> tuple[str, ...]:
        return self._curated(1).names

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        offer = self._curated(epsilon).offer(name, epsilon / self.changed, n)
        return replace(offer, error=offer.error / n)

    def _curated(self, epsilon: float | Fraction) -> Task:
        """Return the curator's task, with a delta for each of the steps that a changed value is."""
        # If each of two steps keeps (epsilon / 2, d), both keep (epsilon, (1 + e^(epsilon / 2)) d).
        if self.delta is None:
            return self.curated
        # Group privacy: deltas add up with factors e^(epsilon / changed); rounded up, so that each
        # step's delta is rounded down.
        above = exp_above(Fraction(epsilon) / self.changed)
        steps = sum((above**k for k in range(self.changed)), Fraction(0))
        return with_delta(self.curated, self.delta / steps)


def with_delta(task: Task, delta: Fraction) -> Task:
    """Return a curator's task under a promise with a delta."""
    changes: dict[str, Any] = {"delta": delta}
    return replace(task, **changes) if any(each.name == "delta" for each in fields(task)) else task
