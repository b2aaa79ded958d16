"""Haar coefficients of any number of cells against dense algebra, exactly where it is."""

from fractions import Fraction

import numpy as np
import pytest

from rangeq.central.haar import Haar
from tests.rangeq.central.examples import ranges


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 11, 13, 16, 17, 31, 33])
def test_least_squares_by_dense_algebra(n):
    haar = Haar(n)
    rows = haar.coefficients(np.eye(n, dtype=np.int64)).astype(float)
    assert len(rows) == sum(haar.levels)
    assert np.abs(rows).sum(axis=0).tolist() == [len(haar.levels)] * n  # one number of each level
    covariance = np.linalg.inv(rows.T @ rows)
    noisy = np.random.default_rng(n).normal(size=(len(rows), 3))
    np.testing.assert_allclose(haar.estimate(noisy), covariance @ rows.T @ noisy, atol=1e-9)
    first, last = ranges(n)
    cells = np.arange(n)
    every = ((cells >= first[:, None]) & (cells <= last[:, None])).astype(float)
    expected = np.einsum("qi,ij,qj->q", every, covariance, every)
    found = haar.variance(first[None], last[None])
    assert all(isinstance(one, Fraction) for one in found)
    np.testing.assert_allclose(found.astype(float), expected, rtol=1e-9)
    assert haar.mean() == sum(found) / Fraction(len(found))
    weights = np.random.default_rng(n).normal(size=n)
    assert haar.variance_of([weights]) == pytest.approx(weights @ covariance @ weights)
    assert haar.estimate(rows[:, :1] * 1.0)[:, 0] == pytest.approx(np.eye(n)[0], abs=1e-12)
