from .decisions import BestDecision, bayes_decision, total_variation
from .information import (
    ChiSquareDivergence,
    Divergence,
    Hellinger,
    KullbackLeibler,
    MutualInformation,
)
from .sublinear_utility import Merged, Utility

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
