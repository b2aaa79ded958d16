"""Haar coefficients of any number of cells against dense algebra, exactly where it is."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from rangeq.core.tree_inference import Haar, cells_of
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


@pytest.mark.parametrize("heights", [(1, 1), (2, 1), (2, 3), (0, 2)])
def test_coefficients_of_two_axes_come_back(heights: tuple[int, int]) -> None:
    joint = (
        np.random.default_rng(8)
        .dirichlet(np.ones(2 ** sum(heights)))
        .reshape(2 ** heights[0], 2 ** heights[1])
    )
    x, y = np.indices(joint.shape)
    transforms, coefficients = [Haar(1 << height) for height in heights], {}
    for i, m in product(range(heights[0] + 1), range(heights[1] + 1)):
        nodes = np.zeros((1 << max(i - 1, 0), 1 << max(m - 1, 0)))
        child_x, child_y = x >> (heights[0] - i), y >> (heights[1] - m)
        sign = (1 - 2 * (child_x & 1) if i else 1) * (1 - 2 * (child_y & 1) if m else 1)
        np.add.at(nodes, (child_x >> 1 if i else 0 * x, child_y >> 1 if m else 0 * y), sign * joint)
        coefficients[i, m] = nodes
    np.testing.assert_allclose(cells_of(transforms, coefficients), joint, atol=1e-12)
