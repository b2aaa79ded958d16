"""LOLOHA: a hash function for ever, and two rounds of randomised response of the hash."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frequency.algebra.exact_draws import uniform
from frequency.core.channel import Reports
from frequency.longitudinal.systems.two_rounds import TwoRounds, mostly_kept
from frequency.oracles.local_hashing import OLH
from frequency.oracles.randomized_response import GRR
from mechdesign.base.linear_algebra import Items
from mechdesign.base.randomness import BitSource


@dataclass(frozen=True)
class BLH(OLH):
    """BLH, binary local hashing: a hash of one bit, by randomised response.

    Source: Wang et al., USENIX Security 2017, section 4.4.

    The variance at frequency 0 is (e^eps + 1)^2 / (n (e^eps - 1)^2).

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
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
        """Of the values of the hash."""
        return GRR(self.protocol.hashes_to, self.total)

    @property
    def daily(self) -> GRR:
        """Of the values of the hash. Some functions tell any two items apart."""
        return GRR(self.protocol.hashes_to, self.day)

    def lasting(self, users: int, source: BitSource) -> Reports:
        reports = super().lasting(users, source)
        reports["hash"] = uniform(users, self.protocol.functions, source)
        return reports

    def told_apart(self, lasting: Reports, values: Items) -> Items:
        return self.protocol.hashed(lasting["hash"], values)

    def first_round(self, lasting: Reports, items: Items, source: BitSource) -> Reports:
        told, reports = self.permanent, lasting.copy()
        hidden = np.zeros(len(items), dtype=told.report_dtype)
        told.fill(items, hidden, source)
        reports["value"] = hidden["item"]
        return reports

    def second_round(self, reports: Reports, source: BitSource) -> None:
        values = reports["value"].astype(np.int64)
        reports["value"] = mostly_kept(values, self.kept, self.permanent.domain, source)


@dataclass(frozen=True)
class BiLOLOHA(LOLOHA):
    """BiLOLOHA: LOLOHA with hashes of one bit, so that a user keeps two permanent reports at most.

    Source: as of `LOLOHA`.

    A day's report has the law of `BLH`.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change, at least
        ``day``.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    >>> BiLOLOHA(100, total=2, day=1).audit().holds
    True
    """

    @cached_property
    def protocol(self) -> BLH:
        return BLH(self.domain, self.day)


@dataclass(frozen=True)
class OLOLOHA(LOLOHA):
    """OLOLOHA: LOLOHA with the range of the hash that makes the variance of a day least.

    Source: as of `LOLOHA`.

    A day's report has the law of `frequency.OLH`, with a range near e^day + 1. The paper's is the
    best for a second round that changes the hash more often than ``day`` asks for: see
    ``docs/notation.md``.

    Parameters
    ----------
    domain : int
        The number of items, at least 1; items are ``0 .. domain-1``.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change, at least
        ``day``.
    day : float, Fraction, int, str or Decimal
        What one day's report may lose, at least 2^-32.

    >>> OLOLOHA(100, total=2, day=1).protocol.hashes_to
    4
    """

    @cached_property
    def protocol(self) -> OLH:
        return OLH(self.domain, self.day)
