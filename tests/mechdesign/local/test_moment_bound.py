"""No table is below the bound; for histograms randomised response reaches it."""

import cvxpy as cp
import numpy as np
import pytest

from mechdesign.local.bounds import MomentProgram
from mechdesign.local.optimality import variances_by_input
from mechdesign.local.patterns import NAMES, gram
from mechdesign.local.windows import largest_moment
from tests.general_solver import solve
from tests.mechdesign.local.workloads import root_of, some_gram


def response(k, share):
    return (1 - share) * np.eye(k) + share / k


def variance_of(table, G):
    k = len(G)
    return float(variances_by_input(table, G, np.full(k, 1 / k)).mean())


@pytest.mark.parametrize("ratio", [1.01, 1.3, 2.7])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
@pytest.mark.parametrize("k", [2, 3, 7, 16])
def test_randomised_response_is_the_least_for_histograms(k, share, ratio):
    table = response(k, share)
    program = MomentProgram(np.eye(k), ratio, largest_moment(table, ratio))
    bound, reached = program.bound(table), variance_of(table, np.eye(k))
    assert reached * 0.999 <= bound <= reached * (1 + 1e-9)


def some_table(k, rng):
    """Rows of very different shapes, mixed with so many uniform ones that columns add up to 1."""
    kind = rng.integers(3)
    if kind == 0:
        rows = rng.random((3 * k, k)) ** rng.uniform(0.5, 8)
    elif kind == 1:
        rows = 1.0 * (rng.random((3 * k, k)) < rng.uniform(0.1, 0.9))
    else:
        rows = np.exp(-np.abs(np.subtract.outer(np.arange(3 * k) / 3, np.arange(k))))
    rows = np.concatenate([rows + 1e-9, rng.uniform(0.01, 0.3) * np.eye(k)])
    rows *= rng.uniform(0.3, 1.0) / rows.sum(axis=0).max()
    rows = np.concatenate([rows, np.diag(1 - rows.sum(axis=0))])
    share = 10 ** rng.uniform(-2, -0.1)
    return (1 - share) * rows + share / len(rows)


@pytest.mark.parametrize("seed", range(40))
def test_no_table_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    k, ratio = int(rng.integers(2, 8)), float(np.exp(rng.uniform(0.01, 1)))
    table = some_table(k, rng)
    np.testing.assert_allclose(table.sum(axis=0), 1)
    G = some_gram(k, seed)[1] if seed % 2 else gram(NAMES[seed % 3], k)[0]
    bound = MomentProgram(G, ratio, largest_moment(table, ratio)).bound(table)
    assert 0 <= bound <= variance_of(table, G) * (1 + 1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("moment", [2.0, 20.0])
def test_the_bound_against_a_program_over_many_rows(name, moment):
    """The convex program itself, over a grid of rows: it is above the bound, by little."""
    k, ratio = 3, 1.2
    G = gram(name, k)[0]
    steps = 12
    shapes = [
        np.array([a, b, steps - a - b]) / steps
        for a in range(steps + 1)
        for b in range(steps + 1 - a)
    ]
    rows = np.array(
        [
            m + (1 - m) * k * shape
            for m in np.exp(np.linspace(np.log(0.02), 0, 25))
            for shape in shapes
            if min(shape) == 0
        ]
    )
    pi = cp.Variable(len(rows), nonneg=True)
    root = root_of(G)
    Z = cp.Variable((root.shape[1],) * 2, symmetric=True)
    M = rows.T @ cp.diag(pi) @ rows
    pairs = [(x, z) for x in range(k) for z in range(k) if x != z]
    constraints = [cp.bmat([[Z, root.T], [root, M]]) >> 0, rows.T @ pi == 1]
    constraints += [
        ((rows[:, x] - ratio * rows[:, z]) ** 2 / rows.min(axis=1)) @ pi <= moment for x, z in pairs
    ]
    problem = cp.Problem(cp.Minimize(cp.trace(Z)), constraints)
    solve(problem)
    least = problem.value - np.trace(G) / k
    bound = MomentProgram(G, ratio, moment).bound(response(k, 0.5))
    assert least * 0.85 <= bound <= least * (1 + 1e-4)


def test_a_workload_of_the_total_alone_has_no_variance():
    assert MomentProgram(np.ones((4, 4)), 1.2, 10.0).bound(response(4, 0.2)) == 0


def test_gradients_are_those_of_finite_differences():
    program = MomentProgram(gram("prefixes", 5)[0], 1.3, 20.0)
    z, grid = np.random.default_rng(1).normal(size=10), np.linspace(0.01, 1, 20)
    _, gradient = program._objective(z, grid, 30.0)
    numeric = [
        (program._objective(z + h, grid, 30.0)[0] - program._objective(z - h, grid, 30.0)[0]) / 2e-6
        for h in 1e-6 * np.eye(10)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7)
