"""Subset selection: a random set of k items that favours the user's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD, Coins, bernoulli, bernoulli_bits, uniform
from frequency.core import (
    Aggregate,
    Fingerprints,
    Menu,
    Oracle,
    Reports,
    Sample,
    Step,
    Support,
    cells,
    json_integer,
    population_mean,
    variance_of,
)
from frequency.oracles.unary_encoding import PackedBits, between, packed, within
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items, exact_sum
from mechdesign.symbolic.proof_rules import Randomiser, favouring


@dataclass(frozen=True)
class SubsetSelection(PackedBits, Oracle):
    """Subset selection: the least variance known for one report a user.

    Source: Ye and Barg, IEEE Trans. Inf. Theory 2018; Wang et al. 2016.

    A report is a set of exactly `size` items. It contains the holder's with probability p; given
    that, it is uniform among such sets. With size 1 this is GRR. The size is the one of least
    variance, near domain / (exp(epsilon) + 1).

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    """

    privacy_source: ClassVar[str] = "Ye and Barg 2018"

    @cached_property
    def size(self) -> int:
        """k, the number of items in a report."""
        centre = self.domain / (1 + float(min(self.max_ratio, Fraction(1 << 60))))
        sizes = {max(1, min(self.domain - 1, int(centre) + step)) for step in (-1, 0, 1, 2)}
        return min(
            sorted(sizes),
            key=lambda k: _variance(self.domain, k, _inclusion(self.domain, k, self.max_ratio)),
        )

    @cached_property
    def _inclusion(self) -> int:
        return _inclusion(self.domain, self.size, self.max_ratio)

    @cached_property
    def support(self) -> Support:
        p = Fraction(self._inclusion, WORD)
        return Support(p, _other(self.domain, self.size, p))

    def _details(self) -> dict[str, Any]:
        return {"size": self.size, "inclusion": str(self._inclusion)}

    @property
    def fingerprints(self) -> Fingerprints:
        # Beyond sets of 64 there are more than 2^100: whatever n, every user is linked
        return Fingerprints(math.comb(self.domain, min(self.size, 64)))

    @property
    def _roughly(self) -> int:
        """The probability of a bit at the start, in units of 2^-64: near the set's share."""
        return min(63, max(1, round(64 * self.size / self.domain))) << 58

    @property
    def client_half(self) -> Step:
        return {
            "do": "subset",
            "places": self.domain,
            "size": self.size,
            "inclusion": json_integer(self._inclusion),
            "start": json_integer(self._roughly),
        }

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        # Start from independent bits, set the holder's as drawn, then set or clear bits at random
        # until there are k. The start and every step treat the other items alike, so that the set
        # is uniform among those of its size.
        users, lanes = len(items), -(-self.domain // 64)
        words = bernoulli_bits(users * lanes, self._roughly, source).reshape(users, lanes)
        if self.domain % 64:
            words[:, -1] &= np.uint64((1 << self.domain % 64) - 1)
        unit = np.uint64(1)
        place = unit << (items & 63).astype(np.uint64)
        rows = np.arange(users)
        holds = bernoulli(users, self._inclusion, source)
        holder_words = words[rows, items >> 6]
        words[rows, items >> 6] = np.where(holds, holder_words | place, holder_words & ~place)
        excess = np.bitwise_count(words).sum(axis=1, dtype=np.int64) - self.size
        wrong = np.flatnonzero(excess)
        while len(wrong):
            picked = uniform(len(wrong), self.domain, source)
            lane, bit = picked >> 6, unit << (picked & 63).astype(np.uint64)
            present = (words[wrong, lane] & bit) != 0
            change = (present == (excess[wrong] > 0)) & (picked != items[wrong])
            here, lane, bit = wrong[change], lane[change], bit[change]
            words[here, lane] ^= bit
            excess[here] -= np.sign(excess[here])
            wrong = wrong[excess[wrong] != 0]
        reports["bits"] = packed(words, self.domain)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return within(reports["bits"], self.domain) & (
            np.bitwise_count(reports["bits"]).sum(axis=1, dtype=np.int64) == self.size
        )

    @property
    def cells(self) -> int:
        return self.size

    def cells_of(self, reports: Reports) -> Items:
        members = np.unpackbits(reports["bits"], axis=1, count=self.domain, bitorder="little")
        return (np.flatnonzero(members) % self.domain).reshape(-1, self.size)

    def consistent(self, aggregate: Aggregate) -> bool:
        return (
            between(aggregate.counts, aggregate.n)
            and exact_sum(aggregate.counts) == aggregate.n * self.size
        )

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        k, rest, p, q = self.size, self.domain - 1, float(self.p), float(self.q)
        if k == 1:
            return [cells(n, counts)]
        # Two items are in a set with the chance b, or a if one of them is the holder's: the
        # covariance of items x and z is b + (a - b) (f_x + f_z) - r_x r_z, and with f = (r - q) /
        # (p - q) that is c - u_x u_z for u = r - s.
        a, b = (
            p * (k - 1) / rest,
            (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / (rest * (rest - 1)),
        )
        s = (a - b) / (p - q)
        mean = counts / max(n, 1)
        common = mean - s
        spread = mean * (1 - mean) + common**2 - (b + s * s - 2 * q * s)
        return [Sample(n, counts.astype(np.float64), np.maximum(spread, 0.0), common, fixed=True)]

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # From the probabilities that a set holds one, and both, of two items
        p, k, d, rest = self.p, self.size, held or self.domain, self.domain - 1
        single = (p + (d - 1) * self.q) / d
        # Two items, one of them the holder's; or two others.
        holder, others = (
            p * Fraction(k - 1, rest),
            (p * (k - 1) * (k - 2) + (1 - p) * k * (k - 1)) / (rest * max(rest - 1, 1)),
        )
        both = (2 * holder + (d - 2) * others) / d
        return float(variance_of(n, 2 * (single - both) / (p - self.q) ** 2 - Fraction(2, d)))

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        share = Fraction(self.size, self.domain)
        return (((1 - self.p) / (1 - share) if share < 1 else Fraction(1), self.p / share),)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        step = max(1, self.batch_size >> 6)
        for start in range(0, len(coins), step):
            words = coins[start : start + step].words(np.arange(self.domain)[None])
            # The least words: a uniform set
            chosen = np.argpartition(words, self.size - 1, axis=1)[:, : self.size]
            ones = np.zeros(words.shape, dtype=np.bool_)
            np.put_along_axis(ones, chosen, True, axis=1)
            reports["bits"][start : start + step] = np.packbits(ones, axis=1, bitorder="little")
        return reports

    # A set moved around the items, as if they were on a circle: of all places to which it is moved
    # every item is in the set for as many as it has items.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        return (Menu.of(self.domain, self.size, largest),)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result = reports.copy()
        members = np.unpackbits(reports["bits"], axis=1, count=self.domain, bitorder="little")
        moved = (np.arange(self.domain) - numbers[:, None]) % self.domain
        members = np.take_along_axis(members, moved, axis=1)
        result["bits"] = np.packbits(members, axis=1, bitorder="little")
        return result

    def _likely_together(self, items: Items) -> Fraction:
        drawn = range(len(items))
        return math.prod(
            (Fraction(self.size - k, self.domain - k) for k in drawn), start=Fraction(1)
        )

    def audit(self) -> Audit:
        # A set has weight p / C(D-1, k-1) under the items in it and (1-p) / C(D-1, k) under the
        # others.
        k, p = self.size, self.p
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        return Audit(
            p * (self.domain - k) / ((1 - p) * k),
            self.max_ratio,
            "any set with 0 and without 1",
            (0, 1),
        )

    def proof(self) -> Randomiser:
        share, name = Fraction(self.size, self.domain), type(self).__name__
        return favouring(share, 1 - share, True, name=name, source=self.privacy_source)

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # Given an item v and whether v is in the set, the rest of the set is uniform among sets of
        # its size.
        p, rest = float(self.p), self.domain - 1
        total, squares = weights.sum(axis=1, keepdims=True), (weights**2).sum(axis=1, keepdims=True)

        def of_holder(own: Floats) -> Floats:
            others, square = (total - own) / max(rest, 1), (squares - own**2) / max(rest, 1)
            mean, mean_square = np.zeros_like(own), np.zeros_like(own)
            for chance, weight, drawn in (
                (p, own, self.size - 1),
                (1 - p, np.zeros_like(own), self.size),
            ):
                pairs = drawn * (drawn - 1) / max(rest - 1, 1) * (rest * others**2 - square)
                mean += chance * (weight + drawn * others)
                mean_square += chance * (
                    weight**2 + 2 * weight * drawn * others + drawn * square + pairs
                )
            return mean_square - mean**2

        users = population_mean(
            of_holder(weights), of_holder(np.zeros((len(weights), 1))), frequencies
        )
        return variance_of(n, users / float(self.p - self.q) ** 2)


def _inclusion(domain: int, size: int, ratio: Fraction) -> int:
    """Return the largest probability, in units of 2^-64, that the user's item is in the set.

    The likelihood ratio of two items stays within ``ratio``.
    """
    if domain == 1:
        return WORD
    return int(WORD * ratio * size // (ratio * size + domain - size))


def _other(domain: int, size: int, p: Fraction) -> Fraction:
    return (size - p) / (domain - 1) if domain > 1 else Fraction(0)


def _variance(domain: int, size: int, inclusion: int) -> Fraction:
    p = Fraction(inclusion, WORD)
    q = _other(domain, size, p)
    return q * (1 - q) / (p - q) ** 2 if p > q else Fraction(WORD)
