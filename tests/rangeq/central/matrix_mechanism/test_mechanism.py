"""The noise of a strategy, its audit, and what a release answers."""

import math
from fractions import Fraction

import numpy as np
import pytest

from frequency import Between
from mechdesign import ZCDP, ApproximateDP, Ledger, Privacy
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.exceptions import PrivacyViolation
from mechdesign.noise.discrete import DiscreteGaussian, DiscreteLaplace
from mechdesign.noise.staircase import GroupedNoise
from rangeq.central import InvalidHistogram, InvalidWorkload
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.design import workload_optimal
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism
from rangeq.central.matrix_mechanism.strategy import LARGEST_USERS, UnanswerableQuery
from tests.rangeq.central.matrix_mechanism.strategies import EXAMPLES, dense_of

PROMISES = [Privacy(alpha="9/10"), Privacy.from_epsilon(1.0), ZCDP("1/2"), ZCDP("1e-4"), ZCDP(2)]

FINE = DenseStrategy(2**18 * np.array([[1, 1, 1], [0, 2, 1], [1, 0, 0]]))


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
@pytest.mark.parametrize("strategy", [pytest.param(s, id=n) for n, s in EXAMPLES.items()])
def test_noise_keeps_the_promise_by_the_columns_themselves(promise, strategy):
    if strategy.noise is not None:
        if not isinstance(promise, Privacy):
            with pytest.raises(ValueError, match="keeps no other promise"):
                MatrixMechanism(strategy, promise)
            return
        mechanism = MatrixMechanism(strategy, promise)
        assert isinstance(mechanism.noise, GroupedNoise)
        matrix, alphas = dense_of(strategy), mechanism.noise.alphas
        groups = np.repeat(np.arange(len(alphas)), [law.numbers for law in mechanism.noise.laws])
        for column in matrix.T:
            moved = [int(np.abs(column[groups == k]).sum()) for k in range(len(alphas))]
            ratio = math.prod((1 / a) ** d for a, d in zip(alphas, moved, strict=True))
            assert ratio <= mechanism.audit().noise <= 1 / promise.alpha
        assert mechanism.audit().noise > (1 / promise.alpha) ** (1 - Fraction(1, 1000))
        return
    mechanism = MatrixMechanism(strategy, promise)
    assert mechanism.audit().holds
    columns = dense_of(strategy).T.tolist()
    if isinstance(mechanism.noise, DiscreteLaplace):
        for column in columns:
            ratio = (1 / mechanism.noise.alpha) ** sum(map(abs, column))
            assert ratio <= 1 / promise.alpha
            assert ratio <= mechanism.audit().noise
        assert mechanism.audit().noise > (1 / promise.alpha) ** (1 - Fraction(1, 1000))
    else:
        assert isinstance(mechanism.noise, DiscreteGaussian)
        worst = max(sum(x * x for x in column) for column in columns)
        assert worst / mechanism.noise.sigma2 == mechanism.audit().noise <= 2 * promise.rho


def test_a_mechanism_whose_noise_is_too_small_releases_nothing():
    for promise in (Privacy(alpha="9/10"), ZCDP("1/2")):
        mechanism = MatrixMechanism(FINE, promise)
        weaker = Privacy(alpha="1/2") if isinstance(promise, Privacy) else ZCDP(1)
        mechanism.noise = MatrixMechanism(FINE, weaker).noise  # a planted error
        assert not mechanism.audit().holds
        with pytest.raises(PrivacyViolation):
            mechanism.release([1, 2, 3])


@pytest.mark.slow
@pytest.mark.parametrize("promise", [Privacy(alpha="1/3"), ZCDP("1/8"), ApproximateDP("1", "1e-6")])
def test_answers_have_the_variances_that_are_stated(promise):
    """Chebyshev-free: the mean square of 4000 errors over its mean is within 7 deviations."""
    mechanism, rng = MatrixMechanism(FINE, promise), np.random.default_rng(11)
    truth = np.array([5, 100, 0])
    runs = 4000
    estimates = [mechanism.release(truth, rng) for _ in range(runs)]
    for first, last in [(0, 0), (1, 2), (0, 2)]:
        errors = np.array([e.range(first, last) for e in estimates]) - truth[first : last + 1].sum()
        stated = mechanism.variance(Between(first, last))
        assert estimates[0].answer(Between(first, last)).variance == pytest.approx(stated)
        kurtosis = 6 if isinstance(promise, Privacy) else 3
        assert abs((errors**2).mean() / stated - 1) < 7 * math.sqrt((kurtosis - 1) / runs)
        assert abs(errors.mean()) < 7 * math.sqrt(stated / runs)
        assert abs((errors**2).mean() / (1.3 * stated) - 1) > 0.15  # another variance is found


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_intervals_cover(confidence):
    """5000 releases; within 6 deviations of what is said (above it for Laplace noise)."""
    rng = np.random.default_rng(12)
    deviation = math.sqrt(confidence * (1 - confidence) / 5000)
    for promise in (Privacy(alpha="1/3"), ZCDP("1/8")):
        mechanism = MatrixMechanism(FINE, promise)
        releases = (mechanism.release([5, 100, 0], rng) for _ in range(5000))
        intervals = (release.answer(Between(1, 2)).interval(confidence) for release in releases)
        rate = sum(bool(one.low <= 100 <= one.high) for one in intervals) / 5000
        assert rate > confidence - 6 * deviation
        if isinstance(promise, ZCDP):
            assert rate < confidence + 6 * deviation


@pytest.mark.slow
def test_what_a_ledger_is_asked_for():
    ledger = Ledger("3", "1e-6")
    for name, promise in [("pure", Privacy.from_epsilon(1.0)), ("both", ApproximateDP(1, "1e-6"))]:
        mechanism = workload_optimal("ranges", 8, promise).mechanism
        ledger.spend(mechanism.cost, name)
        assert 0.999 < Ledger("3", "1e-6").epsilon - ledger.left() < 2.0001
    loss = workload_optimal("ranges", 8, ZCDP("1/8")).mechanism.cost
    assert isinstance(loss, GaussianLoss)
    assert loss.rho <= Fraction(1, 8) < loss.rho * (1 + Fraction(1, 2**30))
    alone = workload_optimal("ranges", 8, ApproximateDP(1, "1e-6")).mechanism.cost
    assert isinstance(alone, GaussianLoss)
    assert 0.999 < alone.epsilon("1e-6") <= 1


def test_epsilon_and_delta_are_proved_on_a_fine_grid_only():
    coarse = EXAMPLES["dense"]
    with pytest.raises(ValueError, match="multiply their matrix"):
        MatrixMechanism(coarse, ApproximateDP(1, "1e-6"))
    with pytest.raises(ValueError, match="multiply their matrix"):
        MatrixMechanism(coarse, ZCDP(1)).cost  # noqa: B018
    fine = MatrixMechanism(FINE, ApproximateDP(1, "1e-6"))
    assert fine.audit().holds


def test_linear_queries_of_any_weights():
    mechanism = MatrixMechanism(FINE, ZCDP("1/2"))
    estimate = mechanism.release([1, 2, 3], np.random.default_rng(0))
    one = estimate.linear([0.5, -1, 2])
    assert one.value == pytest.approx(np.array([0.5, -1, 2]) @ estimate.counts)
    many = estimate.linear([[0, 1, 1], [0.5, -1, 2]])
    assert many.value[1] == pytest.approx(one.value)
    assert many.variance[1] == pytest.approx(one.variance)
    assert many.variance[0] == pytest.approx(mechanism.variance(Between(1, 2)))
    assert many.interval(0.9).low[0] < many.value[0] < many.interval(0.9).high[0]
    for bad in ([1, 2], [[1, 2]], [1, math.nan, 2], 3):
        with pytest.raises(ValueError, match="linear queries are finite weights"):
            estimate.linear(bad)


def test_what_does_not_follow_is_refused():
    mechanism = MatrixMechanism(EXAMPLES["dense, dependent"], ZCDP(2))
    estimate = mechanism.release([1, 2, 3, 4])
    assert estimate.range(0, 1) == pytest.approx(3, abs=20)
    assert estimate.n == pytest.approx(10, abs=40)
    for asked in (
        lambda: estimate.range(0, 0),
        lambda: estimate.answer([0, 2]),
        lambda: estimate.counts,
        lambda: estimate.frequencies,
        lambda: estimate.interval(),
        lambda: estimate.linear([1, 0, 0, 0]),
        lambda: estimate.quantile(0.5),
        lambda: mechanism.workload_variance("ranges"),
    ):
        with pytest.raises(UnanswerableQuery, match="does not follow"):
            asked()


@pytest.mark.parametrize("strategy", [pytest.param(s, id=n) for n, s in EXAMPLES.items()])
@pytest.mark.parametrize("promise", [Privacy(alpha="1/2"), ZCDP(1)], ids=repr)
def test_what_is_drawn_is_the_numbers_with_noise(strategy, promise):
    if strategy.noise is not None and isinstance(promise, ZCDP):
        pytest.skip("its own noise keeps no such promise")
    mechanism = MatrixMechanism(strategy, promise)
    counts = np.random.default_rng(1).integers(0, 100, strategy.sizes)
    noisy = mechanism.noisy_numbers(counts, np.random.default_rng(7))
    assert noisy.dtype == np.int64
    assert noisy.shape == (strategy.rows,)
    noise = mechanism.noisy_numbers(0 * counts, np.random.default_rng(7))
    assert np.array_equal(noisy - noise, strategy.measure(counts))
    # The operating system's randomness: no two releases are the same
    draws = {tuple(mechanism.noisy_numbers(0 * counts).tolist()) for _ in range(40)}
    assert len(draws) > 1


@pytest.mark.parametrize("counts", [[1, 2], [1, 2, -1], [1.0, 2, 3], [LARGEST_USERS, 1, 0]])
def test_histograms_that_are_none_are_refused(counts):
    mechanism = MatrixMechanism(FINE, ZCDP(1))
    with pytest.raises(InvalidHistogram, match="nothing was drawn"):
        mechanism.release(counts)
    mechanism.release([LARGEST_USERS, 0, 0])


def test_promises_that_are_none_are_refused():
    for none in (1.0, "1/2", None):
        with pytest.raises(TypeError, match="a promise is"):
            MatrixMechanism(FINE, none)
    for promise in (
        Privacy(alpha=1),
        Privacy(alpha="1/2", neighbours="all"),
        Privacy(alpha="1/2", neighbours=3),
    ):
        with pytest.raises(ValueError, match="adjacent"):
            MatrixMechanism(FINE, promise)
    with pytest.raises(ValueError, match="noise would drown everything"):
        MatrixMechanism(FINE, Privacy.from_epsilon(2.0**-40))
    with pytest.raises(ValueError, match="noise would drown everything"):
        MatrixMechanism(FINE, ZCDP(2.0**-40))
    for tolerance in (0, -1, 1, math.nan):
        with pytest.raises(ValueError, match="tolerance must be"):
            workload_optimal("ranges", 8, ZCDP(1), tolerance)


@pytest.mark.parametrize(
    ("workload", "size"),
    [
        (np.diag([1, 1e-6, 1e-9, 1]), 4),
        ([(1e-13, "ranges"), (1, "total")], 64),
        ([[0.3, 0, 0], [0, 0.7, 0]], 3),
    ],
    ids=["cells", "ranges beside a total", "of two cells"],
)
def test_what_is_asked_with_little_weight_is_answered(workload, size):
    design = workload_optimal(workload, size, ZCDP("1/2"))
    assert design.continuous_gap < 0.001
    estimate = design.release(np.arange(size), np.random.default_rng(1))
    rows = np.tri(size)[:2] if isinstance(workload, list) and size > 3 else np.asarray(workload)
    assert np.isfinite(estimate.linear(rows).variance).all()


def _data(size, rng):
    spikes = np.zeros(size, dtype=np.int64)
    spikes[[size // 3, size - 1]] = 10**6
    single = np.zeros(size, dtype=np.int64)
    single[size // 2] = 1
    heaped = rng.poisson(5000 * np.exp(-(np.linspace(-2, 2, size) ** 2)))
    return {"none": 0 * single, "one user": single, "spikes": spikes, "heaped": heaped}


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 37, 64])
@pytest.mark.parametrize(
    "promise", [ZCDP(2), ZCDP("1e-3"), ApproximateDP(1, "1e-6"), Privacy.from_epsilon(0.5)], ids=str
)
def test_intervals_of_designs_cover_for_all_data(promise, size):
    """1500 releases; each rate within 6 deviations, so false alarms are below 1e-8 each.

    Intervals under Laplace noise, and under noise of few whole users, and Woodruff's, may cover
    more often.
    """
    rng, runs, level = np.random.default_rng(size), 1500, 0.9
    design = workload_optimal("ranges", size, promise)
    slack = 6 * math.sqrt(level * (1 - level) / runs)
    weights = rng.normal(size=size)
    for name, truth in _data(size, rng).items():
        hits = dict.fromkeys(("range", "prefix", "linear", "quantile"), 0)
        asked = {"range": (size // 4, size // 2), "prefix": (0, size - 1)}
        cumulative = truth.cumsum()
        for _ in range(runs):
            estimate = design.release(truth, rng)
            for kind, (first, last) in asked.items():
                interval = estimate.answer(Between(first, last)).interval(level)
                hits[kind] += interval.low <= truth[first : last + 1].sum() <= interval.high
            interval = estimate.linear(weights).interval(level)
            hits["linear"] += interval.low <= weights @ truth <= interval.high
            if name in ("spikes", "heaped") and estimate.n > 0:
                low, high = estimate.quantile_interval(0.5, level)
                median = int(np.searchsorted(cumulative, 0.5 * cumulative[-1]))
                hits["quantile"] += low <= median <= high
        for kind in ("range", "prefix", "linear"):
            assert hits[kind] / runs > level - slack, (name, kind)
            if design.mechanism.noise_variance > 256 and not isinstance(promise, Privacy):
                assert hits[kind] / runs < level + slack, (name, kind)
        if name in ("spikes", "heaped"):
            assert hits["quantile"] / runs > level - slack, name


@pytest.mark.parametrize(
    ("workload", "domain"),
    [
        ("ranges", 1),
        ("ranges", 37),
        ("prefixes", 64),
        ("width-5", 23),
        ("total", 9),
        ([(1, "cells"), (3, "prefixes")], 16),
        ("marginals", (3, 4, 2)),
        (["ranges", "cells"], (8, 3)),
        (np.random.default_rng(1).normal(size=(9, 7)), 7),
        (np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]), 4),
        ([[0, 1, 0], [0, 0, 1]], 3),
    ],
    ids=repr,
)
def test_designs_are_near_the_least_error(workload, domain):
    design = workload_optimal(workload, domain, ZCDP("1/2"))
    bound = design.continuous_bound
    assert design.bound < bound <= design.variance * (1 + 1e-9) <= bound * 1.001
    assert design.continuous_gap < 0.001
    assert design.variance == pytest.approx(
        MatrixMechanism(design.strategy, ZCDP(2)).workload_variance(workload) * 4, rel=1e-6
    )
    assert "% above the least" in str(design)
    estimate = design.release(np.full(design.mechanism.sizes, 10), np.random.default_rng(0))
    if design.strategy.full_rank:
        stated = design.mechanism.variance(
            {i: Between(0, n - 1) for i, n in enumerate(design.mechanism.sizes)}
        )
        assert abs(estimate.n - 10 * design.workload.cells) < 7 * math.sqrt(stated)


def test_no_strategy_at_hand_is_better():
    """Identity, total and prefixes, trees: none has less variance than the design or the bound."""
    size = 16
    design = workload_optimal("ranges", size, ZCDP("1/2"))
    levels = [np.kron(np.eye(size >> k, dtype=int), np.ones((1, 1 << k), int)) for k in range(5)]
    for rows in (levels[0], np.vstack(levels), np.vstack(levels[::2]), np.tri(size, dtype=int)):
        other = MatrixMechanism(DenseStrategy(1000 * rows), ZCDP("1/2"))
        assert design.continuous_bound < other.workload_variance("ranges")
        assert design.variance < other.workload_variance("ranges")


@pytest.mark.parametrize(
    ("workload", "domain", "promise"),
    [
        ("width-32", 10**6, ZCDP(1)),
        ("ranges", 4096, Privacy(alpha="1/2")),
        ("ranges", 1 << 21, ZCDP(1)),
        (["ranges", "cells"], (3000, 4), ZCDP(1)),
        (["ranges", "cells"], (3000, 4), Privacy(alpha="1/2")),
    ],
    ids=repr,
)
def test_designs_that_would_take_long_are_refused_with_an_estimate(workload, domain, promise):
    with pytest.raises(InvalidWorkload, match=r"would take some .* minutes and .* GB"):
        workload_optimal(workload, domain, promise)


@pytest.mark.parametrize("rho", ["50", "1e-4", "1e-8"])
@pytest.mark.parametrize(
    ("workload", "domain", "gap"),
    [
        ("ranges", 64, 0.001),
        ("marginals", (10,) * 4, 0.001),
        ("ranges", (40, 40), 0.02),
        ([(1, ["ranges", "total"]), (1, ["total", "cells"])], (40, 40), 1.5),
    ],
    ids=str,
)
def test_integers_leave_room_for_much_noise(workload, domain, gap, rho):
    """The variance of noise has a limit, so that the stricter the promise, the shorter they are."""
    design = workload_optimal(workload, domain, ZCDP(rho))
    assert design.mechanism.audit().holds
    assert design.bound <= design.variance <= design.continuous_bound * (1 + gap)
    if rho != "50":  # noise that is small has less variance in whole steps
        assert design.continuous_bound <= design.variance
