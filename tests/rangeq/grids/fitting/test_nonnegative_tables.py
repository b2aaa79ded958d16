"""Tables without negative cells: sums of many cells stay."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.postprocess import norm_sub
from mechdesign.base.numbers import Floats, Items
from rangeq.core.boxes import halved
from rangeq.grids.fitting import nonnegative, with_margins


@pytest.mark.parametrize("shape", [(16, 16), (5, 13), (1, 7), (8, 2), (1, 1)])
def test_boxes_are_halved_by_their_own_sums(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(shape))
    table = 1 / np.prod(shape) + rng.normal(0, 0.5 / np.prod(shape) ** 0.5, shape)
    table /= table.sum()

    def sums(first: Items, last: Items) -> Floats:
        return np.array(
            [
                table[a : c + 1, b : d + 1].sum()
                for (a, b), (c, d) in zip(first.T, last.T, strict=True)
            ]
        )

    expected = halved(sums, shape, 1.0) if (table < 0).any() else table
    assert nonnegative(table) == pytest.approx(expected)


def test_sums_of_noisy_cells_stay() -> None:
    rng, x = np.random.default_rng(3), (np.arange(64) - 31.5) / 10
    smooth = np.exp(-(x[:, None] ** 2) / 2 - (x - x[:, None]) ** 2)
    smooth /= smooth.sum()
    noisy = smooth + rng.normal(0, 0.002, smooth.shape)
    noisy += (1 - noisy.sum()) / noisy.size

    def off(table: Floats) -> float:
        """Of the quarters of quarters."""
        return float(np.abs((table - noisy).reshape(4, 16, 4, 16).sum(axis=(1, 3))).sum())

    assert off(nonnegative(noisy)) < 0.2 * off(norm_sub(noisy.ravel()).reshape(noisy.shape))
    assert nonnegative(smooth) is smooth


def test_margins() -> None:
    rng = np.random.default_rng(4)
    rows, columns = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(9))
    found = with_margins(rng.random((6, 9)), rows, columns)
    assert found.sum(axis=1) == pytest.approx(rows)
    assert found.sum(axis=0) == pytest.approx(columns)
