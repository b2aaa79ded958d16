from .extremal_mechanism import Extremal, extremal
from .patterns import square
from .shuffled_mechanism import ShuffleDesign, shuffle_optimal
from .workload_mechanism import WorkloadDesign, workload_optimal

__all__ = [
    "Extremal",
    "ShuffleDesign",
    "WorkloadDesign",
    "extremal",
    "shuffle_optimal",
    "square",
    "workload_optimal",
]
