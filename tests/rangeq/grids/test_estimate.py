"""Response matrices of estimates from pairs."""

from __future__ import annotations

import numpy as np
import pytest

from frequency import Between
from rangeq.grids import HDG
from tests.rangeq.grids.populations import collected


def test_response_matrices_by_name() -> None:
    records = np.random.default_rng(10).integers(0, [5, 9], size=(5000, 2))
    estimate = collected(HDG({"a": 5, "b": 9}, 2.0, 5000), records)
    matrix = estimate.response_matrix("b", "a")
    assert matrix.shape == (9, 5)
    np.testing.assert_array_equal(matrix.T, estimate.response_matrix(0, 1))
    assert estimate.answer({"b": Between(2, 4), "a": Between(1, 1)}).value == pytest.approx(
        matrix[2:5, 1].sum()
    )
    assert np.isnan(
        collected(HDG({"a": 5, "b": 9}, 2.0, 5000), np.zeros((0, 2), dtype=int)).response_matrix(
            "a", "b"
        )
    ).all()
