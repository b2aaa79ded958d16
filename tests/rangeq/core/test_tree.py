"""`rangeq.core.tree` against dense algebra and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rangeq import Tree
from rangeq.core.tree import WORKLOADS
from rangeq.core.tree_inference import contrast_precisions
from tests.rangeq.core.trees import (
    SHAPES,
    all_ranges,
    indicators,
    level_matrices,
    of_workload,
    quadratic,
)

trees = pytest.mark.parametrize(
    "tree", [Tree.of(d, b) for d, b in SHAPES], ids=[f"D{d}-{b}" for d, b in SHAPES]
)


def least_squares_covariance(
    tree: Tree, precisions: np.ndarray, conditioned: bool = True
) -> np.ndarray:
    """Of all leaves: every node measured with its level's precision, the root known, and
    (conditioned) the sum of the items.
    """
    information = sum(t * g.T @ g for t, g in zip(precisions, level_matrices(tree), strict=True))
    covariance = np.linalg.inv(information)
    known = [np.ones(tree.leaves)]
    if conditioned and tree.leaves > tree.domain:
        known.append((np.arange(tree.leaves) < tree.domain).astype(float))
    for u in known:
        covariance = covariance - np.outer(covariance @ u, covariance @ u) / (u @ covariance @ u)
    return covariance


def contrast_forms(tree: Tree) -> list[np.ndarray]:
    """For each level of parents, the quadratic form on leaves' weights of its contrasts, from an
    explicit orthonormal basis.
    """
    forms = []
    for level, below in enumerate(level_matrices(tree)):
        size = tree.branching[level]
        basis = np.linalg.qr(np.column_stack([np.ones(size), np.eye(size)[:, 1:]]))[0][:, 1:]
        contrasts = np.kron(np.eye(tree.nodes[level] // size), basis.T) @ below / tree.widths[level]
        forms.append(contrasts.T @ contrasts)
    return forms


def some_precisions(tree: Tree) -> np.ndarray:
    return np.random.default_rng(tree.domain).uniform(0.2, 5.0, tree.height)


@trees
def test_shape(tree: Tree) -> None:
    assert math.prod(tree.branching) == tree.leaves == tree.nodes[-1] >= tree.domain
    assert tree.height == len(tree.branching) == len(tree.nodes) == len(tree.widths)
    assert tree.occupied == tuple(
        len({x // width for x in range(tree.domain)}) for width in tree.widths
    )
    assert all(
        nodes * width == tree.leaves for nodes, width in zip(tree.nodes, tree.widths, strict=True)
    )


def test_one_branching_is_used_below_the_first_level() -> None:
    for domain in range(1, 300):
        for b in (2, 3, 4, 16):
            tree = Tree.of(domain, b)
            assert set(tree.branching[1:]) <= {b}
            assert 2 <= tree.branching[0] <= b
            assert tree.occupied[0] == tree.nodes[0] or domain == 1
            assert tree.height == max(1, next(h for h in range(30) if b**h >= domain))
    assert Tree.of(256, 4).branching == (4, 4, 4, 4)
    assert Tree.of(100, 4).branching == (2, 4, 4, 4)
    assert Tree.of(5, 16).branching == (5,)
    assert Tree.of(1, 2).branching == (2,)
    assert Tree.of(1 << 32, 2).height == 32


@pytest.mark.parametrize(
    "branching",
    [
        0,
        1,
        -2,
        True,
        [],
        [1],
        [2],
        [4, 1, 4],
        [2.0, 8],
        ["16"],
        [16, True],
        "16",
        [[16]],
        [-4, -4],
        2.5,
        None,
        4.0,
    ],
)
def test_wrong_branchings(branching: object) -> None:
    with pytest.raises(ValueError, match="branching"):
        Tree.of(16, branching)


@trees
def test_contrasts_are_those_of_least_squares(tree: Tree) -> None:
    """The dense covariance, of weighted least squares with the root known, is diagonal in the
    contrasts, with these variances.
    """
    precisions = some_precisions(tree)
    contrasts = 1 / contrast_precisions(tree, precisions)
    dense = least_squares_covariance(tree, precisions, conditioned=False)
    np.testing.assert_allclose(
        dense, sum(c * f for c, f in zip(contrasts, contrast_forms(tree), strict=True)), atol=1e-11
    )


@trees
def test_variances_are_those_of_least_squares(tree: Tree) -> None:
    precisions, d = some_precisions(tree), tree.domain
    contrasts = 1 / contrast_precisions(tree, precisions)
    dense = least_squares_covariance(tree, precisions)[:d, :d]
    first, last = all_ranges(d)
    expected = quadratic(indicators(first, last, d), dense)
    found = tree.range_variance(first, last, contrasts)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert tree.range_variance(np.array(0), np.array(d - 1), contrasts) == pytest.approx(
        0, abs=1e-12
    )
    weights = np.random.default_rng(1).normal(size=(2, 3, d))
    np.testing.assert_allclose(
        tree.linear_variance(weights, contrasts), quadratic(weights, dense), atol=1e-11
    )
    np.testing.assert_allclose(
        tree.linear_variance(weights[0, 0], contrasts), quadratic(weights[0, 0], dense), atol=1e-11
    )
    for workload in WORKLOADS:
        chosen = of_workload(workload, first, last)
        mean = expected[chosen].mean() if chosen.any() else 0.0
        assert tree.average_variance(contrasts, workload) == pytest.approx(
            mean, rel=1e-9, abs=1e-11
        ), workload


@trees
def test_variances_are_never_negative(tree: Tree) -> None:
    """Not even by rounding: intervals take roots."""
    for scale in (1e-9, 1.0, 1e6):
        contrasts = scale / contrast_precisions(tree, some_precisions(tree))
        first, last = all_ranges(tree.domain)
        assert (tree.range_variance(first, last, contrasts) >= 0).all()
        assert (
            tree.linear_variance(indicators(first[:50], last[:50], tree.domain), contrasts) >= 0
        ).all()
        assert tree.linear_variance(np.ones(tree.domain), contrasts) >= 0


@trees
def test_covariances_with_everything(tree: Tree) -> None:
    contrasts = 1 / contrast_precisions(tree, some_precisions(tree))
    dense = least_squares_covariance(tree, some_precisions(tree), conditioned=False)
    items = (np.arange(tree.leaves) < tree.domain).astype(float)
    last = np.arange(-1, tree.domain)
    expected = [(np.arange(tree.leaves) <= b) @ dense @ items for b in last]
    np.testing.assert_allclose(tree.with_everything(last, contrasts), expected, atol=1e-11)


@trees
@pytest.mark.parametrize("workload", WORKLOADS)
def test_costs(tree: Tree, workload: str) -> None:
    first, last = all_ranges(tree.domain)
    chosen = of_workload(workload, first, last)
    weights = indicators(first, last, tree.leaves)[chosen]
    expected = [
        quadratic(weights, form).mean() if chosen.any() else 0.0 for form in contrast_forms(tree)
    ]
    np.testing.assert_allclose(tree.costs(workload), expected, atol=1e-11)


def test_wrong_workloads() -> None:
    tree = Tree.of(8, 2)
    for workload in ("all", "", None, 3, "Ranges"):
        with pytest.raises(ValueError, match="workload"):
            tree.costs(workload)
        with pytest.raises(ValueError, match="workload"):
            tree.average_variance(np.ones(3), workload)


@trees
def test_infinite_contrasts(tree: Tree) -> None:
    """Infinite for what needs them, and the value of the rest for what does not; no warnings."""
    if tree.leaves > tree.domain:
        return  # that the padding is empty can stand in for a level
    forms = contrast_forms(tree)
    first, last = all_ranges(tree.domain)
    weights = indicators(first, last, tree.leaves)
    for missing in range(tree.height):
        contrasts = np.arange(1.0, tree.height + 1)
        contrasts[missing] = math.inf
        needed = quadratic(weights, forms[missing]) > 1e-9
        rest = sum(
            contrasts[k] * quadratic(weights, form) for k, form in enumerate(forms) if k != missing
        ) + np.zeros(len(first))
        # See the next test
        whole = (first == 0) & (last == tree.domain - 1) & (tree.domain < tree.leaves)
        found = tree.range_variance(first, last, contrasts)
        expected = np.where(needed, math.inf, rest)
        np.testing.assert_allclose(found[~whole], expected[~whole], atol=1e-11)
        np.testing.assert_allclose(
            tree.linear_variance(weights[:, : tree.domain], contrasts)[~whole],
            expected[~whole],
            atol=1e-11,
        )
        for workload in WORKLOADS:
            chosen = of_workload(workload, first, last) & ~whole
            if needed[chosen].any():
                assert tree.average_variance(contrasts, workload) == math.inf


def test_everything_is_known_whatever_is_missing() -> None:
    """Its estimate is 1 whenever anybody reported."""
    for domain in (3, 4, 5, 8):
        tree = Tree.of(domain, 2)
        for missing in range(tree.height):
            contrasts = np.ones(tree.height)
            contrasts[missing] = math.inf
            assert tree.range_variance(
                np.array(0), np.array(domain - 1), contrasts
            ) == pytest.approx(0, abs=1e-12), (
                domain,
                missing,
            )


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_whether_a_contrast_is_needed_does_not_depend_on_the_scale(scale: float) -> None:
    tree = Tree.of(16, 2)
    contrasts = np.array([1.0, 1.0, 1.0, math.inf])
    assert tree.linear_variance(scale * np.eye(16)[0], contrasts) == math.inf
    # The same for both children of every lowest parent
    pairs = np.repeat(np.random.default_rng(0).normal(size=8), 2)
    assert tree.linear_variance(scale * pairs, contrasts) < math.inf


def test_large_trees() -> None:
    """Ranges of a domain of 2^32 items, against the sum over the nodes that their ends cut."""
    tree = Tree.of(1 << 32, 2)
    contrasts = np.arange(1.0, 33.0)
    first = np.array([0, 1, 12345, 1 << 31])
    last = np.array([(1 << 32) - 1, 1, 3_000_000_000, (1 << 32) - 2])
    expected = []
    for a, b in zip(first.tolist(), last.tolist(), strict=True):
        total = 0.0
        for level, width in enumerate(tree.widths):
            for node in {a // (2 * width), b // (2 * width)}:
                low = node * 2 * width
                left, right = (
                    max(0, min(b, s + width - 1) - max(a, s) + 1) for s in (low, low + width)
                )
                total += contrasts[level] * ((left - right) / width) ** 2 / 2
        expected.append(total)
    np.testing.assert_allclose(tree.range_variance(first, last, contrasts), expected, rtol=1e-12)
