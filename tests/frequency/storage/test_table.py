"""Tables in files: the rows that the standard library reads, and lines that name what is wrong."""

import csv
import gzip
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency.exceptions import InvalidCell, UnknownColumn
from frequency.storage import table
from frequency.storage.table import applied, blocks
from mechdesign import InvalidTable, NoRows
from mechdesign.base import table_files
from mechdesign.base.csv_rows import comma_separated

CELLS = st.text(alphabet='ab,;"\r\n é', max_size=4)


def read(path, columns=None):
    """The columns, as lists."""
    return pa.concat_tables(blocks(path, columns)).to_pydict()


@pytest.fixture
def file(tmp_path):
    """Writes a file with this content."""

    def write(content, name="people.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def refused(file):
    """Why a file with this content is refused."""

    def reason(content, columns=None, name="people.csv", error=InvalidTable):
        path = file(content, name)
        with pytest.raises(error) as found:
            read(path, columns)
        message = str(found.value)
        assert message.startswith(str(path))
        assert "\n" not in message
        return message.removeprefix(str(path))

    return reason


def twin(text, separator=","):
    """What the standard library reads."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    assert all(len(row) == len(header) for row in rows)
    return {name: [row[k] or None for row in rows] for k, name in enumerate(header)}


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=6),
    rest=st.sampled_from(["", "\r\n", "\n\n"]),
    chunk=st.sampled_from([64, 1 << 20]),
)
def test_what_the_standard_library_writes_is_read(rows, rest, chunk, tmp_path_factory):
    text = comma_separated([["name", "age"], *rows])
    path = tmp_path_factory.getbasetemp() / "people.csv"
    path.write_bytes((text + rest).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "_CHUNK", chunk)
        assert read(path) == twin(text)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=200)
@given(lines=st.lists(st.text(alphabet='ab,"\n', max_size=6), min_size=1, max_size=6))
def test_no_row_is_hidden_by_a_stray_quote(lines, tmp_path_factory):
    """Whatever the file: it is refused, or each line is a row but within quotes."""
    text = "\n".join(["a,b", *lines])
    path = tmp_path_factory.getbasetemp() / "people.csv"
    path.write_bytes(text.encode())
    try:
        found = len(read(path)["a"])
    except InvalidTable:
        return
    try:
        assert found == len(twin(text.rstrip("\n"))["a"])
    except csv.Error:  # it is less strict where no row can be hidden
        assert found == text.rstrip("\n").count("\n")


PLAIN = "id,age,sex\n1,44,female\n2,,male\n3,007, NA\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.rstrip(),
        PLAIN + "\r\n\n",
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        "\ufeff" + PLAIN,
        PLAIN.replace("44", '"44"').replace("2,,", '2,"",'),
    ],
)
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_every_way_to_write_a_table_is_the_same_table(content, separator, file):
    path = file(content.replace(",", separator))
    assert read(path, ["sex", "age"]) == {
        "sex": ["female", "male", " NA"],
        "age": ["44", None, "007"],
    }
    assert list(read(path)) == ["id", "age", "sex"]


def test_the_name_of_a_file_tells_its_kind(file):
    expected = {"a,b": ["1,5"], "c": ["2"]}
    tabs = "a,b\tc\n1,5\t2\n"
    assert read(file(tabs, "people.tsv")) == expected
    assert read(file(tabs.replace("\t", ";").replace("a,b", '"a,b"'), "people.CSV")) == expected
    assert read(file(gzip.compress(tabs.encode()), "people.tsv.gz")) == expected
    path = file("", "people.parquet")
    pq.write_table(pa.table(expected), path)
    assert read(path) == expected


def test_columns_may_have_any_names_and_cells_any_lines(file):
    text = comma_separated([["a\nb", " c ", ""], ["x\r\ny", '"', ","], ["", "é", "\n"]])
    assert read(file(text)) == twin(text)
    assert read(file(text), [" c "]) == {" c ": ['"', "é"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", " is empty"),
        ("\n\n", " is empty"),
        ("\ufeff", " is empty"),
        ("\nage\n7\n", ", line 1: 0 cells"),
        ("age\n", " has no rows"),
        ("age", " has no rows"),
        ("age\n\n\n", " has no rows"),
        ("age\n7\n\n8\n", ", line 3: 0 cells under a header of 1"),
        ("id,age\n1,7\n\n2,8\n", ", line 3: 0 cells under a header of 2"),
        ("id,age\n1,7\n2\n3,9\n", ", line 3: 1 cells under a header of 2"),
        ('id,age\n"1\n1",7\n2,3,4\n', ", line 4: 3 cells under a header of 2"),
        ('id,age\n1,"7\n2,8\n', ", after line 3, is not a CSV file"),
        ('id,age\n"1,7\n2,8\n"3",9\n', ", after line 4, is not a CSV file"),
        ("id,age\n1,7\n2,\0\n", ", line 3, holds a NUL byte"),
        (b"id,age\n1,7\n\xe9,8\n", ", line 3, is not UTF-8"),
        (b"id,age\r1,7\r\xe9,8\r", ", line 3, is not UTF-8"),
        (b"id,age\r\n1,7\r\n1,\xc3", ", line 3, is not UTF-8"),
        ("id,age\n1,7\n".encode("utf-16"), " is in UTF-16: save the table as CSV in UTF-8"),
        (b"PK\x03\x04\x14\x00\x06\x00", " is an Excel workbook"),
        (b"PAR1\x15\x04\x15\x00", " is a Parquet file: its name must end in .parquet"),
        ("id,age\n1,7\n".encode("utf-16-le"), ", line 1, holds a NUL byte"),
        ("id,age\n1,7\n2,8\n" + "x" * 140_000 + ",3,4\n", ", after line 4"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(content, reason, refused, monkeypatch):
    assert refused(content).startswith(reason)
    monkeypatch.setattr(table_files, "_CHUNK", 7)  # lines, marks and letters are cut in pieces
    assert refused(content).startswith(reason)


def test_a_line_far_behind_is_named(refused):
    rows = "12345,44\r\n" * 300_000
    assert refused(f"id,age\r\n{rows}1\r\n{rows}").startswith(", line 300002: 1 cells")
    bad = f"id,age\r\n{rows}".encode() + b"\xff,1\r\n"
    assert refused(bad).startswith(", line 300002, is not UTF-8")


def test_messages_do_not_show_rows(refused):
    secret = "secret,7\n" * 5
    for bad in ("secret\n", "secret,7,8\n", '"secret,\n', "\0,secret\n", '"secret"x,7\n"a\nb",7\n'):
        assert "secret" not in refused(f"name,age\n{secret}{bad}")


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_columns_that_are_not_there_once_are_named(name, refused, file):
    names, cells = ["age", "id", "id"], [[1], [2], [3]]
    if name == "people.csv":
        content = "age,id,id\n1,2,3\n"
    else:
        pq.write_table(pa.table(cells, names), path := file("", name))
        content = path.read_bytes()
    told = "; its columns are 'age', 'id', 'id'; nothing was written"
    assert refused(content, ["Age"], name, UnknownColumn) == " has no column 'Age'" + told
    assert refused(content, ["id"], name, UnknownColumn) == " has 2 columns 'id'" + told
    assert refused(content, None, name, UnknownColumn) == " has 2 columns 'id'" + told
    assert read(file(content, name), ["age"])["age"] in ([1], ["1"])


def test_many_columns_are_not_all_listed(refused):
    message = refused(",".join(f"c{k}" for k in range(99)), ["d"], error=UnknownColumn)
    assert message.endswith("'c19' and 79 more; nothing was written")


def test_what_is_no_file_of_a_table_is_refused(refused, tmp_path):
    assert "must end in .csv, .csv.gz, .csv.zst, .tsv" in refused("", name="people.doc")
    for content in (b"", b"id,age\n1,2\n", b"PAR1 and nothing PAR1"):
        assert "is not a Parquet file, or damaged" in refused(content, name="people.parquet")
    whole = gzip.compress(b"age\n" + b"7\n" * 100)
    for content in (b"age\n7\n", whole[:-9], whole[:15] + b"\xff\xff\xff" + whole[18:]):
        assert "is damaged, or not compressed by gzip" in refused(content, name="people.csv.gz")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.csv"):
        read(tmp_path / "folder.csv")
    for name in ("none.csv", "none.csv.gz", "none.parquet"):
        with pytest.raises(FileNotFoundError, match=name):
            read(tmp_path / name)


def test_parquet_is_read_as_it_is(tmp_path):
    path = tmp_path / "people.parquet"
    columns = pa.table(
        {
            "a.b": [1, None, 3],
            "sex": pa.array(["f", None, "m"]).dictionary_encode(),
            "days": pa.array([0, 1, None], pa.date32()),
            "lists": [[1], [], None],
        }
    )
    pq.write_table(columns, path, row_group_size=2)
    for names in (["days", "a.b"], ["sex"]):
        assert pa.concat_tables(blocks(path, names)).equals(columns.select(names))
    with pytest.raises(InvalidTable, match="column 'lists' holds list<"):
        read(path)
    pq.write_table(columns.slice(0, 0), path)
    with pytest.raises(NoRows, match="has no rows; nothing was written"):
        read(path, ["sex"])


def test_damage_within_a_parquet_file_is_one_readable_line(tmp_path):
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": list(range(1000))}), path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)
    with pytest.raises(InvalidTable, match="is not a Parquet file, or damaged"):
        read(path)


def test_blocks_do_not_depend_on_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "_ROWS", 100)
    values = pa.table({"age": [str(k) for k in range(1050)]})
    pq.write_table(values, tmp_path / "people.parquet", row_group_size=37)
    (tmp_path / "people.csv").write_text("age\n" + "".join(f"{k}\n" for k in range(1050)))
    for chunk in (50, 1 << 20):
        monkeypatch.setattr(table_files, "_CHUNK", chunk)
        for name in ("people.parquet", "people.csv"):
            found = list(blocks(tmp_path / name, ["age"]))
            assert [len(block) for block in found] == [100] * 10 + [50]
            assert pa.concat_tables(found).equals(values)
    monkeypatch.setattr(table, "_BYTES", 500)  # of long rows there are fewer
    monkeypatch.setattr(table_files, "_CHUNK", 50)
    monkeypatch.setattr(table_files, "_BATCH", 10)
    for name in ("people.parquet", "people.csv"):
        found = list(blocks(tmp_path / name, ["age"]))
        assert len(found) > 11
        assert max(block.nbytes for block in found) < 700
        assert pa.concat_tables(found).equals(values)


@pytest.mark.parametrize(
    ("name", "where"), [("people.csv", "line 3"), ("people.csv", "line 407"), ("p.parquet", "row")]
)
def test_a_refused_cell_is_named_with_its_line(name, where, file, monkeypatch):
    """Rows 1 and 203: those before have two lines each."""
    monkeypatch.setattr(table, "_ROWS", 10)
    row = 203 if where == "line 407" else 1
    rows = [["two\nlines", "Adelie"] for _ in range(300)]
    rows[row] = ["x", "Gento\x1b"]
    expected = where
    if name == "people.csv":
        path = file(comma_separated([["secret", "species"], *rows]))
        expected = f"line {2 + 2 * row}"
    else:
        path, expected = file("", name), f"row {row}"
        pq.write_table(pa.table({"species": [cells[1] for cells in rows]}), path)

    def encode(block):
        for place, cell in enumerate(block["species"].to_pylist()):
            if cell != "Adelie":
                raise InvalidCell(place, "species", cell, "one of Adelie, Gentoo")
        return len(block)

    with pytest.raises(InvalidTable) as error:
        list(applied(path, ["species"], encode))
    assert str(error.value) == (
        f"{path}, {expected}, column 'species': 'Gento\\x1b' is not one of Adelie, Gentoo;"
        " nothing was written"
    )
    rows[row][1] = "Adelie"
    path = file(comma_separated([["secret", "species"], *rows]))
    assert sum(applied(path, ["species"], encode)) == 300
