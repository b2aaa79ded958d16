from .memoised import Memoised, PermanentReports
from .over_days import change_of_days, day_covariance, least_change, mean_of_days, sequence_ratio

__all__ = [
    "Memoised",
    "PermanentReports",
    "change_of_days",
    "day_covariance",
    "least_change",
    "mean_of_days",
    "sequence_ratio",
]
