"""Rows that add up others are found, and no others."""

import numpy as np
import pytest

from mechdesign import Privacy
from mechdesign.exceptions import InvalidTable
from mechdesign.tables import release
from mechdesign.tables.axes import read_counts
from mechdesign.tables.totals import refuse_totals

PLACES = ["North", "North", "North", "South", "South", "South", "Land"]
SCHOOLS = ["A", "B", "both", "C", "D", "both", "both"]
SIZES = [20, 30, 50, 25, 25, 50, 100]
COUNTS = [3, 5, 8, 1, 0, 1, 9]
"""Two schools in each of two places, with their sums and the sum of all."""


def refused(rows, overlap=1, columns=(PLACES, SCHOOLS)):
    counts, sizes, *labels = ([one[k] for k in rows] for one in (COUNTS, SIZES, *columns))
    try:
        refuse_totals(counts, sizes, labels, overlap)
    except InvalidTable as error:
        return str(error)
    return ""


def test_no_row_adds_up_others():
    assert not refused([0, 1, 3, 4])
    assert not refused([2, 5])
    assert not refused([0])
    refuse_totals([0, 0, 0, 0], [5, 5, 5, 5])  # nobody everywhere adds up nothing
    refuse_totals([3, 3, 6], [10, 10, 21])
    refuse_totals([1, 2, 3], [0, 0, 0])


@pytest.mark.parametrize(
    ("rows", "row", "others", "deepest"),
    [
        ([0, 1, 2], 3, 2, 2),  # the first row of the table is row 1
        ([2, 0, 1], 1, 2, 2),
        ([0, 1, 3, 4, 6], 5, 4, 2),  # all others
        ([2, 5, 6], 3, 2, 2),
        ([0, 1, 2, 3, 4], 3, 2, 2),  # all with one label in one column
        (range(7), 3, 2, 3),  # sums, and a sum of all that others stand beside
        ([6, 5, 4, 3, 2, 1, 0], 1, 6, 3),
    ],
)
def test_a_sum_of_others_is_named(rows, row, others, deepest):
    found = refused(rows)
    assert found.startswith(f"row {row}, ")
    assert f"adds up the counts of {others} other rows" in found
    assert f"overlap {deepest}" in found
    assert refused(rows, deepest - 1)
    assert not refused(rows, deepest)


@pytest.mark.parametrize("label", ["Total", " total ", "ALL", "Gesamt", "Ensemble", "合計"])
def test_a_label_of_a_total_is_enough_where_the_row_is_the_largest(label):
    with pytest.raises(InvalidTable, match=f"row 3, '{label}', adds up"):
        refuse_totals([3, 5, 9], [20, 30, 55], [["North", "South", label]])
    with pytest.raises(InvalidTable, match="row 3, "):
        refuse_totals(
            [3, 5, 9, 70], [20, 30, 55, 90], [["a", "a", "a", "b"], ["x", "y", label, "z"]]
        )
    refuse_totals([3, 5, 9], [20, 30, 25], [["North", "South", label]])  # a small group
    refuse_totals([3, 5, 9], [20, 30, 55], [[label] * 3])  # what all have tells nothing


def test_many_rows_in_many_columns_are_compared_with_every_sum():
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 100, 2000)
    counts = rng.integers(0, sizes + 1)
    labels = [rng.integers(0, 9, 2000).astype(str).tolist() for _ in range(3)]
    refuse_totals(counts, sizes, labels)
    chosen = (np.array(labels[0]) == "4") & (np.array(labels[2]) == "7")
    more = [[*column, at] for column, at in zip(labels, ("4", "of all", "7"), strict=True)]
    with pytest.raises(InvalidTable, match=f"row 2001, .* of {chosen.sum()} other rows"):
        refuse_totals([*counts, counts[chosen].sum()], [*sizes, sizes[chosen].sum()], more)


def test_a_release_in_python_refuses_its_totals():
    privacy = Privacy.from_epsilon(1)
    with pytest.raises(InvalidTable, match="row 3 adds up the counts of 2 other rows"):
        release([1, 2, 3], [3, 4, 7], privacy)
    assert release([1, 2, 3], [3, 4, 7], privacy, overlap=2).statement.overlap == 2


@pytest.mark.parametrize("count", [None, "n"])
def test_sums_along_an_axis_are_refused_whatever_they_are_called(tmp_path, count):
    table = {"a": [1, 2, 0], "b": [4, 0, 9], "both": [5, 2, 9]}
    path = tmp_path / "t.csv"
    if count is None:
        lines = [f"{name},{','.join(map(str, row))}" for name, row in table.items()]
        path.write_text("\n".join(["x,p,q,r", *lines]))
    else:
        lines = [
            f"{x},{y},{n}" for x, row in table.items() for y, n in zip("pqr", row, strict=True)
        ]
        path.write_text("\n".join(["x,y,n", *lines]))
    with pytest.raises(InvalidTable, match="the counts of 'both' are the sums of the others"):
        read_counts(path, count)
    path.write_text(path.read_text().replace("9", "8", 1))
    assert read_counts(path, count).counts.shape == (3, 3)
