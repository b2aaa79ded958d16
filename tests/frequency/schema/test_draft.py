"""Drafts of schemas: they fit the table that they are made from, block by block or whole."""

import datetime as dt
import uuid
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from frequency import Boolean, Categorical, Dates, Numeric, Schema, Text
from frequency.schema import draft_schema
from mechdesign.exceptions import InvalidTable
from tests.frequency.schema.test_column import VALUES

DAY = dt.date(2013, 1, 1)


def drafted(name, values, parts=1):
    rows = np.array_split(np.arange(len(values)), parts)
    series = pd.Series(values, name=name)
    found = draft_schema([series.iloc[part].to_frame() for part in rows], "a test")
    return found.schema[name]


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("values", "attribute"),
    [
        (["b", "a", None, "b"], Categorical("x", ["a", "b"], missing="item")),
        ([3, 7, 5], Numeric("x", low=3, high=7, whole=True, outside="clip")),
        (["3", "", "5"], Numeric("x", low=3, high=5, whole=True, missing="item", outside="clip")),
        ([3.0, np.nan], Numeric("x", low=3, high=3, whole=True, missing="item", outside="clip")),
        ([0.5, 99.0], Numeric("x", low=0, high=100, bins=100, outside="clip")),
        ([1.5, 1.5], Numeric("x", low=1.0, high=2.01, bins=101, outside="clip")),
        ([-7, 12_345], Numeric("x", low=-200, high=12_399, bins=63, whole=True, outside="clip")),
        ([True, False], Boolean("x")),
        (["yes", "no", "NA"], Boolean("x", missing="item")),
        ([0, 1, 1], Boolean("x")),
        (["2013-01-01", "2013-12-31"], Dates("x", DAY, "2013-12-31", "day", outside="clip")),
        ([DAY, dt.date(2050, 1, 1)], Dates("x", DAY, "2050-01-01", "month", outside="clip")),
        (
            ["2013-01-01 05:15", "2013-01-20 06:00"],
            Dates("x", "2013-01-01 05:00", "2013-01-20 06:00", "hour", outside="clip"),
        ),
        ([f"w{k}" for k in range(300)], Text("x", 4)),
        ([1, "a"], Categorical("x", ["1", "a"])),
    ],
)
def test_columns_are_what_they_seem(values, attribute, parts):
    found = drafted("x", values, min(parts, len(values)))
    assert found == attribute


def test_a_draft_takes_the_table_that_it_is_made_from():
    rng = np.random.default_rng(1)
    for scale in (1e-6, 1.0, 37.0, 1e9):
        for values in (rng.normal(0, scale, 500), rng.integers(-1000, int(scale) + 1000, 500)):
            attribute = drafted("x", values)
            coded = attribute.coded(values)
            assert coded.clipped == 0
            assert 1 <= attribute.size <= 1 << 11


def test_what_it_was_made_from_is_said():
    found = draft_schema([pd.DataFrame({"a": [1]})], "a public sample").schema
    assert found.public_source == "a public sample"
    assert str(found).endswith("drafted from a public sample")
    assert Schema(found.attributes) != found


def test_what_cannot_be_an_attribute_is_left_out():
    table = pd.DataFrame(
        {
            "long": [
                f"a text of more than 64 bytes, such as nobody would type in a field of a form: {k}"
                for k in range(300)
            ],
            "none": [None] * 300,
        }
    )
    with pytest.raises(InvalidTable, match=r"no column of which .* long: it has more than 256"):
        draft_schema([table], "")
    found = draft_schema([table.assign(age=3)], "")
    assert found.schema.names == ("age",)
    assert found.left_out == {
        "long": "it has more than 256 texts, not all of them of at most 64 bytes",
        "none": "it has no values",
    }


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("values", "doubt"),
    [
        (range(7000, 7030), "an identifier"),
        ([f"p{k}" for k in range(300)], "an identifier"),
        ([*range(7000, 7029), 7000], ""),
        (range(5), ""),
        (np.arange(30) / 7, ""),
        ([f"2024-02-{k:02}" for k in range(1, 30)], ""),
        (["27,467", "950", "1,000,000.5"], "thousands"),
        (["27.467", "950"], ""),
        (["01/02/2024", "3/12/2023", ""], "as %m/%d/%Y or as %d/%m/%Y? Say which"),
        (["1.2.2024", "3.12.2023"], "dates as %d.%m.%Y?"),
        (["72,78", "3,5"], '"," begins decimals'),
        (["a", "1/2/2024"], ""),
    ],
)
def test_what_is_doubtful_is_said(values, doubt, parts):
    """Also where the rows come block by block."""
    series = pd.Series(list(values), name="x")
    rows = np.array_split(np.arange(len(series)), parts)
    found = draft_schema([series.iloc[part].to_frame() for part in rows], "a test")
    if doubt:
        assert doubt in found.doubts["x"]
    else:
        assert found.doubts == {}


UNREADABLE: dict[str, Any] = {
    "identifiers": [uuid.UUID(int=k) for k in range(3)],
    "times of day": [dt.time(5), dt.time(6)],
    "periods": list(pd.period_range("2013", periods=2, freq="M")),
    "bytes": [b"a", b"b"],
    "lengths of time": [dt.timedelta(1), dt.timedelta(2)],
    "tuples": [("a",), ("b",)],
    "lists": [[1], [2]],
}
UNBINNED: dict[str, Any] = {
    "ids": [2**60 + k for k in range(30)],
    "large": [1e300, 1.0],
    "infinite": [float("inf"), 1.0, 2.0],
    "tiny": [0.0, 5e-324],
    "far": np.array([-(2**40), 2**40]).astype("datetime64[Y]"),
}


@pytest.mark.parametrize("what", [*UNREADABLE, *UNBINNED])
def test_a_column_that_no_attribute_takes_is_left_out_alone(what):
    values = {**UNREADABLE, **UNBINNED}[what]
    table: dict[str, Any] = {
        "x": pl.Series(list(values), dtype=pl.Object),
        "size": [1.5, 2.5, 3.5] * 10,
    }
    table["size"] = table["size"][: len(values)]
    found = draft_schema([pl.DataFrame(table)], "a test")
    assert found.schema.names == ("size",)
    assert found.left_out["x"]
    if what in UNREADABLE:
        assert "a text, a number, true or false" in found.left_out["x"]


@pytest.mark.slow
def test_a_column_of_any_values_takes_its_own_draft():
    """Each value that may be in a column, with others of its kind: read as it was drafted."""
    kinds = {**VALUES, "texts with NUL": [f"{k}\0" for k in range(300)], "thirds": [Fraction(1, 3)]}
    kinds["half pairs"] = [f"{k}\ud800" for k in range(300)]
    kinds["some missing"] = ["a", "missing", None]
    for kind, values in kinds.items():
        for some in (values, values[:1], values * 300):
            frame = pl.DataFrame({"x": pl.Series([*some, None], dtype=pl.Object)})
            frame = frame.with_columns(y=pl.lit("a"))  # one that there is in any case
            found = draft_schema([frame], "a test")
            assert found.schema.names == ("x", "y") or kind in UNDRAFTED, found.left_out
            encoded = found.schema.encode(frame)
            assert encoded.skipped == 0
            assert encoded.clipped == {}, kind


UNDRAFTED = {
    *("wide integers", "wide integers without nulls", "integers of 64 bits and more"),
    *("floats", "infinities", "numbers as texts", "texts with NUL", "half pairs", "thirds"),
}
"""Kinds of which some have no attribute, and are left out with a reason."""


def test_columns_beyond_what_a_schema_holds_are_left_out():
    table = pd.DataFrame({f"c{k}": [0, 1, 2] for k in range(260)})
    draft = draft_schema([table], "wide")
    assert len(draft.schema) == 256
    assert [*draft.left_out] == ["c256", "c257", "c258", "c259"]
    assert "at most 256 attributes" in draft.left_out["c259"]
