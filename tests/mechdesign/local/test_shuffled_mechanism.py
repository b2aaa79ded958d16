"""Designs for shuffled reports: their certificates, and randomised response as the rival.

The twin of the certificate is the divergence itself: all collections of few users, listed.
"""

from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import exp, inf

import numpy as np
import pytest

from frequency import Tabular
from mechdesign import Mechanism, Privacy
from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import exp_below
from mechdesign.local import shuffle_optimal, workload_optimal
from mechdesign.local.optimality import variances_by_input
from mechdesign.local.patterns import gram


def response(k, share):
    """Randomised response: with probability ``share`` a report is drawn from all items."""
    share = Fraction(share).limit_denominator(10**9)
    table = [[share / k + (1 - share) * (x == y) for x in range(k)] for y in range(k)]
    alpha = table[0][1] / table[0][0]
    return Mechanism(table, Privacy(alpha=alpha, neighbours="all"))


def rival(name, k, n, epsilon, delta):
    """The variance of randomised response with the least blanket, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(14):
        share = (low + high) / 2
        fits = shuffled(response(k, share), n).delta(epsilon) <= delta
        low, high = (low, share) if fits else (share, high)
    table = response(k, high).matrix
    return float(variances_by_input(table, gram(name, k)[0], np.full(k, 1 / k)).mean())


CASES = [
    ("histogram", 5, 1000, 0.5, 1e-6),
    ("prefixes", 2, 500, 0.3, 1e-5),
    ("prefixes", 7, 300, 0.2, 1e-6),
    ("prefixes", 16, 10_000, 0.1, 1e-8),
    ("ranges", 9, 2000, 0.1, 1e-6),
    ("ranges", 8, 10**7, 1.0, 1e-10),
]


designed = cache(shuffle_optimal)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k", "n", "epsilon", "delta"), CASES)
def test_the_certificate_is_that_of_the_table(name, k, n, epsilon, delta, tmp_path):
    design = designed(name, k, n, epsilon, delta)
    assert (design.n, design.epsilon, design.delta) == (n, Fraction(epsilon), Fraction(delta))
    design.mechanism.save(tmp_path / "table.json")
    loaded = Mechanism.load(tmp_path / "table.json")
    assert loaded == design.mechanism
    assert loaded.audit().holds
    again = shuffled(loaded, n)
    assert again.delta(epsilon) == design.central.delta(epsilon) <= delta
    # And not much less: what is allowed is used
    assert again.delta(epsilon * 0.99) > delta
    assert exp(again.local_epsilon) == pytest.approx(loaded.audit().ratio)
    W = gram(name, k)[0]
    expected = variances_by_input(loaded.matrix, W, np.full(k, 1 / k)).mean()
    assert design.variance == pytest.approx(expected, rel=1e-8)
    assert 0 < design.bound <= design.variance <= 1.3 * design.bound
    assert design.gap == design.variance / design.bound - 1
    assert f"epsilon {epsilon:g}" in str(design)
    assert "shuffler is trusted" in str(design)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "k", "n", "epsilon", "delta"), CASES)
def test_never_worse_than_randomised_response(name, k, n, epsilon, delta):
    design = designed(name, k, n, epsilon, delta)
    worse = rival(name, k, n, epsilon, delta)
    part = {("prefixes", 16): 0.75, ("ranges", 9): 0.96, ("prefixes", 7): 0.94}.get((name, k), 1)
    assert design.variance <= worse * part * 1.003


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("prefixes", 0.62),
        ("ranges", 0.74),
        ("histogram", 1.003),
    ],
)
def test_figures_of_64_items(name, part):
    """100,000 users, epsilon 0.25, delta 1e-8."""
    design = shuffle_optimal(name, 64, 100_000, 0.25, 1e-8)
    assert design.variance <= part * rival(name, 64, 100_000, 0.25, 1e-8)
    assert design.gap < 0.2
    assert design.central.local_epsilon < 7


# --- the definition -------------------------------------------------------------------------------


def divergence(table, n, ratio):
    """The largest hockey-stick divergence of the multisets of n reports, exactly."""
    k = len(table[0])

    def collections(values):
        law: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for reports in product(range(len(table)), repeat=n):
            p = Fraction(1)
            for report, value in zip(reports, values, strict=True):
                p *= table[report][value]
            law[tuple(sorted(reports))] += p
        return law

    worst = Fraction(0)
    for others in combinations_with_replacement(range(k), n - 1):
        laws = [collections((x, *others)) for x in range(k)]
        for first, second in product(laws, laws):
            found = sum((max(Fraction(0), p - ratio * second[y]) for y, p in first.items()))
            worst = max(worst, found)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "k", "n"), [("prefixes", 3, 2), ("ranges", 2, 3), ("prefixes", 3, 3)]
)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.2)])
def test_few_users_keep_what_is_promised_by_the_definition(name, k, n, epsilon, delta):
    design = shuffle_optimal(name, k, n, epsilon, delta)
    found = divergence(design.mechanism.table, n, exp_below(Fraction(epsilon)))
    assert found <= Fraction(delta)
    assert found > Fraction(delta) / 100


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_users_are_not_promised_what_shuffling_cannot_give(n):
    design = shuffle_optimal("prefixes", 5, n, 1.0, 1e-9)
    assert design.central.delta(1.0) <= 1e-9
    # Reports that keep epsilon alone are the worst that is returned
    assert exp(1) * (1 - 1e-6) <= design.mechanism.audit().ratio <= exp(1) * (1 + 1e-3)


@pytest.mark.slow
def test_more_users_mean_less_noise():
    found = [shuffle_optimal("prefixes", 6, n, 0.5, 1e-8).variance for n in (10**2, 10**4, 10**6)]
    assert found[0] > found[1] * 2 > found[2] * 4
    # Without a shuffler
    assert workload_optimal("prefixes", 6, 0.5).variance > found[1] * 2


# --- edges ----------------------------------------------------------------------------------------


def test_one_item_needs_no_report():
    design = shuffle_optimal("ranges", 1, 1000, 0.5, 1e-6)
    assert (design.variance, design.bound, design.gap) == (0, 0, 0)
    assert design.mechanism.table == ((1,),)


def test_a_workload_of_the_total_alone_costs_nothing():
    design = shuffle_optimal(np.ones((1, 4)), 4, 1000, 0.5, 1e-6)
    assert design.variance < 1e-9
    assert design.gap in (0.0, inf)


def test_queries_of_ones_own():
    W = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, -1, 0.5]])
    design = shuffle_optimal(W, 6, 5000, 0.2, 1e-6)
    assert design.queries == 2
    assert design.bound <= design.variance
    assert design.central.delta(0.2) <= 1e-6


@pytest.mark.slow
def test_a_delta_that_allows_everything_still_hides_something():
    design = shuffle_optimal("histogram", 3, 10, 1.0, 0.9)
    assert design.central.delta(1.0) <= 0.9
    assert design.mechanism.audit().ratio < inf


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"domain": 0}, "domain must"),
        ({"domain": 257}, "domain must"),
        ({"n": 0}, "n must"),
        ({"n": 10**13}, "n must"),
        ({"epsilon": 0}, "epsilon must be between"),
        ({"epsilon": 11}, "epsilon must be between"),
        ({"epsilon": inf}, "epsilon must be finite"),
        ({"delta": 0}, "delta must be strictly"),
        ({"delta": 1}, "delta must be strictly"),
        ({"delta": float("nan")}, "delta must be strictly"),
        ({"workload": "quantiles"}, "workload must be"),
        ({"workload": np.ones((2, 3))}, "4 columns"),
    ],
)
def test_bad_input_is_refused(given, message):
    asked = {"workload": "prefixes", "domain": 4, "n": 100, "epsilon": 0.5, "delta": 1e-6}
    with pytest.raises(ValueError, match=message):
        shuffle_optimal(**{**asked, **given})


# --- in use ---------------------------------------------------------------------------------------


def test_an_oracle_has_the_variance_that_is_stated():
    n, k = 20_000, 6
    design = shuffle_optimal("prefixes", k, n, 0.25, 1e-6)
    oracle = Tabular(design.mechanism)
    assert float(oracle.epsilon) >= design.central.local_epsilon - 1e-9
    W = np.tri(k)
    # Uniform, so that the stated average is that of this population
    truth = np.full(k, 1 / k)
    rng = np.random.default_rng(5)
    items = np.repeat(np.arange(k), n // k + 1)[:n]
    errors = []
    for _ in range(300):
        aggregate = oracle.aggregate(oracle.privatize(rng.permutation(items), rng))
        errors.append(W @ (oracle.estimate(aggregate).frequencies - truth))
    found = float(np.mean(np.square(errors))) * k
    # 300 sums of 6 squares: a standard deviation of less than 8%
    assert found == pytest.approx(design.variance / n, rel=0.4)
    assert np.abs(np.mean(errors, axis=0)).max() < 6 * np.sqrt(design.variance / n / 300)
    many = oracle.simulate(np.full(k, 10**9 // k), rng)
    exact = many.n * oracle.linear_variances_of(W, many, truth, None)
    assert exact.sum() == pytest.approx(design.variance, rel=1e-3)
