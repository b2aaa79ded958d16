"""The figure of a distribution shows what it says."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from rangeq import Between, HaarHRR, plot
from tests.pictures import collisions, legend

COUNTS = np.array([0, 10, 40, 100, 200, 100, 50, 0])


@pytest.fixture
def estimate():
    protocol = HaarHRR(8, 2.0)
    return protocol.estimate(protocol.simulate(COUNTS, np.random.default_rng(1)))


@pytest.mark.slow
def test_steps_band_deciles_and_truth(estimate) -> None:
    truth = COUNTS / COUNTS.sum()
    figure = plot.cdf(estimate, truth, confidence=0.9, xlabel="grade")
    (axes,) = figure.axes
    drawn = {one.get_label(): one for one in axes.patches if isinstance(one, StepPatch)}
    np.testing.assert_array_equal(drawn["estimate"].get_data()[0], estimate.cdf())
    np.testing.assert_array_equal(drawn["truth"].get_data()[0], np.cumsum(truth))
    last = np.arange(8)
    low, high = estimate.answer(Between(np.zeros_like(last), last)).interval(0.9)
    values, edges, baseline = drawn["90% band"].get_data()
    np.testing.assert_array_equal(values, high)
    np.testing.assert_array_equal(baseline, low)
    np.testing.assert_array_equal(edges, np.arange(9))
    assert legend(figure) == ["90% band", "estimate", "truth", "deciles, 90% intervals"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("grade", "fraction at or below")
    assert collisions(figure) == []


def test_one_item() -> None:
    protocol = HaarHRR(1, 2.0)
    figure = plot.cdf(protocol.estimate(protocol.simulate(np.array([10]))))
    assert collisions(figure) == []


def test_what_cannot_be_drawn(estimate) -> None:
    with pytest.raises(ValueError, match=r"8 items, got shape \(2,\)"):
        plot.cdf(estimate, truth=[0.5, 0.5])
    protocol = HaarHRR(8, 2.0)
    with pytest.raises(ValueError, match="nothing to draw: no reports"):
        plot.cdf(protocol.estimate(protocol.simulate(np.zeros(8, dtype=int))))
