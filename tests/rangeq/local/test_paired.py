"""The AUC of private scores and means over ranges of private keys."""

from __future__ import annotations

import math

import numpy as np
import pytest

from frequency import InvalidValue
from rangeq import HaarHRR, HierarchicalHistogram, Paired


def slow_auc(bits: np.ndarray, scores: np.ndarray) -> float:
    ones, zeros = scores[bits == 1][:, None], scores[bits == 0][None]
    return float((ones > zeros).mean() + (ones == zeros).mean() / 2)


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    bits = (rng.random(20_000) < 0.3).astype(int)
    return bits, np.clip(rng.normal(14 + 6 * bits, 6).astype(int), 0, 31)


@pytest.mark.parametrize(
    "protocol", [HaarHRR(64, 3.0), HierarchicalHistogram(64, 3.0, (2, 4, 4, 2), "GRR")], ids=repr
)
def test_auc_is_right_with_the_error_that_is_stated(protocol, people) -> None:
    pairs, (bits, scores) = Paired(protocol), people
    truth = slow_auc(bits[:3000], scores[:3000])
    held = np.bincount(pairs.items(bits[:3000], scores[:3000]), minlength=64) * 400
    rng = np.random.default_rng(2)
    found = [pairs.auc(protocol.estimate(protocol.simulate(held, rng))) for _ in range(60)]
    errors = np.array([(value - truth) / math.sqrt(variance) for value, variance in found])
    # 60 standard normal errors: a mean beyond 0.65 or a mean square outside 0.35 .. 2.2 has a
    # chance below 1e-6 each.
    assert abs(errors.mean()) < 0.65
    assert 0.35 < (errors**2).mean() < 2.2
    assert max(abs(float(value) - truth) for value, _ in found) < 0.03


def test_auc_without_noise_is_the_definition(people) -> None:
    protocol = HierarchicalHistogram(64, 40.0, (64,), "GRR")  # every report is true
    pairs, (bits, scores) = Paired(protocol), people
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(pairs.items(bits, scores), np.random.default_rng(3)))
    )
    assert pairs.auc(estimate).value == pytest.approx(slow_auc(bits, scores), abs=1e-9)


def test_means_over_ranges_of_keys() -> None:
    protocol = HaarHRR(64, 3.0)
    pairs, rng = Paired(protocol), np.random.default_rng(4)
    keys = rng.integers(0, 32, 400_000)
    values = np.where(keys < 16, 0.5, -0.25)
    first, last = np.array([0, 16, 0, 8]), np.array([15, 31, 31, 23])
    errors = []
    for _ in range(25):
        estimate = protocol.estimate(
            protocol.aggregate(protocol.privatize(pairs.keyed(keys, values, rng), rng))
        )
        means, variances = pairs.mean(estimate, first, last)
        truth = [values[(keys >= a) & (keys <= b)].mean() for a, b in zip(first, last, strict=True)]
        errors.append((means - truth) / np.sqrt(variances))
    # 100 errors of four overlapping ranges, 25 times independently: the mean square of 25 is within
    # 0.2 .. 3 but for 1e-6.
    assert (np.abs(np.mean(errors, axis=0)) < 1.0).all()
    assert (np.mean(np.square(errors), axis=0) > 0.2).all()
    assert (np.mean(np.square(errors), axis=0) < 3).all()
    one = pairs.mean(estimate, 0, 15)
    assert one == (pytest.approx(means[0]), pytest.approx(variances[0]))


def test_values_are_rounded_without_bias() -> None:
    pairs = Paired(HaarHRR(8, 1.0))
    rng = np.random.default_rng(5)
    for value in (-1.0, -0.3, 0.0, 0.9, 1.0):
        ones = pairs.keyed(np.full(100_000, 3), np.full(100_000, value), rng) == 7
        # Beyond 5.5 sigma: 4e-8
        assert ones.mean() == pytest.approx((1 + value) / 2, abs=5.5 * math.sqrt(0.25 / 100_000))
    assert set(np.unique(pairs.keyed([0, 3], [-1.0, 1.0]))) == {0, 7}


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="even"):
        Paired(HaarHRR(7, 1.0))
    pairs = Paired(HaarHRR(8, 1.0))
    with pytest.raises(InvalidValue):
        pairs.items([0, 2], [1, 1])
    with pytest.raises(InvalidValue):
        pairs.items([0, 1], [1, 4])
    for value in (1.5, -1.01, math.nan):
        with pytest.raises(ValueError, match=r"values\[1\]"):
            pairs.keyed([0, 0], [0.0, value])
    estimate = pairs.protocol.estimate(pairs.protocol.simulate(np.ones(8, dtype=int)))
    with pytest.raises(ValueError, match="keys"):
        pairs.mean(estimate, 0, 4)
