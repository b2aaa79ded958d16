from . import central, plot
from .core.estimate import Between, Distribution, RangeEstimate
from .core.protocol import RangeProtocol
from .core.tree import Tree
from .local.circular import CircularHistogram
from .local.composite import Composite, ShiftedHistogram
from .local.haar import HaarHRR
from .local.hierarchy import DecomposedHistogram, Flat, HierarchicalHistogram
from .local.item_sets import ItemSets, PaddedSets, SetEstimate, best_size
from .local.naive_bayes import NaiveBayes, density
from .local.optimisation import Optimised, compose, optimise
from .local.paired import Paired, PairedEstimate
from .local.per_attribute import PerAttribute, PerAttributeEstimate
from .local.smoothed import NotConverged, Shaped, ShapedEstimate, shaped
from .local.square_wave import AucError, SquareWave, auc_error, best_bins

__all__ = [
    "AucError",
    "Between",
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
