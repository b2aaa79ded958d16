"""Columns of every library and type: as if each value were looked at by itself."""

import datetime as dt
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from frequency import Boolean, Categorical, Dates, InvalidCell, InvalidValue, Numeric, Text
from frequency.schema.attribute import Attribute
from frequency.schema.column import Column, is_no_value, number_of

RNG = np.random.default_rng(1)
POLICIES = {"missing": "item", "outside": "item"}

ATTRIBUTES: dict[str, Attribute] = {
    "labels": Categorical("x", ["a", "NA", "7", "-1", "true"], **POLICIES),
    "yes or no": Boolean("x", **POLICIES),
    "whole": Numeric("x", low=-3, high=9, whole=True, **POLICIES),
    "whole bins": Numeric("x", [-3, 0, 4, 9], whole=True, **POLICIES),
    "real": Numeric("x", [-2.5, 0, 7, 7.5], **POLICIES),
    "days": Dates("x", "2013-01-01", "2013-03-01", **POLICIES),
    "hours": Dates("x", "2013-01-01 05:00", "2013-01-02 07:00", "hour", **POLICIES),
    "months": Dates("x", "2012-11-30", "2013-03-01", "month", **POLICIES),
}
TIMES = [
    dt.datetime(2013, 1, 1, 5, 59, 59),
    dt.datetime(2013, 1, 2, 7, 59, 59, 999_999),
    dt.datetime(2013, 1, 2, 8),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
    None,
]
DAYS = [dt.date(2013, 2, 28), dt.date(2013, 3, 2), dt.date(2012, 11, 1), None]
INTEGERS, FLOATS = [-4, -3, 0, 7, 8, 9, 10, None], [-3.0, 7.0, 7.5, 0.0, 9.0, -1e300, None]
KINDS: dict[str, Any] = {
    "integers": INTEGERS,
    "floats": FLOATS,
    "texts": ["a", "b", "NA", "7", " 7", "7.0", "-1", "true", "", None],
    "numbers as texts": ["7", " -1 ", "+3", "7e0", "0.7e1", "nan", "1e300", "", None],
    "times as texts": ["2013-01-01T05:00:00", "2013-01-01 06", "2013-02", "2013-01-02", "", None],
    "truths": [True, False, None],
    "times": TIMES,
    "days": DAYS,
}
WITHOUT_NULLS = {"integers", "floats", "truths"}


def columns(kind, values):
    """The same values as columns of several libraries and types."""
    yield "list", values
    yield "tuple", tuple(values)
    yield "objects", np.array([*values, "end"], dtype=object)[:-1]
    yield "pandas objects", pd.Series(values, dtype=object)
    yield "pandas", pd.Series(values)
    yield "polars", pl.Series("other", values, strict=False)
    whole = pa.array(values)
    yield "pyarrow", pa.chunked_array([whole[:2], whole[2:]])
    yield "pyarrow array", pa.array(values)
    if "texts" in kind:
        yield "pandas category", pd.Series(values, dtype="category")
        yield "polars category", pl.Series(values, dtype=pl.Categorical)
        yield "dictionary", pa.array(values).dictionary_encode()
        yield "large", pa.array(values, pa.large_string())
        yield "pandas arrow", pd.Series(values, dtype=pd.ArrowDtype(pa.string()))
    if kind == "integers":
        yield "nullable", pd.Series(values, dtype="Int8")
        yield "small", pl.Series(values, dtype=pl.Int8)
        yield "decimal", pl.Series(values).cast(pl.Decimal(20, 2))
        yield "numpy", np.ma.MaskedArray([v or 0 for v in values], [v is None for v in values])
    if kind == "floats":
        told = [np.nan if v is None else v for v in values]
        yield "numpy", np.array(told)
        yield "nan in polars", pl.Series(told)
        yield "nan in pandas", pd.Series(told)
    if kind in ("times", "days"):
        yield "numpy", np.array(values, dtype="datetime64[us]")
        yield "nanoseconds", pd.Series(np.array(values, dtype="datetime64[ns]"))


def one_by_one(attribute, values):
    """The slow twin: each value in a list of its own."""
    found = []
    for value in values:
        try:
            found.append(int(attribute.coded([value]).items[0]))
        except InvalidCell as error:
            found.append(f"{error.expected}")
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_columns_are_their_values(name, kind):
    attribute, values = ATTRIBUTES[name], KINDS[kind]
    expected = one_by_one(attribute, values)
    good = [k for k, one in enumerate(expected) if isinstance(one, int)]
    picked: list[int] = RNG.choice(good, 20).tolist() if good else []
    for what, column in columns(kind, [values[k] for k in picked]) if len(good) > 1 else ():
        items = attribute.coded(column).items
        assert items.tolist() == [expected[k] for k in picked], what
        assert items.dtype == np.int64
    for what, column in columns(kind, values):
        bad = [k for k, one in enumerate(expected) if isinstance(one, str)]
        if not bad:
            assert attribute.coded(column).items.tolist() == expected, what
            continue
        with pytest.raises(InvalidCell) as raised:
            attribute.coded(column)
        assert raised.value.row in bad, what
        assert raised.value.column == "x"


def test_numbers_of_other_types():
    whole = ATTRIBUTES["whole"]
    values = [Decimal(7), Fraction(7), np.int8(7), np.float32(7), "7", 7]
    assert whole.coded(values).items.tolist() == [10] * 6
    with pytest.raises(InvalidCell, match=r"row 1, .* True is not a number"):
        whole.coded([7, True])
    large = np.array([1 << 63, 5], dtype=np.uint64)
    assert whole.coded(large).items.tolist() == [13, 8]
    assert ATTRIBUTES["real"].coded(np.array([1 << 62, 5])).items.tolist() == [3, 1]


@pytest.mark.parametrize(
    "value",
    ["1_000", "0x10", "1,5", "--1", "1e", "infinity", "-inf", "٣", "1 2", b"7", object(), [7], 7j],
)
def test_what_is_no_number_is_refused(value):
    for name in ("whole", "real"):
        for column in ([value], pd.Series([value], dtype=object)):
            with pytest.raises(InvalidValue, match=r"number|integer"):
                ATTRIBUTES[name].coded(column)
    if isinstance(value, str):
        for text in (pl.Series([value]), pa.array([value]), pd.Series([value])):
            with pytest.raises(InvalidValue, match=r"number|integer"):
                ATTRIBUTES["real"].coded(text)


@pytest.mark.parametrize(
    "value",
    [
        "2013-13-01",
        "2013-02-30",
        "01/02/2013",
        "2013",
        "20130101",
        "2013-01-01T05:00Z",
        "2013-01-01T05:00+01:00",
        "today",
        20130101,
        dt.datetime(2013, 1, 1, tzinfo=dt.UTC),
        dt.time(5),
        dt.timedelta(5),
    ],
)
def test_what_is_no_time_is_refused(value):
    for column in ([value], pd.Series([value]), pl.Series([value])):
        with pytest.raises(InvalidCell, match="is not a date or time without a time zone"):
            ATTRIBUTES["days"].coded(column)


def test_lists_within_lists_are_no_values_of_their_own():
    labels = Categorical("x", ["a"], outside="item")
    assert labels.coded([["a"]]).items.tolist() == [1]
    assert labels.coded([["a", "b"], "a"]).items.tolist() == [1, 0]
    with pytest.raises(InvalidCell, match="is not a number"):
        ATTRIBUTES["real"].coded([[7]])


@pytest.mark.parametrize(
    "value", [10**5000, 10**400, -(10**400), Decimal("1e1000"), "1e400"], ids=lambda value: ""
)
def test_numbers_beyond_floats_are_refused(value):
    for name in ("whole", "real"):
        with pytest.raises(InvalidCell, match=r"a finite number|an integer"):
            ATTRIBUTES[name].coded([value])


@pytest.mark.parametrize(
    "value",
    [10**5000, Decimal("Infinity"), Decimal("1e40"), Decimal("1e999999"), Fraction(1, 2)],
    ids=lambda value: "",
)
def test_numbers_that_no_label_spells_are_outside(value):
    assert ATTRIBUTES["labels"].coded([value, "7"]).items.tolist() == [5, 2]
    assert ATTRIBUTES["labels"].coded([Fraction(7), Decimal("7.0")]).items.tolist() == [2, 2]
    assert ATTRIBUTES["yes or no"].coded([value]).items.tolist() == [2]
    with pytest.raises(InvalidCell, match="is not one of a"):
        Categorical("x", ["a"]).coded([value])


@pytest.mark.parametrize("value", [np.float64("nan"), np.datetime64("NaT"), pd.NA, Decimal("NaN")])
def test_what_is_nothing_in_any_type_is_missing(value):
    for attribute in (ATTRIBUTES["labels"], ATTRIBUTES["yes or no"], ATTRIBUTES["real"]):
        assert attribute.coded([value]).items.tolist() == [attribute.size - 1]


def test_nanoseconds_are_read_in_every_century():
    century = Dates("x", "1500-01-01", "1500-01-02", missing="item", outside="item")
    text = "1500-01-01T23:59:59.999999999"
    assert century.coded([text]).items.tolist() == [0]
    assert century.asked("1500-01-01") == 0


def test_texts_of_every_library():
    values = ["home", None, "é", "home"]
    for what, column in columns("texts", values):
        found = Text("x", 4, missing="item").coded(column).items.tolist()
        assert found == ["home", "", "é", "home"], what
    for value in (7, "a\0b", "\ud800", b"a", 1.5):
        with pytest.raises(InvalidCell, match="is not a text of at most 4 bytes"):
            Text("x", 4).coded([value])


LIBRARIES = {
    "list": list,
    "pandas": pd.Series,
    "pandas objects": lambda texts: pd.Series(texts, dtype=object),
    "polars": lambda texts: pl.Series("column", texts),
    "pyarrow": lambda texts: pa.chunked_array([texts]),
}
NUMBERS = ["1e1", " 5", "5 ", "\t5", "+5", "-.5", "5.", "00007", "-0", "1e-400", "0.1", "5\n"]
NOTHING = ["", "NA", " NaN", "nan", "NULL", "<NA>"]
OTHERS = ["1_0", "0x10", "１", "1,5", "-nan", "NAN", "1d1", "5e", "true", "1 2", "\xa05", "five"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("text", NUMBERS + NOTHING + OTHERS)
def test_texts_are_numbers_in_every_library_or_in_none(library, text):
    column = Column("mass", LIBRARIES[library](["3", text, "4"]))
    if text in OTHERS:
        with pytest.raises(InvalidCell) as error:
            column.numbers()
        assert (error.value.row, error.value.value) == (1, text)
    else:
        expected = np.nan if is_no_value(text) else number_of(text)
        assert np.array_equal(column.numbers(), [3.0, expected, 4.0], equal_nan=True)


def test_decimals_are_the_same_values_in_any_context() -> None:
    long = str(10**30 + 1)
    kind = Categorical("x", [long, "12345"])
    for digits in (2, 28):
        with localcontext(prec=digits):
            coded = kind.coded([Decimal(long), Decimal("12345.0")])
            assert coded[0].tolist() == [0, 1]
