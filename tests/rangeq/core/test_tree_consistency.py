"""`rangeq.core.tree_consistency` against dense constrained least squares and the two passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rangeq import Tree
from rangeq.core.tree_consistency import consistent, contrast_precisions
from tests.rangeq.core.trees import level_matrices

SHAPES = [
    (2, 2),
    (4, 2),
    (16, 2),
    (27, 3),
    (16, 4),
    (12, (3, 4)),
    (24, (2, 3, 4)),
    (24, (4, 3, 2)),
    (7, (7,)),
    (5, 2),
]
trees = pytest.mark.parametrize(
    "tree", [Tree.of(d, b) for d, b in SHAPES], ids=[f"D{d}-{b}" for d, b in SHAPES]
)


def dense(
    tree: Tree, estimates: list[np.ndarray], precisions: np.ndarray, root: float
) -> np.ndarray:
    """Minimise the sum of tau (estimate - sum of leaves)^2 subject to the sum of all leaves, by
    Lagrange's equations.
    """
    matrices = level_matrices(tree)
    information = sum(t * g.T @ g for t, g in zip(precisions, matrices, strict=True))
    score = sum(t * g.T @ e for t, g, e in zip(precisions, matrices, estimates, strict=True) if t)
    one = np.ones((tree.leaves, 1))
    system = np.block([[information, one], [one.T, np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(score, root))[:-1]


def some_estimates(tree: Tree, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=nodes) for nodes in tree.nodes]


@trees
@pytest.mark.parametrize("root", [1.0, 0.0, -3.5])
def test_random_precisions(tree: Tree, root: float) -> None:
    for seed in range(5):
        estimates = some_estimates(tree, seed)
        precisions = np.random.default_rng(seed + 10).lognormal(0, 2, tree.height)
        np.testing.assert_allclose(
            consistent(tree, estimates, precisions, root),
            dense(tree, estimates, precisions, root),
            atol=1e-9,
        )


@trees
def test_levels_of_no_precision_are_not_used(tree: Tree) -> None:
    """Whatever they hold. The dense problem has one solution as long as the leaves are measured."""
    for missing in range(tree.height - 1):
        estimates, precisions = some_estimates(tree, missing), np.arange(1.0, tree.height + 1)
        precisions[missing] = 0
        expected = dense(tree, estimates, precisions, 1.0)
        estimates[missing] = np.full_like(estimates[missing], math.nan)
        np.testing.assert_allclose(consistent(tree, estimates, precisions), expected, atol=1e-9)


@trees
def test_what_no_level_tells_apart_is_shared_equally(tree: Tree) -> None:
    estimates, precisions = some_estimates(tree, 5), np.arange(1.0, tree.height + 1)
    for kept in range(tree.height):
        some = np.where(np.arange(tree.height) < kept, precisions, 0.0)
        found = consistent(
            tree, [e if t else e * math.nan for e, t in zip(estimates, some, strict=True)], some
        )
        if kept == 0:
            np.testing.assert_allclose(found, 1 / tree.leaves)
            continue
        above = Tree(tree.nodes[kept - 1], tree.branching[:kept])
        expected = dense(above, estimates[:kept], precisions[:kept], 1.0)
        np.testing.assert_allclose(
            found, np.repeat(expected, tree.widths[kept - 1]) / tree.widths[kept - 1], atol=1e-9
        )


@trees
def test_precisions_may_have_any_scale(tree: Tree) -> None:
    estimates, precisions = some_estimates(tree, 2), np.arange(1.0, tree.height + 1)
    expected = consistent(tree, estimates, precisions)
    for scale in (1e-30, 1e30):
        np.testing.assert_allclose(
            consistent(tree, estimates, scale * precisions), expected, rtol=1e-9, atol=1e-12
        )


@trees
def test_consistent_estimates_are_kept(tree: Tree) -> None:
    leaves = np.random.default_rng(3).normal(size=tree.leaves)
    leaves += (1 - leaves.sum()) / tree.leaves
    estimates = [g @ leaves for g in level_matrices(tree)]
    np.testing.assert_allclose(
        consistent(tree, estimates, np.arange(1.0, tree.height + 1)), leaves, atol=1e-10
    )


@pytest.mark.parametrize(("b", "height"), [(2, 1), (2, 5), (3, 3), (4, 3), (8, 2)])
def test_equal_variances_give_the_printed_passes(b: int, height: int) -> None:
    """Range queries 4.5: weights (B^i - B^(i-1)) / (B^i - 1) and (B^(i-1) - 1) / (B^i - 1) on level
    i from the leaves.

    In stage 2 the parent must be the adjusted one, f-hat: with f-bar as printed, children do not
    add up to their parents.
    """
    tree = Tree.of(b**height, b)
    estimates, one = some_estimates(tree, b), [1.0] * height
    averaged = list(estimates)
    for level in range(height - 2, -1, -1):
        i = height - level
        own, below = (b**i - b ** (i - 1)) / (b**i - 1), (b ** (i - 1) - 1) / (b**i - 1)
        averaged[level] = own * estimates[level] + below * averaged[level + 1].reshape(-1, b).sum(
            axis=1
        )
        q = contrast_precisions(tree, one)
        assert 1 / q[level] == pytest.approx(own)
        assert q[level + 1] / b / q[level] == pytest.approx(below)

    def second_pass(printed: bool) -> list[np.ndarray]:
        result, parents = [], np.array([1.0])
        for level in range(height):
            children = averaged[level].reshape(-1, b)
            result.append((children + (parents - children.sum(axis=1))[:, None] / b).ravel())
            parents = averaged[level] if printed else result[-1]
        return result

    found = consistent(tree, estimates, one)
    levels = second_pass(printed=False)
    np.testing.assert_allclose(found, levels[-1], atol=1e-12)
    for nodes, matrix in zip(levels, level_matrices(tree), strict=True):
        # Every node is the sum of its children
        np.testing.assert_allclose(matrix @ found, nodes, atol=1e-12)
    if height > 1:
        as_printed = second_pass(printed=True)
        assert np.abs(as_printed[-2] - as_printed[-1].reshape(-1, b).sum(axis=1)).max() > 1e-3


@trees
def test_the_root_is_the_sum(tree: Tree) -> None:
    for root in (1.0, 7.0):
        found = consistent(tree, some_estimates(tree, 1), np.arange(1.0, tree.height + 1), root)
        assert found.shape == (tree.leaves,)
        assert found.sum() == pytest.approx(root)


def test_precisions_of_contrasts() -> None:
    """Q_{j+1} is the sum over l > j of tau_l over the number of level-l nodes under a child."""
    tree = Tree(24, (2, 3, 4))
    assert contrast_precisions(tree, [1.0, 2.0, 5.0]).tolist() == pytest.approx(
        [1 + 2 / 3 + 5 / 12, 2 + 5 / 4, 5]
    )
    given = np.array([1.0, 2.0, 5.0])
    contrast_precisions(tree, given)
    assert given.tolist() == [1, 2, 5]  # not changed
