"""The nearest table of whole numbers against all tables of whole numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from mechdesign.tables.consistent_table import Measured, nearest_whole
from tests.mechdesign.tables.test_least_squares import families

CASES = [
    ((2, 2), [(0,), (1,), ()], [False, False, False], 3),
    ((2, 3), [(0,), (1,)], [True, False], 3),
    ((2, 2, 2), [(0, 1), (0, 2), (1, 2)], [False] * 3, 2),
    ((2, 2, 2), [(0,), (1, 2), ()], [True, False, False], 2),
    ((4,), [], [], 4),
]


def measured(shape, kept, known, largest, seed):
    rng = np.random.default_rng(seed)
    parts = [families(shape, axes) for axes in kept]
    cells = int(np.prod(shape))
    sums = sparse.csr_array(sparse.vstack([sparse.csr_array((0, cells)), *parts]))
    flags = np.repeat(known, [part.shape[0] for part in parts]).astype(bool)
    truth = rng.integers(0, largest + 1, cells)
    return Measured(
        truth + rng.normal(0, 3, cells),
        rng.uniform(0.5, 5, cells),
        sums,
        np.where(flags, sums @ truth, sums @ truth + rng.integers(-4, 5, len(flags))),
        np.where(flags, 0.0, rng.uniform(0.2, 5, len(flags))),
    )


def brute(task, largest):
    """The least sum of squares over all tables."""
    cells = np.array(list(product(range(largest + 1), repeat=len(task.values))))
    off = cells @ task.sums.toarray().T - task.sum_values
    kept = (off[:, task.known] == 0).all(axis=1)
    squares = ((cells - task.values) ** 2 / task.variances).sum(axis=1)
    squares += (off[:, ~task.known] ** 2 / task.sum_variances[~task.known]).sum(axis=1)
    return cells[kept][np.argmin(squares[kept])]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("shape", "kept", "known", "largest"), CASES)
def test_it_is_the_best_of_all_tables(shape, kept, known, largest, seed):
    task = measured(shape, kept, known, largest, seed)
    bounds = np.full(len(task.values), largest)
    found = nearest_whole(task, bounds, task.values)
    assert found.tolist() == brute(task, largest).tolist()
    # Wherever the search begins
    assert nearest_whole(task, bounds, bounds * 0.0).tolist() == found.tolist()


def test_all_tables_tell_a_worse_one_apart():
    task = measured((2, 2), [(0,), (1,), ()], [False] * 3, 3, 1)
    best = brute(task, 3)
    for k in range(4):
        worse = best.copy()
        worse[k] += 1 if worse[k] < 3 else -1
        assert task.objective(worse) > task.objective(best)


def test_it_looks_far_from_where_it_begins():
    task = Measured(
        np.array([70.0, -50.0]), np.ones(2), families((2,), ()), np.array([100.0]), np.full(1, 0.1)
    )
    far = nearest_whole(task, np.array([100, 100]), np.zeros(2))
    assert far.tolist() == [97, 0]
    assert far.tolist() == [round((70 + 10 * 100) / 11), 0]


def test_a_sum_that_says_nothing_changes_nothing():
    """However far it is off: cells keep their weights relative to each other."""
    task = measured((2, 2), [(0,), ()], [False, False], 3, 1)
    sum_values, sum_variances = task.sum_values.copy(), task.sum_variances.copy()
    sum_values[-1], sum_variances[-1] = 1e9, 1e18
    noisy = task._replace(sum_values=sum_values, sum_variances=sum_variances)
    bounds = np.full(4, 3)
    assert nearest_whole(noisy, bounds, task.values).tolist() == brute(noisy, 3).tolist()
    alone = task._replace(
        sums=task.sums[:-1], sum_values=sum_values[:-1], sum_variances=sum_variances[:-1]
    )
    assert brute(noisy, 3).tolist() == brute(alone, 3).tolist()


def test_certain_cells_stay_and_known_sums_hold():
    sums = families((2, 2), (0,))
    task = Measured(
        np.array([3.0, 9.0, 1.2, 2.9]),
        np.array([0.0, 5, 5, 5]),
        sums,
        np.array([7.0, 4]),
        np.zeros(2),
    )
    assert nearest_whole(task, np.full(4, 7), task.values).tolist() == [3, 4, 1, 3]
