"""Files of SPSS, Stata and SAS as tables: codes as they are stored, and what the file says of them.

Labels of values, titles of variables and the codes that stand for missing values are notes of the
columns: see `mechdesign.base.table_columns.noted`. Missing values with a name of their own, of
Stata and SAS, are the texts ".a" to ".z", ".A" to ".Z" and "._"; the column of a block that has
some is then one of text. Numbers with a format of dates are dates, or times to the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from math import isfinite
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from tempfile import NamedTemporaryFile
from typing import IO, Any

import numpy as np

from mechdesign.base.csv_rows import AS_IT_IS, ReadOptions
from mechdesign.base.files import opened
from mechdesign.base.numbers import later
from mechdesign.base.table_columns import TableFile, noted, text_of
from mechdesign.base.text import listed, needing
from mechdesign.exceptions import InvalidTable

with needing("tables in files need pyarrow", "storage"):
    import pyarrow as pa

#: The readers of pyreadstat, by how names of files end.
READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}

# Cells that are read at a time, which pyreadstat holds as objects of Python. Of some formats it has
# to pass all rows before those that it is asked for: fewer calls.
_CELLS, _PASSING = 1 << 15, 1 << 22

_SEEKING = (".sav", ".dta")

# The first bytes of a file that SPSS has encrypted
_ENCRYPTED = b"ENCRYPTEDSAV"

# The day that each program counts from.
_SPSS_START, _SIXTIES = np.datetime64("1582-10-14", "s"), np.datetime64("1960-01-01", "s")

_DAY = 86_400

# A transport file has records of so many bytes; with this one a table begins. Pieces are records.
_RECORD, _MEMBER = 80, b"HEADER RECORD*******MEM"
_PIECE = _RECORD << 14

#: The names of missing values: of SAS those in capitals, of Stata the others.
_NAMED = [f".{letter}" for letter in ("_", *ascii_uppercase, *ascii_lowercase)]

# Formats of SPSS, by what their numbers count: days and times as seconds, and lengths of time.
_SPSS: dict[str, tuple[str, ...]] = {
    "D": ("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"),
    "s": ("DATETIME", "YMDHMS"),
    "length": ("TIME", "DTIME", "MTIME"),
}

# How formats of SAS begin: of days of times, of times, of lengths of time, and of days.
_SAS: dict[str, tuple[str, ...]] = {
    "day of s": ("DTDATE", "DTMONYY", "DTWKDATX", "DTYEAR", "DTYYQC"),
    "s": ("DATETIME", "DATEAMPM", "MDYAMPM", "E8601DT", "B8601DT", "IS8601DT", "B8601DN"),
    "length": ("TIME", "HHMM", "TOD", "MMSS", "E8601TM", "B8601TM", "IS8601TM"),
    "D": (
        *("DATE", "DDMMYY", "MMDDYY", "YYMMDD", "MMYY", "YYMM", "MONYY", "YYMON", "YYQ"),
        *("JULIAN", "WEEKDAT", "WORDDAT", "E8601DA", "B8601DA", "IS8601DA"),
    ),
}

# The seconds from 1960 to each leap second, those before it included (IERS, Bulletin C).
_MIDNIGHTS = [
    *("1972-07-01", *(f"{year}-01-01" for year in range(1973, 1981))),
    *("1981-07-01", "1982-07-01", "1983-07-01", "1985-07-01", "1988-01-01", "1990-01-01"),
    *("1991-01-01", "1992-07-01", "1993-07-01", "1994-07-01", "1996-01-01", "1997-07-01"),
    *("1999-01-01", "2006-01-01", "2009-01-01", "2012-07-01", "2015-07-01", "2017-01-01"),
]
_LEAPS = (np.array(_MIDNIGHTS, dtype="datetime64[s]") - _SIXTIES).astype(np.int64)
_LEAPS += np.arange(len(_LEAPS))

# Units of Stata that are parts of a year, by the months that they have.
_STATA_MONTHS = {"m": 1, "q": 3, "h": 6}

_LONGEST = 1e14  # Seconds: beyond three million years nothing is a date


@contextmanager
def opened_statistics(source: Path, options: ReadOptions = AS_IT_IS) -> Iterator[TableFile]:
    """Open such a file: see `mechdesign.base.table_files.opened_table`.

    Parameters
    ----------
    source : Path
        A file whose name ends in .sav, .zsav, .por, .dta, .sas7bdat or .xpt.
    options : ReadOptions
        The encoding of its texts, if the file does not name the right one; the table of a transport
        file that holds several, as its sheet.

    Yields
    ------
    TableFile
        Numbers as float64, dates and times, and texts, null where they are empty.

    Raises
    ------
    InvalidTable
        A file that is damaged, encrypted or cut short; several tables of which none is named.
    ImportError
        pyreadstat is not installed.
    OSError
        The file cannot be read.
    """
    with needing(f"{source}: files of SPSS, Stata and SAS need pyreadstat", "stats"):
        import pyreadstat
    with opened(source) as stream:
        if _ENCRYPTED in stream.read(64):
            raise InvalidTable(
                f"{source} is encrypted: save it without a password; nothing was written"
            )
    kind, encoding = source.suffix.lower(), options.encoding
    reader = getattr(pyreadstat, READERS[kind])

    def call(**options: Any) -> Any:
        if encoding:
            options["encoding"] = encoding
        if kind not in (".por", ".xpt"):
            options["user_missing"] = True
        try:
            return reader(
                str(table), output_format="dict", disable_datetime_conversion=True, **options
            )
        except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
            reason = f"{error!s:.200}"
            coded = "; name its encoding, such as --encoding windows-1252"
            raise InvalidTable(
                f"{source} cannot be read, or is damaged: {reason}"
                f"{coded if 'encoding' in reason else ''}; nothing was written"
            ) from error

    def read(places: Sequence[int]) -> Iterator[Any]:
        wanted = [names[place] for place in places]
        rows = max((_CELLS if kind in _SEEKING else _PASSING) // max(len(wanted), 1), 1 << 12)
        total, done = about.number_rows, 0
        while total is None or done < total:
            columns, _ = call(usecols=wanted, row_offset=done, row_limit=rows)
            there = len(columns[wanted[0]]) if columns else 0
            if there:
                parts = [_column(source, kind, about, name, columns[name], done) for name in wanted]
                fields, arrays = zip(*parts, strict=True)
                yield pa.RecordBatch.from_arrays([*arrays], schema=pa.schema(fields))
            done += there
            if there < rows:
                break

    with _one_table(source, options.sheet) if kind == ".xpt" else nullcontext(source) as table:
        about = call(metadataonly=True)[1]
        names = list(about.column_names)
        yield TableFile(
            names, read, notes=lambda: {name: _said(kind, about, name) for name in names}
        )


@contextmanager
def _one_table(source: Path, asked: str | None) -> Iterator[Path]:
    """A transport file with the table that is asked for, or the only one, and no other.

    What reads them would take all others for rows of the first.
    """
    with opened(source) as stream:
        starts = members(stream)
        names = [name for name, _ in starts]
        if len(starts) < 2 or (asked is not None and asked not in names):
            if asked is not None and asked not in names:
                raise InvalidTable(
                    f"{source} has no table {asked!r}; it has {listed(names)}; nothing was written"
                )
            yield source
            return
        if asked is None:
            raise InvalidTable(
                f"{source} has the tables {listed(names)}: name one, such as --sheet {names[0]!r};"
                " nothing was written"
            )
        place = names.index(asked)
        first = starts[place][1]
        last = starts[place + 1][1] if place + 1 < len(starts) else stream.seek(0, 2)
        with NamedTemporaryFile(suffix=".xpt") as alone:
            stream.seek(0)
            alone.write(stream.read(starts[0][1]))
            stream.seek(first)
            while first < last:
                first += alone.write(stream.read(min(_PIECE, last - first)))
            alone.flush()
            yield Path(alone.name)


def members(stream: IO[bytes]) -> list[tuple[str, int]]:
    """The names of the tables in a transport file, and where each begins."""
    starts: list[int] = []
    before = 0
    while piece := stream.read(_PIECE):
        place = piece.find(_MEMBER)
        while place >= 0:
            if place % _RECORD == 0:
                starts.append(before + place)
            place = piece.find(_MEMBER, place + 1)
        before += len(piece)
    names = []
    for start in starts:
        stream.seek(start)
        header, _, described = (stream.read(_RECORD) for _ in range(3))
        long = header[len(_MEMBER) :].startswith(b"BV8")
        names.append(described[8 : 40 if long else 16].decode("ascii", "replace").strip())
    return [*zip(names, starts, strict=True)]


def _column(
    source: Path, kind: str, about: Any, name: str, cells: Sequence[Any], before: int
) -> tuple[Any, Any]:
    """A field of Arrow, with notes, and its array."""
    texts = about.readstat_variable_types[name] == "string"
    missing = [_range(each) for each in about.missing_ranges.get(name, ())]
    named: list[int] = []  # where missing values with a name are
    if texts:
        array = pa.array([cell or None for cell in cells], pa.string())
    else:
        try:
            numbers = np.array(cells, dtype=np.float64)
        except ValueError:  # a name, which is no number: looking for one takes as long as reading
            named = [k for k, cell in enumerate(cells) if isinstance(cell, str)]
            plain = [None if isinstance(cell, str) else cell for cell in cells]
            numbers = np.array(plain, dtype=np.float64)
        letters = {k: f".{cells[k]}" for k in named}
        unit = _unit(kind, about.original_variable_types[name] or "")
        if unit is not None:
            for low, high in missing:  # which no date stands for
                numbers[(numbers >= low) & (numbers <= high)] = np.nan
            far = np.flatnonzero(np.abs(numbers) > _LONGEST)
            if len(far):
                raise InvalidTable(
                    f"{source}, row {before + int(far[0])}, column {name!r}: the number is beyond"
                    " all dates; nothing was written"
                )
        array = _numbers(numbers, unit)
        if named:
            spelt = [text_of(cell) if cell is not None else None for cell in array.to_pylist()]
            for k, letter in letters.items():
                spelt[k] = letter
            array = pa.array(spelt, pa.string())
    said = _said(kind, about, name)
    if named:
        said["missing"] = [*_NAMED]
    return noted(name, array.type, **said), array


def _said(kind: str, about: Any, name: str) -> dict[str, Any]:
    """What the file says of a column, as `noted` is given it, by no cell of it."""
    texts = about.readstat_variable_types[name] == "string"
    given = about.variable_value_labels.get(name, {})
    codes = [_written(*_range(code)) for code in about.missing_ranges.get(name, ())]
    if not texts and _unit(kind, about.original_variable_types[name] or "") is not None:
        codes = []  # no date stands for one
    return {
        "title": about.column_names_to_labels.get(name) or "",
        "labels": [
            (code if texts or not isinstance(code, str) else f".{code}", label)
            for code, label in given.items()
        ],
        "missing": codes,
        "ordered": about.variable_measure.get(name) == "ordinal",
    }


def _range(given: Any) -> tuple[Any, Any]:
    """The ends of a range of user-missing values; of a single one twice the same."""
    return (given["lo"], given["hi"]) if isinstance(given, dict) else (given, given)


def _written(low: Any, high: Any) -> Any:
    """A code, or a range of codes, as a schema has them."""
    if low == high:
        return int(low) if isinstance(low, float) and low.is_integer() else low
    # LOWEST and HIGHEST of SPSS are the ends of the floats
    first, last = (
        "" if abs(end) > 1e300 or not isfinite(end) else text_of(end) for end in (low, high)
    )
    return f"{first}:{last}"


def _unit(kind: str, form: str) -> str | None:
    """What a number with a format counts, such as "spss s", seconds; None: nothing."""
    word = re.sub(r"[0-9]*\.?[0-9]*$", "", form.upper())
    if kind in (".sav", ".zsav", ".por"):
        return next((f"spss {what}" for what, words in _SPSS.items() if word in words), None)
    if kind == ".dta":
        found = re.match(r"%-?t?([cCdmqhwy])", form) if re.match(r"%-?(t|d)", form) else None
        return None if found is None else f"stata {found[1]}"
    starts = ((f"sas {what}", words) for what, words in _SAS.items())
    return next((unit for unit, words in starts if word.startswith(words)), None)


def _numbers(numbers: Any, unit: str | None) -> Any:
    """Numbers, dates or times as an array, null where they are NaN."""
    absent = np.isnan(numbers)
    if unit is None:
        return pa.array(numbers, pa.float64(), mask=absent)
    program, what = unit.split(maxsplit=1)
    whole = np.floor(np.where(absent, 0, numbers)).astype(np.int64)
    times: Any
    if what == "length":
        return pa.array(whole, pa.duration("s"), mask=absent)
    if program == "spss":
        times = later(_SPSS_START, whole)
    elif what in ("s", "day of s"):
        times = later(_SIXTIES, whole)
    elif what in ("D", "d"):
        times = later(_SIXTIES, whole * _DAY)
    elif what in "cC":
        elapsed = whole // 1000
        if what == "C":  # with leap seconds, of which a day of the calendar has none
            elapsed = elapsed - np.searchsorted(_LEAPS, elapsed, side="right")
        times = later(_SIXTIES, elapsed)
    elif what in _STATA_MONTHS:
        months = later(np.datetime64("1960-01"), whole * _STATA_MONTHS[what])
        times = months.astype("datetime64[s]")
    elif what == "w":  # a year has 52, of which the last is longer
        years = later(np.datetime64("1960", "Y"), whole // 52).astype("datetime64[s]")
        times = later(years, whole % 52 * 7 * _DAY)
    else:
        times = later(np.datetime64("0000", "Y"), whole).astype("datetime64[s]")
    if what not in ("s", "c", "C"):
        return pa.array(times.astype("datetime64[D]"), pa.date32(), mask=absent)
    return pa.array(times, pa.timestamp("s"), mask=absent)
