"""Coordinates on a circular domain are orthonormal, and make what is stationary diagonal."""

from __future__ import annotations

import numpy as np
import pytest

from rangeq.local.circle import coordinates, items_of, of_transform, transform_of

sizes = pytest.mark.parametrize("size", [2, 3, 4, 7, 16, 21])


@sizes
def test_they_are_orthonormal(size: int) -> None:
    basis = coordinates(np.eye(size))
    assert basis.shape == (size, 2 * (size // 2))
    # All but the sum: the projection on what sums to 0
    np.testing.assert_allclose(basis @ basis.T, np.eye(size) - 1 / size, atol=1e-12)
    # Two for each frequency, and one for the last of an even size
    expected = np.ones(2 * (size // 2))
    expected[-1] = size % 2
    np.testing.assert_allclose(basis.T @ basis, np.diag(expected), atol=1e-12)


@sizes
def test_items_and_transforms_come_back(size: int) -> None:
    items = np.random.default_rng(size).normal(size=(3, size))
    values = coordinates(items)
    for k in range(3):
        np.testing.assert_allclose(items_of(values[k], items[k].sum(), size), items[k], atol=1e-12)
        transform = np.fft.rfft(items[k])
        np.testing.assert_allclose(of_transform(transform, size), values[k], atol=1e-12)
        np.testing.assert_allclose(
            transform_of(values[k], items[k].sum(), size), transform, atol=1e-12
        )
    np.testing.assert_allclose(
        items_of(values, 0.0, size), items - items.mean(axis=1, keepdims=True), atol=1e-12
    )


@sizes
def test_what_is_stationary_is_diagonal(size: int) -> None:
    row = np.random.default_rng(1).normal(size=size)
    row = row + np.roll(row[::-1], 1)  # symmetric around the circle
    circulant = np.array([np.roll(row, k) for k in range(size)])
    basis = coordinates(np.eye(size))
    np.testing.assert_allclose(
        basis.T @ circulant @ basis,
        np.diag(np.repeat(np.fft.rfft(row).real[1:], 2) * (basis**2).sum(axis=0)),
        atol=1e-10,
    )
