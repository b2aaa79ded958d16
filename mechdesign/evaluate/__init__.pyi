from .evaluation import ErrorTable, evaluate
from .measures import (
    EstimatedBy,
    RepeatErrors,
    Summary,
    mean_absolute,
    mean_square_of_ranges,
    total_variation,
)
from .sweeps import add_arguments, apart, sweep

__all__ = [
    "ErrorTable",
    "EstimatedBy",
    "RepeatErrors",
    "Summary",
    "add_arguments",
    "apart",
    "evaluate",
    "mean_absolute",
    "mean_square_of_ranges",
    "sweep",
    "total_variation",
]
