"""L-OSUE: optimised unary encoding in the first round, a symmetric one in the second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from frequency.longitudinal.systems.two_rounds import UnaryRounds
from frequency.oracles.unary_encoding import OUE


@dataclass(frozen=True)
class LOSUE(UnaryRounds):
    """L-OSUE: OUE for the permanent report, and randomised response of its bits each day.

    Source: Arcolezi et al., Digital Communications and Networks 2022.

    A user's own bit is fair after both rounds, and so a day's report has the law of
    `frequency.OUE`: the variance at frequency 0 is 4 e^day / (n (e^day - 1)^2), whatever ``total``.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change, at least
        ``day``.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    >>> LOSUE(16, total=2, day=1).audit().holds
    True
    """

    @cached_property
    def protocol(self) -> OUE:
        return OUE(self.domain, self.day)

    @cached_property
    def permanent(self) -> OUE:
        return OUE(self.domain, self.total)
