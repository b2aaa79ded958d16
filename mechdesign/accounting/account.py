"""Account: the privacy accountant, for the losses of each group of users in both currencies.

A *report* tells whoever sees it at most its local epsilon; what is released, or shuffled and then
published, tells everybody else at most a central (epsilon, delta). Both are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

from mechdesign.accounting.composition import Composition
from mechdesign.accounting.dummy_counts import AmongDummies
from mechdesign.accounting.gaussian_loss import LARGEST_SQUARED_MU, GaussianLoss
from mechdesign.accounting.pair_law import exp_below, log_above
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.accounting.promises import ZCDP, ApproximateDP
from mechdesign.accounting.shuffling import (
    LARGEST_N,
    LARGEST_PERMANENT,
    DailyReports,
    Shuffled,
    thinned,
)
from mechdesign.base import Rational, brief, exact, plain_name, shown, to_text, whole
from mechdesign.exceptions import MechanismError, UnboundedRatio
from mechdesign.mechanism.table import Table
from mechdesign.privacy import exact_epsilon

#: The longest numerator, denominator, or common denominator of the epsilons of a ledger.
NUMBER_BITS = 2048

#: The number of bits to which a squared mu is kept, and of its binary places at most.
_MU_BITS, _MOST_MU_BITS = 64, 256

# The number of groups of users, and of costs, that are remembered: as many as ledgers have.
_CACHED = 4096

# The largest share of the sum of epsilons that a composition may cost; else that sum counts.
_GAIN = 1 - Fraction(1, 1 << 12)

_ROUGH = 0.2  # the smoothing of bounds that show that a group has lost less than another

# The epsilon beyond which all are alike where they are compared in floats.
_LARGE = Fraction(1 << 20)

_UNBOUNDED = Fraction(1 << (2 * NUMBER_BITS))

#: The type of the cost of a collection: an epsilon, or what it is worked out from.
Cost: TypeAlias = (
    float | Rational | Table | Shuffled | AmongDummies | GaussianLoss | DailyReports | PrivacyLoss
)


class BudgetExceeded(MechanismError):
    """The error for a cost that exceeds what is left of the budget. Nothing was recorded.

    Attributes: ``asked`` and ``remaining``, exact.
    """

    is_answer = True

    def __init__(self, asked: Fraction, remaining: Fraction, what: str = "") -> None:
        self.asked, self.remaining, self.what = asked, remaining, what
        of = f" for {what}" if what else ""
        least, binary = asked.denominator, asked - remaining < asked / 10**9
        hint = ""
        if binary and least > 1 << 20 and not least & (least - 1):  # a float, and a little more
            text = f"{float(asked):.12g}"
            hint = f" (the float {text} is not the decimal {text}: write '{text}')"
        super().__init__(
            f"epsilon {number(asked)}{of} is more than the {number(remaining)} that remains;"
            f" nothing was recorded{hint}"
        )


class AlreadySpent(MechanismError, ValueError):
    """The error for a collection whose name is in the ledger. Nothing was recorded."""


class ShuffledDays(MechanismError, ValueError):
    """The error for shuffled reports of one day whose users report on other days, too.

    Nothing was recorded.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: reports of different days are made of the same permanent reports, by which"
            " users are found again, so that what a shuffler hides on each day does not add up."
            " Spend what all days tell, Memoised.cost; or, if the reports of no other day are ever"
            " shown to anybody, say so: only_day=True; nothing was recorded"
        )


@dataclass(frozen=True)
class Entry:
    """A collection, and its privacy loss.

    Attributes
    ----------
    epsilon : Fraction or None
        What readers of the release learn at most, with delta = 0; above 0. None: nothing bounds
        that, as of Gaussian noise, and of a profile whose delta stays above 0.
    what : str
        Its name.
    users : tuple of str or None
        The groups that it is from; None: all users.
    local : Fraction or None
        What each report tells whoever sees it with its sender; None: a curator's release.
    shuffled : int or None
        At least how many reports are shuffled; None: they are not.
    rate : Fraction or None
        The probability with which each respondent is in the sample; None: all are asked.
    profile : tuple of (Fraction, Fraction)
        Points (e^epsilon, at least delta) of the release's privacy; empty: only epsilon is known.
    squared_mu : Fraction or None
        That of Gaussian noise: see `GaussianLoss`.
    permanent : int or None
        How many permanent reports, of which those of all days are made, a user draws at most: see
        `DailyReports`. None: no reports are kept.
    """

    epsilon: Fraction | None
    what: str
    users: tuple[str, ...] | None
    local: Fraction | None = None
    shuffled: int | None = None
    rate: Fraction | None = None
    profile: tuple[tuple[Fraction, Fraction], ...] = ()
    squared_mu: Fraction | None = None
    permanent: int | None = None

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups `users`, as `plain_name` has them: files may hold others."""
        return groups_of(self.users, stored=True)

    @property
    def pure(self) -> Fraction:
        """The epsilon with delta = 0; where nothing bounds it, one that no budget has."""
        return _UNBOUNDED if self.epsilon is None else self.epsilon


@lru_cache(maxsize=_CACHED)
def _loss(epsilon: Fraction, profile: tuple[tuple[Fraction, Fraction], ...]) -> PrivacyLoss:
    return PrivacyLoss.from_profile(profile) if profile else PrivacyLoss.pure(epsilon)


@dataclass(frozen=True)
class Budget:
    """The privacy loss that each user may have in all."""

    epsilon: Fraction  # to those who see what is released or shuffled, with the delta
    delta: Fraction = Fraction(0)
    # to whoever sees the user's reports with their sender; None: no limit
    local: Fraction | None = None

    def __str__(self) -> str:
        at = f" at delta {number(self.delta)}" if self.delta else ""
        reports = "" if self.local is None else f", and of {number(self.local)} for reports"
        return f"{number(self.epsilon)}{at}{reports}"


class Account:
    """A budget, its collections, and the sums that every spend needs."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.entries: list[Entry] = []
        self._names: set[str] = set()
        self._plain: set[str] = set()  #: The same as `plain_name` has them: files may hold others.
        self._denominator = bounded(budget.epsilon, 1)
        self._central = Sums()
        self._local = Sums()

    def left(self, groups: tuple[str, ...] | None) -> Fraction:
        """Return what is left to release for every user of these groups (None: all), at least."""
        # Epsilons of further releases add up to what is spent already, also with a delta.
        spent = self._central.largest(groups)
        # Both are proved: basic composition with delta 0, and the composition of privacy losses at
        # the delta of the budget. The less counts.
        if self.budget.delta:
            spent = min(spent, self._composed(groups))
        return self.budget.epsilon - spent

    def local(self, groups: tuple[str, ...] | None) -> Fraction:
        """Return the most that the reports of any of these users tell who sees them all."""
        return self._local.largest(groups)

    def check(self, entry: Entry) -> None:
        """Raise unless the entry may be added."""
        self._check_name(entry, self._plain)
        self.check_number(entry)
        if self.budget.local is not None and entry.local is not None:
            left = self.budget.local - self.local(entry.groups)
            if entry.local > left:
                raise BudgetExceeded(entry.local, left, f"the reports of {entry.what}")
        if entry.epsilon is None and not self.budget.delta:
            of = "Gaussian noise" if entry.squared_mu else "a delta above 0"
            raise ValueError(
                f"{entry.what} has {of}, which keeps no epsilon with a delta of 0, as the budget"
                " has it; nothing was recorded"
            )
        if not self._fits(entry.groups, entry):
            raise BudgetExceeded(self.alone(entry), self.left(entry.groups), entry.what)

    @staticmethod
    def _check_name(entry: Entry, names: set[str]) -> None:
        if entry.what in names:
            raise AlreadySpent(
                f"{entry.what!r} is spent already: a second collection needs a name of its own; "
                "nothing was recorded"
            )

    def check_number(self, entry: Entry) -> None:
        """Raise if the name is taken, or a number is too long."""
        self._check_name(entry, self._names)
        for value in (entry.epsilon, entry.squared_mu):
            if value is not None:
                bounded(value, self._denominator)

    @property
    def within(self) -> bool:
        """Whether nobody has spent more than a budget without delta, by the names as written."""
        # Groups that earlier versions told apart by what cannot be seen may have spent more
        # together.
        if self._holds(self._central, self._local):
            return True
        central, local = Sums(), Sums()
        for entry in self.entries:
            central.add(entry.users, entry.pure)
            local.add(entry.users, entry.local or Fraction(0))
        return self._holds(central, local)

    def _holds(self, central: Sums, local: Sums) -> bool:
        """Whether the budget, without delta, is as large as the largest sums."""
        most = self.budget
        return central.largest(None) <= most.epsilon and (
            most.local is None or local.largest(None) <= most.local
        )

    def _fits(self, users: tuple[str, ...] | None, *new: Entry) -> bool:
        """Whether what these users have spent, with new entries, is within the budget."""
        pure = sum((entry.pure for entry in new), self._central.largest(users))
        most, delta = self.budget.epsilon, self.budget.delta
        # Basic composition settles most cases in a few additions, exactly.
        if pure <= most or not delta:
            return pure <= most
        # Each group on its own: users in different groups lose nothing to each other's collections
        # (parallel composition).
        return all(
            _is_within(costs, delta, most) or _composed(costs, delta) <= most
            for costs in self._held(users, *new)
        )

    def add(self, entry: Entry) -> None:
        """Add an entry that `check` accepts."""
        for value in (entry.epsilon, entry.squared_mu):
            if value is not None:
                self._denominator = math.lcm(self._denominator, value.denominator)
        self.entries.append(entry)
        self._names.add(entry.what)
        self._plain.add(plain_name(entry.what, stored=True))
        self._central.add(entry.groups, entry.pure)
        self._local.add(entry.groups, entry.local or Fraction(0))

    def alone(self, entry: Entry) -> Fraction:
        """Return what an entry costs by itself, at the delta of the budget."""
        return _composed(_costs([entry]), self.budget.delta) if self.budget.delta else entry.pure

    def _composed(self, groups: tuple[str, ...] | None, *new: Entry) -> Fraction:
        """Return the epsilon of all that any of these users has lost, at the budget's delta."""
        most, delta = Fraction(0), self.budget.delta
        # Most groups are shown to have lost less than the first, at a fraction of the cost
        for costs in sorted(self._held(groups, *new), key=_size, reverse=True):
            if not _is_within(costs, delta, most):
                most = max(most, _composed(costs, delta))
        return most

    def _held(self, groups: tuple[str, ...] | None, *new: Entry) -> Iterable[_Costs]:
        """Return the collections from each of some groups; None: from all, and from the rest."""
        everybody = [entry for entry in self.entries if entry.groups is None]
        by_group: dict[str | None, list[Entry]] = {None: []} if groups is None else {}
        by_group |= {group: [] for group in groups or ()}
        for entry in self.entries:
            for group in entry.groups or ():
                if groups is None:
                    by_group.setdefault(group, []).append(entry)
                elif group in by_group:
                    by_group[group].append(entry)
        # Groups that have lost the same, in any order, are composed once. No set: bounds depend
        # on the order in which groups are tried, and must be the same in every process.
        return dict.fromkeys(_costs(everybody, entries, new) for entries in by_group.values())


# The type of a cost: an epsilon, a profile, and a squared mu.
_Cost: TypeAlias = tuple[Fraction, tuple[tuple[Fraction, Fraction], ...], Fraction | None]

# The type of several costs, and how often each occurs.
_Costs: TypeAlias = tuple[tuple[_Cost, int], ...]


def _costs(*entries: Iterable[Entry]) -> _Costs:
    counts = Counter(
        (entry.pure, entry.profile, entry.squared_mu) for part in entries for entry in part
    )
    return tuple(sorted(counts.items(), key=_place))


def _place(item: tuple[_Cost, int]) -> tuple[object, ...]:
    """Return the key by which costs are ordered: no squared mu comes before all."""
    (epsilon, profile, squared_mu), _ = item
    return epsilon, profile, squared_mu is not None, squared_mu or 0


def _size(costs: _Costs) -> float:
    """Return the key by which groups are tried: about what they lose together."""
    # Squares add up as the variances of privacy losses do: an epsilon counts as its square,
    # Gaussian noise as its squared mu.
    return sum(
        times * float(min(epsilon, _LARGE) ** 2 if normal is None else normal)
        for (epsilon, _, normal), times in costs
    )


def _is_within(costs: _Costs, delta: Fraction, most: Fraction) -> bool:
    """Whether collections are shown to lose at most so much, at the cost of one rough bound."""
    pure, composition = _composition(costs)
    if pure <= most:
        return True
    return bool(most and composition and composition.holds(most, delta, _ROUGH))


@lru_cache(maxsize=_CACHED)
def _composed(costs: _Costs, delta: Fraction) -> Fraction:
    """Return the epsilon of collections at a delta: composed, or added up if that is less."""
    pure, composition = _composition(costs)
    composed = math.inf if composition is None else composition.quick_epsilon(delta)
    # The sum is a number that people know, and stays where composing gains next to nothing
    return pure if composed == math.inf or composed > pure * _GAIN else Fraction(composed)


@lru_cache(maxsize=8)  # which hold tables of moments
def _composition(costs: _Costs) -> tuple[Fraction, Composition | None]:
    """Return the sum of epsilons, and the composition unless nothing is proved of it."""
    pure = sum((epsilon * times for (epsilon, *_), times in costs), Fraction(0))
    losses, squared_mu = Counter[PrivacyLoss](), Fraction(0)
    for (epsilon, profile, normal), times in costs:
        if normal is None:
            losses[_loss(epsilon, profile)] += times  # costs may differ, and have the same loss
        else:
            # Gaussian noise composes in closed form: squared mu add up, whatever the order.
            squared_mu += normal * times
    if squared_mu > LARGEST_SQUARED_MU:
        return pure, None
    return pure, Composition(losses, GaussianLoss(squared_mu) if squared_mu else None)


class Sums:
    """The sums of epsilons: those from all users, and those from each group."""

    def __init__(self) -> None:
        self._all_users = Fraction(0)
        #: The sums of the groups' collections that were not from all users.
        self._groups: dict[str, Fraction] = {}
        self._most = Fraction(0)  #: The largest of these.

    def largest(self, groups: tuple[str, ...] | None) -> Fraction:
        """Return the largest sum of these groups; None: of all users."""
        beyond = self._most
        if groups is not None:
            beyond = max(self._groups.get(group, Fraction(0)) for group in groups)
        return self._all_users + beyond

    def add(self, groups: tuple[str, ...] | None, epsilon: Fraction) -> None:
        """Add an epsilon of some groups; None: of all users."""
        if groups is None:
            self._all_users += epsilon
            return
        for group in groups:
            self._groups[group] = self._groups.get(group, Fraction(0)) + epsilon
            self._most = max(self._most, self._groups[group])


def entry_of(
    cost: Cost,
    what: str,
    users: str | Iterable[str] | None,
    local: float | Rational | None,
    rate: Rational | None,
    only_day: bool = False,
) -> Entry:
    """Return the entry of a collection: see `mechdesign.Ledger.spend`."""
    groups = groups_of(users)
    _require_name(what)
    entry = partial(recorded, what=plain_name(what), users=groups)
    reports = None if local is None else exact_epsilon(local)
    shared = None if rate is None else exact(rate, "rate")
    if shared is not None and not isinstance(cost, Table):
        raise ValueError(
            "a rate is that of a sample of the respondents whom a table counts; who sends reports"
            " is no secret, and an epsilon does not say what a sample is worth"
        )
    if isinstance(cost, (ZCDP, ApproximateDP)):
        raise TypeError(
            f"{cost!r} is a promise: a ledger takes what a mechanism tells, such as the cost of a"
            " MatrixMechanism, of which more is known"
        )
    if only_day and not (isinstance(cost, Shuffled) and cost.of_one_day):
        raise ValueError("only_day is said of shuffled reports that are made of permanent ones")
    if isinstance(cost, DailyReports):
        if local is not None:
            raise ValueError("daily reports say themselves what all of them tell")
        return entry(cost.epsilon, local=cost.epsilon, permanent=cost.permanent)
    if isinstance(cost, Shuffled):
        if cost.of_one_day and not only_day:
            raise ShuffledDays(plain_name(what))
        if local is not None:
            raise ValueError("shuffled reports say themselves what each of them tells")
        pure = Fraction(cost.local_epsilon)
        return entry(pure, local=pure, shuffled=cost.n, profile=cost.profile.points)
    if isinstance(cost, AmongDummies):
        if reports is None:
            raise ValueError("say what each report among dummies tells alone: local=")
        return entry(reports, local=reports, shuffled=1, profile=cost.profile.points)
    if isinstance(cost, GaussianLoss):
        # Rounded up to few digits, so that sums stay short
        magnitude = math.ceil(1 / cost.squared_mu).bit_length()
        unit = Fraction(1, 1 << min(_MU_BITS + magnitude, _MOST_MU_BITS))
        return entry(None, local=reports, squared_mu=math.ceil(cost.squared_mu / unit) * unit)
    if isinstance(cost, PrivacyLoss):
        bounds = None if cost.infinite else Fraction(log_above(cost.ratios[-1][0]))
        return entry(bounds, local=reports, profile=cost.points)
    if isinstance(cost, Table):
        loss = PrivacyLoss.of(cost if shared is None else thinned(cost, shared))
        if loss.infinite:
            raise UnboundedRatio("an output is impossible for a neighbour: no epsilon bounds that")
        pure = Fraction(log_above(loss.ratios[-1][0]))
        return entry(pure, local=reports, rate=shared, profile=loss.points)
    return entry(exact_epsilon(cost), local=reports)


def _require_name(what: object) -> None:
    if not isinstance(what, str) or not what.strip():
        raise ValueError(f"a collection needs a name, got {shown(what)}")


def recorded(
    epsilon: Fraction | None,
    what: str,
    users: tuple[str, ...] | None,
    *,
    local: Fraction | None = None,
    rate: Fraction | None = None,
    shuffled: int | None = None,
    profile: tuple[tuple[Fraction, Fraction], ...] = (),
    squared_mu: Fraction | None = None,
    permanent: int | None = None,
) -> Entry:
    """Return an entry; ValueError for what no collection costs."""
    known = (epsilon is not None or bool(profile), squared_mu is not None)
    if known[0] == known[1]:
        raise ValueError(
            "a collection costs an epsilon, a profile, or a squared mu of Gaussian noise"
        )
    if squared_mu is not None:
        GaussianLoss(squared_mu)  # what is none is refused
    if any(value is not None and exact_epsilon(value) == 0 for value in (epsilon, local)):
        raise ValueError("a collection costs an epsilon above 0")
    _require_name(what)
    if users is not None and len(set(users)) < len(users):
        raise ValueError(f"users are a list of different groups, got {shown(users)}")
    if rate is not None and not 0 < rate <= 1:
        raise ValueError(f"a rate is above 0 and at most 1, got {brief(rate)}")
    if shuffled is not None:
        whole(shuffled, "shuffled", 1, LARGEST_N, what="a number of reports")
    if permanent is not None:
        whole(permanent, "permanent", 1, LARGEST_PERMANENT, what="a number of permanent reports")
        if epsilon is None or epsilon != local or (rate, shuffled, profile) != (None, None, ()):
            raise ValueError("of reports that are kept one epsilon bounds whatever is made of them")
    for value in (local or 0, rate or 0, *(value for point in profile for value in point)):
        bounded(Fraction(value), 1)
    # Beyond its pure epsilon a release has delta 0: a profile that says otherwise contradicts it
    if epsilon is not None and any(
        above >= exp_below(epsilon) for above, delta in profile if delta
    ):
        raise ValueError("a release has no delta above 0 where its epsilon holds without one")
    if squared_mu is None:
        _loss(epsilon or Fraction(0), profile)  # what is no profile is refused
    return Entry(epsilon, what, users, local, shuffled, rate, profile, squared_mu, permanent)


def bounded(epsilon: Fraction, denominator: int) -> int:
    """Return the common denominator of an epsilon and others; ValueError if it is too long."""
    # Sums have the least common multiple of all denominators: it bounds the length of every sum
    # that this ledger will ever have, so that no file can make spending slow.
    if max(epsilon.numerator, epsilon.denominator).bit_length() <= NUMBER_BITS:
        common = math.lcm(denominator, epsilon.denominator)
        if common.bit_length() <= NUMBER_BITS:
            return common
    raise ValueError(
        f"epsilon {number(epsilon)}: sums of what is spent are exact, and would have numbers of"
        f" more than {NUMBER_BITS} bits; nothing was recorded"
    )


def groups_of(users: str | Iterable[str] | None, stored: bool = False) -> tuple[str, ...] | None:
    """Return the names of groups as `plain_name` has them, each once; None: all users."""
    if users is None:
        return None
    groups = (users,) if isinstance(users, str) or not isinstance(users, Iterable) else tuple(users)
    if not groups or not all(isinstance(group, str) and group.strip() for group in groups):
        raise ValueError(
            f"users are the name of a group, or several, or None for all users, got {shown(users)}"
        )
    return tuple(dict.fromkeys(plain_name(group, stored) for group in groups))


def number(value: Fraction) -> str:
    """Return the number in full if that is short, else rounded and with a ~ before it."""
    short = brief(value, 12)
    if Fraction(short) == value:
        return short
    return to_text(value) if value.denominator <= 10**6 else f"~{short}"
