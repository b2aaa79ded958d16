"""Tables of people with the noise of their keys: the same people, the same noise."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechdesign import InvalidTable
from mechdesign.cli import main
from mechdesign.perturbation import (
    PerturbationTable,
    design_perturbation,
    draw_record_keys,
    perturb,
    read_people,
    scattered,
)
from tests.mechdesign.perturbation.random_tables import published_rule, random_table


@pytest.fixture(scope="module")
def designed() -> PerturbationTable:
    rules = {"noise": 3, "variance": "3/2", "protected": 1}
    return scattered(design_perturbation(6, objective="delta", epsilon=1, **rules).rounded().table)


def people(seed: int, number: int = 400) -> tuple[list[list[str]], list[int]]:
    rng = np.random.default_rng(seed)
    labels = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, size=(number, 2))]
    return labels.tolist(), draw_record_keys(number, 4096, rng).tolist()


def by_pandas(labels, keys, table: PerturbationTable, threshold: int) -> dict:
    """As cell_key_perturbation does it: grouped, keys summed, looked up in a file's rows."""
    frame = pd.DataFrame(labels, columns=["x", "y"]).assign(key=keys)
    groups = frame.groupby(["x", "y"])["key"].agg(["size", "sum"])
    found = {}
    for cell in product(sorted(frame.x.unique()), sorted(frame.y.unique())):
        count, key = groups.loc[cell] if cell in groups.index else (0, 0)
        row = count if count <= 750 else (count - 1) % 250 + 501
        noise = int(table.noise([row], [key % table.keys])[0]) if count else 0
        found[cell] = count + noise if count + noise >= threshold else None
    return found


@pytest.mark.parametrize("number", [20, 400, 16000])
@pytest.mark.parametrize("threshold", [0, 10])
def test_cells_are_those_of_cell_key_perturbation(number, threshold, designed) -> None:
    for table in (published_rule(), designed):
        labels, keys = people(number, number)
        found = perturb(table, labels, keys, columns=["x", "y"], threshold=threshold)
        assert found.cells == by_pandas(labels, keys, table, threshold)


def test_the_same_people_have_the_same_noise_in_every_table(designed) -> None:
    labels, keys = people(5)
    with_totals = perturb(designed, labels, keys, columns=["x", "y"], totals=True)
    alone = perturb(designed, [row[:1] for row in labels], keys, columns=["x"], totals=True)
    for label in "abcd":
        assert with_totals.cells[label, "total"] == alone.cells[(label,)]
    assert with_totals.cells["total", "total"] == alone.cells[("total",)]
    order = np.random.default_rng(1).permutation(len(keys))
    shuffled = perturb(
        designed, [labels[k] for k in order], [keys[k] for k in order], columns=["x", "y"]
    )
    assert shuffled.cells.items() <= with_totals.cells.items()
    assert len(with_totals.cells) == 25


@pytest.mark.parametrize("seed", range(5))
def test_totals_are_those_of_all_their_people(seed: int) -> None:
    table = random_table(np.random.default_rng(seed))
    labels, keys = people(seed, 30)
    found = perturb(table, labels, keys, columns=["x", "y"], totals=True)
    for cell, output in found.cells.items():
        inside = [
            key
            for row, key in zip(labels, keys, strict=True)
            if all(want in ("total", label) for want, label in zip(cell, row, strict=True))
        ]
        noise = int(table.noise([len(inside)], [sum(inside)])[0])
        assert output == len(inside) + noise


def test_nobody_and_impossible_are_told_apart(designed) -> None:
    labels, keys = [["boy", "no"], ["girl", "yes"], ["girl", "no"]], [1, 2, 3]
    columns = ["sex", "pregnant"]
    found = perturb(designed, labels, keys, columns=columns)
    assert found.cells["boy", "yes"] == 0
    found = perturb(designed, labels, keys, columns=columns, impossible=[["boy", "yes"]])
    assert ("boy", "yes") not in found.cells
    with pytest.raises(InvalidTable, match="record 1 is in the impossible cell girl, yes"):
        perturb(designed, labels, keys, columns=columns, impossible=[["girl", "yes"]])
    with pytest.raises(InvalidTable, match="'total'"):
        perturb(designed, [["total"]], [1], columns=["a"], totals=True)
    with pytest.raises(ValueError, match="rows of labels"):
        perturb(designed, labels, keys[:2], columns=columns)
    with pytest.raises(ValueError, match="key of record 0"):
        perturb(designed, labels, [-1, 2, 3], columns=columns)


def test_record_keys_are_uniform() -> None:
    """False alarms: below 1e-6, by Hoeffding's inequality and a union of 20 keys."""
    number = 200_000
    drawn = Counter(draw_record_keys(number, 20, np.random.default_rng(3)).tolist())
    assert set(drawn) == set(range(20))
    within = float(np.sqrt(np.log(2 * 20 / 1e-6) / (2 * number)))
    assert all(abs(Fraction(n, number) - Fraction(1, 20)) < within for n in drawn.values())
    assert within < 1 / 60  # half as many again of a key would be seen
    assert len(set(draw_record_keys(64, 65536).tolist())) > 32  # of the operating system


def test_files_of_people_are_published_by_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], designed
) -> None:
    monkeypatch.chdir(tmp_path)
    labels, _ = people(8)
    lines = "".join(f"{x};{y}\n" for x, y in labels)
    Path("people.csv").write_text(f"x;y\n{lines}")
    designed.write("table.csv")
    assert main(["draw-record-keys", "people.csv", "--record-key", "k", "--out", "keyed.csv"]) == 0
    assert "secret keys" in capsys.readouterr().out
    read, keys = read_people(tmp_path / "keyed.csv", ["x", "y"], "k")
    assert read == labels
    assert set(keys) <= set(range(256))
    arguments = "perturb-table keyed.csv --table table.csv --by x --by y --record-key k"
    Path("never.csv").write_text("e,e\n")
    more = "--totals --threshold 5 --impossible never.csv --out out.csv"
    assert main(f"{arguments} {more}".split()) == 0
    written = Path("out.csv").read_text().splitlines()
    expected = perturb(
        designed, read, keys, columns=["x", "y"], threshold=5, totals=True
    ).cells.items()
    assert written[1:] == [",".join([*c, "*" if n is None else str(n)]) for c, n in expected]
    assert written[0] == "x,y,count"
    assert main(["draw-record-keys", "keyed.csv", "--record-key", "k", "--out", "new.csv"]) == 2
    assert "averages out" in capsys.readouterr().err
    Path("bad.csv").write_text("x,k\na,3\nb,\n")
    assert main(
        [
            "perturb-table",
            "bad.csv",
            "--table",
            "table.csv",
            "--by",
            "x",
            "--record-key",
            "k",
            "--out",
            "o.csv",
        ]
    )
    assert "line 3: the record key '' is no whole number" in capsys.readouterr().err
