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
        ("year", None, "refuses missing values"),
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
        (pl.DataFrame({"mass": [2007]}).lazy(), "no column 'year'; its columns are"),
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
    with pytest.raises(InvalidCell, match="row 1, column 'year': the cell is empty"):
        SCHEMA.project("year").encode(masked)


def test_a_missing_value_that_is_refused_says_what_would_take_it():
    for attribute in (Text("word", 4), Categorical("word", ["a", "b"])):
        with pytest.raises(InvalidCell) as raised:
            Schema([attribute]).encode({"word": ["a", None]})
        assert str(raised.value) == (
            "row 1, column 'word': the cell is empty, and the schema refuses missing values"
            ' (missing = "item" or "skip" takes them); nothing was drawn'
        )
    with pytest.raises(InvalidCell, match="'NA' is no value, and the schema refuses"):
        SCHEMA.project("year").encode({"year": ["2007", "NA"]})


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


@pytest.mark.parametrize("labels", [None, 7, "abc", b"abc", [], ["a", "a"], ["a", None], [""]])
def test_what_are_no_labels_is_refused(labels):
    with pytest.raises(ValueError, match=r"needs labels|has the label 'a' twice"):
        Categorical("x", labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": 7}, "needs 2 to"),
        ({"edges": [0]}, "needs 2 to"),
        ({"edges": [0, 1, 1]}, "must ascend, got 1 after 1"),
        ({"edges": [0, 2, 1]}, "must ascend, got 1 after 2"),
        ({"edges": [0, "1"]}, "an edge of x must be a finite number"),
        ({"edges": [0, np.inf]}, "an edge of x must be a finite number"),
        ({"edges": [0, 0.5], "whole": True}, "an edge of x must be an integer"),
        ({"edges": [0, 1, 2], "bins": 3}, "has 2 bins between its edges, not 3"),
        ({"edges": [0, 1], "low": 0}, "bounds and spacing are not needed"),
        ({}, "needs edges, or low and high"),
        ({"low": 0}, "needs edges, or low and high"),
        ({"low": 0, "high": 10}, "x: give bins or edges, or whole = true"),
        ({"low": 0, "high": 0, "bins": 1}, "not above it"),
        ({"low": 5, "high": 0, "bins": 1}, "low is 5 and high 0"),
        ({"low": 0, "high": 10, "bins": 1 << 30}, "a number of bins"),
        ({"low": 0, "high": 10, "bins": 12, "whole": True}, "a number of bins"),
        ({"low": 0, "high": 10, "bins": 2, "spacing": "logarithmic"}, "begin above 0"),
        ({"low": 1, "high": 9, "bins": 9, "spacing": "logarithmic", "whole": True}, "too narrow"),
        ({"low": 1, "high": 1 + 1e-15, "bins": 100}, "too narrow"),
        ({"low": 0, "high": 10, "bins": 2, "spacing": "cubic"}, "'equal' or 'logarithmic'"),
        ({"low": 0, "high": 10, "bins": 2, "outside": "drop"}, "one of refuse, clip, item"),
        ({"low": 0, "high": 10, "bins": 2, "missing": None}, "one of refuse, item, skip"),
        ({"low": 0, "high": 10, "bins": 2, "unit": 7}, "the unit of x is text"),
    ],
)
def test_what_are_no_bins_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Numeric("x", **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("2013-01-02", "2013-01-01"), "the last date is before the first"),
        (("2013-02-30", "2013-03-01"), "are dates, such as"),
        ((7, "2013-03-01"), "are dates, such as"),
        (("2013-01-01", "2013-03-01", "fortnight"), "every of x must be one of minute, hour"),
        (("0001-01-01", "9999-01-01", "minute"), "more than 16777216 bins"),
    ],
)
def test_what_are_no_dates_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Dates("x", *arguments)
    for name in ("", " ", None, 7):
        with pytest.raises(ValueError, match="an attribute's name is text"):
            Boolean(name)


def test_logarithmic_bins_have_equal_ratios():
    cuts = Numeric("pay", low=1, high=1e4, bins=8, spacing="logarithmic").cuts
    np.testing.assert_allclose(cuts[1:] / cuts[:-1], 10**0.5, rtol=1e-11)
    miles = Numeric("miles", low=10, high=4999, bins=20, spacing="logarithmic", whole=True)
    assert (miles.cuts[0], miles.cuts[-1]) == (10, 5000)
    assert miles.item_labels[0] == f"10 to {miles.cuts[1] - 1}"
    few = Numeric("delay", edges=[-5, 0, 1, 3], whole=True)
    assert few.item_labels == ("-5 to -1", "0", "1 to 2")  # a bin of one number


def test_bins_of_the_calendar():
    for every, first, labels in [
        ("week", "2013-01-02", ["2013-01-02 to 2013-01-08", "2013-01-09 to 2013-01-15"]),
        ("month", "2013-01-02", ["2013-01"]),
        ("quarter", "2012-11-02", ["2012-11-01 to 2013-01-31"]),
        ("year", "2012-11-02", ["2012", "2013"]),
        ("day", "2013-01-09", ["2013-01-09", "2013-01-10"]),
        ("hour", "2013-01-10T22:30", ["2013-01-10T22", "2013-01-10T23"]),
        ("minute", "2013-01-10T23:59", ["2013-01-10T23:59"]),
    ]:
        last = "2013-01-10T23:59" if every in ("hour", "minute") else "2013-01-10"
        assert list(Dates("x", first, last, every).item_labels) == labels
