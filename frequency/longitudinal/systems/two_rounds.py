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

from frequency.algebra.exact_draws import bernoulli_bits, chances, uniform
from frequency.core.channel import Reports
from frequency.core.oracle import Oracle
from frequency.longitudinal.systems.system import LongitudinalSystem
from frequency.oracles.unary_encoding import UnaryEncoding, packed
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Items
from mechdesign.base.numbers import Rational
from mechdesign.base.randomness import BitSource
from mechdesign.base.text import shown


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
    @abstractmethod
    def protocol(self) -> Oracle: ...

    @property
    @abstractmethod
    def permanent(self) -> Oracle: ...

    @property
    def daily(self) -> Oracle:
        """What tells a symbol with the law of a day: ``protocol``, where it tells symbols."""
        return self.protocol

    @cached_property
    def kept(self) -> Fraction:
        """The probability that a symbol of the permanent report is sent as it is.

        More than 1, which is refused, where the permanent report is the noisier one. Where reports
        are bits, the sums p + q of both rounds are the same.
        """
        day, lasting = self.daily, self.permanent
        return (day.p - day.q) / (lasting.p - lasting.q)

    def ratio_after(self, days: int) -> Fraction:
        told = self.permanent
        return repeated(told.p, told.q, self.kept, told.domain, days)


def mostly_kept(symbols: Items, kept: Fraction, alphabet: int, source: BitSource) -> Items:
    """Symbols that are drawn anew, uniformly, unless they are kept.

    Shapes: `symbols` (users,); returns (users,).
    """
    anew = np.flatnonzero(~chances([kept], np.zeros(len(symbols), dtype=np.int64), source))
    symbols[anew] = uniform(len(anew), alphabet, source)
    return symbols


def repeated(own: Fraction, other: Fraction, kept: Fraction, alphabet: int, days: int) -> Fraction:
    """How much likelier one user makes the same symbol on every day than another user does."""
    no = (1 - kept) / alphabet
    yes = (kept + no) ** days
    no **= days
    return (own * yes + (1 - own) * no) / (other * yes + (1 - other) * no)


class UnaryRounds(TwoRounds):
    """Systems whose reports have a bit for every item: each bit is kept, or tossed anew."""

    @property
    @abstractmethod
    def protocol(self) -> UnaryEncoding: ...

    @property
    @abstractmethod
    def permanent(self) -> UnaryEncoding: ...

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
