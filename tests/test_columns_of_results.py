"""Tables of results: no column of theirs hides one of the user's, and no cell is a formula."""

import csv
import shlex
from pathlib import Path

import numpy as np
import pytest

from frequency import Categorical, Schema, plan_survey
from mechdesign.base.csv_rows import comma_separated, untaken
from mechdesign.cli import main

RESULTS = ("frequency", "standard error", "low", "high")


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", RESULTS)
def test_an_attribute_keeps_its_column_in_a_frame(name: str, backend: str) -> None:
    schema = Schema([Categorical(name, ["a", "b"])])
    survey = plan_survey("frequencies", schema, name, epsilon=1, n=100).survey
    reports = survey.privatize({name: ["a"] * 60 + ["b"] * 40}, np.random.default_rng(1))
    frame = survey.estimate(survey.aggregate(reports)).to_frame(backend=backend)
    names = list(frame.column_names if backend == "pyarrow" else frame.columns)
    assert names == [name, *(f"{one} (result)" if one == name else one for one in RESULTS)]
    assert list(map(str, frame[name].to_pylist() if backend == "pyarrow" else frame[name])) == [
        "a",
        "b",
    ]


def header_and_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


@pytest.mark.parametrize("name", ["released", "estimate", "standard error", "low", "high"])
def test_releases_name_each_column_once(tmp_path: Path, name: str) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "o.csv"
    table.write_text(f"{name},n,size\n=A1,2,5\n-b,3,6\n-3,1,4\n+1.5,0,4\n")
    common = f"{table} --count n --size size --epsilon 1 --seed 1 --spreadsheet"
    commands = (
        f"release-table {common} --keep '{name}' --estimates --out {out}",
        f"release-contingency {common} --out {tmp_path / 'c.json'} --table {out} --force",
        f"release-regions {common} --region '{name}' --out {tmp_path / 'r.json'} --table {out}"
        " --force",
    )
    for command in commands:
        assert main(shlex.split(command)) == 0
        header, rows = header_and_rows(out)
        assert header[0] == name
        assert len(set(header)) == len(header) > 4
        assert [row[0] for row in rows] == ["'=A1", "'-b", "-3", "+1.5"]


def test_formulas_are_left_alone_unless_a_spreadsheet_is_meant() -> None:
    rows = [["=A1", "@x", "\tz", "-1", -1, "+1.5", "-b", "a=b", None]]
    assert comma_separated(rows) == "=A1,@x,\tz,-1,-1,+1.5,-b,a=b,\r\n"
    assert comma_separated(rows, spreadsheet=True) == "'=A1,'@x,'\tz,-1,-1,+1.5,'-b,a=b,\r\n"
    assert untaken("low", ["low", "low (result)"]) == "low (result) (result)"
