"""Renyi divergences and zero-concentrated privacy: closed forms, dense grids, and every order."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp

from mechdesign import Mechanism, Privacy, named
from mechdesign.accounting import PrivacyLoss, compose
from mechdesign.accounting.promises import RenyiCurve

ORDERS = (1.001, 1.5, 2, 3, 10, 100, 5000)


def moments(losses, orders):
    """K(order - 1) of independent losses, in floats."""
    found = np.zeros(len(orders))
    for loss, times in losses:
        p = np.array([float(p) for _, p in loss.ratios])
        x = np.log([float(ratio) for ratio, _ in loss.ratios])
        found += times * logsumexp((orders - 1)[:, None] * x, b=p, axis=1)
    return found


def of_second(ratios):
    """A loss from the ratios and their probabilities under the second neighbour."""
    return PrivacyLoss(tuple((ratio, ratio * q) for ratio, q in sorted(ratios)))


def rare(much, seldom):
    """A ratio of ``much`` with the probability ``seldom`` under the second neighbour."""
    rest = (1 - much * seldom) / (1 - seldom)
    return of_second([(much, seldom), (rest, 1 - seldom)])


LOSSES = {
    "randomised response": [(PrivacyLoss.pure(1), 1)],
    "much, seldom": [(rare(Fraction(20), Fraction(1, 1000)), 1)],
    "hardly ever": [(rare(Fraction(1000), Fraction(1, 10**8)), 7)],
    "nearly always": [(rare(Fraction(3, 2), Fraction(3, 5)), 10**6)],
    "unlike": [
        (PrivacyLoss.of(named.geometric(8, alpha="9/10")), 100),
        (PrivacyLoss.of(named.explicit_fair(8, alpha="1/2")), 3),
        (rare(Fraction(20), Fraction(1, 1000)), 10),
    ],
}


@pytest.mark.parametrize("epsilon", ["1/100", "1", "6"])
@pytest.mark.parametrize("order", ORDERS)
def test_randomised_response(epsilon, order):
    """Mironov (2017), proposition 5, k times."""
    loss, e, k = PrivacyLoss.pure(epsilon), float(Fraction(epsilon)), 12
    p = 1 / (1 + math.exp(-e))
    terms = [order * math.log(x) + (1 - order) * math.log(1 - x) for x in (p, 1 - p)]
    closed = k * float(logsumexp(terms)) / (order - 1)
    found = compose([loss] * k).renyi(order)
    assert found == pytest.approx(closed, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_rho_is_the_least_that_holds_for_all_orders(name):
    losses = LOSSES[name]
    curve = RenyiCurve(losses)
    orders = 1 + np.geomspace(1e-7, 1e8, 60_001)
    needed = float((moments(losses, orders) / (orders * (orders - 1)))[2000:].max())
    found = float(curve.rho().upper())
    assert needed * (1 - 1e-9) <= found <= needed * (1 + 3e-6)
    for order in ORDERS:
        divergence = float(curve.divergence(Fraction(order)).upper())
        assert divergence <= found * order * (1 + 1e-12)


def test_the_worst_order_is_neither_the_first_nor_the_last():
    """So that the middle of the range is tested above."""
    orders = 1 + np.geomspace(1e-7, 1e8, 60_001)
    loss = LOSSES["much, seldom"]
    needed = moments(loss, orders) / (orders * (orders - 1))
    assert 2 < orders[needed.argmax()] < 1000
    assert needed.max() > 1.5 * needed[2000]


@pytest.mark.parametrize("seed", range(4))
def test_no_neighbours_of_a_table_differ_more(seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 9, (3, 4))
    weights[0] += weights.sum(axis=0).max() - weights.sum(axis=0)
    total = int(weights.sum(axis=0)[0])
    table = Mechanism(
        [[Fraction(int(w), total) for w in row] for row in weights],
        Privacy(alpha="1/30", neighbours="all"),
    )
    composed, columns = compose([table] * 3), table.matrix.T
    for order in ORDERS[:-1]:
        largest = max(
            3 * logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)
            for p in columns
            for q in columns
        )
        assert largest * (1 - 1e-9) <= composed.renyi(order)
        assert largest <= composed.rho * order
    # Bun and Steinke (2016), proposition 1.4
    assert composed.rho <= 3 * math.log(table.audit().ratio) ** 2 / 2


def test_divergences_add_up():
    first, second = named.geometric(8, alpha="9/10"), named.krr(3, alpha="1/2")
    for order in ("3/2", 4):
        alone = [compose([table]).renyi(order) for table in (first, second)]
        together = compose([first, second, first]).renyi(order)
        assert together == pytest.approx(2 * alone[0] + alone[1], rel=1e-12)


def test_what_an_output_rules_out_costs_infinitely_much():
    composed = compose([Mechanism([["1/2", "0"], ["1/2", "1"]], Privacy(alpha="1/2"))])
    assert composed.renyi(2) == composed.rho == math.inf


def test_nothing_is_lost():
    for composed in (compose([]), compose([PrivacyLoss.pure(0)] * 3)):
        assert composed.renyi(2) <= 1e-50
        assert composed.rho <= 1e-50


@pytest.mark.parametrize("order", [1, 1.0, "1/2", -3, 0, math.inf, math.nan])
def test_orders_are_above_one(order):
    with pytest.raises(ValueError, match="order"):
        compose([named.krr(3, alpha="1/2")]).renyi(order)
