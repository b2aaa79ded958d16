"""A sign channel of one's own: an index of two numbers, counted, checked and drawn one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from frequency import InvalidReport
from frequency.algebra.hash_functions import Coins
from frequency.core.aggregate import Aggregate
from frequency.oracles.hadamard_response import SignChannel
from mechdesign import Audit


@dataclass(frozen=True)
class Parities(SignChannel):
    """The parity of the item's bits under a mask 1 .. 3, and of a public number 0 .. 2."""

    @property
    def _indices(self) -> dict[str, range]:
        return {"mask": range(1, 4), "number": range(3)}

    def _minus(self, items: Any, *index: Any) -> Any:
        mask, number = index
        return np.bitwise_count(items & mask) + number & 1

    def audit(self) -> Audit:
        return Audit(self._choice.ratio, self.max_ratio, "mask 1, number 0, sign +1", (0, 1))


CHANNEL = Parities(4, 1.0)


def drawn(n: int = 20_000) -> Any:
    rng = np.random.default_rng(1)
    return CHANNEL.privatize(rng.integers(0, 4, n), rng)


def test_reports_are_uniform_indices_and_true_signs_with_the_probability_told() -> None:
    items = np.random.default_rng(2).integers(0, 4, 200_000)
    reports = CHANNEL.privatize(items, np.random.default_rng(3))
    assert set(zip(reports["mask"].tolist(), reports["number"].tolist(), strict=True)) == {
        (mask, number) for mask in (1, 2, 3) for number in (0, 1, 2)
    }
    true = [
        1 - 2 * (((item & mask).bit_count() + number) % 2)
        for item, mask, number in zip(
            items.tolist(), reports["mask"].tolist(), reports["number"].tolist(), strict=True
        )
    ]
    share, p = float(np.mean(reports["sign"] == true)), float(CHANNEL._choice.p)
    assert abs(share - p) < 6 * (p * (1 - p) / len(items)) ** 0.5
    assert CHANNEL.audit().holds
    assert CHANNEL.report_bits == 2 + 2 + 1


def test_counts_are_the_sums_of_signs() -> None:
    reports = drawn()
    counts = CHANNEL.aggregate(reports).counts
    slow: Counter[tuple[int, int]] = Counter()
    for mask, number, sign in reports.tolist():
        slow[mask, number] += sign
    assert counts.shape == (4, 3)
    assert {cell: counts[cell] for cell in slow} == dict(slow)
    assert not counts[0].any()


@pytest.mark.parametrize(("field", "value"), [("mask", 0), ("mask", 4), ("number", 3), ("sign", 0)])
def test_reports_that_nobody_can_have_sent(field: str, value: int) -> None:
    reports = drawn(10)
    reports[field][7] = value
    with pytest.raises(InvalidReport, match=r"reports\[7\]"):
        CHANNEL.aggregate(reports)
    tally: Counter[str] = Counter()
    assert CHANNEL.aggregate(reports, tally).n == 9
    assert tally == {"impossible": 1}


def test_counts_that_no_reports_have() -> None:
    good = CHANNEL.aggregate(drawn(100))
    for change in ((0, 1, 2), (1, 1, 1), (1, 1, 10**6)):
        counts = good.counts.copy()
        counts[change[:2]] += change[2]
        with pytest.raises(ValueError, match="no 100 reports"):
            CHANNEL.aggregate_from_bytes(Aggregate(good.parameters, good.n, counts).to_bytes())


def test_what_public_coins_draw_has_the_likelihoods_told() -> None:
    blank = CHANNEL.blank(Coins(np.arange(90_000, dtype=np.uint64)))
    assert CHANNEL.possible(blank).all()
    cells = Counter(blank.tolist())
    assert len(cells) == 18
    assert all(abs(count - 5000) < 6 * 5000**0.5 for count in cells.values())
    ((low, high),) = CHANNEL.likelihoods
    agree = CHANNEL.likelihood(blank, np.zeros(len(blank), dtype=np.int64))
    assert abs(np.where(agree, float(high), float(low)).mean() - 1) < 0.02
