"""Tables in the formats of statistical offices, read again by the programs of others."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import sdmx
from pyaxis import pyaxis
from pyjstat import pyjstat
from python_calamine import CalamineWorkbook
from sdmx.model import v30

from mechdesign.cli.program import main
from mechdesign.tables import Axes, PublishedTable

LABELS = {
    "named as columns": {"LOW": ["a", "b"], "ACTION": ["c"], "OBS_VALUE": ["d"]},
    "plain": {"region": ["north", "south"], "answer": ["yes", "no", "unknown"]},
    "of an office": {
        "Gemeinde; Ort": ["Köln, Stadt", 'Bad "Ems"', "-", "..", "=1+1"],
        "number": ["0-9", "10+"],
        "Kreis (alt)": ["a b", "a_b", "a-b", "Łódź"],
    },
    "one cell": {"all": ["everybody"]},
}


def published(labels):
    axes, rng = Axes(labels), np.random.default_rng(1)
    numbers = {
        "released": rng.integers(0, 1000, axes.size),
        "estimate": rng.normal(100, 50, axes.size).round(2),
        "standard error": np.where(np.arange(axes.size) % 5 == 3, np.nan, 1.25),
        "low": rng.integers(-5, 50, axes.size),
    }
    return PublishedTable(axes, numbers, "ill; by 'region'", 'protected  "one" person\n' * 9)


@pytest.fixture(params=sorted(LABELS))
def table(request):
    return published(LABELS[request.param])


def test_excel(table, tmp_path):
    table.save(tmp_path / "a.xlsx")
    book = CalamineWorkbook.from_path(str(tmp_path / "a.xlsx"))
    assert book.sheet_names == ["table", "statement"]
    head, *rows = book.get_sheet_by_name("table").to_python()
    first = len(table.axes.names)
    assert head[:first] == [*table.axes.names]
    assert [tuple(row[:first]) for row in rows] == [*table.axes.cells()]
    for place, array in enumerate(table.numbers.values(), first):
        found = np.array([np.nan if row[place] == "" else row[place] for row in rows], dtype=float)
        assert np.array_equal(found, array, equal_nan=True)
    said = [row[0] for row in book.get_sheet_by_name("statement").to_python()]
    assert said[0] == table.title
    assert said[2:] == table.statement.splitlines()


@pytest.mark.filterwarnings("ignore")  # of what reads it
def test_px(table, tmp_path):
    table.save(tmp_path / "a.px")
    read = pyaxis.parse(str(tmp_path / "a.px"), encoding="utf-8")
    meta, data = read["METADATA"], read["DATA"]
    for keyword in [
        "MATRIX",
        "SUBJECT-CODE",
        "SUBJECT-AREA",
        "TITLE",
        "CONTENTS",
        "UNITS",
        "DECIMALS",
        "CREATION-DATE",
    ]:
        assert meta[keyword][0]
    columns = len(table.numbers)
    assert len(data) == table.axes.size * columns
    values = [*map(str, data["DATA"])]
    for place, array in enumerate(table.numbers.values()):
        for text, value in zip(values[place::columns], array.tolist(), strict=True):
            assert float(text or "nan") == pytest.approx(value, abs=0.005, nan_ok=True)
    # Lines are short enough for every program, and quotes are in pairs
    lines = (tmp_path / "a.px").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) < 256
    assert all(line.count('"') % 2 == 0 for line in lines)


def test_px_has_the_labels_in_order(tmp_path):
    table = published(LABELS["plain"])
    table.save(tmp_path / "a.px")
    data = pyaxis.parse(str(tmp_path / "a.px"), encoding="utf-8")["DATA"]
    cells = [tuple(row) for row in data[["region", "answer"]].to_numpy()][:: len(table.numbers)]
    assert cells == [*table.axes.cells()]


@pytest.mark.filterwarnings("ignore")  # of what reads it
def test_json_stat(table, tmp_path):
    table.save(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    frame = pyjstat.Dataset.read(text).write("dataframe")
    columns = len(table.numbers)
    assert len(frame) == table.axes.size * columns
    values = frame["value"].to_numpy(dtype=float)
    for place, array in enumerate(table.numbers.values()):
        assert np.array_equal(values[place::columns], array, equal_nan=True)
    labels = frame[[*table.axes.names]].to_numpy()[::columns]
    assert [tuple(row) for row in labels] == [*table.axes.cells()]
    content = json.loads(text)
    assert content["note"] == table.statement.splitlines()
    assert content["role"]["metric"][0] not in table.axes.names


def test_sdmx_csv(table, tmp_path):
    path = tmp_path / "a.sdmx.csv"
    table.save(path)
    head = path.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert head[:3] == ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
    raw = pd.read_csv(path, keep_default_na=False, dtype=str)
    names = [name.split(": ")[0] for name in raw.columns]
    first = len(table.axes.names)
    dimensions, attributes = names[3 : 3 + first], [*names[3 + first + 1 :]]
    structure = v30.DataStructureDefinition(id="COUNTS")
    for name in dimensions:
        structure.dimensions.getdefault(id=name)
    structure.measures.getdefault(id="OBS_VALUE")
    for name in ["RELEASED", "STD_ERROR", "LOW", "OBS_STATUS", "CONF_STATUS"]:
        structure.attributes.getdefault(id=name)
    assert {"OBS_VALUE", *attributes} >= {"OBS_VALUE", "STD_ERROR", "LOW", "OBS_STATUS"}
    message = sdmx.reader.csv.Reader().convert(io.BytesIO(path.read_bytes()), structure=structure)
    (data,) = message.data
    assert len(data.obs) == table.axes.size
    found = [float(each.value) for each in data.obs]
    assert found == pytest.approx(np.asarray(table.numbers["estimate"]), abs=0.005)
    assert set(raw["OBS_STATUS"]) == {"E"}
    assert set(raw["CONF_STATUS"]) == {"F"}
    assert len(set(names)) == len(names)
    keys = {tuple(row[3 : 3 + first]) for row in raw.itertuples(index=False)}
    assert len(keys) == table.axes.size  # codes of different labels differ


def test_parquet(table, tmp_path):
    table.save(tmp_path / "a.parquet")
    read = pq.read_table(tmp_path / "a.parquet")
    assert read.schema.metadata[b"statement"].decode() == table.statement
    cells = zip(*(read[name].to_pylist() for name in table.axes.names), strict=True)
    assert [*cells] == [*table.axes.cells()]


def test_what_is_no_table_is_refused(tmp_path):
    axes = Axes({"a": ["x", "y"]})
    for wrong in ([1], [[1, 2]], ["1", "2"], [True, False, True]):
        with pytest.raises(ValueError, match="a number is expected"):
            PublishedTable(axes, {"n": wrong}, "", "")
    table = PublishedTable(axes, {"n": [1, 2]}, "", "")
    for name in ("a.ods", "a", "a.sdmx"):
        with pytest.raises(ValueError, match="a published table ends in"):
            table.save(tmp_path / name)
    assert [*tmp_path.iterdir()] == []
    same = PublishedTable(Axes({"a": ['"x"', "'x'"]}), {"n": [1, 2]}, "", "")
    with pytest.raises(ValueError, match="in quotes alone"):
        same.save(tmp_path / "a.px")
    long = PublishedTable(Axes({"a": ["x" * 40_000]}), {"n": [1]}, "", "")
    with pytest.raises(ValueError, match="characters"):
        long.save(tmp_path / "a.xlsx")


@pytest.mark.parametrize("name", ["a.xlsx", "a.px", "a.json", "a.sdmx.csv", "a.parquet"])
def test_commands_write_them(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "region,answer,people\nnorth,yes,30\nnorth,no,4\nsouth,yes,8\nsouth,no,50\n"
    (tmp_path / "people.csv").write_text(rows)
    command = "release-contingency people.csv --count people --within region --epsilon 1 --seed 3"
    assert main(f"{command} --out answers.json --table out-{name}".split()) == 0
    assert (tmp_path / f"out-{name}").stat().st_size > 200
