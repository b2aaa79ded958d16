"""Attributes: tables of records."""

from __future__ import annotations

import numpy as np
import pytest

from frequency import InvalidValue
from frequency.core.attributes import Attributes


class Frame:
    """What a DataFrame has that matters here."""

    def __init__(self, **columns: list[int]) -> None:
        self.columns, self._columns = list(columns), columns

    def __getitem__(self, name: str) -> list[int]:
        return self._columns[name]


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
