"""Conjunctions of ranges over several ordinal attributes under local differential privacy.

>>> from frequency import Between
>>> import numpy as np
>>> from rangeq.grids import HDG
>>> protocol = HDG(sizes={"age": 100, "income": 64}, epsilon=1.0, n=100_000)
>>> rng = np.random.default_rng(1)
>>> records = rng.integers(0, [100, 64], size=(100_000, 2))
>>> estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
>>> answer = estimate.answer({"age": Between(20, 39), "income": Between(0, 31)})
>>> bool(abs(answer.value - 0.1) < 0.03)
True
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
