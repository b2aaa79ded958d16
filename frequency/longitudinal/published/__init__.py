"""The published systems for many days, to compare `frequency.longitudinal.Memoised` with.

>>> import numpy as np
>>> question, rng = OLOLOHA(100, total=2, day=1), np.random.default_rng(1)
>>> values = np.repeat([3, 9], 20_000)
>>> state = question.start(values, rng)
>>> reports = question.privatize(state, values, rng)
>>> estimate = question.protocol.estimate(question.protocol.aggregate(reports))
>>> bool(abs(estimate.frequencies[3] - 1 / 2) < 0.1)
True
"""

from frequency.longitudinal.published.d_bit_flip import DBitFlip, DBitFlipPM
from frequency.longitudinal.published.system import LongitudinalSystem, SystemReports
from frequency.longitudinal.published.two_rounds import (
    BLH,
    LGRR,
    LOLOHA,
    LOSUE,
    OLOLOHA,
    RAPPOR,
    BiLOLOHA,
    TwoRounds,
)

__all__ = [
    "BLH",
    "LGRR",
    "LOLOHA",
    "LOSUE",
    "OLOLOHA",
    "RAPPOR",
    "BiLOLOHA",
    "DBitFlip",
    "DBitFlipPM",
    "LongitudinalSystem",
    "SystemReports",
    "TwoRounds",
]
