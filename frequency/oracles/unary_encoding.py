"""Unary encodings: one bit for every item of the domain, each randomised by itself."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD, Coins, TruthOrLie, UnaryBits
from frequency.core import (
    Aggregate,
    Fingerprints,
    Oracle,
    Reports,
    Sample,
    Step,
    Support,
    bits,
    json_integer,
)
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items
from mechdesign.symbolic.proof_rules import (
    BudgetShare,
    CompositionProof,
    at_two_places,
    favouring,
    unchanged,
)
from mechdesign.symbolic.semialgebraic import ALPHA, rational


def column_sums(bits: npt.NDArray[np.uint8], columns: int) -> npt.NDArray[np.int64]:
    """The number of ones, (columns,), in the first columns of bit-packed rows."""
    total = np.zeros(8 * bits.shape[1], dtype=np.int64)
    # 255 ones still fit in a byte, and adding bytes is fast
    rows = max(1, min(255, (1 << 22) // columns))
    for start in range(0, len(bits), rows):
        part = np.unpackbits(bits[start : start + rows], axis=1, bitorder="little")
        total += np.add.reduce(part, axis=0, dtype=np.uint8)
    return total[:columns]


def within(bits: npt.NDArray[np.uint8], places: int) -> npt.NDArray[np.bool_]:
    """Return whether bit-packed rows have no bit beyond so many places: shape (rows,)."""
    return bits[:, -1] >> ((places - 1) % 8) <= 1


def bits_at(bits: npt.NDArray[np.uint8], places: Items) -> Items:
    """The bit of each bit-packed row at its place, 0 or 1: shape (rows,)."""
    byte = bits[np.arange(len(places)), places >> 3].astype(np.int64)
    return byte >> (places & 7) & 1


def between(counts: npt.NDArray[np.int64], users: Any) -> bool:
    """Whether no count is negative, or larger than the number of users."""
    return bool(((counts >= 0) & (counts <= users)).all())


def symmetric_proof(places: int, name: str, source: str = "") -> CompositionProof:
    """Return a proof that bits by randomised response keep alpha: two items change two bits."""
    half, unit = Fraction(1, 2), rational(1)
    changed = favouring(1, 1, name="randomised response of a bit that two items change")
    truth = unit / rational(1 + ALPHA)
    rest = unchanged(truth, unit - truth, name="randomised response of any other bit")
    parts = [BudgetShare(half, 2, changed), BudgetShare(half, places - 2, rest)]
    if places == 1:
        parts = [BudgetShare(half, 1, rest)]
    return CompositionProof(tuple(parts), name=name, source=source)


def packed(words: npt.NDArray[np.uint64], domain: int) -> npt.NDArray[np.uint8]:
    """Rows of words as rows of bytes, without the bits of items beyond the domain.

    Shapes: `words` (users, ceil(domain / 64)); returns (users, ceil(domain / 8)).
    """
    bits = words.astype("<u8").view(np.uint8)[:, : -(-domain // 8)]
    if domain % 8:
        bits[:, -1] &= (1 << domain % 8) - 1
    return bits


def unary_step(bits: UnaryBits, places: int) -> dict[str, Any]:
    """The step of a description that draws so many bits."""
    holder, other = json_integer(bits.own), json_integer(bits.other)
    return {"do": "bits", "places": places, "own": holder, "other": other}


_FEW = 8  # of more items, that all bits are set is negligible for privacy


class PackedBits:
    """Reports of a bit for each item, packed, the least significant first; unused bits are 0."""

    domain: int

    @property
    def batch_size(self) -> int:
        """As of `Oracle`."""
        return max(1, (1 << 22) // self.domain)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        """As of `Oracle`."""
        return np.dtype([("bits", "u1", (-(-self.domain // 8),))])

    @property
    def report_bits(self) -> int:
        """As of `Oracle`."""
        return self.domain

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        """As of `Oracle`."""
        return column_sums(reports["bits"], self.domain)

    def likelihood(self, reports: Reports, items: Items) -> Items:
        """As of `Oracle`."""
        return bits_at(reports["bits"], items)


@dataclass(frozen=True)
class UnaryEncoding(PackedBits, Oracle):
    """Every bit by itself: 1 with probability p for the user's item, and q for the others."""

    privacy_source: ClassVar[str] = "thesis, section 2.4.2"

    @property
    @abstractmethod
    def _ones(self) -> UnaryBits:
        """The draw of the bits."""

    @property
    def support(self) -> Support:
        return Support(self._ones.p, self._ones.q)

    def _details(self) -> dict[str, Any]:
        return {"p": str(self._ones.own), "q": str(self._ones.other)}

    @property
    def fingerprints(self) -> Fingerprints:
        return Fingerprints(1, self.domain, self.p, self.q)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return within(reports["bits"], self.domain)

    def consistent(self, aggregate: Aggregate) -> bool:
        return between(aggregate.counts, aggregate.n)

    @property
    def client_half(self) -> Step:
        return unary_step(self._ones, self.domain)

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        reports["bits"] = packed(self._ones.draw(items, self.domain, source), self.domain)

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return (((1 - self.p) / (1 - self.q), self.p / self.q),)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        step = max(1, self.batch_size >> 6)
        for start in range(0, len(coins), step):
            ones = coins[start : start + step].words(np.arange(self.domain)[None]) < np.uint64(
                self._ones.other
            )
            reports["bits"][start : start + step] = np.packbits(ones, axis=1, bitorder="little")
        return reports

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        user_counts = self._held(items, counts)
        return rng.binomial(user_counts, float(self.p)) + rng.binomial(
            user_counts.sum() - user_counts, float(self.q)
        )

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        return [bits(n, counts, float(self.q))]

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # Twice the variance of one item's estimate, as bits are independent
        return 2 * float(self.variance(n, 1 / (held or self.domain)))

    def _likely_together(self, items: Items) -> Fraction:
        return self.q ** len(items)

    @property
    def _always_likely(self) -> Fraction:
        return self.q**self.domain if self.domain <= _FEW else Fraction(0)

    def audit(self) -> Audit:
        # Two items differ in two bits, and every other bit is as likely under both.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        return Audit(self._ones.ratio, self.max_ratio, "bit 0 set, bit 1 clear", (0, 1))

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # Bits are independent
        return weights**2 @ np.asarray(self.variance(n, frequencies))


@dataclass(frozen=True)
class OUE(UnaryEncoding):
    """Optimised unary encoding, INPRR with p and q of least variance.

    Source: Wang et al., USENIX Security 2017; thesis 2.4.2: p = 1/2, q = 1/(e^eps + 1). The
    variance is 4 e^eps / (n (e^eps - 1)^2) at frequency 0, whatever the domain, at a bit an item.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    """

    @cached_property
    def _ones(self) -> UnaryBits:
        return UnaryBits(WORD // 2, TruthOrLie.within(self.max_ratio, 2).lie)

    def proof(self) -> CompositionProof:
        half, unit = Fraction(1, 2), Fraction(1)
        other = rational(ALPHA) / rational(1 + ALPHA)
        changed = at_two_places(half, other, name="the bits of two items")
        rest = unchanged(other, rational(1) - other, name="any other bit")
        parts = [BudgetShare(unit, 1, changed), BudgetShare(unit, self.domain - 2, rest)]
        if self.domain == 1:
            parts = [BudgetShare(unit, 1, unchanged(half, half, name="the only bit"))]
        return CompositionProof(tuple(parts), name=type(self).__name__, source=self.privacy_source)


@dataclass(frozen=True)
class SUE(UnaryEncoding):
    """Symmetric unary encoding, basic one-time RAPPOR.

    Source: Erlingsson et al. 2014; thesis 2.4.2: p = 1 - q, p/q = e^(eps/2).

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    """

    @cached_property
    def _ones(self) -> UnaryBits:
        return UnaryBits.symmetric(self.max_ratio)

    def proof(self) -> CompositionProof:
        return symmetric_proof(self.domain, type(self).__name__, self.privacy_source)
