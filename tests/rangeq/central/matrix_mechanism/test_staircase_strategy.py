"""Designs judged by the noise that is drawn: nothing at hand is below them, nor any bound above."""

import math
from fractions import Fraction
from importlib import import_module
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from frequency import Between
from mechdesign import ZCDP, ApproximateDP, Privacy
from mechdesign.exceptions import PrivacyViolation
from mechdesign.noise.discrete import DiscreteGaussian
from mechdesign.noise.staircase import Staircase
from rangeq.central.matrix_mechanism import design as designs
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.design import least_cell_variance, workload_optimal
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism
from rangeq.central.matrix_mechanism.staircase_strategy import (
    StaircaseStrategy,
    best_group,
    rows_of_levels,
    strategy_for_cells,
)
from rangeq.central.matrix_mechanism.workload import Workload

ONE = Privacy.from_epsilon(1)


@pytest.fixture
def benchmark(monkeypatch):
    """The comparison, which is no installed package."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[4] / "benchmarks"))
    return import_module("drawn_noise")


def random_request(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 13))
    epsilon = float(np.exp(rng.uniform(math.log(0.1), math.log(8))))
    kinds = ["ranges", "prefixes", "cells", f"width-{rng.integers(1, size + 1)}"]
    kind = int(rng.integers(7))
    if kind < len(kinds):
        return kinds[kind], size, epsilon
    if kind == 4:
        return [(float(rng.integers(1, 9)), "ranges"), (1.0, "prefixes")], size, epsilon
    if kind == 5:
        return "ranges", (size, int(rng.integers(1, 4))), epsilon
    matrix = rng.integers(-2, 3, (size + 2, size)) + np.eye(size + 2, size, dtype=int) * 5
    return matrix.astype(float), size, epsilon


@pytest.mark.parametrize("seed", range(500))
def test_no_published_mechanism_is_below_a_design_as_drawn(seed, benchmark):
    asked, domain, epsilon = random_request(seed)
    workload = Workload.of(asked, domain)
    design = workload_optimal(asked, domain, Privacy.from_epsilon(epsilon), cache=False)
    assert design.mechanism.audit().holds
    assert design.bound <= design.variance * (1 + 1e-9)
    for _, mechanism in benchmark.published(workload.sizes, epsilon):
        found = benchmark.drawn(mechanism, workload)
        assert design.variance <= found * (1 + 1e-5)  # which have not the same integers
        assert design.bound <= found


@pytest.mark.parametrize("seed", range(40))
def test_no_whole_rows_are_below_a_design_under_little_gaussian_noise(seed, benchmark):
    asked, domain, epsilon = random_request(seed)
    workload, promise = Workload.of(asked, domain), ZCDP(Fraction(epsilon))
    design = workload_optimal(asked, domain, promise, cache=False)
    for _, mechanism in benchmark.published(workload.sizes, 1.0):
        strategy = DenseStrategy(rows_of_levels(mechanism)[0], workload.sizes)
        found = MatrixMechanism(strategy, promise).workload_variance(workload)
        assert design.variance <= found * (1 + 1e-4)  # the design's own tolerance
        assert design.bound <= found


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 2, 4, 8])
def test_of_one_cell_the_bound_is_the_variance(epsilon):
    design = workload_optimal("cells", 1, Privacy.from_epsilon(epsilon))
    assert design.variance == pytest.approx(1 / (math.cosh(epsilon) - 1), rel=1e-5)
    assert 0 <= design.gap < 1e-6


@pytest.mark.parametrize(
    ("workload", "size", "epsilon", "most"),
    [
        ("ranges", 4, 2, 0.724063),  # what the cells alone have
        ("ranges", 16, 4, 0.228067),
        ("ranges", 16, 1, 8.76),  # 11.05
        ("ranges", 64, 1, 24.7),  # 30.8 is the best of continuous noise that was found
        ("prefixes", 16, 1, 10.01),
        ("ranges", 100, 1, 35.1),
    ],
)
def test_figures_that_are_met(workload, size, epsilon, most):
    design = workload_optimal(workload, size, Privacy.from_epsilon(epsilon))
    assert design.bound <= design.variance < most


def test_what_is_said_of_a_design():
    design = workload_optimal("ranges", 16, ONE)
    assert design.gap < 0.6
    assert "16 cells in 4 groups" in str(design)
    assert "at most 56 % above the least of any unbiased mechanism, 44 % above" in str(design)
    weak = workload_optimal("ranges", 16, Privacy.from_epsilon(4))
    assert weak.variance < 0.7 * weak.continuous_bound
    assert "below the bound for strategies of continuous noise" in str(weak)


@pytest.mark.parametrize(
    "promise",
    [ZCDP("1/1000"), ZCDP("1/10"), ZCDP("1/2"), ZCDP(1), ZCDP(4), ZCDP(400)],
    ids=repr,
)
def test_bounds_on_a_cell_are_below_gaussian_noise(promise):
    least = least_cell_variance(promise)
    assert 0 <= least < DiscreteGaussian(promise.noise_ratio).variance
    if promise.rho <= Fraction(1, 10):
        assert least > 0.9 / (2 * float(promise.rho))


@pytest.mark.parametrize("epsilon", ["1/10000", "1/10", "1", "5", "50"])
@pytest.mark.parametrize("delta", ["1e-9", "1/10"])
def test_bounds_on_a_cell_with_a_delta_are_below_both_noises(epsilon, delta):
    promise = ApproximateDP(epsilon, delta)
    least = least_cell_variance(promise)
    assert 0 < least < float(promise.noise_ratio)
    assert least < least_cell_variance(Privacy.from_epsilon(Fraction(epsilon)))


def test_the_bound_by_likelihood_ratios_holds_for_discrete_gaussian_noise():
    """With the second moments as they are, not as bounded: what the inequality itself says."""
    for rho in (0.2, 0.5, 1.0, 2.0):
        places = np.arange(-15, 16)
        chances = [np.exp(-rho * (places - k) ** 2) for k in (-1, 0, 1)]
        below, middle, above = (one / one.sum() for one in chances)
        assert (above**2 / middle).sum() <= math.exp(2 * rho) * (1 + 1e-9)
        assert (above * below / middle).sum() >= math.exp(-4 * rho) * (1 - 1e-9)
        assert 0.5 * np.abs(above - middle).sum() <= math.sqrt(-math.expm1(-rho))


# ------------------------------------------------------------------------- shapes of the noise


@pytest.mark.parametrize("rate", [0.7, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, 0.95, -0.9])
def test_noise_on_two_numbers_is_nearly_the_best_there_is(correlation, rate, benchmark):
    cost = np.array([[1, correlation], [correlation, 1]])
    group = best_group(cost, rate)
    reach = round(12 / rate) + 4
    centres = [(0, 0), (0.5, 0.5), (0.5, 0), (0, 0.5)]
    least = min(benchmark.least_of_all(cost, rate, reach, c) for c in centres)
    law = Staircase(alpha=Fraction(math.exp(-rate)), points=group.points)
    assert group.cost == pytest.approx(np.sum(cost * law.covariance), rel=1e-4)
    assert least * (1 - 1e-6) <= group.cost <= least * 1.002
    independent = 2 / (math.cosh(rate) - 1)
    assert group.cost <= independent * (1 + 1e-9)
    if rate == 1 and correlation == 0.95:
        assert group.cost < 0.8 * independent


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_noise_on_three_numbers_is_within_some_per_cent_of_the_best(correlation, benchmark):
    cost = correlation ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    group = best_group(cost, 2.0)
    centres = product((0, 0.5), repeat=3)
    least = min(benchmark.least_of_all(cost, 2.0, 7, c) for c in centres)
    assert least * (1 - 1e-6) <= group.cost <= least * 1.02


# ------------------------------------------------------------------------------- the strategies


def pair(alpha=Fraction(1, 3)):
    return StaircaseStrategy([[1, 0, 1], [0, 1, 0]], [alpha], [[[0, 0], [1, -1], [-1, 1]]])


def test_losses_are_exact():
    strategy = pair()
    assert strategy.moved.tolist() == [[1, 1, 1]]
    assert strategy.loss == 3
    several = StaircaseStrategy(
        [[1, 1], [2, 0], [0, 3]], [Fraction(1, 2), Fraction(2, 3)], [[[0]], [[0, 0]]]
    )
    exactly = 2 * Fraction(3, 2) ** 3
    assert exactly <= several.loss < exactly * (1 + Fraction(1, 1 << 100))


def test_another_promise_has_the_same_numbers_with_other_noise():
    strategy = workload_optimal("ranges", 9, ONE).strategy
    assert isinstance(strategy, StaircaseStrategy)
    for epsilon in ("1/3", "1", "3/2"):
        promise = Privacy.from_epsilon(epsilon)
        mechanism = MatrixMechanism(strategy, promise)
        assert mechanism.audit().holds
        assert mechanism.audit().noise > (1 / promise.alpha) ** (1 - Fraction(1, 1000))
        assert isinstance(mechanism.strategy, StaircaseStrategy)
        assert np.array_equal(mechanism.strategy.matrix, strategy.matrix)
        assert (mechanism.strategy is strategy) == (epsilon == "1")
        # Made again from its file, and not once more
        assert MatrixMechanism(mechanism.strategy, promise).strategy is mechanism.strategy
    for other in (ZCDP(1), ApproximateDP(1, "1e-6")):
        with pytest.raises(ValueError, match="keeps no other promise"):
            MatrixMechanism(strategy, other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"alphas": [[0, 1]]},
        {"alphas": [[1, 0]]},
        {"alphas": [[2, 1]]},
        {"alphas": [[1, 1]]},
        {"alphas": [[1, 3], [1, 3]]},
        {"groups": [[3, 1]]},
        {"groups": [[-3, -2]]},
        {"groups": [[1 << 62, 2]]},
        {"groups": [[2, 3]]},
        {"points": [0, 0, 0, 0, 1, -1]},
        {"points": [0, 0, 1, -1, -1, 1 << 60]},
        {"points": [[0, 0, 1, -1, -1, 1]]},
        {"matrix": [[1, 0, 1]]},
    ],
    ids=str,
)
def test_arrays_that_are_none_are_refused(wrong):
    arrays = {**pair().arrays(), **{name: np.array(array) for name, array in wrong.items()}}
    with pytest.raises(ValueError, match=r"."):
        StaircaseStrategy.of_arrays((3,), arrays)


def test_epsilons_that_such_noise_cannot_have_are_left_to_others():
    for epsilon in (2.0**-30, 60, 900):
        design = workload_optimal("ranges", 5, Privacy.from_epsilon(epsilon), cache=False)
        assert design.mechanism.audit().holds
        assert math.isfinite(design.variance)
    with pytest.raises(ValueError, match="an epsilon up to"):
        strategy_for_cells(np.eye(3), 60.0, (3,))


def test_a_planted_error_releases_nothing():
    mechanism = workload_optimal("ranges", 9, ONE).mechanism
    strategy = mechanism.strategy
    assert isinstance(strategy, StaircaseStrategy)
    strategy.loss = Fraction(3)
    assert not mechanism.audit().holds
    with pytest.raises(PrivacyViolation):
        mechanism.release(np.arange(9))


@pytest.mark.slow
def test_answers_have_the_variances_that_are_stated():
    rng, runs = np.random.default_rng(5), 6000
    mechanism, truth = workload_optimal("ranges", 11, ONE).mechanism, np.arange(11) * 7
    assert isinstance(mechanism.strategy, StaircaseStrategy)
    estimates = [mechanism.release(truth, rng) for _ in range(runs)]
    for first, last in [(0, 0), (3, 5), (0, 10), (5, 10)]:
        exactly = truth[first : last + 1].sum()
        errors = np.array([each.range(first, last) for each in estimates]) - exactly
        stated = mechanism.variance(Between(first, last))
        assert abs((errors**2).mean() / stated - 1) < 7 * math.sqrt(6 / runs)
        assert abs(errors.mean()) < 7 * math.sqrt(stated / runs)
        for confidence in (0.5, 0.95):
            intervals = [e.answer(Between(first, last)).interval(confidence) for e in estimates]
            rate = np.mean([i.low <= exactly <= i.high for i in intervals])
            assert rate > confidence - 6 * math.sqrt(confidence * (1 - confidence) / runs)


def test_designs_are_searched_only_where_that_is_quick():
    assert designs._LARGEST_APART <= designs._LARGEST_STAIRCASE
    wide = workload_optimal("prefixes", 300, ONE, cache=False)
    assert isinstance(wide.strategy, DenseStrategy)
    assert not isinstance(wide.strategy, StaircaseStrategy)
