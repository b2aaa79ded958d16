"""CSV files: read row by row as spreadsheets and data frames write them, and written.

Tables in other formats have their rows as text, too: see `mechdesign.base.table_files`.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from mechdesign.base.files import opened, replacing
from mechdesign.base.text import needing
from mechdesign.exceptions import InvalidTable, NoRows

#: What may separate cells. If two split a header into equally many, the first is taken.
SEPARATORS = (",", ";", "\t", "|")

_HEADER = 1 << 24  # the longest header line, in characters: what has a longer one is no table

_BOM = "\ufeff"

_SAVE = "save the table as CSV in UTF-8"

_UTF8 = "utf-8"

_NOT_UTF8 = (
    "is not UTF-8: the file may be in Latin-1, as Windows writes it. Name the encoding, such as"
    " --encoding windows-1252, or save the table as CSV in UTF-8"
)

_KINDS = (
    (
        b"PK\x03\x04",
        f"an Excel workbook or another zip archive: its name must end in .xlsx, or {_SAVE}",
    ),
    (b"\xd0\xcf\x11\xe0", f"an old Excel workbook: its name must end in .xls, or {_SAVE}"),
    (b"$FL", f"a file of SPSS: its name must end in .sav, or {_SAVE}"),
    (b"<stata_dta>", f"a file of Stata: its name must end in .dta, or {_SAVE}"),
    (b"HEADER RECORD*******LIB", f"a transport file of SAS: its name must end in .xpt, or {_SAVE}"),
    (b"SQLite format 3\0", "a database of SQLite: its name must end in .sqlite"),
    (b"PAR1", "a Parquet file: its name must end in .parquet"),
    (b"ARROW1", "an Arrow file: its name must end in .arrow"),
    (b"\x1f\x8b", "compressed by gzip: its name must end in .gz, or unpack it"),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard: its name must end in .zst, or unpack it"),
    (b"\xff\xfe", f"in UTF-16: {_SAVE}, or name the encoding: --encoding utf-16"),
    (b"\xfe\xff", f"in UTF-16: {_SAVE}, or name the encoding: --encoding utf-16"),
)

#: How names of files of tables end that are not text: see `mechdesign.base.table_files`.
BINARY_TABLES: tuple[str, ...] = (
    *(".parquet", ".arrow", ".feather", ".ipc", ".xlsx", ".xls", ".ods"),
    *(".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt"),
    *(".sqlite", ".sqlite3", ".db", ".duckdb"),
)


class ReadOptions(NamedTuple):
    """What a file of a table does not say of itself.

    Attributes
    ----------
    encoding : str
        Of text files, and of files of SPSS, Stata and SAS that do not name theirs; "" is UTF-8 or
        what the file names.
    separator : str or None
        One of `SEPARATORS`; None: what the header line, or the end of the file's name, tells.
    sheet : str or None
        The name of a workbook's sheet, or of a table in a transport file of SAS; None: the only
        one.
    query : str or None
        Of a database the name of a table, or a query in SQL; None: the only table.
    """

    encoding: str = ""
    separator: str | None = None
    sheet: str | None = None
    query: str | None = None

    def require(self) -> ReadOptions:
        """Return the same; ValueError for an encoding that Python does not know."""
        try:
            if self.encoding:
                codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(
                f"there is no encoding {self.encoding!r}; others are utf-8, utf-16, windows-1252,"
                " latin-1 and cp850"
            ) from None
        return self


_COUNT = re.compile(r"\s*0*([0-9]{1,18})(?:[.,]0{1,2})?\s*", re.ASCII)


_DECIMAL = re.compile(r"^(\s*[+-]?[0-9]*),([0-9]+\s*)$")  # a number with a decimal comma


_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?|[0-9]*\.[0-9]+|[0-9]+/[0-9]+)\s*", re.ASCII)


_SIGNED = re.compile(r"[+-][0-9]+(?:\.[0-9]+)?")


AS_IT_IS: ReadOptions = ReadOptions()  #: A file that says all of itself.


class Utf8Stream(io.RawIOBase):
    """The text of a file as bytes of UTF-8 without NUL, unpacked if its name ends in .gz or .zst.

    It is in UTF-8, or in the encoding that is named. ``lines`` is how many have been read, empty
    ones at the end not counted.
    """

    def __init__(self, source: Path, encoding: str = "") -> None:
        self._source = source
        self._files = ExitStack()  # first: also what cannot be opened is closed
        self._stream: Any = self._files.enter_context(opened(source))
        self._packed = {".gz": "gzip", ".zst": "Zstandard"}.get(source.suffix.lower(), "")
        if self._packed == "gzip":
            self._stream = self._files.enter_context(gzip.GzipFile(fileobj=self._stream))
        elif self._packed:
            with needing(f"{source}: files of Zstandard need pyarrow", "storage"):
                import pyarrow as pa
            packed = pa.PythonFile(self._stream, mode="r")
            self._stream = self._files.enter_context(pa.CompressedInputStream(packed, "zstd"))
        self._encoding = encoding if codecs.lookup(encoding or _UTF8).name != _UTF8 else ""
        self._decoder = codecs.getincrementaldecoder(self._encoding or _UTF8)()
        self._kind = ""  # what the file is, by its first bytes, if it is no CSV
        self._ends = 0  # line ends so far
        self._last = b""
        self.lines = 0

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._files.close()
        super().close()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most ``size``; InvalidTable if they are no text of a CSV."""
        part = self._recoded(size) if self._encoding else self._unpacked(size)
        if not self._last:
            self._kind = self._kind or _kind_of(part)
        if not self._encoding:
            try:
                self._decoder.decode(part, final=not part)
            except UnicodeDecodeError as error:
                # What is wrong may have begun in the part before, but not a line before.
                place = max(len(part) - len(error.object) + error.start, 0)
                raise self._refusal(part[:place], _NOT_UTF8) from None
        if b"\0" in part:
            before = part[: part.index(b"\0")]
            raise self._refusal(before, f"holds a NUL byte: {_SAVE}")
        ends, full = _line_ends(part, self._last), part.rstrip(b"\r\n")
        if full:
            self.lines = self._ends + ends - _line_ends(part[len(full) :], b"") + 1
        self._ends += ends
        self._last = part[-1:] or self._last
        return part

    def _unpacked(self, size: int) -> bytes:
        """Return the next bytes of the file, at most ``size``."""
        try:
            part: bytes = self._stream.read(size)
            return part
        except (EOFError, zlib.error, gzip.BadGzipFile, OSError) as error:
            if not self._packed or getattr(error, "errno", None) is not None:
                raise
            raise InvalidTable(
                f"{self._source} is damaged, or not compressed by {self._packed}; nothing was"
                " written"
            ) from error

    def _recoded(self, size: int) -> bytes:
        """Return the next bytes in UTF-8, at most ``size``."""
        text = ""
        while not text:
            # A byte is one letter at most, and that at most four bytes of UTF-8
            part = self._unpacked(size if size < 0 else max(size // 4, 1))
            self._kind = self._kind or ("" if self._last else _kind_of(part))
            try:
                text = self._decoder.decode(part, final=not part)
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(self._encoding, "ignore").encode()
                wrong = f"is not {self._encoding}: name another encoding"
                raise self._refusal(before, wrong) from None
            if not part:
                break
        return text.encode(errors="surrogatepass")

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, as much as fits, and return how much that was."""
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def _refusal(self, before: bytes, wrong: str) -> InvalidTable:
        if self._kind:
            return InvalidTable(f"{self._source} is {self._kind}; nothing was written")
        line = self._ends + _line_ends(before, self._last) + 1
        return InvalidTable(f"{self._source}, line {line}, {wrong}; nothing was written")


def _kind_of(start: bytes) -> str:
    """Return what a file is that begins like this, if it is no CSV; else nothing."""
    return next((text for first, text in _KINDS if start.startswith(first)), "")


def _line_ends(part: bytes, before: bytes) -> int:
    """Count the line ends in some bytes, after the last byte before them."""
    ends = part.count(b"\n")
    if b"\r" in part:  # which is found faster than counted
        ends += part.count(b"\r") - part.count(b"\r\n")
    return ends - (before == b"\r" and part.startswith(b"\n"))


class CsvRows(NamedTuple):
    """A table in a CSV file, or of another format with its cells as text."""

    mark: str  # the byte order mark, or ""
    separator: str  # one of `SEPARATORS`
    header: list[str]  # the names of the columns; empty if the file is
    # the cells of a row, as many as the header has, and the number of the line where it ends
    rows: Iterator[tuple[list[str], int]]
    source: Path  # what errors call the file
    unit: str = "line"  # what the numbers of lines count

    def places(self, names: Iterable[str]) -> list[int]:
        """Return the places of columns in a row, from 0."""
        places = []
        for name in names:
            if self.header.count(name) != 1:
                raise InvalidTable(
                    f"{self.source} has {self.header.count(name) or 'no'} column {name!r}; its"
                    f" header, split at {self.separator!r}, is {self.header}"
                )
            places.append(self.header.index(name))
        return places

    def at_least_one(self) -> list[tuple[list[str], int]]:
        """Return all rows that are left; NoRows if there are none."""
        rows = list(self.rows)
        if not rows:
            raise self.without_rows()
        return rows

    def without_rows(self) -> NoRows:
        """Return the error that there are no rows."""
        return NoRows(f"{self.source} has no rows; nothing was written")

    def refusal(self, line: int, wrong: str) -> InvalidTable:
        """Return the error that something is wrong in a line."""
        return InvalidTable(f"{self.source}, {self.unit} {line}: {wrong}; nothing was written")


@contextmanager
def opened_csv(source: Path, separator: str | None = None, encoding: str = "") -> Iterator[CsvRows]:
    """Open a CSV file and read its header, as `read_csv` does.

    InvalidTable if it is not UTF-8, or not in the encoding that is named.
    """
    with _text(source, encoding) as stream:
        yield read_csv(stream, source, separator)


def read_csv(stream: IO[str], source: Path, separator: str | None = None) -> CsvRows:
    """Read a CSV file as spreadsheets and data frames write it, with a header line."""
    # It has any line ends, quotes around separators and line ends, a byte order mark or none. Empty
    # lines at the end are no rows; elsewhere they are refused.
    first = stream.readline(_HEADER)
    if len(first) == _HEADER:
        raise InvalidTable(f"{source} has no header line, or one that is too long")
    mark = _BOM if first.startswith(_BOM) else ""
    first = first.removeprefix(_BOM)

    separator = separator or _separator(first)
    rows = _rows(chain([first], stream), source, separator)
    header, _ = next(rows, ([], 0))
    return CsvRows(mark, separator, header, rows, source)


def _separator(first: str, numbers: bool = False) -> str:
    """What separates the cells of a line; with ``numbers`` into numbers, if it holds some."""

    def cells(between: str) -> tuple[float, int]:
        try:
            row = next(csv.reader([first], delimiter=between), [])
        except csv.Error:  # a cell is too long for the csv module
            return 0.0, 0
        read = sum(bool(_NUMBER.fullmatch(_pointed(cell, between))) for cell in row)
        return (read / len(row) if numbers and row else 0.0), len(row)

    return max(SEPARATORS, key=cells)


def _pointed(cell: str, separator: str) -> str:
    """A cell with a point in the place of a decimal comma, where commas do not separate cells."""
    return cell if separator == "," else _DECIMAL.sub(r"\1.\2", cell)


def headless_rows(source: Path) -> Iterator[tuple[list[str], int]]:
    """Yield the rows of a CSV file that may lack a header, with the numbers of their last lines.

    They may be of any lengths. Where another mark than a comma separates cells, one in a number
    begins its decimals, and is a point in what is yielded. Raises InvalidTable for a malformed
    file.
    """
    # Empty lines are rows without cells
    with _text(source) as stream:
        first = stream.readline().removeprefix(_BOM)
        separator = _separator(first, numbers=True)
        for row, line in _rows(chain([first], stream), source, separator, ragged=True):
            yield [_pointed(cell, separator) for cell in row], line


def _text(source: Path, encoding: str = "") -> io.TextIOWrapper:
    stream = io.BufferedReader(Utf8Stream(source, encoding))
    return io.TextIOWrapper(stream, encoding=_UTF8, newline="")


def _rows(
    lines: Iterator[str], source: Path, separator: str, ragged: bool = False
) -> Iterator[tuple[list[str], int]]:
    """Yield the rows, the header too, of equal lengths unless ``ragged``, with where they end."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    width = empty = 0
    try:
        for row in reader:
            width = width or len(row)
            if ragged:
                yield row, reader.line_num
            elif not row:
                empty = empty or reader.line_num
            elif empty or len(row) != width:
                line, cells = (empty, 0) if empty else (reader.line_num, len(row))
                raise InvalidTable(
                    f"{source}, line {line}: {cells} cells under a header of {width}; "
                    "nothing was written"
                )
            else:
                yield row, reader.line_num
    except csv.Error as error:
        where = f"after line {reader.line_num}" if reader.line_num else "line 1"
        raise InvalidTable(
            f"{source}, {where}, is not a CSV file: {error}; nothing was written"
        ) from error


@lru_cache(1 << 14)
def count_in(text: str) -> int:
    """Return the count that a cell holds, -1 if it holds none.

    >>> [count_in(text) for text in ("7", " 7,0", "7.000", "-1", "")]
    [7, 7, -1, -1, -1]
    """
    # A decimal part may have one or two zeros, after a point or a comma. Three are refused: 7.000
    # may be seven thousand.
    count = _COUNT.fullmatch(text)
    return int(count[1]) if count else -1


def write_csv(
    target: Path,
    rows: Iterable[Iterable[object]],
    separator: str = ",",
    spreadsheet: bool = False,
    mark: str = "",
) -> None:
    """Replace a file by a table as `comma_separated` writes it, after a byte order mark or ""."""
    text = mark + comma_separated(rows, separator, spreadsheet)
    with replacing(target) as stream:
        stream.write(text.encode())


def comma_separated(
    rows: Iterable[Iterable[object]], separator: str = ",", spreadsheet: bool = False
) -> str:
    """Return a table's rows as CSV, with the line ends of RFC 4180."""
    # A spreadsheet takes texts that begin with =, +, - or @ for formulas: ``spreadsheet`` puts an
    # apostrophe before those that are no numbers.
    text = io.StringIO(newline="")
    if spreadsheet:
        rows = (map(_no_formula, row) for row in rows)
    csv.writer(text, delimiter=separator).writerows(rows)
    return text.getvalue()


def _no_formula(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return cell if _SIGNED.fullmatch(cell) else f"'{cell}"


def untaken(name: str, taken: Iterable[str]) -> str:
    """A name for a column of results beside columns that have names of their own."""
    names = {*taken}
    while name in names:
        name = f"{name} (result)"
    return name
