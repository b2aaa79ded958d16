"""Marginals of several attributes under local differential privacy.

>>> import numpy as np
>>> domain = Domain({"age": 5, "smokes": 2, "works": 2})
>>> protocol = InpHT(domain, k=2, epsilon=1.1)
>>> records = np.random.default_rng(1).integers(0, domain.shape, size=(100_000, 3))
>>> reports = protocol.privatize(records, np.random.default_rng(2))
>>> estimate = protocol.estimate(protocol.aggregate(reports))
>>> bool(abs(estimate.marginal(["smokes", "works"]) - 1 / 4).max() < 0.05)
True
"""

from frequency.marginals.association import chi_square, mutual_information, pearson
from frequency.marginals.calm import CALM
from frequency.marginals.chow_liu_tree import chow_liu
from frequency.marginals.consistency import consistent, measurements, to_mbi
from frequency.marginals.estimate import FittedEstimate, MarginalEstimate
from frequency.marginals.expectation_maximisation import InpEM
from frequency.marginals.fourier import InpHT
from frequency.marginals.maximum_likelihood import LikelihoodEstimate, most_likely
from frequency.marginals.protocol import MarginalProtocol
from frequency.marginals.views import MargHT, MargPS, MargRR
from frequency.marginals.whole_record import InpHTCMS, InpOLH, InpPS, InpRR
from frequency.schema import Domain

__all__ = [
    "CALM",
    "Domain",
    "FittedEstimate",
    "InpEM",
    "InpHT",
    "InpHTCMS",
    "InpOLH",
    "InpPS",
    "InpRR",
    "LikelihoodEstimate",
    "MargHT",
    "MargPS",
    "MargRR",
    "MarginalEstimate",
    "MarginalProtocol",
    "chi_square",
    "chow_liu",
    "consistent",
    "measurements",
    "most_likely",
    "mutual_information",
    "pearson",
    "to_mbi",
]
