"""Both standard errors, by their definitions and against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import CountPairs, InvalidPrior, Mechanism, Privacy, design, named
from mechdesign.exceptions import NoUnbiasedEstimate
from mechdesign.losses import prior
from mechdesign.mechanism.comparison import StandardErrors
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from tests.mechdesign.drawn_tables import tables
from tests.mechdesign.programs import HALF

SETTINGS = settings(derandomize=True, deadline=None, max_examples=100)


def exact_unbiased(mechanism: Mechanism, weights: tuple[Fraction, ...] | None) -> float | None:
    """The slow twin of the second error, without a ball of real numbers."""
    try:
        return UnbiasedEstimate(mechanism, weights).standard_error(weights)
    except (NoUnbiasedEstimate, InvalidPrior):
        return None


@pytest.mark.slow
@SETTINGS
@given(tables(square=True) | tables(), st.data())
def test_both_errors_by_exact_arithmetic(table, data):
    inputs = len(table[0])
    drawn = st.lists(st.integers(0, 4), min_size=inputs, max_size=inputs).filter(any).map(prior)
    weights = data.draw(st.none() | drawn)
    mechanism = Mechanism(table, HALF)
    found = StandardErrors.of(mechanism, weights)
    chances = weights or (Fraction(1, inputs),) * inputs
    square = sum(
        chances[j] * table[i][j] * (i - j) ** 2 for i in range(len(table)) for j in range(inputs)
    )
    assert found.published == pytest.approx(math.sqrt(square), rel=1e-12)
    exact = exact_unbiased(mechanism, weights)
    assert (found.unbiased is None) == (exact is None)
    assert exact is None or found.unbiased == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("alpha", ["1/100", "1/2", "99/100", "999999/1000000"])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_the_quick_way_agrees_where_tables_are_nearly_singular(n, alpha):
    for mechanism in (named.geometric(n, alpha=alpha), named.explicit_fair(n, alpha=alpha)):
        assert StandardErrors.of(mechanism).unbiased == pytest.approx(
            exact_unbiased(mechanism, None), rel=1e-9
        )


def test_where_there_is_no_unbiased_estimate_or_no_float():
    assert StandardErrors.of(named.uniform(8)).unbiased is None
    assert str(StandardErrors.of(named.uniform(8))).endswith("unbiased SE -")
    nearly = Mechanism(
        [["1/2", "1/2", 0], ["1/2", "1/2", 0], [0, 0, 1]], Privacy(alpha="1/2")
    )  # of rank two
    assert StandardErrors.of(nearly).unbiased is None
    assert StandardErrors.of(named.uniform(0)) == StandardErrors(0.0, 0.0)
    blind = named.geometric(2, alpha=1 - Fraction(1, 10**400))
    assert StandardErrors.of(blind).unbiased == math.inf
    with pytest.raises(InvalidPrior, match="2 weights for 3 inputs"):
        StandardErrors.of(blind, ["1/2", "1/2"])


def test_pairs_of_counts_have_no_single_estimate() -> None:
    pairs = design(CountPairs(1, 1), Privacy(alpha="1/2")).mechanism
    assert StandardErrors.of(pairs).unbiased is None


def test_a_prior_on_a_count_of_small_variance_keeps_all_digits() -> None:
    """Nearly all of the variance is elsewhere."""
    rare, near = Fraction(1, 2**40), Fraction(1, 2) + Fraction(1, 2**10)
    rows = [[1 - rare, rare, 0, 0], [rare, 1 - rare, 0, 0]]
    rows += [[0, 0, near, 1 - near], [0, 0, 1 - near, near]]
    m = Mechanism(rows, Privacy(alpha=rare, neighbours=[(0, 1), (2, 3)]))
    weights = prior([1, 0, 0, 0])
    expected = exact_unbiased(m, weights)
    assert expected is not None
    assert StandardErrors.of(m, weights).unbiased == pytest.approx(expected, rel=1e-9)
