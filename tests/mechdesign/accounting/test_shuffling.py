"""Shuffled reports: bounds on both sides of what enumeration finds, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mechdesign import Mechanism, Privacy, named
from mechdesign.accounting import compose, shuffled
from mechdesign.accounting.pair_law import PairClass, PairLaws, TableLaws, require_pair_law
from mechdesign.accounting.shuffling import Shuffled
from mechdesign.exceptions import TooFewReports, UnboundedRatio, UnstatedLikelihoods
from tests.mechdesign.accounting.enumerated import shuffled_delta


def random_table(rng, outputs, inputs):
    weights = rng.integers(1, 9, (outputs, inputs)).tolist()
    sums = [sum(column) for column in zip(*weights, strict=True)]
    table = [[Fraction(w, s) for w, s in zip(row, sums, strict=True)] for row in weights]
    return Mechanism(table, Privacy(alpha="1/9", neighbours="all"))


RESPONSE = Mechanism([["3/4", "1/4"], ["1/4", "3/4"]], Privacy(alpha="1/3", neighbours="all"))
TABLES = [
    RESPONSE,
    named.krr(3, alpha="1/2"),
    random_table(np.random.default_rng(1), 3, 2),
    random_table(np.random.default_rng(2), 3, 3),
    random_table(np.random.default_rng(3), 2, 3),
]


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("table", TABLES, ids=range(len(TABLES)))
def test_enumeration_lies_between_the_bounds(table, n):
    bounds = shuffled(table, n)
    for epsilon in (0.0, 0.01, 0.1, 0.3, 0.7, 1.0):
        exact = shuffled_delta(table.table, n, Fraction(math.exp(epsilon)))
        slack = 1e-12  # of e^epsilon, which is rounded here
        assert bounds.delta(epsilon) >= exact - slack
        assert bounds.delta_at_least(epsilon) <= exact + slack


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4])
def test_upper_bounds_are_those_of_the_blanket(n):
    """Exactly computed: the numbers of reports in each class are listed."""
    stated = TableLaws(named.krr(3, alpha="1/2").sampler.weights)[0]
    # From the law alone: of the table all datasets of so few users are listed instead.
    bounds = Shuffled(PairLaws([stated]), [stated], n)
    for ratio in (Fraction(1), Fraction(11, 10), Fraction(3, 2)):
        law = [(w, u - ratio * v) for w, u, v in stated]
        law.append((1 - sum(w for w, _ in law), Fraction(0)))
        sums = {Fraction(0): Fraction(1)}
        for _ in range(n):
            longer: dict[Fraction, Fraction] = {}
            for total, p in sums.items():
                for w, x in law:
                    longer[total + x] = longer.get(total + x, 0) + p * w
            sums = longer
        exact = sum(p * max(total, Fraction(0)) for total, p in sums.items()) / n
        found = bounds.above(ratio, 0.005)
        assert exact <= Fraction(float(found.upper())) * (1 + Fraction(1, 10**12))
        assert float(found.upper()) <= float(exact) * 1.02
        low = bounds.below(ratio, 0.01)
        assert float(low.lower()) <= float(exact) * (1 + 1e-12)


def test_the_merged_form_of_the_blanket_is_too_small():
    """Three users hold 0 or 1, 0 and 2: what hides in the rest cannot be one symbol.

    The variation ratio reduction gives 1/32 here; the divergence is 5/128.
    """
    table = named.krr(3, alpha="1/2")
    assert shuffled_delta(table.table, 3, Fraction(3, 2)) == Fraction(5, 128)
    assert shuffled(table, 3).delta(math.log(1.5)) >= 5 / 128


@pytest.mark.parametrize("n", [10, 1000, 10**5, 10**10, 10**12])
@pytest.mark.parametrize("epsilon", ["1/1000", "1", "6"])
def test_bounds_at_all_sizes(n, epsilon):
    table = named.krr(16, alpha=Privacy.from_epsilon(epsilon).alpha)
    bounds = shuffled(table, n)
    found, least = bounds.epsilon("1e-8"), bounds.epsilon_at_least("1e-8")
    assert 0 <= least <= found <= bounds.local_epsilon
    assert least >= 0.9 * found or least < 1e-6
    assert bounds.delta(found) <= 1e-8 or found == bounds.local_epsilon


@pytest.mark.slow
def test_more_users_hide_more_and_a_larger_epsilon_takes_less_delta():
    table = named.krr(8, alpha="1/9")
    deltas = [shuffled(table, n).delta("0.3") for n in (2, 10, 100, 1000, 10**4)]
    assert sorted(deltas, reverse=True) == deltas
    deltas = [shuffled(table, 300).delta(epsilon) for epsilon in np.linspace(0, 2.2, 12)]
    assert sorted(deltas, reverse=True) == deltas
    assert deltas[-1] == 0


@pytest.mark.slow
def test_several_pairs_are_charged_as_the_worst_one():
    table = random_table(np.random.default_rng(5), 7, 4)
    laws = TableLaws(table.sampler.weights)
    assert len(laws) == 12
    worst = max(Shuffled(PairLaws([laws[k]]), (), 500).delta("0.2") for k in range(len(laws)))
    assert worst <= shuffled(table, 500).delta("0.2") <= 1.05 * worst


def test_equal_pairs_count_once():
    assert len(TableLaws(named.krr(16, alpha="1/2").sampler.weights)) == 1


def test_nothing_is_lost_where_reports_say_nothing():
    constant = Mechanism([["1/3"] * 3, ["2/3"] * 3], Privacy(alpha=1, neighbours="all"))
    bounds = shuffled(constant, 100)
    assert (bounds.delta(0), bounds.delta_at_least(0), bounds.epsilon("1e-9")) == (0, 0, 0)
    alone = shuffled(Mechanism([[1]], Privacy(alpha=1, neighbours="all")), 100)
    assert (alone.delta(0), alone.epsilon("1e-9"), alone.local_epsilon) == (0, 0, 0)


def test_equal_columns_among_others():
    table = [["3/4", "1/4", "1/4"], ["1/4", "3/4", "3/4"]]
    bounds = shuffled(Mechanism(table, Privacy(alpha="1/3", neighbours="all")), 1000)
    assert bounds.delta_at_least(0) <= bounds.delta(0) < 0.1


@pytest.mark.slow
def test_a_profile_composes_to_nearly_the_same():
    bounds = shuffled(RESPONSE, 10_000)
    loss = bounds.profile
    for delta in ("1e-4", "1e-8"):
        alone = compose([loss]).epsilon(delta)
        assert bounds.epsilon(delta) <= alone <= 1.02 * bounds.epsilon(delta)
    twice = compose([loss, bounds]).epsilon("1e-8")
    assert bounds.epsilon("1e-8") < twice < 2 * bounds.epsilon("1e-8")


def test_fewer_reports_than_promised():
    bounds = shuffled(RESPONSE, 100)
    bounds.require(100)
    with pytest.raises(TooFewReports, match=r"99 reports are fewer than the 100"):
        bounds.require(99)


def test_the_trust_is_printed_beside_the_numbers():
    text = str(shuffled(RESPONSE, 10_000))
    assert "each alone keeps epsilon 1.09861" in text
    assert "trusted to drop who sent what" in text


@pytest.mark.parametrize("n", [0, -1, 1.5, "7", 10**13, True])
def test_numbers_of_users(n):
    with pytest.raises(ValueError, match="n must be"):
        shuffled(RESPONSE, n)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 2.0, math.nan, math.inf, "0", "x"])
def test_deltas(delta):
    for bound in (shuffled(RESPONSE, 10).epsilon, shuffled(RESPONSE, 10).epsilon_at_least):
        with pytest.raises(ValueError, match="delta must be"):
            bound(delta)


@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (-1, "epsilon must not be negative, got -1"),
        (math.nan, "epsilon must be finite and not negative, got nan"),
        (math.inf, "epsilon must be finite and not negative, got inf"),
    ],
)
def test_epsilons(epsilon, message):
    for bound in (shuffled(RESPONSE, 10).delta, shuffled(RESPONSE, 10).delta_at_least):
        with pytest.raises(ValueError, match=message):
            bound(epsilon)


def test_what_is_refused():
    with pytest.raises(ValueError, match="neighbours='all'"):
        shuffled(named.geometric(4, alpha="1/2"), 10)
    open_ended = Mechanism([["1/2", 0], ["1/2", 1]], Privacy(alpha="1/2", neighbours="all"))
    with pytest.raises(UnboundedRatio, match="impossible under another"):
        shuffled(open_ended, 10)
    with pytest.raises(UnstatedLikelihoods, match=r"int does not state .* pair_laws"):
        shuffled(3, 10)


@pytest.mark.parametrize(
    ("law", "reason"),
    [
        ([(Fraction(1), Fraction(1), Fraction(2))], "add up to 1"),
        ([(Fraction(2), Fraction(1, 2), Fraction(1, 2))], "at most 1"),
        ([(Fraction(0), Fraction(1), Fraction(1))], "above 0"),
        ([(Fraction(1, 2), Fraction(-1), Fraction(2))], "at least 0"),
    ],
)
def test_numbers_that_are_no_law(law, reason):
    with pytest.raises(ValueError, match=reason):
        require_pair_law([PairClass(*item) for item in law])


def test_a_protocol_with_an_unbounded_ratio():
    half = Fraction(1, 2)
    law = (PairClass(half, Fraction(2), Fraction(0)), PairClass(half, Fraction(0), Fraction(2)))
    with pytest.raises(UnboundedRatio):
        _ = PairLaws([law]).largest_ratio


def test_huge_epsilons_take_no_time():
    bounds = shuffled(RESPONSE, 10)
    assert (bounds.delta("1e300"), bounds.delta_at_least("1e300")) == (0, 0)
