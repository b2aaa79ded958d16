"""The same question on many days: reports that users keep, so that days do not add up.

>>> import numpy as np
>>> from frequency import GRR
>>> question, rng = Memoised(GRR(4, 1), total=2), np.random.default_rng(1)
>>> state = question.start([0, 3, 3], rng)
>>> len({question.privatize(state, [0, 3, 3], rng).tobytes() for _ in range(10)}) > 1
True
>>> state.held.tolist()
[1, 1, 1]
"""

from frequency.longitudinal.memoised import Memoised, PermanentReports
from frequency.longitudinal.over_days import (
    change_of_days,
    day_covariance,
    least_change,
    mean_of_days,
)
from frequency.longitudinal.sequences import sequence_ratio

__all__ = [
    "Memoised",
    "PermanentReports",
    "change_of_days",
    "day_covariance",
    "least_change",
    "mean_of_days",
    "sequence_ratio",
]
