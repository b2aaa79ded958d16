"""The second stage: within its budget whatever the first one said, and where that left most."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from frequency.schema import Numeric, Schema
from mechdesign import ZCDP, ApproximateDP, BudgetExceeded, Ledger, Privacy
from mechdesign.exceptions import PrivacyViolation
from rangeq.central import (
    AdaptiveMarginals,
    InvalidHistogram,
    MarginalCounts,
    MarginalStrategy,
    Release,
    count_marginals,
    load_release,
    posterior_optimal,
)

PROMISES = [ZCDP("1/2"), ZCDP("1/1000"), ApproximateDP("0.1", "1e-9"), ApproximateDP(8, "1e-6")]


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
def test_whatever_was_seen_both_stages_keep_the_promise(promise):
    adaptive: Any = AdaptiveMarginals((2, 3, 4), promise, 500)
    numbers = adaptive.first.strategy.rows
    first = adaptive.first.strategy.l2_squared
    sigma2 = adaptive.first.noise.sigma2
    allowed = 1 / promise.noise_ratio
    assert adaptive.cost.squared_mu <= allowed
    deviation = math.sqrt(sigma2)
    rng = np.random.default_rng(0)
    seen = [
        np.zeros(numbers),
        *(scale * deviation * rng.normal(size=numbers) for scale in (1e-3, 1, 10, 1e4)),
        *(1e3 * deviation * np.eye(numbers)[k] for k in range(numbers)),
    ]
    chosen = set()
    for each in seen:
        second = adaptive.second(np.rint(each).astype(np.int64))
        assert (first + second.l2_squared) / sigma2 <= allowed
        # Nearly all of the rest
        assert second.l2_squared > 0.99 * first
        assert adaptive._both(second).audit().holds
        chosen.add((second.views, second.weights))
    assert len(chosen) > 5


def test_each_user_moves_the_numbers_of_both_stages_within_the_budget():
    """By every cell's own column of what is measured, for first stages of real draws."""
    sizes = (2, 3, 2)
    promise = ZCDP("1/8")
    adaptive: Any = AdaptiveMarginals(sizes, promise, 50)
    for seed in range(5):
        truth = np.random.default_rng(seed).integers(0, 9, sizes)
        both, _ = adaptive.measured(truth, np.random.default_rng(seed))
        nobody = both.strategy.measure(np.zeros(sizes, dtype=np.int64))
        for cell in np.ndindex(sizes):
            one = np.zeros(sizes, dtype=np.int64)
            one[cell] = 1
            column = (both.strategy.measure(one) - nobody).astype(object)
            loss = Fraction(sum(column**2)) / both.noise.sigma2
            assert loss / 2 <= promise.rho
            assert loss > 0.99 * 2 * promise.rho


def test_what_passes_the_budget_is_refused():
    adaptive = AdaptiveMarginals((2, 3), ZCDP(1), 100)
    first: Any = adaptive.first.strategy
    bold = MarginalStrategy((2, 3), first.views, [2 * w for w in first.weights], True)
    with pytest.raises(PrivacyViolation):
        adaptive._both(bold)


def test_pairs_that_depend_are_measured_again_and_the_answers_are_of_both_stages():
    rng = np.random.default_rng(5)
    users, many = 20_000, 8
    records = rng.integers(0, 5, (users, many))
    records[:, 1] = np.where(rng.random(users) < 0.8, records[:, 0], records[:, 1])
    schema = Schema([Numeric(f"q{k}", low=0, high=4, whole=True) for k in range(many)])
    tables = count_marginals(schema, [dict(zip(schema.names, records.T, strict=True))])
    promise = ApproximateDP("0.5", "1e-9")
    adaptive: Any = AdaptiveMarginals(schema.sizes, promise, users)
    both, numbers = adaptive.measured(tables, np.random.default_rng(6))
    strategy: Any = both.strategy
    first = 1 + many + many * (many - 1) // 2
    assert strategy.views[:first] == adaptive.first.strategy.views
    again = dict(zip(strategy.views[first:], strategy.weights[first:], strict=True))
    pairs = {view: weight for view, weight in again.items() if len(view) == 2}
    others = [weight for view, weight in pairs.items() if view != (0, 1)]
    assert pairs[0, 1] > max(others, default=0)
    assert pairs[0, 1] > 2 * np.median(others)
    # Between the least-squares estimates of each stage, by their precisions
    estimate = both.estimate(numbers)
    rows = adaptive.first.strategy.rows
    alone = adaptive.first.estimate(numbers[:rows]).answer({0: 1, 1: 1})
    answer = estimate.answer({0: 1, 1: 1})
    assert answer.variance < 0.6 * alone.variance
    truth = np.sum((records[:, 0] == 1) & (records[:, 1] == 1))
    assert abs(answer.value - truth) < 5 * math.sqrt(answer.variance)
    one = posterior_optimal(schema.sizes, promise, users)
    assert answer.variance < one.variance({0: 1, 1: 1})


def test_a_release_is_kept_and_spent_as_others(tmp_path):
    schema = Schema([Numeric(f"q{k}", low=0, high=2, whole=True) for k in range(3)])
    truth = np.random.default_rng(7).integers(0, 50, (3, 3, 3))
    adaptive: Any = AdaptiveMarginals(schema.sizes, ApproximateDP(1, "1e-6"), 700)
    release = Release.draw(schema, adaptive, truth, np.random.default_rng(8))
    assert release.reproducible
    assert release.mechanism.audit().holds
    release.save(tmp_path / "a.release")
    found: Any = load_release(tmp_path / "a.release")
    assert found == release
    assert found.mechanism.noise.sigma2 == adaptive.first.noise.sigma2
    asked = {"q0": 1, "q2": 0}
    assert found.estimate.answer(asked).value == release.estimate.answer(asked).value
    assert found.estimate.fitted().answer(asked).value > 0
    ledger = Ledger("1", "1e-6")
    ledger.spend(adaptive.cost, "a")
    with pytest.raises(BudgetExceeded):
        ledger.spend(adaptive.first.cost, "b")
    with pytest.raises(ValueError, match="the mechanism is for"):
        Release.draw(schema.project(["q0", "q1"]), adaptive, truth)


def test_wrong_inputs_are_refused_before_anything_is_drawn():
    with pytest.raises(TypeError, match="has Gaussian noise"):
        AdaptiveMarginals((4, 4), Privacy.from_epsilon(1), 9)
    with pytest.raises(ValueError, match="no pairs"):
        AdaptiveMarginals((4, 1), ZCDP(1), 9)
    with pytest.raises(ValueError, match="users must be"):
        AdaptiveMarginals((4, 4), ZCDP(1), 0)
    adaptive = AdaptiveMarginals((4, 4), ZCDP(1), 9)
    with pytest.raises(InvalidHistogram):
        adaptive.release(np.zeros((4, 3), dtype=int))
    with pytest.raises(InvalidHistogram):
        adaptive.release(MarginalCounts((4, 3), {(): np.array(0)}))
    nobody = adaptive.release(np.zeros((4, 4), dtype=int), np.random.default_rng(1))
    assert abs(nobody.n) < 6 * math.sqrt(nobody.mechanism.variance({0: list(range(4))}))


def test_extremes_are_planned():
    for promise, users in (
        (ZCDP(Fraction(1, 2**38)), 1),
        (ZCDP(1000), 10**9),
        (ApproximateDP(100, "1e-3"), 10**9),
    ):
        adaptive = AdaptiveMarginals((1, 2, 3), promise, users)
        release = adaptive.release(np.full((1, 2, 3), 5), np.random.default_rng(1))
        assert release.mechanism.audit().holds
        assert np.isfinite(release.answer({1: 1}).value)
