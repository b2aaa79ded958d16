"""A shuffler that adds dummies: what it publishes, and what is estimated from that."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from frequency import GRR, HRR, OLH, IncompatibleAggregate, InvalidReport, InvalidValue, Tabular
from frequency.longitudinal.augmented_shuffler import AugmentedShuffler
from mechdesign import Mechanism, Privacy
from tests.goodness_of_fit import FALSE_ALARM

UNEVEN = Mechanism(
    [["1/2", "1/4", "1/8"], ["1/4", "1/2", "1/8"], [0, 0, 0], ["1/4", "1/4", "3/4"]],
    Privacy(alpha="1/6", neighbours="all"),
)
"""With an output that never occurs."""

SHUFFLERS = [
    AugmentedShuffler(GRR(5, 3.0), 0.2, "1e-3"),
    AugmentedShuffler(GRR(2, 8), "1/2", "1e-4"),
    AugmentedShuffler(Tabular(UNEVEN), 0.05, 1e-3),
]


@pytest.fixture(params=SHUFFLERS, ids=["GRR", "two items", "table"])
def shuffler(request):
    return request.param


def held(shuffler, n=900):
    shares = np.arange(1, shuffler.domain + 1) ** 2
    counts = n * shares // shares.sum()
    counts[0] += n - counts.sum()
    return counts


def test_what_is_published_is_the_number_of_reports_of_each_kind(shuffler):
    oracle, rng = shuffler.oracle, np.random.default_rng(3)
    reports = oracle.privatize(np.repeat(np.arange(shuffler.domain), held(shuffler)), rng)
    mixed = rng.permutation(reports)
    published = [shuffler.shuffle(r, np.random.default_rng(8)) for r in (reports, mixed)]
    assert np.array_equal(*published)
    dummies = shuffler.dummies(np.random.default_rng(8))
    apart = oracle.aggregate(reports) + oracle.aggregate(dummies)
    assert oracle.aggregate(published[0]) == apart


def test_there_are_dummies_of_every_kind_that_users_may_send_and_of_no_other():
    shuffler = SHUFFLERS[2]
    kinds = np.bincount(shuffler.dummies(np.random.default_rng(1))["output"], minlength=4)
    assert kinds[2] == 0
    assert (kinds[[0, 1, 3]] > 0).all()
    assert (kinds <= 2 * shuffler.dummies_of_each_kind).all()


@pytest.mark.slow
def test_estimates_are_unbiased_with_the_stated_variances(shuffler):
    """Of each item and of a sum; without the dummies' part the variances would be too small."""
    counts, rng, trials = held(shuffler), np.random.default_rng(11), 800
    n, truth = int(counts.sum()), counts / counts.sum()
    weights = np.arange(shuffler.domain) % 2 - 0.25
    found = [shuffler.estimate(shuffler.simulate(counts, rng), n) for _ in range(trials)]
    oracle = shuffler.oracle
    values = np.array([[*e.frequencies, e.linear(weights).value] for e in found])
    stated = np.array([[*e.variances, e.linear(weights).variance] for e in found]).mean(axis=0)
    rows = np.vstack([np.eye(shuffler.domain), weights])
    without = oracle.linear_variance(n, rows, truth)
    errors = values - rows @ truth
    level = FALSE_ALARM / (4 * len(rows))
    assert (np.abs(errors.mean(axis=0)) < stats.norm.isf(level) * np.sqrt(stated / trials)).all()
    ratio = (errors**2).mean(axis=0) / stated
    low, high = (float(stats.chi2.ppf(p, trials)) / trials for p in (level, 1 - level))
    assert ((low < ratio) & (ratio < high)).all()
    assert ((errors**2).mean(axis=0) / without > high).all()


def test_the_predicted_variance_is_the_estimated_one():
    shuffler = SHUFFLERS[0]
    counts = held(shuffler, 100_000)
    n = int(counts.sum())
    aggregate = shuffler.simulate(counts, np.random.default_rng(2))
    estimate = shuffler.estimate(aggregate, n)
    assert shuffler.variance(n, counts / n) == pytest.approx(estimate.variances, rel=0.02)
    some = shuffler.estimate(aggregate, n, items=[3, 0])
    assert np.array_equal(some.frequencies, estimate.frequencies[[3, 0]])
    assert some.variances == pytest.approx(estimate.variances[[3, 0]])
    sums = some.linear([1, -2]), estimate.linear([-2, 0, 0, 1, 0])
    assert sums[0].value == pytest.approx(sums[1].value)
    assert sums[0].variance == pytest.approx(sums[1].variance, rel=1e-3)


def test_dummies_are_better_than_none():
    """Standard errors at central (0.25, 1e-8), n = 10^5, 64 items: of a curator, 1.13e-4."""
    errors = {
        epsilon: AugmentedShuffler(GRR(64, epsilon), "1/4", "1e-8").variance(10**5) ** 0.5
        for epsilon in (6, 8, 12)
    }
    assert errors == pytest.approx({6: 2.05e-4, 8: 1.28e-4, 12: 1.13e-4}, rel=0.01)


def test_what_is_said_of_trust(shuffler):
    said = str(shuffler)
    assert f"epsilon, {shuffler.local_epsilon:.6g}" in said
    assert "trusted to add the dummies" in said
    assert shuffler.local_epsilon <= shuffler.oracle.privacy.epsilon * (1 + 1e-12)
    assert shuffler.privacy.delta(shuffler.epsilon) <= Fraction(shuffler.delta)


def test_the_distance_of_a_table_is_rounded_up():
    exact = max(
        sum(max(p - q, 0) for p, q in zip(x, z, strict=True))
        for x in zip(*UNEVEN.table, strict=True)
        for z in zip(*UNEVEN.table, strict=True)
    )
    assert exact <= SHUFFLERS[2].privacy.distance <= exact + Fraction(1, 10**12)
    table = Tabular(GRR(5, 3.0).mechanism)
    same = AugmentedShuffler(table, 0.2, "1e-3")
    assert same.privacy.counts == SHUFFLERS[0].privacy.counts


def test_what_does_not_fit_is_refused():
    shuffler, oracle = SHUFFLERS[0], SHUFFLERS[0].oracle
    aggregate = shuffler.simulate(held(shuffler), np.random.default_rng(1))
    most = 10 * shuffler.dummies_of_each_kind
    shuffler.estimate(aggregate, aggregate.n)
    with pytest.raises(IncompatibleAggregate, match="are not those of 901"):
        shuffler.estimate(oracle.aggregate(oracle.privatize([0] * 900)), 901)
    with pytest.raises(IncompatibleAggregate, match="are not those of"):
        shuffler.estimate(aggregate, aggregate.n - most - 1)
    with pytest.raises(IncompatibleAggregate, match="not an aggregate of this protocol"):
        shuffler.estimate(GRR(5, 2.0).aggregate(GRR(5, 2.0).privatize([0])), 1)
    with pytest.raises(ValueError, match="number of users"):
        shuffler.estimate(aggregate, 0)
    with pytest.raises(InvalidValue):
        shuffler.estimate(aggregate, 900, items=[5])
    with pytest.raises(InvalidReport):
        shuffler.shuffle(np.zeros(3))
    for other in (OLH(5, 1.0), HRR(5, 1.0), "GRR"):
        with pytest.raises(TypeError, match="whose kinds of reports are listed"):
            AugmentedShuffler(other, 1.0, "1e-6")
    with pytest.raises(ValueError, match="2 to 4096 kinds"):
        AugmentedShuffler(GRR(4097, 8.0), 1.0, "1e-6")
    with pytest.raises(ValueError, match="2 to 4096 kinds"):
        AugmentedShuffler(GRR(1, 8.0), 1.0, "1e-6")
    with pytest.raises(ValueError, match="more than 2\\^26"):
        AugmentedShuffler(GRR(4096, 8.0), 1e-4, "1e-9")
