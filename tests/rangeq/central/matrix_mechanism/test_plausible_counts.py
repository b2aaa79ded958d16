"""Histograms without negative numbers, and of whole users."""

import numpy as np
import pytest
import scipy

from mechdesign import ZCDP, Privacy
from rangeq.central.matrix_mechanism.design import workload_optimal
from rangeq.central.matrix_mechanism.mechanism import (
    MatrixMechanism,
    nearest_counts,
    whole_counts,
)
from rangeq.central.matrix_mechanism.strategy import UnanswerableQuery
from rangeq.central.matrix_mechanism.workload import QuerySet
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
    found = nearest_counts(estimate, strategy.normal, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)
    assert found.ravel() == pytest.approx(expected, abs=1e-5 * scale)
    assert not nearest_counts(estimate, strategy.normal, 0.0).any()
    free, _ = scipy.optimize.nnls(matrix, matrix @ estimate.ravel())
    found = nearest_counts(estimate, strategy.normal)
    assert found.ravel() == pytest.approx(free, abs=1e-5 * scale)


def test_what_is_not_negative_stays():
    strategy = EXAMPLES["dense"]
    estimate = np.array([0, 1, 2.5, 7, 0, 1e6])
    assert nearest_counts(estimate, strategy.normal) == pytest.approx(estimate, abs=1e-3)


def test_strategies_of_any_units_are_solved():
    """Noise in groups has units of its own, far from the strategy's integers."""
    design = workload_optimal("ranges", 64, Privacy.from_epsilon("0.1"))
    truth = np.where(np.arange(64) < 4, 250, 0)
    error = own = 0.0
    for seed in range(5):
        estimate = design.release(truth, np.random.default_rng(seed))
        found = estimate.nonnegative()
        assert estimate.nonnegative(1000).sum() == pytest.approx(1000)
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


@pytest.mark.parametrize("promise", [Privacy.from_epsilon("0.3"), ZCDP("1/20")])
def test_errors_of_ranges_prefixes_and_cells_together_do_not_grow(promise):
    """On every draw: the truth is not negative, and projections on a cone bring nearer to it."""
    cells = 24
    mechanism = workload_optimal("ranges", cells, promise).mechanism
    sets = [QuerySet(name, cells).rows() for name in ("ranges", "prefixes", "cells")]
    own = [mechanism.workload_variance(name) for name in ("ranges", "prefixes", "cells")]
    rng = np.random.default_rng(3)

    def together(difference):
        squares = (np.mean((queries @ difference) ** 2) for queries in sets)
        return sum(square / variance for square, variance in zip(squares, own, strict=True))

    for shares in (np.ones(cells), np.arange(cells) == 3, np.exp(-np.arange(cells) / 3.0)):
        truth = rng.multinomial(300, shares / shares.sum())
        for _ in range(10):
            estimate = mechanism.release(truth, rng)
            found = estimate.nonnegative()
            assert together(found - truth) <= together(estimate.counts - truth) * (1 + 1e-6)
            known = estimate.nonnegative(300)
            assert known.sum() == pytest.approx(300)
            assert together(known - truth) <= together(estimate.counts - truth) * (1 + 1e-6)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="total must be"):
            estimate.nonnegative(wrong)


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
