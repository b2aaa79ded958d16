"""The contract on stated errors for every mechanism of a curator.

See `tests.contracts.variances`.
"""

from __future__ import annotations

import numpy as np

from frequency import Between
from rangeq.central import CentralFlat, Hierarchy, Wavelet
from tests.contracts.variances import Band, Entry, Sample, VarianceContract

FIRST = np.array([0, 1, 3, 3, 8, 0, 5, 17, 10, 2, 20])
LAST = np.array([6, 9, 3, 11, 15, 3, 5, 19, 10, 20, 20])


def entry(make):
    """Intervals are the wider of two laws', and half a person more: they may cover always."""
    return Entry(lambda epsilon, run: make(epsilon), covered=Band(0.95, 1.0))


class TestCentral(VarianceContract):
    """Ranges of people; the noise does not depend on them, nor does what is predicted."""

    domain, users, runs = 21, 2000, 400
    planted, planted_at = ("CentralFlat", "Hierarchy", "Wavelet"), 1.0
    entries = {  # noqa: RUF012
        "CentralFlat": entry(lambda e: CentralFlat(21, e)),
        "Hierarchy": entry(lambda e: Hierarchy(21, e, 2)),
        "Hierarchy, geometric": entry(lambda e: Hierarchy(21, e, [3, 7], budget="geometric")),
        "Hierarchy without inference": entry(lambda e: Hierarchy(21, e, 2, inference=False)),
        "Wavelet": entry(lambda e: Wavelet(21, e)),
    }

    def sample(self, make, epsilon, counts, rng):
        mechanism, before = make(epsilon, 0), np.concatenate([[0], np.cumsum(counts)])
        true, errors, covered = before[LAST + 1] - before[FIRST], [], []
        for _ in range(self.runs):
            estimate = mechanism.release(counts, rng)
            errors.append(estimate.range(FIRST, LAST) - true)
            low, high = estimate.answer(Between(FIRST, LAST)).interval()
            covered.append((low <= true) & (true <= high))
        told = np.broadcast_to(estimate.answer(Between(FIRST, LAST)).variance, np.shape(errors))
        predicted = mechanism.range_variance(FIRST, LAST)
        return Sample(np.array(errors), told, predicted, np.array(covered))
