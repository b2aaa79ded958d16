"""All datasets of a few users: against lists of fractions, apart from what is tested."""

import math
import random
from fractions import Fraction

import pytest

from frequency import GRR
from mechdesign import Mechanism, Privacy, named
from mechdesign.accounting import shuffled
from mechdesign.accounting.listed_datasets import LARGEST_N, ListedDatasets
from mechdesign.accounting.pair_law import exp_above, exp_below
from tests.mechdesign.accounting.enumerated import shuffled_delta


def random_table(chosen, outputs, values):
    columns = [[chosen.randint(1, 9) for _ in range(outputs)] for _ in range(values)]
    columns = [[Fraction(w, sum(column)) for w in column] for column in columns]
    return [list(row) for row in zip(*columns, strict=True)]


def in_units(table):
    total = math.lcm(*(p.denominator for row in table for p in row))
    return [[int(p * total) for p in row] for row in table]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize(("outputs", "values"), [(2, 2), (2, 3), (3, 2), (3, 3), (4, 2)])
def test_delta_is_that_of_lists(outputs, values, n):
    chosen = random.Random(outputs * 100 + values * 10 + n)
    for _ in range(3):
        table = random_table(chosen, outputs, values)
        listed = ListedDatasets(in_units(table), n)
        for ratio in (Fraction(1), Fraction(11, 10), Fraction(7, 3)):
            assert listed.delta(ratio) == shuffled_delta(table, n, ratio)


def test_the_worst_dataset_is_not_that_of_others_alike():
    """As the page on shuffled reports shows."""
    table = named.krr(3, alpha="1/2")
    assert ListedDatasets(table.sampler.weights, 3).delta(Fraction(3, 2)) == Fraction(5, 128)


def test_bounds_of_few_users_are_exact():
    rows = random_table(random.Random(1), 3, 3)
    for n in (1, 2, 4, 7):
        table = Mechanism(rows, Privacy(alpha="1/81", neighbours="all"))
        few, listed = shuffled(table, n), ListedDatasets(in_units(rows), n)
        for epsilon in (Fraction(0), Fraction(1, 3), Fraction(1)):
            exact = listed.delta(exp_below(epsilon))
            assert exact <= Fraction(few.delta(epsilon)) <= exact * Fraction(1 + 1e-14)
            exact = listed.delta(exp_above(epsilon))
            assert exact * Fraction(1 - 1e-14) <= Fraction(few.delta_at_least(epsilon)) <= exact
        found, least = few.epsilon("1e-3"), few.epsilon_at_least("1e-3")
        assert least <= found <= least * (1 + 1e-3)
        assert listed.delta(exp_below(Fraction(found))) <= Fraction(1, 1000)


def test_what_is_listed():
    response = named.krr(3, alpha="1/2").sampler.weights
    assert ListedDatasets.few_enough(response, LARGEST_N)
    assert not ListedDatasets.few_enough(response, LARGEST_N + 1)
    assert not ListedDatasets.few_enough(named.krr(16, alpha="1/2").sampler.weights, 5)
    oracle, table = shuffled(GRR(3, 1.0), 8), shuffled(GRR(3, 1.0).mechanism, 8)
    assert (
        oracle.epsilon("1e-4") == table.epsilon("1e-4") <= oracle.epsilon_at_least("1e-4") * 1.001
    )


def test_values_that_report_alike_reveal_nothing():
    assert ListedDatasets([[1, 1], [2, 2], [3, 3]], 4).delta(Fraction(1)) == 0
