"""The least squares estimate against its slow twin: dense generalised least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, sparse

from mechdesign.tables.consistent_table import LeastSquares, indicators


def brute(variances, sums, sum_variances, known):
    """The estimate as a matrix of what was measured: restricted least squares, written plainly.

    The known sums are Lagrange constraints, everything is dense.
    """
    cells = len(variances)
    exactly, noisy = sums[known], sums[~known]
    design = np.vstack([np.eye(cells), noisy])
    weights = np.diag(1 / np.concatenate([variances, sum_variances[~known]]))
    normal = design.T @ weights @ design
    system = np.block([[normal, exactly.T], [exactly, np.zeros((len(exactly), len(exactly)))]])
    right = linalg.block_diag(design.T @ weights, np.eye(len(exactly)))
    found = (np.linalg.pinv(system) @ right)[:cells]
    result = np.zeros((cells, cells + len(sums)))
    result[:, :cells] = found[:, :cells]
    result[:, cells + np.flatnonzero(~known)] = found[:, cells : cells + (~known).sum()]
    result[:, cells + np.flatnonzero(known)] = found[:, cells + (~known).sum() :]
    return result


def families(shape, kept):
    """The sums of a table over all axes but some."""
    place = np.indices(shape)
    sizes = [shape[i] for i in kept]
    groups = np.zeros(shape, dtype=np.int64)
    for i, size in zip(kept, sizes, strict=True):
        groups = groups * size + place[i]
    return indicators(groups.ravel())


CASES = [
    ((2, 3), [], []),
    ((3, 4), [(0,)], [False]),
    ((3, 4), [(0,), (1,), ()], [False, False, False]),
    ((3, 4), [(0,), (1,)], [True, False]),
    ((2, 3, 2), [(0,), (0, 1), (2,), ()], [True, False, False, False]),
    ((1, 1), [(0,)], [True]),
    ((1, 5), [(1,), ()], [False, True]),
]


def drawn(shape, kept, known, seed=5):
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.5, 20, int(np.prod(shape)))
    parts = [families(shape, axes) for axes in kept]
    sums = sparse.csr_array(
        sparse.vstack([sparse.csr_array((0, variances.size)), *parts]), dtype=np.float64
    )
    flags = np.repeat(known, [part.shape[0] for part in parts]).astype(bool)
    sum_variances = np.where(flags, 0.0, rng.uniform(0.1, 9, len(flags)))
    return variances, sums, sum_variances, flags


@pytest.mark.parametrize(("shape", "kept", "known"), CASES)
def test_it_is_dense_generalised_least_squares(shape, kept, known, monkeypatch):
    variances, sums, sum_variances, flags = drawn(shape, kept, known)
    expected = brute(variances, sums.toarray(), sum_variances, flags)
    fit = LeastSquares(variances, sums, sum_variances)
    found = fit.coefficients(np.eye(len(variances)))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    rng = np.random.default_rng(3)
    y, z = rng.normal(size=len(variances)), rng.normal(size=len(flags))
    np.testing.assert_allclose(fit.fit(y, z), expected @ np.concatenate([y, z]), atol=1e-9)
    monkeypatch.setattr("mechdesign.tables.consistent_table._AT_ONCE", 2 * len(variances))
    blocks = list(fit.cell_coefficients())
    assert len(blocks) == (len(variances) + 1) // 2
    np.testing.assert_allclose(np.vstack(blocks), found, atol=1e-12)


def test_the_slow_twin_tells_wrong_weights_apart():
    variances, sums, sum_variances, flags = drawn((3, 4), [(0,), (1,)], [True, False])
    found = LeastSquares(variances, sums, sum_variances).coefficients(np.eye(12))
    planted = brute(variances * np.linspace(1, 1.01, 12), sums.toarray(), sum_variances, flags)
    assert np.abs(found - planted).max() > 1e-5


@pytest.mark.parametrize(("shape", "kept", "known"), CASES)
def test_consistent_measurements_are_left_alone(shape, kept, known):
    variances, sums, sum_variances, _ = drawn(shape, kept, known)
    truth = np.random.default_rng(1).integers(0, 9, len(variances)).astype(float)
    fit = LeastSquares(variances, sums, sum_variances)
    np.testing.assert_allclose(fit.fit(truth, sums @ truth), truth, atol=1e-9)
    cells, of_sums = np.split(fit.coefficients(np.eye(len(truth))), [len(truth)], axis=1)
    np.testing.assert_allclose(cells + of_sums @ sums, np.eye(len(truth)), atol=1e-9)


def test_cells_that_are_certain_and_sums_that_nearly_are():
    sums = sparse.csr_array(sparse.vstack([families((3, 3), (0,)), families((3, 3), (1,))]))
    variances = np.array([0.0, 0, 0, 1, 1, 1, 4, 4, 0])
    truth = np.arange(9.0)
    fit = LeastSquares(variances, sums, np.array([0.0, 0, 0, 1e-300, 1e-300, 1e-300]))
    noise = np.where(variances > 0, [0, 0, 0, 1, -2, 3, 1, 1, 0], 0.0)
    found = fit.fit(truth + noise, sums @ truth)
    np.testing.assert_allclose(sums @ found, sums @ truth, atol=1e-5)
    np.testing.assert_allclose(found[variances == 0], truth[variances == 0])
    np.testing.assert_allclose((sums @ found)[:3], (sums @ truth)[:3], atol=1e-12)
