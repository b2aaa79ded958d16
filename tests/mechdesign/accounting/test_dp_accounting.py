"""Compositions beside dp_accounting: within its brackets, and it is never told too little loss."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mechdesign import Mechanism, Privacy, named
from mechdesign.accounting import PrivacyLoss, compose
from mechdesign.accounting.composition import pessimistic_pld

dp: Any = pytest.importorskip("dp_accounting", reason="the extra accounting is not installed")

INTERVAL = 1e-3
DELTA = 1e-6


def random_tables(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        weights = rng.integers(1, 9, (int(rng.integers(2, 5)), 2))
        sums = weights.sum(axis=0)
        yield Mechanism(
            [[Fraction(int(w), int(s)) for w, s in zip(row, sums, strict=True)] for row in weights],
            Privacy(alpha="1/80", neighbours="all"),
        )


RESPONSE = named.krr(2, alpha="1/2")
COMPOSED = {
    "randomised response": [(RESPONSE, 30)],
    "four answers": [(named.krr(4, alpha="9/10"), 200)],
    "GM": [(named.geometric(8, alpha="9/10"), 100)],
    "EM": [(named.explicit_fair(8, alpha="9/10"), 100)],
    "unlike": [(table, times) for times, table in enumerate(random_tables(1, 3), 1)],
    "unlike and many": [
        (named.geometric(8, alpha="19/20"), 50),
        (named.krr(3, alpha="4/5"), 20),
        *((table, 2) for table in random_tables(2, 2)),
    ],
}


def columns_of(table):
    return [
        {i: math.log(p) for i, p in enumerate(column)} for column in zip(*table.table, strict=True)
    ]


def their_losses(table, pessimistic):
    """The distributions of dp_accounting of all ordered pairs of neighbours."""
    columns = columns_of(table)
    for j, k in table.privacy.pairs(table.inputs).tolist():
        for first, second in ((j, k), (k, j)):
            yield dp.pld.privacy_loss_distribution.from_two_probability_mass_functions(
                columns[second], columns[first], pessimistic, INTERVAL
            )


def theirs(parts, pessimistic):
    """The composition for the pair of neighbours that is worst in each table alone."""
    total = None
    for table, times in parts:
        many = max(
            (loss.self_compose(times) for loss in their_losses(table, pessimistic)),
            key=lambda loss: loss.get_epsilon_for_delta(DELTA),
        )
        total = many if total is None else total.compose(many)
    return total


def ours(parts):
    return compose([table for table, times in parts for _ in range(times)])


@pytest.mark.parametrize("name", COMPOSED)
def test_bounds_lie_within_the_brackets_of_dp_accounting(name):
    parts = COMPOSED[name]
    found, optimistic, pessimistic = ours(parts), theirs(parts, False), theirs(parts, True)
    low, high = (loss.get_epsilon_for_delta(DELTA) for loss in (optimistic, pessimistic))
    for epsilon in (low / 2, high):
        # They compose with an absolute error of about 1e-14
        assert found.delta(epsilon) >= optimistic.get_delta_for_epsilon(epsilon) - 1e-12
        assert found.delta_at_least(epsilon) <= pessimistic.get_delta_for_epsilon(epsilon) + 1e-12
    # Both bounds are tight; a table with several worst pairs is one distribution above them all
    assert found.delta(1.02 * high) <= DELTA <= found.delta_at_least(0.98 * low)


def test_epsilons_are_tighter_than_those_of_dp_accounting():
    """Where a thousand roundings of a privacy loss add up."""
    table = named.krr(3, alpha="99/100")
    pessimistic = theirs([(table, 2000)], True).get_epsilon_for_delta(DELTA)
    assert compose([table] * 2000).delta(0.9 * pessimistic) < DELTA


@pytest.mark.parametrize("interval", [1e-4, 1e-2, 0.3, math.log(2), 5.0])
@pytest.mark.parametrize("ratios", [(1, 2), (3, 7), (1, 10**9), (10**9 - 1, 10**9)])
def test_a_distribution_told_is_never_too_private(ratios, interval):
    """Also where a loss is a multiple of the interval, but for rounding."""
    alpha = Fraction(*ratios)
    loss = PrivacyLoss.of(named.krr(3, alpha=alpha))
    told = pessimistic_pld([(loss, 1)], interval)
    most = -math.log(alpha)
    for epsilon in (0.0, most / 3, most * 0.9, most):
        exact = sum(float(p) * max(0.0, -math.expm1(epsilon - math.log(r))) for r, p in loss.ratios)
        assert told.get_delta_for_epsilon(epsilon) >= exact * (1 - 1e-12) - 1e-15


@pytest.mark.parametrize("name", COMPOSED)
def test_what_dp_accounting_is_told(name):
    found = ours(COMPOSED[name])
    told = found.to_dp_accounting(INTERVAL)
    epsilon = told.get_epsilon_for_delta(DELTA)
    assert found.delta_at_least(1.0001 * epsilon) <= DELTA <= found.delta(0.98 * epsilon)
    assert told.compose(told).get_epsilon_for_delta(DELTA) > epsilon


def test_smaller_intervals_are_tighter():
    composed = compose([named.geometric(8, alpha="1/2")] * 10)
    epsilons = [
        composed.to_dp_accounting(step).get_epsilon_for_delta(1e-3) for step in (0.5, 0.1, 0.02)
    ]
    assert all(fine < coarse for coarse, fine in pairwise(epsilons))


def test_impossible_outputs_are_told():
    composed = compose([Mechanism([["1/2", "0"], ["1/2", "1"]], Privacy(alpha="1/2"))] * 2)
    assert composed.to_dp_accounting().get_delta_for_epsilon(50.0) >= 0.75
    assert composed.to_dp_event() == dp.NonPrivateDpEvent()


@pytest.mark.parametrize("name", COMPOSED)
def test_the_event_is_for_the_renyi_accountant(name):
    found = ours(COMPOSED[name])
    event = found.to_dp_event()
    assert event == dp.ZCDpEvent(found.rho)
    epsilon = dp.rdp.RdpAccountant().compose(event).get_epsilon(DELTA)
    assert found.delta_at_least(epsilon) < DELTA
    # Its list of orders includes one that is good for a total of about this
    assert epsilon <= 1.1 * (found.rho + 2 * math.sqrt(-found.rho * math.log(DELTA)))


@pytest.mark.parametrize("interval", [0.0, -1.0, math.inf, math.nan])
def test_intervals_are_numbers_above_zero(interval):
    with pytest.raises(ValueError, match="the step of privacy losses"):
        compose([RESPONSE]).to_dp_accounting(interval)
