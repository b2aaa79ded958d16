from .estimated_by import EstimatedBy
from .evaluation import ErrorTable, evaluate
from .measures import mean_absolute, mean_square_of_ranges, total_variation
from .rows import RepeatErrors, Summary
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
