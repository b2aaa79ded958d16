"""Frequency oracles: counts of categorical data under local differential privacy.

>>> import numpy as np
>>> from frequency import GRR
>>> oracle = GRR(domain=4, epsilon=2.0)
>>> reports = oracle.privatize([0, 1, 1, 3], rng=np.random.default_rng(1))  # on the users' devices
>>> estimate = oracle.estimate(oracle.aggregate(reports))  # on the server
>>> estimate.n
4
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
