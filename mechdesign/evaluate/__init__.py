"""Evaluation: protocols x populations x epsilons x repeats, to a tidy table and pictures.

>>> from mechdesign.evaluate import evaluate
>>> from frequency import GRR, OUE
>>> found = evaluate(
...     protocols={"GRR": lambda loss: GRR(16, loss), "OUE": lambda loss: OUE(16, loss)},
...     populations={"Zipf": [6000 // rank for rank in range(1, 17)]},
...     queries={"items": list(range(16))},
...     epsilons=[0.5, 2.0],
...     repeats=5,
... )
>>> [row.protocol for row in found.summary() if row.epsilon == 0.5]
['GRR', 'OUE']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
