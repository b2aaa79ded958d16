"""Perturbation tables: exact laws, and the files of offices' tools, read, written and refused."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechdesign import InvalidCount, InvalidMechanism, InvalidTable
from mechdesign.perturbation import PerturbationTable
from tests.mechdesign.perturbation.random_tables import published_rule, random_table

SMALL = PerturbationTable(4, [[(4, 0)], [(1, -1), (2, 0), (1, 1)], [(2, -1), (2, 1)]])


@pytest.mark.parametrize("seed", range(20))
def test_laws_are_those_of_the_keys_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    keys = np.arange(table.keys)
    for count in range(20):
        noise = table.noise(np.full(table.keys, count), keys)
        assert table.law(count) == dict(sorted(Counter(noise.tolist()).items()))
        assert table.bias(count) == Fraction(int(noise.sum()), table.keys)
        mean_square = Fraction(int((noise**2).sum()), table.keys)
        assert table.variance(count) == mean_square - table.bias(count) ** 2
        assert (table.noise([count], [table.keys + 3]) == table.noise([count], [3])).all()
    shown = [[int(v) for v in table.noise(np.full(table.keys, c), keys)] for c in range(7)]
    assert PerturbationTable.of_noise(np.array(shown[: table.largest + 1]), table.period) == table


def test_rows_are_used_again_above_the_largest_count() -> None:
    table = PerturbationTable.of_laws(1, [{0: 1}, {0: 1}, {1: 1}, {2: 1}], period=2)
    assert [table.place(count) for count in range(8)] == [0, 1, 2, 3, 2, 3, 2, 3]
    assert table.noise([2, 3, 4, 5, 9], [0] * 5).tolist() == [1, 2, 1, 2, 2]


@pytest.mark.parametrize(
    ("keys", "rows", "period", "message"),
    [
        (4, [[(3, 0)]], 1, "for 3 keys"),
        (4, [[(4, -1)]], 1, "makes -1"),
        (4, [[(4, 10_001)]], 1, "beyond"),
        (4, [], 1, "needs a row"),
        (4, [[(4, 0)]], 2, "the period"),
        (0, [[(0, 0)]], 1, "number of keys"),
        (4, [[(4, 0.5)]], 1, "integers"),
        (4, [[(5, 0), (-1, 1)]], 1, "keys >= 0"),
    ],
)
def test_what_is_no_table_is_refused(keys, rows, period, message) -> None:
    with pytest.raises(InvalidMechanism, match=message):
        PerturbationTable(keys, rows, period)


def test_noise_refuses_what_is_no_count_or_key() -> None:
    with pytest.raises(InvalidCount):
        SMALL.noise([-1], [0])
    with pytest.raises(InvalidCount):
        SMALL.noise([1], [-1])
    with pytest.raises(ValueError, match="shape"):
        SMALL.noise([1, 2], [0])
    with pytest.raises(InvalidMechanism, match="of shape"):
        PerturbationTable.of_noise([1, 2])


# -------------------------------------------------------------------------------------------- files


def test_the_published_table_is_read_as_it_is(tmp_path: Path) -> None:
    """In the form of cell_key_perturbation 3.1.0, whose own file has these lines."""
    path = tmp_path / "table.csv"
    published_rule().write(path)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + 750 * 256
    assert lines[:2] == ["pcv,ckey,pvalue", "1,0,-1"]
    assert lines[-1] == "750,255,0"
    read = PerturbationTable.read(path)
    assert (read.keys, read.period, read.largest) == (256, 250, 750)
    assert read.law(9) == {-9: 256}
    assert read.law(12) == read.law(1012) == {-2: 256}


@pytest.mark.parametrize("form", ["tau-argus", "sas"])
@pytest.mark.parametrize("keys", [4, 256])
def test_files_of_ptable_come_back(form: str, keys: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(keys)
    rows = [rng.integers(-min(c, 3), 4, size=keys) for c in range(6)]
    table = PerturbationTable.of_noise(np.array(rows))
    table.write(tmp_path / "t.csv", form)
    read = PerturbationTable.read(tmp_path / "t.csv")
    for count in range(9):
        one = {v: Fraction(k, read.keys) for v, k in read.law(count).items()}
        assert one == {v: Fraction(k, table.keys) for v, k in table.law(count).items()}
    assert keys % read.keys == 0


PTABLE = """i;j;p;v;p_int_ub
 0; 0;1.00000000; 0;1.00000000
 1; 0;0.33333333;-1;0.33333333
 1; 1;0.33333333; 0;0.66666667
 1; 2;0.33333333; 1;1.00000000
"""


def test_eight_digits_are_taken_as_they_are_applied(tmp_path: Path) -> None:
    """The tools look a key up among the upper ends: those are exact decimals."""
    (tmp_path / "t.csv").write_text(PTABLE)
    table = PerturbationTable.read(tmp_path / "t.csv")
    assert table.keys == 10**8
    assert table.law(1) == {-1: 33333333, 0: 33333334, 1: 33333333}
    with pytest.raises(ValueError, match="listed at most"):
        table.noise([1], [0])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.66666667", "0.33333333", "line 4: p_int_ub .* does not rise"),
        (" 1;1.00000000\n", " 1;0.99999999\n", "line 5: the intervals of count 1 end at"),
        (" 0;1.00000000\n 1", " 0;0.50000000\n 1", "line 2: p 1 is not the width"),
        ("1; 2;0.3", "1; 3;0.3", "line 5: j = 3 is not i . v = 2"),
        ("1; 2;0.33333333", "3; 4;0.33333333", "line 5: count 3 after 1"),
        ("0.33333333;-1", "0.2;-1", "line 3: p 0.2 is not the width"),
        ("0.33333333;-1", "x;-1", "line 3: .* under p is no number"),
        ("1;0.33333333; 0", "1;0.33333333; 0.5", "line 4: 0.5 under v is no integer"),
        ("i;j;p", "i;k;p", "no perturbation table"),
        (" 0; 0;1.00000000; 0;1.00000000\n", "", "line 2: count 1 after -1"),
    ],
)
def test_what_is_wrong_in_a_file_of_ptable_is_refused_by_line(old, new, message, tmp_path) -> None:
    assert old in PTABLE
    (tmp_path / "t.csv").write_text(PTABLE.replace(old, new, 1))
    with pytest.raises(InvalidTable, match=message):
        PerturbationTable.read(tmp_path / "t.csv")


def test_magnitude_tables_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("i;j;p;v;p_int_ub;type\n0;0;1;0;1;all\n")
    with pytest.raises(InvalidTable, match="magnitude"):
        PerturbationTable.read(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("line", "new", "message"),
    [
        (3, "1,1,x", "line 4: 'x' under pvalue"),
        (3, "1,0,1", "line 4: count 1 and key 0 occur a second time"),
        (3, "751,1,0", "line 4: count 751"),
        (3, "1,2,-2", "line 4: count 1 with noise -2"),
        (3, "0,2,1", "line 4: count 0 is perturbed"),
        (3, "1,-2,1", "line 4: count 1 and key -2"),
        (5, None, "line 1502: count 2 has no entry for key 1"),
    ],
)
def test_what_is_wrong_in_a_file_of_ons_is_refused_by_line(line, new, message, tmp_path) -> None:
    lines = ["pcv,ckey,pvalue"]
    lines += [f"{c},{k},0" for c in range(1, 751) for k in (0, 1)]
    lines[2:2] = ["1,2,0"]
    lines += [f"{c},2,0" for c in range(2, 751)]
    lines[line : line + 1] = [] if new is None else [new]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidTable, match=message):
        PerturbationTable.read(tmp_path / "t.csv")


def test_a_count_without_a_row_is_refused(tmp_path: Path) -> None:
    text = "".join(f"{c},{k},0\n" for c in range(1, 750) for k in (0, 1))
    (tmp_path / "t.csv").write_text("pcv,ckey,pvalue\n" + text)
    with pytest.raises(InvalidTable, match="no entry of count 750"):
        PerturbationTable.read(tmp_path / "t.csv")


def test_a_form_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    zero = PerturbationTable.of_laws(2, [{0: 1, 1: 1}])
    with pytest.raises(ValueError, match="count 0 is perturbed"):
        zero.write(tmp_path / "t.csv")
    three = PerturbationTable.of_laws(3, [{0: 3}, {-1: 1, 0: 1, 1: 1}])
    with pytest.raises(ValueError, match="no decimal"):
        three.write(tmp_path / "t.csv", "sas")
    long = PerturbationTable.of_laws(2, [{0: 2}] * 8, period=7)
    with pytest.raises(ValueError, match="the period divides 250"):
        long.write(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="the last row stands"):
        long.write(tmp_path / "t.csv", "tau-argus")
    with pytest.raises(ValueError, match="a form is one of"):
        long.write(tmp_path / "t.csv", "r")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("header", ["i;j;p;v;p_int_ub", '"i";"j";"p";"v";"p_int_ub"'])
def test_intervals_that_were_split_and_shuffled_are_read(header: str, tmp_path: Path) -> None:
    """As `modify_cnt_ptable` of ptable 0.4 makes them, with a part of no width, in aligned columns.

    Older releases quote the names of columns.
    """
    path = tmp_path / "modified.csv"
    lines = [
        header,
        "0;0;1.00000000; 0;1.00000000",
        "1;1;0.20000000; 0;0.20000000",
        "1;0;0.25000000;-1;0.45000000",
        "1;1;0.20000000; 0;0.65000000",
        "1;1;0.10000000; 0;0.75000000",
        "1;2;0.20000000; 1;0.95000000",
        "1;2;0.00000000; 1;0.95000000",
        "1;2;0.05000000; 1;1.00000000",
    ]
    path.write_text("\n".join(lines) + "\n")
    table = PerturbationTable.read(path)
    assert table.keys == 20
    assert table.rows[1] == ((4, 0), (5, -1), (6, 0), (5, 1))
