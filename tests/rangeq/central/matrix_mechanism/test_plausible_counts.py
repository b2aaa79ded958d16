"""Histograms without negative numbers, and of whole users."""

import numpy as np
import pytest
import scipy

from mechdesign import ZCDP, Privacy
from rangeq.central.matrix_mechanism.design import workload_optimal
from rangeq.central.matrix_mechanism.mechanism import (
    MatrixMechanism,
    nonnegative_counts,
    whole_counts,
)
from rangeq.central.matrix_mechanism.strategy import UnanswerableQuery
from tests.rangeq.central.matrix_mechanism.strategies import EXAMPLES, whitened_of


@pytest.mark.parametrize(
    "strategy", [pytest.param(s, id=n) for n, s in EXAMPLES.items() if s.full_rank]
)
@pytest.mark.parametrize("scale", [1e-3, 1, 1e9])
def test_least_squares_without_negative_numbers(strategy, scale):
    """Against an active-set method, with a heavy row that keeps the total."""
    rng = np.random.default_rng(1)
    estimate = scale * (rng.normal(size=strategy.sizes) + 0.3)
    total = max(estimate.sum(), 0)
    matrix, _ = whitened_of(strategy)
    heavy = 1e5 * np.linalg.norm(matrix)
    rows = np.vstack([matrix, np.full((1, matrix.shape[1]), heavy)])
    expected, _ = scipy.optimize.nnls(rows, np.append(matrix @ estimate.ravel(), heavy * total))
    found = nonnegative_counts(strategy, estimate)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)
    assert found.ravel() == pytest.approx(expected, abs=1e-5 * scale)
    assert not nonnegative_counts(strategy, estimate - 10 * scale).any()


def test_what_is_not_negative_stays():
    strategy = EXAMPLES["dense"]
    estimate = np.array([0, 1, 2.5, 7, 0, 1e6])
    assert nonnegative_counts(strategy, estimate) == pytest.approx(estimate, abs=1e-3)


def test_strategies_of_any_units_are_solved():
    """Noise in groups has units of its own, far from the strategy's integers."""
    design = workload_optimal("ranges", 64, Privacy.from_epsilon("0.1"))
    truth = np.where(np.arange(64) < 4, 250, 0)
    error = own = 0.0
    for seed in range(5):
        estimate = design.release(truth, np.random.default_rng(seed))
        found = estimate.nonnegative()
        assert found.sum() == pytest.approx(max(estimate.n, 0))
        error += float(np.square(found - truth).mean())
        own += float(np.square(estimate.counts - truth).mean())
    assert error < 0.5 * own


@pytest.mark.parametrize("size", [1, 5, 200])
def test_whole_numbers_are_next_and_keep_the_total(size):
    rng = np.random.default_rng(size)
    counts = rng.exponential(3, size)
    found = whole_counts(counts)
    assert found.dtype == np.int64
    assert (np.abs(found - counts) < 1).all()
    assert found.sum() == round(counts.sum())
    assert np.array_equal(whole_counts(found.astype(float)), found)
    assert whole_counts(np.zeros((2, 3))).shape == (2, 3)


def test_estimates_give_both():
    design = workload_optimal("ranges", 32, ZCDP("1/2"))
    truth = np.where(np.arange(32) % 4, 0, 50)
    estimate = design.release(truth, np.random.default_rng(5))
    assert (estimate.counts < 0).any()
    positive, whole = estimate.nonnegative(), estimate.whole()
    assert positive.min() >= 0
    assert np.abs(positive - truth).mean() < np.abs(estimate.counts - truth).mean()
    assert whole.dtype == np.int64
    assert whole.sum() == round(positive.sum())
    # As the documentation says: biased, empty cells gain
    assert positive[truth == 0].mean() > 0.1
    deficient = MatrixMechanism(EXAMPLES["dense, dependent"], ZCDP(2)).release([1, 2, 3, 4])
    with pytest.raises(UnanswerableQuery):
        deficient.whole()
