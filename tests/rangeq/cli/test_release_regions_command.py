"""The command that releases small counts of regions in regions."""

import csv
from importlib.metadata import EntryPoint

import pytest

from mechdesign.cli import main, program
from rangeq.central import RegionRelease

LEAVES = "country,county,ward,ill,residents\nE,K,a,2,5\nE,K,b,0,4\nE,S,c,3,5\nE,X,,1,3\nW,,,0,2\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with a table; returns exit code and output."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wards.csv").write_text(LEAVES)
    value = "rangeq.cli.table_commands:run_release_regions"
    point = EntryPoint("release-regions", value, "mechdesign.commands")
    monkeypatch.setattr(program, "entry_points", lambda group: [point])

    def command(options, regions=("country", "county", "ward")):
        given = [word for name in regions for word in ("--region", name)]
        columns = "--count ill --size residents --out r.json"
        code = main(["release-regions", "wards.csv", *given, *columns.split(), *options.split()])
        return code, *capsys.readouterr()

    return command


def test_it_writes_the_release_and_a_table_and_prints_who_is_protected(run, tmp_path):
    code, out, error = run("--alpha 1/8 --property WH --table t.csv --seed 1 --confidence 0.8")
    assert code == 0
    assert "alpha = 1/8, exactly, the product of: depth 0 1/2, depth 1 1/2, leaves 1/2;" in out
    assert "not private" in error
    release = RegionRelease.load(tmp_path / "r.json")
    estimate = release.estimate()
    assert [release.regions.paths[leaf] for leaf in release.regions.leaves] == [
        ("E", "K", "a"),
        ("E", "K", "b"),
        ("E", "S", "c"),
        ("E", "X"),
        ("W",),
    ]
    with (tmp_path / "t.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row, path, value in zip(rows, release.regions.paths, estimate.values, strict=True):
        assert [row[name] for name in ("country", "county", "ward")][: len(path)] == [*path]
        assert float(row["estimate"]) == pytest.approx(value, abs=0.006)
        assert float(row["standard error"]) < 9
        ends = estimate.answer(path).interval(0.8)
        assert [int(row["low"]), int(row["high"])] == [float(end) for end in ends]


@pytest.mark.parametrize(
    ("budget", "asked"), [("equal", 3), ("leaves", 1), ("0,1,2", 2), ("1/3,0.5,1", 3)]
)
def test_epsilon_is_split_as_asked(run, tmp_path, budget, asked):
    assert run(f"--epsilon 1 --budget {budget}")[0] == 0
    levels = RegionRelease.load(tmp_path / "r.json").statement.levels
    assert sum(alpha is not None for alpha in levels) == asked


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--epsilon 1 --budget 1,2", "budget must be 3 weights"),
        ("--epsilon 1 --budget most", "most"),
        ("--epsilon 0", "--allow-zero-epsilon"),
        ("--epsilon 1 --confidence 1", "strictly between"),
        ("--epsilon 0 --allow-zero-epsilon", "epsilon of 0"),
        ("--epsilon 1 --region town", "no column 'town'"),
        ("--epsilon 1 --table wards.csv --force", "what it is made from"),
        ("--epsilon 1 --table t.txt", "must end in .csv"),
        ("--epsilon 1 --whole", "--whole is for --table"),
    ],
)
def test_what_cannot_be_released_is_refused_and_nothing_written(run, tmp_path, options, reason):
    code, _, error = run(options)
    assert (code, reason in error) == (2, True), error
    assert [path.name for path in tmp_path.iterdir()] == ["wards.csv"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("E,K,b,0,4", "E,K,b,5,4"), "line 3: '5' is not an integer between 0 and 4"),
        (("E,K,b,0,4", "E,K,b,x,4"), "line 3: 'x' is not an integer between 0 and 4"),
        (("E,K,b,0,4", "E,K,a,0,4"), "comes twice"),
        (("E,K,b,0,4", "E,K,,0,4"), "has parts"),
        (("E,K,b,0,4", "E,,b,0,4"), "sequence of names"),
        (("E,K,b,0,4", ",,,0,4"), "sequence of names"),
        ((LEAVES.partition("\n")[2], ""), "no rows"),
    ],
)
def test_what_is_no_table_of_leaves_is_refused(run, tmp_path, change, reason):
    (tmp_path / "wards.csv").write_text(LEAVES.replace(*change))
    code, _, error = run("--epsilon 1")
    assert (code, reason in error) == (2, True), error


def test_whole_numbers_are_written_beside_the_estimates(run, tmp_path):
    assert run("--epsilon 1 --table t.csv --whole")[0] == 0
    release = RegionRelease.load(tmp_path / "r.json")
    rows = [line.split(",") for line in (tmp_path / "t.csv").read_text().splitlines()]
    assert rows[0][-1] == "whole"
    assert [int(row[-1]) for row in rows[1:]] == release.estimate().whole().tolist()
