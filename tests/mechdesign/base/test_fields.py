"""What fields of files may hold: one declared type and range each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pytest

from mechdesign.base.fields import (
    ANYTHING,
    FLAG,
    FRACTION_TEXT,
    INTEGER_TEXT,
    TEXT,
    FieldType,
    array_of,
    list_of,
    matching,
    one_of,
    optional,
    record,
    require_declared,
    row_of,
    table_of,
    whole_number,
)

PAIR = row_of(whole_number(0, 9), TEXT)


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (FLAG, [True, False], [0, 1, "true", None, []]),
        (TEXT, ["", "x"], [None, 1, True, ["x"]]),
        (whole_number(0, 9), [0, 9], [-1, 10, 1.0, True, "1", None]),
        (whole_number(), [-(2**63), 2**63 - 1], [2**63, -(2**63) - 1, 0.0]),
        (INTEGER_TEXT, ["0", "-12", "0xff"], [1, "1.0", "x", "0xFF", "1/2", ""]),
        (FRACTION_TEXT, ["0", "-1/2", "0xff/3"], [0.5, "1/", "/2", "1/-2", "0.5", " 1"]),
        (one_of("a", "b"), ["a"], ["c", [], None]),
        (matching("digits", "[0-9]+"), ["12"], ["", "1x", 12]),
        (optional(FLAG), [None, True], [0, "x"]),
        (list_of(FLAG, 2), [[], [True, False]], [[1], [True] * 3, {}, None, "x"]),
        (PAIR, [[1, "x"]], [[1], ["x", 1], [1, "x", 2], [10, "x"]]),
        (array_of(whole_number(0)), [1, [1, 2], [[1], []]], [-1, [-1], [[None]], "x", {}]),
        (table_of(FLAG, one_of("a", "b")), [{}, {"a": True}], [{"c": True}, {"a": 1}, []]),
        (record({"a": FLAG, "b": ANYTHING}), [{"b": 1, "a": True}], [{"a": True}, {}, [], None]),
        (record({"a": FLAG}) | record({"b": TEXT}), [{"a": True}, {"b": ""}], [{}, {"a": ""}]),
    ],
)
def test_a_field_holds_its_type_and_range_alone(field: FieldType, good: Any, bad: Any) -> None:
    for value in good:
        assert field.require(value) is value
    for value in bad:
        with pytest.raises(ValueError, match=r"must be|is missing|unknown key"):
            field.require(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, r"the key 'b' is missing"),
        ({"a": 1, "b": [], "c": 3}, r"unknown key 'c'; known: a, b"),
        ({"a": -1, "b": []}, r"a must be an integer from 0 to 2\^63 - 1, got -1"),
        ({"a": 1, "b": [{"c": True}, {"c": 0}]}, r"b\[1\]\.c must be true or false, got 0"),
        ({"a": 1, "b": [{"d": True}]}, r"b\[0\]: the key 'c' is missing"),
        ({"a": 1, "b": [7]}, r"b\[0\] must be an object with the keys c, or null, got 7"),
        ([], r"it must be an object with the keys a, b, got \[\]"),
    ],
)
def test_the_message_names_the_place_and_what_was_expected(value: Any, message: str) -> None:
    field = record({"a": whole_number(0), "b": list_of(optional(record({"c": FLAG})))})
    with pytest.raises(ValueError, match=message):
        field.require(value)


@dataclass(frozen=True)
class Declared:
    """Arguments of several types."""

    flag: bool = False
    size: int = 1
    text: str = ""
    number: float = 0.0
    epsilon: float | Fraction | str = 1.0
    level: tuple[int, ...] | None = None
    edges: Sequence[float] | None = None
    kind: Literal["a", "b"] = "a"
    other: Any = None


def test_arguments_have_the_types_that_their_class_declares() -> None:
    good: list[dict[str, Any]] = [
        {"flag": True, "size": 3, "text": "x", "number": 1, "epsilon": "1/2", "kind": "b"},
        {"number": 0.5, "epsilon": 2, "level": (1, 2), "edges": [0, 0.5], "other": [None]},
        {"level": None, "edges": None, "epsilon": Fraction(1, 2), "unknown": 1},
    ]
    for arguments in good:
        require_declared(Declared, arguments)
    bad: dict[str, list[Any]] = {
        "flag": [0, 1, "x", None],
        "size": [True, 1.0, "1", None],
        "text": [1, None, True],
        "number": ["1", True, None],
        "epsilon": [True, None],
        "level": [1, "x", (1, True), (0.5,)],
        "edges": [1, [0, "x"], [True]],
        "kind": ["c", 1, None],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(ValueError, match=f"{name} must be "):
                require_declared(Declared, {name: value})
