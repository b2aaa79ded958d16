"""JSON that can be read in one way only."""

from __future__ import annotations

import json

import pytest

from mechdesign.base.files import JSON_DEPTH, from_json, intact, require_same
from mechdesign.exceptions import InvalidFile, InvalidMechanism


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
    monkeypatch.setattr("mechdesign.base.files.JSON_BYTES", 9)
    assert from_json("[1,2,345]") == [1, 2, 345]
    with pytest.raises(ValueError, match="10 bytes are more than the 9"):
        from_json("[1,2,3456]")


def test_python_s_own_words_are_said_plainly() -> None:
    for raised, told in [
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (KeyError("alpha"), "the key 'alpha' is missing"),
        (ValueError("odd"), "odd"),
        (TypeError("odd"), "odd"),
        (ZeroDivisionError("odd"), "odd"),
    ]:
        with pytest.raises(InvalidFile, match=f"x: no thing: {told}"), intact("x", "no thing"):
            raise raised
    for typed in (InvalidFile("as it is"), InvalidMechanism("as it is")):
        with pytest.raises(type(typed), match=r"^as it is$"), intact("x.json"):
            raise typed
    with pytest.raises(ValueError, match=r"^a number of more than 4300 digits$"):
        from_json("9" * 4301)


def test_what_was_read_is_written_as_it_was_found() -> None:
    require_same({"a": [1, None], "b": {}}, {"b": {}, "a": [1, None]})
    for found, place in [
        ({"a": [True, None], "b": {}}, "True"),
        ({"a": [1.0, None], "b": {}}, "1.0"),
        ({"a": ["1", None], "b": {}}, "'1'"),
        ({"a": [1, None]}, "None"),
    ]:
        with pytest.raises(ValueError, match=f"it holds .*{place}.* where "):
            require_same({"a": [1, None], "b": {}}, found)
