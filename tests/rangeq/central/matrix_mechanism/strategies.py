"""Strategies of every kind, and their matrices written out."""

from fractions import Fraction

import numpy as np

from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy, ProductStrategy
from rangeq.central.matrix_mechanism.grouped_strategy import GroupedStrategy
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.residual_strategy import ResidualStrategy
from rangeq.central.matrix_mechanism.spectral_strategy import SpectralStrategy
from rangeq.central.matrix_mechanism.staircase_strategy import StaircaseStrategy
from tests.mechdesign.test_staircase import law_of


def dense_of(strategy):
    """The matrix M of a strategy, column by column, from `measure`."""
    cells = int(np.prod(strategy.sizes))
    columns = [
        strategy.measure(column.reshape(strategy.sizes)) for column in np.eye(cells, dtype=np.int64)
    ]
    return np.array(columns).T


def noise_of(strategy):
    """The mean and the covariance matrix of the noise, per unit, from its probabilities."""
    if strategy.noise is None:
        return np.zeros(strategy.rows), np.eye(strategy.rows)
    means, blocks = [], []
    for law in strategy.noise.laws:
        vectors, chances, _ = law_of(law.points, law.alpha, {1: 200, 2: 60}.get(law.numbers, 18))
        means.append(chances @ vectors)
        away = vectors - means[-1]
        blocks.append((away * chances[:, None]).T @ away)
    covariance = np.zeros((strategy.rows, strategy.rows))
    start = 0
    for block in blocks:
        covariance[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    return np.concatenate(means), covariance


def whitened_of(strategy):
    """The matrix of numbers whose noise is independent and of variance 1, and what makes them."""
    _, covariance = noise_of(strategy)
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    return root @ dense_of(strategy), root


def _random(rows, sizes, seed):
    rng = np.random.default_rng(seed)
    return DenseStrategy(rng.integers(-5, 6, (rows, int(np.prod(sizes)))), sizes)


def _coarse(name, size):
    """A designed strategy of smaller integers: its sensitivity is an exponent in a test."""
    fine = SpectralStrategy.of_workload(name, size)
    return SpectralStrategy(fine.kernel >> 6, fine.scales >> 15)


_DIFFERENCES = [[1, -1, 0, 0], [0, 2, -2, 0], [1, 1, 1, -3], [1, 0, 0, -1]]

EXAMPLES = {
    "dense": _random(9, 6, 0),
    "dense, one cell": DenseStrategy([[3], [-1]]),
    "dense, dependent": DenseStrategy([[1, 1, 0, 0], [0, 0, 2, 2]]),
    "dense, two attributes": _random(13, (3, 4), 1),
    "dense, two attributes, dependent": DenseStrategy(
        [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0]], (2, 3)
    ),
    "spectral, free": SpectralStrategy([90, 31, 20, 13, 9, 3], [2, 5, 4, 4, 3]),
    "spectral, fixed": SpectralStrategy([7, 3, 2, 1, 1, 0], [1, 3, 2, 9]),
    "spectral, one cell": SpectralStrategy([3, 1], [2]),
    "spectral, prefixes": _coarse("prefixes", 41),
    "spectral, ranges": _coarse("ranges", 40),
    "groups": GroupedStrategy(_random(6, (4,), 4), 3, 11),
    "groups of one cell": GroupedStrategy(_random(4, (3,), 5), 2, 3),
    "product": ProductStrategy([_random(4, (3,), 2), _random(5, (4,), 3)]),
    "product of one": ProductStrategy([_random(4, (3,), 2)]),
    "product, dependent": ProductStrategy([DenseStrategy([[1, 1, 1]]), _random(5, (4,), 3)]),
    "marginals": MarginalStrategy((3, 4, 2), [(0, 1, 2), (0,), (1, 2), ()], [2, 7, 1, 5]),
    "marginals, dependent": MarginalStrategy((3, 4, 2), [(0,), (1, 2)], [3, 1]),
    "residuals": MarginalStrategy((3, 4), [(), (0,), (1,), (0, 1)], [9, 4, 3, 1], True),
    "residuals, dependent": MarginalStrategy((3, 4, 2), [(), (0,), (0, 2)], [9, 4, 3], True),
    "residuals of one cell": MarginalStrategy((1, 4), [(), (1,)], [9, 4], True),
    "marginals, one twice": MarginalStrategy((3, 2), [(0, 1), (0,), (0, 1)], [2, 7, 3]),
    "residuals, some twice": MarginalStrategy(
        (3, 4), [(), (0,), (1,), (0, 1), (0, 1), (1,)], [9, 4, 3, 1, 2, 1], True
    ),
    "residuals by matrices": ResidualStrategy(
        [_DIFFERENCES, [[3, -1, -2], [0, 5, -5]]], [(), (0,), (1,), (0, 1)], [9, 4, 3, 2]
    ),
    "residuals by matrices, dependent": ResidualStrategy(
        [_DIFFERENCES, [[1, -1]], [[0]]], [(), (0,)], [5, 2]
    ),
    "marginals of one attribute": MarginalStrategy(5, [(0,)], [3]),
    "staircase": StaircaseStrategy(
        [[1, 1, 2, 0, 0], *np.eye(5, dtype=int)],
        [Fraction(4, 5), Fraction(1, 3), Fraction(1, 9)],
        [[[0]], [[0, 0], [1, -1], [-1, 1]], [[0, 0, 0], [-1, 1, 0], [0, 0, -1], [-1, 1, -1]]],
    ),
    "staircase, dependent": StaircaseStrategy(
        [[1, 1, 0, 0], [0, 0, 2, 2]], [Fraction(1, 4)] * 2, [[[0]], [[3], [-1]]], (2, 2)
    ),
}
"""By name; at most 64 cells each."""
