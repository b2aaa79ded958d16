"""Predicted errors of answers from grids, against simulation and their formula.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frequency import Between, UnknownVariance
from rangeq.grids import HDG, TDG, RangeCALM
from rangeq.grids.cells import overlap
from tests.rangeq.grids.populations import collected


@pytest.mark.slow
@pytest.mark.parametrize(
    "protocol",
    [
        TDG([12] * 3, 1.0, granularity=3),
        RangeCALM([4, 3, 2], 1.0),
        HDG([10] * 3, 1.0, granularity=3, line_granularity=5),
    ],
    ids=repr,
)
def test_predicted_noise_and_sampling_are_the_variance_of_the_linear_answer(protocol: Any) -> None:
    sizes, channel = protocol.attributes.sizes, protocol.channel
    rng = np.random.default_rng(5)
    records = np.minimum(rng.geometric(0.3, size=(3000, 3)) - 1, np.array(sizes) - 1)
    records[:, 1] = np.minimum(records[:, 0], sizes[1] - 1)
    left, right = np.array([[0, 1]]), np.array([[1, 1]])
    part = next(k for k, grid in enumerate(channel.grids) if grid.places == (0, 1))
    inside = [
        overlap(edges, left[:, axis], right[:, axis])[0]
        for axis, edges in enumerate(channel.grids[part].edges)
    ]
    found, predicted = [], []
    for _ in range(400):
        aggregate = protocol.aggregate(protocol.privatize(records, rng))
        table = channel.frequencies(aggregate, part)
        found.append(inside[0] @ (table + (1 - table.sum()) / table.size) @ inside[1])
        error = protocol.estimate(aggregate).predicted_error([0, 1], left, right)
        predicted.append(error.noise[0] + error.sampling[0])
    cells = [
        np.searchsorted(edges, records[:, axis], side="right") - 1
        for axis, edges in enumerate(channel.grids[part].edges)
    ]
    assert np.mean(found) == pytest.approx(
        (inside[0][cells[0]] * inside[1][cells[1]]).mean(), abs=5 * np.std(found) / 20
    )
    # The variance of 400 nearly normal values is within a factor of 1 -+ 5 (2/400)^(1/2).
    assert 0.64 < np.var(found) / np.mean(predicted) < 1.4


def test_predicted_errors_of_grids() -> None:
    records = np.random.default_rng(6).integers(0, 64, size=(50_000, 3))
    estimate = collected(TDG([64] * 3, 1.0, granularity=4), records)
    error = estimate.predicted_error(
        [0, 1], [[0, 0], [0, 0], [0, 5]], [[15, 15], [31, 31], [31, 36]]
    )
    # Of k cells of 16 that lie inside, k (1 - k / 16) variances; nothing cut, nothing non-uniform;
    # else ALPHA2 of what is cut.
    assert error.noise[1] / error.noise[0] == pytest.approx(16 / 5, rel=0.3)
    assert error.non_uniformity[0] == 0
    cut = (
        estimate.answer({0: Between(0, 31), 1: Between(0, 15)}).value
        + estimate.answer({0: Between(0, 31), 1: Between(32, 47)}).value
    )
    assert error.non_uniformity[2] == pytest.approx((0.03 * cut) ** 2)
    np.testing.assert_allclose(error.total, error.noise + error.sampling + error.non_uniformity)
    # A single attribute is told of by two grids; queries of three attributes have no formula.
    assert 0 < estimate.predicted_error([0], [[0]], [[15]]).noise[0] < 1
    assert np.isnan(estimate.predicted_error([0, 1, 2], [[0, 0, 0]], [[3, 3, 3]]).noise).all()


@pytest.mark.parametrize(
    "protocol",
    [
        TDG([8, 8, 8], 1.0, granularity=4),
        HDG([8, 8, 8], 1.0, granularity=4, line_granularity=8, oracle="GRR"),
        RangeCALM([8, 8, 8], 1.0, oracle="HRR"),
    ],
    ids=lambda protocol: type(protocol).__name__,
)
def test_what_is_known_does_not_err_and_ranges_err_as_their_complements(protocol: Any) -> None:
    estimate = collected(protocol, np.random.default_rng(7).integers(0, 8, size=(20_000, 3)))
    whole = (
        {0: Between(0, 7)},
        {0: Between(0, 7), 1: Between(0, 7)},
        dict.fromkeys(range(3), Between(0, 7)),
        {2: list(range(8))},
    )
    for where in whole:
        answer = estimate.answer(where)
        assert tuple(answer) == (1.0, 0.0)
        assert answer.interval() == (1.0, 1.0)
    part, rest = (estimate.answer({0: Between(0, last), 1: Between(0, 7)}) for last in (1, 7))
    assert part.variance > rest.variance == 0
    assert part.value == estimate.answer({0: Between(0, 1)}).value
    # Of nearly all, no more than of the little that is left.
    nearly, left = estimate.answer({0: Between(0, 5)}), estimate.answer({0: Between(6, 7)})
    assert nearly.value + left.value == pytest.approx(1, abs=1e-9)
    assert nearly.variance == pytest.approx(left.variance, rel=1e-9)
    assert nearly.variance < estimate.answer({0: Between(0, 3)}).variance


def test_published_post_processing_states_no_errors() -> None:
    protocol = RangeCALM([8, 8], 1.0, nonnegative=True)
    estimate = collected(protocol, np.random.default_rng(8).integers(0, 8, size=(2000, 2)))
    with pytest.raises(UnknownVariance, match="no theory"):
        _ = estimate.answer({0: Between(0, 3), 1: Between(0, 3)}).variance
    assert tuple(estimate.answer({0: Between(0, 7)})) == (1.0, 0.0)
