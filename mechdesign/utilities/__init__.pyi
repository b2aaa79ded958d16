from .decisions import BestDecision, bayes_decision, total_variation
from .divergences import ChiSquareDivergence, Divergence, Hellinger, KullbackLeibler
from .information import MutualInformation
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
