"""Trees of pairs: against networks of which the distribution is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree

from mechdesign.base.numbers import Floats
from rangeq.core.density import Density
from rangeq.grids.cells import equal_cells
from rangeq.grids.wavegrid.distributions import Axis, FittedJoint
from rangeq.grids.wavegrid.interactions import Pair
from rangeq.grids.wavegrid.local_terms import PairExplanation
from rangeq.grids.wavegrid.partitions import implied, spanning_tree, tree_answers
from tests.rangeq.grids.populations import told_halves

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


def known(table: Floats, rng: np.random.Generator | None = None) -> FittedJoint:
    """A pair of this distribution, with terms that no reports have told of if there is an rng."""
    margins = table.sum(axis=1), table.sum(axis=0)
    grams = np.eye(len(table)), np.eye(len(table.T))
    pair = Pair(np.zeros(table.shape), 0.0, grams, margins, told_halves(table))
    functions = [np.zeros((len(mass), 0)) for mass in margins]
    if rng:
        functions = [
            (np.diag(mass) - np.outer(mass, mass)) @ rng.normal(size=(len(mass), 2))
            for mass in margins
        ]
    sizes = functions[0].shape[1], functions[1].shape[1]
    one = PairExplanation(
        1.0,
        replace(pair.independent(), joint=table),
        table,
        functions[0],
        functions[1],
        np.zeros(sizes),
        np.full(sizes, 0.01),
        False,
    )
    return FittedJoint(pair, [one])


def of_network(
    table: Floats, rng: np.random.Generator | None = None
) -> dict[tuple[int, int], FittedJoint]:
    return {
        (parent, child): known(margin(table, parent, child), rng)
        for child, parent in PARENTS.items()
    }


def test_pairs_follow_from_a_tree() -> None:
    for seed in range(5):
        table = network(np.random.default_rng(seed), 3)
        asked = of_network(table)
        found = implied(asked, axes_of(table))
        assert [pair for pair in combinations(range(5), 2) if pair not in asked] == list(found)
        for pair, joint in found.items():
            np.testing.assert_allclose(joint.mean, margin(table, *pair), atol=1e-12)


def test_the_most_dependent_pairs_are_the_tree() -> None:
    table = network(np.random.default_rng(2), 3)
    every = {pair: known(margin(table, *pair)) for pair in combinations(range(5), 2)}
    assert every.keys() - implied(every, axes_of(table)).keys() == of_network(table).keys()


def test_what_a_tree_implies_is_as_uncertain_as_its_pairs() -> None:
    rng = np.random.default_rng(4)
    table = network(rng, 3)
    asked, axes = of_network(table, rng), axes_of(table)
    left, right = rng.random((3, 3)), rng.random((3, 3))
    expected = {pair: np.zeros(3) for pair in combinations(range(5), 2) if pair not in asked}
    step = 1e-5
    for key, joint in asked.items():
        (one,) = joint.explanations
        for place in np.ndindex(one.mean.shape):
            found = []
            for sign in (1, -1):
                mean = one.mean.copy()
                mean[place] = sign * step
                moved = FittedJoint(joint.pair, [replace(one, mean=mean)])
                found.append(implied({**asked, key: moved}, axes))
            for pair, total in expected.items():
                change = (found[0][pair].mean - found[1][pair].mean) / (2 * step)
                total += one.variance[place] * ((left @ change) * right).sum(axis=1) ** 2
    for pair, by_tree in implied(asked, axes).items():
        np.testing.assert_allclose(
            by_tree.product_variances(left, right), expected[pair], rtol=1e-5, atol=1e-15
        )
        whole = [by_tree.region_variance(np.outer(a, b)) for a, b in zip(left, right, strict=True)]
        np.testing.assert_allclose(whole, expected[pair], rtol=1e-5, atol=1e-15)
        order = np.array([2, 0, 1])
        turned = by_tree.reordered(order, order)
        np.testing.assert_allclose(turned.mean, by_tree.mean[np.ix_(order, order)])
        np.testing.assert_allclose(
            turned.product_variances(left[:, order], right[:, order]),
            by_tree.product_variances(left, right),
        )


def test_attributes_that_no_path_joins_are_independent() -> None:
    table = network(np.random.default_rng(9), 3)
    found = implied({(0, 1): known(margin(table, 0, 1))}, axes_of(table))
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
