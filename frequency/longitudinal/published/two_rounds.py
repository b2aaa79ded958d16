"""Two rounds of randomised response: what a user keeps for ever, and each day a noisy copy of it.

A user draws a permanent report in the first round, once for each value, and on each day passes it
through the second round: a symbol of it stays with the probability `kept` and is otherwise drawn
anew, uniformly. If the first round tells the user's own symbol with the probability P and another
one with Q, and a day's report of a one-shot oracle with p and q, then with

    kept = (p - q) / (P - Q)

a day's report has exactly the law of that oracle. So the oracle does everything on the server, and
a system is no more accurate, nor less, than `frequency.longitudinal.Memoised` of the same oracle.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from frequency.algebra import bernoulli_bits, chances, uniform
from frequency.core import Fingerprints, Oracle, Reports
from frequency.longitudinal.published.system import LongitudinalSystem
from frequency.oracles import GRR, OLH, OUE, SUE, packed
from mechdesign.base import BitSource, Items, Rational, set_fields, shown


@dataclass(frozen=True)
class TwoRounds(LongitudinalSystem):
    """A system of two rounds: see the module.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change, at least
        ``day``.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    Raises
    ------
    ValueError
        A domain or epsilon outside the range of the oracles, or ``total`` less than ``day``.
    """

    day: float | Rational

    def __post_init__(self) -> None:
        if self.kept > 1:
            raise ValueError(
                f"total must be at least the epsilon of a day, {shown(self.day)}, got"
                f" {shown(self.total)}"
            )
        set_fields(self, domain=self.protocol.domain)

    @property
    def daily(self) -> Oracle:
        """The oracle of a symbol with the law of a day: ``protocol``, where it tells symbols."""
        return self.protocol

    @cached_property
    def kept(self) -> Fraction:
        """The probability that a symbol of the permanent report is sent as it is.

        More than 1, which is refused, where the permanent report is the noisier one.
        """
        day, lasting = self.daily, self.permanent
        # Where reports are bits, the sums p + q of both rounds are the same
        return (day.p - day.q) / (lasting.p - lasting.q)

    def ratio_after(self, days: int) -> Fraction:
        oracle = self.permanent
        return repeated(oracle.p, oracle.q, self.kept, oracle.domain, days)


def mostly_kept(symbols: Items, kept: Fraction, alphabet: int, source: BitSource) -> Items:
    """Symbols, (users,), that are drawn anew, uniformly, unless they are kept."""
    anew = np.flatnonzero(~chances([kept], np.zeros(len(symbols), dtype=np.int64), source))
    symbols[anew] = uniform(len(anew), alphabet, source)
    return symbols


def repeated(own: Fraction, other: Fraction, kept: Fraction, alphabet: int, days: int) -> Fraction:
    """Return the ratio of two users' chances to make the same symbol on every day."""
    no = (1 - kept) / alphabet
    yes = (kept + no) ** days
    no **= days
    return (own * yes + (1 - own) * no) / (other * yes + (1 - other) * no)


class UnaryRounds(TwoRounds):
    """Systems whose reports have a bit for every item: each bit is kept, or tossed anew."""

    def ratio_after(self, days: int) -> Fraction:
        # One item's bit is 1 on all days, and another's is 0
        p, q = self.permanent.p, self.permanent.q
        return repeated(p, q, self.kept, 2, days) * repeated(1 - q, 1 - p, self.kept, 2, days)

    def first_round(self, lasting: Reports, items: Items, source: BitSource) -> Reports:
        reports = lasting.copy()
        step = self.permanent.batch_size
        for start in range(0, len(items), step):
            some = slice(start, start + step)
            self.permanent.fill(items[some], reports[some], source)
        return reports

    def second_round(self, reports: Reports, source: BitSource) -> None:
        changed, lanes = (1 - self.kept) / 2, -(-self.domain // 64)
        step = self.permanent.batch_size
        for start in range(0, len(reports), step):
            bits = reports["bits"][start : start + step]
            size = len(bits) * lanes
            flips = bernoulli_bits(size, changed.numerator, source, changed.denominator)
            bits ^= packed(flips.reshape(-1, lanes), self.domain)


# ------------------------------------------------------------------------------------------------
# L-GRR: generalised randomised response in both rounds.


@dataclass(frozen=True)
class LGRR(TwoRounds):
    """L-GRR: an item by randomised response for ever, and an item instead of that one each day.

    Source: Arcolezi et al., Digital Communications and Networks 2022.

    A day's report has the law of `frequency.GRR`. The second round of the paper, and of its
    programs, changes the item more often than that for more than two items: a day then loses less
    than ``day``, see ``docs/notation.md``. As laws of all days this is
    `frequency.longitudinal.Memoised` of GRR.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose, at least ``day``: see `TwoRounds`.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    Examples
    --------
    >>> LGRR(4, total=2, day=1).audit().holds
    True
    """

    @cached_property
    def protocol(self) -> GRR:
        return GRR(self.domain, self.day)

    @cached_property
    def permanent(self) -> GRR:
        return GRR(self.domain, self.total)

    @property
    def missed(self) -> Fraction:
        return 1 - self.kept

    def first_round(self, lasting: Reports, items: Items, source: BitSource) -> Reports:
        reports = lasting.copy()
        self.permanent.fill(items, reports, source)
        return reports

    def second_round(self, reports: Reports, source: BitSource) -> None:
        items = reports["item"].astype(np.int64)
        reports["item"] = mostly_kept(items, self.kept, self.domain, source)


# ------------------------------------------------------------------------------------------------
# L-OSUE: optimised unary encoding in the first round, a symmetric one in the second.


@dataclass(frozen=True)
class LOSUE(UnaryRounds):
    """L-OSUE: OUE for the permanent report, and randomised response of its bits each day.

    Source: Arcolezi et al., Digital Communications and Networks 2022.

    A user's own bit is fair after both rounds, and so a day's report has the law of
    `frequency.OUE`: the variance at frequency 0 is 4 e^day / (n (e^day - 1)^2), whatever ``total``.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose, at least ``day``: see `TwoRounds`.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    Examples
    --------
    >>> LOSUE(16, total=2, day=1).audit().holds
    True
    """

    @cached_property
    def protocol(self) -> OUE:
        return OUE(self.domain, self.day)

    @cached_property
    def permanent(self) -> OUE:
        return OUE(self.domain, self.total)


# ------------------------------------------------------------------------------------------------
# RAPPOR: symmetric unary encoding in both rounds.


@dataclass(frozen=True)
class RAPPOR(UnaryRounds):
    """Basic RAPPOR, L-SUE: permanent randomised response of every bit, and another one each day.

    Source: Erlingsson, Pihur and Korolova, CCS 2014; with the two rounds set by the epsilons of all
    days and of one as by Arcolezi et al., Digital Communications and Networks 2022.

    A day's report has the law of `frequency.SUE`: the variance is e^(day/2) / (n (e^(day/2) -
    1)^2), whatever ``total``. Both rounds tell the truth with the same probability at every bit, so
    that two permanent reports differ in the bits of two items.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose, at least ``day``: see `TwoRounds`.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    Examples
    --------
    >>> import numpy as np
    >>> question, rng = RAPPOR(16, total=2, day=1), np.random.default_rng(1)
    >>> values = np.repeat([3, 9], 20_000)
    >>> state = question.start(values, rng)
    >>> reports = question.privatize(state, values, rng)
    >>> estimate = question.protocol.estimate(question.protocol.aggregate(reports))
    >>> bool(abs(estimate.frequencies[3] - 1 / 2) < 0.1)
    True
    >>> question.audit().holds, question.audit(days=1).ratio == question.protocol.audit().ratio
    (True, True)
    """

    @cached_property
    def protocol(self) -> SUE:
        """Its p + q is 1, as that of `permanent`: what one symmetric round makes of another."""
        return SUE(self.domain, self.day)

    @cached_property
    def permanent(self) -> SUE:
        return SUE(self.domain, self.total)


# ------------------------------------------------------------------------------------------------
# LOLOHA: a hash function for ever, and two rounds of randomised response of the hash.


@dataclass(frozen=True)
class BLH(OLH):
    """BLH, binary local hashing: a hash of one bit, by randomised response.

    Source: Wang et al., USENIX Security 2017, section 4.4.

    The variance at frequency 0 is (e^eps + 1)^2 / (n (e^eps - 1)^2).

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    """

    @cached_property
    def _order(self) -> tuple[int, int]:
        return 2, max(1, (self.domain - 1).bit_length())


class LOLOHA(TwoRounds):
    """LOLOHA: every user has one hash function, and reports its values in two rounds.

    Source: Arcolezi et al., "Frequency estimation of evolving data under local differential
    privacy", EDBT 2023.

    A user keeps one permanent report for each value of the hash, so at most as many as it has
    values: fewer than there are items, and a change between items of the same hash is not seen. The
    function is public, and stays; errors by items that collide do not average out over the days.
    """

    @property
    @abstractmethod
    def protocol(self) -> OLH: ...

    @cached_property
    def permanent(self) -> GRR:
        """The response about the values of the hash."""
        return GRR(self.protocol.hashes_to, self.total)

    @property
    def daily(self) -> GRR:
        """The response about the values of the hash; some functions tell any two items apart."""
        return GRR(self.protocol.hashes_to, self.day)

    @property
    def fingerprints(self) -> Fingerprints:
        """The law of a function and a response; the function is seen on every day."""
        return Fingerprints(self.protocol.functions * self.protocol.hashes_to)

    def lasting(self, users: int, source: BitSource) -> Reports:
        reports = super().lasting(users, source)
        reports["hash"] = uniform(users, self.protocol.functions, source)
        return reports

    def told_apart(self, lasting: Reports, values: Items) -> Items:
        return self.protocol.hashed(lasting["hash"], values)

    def first_round(self, lasting: Reports, items: Items, source: BitSource) -> Reports:
        oracle, reports = self.permanent, lasting.copy()
        hidden = np.zeros(len(items), dtype=oracle.report_dtype)
        oracle.fill(items, hidden, source)
        reports["value"] = hidden["item"]
        return reports

    def second_round(self, reports: Reports, source: BitSource) -> None:
        values = reports["value"].astype(np.int64)
        reports["value"] = mostly_kept(values, self.kept, self.permanent.domain, source)


@dataclass(frozen=True)
class BiLOLOHA(LOLOHA):
    """BiLOLOHA: LOLOHA with hashes of one bit, so that a user keeps two permanent reports at most.

    Source: as of `LOLOHA`. A day's report has the law of `BLH`.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose, at least ``day``: see `TwoRounds`.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    Examples
    --------
    >>> BiLOLOHA(100, total=2, day=1).audit().holds
    True
    """

    @cached_property
    def protocol(self) -> BLH:
        return BLH(self.domain, self.day)


@dataclass(frozen=True)
class OLOLOHA(LOLOHA):
    """OLOLOHA: LOLOHA with the range of the hash that makes the variance of a day least.

    Source: as of `LOLOHA`. A day's report has the law of `frequency.OLH`, with a range near e^day +
    1. The paper's is the best for a second round that changes the hash more often than ``day`` asks
    for: see ``docs/notation.md``.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose, at least ``day``: see `TwoRounds`.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    Examples
    --------
    >>> OLOLOHA(100, total=2, day=1).protocol.hashes_to
    4
    """

    @cached_property
    def protocol(self) -> OLH:
        return OLH(self.domain, self.day)
