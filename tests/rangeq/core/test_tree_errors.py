"""Variances from V and S: a hostile mix of levels, exactly, and where little lies in a box."""

from fractions import Fraction

import numpy as np
import pytest

from rangeq.central import Hierarchy
from rangeq.central.regions import FewestNodes
from rangeq.core.boxes import tree_over
from rangeq.core.tree_inference import LevelInference


@pytest.mark.parametrize(
    ("shape", "branching"), [((23,), 3), ((11, 6), 2), ((9, 4), [[5, 2], [2, 2]]), ((4, 3, 5), 2)]
)
def test_a_box_by_its_kinds_of_nodes_is_a_box_by_its_weights(shape, branching):
    rng = np.random.default_rng(2)
    tree = tree_over(shape, branching)
    noise = rng.uniform(0.1, 5, tree.height).tolist()
    for errors in (LevelInference(tree, noise), FewestNodes(tree, noise)):
        for _ in range(50):
            first = np.array([[rng.integers(0, n)] for n in shape])
            last = np.array([[rng.integers(a[0], n)] for a, n in zip(first, shape, strict=True)])
            weights = [
                ((np.arange(n) >= a) & (np.arange(n) <= b)).astype(float)
                for n, a, b in zip(shape, first, last, strict=True)
            ]
            assert errors.variance(first, last)[0] == pytest.approx(errors.variance_of(weights))


def test_planted_errors_are_seen():
    """Another V of the last nodes, as if they were whole, is another variance."""
    tree = tree_over((20,), 16)
    right = LevelInference(tree, [Fraction(8), Fraction(8)])
    assert right.mean() == Fraction(2696, 105)
    wrong = LevelInference(tree, [Fraction(8), Fraction(8)])
    wrong.sums[0][1] = wrong.sums[0][0]
    assert wrong.mean() != right.mean()


def test_small_boxes_of_large_trees():
    """The variance of few cells is not the difference of large numbers: exact twins."""
    tree = tree_over((1 << 20, 60), [1 << 18, 4])
    fast = LevelInference(tree, [2.0, 3.0])
    slow = LevelInference(tree, [Fraction(2), Fraction(3)])
    first = np.array([[0, 1 << 19, (1 << 20) - 3], [0, 31, 57]])
    last = first + 2
    expected = slow.variance(first, last).astype(float)
    np.testing.assert_allclose(fast.variance(first, last), expected, rtol=1e-12)
    whole = np.array([[0], [0]]), np.array([[(1 << 20) - 2], [59]])
    assert fast.variance(*whole)[0] == pytest.approx(float(slow.variance(*whole)[0]), rel=1e-9)


def test_ten_thousand_boxes_of_a_million_cells():
    m = Hierarchy((1024, 1024), 1.0, 16)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 1024, (2, 10_000))
    last = rng.integers(first, 1024)
    found = m.errors.variance(first, last)
    assert found.mean() == pytest.approx(m.sampled_average_variance(), rel=0.5)
    assert (found > 0).all()
