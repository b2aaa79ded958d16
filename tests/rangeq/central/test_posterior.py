"""Posteriors of released histograms."""

import numpy as np
import pytest

from frequency import Between
from mechdesign import ZCDP, Privacy
from rangeq.central import MatrixMechanism, NoPosterior, workload_optimal
from rangeq.central.posterior import PosteriorErrors, posterior_of
from tests.rangeq.central.matrix_mechanism.strategies import EXAMPLES, whitened_of

CELLS = 32
EVEN = np.full(CELLS, 30)


@pytest.fixture(scope="module")
def design():
    return workload_optimal("ranges", CELLS, Privacy.from_epsilon("0.5"))


def test_it_is_a_distribution_of_the_users_that_were_estimated(design):
    estimate = design.release(EVEN, np.random.default_rng(1))
    posterior = estimate.posterior()
    assert posterior.counts.shape == (CELLS,)
    assert posterior.counts.min() > 0
    assert posterior.n == pytest.approx(estimate.n)
    assert not posterior.counts.flags.writeable
    low, high = posterior.interval()
    assert (low >= 0).all()
    assert (low <= posterior.counts).all()
    assert (posterior.counts <= high).all()
    assert posterior.range(3, 9) == pytest.approx(posterior.counts[3:10].sum())
    assert 0 < posterior.quantile(0.5) < CELLS - 1
    first, last = posterior.quantile_interval(0.5)
    assert first <= posterior.quantile(0.5) <= last
    rows = np.bincount(posterior.sample(1000, np.random.default_rng(1)), minlength=CELLS)
    assert np.abs(rows - 1000 / posterior.n * posterior.counts).max() < 2


def test_only_what_was_released_is_looked_at(design):
    noisy = design.mechanism.noisy_numbers(EVEN, np.random.default_rng(1))
    first, second = (design.mechanism.estimate(noisy.copy()).posterior() for _ in range(2))
    assert first.counts == pytest.approx(second.counts, rel=1e-6)


BUMP = np.round(400 * np.exp(-(((np.arange(CELLS) - 12) / 5.0) ** 2) / 2) + 3).astype(int)


@pytest.mark.parametrize(("truth", "most"), [(20 * EVEN, 0.8), (BUMP, 0.95)])
def test_it_errs_less_where_noise_is_large_and_its_intervals_hold(truth, most):
    design = workload_optimal("ranges", CELLS, Privacy.from_epsilon("0.1"))
    first, last = np.triu_indices(CELLS)
    prefix = np.concatenate([[0], np.cumsum(truth)])
    exactly = prefix[last + 1] - prefix[first]
    errors, own, held, widths = 0.0, 0.0, [], []
    for seed in range(10):
        estimate = design.release(truth, np.random.default_rng(seed))
        posterior = estimate.posterior()
        ask = Between(first, last)
        answer, unbiased = posterior.answer(ask), estimate.answer(ask)
        errors += float(np.mean((answer.value - exactly) ** 2))
        own += float(np.mean((unbiased.value - exactly) ** 2))
        low, high = answer.interval()
        held.append(float(np.mean((low <= exactly) & (exactly <= high))))
        other = unbiased.interval()
        widths.append(float(np.median((high - low) / (other.high - other.low))))
    assert errors < most * own
    assert np.mean(held) > 0.85
    assert np.mean(widths) < 0.97


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(s, id=n)
        for n, s in EXAMPLES.items()
        if s.full_rank and len(s.sizes) == 1 and s.noise is None
    ],
)
def test_with_little_noise_it_is_what_was_released(strategy):
    """Whatever the strategy: its numbers are the data."""
    mechanism = MatrixMechanism(strategy, ZCDP(50))
    truth = np.random.default_rng(2).integers(500, 5000, strategy.sizes)
    estimate = mechanism.release(truth, np.random.default_rng(3))
    posterior = estimate.posterior()
    deviations = np.sqrt(estimate.variances)
    assert (np.abs(posterior.counts - estimate.counts) < 1 + deviations).all()
    # The precision is that of the strategy written out
    matrix, _ = whitened_of(strategy)
    precision = matrix.T @ matrix / mechanism.noise_variance
    variance = float(estimate.linear(np.ones(strategy.sizes)).variance)
    same = posterior_of(mechanism, estimate.counts, precision, variance)
    assert same.counts == pytest.approx(posterior.counts, rel=1e-5)


def test_errors_are_those_of_the_covariance():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(9, 9))
    covariance = root @ root.T
    errors = PosteriorErrors(covariance)
    first, last = np.triu_indices(9)
    weights = (np.arange(9) >= first[:, None]) & (np.arange(9) <= last[:, None])
    expected = np.einsum("qi,ij,qj->q", weights, covariance, weights)
    assert errors.variance(first[None], last[None]) == pytest.approx(expected)
    assert errors.mean() == pytest.approx(expected.mean())
    some = rng.integers(0, 2, 9).astype(float)
    assert errors.variance_of([some]) == pytest.approx(some @ covariance @ some)


def test_what_has_no_posterior_is_said(design):
    for sizes in ((4, 3), 600):
        wide = workload_optimal("cells", sizes, ZCDP("1/2"))
        with pytest.raises(NoPosterior, match="at most 512 cells"):
            wide.release(np.ones(sizes, dtype=int)).posterior()
    nobody = design.mechanism.estimate(np.full(design.mechanism.strategy.rows, -5))
    with pytest.raises(NoPosterior, match="noise hides that there are any"):
        nobody.posterior()
