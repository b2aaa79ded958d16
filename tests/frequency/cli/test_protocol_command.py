"""The command protocol: what plan_survey plans, in a file that the other commands take."""

from pathlib import Path

import pytest

from frequency import Categorical, Numeric, Schema, Text, plan_survey
from frequency.storage import load_protocol
from mechdesign import Ledger
from mechdesign.cli import main

PEOPLE = Schema(
    [
        Numeric("age", low=0, high=30, whole=True, unit="years", missing="item"),
        Categorical("sex", ["female", "male"]),
        Text("word", 2),
    ]
)


@pytest.fixture
def protocol(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with a schema; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    PEOPLE.save("people.toml")

    def run(line):
        code = main(["protocol", *line.split(), "--schema", "people.toml"])
        return code, *capsys.readouterr()

    return run


def test_the_plan_is_printed_and_the_survey_is_written(protocol):
    ranges = "ranges --attribute age --epsilon 1 --n 1000 --out age.json"
    found = plan_survey("ranges", PEOPLE, "age", epsilon="1", n=1000)
    assert protocol(ranges) == (0, f"{found}\nwrote age.json\n", "")
    assert load_protocol("age.json") == found.survey
    code, _, err = protocol(ranges)
    assert (code, err) == (2, "mechdesign: age.json exists; use --force to overwrite it\n")
    assert protocol(f"{ranges} --protocol HaarHRR --force")[0] == 0
    assert type(load_protocol("age.json").protocol).__name__ == "HaarHRR"


def test_attributes_details_and_a_target_are_those_of_the_plan(protocol):
    line = "marginals --attribute sex --attribute age --detail k=1 --n 1000 --error 0.05"
    assert protocol(f"{line} --out both.json")[0] == 0
    expected = plan_survey("marginals", PEOPLE, ["sex", "age"], k=1, n=1000, error="0.05")
    assert load_protocol("both.json") == expected.survey


@pytest.mark.slow
def test_all_attributes_are_asked_for_unless_some_are_named(protocol):
    schema = PEOPLE.project(["age", "sex"])
    schema.save("two.toml")
    line = "conjunctions --epsilon 1 --n 1000 --out all.json --schema two.toml"
    assert main(["protocol", *line.split()]) == 0
    expected = plan_survey("conjunctions", schema, epsilon="1", n=1000)
    assert load_protocol("all.json") == expected.survey
    code, _, err = protocol("ranges --epsilon 1 --n 1000 --out one.json")
    assert code == 2
    assert "one attribute" in err
    assert not Path("one.json").exists()


def test_epsilon_is_what_a_ledger_has_left_and_nothing_is_spent(protocol):
    ledger = Ledger("1")
    ledger.spend("0.7", "before")
    ledger.save("budget.json")
    before = Path("budget.json").read_bytes()
    line = "frequencies --attribute sex --n 1000 --ledger budget.json"
    code, out, _ = protocol(f"{line} --out sex.json")
    assert (code, "mechdesign ledger budget.json --spend 3/10 --what NAME --reports" in out) == (
        0,
        True,
    )
    assert load_protocol("sex.json").protocol.epsilon == ledger.remaining
    assert Path("budget.json").read_bytes() == before
    assert protocol(f"{line} --epsilon 0.4 --out more.json")[0] == 1


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        (2, "ranges --attribute sex --epsilon 1 --n 9 --out a.json", "sex has no order"),
        (2, "ranges --attribute agx --epsilon 1 --n 9 --out a.json", "no attribute 'agx'"),
        (2, "colours --attribute age --epsilon 1 --n 9 --out a.json", "there are frequencies"),
        (2, "ranges --attribute age --epsilon 1 --out a.json", "exactly two of n, epsilon"),
        (2, "ranges --attribute age --epsilon 1 --n 9 --out a.toml", "must end in .json"),
        (2, "ranges --attribute age --epsilon 1 --n 9 --out no/a.json", "not a directory"),
        (2, "ranges --attribute age --epsilon 1 --n 9 --detail k --out a.json", "NAME=VALUE"),
        (2, "ranges --attribute age --epsilon 1 --n 9 --detail n=9 --out a.json", "give it once"),
        (
            2,
            "heavy-hitters --attribute word --epsilon 1 --n 9 --detail text=1 --out a.json",
            "text",
        ),
        (1, "ranges --attribute age --n 9 --error 0.0001 --out a.json", "no candidate reaches"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(protocol, code, line, message):
    before = sorted(Path().iterdir())
    found, out, err = protocol(line)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
    assert sorted(Path().iterdir()) == before


def test_the_schema_is_not_replaced(protocol):
    PEOPLE.save("people.json")
    before = Path("people.json").read_bytes()
    line = "ranges --attribute age --epsilon 1 --n 9 --out people.json --force --schema people.json"
    code = main(["protocol", *line.split()])
    assert (code, Path("people.json").read_bytes()) == (2, before)


def test_help_shows_the_commands_before_and_after(capsys):
    with pytest.raises(SystemExit):
        main(["protocol", "--help"])
    out = capsys.readouterr().out
    assert "mechdesign schema" in out
    assert "mechdesign query" in out
