"""The A-optimal weights of given rows, and the least value of a mixture, against a solver."""

from itertools import combinations
from math import exp

import cvxpy as cp
import numpy as np
import pytest

from mechdesign.local.optimality import Criterion, mixture, variances_by_input, weigh
from mechdesign.local.patterns import gram, turned
from mechdesign.local.workload_mechanism import _all_patterns
from tests.general_solver import solve
from tests.mechdesign.local.workloads import all_rows, root_of, some_gram, some_prior


def test_ideal_is_reached_by_balanced_rows():
    """Histograms with k / (1 + ratio) a whole number: subset selection."""
    criterion = Criterion(np.eye(8), np.full(8, 1 / 8), 3.0)
    rows = 1 + 2.0 * np.array(
        [[x in chosen for x in range(8)] for chosen in combinations(range(8), 2)]
    )
    table = rows / rows[:, 0].sum()
    reached = float(variances_by_input(table, criterion.gram, criterion.prior).mean())
    assert reached == pytest.approx(criterion.ideal() - criterion.held)


def test_rows_at_the_optimum_have_the_same_worth_and_no_pattern_more():
    k, ratio = 6, exp(1.1)
    criterion = Criterion(gram("ranges", k)[0], some_prior(k, 6), ratio)
    rows = all_rows(k, ratio)
    pi, slope, multipliers = weigh(criterion, rows, np.full(len(rows), 1 / len(rows)), 1e-9)
    worth = criterion.priced(slope, multipliers, rows)
    value = float(np.sum(slope * criterion.information(rows, pi / (rows @ criterion.prior))))
    used = worth[pi > 1e-4]
    assert len(used) >= k
    np.testing.assert_allclose(used, used.mean(), atol=1e-6 * value)
    assert worth.max() <= used.mean() + 1e-6 * value
    # In a planted suboptimum some pattern is worth more.
    some = np.flatnonzero(_all_patterns(k).sum(axis=1) == 5)
    _, slope, multipliers = weigh(criterion, rows[some], np.full(len(some), 1 / len(some)), 1e-9)
    assert (
        criterion.priced(slope, multipliers, rows).max()
        > criterion.priced(slope, multipliers, rows[some]).max() + 1e-3 * value
    )


@pytest.mark.parametrize("seed", range(4))
def test_weigh_solves_the_program_of_its_rows(seed):
    k, ratio, rng = 4, exp(1.5), np.random.default_rng(seed)
    criterion = Criterion(some_gram(k, seed)[1], some_prior(k, seed), ratio)
    chosen = np.concatenate(
        [np.eye(k, dtype=bool), ~np.eye(k, dtype=bool), rng.random((6, k)) < 0.5]
    )
    rows = 1 + (ratio - 1) * chosen
    u = rows / (rows @ criterion.prior)[:, None]
    pi, slope, multipliers = weigh(criterion, rows, np.full(len(rows), 1 / len(rows)))
    assert (pi > 0).all()
    np.testing.assert_allclose(pi @ u, 1, atol=1e-7)
    inverse = np.linalg.inv(criterion.information(rows, pi / (rows @ criterion.prior)))
    value = float(np.sum(criterion.gram * inverse))
    np.testing.assert_allclose(
        slope, inverse @ criterion.gram @ inverse, rtol=1e-2, atol=1e-3 * np.abs(slope).max()
    )
    p, root = cp.Variable(len(rows), nonneg=True), root_of(criterion.gram)
    problem = cp.Problem(cp.Minimize(cp.matrix_frac(root, u.T @ cp.diag(p) @ u)), [p @ u == 1])
    solve(problem)
    assert value == pytest.approx(problem.value, rel=1e-4)
    worth = criterion.priced(slope, multipliers, rows)
    assert worth.max() <= float(pi @ worth) / pi.sum() + 1e-3 * value  # dual feasible, nearly


@pytest.mark.parametrize("seed", range(3))
def test_mixture_has_the_least_value_of_its_parts(seed):
    k, rng = 4, np.random.default_rng(seed)
    criterion = Criterion(some_gram(k, seed)[1], np.full(k, 1 / k), exp(1.0))
    parts = []
    for _ in range(6):
        rows = 1 + (criterion.ratio - 1) * turned(rng.random(k) < 0.5)
        parts.append(
            criterion.information(rows, 1 / rows[:, 0].sum()) + 0.01 * np.diag(rng.random(k))
        )
    shares, slope = mixture(criterion, parts, np.full(6, 1 / 6), 5000, 1e-6)
    assert shares.sum() == pytest.approx(1)
    value = float(np.sum(criterion.gram * np.linalg.inv(np.tensordot(shares, parts, 1))))
    gains = np.array([np.sum(part * slope) for part in parts])
    assert gains.max() <= value * (1 + 1e-4)
    weights = cp.Variable(6, nonneg=True)
    mixed = sum(weights[i] * parts[i] for i in range(6))
    problem = cp.Problem(
        cp.Minimize(cp.matrix_frac(root_of(criterion.gram), mixed)), [cp.sum(weights) == 1]
    )
    solve(problem)
    assert value == pytest.approx(problem.value, rel=1e-4)
