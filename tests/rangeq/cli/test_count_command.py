"""The command ``count``, and what follows it: from people to a released table."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from pyaxis import pyaxis

from frequency.schema import Categorical, Numeric, Schema
from mechdesign import Ledger
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
        (["--by", "ward", "--where", "ward north"], "ward is counted by, and in the condition"),
        (["--by", "nothing"], "no attribute 'nothing'"),
        (["--by", "ward", "--where", "ill perhaps"], "ill is one of"),
    ],
)
def test_what_cannot_be_counted_is_said_and_nothing_written(words, message, capsys):
    count = "count people.csv --schema people.toml --out cells.csv"
    assert main([*count.split(), *words]) == 2
    assert message in capsys.readouterr().err
    assert not Path("cells.csv").exists()


def test_people_are_released_as_their_groups_are(capsys):
    """Against the table of true counts, with the same random numbers."""
    count = "count people.sav --schema people.toml --by ward --by age --out cells.csv --where"
    assert main([*count.split(), "ill yes"]) == 0
    common = "--epsilon 1 --loss total --seed 4 --estimates --total ward"
    table = f"release-table cells.csv --count count --size people --keep ward --keep age {common}"
    assert main(f"{table} --out groups.csv".split()) == 0
    before = capsys.readouterr().out.partition("\n")[2].replace("groups.csv", "")
    people = "release-table people.sav --schema people.toml --group ward --group age --count"
    assert main([*people.split(), "ill yes", *common.split(), "--out", "direct.csv"]) == 0
    assert read("direct.csv") == read("groups.csv")
    assert capsys.readouterr().out.replace("direct.csv", "") == before


def test_people_are_released_by_attributes_as_their_counts_are():
    assert (
        main(
            [
                "count",
                "people.csv",
                "--schema",
                "people.toml",
                "--by",
                "ward",
                "--by",
                "ill",
                "--out",
                "c.csv",
            ]
        )
        == 0
    )
    common = "--within ward --epsilon 1 --seed 4"
    table = f"release-contingency c.csv --count people {common} --out a.json --table a.csv"
    assert main(table.split()) == 0
    people = "release-contingency people.csv --schema people.toml --attribute ward --attribute ill"
    assert main(f"{people} {common} --out b.json --table b.csv".split()) == 0
    assert read("a.csv") == read("b.csv")
    assert json.loads(Path("a.json").read_text()) == json.loads(Path("b.json").read_text())


@pytest.mark.filterwarnings("ignore")  # of what reads it
def test_groups_that_there_cannot_be_are_marked(people):
    cells = [
        ("north", "0 to 17"),
        ("north", "18 to 64"),
        ("south", "18 to 64"),
        ("west", "missing"),
    ]
    there = people.assign(age=18, ward="north")
    there.loc[::2, "ward"] = "south"
    there.to_csv("few.csv", index=False)
    lines = ["ward;age;people"] + [f"{ward};{age};{40 + k}" for k, (ward, age) in enumerate(cells)]
    Path("cells.csv").write_text("\n".join(lines))
    words = "release-table few.csv --schema people.toml --group ward --group age --epsilon 1"
    words += " --loss total --cells cells.csv --size people --out a.csv --out a.px --out a.xlsx"
    words += " --out a.sdmx.csv --out a.parquet --count"
    assert main([*words.split(), "ill yes"]) == 0
    head, *rows = read("a.csv")
    assert head == ["ward", "age", "people", "count"]
    assert [(*row[:2], int(row[2])) for row in rows] == [
        (*cell, 40 + k) for k, cell in enumerate(cells)
    ]
    released = {tuple(row[:2]): row[3] for row in rows}
    grid = [
        (ward, age)
        for ward in ("north", "south", "west")
        for age in ("0 to 17", "18 to 64", "missing")
    ]
    assert read("a.sdmx.csv")[0][3:6] == ["ward", "age", "PEOPLE"]
    for cell, row in zip(grid, read("a.sdmx.csv")[1:], strict=True):
        assert row[6] == released.get(cell, "")
        assert row[-2] == ("E" if cell in released else "M")
    data = pyaxis.parse("a.px", encoding="utf-8")["DATA"]
    for cell in grid:
        (found,) = data[
            (data["ward"] == cell[0]) & (data["age"] == cell[1]) & (data["number"] == "released")
        ]["DATA"]
        assert found.strip('"') == released.get(cell, "-")
    workbook = pd.read_excel("a.xlsx", sheet_name="table")
    parquet = pd.read_parquet("a.parquet")
    for table in (workbook, parquet):
        for cell, value in zip(grid, table["released"], strict=True):
            assert (None if pd.isna(value) else str(int(value))) == released.get(cell)


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ("ward,age,people\nnorth,0 to 17,50\n", "where somebody is"),
        ("ward,age,people\nnorth,0 to 18,50\n", "is no combination of labels"),
        ("ward,age,people\nnorth,0 to 17,50\nnorth,0 to 17,50\n", "comes twice"),
        ("ward,age,people\nnorth,0 to 17,0\n", "less than the people who are in it"),
        ("ward,age,people\nnorth,0 to 17,many\n", "is no size of a group"),
        ("ward,people\nnorth,50\n", "no column 'age'"),
        ("ward,age,people\n", "has no rows"),
    ],
)
def test_lists_of_groups_that_do_not_fit(cells, says, capsys):
    Path("cells.csv").write_text(cells)
    words = "release-table people.csv --schema people.toml --group ward --group age --epsilon 1"
    words += " --cells cells.csv --size people --out a.csv --count"
    assert main([*words.split(), "ill yes"]) == 2
    assert says in capsys.readouterr().err
    assert not Path("a.csv").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--group ward --count ill=yes", "--group takes a --schema"),
        ("--group ward --schema people.toml --size age --count ill=yes", "--size is a column of"),
        ("--group ward --schema people.toml --overlap 2 --count ill=yes", "--overlap is for"),
        ("--group ward --schema people.toml --keep age --count ill=yes", "age is no --group"),
        ("--group ward --schema people.toml --count ward=north", "ward is counted by"),
        ("--count ill", "--size names the column"),
        ("--count ill --size age --cells all", "--schema and --cells are of people"),
    ],
)
def test_requests_for_people_that_contradict_themselves(words, says, capsys):
    words = f"release-table people.csv {words} --epsilon 1 --out a.csv"
    assert main(words.split()) == 2
    assert says in capsys.readouterr().err
    assert not Path("a.csv").exists()


def test_nothing_is_spent_on_what_cannot_be_published(capsys):
    ledger = "ledger spent.json --epsilon 2"
    assert main(ledger.split()) == 0
    Path("t.csv").write_text("ward,ill,people\nnorth,1,5\nnorth,2,6\n")
    words = "release-table t.csv --count ill --size people --keep ward --epsilon 1 --overlap 2"
    assert main(f"{words} --ledger spent.json --out a.px".split()) == 2
    assert "other labels in each row" in capsys.readouterr().err
    assert Ledger.open("spent.json").spent == 0
    attributes = "release-contingency people.csv --attribute ward --count ill --cap 5 --epsilon 1"
    assert main(f"{attributes} --out a.json".split()) == 2
    assert "neither --count nor --size" in capsys.readouterr().err


def test_labels_in_labels_are_one_axis():
    rows = [(f"county {k % 7}", f"town {k}", k % 3, 9) for k in range(40)]
    pd.DataFrame(rows, columns=["county", "town", "ill", "people"]).to_csv("t.csv", index=False)
    words = "release-table t.csv --count ill --size people --keep county --keep town --epsilon 1"
    assert main(f"{words} --loss total --out a.parquet".split()) == 0
    table = pd.read_parquet("a.parquet")
    assert [*table.columns][:2] == ["county, town", "people"]
    assert len(table) == 40
    assert table["county, town"][8] == "county 1, town 8"
