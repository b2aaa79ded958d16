"""The optimum under Gaussian noise, against a general solver, and its proved lower bound."""

import math

import cvxpy as cp
import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from rangeq.central.matrix_mechanism.gram_optimum import dual_bound, optimal_gram, trace_of_root
from rangeq.central.matrix_mechanism.workload import QuerySet


def solved(gram):
    """tr(G X^-1) by a general solver, with diag X = 1."""
    size = len(gram)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0))
    x = cp.Variable((size, size), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.matrix_frac(root, x)), [cp.diag(x) <= 1])
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("name", ["ranges", "prefixes", "width-2", "cells"])
def test_a_general_solver_finds_the_same(name, size):
    if name == "width-2" and size == 1:
        return
    gram = QuerySet(name, size).gram
    found = optimal_gram(gram, 1e-9)
    assert found.value == pytest.approx(solved(gram), rel=1e-5)
    assert found.bound <= found.value * (1 + 1e-12)  # both are rounded
    assert found.value <= found.bound * (1 + 2e-9)
    assert np.diag(found.gram).max() <= 1 + 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_random_queries_also_dependent_ones(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-3, 4, (3 + seed, 6)).astype(float)
    gram = rows.T @ rows
    found = optimal_gram(gram, 1e-6)
    assert found.bound <= found.value <= found.bound * (1 + 1e-4)
    # What is asked follows from what is measured
    inverse = np.linalg.pinv(found.gram, rcond=1e-9)
    assert gram @ inverse @ found.gram == pytest.approx(gram, abs=1e-6 * gram.max())
    assert np.sum(gram * inverse) == pytest.approx(found.value, rel=1e-6)


def test_a_cell_that_nobody_asks_for():
    rows = np.array([[1.0, 0, 1, 0], [1, 0, 0, 0]])
    found = optimal_gram(rows.T @ rows, 1e-9)
    assert not found.gram[1].any()
    assert not found.gram[3].any()
    assert found.value == pytest.approx(solved((rows.T @ rows)[np.ix_([0, 2], [0, 2])]), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_no_multipliers_give_more_than_a_strategy_has(seed):
    """Weak duality, of random multipliers and random strategies."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    rows = rng.normal(size=(size + 2, size))
    gram = rows.T @ rows
    for _ in range(20):
        strategy = rng.normal(size=(size, size))
        strategy /= np.linalg.norm(strategy, axis=0).max()
        error = np.sum(gram * np.linalg.inv(strategy.T @ strategy))
        assert dual_bound(gram, rng.random(size) ** 3) <= error


@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("spread", [0, 8, 30])
def test_the_trace_of_a_root_is_never_too_large(size, spread):
    """Against ball arithmetic, for eigenvalues that are up to 2^spread apart."""
    rng = np.random.default_rng(size + spread)
    vectors = np.linalg.qr(rng.normal(size=(size, size)))[0]
    matrix = (vectors * 2.0 ** (spread * rng.random(size))) @ vectors.T
    matrix = (matrix + matrix.T) / 2
    with ctx.workprec(300):
        balls = arb_mat([[arb(x) for x in row] for row in matrix.tolist()])
        values = [complex_value.real for complex_value in balls.eig()]
        exactly = sum((value.sqrt() for value in values), arb(0))
        bound = trace_of_root(matrix)
        assert arb(bound) <= exactly
        assert arb(bound) >= exactly * (1 - 2.0**-20)
        # An error that is admitted lowers it
        assert trace_of_root(matrix, error=1.0) <= bound


def test_a_rounding_that_is_not_admitted_is_found():
    """The test above can fail: without the bounds on rounding the trace is sometimes too large."""
    too_large = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        vectors = np.linalg.qr(rng.normal(size=(6, 6)))[0]
        matrix = (vectors * 2.0 ** (40 * rng.random(6))) @ vectors.T
        matrix = (matrix + matrix.T) / 2
        plain = float(np.sqrt(np.maximum(np.linalg.eigvalsh(matrix), 0)).sum())
        with ctx.workprec(300):
            balls = arb_mat([[arb(x) for x in row] for row in matrix.tolist()])
            exactly = sum((v.real.abs_lower().sqrt() for v in balls.eig()), arb(0))
            too_large += bool(arb(plain) > exactly)
    assert too_large


@pytest.mark.parametrize(("name", "above"), [("ranges", 0.017), ("prefixes", 0.043)])
def test_how_far_the_spectral_bound_is_below_the_optimum(name, above):
    gram = QuerySet(name, 256).gram
    found = optimal_gram(gram)
    assert found.value <= found.bound * 1.0001
    spectral = math.fsum(np.sqrt(np.linalg.eigvalsh(gram))) ** 2 / 256
    assert found.value / spectral - 1 == pytest.approx(above, abs=0.001)
    assert dual_bound(gram, np.ones(256)) == pytest.approx(spectral, rel=1e-8)


@pytest.mark.parametrize("weights", [[1, 1e-6, 1e-9, 1], [1, 2.0**-20, 2.0**-40, 2.0**-60]])
def test_queries_that_hardly_matter_are_measured_too(weights):
    """Of single cells: the identity is the optimum, whatever they weigh."""
    gram = np.diag(np.square(weights))
    found = optimal_gram(gram, 1e-6, rank=4)
    assert np.isfinite(found.gram).all()
    assert found.gram == pytest.approx(np.eye(4), abs=1e-3)
    assert found.value == pytest.approx(np.trace(gram), rel=1e-4)
    assert np.trace(gram) * (1 - 1e-4) < found.bound <= np.trace(gram)
    assert np.isfinite(optimal_gram(gram, 1e-6).gram).all()
