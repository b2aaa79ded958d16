"""Channels that send a public random index and a sign there, by randomised response."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.algebra.exact_draws import TruthOrLie, uniform
from frequency.algebra.hash_functions import Coins
from frequency.core.aggregate import Aggregate
from frequency.core.channel import Channel, Reports, smallest_integer
from frequency.core.deployable import Step, coin, lies, tossed, unstated
from frequency.core.public_coins import Menu
from frequency.core.secure_sums import SignSum
from frequency.core.tally import Sample, signs
from mechdesign.base.linear_algebra import Items
from mechdesign.base.numbers import exact_sum
from mechdesign.base.randomness import BitSource
from mechdesign.symbolic.proof_rules import PublicDrawProof
from mechdesign.symbolic.randomiser import Randomiser, favouring

_AT_ONCE = 1 << 16
"""How many indices are tried at a time."""


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
        """1 where the item's sign at an index is -1, else 0; broadcast against each other."""

    @property
    def _expression(self) -> list[Any]:
        """What `_minus` makes of an item, as descriptions have it: see ``docs/wire.md``."""
        raise unstated(self)

    @property
    def client_half(self) -> Step:
        told = lies(2, self._choice.lie, signs=1)
        return tossed([coin(values) for values in self._indices.values()], self._expression, told)

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
        """The reports of users without an item: a fair coin for the sign.

        Parameters
        ----------
        users : int
            How many, at least 0.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        """
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
        """The share of the indices at which some items all have the same sign.

        Parameters
        ----------
        items : numpy.ndarray of int64
            Different items, at least one, one row each.

        Returns
        -------
        Fraction
            Exact: by default all indices are tried.
        """
        shape = [len(numbers) for numbers in self._indices.values()]
        total, alike = math.prod(shape), 0
        for start in range(0, total, _AT_ONCE):
            places = np.unravel_index(np.arange(start, min(start + _AT_ONCE, total)), shape)
            index = [
                r.start + place for r, place in zip(self._indices.values(), places, strict=True)
            ]
            minus = [
                self._minus(np.repeat(item[None], len(index[0]), axis=0), *index) for item in items
            ]
            alike += int(np.logical_and.reduce([one == minus[0] for one in minus]).sum())
        return Fraction(alike, total)

    @property
    def least_alike(self) -> Fraction:
        """The least share of the indices at which two items have the same sign, or less."""
        return Fraction(0)

    def likely_together(self, items: Items) -> Fraction:
        return self.share_alike(items) / 2  # and the blank sign is the same

    @property
    def least_together(self) -> Fraction:
        return self.least_alike / 2

    def likelihood(self, reports: Reports, items: Items) -> Items:
        index = [reports[name].astype(np.int64) for name in self._indices]
        minus = self._minus(items, *index).astype(np.int64)
        return (reports["sign"] == 1 - 2 * minus).astype(np.int64)
