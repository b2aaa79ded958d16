"""The command ``mechdesign release-day``."""

import csv

import pytest

from mechdesign import Ledger
from mechdesign.cli.program import main
from rangeq.central import CountStream


@pytest.fixture
def day(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*more):
        return main(["release-day", "visits.stream", "--out", "visits.csv", "--force", *more])

    return call


def test_days_are_added_to_the_table(day, tmp_path, capsys):
    Ledger("2", delta="1e-6").save("budget.json")
    made = ("--days", "30", "--epsilon", "1", "--delta", "1e-6", "--ledger", "budget.json")
    assert day("--count", "40", "--day", "Monday", *made) == 0
    assert day("--count", "50", "--day", "Tuesday") == 0
    assert "2 of at most 30 days" in capsys.readouterr().out
    with open("visits.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["day"] for row in rows] == ["Monday", "Tuesday"]
    estimate = CountStream(tmp_path / "visits.stream").estimate
    assert float(rows[1]["total"]) == pytest.approx(estimate.prefix(1), abs=0.06)
    assert float(rows[0]["low"]) < float(rows[0]["count"]) < float(rows[0]["high"])
    assert len(Ledger.open("budget.json").entries) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--count", "1"), "--days, with --rho or --delta"),
        (("--count", "1", "--days", "5"), "Gaussian noise"),
        (("--count", "1", "--days", "5", "--epsilon", "1"), "Gaussian noise"),
        (("--count", "-1", "--days", "5", "--rho", "1"), "--count"),
        (("--count", "1", "--days", "0", "--rho", "1"), "days"),
        (("--count", "1", "--days", "5", "--rho", "1", "--workload", "cells"), "workload"),
    ],
)
def test_what_is_wrong_makes_no_stream(day, options, said, tmp_path, capsys):
    try:
        code = day(*options)
    except SystemExit as stop:
        code = stop.code
    assert code in (1, 2)
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_stream_is_made_once(day, capsys):
    assert day("--count", "1", "--days", "5", "--rho", "1", "--seed", "3") == 0
    assert "SEEDED" in capsys.readouterr().out
    assert day("--count", "1", "--rho", "1") == 2
    assert "is one already" in capsys.readouterr().err
    assert day("--count", "1", "--day", "1") == 2
    assert "released before" in capsys.readouterr().err
