"""Schemas in TOML and JSON: what is written is read back, and what was changed is refused."""

import json
import tomllib

import pytest

from frequency import Boolean, Categorical, Dates, Numeric, Schema, Text
from mechdesign import InvalidFile

SCHEMA = Schema(
    [
        Categorical("species", ["Adelie", 'a "quoted", one', "naïve\n"], missing="item"),
        Numeric("mass", low=2000, high=7000, bins=50, unit="grams", outside="clip"),
        Numeric("income", low=0.5, high=1e6, bins=40, spacing="logarithmic", missing="skip"),
        Numeric("delay", [-60, 0, 15.5, 60], unit="minutes"),
        Numeric("age", low=0, high=120, whole=True, outside="item"),
        Dates("seen", "2007-01-01", "2009-12-31", "week"),
        Dates("hour", "2007-01-01 05:00", "2007-01-02", "hour"),
        Dates("born", "1900-05-01", "2026-01-01", "year"),
        Boolean("male"),
        Text("word", 6, outside="clip"),
    ],
    public_source="palmerpenguins 0.1.6",
)


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_what_is_saved_is_loaded(suffix, tmp_path):
    path = tmp_path / f"schema.{suffix}"
    SCHEMA.save(path)
    assert Schema.load(path) == SCHEMA
    assert Schema.load(path).digest == SCHEMA.digest


def test_both_forms_hold_the_same(tmp_path):
    for suffix in ("toml", "json"):
        SCHEMA.save(tmp_path / f"schema.{suffix}")
    assert Schema.load(tmp_path / "schema.toml") == Schema.load(tmp_path / "schema.json")


def test_a_change_is_refused_until_the_digest_is_gone(tmp_path):
    path = tmp_path / "schema.toml"
    SCHEMA.save(path)
    changed = path.read_text().replace("high = 120", "high = 110")
    path.write_text(changed)
    with pytest.raises(InvalidFile, match="delete the line of the digest"):
        Schema.load(path)
    path.write_text("\n".join(line for line in changed.splitlines() if "digest" not in line))
    assert Schema.load(path)["age"].size == 112


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a schema file"),
        ({"version": 2}, "version 2, this library reads version 1"),
        ({"version": True}, "version True"),
        ({"colour": 1}, "the schema has no 'colour'"),
        ({"attributes": 7}, "attributes is a list"),
        ({"attributes": []}, "a list of attributes"),
        ({"attributes": [7]}, "attribute 1: its kind is one of"),
        ({"attributes": [{"name": "a", "kind": "colour"}]}, "its kind is one of categorical"),
        ({"attributes": [{"name": "a", "kind": "boolean", "low": 1}]}, "'a' has no 'low'"),
        ({"attributes": [{"kind": "boolean"}]}, "attribute 1 lacks 'name'"),
        ({"attributes": [{"name": "a", "kind": "categorical"}]}, "attribute 1, 'a': .*labels"),
        ({"attributes": [{"name": "a", "kind": "numeric", "edges": [1, 1]}]}, "must ascend"),
        (
            {"attributes": [{"name": "a", "kind": "boolean"}, {"name": "a", "kind": "boolean"}]},
            "two attributes have the name 'a'",
        ),
    ],
)
def test_what_is_no_schema_is_refused(change, message, tmp_path):
    path = tmp_path / "schema.json"
    Schema([Boolean("a")]).save(path)
    content = json.loads(path.read_text())
    del content["digest"]
    path.write_text(json.dumps({**content, **change}))
    with pytest.raises(InvalidFile, match=message):
        Schema.load(path)


@pytest.mark.parametrize("text", ["", "[[", "x = 1\nx = 2", "\x00", "format = 7"])
def test_other_texts_are_refused(text, tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(InvalidFile):
        Schema.load(path)


def test_other_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.toml or \.json"):
        SCHEMA.save(tmp_path / "schema.yaml")
    with pytest.raises(ValueError, match=r"ends in \.toml or \.json"):
        Schema.load(tmp_path / "schema.yaml")
    with pytest.raises(FileNotFoundError):
        Schema.load(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    "line",
    [
        ".".join(["k"] * 33) + " = 1",
        "[" + " . ".join(['"k"', "'k'", "k"] * 11) + "]",
        "x = {" + ".".join(["k"] * 33) + " = 1}",
        "x = " + "[" * 33 + "]" * 33,
        "x = " + "{k = " * 33 + "1" + "}" * 33,
        'x = "a" # "\ny = ' + "[" * 33,
        'x = """a\\""""\ny = ' + "[" * 33,
        "x = '''a'''''\ny = " + "[" * 33,
    ],
)
def test_long_keys_and_deep_nesting_are_refused_before_toml_is_read(line, tmp_path, monkeypatch):
    path = tmp_path / "schema.toml"
    SCHEMA.save(path)
    whole = path.read_text()
    called: list[str] = []
    monkeypatch.setattr(tomllib, "loads", called.append)
    for text in (f"{line}\n{whole}", f"{whole}\n{line}\n"):
        path.write_text(text)
        with pytest.raises(InvalidFile, match=r"line \d+: a key has at most 32 parts, and lists"):
            Schema.load(path)
    assert not called


def test_what_only_looks_long_or_deep_is_read(tmp_path):
    dots, deep = ".".join("k" * 40), "[" * 40
    label = dots + deep + '" \' """ \'\'\' # \\"'
    asked = Schema([Categorical("a", [label, dots, deep, "it's"]), Boolean("b")])
    path = tmp_path / "schema.toml"
    asked.save(path)
    quoted = path.read_text() + f"# {dots} {deep}\n"
    for text in (quoted, quoted.replace("\n", "\r\n")):
        path.write_text(text, newline="")
        assert Schema.load(path) == asked
    body = f"""
        format = "mechdesign.schema"
        version = 1
        [[attributes]]
        name = 'a'
        kind = "categorical"
        labels = [ QQQ{deep}"\\"QQQ, '''{dots} {deep}''', # {deep}
          "{deep}", '{dots}.x' ]
    """.replace("QQQ", '"""')
    path.write_text(body)
    labels = [f'{deep}""', f"{dots} {deep}", deep, f"{dots}.x"]
    assert [*Schema.load(path)["a"].content()["labels"]] == labels
    # At the limits it is the reader that says what is wrong
    path.write_text(f"{'.'.join('k' * 32)} = {'[' * 32}{']' * 32}\n{body}")
    with pytest.raises(InvalidFile, match=r"nested deeper than 64|has no 'k'"):
        Schema.load(path)


def test_fields_of_another_type_are_refused(tmp_path):
    path = tmp_path / "schema.toml"
    head = 'format = "mechdesign.schema"\nversion = 1\n[[attributes]]\nname = "a"\n'
    for lines, message in [
        ('kind = "numeric"\nlow = true\nhigh = 2\nbins = 2', "low must be"),
        ('kind = "numeric"\nlow = 0\nhigh = 2\nbins = 2.0', "bins must be"),
        ('kind = "numeric"\nlow = 0\nhigh = 2\nwhole = 1', "whole must be"),
        ('kind = "numeric"\nedges = [0, true]', "edges must be"),
        ('kind = "categorical"\nlabels = [true, "x"]', "labels must be"),
        ('kind = "categorical"\nlabels = [1.0, "x"]', "labels must be"),
        ('kind = ["numeric"]', "its kind is one of"),
    ]:
        path.write_text(head + lines)
        with pytest.raises(InvalidFile, match=message):
            Schema.load(path)
    path.write_text(head + 'kind = "categorical"\nlabels = [1, "x"]')
    assert Schema.load(path)["a"].content()["labels"] == ["1", "x"]


def test_edges_are_not_computed_where_none_can_meet(monkeypatch):
    most = 1 << 24
    monkeypatch.setattr(Numeric, "cuts", None)
    assert Numeric("a", low=0, high=1, bins=most).size == most
    assert Numeric("a", low=1, high=most, whole=True).size == most
    assert Numeric("a", low=1, high=1e6, bins=10**4, spacing="logarithmic").size == 10**4
