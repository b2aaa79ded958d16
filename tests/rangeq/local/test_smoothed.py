"""shaped: estimates are distributions, collections lose little to unbiased ones, errors and
intervals are as good as stated.

False alarms: at most 1e-6 for each statistical test, which are seeded and reject a planted error.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import cvxpy
import numpy as np
import pytest
from scipy import stats

from frequency import (
    Aggregate,
    IncompatibleAggregate,
    InvalidReport,
    InvalidValue,
    Numeric,
    Schema,
    Survey,
)
from frequency.exceptions import InvalidQuestion
from rangeq import (
    Between,
    CircularHistogram,
    Distribution,
    HaarHRR,
    NotConverged,
    RangeEstimate,
    RangeProtocol,
    Shaped,
    ShapedEstimate,
    optimise,
    shaped,
)
from rangeq.core.estimate import InvalidRange
from rangeq.core.tree import WORKLOADS
from rangeq.local import circle_smoothing
from rangeq.local.circle_smoothing import Smoothing
from rangeq.local.circular import round_up
from rangeq.local.optimisation import CircleLevels, least_shares
from rangeq.local.smoothed import _guarded, _smooth, _tilted, _unshaped
from tests.general_solver import solve
from tests.goodness_of_fit import FALSE_ALARM

DOMAINS = (1, 2, 3, 4, 5, 7, 13, 65, 100, 1000)
domains = pytest.mark.parametrize("domain", DOMAINS)


def densities(kind: str, domain: int) -> np.ndarray:
    """Of populations by name; the last four are rough."""
    x = (np.arange(domain) + 0.5) / domain
    rng = np.random.default_rng(7)
    values = {
        "cauchy": lambda: 1 / (1 + ((x - 0.4) / 0.1) ** 2),
        "normal": lambda: np.exp(-(((x - 0.5) * 8) ** 2) / 2),
        "laplace": lambda: np.exp(-np.abs(x - 0.5) * 12),
        "exponential": lambda: np.exp(-10 * x),
        "step": lambda: 0.3 + 2.8 * ((x >= 0.2) & (x < 0.45)),
        "constant": lambda: np.arange(domain) == domain // 3,
        "edge": lambda: np.arange(domain) == domain - 1,
        "even": lambda: np.ones(domain),
        "geometric": lambda: 0.9 ** np.arange(domain),
        "inflated": lambda: np.where(
            np.arange(domain) == 0, 0.3, 0.7 * np.exp(-(((x - 0.5) * 8) ** 2) / 2) * 3.2 / domain
        ),
        "spikes": lambda: (
            0.3 / domain
            + np.bincount(rng.integers(0, domain, 10), rng.dirichlet(np.ones(10)) * 0.7, domain)
        ),
        "white": lambda: rng.random(domain) ** 4,
        "zipf": lambda: 1 / np.arange(1, domain + 1),
        "alternating": lambda: 0.01 + np.arange(domain) % 2,
    }[kind]().astype(float)
    return values / values.sum()


def mean_square(frequencies: np.ndarray, held: np.ndarray) -> float:
    """Over all ranges a < b, from the errors of prefixes."""
    errors, domain = np.concatenate([[0.0], np.cumsum(frequencies - held / held.sum())]), len(held)
    squares = (domain + 1) * (errors**2).sum() - errors.sum() ** 2 - (np.diff(errors) ** 2).sum()
    return float(squares / (domain * (domain - 1) / 2))


def test_mean_squares_are_those_of_all_ranges_one_by_one() -> None:
    rng = np.random.default_rng(0)
    held, other = rng.integers(1, 9, 7), rng.dirichlet(np.ones(7))
    d = other - held / held.sum()
    expected = np.mean([d[a : b + 1].sum() ** 2 for a in range(7) for b in range(a + 1, 7)])
    assert mean_square(other, held) == pytest.approx(expected)


def ends_of(domain: int, rng: np.random.Generator | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All ranges of a small domain, 2000 of a large one."""
    if domain <= 65:
        return np.triu_indices(domain)
    return tuple(np.sort((rng or np.random.default_rng(0)).integers(0, domain, (2, 2000)), axis=0))


def check_distribution(estimate: ShapedEstimate, domain: int) -> None:
    """What every estimate from some reports promises."""
    assert isinstance(estimate, Distribution)
    f = estimate.frequencies
    assert f.shape == (domain,)
    assert (f >= 0).all()
    assert f.sum() == pytest.approx(1, abs=1e-11)
    first, last = ends_of(domain)
    found, variance = estimate.range(first, last), estimate.answer(Between(first, last)).variance
    assert (variance >= 0).all()
    whole = last - first + 1 == domain
    assert (variance[whole] == 0).all()
    for confidence in (0.5, 0.95):
        low, high = estimate.answer(Between(first, last)).interval(confidence)
        assert low.min() >= 0
        assert high.max() <= 1
        assert (low <= high).all()
        assert (low - 1e-12 <= found).all()
        assert (found <= high + 1e-12).all()
    assert estimate.answer(Between(0, domain - 1)).variance == 0
    assert type(estimate.answer(Between(0, domain - 1)).variance) is float
    phi = np.linspace(0, 1, 101)
    quantiles = estimate.quantile(phi)
    assert (np.diff(quantiles) >= 0).all()
    early, late = estimate.quantile_interval(phi)
    assert (np.diff(early) >= 0).all()
    assert (np.diff(late) >= 0).all()
    assert (early <= quantiles).all()
    assert (quantiles <= late).all()
    assert 0 <= early.min() <= late.max() < domain


# --------------------------------------------------------------------------------------- any data


@domains
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
def test_estimates_are_distributions(domain: int, epsilon: float) -> None:
    n = 3000
    protocol = shaped(domain, epsilon, n)
    for seed, kind in enumerate(("zipf", "constant", "edge", "even", "alternating")):
        rng = np.random.default_rng(seed)
        values = rng.choice(domain, n, p=densities(kind, domain))
        aggregate = protocol.aggregate(protocol.privatize(values, rng))
        estimate = protocol.estimate(aggregate)
        check_distribution(estimate, domain)
        assert estimate.n == n
        assert isinstance(estimate.unbiased, RangeEstimate)
        assert np.isfinite(estimate.answer(Between(*ends_of(domain))).variance).all()
    assert repr(estimate) == f"<ShapedEstimate of {domain} items from 3000 reports>"


@domains
@pytest.mark.parametrize("users", [1, 2, 5])
def test_few_users(domain: int, users: int) -> None:
    """Most levels are not asked: what only they would tell is guessed."""
    protocol = shaped(domain, 1.0, users)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        check_distribution(
            protocol.estimate(protocol.aggregate(protocol.privatize([domain - 1] * users, rng))),
            domain,
        )


@domains
def test_no_users(domain: int) -> None:
    protocol = shaped(domain, 1.0, 100)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize([])))
    assert estimate.n == 0
    assert np.isnan(estimate.frequencies).all()
    assert np.isnan(estimate.range(0, domain - 1))
    first, last = ends_of(domain)
    assert np.isinf(estimate.answer(Between(first, last)).variance).all()
    low, high = estimate.answer(Between(first, last)).interval()
    assert (low == 0).all()
    assert (high == 1).all()
    assert estimate.quantile_interval(0.5) == (0, domain - 1)
    with pytest.raises(ValueError, match="no reports"):
        estimate.quantile(0.5)


@pytest.mark.parametrize("domain", [1, 2, 3])
def test_domains_with_nothing_to_smooth(domain: int) -> None:
    protocol = shaped(domain, 1.0, 1000)
    assert protocol.collection == CircularHistogram(domain, 1.0)
    estimate = protocol.estimate(protocol.simulate(np.full(domain, 300), np.random.default_rng(0)))
    first, last = ends_of(domain)
    np.testing.assert_array_equal(
        estimate.answer(Between(first, last)).variance,
        estimate.unbiased.answer(Between(first, last)).variance,
    )


def test_scalars_arrays_and_what_is_not_a_range() -> None:
    protocol = shaped(20, 1.0, 1000)
    estimate = protocol.estimate(protocol.simulate(np.arange(20) * 5, np.random.default_rng(0)))
    assert type(estimate.answer(Between(3, 8)).variance) is float
    assert estimate.answer(Between([[0], [1]], [5, 6, 7])).variance.shape == (2, 3)
    assert estimate.answer(Between([0, 1], 5)).interval().low.shape == (2,)
    assert estimate.answer(Between(1, 19)).variance > 0
    assert estimate.answer(Between([0, 1], [5, 19])).variance[1] == pytest.approx(
        estimate.answer(Between(1, 19)).variance
    )
    half = math.sqrt(estimate.answer(Between(5, 12)).variance) * stats.norm.ppf(0.95)
    value = estimate.range(5, 12)
    low, high = estimate.answer(Between(5, 12)).interval(0.9, on_average=True)
    assert (low, high) == pytest.approx((max(value - half, 0), min(value + half, 1)))
    # By the reports alone, but for the value, which is never outside
    low, high = estimate.answer(Between(5, 12)).interval(0.9)
    first, last = estimate.unbiased.answer(Between(5, 12)).interval(0.9)
    assert (low, high) == pytest.approx((max(min(first, value), 0), min(max(last, value), 1)))
    for bad in ((-1, 2), (0, 20), (3, 2), (0.0, 2), (True, 2), ([0, 3], [1, 2])):
        with pytest.raises(InvalidRange):
            estimate.range(*bad)
        with pytest.raises(InvalidQuestion):
            estimate.answer(Between(*bad))
    for confidence in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            estimate.answer(Between(0, 3)).interval(confidence)
    with pytest.raises(ValueError, match="phi"):
        estimate.quantile_interval(1.1)


def test_quantile_intervals_are_crossings_of_the_band() -> None:
    """Item by item."""
    protocol = shaped(40, 1.0, 2000)
    held = np.random.default_rng(1).multinomial(2000, densities("normal", 40))
    estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(2)))
    for phi in (0.0, 0.1, 0.5, 0.77, 1.0):
        bands = [estimate.answer(Between(0, item)).interval(0.8) for item in range(40)]
        early = next(item for item, band in enumerate(bands) if band.high >= phi - 1e-12)
        late = next(
            (item for item in range(40) if min(b.low for b in bands[item:]) >= phi - 1e-12),
            39,
        )
        assert estimate.quantile_interval(phi, 0.8) == (early, late)


# --------------------------------------------------------------------------------------- protocol


def test_reports_and_aggregates_are_those_of_the_collection() -> None:
    protocol = shaped(100, 1.0, 5000)
    circle = protocol.collection
    assert isinstance(protocol, Shaped)
    assert protocol.domain == 100
    assert protocol.channel is circle.channel
    assert protocol.parameters == circle.parameters
    assert protocol.report_bits == circle.report_bits
    assert protocol.report_dtype == circle.report_dtype
    assert protocol.audit() == circle.audit()
    assert protocol.audit().holds
    values = np.random.default_rng(0).integers(0, 100, 300)
    reports = protocol.privatize(values, np.random.default_rng(1))
    np.testing.assert_array_equal(reports, circle.privatize(values, np.random.default_rng(1)))
    np.testing.assert_array_equal(
        protocol.reports_from_bytes(protocol.reports_to_bytes(reports)), reports
    )
    aggregate = protocol.aggregate(reports)
    assert aggregate == circle.aggregate(reports)
    assert protocol.aggregate_from_bytes(aggregate.to_bytes()) == aggregate
    held = np.bincount(values, minlength=100)
    assert protocol.simulate(held, np.random.default_rng(2)) == circle.simulate(
        held, np.random.default_rng(2)
    )
    np.testing.assert_array_equal(
        protocol.estimate(aggregate).unbiased.frequencies, circle.estimate(aggregate).frequencies
    )
    assert shaped(100, 1.0, 5000) == protocol
    assert shaped(100, Fraction(1), np.int64(5000)).parameters == protocol.parameters


def test_batches_merge() -> None:
    protocol = shaped(65, 1.0, 3000)
    rng = np.random.default_rng(3)
    reports = protocol.privatize(rng.binomial(64, 0.3, 3000), rng)
    whole = protocol.estimate(protocol.aggregate(reports))
    parts = [protocol.aggregate(part) for part in np.array_split(reports, 7)]
    merged = protocol.estimate(sum(parts[::-1]))
    assert merged.n == 3000
    np.testing.assert_array_equal(merged.frequencies, whole.frequencies)
    np.testing.assert_array_equal(
        merged.answer(Between(*ends_of(65))).variance,
        whole.answer(Between(*ends_of(65))).variance,
    )


@pytest.mark.slow
def test_foreign_and_damaged_aggregates_are_refused() -> None:
    protocol = shaped(30, 1.0, 1000)
    good = protocol.simulate(np.full(30, 10), np.random.default_rng(0))
    others: list[RangeProtocol] = [
        shaped(30, 1.1, 1000),
        shaped(31, 1.0, 1000),
        shaped(30, 1.0, 10**9),
        HaarHRR(30, 1.0),
    ]
    for other in others:
        with pytest.raises(IncompatibleAggregate):
            protocol.estimate(
                other.simulate(np.ones(other.domain, dtype=np.int64), np.random.default_rng(0))
            )
    for counts in (
        -good.counts,
        good.counts[:-1],
        good.counts.reshape(1, -1),
        good.counts + 1,
        good.counts * 2,
    ):
        with pytest.raises(IncompatibleAggregate):
            protocol.estimate(Aggregate(good.parameters, good.n, counts))
    with pytest.raises(IncompatibleAggregate):
        protocol.aggregate_from_bytes(good.to_bytes()[:-1])
    with pytest.raises(InvalidValue):
        protocol.privatize([0, 30])
    reports = protocol.privatize([0, 1, 2], np.random.default_rng(1))
    reports["level"][1] = 255
    with pytest.raises(InvalidReport):
        protocol.aggregate(reports)
    tally: Counter[str] = Counter()
    assert protocol.aggregate(reports, tally).n == 2
    assert tally == {"impossible": 1}


@pytest.mark.parametrize("domain", [4, 9, 64])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
def test_possible_reports_that_no_population_sends_give_distributions(
    domain: int, epsilon: float
) -> None:
    """A thousand copies of one user's report, for some users of every level."""
    protocol = shaped(domain, epsilon, 1000)
    reports = protocol.privatize(np.zeros(60, dtype=int), np.random.default_rng(0))
    for level in np.unique(reports["level"]):
        some = reports[reports["level"] == level][:3]
        for one in (some[:1], some):
            check_distribution(protocol.estimate(protocol.aggregate(np.repeat(one, 1000))), domain)


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "10", None, math.nan])
def test_bad_numbers_of_users(n) -> None:
    with pytest.raises(ValueError, match="n must be a number of users"):
        shaped(16, 1.0, n)


@pytest.mark.parametrize("apart", [-1, 16, True, 1.0, "1", None])
def test_bad_items_apart(apart) -> None:
    protocol = shaped(16, 1.0, 1000)
    with pytest.raises(ValueError, match="apart must be some of the items, not all, 0 to 15"):
        protocol.estimate(protocol.simulate(np.full(16, 60)), apart)


@pytest.mark.parametrize("apart", [1, 3, 4])
def test_all_but_few_items_apart(apart: int) -> None:
    """Hardly any noise: the answers are those of the users."""
    protocol, held = shaped(5, 8.0, 1000), np.array([10, 20, 30, 0, 40]) * 1000
    estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(1)), apart)
    check_distribution(estimate, 5)
    np.testing.assert_allclose(estimate.frequencies, held / held.sum(), atol=0.01)


@pytest.mark.parametrize("bins", [1, 2, 3, 40])
def test_a_survey_knows_which_items_are_apart(bins: int) -> None:
    age = Numeric("age", low=0, high=bins, bins=bins, missing="item", outside="item")
    protocol = shaped(age.size, 1.0, 1000)
    survey = Survey(protocol, Schema([age]))
    rng = np.random.default_rng(3)
    values = [*rng.uniform(0, bins, 800), *[None] * 150, *[-5] * 50]
    aggregate = survey.aggregate(survey.privatize({"age": values}, rng))
    found = survey.estimate(aggregate)
    inner = survey.channel.inner_aggregate(aggregate)
    assert found.answer("missing").value == protocol.estimate(inner, 2).answer(age.size - 1).value
    if bins == 40:
        other = protocol.estimate(inner).answer(age.size - 1)
        assert found.answer("missing").value != other.value


@pytest.mark.parametrize("domain", [0, -1, True, 2.0, "16", None, (1 << 24) + 1])
def test_bad_domains(domain) -> None:
    with pytest.raises(ValueError, match="domain"):
        shaped(domain, 1.0, 1000)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, 2.0**-33, True, "much", None])
def test_bad_epsilons(epsilon) -> None:
    """Also where a design of the same domain is there already."""
    shaped(16, 1.0, 1000)
    with pytest.raises((ValueError, TypeError)):
        shaped(16, epsilon, 1000)


# ----------------------------------------------------------------------------------------- design


DESIGNS = [
    (16, 0.6, 1000),
    (65, 1.0, 10**5),
    (100, 0.2, 10**6),
    (256, 1.4, 10**6),
    (1000, 0.6, 10**5),
    (1024, 1.1, 10**6),
]


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "epsilon", "n"), [*DESIGNS, (4096, 0.6, 10**6)])
def test_unshaped_errors_are_at_most_1_7_times_the_least(
    domain: int, epsilon: float, n: int
) -> None:
    """Of what unbiased estimates err on that padded circle: by one part in thirty more, as levels
    with next to no users are left out, and padding is told apart. And a collection for many users
    is the best.
    """
    collection = shaped(domain, epsilon, n).collection
    levels = CircleLevels.of(domain, epsilon, collection.size, "ranges")
    best = levels.histogram(least_shares(levels.costs, levels.gains))

    def square(protocol: CircularHistogram, users: int) -> float:
        return protocol.average_rmse(users) ** 2 * users

    assert square(best, n) <= square(collection, n) < 1.7 * 1.033 * square(best, n)
    many = shaped(domain, epsilon, 10**12).collection
    levels = CircleLevels.of(domain, epsilon, many.size, "ranges")
    best = levels.histogram(least_shares(levels.costs, levels.gains))
    assert square(best, n) <= square(many, n) * (1 + 1e-4) < 1.04 * square(best, n)


@pytest.mark.slow
def test_the_more_users_the_less_the_collection_is_tilted() -> None:
    n = 10 ** np.arange(3, 13)
    errors = [shaped(256, 1.4, int(k)).collection.average_rmse(int(k)) ** 2 * float(k) for k in n]
    assert (np.diff(errors) < 0.01 * errors[-1]).all()
    assert errors[0] > 1.5 * errors[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "epsilon", "n"), DESIGNS[:4])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_circles_are_padded_by_a_tenth_to_a_fifth_and_users_report_on_their_levels(
    domain: int, epsilon: float, n: int, workload: str
) -> None:
    """The precisions that shares were chosen by are those of the collection made."""
    collection = shaped(domain, epsilon, n, workload).collection
    size = collection.size
    assert -(-11 * domain // 10) <= size <= round_up(-(-6 * domain // 5))
    levels = CircleLevels.of(domain, epsilon, size, workload)
    shares = np.array(collection.part_weights) / 2**64
    kept = np.isin(levels.blocks, collection.blocks)
    told = n * levels.gains[:, kept] @ shares
    np.testing.assert_allclose(
        told, collection.information(n * shares)[levels.frequencies], rtol=1e-9
    )
    unbiased = least_shares(levels.costs, n * levels.gains)
    for circle in range(-(-11 * domain // 10), size):  # none with less padding costs less
        if circle == round_up(circle):
            other = CircleLevels.of(domain, epsilon, circle, workload)
            cost = _unshaped(other, n, least_shares(other.costs, n * other.gains))
            assert cost >= _unshaped(levels, n, unbiased)
    chosen = _tilted(levels, n, unbiased)
    assert chosen.sum() == pytest.approx(1)
    np.testing.assert_allclose(chosen[kept] / chosen[kept].sum(), shares, atol=1e-9)


@pytest.mark.parametrize(("domain", "guard"), [(12, 0.01), (12, 1.0), (30, 0.1), (64, 3.0)])
def test_guarded_shares_are_those_of_a_general_solver(domain: int, guard: float) -> None:
    levels, n = CircleLevels.of(domain, 1.0, domain, "ranges"), 10**4
    costs, gains, prior = levels.costs, n * levels.gains, _smooth(levels)
    found = _guarded(levels, n, prior, guard, least_shares(costs, gains))
    # With J the precision and d what drawing the users adds, v = 1 / J - d, and v / (1 + v p) is
    # 1 / (a^2 (J + p / a)) - d / a, a = 1 - d p: convex where a > 0, and next to nothing elsewhere.
    drawing = 1 / (domain * n)
    left = 1 - drawing * prior
    shares = cvxpy.Variable(gains.shape[1], nonneg=True)
    unit = float(prior.min())
    own = (gains / unit) @ shares

    def value(p: np.ndarray) -> float:
        noise = 1 / (gains @ p) - drawing
        return float((costs * (noise / (1 + noise * prior) + guard * noise)).sum())

    convex = left > 0
    total = (costs / left**2)[convex] @ cvxpy.inv_pos((own + prior / left / unit)[convex])
    problem = cvxpy.Problem(
        cvxpy.Minimize(total + guard * costs @ cvxpy.inv_pos(own)), [cvxpy.sum(shares) == 1]
    )
    solve(problem)
    best = value(np.maximum(shares.value, 0) / np.maximum(shares.value, 0).sum())
    assert found.sum() == pytest.approx(1)
    assert value(found) == pytest.approx(best, rel=1e-3)
    # Planted: all levels alike
    assert value(np.full(len(found), 1 / len(found))) > best * (1 + 2e-3)


# ---------------------------------------------------------------------------- errors and coverage


def repeated(kind: str, domain: int, epsilon: float, n: int, repeats: int) -> np.ndarray:
    """Mean squares of shaped and of the same reports unshaped, and coverage by intervals and by
    ones a third as wide.
    """
    protocol, rows = shaped(domain, epsilon, n), []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        held = rng.multinomial(n, densities(kind, domain))
        estimate = protocol.estimate(protocol.simulate(held, rng))
        first, last = np.sort(rng.integers(0, domain, (2, 1000)), axis=0)
        sums = np.concatenate([[0.0], np.cumsum(held) / n])
        truth = sums[last + 1] - sums[first]
        middle, (low, high) = (
            estimate.range(first, last),
            estimate.answer(Between(first, last)).interval(),
        )
        wide = np.mean((low - 1e-9 <= truth) & (truth <= high + 1e-9))
        narrow = np.mean(
            np.abs(truth - middle)
            <= np.sqrt(estimate.answer(Between(first, last)).variance) * 1.96 / 3 + 1e-9
        )
        rows.append(
            [
                mean_square(estimate.frequencies, held),
                mean_square(estimate.unbiased.frequencies, held),
                wide,
                narrow,
            ]
        )
    return np.array(rows)


def above(values: np.ndarray, limit: float) -> bool:
    """Whether their mean is above, but for a false alarm in a million."""
    quantile = stats.t.isf(FALSE_ALARM, len(values) - 1)
    return bool(values.mean() - limit > quantile * values.std(ddof=1) / math.sqrt(len(values)))


def least(domain: int, epsilon: float, n: int) -> float:
    """The mean square of the best unbiased circle."""
    found = optimise(domain, epsilon, n).alternatives
    return min(error for protocol, error in found if isinstance(protocol, CircularHistogram)) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["spikes", "white", "zipf"])
@pytest.mark.parametrize(("domain", "epsilon", "n"), [(256, 1.4, 10**5), (64, 0.6, 20_000)])
def test_rough_data_lose_nothing(kind: str, domain: int, epsilon: float, n: int) -> None:
    found, limit = repeated(kind, domain, epsilon, n, 40), least(domain, epsilon, n)
    assert not above(found[:, 0], limit)
    assert found[:, 0].mean() < limit
    assert above(found[:, 1], limit)  # planted: the same reports unshaped


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant", "even", "alternating", "zipf", "white"])
@pytest.mark.parametrize(("domain", "epsilon"), [(8, 5.0), (16, 8.0), (64, 20.0)])
def test_a_large_epsilon_loses_nothing(kind: str, domain: int, epsilon: float) -> None:
    """Where reports tell nearly all, estimates are nearly exact: of these users, whatever others
    might have been drawn.
    """
    n = 20_000
    found = repeated(kind, domain, epsilon, n, 40)[:, 0]
    # A millionth of the variance from drawing users is nothing
    limit = max(1.2 * least(domain, epsilon, n), 1e-6 / n)
    assert not above(found, limit)
    # Planted: what drawing the users would add is left in the noise, and taken for it
    if kind == "even" and domain == 64:
        protocol, errors = shaped(domain, epsilon, n), []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            held = rng.multinomial(n, densities(kind, domain))
            told = protocol.collection.transform(protocol.simulate(held, rng))
            errors.append(
                mean_square(
                    Smoothing(*told, protocol.collection.size, domain).distribution().distribution,
                    held,
                )
            )
        assert above(np.array(errors), limit)


@pytest.mark.slow
def test_an_estimate_that_has_not_converged_says_so(monkeypatch) -> None:
    protocol = shaped(64, 1.0, 10_000)
    aggregate = protocol.simulate(np.bincount([3], minlength=64) * 10_000, np.random.default_rng(1))
    assert protocol.estimate(aggregate).converged
    for module, names in (
        (circle_smoothing, ("_TURNS",)),
        (circle_smoothing, ("_STEPS", "_BRIEFLY")),
    ):
        with monkeypatch.context() as patched:
            for name in names:
                patched.setattr(module, name, 1)
            with pytest.warns(NotConverged, match="has not converged"):
                estimate = protocol.estimate(aggregate)
        assert not estimate.converged
        assert estimate.frequencies.min() >= 0
        assert estimate.frequencies.sum() == pytest.approx(1)


@pytest.mark.parametrize("workload", ["quantiles", None, 3])
def test_unknown_workloads(workload) -> None:
    with pytest.raises(ValueError, match="workload must be one of ranges"):
        shaped(16, 1.0, 1000, workload)


@pytest.mark.slow
def test_the_noise_is_that_of_reports_of_these_users() -> None:
    """The variances that the model takes for the noise of frequencies are those of repeated
    reports, as if the padding had as much as the domain.
    """
    domain, epsilon, n = 16, 3.0, 1600
    protocol, held = shaped(domain, epsilon, n), np.full(domain, n // domain)
    even = np.fft.rfft(np.pad(held / n, (0, protocol.collection.size - domain)))
    ratios, planted = [], []
    for seed in range(200):
        aggregate = protocol.simulate(held, np.random.default_rng(seed))
        y, information = protocol.collection.transform(aggregate)
        smoothing = protocol.estimate(aggregate)._smoothing
        assert smoothing is not None
        noise = smoothing._noise
        power = np.abs(y - even)[1:] ** 2 / protocol.collection.size
        ratios.append(np.mean(power / noise))
        planted.append(np.mean(power * information[1:]))
    assert not above(np.array(ratios), 1.0)
    least = domain / protocol.collection.size  # the padding has hardly any noise
    assert not above(-np.array(ratios), -least)
    assert above(-np.array(planted), -least)  # with the variance from drawing users as well


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["cauchy", "normal", "laplace", "exponential", "step", "spikes", "even"]
)
def test_intervals_cover_on_average(kind: str) -> None:
    found = repeated(kind, 256, 1.0, 50_000, 30)
    assert not above(-found[:, 2], -0.93)
    assert found[:, 2].mean() >= 0.93
    if kind not in ("even", "normal"):  # whose intervals are much wider than needed
        assert above(-found[:, 3], -0.93)  # planted: a third as wide


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zipf", "geometric", "inflated"])
def test_prefixes_of_data_heaped_at_an_end(kind: str) -> None:
    """What is held next to an end is not smeared across it to the other end, where all prefixes
    would miss it.
    """
    domain, epsilon, n = 512, 1.1, 10**5
    protocol, ours, covered, circular = shaped(domain, epsilon, n), [], [], []
    last = np.arange(domain - 1)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        held = rng.multinomial(n, densities(kind, domain))
        estimate, truth = protocol.estimate(protocol.simulate(held, rng)), np.cumsum(held)[:-1] / n
        low, high = estimate.answer(Between(np.zeros_like(last), last)).interval()
        ours.append(np.mean((estimate.prefix(last) - truth) ** 2))
        covered.append(np.mean((low - 1e-9 <= truth) & (truth <= high + 1e-9)))
        # Planted: smoothed around the circle, a tenth of what is within 16 items of the end 0 lies
        # beyond it.
        circular.append(np.mean((estimate.prefix(last) - held[:16].sum() / n / 10 - truth) ** 2))
    best = min(
        p.average_rmse(n, "prefixes")
        for p, _ in optimise(domain, epsilon, n).alternatives
        if isinstance(p, CircularHistogram)
    )
    assert not above(np.array(ours), best**2)
    assert np.mean(ours) < best**2
    assert np.mean(covered) >= 0.93
    assert above(np.array(circular), best**2)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "limit"), [(0.6, 3.5e-5), (1.1, 1.3e-5)])
def test_published_errors_on_cauchy_data(epsilon: float, limit: float) -> None:
    """256 items and a million users. Six deviations below the limit, the mean of these is above it
    less often than 1e-6.
    """
    found = repeated("cauchy", 256, epsilon, 10**6, 16)
    assert found[:, 0].mean() < limit
    assert above(found[:, 1], limit)  # planted: the same reports unshaped


def with_missing(rng: np.random.Generator, apart: int) -> float:
    """The error of the last item, of users without a value, beside a tail with hardly anybody.

    In standard errors. Their share is 5 standard errors of an unbiased estimate.
    """
    x = np.arange(66)
    delays = np.where(x < 5, 0.01 * x, 0.2 * 0.8 ** (x - 5.0))
    held = np.append(330_000 * delays / delays.sum(), 8_250).astype(np.int64)
    protocol = shaped(67, 1, int(held.sum()))
    answer = protocol.estimate(protocol.simulate(held, rng), apart).answer(66)
    return float((answer.value - held[66] / held.sum()) / answer.variance**0.5)


@pytest.mark.slow
def test_items_apart_are_not_smoothed() -> None:
    """The mean of 60 squares of standard normals is in these limits but for 10^-6 a side."""
    errors = [with_missing(np.random.default_rng(seed), 1) for seed in range(60)]
    assert 0.36 < np.mean(np.square(errors)) < 2.05
    taken = [with_missing(np.random.default_rng(seed), 0) for seed in range(60)]
    assert np.mean(np.square(taken)) > 2.05  # planted: it is taken for a neighbour


@pytest.mark.parametrize(("spike", "users", "epsilon"), [(0.05, 20_000, 1.0), (0.1, 20_000, 0.5)])
def test_intervals_hold_where_people_look(spike, users, epsilon) -> None:
    """At a spike on even data, which the model takes for noise."""
    share = np.full(64, (1 - spike) / 64)
    share[20] += spike
    protocol, held = shaped(64, epsilon, users), np.zeros((40, 2))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(users, share)
        answer = protocol.estimate(protocol.simulate(counts, rng)).answer(Between(20, 20))
        for place, on_average in enumerate((False, True)):
            low, high = answer.interval(on_average=on_average)
            held[seed, place] = low <= counts[20] / users <= high
    assert stats.binom.cdf(held[:, 0].sum(), 40, 0.93) > FALSE_ALARM
    assert held[:, 1].mean() < 0.5
