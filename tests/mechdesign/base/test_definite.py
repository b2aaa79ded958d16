"""Factors of products: in every order of summation, and whatever the scales."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign.base.numbers import cholesky, posterior_root


def test_it_is_the_factor_of_the_sum() -> None:
    rng = np.random.default_rng(1)
    w, diagonal = rng.normal(size=(6, 4)), rng.random(6) + 0.1
    found = cholesky(w @ w.T, diagonal)
    assert (np.triu(found, 1) == 0).all()
    np.testing.assert_allclose(found @ found.T, w @ w.T + np.diag(diagonal), rtol=1e-11, atol=1e-11)


def test_the_root_is_that_of_a_posterior_covariance() -> None:
    rng = np.random.default_rng(2)
    root, seen = rng.normal(size=(5, 5)), rng.normal(size=(5, 9))
    along = root.T @ seen
    found, volume = posterior_root(root, along @ along.T)
    expected = np.linalg.inv(np.linalg.inv(root @ root.T) + seen @ seen.T)
    np.testing.assert_allclose(found @ found.T, expected, rtol=1e-9, atol=1e-11)
    assert volume == pytest.approx(np.linalg.slogdet(np.eye(5) + along @ along.T)[1], rel=1e-10)


@pytest.mark.parametrize("size", [0, 1, 3, 60])
@pytest.mark.parametrize("large", [1e-200, 1.0, 1e12, 1e25, 1e100])
def test_rows_that_are_all_but_the_same_have_a_factor(size: int, large: float) -> None:
    """Where rounding is as large as the least eigenvalue, products may be off by 1e-13."""
    rng = np.random.default_rng(size)
    w = np.outer(np.ones(size), rng.normal(size=80)) + 1e-9 * rng.normal(size=(size, 80))
    w *= large ** rng.random((size, 1))
    product = w @ w.T
    noise = 1e-13 * (2 * rng.random(product.shape) - 1)
    found, volume = posterior_root(np.eye(size), product * (1 + (noise + noise.T) / 2))
    assert np.isfinite(found).all()
    assert np.isfinite(volume)
    assert ((found**2).sum(axis=1) <= 1 + 1e-9).all()


def test_nothing_at_all_has_a_root() -> None:
    found, volume = posterior_root(np.zeros((3, 2)), np.zeros((2, 2)))
    assert (found == 0).all()
    assert volume == pytest.approx(0, abs=1e-11)
