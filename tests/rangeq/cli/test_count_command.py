"""The command ``count``, and what follows it: from people to a released table."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from frequency.schema import Categorical, Numeric, Schema
from mechdesign.cli import main

SCHEMA = Schema(
    [
        Categorical("ward", ["north", "south", "west"]),
        Categorical("ill", ["yes", "no"], missing="item", missing_codes=[9]),
        Numeric("age", [0, 18, 65, 120], whole=True, missing="item", missing_codes=[-1]),
    ]
)


@pytest.fixture(autouse=True)
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MECHDESIGN_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "ward": rng.choice(["north", "south"], 60),
            "ill": rng.choice(["yes", "no", "9"], 60),
            "age": rng.choice([3, 17, 18, 64, 65, 99, -1], 60),
        }
    )
    frame.to_csv("people.csv", index=False)
    codes = {"yes": 1.0, "no": 2.0, "9": 9.0}
    pyreadstat.write_sav(
        frame.assign(ill=frame["ill"].map(codes), age=frame["age"].astype(float)),
        "people.sav",
        variable_value_labels={"ill": {1: "yes", 2: "no"}},
        missing_ranges={"ill": [9], "age": [-1]},
    )
    SCHEMA.save("people.toml")
    return frame


def read(name):
    with open(name, encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


@pytest.mark.parametrize("table", ["people.csv", "people.sav"])
def test_every_combination_of_labels_is_counted(table, people):
    command = f"count {table} --schema people.toml --by ward --by age --out cells.csv --where"
    assert main([*command.split(), "ill yes"]) == 0
    head, *rows = read("cells.csv")
    assert head == ["ward", "age", "people", "count"]
    assert len(rows) == 3 * 4
    bands = {"0 to 17": (0, 17), "18 to 64": (18, 64), "65 to 119": (65, 119), "missing": (-1, -1)}
    for ward, age, size, count in rows:
        low, high = bands[age]
        there = people[(people["ward"] == ward) & people["age"].between(low, high)]
        assert int(size) == len(there)
        assert int(count) == (there["ill"] == "yes").sum()


def test_conditions_on_several_attributes(people):
    command = "count people.csv --schema people.toml --by ward --out cells.csv --where"
    assert main([*command.split(), "ill yes,no and age 18:"]) == 0
    there = people[(people["ill"] != "9") & (people["age"] >= 18)]
    counts = [int(row[-1]) for row in read("cells.csv")[1:]]
    assert counts == [(there["ward"] == ward).sum() for ward in ("north", "south", "west")]


def test_from_people_to_a_released_table_in_three_commands(capsys):
    assert main(["schema", "people.sav", "--public", "--out", "drafted.toml"]) == 0
    count = "count people.sav --schema people.toml --by ward --out wards.csv --where"
    assert main([*count.split(), "ill yes"]) == 0
    release = "release-table wards.csv --count count --size people --keep ward --epsilon 1"
    assert main(f"{release} --estimates --out released.csv".split()) == 0
    head, *rows = read("released.csv")
    assert head == ["ward", "people", "count", "estimate", "low", "high"]
    assert [row[0] for row in rows] == ["north", "south", "west"]
    said = capsys.readouterr()
    assert "TRUE counts" in said.out
    assert "protected" in said.out


def test_people_by_attributes_for_a_contingency_table():
    count = "count people.csv --schema people.toml --by ward --by ill --out cells.csv"
    assert main(count.split()) == 0
    assert read("cells.csv")[0] == ["ward", "ill", "people"]
    release = "release-contingency cells.csv --count people --within ward --epsilon 1"
    assert main(f"{release} --out answers.json --table answers.px".split()) == 0
    assert Path("answers.px").read_bytes().startswith(b"CHARSET")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "ward", "--where", "age 18:40"], "ends within a bin"),
        (["--by", "ward", "--where", "ward north"], "ward is in --by and in --where"),
        (["--by", "nothing"], "no attribute 'nothing'"),
        (["--by", "ward", "--where", "ill perhaps"], "ill is one of"),
    ],
)
def test_what_cannot_be_counted_is_said_and_nothing_written(words, message, capsys):
    count = "count people.csv --schema people.toml --out cells.csv"
    assert main([*count.split(), *words]) == 2
    assert message in capsys.readouterr().err
    assert not Path("cells.csv").exists()
