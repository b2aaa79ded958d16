"""The same question on many days: reports that users keep, so that days do not add up.

>>> import numpy as np
>>> from frequency.longitudinal import Memoised
>>> from frequency import GRR
>>> question, rng = Memoised(GRR(4, 1), total=2), np.random.default_rng(1)
>>> state = question.start([0, 3, 3], rng)
>>> len({question.privatize(state, [0, 3, 3], rng).tobytes() for _ in range(10)}) > 1
True
>>> state.held.tolist()
[1, 1, 1]
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
