"""The figure of an estimate shows what it says."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from frequency import GRR, JLOracle, plot


@pytest.fixture
def estimate():
    oracle = GRR(6, 2.0)
    return oracle.estimate(
        oracle.simulate(np.array([50, 40, 30, 20, 10, 0]), np.random.default_rng(1))
    )


def test_points_intervals_and_truth(estimate) -> None:
    truth = np.array([5, 4, 3, 2, 1, 0]) / 15
    figure = plot.frequencies(estimate, truth, list("abcdef"), confidence=0.9)
    (axes,) = figure.axes
    order = np.argsort(-estimate.frequencies, kind="stable")
    assert [text.get_text() for text in axes.get_yticklabels()] == ["abcdef"[k] for k in order]
    (bars,) = (one for one in axes.containers if isinstance(one, ErrorbarContainer))
    points, _, (arms,) = bars.lines
    assert np.allclose(points.get_xdata(), estimate.frequencies[order])
    low, high = estimate.interval(0.9)
    ends = np.array([segment[:, 0] for segment in arms.get_segments()])
    assert np.allclose(ends, np.stack([low[order], high[order]], axis=1))
    crosses = next(line for line in axes.lines if line.get_label() == "truth")
    assert np.allclose(crosses.get_xdata(), truth[order])
    figure.savefig(io.BytesIO(), format="png")


def test_the_largest_of_many_items(estimate) -> None:
    figure = plot.frequencies(estimate, largest=2)
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "the 2 largest of 6 items"
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        str(k) for k in np.argsort(-estimate.frequencies)[:2]
    ]


def test_items_are_named_by_their_numbers() -> None:
    oracle = JLOracle(1 << 40, 2.0, rows=64)
    aggregate = oracle.aggregate(oracle.privatize(np.array([5, 1 << 39]), np.random.default_rng(1)))
    figure = plot.frequencies(oracle.estimate(aggregate, items=[1 << 39]))
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [str(1 << 39)]


def test_what_cannot_be_drawn(estimate) -> None:
    with pytest.raises(ValueError, match="6 items"):
        plot.frequencies(estimate, truth=[0.5])
    with pytest.raises(ValueError, match="6 items"):
        plot.frequencies(estimate, labels=["a"])
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.frequencies(estimate, largest=0)
    oracle = GRR(6, 2.0)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.frequencies(oracle.estimate(oracle.simulate(np.zeros(6, dtype=int))))
