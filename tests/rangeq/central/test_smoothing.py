"""The smoothed cells against dense algebra, and what smoothing gains and loses."""

import numpy as np
import pytest

from rangeq.central import CentralFlat, Hierarchy, Wavelet
from rangeq.central.smoothing import MOST_BLOCKS, covariances, smoothed_counts
from tests.rangeq.central.examples import dense, name

KINDS = [Hierarchy(20, 1.0, 3), Wavelet(13, 0.5), CentralFlat(7, 1.0), Hierarchy(1, 1.0, 2)]


@pytest.mark.parametrize("m", KINDS, ids=name)
@pytest.mark.parametrize("width", [1, 3])
def test_covariances_by_dense_algebra(m, width):
    _, covariance = dense(m, m.noise_variances)
    first = np.arange(0, m.domain, width)
    last = np.minimum(first + width, m.domain) - 1
    blocks = np.array([(np.arange(m.domain) // width == k) * 1.0 for k in range(len(first))])
    expected = blocks @ covariance @ blocks.T
    np.testing.assert_allclose(covariances(m.errors, first, last), expected, atol=1e-9)


def test_the_posterior_mean_of_some_amplitudes():
    """What is found is the posterior mean for some pair of the grid, by the direct formula."""
    m = Hierarchy(30, 0.5, 4)
    counts = np.random.default_rng(1).poisson(40 + 30 * np.sin(np.arange(30) / 5))
    estimate = m.release(counts, np.random.default_rng(2))
    found = smoothed_counts(estimate)
    _, covariance = dense(m, m.noise_variances)
    level = estimate.counts.sum() / 30
    walk = np.minimum(np.arange(30)[:, None], np.arange(30.0))
    centring = np.eye(30) - 1 / 30
    walk = centring @ walk @ centring
    walk *= 30 / np.trace(walk)
    best = np.inf
    for a in (0, *(4.0**k for k in range(-4, 4))):
        for d in (0, *(4.0**k for k in range(-3, 5))):
            prior = level**2 * (a * walk + d * np.eye(30))
            posterior = level + prior @ np.linalg.solve(prior + covariance, estimate.counts - level)
            best = min(best, np.abs(posterior - found).max())
    assert best < 1e-6
    assert np.abs(found - counts).mean() < np.abs(estimate.counts - counts).mean()


def test_little_noise_is_not_smoothed_away():
    """With counts far above the noise the smoothed cells are those that were released."""
    counts = np.random.default_rng(3).integers(0, 100_000, 64)
    estimate = Hierarchy(64, 5.0, 8).release(counts, np.random.default_rng(4))
    np.testing.assert_allclose(smoothed_counts(estimate), estimate.counts, atol=1)


@pytest.mark.parametrize("cells", [MOST_BLOCKS + 1, 1000])
def test_more_cells_than_blocks(cells):
    counts = np.full(cells, 20)
    estimate = Hierarchy(cells, 0.2, 16).release(counts, np.random.default_rng(5))
    found = smoothed_counts(estimate)
    assert found.shape == (cells,)
    # Long ranges err less, on average
    ends = np.arange(cells - cells // 2)
    raw = estimate.range(ends, ends + cells // 2)
    sums = np.concatenate([[0], np.cumsum(found)])
    smooth = sums[ends + cells // 2 + 1] - sums[ends]
    true = 20.0 * (cells // 2 + 1)
    assert np.abs(smooth - true).mean() < np.abs(raw - true).mean()


def test_nobody():
    estimate = Hierarchy(16, 1.0, 4).release(np.zeros(16, dtype=int), np.random.default_rng(0))
    assert np.isfinite(smoothed_counts(estimate)).all()
