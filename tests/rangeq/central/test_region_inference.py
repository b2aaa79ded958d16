"""Inference over any tree: against dense least squares, and against that of regular trees."""

from __future__ import annotations

import numpy as np
import pytest

from rangeq.central.box_tree import tree_over
from rangeq.central.inference import Inference
from rangeq.central.region_inference import RegionInference

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
    inference = RegionInference(parents, noise)
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
    inference = RegionInference(parents, noise)
    found = np.array([inference.coefficients(row) for row in np.eye(len(parents))])
    assert np.abs(found - brute(parents, noise * np.linspace(1, 1.01, 11))).max() > 1e-4


def test_of_a_regular_tree_it_is_the_inference_of_histograms():
    tree = tree_over((6,), (3, 2))
    levels = [2.5, 0.7]
    regular = Inference(tree, levels)
    noisy = [np.array([5, -2, 7]), np.array([1, 4, -3, 2, 6, 0])]
    parents = np.array([-1, 0, 0, 0, 1, 1, 2, 2, 3, 3])
    noise = np.array([np.inf, *np.repeat(levels, [3, 6])])
    inference = RegionInference(parents, noise)
    counts = np.concatenate([[0], *noisy]).astype(float)
    np.testing.assert_allclose(inference.estimate(counts)[4:], regular.estimate(noisy))
    cells = np.arange(6)[None, :]
    true = np.where(np.isfinite(noise), noise, 0.0)
    np.testing.assert_allclose(inference.variances(true)[4:], regular.variance(cells, cells))


def test_what_is_certain_stays():
    parents = np.array([-1, 0, 0, 1, 1, 2, 2])
    inference = RegionInference(parents, np.array([2.0, 0.0, 3, 0, 0, 1, 4]))
    counts = np.array([9.0, 4, 4, 1, 3, 2, 3])
    found = inference.estimate(counts)
    assert found[[1, 3, 4]].tolist() == [4, 1, 3]
    np.testing.assert_allclose(found[0], found[1] + found[2])
    np.testing.assert_allclose(found[2], found[5] + found[6])
