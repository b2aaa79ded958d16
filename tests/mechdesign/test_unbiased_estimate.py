"""The unbiased estimate of a count from a released output, against the definition."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import InvalidPrior, Mechanism, NoUnbiasedEstimate, Privacy, design, named
from mechdesign.losses import binomial
from mechdesign.mechanism.unbiased_estimate import ApproximateEstimate, UnbiasedEstimate
from tests.mechdesign.drawn_tables import tables


def means(table, numbers):
    """The expectation of a number of each output, for each input."""
    return [
        sum(number * row[j] for number, row in zip(numbers, table, strict=True))
        for j in range(len(table[0]))
    ]


def mechanism_of(table):
    neighbours = "all" if len(table[0]) == 1 else [(0, 1)]
    return Mechanism(table, Privacy(alpha=1, neighbours=neighbours))


@settings(max_examples=60, deadline=None)
@given(tables(), st.data())
def test_estimates_and_variances_are_those_of_the_definition(table, data) -> None:
    m = mechanism_of(table)
    quantity = data.draw(
        st.none() | st.lists(st.integers(-3, 3), min_size=m.inputs, max_size=m.inputs)
    )
    truth = [*range(m.inputs)] if quantity is None else quantity
    try:
        estimate = UnbiasedEstimate(m, quantity=quantity)
    except NoUnbiasedEstimate:
        rows = np.array(m.weights, dtype=float)
        with_truth = np.vstack([rows, truth])
        assert np.linalg.matrix_rank(with_truth) == np.linalg.matrix_rank(rows) + 1
        return
    assert means(m.table, estimate.values) == truth
    squares = means(m.table, [value**2 for value in estimate.values])
    variances = [square - value**2 for square, value in zip(squares, truth, strict=True)]
    assert [*estimate.variances] == variances
    estimated = means(m.table, estimate.variance_estimates)
    assert estimated == variances or estimated == [max(variances)] * m.inputs
    assert estimate.variance() == sum(variances) / m.inputs
    assert estimate.standard_error() == pytest.approx(float(estimate.variance()) ** 0.5)


@settings(max_examples=40, deadline=None)
@given(tables(), st.data())
def test_of_several_estimates_it_is_the_best(table, data) -> None:
    """Whatever has mean 0 for every input is uncorrelated with it."""
    m = mechanism_of(table)
    weights = data.draw(st.lists(st.integers(1, 4), min_size=m.inputs, max_size=m.inputs))
    prior = [Fraction(weight, sum(weights)) for weight in weights]
    try:
        values = UnbiasedEstimate(m, prior).values
    except NoUnbiasedEstimate:
        return
    likely = [sum(p * w for p, w in zip(prior, row, strict=True)) for row in m.table]
    rows = np.array(m.weights, dtype=float)
    _, sizes, directions = np.linalg.svd(rows.T)
    rank = int((sizes > 1e-9).sum())
    for zero in directions[rank:]:
        weighted = [float(p * v) for p, v in zip(likely, values, strict=True)]
        product = float(np.dot(weighted, zero))
        assert abs(product) < 1e-9 * (1 + max(abs(float(v)) for v in values))


def test_an_output_that_is_split_at_random_changes_nothing() -> None:
    m = named.geometric(3, alpha="2/3")
    first, *rest = m.table
    split = Mechanism([[p / 3 for p in first], [p * 2 / 3 for p in first], *rest], m.privacy)
    estimate, plain = UnbiasedEstimate(split), UnbiasedEstimate(m)
    assert estimate.values == (plain.values[0], *plain.values)
    assert estimate.variances == plain.variances
    assert estimate.variance_estimates == (
        plain.variance_estimates[0],
        *plain.variance_estimates,
    )


def test_standard_errors_of_one_group_of_eight() -> None:
    """At alpha = 9/10, for uniform counts; noise that is not truncated has 13.4."""
    weakly_honest = design(8, Privacy(alpha="9/10"), properties=["WH", "CM"]).mechanism
    mechanisms = (
        named.geometric(8, alpha="9/10"),
        weakly_honest,
        named.explicit_fair(8, alpha="9/10"),
    )
    errors = [round(UnbiasedEstimate(m).standard_error(), 1) for m in mechanisms]
    assert errors == [10.7, 19.5, 35.4]


def test_the_prior_weighs_the_variances() -> None:
    m = named.geometric(5, alpha="3/4")
    estimate, prior = UnbiasedEstimate(m), binomial(5, "1/5")
    assert estimate.variance(prior) == sum(map(Fraction.__mul__, prior, estimate.variances))
    with pytest.raises(InvalidPrior):
        estimate.variance([1])
    with pytest.raises(InvalidPrior):
        UnbiasedEstimate(m, [1])


def test_one_bit_estimates_a_count_but_not_its_variance() -> None:
    """Heads with a probability that grows linearly: the square has no unbiased estimate."""
    heads = [Fraction(j + 1, 6) for j in range(5)]
    m = Mechanism([heads, [1 - p for p in heads]], Privacy(alpha="1/2"))
    estimate = UnbiasedEstimate(m)
    assert estimate.values == (5, -1)
    assert estimate.variances == tuple(36 * p * (1 - p) for p in heads)
    assert estimate.variance_estimates == (max(estimate.variances),) * 2


def test_an_output_that_never_occurs_is_worth_nothing() -> None:
    m = Mechanism([["2/3", "1/3"], [0, 0], ["1/3", "2/3"]], Privacy(alpha="1/2"))
    assert UnbiasedEstimate(m).values == (-1, 0, 2)


def test_groups_of_no_people_and_of_one() -> None:
    nobody = UnbiasedEstimate(named.geometric(0, alpha="1/2"))
    assert (nobody.values, nobody.variances, nobody.variance_estimates) == ((0,), (0,), (0,))
    assert UnbiasedEstimate(named.geometric(1, alpha="1/2")).variances == (2, 2)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([["1/2"] * 3, ["1/2"] * 3], "inputs 0 and 1 give every output with the same"),
        ([["1/2", "1/4", "1/8"], ["1/2", "3/4", "7/8"]], "the 3 columns .* have rank 2"),
    ],
)
def test_what_cannot_be_estimated_is_refused(table, reason) -> None:
    with pytest.raises(NoUnbiasedEstimate, match=reason):
        UnbiasedEstimate(Mechanism(table, Privacy(alpha="1/8")))


def test_other_quantities() -> None:
    m = named.geometric(2, alpha="1/2")
    empty = UnbiasedEstimate(m, quantity=[1, 0, 0])
    assert means(m.table, empty.values) == [1, 0, 0]
    with pytest.raises(ValueError, match="2 numbers for 3 inputs"):
        UnbiasedEstimate(m, quantity=[1, 0])


def test_a_prior_that_says_nothing_about_an_output_is_refused() -> None:
    """Of inputs that are not connected, one of weight 0 alone can have an output."""
    m = Mechanism([[1, 1, 0], [0, 0, "1/2"], [0, 0, "1/2"]], Privacy(alpha=1, neighbours=[(0, 1)]))
    quantity = [0, 0, 2]
    assert UnbiasedEstimate(m, quantity=quantity).values == (0, 2, 2)
    with pytest.raises(InvalidPrior, match="only for inputs of weight 0"):
        UnbiasedEstimate(m, ["1/2", "1/2", 0], quantity=quantity)


@pytest.mark.parametrize(
    "mechanism",
    [
        named.geometric(0, alpha="1/2"),
        named.explicit_fair(7, alpha="9/10"),
        named.geometric(5, alpha=1 - Fraction(1, 10**60)),  # 128 bits are not enough
        named.geometric(2, alpha=1 - Fraction(1, 10**1000)),  # nor are 2048, but floats are no more
        Mechanism([["2/3", "1/3"], [0, 0], ["1/3", "2/3"]], Privacy(alpha="1/2")),
        Mechanism([["3/5", "1/5"], ["1/5", "1/5"], ["1/5", "3/5"]], Privacy(alpha="1/3")),
    ],
    ids=["nobody", "fair", "faint", "fainter", "never", "wide"],
)
def test_floats_are_those_of_the_exact_numbers(mechanism) -> None:
    exact = UnbiasedEstimate(mechanism)
    lists = exact.values, exact.variances, exact.variance_estimates
    try:
        expected = [[*map(float, numbers)] for numbers in lists]
    except OverflowError:
        with pytest.raises(OverflowError):
            ApproximateEstimate.of(mechanism)
        return
    for found, numbers in zip(ApproximateEstimate.of(mechanism), expected, strict=True):
        assert np.abs(found - numbers).max() <= 2.0**-50 * np.abs(numbers).max()


def test_floats_of_what_cannot_be_estimated_are_refused() -> None:
    with pytest.raises(NoUnbiasedEstimate):
        ApproximateEstimate.of(named.uniform(3))
