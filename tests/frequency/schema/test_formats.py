"""The same people in every format are the same items, for every kind of attribute."""

import datetime as dt
import sqlite3
from contextlib import closing

import dask.dataframe as dask
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

from frequency.exceptions import UnknownColumn
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, Text
from frequency.storage.table import applied, blocks
from mechdesign.base import ReadOptions
from mechdesign.exceptions import InvalidTable, NoRows

SCHEMA = Schema(
    [
        Categorical("sex", ["male", "female", "3"], missing="item", missing_codes=[9]),
        Categorical("town", ["Köln", "01", "A, B"], missing="item", outside="item"),
        Boolean("smokes", missing="item"),
        Numeric("age", low=0, high=120, whole=True, missing="item", missing_codes=["97:99", -1]),
        Numeric("pay", [-10, 0, 12.5, 1e3, 1e6], missing="item", outside="item"),
        Dates("born", "2010-01-01", "2013-12-31", "month", missing="item", outside="item"),
        Text("code", 6, missing="item"),
    ]
)

ROWS = [
    ("male", "Köln", True, 35, 12.5, dt.date(2013, 3, 4), "007"),
    ("female", "01", False, 0, -3.25, dt.date(2010, 1, 1), "x y"),
    (None, None, None, None, None, None, "z"),  # no row of a workbook is empty
    ("3", "A, B", True, 120, 999999.5, dt.date(2013, 12, 31), "a"),
    ("male", "Ulm", False, 98, 2e7, dt.date(2001, 2, 28), "b"),
    ("9", "Köln", True, -1, 0.0, dt.date(2012, 2, 29), None),
]

NAMES = SCHEMA.names

CODES = {"male": 1.0, "female": 2.0, "3": 3.0, "9": 9.0}

EXPECTED = {
    "sex": [0, 1, 3, 2, 0, 3],
    "town": [0, 1, 4, 2, 3, 0],
    "smokes": [1, 0, 2, 1, 0, 1],
    "age": [35, 0, 121, 120, 121, 121],
    "pay": [2, 0, 5, 3, 4, 1],
    "born": [38, 0, 49, 47, 48, 25],
    "code": ["007", "x y", "z", "a", "b", ""],
}


def frame():
    return pd.DataFrame(ROWS, columns=NAMES)


def texts():
    """As a CSV file has them."""

    def text(value):
        return "" if value is None else str(value).lower() if isinstance(value, bool) else value

    return pd.DataFrame([[text(value) for value in row] for row in ROWS], columns=NAMES)


def coded():
    """As programs for statistics have them: codes with labels, and codes of missing values."""
    table = frame()
    table["sex"] = table["sex"].map(CODES)
    table["smokes"] = table["smokes"].map({True: 1.0, False: 0.0})
    for name in ("age", "pay"):
        table[name] = table[name].astype(float)
    return table


def arrow():
    columns = [pa.array(column) for column in zip(*ROWS, strict=True)]
    return pa.table(dict(zip(NAMES, columns, strict=True)))


def csv(path, separator=",", encoding="utf-8"):
    texts().to_csv(path, index=False, sep=separator, encoding=encoding)


def sav(path):
    pyreadstat.write_sav(
        coded(),
        path,
        variable_value_labels={"sex": {1: "male", 2: "female", 9: "no answer"}},
        missing_ranges={"sex": [9], "age": [{"lo": 97, "hi": 99}, -1]},
    )


def dta(path):
    labels = {"sex": {1: "male", 2: "female"}}
    pyreadstat.write_dta(
        coded().replace({"town": {None: ""}, "code": {None: ""}}),
        path,
        variable_value_labels=labels,
    )


def xlsx(path):
    frame().to_excel(path, index=False)


def sqlite(path):
    with closing(sqlite3.connect(path)) as base:
        base.execute(f"CREATE TABLE people ({', '.join(NAMES)})")
        rows = [[None if value == "" else value for value in row] for row in texts().to_numpy()]
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        base.commit()


def duck(path):
    with duckdb.connect(path) as base:
        people = arrow()
        base.register("given", people)
        base.execute("CREATE TABLE people AS SELECT * FROM given")
        base.execute("CREATE VIEW others AS SELECT * FROM people")


WRITTEN = {
    "a.csv": csv,
    "a.tsv": lambda path: csv(path, "\t"),
    "semicolons.csv": lambda path: csv(path, ";"),
    "a.csv.gz": csv,
    "a.parquet": lambda path: pq.write_table(arrow(), path),
    "a.arrow": lambda path: feather.write_feather(arrow(), path),
    "a.xlsx": xlsx,
    "a.sav": sav,
    "a.zsav": lambda path: pyreadstat.write_sav(
        coded(), path, compress=True, variable_value_labels={"sex": {1: "male", 2: "female"}}
    ),
    "a.dta": dta,
    "a.sqlite": sqlite,
    "a.duckdb": duck,
}


def items_of(tables):
    encoded = [SCHEMA.encode(table).columns for table in tables]
    return {
        name: np.concatenate([columns[place] for columns in encoded]).tolist()
        for place, name in enumerate(NAMES)
    }


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_files(name, tmp_path):
    WRITTEN[name](tmp_path / name)
    options = ReadOptions(query="people") if name == "a.duckdb" else ReadOptions()
    assert items_of(blocks(tmp_path / name, options=options)) == EXPECTED


def test_transport_files_of_sas_without_labels(tmp_path):
    """Which have neither labels of values nor missing texts: codes and blanks."""
    table = coded().assign(sex=frame()["sex"].fillna(""), town=frame()["town"].fillna(""))
    pyreadstat.write_xport(table.assign(code=table["code"].fillna("")), tmp_path / "a.xpt")
    assert items_of(blocks(tmp_path / "a.xpt")) == EXPECTED


@pytest.mark.parametrize("version", [5, 8])
def test_a_transport_file_of_several_tables(version, tmp_path):
    """What reads them takes tables behind the first for its rows, of version 5."""
    tables = {
        "PEOPLE": pd.DataFrame({"age": [35.0, 17.0, 60.0], "sex": ["f", "m", "f"]}),
        "OTHERS": pd.DataFrame({"x": np.arange(40.0)}),
        "LAST": pd.DataFrame({"y": [0.0, -1.5]}),
    }
    parts = []
    for name, table in tables.items():
        path = tmp_path / f"{name}.xpt"
        pyreadstat.write_xport(table, path, table_name=name, file_format_version=version)
        parts.append(path.read_bytes())
        assert pa.concat_tables(blocks(path)).to_pandas().equals(table)
    path = tmp_path / "all.xpt"
    path.write_bytes(parts[0] + b"".join(part[240:] for part in parts[1:]))
    for name, table in tables.items():
        read = pa.concat_tables(blocks(path, options=ReadOptions(sheet=name))).to_pandas()
        assert read.equals(table)
    for sheet, says in (
        (None, r"has the tables PEOPLE, OTHERS, LAST: name one, such as --sheet 'PEOPLE'"),
        ("NONE", "has no table 'NONE'"),
    ):
        with pytest.raises(InvalidTable, match=says):
            [*blocks(path, options=ReadOptions(sheet=sheet))]


@pytest.mark.parametrize(
    "table",
    [
        frame(),
        frame().convert_dtypes(),
        texts(),
        pl.DataFrame(ROWS, schema=[*NAMES], orient="row", strict=False),
        arrow(),
        {name: list(column) for name, column in zip(NAMES, zip(*ROWS, strict=True), strict=True)},
    ],
    ids=["pandas", "pandas of its own types", "texts", "polars", "pyarrow", "lists"],
)
def test_tables(table):
    assert items_of([table]) == EXPECTED


LAZY = {
    "polars": lambda: pl.DataFrame(ROWS, schema=[*NAMES], orient="row", strict=False).lazy(),
    "batch": lambda: arrow().combine_chunks().to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(arrow().schema, arrow().to_batches(2)),
    "duckdb": lambda: duckdb.from_arrow(arrow()),
    "dask": lambda: dask.from_pandas(frame(), npartitions=2),
}


@pytest.mark.parametrize("kind", LAZY)
def test_tables_whose_rows_come_in_parts_or_later(kind):
    assert items_of([LAZY[kind]()]) == EXPECTED
    assert items_of(blocks(LAZY[kind](), NAMES)) == EXPECTED
    with pytest.raises(UnknownColumn, match="no column 'height'"):
        [*blocks(LAZY[kind](), ["height"])]
    with pytest.raises(UnknownColumn, match="no column 'height'"):
        Schema([Boolean("height")]).encode(LAZY[kind]())
    ages = Schema([Numeric("age", low=0, high=50, whole=True, missing="item")])
    with pytest.raises(InvalidTable, match=r"^row 3, column 'age': 120"):
        [*applied(LAZY[kind](), ages.names, ages.encode)]


def test_tables_in_memory_are_blocks_too():
    for table in (frame(), arrow(), pl.from_arrow(arrow())):
        assert items_of(blocks(table)) == EXPECTED
    with pytest.raises(NoRows):
        [*blocks(frame()[:0])]
    for other in ({"age": [1]}, 5, None):
        with pytest.raises(TypeError, match="expected a file or a table"):
            [*blocks(other)]
    with pytest.raises(UnknownColumn, match="two columns have one name"):
        [*blocks(pd.DataFrame([[1, 2]], columns=["age", "age"]))]
