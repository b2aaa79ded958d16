"""Budgets: how epsilon is divided among levels, and the best division."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from mechdesign import Privacy
from rangeq.central import Hierarchy
from rangeq.central.mechanism import best_shares, exact_split
from rangeq.core.boxes import tree_over
from rangeq.core.tree_inference import LevelInference
from tests.rangeq.central.examples import ranges


def test_budgets():
    h = 5
    geometric = Hierarchy(32, 1.0, 2, budget="geometric").shares
    assert [float(b / a) for a, b in pairwise(geometric)] == pytest.approx([2 ** (1 / 3)] * (h - 1))
    assert Hierarchy(32, 1.0, 2).shares == (Fraction(1, 5),) * 5
    assert Hierarchy(32, 1.0, 2, budget=[1, 1, 1, 1, "1"]).shares == (Fraction(1, 5),) * 5
    given_ones = Hierarchy(32, 1.0, 2, budget=np.array([1.0, 2, 3, 4, 5]))
    assert given_ones.shares == tuple(Fraction(k, 15) for k in range(1, 6))


@pytest.mark.parametrize("inference", [True, False])
@pytest.mark.parametrize(
    ("domain", "branching"),
    [
        (256, 2),
        (512, 16),
        (81, 3),
        (100, 4),
        (7, 2),
        (1, 2),
        (64, [4, 2, 2, 4]),
        ((16, 16), 2),
        ((20, 9), 3),
    ],
)
def test_optimal_budget_is_a_minimum(domain, branching, inference):
    best = Hierarchy(domain, 1.0, branching, inference, budget="optimal")
    least = best.average_variance()
    rng = np.random.default_rng(9)
    for named in ("equal", "geometric"):
        assert least <= Hierarchy(
            domain, 1.0, branching, inference, budget=named
        ).average_variance() * (1 + 1e-12)
    shares = np.array([float(s) for s in best.shares])
    for _ in range(20):
        other = shares * np.exp(rng.normal(0, 0.05, len(shares)))
        assert least <= Hierarchy(
            domain, 1.0, branching, inference, budget=list(other)
        ).average_variance() * (1 + 1e-9)


@pytest.mark.slow
def test_optimal_budget_of_two_levels_by_a_grid():
    for shape, branching in (((64,), [4, 16]), ((20,), 16), ((9, 7), [3, 3])):
        tree = tree_over(shape, branching)
        w = np.linspace(0.001, 0.999, 999)
        value = [LevelInference(tree, [1 / top**2, 1 / (1 - top) ** 2]).mean() for top in w]
        found = best_shares(tree)
        assert float(found[0]) == pytest.approx(w[np.argmin(value)], abs=2e-3)


def test_a_level_without_budget_is_a_tree_without_it():
    with_gap, without = Hierarchy(64, 1.0, [4, 4, 4], budget=[1, 0, 1]), Hierarchy(64, 1.0, [4, 16])
    assert with_gap.average_variance(exact=True) == without.average_variance(exact=True)
    a, b = ranges(64)
    np.testing.assert_allclose(with_gap.range_variance(a, b), without.range_variance(a, b))


@pytest.mark.parametrize("alpha", ["1/2", "9/10", "1/1000000007", "99999/100000"])
@pytest.mark.parametrize("weights", [(1,), (1, 1, 1), (0, 1, 0, 2), (1, 1000), (5, 0, 0, 3)])
def test_alphas_of_levels_multiply_to_exactly_the_one_that_was_given(alpha, weights):
    alpha, weights = Fraction(alpha), [*map(Fraction, weights)]
    split = exact_split(alpha, weights)
    product = Fraction(1)
    for own, weight in zip(split, weights, strict=True):
        assert (own is None) == (weight == 0)
        product *= 1 if own is None else own
    assert product == alpha
    epsilon = Privacy(alpha=alpha).epsilon
    for own, weight in zip(split, weights, strict=True):
        if own is not None:
            share = float(weight / sum(weights)) * epsilon
            assert Privacy(alpha=own).epsilon == pytest.approx(share, rel=1e-4)
    # A loss that is split in floats would not be exact
    rounded = [Fraction(float(alpha) ** float(w / sum(weights))) for w in weights if w]
    assert len(rounded) == 1 or np.prod(rounded) != alpha


def test_a_share_that_rounding_takes_away_is_refused():
    with pytest.raises(ValueError, match="too small a share"):
        exact_split(Fraction(1, 2), [Fraction(1, 10**30), Fraction(1)])
