"""Workloads against the queries written out one by one."""

from itertools import combinations, product

import numpy as np
import pytest

from mechdesign.local.patterns import NAMES, gram, marginals, parities
from mechdesign.local.patterns import product as joined


def dense(name, k):
    item = np.arange(k)
    ends = {
        "histogram": [(a, a) for a in range(k)],
        "prefixes": [(0, b) for b in range(k)],
        "ranges": [(a, b) for a in range(k) for b in range(a, k)],
    }
    return np.array([(a <= item) & (item <= b) for a, b in ends[name]], dtype=float)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 2, 3, 7, 16])
def test_named_workloads_are_their_queries(name, k):
    W = dense(name, k)
    found, queries = gram(name, k)
    assert queries == len(W)
    assert np.array_equal(found, W.T @ W)
    assert np.array_equal(gram(W, k)[0], found)


def test_marginals_are_their_cells():
    sizes = (2, 3, 2)
    items = list(product(*map(range, sizes)))
    for way in range(4):
        expected = [
            [all(item[a] == value for a, value in zip(chosen, cell, strict=True)) for item in items]
            for chosen in combinations(range(3), way)
            for cell in product(*(range(sizes[a]) for a in chosen))
        ]
        assert np.array_equal(marginals(sizes, way), np.array(expected, dtype=float))


def test_parities_are_sums_of_signs():
    for way in (1, 2, 3):
        expected = [
            [(-1) ** sum(item >> bit & 1 for bit in chosen) for item in range(8)]
            for size in range(1, way + 1)
            for chosen in combinations(range(3), size)
        ]
        assert np.array_equal(parities(3, way), expected)


def test_products_are_products_of_queries():
    first, second = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(4, 2)
    expected = [[a[i] * b[j] for i in range(3) for j in range(2)] for a in first for b in second]
    assert np.array_equal(joined(first, second), expected)
    assert np.array_equal(joined(np.eye(2), np.eye(3), np.eye(2)), marginals((2, 3, 2), 3))


@pytest.mark.parametrize(
    "matrix",
    [
        "nothing",
        np.ones(3),
        np.ones((2, 4)),
        np.ones((0, 3)),
        np.ones((1, 1, 3)),
        [[1, 2, np.nan]],
        [[1, 2, np.inf]],
        [[1e200, 0, 0]],
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_no_workload_is_refused(matrix):
    with pytest.raises(ValueError, match="workload"):
        gram(matrix, 3)


def test_families_refuse_what_is_out_of_range():
    for sizes, way in (
        ((), 1),
        ((2, 0), 1),
        ((2, True), 1),
        ((2, 2.0), 1),
        ((2, 2), 3),
        ((2, 2), -1),
        ((2, 2), True),
        ((2, 2), 1.0),
    ):
        with pytest.raises(ValueError, match="must be"):
            marginals(sizes, way)
    for attributes, way in (
        (0, 1),
        (17, 1),
        (True, 1),
        (3.0, 1),
        (3, 0),
        (3, 4),
        (3, 1.5),
        (3, True),
    ):
        with pytest.raises(ValueError, match="must be"):
            parities(attributes, way)
    with pytest.raises(ValueError, match="matrix of queries"):
        joined(np.ones(3))
