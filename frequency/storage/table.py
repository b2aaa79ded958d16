"""Tables with a row for each user, in files: CSV or Parquet, a block of rows at a time.

Of a CSV file every cell is text as it is written, and an empty one is no value: what it means is
for a schema to say. The fast reader, pyarrow's, is lenient with quotes, so that a stray one could
hide users. It cannot as long as there are as many rows as lines; a file with fewer rows, some of
whose cells have line ends, is read a second time by the strict reader of the standard library.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from frequency.core import Reports
from frequency.exceptions import InvalidCell, UnknownColumn
from mechdesign.base import BitSource, Utf8Stream, opened, opened_csv, shown
from mechdesign.exceptions import InvalidTable, NoRows

try:
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "tables in files need pyarrow, of the extra 'storage': in a clone, pip install '.[storage]'"
    ) from error

T = TypeVar("T")

# The separators of cells, by the end of a file's name; None: what the header line tells.
_SEPARATORS = {".csv": None, ".csv.gz": None, ".tsv": "\t", ".tsv.gz": "\t"}

_PARQUET = ".parquet"

#: Rows in a block; fewer only where they take more than so many bytes.
_ROWS, _BYTES = 1 << 18, 1 << 26

#: Bytes of CSV that are parsed at a time, of which rows may have as many; rows of Parquet.
_CHUNK, _BATCH = 1 << 20, 1 << 15


def blocks(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a table, in order, in tables that are small enough for memory.

    Parameters
    ----------
    path : str or os.PathLike
        A file whose name ends in .csv, .tsv, .csv.gz, .tsv.gz or .parquet. CSV is in UTF-8 with a
        header line, and quotes around separators and line ends.
    columns : sequence of str, optional
        Those that are needed; None: all.

    Yields
    ------
    pyarrow.Table
        At most 2^18 rows of these columns: of CSV strings as they are written, null where they are
        empty; of Parquet what is there.

    Raises
    ------
    UnknownColumn
        A column that is not there, or there twice.
    InvalidTable
        Another kind of file, or one that is malformed: the message names the line. Some of that
        shows only after the last block.
    NoRows
        There is a header, and nothing below it.
    OSError
        The file cannot be read.
    """
    source = Path(path)
    kind = _kind(source)
    read = _parquet(source, columns) if kind == _PARQUET else _csv(source, columns)
    total = 0
    for block in _regrouped(read):
        total += len(block)
        yield block
    if not total:
        raise NoRows(f"{source} has no rows; nothing was written")


def applied(
    path: str | os.PathLike[str], columns: Sequence[str], function: Callable[[Any], T]
) -> Iterator[T]:
    """Yield what a function makes of each block of a table.

    Parameters
    ----------
    path : str or os.PathLike
        As for `blocks`.
    columns : sequence of str
        Those that the function needs.
    function : callable
        Given a block, such as ``schema.encode`` or ``survey.privatize``.

    Yields
    ------
    object
        What it returns.

    Raises
    ------
    InvalidTable
        The function refuses a cell (`InvalidCell`): with its line in the file. Or a malformed file.
    NoRows, UnknownColumn, OSError
        As for `blocks`.
    """
    source, before = Path(path), 0
    for block in _ahead(blocks(source, columns)):
        try:
            made = function(block)
        except InvalidCell as error:
            where = _place(source, before + error.row)
            raise InvalidTable(f"{source}, {where}, {error.wrong}; nothing was written") from error
        except UnknownColumn as error:
            raise InvalidTable(f"{source}: {error}; nothing was written") from error
        yield made
        before += len(block)


def _ahead(parts: Iterator[T]) -> Iterator[T]:
    """Yield the same parts, each while the next one is read by a thread."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = reader.submit(next, parts, None)
            yield part


def _kind(source: Path) -> str:
    """Return how the name of a file ends."""
    for kind in (*_SEPARATORS, _PARQUET):
        if source.name.lower().endswith(kind):
            return kind
    raise InvalidTable(
        f"{source}: the name of a table's file must end in"
        f" {', '.join((*_SEPARATORS, _PARQUET))}; nothing was written"
    )


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
    """Yield the same rows in blocks that do not depend on the file, unless rows are long."""
    batches: list[Any] = []
    rows = size = 0
    for part in parts:
        while len(part):
            here, part = part.slice(0, _ROWS - rows), part.slice(_ROWS - rows)
            batches.append(here)
            rows, size = rows + len(here), size + here.nbytes
            if rows == _ROWS or size >= _BYTES:
                yield pa.Table.from_batches(batches)
                batches, rows, size = [], 0, 0
    if batches:
        yield pa.Table.from_batches(batches)


# ---------------------------------------------------------------------------------------------- CSV


def _csv(source: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    with opened_csv(source, _SEPARATORS[_kind(source)]) as strict, Utf8Stream(source) as stream:
        if not strict.header:
            raise InvalidTable(f"{source} is empty; nothing was written")
        places = _places(source, strict.header, columns)
        names = [strict.header[place] for place in places]
        rows, malformed = 0, False
        try:
            for batch in _parsed(stream, strict.separator, places):
                rows += len(batch)
                yield batch.rename_columns(names)
        except pa.ArrowInvalid:  # whose message would show the row
            malformed = True
        if malformed or rows + 1 != stream.lines:
            counted = sum(1 for _ in strict.rows)  # says what is wrong and where, if it can
            if counted and (malformed or counted != rows):
                raise InvalidTable(
                    f"{source} has a row of more than {_CHUNK:,} bytes, or stray quotes; nothing"
                    " was written"
                )


def _parsed(stream: Utf8Stream, separator: str, places: Sequence[int]) -> Iterator[Any]:
    """Yield the columns at these places, as pyarrow parses them."""
    names = [f"f{place}" for place in places]  # as it calls them
    with pc.open_csv(
        pa.PythonFile(stream, mode="r"),
        pc.ReadOptions(block_size=_CHUNK, skip_rows_after_names=1, autogenerate_column_names=True),
        pc.ParseOptions(delimiter=separator, newlines_in_values=True),
        pc.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    ) as reader:
        yield from reader


def _place(source: Path, row: int) -> str:
    """Return where a row, counted from 0, is: its line, counted from 1, if there are lines."""
    if _kind(source) != _PARQUET:
        with opened_csv(source, _SEPARATORS[_kind(source)]) as strict:
            for _, line in islice(strict.rows, row, None):
                return f"line {line}"
    return f"row {row}"


# ------------------------------------------------------------------------------------------ Parquet


def _parquet(source: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    try:
        # Nothing is read ahead: a row group may be as large as the file.
        with (
            opened(source) as stream,
            pq.ParquetFile(stream, pre_buffer=False, buffer_size=_CHUNK) as file,
        ):
            schema = file.schema_arrow
            names = [schema.names[place] for place in _places(source, schema.names, columns)]
            for name in names:
                if pa.types.is_nested(schema.field(name).type):
                    raise InvalidTable(
                        f"{source}: column {name!r} holds {schema.field(name).type}, not one value"
                        " a row; nothing was written"
                    )
            for batch in file.iter_batches(_BATCH, columns=names):
                yield batch.select(names)
    except pa.ArrowNotImplementedError as error:
        raise InvalidTable(
            f"{source} has a type that pyarrow does not read ({error!s:.200}): write this column as"
            " integers of 64 bits, or as text; nothing was written"
        ) from error
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # there is no such file, or no right to it
            raise
        raise InvalidTable(
            f"{source} is not a Parquet file, or damaged: {error!s:.200}; nothing was written"
        ) from error


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
