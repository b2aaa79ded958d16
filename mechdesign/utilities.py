"""The utilities that `mechdesign.local.extremal` knows: what the outputs of a local mechanism are
worth.

Each is a sum over outputs of a sublinear function of the row, see `mechdesign.utility`, where one
of your own begins.
"""

from mechdesign.decisions import BestDecision, bayes_decision, total_variation
from mechdesign.divergences import ChiSquare, Divergence, Hellinger, KullbackLeibler
from mechdesign.information import MutualInformation
from mechdesign.utility import Merged, Utility

__all__ = [
    "BestDecision",
    "ChiSquare",
    "Divergence",
    "Hellinger",
    "KullbackLeibler",
    "Merged",
    "MutualInformation",
    "Utility",
    "bayes_decision",
    "total_variation",
]
