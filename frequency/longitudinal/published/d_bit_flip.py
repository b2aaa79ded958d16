"""dBitFlipPM: some bits of a unary encoding, told once and for all."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import UnaryBits, uniform
from frequency.core import Aggregate, Fingerprints, Oracle, Reports, checked_users
from frequency.longitudinal.published.system import LongitudinalSystem
from frequency.oracles import bits_at, column_sums, packed, symmetric_proof
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items, exact_sum, set_fields, whole
from mechdesign.symbolic import PublicDrawProof


@dataclass(frozen=True)
class DBitFlip(Oracle):
    """dBitFlip: the bits of a random set of ``asked`` items, each by randomised response.

    Source: Ding, Kulkarni and Yekhanin, NeurIPS 2017, section 3.

    A report has two sets of items as bits: ``asked``, those told of, and ``bits``, those told to be
    the user's. A bit is true with the probability e^(eps/2) / (e^(eps/2) + 1). The estimate is
    domain / asked times the mean of what the bits contribute, 0 where they are not asked, and its
    variance at frequency 0 is domain / asked times that of `frequency.SUE`. Two items change two
    bits; where one is asked for, a report loses half of epsilon only.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    asked : int
        How many bits each user tells, 1 .. domain.
    """

    asked: int

    largest_domain: ClassVar[int] = 1 << 20
    privacy_source: ClassVar[str] = "Ding, Kulkarni and Yekhanin 2017"

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = whole(self.asked, "asked", 1, self.domain, what="a number of items")
        set_fields(self, asked=asked)

    @cached_property
    def _ones(self) -> UnaryBits:
        return UnaryBits.symmetric(self.max_ratio)

    def _details(self) -> dict[str, Any]:
        return {"asked": self.asked, "p": str(self._ones.own), "q": str(self._ones.other)}

    @property
    def batch_size(self) -> int:
        return max(1, (1 << 22) // self.domain)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        width = (-(-self.domain // 8),)
        return np.dtype([("asked", "u1", width), ("bits", "u1", width)])

    @property
    def fingerprints(self) -> Fingerprints:
        # More than 2^64 sets, as where some share of 128 items is asked, single every user out
        sets, bit = comb(self.domain, min(self.asked, self.domain - self.asked, 64)), self._ones
        return Fingerprints(sets, self.asked, bit.p, bit.q, Fraction(self.asked, self.domain))

    @property
    def report_bits(self) -> int:
        return 2 * self.domain

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        reports["asked"] = self.sets(len(items), source)
        self.tell(items, reports, source)

    def sets(self, users: int, source: BitSource) -> npt.NDArray[np.uint8]:
        """Uniform sets of `asked` items, the first entries of a shuffle of all of them.

        Parameters
        ----------
        users : int
            How many sets.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        numpy.ndarray of uint8
            Shape (users, ceil(domain / 8)): bits, the least significant first.
        """
        order = np.tile(np.arange(self.domain), (users, 1))
        rows = np.arange(users)
        for place in range(self.asked if self.asked < self.domain else 0):
            other = place + uniform(users, self.domain - place, source)
            chosen = order[rows, other]
            order[rows, other] = order[:, place]
            order[:, place] = chosen
        members = np.zeros((users, self.domain), dtype=np.uint8)
        np.put_along_axis(members, order[:, : self.asked], 1, axis=1)
        return np.packbits(members, axis=1, bitorder="little")

    def tell(self, items: Items, reports: Reports, source: BitSource) -> None:
        """Fill in the bits of reports that say which are asked for.

        Parameters
        ----------
        items : numpy.ndarray of int64
            Shape (users,); ``domain`` stands for one that is not asked for.
        reports : structured numpy.ndarray
            Shape (users,): changed in place.
        source : callable
            Gives as many random 64-bit words as it is asked for.
        """
        # One place more, for the users of whom no item is asked for
        words = self._ones.draw(items, self.domain + 1, source)
        reports["bits"] = packed(words, self.domain) & reports["asked"]

    def holds(self, reports: Reports, items: Items) -> npt.NDArray[np.bool_]:
        """Whether reports ask for the items.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Shape (users,).
        items : numpy.ndarray of int64
            Shape (users,): an item for each.

        Returns
        -------
        numpy.ndarray of bool
            Shape (users,).
        """
        return bits_at(reports["asked"], items).astype(np.bool_)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        asked = np.bitwise_count(reports["asked"]).sum(axis=1, dtype=np.int64)
        last = reports["asked"][:, -1] >> ((self.domain - 1) % 8)
        beyond = (reports["bits"] & ~reports["asked"]).any(axis=1)
        return (asked == self.asked) & (last <= 1) & ~beyond

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return 2, self.domain

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.stack([column_sums(reports[name], self.domain) for name in ("asked", "bits")])

    def consistent(self, aggregate: Aggregate) -> bool:
        asked, ones = aggregate.counts
        each = (ones >= 0) & (ones <= asked) & (asked <= aggregate.n)
        return bool(each.all()) and exact_sum(asked) == aggregate.n * self.asked

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        if self.asked < self.domain:
            return super().simulated_counts(items, counts, rng)
        user_counts, p, q = self._held(items, counts), float(self._ones.p), float(self._ones.q)
        users = np.full(self.domain, user_counts.sum())
        return np.stack(
            [users, rng.binomial(user_counts, p) + rng.binomial(users - user_counts, q)]
        )

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        asked, ones = aggregate.counts if items is None else aggregate.counts[:, items]
        p, q = float(self._ones.p), float(self._ones.q)
        return (ones - q * asked) / (p - q) * (self.domain / self.asked / aggregate.n)

    @cached_property
    def _per_user(self) -> tuple[Fraction, Fraction]:
        """domain / asked, and that times the variance of an asked bit's contribution."""
        share, bit = Fraction(self.domain, self.asked), self._ones
        return share, share * bit.q * (1 - bit.q) / (bit.p - bit.q) ** 2

    @property
    def symmetric(self) -> bool:
        return True

    @cached_property
    def _own_and_other(self) -> tuple[float, float]:
        share, other = self._per_user
        return float(share - 1 + other), float(other)

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # Contributions are uncorrelated but for their means, of which only the own item's is not 0
        share, other = map(float, self._per_user)
        squares = weights**2
        variance = other * squares.sum(axis=1) + (share - 1) * (squares @ frequencies)
        return variance / checked_users(n)

    def audit(self) -> Audit:
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        bit = self._ones
        ratio, output = bit.ratio, "bit 0 set, bit 1 clear"
        if self.asked == 1:
            ratio, output = bit.p / bit.q, "bit 0 set"
        return Audit(ratio, self.max_ratio, output, (0, 1))

    def proof(self) -> PublicDrawProof:
        if self.asked == 1 < self.domain:
            raise TypeError(
                "of one bit, which loses half of epsilon, no proof is stated: see audit"
            )
        name, sets = type(self).__name__, comb(self.domain, self.asked)
        part = symmetric_proof(self.asked, "the bits asked for")
        settings = ((sets, Fraction(1, sets)),)
        return PublicDrawProof(part, settings, name=name, source=self.privacy_source)


@dataclass(frozen=True)
class DBitFlipPM(LongitudinalSystem):
    """dBitFlipPM: one round only, so that a day's report is the permanent one.

    Source: Ding, Kulkarni and Yekhanin, NeurIPS 2017, section 3; the items are its buckets.

    A user's bits are of the same ``asked`` items for ever, with a permanent report for each of
    these, and one for all other items together: asked + 1 of them at most. A day's report loses as
    much as all days together, and shows every change between these reports.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    total : float, Fraction, int, str or Decimal
        What the reports of all days together may lose about a value that does not change.
    asked : int
        How many bits each user tells, 1 .. domain.

    Examples
    --------
    >>> DBitFlipPM(16, total=1, asked=4).audit(days=1).ratio == DBitFlipPM(16, 1, 4).audit().ratio
    True
    """

    asked: int

    def __post_init__(self) -> None:
        oracle = self.protocol  # what is out of range is refused
        set_fields(self, domain=oracle.domain, asked=oracle.asked)

    @cached_property
    def protocol(self) -> DBitFlip:
        return DBitFlip(self.domain, self.total, self.asked)

    @property
    def permanent(self) -> DBitFlip:
        return self.protocol

    def ratio_after(self, days: int) -> Fraction:
        return Fraction(self.protocol.audit().ratio)

    def lasting(self, users: int, source: BitSource) -> Reports:
        reports = super().lasting(users, source)
        step = self.protocol.batch_size
        for start in range(0, users, step):
            some = reports[start : start + step]
            some["asked"] = self.protocol.sets(len(some), source)
        return reports

    def told_apart(self, lasting: Reports, values: Items) -> Items:
        return np.where(self.protocol.holds(lasting, values), values, self.domain)

    def first_round(self, lasting: Reports, items: Items, source: BitSource) -> Reports:
        reports = lasting.copy()
        step = self.protocol.batch_size
        for start in range(0, len(items), step):
            some = slice(start, start + step)
            self.protocol.tell(items[some], reports[some], source)
        return reports

    def second_round(self, reports: Reports, source: BitSource) -> None:
        """There is none: the reports stay as they are.

        Parameters
        ----------
        reports : structured numpy.ndarray
            Not used: see `LongitudinalSystem.second_round`.
        source : callable
            Not used.
        """
