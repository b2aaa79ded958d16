from .information import (
    ChiSquareDivergence,
    Divergence,
    Hellinger,
    KullbackLeibler,
    MutualInformation,
)
from .sublinear_utility import BestDecision, Merged, Utility, bayes_decision, total_variation

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
