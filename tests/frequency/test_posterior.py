"""Empirical Bayes: a distribution that errs little, with intervals that cover.

All generators are seeded. The families of data here are not those that the constants of
`frequency.core.posterior` were chosen on: see the benchmark for many more.
"""

import math

import numpy as np
import pytest

from frequency import GRR, HRR, OLH, OUE, Aggregate, CountMeanSketch, Tabular
from frequency.core import posterior as module
from frequency.exceptions import InvalidEstimates
from frequency.postprocess import empirical_bayes, norm_sub, power_ns
from mechdesign import named


def collected(oracle, frequencies, n, rng):
    counts = rng.multinomial(n, frequencies)
    return oracle.estimate(oracle.simulate(counts, rng)), counts / n


def normalised(weights):
    return np.asarray(weights, dtype=float) / np.sum(weights)


EVEN = normalised(np.ones(300))
HALVES = normalised(np.repeat([4.0, 1.0, 0.0], 100))
LOGNORMAL = normalised(np.exp(1.5 * np.random.default_rng(8).normal(size=300)))
FAMILIES = {"even": EVEN, "lognormal": LOGNORMAL, "three levels": HALVES}


@pytest.mark.parametrize(
    "oracle",
    [
        GRR(2, 1.0),
        GRR(40, 3.0),
        OUE(50, 0.5),
        OLH(30, 1.0),
        HRR(20, 1.0, coefficients=1),
        CountMeanSketch(40, 1.0, hashes=8, width=16),
        Tabular(named.geometric(9, alpha="1/2")),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n", [1, 30, 20_000])
def test_a_distribution_with_intervals_around_it(oracle, n):
    rng = np.random.default_rng(n)
    truth = normalised(1 / np.arange(1, oracle.domain + 1))
    estimate, _ = collected(oracle, truth, n, rng)
    found = empirical_bayes(estimate)
    assert found.frequencies.shape == (oracle.domain,)
    assert found.frequencies.min() >= 0
    assert found.frequencies.sum() == pytest.approx(1, abs=1e-12)
    narrow, wide = found.interval(0.5, on_average=True), found.interval(0.99, on_average=True)
    assert (wide.low <= narrow.low).all()
    assert (narrow.low <= narrow.high).all()
    assert (narrow.high <= wide.high).all()
    assert wide.low.min() >= 0
    assert wide.high.max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [GRR(1, 1.0), GRR(30, 20.0)], ids=repr)
def test_without_noise_the_estimates_stay(oracle):
    counts = np.zeros(oracle.domain, dtype=int)
    counts[0] = 300
    counts[-1] += 700
    rng = np.random.default_rng(1)
    found = empirical_bayes(oracle.estimate(oracle.simulate(counts, rng)))
    assert found.frequencies == pytest.approx(counts / 1000, abs=1e-3)


def test_items_are_treated_alike():
    rng = np.random.default_rng(2)
    oracle = OUE(60, 1.0)
    aggregate = oracle.simulate(rng.multinomial(5000, normalised(range(60))), rng)
    order = rng.permutation(60)
    shuffled = Aggregate(oracle.signature, aggregate.n, aggregate.counts[order])
    one, other = (empirical_bayes(oracle.estimate(a)) for a in (aggregate, shuffled))
    assert other.frequencies == pytest.approx(one.frequencies[order], rel=1e-6, abs=1e-9)
    assert other.interval(on_average=True).high == pytest.approx(
        one.interval(on_average=True).high[order], rel=1e-6, abs=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_errs_less_than_the_nearest_distribution(family):
    rng = np.random.default_rng(4)
    oracle, errors = OUE(300, 1.0), np.zeros(3)
    deviation = math.sqrt(oracle.variance(30_000))
    for _ in range(8):
        estimate, truth = collected(oracle, FAMILIES[family], 30_000, rng)
        values = estimate.frequencies
        errors += [
            np.sum((found - truth) ** 2)
            for found in (
                empirical_bayes(estimate).frequencies,
                norm_sub(values),
                power_ns(values, deviation, 30_000),
            )
        ]
    assert errors[0] < 0.75 * errors[1]
    assert errors[0] < (0.4 if family == "even" else 1.05) * errors[2]


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("oracle", [GRR(300, 4.0), HRR(300, 1.0)], ids=["GRR", "HRR"])
def test_intervals_cover_on_average_and_for_the_largest(oracle, family):
    # The standard error of a mean over 10 collections is below 0.01, of the ten largest below 0.03.
    rng = np.random.default_rng(6)
    covered, largest, widths, bare = [], [], [], []
    for _ in range(10):
        estimate, truth = collected(oracle, FAMILIES[family], 50_000, rng)
        found = empirical_bayes(estimate)
        low, high = found.interval(0.95, on_average=True)
        inside = (low <= truth) & (truth <= high)
        covered.append(inside.mean())
        top = np.argsort(-found.frequencies)[:10]
        largest.append(inside[top].mean())
        widths.append((high - low).mean())
        deviations = np.sqrt(estimate.variances)
        bare.append((np.abs(found.frequencies - truth) <= 0.01 * deviations)[top].mean())
    assert np.mean(covered) > 0.92
    assert np.mean(largest) > 0.88
    assert np.mean(bare) < 0.6  # planted: intervals that are far too narrow are seen not to cover
    plain = np.subtract(*estimate.interval(0.95)[::-1]).mean()
    assert np.mean(widths) < 0.95 * plain


def test_posterior_means_are_those_of_sums_over_the_atoms():
    # The twin has no bins, no bands and no compressed rows.
    rng = np.random.default_rng(9)
    estimate, _ = collected(GRR(40, 3.0), normalised(np.arange(1, 41) ** 2), 3000, rng)
    values, noise, slope = module._independent(estimate)
    grid = module._grid(values, noise, slope)
    prior = rng.random(len(grid.atoms))
    told = module._normalised(module._mixed(grid, prior[:, None], np.ones(1))) @ grid.atoms
    for k, centre in enumerate(grid.centres):
        variance = grid.noise[k] + slope * grid.atoms
        weights = prior * np.exp(-0.5 * (centre - grid.atoms) ** 2 / variance) / np.sqrt(variance)
        assert told[k] == pytest.approx(weights @ grid.atoms / weights.sum(), rel=1e-6)
    inside = np.abs(values - grid.centres[grid.bins]) / np.sqrt(noise + slope * values.clip(0))
    assert inside.max() < module._BIN * 1.01


def test_priors_have_the_mean_that_the_sum_gives():
    rng = np.random.default_rng(10)
    for oracle in (OUE(100, 1.0), GRR(20, 2.0)):
        frequencies = normalised(1 / np.arange(1, oracle.domain + 1))
        estimate, _ = collected(oracle, frequencies, 10_000, rng)
        grid = module._grid(*module._independent(estimate))
        assert grid.values.sum() == pytest.approx(1)
        priors, weights = module._priors(grid, 10_000)
        assert priors.sum(axis=0) == pytest.approx(np.ones(priors.shape[1]), abs=1e-9)
        assert grid.atoms @ priors * oracle.domain == pytest.approx(
            np.ones(priors.shape[1]), abs=0.011
        )
        assert weights.sum() == pytest.approx(1)


def test_errors_common_to_all_items_do_not_matter():
    # With few items, reports of GRR leave errors that sum to 0: the noise of differences is larger.
    rng = np.random.default_rng(11)
    oracle = GRR(4, 1.0)
    estimate, _ = collected(oracle, normalised(np.ones(4)), 10_000, rng)
    _, noise, slope = module._independent(estimate)
    expected = oracle.difference_variance(10_000) / 2
    assert noise.mean() + slope / 4 == pytest.approx(expected, rel=0.02)
    assert estimate.variances.mean() < 0.9 * expected


def test_a_larger_population_widens_intervals():
    rng = np.random.default_rng(12)
    estimate, _ = collected(GRR(50, 4.0), normalised(1 / np.arange(1, 51)), 2000, rng)
    drawn = estimate.of_population(10**9)
    assert drawn.variance_slope == pytest.approx(estimate.variance_slope + 1 / 2000, rel=1e-5)
    own, more = (
        np.subtract(*empirical_bayes(e).interval(on_average=True)[::-1]) for e in (estimate, drawn)
    )
    assert more[0] > own[0]


def test_variances_at_a_frequency_are_the_oracles():
    rng = np.random.default_rng(13)
    oracle = GRR(30, 2.0)
    estimate, _ = collected(oracle, normalised(np.ones(30)), 500, rng)
    for f in (0.0, 0.3):
        assert estimate.variances_at(f) == pytest.approx(np.full(30, oracle.variance(500, f)))


def test_what_has_no_sum_is_refused():
    oracle = GRR(30, 2.0)
    rng = np.random.default_rng(14)
    aggregate = oracle.simulate(np.ones(30, dtype=int), rng)
    with pytest.raises(InvalidEstimates, match="estimates of all items"):
        empirical_bayes(oracle.estimate(aggregate, [3, 4]))
    none = oracle.aggregate(oracle.privatize(np.zeros(0, dtype=int), rng))
    with pytest.raises(InvalidEstimates, match="no reports"):
        empirical_bayes(oracle.estimate(none))
    assert np.isinf(oracle.estimate(none).variances_at(0.0)).all()
    found = empirical_bayes(oracle.estimate(aggregate))
    with pytest.raises(ValueError, match="confidence"):
        found.interval(1.0)


@pytest.mark.slow
def test_a_million_items_take_seconds():
    rng = np.random.default_rng(15)
    frequencies = normalised(1 / np.arange(1, 1_000_001))
    estimate, truth = collected(OUE(1_000_000, 2.0), frequencies, 10**7, rng)
    found = empirical_bayes(estimate)
    low, high = found.interval(on_average=True)
    assert np.mean((low <= truth) & (truth <= high)) > 0.93


def test_intervals_hold_for_items_that_are_unlike_the_others() -> None:
    """By their own reports; by the model they are drawn towards the others."""
    share = np.where(np.arange(64) < 8, 2.0, 1.0)
    oracle, users, held = OUE(64, 1.0), 42_955, np.zeros((2, 20, 8))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(users, share / share.sum())
        estimate = oracle.estimate(oracle.simulate(counts, rng))
        posterior = empirical_bayes(estimate)
        for place, on_average in enumerate((False, True)):
            low, high = posterior.interval(on_average=on_average)
            held[place, seed] = ((low <= counts / users) & (counts / users <= high))[:8]
        low, high = posterior.interval()
        assert ((low <= posterior.frequencies) & (posterior.frequencies <= high)).all()
        assert (low >= 0).all()
        assert (high <= 1).all()
    assert held[0].mean() > 0.9
    assert held[1].mean() < 0.6
