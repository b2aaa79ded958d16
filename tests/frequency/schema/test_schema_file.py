"""Schemas in TOML and JSON: what is written is read back, and what was changed is refused."""

import json

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
