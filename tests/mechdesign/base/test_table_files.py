"""Tables in files of every format: what is read, and the line that names what is wrong."""

from __future__ import annotations

import datetime
import gzip
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pandas
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyreadstat
import pytest
import xlsxwriter

from mechdesign import InvalidTable
from mechdesign.base import ReadOptions, opened_rows, statistics_files, table_files
from mechdesign.base.table_columns import notes_of
from mechdesign.base.table_files import ENDINGS, opened_table

DAYS = [datetime.date(2013, 3, 4), None, datetime.date(1900, 2, 28), datetime.date(2024, 2, 29)]
TIMES = [None, datetime.datetime(2013, 3, 4, 13, 30, 14), None, datetime.datetime(2024, 2, 29)]
COLUMNS: dict[str, list] = {
    "age": [30.0, None, 0.0, 97.25],
    "ward": ["01", "2", None, "Zürich"],
    "born": DAYS,
    "seen": TIMES,
}


def read(path: Path, **options) -> dict[str, list]:
    """The columns, as lists."""
    with opened_table(path, ReadOptions(**options)) as table:
        places = range(len(table.names))
        batches = list(table.read(places))
        assert [len(table.names)] * len(batches) == [batch.num_columns for batch in batches]
    return {
        name: [cell for batch in batches for cell in batch.column(place).to_pylist()]
        for place, name in enumerate(table.names)
    }


def refusal(path: Path, error=InvalidTable, **options) -> str:
    with pytest.raises(error) as found:
        read(path, **options)
    message = str(found.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


def workbook(path: Path, **sheets: list[list]) -> Path:
    """Write these rows in sheets."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def rows_of(columns: dict[str, list]) -> list[list]:
    return [[*columns], *map(list, zip(*columns.values(), strict=True))]


def frame(columns: dict[str, list] = COLUMNS) -> pandas.DataFrame:
    return pandas.DataFrame(columns, dtype=object)


def written(kind: str, path: Path) -> None:
    """Write the table in a format."""
    table = pa.table(COLUMNS)
    if kind in (".sav", ".zsav"):
        pyreadstat.write_sav(frame(), path, compress=kind == ".zsav")
    elif kind == ".dta":
        pyreadstat.write_dta(frame(), path)
    elif kind == ".xpt":
        pyreadstat.write_xport(frame(), path)
    elif kind == ".xlsx":
        workbook(path, people=rows_of(COLUMNS))
    elif kind == ".parquet":
        pq.write_table(table, path)
    elif kind == ".arrow":
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table, 3)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, 3)


@pytest.mark.parametrize(
    "kind",
    [".sav", ".zsav", ".dta", ".xpt", ".xlsx", ".parquet", ".arrow", ".feather"],
)
def test_every_format_is_the_same_table(kind: str, here: Path) -> None:
    path = here / f"people{kind.upper()}"
    written(kind, path.with_suffix(kind))
    path.with_suffix(kind).rename(path)
    assert read(path) == COLUMNS
    with opened_table(path) as table:
        batches = list(table.read([3, 0]))
    assert [batch.schema.names for batch in batches] == [["seen", "age"]] * len(batches)
    assert [cell for batch in batches for cell in batch.column(1).to_pylist()] == COLUMNS["age"]
    with opened_rows(path) as rows:
        assert rows.header == [*COLUMNS]
        texts = [row for row, _ in rows.rows]
    assert texts[0] == ["30", "01", "2013-03-04", ""]
    assert texts[1] == ["", "2", "", "2013-03-04T13:30:14"]
    assert texts[3][0] == "97.25"


def test_a_portable_file_is_read(here: Path) -> None:
    pyreadstat.write_por(pandas.DataFrame({"AGE": [30.0, 97.25], "WARD": ["01", "x"]}), "p.por")
    assert read(Path("p.por")) == {"AGE": [30.0, 97.25], "WARD": ["01", "x"]}


def test_text_is_unpacked_and_decoded(here: Path) -> None:
    text = "ward;age\nZürich;7\nGenève;8\n"
    expected = {"ward": ["Zürich", "Genève"], "age": ["7", "8"]}
    for encoding in ("utf-8", "windows-1252", "utf-16", "cp850", "utf-8-sig"):
        for name, pack in (
            ("a.csv", bytes),
            ("a.txt.gz", gzip.compress),
            ("a.csv.zst", pa.Codec("zstd").compress),
        ):
            packed = pack(text.encode(encoding))
            Path(name).write_bytes(packed if isinstance(packed, bytes) else packed.to_pybytes())
            assert read(Path(name), encoding=encoding) == expected
            with opened_rows(Path(name), ReadOptions(encoding)) as rows:
                assert [row for row, _ in rows.rows] == [["Zürich", "7"], ["Genève", "8"]]
    Path("a.csv").write_bytes(text.encode("latin-1"))
    assert refusal(Path("a.csv")).startswith(
        ", line 2, is not UTF-8: the file may be in Latin-1, as Windows writes it. Name the"
        " encoding, such as --encoding windows-1252"
    )
    Path("a.csv").write_bytes(b"a\n7\n8\n\x81\n")
    assert refusal(Path("a.csv"), encoding="cp1252").startswith(", line 4, is not cp1252")
    Path("a.csv").write_text("a,b;c\n1,2;3\n")
    assert read(Path("a.csv"), separator=";") == {"a,b": ["1,2"], "c": ["3"]}
    Path("a.csv.zst").write_bytes(b"age\n7\n")
    assert "is damaged, or not compressed by Zstandard" in refusal(Path("a.csv.zst"))
    with pytest.raises(ValueError, match="there is no encoding 'latin-0'"):
        ReadOptions("latin-0").require()


def test_what_is_decoded_in_pieces_is_the_same(here: Path, monkeypatch) -> None:
    monkeypatch.setattr("mechdesign.base.table_files._CHUNK", 64)
    Path("a.csv").write_bytes(("w;n\n" + "Zü😀;7\né;8\n" * 20).encode("utf-16"))
    assert read(Path("a.csv"), encoding="utf-16") == {"w": ["Zü😀", "é"] * 20, "n": ["7", "8"] * 20}


def test_a_directory_of_parquet_files_is_one_table(here: Path) -> None:
    table = pa.table({"year": ["01", "02", "02", None], "age": [1, 2, 3, 4]})
    ds.write_dataset(
        table,
        "people",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("year", pa.string())]), flavor="hive"),
    )
    Path("people/_SUCCESS").touch()
    found = read(Path("people"))
    assert sorted(zip(found["age"], found["year"], strict=True)) == [
        (1, "01"),
        (2, "02"),
        (3, "02"),
        (4, None),
    ]
    with opened_table(Path("people")) as opened:
        place = opened.where(1)
    assert place.startswith("year=01/") or place.endswith(".parquet, row 0")
    other = Path("people/year=02/z.parquet")
    pq.write_table(pa.table({"size": [1]}), other)
    with pytest.raises(InvalidTable, match=r"z\.parquet has no column 'age', which people/"):
        read(Path("people"))
    other.rename("people/notes.txt")
    assert "people/notes.txt is another file" in refusal(Path("people"))
    Path("empty").mkdir()
    assert "and there is none" in refusal(Path("empty"))


def test_statistical_files_say_what_codes_mean(here: Path) -> None:
    people = pandas.DataFrame({"age": [30.0, -9, 98, 101], "sex": [1.0, 2, 1, 9]})
    pyreadstat.write_sav(
        people,
        "people.sav",
        column_labels={"age": "Age in years"},
        variable_value_labels={"sex": {1: "male", 2: "female", 9: "refused"}},
        missing_ranges={"age": [{"lo": 97, "hi": 99}, -9], "sex": [9]},
    )
    with opened_table(Path("people.sav")) as table:
        age, sex = next(table.read([0, 1])).schema
    assert notes_of(age) == {"title": "Age in years", "missing": ["97:99", -9]}
    labels = [[1, "male"], [2, "female"], [9, "refused"]]
    assert notes_of(sex) == {"labels": labels, "missing": [9]}
    assert read(Path("people.sav")) == people.to_dict("list")
    with opened_rows(Path("people.sav")) as rows:
        assert [row[1] for row, _ in rows.rows] == ["male", "female", "male", "refused"]


def test_missing_values_with_a_name_are_read_by_it(here: Path) -> None:
    people = pandas.DataFrame({"age": [30.0, "a", 45.5, "z"]}, dtype=object)
    pyreadstat.write_dta(people, "people.dta", missing_user_values={"age": ["a", "z"]})
    assert read(Path("people.dta")) == {"age": ["30", ".a", "45.5", ".z"]}
    with opened_table(Path("people.dta")) as table:
        assert {".a", ".z"} <= {*notes_of(next(table.read([0])).schema[0])["missing"]}


def test_formulas_need_their_results(here: Path, monkeypatch) -> None:
    monkeypatch.setattr(table_files, "_CHUNK", 100)
    book = openpyxl.Workbook()
    other, sheet = book.active, book.create_sheet("people & <b>")
    assert other is not None
    other.append(["a"])
    sheet.append(["a", "b"])
    for row in range(30):
        sheet.append([row, "=A2*2" if row == 20 else row])
    book.save("people.xlsx")
    with pytest.raises(InvalidTable, match=r"cell B22: the result of a formula was never stored"):
        read(Path("people.xlsx"), sheet="people & <b>")
    other.append([1])
    book.save("people.xlsx")
    assert read(Path("people.xlsx"), sheet="Sheet") == {"a": [1.0]}
    results: list[Any] = [8, "text", True]
    with xlsxwriter.Workbook("computed.xlsx") as written:
        table = written.add_worksheet()
        table.write_row(0, 0, ["a", "b"])
        for row, result in enumerate(results, 1):
            table.write_number(row, 0, row)
            table.write_formula(row, 1, "=A1*2", None, result)
    assert read(Path("computed.xlsx"))["b"] == ["8", "text", "true"]


def test_statistical_files_are_read_in_blocks(here: Path, monkeypatch) -> None:
    monkeypatch.setattr(statistics_files, "_CELLS", 1 << 10)
    monkeypatch.setattr(statistics_files, "_PASSING", 1 << 10)
    numbers = [float(k) for k in range(3 << 12)]
    for name, write in (("n.sav", pyreadstat.write_sav), ("n.xpt", pyreadstat.write_xport)):
        write(pandas.DataFrame({"n": numbers}), name)
        with opened_table(Path(name)) as table:
            assert [len(batch) for batch in table.read([0])] == [1 << 12] * 3
        assert read(Path(name)) == {"n": numbers}


@pytest.mark.parametrize(
    ("form", "number", "expected"),
    [
        ("%td", 19421, datetime.date(2013, 3, 4)),
        ("%tdD_m_Y", 19421, datetime.date(2013, 3, 4)),
        ("%d", -1, datetime.date(1959, 12, 31)),
        ("%tc", 1678023014999, datetime.datetime(2013, 3, 4, 13, 30, 14)),
        # With leap seconds: 23 before 2007, none before July 1972, and within the last one
        ("%tC", 1479596223000, datetime.datetime(2006, 11, 19, 22, 56, 40)),
        ("%tC", -1000, datetime.datetime(1959, 12, 31, 23, 59, 59)),
        ("%tC", 394415999000, datetime.datetime(1972, 6, 30, 23, 59, 59)),
        ("%tC", 394416000000, datetime.datetime(1972, 6, 30, 23, 59, 59)),
        ("%tC", 394416001000, datetime.datetime(1972, 7, 1)),
        ("%tm", -1, datetime.date(1959, 12, 1)),
        ("%tq", 5, datetime.date(1961, 4, 1)),
        ("%th", 1, datetime.date(1960, 7, 1)),
        ("%tw", 53, datetime.date(1961, 1, 8)),
        ("%ty", 2013, datetime.date(2013, 1, 1)),
        ("%9.0g", 2013, 2013.0),
    ],
)
def test_dates_of_stata_are_dates(form, number, expected, here: Path) -> None:
    people = pandas.DataFrame({"t": [float(number), None]})
    pyreadstat.write_dta(people, "t.dta", variable_format={"t": form})
    assert read(Path("t.dta")) == {"t": [expected, None]}


@pytest.mark.parametrize(
    ("kind", "form", "number", "expected"),
    [
        (".sav", "EDATE10", 13581734400, datetime.date(2013, 3, 4)),
        (".sav", "MOYR8", 13581734400, datetime.date(2013, 3, 4)),
        (".sav", "TIME8", 90.0, datetime.timedelta(seconds=90)),
        (".xpt", "MMDDYY10.", 19421, datetime.date(2013, 3, 4)),
        (".xpt", "E8601DT", 1678023014, datetime.datetime(2013, 3, 4, 13, 30, 14)),
        (".xpt", "TIME8.", 90.0, datetime.timedelta(seconds=90)),
        (".xpt", "DOLLAR8.", 90.0, 90.0),
    ],
)
def test_dates_of_spss_and_sas_are_dates(kind, form, number, expected, here: Path) -> None:
    people, path = pandas.DataFrame({"t": [float(number)]}), Path(f"t{kind}")
    write = pyreadstat.write_sav if kind == ".sav" else pyreadstat.write_xport
    write(people, path, variable_format={"t": form})
    assert read(path) == {"t": [expected]}


def test_damaged_statistical_files_are_one_line(here: Path) -> None:
    written(".sav", Path("whole.sav"))
    whole = Path("whole.sav").read_bytes()
    for name, content in (
        ("cut.sav", whole[:-20]),
        ("cut.dta", b"<stata_dta><header>"),
        ("text.xpt", b"age\n7\n"),
    ):
        Path(name).write_bytes(content)
        assert refusal(Path(name)).startswith(" cannot be read, or is damaged: ")
    Path("secret.sav").write_bytes(b"\x1c" + bytes(7) + b"ENCRYPTEDSAV" + bytes(60))
    assert refusal(Path("secret.sav")).startswith(" is encrypted: save it without a password")
    far = pandas.DataFrame({"t": [13581734400.0, 1e300]})
    pyreadstat.write_sav(far, "far.sav", variable_format={"t": "DATE11"})
    assert refusal(Path("far.sav")) == (
        ", row 1, column 't': the number is beyond all dates; nothing was written"
    )
    for name in ("none.sav", "none.xlsx", "none.arrow"):
        with pytest.raises(FileNotFoundError, match=name):
            read(Path(name))


def test_cells_of_a_workbook_are_of_their_type(here: Path) -> None:
    rows = [
        ["share", "code", "mixed", "yes", 2019, "empty"],
        [0.25, "01", 7, True, 1, None],
        [None, "1,5", "x", None, 2.5, None],
        [1.0, None, datetime.date(2013, 3, 4), False, None, None],
    ]
    assert read(workbook(Path("a.xlsx"), people=rows)) == {
        "share": [0.25, None, 1.0],
        "code": ["01", "1,5", None],
        "mixed": ["7", "x", "2013-03-04"],
        "yes": [True, None, False],
        "2019": [1.0, 2.5, None],
        "empty": [None, None, None],
    }


def test_a_sheet_that_is_no_plain_table_is_refused(here: Path) -> None:
    table = [["age", "sex"], [1, "f"], [2, "m"], [3, "f"]]
    path = workbook(Path("b.xlsx"), people=table, wards=table, empty=[])
    assert refusal(path).startswith(
        " has the sheets people, wards: name one, such as --sheet 'people'"
    )
    assert read(path, sheet="wards") == {"age": [1.0, 2.0, 3.0], "sex": ["f", "m", "f"]}
    assert " has no sheet 'x'; it has people, wards, empty" in refusal(path, sheet="x")
    assert refusal(path, sheet="empty").startswith(", sheet 'empty' is empty")
    for rows, reason in (
        ([["People of 2019", None], *table], ", row 1, column 2: there is no name"),
        ([*table[:2], [None, None], [4, "m"]], ", row 3: the row is empty"),
        ([table[0], ["years", "label"], *table[1:]], ", row 2, column 'age': this looks like"),
    ):
        path = workbook(Path("c.xlsx"), people=rows)
        assert refusal(path).startswith(f", sheet 'people'{reason}")
    book = openpyxl.load_workbook(workbook(path, people=table))
    book["people"].merge_cells("A3:A4")
    book.save(path)
    assert refusal(path).startswith(", sheet 'people', row 3: cells are merged")
    with opened_table(workbook(path, people=table)) as opened:
        assert opened.where(0) == "sheet 'people', row 2"
    path.write_bytes(path.read_bytes()[:900])
    assert refusal(path).startswith(" is no workbook, or damaged: ")
    workbook(Path("d.xlsx"), people=table).rename("d.csv")
    assert refusal(Path("d.csv")).startswith(
        " is an Excel workbook or another zip archive: its name must end in .xlsx"
    )


def test_other_files_and_missing_extras_are_named(here: Path, monkeypatch) -> None:
    Path("a.doc").touch()
    assert f"must end in {', '.join(ENDINGS)}" in refusal(Path("a.doc"))
    for name, package in (("a.sav", "pyreadstat"), ("a.xlsx", "python_calamine")):
        Path(name).touch()
        monkeypatch.setitem(sys.modules, package, None)
        assert refusal(Path(name), ImportError).endswith("pip install '.[stats]'")
