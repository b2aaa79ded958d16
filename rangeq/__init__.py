"""Range, prefix and quantile queries on an ordered attribute, under local differential privacy and
for a trusted curator.

>>> import numpy as np
>>> protocol = HaarHRR(domain=64, epsilon=1.0)
>>> estimate = protocol.estimate(protocol.simulate(np.full(64, 10_000), np.random.default_rng(1)))
>>> round(estimate.range(16, 47), 1)
0.5
"""

from rangeq import central, plot
from rangeq.circle import CircularHistogram
from rangeq.composite import Composite
from rangeq.decomposed import DecomposedHistogram
from rangeq.estimate import Distribution, RangeEstimate
from rangeq.flat import Flat
from rangeq.haar import HaarHRR
from rangeq.hierarchy import HierarchicalHistogram
from rangeq.itemsets import ItemSets
from rangeq.optimise import Optimised, compose, optimise
from rangeq.paired import Paired
from rangeq.protocol import RangeProtocol
from rangeq.shaped import Shaped, ShapedEstimate, shaped
from rangeq.squarewave import SquareWave
from rangeq.tree import Tree

__all__ = [
    "CircularHistogram",
    "Composite",
    "DecomposedHistogram",
    "Distribution",
    "Flat",
    "HaarHRR",
    "HierarchicalHistogram",
    "ItemSets",
    "Optimised",
    "Paired",
    "RangeEstimate",
    "RangeProtocol",
    "Shaped",
    "ShapedEstimate",
    "SquareWave",
    "Tree",
    "central",
    "compose",
    "optimise",
    "plot",
    "shaped",
]
