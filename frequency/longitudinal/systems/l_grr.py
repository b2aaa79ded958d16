"""L-GRR: generalised randomised response in both rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frequency.core.channel import Reports
from frequency.longitudinal.systems.two_rounds import TwoRounds, mostly_kept
from frequency.oracles.randomized_response import GRR
from mechdesign.base.linear_algebra import Items
from mechdesign.base.randomness import BitSource


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
        The number of items, at least 1; items are ``0 .. domain-1``.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change, at least
        ``day``.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    >>> LGRR(4, total=2, day=1).audit().holds
    True
    """

    @cached_property
    def protocol(self) -> GRR:
        return GRR(self.domain, self.day)

    @cached_property
    def permanent(self) -> GRR:
        return GRR(self.domain, self.total)

    def first_round(self, lasting: Reports, items: Items, source: BitSource) -> Reports:
        reports = lasting.copy()
        self.permanent.fill(items, reports, source)
        return reports

    def second_round(self, reports: Reports, source: BitSource) -> None:
        items = reports["item"].astype(np.int64)
        reports["item"] = mostly_kept(items, self.kept, self.domain, source)
