"""Many quantiles by a smoothed tree: what they are of, their errors beside others', refusals."""

import numpy as np
import pytest

from frequency import InvalidValue
from rangeq.central import (
    CentralFlat,
    Hierarchy,
    QuantileRelease,
    TreeQuantiles,
    Wavelet,
    quantiles,
)
from rangeq.central.quantile_release import MOST_BLOCKS, covariances, smoothed_counts
from tests.rangeq.central.examples import dense, name

DECILES = tuple(np.arange(1, 10) / 10)
MANY = tuple(np.arange(1, 100) / 100)


@pytest.mark.parametrize("domain", [1, 2, 7, 300])
def test_with_little_noise_they_are_the_quantiles(domain):
    values = np.random.default_rng(1).integers(0, domain, 20_001)
    release = TreeQuantiles(domain, DECILES, 60.0)
    assert release.audit().holds
    found = release.release(values, np.random.default_rng(2))
    expected = np.quantile(values, DECILES, method="inverted_cdf")
    assert np.abs(found - expected).max() <= (domain > 100)
    assert (np.diff(found) >= 0).all()


def test_nobody_and_one_user():
    for values in ([], [3]):
        found = TreeQuantiles(8, DECILES, 1.0).release(values, np.random.default_rng(0))
        assert ((found >= 0) & (found < 8)).all()


def test_the_predicted_error_is_that_of_the_tree_of_even_values():
    domain, users, rng = 256, 50_000, np.random.default_rng(3)
    counts = np.full(domain, users // domain)
    release = TreeQuantiles(domain, MANY, 0.1)
    cells = (np.array(MANY) * domain).astype(int)
    cdf = (cells + 1) / domain
    errors = []
    for _ in range(60):
        estimate = release.tree.release(counts, rng)
        errors.append(estimate.prefix(cells) - cdf * estimate.n)
    measured = np.sqrt(np.mean(np.square(errors)))
    assert measured == pytest.approx(release.predicted_error(), rel=0.15)


def test_what_is_chosen():
    """A few by the exponential mechanism, and many by the tree, whatever the data."""

    def better(number, domain, epsilon):
        q = tuple(np.arange(1, number + 1) / (number + 1))
        one, two = QuantileRelease(domain, q, epsilon), TreeQuantiles(domain, q, epsilon)
        return one.predicted_error() < two.predicted_error()

    for epsilon in (0.01, 1.0):
        assert [better(k, 256, epsilon) for k in (1, 3, 7, 9, 99)] == [True] * 3 + [False] * 2
        assert [better(k, 1 << 20, epsilon) for k in (9, 99)] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 9, 99])
def test_below_a_tree_and_the_exponential_mechanism(number):
    """The setting of the page: 5,000 even users, 256 values, epsilon 0.1; 25 runs, seeded.

    Beside the tree alone and the exponential mechanism alone.
    """
    domain, rng = 256, np.random.default_rng(11)
    asked = np.arange(1, number + 1) / (number + 1)
    tree = Hierarchy(domain, 0.1, 16)
    ranks = np.zeros((25, 3))
    for run in range(25):
        values = rng.integers(0, domain, 5000)
        found = (
            quantiles(values, asked.tolist(), 0.1, domain=domain, rng=rng),
            tree.release(np.bincount(values, minlength=domain), rng).quantile(asked),
            QuantileRelease(domain, tuple(asked), 0.1).release(values, rng),
        )
        ordered = np.sort(values)
        for way, told in enumerate(found):
            low = np.searchsorted(ordered, told, side="left") / 5000
            high = np.searchsorted(ordered, told, side="right") / 5000
            ranks[run, way] = np.maximum(0, np.maximum(low - asked, asked - high)).mean()
    own, alone, exponential = ranks.mean(axis=0)
    assert own < 0.7 * alone
    assert own <= exponential * (2 if number == 1 else 0.6)


def test_refused():
    for domain in (0, (1 << 20) + 1, 2.0):
        with pytest.raises(ValueError, match="domain must be"):
            TreeQuantiles(domain, DECILES, 1.0)
    for q in ((), (1.5,), (-0.1,)):
        with pytest.raises(ValueError, match="q must be"):
            TreeQuantiles(8, q, 1.0)
    with pytest.raises(ValueError, match="epsilon"):
        TreeQuantiles(8, DECILES, 0)
    with pytest.raises(InvalidValue):
        TreeQuantiles(8, DECILES, 1.0).release([8])


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
