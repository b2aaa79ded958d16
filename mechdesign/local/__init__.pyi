from .extremal_mechanism import Extremal, extremal
from .shuffled_mechanism import ShuffleDesign, shuffle_optimal
from .square_mechanism import square
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
