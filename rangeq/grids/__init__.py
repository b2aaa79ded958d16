"""Conjunctions of ranges over several ordinal attributes under local differential privacy.

>>> import numpy as np
>>> protocol = HDG(sizes={"age": 100, "income": 64}, epsilon=1.0, n=100_000)
>>> rng = np.random.default_rng(1)
>>> records = rng.integers(0, [100, 64], size=(100_000, 2))
>>> estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
>>> bool(abs(estimate.answer({"age": (20, 39), "income": (0, 31)}).value - 0.1) < 0.03)
True
"""

from rangeq.grids.estimate import (
    ConjunctionEstimate,
    PairwiseEstimate,
    PredictedError,
    ProductEstimate,
)
from rangeq.grids.guideline import granularities
from rangeq.grids.protocol import ConjunctionProtocol
from rangeq.grids.systems.calm import RangeCALM
from rangeq.grids.systems.haar import HaarHRR2D
from rangeq.grids.systems.hdg import HDG
from rangeq.grids.systems.hio import HIO
from rangeq.grids.systems.lhio import LHIO, HierarchicalHistogram2D
from rangeq.grids.systems.msw import MSW
from rangeq.grids.systems.tdg import TDG
from rangeq.grids.systems.uniform import Uniform
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.grids.wavegrid.protocol import WaveGrid, best

__all__ = [
    "HDG",
    "HIO",
    "LHIO",
    "MSW",
    "TDG",
    "ConjunctionEstimate",
    "ConjunctionProtocol",
    "HaarHRR2D",
    "HierarchicalHistogram2D",
    "PairwiseEstimate",
    "PredictedError",
    "ProductEstimate",
    "RangeCALM",
    "Uniform",
    "WaveEstimate",
    "WaveGrid",
    "best",
    "granularities",
]
