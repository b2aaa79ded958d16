"""Hadamard randomised response: signs of t random Walsh-Hadamard coefficients of the item."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import Coins, TruthOrLie, binary_basis, uniform, walsh_hadamard
from frequency.core import (
    Aggregate,
    Channel,
    Fingerprints,
    Likelihood,
    Menu,
    Oracle,
    Reports,
    Sample,
    SignSum,
    Step,
    checked_users,
    coin,
    lies,
    of_signs,
    population_mean,
    signs,
    smallest_integer,
    spread_out,
    tossed,
    unstated,
)
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items, exact_sum, set_fields, whole
from mechdesign.symbolic.proof_rules import PublicDrawProof, Randomiser, favouring

# ------------------------------------------------------------------------------------------------
# Channels that send a public random index and a sign there, by randomised response.


_AT_ONCE = 1 << 16  # how many indices are tried at a time


class SignChannel(Channel):
    """A public uniform index, and the sign that the item has there.

    A report has a field for each number of the index, and ``sign`` (+1 or -1). The counts are the
    sums of the signs of each index.
    """

    @property
    @abstractmethod
    def _indices(self) -> dict[str, range]:
        """The fields of an index, and the numbers that each may be, all as likely."""

    @abstractmethod
    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        """Return 1 where the item's sign at an index is -1, else 0; arguments are broadcast."""

    @property
    def _expression(self) -> list[Any]:
        """Return `_minus` of an item as an expression of descriptions: see ``docs/wire.md``."""
        raise unstated(self)

    @property
    def client_half(self) -> Step:
        response = lies(2, self._choice.lie, signs=1)
        return tossed(
            [coin(values) for values in self._indices.values()], self._expression, response
        )

    @cached_property
    def _choice(self) -> TruthOrLie:
        return TruthOrLie.within(self.max_ratio, 2)

    @property
    def contrast(self) -> float:
        """The mean of a reported sign times the true one."""
        return float(self._choice.p - self._choice.q)

    @property
    def _sign(self) -> Randomiser:
        """The law of the sign, given the index."""
        source = "succinct histograms, Theorem 2.1"
        return favouring(1, 1, name="randomised response of the sign", source=source)

    def proof(self) -> PublicDrawProof:
        number = math.prod(map(len, self._indices.values()))
        chances = ((number, Fraction(1, number)),)
        name, source = type(self).__name__, self.privacy_source
        return PublicDrawProof(self._sign, chances, name=name, source=source)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        fields = [(name, smallest_integer(r.stop - 1)) for name, r in self._indices.items()]
        return np.dtype([*fields, ("sign", "i1")])

    @property
    def fingerprints(self) -> Fingerprints:
        # At most as many are different: of few items some signs are more frequent
        return Fingerprints(2 * math.prod(map(len, self._indices.values())))

    @property
    def report_bits(self) -> int:
        return sum((len(numbers) - 1).bit_length() for numbers in self._indices.values()) + 1

    def _details(self) -> dict[str, Any]:
        return {"truth": str(self._choice.truth), "lie": str(self._choice.lie)}

    def _fill(self, reports: Reports, index: Sequence[Items], minus: npt.NDArray[Any]) -> None:
        for name, numbers in zip(self._indices, index, strict=True):
            reports[name] = numbers
        reports["sign"] = 1 - 2 * minus.astype(np.int64)

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        users = len(items)
        index = [r.start + uniform(users, len(r), source) for r in self._indices.values()]
        minus = self._minus(items, *index).astype(np.int64)
        self._fill(reports, index, minus ^ self._choice.draw(users, source))

    def idle(self, users: int, source: BitSource) -> Reports:
        """The reports, (users,), of users without an item: a fair coin for the sign."""
        reports = np.zeros(users, dtype=self.report_dtype)
        index = [r.start + uniform(users, len(r), source) for r in self._indices.values()]
        self._fill(reports, index, uniform(users, 2, source))
        return reports

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        possible = (reports["sign"] == 1) | (reports["sign"] == -1)
        for name, numbers in self._indices.items():
            possible &= (reports[name] >= numbers.start) & (reports[name] < numbers.stop)
        return possible

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return tuple(numbers.stop for numbers in self._indices.values())

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        shape, names = self.counts_shape, list(self._indices)
        cell = reports[names[0]]
        for name, size in zip(names[1:], shape[1:], strict=True):
            cell = cell.astype(np.int64) * size + reports[name]
        sums = np.bincount(cell, weights=reports["sign"], minlength=math.prod(shape))
        return sums.astype(np.int64).reshape(shape)

    @property
    def sign_sums(self) -> tuple[SignSum, ...]:
        return (SignSum(0, math.prod(self.counts_shape)),)

    def _drawn(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The counts without those of indices that are never drawn."""
        drawn = tuple(slice(numbers.start, numbers.stop) for numbers in self._indices.values())
        return counts[drawn]

    def consistent(self, aggregate: Aggregate) -> bool:
        sums = np.abs(aggregate.counts).view(np.uint64)  # in which -2^63 is 2^63
        total = exact_sum(sums)
        if total <= aggregate.n and (aggregate.n - total) % 2 == 0:
            return total == exact_sum(np.abs(self._drawn(aggregate.counts)).view(np.uint64))
        return False

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        drawn = self._drawn(counts)
        return [signs(n, drawn, 1 / drawn.size)]

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return (self._choice.likelihoods,)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        index = [
            numbers.start + coins.uniform(place, len(numbers))
            for place, numbers in enumerate(self._indices.values())
        ]
        self._fill(reports, index, coins.uniform(len(index), 2))
        return reports

    # The index is public: of the two signs every item has one.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        return (Menu.of(2, 1, largest),)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result = reports.copy()
        result["sign"] *= 1 - 2 * (numbers & 1)
        return result

    def share_alike(self, items: Items) -> Fraction:
        """The exact share of the indices at which some different items all have the same sign."""
        shape = [len(numbers) for numbers in self._indices.values()]
        total, alike = math.prod(shape), 0
        # By default all indices are tried
        for start in range(0, total, _AT_ONCE):
            places = np.unravel_index(np.arange(start, min(start + _AT_ONCE, total)), shape)
            index = [
                r.start + place for r, place in zip(self._indices.values(), places, strict=True)
            ]
            minus = [
                self._minus(np.repeat(item[None], len(index[0]), axis=0), *index) for item in items
            ]
            alike += int(np.logical_and.reduce([row == minus[0] for row in minus]).sum())
        return Fraction(alike, total)

    @property
    def least_alike(self) -> Fraction:
        """The least share of the indices at which two items have the same sign, or less."""
        return Fraction(0)

    def _likely_together(self, items: Items) -> Fraction:
        return self.share_alike(items) / 2  # and the blank sign is the same

    @property
    def _least_together(self) -> Fraction:
        return self.least_alike / 2

    def likelihood(self, reports: Reports, items: Items) -> Items:
        index = [reports[name].astype(np.int64) for name in self._indices]
        minus = self._minus(items, *index).astype(np.int64)
        return (reports["sign"] == 1 - 2 * minus).astype(np.int64)


@dataclass(frozen=True)
class HRR(Oracle):
    """HRR_t: t random signs of the item's row of the Hadamard matrix, by randomised response.

    Source: thesis 4.7; Nguyen et al. 2016. t = 1 is HRR, and InpHT with k = d.

    The domain is padded to a power of two S; coefficient j of item x is (-1)^(j . x), the dot
    product of their binary digits. The constant coefficient says nothing and is never drawn: the t
    indices are distinct and uniform in 1 .. S-1, and their signs are told by randomised response
    over the 2^t patterns. A report is an ``index`` and a ``sign`` (+1 or -1) for each. The
    variance, about (e^eps + 2^t - 1)^2 / (n t (e^eps - 1)^2), is least for t = 1 up to epsilon =
    ln(1 + 2 sqrt 2) = 1.342, then for larger t.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    coefficients : int, default 1
        t, 1 to log2 of the padded domain (1 for the smallest domains).

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    privacy_source: ClassVar[str] = "thesis, section 4.7"

    coefficients: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        most = max(1, (self.domain - 1).bit_length())
        padded = "an integer up to log2 of the padded domain"
        coefficients = whole(self.coefficients, "coefficients", 1, most, what=padded)
        set_fields(self, coefficients=coefficients)
        self._choice.require()

    @property
    def padded(self) -> int:
        """S, the least power of two that is at least the domain and 2."""
        return 1 << max(1, (self.domain - 1).bit_length())

    @cached_property
    def _choice(self) -> TruthOrLie:
        return TruthOrLie.within(self.max_ratio, 1 << self.coefficients)

    @cached_property
    def _contrast(self) -> Fraction:
        """The mean of a reported sign times the true one.

        The pattern is kept with this probability, and uniform otherwise.
        """
        return self._choice.p - self._choice.q

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        t = self.coefficients
        return np.dtype([("index", smallest_integer(self.padded - 1), (t,)), ("sign", "i1", (t,))])

    @property
    def fingerprints(self) -> Fingerprints:
        t = self.coefficients
        return Fingerprints(math.perm(self.padded - 1, t) << t)

    @property
    def report_bits(self) -> int:
        return self.coefficients * self.padded.bit_length()

    def _details(self) -> dict[str, Any]:
        return {
            "coefficients": self.coefficients,
            "truth": str(self._choice.truth),
            "lie": str(self._choice.lie),
        }

    @property
    def client_half(self) -> Step:
        t = self.coefficients
        response = lies(1 << t, self._choice.lie, signs=t)
        step = tossed([coin(range(1, self.padded))] * t, ["walsh"], response)
        return {**step, "distinct": t > 1}

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        users, t = len(items), self.coefficients
        index = 1 + uniform(users * t, self.padded - 1, source).reshape(users, t)
        if t > 1:  # indices are distinct: draw all of a user's again when two agree
            while len(
                again := np.flatnonzero((np.diff(np.sort(index, axis=1), axis=1) == 0).any(axis=1))
            ):
                index[again] = 1 + uniform(len(again) * t, self.padded - 1, source).reshape(-1, t)
        flips = self._choice.draw(users, source)[:, None] >> np.arange(t)
        minus = (np.bitwise_count(index & items[:, None]) ^ flips) & 1
        reports["index"] = index
        reports["sign"] = 1 - 2 * minus

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        index, sign = reports["index"], reports["sign"]
        good = ((index >= 1) & (index < self.padded) & ((sign == 1) | (sign == -1))).all(axis=1)
        if self.coefficients > 1:
            good &= (np.diff(np.sort(index, axis=1), axis=1) != 0).all(axis=1)
        return good

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self.padded,)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        sums = np.bincount(
            reports["index"].ravel(), weights=reports["sign"].ravel(), minlength=self.padded
        )
        return sums.astype(np.int64)  # whole numbers far below 2^53

    @property
    def sign_sums(self) -> tuple[SignSum, ...]:
        return (SignSum(0, self.padded, self.coefficients),)

    def consistent(self, aggregate: Aggregate) -> bool:
        # Index j came up N_j <= n times, of the parity of its sum s_j and with N_j >= |s_j|; the
        # N_j add up to n t.
        n, sums = aggregate.n, aggregate.counts
        if sums[0] or sums.max() > n or sums.min() < -n:
            return False
        least = exact_sum(np.abs(sums))
        most = n * (len(sums) - 1) - int(((sums[1:] ^ n) & 1).sum())
        drawn = n * self.coefficients
        return least <= drawn <= most and (drawn - least) % 2 == 0

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        t, m, kept = self.coefficients, self.padded - 1, float(self._contrast)
        if t == 1:
            return [signs(n, counts[1:], 1 / m)]
        # The signs of a report are told together, and the covariance is diagonal but for u u' over
        # items instead of indices.
        sums = walsh_hadamard(counts.astype(np.float64)) / self.padded**0.5
        frequencies = 1 / self.padded + sums * (self.padded**0.5 * self.scale / max(n, 1))
        pair = kept * t * (t - 1) / max(m * (m - 1), 1)
        return [
            Sample(
                n,
                sums,
                t / m - pair + pair * self.padded * np.maximum(frequencies, 0.0),
                sums / max(n, 1),
                fixed=True,
            )
        ]

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        sums = walsh_hadamard(aggregate.counts.astype(np.float64))
        chosen = sums[: self.domain] if items is None else sums[items]
        return 1 / self.padded + chosen * (self.scale / aggregate.n)

    def likelihood_of(self, aggregate: Aggregate) -> Likelihood:
        drawn = aggregate.n * self.coefficients / (self.padded - 1)

        def means(frequencies: Floats) -> Floats:
            (shares,) = spread_out(frequencies[None], None, self.padded)
            return walsh_hadamard(shares)[1:]

        def transposed(numbers: Floats) -> Floats:
            return walsh_hadamard(np.concatenate([[0.0], numbers]))[: self.domain]

        sums = aggregate.counts[1:].astype(np.float64)
        return of_signs(self.domain, drawn, sums, float(self._contrast), means, transposed)

    @cached_property
    def scale(self) -> float:
        """The amount that a report's sign adds to the estimate of the items with that sign."""
        return float((self.padded - 1) / (self.padded * self.coefficients * self._contrast))

    def _sum_of_signs(self, same: int) -> Fraction:
        """Return the variance of the sum of the t reported signs times those of item x.

        It is that of users with item x (same = 1) or with another one (0).
        """
        t, m, kept = self.coefficients, self.padded - 1, self._contrast
        mean, square = (
            (Fraction(t), Fraction(t * t))
            if same
            else (Fraction(-t, m), t * (1 - Fraction(t - 1, m)))
        )
        return kept * square + (1 - kept) * t - (kept * mean) ** 2

    @property
    def symmetric(self) -> bool:
        return True

    @cached_property
    def _own_and_other(self) -> tuple[float, float]:
        # Of the scaled sum of t signs (thesis 4.7), drawn without replacement
        holder, other = (self.scale**2 * float(self._sum_of_signs(same)) for same in (1, 0))
        return holder, other

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # A report contributes W/S + scale * (sum of its signs times the weights' coefficients
        # there), W the sum of the weights.
        t, m, s, kept = self.coefficients, self.padded - 1, self.padded, float(self._contrast)
        total = weights.sum(axis=1, keepdims=True)
        mean_square = (s * (weights**2).sum(axis=1, keepdims=True) - total**2) / m

        def of_holder(own: Floats) -> Floats:
            # The true signs of two different indices, drawn without replacement, are correlated.
            pairs = ((s * own - total) ** 2 - m * mean_square) / max(m * (m - 1), 1)
            square: Floats = t * mean_square + kept * t * (t - 1) * pairs
            return self.scale**2 * square - (own - total / s) ** 2

        others = of_holder(np.zeros((len(weights), 1)))
        return population_mean(of_holder(weights), others, frequencies) / checked_users(n)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # The same for every pair of items, as all pairs of rows of the matrix are alike
        return float(
            self.linear_variance(n, np.array([[1.0, -1.0]]), np.full(2, 1 / (held or self.domain)))[
                0
            ]
        )

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return (self._choice.likelihoods,)

    def blank(self, coins: Coins) -> Reports:
        t = self.coefficients
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        # Distinct indices, by Floyd's algorithm: the last number takes the place of one that came
        # already
        for k in range(t):
            index = 1 + coins.uniform(k, self.padded - t + k)
            came = (reports["index"][:, :k] == index[:, None]).any(axis=1)
            reports["index"][:, k] = np.where(came, self.padded - t + k, index)
        reports["sign"] = 1 - 2 * (
            coins.words(t)[:, None] >> np.arange(63, 63 - t, -1, dtype=np.uint64) & 1
        ).astype(np.int64)
        return reports

    # The indices are public: of all patterns of signs every item has one.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        return (Menu.of(1 << self.coefficients, 1, largest),)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result = reports.copy()
        result["sign"] *= 1 - 2 * (numbers[:, None] >> np.arange(self.coefficients) & 1)
        return result

    def likelihood(self, reports: Reports, items: Items) -> Items:
        minus = np.bitwise_count(reports["index"].astype(np.int64) & items[:, None]) & 1
        return (reports["sign"] == 1 - 2 * minus.astype(np.int64)).all(axis=1).astype(np.int64)

    def _likely_together(self, items: Items) -> Fraction:
        # All have the same sign at indices orthogonal to their differences
        first, t = int(items[0]), self.coefficients
        rank = len(binary_basis(first ^ item for item in items[1:].tolist()))
        alike = math.comb((self.padded >> rank) - 1, t)
        return Fraction(alike, math.comb(self.padded - 1, t) << t)

    def audit(self) -> Audit:
        # The indices do not depend on the item. Given them, the pattern of the item has weight
        # ``truth``, any other ``lie``.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        return Audit(self._choice.ratio, self.max_ratio, "index 1, sign +1", (0, 1))

    def proof(self) -> PublicDrawProof:
        t = self.coefficients
        signs = favouring(1, (1 << t) - 1, name="randomised response of the signs")
        indices = math.perm(self.padded - 1, t)
        return PublicDrawProof(
            signs,
            ((indices, Fraction(1, indices)),),
            name=type(self).__name__,
            source=self.privacy_source,
        )
