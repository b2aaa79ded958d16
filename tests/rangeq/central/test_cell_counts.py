"""The histogram of a table, a part at a time, against counting rows one by one."""

import numpy as np
import pandas as pd
import pytest

from frequency import InvalidValue
from frequency.schema import Categorical, Numeric, Schema, Text
from rangeq.central import count_cells

SCHEMA = Schema(
    [
        Numeric("age", low=0, high=9, whole=True, missing="item", outside="clip"),
        Categorical("sex", ["f", "m"], outside="item"),
        Numeric("pay", [0, 1, 10], missing="skip"),
    ]
)
ROWS = [
    (3, "f", 0.5),
    (3, "f", 0.7),
    (None, "m", 5.0),
    (77, "x", 1.0),
    (-5, "m", 10.0),
    (4, "f", None),
    (9, "f", 0.0),
]
CELLS = [(3, 0, 0), (3, 0, 0), (10, 1, 1), (9, 2, 1), (0, 1, 1), (9, 0, 0)]


def table(rows):
    return pd.DataFrame(rows, columns=["age", "sex", "pay"])


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_rows_are_counted_one_by_one(parts):
    expected = np.zeros(SCHEMA.sizes, dtype=np.int64)
    for cell in CELLS:
        expected[cell] += 1
    cuts = np.array_split(np.arange(len(ROWS)), parts)
    tables = [table([ROWS[k] for k in cut]) for cut in cuts]
    np.testing.assert_array_equal(count_cells(SCHEMA, iter(tables)), expected)
    np.testing.assert_array_equal(count_cells(SCHEMA, map(SCHEMA.encode, tables)), expected)


def test_nobody_is_in_no_cell():
    for tables in ([], [table([])]):
        found = count_cells(SCHEMA, tables)
        assert found.shape == (11, 3, 2)
        assert found.sum() == 0


def test_what_cannot_be_counted():
    with pytest.raises(InvalidValue, match="row 1, column 'pay'"):
        count_cells(SCHEMA, [table([(1, "f", 1.0), (1, "f", 11.0)])])
    with pytest.raises(ValueError, match=r"word is a text .* can be listed"):
        count_cells(Schema([Text("word", 1)]), [])
    large = Schema([Numeric(name, low=0, high=1 << 14, whole=True) for name in "ab"])
    with pytest.raises(ValueError, match=r"more than 2\^26"):
        count_cells(large, [])
    with pytest.raises(ValueError, match="at most 8 attributes"):
        count_cells(Schema([Categorical(name, ["x"]) for name in "abcdefghi"]), [])
