"""Tables of every library as items, by a schema: what the policies do, and what is refused."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from frequency import (
    Boolean,
    Categorical,
    Dates,
    InvalidCell,
    Numeric,
    Schema,
    Text,
    UnknownColumn,
)

SCHEMA = Schema(
    [
        Categorical("species", ["Adelie", "Chinstrap", "Gentoo"], missing="item", outside="item"),
        Numeric("mass", low=2000, high=7000, bins=50, unit="grams", missing="item", outside="clip"),
        Numeric("year", low=2007, high=2009, whole=True),
        Dates("seen", "2007-01-01", "2009-12-31", "month", missing="skip"),
        Boolean("male", missing="item"),
    ]
)
ROWS: dict[str, list[object]] = {
    "species": ["Gentoo", None, "Emperor", "Adelie", "Chinstrap"],
    "mass": [5000.0, None, 1000.0, 9000.0, 7000.0],
    "year": [2007, 2008, 2009, 2008, 2007],
    "seen": [dt.date(2007, 1, 31), dt.date(2009, 12, 31), dt.date(2008, 2, 29), None, None],
    "male": [True, False, None, True, True],
}
ITEMS = [[2, 4, 3], [30, 50, 0], [0, 1, 2], [0, 35, 13], [1, 0, 2]]


def as_texts(rows):
    def text(value):
        return "" if value is None else str(value)

    return {name: [text(value) for value in column] for name, column in rows.items()}


TABLES = {
    "lists": lambda rows: rows,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "texts": as_texts,
    "texts in pandas": lambda rows: pd.DataFrame(as_texts(rows)),
    "texts in polars": lambda rows: pl.DataFrame(as_texts(rows)),
    "texts in pyarrow": lambda rows: pa.table(as_texts(rows)),
    "object arrays": lambda rows: {name: np.array(one, object) for name, one in rows.items()},
}


@pytest.mark.parametrize("library", TABLES)
def test_every_kind_of_table_gives_the_same_items(library):
    encoded = SCHEMA.encode(TABLES[library](ROWS))
    assert [column.tolist() for column in encoded.columns] == ITEMS
    assert all(column.dtype == np.int64 for column in encoded.columns)
    assert encoded.clipped == {"mass": 2}
    assert encoded.skipped == 2


@pytest.mark.parametrize("library", TABLES)
@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("year", 2010, "an integer from 2007 to 2009"),
        ("year", None, "a value"),
        ("year", 2008.5, "an integer"),
        ("mass", "heavy", "a number"),
        ("mass", float("inf"), "number"),
        ("seen", "2008-02-30", "a date or time"),
        ("seen", dt.date(2010, 1, 1), "a date from 2007-01-01 to 2009-12-31"),
        ("male", "perhaps", "yes or no"),
    ],
)
def test_the_first_bad_cell_is_named(library, column, value, expected):
    rows: dict[str, list[object]] = {name: list(one) for name, one in ROWS.items()}
    if isinstance(value, str) and "texts" not in library:
        rows[column] = [None if one is None else str(one) for one in rows[column]]
    rows[column][1] = value
    if library in ("polars", "pyarrow") and value == 2008.5:
        rows[column] = [float(one) for one in rows[column]]
    with pytest.raises(InvalidCell, match=expected) as raised:
        SCHEMA.encode(TABLES[library](rows))
    assert (raised.value.row, raised.value.column) == (1, column)
    assert f"column {column!r}" in str(raised.value)
    others = [str(one) for name, cells in rows.items() if name != column for one in cells]
    assert not any(one in str(raised.value) for one in others if len(one) > 4)


def test_columns_are_found_by_name_and_others_are_not_looked_at():
    table = pd.DataFrame({"other": [object()], "year": [2009]})
    year = SCHEMA.project("year")
    assert year.encode(table).columns[0].tolist() == [2]
    assert year.encode([2009, 2007]).columns[0].tolist() == [2, 0]
    assert year.encode(pl.Series([2009])).columns[0].tolist() == [2]
    assert year.encode({"year": range(2007, 2010)}).columns[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"mass": [1]}, "no column 'year'; its columns are"),
        (
            pd.DataFrame([[2007, 2008]], columns=["year", "year"]),
            "two columns have one name: .*year",
        ),
        ({"year": np.ones((2, 2))}, "has shape"),
        ({"year": 2007}, "is a int"),
        (2007, "is a int"),
        (pl.DataFrame({"year": [2007]}).lazy(), "is a LazyFrame"),
    ],
)
def test_what_is_no_table_is_refused(table, message):
    with pytest.raises(UnknownColumn, match=message):
        SCHEMA.project("year").encode(table)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(UnknownColumn, match="one length, got year: 1, male: 2"):
        SCHEMA.project(["year", "male"]).encode({"year": [2007], "male": [True, False]})


def test_an_empty_table_has_no_items():
    tables: list[object] = [pd.DataFrame({"year": []}), {"year": []}, pl.DataFrame({"year": []})]
    for table in tables:
        assert SCHEMA.project("year").encode(table).columns[0].shape == (0,)


def test_masked_values_are_missing():
    masked = np.ma.MaskedArray([2007, 2008], mask=[False, True])
    with pytest.raises(InvalidCell, match="row 1, column 'year': no value"):
        SCHEMA.project("year").encode(masked)


def test_texts_are_cut_at_whole_characters():
    short = Schema([Text("word", 4, outside="clip", missing="item")])
    encoded = short.encode({"word": ["home", "school", "aéé", None, "NA"]})
    assert encoded.columns[0].tolist() == ["home", "scho", "aé", "", "NA"]
    assert encoded.clipped == {"word": 2}
    with pytest.raises(InvalidCell, match="'school' is not a text of at most 4 bytes"):
        Schema([Text("word", 4)]).encode({"word": ["home", "school"]})
    skipping = Schema([Text("word", 4, missing="skip")])
    assert skipping.encode({"word": [None, "a"]}).columns[0].tolist() == ["a"]


def test_schemas_are_equal_if_they_ask_the_same():
    again = Schema(list(SCHEMA.attributes))
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert again.digest == SCHEMA.digest
    assert SCHEMA.project(["year"]) != SCHEMA.project(["mass"])
    assert SCHEMA.project(["year"]).digest != SCHEMA.project(["mass"]).digest
    assert SCHEMA.names == ("species", "mass", "year", "seen", "male")
    assert SCHEMA.sizes == (5, 51, 3, 36, 3)
    assert SCHEMA.domain.sizes == SCHEMA.sizes
    assert len(SCHEMA) == 5
    assert "mass" in SCHEMA
    assert SCHEMA["mass"].unit == "grams"


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ([], "a list of attributes"),
        (["age"], "a list of attributes"),
        ([Boolean("a"), Boolean("b"), Boolean("a")], "two attributes have the name 'a'"),
    ],
)
def test_what_is_no_schema_is_refused(attributes, message):
    with pytest.raises(ValueError, match=message):
        Schema(attributes)


def test_unknown_attributes_are_refused():
    with pytest.raises(ValueError, match="no attribute 'sex'; it has species"):
        SCHEMA.project(["sex"])
    with pytest.raises(KeyError, match="no attribute 'sex'"):
        SCHEMA["sex"]
