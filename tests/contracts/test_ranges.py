"""Every estimate of an ordered attribute: ranges, prefixes and quantiles agree with its answers."""

from __future__ import annotations

import numpy as np
import pytest

from frequency import InvalidQuestion
from rangeq import Between, Distribution, RangeProtocol, SquareWave, central
from rangeq.core.estimate import InvalidRange
from rangeq.local.smoothed import Shaped
from tests.contracts.examples import CENTRAL, COLLECTED
from tests.contracts.test_answers import cases, collected

RANGES = cases(lambda protocol: isinstance(protocol, (RangeProtocol, SquareWave, Shaped)))
PHI = np.linspace(0, 1, 9)


def total_of(estimate):
    """All users, as the estimate counts them: cells in numbers of users, or fractions of 1."""
    return estimate.n if isinstance(estimate, central.CentralEstimate) else 1.0


def same(one, two):
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def check_ranges(estimate, size):
    """Ranges are what `answer` says, prefixes are ranges, and a single one is a number."""
    first, last = np.triu_indices(size)
    values = estimate.range(first, last)
    assert values.shape == first.shape
    same(values, estimate.answer(Between(first, last)).value)
    same(values, [estimate.range(int(a), int(b)) for a, b in zip(first, last, strict=True)])
    assert isinstance(estimate.range(0, size - 1), float)
    assert estimate.range([[0]], [size - 1]).shape == (1, 1)
    same(estimate.range(0, np.arange(size)), estimate.prefix(np.arange(size)))
    same(estimate.prefix(np.arange(size)), [estimate.prefix(item) for item in range(size)])
    assert isinstance(estimate.prefix(0), float)
    assert estimate.range(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).shape == (0,)
    cdf = estimate.cdf()
    assert cdf.shape == (size,)
    if np.isfinite(cdf).all():
        same(cdf, estimate.prefix(np.arange(size)) / total_of(estimate))
    before = cdf.copy()
    cdf[:] = 7  # a copy
    same(estimate.cdf(), before)


def check_refused(estimate, size):
    """Ends that are none, and fractions that are none."""
    wrong = [(-1, 0), (0, size), (0.0, 0), (0, None), ("0", 0), (True, 1), ([0, 0, 0], [0, 0])]
    for first, last in [*wrong, *([(size - 1, 0)] if size > 1 else [])]:
        with pytest.raises(InvalidRange) as refused:
            estimate.range(first, last)
        assert isinstance(refused.value, InvalidQuestion)
    for last in (-1, size, 0.5, None, "0"):
        with pytest.raises(InvalidRange):
            estimate.prefix(last)
    for phi in (-0.1, 1.1, np.nan, [0.5, 2.0], "much", None):
        with pytest.raises((ValueError, TypeError)):
            estimate.quantile(phi)
        if hasattr(estimate, "quantile_interval"):
            with pytest.raises((ValueError, TypeError)):
                estimate.quantile_interval(phi)
    if hasattr(estimate, "quantile_interval"):
        for confidence in (0, 1, -1, np.nan):
            with pytest.raises(ValueError, match="confidence"):
                estimate.quantile_interval(0.5, confidence)


def check_quantiles(estimate, size):
    """They are items, ascending, and within their intervals, which grow with the confidence."""
    found = estimate.quantile(PHI)
    assert found.shape == PHI.shape
    assert found.dtype.kind == "i"
    assert ((found >= 0) & (found < size)).all()
    assert (np.diff(found) >= 0).all()
    assert [estimate.quantile(float(phi)) for phi in PHI] == found.tolist()
    assert isinstance(estimate.quantile(0.5), int)
    assert estimate.quantile(PHI.reshape(3, 3)).tolist() == found.reshape(3, 3).tolist()
    if not hasattr(estimate, "quantile_interval"):
        return
    narrow, wide = (estimate.quantile_interval(PHI, level) for level in (0.5, 0.99))
    for low, high in (narrow, wide):
        assert ((low <= found) & (found <= high)).all()
        assert ((low >= 0) & (high < size)).all()
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) >= 0).all()
    assert (wide[0] <= narrow[0]).all()
    assert (wide[1] >= narrow[1]).all()
    low, high = estimate.quantile_interval(0.5, 0.5)
    assert (low, high) == (narrow[0][4], narrow[1][4])
    assert isinstance(low, int)


@pytest.mark.parametrize("place", RANGES)
def test_ranges_and_quantiles(place):
    protocol, _ = COLLECTED[place]
    some, nobody = collected(place)
    check_ranges(some, protocol.domain)
    check_refused(some, protocol.domain)
    check_quantiles(some, protocol.domain)
    check_ranges(nobody, protocol.domain)
    check_refused(nobody, protocol.domain)
    assert np.isnan(nobody.range(0, 0))
    with pytest.raises(ValueError, match="no reports"):
        nobody.quantile(0.5)
    if hasattr(nobody, "quantile_interval"):
        assert nobody.quantile_interval(0.5) == (0, protocol.domain - 1)


@pytest.mark.parametrize("mechanism", CENTRAL, ids=repr)
def test_ranges_and_quantiles_of_a_curator(mechanism):
    estimate = mechanism.release(np.full(mechanism.domain, 30), np.random.default_rng(1))
    check_ranges(estimate, mechanism.domain)
    check_refused(estimate, mechanism.domain)
    check_quantiles(estimate, mechanism.domain)
    nobody = mechanism.release(np.zeros(mechanism.domain, dtype=int), np.random.default_rng(1))
    check_ranges(nobody, mechanism.domain)


class OpenPrefix(Distribution):
    """Leaves out the last item."""

    def prefix(self, last):
        return super().prefix(last) - self.frequencies[last]


class Falling(Distribution):
    """Counts from above."""

    def quantile(self, phi):
        return super().quantile(1 - np.asarray(phi))


def test_planted_errors_are_found():
    frequencies = np.array([0.1, 0.2, 0.3, 0.4])
    for check in (check_ranges, check_refused, check_quantiles):
        check(Distribution(frequencies, 9), 4)
    for kind, check in ((OpenPrefix, check_ranges), (Falling, check_quantiles)):
        with pytest.raises(AssertionError):
            check(kind(frequencies, 9), 4)
