"""What a wrong answer costs: powers, thresholds, priors, worst cases, tables."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import InexactNumber, InvalidPrior, Mechanism, NotSquare, Privacy
from mechdesign.losses import L0, L1, L2, Costs, Loss, Power, binomial, prior

SETTINGS = settings(derandomize=True, deadline=None, max_examples=60)
UNIT = Fraction(1, 2**64)


@pytest.mark.parametrize("distance", range(12))
@pytest.mark.parametrize(("make", "power"), [(L0, 0), (L1, 1), (L2, 2)])
@pytest.mark.parametrize("d", [0, 1, 3])
def test_whole_powers(make, power, distance, d):
    expected = distance**power if distance > d else 0
    assert make(d).cost(20, 20 - distance) == make(d).cost(20 - distance, 20) == expected
    assert make(d) == Power(power, d)


def test_threshold_is_more_than_d_steps():
    assert [L0(2).cost(0, j) for j in range(5)] == [0, 0, 0, 1, 1]
    assert [L0(0).cost(0, j) for j in range(3)] == [0, 1, 1]


@pytest.mark.parametrize(
    "p", [Fraction(1, 2), "0.5", Decimal("0.5"), "3/2", Fraction(7, 3), "1/10"], ids=repr
)
def test_fractional_powers_are_rounded_down_by_less_than_a_unit(p):
    power = Fraction(p)
    for distance in range(30):
        cost = Power(p).cost(distance, 0)
        # cost^q <= distance^a < (cost + 2^-64)^q is |i - j|^(a/q) between the two, in integers.
        assert cost**power.denominator <= distance**power.numerator
        assert distance == 0 or distance**power.numerator < (cost + UNIT) ** power.denominator
        assert (cost / UNIT).denominator == 1


def test_fractional_powers_of_perfect_powers_are_exact():
    assert Power("1/2").cost(0, 49) == 7
    assert Power("3/2").cost(4, 0) == 8
    assert Power("1/2", d=3).cost(0, 3) == 0
    assert Power("1/2", d=3).cost(0, 4) == 2
    assert Power("1/2") == Power("0.5")


@pytest.mark.parametrize("p", [-1, "-1/2", Fraction(-1, 100)], ids=repr)
def test_negative_powers(p):
    with pytest.raises(ValueError, match="at least 0"):
        Power(p)


@pytest.mark.parametrize("p", [0.5, 2.0, np.float64(1), True, None], ids=repr)
def test_inexact_powers(p):
    with pytest.raises(InexactNumber):
        Power(p)


@pytest.mark.parametrize("d", [-1, 0.5, 1.0, True, None, "1"], ids=repr)
def test_bad_thresholds(d):
    with pytest.raises(ValueError, match="threshold"):
        L0(d)


def test_cost_table_is_outputs_by_inputs():
    assert L1().costs(2, 3) == [[0, 1, 2], [1, 0, 1]]


def test_uniform_unless_told_otherwise():
    assert L0().weights(4) == (Fraction(1, 4),) * 4
    assert L0(prior=["1/4", "3/4"]).weights(2) == (Fraction(1, 4), Fraction(3, 4))
    assert L0(prior=iter([1, 0])).weights(2) == (1, 0)


@pytest.mark.parametrize("inputs", [1, 3])
def test_prior_of_another_length(inputs):
    with pytest.raises(InvalidPrior, match="2 weights"):
        L0(prior=["1/4", "3/4"]).weights(inputs)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["1/2", "1/3"], "sums to"),
        ([1, 1], "sums to"),
        ([], "sums to"),
        (["3/2", "-1/2"], "negative"),
        ([Fraction(1, 2), Fraction(1, 2) + Fraction(1, 10**400)], "sums to"),
    ],
)
def test_bad_priors(weights, message):
    for make in (lambda: L0(prior=weights), lambda: Costs([[0, 1], [1, 0]], prior=weights)):
        with pytest.raises(InvalidPrior, match=message):
            make()


def test_float_priors():
    with pytest.raises(InexactNumber):
        L0(prior=[0.5, 0.5])
    with pytest.raises(InexactNumber):
        prior([1.0, 2.0])
    with pytest.raises(InexactNumber):
        prior(np.array([0.5, 0.5]))


@st.composite
def tables(draw):
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    columns = [
        draw(st.lists(st.integers(0, 5), min_size=shape[0], max_size=shape[0]).filter(any))
        for _ in range(shape[1])
    ]
    return [[Fraction(column[i], sum(column)) for column in columns] for i in range(shape[0])]


@SETTINGS
@given(tables(), st.sampled_from([L0(), L1(), L2(1), Power("1/2")]), st.data())
def test_expectation_and_worst_case_by_definition(table, loss, data):
    mechanism = Mechanism(table, Privacy(alpha="1/2"))
    inputs = mechanism.inputs
    weights = prior(
        data.draw(st.lists(st.integers(0, 5), min_size=inputs, max_size=inputs).filter(any))
    )
    expected = [
        sum(table[i][j] * loss.cost(i, j) for i in range(len(table))) for j in range(inputs)
    ]
    assert mechanism.loss(loss) == sum(expected) / inputs
    assert mechanism.loss(Power(loss.p, loss.d, weights)) == sum(
        w * e for w, e in zip(weights, expected, strict=True)
    )
    assert mechanism.loss(Power(loss.p, loss.d, worst_case=True)) == max(expected)
    weighed = [w * e for w, e in zip(weights, expected, strict=True)]
    assert mechanism.loss(Power(loss.p, loss.d, weights, worst_case=True)) == max(weighed)
    costs = [[loss.cost(i, j) for j in range(inputs)] for i in range(len(table))]
    assert mechanism.loss(Costs(costs)) == sum(expected) / inputs
    assert mechanism.loss(Costs(costs, worst_case=True)) == max(expected)
    assert mechanism.loss(Costs(costs, weights, worst_case=True)) == max(weighed)


@pytest.mark.parametrize("table", [[], [[]], [[1, 2], [3]], [[], [1]]], ids=repr)
def test_ragged_costs(table):
    with pytest.raises(ValueError, match="rows of one length"):
        Costs(table)


def test_bad_costs():
    with pytest.raises(ValueError, match="at least 0"):
        Costs([[0, "-1/10"]])
    with pytest.raises(InexactNumber):
        Costs([[0, 0.5]])
    with pytest.raises(NotSquare, match="2 x 2"):
        Costs([[0, 1], [1, 0]]).costs(3, 3)
    with pytest.raises(NotSquare, match="1 x 3"):
        Mechanism([[1], [0]], Privacy(alpha=1)).loss(Costs([[0, 1, 2]]))


def test_costs_need_not_be_square():
    assert Mechanism([["1/4", "1/2"]] * 2 + [["1/2", 0]], Privacy(alpha="1/2")).loss(
        Costs([[0, 4], [4, 0], [8, 8]])
    ) == Fraction(7, 2)


def test_losses_are_values():
    assert L1(2, ["1/2", "1/2"]) == Power("1", 2, (Fraction(1, 2), Fraction(1, 2)))
    assert hash(L0()) == hash(Power("0"))
    assert L0() != L0(1)
    assert L0() != L0(worst_case=True)
    assert Costs([["1/2"]]) == Costs([["2/4"]])
    with pytest.raises(AttributeError):
        L0().d = 3  # type: ignore[misc]  # read-only
    assert repr(L0(2, worst_case=True)) == "L0(d=2, worst_case=True)"
    assert repr(Power("3/2")) == "L1.5()"


def test_a_loss_of_ones_own():
    class Squares(Loss):
        def cost(self, output, input):
            return Fraction(abs(output**2 - input**2))

    assert Squares().costs(2, 3) == [[0, 1, 4], [1, 0, 3]]
    assert Squares().weights(2) == (Fraction(1, 2),) * 2


@pytest.mark.parametrize("p", [0, 1, "1/2", "0.3", Fraction(1, 10**20)], ids=repr)
@pytest.mark.parametrize("n", [0, 1, 2, 60])
def test_binomial(n, p):
    weights = binomial(n, p)
    assert len(weights) == n + 1
    assert sum(weights) == 1
    assert min(weights) >= 0
    assert sum(j * w for j, w in enumerate(weights)) == n * Fraction(p)
    assert L0(prior=weights).weights(n + 1) == weights
    assert weights[0] == (1 - Fraction(p)) ** n
    assert weights[n // 2] == math.comb(n, n // 2) * Fraction(p) ** (n // 2) * (
        1 - Fraction(p)
    ) ** (n - n // 2)


@pytest.mark.parametrize("p", [-1, "1.1", Fraction(-1, 100)], ids=repr)
def test_binomial_of_no_probability(p):
    with pytest.raises(InvalidPrior, match=r"\[0, 1\]"):
        binomial(3, p)


def test_prior_divides_by_the_sum():
    assert prior([1, 2, 1]) == (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    assert prior(["1/3", Decimal("0.5")]) == (Fraction(2, 5), Fraction(3, 5))
    assert prior(np.array([1, 0, 3])) == (Fraction(1, 4), 0, Fraction(3, 4))


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [3, -1], [-1, -1]], ids=repr)
def test_prior_of_nothing(weights):
    with pytest.raises(InvalidPrior, match="at least 0"):
        prior(weights)


def test_prior_whose_sum_is_beyond_floats():
    with pytest.raises(InvalidPrior, match="sums to"):
        L0(prior=[10**400, 1])


@pytest.mark.parametrize(
    "p",
    [101, 10**5000, "1e1000", "1e-1000", "1/101", "3001/1000", -1, Fraction(-1, 10**400)],
    ids=lambda p: str(p)[:9] if p != 10**5000 else "",
)
def test_absurd_powers_are_refused_at_once(p):
    """Their costs would not fit into any memory."""
    with pytest.raises(ValueError, match="the power of a loss must be at least 0, and at most 100"):
        Power(p)


@pytest.mark.parametrize("p", [0, 100, "1/100", "9999/100"])
def test_powers_at_the_ends_of_what_is_allowed(p):
    power = Fraction(p)
    cost = Power(p).cost(0, 2)
    assert (
        cost**power.denominator
        <= 2**power.numerator
        < (cost + Fraction(1, 1 << 64)) ** power.denominator
    )
    assert Power(p).cost(3, 2) == 1


def test_sums_and_probabilities_of_any_size_are_named():
    with pytest.raises(InvalidPrior, match=r"sums to 1\.00000000000E\+5000"):
        L0(prior=[10**5000, 1])
    with pytest.raises(InvalidPrior, match=r"negative: -1\.00000E\+5000"):
        L0(prior=[-(10**5000), 1])
    with pytest.raises(InvalidPrior, match=r"got 1\.00000E\+5000"):
        binomial(2, 10**5000)
