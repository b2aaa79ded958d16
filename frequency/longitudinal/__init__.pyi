from .linkage import LinkageCurve, LinkagePoint, linkage_curve, linked_share
from .memoised import Memoised, PermanentReports
from .over_days import change_of_days, day_covariance, least_change, mean_of_days, sequence_ratio

__all__ = [
    "LinkageCurve",
    "LinkagePoint",
    "Memoised",
    "PermanentReports",
    "change_of_days",
    "day_covariance",
    "least_change",
    "linkage_curve",
    "linked_share",
    "mean_of_days",
    "sequence_ratio",
]
