"""What releases and collections cost in privacy: alone, shuffled, composed, and in a ledger."""

from mechdesign.accounting.composition import compose
from mechdesign.accounting.daily_reports import DailyReports
from mechdesign.accounting.ledger import Ledger
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.accounting.promises import ZCDP, ApproximateDP
from mechdesign.accounting.shuffling import shuffled
from mechdesign.accounting.subsampling import thinned

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
