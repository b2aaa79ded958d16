"""CSV files with a header line, row by row."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple

from mechdesign.base.files import opened
from mechdesign.exceptions import InvalidTable

SEPARATORS = (",", ";", "\t", "|")
"""What may separate cells. If two split a header into equally many, the first is taken."""

_HEADER = 1 << 24
"""The longest header line, in characters: what has a longer one is no table."""

_BOM = "\ufeff"

_FIRST = 1 << 16
"""Bytes that are decoded at a time where a file is not UTF-8."""

_SAVE = "save the table as CSV in UTF-8"
NOT_UTF8 = (
    "the file may be in Latin-1, as Windows writes it. Save the table as CSV in UTF-8, or convert"
    " it: iconv -f WINDOWS-1252 -t UTF-8"
)
"""What helps where a file has bytes that are not UTF-8."""

_KINDS = (
    (b"PK\x03\x04", f"an Excel workbook or another zip archive: {_SAVE}"),
    (b"\xd0\xcf\x11\xe0", f"an old Excel workbook: {_SAVE}"),
    (b"$FL", f"a file of SPSS: {_SAVE}"),
    (b"<stata_dta>", f"a file of Stata: {_SAVE}"),
    (b"HEADER RECORD*******LIB", f"a transport file of SAS: {_SAVE}"),
    (b"PAR1", "a Parquet file: its name must end in .parquet"),
    (b"\x1f\x8b", "compressed by gzip: its name must end in .gz, or unpack it"),
    (b"\xff\xfe", f"in UTF-16: {_SAVE}"),
    (b"\xfe\xff", f"in UTF-16: {_SAVE}"),
)

_COUNT = re.compile(r"\s*0*([0-9]{1,18})(?:[.,]0{1,2})?\s*", re.ASCII)


class CsvRows(NamedTuple):
    """What a CSV file holds.

    Attributes
    ----------
    mark : str
        The byte order mark, or "".
    separator : str
        One of `SEPARATORS`.
    header : list of str
        The names of the columns; empty if the file is.
    rows : iterator of (list of str, int)
        The cells of a row, as many as the header has, and the number of the line where it ends.
    """

    mark: str
    separator: str
    header: list[str]
    rows: Iterator[tuple[list[str], int]]

    def places(self, names: Iterable[str], source: Path) -> list[int]:
        """Where columns are in a row.

        Parameters
        ----------
        names : iterable of str
            Of the columns.
        source : Path
            What errors call the file.

        Returns
        -------
        list of int
            As many, from 0.

        Raises
        ------
        InvalidTable
            There is no column, or more than one, of some name; the message has the header.
        """
        found = list(names)
        for name in found:
            if self.header.count(name) != 1:
                raise InvalidTable(
                    f"{source} has {self.header.count(name) or 'no'} column {name!r}; its header,"
                    f" split at {self.separator!r}, is {self.header}"
                )
        return [self.header.index(name) for name in found]


def read_csv(stream: IO[str], source: Path, separator: str | None = None) -> CsvRows:
    """Read a CSV file as spreadsheets and data frames write it: in UTF-8, with a header line.

    It has any line ends, quotes around separators and line ends, a byte order mark or none. Empty
    lines at the end are no rows; elsewhere they are refused.

    Parameters
    ----------
    stream : text stream
        At the beginning of the file, and opened with ``newline=""``.
    source : Path
        What errors call it.
    separator : str, optional
        One of `SEPARATORS`. None: the one that splits the header line into the most cells.

    Returns
    -------
    CsvRows
        The header has been read; the rows are read as they are asked for.

    Raises
    ------
    InvalidTable
        A malformed line, which the message names; of the rows, when they are asked for.
    """
    try:
        first = stream.readline(_HEADER)
    except UnicodeDecodeError as error:
        raise not_utf8(source) from error
    if len(first) == _HEADER:
        raise InvalidTable(f"{source} has no header line, or one that is too long")
    mark = _BOM if first.startswith(_BOM) else ""
    first = first.removeprefix(_BOM)

    def cells(between: str) -> int:
        try:
            return len(next(csv.reader([first], delimiter=between), []))
        except csv.Error:  # a cell is too long for the csv module
            return 0

    separator = separator or max(SEPARATORS, key=cells)
    rows = _rows(chain([first], stream), source, separator)
    header, _ = next(rows, ([], 0))
    return CsvRows(mark, separator, header, rows)


@lru_cache(1 << 14)
def count_in(text: str) -> int:
    """The count that a cell holds, -1 if it holds none.

    It may have a decimal part of one or two zeros, after a point or a comma. Three are refused:
    7.000 may be seven thousand.

    >>> [count_in(text) for text in ("7", " 7,0", "7.000", "-1", "")]
    [7, 7, -1, -1, -1]
    """
    found = _COUNT.fullmatch(text)
    return int(found[1]) if found else -1


def _rows(lines: Iterator[str], source: Path, separator: str) -> Iterator[tuple[list[str], int]]:
    """The header and the rows, of equal length, each with the number of the line where it ends."""
    reader = csv.reader(lines, delimiter=separator, strict=True)
    width = empty = 0
    try:
        for row in reader:
            width = width or len(row)
            if not row:
                empty = empty or reader.line_num
            elif empty or len(row) != width:
                line, cells = (empty, 0) if empty else (reader.line_num, len(row))
                raise InvalidTable(
                    f"{source}, line {line}: {cells} cells under a header of {width}; "
                    "nothing was written"
                )
            else:
                yield row, reader.line_num
    except UnicodeDecodeError as error:
        raise not_utf8(source) from error
    except csv.Error as error:
        where = f"after line {reader.line_num}" if reader.line_num else "line 1"
        raise InvalidTable(
            f"{source}, {where}, is not a CSV file: {error}; nothing was written"
        ) from error


@contextmanager
def opened_text(source: Path) -> Iterator[IO[str]]:
    """A file of UTF-8 with or without a byte order mark; InvalidTable for one that is not."""
    try:
        with opened(source, "r", newline="", encoding="utf-8-sig") as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise not_utf8(source) from error


def kind_of_file(first: bytes) -> str:
    """What a file is that is no CSV, by its first bytes, and what helps; or nothing."""
    return next((text for start, text in _KINDS if first.startswith(start)), "")


def not_utf8(source: Path) -> InvalidTable:
    """What is wrong with a file that cannot be decoded: what it is, or the line."""
    with gzip.open(source) if source.suffix.lower() == ".gz" else opened(source) as stream:
        before, line = stream.read(_FIRST), 1
        kind = kind_of_file(before)
        if kind:
            return InvalidTable(f"{source} is {kind}; nothing was written")
        decoder = codecs.getincrementaldecoder("utf-8")()
        while True:
            try:
                decoder.decode(before)
            except UnicodeDecodeError as error:
                part = before[: error.start] if error.object == before else b""
                line += _line_ends(part)
                break
            line += _line_ends(before)
            if not (before := stream.read(_FIRST)):
                break
    return InvalidTable(f"{source}, line {line}, is not UTF-8: {NOT_UTF8}; nothing was written")


def _line_ends(part: bytes) -> int:
    return part.count(b"\n") or part.count(b"\r")
