"""Attributes: names, sizes, and more records than can be numbered."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.core.answer import place_of
from frequency.marginals import Domain
from rangeq.core.intervals import InvalidRange
from rangeq.grids import HDG, Attributes


def test_sizes_come_in_many_forms() -> None:
    named = Attributes.of({"age": 100, "income": 8})
    assert named == Attributes.of(Domain({"age": 100, "income": 8})) == Attributes.of(named)
    assert (
        Attributes.of([100, 8])
        == Attributes.of(np.array([100, 8]))
        == Attributes(("0", "1"), (100, 8))
    )
    assert named.size == 800
    assert named.pairs == ((0, 1),)
    assert [place_of(key, named.names, InvalidRange) for key in ("income", 1, np.int64(0))] == [
        1,
        1,
        0,
    ]
    for key in ("wages", 2, -1, 0.0, None, True):
        with pytest.raises(InvalidRange):
            place_of(key, named.names, InvalidRange)


def test_more_records_than_can_be_numbered() -> None:
    protocol = HDG([1 << 32, 5] * 6, 2.0, 20_000)
    assert protocol.attributes.size > 1 << 200
    records = np.random.default_rng(1).integers(0, [1 << 32, 5] * 6, size=(20_000, 12))
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(records, np.random.default_rng(2)))
    )
    half = (1 << 31) - 1
    # The deviation is 0.05.
    assert estimate.answer({0: (0, half), 2: (0, half)}).value == pytest.approx(0.25, abs=0.25)
