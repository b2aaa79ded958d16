"""Tables in files of any format, as batches of Arrow, a block of rows at a time.

Text (CSV and its relatives), Parquet files and partitioned directories of them, Arrow files, Excel
workbooks, and the files of SPSS, Stata and SAS (`mechdesign.base.statistics_files`). Of text every
cell is as it is written, and an empty one is no value: what it means is for a schema to say. The
fast reader, pyarrow's, is lenient with quotes, so that a stray one could hide users. It cannot as
long as there are as many rows as lines; a file with fewer rows, some of whose cells have line ends,
is read a second time by the strict reader of the standard library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote
from zipfile import ZipFile

from mechdesign.base.csv_rows import (
    AS_IT_IS,
    BINARY_TABLES,
    CsvRows,
    ReadOptions,
    Utf8Stream,
    opened_csv,
)
from mechdesign.base.databases import DATABASES, opened_database
from mechdesign.base.files import opened
from mechdesign.base.statistics_files import opened_statistics
from mechdesign.base.table_columns import TableFile, cells_of, notes_of, text_of
from mechdesign.base.text import listed, needing
from mechdesign.exceptions import InvalidTable

with needing("tables in files need pyarrow", "storage"):
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

#: Bytes of CSV that are parsed at a time, of which rows may have as many; rows of other formats.
_CHUNK, _BATCH = 1 << 20, 1 << 15

# What a cell with a formula may have: a formula has at most 8,192 characters
_LONGEST_CELL = 1 << 16

_TEXTS = (".csv", ".tsv", ".txt")

#: How names of files of tables end.
ENDINGS = (
    *(f"{text}{packed}" for text in _TEXTS for packed in ("", ".gz", ".zst")),
    *BINARY_TABLES,
)


def opened_table(
    source: Path, options: ReadOptions = AS_IT_IS
) -> AbstractContextManager[TableFile]:
    """Open a table, by the end of its name, or a directory of Parquet files.

    Parameters
    ----------
    source : Path
        A file whose name ends in one of `ENDINGS`, or a directory.
    options : ReadOptions, optional
        What the file does not say of itself.

    Returns
    -------
    context manager
        Of the `TableFile`, which is closed at the end.

    Raises
    ------
    InvalidTable
        Another kind of file, or one that is malformed, encrypted or cut short. Some of that shows
        only when rows are read.
    ImportError
        The format needs an extra that is not installed.
    OSError
        The file cannot be read.
    """
    kind = next((end for end in ENDINGS if source.name.lower().endswith(end)), "")
    if source.is_dir() and not kind.startswith(_TEXTS):
        return _directory(source)
    if not kind:
        raise InvalidTable(
            f"{source}: the name of a table's file must end in {', '.join(ENDINGS)};"
            " nothing was written"
        )
    if kind.startswith(_TEXTS):
        return _csv(source, options, "\t" if kind.startswith(".tsv") else None)
    if kind == ".parquet":
        return _parquet(source)
    if kind in (".arrow", ".feather", ".ipc"):
        return _arrow(source)
    if kind in (".xlsx", ".xls", ".ods"):
        return _workbook(source, options.sheet)
    if kind in DATABASES:
        return opened_database(source, options)
    return opened_statistics(source, options)


# ----------------------------------------------------------------------------------------- as text


def text_rows(source: Path, table: TableFile) -> CsvRows:
    """Return a table with its cells as text: numbers in full, labels for codes that have one."""
    return CsvRows("", ",", table.names, _text_rows(table), source, table.unit)


def _text_rows(table: TableFile) -> Iterator[tuple[list[str], int]]:
    number = table.first
    for batch in table.read(range(len(table.names))):
        columns = []
        for field, column in zip(batch.schema, batch.columns, strict=True):
            # As they are written: beside missing values with a name all codes are texts
            labels = {text_of(code): label for code, label in notes_of(field).get("labels", ())}
            texts = map(text_of, column.to_pylist())
            columns.append([labels.get(text) or text for text in texts])
        for row in zip(*columns, strict=True):
            yield [*row], number
            number += 1


# ---------------------------------------------------------------------------------------------- CSV


@contextmanager
def _csv(source: Path, options: ReadOptions, usual: str | None) -> Iterator[TableFile]:
    separator = options.separator or usual
    with (
        opened_csv(source, separator, options.encoding) as strict,
        Utf8Stream(source, options.encoding) as stream,
    ):
        if not strict.header:
            raise InvalidTable(f"{source} is empty; nothing was written")

        def place(row: int) -> str:
            with opened_csv(source, separator, options.encoding) as again:
                return next((f"line {line}" for _, line in islice(again.rows, row, None)), "")

        yield TableFile(strict.header, lambda places: _texts(strict, stream, places), place=place)


def _texts(strict: CsvRows, stream: Utf8Stream, places: Sequence[int]) -> Iterator[Any]:
    """Yield the columns at these places, strings with null where they are empty."""
    names = [f"f{place}" for place in places]  # as pyarrow calls them
    rows, malformed = 0, False
    try:
        with pc.open_csv(
            pa.PythonFile(stream, mode="r"),
            pc.ReadOptions(
                block_size=_CHUNK, skip_rows_after_names=1, autogenerate_column_names=True
            ),
            pc.ParseOptions(delimiter=strict.separator, newlines_in_values=True),
            pc.ConvertOptions(
                include_columns=names,
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        ) as reader:
            for batch in reader:
                rows += len(batch)
                yield batch.rename_columns([strict.header[place] for place in places])
    except pa.ArrowInvalid:  # whose message would show the row
        malformed = True
    if malformed or rows + 1 != stream.lines:
        counted = sum(1 for _ in strict.rows)  # says what is wrong and where, if it can
        if counted and (malformed or counted != rows):
            raise InvalidTable(
                f"{strict.source} has a row of more than {_CHUNK:,} bytes, or stray quotes; nothing"
                " was written"
            )


# ----------------------------------------------------------------------------- Parquet and Arrow


@contextmanager
def _intact(source: Path, what: str) -> Iterator[None]:
    """Raise InvalidTable for what pyarrow says of a file that it cannot read."""
    try:
        yield
    except pa.ArrowNotImplementedError as error:
        raise InvalidTable(
            f"{source} has a type that pyarrow does not read ({error!s:.200}): write this column as"
            " integers of 64 bits, or as text; nothing was written"
        ) from error
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # there is no such file, or no right to it
            raise
        raise InvalidTable(
            f"{source} is not {what}, or damaged: {error!s:.200}; nothing was written"
        ) from error


def _require_flat(source: Path, fields: Sequence[Any]) -> None:
    for field in fields:
        if pa.types.is_nested(field.type):
            raise InvalidTable(
                f"{source}: column {field.name!r} holds {field.type}, not one value a row; nothing"
                " was written"
            )


@contextmanager
def _parquet(source: Path) -> Iterator[TableFile]:
    # Nothing is read ahead: a row group may be as large as the file.
    with (
        _intact(source, "a Parquet file"),
        opened(source) as stream,
        pq.ParquetFile(stream, pre_buffer=False, buffer_size=_CHUNK) as file,
    ):
        schema = file.schema_arrow

        def read(places: Sequence[int], only: Sequence[int] | None = None) -> Iterator[Any]:
            _require_flat(source, [schema.field(place) for place in places])
            names = [schema.names[place] for place in places]
            for batch in file.iter_batches(_BATCH, row_groups=only, columns=names):
                yield batch.select(names)

        yield TableFile(schema.names, read, groups=lambda: _rows_of_groups(file.metadata))


@contextmanager
def _directory(source: Path) -> Iterator[TableFile]:
    """A directory of Parquet files, whose folders may be called column=value."""
    parts = [part for part in sorted(source.rglob("*")) if not _is_hidden(part, source)]
    parts = [part for part in parts if not part.is_dir()]
    others = [part for part in parts if part.suffix.lower() != ".parquet"]
    if others or not parts:
        what = f"{others[0]} is another file" if others else "there is none"
        raise InvalidTable(
            f"{source}: a table in a directory is of files that end in .parquet, and {what};"
            " nothing was written"
        )
    keys = _keys(parts[0], source)
    with _parquet(parts[0]) as first:
        names = [*first.names, *(key for key in keys if key not in first.names)]

    def read(places: Sequence[int], only: Sequence[int] | None = None) -> Iterator[Any]:
        wanted = [names[place] for place in places]
        before = 0
        for part in parts:
            here = None
            if only is not None:
                status = part.stat()
                number = _number_of_groups(part, status.st_size, status.st_mtime_ns)
                here = [group - before for group in only if before <= group < before + number]
                before += number
                if not here:
                    continue
            folders = _keys(part, source)
            with _parquet(part) as table:
                lacking = [name for name in wanted if name not in (*table.names, *folders)]
                if lacking:
                    raise InvalidTable(
                        f"{part} has no column {lacking[0]!r}, which {parts[0]} has; nothing was"
                        " written"
                    )
                there = [name for name in wanted if name in table.names]
                for batch in table.read([table.names.index(name) for name in there], here):
                    yield pa.RecordBatch.from_arrays(
                        [
                            batch.column(there.index(name))
                            if name in there
                            else _repeated(folders[name], len(batch))
                            for name in wanted
                        ],
                        wanted,
                    )

    def place(row: int) -> str:
        for part in parts:
            rows = pq.read_metadata(part).num_rows
            if row < rows:
                return f"{part.relative_to(source)}, row {row}"
            row -= rows
        return f"row {row}"

    def groups() -> list[int]:
        return [rows for part in parts for rows in _rows_of_groups(pq.read_metadata(part))]

    yield TableFile(names, read, place=place, groups=groups)


@lru_cache(maxsize=1 << 14)  # a process reads some groups of a directory after the other
def _number_of_groups(part: Path, size: int, changed: int) -> int:
    """The groups of rows of a file, which is known by its size and when it was changed."""
    return int(pq.read_metadata(part).num_row_groups)


def _rows_of_groups(metadata: Any) -> list[int]:
    return [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]


def _is_hidden(part: Path, source: Path) -> bool:
    """Whether it is bookkeeping of the program that wrote a directory, such as _SUCCESS."""
    return any(name.startswith(("_", ".")) for name in part.relative_to(source).parts)


def _keys(part: Path, source: Path) -> dict[str, str | None]:
    """The columns and values that folders are called by; None where there is no value."""
    pairs = [name.partition("=") for name in part.relative_to(source).parts[:-1]]
    values = {unquote(key): unquote(value) for key, equals, value in pairs if equals}
    empty = "__HIVE_DEFAULT_PARTITION__"
    return {key: None if value == empty else value for key, value in values.items()}


def _repeated(text: str | None, rows: int) -> Any:
    codes = pa.repeat(pa.scalar(None if text is None else 0, pa.int8()), rows)
    return pa.DictionaryArray.from_arrays(codes, pa.array([text or ""], pa.string()))


@contextmanager
def _arrow(source: Path) -> Iterator[TableFile]:
    """A file of Arrow (Feather), of the form with random access, or a stream."""
    with _intact(source, "an Arrow file"), opened(source) as stream:
        schema = _ipc(stream, None).schema

        def read(places: Sequence[int]) -> Iterator[Any]:
            _require_flat(source, [schema.field(place) for place in places])
            order = sorted(places)
            chosen = [order.index(place) for place in places]
            stream.seek(0)
            reader = _ipc(stream, pa.ipc.IpcReadOptions(included_fields=order))
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                batches = map(reader.get_batch, range(reader.num_record_batches))
            else:
                batches = iter(reader)
            for batch in batches:
                yield batch.select(chosen)

        yield TableFile(schema.names, read)


def _ipc(stream: IO[bytes], options: Any) -> Any:
    start = stream.read(6)
    stream.seek(0)
    read = pa.ipc.open_file if start == b"ARROW1" else pa.ipc.open_stream
    return read(pa.PythonFile(stream, mode="r"), options=options)


# --------------------------------------------------------------------------------------- workbooks


@contextmanager
def _workbook(source: Path, sheet: str | None) -> Iterator[TableFile]:
    """A sheet of a workbook, which is in memory as a whole."""
    with needing(f"{source}: workbooks need python-calamine", "stats"):
        import python_calamine as calamine
    with opened(source) as stream:
        try:
            with calamine.CalamineWorkbook.from_filelike(stream) as book:
                name, cells = _sheet(source, book, sheet)
                if source.suffix.lower() == ".xlsx":
                    _refuse_formulas(source, stream, name, book.sheet_names.index(name))
        except calamine.PasswordError as error:
            raise InvalidTable(
                f"{source} is encrypted: save it without a password; nothing was written"
            ) from error
        except calamine.CalamineError as error:
            raise InvalidTable(
                f"{source} is no workbook, or damaged: {error!s:.200}; if a spreadsheet program"
                " opens it, save it there again; nothing was written"
            ) from error
    where = f"{source}, sheet {name!r}"
    names = _names(where, cells)

    def read(places: Sequence[int]) -> Iterator[Any]:
        wanted = [names[place] for place in places]
        for start in range(1, len(cells), _BATCH):
            rows = cells[start : start + _BATCH]
            columns = [cells_of([row[place] for row in rows]) for place in places]
            yield pa.RecordBatch.from_arrays(columns, wanted)

    yield TableFile(names, read, f"sheet {name!r}, row", 2)


def _sheet(source: Path, book: Any, asked: str | None) -> tuple[str, list[list[Any]]]:
    """Return the name and the cells of the sheet that is asked for, or of the only one."""
    filled = [name for name in book.sheet_names if book.get_sheet_by_name(name).height]
    if asked is not None and asked not in book.sheet_names:
        raise InvalidTable(
            f"{source} has no sheet {asked!r}; it has {listed(book.sheet_names)}; nothing was"
            " written"
        )
    if asked is None and len(filled) > 1:
        raise InvalidTable(
            f"{source} has the sheets {listed(filled)}: name one, such as --sheet {filled[0]!r};"
            " nothing was written"
        )
    if asked is None and not filled:
        raise InvalidTable(f"{source} is empty; nothing was written")
    name = filled[0] if asked is None else asked
    sheet = book.get_sheet_by_name(name)
    merged = getattr(sheet, "merged_cell_ranges", None)
    if merged:
        row = merged[0][0][0] + 1
        raise InvalidTable(
            f"{source}, sheet {name!r}, row {row}: cells are merged, so that some rows or columns"
            " have no value of their own: unmerge them and fill them in; nothing was written"
        )
    return name, _trimmed(sheet.to_python(skip_empty_area=False))


# A formula without a result, which an empty text is not, and the name of its cell; then a sheet of
# a workbook, and where it is.
_FORMULA = re.compile(
    rb"""<(?:\w+:)?c\b(?![^>]*\bt="str")[^>]*?\br="([A-Z]+[0-9]+)"[^>]*>\s*
         (?:<(?:\w+:)?f\b[^>]*/>|<(?:\w+:)?f\b[^>]*>[^<]*</(?:\w+:)?f>)\s*
         (?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>""",
    re.VERBOSE,
)
_SHEET = re.compile(rb"""<(?:\w+:)?sheet\b[^>]*?:id="([^"]+)\"""")
_RELATION = re.compile(rb"""<(?:\w+:)?Relationship\b[^>]*>""")


def _refuse_formulas(source: Path, stream: IO[bytes], name: str, place: int) -> None:
    """Raise InvalidTable for a formula whose result was never computed: it would be no value."""
    stream.seek(0)
    with ZipFile(stream) as archive:
        ids = _SHEET.findall(archive.read("xl/workbook.xml"))
        targets = [
            target[1].decode()
            for relation in _RELATION.findall(archive.read("xl/_rels/workbook.xml.rels"))
            if len(ids) > place
            and b'"%s"' % ids[place] in relation
            and (target := re.search(rb'\bTarget="([^"]+)"', relation))
        ]
        parts = [target.removeprefix("/") for target in targets]
        parts = [part if part.startswith("xl/") else f"xl/{part}" for part in parts]
        for part in {*parts}.intersection(archive.namelist()):
            with archive.open(part) as cells:
                before = b""
                while piece := cells.read(_CHUNK):
                    if found := _FORMULA.search(before + piece):
                        raise InvalidTable(
                            f"{source}, sheet {name!r}, cell {found[1].decode()}: the result of a"
                            " formula was never stored: save the workbook in a spreadsheet program;"
                            " nothing was written"
                        )
                    before = piece[-_LONGEST_CELL:]


def _trimmed(cells: list[list[Any]]) -> list[list[Any]]:
    """The cells without the empty rows and columns at the end."""
    width = max((k + 1 for row in cells for k, cell in enumerate(row) if cell != ""), default=0)
    last = max((k + 1 for k, row in enumerate(cells) if any(cell != "" for cell in row)), default=0)
    return [row[:width] for row in cells[:last]]


def _names(where: str, cells: list[list[Any]]) -> list[str]:
    """The names of the columns in the first row; InvalidTable if the sheet is no plain table."""
    if not cells:
        raise InvalidTable(f"{where} is empty; nothing was written")
    names = ["" if cell == "" else text_of(cell) for cell in cells[0]]
    if "" in names:
        raise InvalidTable(
            f"{where}, row 1, column {names.index('') + 1}: there is no name. The first row holds"
            " the names of all columns: remove titles above it, and columns beside the table;"
            " nothing was written"
        )
    for number, row in enumerate(cells[1:], 2):
        if all(cell == "" for cell in row):
            raise InvalidTable(f"{where}, row {number}: the row is empty; nothing was written")
    second, rest = (cells[1], cells[2:]) if len(cells) > 2 else ([], [])
    if second and all(isinstance(cell, str) for cell in second):
        for name, cell, *column in zip(names, second, *rest, strict=True):
            below = [value for value in column if value != ""]
            if cell and below and not any(isinstance(value, str) for value in below):
                raise InvalidTable(
                    f"{where}, row 2, column {name!r}: this looks like a second line of names, or"
                    " of units, above numbers: remove it; nothing was written"
                )
    return names
