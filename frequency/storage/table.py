"""Tables with a row for each user, in files of any format, a block of rows at a time.

The formats are those of `mechdesign.base.table_files`, which reads them.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial, reduce
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from frequency.core import Reports
from frequency.exceptions import InvalidCell, UnknownColumn
from frequency.schema.column import framed, is_of_dask, require_columns
from frequency.storage.collection import pool_of
from frequency.storage.workers import in_order
from mechdesign.base import AS_IT_IS, BitSource, ReadOptions, opened_table, shown
from mechdesign.exceptions import InvalidTable, NoRows

T = TypeVar("T")

#: Rows in a block; fewer only where they take more than so many bytes.
_ROWS, _BYTES = 1 << 18, 1 << 26

_PIECE = 1 << 20  # rows of some groups that a worker reads at once, at least


def blocks(
    path: str | os.PathLike[str] | Any,
    columns: Sequence[str] | None = None,
    options: ReadOptions = AS_IT_IS,
) -> Iterator[Any]:
    """Yield the rows of a table, in order, in tables that are small enough for memory.

    Parameters
    ----------
    path : str, os.PathLike or table
        A file whose name ends in .csv, .tsv or .txt, perhaps with .gz or .zst; in .parquet, .arrow
        or .feather; .xlsx, .xls or .ods; .sav, .zsav, .por, .dta, .sas7bdat or .xpt; or a directory
        of Parquet files, whose folders may be called column=value; or in .sqlite, .db or .duckdb.
        Text has a header line, and quotes around separators and line ends. Or a table whose rows
        come in parts, or later: a LazyFrame of polars, a RecordBatch or a RecordBatchReader of
        pyarrow, a relation of DuckDB, a DataFrame of Dask; or one in memory.
    columns : sequence of str, optional
        Those that are needed; None: all.
    options : ReadOptions, optional
        The encoding, the separator, the sheet or the query, where the file does not tell them. By
        default text is in UTF-8, and a workbook has one sheet.

    Yields
    ------
    pyarrow.Table
        At most 2^18 rows of these columns (of other tables than files what their library has, and
        as many rows as it gives): of text strings as they are written, null where they are
        empty; else what is there. Fields of SPSS, Stata and SAS say what codes mean, which
        `Schema.encode` and `draft_schema` read.

    Raises
    ------
    UnknownColumn
        A column that is not there, or there twice.
    TypeError
        Something else than a file or such a table, as a mapping of columns, which is in memory.
    InvalidTable
        Another kind of file, or one that is malformed: the message names the line. Some of that
        shows only after the last block.
    NoRows
        There is a header, and nothing below it.
    ImportError
        The format needs the extra 'stats', which is not installed.
    OSError
        The file cannot be read.
    """
    total = 0
    if not isinstance(path, (str, os.PathLike)):
        for block in _parts(path, columns):
            total += len(block)
            yield block
        if not total:
            raise NoRows("the table has no rows; nothing was written")
        return
    source = Path(path)
    with opened_table(source, options) as table:
        places = _places(source, table.names, columns)
        for block in _regrouped(table.read(places)):
            total += len(block)
            yield block
    if not total:
        raise NoRows(f"{source} has no rows; nothing was written")


def _parts(table: Any, columns: Sequence[str] | None) -> Iterator[Any]:
    """Yield the rows of a table that is no file, as their library gives them."""
    import narwhals as nw
    import pyarrow as pa

    if is_of_dask(table):
        names = [*(table.columns if columns is None else columns)]
        require_columns(names, [*table.columns])
        yield from (table[names].partitions[k].compute() for k in range(table.npartitions))
        return
    if isinstance(table, pa.RecordBatchReader):
        names = [*(table.schema.names if columns is None else columns)]
        require_columns(names, table.schema.names)
        yield from _regrouped(batch.select(names) for batch in table)
        return
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    given = framed(table)
    if not isinstance(given, (nw.DataFrame, nw.LazyFrame)):
        raise TypeError(f"expected a file or a table, got a {type(table).__name__}")
    frame: Any = given
    there = frame.collect_schema().names()
    names = [*(there if columns is None else columns)]
    require_columns(names, there)
    chosen = frame.select(*names)
    native = chosen.to_native()
    if isinstance(frame, nw.DataFrame):
        for first in range(0, len(frame), _ROWS):
            yield chosen[first : first + _ROWS].to_native()
    elif hasattr(native, "collect_batches"):  # of polars
        yield from native.collect_batches(chunk_size=_ROWS)
    elif hasattr(native, "__arrow_c_stream__"):  # of DuckDB
        yield from _regrouped(pa.RecordBatchReader.from_stream(native))
    else:
        yield chosen.collect().to_native()


def applied(
    path: str | os.PathLike[str] | Any,
    columns: Sequence[str],
    function: Callable[[Any], T],
    options: ReadOptions = AS_IT_IS,
    workers: int = 1,
    client: Any = None,
) -> Iterator[T]:
    """Yield what a function makes of each block of a table, in their order.

    Parameters
    ----------
    path : str, os.PathLike or table
        As for `blocks`.
    columns : sequence of str
        Those that the function needs.
    function : callable
        Given a block, such as ``schema.encode`` or ``survey.privatize``. Of several workers it is
        pure, and can be pickled.
    options : ReadOptions, optional
        As for `blocks`.
    workers : int, default 1
        Processes of this machine that call it, while this one reads; Parquet files they read
        themselves.
    client : dask.distributed.Client, optional
        Its workers call it instead: of a DataFrame of Dask they make the blocks, its partitions,
        too, and Parquet files they read at the same path. A call that was lost with its worker is
        made again, and counts once.

    Yields
    ------
    object
        What it returns.

    Raises
    ------
    InvalidTable
        The function refuses a cell (`InvalidCell`): with its line in the file. Or a malformed file.
    WorkersLost
        A process ended in the middle of its work, or a cluster has no workers left.
    NoRows, UnknownColumn, OSError
        As for `blocks`.
    """
    is_file, before = isinstance(path, (str, os.PathLike)), 0
    table: Any = path
    called: Callable[[Any], tuple[int, list[T]]] = partial(_sized, function)
    pieces = (
        _pieces(Path(path), options) if is_file and (workers > 1 or client is not None) else None
    )
    parts: Iterator[Any]
    if pieces is not None:
        called = partial(_of_groups, function, Path(path).absolute(), tuple(columns), options)
        parts = iter(pieces)
    elif client is not None and is_of_dask(table):
        require_columns(columns, [*table.columns])
        parts = iter(table[[*columns]].to_delayed())
    else:
        parts = blocks(path, columns, options)
        parts = _ahead(parts) if is_file else parts
    with pool_of(workers, client) as pool:
        calls = in_order(pool, called, parts)
        while True:
            try:
                rows, made = next(calls)
            except StopIteration:
                break
            except InvalidCell as error:
                where = f"row {before + error.row}"
                if is_file:
                    with opened_table(Path(path), options) as opened:
                        where = f"{Path(path)}, {opened.where(before + error.row)}"
                raise InvalidTable(f"{where}, {error.wrong}; nothing was written") from error
            except _LacksColumn as error:
                source = f"{Path(path)}: " if is_file else ""
                raise InvalidTable(f"{source}{error}; nothing was written") from error
            yield from made
            before += rows
    if not before and not (is_file and pieces is None):
        name = f"{Path(path)}" if is_file else "the table"
        raise NoRows(f"{name} has no rows; nothing was written")


def _pieces(source: Path, options: ReadOptions) -> list[range] | None:
    """Some groups of rows after the other, which workers read by themselves; None: there are none.

    An empty table has one piece, in which its columns are looked for.
    """
    with opened_table(source, options) as table:
        if table.groups is None:
            return None
        found, first, rows = [], 0, 0
        groups = table.groups()
        for k, number in enumerate(groups):
            rows += number
            if rows >= _PIECE:
                found.append(range(first, k + 1))
                first, rows = k + 1, 0
        return [*found, range(first, len(groups))] if first < len(groups) or not found else found


class _LacksColumn(Exception):
    """The error of a function that looks for another column than those of its blocks."""


def _sized(function: Callable[[Any], T], block: Any) -> tuple[int, list[T]]:
    """How many rows a block has, and what a function makes of it, if it has any."""
    try:
        return len(block), [function(block)] if len(block) else []
    except UnknownColumn as error:
        raise _LacksColumn(str(error)) from error


def _of_groups(
    function: Callable[[Any], T],
    source: Path,
    columns: Sequence[str],
    options: ReadOptions,
    groups: range,
) -> tuple[int, list[T]]:
    """How many rows some groups of a file have, and what a function makes of their blocks."""
    rows, made = 0, list[T]()
    with opened_table(source, options) as table:
        places = _places(source, table.names, columns)
        for block in _regrouped(table.read(places, [*groups])):
            try:
                number, several = _sized(function, block)
            except InvalidCell as error:
                _, *rest = error.args
                raise InvalidCell(rows + error.row, *rest) from error
            rows, made = rows + number, made + several
    return rows, made


def count_table(
    path: str | os.PathLike[str] | Any,
    columns: Sequence[str],
    count: Callable[[Sequence[Any]], T],
    options: ReadOptions = AS_IT_IS,
    *,
    workers: int = 1,
    client: Any = None,
) -> T:
    """Return what a function counts in a table, by several processes or a Dask cluster.

    What it counts in the blocks is added up here. So a curator who has a cluster counts on it, and
    draws noise once. What workers send is exact: they are as trusted as the curator.

    Parameters
    ----------
    path, columns, options, workers, client : as of `applied`
        The table, and who works.
    count : callable
        Given a list of one block: such as ``partial(count_cells, schema)`` of `rangeq.central`.

    Returns
    -------
    object
        The sum of what it returns, for any number of workers the same.

    Raises
    ------
    InvalidTable, WorkersLost, NoRows, UnknownColumn, OSError
        As for `applied`.
    """
    parts = applied(path, columns, partial(_of_one, count), options, workers, client)
    return reduce(operator.add, parts)


def _of_one(count: Callable[[Sequence[Any]], T], block: Any) -> T:
    return count([block])


def _ahead(parts: Iterator[T]) -> Iterator[T]:
    """Yield the same parts, each while the next one is read by a thread."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = reader.submit(next, parts, None)
            yield part


def _places(source: Path, header: Sequence[str], columns: Sequence[str] | None) -> list[int]:
    """Return where the columns are that are needed."""
    for name in header if columns is None else columns:
        if header.count(name) != 1:
            many = f"{header.count(name)} columns" if name in header else "no column"
            raise UnknownColumn(
                f"{source} has {many} {name!r}; its columns are {_listed(header)}; nothing was"
                " written"
            )
    return [header.index(name) for name in (header if columns is None else columns)]


def _listed(names: Sequence[str]) -> str:
    """Return names for a message, at most so many."""
    most = 20
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more


def _regrouped(parts: Iterable[Any]) -> Iterator[Any]:
    """Yield the same rows in blocks that do not depend on the file, unless rows are long.

    Or unless the type of a column changes, as of codes that become text.
    """
    import pyarrow as pa

    batches: list[Any] = []
    rows = size = 0
    for part in parts:
        if batches and not part.schema.equals(batches[0].schema):
            yield pa.Table.from_batches(batches)
            batches, rows, size = [], 0, 0
        while len(part):
            here, part = part.slice(0, _ROWS - rows), part.slice(_ROWS - rows)
            batches.append(here)
            rows, size = rows + len(here), size + here.nbytes
            if rows == _ROWS or size >= _BYTES:
                yield pa.Table.from_batches(batches)
                batches, rows, size = [], 0, 0
    if batches:
        yield pa.Table.from_batches(batches)


# ------------------------------------------------------------------------------------------------
# Reports in an order that tells nothing of the rows that they are of.
#
# All reports of a table are as private as each of them if their order does not depend on what is
# hidden. Of a table that is sorted, such as by age, it does: the last reports are of the oldest.


_PILES = 1 << 7  # A power of two, at most 256: each pile has to fit in memory

_HELD = 1 << 18  # bytes of a pile that are held in memory, not in a temporary file


def shuffled(
    parts: Iterable[Reports], dtype: np.dtype[np.void], source: BitSource
) -> Iterator[Reports]:
    """Yield the same reports: each goes to a random pile, and each pile into random order."""
    with ExitStack() as stack:
        piles = [stack.enter_context(SpooledTemporaryFile(_HELD)) for _ in range(_PILES)]
        for part in parts:
            # Whatever their order was, the distribution of what comes out is the same
            chosen = source(-(-len(part) // 8)).view(np.uint8)[: len(part)] % _PILES
            ends = np.cumsum(np.bincount(chosen, minlength=_PILES))
            order = np.argsort(chosen, kind="stable")
            for pile, reports in zip(piles, np.split(part[order], ends[:-1]), strict=True):
                pile.write(reports.tobytes())
        for pile in piles:
            pile.seek(0)
            reports = np.frombuffer(pile.read(), dtype)
            if len(reports):
                yield reports[_permutation(len(reports), source)]


def _permutation(size: int, source: BitSource) -> npt.NDArray[np.intp]:
    """Return a random order of so many, each with the same probability."""
    while True:
        words = source(size)
        order = np.argsort(words)
        ranked = words[order]
        if (ranked[1:] != ranked[:-1]).all():  # equal words would not tell which comes first
            return order
