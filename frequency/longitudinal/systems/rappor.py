"""RAPPOR: symmetric unary encoding in both rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from frequency.longitudinal.systems.two_rounds import UnaryRounds
from frequency.oracles.unary_encoding import SUE


@dataclass(frozen=True)
class RAPPOR(UnaryRounds):
    """Basic RAPPOR, L-SUE: permanent randomised response of every bit, and another one each day.

    Source: Erlingsson, Pihur and Korolova, CCS 2014; with the two rounds set by the epsilons of
    all days and of one as by Arcolezi et al., Digital Communications and Networks 2022.

    A day's report has the law of `frequency.SUE`: the variance is
    e^(day/2) / (n (e^(day/2) - 1)^2), whatever ``total``. Both rounds tell the truth with the same
    probability at every bit, so that two permanent reports differ in the bits of two items.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change, at least
        ``day``.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

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
