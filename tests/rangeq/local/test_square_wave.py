"""SquareWave against the transition matrix written out: sampling, privacy, expectation
maximisation.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from frequency import IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.core.likelihood import Likelihood, maximised
from rangeq.local.square_wave import SquareWave
from tests.goodness_of_fit import FALSE_ALARM


def transition(protocol: SquareWave) -> list[list[Fraction]]:
    """``table[output][value]``, from the definition."""
    b = protocol.reach
    near = [
        [v <= y <= v + 2 * b for v in range(protocol.domain)]
        for y in range(protocol.domain + 2 * b)
    ]
    return [[protocol.p if inside else protocol.q for inside in row] for row in near]


@pytest.mark.parametrize(
    ("domain", "epsilon"),
    [(1, 1.0), (2, 0.5), (3, 2.0), (7, 1.0), (64, 0.2), (64, 4.0), (1024, 1.0)],
)
def test_probabilities_sum_to_one_and_the_audit_is_the_largest_ratio(
    domain: int, epsilon: float
) -> None:
    protocol = SquareWave(domain, epsilon)
    if domain <= 64:
        table = transition(protocol)
        assert all(sum(row[v] for row in table) == 1 for v in range(domain))
        assert protocol.audit().ratio == max(max(row) / min(row) for row in table)
    audit = protocol.audit()
    assert audit.holds
    assert audit.ratio <= audit.allowed <= Fraction(math.exp(epsilon) * (1 + 1e-12))
    if domain > 1:
        assert float(audit.ratio) == pytest.approx(math.exp(epsilon), rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-6, 0.2, 1.0, 5.0])
def test_bandwidth_and_probabilities_are_those_of_the_paper(epsilon: float) -> None:
    e = math.exp(epsilon)
    delta = (
        (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon)) if epsilon > 1e-3 else 0.5 - epsilon / 3
    )
    domain = 1 << 16
    protocol = SquareWave(domain, epsilon)
    assert protocol.reach == pytest.approx(delta * domain, abs=1)
    assert float(protocol.p) * domain == pytest.approx(e / (2 * delta * e + 1), rel=1e-3)
    assert float(protocol.q) * domain == pytest.approx(1 / (2 * delta * e + 1), rel=1e-3)


@pytest.mark.parametrize("value", [0, 2, 6])
def test_reports_have_the_stated_distribution(value: int) -> None:
    protocol, n = SquareWave(7, 1.0), 60_000
    expected = np.array([float(row[value]) for row in transition(protocol)]) * n
    other = np.array([float(row[(value + 3) % 7]) for row in transition(protocol)]) * n
    rng = np.random.default_rng(value)
    for counts in (
        protocol.aggregate(protocol.privatize(np.full(n, value), rng)).counts,
        protocol.simulate(np.bincount([value], minlength=7) * n, rng).counts,
    ):
        assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM
        assert stats.chisquare(counts, other).pvalue < FALSE_ALARM


@pytest.mark.parametrize("smooth", [False, True])
def test_the_fit_is_that_of_plain_matrices(smooth: bool) -> None:
    protocol = SquareWave(9, 1.0)
    table = np.array(transition(protocol), dtype=np.float64)
    held = np.array([0, 10, 50, 400, 100, 0, 0, 30, 10])
    aggregate = protocol.simulate(held, np.random.default_rng(3))
    counts, threshold = aggregate.counts.astype(np.float64), 1e-3 * (1 if smooth else math.e)
    f, likelihood = np.full(9, 1 / 9), -math.inf
    old = float(counts @ np.log(table @ f))
    rounds = 0
    while abs(likelihood - old) >= threshold or not rounds:
        old = likelihood if rounds else old
        f = f * (table.T @ (counts / (table @ f)))
        f /= f.sum()
        if smooth:
            middle = (f[:-2] + 2 * f[1:-1] + f[2:]) / 4
            f = np.array([(2 * f[0] + f[1]) / 3, *middle, (f[-2] + 2 * f[-1]) / 3])
            f /= f.sum()
        likelihood, rounds = float(counts @ np.log(table @ f)), rounds + 1
    fit = protocol.fit(aggregate, smooth)
    assert fit.rounds == rounds
    np.testing.assert_allclose(fit.frequencies, f, atol=1e-10)
    assert fit.log_likelihood == pytest.approx(likelihood)
    assert protocol.estimate(aggregate, smooth).range(0, 8) == pytest.approx(1)


def test_em_finds_the_maximum_of_the_likelihood() -> None:
    protocol = SquareWave(5, 2.0)
    aggregate = protocol.simulate(
        np.array([4000, 1000, 2000, 2000, 1000]), np.random.default_rng(4)
    )
    fit, table = protocol.fit(aggregate), np.array(transition(protocol), dtype=np.float64)
    gradient = table.T @ (aggregate.counts / (table @ fit.frequencies)) / aggregate.n
    assert gradient.max() < 1 + 1e-3  # at the maximum it is 1 where f > 0, and at most 1 elsewhere


def test_the_maximum_of_the_likelihood_follows_the_noise_further() -> None:
    protocol, items = SquareWave(64, 1.0), np.arange(64)
    truth = np.exp(-(((items - 26) / 7) ** 2))
    truth /= truth.sum()
    rng = np.random.default_rng(6)
    aggregate = protocol.simulate(rng.multinomial(100_000, truth), rng)
    counts = aggregate.counts.astype(float)
    transposed = np.array(transition(protocol), dtype=np.float64).T
    likelihood = Likelihood(64, counts, protocol.reported, lambda each: transposed @ each)
    maximum, ascent = maximised(likelihood, 0.01, 40_000)
    fit = protocol.fit(aggregate)
    assert ascent.converged
    assert ascent.log_likelihood > fit.log_likelihood + 1
    assert np.abs(maximum - truth).sum() > 1.5 * np.abs(fit.frequencies - truth).sum()


@pytest.mark.slow
def test_many_items_are_found_again() -> None:
    rng = np.random.default_rng(5)
    values = np.clip(rng.normal(400, 60, 200_000), 0, 1023).astype(int)
    protocol = SquareWave(1024, 1.0)
    aggregate = protocol.simulate(np.bincount(values, minlength=1024), rng)
    truth = np.cumsum(np.bincount(values, minlength=1024)) / len(values)
    for smooth in (False, True):
        estimate = protocol.estimate(aggregate, smooth)
        assert (estimate.frequencies >= 0).all()
        # An error of 0.05 is more than 8 deviations of the cdf of a 1024-item EM fit here.
        assert np.abs(estimate.cdf() - truth).max() < 0.05


def test_few_users_and_few_items() -> None:
    assert np.isnan(
        SquareWave(4, 1.0)
        .estimate(SquareWave(4, 1.0).aggregate(SquareWave(4, 1.0).privatize([])))
        .frequencies
    ).all()
    with pytest.raises(ValueError, match="no reports"):
        SquareWave(4, 1.0).fit(SquareWave(4, 1.0).simulate(np.zeros(4, dtype=int)))
    for domain in (1, 2):
        protocol = SquareWave(domain, 1.0)
        estimate = protocol.estimate(
            protocol.aggregate(protocol.privatize([0], np.random.default_rng(1))), smooth=True
        )
        assert estimate.range(0, domain - 1) == pytest.approx(1)
        assert protocol.report_bits == (protocol.outputs - 1).bit_length()


def test_what_is_not_of_the_protocol_is_refused() -> None:
    protocol = SquareWave(7, 1.0)
    with pytest.raises(InvalidValue):
        protocol.privatize([0, 7])
    bad = protocol.privatize([0, 1, 2], np.random.default_rng(1))
    bad["output"][1] = protocol.outputs
    with pytest.raises(InvalidReport):
        protocol.aggregate(bad)
    tally: Counter[str] = Counter()
    assert protocol.aggregate(bad, tally).n == 2
    assert tally == {"impossible": 1}
    with pytest.raises(IncompatibleAggregate):
        protocol.estimate(SquareWave(7, 1.1).simulate(np.ones(7, dtype=int)))
    a = protocol.simulate(np.ones(7, dtype=int), np.random.default_rng(1))
    both = protocol.aggregate_from_bytes(a.to_bytes()) + a
    assert both.n == 14
    np.testing.assert_array_equal(both.counts, 2 * a.counts)
