"""Channels that send a public random number and a sign, by randomised response."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra.exact_draws import TruthOrLie
from frequency.core.aggregate import Aggregate
from frequency.core.channel import Channel, Reports, smallest_integer, sums_of_signs
from frequency.core.tally import Sample, signs


class SignChannel(Channel):
    """A public uniform number, and a sign that depends on it and on the item.

    A report is the number and ``sign`` (+1 or -1). The counts are the sums of the signs of each
    number.
    """

    number: ClassVar[str]
    """What the number is called in a report."""

    @property
    @abstractmethod
    def _numbers(self) -> int:
        """How many numbers there are, from 0 on."""

    @cached_property
    def _choice(self) -> TruthOrLie:
        return TruthOrLie.within(self.max_ratio, 2)

    @property
    def contrast(self) -> float:
        """The mean of a reported sign times the true one."""
        return float(self._choice.p - self._choice.q)

    @property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([(self.number, smallest_integer(self._numbers - 1)), ("sign", "i1")])

    @property
    def report_bits(self) -> int:
        return (self._numbers - 1).bit_length() + 1

    def _details(self) -> dict[str, Any]:
        return {"truth": str(self._choice.truth), "lie": str(self._choice.lie)}

    def _possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return (reports[self.number] < self._numbers) & (
            (reports["sign"] == 1) | (reports["sign"] == -1)
        )

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self._numbers,)

    def _aggregate(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.bincount(
            reports[self.number], weights=reports["sign"], minlength=self._numbers
        ).astype(np.int64)

    def _consistent(self, aggregate: Aggregate) -> bool:
        return sums_of_signs(aggregate.counts, aggregate.n)

    def _samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        return [signs(n, counts, 1 / self._numbers)]
