"""`rangeq.core.levels` against brute force, and the printed bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rangeq.core.levels import average_nodes, runs, squared_nodes
from rangeq.core.tree import WORKLOADS, Tree
from tests.rangeq.core.trees import SHAPES, all_ranges, of_workload, ranges_of


def fewest_nodes(tree: Tree, first: int, last: int) -> list[set[int]]:
    """By descent from the root: the nodes of each level that lie in the range and whose parents do
    not.
    """
    used: list[set[int]] = [set() for _ in range(tree.height)]

    def descend(level: int, node: int) -> None:
        width = tree.leaves if level < 0 else tree.widths[level]
        low, high = node * width, (node + 1) * width - 1
        if high < first or last < low:
            return
        if first <= low and high <= last:
            if level >= 0:
                used[level].add(node)
            return
        for child in range(tree.branching[level + 1]):
            descend(level + 1, node * tree.branching[level + 1] + child)

    descend(-1, 0)
    return used


small_trees = pytest.mark.parametrize(
    "tree",
    [Tree.of(d, b) for d, b in SHAPES if d <= 27],
    ids=[f"D{d}-{b}" for d, b in SHAPES if d <= 27],
)


@small_trees
def test_decomposition(tree: Tree) -> None:
    first, last = all_ranges(tree.domain)
    expected = [fewest_nodes(tree, int(a), int(b)) for a, b in zip(first, last, strict=True)]
    for level in range(tree.height):
        left, end, start, right = runs(tree, first, last, level)
        for k, nodes in enumerate(expected):
            found = [*range(left[k], end[k]), *range(start[k], right[k])]
            assert len(found) == (end - left + right - start)[k]
            assert sorted(found) == sorted(nodes[level]), (first[k], last[k], level)
    counts = np.array([[len(nodes) for nodes in levels] for levels in expected])
    for workload in WORKLOADS:
        chosen = of_workload(workload, first, last)
        mean = counts[chosen].mean(axis=0) if chosen.any() else np.zeros(tree.height)
        np.testing.assert_allclose(average_nodes(tree, workload), mean, atol=1e-12)


def number_of_nodes(tree: Tree, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Shape (ranges, levels)."""
    parts = [runs(tree, first, last, level) for level in range(tree.height)]
    return np.stack([end - left + right - start for left, end, start, right in parts], axis=-1)


@pytest.mark.parametrize(
    ("domain", "b"),
    [(64, 2), (256, 2), (81, 3), (256, 4), (125, 5), (256, 16), (100, 2), (100, 3), (200, 7)],
)
def test_fact_3_and_the_bounds_after_it(domain: int, b: int) -> None:
    """Range queries 4.3: at most (B-1)(2 log_B r + 1) nodes, and 2 (B-1)(log_B D + 1/2) - 1; for
    prefixes B-1 on each level.
    """
    tree = Tree.of(domain, b)
    first, last = all_ranges(domain)
    nodes = number_of_nodes(tree, first, last)
    length = (last - first + 1).astype(float)
    bound = (b - 1) * (2 * np.log(length) / math.log(b) + 1)
    assert (nodes.sum(axis=1) <= bound + 1e-9).all()
    assert b > 2 or (nodes.sum(axis=1) == bound.round(9)).any()  # attained
    assert nodes.sum(axis=1).max() <= 2 * (b - 1) * (math.log(tree.leaves, b) + 0.5) - 1 + 1e-9
    assert nodes[first == 0].max() <= b - 1
    assert (nodes[first == 0].sum(axis=1) <= (b - 1) * tree.height).all()
    assert nodes.max() <= 2 * (b - 1)


def test_the_printed_example() -> None:
    """[2, 22] in D = 32: [2, 3], [4, 7], [8, 15], [16, 19], [20, 21], [22, 22]."""
    used = fewest_nodes(Tree.of(32, 2), 2, 22)
    assert used == [set(), {1}, {1, 4}, {1, 10}, {22}]
    nodes = number_of_nodes(Tree.of(32, 2), np.array([2]), np.array([22]))
    assert nodes.tolist() == [[0, 1, 2, 2, 1]]


TREES = [
    Tree.of(16, 2),
    Tree.of(13, 2),
    Tree.of(20, 3),
    Tree.of(64, 4),
    Tree(30, (2, 5, 3)),
    Tree(29, (2, 5, 3)),
    Tree(7, (7,)),
    Tree(1, (2,)),
    Tree(2, (2,)),
]


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("tree", TREES, ids=str)
def test_squared_nodes_are_counted(tree, workload) -> None:
    first, last = ranges_of(tree.domain, workload)
    for level, found in enumerate(squared_nodes(tree, workload)):
        left, end, start, right = runs(tree, first, last, level)
        used = end - left + right - start
        mean = float((used.astype(float) ** 2).sum()) / max(len(used), 1)
        assert found == pytest.approx(mean, rel=1e-12, abs=1e-12), level
