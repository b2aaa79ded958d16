"""Ranges, prefixes and quantiles of an ordered attribute, under local privacy or for a curator.

>>> import numpy as np
>>> from rangeq import HaarHRR
>>> protocol = HaarHRR(domain=64, epsilon=1.0)
>>> estimate = protocol.estimate(protocol.simulate(np.full(64, 10_000), np.random.default_rng(1)))
>>> round(estimate.range(16, 47), 1)
0.5
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
