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
from frequency.heavy import degraded, information_bound, lower_bound
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


# --- with delta -----------------------------------------------------------------------------------


def excess(table, ratio):
    """The least delta of a table whose rows are reports: over all pairs of items, exactly."""
    columns = list(zip(*table, strict=True))
    return max(
        sum(max(p - ratio * q, 0) for p, q in zip(one, other, strict=True))
        for one in columns
        for other in columns
    )


def information(table):
    """Of a uniform item and its report, in nats."""
    mean = table.mean(axis=1, keepdims=True)
    ratios = np.divide(table, mean, out=np.ones_like(table), where=table > 0)
    return float((table * np.log(ratios)).mean(axis=1).sum())


def tables(rng):
    """Private tables: random ones, randomised response that tells the truth aloud by chance, and
    one that is kept from a set of items by chance.
    """
    for d in (2, 3, 6):
        for epsilon in (0.05, 0.5, 2.0):
            e = math.exp(epsilon)
            grr = (np.ones((d, d)) + (e - 1) * np.eye(d)) / (e + d - 1)
            half = np.where(np.arange(d) < d // 2, e, 1.0) / (1 + e)
            for delta in (1e-6, 1e-3, 0.1, 0.7):
                for pure in (grr, np.stack([half, 1 - half])):
                    yield np.concatenate([(1 - delta) * pure, delta * np.eye(d)])
                    lost = np.concatenate([pure, np.zeros((1, d))])
                    lost[0, 0], lost[-1, 0] = lost[0, 0] * (1 - delta), lost[0, 0] * delta
                    yield lost
            for concentration in (0.3, 3.0, 100.0):
                yield rng.dirichlet(np.full(5, concentration), d).T


@pytest.mark.slow
def test_no_report_tells_more():
    """Every table is (epsilon, delta)-private for many pairs of them: for each the delta is counted
    report by report.
    """
    closest = 0.0
    for table in tables(np.random.default_rng(1)):
        told, d = information(table), table.shape[1]
        for epsilon in (1e-3, 0.1, 0.5, 1.0, 2.0, 5.0):
            delta = min(float(excess(table, math.exp(epsilon))), 1 - 1e-12)
            bound = information_bound(d, epsilon, 0.0 if delta < 1e-14 else delta)
            assert told <= bound * (1 + 1e-9) + 1e-12
            closest = max(closest, told / bound)
            for kept in (0.01, 0.3, 0.9):
                mixed = kept * table + (1 - kept) * table.mean(axis=1, keepdims=True)
                bound = information_bound(d, epsilon, 0.0 if delta < 1e-14 else delta, kept)
                assert information(mixed) <= bound * (1 + 1e-9) + 1e-12
    assert closest > 0.8, "a bound a quarter larger would be noticed"


@pytest.mark.parametrize("kept", [1.0, 0.2])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.2, 0.9])
@pytest.mark.parametrize(
    ("d", "epsilon"), [(2, 1.0), (3, 0.1), (3, 3.0), (50, 0.5), (50, 3.9), (1000, 1.0)]
)
def test_the_bound_is_the_most_of_a_linear_program(d, epsilon, delta, kept):
    """Over all ratios r of a fine grid, each with its weight."""
    e = math.exp(epsilon)
    r = np.unique([0, *np.geomspace(1e-3, d, 400), 1 / e, e, d])
    r = r[(r <= d)]
    s = 1 + kept * (r - 1)
    gain = np.where(s > 0, s * np.log(np.where(s > 0, s, 1)), 0.0)
    found = optimize.linprog(
        -gain,
        A_ub=[np.maximum(r - e, 0), np.maximum(1 - e * r, 0)],
        b_ub=[delta, delta],
        A_eq=[np.ones(len(r)), r],
        b_eq=[1, 1],
    )
    assert found.fun is not None
    assert information_bound(d, epsilon, delta, kept) == pytest.approx(-found.fun, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 10.0])
def test_without_delta_two_values_tell_most(epsilon):
    """Ratios that average 1, the larger e^epsilon times the smaller."""
    low = np.linspace(math.exp(-epsilon), 1, 200_001)[1:-1]
    high = low * math.exp(epsilon)
    share = (1 - low) / (high - low)
    most = (share * high * np.log(high) + (1 - share) * low * np.log(low)).max()
    assert information_bound(10**9, epsilon) == pytest.approx(most, rel=1e-6)
    # As a report that tells in which half of all items the user's is, for small epsilon
    assert information_bound(10**9, 0.001) == pytest.approx(0.001**2 / 8, rel=1e-3)
    e = math.exp(0.001)
    half = np.array([[e, 1.0], [1.0, e]]) / (1 + e)
    assert information(half) == pytest.approx(information_bound(10**9, 0.001), rel=1e-3)


def test_what_it_tells_at_the_extremes():
    assert information_bound(1, 1.0) == information_bound(1, 1.0, 0.5) == 0.0
    assert information_bound(100, 1.0, 0.5, 0.0) == 0.0
    for delta in (0.0, 1e-9, 0.5):
        assert information_bound(100, 1e6, delta) == pytest.approx(math.log(100))
    assert information_bound(100, 1e-9, 1 - 1e-15) == pytest.approx(math.log(100))
    assert information_bound(10**6, 1e-9, 0.01) == pytest.approx(0.01 * math.log(10**6), rel=1e-5)
    deltas = [information_bound(64, 0.5, delta) for delta in (0.0, 1e-12, 1e-4, 0.01, 0.3, 0.99)]
    assert deltas == sorted(deltas)


@pytest.mark.parametrize("ratio", [Fraction(11, 10), Fraction(3), Fraction(20)])
@pytest.mark.parametrize("kept", [Fraction(1, 20), Fraction(1, 2)])
def test_degraded_items_are_as_private_as_it_says(ratio, kept):
    """In fractions, for tables of a few reports; and hardly less, for many items."""
    rng, epsilon = np.random.default_rng(2), math.log(ratio)
    for d in (2, 3, 5):
        for high in (3, 1000):
            weights = rng.integers(0, high, (4, d)) + (np.arange(4) == 0)[:, None]
            table = [[Fraction(int(w), int(weights[:, v].sum())) for v, w in enumerate(row)]
                     for row in weights]  # fmt: skip
            delta = excess(table, ratio)
            mixed = [[kept * p + (1 - kept) * sum(row) / d for p in row] for row in table]
            assert excess(mixed, 1 + kept * (ratio - 1)) <= kept * delta
            told = degraded(epsilon, float(min(delta, Fraction(1, 2))), float(kept))
            assert told[0] == pytest.approx(math.log(1 + kept * (ratio - 1)))
            assert told[1] == pytest.approx(float(kept * min(delta, Fraction(1, 2))))
    d, delta = 2000, 0.01
    e = float(ratio)
    own, other = (1 - delta) * e / (e + d - 1), (1 - delta) / (e + d - 1)
    a, b = own + delta, other
    mean = (a + (d - 1) * b) / d
    share, more = float(kept), 1 + float(kept) * (e - 1)
    reached = share * a + (1 - share) * mean - more * (share * b + (1 - share) * mean)
    assert reached > 0.9 * share * (a - e * b) or a - e * b < 1e-3


def test_degraded_at_the_extremes():
    assert degraded(1.0, 0.25, 1.0) == degraded(1.0, 0.25, 1) == (pytest.approx(1.0), 0.25)
    assert degraded(1.0, 0.25, 0.0) == (pytest.approx(0.0, abs=1e-15), 0.0)
    assert degraded(1e-12, 0.0, 0.5)[0] == pytest.approx(5e-13)
    assert degraded(500, 0.0, 0.5)[0] == pytest.approx(500 + math.log(0.5))


def test_the_lower_bound_with_delta():
    pure = lower_bound(10**5, 1000, 0.5)
    found = [lower_bound(10**5, 1000, 0.5, delta) for delta in (1e-15, 1e-8, 1e-6, 1e-4, 0.01, 0.5)]
    assert found == sorted(found, reverse=True)
    assert pure / math.sqrt(2) * 0.99 < found[0] < pure / math.sqrt(2) * 1.03
    assert found[1] > 0.99 * found[0]  # n delta is small
    assert found[-1] < 0.05 * found[0]
    for n, d, epsilon in GRID[::4]:
        assert 0 <= lower_bound(n, d, epsilon, 1e-6) <= lower_bound(n, d, epsilon)
    # Where all is told by a few users nothing is left
    assert lower_bound(10**9, 16, 1.0, 0.5) < 1e-5


@pytest.mark.slow
def test_the_lower_bound_with_delta_is_what_fanos_inequality_says():
    n, d, epsilon, delta = 3000, 500, 1.0, 1e-4
    value = max(
        t / 2 * (1 - (n * information_bound(d, epsilon, delta, t) + math.log(2)) / math.log(d))
        for t in np.geomspace(1e-4, 1, 1501).tolist()
    )
    assert lower_bound(n, d, epsilon, delta) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan, True, None, "0.1"])
def test_wrong_probabilities(wrong):
    for name, call in (
        ("delta", lambda: lower_bound(10, 16, 1.0, wrong)),
        ("delta", lambda: information_bound(16, 1.0, wrong)),
        ("kept", lambda: information_bound(16, 1.0, 0.1, wrong)),
        ("delta", lambda: degraded(1.0, wrong, 0.5)),
        ("kept", lambda: degraded(1.0, 0.1, wrong)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be"):
            call()
    with pytest.raises(ValueError, match="delta"):
        lower_bound(10, 16, 1.0, 1)
    for call in (lambda: degraded(0, 0.1, 0.5), lambda: information_bound(16, 0)):
        with pytest.raises(ValueError, match="epsilon"):
            call()
