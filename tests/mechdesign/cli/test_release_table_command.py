"""The command release-table: from a CSV file of groups to released counts and totals."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from mechdesign import Ledger, UnbiasedEstimate, design
from mechdesign.cli import main
from mechdesign.losses import L1, binomial
from mechdesign.mechanism.comparison import StandardErrors
from mechdesign.tables import TableRelease
from tests.killing import killed

ROWS = [
    ("A", "north", 4, 0),
    ("B", "north", 4, 4),
    ("C", "south", 6, 1),
    ("D", "south", 0, 0),
    ("E", "south", 6, 3),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MECHDESIGN_CACHE", str(tmp_path / "cache"))
    write("t.csv", ROWS)


def write(name, rows, between=",", mark=""):
    lines = [("school", "town", "pupils", "ill"), *rows]
    text = "\n".join(between.join(map(str, row)) for row in lines)
    Path(name).write_text(mark + text + "\n", encoding="utf-8")


def run(words):
    return main(["release-table", "t.csv", "--count", "ill", "--size", "pupils", *words.split()])


def read(name, between=","):
    with open(name, encoding="utf-8-sig", newline="") as stream:
        return list(csv.reader(stream, delimiter=between))


def test_a_table_is_released_with_its_totals(capsys):
    assert run("--epsilon 1 --property WH --total town --keep school --out r.csv --seed 3") == 0
    said = capsys.readouterr()
    assert "not private" in said.err
    assert "SEEDED" in said.out
    assert "protected" in said.out
    assert "unbiased SE" in said.out
    head, *rows = read("r.csv")
    assert head == ["town", "school", "pupils", "ill"]
    assert [row[:3] for row in rows] == [[town, name, str(n)] for name, town, n, _ in ROWS]
    assert all(0 <= int(row[3]) <= int(row[2]) for row in rows)
    table = [line.split() for line in said.out.splitlines() if line.startswith(("town", "all"))]
    assert [line[:3] for line in table] == [
        ["town", "north", "2"],
        ["town", "south", "3"],
        ["all", "5", "20"],
    ]


def test_the_release_is_kept_and_says_the_same_totals(capsys):
    assert run("--epsilon 1 --total town --out r.json --out r.csv --json --overlap 2") == 0
    said = json.loads(capsys.readouterr().out)
    kept = TableRelease.load("r.json")
    assert said["overlap"] == 2
    assert kept.names == tuple(town for _, town, _, _ in ROWS)
    assert said["epsilon"] == kept.statement.epsilon <= 2
    assert [size["size"] for size in said["sizes"]] == [0, 4, 6]
    for size in said["sizes"][1:]:
        exact = UnbiasedEstimate(kept.mechanisms[size["size"]]).standard_error()
        assert size["unbiased_standard_error"] == pytest.approx(exact)
    north, south, everybody = said["totals"]
    assert (north["label"], south["label"], everybody["label"]) == ("north", "south", None)
    assert everybody["value"] == pytest.approx(north["value"] + south["value"])
    mask = np.array([town == "north" for _, town, _, _ in ROWS])
    assert north["value"] == kept.total(mask).value
    assert north["interval"] == [*kept.total(mask).interval()]
    assert [int(row[-1]) for row in read("r.csv")[1:]] == kept.released.tolist()


def test_estimates_and_other_files(capsys):
    write("t.csv", ROWS, ";", "\ufeff")
    assert run("--alpha 1/2 --out r.csv --estimates --no-cache --confidence 0.9") == 0
    head, *rows = read("r.csv", ";")
    assert head == ["pupils", "ill", "estimate", "low", "high"]
    assert Path("r.csv").read_text(encoding="utf-8").startswith("\ufeff")
    assert all(0 <= int(row[3]) <= int(row[4]) <= int(row[0]) for row in rows)
    assert not Path("cache").exists()
    assert "0.9 interval" in capsys.readouterr().out


@pytest.mark.slow
def test_priors_and_costs(capsys):
    lines = [";".join(str(abs(i - j) / 2).replace(".", ",") for j in range(7)) for i in range(7)]
    Path("costs.csv").write_text("\n".join(lines))
    assert run("--epsilon 1 --property F --cost costs.csv --prior binomial:1/4 --out r.json") == 0
    found = TableRelease.load("r.json")
    for size, mechanism in found.mechanisms.items():
        loss = L1(prior=binomial(size, "1/4"))
        assert mechanism == design(size, 1, loss, properties=["F"]).mechanism
    shown = capsys.readouterr().out
    errors = StandardErrors.of(found.mechanisms[6], binomial(6, "1/4")).cells()
    assert errors["RMSE"] in shown
    for words, says in (
        ("--cost costs.csv --loss L1", "--cost takes the place of --loss"),
        ("--prior 1,2,3", "3 weights for the counts 0 .. 4"),
    ):
        assert run(f"--epsilon 1 {words} --out other.csv") == 2
        assert says in capsys.readouterr().err
        assert not Path("other.csv").exists()
    Path("costs.csv").write_text("0,1\n1,0\n")
    assert run("--epsilon 1 --cost costs.csv --out other.csv") == 2
    assert "2 lines of costs for 7 outputs" in capsys.readouterr().err


def test_mechanisms_for_totals(capsys):
    words = "--alpha 9/10 --property WH --property CM --out r.json --json --force"
    errors = []
    for loss in ("L0", "total", "total"):  # the last from the cache
        code = run(f"{words} --loss {loss}")
        said = capsys.readouterr()
        sizes = [] if code else json.loads(said.out)["sizes"]
        errors.append(sizes[1]["unbiased_standard_error"] if sizes else 0)
    assert errors[1] == errors[2]
    assert errors[1] < 10.6
    assert errors[0] == 0 or errors[0] > errors[1]
    assert len(list(Path("cache").glob("*.json"))) >= 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--epsilon 1 --out r.txt", "must end in .csv, .json"),
        ("--epsilon 1 --out t.csv", "would replace what it is made from"),
        ("--epsilon 1 --out t.csv --force", "would replace"),
        ("--epsilon 1 --out r.csv --keep ill", "true counts"),
        ("--epsilon 1 --out r.csv --total ill", "true counts"),
        ("--epsilon 1 --out r.csv --keep nothing", "no column 'nothing'"),
        ("--epsilon 1 --out r.csv --loss best", "a loss is"),
        ("--epsilon 1 --out r.csv --confidence 1", "strictly between"),
        ("--epsilon 1 --out r.csv --overlap 0", "overlap"),
        ("--epsilon 1 --out r.csv --property XX", "unknown property"),
        ("--epsilon 0 --out r.csv", "--allow-zero-epsilon"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(words, says, capsys):
    assert run(words) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert says in said[0]
    assert sorted(path.name for path in Path().iterdir()) == ["t.csv"]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("F", "south", 3, 4), "line 7: '4' is not an integer between 0 and 3"),
        (("F", "south", 3, -1), "line 7: '-1' is not an integer"),
        (("F", "south", 3, ""), "line 7: '' is not"),
        (("F", "south", "x", 1), "line 7: 'x' is no size"),
        (("F", "south", 3), "line 7: 3 cells"),
    ],
)
def test_wrong_lines_are_named(row, says, capsys):
    write("t.csv", [*ROWS, row])
    assert run("--epsilon 1 --out r.csv") == 2
    assert says in capsys.readouterr().err
    assert not Path("r.csv").exists()


def test_no_rows(capsys):
    write("t.csv", [])
    assert run("--epsilon 1 --out r.csv") == 2
    assert "no rows" in capsys.readouterr().err


def test_a_ledger_pays_for_all_that_a_person_loses(capsys):
    Ledger.open("budget.json", 3)
    assert run("--epsilon 1 --out r.csv --out r.json --ledger budget.json") == 0
    ledger = Ledger.open("budget.json")
    assert 0.999 < ledger.spent <= 1
    assert "r.csv" in str(ledger)
    # Two groups of a person: twice as much, which is more than there is
    assert run("--epsilon 11/10 --overlap 2 --out second.csv --ledger budget.json") == 1
    assert not Path("second.csv").exists()
    assert Ledger.open("budget.json").spent == ledger.spent
    assert "is more than the" in capsys.readouterr().err


def test_wherever_it_is_killed_a_table_is_spent_if_it_is_released(tmp_path):
    """And of two files of one draw the second never stands alone."""
    write("t.csv", ROWS)
    (tmp_path / "children").mkdir()
    table = str(Path("t.csv").resolve())
    words = ["release-table", table, "--count", "ill", "--size", "pupils", "--epsilon", "1"]
    words += ["--no-cache", "--out", "r.csv", "--out", "r.json", "--ledger", "budget.json"]
    act = f"""
    os.chdir(folder)
    sys.stdout = sys.stderr = open(os.devnull, "w")
    assert main({words!r}) == 0
"""
    imports = "from mechdesign.cli import main\nimport mechdesign.cli.release_commands"
    found = set()
    for folder in killed(tmp_path / "children", act, imports, delta=0):
        first, second = (folder / name for name in ("r.csv", "r.json"))
        alone = second.exists() and not first.exists()  # before anything is finished
        entries = Ledger.open(folder / "budget.json").entries
        assert [entry.what for entry in entries] == ["r.csv"] * first.exists()
        assert not alone
        found.add((first.exists(), second.exists()))
    assert found == {(False, False), (True, False), (True, True)}
