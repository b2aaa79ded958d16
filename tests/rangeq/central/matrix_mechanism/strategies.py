"""Strategies of every kind, and their matrices written out."""

import numpy as np

from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy


def dense_of(strategy):
    """The matrix M of a strategy, column by column, from `measure`."""
    cells = int(np.prod(strategy.sizes))
    columns = [
        strategy.measure(column.reshape(strategy.sizes)) for column in np.eye(cells, dtype=np.int64)
    ]
    return np.array(columns).T


def _random(rows, sizes, seed):
    rng = np.random.default_rng(seed)
    return DenseStrategy(rng.integers(-5, 6, (rows, int(np.prod(sizes)))), sizes)


EXAMPLES = {
    "dense": _random(9, 6, 0),
    "dense, one cell": DenseStrategy([[3], [-1]]),
    "dense, dependent": DenseStrategy([[1, 1, 0, 0], [0, 0, 2, 2]]),
    "dense, two attributes": _random(13, (3, 4), 1),
    "dense, two attributes, dependent": DenseStrategy(
        [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0]], (2, 3)
    ),
}
"""By name; at most 64 cells each."""
