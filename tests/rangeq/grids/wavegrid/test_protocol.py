"""WaveGrid and best: the verbs, merging, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frequency import Between, IncompatibleAggregate, InvalidValue
from rangeq.grids import WaveEstimate, WaveGrid, best
from rangeq.grids.wavegrid.square_waves import LARGEST


def test_verbs_and_merging() -> None:
    protocol = best({"a": 8, "b": 5, "c": 3}, 1.0, 3000)
    records = np.random.default_rng(8).integers(0, [8, 5, 3], size=(3000, 3))
    reports = protocol.privatize(records, np.random.default_rng(9))
    assert reports.dtype == protocol.report_dtype
    assert protocol.report_bits <= 8 * reports.dtype.itemsize
    whole = protocol.aggregate(reports)
    assert sum(protocol.aggregate(part) for part in np.array_split(reports, 7)) == whole
    assert protocol.aggregate_from_bytes(whole.to_bytes()) == whole
    assert (protocol.reports_from_bytes(protocol.reports_to_bytes(reports)) == reports).all()
    assert protocol.simulate(1, np.random.default_rng(3), records).n == 3000
    first, second = (
        protocol.estimate(whole),
        protocol.estimate(protocol.aggregate(reports[::-1].copy())),
    )
    assert (
        first.answer({"b": Between(1, 3), "a": Between(0, 3)}).value
        == second.answer({0: Between(0, 3), 1: Between(1, 3)}).value
    )
    assert isinstance(first, WaveEstimate)
    assert isinstance(second, WaveEstimate)
    np.testing.assert_array_equal(
        first.response_matrix("a", "c"), second.response_matrix("c", "a").T
    )
    assert protocol == WaveGrid({"a": 8, "b": 5, "c": 3}, 1.0, 3000)
    assert protocol.parameters != best({"a": 8, "b": 5, "d": 3}, 1.0, 3000).parameters
    assert protocol.parameters != best({"a": 8, "b": 5, "c": 4}, 1.0, 3000).parameters
    with pytest.raises(IncompatibleAggregate):
        best([8, 5, 4], 1.0, 3000).estimate(whole)


@pytest.mark.parametrize(
    "bad", [[[0, 5, 0]], [[-1, 0, 0]], [[0.5, 0, 0]], [["x", 0, 0]], [[float("nan"), 0, 0]]]
)
def test_records_outside_the_domain_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidValue):
        best([8, 5, 3], 1.0, 100).privatize([[0, 0, 0], *bad])


def test_parameters_are_checked() -> None:
    for sizes in ([], 5, [0], [2.5, 3], "64", {"a": -1}, [True, 4]):
        with pytest.raises(ValueError, match="size"):
            best(sizes, 1.0, 100)
    for n in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="n must be"):
            best([4, 4], 1.0, n)
    with pytest.raises(ValueError, match="epsilon"):
        best([4, 4], 0.0, 100)
    with pytest.raises(ValueError, match="up to 2147483648 values"):
        best([4, LARGEST + 1], 1.0, 100)
    with pytest.raises(ValueError, match="276 pairs of attributes of such sizes need"):
        best([1024] * 24, 1.0, 100)
    assert best([1024] * 23, 1.0, 100).report_bits > 0
    with pytest.raises(TypeError, match="Generator"):
        best([4, 4], 1.0, 100).simulate(1, np.random.RandomState(1), [[0, 0]])
