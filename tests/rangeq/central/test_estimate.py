"""Answers of a curator's estimates against dense linear algebra and simulation; what is refused.

False alarms: every statistical test here keeps a z-score below 6 or a p-value above 1e-6, is
seeded, and is shown to reject a planted error.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frequency import Between
from rangeq.central import CentralFlat, Hierarchy, InvalidRange, Wavelet
from tests.rangeq.central.examples import (
    ALL,
    FLATS,
    SEVERAL,
    TREES,
    WAVELETS,
    boxes,
    dense,
    indicators,
    name,
)

# -------------------------------------------------------------------------- against dense algebra


@pytest.mark.parametrize("m", TREES + WAVELETS + FLATS + SEVERAL, ids=name)
def test_estimates_are_least_squares(m):
    solution, covariance = dense(m, m.noise_variances)
    rng = np.random.default_rng(3)
    shapes = [level.shape for level in m.levels(np.zeros(m.sizes, dtype=np.int64))]
    noisy = [rng.integers(-50, 50, shape) for shape in shapes]
    estimate = m.estimate(noisy)
    cells = solution @ np.concatenate([level.ravel() for level in noisy])
    np.testing.assert_allclose(estimate.counts.ravel(), cells, atol=1e-9)
    first, last = boxes(m)
    asked = dict(enumerate(map(Between, first, last)))
    told = estimate.answer(asked)
    np.testing.assert_allclose(told.value, indicators(m) @ cells, atol=1e-9)
    if len(m.sizes) == 1:
        np.testing.assert_allclose(
            estimate.prefix(np.arange(m.domain)), np.cumsum(cells), atol=1e-9
        )
    # Products of sets of places, and of sets and ranges
    for _ in range(5):
        sets = [sorted({int(x) for x in rng.integers(0, size, 3)}) for size in m.sizes]
        chosen: Any = np.ones(1)
        for size, one in zip(m.sizes, sets, strict=True):
            chosen = np.kron(chosen, np.isin(np.arange(size), one))
        told = estimate.answer(dict(enumerate(sets)))
        assert told.value == pytest.approx(chosen @ cells, abs=1e-9)
        assert told.variance == pytest.approx(chosen @ covariance @ chosen)
        assert m.variance(dict(enumerate(sets))) == told.variance


# ----------------------------------------------------------------------------- against simulation


@pytest.mark.slow
@pytest.mark.parametrize(
    "m",
    [
        Hierarchy(17, 1.0, 2),
        Hierarchy(12, 2.0, [3, 4], budget=[1, 2]),
        Hierarchy(12, 1.0, [3, 4], inference=False),
        Wavelet(11, 1.0),
        CentralFlat(6, 0.5),
        Hierarchy((5, 4), 1.0, 2),
        Hierarchy((5, 4), 1.0, 2, inference=False),
        Wavelet((3, 4), 1.0),
    ],
    ids=name,
)
def test_unbiased_and_as_variable_as_predicted(m):
    """4000 releases: the mean of the errors within 6 deviations of 0; chi-square-like bounds on
    their mean square.
    """
    rng = np.random.default_rng(11)
    counts = rng.integers(0, 100, m.sizes)
    asked = dict(enumerate(map(Between, *boxes(m))))
    truth = indicators(m) @ counts.ravel()
    errors = np.array([m.release(counts, rng).answer(asked).value - truth for _ in range(4000)])
    variances = m.variance(asked)

    def worst_mean(e, v):
        return np.abs(e.mean(axis=0) / np.sqrt(v / len(e))).max()

    def worst_square(e, v):
        # Kurtosis is at most 6, that of Laplace noise
        return np.abs((e**2 / v).mean(axis=0) - 1).max() / math.sqrt(5 / len(e))

    assert worst_mean(errors, variances) < 6
    assert worst_square(errors, variances) < 6
    assert worst_mean(errors + 0.15 * np.sqrt(variances), variances) > 6
    assert worst_square(errors, variances * 0.8) > 6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_intervals_cover(epsilon, confidence):
    """Coverage of single cells and of many: at least what is asked, but for four deviations of
    20000 tries and lattice effects.
    """
    counts = np.full(20000, 5)
    flat = CentralFlat(20000, epsilon).release(counts, np.random.default_rng(1))
    cells = np.arange(20000)
    low, high = flat.answer(Between(cells, cells)).interval(confidence)
    assert ((low <= 5) & (high >= 5)).mean() > confidence - 4 * math.sqrt(
        confidence * (1 - confidence) / 20000
    ) - 0.002
    low, high = flat.answer(Between(cells[:-10:10], cells[9:-1:10])).interval(confidence)
    assert ((low <= 50) & (high >= 50)).mean() > confidence - 4 * math.sqrt(
        confidence * (1 - confidence) / 2000
    )
    mechanism = Hierarchy(4096, epsilon, 16)
    tree = mechanism.release(np.full(4096, 5), np.random.default_rng(2))
    low, high = tree.answer(Between(0, 99)).interval(confidence)
    assert isinstance(low, float)
    assert high - low == pytest.approx(
        2 * (0.5 + math.sqrt(mechanism.range_variance(0, 99)) * half_width(confidence))
    )


def half_width(confidence):
    return max(
        stats.norm.ppf((1 + confidence) / 2), stats.laplace.ppf((1 + confidence) / 2) / math.sqrt(2)
    )


# ------------------------------------------------------------------------- what answers look like


@pytest.mark.parametrize("m", ALL, ids=name)
def test_shapes_and_types(m):
    estimate = m.release(np.arange(m.domain), np.random.default_rng(0))
    last = m.domain - 1
    assert isinstance(estimate.range(0, last), float)
    assert isinstance(estimate.answer(Between(np.int64(0), last)).variance, float)
    assert estimate.range([0, 0], [last, 0]).shape == (2,)
    assert estimate.range(np.zeros((2, 3), dtype=int), last).shape == (2, 3)
    assert estimate.answer(Between(np.zeros((2, 3), dtype=np.uint8), last)).variance.shape == (2, 3)
    assert estimate.range([], []).shape == (0,)
    assert estimate.counts.shape == (m.domain,)
    assert not estimate.counts.flags.writeable
    assert estimate.prefix(last) == estimate.range(0, last)
    np.testing.assert_allclose(
        estimate.range(np.arange(m.domain), np.arange(m.domain)), estimate.counts, atol=1e-9
    )
    low, high = estimate.answer(Between([0], [last])).interval()
    assert low[0] < estimate.range(0, last) < high[0]
    cdf = estimate.cdf()
    assert cdf.shape == (m.domain,)
    assert np.isnan(cdf).all() if estimate.prefix(last) <= 0 else cdf[-1] == 1
    assert type(m).__name__ in repr(estimate)
    if not isinstance(m, Hierarchy) or m.inference:  # what is consistent adds up
        np.testing.assert_allclose(
            estimate.prefix(np.arange(m.domain)), np.cumsum(estimate.counts), atol=1e-9
        )


@pytest.mark.parametrize(
    "m",
    [
        CentralFlat(4, 1.0),
        Hierarchy(4, 1.0, 2),
        Hierarchy(4, 1.0, 2, inference=False),
        Wavelet(4, 1.0),
    ],
    ids=name,
)
@pytest.mark.parametrize(
    ("a", "b", "index"),
    [
        (-1, 2, 0),
        (0, 4, 0),
        (2, 1, 0),
        ([0, 3], [3, 2], 1),
        (0.0, 1, None),
        ("0", 1, None),
        (True, 1, None),
        ([0, 1], [1, 2, 3], None),
    ],
)
def test_refused_ranges(m, a, b, index):
    estimate = m.release(np.arange(4), np.random.default_rng(0))
    for question in (estimate.range, m.range_variance):
        with pytest.raises(InvalidRange) as refusal:
            question(a, b)
        assert refusal.value.index == index


def test_refused_confidences():
    estimate = CentralFlat(4, 1.0).release(np.arange(4))
    for confidence in (0, 1, -1, math.nan):
        with pytest.raises(ValueError, match="confidence"):
            estimate.answer(Between(0, 1)).interval(confidence)


def test_large_counts():
    """Up to 2^52 people: exact integers, and float answers that lose nothing to the size of the
    total.
    """
    counts = np.zeros(64, dtype=np.int64)
    counts[[3, 40]] = 1 << 51
    for m in (
        CentralFlat(64, 5.0),
        Hierarchy(64, 5.0, 4),
        Hierarchy(64, 5.0, 4, inference=False),
        Wavelet(64, 5.0),
    ):
        estimate = m.release(counts, np.random.default_rng(0))
        assert abs(estimate.range(3, 3) - (1 << 51)) < 60
        assert abs(estimate.range(4, 39)) < 100
        assert abs(estimate.range(0, 63) - (1 << 52)) < 100
