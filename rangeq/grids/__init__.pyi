from .estimate import ConjunctionEstimate, PairwiseEstimate, PredictedError, ProductEstimate
from .guideline import granularities
from .protocol import ConjunctionProtocol
from .systems.calm import RangeCALM
from .systems.haar import HaarHRR2D
from .systems.hdg import HDG
from .systems.hio import HIO
from .systems.lhio import LHIO, HierarchicalHistogram2D
from .systems.msw import MSW
from .systems.tdg import TDG
from .systems.uniform import Uniform
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
