"""Marginals of several attributes under local differential privacy.

>>> import numpy as np
>>> domain = Domain({"age": 5, "smokes": 2, "works": 2})
>>> protocol = InpHT(domain, k=2, epsilon=1.1)
>>> records = np.random.default_rng(1).integers(0, domain.shape, size=(100_000, 3))
>>> estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, np.random.default_rng(2))))
>>> estimate.marginal(["smokes", "works"]).round(1).tolist()
[[0.2, 0.3], [0.2, 0.3]]
"""

from frequency.marginals.characters import InpHT
from frequency.marginals.domain import Domain
from frequency.marginals.estimate import MarginalEstimate
from frequency.marginals.inputs import InpHTCMS, InpOLH, InpPS, InpRR
from frequency.marginals.protocol import MarginalProtocol
from frequency.marginals.views import MargHT, MargPS, MargRR

__all__ = [
    "Domain",
    "InpHT",
    "InpHTCMS",
    "InpOLH",
    "InpPS",
    "InpRR",
    "MargHT",
    "MargPS",
    "MargRR",
    "MarginalEstimate",
    "MarginalProtocol",
]
