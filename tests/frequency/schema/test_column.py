"""Columns of every library and type: as if each value were looked at by itself."""

import datetime as dt
import uuid
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from frequency import (
    Between,
    Boolean,
    Categorical,
    Dates,
    InvalidCell,
    InvalidQuestion,
    InvalidValue,
    Numeric,
    Text,
    UnknownColumn,
)
from frequency.schema.attribute import Attribute
from frequency.schema.column import Column, is_no_value, number_of
from frequency.storage.table import blocks

POLICIES = {"missing": "item", "outside": "item"}
REFUSED = "refused"
"""In the place of an item."""

TOO_WIDE = 2**53 + 1
"""The first integer that is no float."""

ATTRIBUTES: dict[str, Attribute] = {
    "labels": Categorical("x", ["a", "NA", "7", "-1", "0.5", "true", f"{TOO_WIDE}"], **POLICIES),
    "labels of days": Categorical("x", ["2013-01-01", "2013-02-28", "9999-12-31"], **POLICIES),
    "labels of times": Categorical(
        "x", ["2013-01-01T05:59:59", "2013-01-02 08:00:00", "2013-01-03T00:00:00"], **POLICIES
    ),
    "labels, refused": Categorical("x", ["a", "7", "9", "true", "0.5", "2013-01-02"]),
    "yes or no": Boolean("x", **POLICIES),
    "whole": Numeric("x", low=-3, high=9, whole=True, **POLICIES),
    "whole, clipped": Numeric("x", low=-3, high=9, whole=True, missing="item", outside="clip"),
    "whole bins": Numeric("x", [-3, 0, 4, 9], whole=True, **POLICIES),
    "real": Numeric("x", [-2.5, 0, 7, 7.5], **POLICIES),
    "real, clipped": Numeric("x", [-2.5, 0, 7, 7.5], missing="skip", outside="clip"),
    "days": Dates("x", "2013-01-01", "2013-03-01", **POLICIES),
    "hours": Dates("x", "2013-01-01 05:00", "2013-01-02 07:00", "hour", **POLICIES),
    "months": Dates("x", "2012-11-30", "2013-03-01", "month", missing="item", outside="clip"),
    "text": Text("x", 20, missing="item"),
}
VALUES: dict[str, list[Any]] = {
    "integers": [-4, -3, 0, 7, 8, 9, 10, None],
    "integers without nulls": [7, 0, 1, -4],
    "wide integers": [TOO_WIDE, -(2**63), 2**63 - 1, 7, None, TOO_WIDE - 1],
    "wide integers without nulls": [-(2**63), 2**63 - 1, 7, TOO_WIDE],
    "integers of 64 bits and more": [2**63, 2**64 - 1, 7, None],
    "floats": [-3.0, 7.0, 7.5, 0.5, 9.0, -1e300, 0.00001, None],
    "infinities": [float("inf"), 7.0, None],
    "decimals": [Decimal("7.00"), Decimal("0.50"), Decimal("-3.00"), Decimal("9.25"), None],
    "texts": ["a", "b", "NA", "7", " 7", "7.0", "-1", "true", "", None],
    "numbers as texts": ["7", " -1 ", "+3", "7e0", "0.7e1", "nan", "1e300", "", None],
    "times as texts": ["2013-01-01T05:00:00", "2013-01-01 06", "2013-02", "2013-01-02", "", None],
    "words": ["outside", "missing", "7", "2013-01-02", None],
    "truths": [True, False, None],
    "times": [
        dt.datetime(2013, 1, 1, 5, 59, 59),
        dt.datetime(2013, 1, 2, 7, 59, 59, 999_999),
        dt.datetime(2013, 1, 2, 8),
        dt.datetime(2013, 1, 1),
        dt.datetime(2013, 1, 3),
        dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
        None,
    ],
    "days": [dt.date(2013, 2, 28), dt.date(2013, 3, 2), dt.date(2012, 11, 1), None],
    "far days": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2013, 1, 1), None],
    "times with a zone": [dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC), None],
    "mixed": [18.0, 7.0, "Refused", "a", True, dt.date(2013, 1, 2), Decimal("0.5"), None],
}
TEXTS = {name for name in VALUES if "texts" in name or name == "words"}
WIDE = "integers of 64 bits and more"
INTEGERS = {name for name in VALUES if "integers" in name and name != WIDE}
FLOATS, TIMES = {"floats", "infinities"}, {"times", "days", "far days", "times with a zone"}
NAIVE = TIMES - {"times with a zone"}
ALONE = {*TEXTS, *INTEGERS, *FLOATS, *TIMES, WIDE, "truths", "decimals"}
"""Kinds of values of one type, which is what most containers hold."""


def masked(values):
    """With a number that means nothing where there is no value."""
    told = [v for v in values if v is not None] or [0]
    dtype = np.uint64 if 2**63 in told else np.array(told).dtype
    filled = np.array([told[0] if v is None else v for v in values], dtype)
    return np.ma.MaskedArray(filled, [v is None for v in values])


def nullable(values):
    kinds = {int: "Int64", float: "Float64", bool: "boolean", str: "string"}
    return pd.Series(values, dtype=kinds[type(next((v for v in values if v is not None), ""))])


def arrow(values, kind=None):
    """In two parts, the second of which has a null."""
    whole = arrow_array(values, kind)
    return pa.chunked_array([whole[:2], whole[2:]])


def arrow_array(values, kind=None):
    wide = any(type(v) is int and v >= 2**63 for v in values)
    return pa.array(values, kind or (pa.uint64() if wide else None))


def arrow_of_pandas(values):
    whole = arrow_array(values)
    return pd.Series(whole, dtype=pd.ArrowDtype(whole.type))


def ends_encoded(values):
    found = pc.run_end_encode(arrow_array(values))
    return pa.chunked_array([found])


def enumerated(values):
    return pl.Series(values, dtype=pl.Enum(sorted({v for v in values if v is not None})))


def parquet_of_arrow(values, path):
    pq.write_table(pa.table({"x": arrow_array(values)}), path)


def parquet_of_polars(values, path):
    pl.DataFrame({"x": pl.Series(values)}).write_parquet(path)


def parquet_of_duckdb(values, path):
    given = pa.table({"x": arrow_array(values)})  # noqa: F841, which the query names
    duckdb.connect().sql("select x from given").write_parquet(str(path))


def csv_of_arrow(values, path):
    pacsv.write_csv(pa.table({"x": arrow_array(values), "y": [1] * len(values)}), path)


CONTAINERS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "list": (list, set(VALUES)),
    "tuple": (tuple, set(VALUES)),
    "NumPy": (np.array, {name for name in ALONE if None not in VALUES[name]}),
    "NumPy objects": (lambda v: np.array([*v, "end"], dtype=object)[:-1], set(VALUES)),
    "NumPy masked": (masked, {*INTEGERS, *FLOATS, WIDE, "truths"}),
    "NumPy floats": (lambda v: np.array(v, dtype=float), {*FLOATS, "integers"}),
    "NumPy texts": (lambda v: np.array([t or "" for t in v]), TEXTS),
    "NumPy strings": (
        lambda v: np.array(v, dtype=np.dtypes.StringDType(na_object=None)),
        TEXTS,
    ),
    "NumPy days": (lambda v: np.array(v, dtype="datetime64[D]"), {"days", "far days"}),
    "NumPy microseconds": (lambda v: np.array(v, dtype="datetime64[us]"), NAIVE),
    "NumPy nanoseconds": (lambda v: np.array(v, dtype="datetime64[ns]"), {"times", "days"}),
    "pandas": (pd.Series, set(VALUES) - {"wide integers", WIDE}),  # floats beside a null
    "pandas objects": (lambda v: pd.Series(v, dtype=object), set(VALUES)),
    "pandas nullable": (nullable, {*INTEGERS, "floats", "truths", *TEXTS}),
    "pandas nanoseconds": (lambda v: pd.Series(v, dtype="datetime64[ns]"), {"times", "days"}),
    "pandas categorical": (
        lambda v: pd.Series(pd.Categorical(v, dict.fromkeys(x for x in v if x is not None))),
        set(VALUES),
    ),
    "pandas arrow": (arrow_of_pandas, ALONE),
    "polars": (pl.Series, ALONE - {WIDE}),
    "polars unsigned": (lambda v: pl.Series(v, dtype=pl.UInt64), {WIDE}),
    "polars 128 bits": (lambda v: pl.Series(v, dtype=pl.Int128), {*INTEGERS, WIDE}),
    "polars objects": (lambda v: pl.Series(v, dtype=pl.Object), set(VALUES)),
    "polars categorical": (lambda v: pl.Series(v, dtype=pl.Categorical), TEXTS),
    "polars enum": (enumerated, TEXTS),
    "Arrow": (arrow, ALONE),
    "Arrow array": (arrow_array, ALONE),
    "Arrow dictionary": (lambda v: arrow(v).dictionary_encode(), ALONE),
    "Arrow large strings": (lambda v: arrow(v, pa.large_string()), TEXTS),
    "Arrow string views": (lambda v: arrow(v, pa.string_view()), TEXTS),
    "Arrow decimals": (lambda v: arrow(v, pa.decimal128(30, 3)), {"decimals", *INTEGERS, WIDE}),
    "Arrow run ends": (ends_encoded, ALONE),
}
FILES: dict[str, tuple[Callable[..., None], set[str]]] = {
    "Parquet of pyarrow": (parquet_of_arrow, ALONE),
    "Parquet of polars": (parquet_of_polars, ALONE - {WIDE}),  # 128 bits, which pyarrow refuses
    "Parquet of DuckDB": (parquet_of_duckdb, ALONE),
    "CSV": (csv_of_arrow, {*TEXTS, *INTEGERS, WIDE, "truths"}),
}


def one_by_one(attribute, values):
    """The slow twin: each value in a list of its own, what is refused told by what is expected."""
    found = []
    for value in values:
        try:
            item = attribute.coded([value]).items[0]
            found.append(item if isinstance(item, str) else int(item))
        except InvalidCell as error:
            found.append(f"{REFUSED}: {error.expected}")
    return found


def compared(attribute, column, values):
    """Compare a column with its values: all of them where one is refused, else each."""
    expected = one_by_one(attribute, values)
    bad = [k for k, one in enumerate(expected) if str(one).startswith(REFUSED)]
    if bad:
        with pytest.raises(InvalidCell) as raised:
            attribute.coded(column)
        assert raised.value.row in bad
        assert raised.value.column == "x"
    else:
        found = attribute.coded(column).items
        assert found.tolist() == expected
        assert found.dtype == (object if isinstance(attribute, Text) else np.int64)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_value_is_one_item_in_every_container(name, kind):
    attribute, values = ATTRIBUTES[name], VALUES[kind]
    expected = one_by_one(attribute, values)
    good = [v for v, one in zip(values, expected, strict=True) if REFUSED not in str(one)]
    for what, (make, kinds) in CONTAINERS.items():
        if kind not in kinds:
            continue
        for some in (values, good, values[:1], values[::-1]):
            if not some:
                continue
            try:
                compared(attribute, make(some), some)
            except Exception as error:
                error.add_note(f"{what} of {some}")
                raise


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("what", FILES)
def test_a_value_is_one_item_in_every_file(tmp_path, what, kind):
    make, kinds = FILES[what]
    if kind not in kinds:
        return
    for name, attribute in ATTRIBUTES.items():
        path = tmp_path / f"x{len(name)}.{'csv' if what == 'CSV' else 'parquet'}"
        make(VALUES[kind], path)
        values = VALUES[kind]
        if what == "CSV":  # whose empty cells are no values, and whose cells are texts
            values = [
                None if v in (None, "") else v if isinstance(v, str) else str(v).lower()
                for v in values
            ]
        (block,) = blocks(path)
        compared(attribute, block["x"], values)


def back(made):
    """The values that a container holds, by its own library."""
    name = next(one for one in ("to_pylist", "tolist", "to_list") if hasattr(made, one))
    return getattr(made, name)()


@pytest.mark.parametrize("what", [what for what in CONTAINERS if what not in ("list", "tuple")])
def test_containers_are_compared_with_every_kind_that_they_hold(what):
    make, kinds = CONTAINERS[what]
    for kind in set(VALUES) - kinds:
        with suppress(Exception):  # the library makes no such container
            assert repr(back(make(VALUES[kind]))) != repr(VALUES[kind]), kind


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
    ["1_000", "0x10", "1,5", "--1", "1e", "infinity", "-inf", "٣", "1 2"],
)
def test_what_is_no_number_is_refused(value):
    for name in ("whole", "real"):
        for column in ([value], pd.Series([value], dtype=object)):
            with pytest.raises(InvalidValue, match=r"number|integer"):
                ATTRIBUTES[name].coded(column)
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
    ],
)
def test_what_is_no_time_is_refused(value):
    for column in ([value], pd.Series([value]), pl.Series([value])):
        with pytest.raises(InvalidCell, match="is not a date or time without a time zone"):
            ATTRIBUTES["days"].coded(column)


UNREADABLE: dict[str, Any] = {
    "bytes": b"a",
    "a list": ["a"],
    "a tuple": ("a",),
    "a mapping": {"a": 1},
    "a length of time": dt.timedelta(1),
    "a time of day": dt.time(5),
    "a complex number": 7j,
    "a function": len,
    "an object": object(),
    "a UUID": uuid.UUID(int=7),
    "a period of pandas": pd.Period("2013-01"),
    "a length of NumPy": np.timedelta64(7, "s"),
    "bytes of NumPy": np.bytes_(b"a"),
}


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_what_cannot_be_read_is_refused_whatever_the_policy(name, what):
    value = UNREADABLE[what]
    columns = [[None, value], pd.Series([None, value], dtype=object)]
    with suppress(pa.ArrowException, OverflowError):
        columns += [pa.array([None, value]), pa.array([value]).dictionary_encode()]
    for column in columns:
        with pytest.raises((InvalidCell, UnknownColumn), match="a text, a number, true or false"):
            ATTRIBUTES[name].coded(column)


@pytest.mark.parametrize(
    "column",
    [
        np.array([b"a"]),
        np.array([7j]),
        np.array([1], dtype="m8[ns]"),
        np.array([(1, 2)], dtype="i4,i4"),
        pl.Series([b"a"]),
        pl.Series([[1]]),
        pl.Series([{"a": 1}]),
        pl.Series([dt.timedelta(1)]),
        pl.Series([dt.time(5)]),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([1], pa.duration("ns")),
        pa.array([1], pa.time32("s")),
        pa.array([b"a"], pa.binary_view()),
        # Arrow has these from version 18 on
        *([pa.array([uuid.UUID(int=7).bytes], pa.uuid())] if hasattr(pa, "uuid") else []),
        pd.Series([b"a"], dtype=pd.ArrowDtype(pa.binary())),
        pd.Series(pd.period_range("2013", periods=2, freq="M")),
        pd.Series(pd.to_timedelta([1])),
    ],
    ids=lambda column: f"{type(column).__module__} {getattr(column, 'dtype', None)}",
)
def test_columns_of_types_that_hold_no_values_are_refused(column):
    for attribute in (ATTRIBUTES["labels"], ATTRIBUTES["yes or no"], ATTRIBUTES["text"]):
        with pytest.raises((InvalidCell, UnknownColumn), match="a text, a number, true or false"):
            attribute.coded(column)


def test_categories_of_any_type_are_their_values():
    bins = pd.cut(pd.Series([1.0, None, 7.0]), [0, 5, 9])
    ages = Categorical("x", ["(0, 5]", "(5, 9]"], missing="item", outside="item")
    assert ages.coded(bins).items.tolist() == ages.coded(bins.tolist()).items.tolist() == [0, 3, 1]
    codes = pd.Series(pd.Categorical([1.0, "Refused", None, 18.0], [18.0, 1.0, "Refused"]))
    partly = Categorical("x", ["Refused", 1, 18], missing="item", outside="item")
    assert partly.coded(codes).items.tolist() == [1, 0, 4, 2]


def test_integers_beyond_the_first_and_last_bin_do_not_wrap():
    for low in (-5, 0, 5):
        column = np.array([-(2**63), 2**63 - 1, low])
        attribute = Numeric("x", low=low, high=9, whole=True, outside="clip")
        assert attribute.coded(column).items.tolist() == [0, 9 - low, 0]
        assert attribute.coded(column).clipped == 2
    with np.errstate(invalid="ignore"):
        lost = np.array([np.nan]).astype(np.int64)  # the least integer
    assert ATTRIBUTES["whole, clipped"].coded(lost).items.tolist() == [0]
    unsigned = np.array([2**64 - 1, 2**63, 7], dtype=np.uint64)
    assert ATTRIBUTES["whole, clipped"].coded(unsigned).items.tolist() == [12, 12, 10]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m"])
def test_times_beyond_what_has_seconds_are_outside(unit):
    far = np.array([-(2**62), 2**62, -(2**63)]).astype(f"datetime64[{unit}]")  # and no time
    for column in (far, list(far)):
        assert ATTRIBUTES["months"].coded(column).items.tolist() == [0, 4, 5]
    assert Categorical("x", ["a"], missing="item", outside="item").coded(far).items[0] == 1
    with pytest.raises(InvalidQuestion, match="holds none"):
        ATTRIBUTES["days"].asked(Between(far[1], None))


def test_a_float_of_32_bits_is_the_number_that_it_is():
    tenths = Numeric("x", low=0, high=1, bins=10)
    assert tenths.coded([0.7]).items.tolist() == [7]
    for column in (np.array([0.7], np.float32), [np.float32(0.7)], pa.array([0.7], pa.float32())):
        assert tenths.coded(column).items.tolist() == [6]  # just below


@pytest.mark.parametrize(
    "value", [10**5000, 10**400, -(10**400), Decimal("1e1000"), "1e400"], ids=lambda value: ""
)
def test_numbers_beyond_floats_are_refused(value):
    for name in ("whole", "real"):
        with pytest.raises(InvalidCell, match=r"a finite number|an integer"):
            ATTRIBUTES[name].coded([value])


@pytest.mark.parametrize(
    "value",
    [
        *(10**5000, Decimal("Infinity"), Decimal("1e40"), Decimal("1e999999")),
        *(Decimal("1e-999999"), Fraction(1, 3), Fraction(1, 2**70)),
    ],
    ids=lambda value: "",
)
def test_numbers_that_no_label_spells_are_outside(value):
    assert ATTRIBUTES["labels"].coded([value, "7"]).items.tolist() == [7, 2]
    assert ATTRIBUTES["labels"].coded([Fraction(7), Decimal("7.0")]).items.tolist() == [2, 2]
    halves = ATTRIBUTES["labels"].coded([Fraction(1, 2), Decimal("0.500"), np.float32(0.5)])
    assert halves.items.tolist() == [4, 4, 4]
    assert ATTRIBUTES["yes or no"].coded([value]).items.tolist() == [2]
    with pytest.raises(InvalidCell, match="is not one of a"):
        Categorical("x", ["a"]).coded([value])


@pytest.mark.parametrize(
    "value", [np.float64("nan"), np.datetime64("NaT", "s"), pd.NA, Decimal("NaN")]
)
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
    for what, (make, kinds) in CONTAINERS.items():
        if kinds >= TEXTS:
            found = Text("x", 4, missing="item").coded(make(values)).items.tolist()
            assert found == ["home", "", "é", "home"], what
    for value in ("a\0b", "\ud800", 12345, 1.125, Fraction(1, 3)):
        with pytest.raises(InvalidCell, match="is not a text of at most 4 bytes"):
            Text("x", 4).coded([value])
    numbers = Text("x", 4).coded([7, 7.0, True, Decimal("1.50")])
    assert numbers.items.tolist() == ["7", "7", "true", "1.5"]
    assert numbers.clipped == 0


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
        read = column.numbers()
        found = np.where(read.absent, np.nan, read.values)
        assert np.array_equal(found, [3.0, expected, 4.0], equal_nan=True)


def test_decimals_are_the_same_values_in_any_context() -> None:
    long = str(10**30 + 1)
    kind = Categorical("x", [long, "12345"])
    for digits in (2, 28):
        with localcontext(prec=digits):
            coded = kind.coded([Decimal(long), Decimal("12345.0")])
            assert coded[0].tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i8", "u8", "f2", "f4", "f8"])
def test_different_numbers_are_those_of_sorting(dtype):
    rng = np.random.default_rng(1)
    info: Any = np.finfo(dtype) if dtype[0] == "f" else np.iinfo(dtype)
    ends = np.array([info.min, info.max, 0, 1], dtype=dtype)
    cases = [
        rng.integers(0, 100, 500).astype(dtype),
        rng.choice(ends, 50),
        ends[:1],
        ends[1:2],
        ends[:0],
        np.array([7, 3, 7], dtype),
    ]
    if dtype[0] == "f":
        cases += [rng.normal(size=200).astype(dtype), np.array([0.5, 1.5, -0.5], dtype)]
        cases += [np.array([0.1, 1.1, 2.1, 1e3], dtype), np.array([np.inf, 1, -np.inf], dtype)]
    else:
        cases.append(rng.integers(info.min, info.max, 500, dtype=dtype))
    for values in cases:
        factors = Column("a", values).factors()
        there, places = np.unique(values, return_inverse=True)
        assert factors.values == there.tolist()
        assert factors.codes.tolist() == places.tolist()


def test_whole_numbers_as_floats_are_those_of_integers():
    """Each by itself: also those that no integer of 64 bits is."""
    age = Numeric("age", low=-3, high=120, whole=True, **POLICIES)
    values = [-4.0, -3.0, 0.0, 120.0, 121.0, 1e300, -1e300, 2.0**63, -(2.0**63), np.nan]
    expected = [124, 0, 3, 123, 124, 124, 124, 124, 124, 125]
    assert age.coded(np.array(values)).items.tolist() == expected
    assert [age.coded([value]).items[0] for value in values] == expected
