"""Memoised reports: a user whose answer stays the same loses no more, however often it is asked.

Write P(y | v) for the law of a day's report y of a user with the value v, and B for that of a user
without one. All channels with public coins state the likelihoods L = P / B, and whatever the
value, their mean under B is 1. Stretched by a factor c >= 1 they are still those of a law,

    P'(y | v) = B(y) (1 + c (L - 1)),    and    P = (1/c) P' + (1 - 1/c) B.

So a user who draws y' from P' once and for all, and on each day sends y' with the probability 1/c
and a fresh draw from B otherwise, sends on each day a report of exactly the law P: the estimates of
a day are those of the one-shot protocol. All days together tell no more about the value than y'
does, whose largest ratio of probabilities is that of (1 + c (L - 1)): the largest c is taken for
which it is at most exp(total).

No sampler is needed but that of P. A report of P' is one of P that is kept with a probability
proportional to P' / P, c (1 - (1 - 1/c) / L), and otherwise drawn again; one of B is a report about
the value 0 that is kept with a probability proportional to 1 / L. All of these are rational
numbers, and drawn as such.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import chances
from frequency.core import (
    Channel,
    Fingerprints,
    Protocol,
    Reports,
    channel_of,
    json_integers,
    local_privacy,
    signed,
)
from frequency.exceptions import InvalidValue
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw, PairLaws
from mechdesign.accounting.shuffling import LARGEST_PERMANENT, DailyReports
from mechdesign.base import (
    BitSource,
    Items,
    Rational,
    bit_source,
    checked_counts,
    rounded_up,
    set_fields,
    shown,
    whole,
)
from mechdesign.exceptions import UnstatedLikelihoods

# ------------------------------------------------------------------------------------------------
# Finding what a user already keeps, and drawing what is missing.


class Kept(typing.Protocol):
    """The reports that users keep: `held` each, about `items`, in order of appearance."""

    held: npt.NDArray[np.int64]
    items: Items
    reports: Reports


def those_who_report(users: npt.ArrayLike | None, of: int, values: int) -> Items:
    """Return the users who take part on a day: shape (those who take part,)."""
    if users is None:
        who = np.arange(of)
    else:
        who = checked_counts(users, of - 1, InvalidValue)
        if who.ndim != 1 or len(np.unique(who)) != len(who):
            raise ValueError("users must be one-dimensional, each of them once")
    if values != len(who):
        raise ValueError(f"values must be of {len(who)} users, got {values}")
    return who


def recalled(kept: Kept, who: Items, items: Items, draw: Callable[[Items], Reports]) -> Reports:
    """Return permanent reports of users about these items; those missing are drawn and kept.

    Shapes: `who` (some,), `items` (some, ...); returns (some,).
    """
    ranks, counts = np.arange(len(kept.items)), kept.held[who]
    same = (kept.items[:, who] == items).all(axis=tuple(range(2, kept.items.ndim)))
    same &= ranks[:, None] < counts
    place = np.where(same.any(axis=0), same.argmax(axis=0), counts)
    new = np.flatnonzero(place == counts)
    if len(new):
        drawn = draw(new)
        if place.max() == len(ranks):
            kept.items = np.concatenate([kept.items, kept.items[:1]])
            kept.reports = np.concatenate([kept.reports, kept.reports[:1]])
        kept.items[place[new], who[new]] = items[new]
        kept.reports[place[new], who[new]] = drawn
        kept.held[who[new]] += 1
    return kept.reports[place, who]


@dataclass(eq=False)
class PermanentReports:
    """The reports that the devices of some users keep: one for each value that a user has had.

    `Memoised.start` makes it and `Memoised.privatize` adds to it. It is as secret as the values.

    Attributes
    ----------
    memoised : Memoised
        Whose reports they are.
    held : numpy.ndarray of int64
        Shape (users,): how many values each has had; so many times ``total`` may have been lost.
    items : numpy.ndarray of int64
        Shape (values, users, ...): the items of the values of each user, in order of appearance;
        the first ``held`` of them mean something.
    reports : structured numpy.ndarray
        Shape (values, users), of the protocol's ``report_dtype``: the permanent report of each.
    """

    memoised: Memoised
    held: npt.NDArray[np.int64]
    items: Items
    reports: Reports

    @property
    def users(self) -> int:
        """The number of users."""
        return len(self.held)


@dataclass(frozen=True, init=False)
class Memoised:
    """The same question on many days, at a privacy loss that the days do not add to.

    Source: the two rounds of RAPPOR (Erlingsson et al., CCS 2014), with a second round whose
    reports have the law of the one-shot protocol.

    A user keeps one permanent report for each value, drawn at ``total``. Each day's report is that
    one with the probability `kept`, and otherwise one that says nothing. A day's report has exactly
    the law of ``protocol``, which also does everything on the server: ``protocol.aggregate``,
    ``estimate``, intervals and answers.

    For what is promised compare two users, or two answers that a user might have given:

    - Values that never change: the reports of all days together are at most exp(total) apart, see
      `audit`; those of one day at most exp(epsilon) of ``protocol``.
    - Values that change, on the same days, between the same k values or fewer, as when somebody
      moves: at most exp(k total).
    - Values that change on different days, or only one of which changes: *nothing*, for many days.
      The permanent report shows through, and that it has changed: see
      `frequency.longitudinal.sequence_ratio`.

    Parameters
    ----------
    protocol : Channel, Protocol or callable
        What is asked on one day, with that day's epsilon; or a function that makes it, given
        ``day``. Its channel must state the likelihoods of its reports about each item, as those of
        all oracles do, and of what is made of them: marginals, heavy hitters, trees, grids.
        Surveys, sets of items and protocols of few bits are refused.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value, at least the epsilon of a day.
    day : float, Fraction, int, str or Decimal, optional
        The epsilon of one day; None where ``protocol`` is none to be made.

    Raises
    ------
    ValueError
        ``total`` is less than the epsilon of a day, or ``day`` is missing or too much.
    TypeError
        What is no protocol.
    UnstatedLikelihoods
        The protocol does not state how likely its reports are about each value.

    Examples
    --------
    >>> from frequency import SubsetSelection
    >>> question = Memoised(lambda day: SubsetSelection(16, day), total=2, day="1/2")
    >>> question.protocol
    SubsetSelection(domain=16, epsilon='1/2')
    >>> rng = np.random.default_rng(1)
    >>> values = np.repeat([3, 9], 20_000)
    >>> state = question.start(values, rng)
    >>> for _ in range(3):
    ...     reports = question.privatize(state, values, rng)
    ...     estimate = question.protocol.estimate(question.protocol.aggregate(reports))
    >>> bool(abs(estimate.frequencies[3] - 1 / 2) < 0.1)
    True
    >>> question.audit().holds
    True
    """

    protocol: Any
    total: float | Rational

    def __init__(
        self,
        protocol: Channel | Protocol | Callable[[Any], Channel | Protocol],
        total: float | Rational,
        day: float | Rational | None = None,
    ) -> None:
        if isinstance(protocol, (Channel, Protocol)):
            if day is not None:
                raise ValueError(
                    f"day must be None for a protocol that has an epsilon, got {shown(day)};"
                    " give a function that makes the protocol"
                )
            made: Any = protocol
        elif callable(protocol):
            if day is None:
                raise ValueError("day must be the epsilon of one day, for a protocol to be made")
            made = protocol(day)
        else:
            made = protocol  # refused by channel_of
        set_fields(self, protocol=made, total=total)
        channel = channel_of(made)
        kind: Any = type(channel)
        if kind.likelihoods is Channel.likelihoods or kind.drawn is not Channel.drawn:
            raise UnstatedLikelihoods(kind.__name__)  # or they are about what users draw, not hold
        if self._stretch < 1:
            raise ValueError(
                f"total must be at least the epsilon of a day, {shown(channel.epsilon)}, got"
                f" {shown(total)}"
            )

    @cached_property
    def _channel(self) -> Channel:
        return channel_of(self.protocol)

    @cached_property
    def _likelihoods(self) -> tuple[Fraction, ...]:
        """The values of a report's likelihood, as `Channel.likelihood` numbers them."""
        try:
            return tuple(value for kind in self._channel.likelihoods for value in kind)
        except TypeError:
            raise UnstatedLikelihoods(type(self._channel).__name__) from None

    @property
    def max_ratio(self) -> Fraction:
        """The largest ratio allowed to a permanent report: a rational at most exp(total)."""
        return 1 / local_privacy(self.total).alpha

    @cached_property
    def _stretch(self) -> Fraction:
        """The factor c by which likelihoods differ more from 1 in permanent reports than a day's.

        It is the largest for which 1 + c (L - 1) has at most the ratio allowed, in all kinds of
        reports.
        """
        _ = self._likelihoods  # which may not be stated
        ratio = self.max_ratio
        return min(
            (
                (ratio - 1) / (max(kind) - 1 + ratio * (1 - min(kind)))
                for kind in self._channel.likelihoods
                if min(kind) < max(kind)
            ),
            default=Fraction(1),
        )

    @property
    def kept(self) -> Fraction:
        """The probability that a day's report is the permanent one."""
        return 1 / self._stretch

    def stretched(self, likelihood: Fraction) -> Fraction:
        """The likelihood of a permanent report, from that of the same report on one day.

        Parameters
        ----------
        likelihood : Fraction
            Of a report about a value, relative to a user without one.

        Returns
        -------
        Fraction
            At least 0.
        """
        return 1 + self._stretch * (likelihood - 1)

    def audit(self) -> Audit:
        """The exact worst ratio of all reports about a value that does not change.

        That of a single day is ``protocol.audit()``.

        Returns
        -------
        Audit
            That of the permanent report. ``allowed`` is a rational at most exp(total).
        """
        ratio = max(
            self.stretched(max(kind)) / self.stretched(min(kind))
            for kind in self._channel.likelihoods
        )
        inputs = self.protocol.audit().inputs
        return Audit(
            ratio if len(set(inputs)) > 1 else Fraction(1),
            self.max_ratio,
            "a permanent report",
            inputs,
        )

    @property
    def fingerprints(self) -> Fingerprints:
        """The law of permanent reports about values that are spread evenly; TypeError if unknown.

        See `frequency.longitudinal.linked_share`.
        """
        day = self._channel.fingerprints
        if day.places == 0:
            return day
        return day._replace(own=day.other * self.stretched(day.own / day.other))

    @property
    def missed(self) -> Fraction:
        """The probability that a day's report says nothing of the permanent one."""
        return 1 - self.kept

    def cost(self, changes: int = 0, starts: int = 1) -> DailyReports:
        """Return the cost to a user of the reports of all days: to be spent from a `Ledger`.

        A user with so many changes has a value more than that, and a permanent report of each that
        loses ``total``. This is the promise of `Memoised` about values that change on the same
        days; see there for what it leaves out.

        Parameters
        ----------
        changes : int, default 0
            How often the value of a user changes at most, from one start to the next. Devices must
            see to it: what `privatize` does for more changes costs more.
        starts : int, default 1
            How often a user's device may begin, as it does again after its state was lost.

        Returns
        -------
        DailyReports
            Its epsilon is (changes + 1) starts total, exact.

        Raises
        ------
        ValueError
            A number out of its range.
        """
        values = 1 + whole(changes, "changes", 0, LARGEST_PERMANENT - 1)
        return DailyReports(self.total, values, starts)

    def client(self, changes: int = 0, starts: int = 1) -> dict[str, Any]:
        """The client half as data, which `frequency.clients.load_memoised` and JavaScript run.

        Parameters
        ----------
        changes, starts : int
            As for `cost`. Devices draw permanent reports for no more changes between starts: of
            further values they report the newest of those instead. They refuse more starts.

        Returns
        -------
        dict
            A description, as JSON has it: see ``docs/wire.md``.

        Raises
        ------
        ValueError
            A number out of its range.
        TypeError
            A protocol of one's own that does not state its ``client_half``.
        """
        cost, day = self.cost(changes, starts), self.protocol.client()
        permanent, blank = ([_pair(p) for p in chances_] for chances_ in self._acceptance)
        content = {
            **{key: value for key, value in day.items() if key != "digest"},
            "version": 2,
            "epsilon": rounded_up(Fraction(local_privacy(self.total).epsilon), 4),
            "odds": rounded_up(self.max_ratio, 4),
            "memoised": {
                "day": day["epsilon"],
                "values": cost.values,
                "starts": cost.starts,
                "kept": _pair(self.kept),
                "permanent": permanent,
                "blank": blank,
            },
        }
        return signed(content)

    # What `mechdesign.accounting.shuffled` asks of the reports of a single day

    #: Reports of several days are made of the same ones: a ledger refuses to shuffle each day.
    keeps_reports: ClassVar[bool] = True

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        """Return the pair laws of the reports of one day: those of ``protocol``."""
        return self._channel.pair_laws()

    def attack_laws(self) -> Sequence[PairLaw]:
        """Return such laws where all others hold one value: those of ``protocol``."""
        return self._channel.attack_laws()

    # ----------------------------------------------------------------------------- the users' half

    def start(self, values: Any, rng: np.random.Generator | None = None) -> PermanentReports:
        """The permanent reports of the users' first values. Nothing of it may be sent.

        Parameters
        ----------
        values : array_like
            The users' values, as ``protocol.privatize`` takes them.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.

        Returns
        -------
        PermanentReports
            For `privatize`, on each day.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        """
        source, items = bit_source(rng), self._items_of(values)
        counts = np.ones(len(items), dtype=np.int64)
        copies = items[None].copy()  # whatever becomes of the array that was given
        return PermanentReports(self, counts, copies, self._permanent(items, source)[None])

    def privatize(
        self,
        state: PermanentReports,
        values: Any,
        rng: np.random.Generator | None = None,
        users: npt.ArrayLike | None = None,
    ) -> Reports:
        """One report for today of each user who takes part.

        A value that is new to a user gets a permanent report, which may lose another ``total``.

        Parameters
        ----------
        state : PermanentReports
            What `start` made for the same users: it is added to.
        values : array_like
            The values of those who take part, as ``protocol.privatize`` takes them.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.
        users : array_like, optional
            Who they are: different numbers of users, in the order of `start`; None: all users.

        Returns
        -------
        structured numpy.ndarray
            Shape (those who take part,), of the protocol's ``report_dtype``.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        ValueError
            The state is of another `Memoised`, or of other users.
        """
        source, items = bit_source(rng), self._items_of(values)
        if state.memoised != self:
            raise ValueError("the permanent reports are of another protocol or total")
        who = those_who_report(users, state.users, len(items))
        reports = recalled(state, who, items, lambda new: self._permanent(items[new], source))
        sent = chances([self.kept], np.zeros(len(items), dtype=np.int64), source)
        fresh = np.flatnonzero(~sent)
        blank = np.zeros_like(items[fresh])
        reports[fresh] = self._selected(blank, self._acceptance[1], source)
        return reports

    def _items_of(self, values: Any) -> Items:
        items = self.protocol.items_of(values) if isinstance(self.protocol, Protocol) else values
        return self._channel.items_of(items)

    def _permanent(self, items: Items, source: BitSource) -> Reports:
        return self._selected(items, self._acceptance[0], source)

    @cached_property
    def _acceptance(self) -> tuple[list[Fraction], list[Fraction]]:
        """The chances to keep a report of P of each likelihood: as one of P', and as one of B."""
        # Proportional to 1 - (1 - 1/c) / L, and to 1 / L
        permanent = [1 - (1 - self.kept) / likelihood for likelihood in self._likelihoods]
        blank = [1 / likelihood for likelihood in self._likelihoods]
        first, second = ([w / max(all_) for w in all_] for all_ in (permanent, blank))
        return first, second

    def _selected(self, items: Items, acceptance: Sequence[Fraction], source: BitSource) -> Reports:
        """Reports of P, kept with the chances of their likelihoods."""
        channel = self._channel
        reports = np.zeros(len(items), dtype=channel.report_dtype)
        for start in range(0, len(items), channel.batch_size):
            todo = np.arange(start, min(start + channel.batch_size, len(items)))
            while len(todo):
                candidates = np.zeros(len(todo), dtype=channel.report_dtype)
                channel.fill(items[todo], candidates, source)
                good = chances(acceptance, channel.likelihood(candidates, items[todo]), source)
                reports[todo[good]] = candidates[good]
                todo = todo[~good]
        return reports


def _pair(probability: Fraction) -> list[int | str]:
    return json_integers((probability.numerator, probability.denominator))
