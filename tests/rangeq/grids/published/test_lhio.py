"""The fit of a hierarchy of two attributes against dense weighted least squares."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rangeq.grids.published.hio_lhio import hierarchy_fit


@pytest.mark.parametrize(
    ("heights", "branching"), [((1, 1), 2), ((2, 1), 2), ((2, 2), 2), ((1, 2), 3), ((0, 2), 2)]
)
def test_hierarchy_fit_is_weighted_least_squares(heights: tuple[int, int], branching: int) -> None:
    rng = np.random.default_rng(7)
    b, shape = branching, (branching ** heights[0], branching ** heights[1])
    levels = [
        level
        for level in product(range(heights[0] + 1), range(heights[1] + 1))
        if level not in [(0, 0), (1, 1)]
    ]
    tables = {level: rng.normal(size=(b ** level[0], b ** level[1])) for level in levels}
    precisions = {level: float(rng.uniform(0.5, 3)) for level in levels}
    rows, values, weights = [np.ones(shape).ravel()], [1.0], [1e12]  # the sum is known
    for level in levels:
        for x, y in np.ndindex(*tables[level].shape):
            node = np.zeros(shape)
            wide, high = shape[0] // b ** level[0], shape[1] // b ** level[1]
            node[x * wide : (x + 1) * wide, y * high : (y + 1) * high] = 1
            rows.append(node.ravel())
            values.append(tables[level][x, y])
            weights.append(precisions[level])
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(np.array(rows) * root[:, None], np.array(values) * root, rcond=None)[
        0
    ].reshape(shape)
    found = hierarchy_fit(tables, precisions, heights, branching)
    if (levels and max(levels) == heights) or heights[0] == 0:
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize(("heights", "branching"), [((2, 2), 2), ((1, 3), 2), ((2, 1), 3)])
def test_equal_levels_are_inferred_along_one_attribute_then_the_other(
    heights: tuple[int, int], branching: int
) -> None:
    """Constrained inference of Hay et al.: least squares over all nodes of a tree, by its matrix.

    But for the sum of all leaves, which is known here.
    """
    rng, b = np.random.default_rng(8), branching
    tables = {
        level: rng.normal(size=(b ** level[0], b ** level[1]))
        for level in product(range(heights[0] + 1), range(heights[1] + 1))
    }
    every = np.block([[tables[i, j] for j in range(heights[1] + 1)] for i in range(heights[0] + 1)])
    trees = [
        np.vstack([np.kron(np.eye(b**i), np.ones(b ** (h - i))) for i in range(h + 1)])
        for h in heights
    ]
    along_one = np.linalg.lstsq(trees[0], every, rcond=None)[0]
    expected = np.linalg.lstsq(trees[1], along_one.T, rcond=None)[0].T
    expected += (1 - expected.sum()) / expected.size
    found = hierarchy_fit(tables, dict.fromkeys(tables, 2.0), heights, branching)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_hierarchy_without_its_leaves_is_even_within_nodes() -> None:
    found = hierarchy_fit({(1, 0): np.array([[0.7], [0.3]])}, {(1, 0): 1.0}, (2, 1), 2)
    np.testing.assert_allclose(found, np.repeat([[0.175], [0.075]], 2, axis=0) @ np.ones((1, 2)))
