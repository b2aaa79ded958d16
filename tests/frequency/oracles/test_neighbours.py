"""Oracles that protect some items from each other more than others: limited precision and metrics
keep the oracles' contract.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from frequency import IncompatibleAggregate, NotIdentifiable, Tabular
from mechdesign import Mechanism, Metric, Privacy, PrivacyViolation, design, named
from mechdesign.losses import L0, L1
from tests.contracts.oracle import exponential_below
from tests.frequency.oracles.test_tabular_response import TabularContract
from tests.goodness_of_fit import FALSE_ALARM, goodness


@cache
def designed(domain, epsilon, neighbours, properties=()):
    return design(domain - 1, Privacy.from_epsilon(epsilon, neighbours), L0(), properties).mechanism


def capped(domain, most):
    return Metric([[min(abs(j - k), most) for k in range(domain)] for j in range(domain)])


class TestLimitedPrecision(TabularContract):
    """(2, epsilon): items at most two apart. Column monotone, or else some items would never be
    said when epsilon is small.
    """

    def table(self, domain, epsilon):
        return designed(domain, epsilon, 2, ("CM",))

    def pairs(self, oracle):
        return [(v, u) for v in range(oracle.domain) for u in range(v) if v - u <= 2]


class TestMetric(TabularContract):
    """Epsilon for each step between items, and no more than 3 epsilon for any two."""

    big_domains = (20,)

    def table(self, domain, epsilon):
        if domain == 1:
            return named.uniform(0, Privacy.from_epsilon(epsilon))
        return designed(domain, epsilon, capped(domain, 3))

    def test_audit_is_the_enumerated_ratio(self, case):
        oracle, _, table, _, _ = self.enumerated(case)
        alpha = oracle.privacy.alpha
        uses = {
            (v, u): max(row[v] / row[u] for row in table) * alpha ** min(abs(v - u), 3)
            for v in range(oracle.domain)
            for u in range(oracle.domain)
            if u != v
        }
        audit = oracle.audit()
        assert audit.holds
        assert audit.ratio / audit.allowed == max(uses.values(), default=alpha) <= 1

    def check_privacy(self, oracle):
        audit = oracle.audit()
        steps = min(abs(audit.inputs[0] - audit.inputs[1]), 3) or 1
        assert audit.allowed == 1 / oracle.privacy.alpha**steps == oracle.max_ratio**steps
        assert oracle.max_ratio <= exponential_below(oracle.epsilon)
        assert 1 <= audit.ratio <= audit.allowed
        if oracle.domain > 1 and oracle.epsilon <= 10:
            assert math.log1p(float(audit.ratio - 1)) >= steps * oracle.epsilon * (1 - 1e-6)


def test_precision_one_is_the_geometric_mechanism():
    """GM is the (1, epsilon) case: the unique optimum for L0, and one oracle by either name."""
    gm, mechanism = (
        named.geometric(6, alpha="1/2"),
        design(6, Privacy(alpha="1/2", neighbours=1)).mechanism,
    )
    assert Tabular(mechanism) == Tabular(gm)
    counts = np.array([50, 0, 400, 300, 0, 200, 50])
    aggregate = Tabular(gm).simulate(counts, np.random.default_rng(1))
    assert Tabular(mechanism).estimate(aggregate).n == 1000


@pytest.mark.parametrize(
    "neighbours", [1, 2, 4, 99, capped(7, 2), capped(7, 6)], ids=lambda value: f"{value!r:.60}"
)
def test_from_reports_to_estimates(neighbours):
    oracle = Tabular(designed(7, 1, neighbours))
    values = np.repeat(np.arange(7), [500, 0, 4000, 3000, 0, 2000, 500])
    truth = np.bincount(values, minlength=7) / len(values)
    rng = np.random.default_rng(5)
    sent = oracle.aggregate(oracle.privatize(values, rng))
    drawn = oracle.simulate(np.bincount(values, minlength=7), rng)
    for aggregate in (sent, drawn):
        expected = oracle.mechanism.matrix @ truth
        # The reports of fixed users vary less than independent draws do, so that the test is on the
        # safe side.
        assert goodness(aggregate.counts, expected) > FALSE_ALARM
        assert goodness(aggregate.counts, np.full(7, 1 / 7)) < FALSE_ALARM
        estimate = oracle.estimate(aggregate)
        assert (np.abs(estimate.frequencies - truth) < 6 * np.sqrt(estimate.variances)).all()
        total, variance = estimate.linear(np.ones(7))
        assert total == pytest.approx(1)
        assert variance == pytest.approx(0, abs=1e-12)
    assert oracle.audit().holds
    assert oracle.estimate(sent + drawn).n == 2 * len(values)


def test_what_a_table_is_private_for_is_part_of_the_oracle():
    table = named.krr(4, alpha="1/2").table
    oracles = [
        Tabular(Mechanism(table, Privacy(alpha="1/2", neighbours=neighbours)))
        for neighbours in ("all", 2, capped(4, 2), capped(4, 3))
    ]
    for k, oracle in enumerate(oracles):
        aggregate = oracle.aggregate(oracle.privatize([0, 1, 2, 3], np.random.default_rng(0)))
        for other in oracles[k + 1 :]:
            with pytest.raises(IncompatibleAggregate):
                other.estimate(aggregate)


def test_a_table_that_breaks_one_distance_is_refused():
    table = named.geometric(4, alpha="1/2").table
    assert (
        Tabular(Mechanism(table, Privacy(alpha="1/2", neighbours=capped(5, 4)))).audit().ratio == 2
    )
    with pytest.raises(PrivacyViolation) as caught:
        Tabular(Mechanism(table, Privacy(alpha="1/2", neighbours=capped(5, 3))))
    assert (caught.value.ratio, caught.value.allowed) == (16, 8)
    with pytest.raises(PrivacyViolation):
        Tabular(Mechanism(table, Privacy(alpha=Fraction(1, 2), neighbours=2)))


def test_designs_that_never_say_some_items_do_not_identify():
    """Least L1 under strong protection is to name the middle, from which nothing is estimated."""
    with pytest.raises(NotIdentifiable):
        Tabular(design(6, Privacy(alpha="9/10", neighbours=4), L1()).mechanism)
