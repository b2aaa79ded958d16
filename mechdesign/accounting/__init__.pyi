from .composition import compose
from .ledger import Ledger
from .privacy_loss import PrivacyLoss
from .promises import ZCDP, ApproximateDP
from .shuffling import DailyReports, shuffled, thinned

__all__ = [
    "ZCDP",
    "ApproximateDP",
    "DailyReports",
    "Ledger",
    "PrivacyLoss",
    "compose",
    "shuffled",
    "thinned",
]
