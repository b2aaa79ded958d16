"""HDG: what its grids of single attributes add to TDG, and how users are divided among them.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from frequency import Between
from rangeq.grids import HDG, TDG
from tests.goodness_of_fit import FALSE_ALARM
from tests.rangeq.grids.populations import collected


def test_hdg_sees_within_cells_and_tdg_does_not() -> None:
    records = np.full((200_000, 2), 9)
    ask = {0: Between(8, 11), 1: Between(8, 11)}
    fine, coarse = (
        collected(kind([64, 64], 2.0, 200_000, granularity=4), records) for kind in (HDG, TDG)
    )
    assert fine.answer(ask).value > 0.9
    assert coarse.answer(ask).value == pytest.approx(1 / 16, abs=0.02)


def test_more_records_than_can_be_numbered() -> None:
    protocol = HDG([1 << 32, 5] * 6, 2.0, 20_000)
    assert protocol.attributes.size > 1 << 200
    records = np.random.default_rng(1).integers(0, [1 << 32, 5] * 6, size=(20_000, 12))
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(records, np.random.default_rng(2)))
    )
    half = (1 << 31) - 1
    # The deviation is 0.05.
    assert estimate.answer({0: Between(0, half), 2: Between(0, half)}).value == pytest.approx(
        0.25, abs=0.25
    )


def test_users_can_be_divided_unevenly() -> None:
    protocol = HDG([16] * 3, 1.0, 50_000, line_share=Fraction(3, 4))
    records = np.random.default_rng(12).integers(0, 16, size=(50_000, 3))
    reports = protocol.privatize(records, np.random.default_rng(13))
    counts = np.bincount(reports["group"], minlength=6)
    assert stats.chisquare(counts, np.array([3, 3, 3, 1, 1, 1]) / 12 * 50_000).pvalue > FALSE_ALARM
    assert stats.chisquare(counts).pvalue < FALSE_ALARM
    estimate = protocol.estimate(protocol.aggregate(reports))
    assert estimate.answer({0: Between(0, 7), 1: Between(0, 7)}).value == pytest.approx(
        0.25, abs=0.15
    )
    assert protocol.parameters != HDG([16] * 3, 1.0, 50_000).parameters
    for bad in (0, 1, Fraction(5, 4)):
        with pytest.raises(ValueError, match="line_share"):
            HDG([16] * 3, 1.0, 50_000, line_share=bad)
