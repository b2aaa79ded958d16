"""Spectral strategies: how near the least error they are, and what is refused.

What every strategy promises is tested against dense matrices in test_strategy.
"""

from fractions import Fraction

import numpy as np
import pytest

from frequency import Between
from mechdesign import ZCDP, ApproximateDP
from rangeq.central.matrix_mechanism.design import workload_optimal
from rangeq.central.matrix_mechanism.gram_optimum import least_path_error
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism
from rangeq.central.matrix_mechanism.spectral_strategy import SpectralStrategy
from rangeq.central.matrix_mechanism.strategy import LARGEST_PRODUCT, LARGEST_USERS
from rangeq.central.matrix_mechanism.workload import InvalidWorkload, Workload
from tests.rangeq.central.matrix_mechanism.strategies import dense_of

NAMES = ("prefixes", "ranges")
WEIGHTS = {"prefixes": (1, 0), "ranges": (0, 1)}


def error(strategy, name):
    """tr(G X^-1) for columns of norms of at most 1."""
    workload = Workload.of(name, strategy.sizes)
    return strategy.workload_variance(workload) * strategy.l2_squared * workload.count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "gap"),
    [
        ("prefixes", 256, 0.004),
        ("prefixes", 1024, 0.004),
        ("prefixes", 1 << 15, 0.004),
        ("ranges", 256, 0.0005),
        ("ranges", 1024, 0.0005),
        ("ranges", 1 << 15, 0.001),
    ],
)
def test_the_error_is_near_the_bound(name, size, gap):
    found = error(SpectralStrategy.of_workload(name, size), name)
    assert 1 < found / least_path_error(*WEIGHTS[name], size) < 1 + gap


@pytest.mark.parametrize("name", NAMES)
def test_every_size_has_one(name):
    for size in [*range(1, 80), 127, 1000, 4099]:
        found = error(SpectralStrategy.of_workload(name, size), name)
        assert found < 1.005 * least_path_error(*WEIGHTS[name], size)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 2, 17, 300])
def test_entries_have_one_sign_and_fit(name, size):
    matrix = dense_of(SpectralStrategy.of_workload(name, size))
    assert matrix.min() >= 0
    assert LARGEST_PRODUCT / 2 < matrix.max() <= LARGEST_PRODUCT
    norms = (matrix.astype(float) ** 2).sum(axis=0)
    assert norms.min() > 0.99 * norms.max()


@pytest.mark.parametrize("name", NAMES)
def test_variances_of_many_cells_are_those_of_single_queries(name):
    size = 5000
    strategy = SpectralStrategy.of_workload(name, size)
    rng = np.random.default_rng(0)
    first, last = np.sort(rng.integers(0, size, (2, 40)), axis=0)
    place = np.arange(size)
    queries = ((place >= first[:, None]) & (place <= last[:, None])) * 1.0
    expected = strategy.linear_variances(queries)
    assert strategy.variance(first[None], last[None]) == pytest.approx(expected, rel=1e-8)
    prefixes = strategy.variance(np.zeros((1, size), dtype=np.int64), place[None])
    mean = strategy.workload_variance(Workload.of("prefixes", size))
    assert prefixes.mean() == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("name", ["width-1", "width-7", "width-40", "width-99", "width-100"])
def test_means_over_ranges_of_one_width(name):
    strategy = SpectralStrategy.of_workload("prefixes", 100)
    workload = Workload.of(name, 100)
    queries = workload.terms[0].factors[0].rows()
    expected = strategy.linear_variances(queries).mean()
    assert strategy.workload_variance(workload) == pytest.approx(expected, rel=1e-9)
    as_matrix = Workload.of(queries, 100)
    assert strategy.workload_variance(as_matrix) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_all_users_that_are_allowed_are_measured_exactly_and_come_back(name):
    size = 1 << 12
    strategy = SpectralStrategy.of_workload(name, size)
    counts = np.zeros(size, dtype=np.int64)
    counts[[0, size // 2, size - 1]] = [LARGEST_USERS - 5, 2, 3]
    numbers = strategy.measure(counts)
    table = spectral_columns(strategy, [0, size // 2, size - 1])
    weights = [LARGEST_USERS - 5, 2, 3]
    assert numbers.tolist() == [
        sum(w * int(m) for w, m in zip(weights, row, strict=True)) for row in table.T
    ]
    assert strategy.estimate(numbers) == pytest.approx(counts, abs=1e-12 * LARGEST_USERS)


def spectral_columns(strategy, cells):
    return np.array(
        [strategy.measure(np.eye(1, strategy.rows, c, dtype=np.int64)[0]) for c in cells]
    )


@pytest.mark.parametrize(
    ("kernel", "scales", "message"),
    [
        ([1, 0, 0, 0], [1, 0], "scales must be within 1"),
        ([1, 0, 0, 0], [1.0, 1.0], "scales must be an array of integers"),
        ([1, 0, 0, 0], [], "scales must be an array of integers"),
        ([1, 0, 0, 0], [[1, 1]], "of one dimension"),
        ([1, 0, 0, -1], [1, 1], "the kernel must be within 0"),
        ([1 << 26, 0, 0, 0], [1, 1], "the kernel must be within 0"),
        ([1, 0], [1, 1], "got 2 and 2"),
        ([1, 0, 0, 0, 0], [1, 1], "got 2 and 5"),
        ([1, 2, 0, 0], [1, 1], "must not increase"),
        ([3, 2, 1, 1], [1, 1], "ends with 0"),
        ([1 << 22, 0, 0, 0], [1, 1 << 7], "beyond 2\\^28"),
        ([1 << 25, 1, 0], [8, 1], "beyond 2\\^28"),
        ([1, 1, 0, 0], [1, 1], "cannot be inverted"),
        ([0, 0, 0], [1, 1], "cannot be inverted"),
    ],
)
def test_what_is_no_strategy_is_refused(kernel, scales, message):
    with pytest.raises(ValueError, match=message):
        SpectralStrategy(kernel, scales)


def test_other_workloads_and_sizes_are_refused():
    with pytest.raises(InvalidWorkload, match="prefixes or ranges"):
        SpectralStrategy.of_workload("width-3", 10)
    for size in (0, (1 << 20) + 1, 2.0):
        with pytest.raises(ValueError, match="size"):
            SpectralStrategy.of_workload("ranges", size)
    for largest in (1 << 11, 1 << 29):
        with pytest.raises(ValueError, match="largest"):
            SpectralStrategy.of_workload("ranges", 10, largest)
    with pytest.raises(ValueError, match="10"):
        SpectralStrategy.of_workload("ranges", 10).workload_variance(Workload.of("ranges", 11))


@pytest.mark.parametrize("name", NAMES)
def test_designs_of_many_cells_have_them(name):
    design = workload_optimal([(3, name)], 2000, ZCDP("1/2"))
    assert design.strategy == SpectralStrategy.of_workload(name, 2000)
    assert 0 < design.continuous_gap < 0.004
    assert design.mechanism.audit().holds
    # In the same units as smaller designs, which are dense
    dense = workload_optimal([(3, name)], 300, ZCDP("1/2"))
    sparse = MatrixMechanism(SpectralStrategy.of_workload(name, 300), ZCDP("1/2"))
    assert dense.variance < sparse.workload_variance(name) < 1.004 * dense.variance


@pytest.mark.parametrize(("weight", "nearest"), [(1, "ranges"), (1e5, "prefixes")])
def test_weighted_sums_have_the_better_one_of_both(weight, nearest):
    design = workload_optimal([(weight, "prefixes"), (1, "ranges")], 1500, ZCDP("1/2"))
    assert design.strategy == SpectralStrategy.of_workload(nearest, 1500)
    assert 0 < design.continuous_gap < 0.004


def test_large_noise_has_smaller_entries():
    promise = ApproximateDP("1/100", "1e-9")
    design = workload_optimal("prefixes", 1500, promise)
    assert promise.noise_ratio > 2**14
    arrays = design.strategy.arrays()
    assert int(arrays["kernel"][0] * arrays["scales"].max()) < LARGEST_PRODUCT / 20
    assert design.continuous_gap < 0.01
    assert design.mechanism.audit().holds
    strictest = workload_optimal("prefixes", 1500, ZCDP(Fraction(1, 1 << 40)))
    assert strictest.mechanism.audit().holds
    assert strictest.continuous_gap < 0.2


def test_a_release_answers_within_its_variances():
    design = workload_optimal("ranges", 3000, ZCDP("1/2"))
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 1000, 3000)
    first, last = np.sort(rng.integers(0, 3000, (2, 50)), axis=0)
    exactly = np.array([counts[a : b + 1].sum() for a, b in zip(first, last, strict=True)])
    ranges = {0: Between(first, last)}
    scores = []
    for _ in range(20):
        answer = design.release(counts, rng).answer(ranges)
        scores.append((answer.value - exactly) / np.sqrt(answer.variance))
    # 50 dependent answers, 20 times: the mean of a square is 1; 8 deviations for independent ones
    mean = np.mean(np.square(scores))
    assert 0.5 < mean < 1.7
    assert np.abs(scores).max() < 6.5
