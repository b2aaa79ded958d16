"""The command simulate: what measure_errors measures on a table in a file."""

from pathlib import Path

import numpy as np
import pytest

from frequency import GRR, Categorical, Numeric, Schema, Survey, measure_errors
from frequency.storage import save_protocol, table
from mechdesign.cli import main
from rangeq import HaarHRR

AGE = Numeric("age", low=0, high=15, whole=True, unit="years", missing="skip", outside="clip")
SURVEY = Survey(HaarHRR(16, 1.0), Schema([AGE]))
AGES = ["7", "", "15", "0", "99"] * 50


@pytest.fixture
def simulate(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with a table and a protocol; returns code, output, errors."""
    monkeypatch.chdir(tmp_path)
    save_protocol("age.json", SURVEY)
    Path("people.csv").write_text("age,pay\n" + "".join(f"{age},1\n" for age in AGES))

    def run(line):
        try:
            code: object = main(["simulate", *line.split()])
        except SystemExit as stopped:  # an option of another form
            code = stopped.code
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("rows", [1 << 18, 7])
def test_the_table_is_that_of_the_function(simulate, monkeypatch, rows):
    monkeypatch.setattr(table, "_ROWS", rows)
    expected = measure_errors(SURVEY, {"age": AGES}, 3, np.random.default_rng(7))
    assert (expected.skipped, expected.clipped) == (50, 50)
    line = "people.csv --protocol age.json --repeat 3 --seed 7"
    code, out, err = simulate(f"{line} --out errors.csv")
    assert (code, out) == (0, f"{expected}\nwrote errors.csv\n")
    assert "statistics of people.csv, which must be public or synthetic" in err
    assert Path("errors.csv").read_bytes().decode() == expected.csv()
    assert simulate(line)[1] == f"{expected}\n"
    assert simulate("people.csv --protocol age.json --repeat 3 --seed 8")[1] != f"{expected}\n"


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        (2, "people.csv --protocol age.json --repeat 0", "repeats"),
        (2, "people.csv --protocol age.json --seed -1", "a seed is an integer >= 0"),
        (2, "people.csv --protocol age.json --out errors.txt", "must end in .csv"),
        (2, "people.csv --protocol age.json --out people.csv --force", "would replace"),
        (2, "none.csv --protocol age.json", "none.csv"),
        (2, "pay.csv --protocol age.json", "no column 'age'"),
        (2, "bad.csv --protocol age.json", "line 3, column 'age': '9.5' is not"),
        (2, "missing.csv --protocol age.json", "no user reports"),
        (2, "people.csv --protocol bare.json", "bare.json has no schema"),
        (1, "people.csv --protocol people.csv", "people.csv"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(simulate, code, line, message):
    save_protocol("bare.json", GRR(4, 1.0))
    for name, text in {"pay": "pay\n1\n", "bad": "age\n7\n9.5\n", "missing": 'age\n""\n'}.items():
        Path(f"{name}.csv").write_text(text)
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    found, out, err = simulate(line)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1 or err.startswith("usage: ")
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_labels_are_read_as_the_schema_says(simulate):
    sex = Schema([Categorical("sex", ["female", "male"], missing="item")])
    save_protocol("sex.json", Survey(GRR(3, 1.0), sex))
    Path("sex.csv").write_text("sex\nmale\nfemale\n\n\n")
    code, out, _ = simulate("sex.csv --protocol sex.json --repeat 1")
    assert code == 0
    assert "items of sex  3" in out


def test_help_says_that_data_must_be_public(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    out = capsys.readouterr().out
    assert "PUBLIC or SYNTHETIC" in out
    assert "mechdesign collect" in out
