"""Who reports on which part of a record, and simulated aggregates.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from frequency import Between
from rangeq.grids import HDG, LHIO, MSW, TDG, HaarHRR2D
from tests.goodness_of_fit import FALSE_ALARM


def test_sorted_input_does_not_bias() -> None:
    records = np.sort(np.random.default_rng(3).integers(0, 16, size=(60_000, 3)), axis=0)
    for system in (TDG, HDG, LHIO, MSW, HaarHRR2D):
        protocol = system(sizes=[16] * 3, epsilon=3.0, n=60_000)
        reports = protocol.privatize(records, np.random.default_rng(4))
        # Every group has its share of the first and of the second half of the users.
        counts = np.stack(
            [
                np.bincount(half, minlength=len(protocol.channel.parts))
                for half in np.split(reports["group"], 2)
            ]
        )
        assert stats.chi2_contingency(counts).pvalue > FALSE_ALARM
        assert stats.chisquare(counts.sum(axis=0)).pvalue > FALSE_ALARM
        estimate = protocol.estimate(protocol.aggregate(reports))
        assert estimate.answer({0: Between(0, 7)}).value == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("system", [TDG, HDG, MSW])
def test_simulated_aggregates_are_distributed_like_those_of_reports(system: Any) -> None:
    rng = np.random.default_rng(8)
    records = np.minimum(rng.geometric(0.3, size=(500, 2)) - 1, 7)
    protocol = (
        system(sizes=[8, 8], epsilon=1.0, granularity=2)
        if system is TDG
        else system(sizes=[8, 8], epsilon=1.0, n=500)
    )
    real = np.array(
        [protocol.aggregate(protocol.privatize(records, rng)).counts for _ in range(400)]
    )
    simulated = np.array([protocol.simulate(1, rng, records).counts for _ in range(400)])
    comparisons = real.shape[1]
    for column in range(comparisons):
        if np.ptp(real[:, column]) or np.ptp(simulated[:, column]):
            assert (
                stats.ks_2samp(real[:, column], simulated[:, column]).pvalue
                > FALSE_ALARM / comparisons
            )
