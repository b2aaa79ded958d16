"""Marginals of several attributes under local differential privacy.

>>> import numpy as np
>>> from frequency.marginals import Domain, InpHT
>>> domain = Domain({"age": 5, "smokes": 2, "works": 2})
>>> protocol = InpHT(domain, k=2, epsilon=1.1)
>>> records = np.random.default_rng(1).integers(0, domain.shape, size=(100_000, 3))
>>> reports = protocol.privatize(records, np.random.default_rng(2))
>>> estimate = protocol.estimate(protocol.aggregate(reports))
>>> bool(abs(estimate.marginal(["smokes", "works"]) - 1 / 4).max() < 0.05)
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
