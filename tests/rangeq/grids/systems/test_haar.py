"""Haar coefficients of two attributes and back."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rangeq.grids.systems.haar import inverse


@pytest.mark.parametrize("heights", [(1, 1), (2, 1), (2, 3), (0, 2)])
def test_haar_coefficients_come_back(heights: tuple[int, int]) -> None:
    joint = (
        np.random.default_rng(8)
        .dirichlet(np.ones(2 ** sum(heights)))
        .reshape(2 ** heights[0], 2 ** heights[1])
    )
    x, y = np.indices(joint.shape)
    coefficients = {}
    for i, m in product(range(heights[0] + 1), range(heights[1] + 1)):
        if i == m == 0:
            continue
        nodes = np.zeros((1 << max(i - 1, 0), 1 << max(m - 1, 0)))
        child_x, child_y = x >> (heights[0] - i), y >> (heights[1] - m)
        sign = (1 - 2 * (child_x & 1) if i else 1) * (1 - 2 * (child_y & 1) if m else 1)
        np.add.at(nodes, (child_x >> 1 if i else 0 * x, child_y >> 1 if m else 0 * y), sign * joint)
        coefficients[i, m] = nodes
    np.testing.assert_allclose(inverse(coefficients, heights), joint, atol=1e-12)
