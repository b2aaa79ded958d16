from .composition import compose
from .daily_reports import DailyReports
from .ledger import Ledger
from .privacy_loss import PrivacyLoss
from .promises import ZCDP, ApproximateDP
from .shuffling import shuffled
from .subsampling import thinned

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
