"""Tables in files of SQLite and DuckDB: one of them, or what a query of one's own gives.

Files are opened for reading only, and a query of DuckDB reaches nothing but its file. See
`mechdesign.base.table_files.opened_table`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from mechdesign.base.csv_rows import ReadOptions
from mechdesign.base.files import opened
from mechdesign.base.table_columns import TableFile, cells_of
from mechdesign.base.text import listed, needing, shown
from mechdesign.exceptions import InvalidTable

with needing("tables in files need pyarrow", "storage"):
    import pyarrow as pa

#: How names of such files end; ".db" is either.
DATABASES = (".sqlite", ".sqlite3", ".db", ".duckdb")

_BATCH = 1 << 15  # rows that are read at a time

_SQLITE = b"SQLite format 3\0"


def opened_database(source: Path, options: ReadOptions) -> AbstractContextManager[TableFile]:
    """Open a table of such a file, by its query or as the only one.

    Raises
    ------
    InvalidTable
        Another file, or a damaged one; several tables of which none is named; a query that the
        database refuses, or one that gives no table.
    ImportError
        DuckDB is not installed, and the file is one of it.
    OSError
        The file cannot be read.
    """
    with opened(source) as stream:
        start = stream.read(len(_SQLITE))
    return (_sqlite if start == _SQLITE else _duckdb)(source, options.query)


def _chosen(source: Path, query: str | None, names: Sequence[str]) -> str:
    """The query for what is asked for, among the names of tables and views."""
    if query is None and len(names) == 1:
        query = names[0]
    if query is None:
        has = f"has the tables {listed(names)}: name one, such as --query {names[0]!r}"
        raise InvalidTable(f"{source} {has if names else 'has no table'}; nothing was written")
    return f"SELECT * FROM {_quoted(query)}" if query in names else query.strip().rstrip(";")


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _columns(names: Sequence[str], query: str) -> str:
    """The query for some columns of another."""
    return f"SELECT {', '.join(map(_quoted, names))} FROM ({query})"


@contextmanager
def _refusing(source: Path, kind: type[Exception], what: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        said = " ".join(str(error).split())
        raise InvalidTable(f"{source}: {what} says: {said:.300}; nothing was written") from error


@contextmanager
def _sqlite(source: Path, query: str | None) -> Iterator[TableFile]:
    address = f"{source.resolve().as_uri()}?mode=ro"
    # Blocks are read by another thread than the one that may close it
    with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as base:
        with _refusing(source, sqlite3.Error, "SQLite"):
            known = base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            tables = [name for (name,) in known if not name.startswith("sqlite_")]
            chosen = _chosen(source, query, tables)
            described = base.execute(f"SELECT * FROM ({chosen}) LIMIT 0").description
            names = [column[0] for column in described]

        def read(places: Sequence[int]) -> Iterator[Any]:
            wanted = [names[place] for place in places]
            with _refusing(source, sqlite3.Error, "SQLite"):
                rows = base.execute(_columns(wanted, chosen))
                while cells := rows.fetchmany(_BATCH):
                    columns = [
                        _of_sqlite(source, name, column)
                        for name, column in zip(wanted, zip(*cells, strict=True), strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(columns, wanted)

        yield TableFile(names, read)


def _of_sqlite(source: Path, name: str, values: Sequence[Any]) -> Any:
    """A column, each of whose cells has a type of its own, as an array."""
    if any(isinstance(value, bytes) for value in values):
        raise InvalidTable(
            f"{source}: column {shown(name)} holds bytes, not text or numbers; nothing was written"
        )
    if all(value is None or type(value) is int for value in values):
        return pa.array(values, pa.int64())
    return cells_of(values)


@contextmanager
def _duckdb(source: Path, query: str | None) -> Iterator[TableFile]:
    with needing(f"{source}: databases of DuckDB need duckdb", "databases"):
        import duckdb
    closed: dict[str, Any] = {"enable_external_access": "false"}
    refusing = _refusing(source, duckdb.Error, "DuckDB")
    with refusing, duckdb.connect(str(source), read_only=True, config=closed) as base:
        known = base.execute("SELECT table_name FROM information_schema.tables").fetchall()
        chosen = _chosen(source, query, [name for (name,) in known])
        relation = base.sql(chosen)
        if relation is None:
            raise InvalidTable(f"{source}: the query gives no table; nothing was written")
        names = [*relation.columns]

        def read(places: Sequence[int]) -> Iterator[Any]:
            wanted = [names[place] for place in places]
            some = base.sql(_columns(wanted, chosen))
            yield from pa.RecordBatchReader.from_stream(some)

        yield TableFile(names, read)
