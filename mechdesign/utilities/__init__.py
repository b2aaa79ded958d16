"""The utilities of local mechanisms that `mechdesign.local.extremal` maximises.

Each is a sum over outputs of a sublinear function of the row, see
`mechdesign.utilities.sublinear_utility`. A new utility is a subclass of its `Utility`.
"""

from mechdesign.utilities.decisions import BestDecision, bayes_decision, total_variation
from mechdesign.utilities.divergences import (
    ChiSquareDivergence,
    Divergence,
    Hellinger,
    KullbackLeibler,
)
from mechdesign.utilities.information import MutualInformation
from mechdesign.utilities.sublinear_utility import Merged, Utility

__all__ = [
    "BestDecision",
    "ChiSquareDivergence",
    "Divergence",
    "Hellinger",
    "KullbackLeibler",
    "Merged",
    "MutualInformation",
    "Utility",
    "bayes_decision",
    "total_variation",
]
