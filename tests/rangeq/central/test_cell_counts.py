"""The histogram of a table, a part at a time, against counting rows one by one."""

import numpy as np
import pandas as pd
import pytest

from frequency import InvalidValue
from frequency.exceptions import InvalidCell, UnknownColumn
from frequency.schema import Categorical, Numeric, Schema, Text
from frequency.storage.table import applied
from mechdesign.base import opened_csv
from mechdesign.exceptions import InvalidTable
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


# ------------------------------------------------------------------------------------------------
# Of a CSV file the different texts are read, not all of them: against all, row by row.

FILES = {
    "plain": "age,place\n" + "30,Åbo\n31,Bath\n" * 40,
    "crlf": "age,place\r\n" + "30,Åbo\r\n31,Bath\r\n" * 40,
    "cr": "age,place\r" + "30,Åbo\r31,Bath\r" * 40,
    "quotes": 'age,place\n"30","Åbo"\n31,"a ""b"", c"\n32,"two\nlines"\n' * 1
    + '"30",Bath\n31,"a ""b"", c"\n' * 40,
    "separators inside quotes": 'place,age\n"a ""b"", c",30\nBath,31\n' * 1 + "Bath,32\n" * 40,
    "semicolons": "age;place\n" + "30;Åbo\n;Bath\n" * 40,
    "missing": "age,place\n" + "30,\n,Bath\nNA,Åbo\n 31 ,nan\n" * 20,
    "nothing but missing": "age,place\n" + ",\n" * 40,
    "words of the items": "age,place\n" + "outside,missing\nmissing,outside\n" * 20,
    "outside": "age,place\n" + "29,Cork\n99,Bath\n-7,Åbo\n1e2,Bath\n" * 20,
    "spellings": "age,place\n" + "30.0,Bath\n3e1,Bath\n+31,Bath\n030, Bath\n" * 20,
    "composed and not": "age,place\n" + "30,Åbo\n30,A\u030abo\n" * 30,
    "invisible": "age,place\n" + "30,Ba\u200bth\n30,Bath\u00a0\n\ufeff30,Bath\n" * 20,
    "byte order mark": "\ufeffage,place\n" + "30,Bath\n" * 40,
    "no line end": "age,place\n" + "30,Bath\n" * 40 + "31,Åbo",
    "empty lines at the end": "age,place\n" + "30,Bath\n" * 40 + "\n\r\n\n",
    "many texts": "age,place\n" + "".join(f"{k / 1000},Bath\n" for k in range(30000, 33000, 7)),
    "bad at the end": "age,place\n" + "30,Bath\n" * 60 + "thirty,Bath\n",
    "infinite": "age,place\n" + "30,Bath\n" * 60 + "inf,Bath\nforty,Bath\n",
    "bad place before bad age": "age,place\n" + "30,Bath\n" * 60 + "30,x\nold,x\n",
    "empty line": "age,place\n" + "30,Bath\n" * 40 + "\n" + "30,Bath\n",
    "short row": "age,place\n" + "30,Bath\n" * 40 + "30\n" + "30,Bath\n",
    "long row": "age,place\n" + "30,Bath\n" * 40 + "30,Bath,1\n" + "30,Bath\n",
    # One that hides no row is taken for part of the text: see `frequency.storage.table`
    "stray quote": "age,place\n" + "30,Bath\n" * 40 + '30,"Bath\n30,Ba"th\n' + "30,Bath\n",
    "open quote": "age,place\n" + "30,Bath\n" * 40 + '30,"Bath\n' + "30,Bath\n" * 5,
    "empty": "",
    "only a header": "age,place\n",
    "no such column": "age,town\n" + "30,Bath\n" * 40,
    "column twice": "age,place,age\n" + "30,Bath,31\n" * 40,
}


def slowly(path, schema):
    """Counts by the reader of the standard library, from lists."""
    with opened_csv(path) as table:
        if not table.header:
            raise InvalidTable("empty")
        try:
            places = table.places(schema.names)
        except InvalidTable as error:
            raise UnknownColumn(str(error)) from None
        rows = [[row[place] or None for place in places] for row, _ in table.at_least_one()]
    columns = dict(zip(schema.names, map(list, zip(*rows, strict=True)), strict=True))
    counts = np.zeros(schema.sizes, dtype=np.int64)
    np.add.at(counts, schema.encode(columns).columns, 1)
    return counts


@pytest.mark.parametrize("missing", ["refuse", "item", "skip"])
@pytest.mark.parametrize("outside", ["refuse", "item"])
@pytest.mark.parametrize("name", FILES)
@pytest.mark.every_case
def test_a_file_counts_as_its_rows_do(name, missing, outside, tmp_path, monkeypatch):
    """Also when it is refused: at the same row, and in the same words as without repeats."""
    policies = {"missing": missing, "outside": outside}
    schema = Schema(
        [
            Numeric("age", low=30, high=33, bins=6, **policies),
            Categorical("place", ["Bath", "Åbo", 'a "b", c', "two\nlines"], **policies),
        ]
    )
    (path := tmp_path / "people.csv").write_bytes(FILES[name].encode())

    def result(count):
        try:
            return count().tolist(), ""
        except (InvalidCell, InvalidTable, UnknownColumn) as error:
            cell = error if isinstance(error, InvalidCell) else error.__cause__
            if isinstance(cell, InvalidCell):
                return (cell.row, cell.column, cell.value), str(error)
            return type(error), str(error)

    def fast():
        return count_cells(schema, applied(path, schema.names, schema.encode))

    monkeypatch.setattr("frequency.schema.column._MANY", 1 << 40)
    each = result(fast)
    monkeypatch.setattr("frequency.schema.column._MANY", 16)
    assert result(fast) == each
    assert result(lambda: slowly(path, schema))[0] == each[0]
