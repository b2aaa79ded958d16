"""Tables in databases: chosen by name or query, read only, and refused in one line."""

import sqlite3
from contextlib import closing

import duckdb
import pytest

from mechdesign.base import ReadOptions, opened_rows
from mechdesign.base.table_files import opened_table
from mechdesign.exceptions import InvalidTable


@pytest.fixture(params=["a.sqlite", "a.db", "a.duckdb"])
def base(request, tmp_path):
    path = tmp_path / request.param
    connect = duckdb.connect if path.suffix == ".duckdb" else sqlite3.connect
    with closing(connect(path)) as made:
        made.execute("CREATE TABLE people (age INTEGER, name TEXT)")
        made.execute('CREATE TABLE "a ""table""" (age INTEGER)')
        made.execute("INSERT INTO people VALUES (35, 'x'), (NULL, 'y, z'), (17, NULL)")
        made.commit()
    return path


def rows(path, query=None):
    with opened_rows(path, ReadOptions(query=query)) as read:
        return [read.header, *(row for row, _ in read.rows)]


def test_a_table_or_a_query_is_chosen(base):
    assert rows(base, "people") == [["age", "name"], ["35", "x"], ["", "y, z"], ["17", ""]]
    adults = "SELECT name, age * 2 AS twice FROM people WHERE age >= 18;"
    assert rows(base, adults) == [["name", "twice"], ["x", "70"]]
    assert rows(base, 'a "table"') == [["age"]]
    with opened_table(base, ReadOptions(query="people")) as table:
        (batch,) = table.read([1])
        assert batch.column_names == ["name"]


def test_nothing_is_written_or_guessed(base):
    before = base.read_bytes()
    for query, said in (
        (None, "has the tables"),
        ("nobody", "SQLite says|DuckDB says"),
        ("DROP TABLE people", "SQLite says|DuckDB says"),
        ("SELECT", "SQLite says|DuckDB says"),
        ("", "SQLite says|DuckDB says|gives no table"),
    ):
        with pytest.raises(InvalidTable, match=said) as caught:
            rows(base, query)
        assert str(base) in str(caught.value)
        assert "nothing was written" in str(caught.value)
    assert base.read_bytes() == before


def test_cells_of_any_type(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as made:
        made.execute("CREATE TABLE t (x)")
        made.executemany("INSERT INTO t VALUES (?)", [(1,), (2.5,), ("3",), (None,)])
        made.execute("CREATE TABLE b AS SELECT x'00' AS x")
        made.commit()
    assert rows(tmp_path / "a.db", "t") == [["x"], ["1"], ["2.5"], ["3"], [""]]
    with pytest.raises(InvalidTable, match="column 'x' holds bytes"):
        rows(tmp_path / "a.db", "b")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.duckdb", b"x" * 5000),
        ("a.db", b"x" * 10),
        ("a.sqlite", b"SQLite format 3\0" + b"x" * 5000),
        ("a.sqlite", b""),
    ],
)
def test_other_files_are_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidTable, match=name):
        rows(tmp_path / name)


def test_a_query_reaches_only_its_file(tmp_path):
    (tmp_path / "other.csv").write_text("a\n1\n")
    with closing(duckdb.connect(tmp_path / "a.duckdb")) as made:
        made.execute("CREATE TABLE t (x INTEGER)")
    with pytest.raises(InvalidTable, match="DuckDB says"):
        rows(tmp_path / "a.duckdb", f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')")
