"""Ranges, prefixes and quantiles of an ordered attribute, under local privacy or for a curator.

>>> import numpy as np
>>> protocol = HaarHRR(domain=64, epsilon=1.0)
>>> estimate = protocol.estimate(protocol.simulate(np.full(64, 10_000), np.random.default_rng(1)))
>>> round(estimate.range(16, 47), 1)
0.5
"""

from rangeq import central, plot
from rangeq.core.estimate import Distribution, RangeEstimate
from rangeq.core.protocol import RangeProtocol
from rangeq.core.tree import Tree
from rangeq.local.auc_bins import AucError, auc_error, best_bins
from rangeq.local.circular import CircularHistogram
from rangeq.local.composite import Composite
from rangeq.local.decomposed import DecomposedHistogram
from rangeq.local.flat import Flat
from rangeq.local.haar import HaarHRR
from rangeq.local.hierarchy import HierarchicalHistogram
from rangeq.local.item_sets import ItemSets, PaddedSets, SetEstimate, best_size
from rangeq.local.naive_bayes import NaiveBayes, density
from rangeq.local.optimisation import Optimised, compose, optimise
from rangeq.local.paired import Paired, PairedEstimate
from rangeq.local.per_attribute import PerAttribute, PerAttributeEstimate
from rangeq.local.shifted import ShiftedHistogram
from rangeq.local.smoothed import NotConverged, Shaped, ShapedEstimate, shaped
from rangeq.local.square_wave import SquareWave

__all__ = [
    "AucError",
    "CircularHistogram",
    "Composite",
    "DecomposedHistogram",
    "Distribution",
    "Flat",
    "HaarHRR",
    "HierarchicalHistogram",
    "ItemSets",
    "NaiveBayes",
    "NotConverged",
    "Optimised",
    "PaddedSets",
    "Paired",
    "PairedEstimate",
    "PerAttribute",
    "PerAttributeEstimate",
    "RangeEstimate",
    "RangeProtocol",
    "SetEstimate",
    "Shaped",
    "ShapedEstimate",
    "ShiftedHistogram",
    "SquareWave",
    "Tree",
    "auc_error",
    "best_bins",
    "best_size",
    "central",
    "compose",
    "density",
    "optimise",
    "plot",
    "shaped",
]
