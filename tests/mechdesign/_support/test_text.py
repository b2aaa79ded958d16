"""JSON that can be read in one way only, and text that is safe to print."""

from __future__ import annotations

import json
import unicodedata

import pytest

from mechdesign._support.strict_json import JSON_DEPTH, from_json, keyed
from mechdesign._support.text import aligned, printable, shown


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


def test_every_control_character_is_escaped_and_every_letter_stays() -> None:
    for code in range(0x110000):
        character = chr(code)
        kind, safe = unicodedata.category(character), printable(character)
        if kind[0] == "C" or kind in ("Zl", "Zp"):
            assert safe.isascii()
            assert safe.isprintable()
        elif kind[0] in "LNPS" and code not in (0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0):
            assert safe == character
    for name in (
        "RIGHT-TO-LEFT OVERRIDE",
        "LEFT-TO-RIGHT ISOLATE",
        "ZERO WIDTH SPACE",
        "ZERO WIDTH JOINER",
        "WORD JOINER",
        "ZERO WIDTH NO-BREAK SPACE",
        "COMBINING GRAPHEME JOINER",
        "HANGUL FILLER",
        "VARIATION SELECTOR-16",
        "LINE SEPARATOR",
        "NEXT LINE",
        "TAG LATIN SMALL LETTER A",
    ):
        assert printable(unicodedata.lookup(name)).startswith("\\"), name
    assert printable("\x1b[31m\n\udcff") == "\\x1b[31m\\n\\udcff"
    assert printable("Straße, 東京, e\u0301") == "Straße, 東京, e\u0301"


def test_a_table_has_a_line_for_each_row_whatever_its_cells() -> None:
    lines = aligned([("name", "n"), ("a\nforged  9", "1"), ("b\x1b[2K\u202e", "2")])
    assert lines == [
        "name            n",
        "a\\nforged  9    1",
        "b\\x1b[2K\\u202e  2",
    ]


def test_values_shown_in_messages_are_safe_to_print() -> None:
    assert shown("a\x1b\u034f") == "'a\\x1b\\u034f'"
    assert len(shown("x" * 1000)) == 60
