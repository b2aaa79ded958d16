"""Text that is safe to print, and numbers to text and back."""

from __future__ import annotations

import math
import unicodedata
from decimal import ROUND_UP, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.base.text import (
    aligned,
    brief,
    from_text,
    integer_from_text,
    integer_to_text,
    percent,
    printable,
    rounded_up,
    shown,
    to_text,
)

SETTINGS = settings(derandomize=True, deadline=None, max_examples=100)


@pytest.mark.parametrize(
    "codes",
    [
        pytest.param(range(0x3400), id="without ideographs"),
        pytest.param(range(0x3400, 0x110000), id="all others", marks=pytest.mark.slow),
    ],
)
def test_every_control_character_is_escaped_and_every_letter_stays(codes) -> None:
    for code in codes:
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


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Fraction(0), "0"),
        (Fraction(1, 3), "0.333333"),
        (Fraction(-10) ** 401, "-1.00000E+401"),
        (Fraction(2, 3) / 10**5000, "6.66667E-5001"),
        (Fraction(10**5000), "1.00000E+5000"),
        (math.inf, "inf"),
        (0.1, "0.1"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_brief(value, expected):
    """Messages show any number, also where floats overflow and where Python refuses decimal
    conversions.
    """
    assert brief(value) == expected


integers = st.one_of(
    st.integers(),
    st.integers(0, 40).map(lambda k: (1 << 2048) + k - 20),
    st.integers(0, 40).map(lambda k: 20 - k - (1 << 2048)),
    # Beyond the 4300 decimal digits that Python converts.
    st.integers(15_000, 20_000).map(lambda k: 3 * (1 << k) + 1),
    st.integers(15_000, 20_000).map(lambda k: -(1 << k)),
)


@SETTINGS
@given(integers)
def test_integers_survive_text(value):
    assert integer_from_text(integer_to_text(value)) == value


@SETTINGS
@given(integers, integers.filter(bool))
def test_fractions_survive_text(numerator, denominator):
    value = Fraction(numerator, denominator)
    assert from_text(to_text(value)) == value


def test_fractions_are_written_as_usual():
    assert to_text(Fraction(9, 10)) == "9/10"
    assert to_text(Fraction(-4, 2)) == "-2"
    assert to_text(Fraction(0)) == "0"
    assert integer_to_text(1 << 2048).startswith("0x1")
    assert integer_to_text((1 << 2048) - 1).isdigit()


MALFORMED = [
    "",
    "-",
    "x",
    "0x",
    "one",
    "1.5",
    "1e3",
    "/2",
    "1/0",
    "1/-2",
    "1/0x0",
    "1/2/3",
    "0xg",
    "1/",
    "inf",
    "nan",
    "--1",
    "1 / 2",
]


SLOPPY = [" 1", "1\n", "1_000", "+1", "٣", "0x_1", "0X1", "0x1 ", "1/+2", "1/ 2", "0b1", "0o7"]


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_fractions_are_refused(text):
    with pytest.raises(ValueError, match=r"integer|invalid literal|denominator"):
        from_text(text)


@pytest.mark.parametrize("text", SLOPPY)
def test_pythons_laxer_spellings_of_integers_are_refused(text):
    with pytest.raises(ValueError, match="as a string"):
        from_text(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2/4", Fraction(1, 2)),
        ("1/1", 1),
        ("-0", 0),
        ("0x10", 16),
        ("-0xf/0x10", Fraction(-15, 16)),
    ],
)
def test_other_spellings_of_a_value_are_read_as_that_value(text, value):
    """They are not what to_text writes, but there is nothing else that they could mean."""
    assert from_text(text) == value


@pytest.mark.parametrize("value", [1, 0.5, None, b"1", Fraction(1, 2), ["1"]], ids=repr)
def test_text_must_be_text(value):
    with pytest.raises(ValueError, match="as a string"):
        from_text(value)
    with pytest.raises(ValueError, match="as a string"):
        integer_from_text(value)


def test_decimal_text_too_long_for_python_is_a_value_error():
    # Nothing here writes such text; a hostile file may.
    with pytest.raises(ValueError, match=r"."):
        from_text("1" * 5000)


SHARES = st.fractions(0, 1) | st.builds(
    lambda k, up: 1 - Fraction(1, k) if up else Fraction(1, k),
    st.integers(1, 10**12),
    st.booleans(),
)


@pytest.mark.slow
@SETTINGS
@given(SHARES, st.integers(0, 2), st.booleans())
def test_a_percentage_never_claims_more_than_is_so(share, decimals, up):
    text = percent(share, decimals, up=up)
    number, unit = text.split(" ")
    assert unit == "%"
    value = Fraction(number.lstrip("<>")) / 100
    if text[0] == "<":
        assert 0 < share < value
    elif text[0] == ">":
        assert value < share < 1
    else:
        error = value - share if up else share - value
        assert 0 <= error < Fraction(1, 100)
    assert (share == 0) == (value == 0)
    assert (share == 1) == (value == 1)


@pytest.mark.slow
@SETTINGS
@given(st.fractions(0, 10**9) | st.integers(1, 400).map(lambda k: Fraction(10) ** k / 3))
def test_what_is_rounded_up_is_no_less_and_nearly_the_same(value):
    assert value <= Fraction(rounded_up(value)) <= value * Fraction(101, 100)
    assert rounded_up(value, 1) == rounded_up(Fraction(rounded_up(value, 1)), 1)


def test_percentages_do_not_depend_on_the_context_of_decimals():
    with localcontext(prec=1, rounding=ROUND_UP):
        assert percent(Fraction(2, 3), 1) == "66.6 %"
