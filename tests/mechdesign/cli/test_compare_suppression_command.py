"""The command that compares suppression with a mechanism."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mechdesign.cli import main

WIDE = "ward,0-17,18-39,40+\nnorth,3,12,9\nsouth,20,31,0\n"
LONG = "ward,ill,all\nnorth,3,8\nsouth,7,9\n"


def run(command: str) -> int:
    return main(["compare-suppression", *command.split()])


def test_it_prints_a_row_for_each_cell_and_total_and_that_it_is_confidential(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "t.csv").write_text(WIDE)
    assert run("t.csv --threshold 7 --round 5 --epsilon 1 --plot t.png") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].split()[:3] == ["north,", "0-17", "*"]
    assert "suppressed cells: 1, of which readers recover" in shown.out
    assert "it is confidential" in shown.err
    assert (here / "t.png").stat().st_size > 5000


def test_sizes_properties_and_the_options_of_the_rule(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "t.csv").write_text(LONG)
    command = (
        "t.csv --count ill --size all --threshold 5 --round 5 --random --suppress-zeros"
        " --complementary --totals rounded --alpha 9/10 --property WH --property CM --seed 1 --json"
    )
    assert run(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rule"] == {
        "threshold": 5,
        "base": 5,
        "rounding": "random",
        "zeros": True,
        "complementary": True,
        "totals": "rounded",
    }
    assert found["alpha"] == "9/10"
    assert found["mechanism"] == "designed for the size of each group"
    assert [entry["labels"] for entry in found["entries"]] == [["north"], ["south"], ["total"]]
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("--threshold -1 --epsilon 1", "threshold must be"),
        ("--threshold 3 --round 10 --epsilon 1", "could stand for"),
        ("--threshold 7 --epsilon 0", "do not depend on the count"),
        ("--threshold 7 --epsilon 1 --size all", "must be named"),
        ("--threshold 7 --epsilon 1 --property WH", "sizes of groups"),
        ("--threshold 7 --epsilon 1 --count absent", "no column 'absent'"),
        ("--threshold 7 --epsilon 1 --plot t.txt", "must end in"),
        ("--threshold 7 --epsilon 1 --plot t.csv", "t.csv"),
    ],
)
def test_wrong_requests(
    arguments: str, reason: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "t.csv").write_text(WIDE)
    assert run(f"t.csv {arguments}") == 2
    assert reason in capsys.readouterr().err


def test_a_file_that_is_not_there(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("absent.csv --threshold 7 --epsilon 1") == 2
    assert "absent.csv" in capsys.readouterr().err
