"""Trees of pairs: against networks of which the distribution is known."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from mechdesign._support.arrays import Floats
from rangeq.grids.cells import equal_cells
from rangeq.grids.wavegrid.density import Density
from rangeq.grids.wavegrid.distributions import Axis, ImpliedJoint
from rangeq.grids.wavegrid.pair_tree import implied, spanning_tree, tree_answers

PARENTS = {1: 0, 2: 1, 3: 1, 4: 0}


def network(rng: np.random.Generator, size: int = 2) -> Floats:
    """A distribution of five attributes, each of which depends on one before."""
    table = rng.dirichlet(np.ones(size)).reshape(-1, 1, 1, 1, 1)
    for child, parent in PARENTS.items():
        shape = [1] * 5
        shape[parent] = shape[child] = size
        given = rng.dirichlet(np.full(size, 0.5), size=size)
        table = table * (given if parent < child else given.T).reshape(shape)
    return np.asarray(table)


def margin(table: Floats, *places: int) -> Floats:
    others = tuple(k for k in range(table.ndim) if k not in places)
    return np.asarray(table.sum(axis=others))


def axes_of(table: Floats) -> list[Axis]:
    nothing = np.zeros((table.shape[0],) * 2)
    return [
        Axis.of(equal_cells(len(nothing), len(nothing)), Density(margin(table, k), nothing))
        for k in range(table.ndim)
    ]


def test_spanning_trees_have_the_largest_sum() -> None:
    rng = np.random.default_rng(1)
    told = rng.random((20, 7, 7))
    told = told + told.transpose(0, 2, 1)
    parents, order = spanning_tree(told)
    for one, above, joined in zip(told, parents, order, strict=True):
        assert above[0] == -1
        assert sorted(joined) == list(range(7))
        total = sum(one[child, above[child]] for child in range(1, 7))
        assert total == pytest.approx(-minimum_spanning_tree(-one).sum())


def test_pairs_that_were_not_asked_about_follow_from_a_tree() -> None:
    for seed in range(5):
        table = network(np.random.default_rng(seed), 3)
        asked = {
            (parent, child): ImpliedJoint(margin(table, parent, child))
            for child, parent in PARENTS.items()
        }
        found = implied(asked, axes_of(table))
        assert list(found) == list(combinations(range(5), 2))
        for pair, joint in found.items():
            np.testing.assert_allclose(joint.mean, margin(table, *pair), atol=1e-12)


def test_attributes_that_no_path_joins_are_independent() -> None:
    table = network(np.random.default_rng(9), 3)
    found = implied({(0, 1): ImpliedJoint(margin(table, 0, 1))}, axes_of(table))
    for j, k in ((0, 2), (1, 3), (2, 4)):
        expected = np.outer(margin(table, j), margin(table, k))
        np.testing.assert_allclose(found[j, k].mean, expected, atol=1e-12)
    assert np.isnan(found[0, 2].variances((np.zeros(1),) * 2, (np.zeros(1),) * 2)).all()


def pair_tables(tables: list[Floats]) -> Floats:
    pairs = combinations(range(tables[0].ndim), 2)
    return np.array([[margin(table, *pair) for table in tables] for pair in pairs]).swapaxes(0, 1)


def test_answers_of_trees_are_exact() -> None:
    networks = [network(np.random.default_rng(seed)) for seed in range(40)]
    found = tree_answers(pair_tables(networks), 5)
    np.testing.assert_allclose(found.answers, [one[0, 0, 0, 0, 0] for one in networks], atol=1e-12)


def test_slopes_of_trees_are_those_of_their_answers() -> None:
    table = network(np.random.default_rng(3))
    told = pair_tables([table])
    base = tree_answers(told, 5)
    pairs = list(combinations(range(5), 2))
    # Answers of all singles and pairs inside move; what else follows
    rng = np.random.default_rng(4)
    single, paired = rng.normal(size=5) * 1e-7, rng.normal(size=10) * 1e-7
    moved = told.copy()
    for number, (j, k) in enumerate(pairs):
        for a, b in product((0, 1), repeat=2):
            change = paired[number] * (1 if a == b else -1)
            change += single[j] * (1 if a == 0 else -1) * (b == 1)
            change += single[k] * (1 if b == 0 else -1) * (a == 1)
            moved[0, number, a, b] += change
    change = tree_answers(moved, 5).answers[0] - base.answers[0]
    assert change == pytest.approx(base.single[0] @ single + base.paired[0] @ paired, rel=1e-4)


def test_empty_ranges_have_the_answer_0() -> None:
    nobody = np.zeros((1, 3, 2, 2))
    nobody[..., 1, 1] = 1.0
    found = tree_answers(nobody, 3)
    assert found.answers.tolist() == [0.0]
    assert np.isfinite(found.single).all()
    assert np.isfinite(found.paired).all()
