"""The command sample: the rows that Python draws, as a table that the schema reads again."""

import csv
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frequency.marginals import InpHT
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, Survey
from frequency.schema.attribute import ItemAttribute
from frequency.storage import save_aggregate, save_protocol
from frequency.storage.table import blocks
from mechdesign.cli import main
from rangeq import HaarHRR
from rangeq.central import (
    CentralFlat,
    QuantileRelease,
    Release,
    ReleasedQuantiles,
    count_cells,
)
from rangeq.cli import table_commands as sample_command
from rangeq.grids import WaveGrid
from rangeq.local.per_attribute import PerAttribute

AGE = Numeric("age", low=0, high=15, whole=True, unit="years", missing="item")
DELAY = Numeric("delay", [-60, 0, 15, 60, 600], unit="minutes")
HOURS = Dates("left", "2013-01-01 00", "2013-01-01 07", "hour", missing="item")
STATE = Categorical("state", ["Texas", "Washington, D.C."], missing="item", outside="item")
SMOKES = Boolean("smokes")
ROWS = 70_000  # more than one block


def people(n, seed=1):
    """Users of whom no pair of age and state is rare; state and delay depend on smokes."""
    rng = np.random.default_rng(seed)
    smokes = rng.random(n) < 0.4
    age = rng.integers(0, 16, n).astype(object)
    state = np.array([*STATE.labels, None, "Utah"], dtype=object)[rng.integers(0, 3, n) + smokes]
    age[rng.random(n) < 0.2] = None
    left = np.datetime64("2013-01-01T00:00") + rng.integers(0, 480, n)
    left[rng.random(n) < 0.2] = np.datetime64("NaT", "s")
    delay = np.array([-30.0, 7.5, 30.0, 100.0])[rng.integers(0, 3, n) + smokes]
    return {"age": age, "delay": delay, "left": left, "state": state, "smokes": smokes}


def survey(make, *attributes):
    schema = Schema(attributes)
    return Survey(make(schema), schema)


SURVEYS = {
    "whole numbers": survey(lambda schema: HaarHRR(schema.sizes[0], 4.0), AGE),
    "bins": survey(lambda schema: HaarHRR(schema.sizes[0], 4.0), DELAY),
    "times": survey(lambda schema: HaarHRR(schema.sizes[0], 4.0), HOURS),
    "labels": survey(lambda schema: InpHT(schema.domain, 2, 4.0), STATE, SMOKES, DELAY),
    "grid": survey(lambda schema: WaveGrid(schema, 4.0), AGE, STATE, SMOKES),
}


@pytest.fixture
def sample(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder of its own; returns exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(*given, rows=ROWS, out="rows.csv"):
        words = ["sample", *map(str, given), "--rows", str(rows), "--out", str(out)]
        return main(words), *capsys.readouterr()

    return run


def collected(protocol, values, seed=1):
    """The words that name what users with these values reported, and the aggregate."""
    aggregate = protocol.aggregate(protocol.privatize(values, np.random.default_rng(seed)))
    save_protocol("protocol.json", protocol)
    save_aggregate("a.ldp", aggregate)
    return ("a.ldp", "--protocol", "protocol.json"), aggregate


def table(path="rows.csv"):
    with open(path, encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


def frame(path="rows.csv"):
    """The table as pandas reads it, where empty cells alone are missing."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""])


def off(estimate, given):
    """By how many rows a combination of two attributes' items, or an item, differs at most."""
    schema = estimate.schema
    items = dict(zip(schema.names, schema.encode(given).columns, strict=True))
    found = []
    for names in combinations(schema.names, min(2, len(schema))):
        counts = np.zeros([schema[name].size for name in names])
        np.add.at(counts, tuple(items[name] for name in names), 1)
        told = estimate.shares(estimate.cells(names)).value
        found.append(np.abs(counts - len(given) * told).max())
    return max(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", SURVEYS)
def test_rows_are_those_of_python(name, sample):
    protocol = SURVEYS[name]
    schema = protocol.schema
    words, aggregate = collected(protocol, people(20_000))
    code, out, err = sample(*words, "--seed", 3)
    assert (code, out) == (0, f"wrote rows.csv: {ROWS} rows\n")
    assert err == f"mechdesign: {sample_command.NOT_PEOPLE}\n"
    header, rows = table()
    expected = protocol.estimate(aggregate).sample(ROWS, np.random.default_rng(3))
    assert header == list(schema.names) == list(expected)
    columns = [["" if one is None else str(one) for one in expected[name]] for name in header]
    if name == "times":
        columns = [[one.replace("T", " ") for one in columns[0]]]
    assert rows == [list(row) for row in zip(*columns, strict=True)]
    # The schema reads what was written, in its labels and units, as the same items
    read, drawn = schema.encode(frame()), schema.encode(expected)
    assert (read.skipped, read.clipped) == (0, {})
    for column, items in zip(read.columns, drawn.columns, strict=True):
        np.testing.assert_array_equal(column, items)


# All numbers are far from 0, so that none is cut off; rounding is of less than a row for each
# cell that is drawn, of "labels" in two steps: of a pair, and of the third attribute for each of
# the up to 4 cells of the pair that have an item in common
@pytest.mark.parametrize(
    ("name", "bound"), [("whole numbers", 1), ("bins", 1), ("times", 1), ("labels", 8)]
)
def test_shares_of_rows_are_the_answers_but_for_rounding(name, bound, sample):
    protocol = SURVEYS[name]
    words, aggregate = collected(protocol, people(20_000))
    assert sample(*words)[0] == 0
    estimate = protocol.estimate(aggregate)
    told = estimate.fitted() if name == "labels" else estimate
    assert off(told, frame()) < bound
    other = protocol.aggregate(protocol.privatize(people(20_000, 2), np.random.default_rng(2)))
    wrong = protocol.estimate(other)
    assert off(wrong.fitted() if name == "labels" else wrong, frame()) > 10 * bound


def released(seed):
    schema = Schema([AGE, STATE])
    counts = count_cells(schema, [people(50_000)])
    mechanism = CentralFlat(schema.sizes, 0.5)
    return Release.draw(schema, mechanism, counts, np.random.default_rng(seed))


def test_rows_of_a_release(sample):
    released(1).save("a.release")
    code, out, err = sample("a.release", "--seed", 3)
    assert (code, out) == (0, f"wrote rows.csv: {ROWS} rows\n")
    assert err == f"mechdesign: {sample_command.NOT_PEOPLE}\n"
    header, rows = table()
    assert header == ["age", "state"]
    assert {label for _, label in rows} == {*STATE.labels, "", "outside"}
    assert {age for age, _ in rows} == {"", *map(str, range(16))}
    assert off(released(1).estimate.fitted(), frame()) < 5  # of 70,000
    assert off(released(2).estimate, frame()) > 5


def test_one_row(sample):
    released(1).save("a.release")
    assert sample("a.release", rows=1)[:2] == (0, "wrote rows.csv: 1 row\n")
    assert len(table()[1]) == 1


def test_seeds(sample):
    words, _ = collected(SURVEYS["labels"], people(1000))
    texts = []
    for seed in (["--seed", 1], ["--seed", 1], ["--seed", 2], [], []):
        assert sample(*words, *seed, "--force", rows=200)[0] == 0
        texts.append(Path("rows.csv").read_bytes())
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4
    with pytest.raises(SystemExit):
        sample(*words, "--seed", -1)


def test_requests_that_are_refused_leave_the_file_as_it_is(sample):
    words, _ = collected(SURVEYS["bins"], people(100))
    released(1).save("a.release")
    quantiles = QuantileRelease(4, (0.5,), 1.0)
    own, counts = Schema([DELAY]), [50, 300, 90, 2]
    ReleasedQuantiles.draw(own, quantiles, counts).save("quantiles.release")
    each = survey(lambda schema: PerAttribute.of(schema.domain, 2.0, "smokes"), AGE, SMOKES)
    for name, one, users in (("each", each, 100), ("none", SURVEYS["bins"], 0)):
        save_protocol(f"{name}.json", one)
        save_aggregate(f"{name}.ldp", one.aggregate(one.privatize(people(users))))
    Path("rows.csv").write_text("mine")
    force, protocol = "--force", "--protocol"
    for code, given, more, message in (
        (2, words, {}, "rows.csv exists; use --force to overwrite it"),
        (2, (*words, force), {"rows": 0}, "--rows must be a number of rows, at least 1, got 0"),
        (2, (*words, force), {"rows": -5}, "--rows must be a number of rows, at least 1, got -5"),
        (2, words, {"out": "rows.tsv"}, "rows.tsv: the file name must end in .csv"),
        (
            2,
            ("rows.csv", force),
            {},
            "rows.csv would replace what it is made from",
        ),
        (
            2,
            ("none.ldp", protocol, "none.json", force),
            {},
            "none.ldp holds no reports: there is nothing to estimate from",
        ),
        (
            2,
            ("each.ldp", protocol, "each.json", force),
            {},
            "PerAttribute: no sample of this estimate: it gives no distribution that could be"
            " drawn from",
        ),
        (
            2,
            ("quantiles.release", force),
            {},
            "quantiles.release is a release of counts or of quantiles alone: there is no"
            " distribution to draw rows from; curate without --quantile releases one",
        ),
        (2, ("gone.release", force), {}, "no such file: gone.release"),
        (1, ("a.ldp", force), {}, "a.ldp is an aggregate: add --protocol FILE.json"),
        (1, ("a.ldp", protocol, "each.json", force), {}, "a.ldp: "),
    ):
        found, out, err = sample(*given, **more)
        assert (found, out) == (code, "")
        assert err.startswith("mechdesign: ")
        assert message in err
        assert code == 1 or err == f"mechdesign: {message}\n"
        assert Path("rows.csv").read_text() == "mine"
        assert not [*Path().glob("*.part"), *Path().glob("*.tsv")]


def test_nothing_is_half_written(sample, monkeypatch):
    released(1).save("a.release")
    Path("rows.csv").write_text("mine")
    blocks = []

    def failing(rows, **_):
        blocks.append(rows)
        if len(blocks) == 3:
            raise OSError("the disk is full")
        return "a,b\n"

    monkeypatch.setattr(sample_command, "comma_separated", failing)
    assert sample("a.release", "--force")[0] == 2
    assert len(blocks) == 3
    assert Path("rows.csv").read_text() == "mine"
    assert {path.name for path in Path().iterdir()} == {"a.release", "rows.csv"}


@pytest.mark.slow
def test_rows_are_read_again_as_the_items_that_they_stand_for(sample):
    """Those outside and missing too, of every kind of attribute, in files and in frames."""
    policies: dict[str, Any] = {"missing": "item", "outside": "item"}
    schema = Schema(
        [
            Numeric("age", low=0, high=3, whole=True, **policies),
            Numeric("size", [0, 1.5, 2], **policies),
            Dates("seen", "2013-01-01", "2013-01-03", **policies),
            Categorical("state", ["a", "b"], **policies),
            Boolean("smokes", **policies),
        ]
    )
    counts = np.full(schema.sizes, 3)
    Release.draw(schema, CentralFlat(schema.sizes, 20), counts).save("a.release")
    code, _, err = sample("a.release", "--seed", 3)
    assert code == 0, err
    (block,) = blocks("rows.csv")
    items = schema.encode(block).columns
    for one, column in zip(schema, items, strict=True):
        assert isinstance(one, ItemAttribute)
        assert set(column.tolist()) == set(range(one.size))
        for label, item in zip(block[one.name].to_pylist(), column.tolist(), strict=True):
            if label in ("outside", None):
                assert one.item_labels[item] == ("missing" if label is None else label)
