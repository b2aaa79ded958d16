"""Systems for many days: what users keep for ever, and what they send each day."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from frequency.core import Fingerprints, Oracle, Reports
from frequency.longitudinal.memoised import recalled, those_who_report
from mechdesign import Audit
from mechdesign.base import BitSource, Items, Rational, bit_source, whole


@dataclass(eq=False)
class SystemReports:
    """The reports that the devices of some users keep for a system.

    Attributes
    ----------
    system : LongitudinalSystem
        Whose reports they are.
    lasting : structured numpy.ndarray
        Shape (users,): what all values of a user share, such as a hash function, or zeros.
    held : numpy.ndarray of int64
        Shape (users,): how many permanent reports each user has.
    items : numpy.ndarray of int64
        Shape (reports, users): what each is about, in order of appearance; ``held`` mean something.
    reports : structured numpy.ndarray
        Shape (reports, users): the permanent reports.
    """

    system: LongitudinalSystem
    lasting: Reports
    held: npt.NDArray[np.int64]
    items: Items
    reports: Reports

    @property
    def users(self) -> int:
        """The number of users."""
        return len(self.held)


@dataclass(frozen=True)
class LongitudinalSystem(ABC):
    """A published system: users keep permanent reports, and send something made of them each day.

    `start` and `privatize` are the users' half; the server's is `protocol`, with its ``aggregate``
    and ``estimate``.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change.

    Raises
    ------
    ValueError
        A domain or epsilon outside the range of the oracles.
    """

    domain: int
    total: float | Rational

    @property
    @abstractmethod
    def protocol(self) -> Oracle:
        """The oracle that has the law of a day's report."""

    @property
    @abstractmethod
    def permanent(self) -> Oracle:
        """The oracle of the permanent reports."""

    @property
    def fingerprints(self) -> Fingerprints:
        """The law of permanent reports about values that are spread evenly."""
        return self.permanent.fingerprints

    @property
    def missed(self) -> Fraction:
        """The probability that a day's report says nothing of the permanent one."""
        return Fraction(0)

    @abstractmethod
    def ratio_after(self, days: int) -> Fraction:
        """The exact largest ratio of so many days' reports about a value that does not change.

        It is between that of one day and that of the permanent report.
        """

    def audit(self, days: int | None = None) -> Audit:
        """The exact worst ratio of all reports about a value that does not change.

        Parameters
        ----------
        days : int, optional
            Of how many days, at least 1 (then also ``protocol.audit()``); None: of any number,
            which is that of the permanent report.

        Returns
        -------
        Audit
            ``allowed`` is a rational at most exp(total).

        Raises
        ------
        ValueError
            No number of days.
        """
        permanent, one_day = self.permanent.audit(), self.protocol.audit()
        ratio = permanent.ratio
        if self.domain == 1:
            ratio = Fraction(1)
        elif days is not None:
            ratio = self.ratio_after(whole(days, "days", 1, what="a number of days"))
        return Audit(ratio, permanent.allowed, "the same report every day", one_day.inputs)

    # ----------------------------------------------------------------------------- the users' half

    def start(self, values: npt.ArrayLike, rng: np.random.Generator | None = None) -> SystemReports:
        """The permanent reports of the users' first values. Nothing of it may be sent.

        Parameters
        ----------
        values : array_like
            The users' items, as ``protocol.privatize`` takes them.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.

        Returns
        -------
        SystemReports
            For `privatize`, on each day.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        """
        source, values = bit_source(rng), self.protocol.items_of(values)
        lasting = self.lasting(len(values), source)
        items = self.told_apart(lasting, values)
        reports = self.first_round(lasting, items, source)
        counts = np.ones(len(items), dtype=np.int64)
        return SystemReports(self, lasting, counts, items[None].copy(), reports[None])

    def privatize(
        self,
        state: SystemReports,
        values: npt.ArrayLike,
        rng: np.random.Generator | None = None,
        users: npt.ArrayLike | None = None,
    ) -> Reports:
        """One report for today of each user who takes part.

        Parameters
        ----------
        state : SystemReports
            What `start` made for the same users: it keeps a permanent report of each new value.
        values : array_like
            The items of those who take part.
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
            The state is of another system, or of other users.
        """
        source, values = bit_source(rng), self.protocol.items_of(values)
        if state.system != self:
            raise ValueError("the permanent reports are of another system")
        who = those_who_report(users, state.users, len(values))
        lasting = state.lasting[who]
        items = self.told_apart(lasting, values)
        reports = recalled(
            state, who, items, lambda new: self.first_round(lasting[new], items[new], source)
        )
        self.second_round(reports, source)
        return reports

    def lasting(self, users: int, source: BitSource) -> Reports:
        """Return the part of reports drawn once for all values of a user: by default nothing.

        Parameters
        ----------
        users : int
            How many.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of the protocol's ``report_dtype``: reports that lack what is secret.
        """
        return np.zeros(users, dtype=self.protocol.report_dtype)

    def told_apart(self, lasting: Reports, values: Items) -> Items:
        """Return the numbers that permanent reports are about: by default the values themselves.

        Parameters
        ----------
        lasting : structured numpy.ndarray
            Shape (users,).
        values : numpy.ndarray of int64
            Shape (users,): their items.

        Returns
        -------
        numpy.ndarray of int64
            Shape (users,): numbers that agree where a user's permanent reports do.
        """
        return values

    @abstractmethod
    def first_round(self, lasting: Reports, items: Items, source: BitSource) -> Reports:
        """New permanent reports.

        Parameters
        ----------
        lasting : structured numpy.ndarray
            Shape (users,).
        items : numpy.ndarray of int64
            Shape (users,): what they are about, as of `told_apart`.
        source : callable
            As of `lasting`.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of the protocol's ``report_dtype``.
        """

    @abstractmethod
    def second_round(self, reports: Reports, source: BitSource) -> None:
        """Make permanent reports those of a day.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,): copies of permanent reports, changed in place.
        source : callable
            Gives as many random 64-bit words as it is asked for.
        """
