"""The likeliest mixture, beside a generic convex solver and expectation maximisation."""

import cvxpy
import numpy as np
import pytest
import scipy

from frequency.core.posterior import likeliest_mixture


def gaussian(values, atoms):
    return np.exp(-0.5 * (values[:, None] - atoms) ** 2)


def log_likelihood(kernel, counts, p):
    return float(counts @ np.log(kernel @ p))


def bound(kernel, counts, p):
    """How far from the maximum at most: see the docstring of `likeliest_mixture`."""
    derivatives = kernel.T @ (counts / counts.sum() / (kernel @ p))
    return float(counts.sum() * (derivatives.max() - 1))


@pytest.mark.parametrize("seed", range(6))
def test_no_likelier_mixture_by_a_convex_solver(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 0.5, 4.0, 9.0], 40) + rng.normal(size=40)
    counts = rng.integers(1, 5, 40).astype(float)
    kernel = gaussian(values, np.linspace(-1, 11, 49))
    p = likeliest_mixture(kernel, counts)

    q = cvxpy.Variable(49, nonneg=True)
    objective = cvxpy.Maximize(counts @ cvxpy.log(kernel @ q))
    best = cvxpy.Problem(objective, [cvxpy.sum(q) == 1]).solve(solver="CLARABEL")
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert log_likelihood(kernel, counts, p) == pytest.approx(best, abs=1e-4)
    assert bound(kernel, counts, p) <= 2e-8 * counts.sum()
    # Planted: weights that are a little off are seen
    other = 0.97 * p + 0.03 / 49
    assert log_likelihood(kernel, counts, other) < best - 1e-3


def test_expectation_maximisation_agrees_slowly():
    rng = np.random.default_rng(1)
    values = rng.normal(size=25) * 2
    kernel, counts = gaussian(values, np.linspace(-4, 4, 17)), np.ones(25)
    p = np.full(17, 1 / 17)
    for _ in range(50_000):
        p *= kernel.T @ (1 / 25 / (kernel @ p))
    found = likeliest_mixture(kernel, counts)
    assert log_likelihood(kernel, counts, found) == pytest.approx(
        log_likelihood(kernel, counts, p), abs=1e-4
    )


def test_isolated_observations_have_an_atom_each():
    values = np.arange(30) * 40.0
    atoms = np.arange(0, 1170, 0.5)
    p = likeliest_mixture(scipy.sparse.csr_array(gaussian(values, atoms)), np.ones(30))
    assert p[np.searchsorted(atoms, values)] == pytest.approx(np.full(30, 1 / 30), abs=1e-9)


def test_one_atom_has_all_the_weight():
    assert likeliest_mixture(np.array([[0.5], [2.0]]), np.array([1.0, 3.0])).tolist() == [1.0]
