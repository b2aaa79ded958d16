"""The saddle point against a solver of cone programs, and its derivatives against differences."""

import cvxpy as cp
import numpy as np
import pytest

from mechdesign.local import optimality
from mechdesign.local.optimality import least_favourable, saddle_point, variances_by_input
from mechdesign.local.workload_mechanism import workload_optimal
from tests.general_solver import solve
from tests.mechdesign.local.workloads import all_rows, root_of, some_gram, some_prior


def some_table(k, ratio, seed):
    rows = all_rows(k, ratio)
    theta = np.random.default_rng(seed).exponential(size=len(rows))
    theta *= 0.9 / (theta @ rows).max()
    rest = (1 - theta @ rows) / (ratio + k - 1)
    ends = np.ones((k, k)) + (ratio - 1) * np.eye(k)
    table = np.concatenate([theta[:, None] * rows, rest[:, None] * ends])
    return table / table.sum(axis=0)


def test_derivatives_are_limits_of_differences():
    k, step = 4, 1e-6
    G, prior, rows = some_gram(k, 1)[1], some_prior(k, 2), all_rows(k, 3.0)
    theta = np.random.default_rng(3).random(len(rows))
    x = np.concatenate([theta, prior])
    _, slope, hessian = optimality._derivatives(G, rows, theta, prior)
    for place in range(len(x)):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        more = optimality._derivatives(G, rows, *np.split(up, [len(rows)]))
        less = optimality._derivatives(G, rows, *np.split(down, [len(rows)]))
        assert (more[0] - less[0]) / (2 * step) == pytest.approx(slope[place], abs=1e-6)
        np.testing.assert_allclose((more[1] - less[1]) / (2 * step), hessian[place], atol=1e-5)


@pytest.mark.parametrize("ratio", [1.001, 2.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_at_the_saddle_point_no_input_and_no_row_is_better(seed, ratio):
    G, rows = some_gram(5, seed)[1], all_rows(5, ratio)
    start = np.full(len(rows), 1 / rows.sum(axis=0)[0])
    theta, prior, multipliers = saddle_point(G, rows, start, np.full(5, 0.2))
    np.testing.assert_allclose(theta @ rows, 1, rtol=1e-8)
    assert prior.sum() == pytest.approx(1)
    assert prior.min() > 0
    value, slope, _ = optimality._derivatives(G, rows, theta, prior)
    # No input is worse than the mean, and no row would lower it
    assert slope[-5:].max() == pytest.approx(value, rel=1e-5)
    size = value + prior @ np.diag(G)
    u = rows / (rows @ prior)[:, None]
    assert (-slope[:-5] / (rows @ prior) - u @ multipliers).max() <= 1e-5 * size
    assert multipliers.sum() == pytest.approx(size, rel=1e-5)


def worst_of_the_best_estimate(table, G):
    """The least variance of the worst input over all unbiased estimates from a table."""
    root = root_of(G)
    z = cp.Variable((len(table), root.shape[1]))
    each = table.T @ cp.sum(cp.square(z), axis=1) - np.diag(G)
    problem = cp.Problem(cp.Minimize(cp.max(each)), [table.T @ z == root])
    solve(problem)
    return problem.value


@pytest.mark.parametrize("ratio", [1.5, 3.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_estimate_for_the_least_favourable_prior_is_best_for_the_worst_input(seed, ratio):
    G, table = some_gram(4, seed)[1], some_table(4, ratio, seed)
    prior = least_favourable(G, table, np.full(4, 0.25))
    variances = variances_by_input(table, G, prior)
    assert variances.max() == pytest.approx(prior @ variances, rel=1e-7)
    assert variances.max() == pytest.approx(worst_of_the_best_estimate(table, G), rel=1e-5)
    assert variances.max() < variances_by_input(table, G, np.full(4, 0.25)).max()


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_stated_variance_is_that_of_the_best_estimate_from_the_table(epsilon):
    design = workload_optimal([[3, 0, 3, 2, -2]], 5, epsilon, "worst")
    best = worst_of_the_best_estimate(design.mechanism.matrix, design.gram)
    assert design.variance == pytest.approx(best, rel=1e-4)
