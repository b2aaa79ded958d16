"""Evaluation: protocols x populations x epsilons x repeats, to a tidy table and pictures.

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

from mechdesign.evaluate.estimated_by import EstimatedBy
from mechdesign.evaluate.evaluation import ErrorTable, evaluate
from mechdesign.evaluate.measures import mean_absolute, mean_square_of_ranges, total_variation
from mechdesign.evaluate.rows import RepeatErrors, Summary
from mechdesign.evaluate.sweeps import add_arguments, apart, sweep

__all__ = [
    "ErrorTable",
    "EstimatedBy",
    "RepeatErrors",
    "Summary",
    "add_arguments",
    "apart",
    "evaluate",
    "mean_absolute",
    "mean_square_of_ranges",
    "sweep",
    "total_variation",
]
