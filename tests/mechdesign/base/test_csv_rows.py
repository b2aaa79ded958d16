"""CSV files as tables: separators, marks, line ends, and what is refused with its line."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import InvalidTable
from mechdesign.base.csv_rows import (
    SEPARATORS,
    CsvRows,
    comma_separated,
    headless_rows,
    opened_csv,
    read_csv,
)

CELLS = st.text(alphabet='ab,;|\t"\r\n é', max_size=4)


def read(text: str, separator: str | None = None) -> CsvRows:
    return read_csv(io.StringIO(text, newline=""), Path("people.csv"), separator)


@pytest.mark.parametrize("separator", SEPARATORS)
@settings(derandomize=True, deadline=None, max_examples=50)
@given(table=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=5))
def test_what_the_standard_library_writes_is_read(separator: str, table: list[list[str]]) -> None:
    text = comma_separated([["name", "age"], *table], separator)
    found = read(text)
    assert (found.mark, found.separator, found.header) == ("", separator, ["name", "age"])
    rows = list(found.rows)
    assert [row for row, _ in rows] == table
    lines = io.StringIO(text, newline="").readlines()  # at any line end
    for row, line in rows:
        assert "".join(lines[:line]).endswith(comma_separated([row], separator))


def test_the_header_tells_separator_and_mark() -> None:
    found = read("\ufeffid (a, b);age\n7;8\n")
    assert (found.mark, found.separator) == ("\ufeff", ",")  # as many cells: the first is taken
    found = read("\ufeffid (a, b);age;sex\n7;8;9\n")
    assert found[:3] == ("\ufeff", ";", ["id (a, b)", "age", "sex"])
    assert read("id (a, b);age\n7;8\n", ";").header == ["id (a, b)", "age"]
    assert read("age\n7\n")[1:3] == (",", ["age"])


def test_an_empty_file_has_no_header() -> None:
    assert read("").header == []
    assert read("\n\n").header == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "people.csv, line 3: 1 cells under a header of 2"),
        ('a,b\n"1\n",2\n3,4,5\n', "people.csv, line 4: 3 cells under a header of 2"),
        ("a,b\n1,2\n\n3,4\n", "people.csv, line 3: 0 cells under a header of 2"),
        ('a,b\n1,"2\n3,4\n', "people.csv, after line 3, is not a CSV file: unexpected"),
        ('a,b\n1,"2"x\n', "people.csv, after line 2, is not a CSV file: ',' expected"),
    ],
)
def test_a_malformed_line_is_named(text: str, message: str) -> None:
    rows = read(text).rows
    with pytest.raises(InvalidTable) as error:
        list(rows)
    assert str(error.value).startswith(message)
    assert str(error.value).endswith("nothing was written")


def test_a_file_without_lines_is_no_table() -> None:
    with pytest.raises(InvalidTable, match="no header line, or one that is too long"):
        read("a" * (1 << 24))
    with pytest.raises(csv.Error):  # what the standard library would say of the same
        next(csv.reader(["a" * (1 << 24)]))


def test_a_file_is_unpacked_and_its_bytes_are_checked(here: Path) -> None:
    path = here / "people.csv.gz"
    path.write_bytes(gzip.compress("\ufeffname,age\né,7\n".encode()))
    with opened_csv(path) as table:
        assert (table.mark, table.header, list(table.rows)) == (
            "\ufeff",
            ["name", "age"],
            [(["é", "7"], 2)],
        )
    plain = here / "people.csv"
    for content, wrong in (
        (path.read_bytes(), " is compressed by gzip"),
        (b"a\n" * 4095 + b"1\xc3\n\n\n", ", line 4096, is not UTF-8"),  # cut within the letter
        (b"a\n1\0\n", ", line 2, holds a NUL byte"),
    ):
        plain.write_bytes(content)
        with pytest.raises(InvalidTable, match=f"people.csv{wrong}"), opened_csv(plain) as table:
            list(table.rows)


def test_rows_without_a_header_may_have_any_length(here: Path) -> None:
    path = here / "costs.csv"
    path.write_text('\ufeff"1\n",2\n\n3\n', encoding="utf-8")
    assert list(headless_rows(path)) == [(["1\n", "2"], 2), ([], 3), (["3"], 4)]
    path.write_text("1" * (1 << 18))
    with pytest.raises(InvalidTable, match="line 1, is not a CSV file: field larger"):
        list(headless_rows(path))
