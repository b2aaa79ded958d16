"""A column of true counts released from CSV to CSV.

What is read and refused, and that all or nothing is written.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mechdesign import named
from mechdesign.base import ReadOptions
from mechdesign.mechanism import mechanism as column
from mechdesign.mechanism.mechanism import Read, release_column

MECHANISM = named.geometric(8, alpha="9/10")


def released(content: str | bytes, *keep: str, separator: str | None = None) -> tuple[bytes, Read]:
    """What becomes of a file with this content, with the same random numbers every time."""
    Path("true.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    rng = np.random.default_rng(1)
    read = release_column(
        MECHANISM,
        Path("true.csv"),
        Path("out.csv"),
        "count",
        keep,
        options=ReadOptions(separator=separator),
        rng=rng,
    )
    return Path("out.csv").read_bytes(), read


def refused(content: str | bytes, *keep: str) -> str:
    """Why a file with this content is refused; nothing is left behind."""
    with pytest.raises(ValueError, match=r"true\.csv") as error:
        released(content, *keep)
    assert [path.name for path in Path().iterdir()] == ["true.csv"]
    return str(error.value)


def expected(*counts: int) -> list[int]:
    return MECHANISM.release(counts, np.random.default_rng(1)).tolist()


PLAIN = "ward,count\nA,3\nB,0\nC,8\n"


@pytest.mark.parametrize("rows", [1, 2, 7, 1 << 20])
def test_the_output_depends_neither_on_the_block_nor_on_the_way(
    rows: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = np.random.default_rng(2).integers(0, 9, 5000).tolist()
    monkeypatch.setattr(column, "_ROWS", rows)
    written, read = released("count\n" + "".join(f"{count}\n" for count in counts))
    assert list(map(int, written.split()[1:])) == expected(*counts)
    assert read == Read(5000, ",")


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN + "\n\r\n\n",
        PLAIN.rstrip(),
        PLAIN.replace("3", "3.0").replace("8", "08.00"),
        PLAIN.replace("3", '"3,0"').replace("8", " 8\t"),
        PLAIN.replace("3", "0" * 5000 + "3"),
        '"ward","count"\n"A","3"\n"B","0"\n"C","8"\n',
        "other,ward,count,other\nx,A,3,y\nx,B,0,y\nx,C,8,y\n",
    ],
)
def test_every_way_to_write_the_same_table_gives_the_same_release(content: str, here: Path) -> None:
    written, _ = released(content, "ward")
    first, second, third = expected(3, 0, 8)
    assert written == f"ward,count\r\nA,{first}\r\nB,{second}\r\nC,{third}\r\n".encode()


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_is_found_in_the_header_and_kept(separator: str, here: Path) -> None:
    content = f"ward{separator}count\nA, B and C{separator}3,0\n"
    written, read = released(content, "ward")
    assert written == f"ward{separator}count\r\nA, B and C{separator}{expected(3)[0]}\r\n".encode()
    assert read == Read(1, separator)


def test_a_header_may_be_long(here: Path) -> None:
    """Longer than a cell may be: split at other separators it is one cell."""
    names = [f"c{k}" for k in range(40_000)]
    content = "\n".join([",".join([*names, "count"]), ",".join(["1"] * 40_001)])
    out, read = released(content, "c7")
    assert read == Read(1, ",")
    assert out.startswith(b"c7,count\r\n1,")


def test_a_header_cell_that_is_too_long_is_refused(here: Path) -> None:
    assert "field larger than field limit" in refused("count," + "x" * 200_000 + "\n1,2\n")


def test_a_separator_that_is_given_counts(here: Path) -> None:
    content = "ward (a, b, c);count\nA;3\n"
    assert "no column 'count'" in refused(content)
    written, read = released(content, separator=";")
    assert written == f"count\r\n{expected(3)[0]}\r\n".encode()
    assert read.separator == ";"


def test_a_byte_order_mark_is_kept(here: Path) -> None:
    written, _ = released("\ufeff" + PLAIN, "ward")
    assert written == b"\xef\xbb\xbf" + released(PLAIN, "ward")[0]


def test_cells_keep_separators_quotes_and_line_ends(here: Path) -> None:
    words = ["a,b", 'say "yes"', "two\nlines", "two\r\nlines", "ä €", ""]
    with Path("source.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["word", "count"], *([word, 3] for word in words)])
    written, read = released(Path("source.csv").read_bytes(), "word")
    rows = list(csv.reader(written.decode().splitlines(keepends=True)))
    assert [row[0] for row in rows[1:]] == words
    assert [int(row[1]) for row in rows[1:]] == expected(*[3] * len(words))
    assert read.rows == len(words)


@pytest.mark.parametrize(
    "cell",
    ["9", "-1", "+1", "2.5", "7.", "7.000", "7,000", "1e0", "", "x", "nan", "１", "0x1", "1_0"],
)
def test_what_is_no_count_is_named_and_nothing_is_written(cell: str, here: Path) -> None:
    content = f'ward,count\n"two\nlines",3\nB,"{cell}"\nC,99\n'
    reason = refused(content)
    assert "true.csv, line 4: " in reason
    assert "integer between 0 and 8" in reason
    assert "nothing was written" in reason


def test_a_cell_of_thousands_of_digits_names_its_line(here: Path) -> None:
    reason = refused("count\n3\n" + "7" * 5000 + "\n")
    assert "true.csv, line 3: '7777" in reason
    assert len(reason) < 200


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "no column 'count'"),
        ("count", "no rows"),
        ("count\n\n\n", "no rows"),
        ("count\n3\n\n4\n", "line 3: 0 cells under a header of 1"),
        ("\ncount\n3\n", "line 1: 0 cells"),
        ("ward,count\nA,1,005\n", "line 2: 3 cells under a header of 2"),
        ("ward,count\nA,3\nB\n", "line 3: 1 cells under a header of 2"),
        ("count,count\n3,4\n", "2 column 'count'"),
        ('count\n3\n"3\n', "after line 3, is not a CSV file"),
        (b"count\n3\n\xe9\n", "line 3, is not UTF-8: the file may be in Latin-1"),
        (b"PK\x03\x04\xff", "is an Excel workbook"),
        (b"\xff\xfec\x00o\x00u\x00n\x00t\x00", "is in UTF-16: save the table"),
    ],
)
def test_what_is_no_table_is_refused(content: str | bytes, reason: str, here: Path) -> None:
    assert reason in refused(content)


def test_a_wrong_line_far_behind_leaves_nothing_and_replaces_nothing(here: Path) -> None:
    Path("out.csv").write_text("before")
    Path("true.csv").write_text("count\n" + "3\n" * 100_000 + "x\n" + "3\n" * 10)
    with pytest.raises(ValueError, match="line 100002: 'x'"):
        release_column(MECHANISM, Path("true.csv"), Path("out.csv"), "count")
    assert {path.name for path in here.iterdir()} == {"true.csv", "out.csv"}
    assert Path("out.csv").read_text() == "before"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(here: Path) -> None:
    """Half a million rows took more than 100 MB above what an import takes, when they were held."""
    MECHANISM.save("gm.json")
    program = """
import resource, sys
from pathlib import Path
from mechdesign.cli import main
rows = int(sys.argv[1])
Path("true.csv").write_text("ward,count\\n" + "ward,3\\n" * rows)
command = "release gm.json --input true.csv --column count --keep ward --out out.csv --force"
assert main(command.split()) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", program, str(rows)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()[-1]
        )
        for rows in (10, 500_000)
    ]
    assert peaks[1] - peaks[0] < 30_000  # KB; the test itself makes a text of 4 MB
