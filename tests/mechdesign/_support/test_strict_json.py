"""JSON that can be read in one way only."""

from __future__ import annotations

import json

import pytest

from mechdesign._support.strict_json import JSON_DEPTH, from_json, keyed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"alpha":"99/100","alpha":"1/2"}', "'alpha' occurs twice"),
        ('[{"x":{"a":1,"b":2,"a":1}}]', "'a' occurs twice"),
        ('{"a":1,"\\u0061":2}', "'a' occurs twice"),
        ("[NaN]", "NaN is no finite number"),
        ("[-Infinity]", "-Infinity is no finite number"),
        ("[1e400]", "1e400 is no finite number"),
        ("[" * (JSON_DEPTH + 1) + "1" + "]" * (JSON_DEPTH + 1), "nested deeper"),
        ("[" * 100_000, "nested deeper"),
        ("[1,]", "Expecting value"),
        ("[1] 2", "Extra data"),
        ("\ufeff[1]", "BOM"),
        (b"\xff[1]", "utf-8"),
        ("[1]".encode("utf-16"), "utf-8"),
    ],
)
def test_json_with_more_than_one_reading_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_json(text)


def test_everything_else_is_read_as_json_reads_it() -> None:
    value = {"a": [1, 1.5, -0.0, "\x1b", None, True], "b": {"c": {}}, "": [[]]}
    assert from_json(json.dumps(value)) == from_json(json.dumps(value).encode()) == value
    deep = "[" * JSON_DEPTH + "1" + "]" * JSON_DEPTH
    assert from_json(deep) == json.loads(deep)


def test_a_text_that_is_too_long_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign._support.strict_json.JSON_BYTES", 9)
    assert from_json("[1,2,345]") == [1, 2, 345]
    with pytest.raises(ValueError, match="10 bytes are more than the 9"):
        from_json("[1,2,3456]")


def test_an_object_has_its_keys_and_no_others() -> None:
    assert keyed({"b": 1, "a": 2}, "a", "b") == {"a": 2, "b": 1}
    for content, reason in [
        ({"a": 1}, "'b' is missing"),
        ({"a": 1, "b": 2, "c": 3}, "unknown key 'c'"),
        ([], "expected an object"),
        (None, "expected an object"),
    ]:
        with pytest.raises(ValueError, match=reason):
            keyed(content, "a", "b")
