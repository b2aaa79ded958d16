"""Inference over trees: dense least squares, the published recurrences, each engine by another."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from rangeq import Tree
from rangeq.core.boxes import tree_over
from rangeq.core.tree_inference import (
    LevelInference,
    TreeInference,
    consistent,
    contrast_precisions,
)
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


TREES = {
    "one": [-1],
    "two roots": [-1, -1, 0, 0, 0],
    "chain": [-1, 0, 1, 2],
    "uneven": [-1, 0, 0, 0, 1, 1, 2, 4, 4, 4, 6],
    "flat": [-1, 0, 0, 0, 0],
}


def members(parents):
    """Which leaves lie below each node: dense, shape (nodes, leaves)."""
    nodes = len(parents)
    inner = set(parents)
    leaves = [node for node in range(nodes) if node not in inner]
    below = np.zeros((nodes, len(leaves)))
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            below[node, column] = 1
            node = parents[node]
    return below


def brute(parents, noise):
    """The estimates of all nodes as a matrix of the counts: dense least squares."""
    below = members(parents)
    asked = np.isfinite(noise)
    weights = np.diag(1 / noise[asked])
    design = below[asked]
    result = np.zeros((len(parents), len(parents)))
    result[:, asked] = below @ np.linalg.solve(design.T @ weights @ design, design.T @ weights)
    return result


def noise_of(parents, seed, missing=False):
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0.2, 20, len(parents))
    inner = [node for node in range(len(parents)) if node in set(parents)]
    if missing and inner:
        noise[rng.choice(inner, (len(inner) + 1) // 2, replace=False)] = np.inf
    return noise


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_it_is_dense_least_squares(name, missing):
    parents = np.array(TREES[name])
    noise = noise_of(parents, 3, missing)
    expected = brute(parents, noise)
    inference = TreeInference(parents, noise)
    found = np.array([inference.coefficients(row) for row in np.eye(len(parents))])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    counts = np.random.default_rng(4).normal(size=len(parents))
    np.testing.assert_allclose(inference.estimate(counts), expected @ counts, atol=1e-12)
    # Of other variances than those that it weighs by, which may be estimated to be below 0
    true = np.random.default_rng(5).uniform(-1, 9, len(parents))
    np.testing.assert_allclose(inference.variances(true), expected**2 @ true, atol=1e-11)


def test_dense_least_squares_tells_wrong_weights_apart():
    parents = np.array(TREES["uneven"])
    noise = noise_of(parents, 3)
    inference = TreeInference(parents, noise)
    found = np.array([inference.coefficients(row) for row in np.eye(len(parents))])
    assert np.abs(found - brute(parents, noise * np.linspace(1, 1.01, 11))).max() > 1e-4


def test_of_a_regular_tree_it_is_the_inference_of_histograms():
    tree = tree_over((6,), (3, 2))
    levels = [2.5, 0.7]
    regular = LevelInference(tree, levels)
    noisy = [np.array([5, -2, 7]), np.array([1, 4, -3, 2, 6, 0])]
    parents = np.array([-1, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    noise = np.array([np.inf, *np.repeat(levels, [3, 6])])
    inference = TreeInference(parents, noise)
    counts = np.concatenate([[0], *noisy]).astype(float)
    np.testing.assert_allclose(inference.estimate(counts)[4:], regular.estimate(noisy))
    cells = np.arange(6)[None, :]
    true = np.where(np.isfinite(noise), noise, 0.0)
    np.testing.assert_allclose(inference.variances(true)[4:], regular.variance(cells, cells))


def test_counts_far_better_than_their_leaves_keep_their_weights():
    """As if there were no leaves; where V is the difference of S and h S, off by a thousandth."""
    counts = np.array([10.0, 3, 4, 0, 9, 5, 5])
    above = TreeInference(np.array([-1, 0, 0]), np.array([1.0, 1, 3]))
    noise = np.array([1.0, 1, 3, 1e13, 1e13, 1e13, 1e13])
    every = TreeInference(np.array([-1, 0, 0, 1, 1, 2, 2]), noise)
    np.testing.assert_allclose(every.estimate(counts)[:3], above.estimate(counts[:3]), rtol=1e-9)


def test_what_is_certain_stays():
    parents = np.array([-1, 0, 0, 1, 1, 2, 2])
    inference = TreeInference(parents, np.array([2.0, 0.0, 3, 0, 0, 1, 4]))
    counts = np.array([9.0, 4, 4, 1, 3, 2, 3])
    found = inference.estimate(counts)
    assert found[[1, 3, 4]].tolist() == [4, 1, 3]
    np.testing.assert_allclose(found[0], found[1] + found[2])
    np.testing.assert_allclose(found[2], found[5] + found[6])


def from_below(b, h):
    """Algorithm 1 with equal budgets, from the leaves (level 1) up, in units of V_O."""
    down = [Fraction(1)]
    for _ in range(h - 1):
        down.append(b * down[-1] / (1 + b * down[-1]))
    return down


@pytest.mark.parametrize(("b", "h"), [(2, 5), (3, 4), (4, 4), (16, 3)])
def test_proposition_3(b, h):
    for level, variance in enumerate(from_below(b, h), 1):
        assert variance == Fraction(b ** (level - 1), sum(b**i for i in range(level)))
        assert variance > Fraction(b - 1, b)
        if level > 1:
            assert variance <= Fraction(b, b + 1)
            assert (variance == Fraction(b, b + 1)) == (level == 2)
    if b == 2:
        assert from_below(2, 4) == [1, Fraction(2, 3), Fraction(4, 7), Fraction(8, 15)]


def node_variances(b, h):
    """Variances of nodes after inference, from the leaves up, in units of V_O, exactly."""
    errors = LevelInference(tree_over((b**h,), b), [Fraction(1)] * h)
    last = np.array([[b**level - 1 for level in range(h)]])
    return errors.variance(np.zeros_like(last), last).tolist()


@pytest.mark.parametrize(("b", "h"), [(2, 3), (2, 9), (3, 5), (4, 4), (16, 3)])
def test_proposition_4_and_algorithm_1(b, h):
    down = from_below(b, h)
    up = [Fraction(1)]  # from the top: the paper's "from above"
    for level in range(h - 1, 0, -1):
        parent = up[0] + (b - 1) * down[level - 1]
        up.insert(0, parent / (1 + parent))
    found = node_variances(b, h)
    for level in range(1, h + 1):
        below = b * down[level - 2] if level > 1 else None
        combined = (
            up[level - 1] if below is None else below * up[level - 1] / (below + up[level - 1])
        )
        assert found[level - 1] == combined
        assert found[level - 1] > Fraction(b - 1, b + 1)
        assert up[level - 1] > Fraction(b - 1, b)
    if h >= 9:
        assert min(found) - Fraction(b - 1, b + 1) < Fraction(1, 100)


def test_two_levels_of_section_3_3():
    """The mean over k = 1 .. b - 1 children is 1 / (b - 1) times what is printed; the last step,
    (b-1)(b+4) / 3b(b+1), is right.
    """
    for b in (2, 3, 16):
        v, above = Fraction(3, 7), Fraction(5, 11)
        total = sum(k * v * (above + (b - k) * v) / (above + b * v) for k in range(1, b))
        printed = (b * (b - 1) * (b + 1) * v * v + 3 * b * (b - 1) * above * v) / (
            6 * (above + b * v)
        )
        assert total == printed  # and not total / (b - 1)
        v = above = Fraction(b - 1, b)
        mean = sum(k * v * (above + (b - k) * v) / (above + b * v) for k in range(1, b)) / (b - 1)
        assert mean / Fraction(b, 2) == Fraction((b - 1) * (b + 4), 3 * b * (b + 1))
        # Printed as equal to the line above
        assert mean == Fraction((b * b + 4 * b) * (b - 1), 6 * (b + 1) * b)
