"""Tables of counts in files: both forms, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdesign import InvalidTable
from mechdesign.tables.axes import read_counts

LONG = "ward;age;ill;all\nA;0-17;3;30\nA;18+;12,0;40\nB;0-17;20;50\nB;18+;31;60\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_for_each_row(here: Path) -> None:
    table = read_counts(written(here, '\ufeffward,0-17,18+\nA,3,12\n"B, C",20,31\n\n'))
    assert table.names == ("ward", "column")
    assert table.labels == (("A", "B, C"), ("0-17", "18+"))
    assert table.counts.tolist() == [[3, 12], [20, 31]]
    assert table.sizes is None


def test_a_row_for_each_cell(here: Path) -> None:
    table = read_counts(written(here, LONG), "ill", "all")
    assert table.names == ("ward", "age")
    assert table.labels == (("A", "B"), ("0-17", "18+"))
    assert table.counts.tolist() == [[3, 12], [20, 31]]
    assert table.sizes is not None
    assert table.sizes.tolist() == [[30, 40], [50, 60]]
    three = read_counts(written(here, "a,b,c,n\n1,1,1,5\n1,1,2,6\n"), "n")
    assert three.counts.shape == (1, 1, 2)


@pytest.mark.parametrize(
    ("text", "count", "size", "reason"),
    [
        ("", None, None, "no rows"),
        ("ward,a\n", None, None, "no rows"),
        ("ward\nA\n", None, None, "one column"),
        ("ward,a,b\nA,3\n", None, None, "line 2: 2 cells under a header of 3"),
        ("ward,a,b\nA,3,x\n", None, None, "line 2: 'x' is no count"),
        ("ward,a,b\nA,3,-1\n", None, None, "line 2: '-1' is no count"),
        ("ward,a,a\nA,3,4\n", None, None, "the label 'a' comes twice"),
        ("ward,a\nA,3\nA,4\n", None, None, "the label 'A' comes twice"),
        ("sex,ill\nF,yes\nF,no\n", None, None, "twice.* not for each person"),
        ("ward,a,Total\nA,3,3\n", None, None, "line 1: 'Total' is no label"),
        ("ward,a\nA,3\ntotal,3\n", None, None, "line 3: 'total' is no label"),
        ("ward,n\nA,3\nTotal,3\n", "n", None, "line 3: 'Total' is no label"),
        ("ward,n\nA,3\n", "m", None, "no column 'm'"),
        ("ward,n\nA,3\n", "n", "m", "no column 'm'"),
        ("n\n3\n", "n", None, "no column of labels"),
        ("ward,n\nA,3\nA,3\n", "n", None, "line 3: the cell A comes twice"),
        ("a,b,n\n1,1,3\n2,2,3\n", "n", None, "no row for 1, 2.* are no axes"),
        (
            LONG.replace("31;60", "61;60"),
            "ill",
            "all",
            "line 5: '61' is not an integer",
        ),
        (LONG.replace("31;60", "31;many"), "ill", "all", "line 5: 'many' is no size of a group"),
    ],
)
def test_what_is_no_table(
    text: str, count: str | None, size: str | None, reason: str, here: Path
) -> None:
    with pytest.raises(InvalidTable, match=reason):
        read_counts(written(here, text), count, size)


def test_sizes_need_a_column_of_counts(here: Path) -> None:
    with pytest.raises(ValueError, match="must be named"):
        read_counts(written(here, LONG), None, "all")
