"""The command that releases contingency tables."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

from mechdesign import Ledger, Privacy
from mechdesign.cli import main
from mechdesign.tables import ContingencyRelease

LONG = "region,answer,people\nnorth,yes,4\nnorth,no,2\nsouth,yes,0\nsouth,no,3\n"


def run(command: str) -> int:
    return main(["release-contingency", *command.split()])


@pytest.fixture
def people(here: Path) -> Path:
    (here / "people.csv").write_text(LONG)
    return here


def test_it_writes_the_release_and_a_table_and_prints_who_is_protected(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = (
        "people.csv --count people --within region --alpha 1/2 --property WH --margin answer=1"
        " --out r.json --table t.csv --whole --seed 1 --confidence 0.8"
    )
    assert run(command) == 0
    shown = capsys.readouterr()
    assert "one person who changes to another cell of the same group (region)" in shown.out
    assert "two of the cells, two of the sums by answer" in shown.out
    assert "whole numbers are biased: measured over 100 draws, by " in shown.out
    assert "not private" in shown.err
    release = ContingencyRelease.load(people / "r.json")
    assert release.axes.labels == (("north", "south"), ("yes", "no"))
    assert all(m.properties()["WH"] for m in release.cells.mechanisms.values())
    table = release.consistent()
    with (people / "t.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, labels, estimate in zip(rows, release.axes.cells(), table.cells.flat, strict=True):
        assert (row["region"], row["answer"]) == labels
        assert float(row["estimate"]) == pytest.approx(estimate, abs=0.006)
        where = dict(zip(("region", "answer"), labels, strict=True))
        assert (int(row["low"]), int(row["high"])) == table.estimate(where).interval(0.8)
        assert int(row["whole number"]) >= 0
        assert float(row["measured bias"]) < 6
    assert sum(int(row["whole number"]) for row in rows) == 9


@pytest.mark.parametrize(
    ("options", "within", "changed"),
    [("--public-total", [], 2), ("--cap 3 --margin =2", None, 1)],
)
def test_what_is_public_decides_what_is_protected(
    people: Path, capsys: pytest.CaptureFixture[str], options: str, within: object, changed: int
) -> None:
    assert run(f"people.csv --count people {options} --epsilon 1 --out r.json") == 0
    assert json.loads((people / "r.json").read_text())["within"] == within
    assert ContingencyRelease.load(people / "r.json").statement.changed == changed
    assert "of the operating system" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "parts"), [("--within region", 2), ("--cap 3", 1)])
def test_epsilons_may_be_those_of_a_person(people: Path, options: str, parts: int) -> None:
    asked = f"people.csv --count people {options} --epsilon 1 --margin answer=1/2 --out r.json"
    assert run(f"{asked} --per-person") == 0
    statement = ContingencyRelease.load(people / "r.json").statement
    assert 1.4999 < statement.epsilon <= 1.5
    assert statement.alpha == Privacy.from_epsilon(Fraction(1, parts)).alpha
    assert run(f"{asked} --force") == 0
    assert ContingencyRelease.load(people / "r.json").statement.epsilon > 1.4999 * parts


def test_sizes_of_groups_are_caps(people: Path) -> None:
    (people / "ill.csv").write_text(
        "region,age,ill,all\nn,old,2,5\nn,young,0,7\ns,old,4,4\ns,young,1,3\n"
    )
    assert run("ill.csv --count ill --size all --epsilon 1 --margin region=1 --out r.json") == 0
    release = ContingencyRelease.load(people / "r.json")
    assert release.axes.names == ("region", "age")
    assert release.cells.sizes.tolist() == [5, 7, 4, 3]
    assert release.statement.changed == 1


def test_a_row_for_each_row_of_the_table(people: Path) -> None:
    (people / "wide.csv").write_text("region,yes,no\nnorth,4,2\nsouth,0,3\n")
    assert run("wide.csv --within region --epsilon 1 --out r.json") == 0
    assert ContingencyRelease.load(people / "r.json").axes.names == ("region", "column")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--within region --within answer --epsilon 1", "within names every axis"),
        ("--within region,answer --epsilon 1", "within names every axis"),
        ("--within sex --epsilon 1", "axes are some of region, answer"),
        ("--within region --epsilon 0", "--allow-zero-epsilon"),
        ("--within region --epsilon 1 --margin region=1", "are public"),
        ("--within region --epsilon 1 --margin answer=1 --margin answer=2", "given twice"),
        ("--within region --epsilon 1 --margin answer=0", "above 0"),
        ("--within region --epsilon 1 --whole", "--table, which is not given"),
        ("--within region --epsilon 1 --table people.csv --force", "what it is made from"),
        ("--within region --epsilon 1 --table t.txt", "must end in .csv"),
        ("--cap -1 --epsilon 1", "not an integer between"),
    ],
)
def test_what_cannot_be_released_is_refused_and_nothing_written(
    people: Path, capsys: pytest.CaptureFixture[str], options: str, reason: str
) -> None:
    assert run(f"people.csv --count people {options} --out r.json") == 2
    assert reason in capsys.readouterr().err
    assert [path.name for path in people.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("public", ["--public-total", "--cap 30000"])
def test_what_takes_too_long_names_no_option_of_another_command(
    here: Path, capsys: pytest.CaptureFixture[str], public: str
) -> None:
    (here / "people.csv").write_text("answer,people\nyes,15000\nno,15000\n")
    assert run(f"people.csv --count people {public} --alpha 1/2 --property OR --out r.json") == 2
    (shown,) = capsys.readouterr().err.splitlines()
    assert "n = 30000 would take about" in shown
    assert shown.endswith("(smaller groups of public size, or a smaller cap, take less)")
    assert main(["design", "--n", "30000", "--alpha", "1/2", "--loss", "L1"]) == 2
    assert "--however-large: try" in capsys.readouterr().err


def test_a_margin_is_axes_and_an_epsilon(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("people.csv --count people --cap 1 --epsilon 1 --margin answer --out r.json")
    assert "a margin is AXES=EPSILON" in capsys.readouterr().err


@pytest.mark.slow
def test_a_count_at_the_cap_is_so_many_or_more(
    people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (people / "towns.csv").write_text("town,people\na,900\nb,3\nc,50\n")
    asked = "towns.csv --count people --cap 50 --epsilon 8 --out r.json --table t.csv --whole"
    assert run(f"{asked} --seed 1") == 0
    with (people / "t.csv").open(newline="") as stream:
        rows = {row["town"]: row for row in csv.DictReader(stream)}
    for town in "ac":
        assert rows[town]["released"] == rows[town]["high"] == "50 or more"
        assert rows[town]["whole number"] == "50 or more"
    assert int(rows["b"]["high"]) < 10
    assert "a cap stands for that or more people" in capsys.readouterr().out
    assert run("people.csv --count people --within region --epsilon 8 --out s.json") == 0
    assert "a cap" not in capsys.readouterr().out


def test_a_ledger_pays_for_cells_and_sums(people: Path) -> None:
    Ledger.open(people / "budget.json", 3)
    command = "people.csv --count people --within region --epsilon 1/2 --margin answer=1/4"
    assert run(f"{command} --out r.json --ledger budget.json") == 0
    assert 1.499 < Ledger.open(people / "budget.json").spent <= 1.5  # two cells and two sums
    assert run(f"{command} --out s.json --ledger budget.json --epsilon 1") == 1
    assert not (people / "s.json").exists()
