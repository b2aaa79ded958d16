from .cells import granularities
from .estimate import ConjunctionEstimate, PairwiseEstimate, PredictedError, ProductEstimate
from .protocol import ConjunctionProtocol
from .published.haar import MSW, HaarHRR2D
from .published.hio_lhio import HIO, LHIO, HierarchicalHistogram2D
from .published.tdg_hdg_calm import HDG, TDG, RangeCALM, Uniform
from .wavegrid.estimate import WaveEstimate
from .wavegrid.protocol import WaveGrid, best

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
