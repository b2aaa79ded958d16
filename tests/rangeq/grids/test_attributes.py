"""Attributes: names, sizes, and tables of records."""

from __future__ import annotations

import numpy as np
import pytest

from frequency import InvalidValue
from frequency.marginals import Domain
from rangeq.core.intervals import InvalidRange
from rangeq.grids import HDG, Attributes
from rangeq.grids.queries import place_of


class Frame:
    """What a DataFrame has that matters here."""

    def __init__(self, **columns: list[int]) -> None:
        self.columns, self._columns = list(columns), columns

    def __getitem__(self, name: str) -> list[int]:
        return self._columns[name]


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
    assert [place_of(named, key) for key in ("income", 1, np.int64(0))] == [1, 1, 0]
    for key in ("wages", 2, -1, 0.0, None, True):
        with pytest.raises(InvalidRange):
            place_of(named, key)


def test_tables_are_read_by_name() -> None:
    attributes = Attributes.of({"age": 100, "income": 8})
    frame = Frame(income=[7, 0], name=[1, 2], age=[99, 5])
    assert attributes.records(frame).tolist() == [[99, 7], [5, 0]]
    assert attributes.records(np.array([[99.0, 7.0]])).tolist() == [[99, 7]]
    with pytest.raises(ValueError, match="no column 'income'"):
        attributes.records(Frame(age=[1]))
    with pytest.raises(InvalidValue) as caught:
        attributes.records([[0, 0], [1, 8]])
    assert (caught.value.index, caught.value.value, caught.value.largest) == ((1, 1), 8, 7)
    masked = np.ma.MaskedArray([[1, 2]], mask=[[False, True]])
    with pytest.raises(InvalidValue):
        attributes.records(masked)


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
