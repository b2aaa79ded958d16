"""The lower bound: the formula is the maximum that it says it is, and no protocol here does better
on the hard instances.

The measured errors are means of seeded repeats; the bound is compared with a lower confidence limit
at 1e-6, and a bound forty times as large would be noticed.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from frequency import GRR, OLH
from frequency.heavy import lower_bound
from tests.goodness_of_fit import FALSE_ALARM

GRID = [
    (n, d, e)
    for n in (1, 10, 1000, 10**6, 10**9)
    for d in (3, 16, 1000, 2**64)
    for e in (1e-6, 0.1, 1.0, 5.0, 50.0)
]


def slow(n, d, epsilon):
    """The maximum over t, numerically: on a grid, and then within its best cell."""

    def value(t):
        return t / 2 * (1 - (n * t * t * math.sinh(epsilon / 2) ** 2 + math.log(2)) / math.log(d))

    grid = np.concatenate([[1.0], np.logspace(-14, 0, 400)])
    best = grid[np.argmax([value(t) for t in grid])]
    found = optimize.minimize_scalar(
        lambda t: -value(t),
        bounds=(best / 1.1, min(1.0, best * 1.1)),
        method="bounded",
        options={"xatol": 1e-18},
    )
    return max(0.0, value(best), value(1.0), -found.fun)


@pytest.mark.parametrize("case", GRID, ids=str)
def test_is_the_maximum(case):
    assert lower_bound(*case) == pytest.approx(slow(*case), rel=1e-6)
    assert 0 <= lower_bound(*case) <= 1 / 2


@pytest.mark.parametrize(
    ("n", "d", "epsilon"), [case for case in GRID if case[1] > 3 and case[0] > 1]
)
def test_is_monotone(n, d, epsilon):
    """More users and more epsilon help, more items do not."""
    here = lower_bound(n, d, epsilon)
    assert lower_bound(2 * n, d, epsilon) <= here
    assert lower_bound(n, d, 2 * epsilon) <= here
    assert lower_bound(n, 2 * d, epsilon) >= here


def test_asymptote():
    """2 / (3 sqrt 3) sqrt(ln d / (n eps^2)) for large d and small epsilon."""
    n, d, epsilon = 10**12, 2**4096, 1e-3
    assert lower_bound(n, d, epsilon) == pytest.approx(
        2 / (3 * math.sqrt(3)) * math.sqrt(math.log(d) / n) / epsilon, rel=1e-3
    )


def test_the_variance_in_the_proof():
    """Numbers that average 1 and lie within a factor of e have variance at most (e - 1)^2 / (4 e):
    two values are worst.
    """
    for e in (1.1, math.exp(1), 20.0):
        low = np.linspace(1 / e, 1, 20_001)
        assert ((1 - low) * (low * e - 1)).max() == pytest.approx((e - 1) ** 2 / (4 * e), rel=1e-6)
        assert (e - 1) ** 2 / (4 * e) == pytest.approx(math.sinh(math.log(e) / 2) ** 2)


def hardest(n, d, epsilon):
    """The t of the hard distributions."""
    room, rate = 1 - math.log(2) / math.log(d), n * math.sinh(epsilon / 2) ** 2 / math.log(d)
    return min(1.0, math.sqrt(room / (3 * rate)))


@pytest.mark.parametrize(
    ("kind", "n", "d", "epsilon"),
    [
        (GRR, 300, 4, 1.0),
        (GRR, 1000, 16, 3.0),
        (OLH, 1000, 64, 1.0),
        (OLH, 3000, 1000, 2.0),
        (OLH, 100, 64, 0.1),
    ],
)
def test_nothing_is_more_accurate(kind, n, d, epsilon):
    """On the distribution of the proof, with v uniform: the mean largest error, also of estimates
    cut to [0, 1].
    """
    oracle, rng, runs = kind(d, epsilon), np.random.default_rng(21), 60
    t, bound = hardest(n, d, epsilon), lower_bound(n, d, epsilon)
    worst = []
    for _ in range(runs):
        p = np.full(d, (1 - t) / d)
        p[rng.integers(d)] += t
        found = oracle.estimate(oracle.simulate(rng.multinomial(n, p), rng)).frequencies
        worst.append([np.abs(found - p).max(), np.abs(np.clip(found, 0, 1) - p).max()])
    mean, error = np.mean(worst, axis=0), np.std(worst, axis=0, ddof=1) / math.sqrt(runs)
    sure = mean + stats.t.ppf(FALSE_ALARM / 2, runs - 1) * error
    assert (sure > bound).all()
    assert (mean + 5 * error < 40 * bound).any(), "a bound forty times as large would be noticed"


def test_few_items():
    assert lower_bound(10, 1, 1.0) == lower_bound(10, 2, 1.0) == 0.0
    assert lower_bound(10, 3, 1.0) > 0


def test_kinds_of_numbers():
    expected = lower_bound(100, 16, 0.5)
    for epsilon in (Fraction(1, 2), "0.5", "1/2"):
        assert lower_bound(100, 16, epsilon) == pytest.approx(expected)
    assert lower_bound(np.int64(100), 16, 0.5) == expected
    assert lower_bound(100, 16, 1000.0) >= 0
    assert isinstance(lower_bound(100, 16, 0.5), float)


def test_tiny_epsilon():
    """As for any epsilon at which reports tell nothing: t = 1."""
    assert lower_bound(10, 16, 1e-200) == pytest.approx((1 - math.log(2) / math.log(16)) / 2)


def test_numpy_numbers_of_items():
    assert lower_bound(10, np.int64(16), 1.0) == lower_bound(10, 16, 1.0)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None, "5", math.nan])
def test_wrong_numbers(wrong):
    with pytest.raises(ValueError, match="n must be a number of users"):
        lower_bound(wrong, 16, 1.0)
    with pytest.raises(ValueError, match="d must be a number of items"):
        lower_bound(10, wrong, 1.0)


@pytest.mark.parametrize("epsilon", [0, 0.0])
def test_no_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        lower_bound(10, 16, epsilon)


@pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf, None, "much", True])
def test_wrong_epsilon(epsilon):
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        lower_bound(10, 16, epsilon)
