"""Histograms without negative numbers, and of whole users."""

import numpy as np
import pytest
import scipy

from mechdesign import ZCDP
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
    """Against an active-set method."""
    estimate = scale * np.random.default_rng(1).normal(size=strategy.sizes)
    matrix, _ = whitened_of(strategy)
    expected, _ = scipy.optimize.nnls(matrix, matrix @ estimate.ravel())
    found = nonnegative_counts(strategy, estimate)
    assert (found >= 0).all()
    assert found.ravel() == pytest.approx(expected, abs=2e-4 * max(scale, 1))


def test_what_is_not_negative_stays():
    strategy = EXAMPLES["dense"]
    estimate = np.array([0, 1, 2.5, 7, 0, 1e6])
    assert nonnegative_counts(strategy, estimate) == pytest.approx(estimate, abs=1e-3)


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
