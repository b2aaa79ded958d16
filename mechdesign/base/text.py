"""Numbers and tables as text: exact, for files; or short and safe to print, for messages."""

from __future__ import annotations

import errno
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import MAX_EMAX, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from textwrap import fill

# Integers below it are written in decimal, larger ones in hexadecimal.
#
# Python refuses very long decimal conversions.
_DECIMAL_LIMIT = 1 << 2048

# The most decimal digits that Python converts by default; the time grows with their square.
_LONGEST_DECIMAL = 4300

FULL = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
)  #: What the system says of a file that has no room.

_INTEGER = re.compile("-?(?:[0-9]+|0x[0-9a-f]+)")

# Characters that have no width or show nothing, although `str.isprintable` accepts them.
_INVISIBLE = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),  # combining grapheme joiner
        (0x115F, 0x1160),  # Hangul fillers, here and below
        (0x17B4, 0x17B5),  # Khmer inherent vowels
        (0x180B, 0x180F),  # Mongolian variation selectors
        (0x2800, 0x2800),  # blank Braille pattern
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),  # variation selectors
        (0xFFA0, 0xFFA0),
        (0xE0100, 0xE01EF),  # more variation selectors
    )
    for code in range(first, last + 1)
)


def printable(text: str) -> str:
    r"""Return ``text`` in one line that is safe to print, also if its source is not trusted.

    >>> print(printable("ages\x1b[2J, 18\u202eto 64\n"))
    ages\x1b[2J, 18\u202eto 64\n
    """
    # Control characters, line breaks, characters that reverse the direction of text, those that are
    # invisible and lone surrogates are escaped as in a Python string. Everything else stays.
    if text.isprintable() and _INVISIBLE.isdisjoint(text):
        return text
    return "".join(
        character
        if character.isprintable() and character not in _INVISIBLE
        else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def plain_name(text: str, stored: bool = False) -> str:
    r"""Return a name by which things are told apart: composed (NFC), no blanks at its ends.

    Names that look alike to a reader for these reasons are equal. Raises ValueError if it is empty,
    or something in it is invisible, which is left out if the name is ``stored`` in a file.

    >>> plain_name("No\u0308rd ")
    'Nörd'
    """
    if stored:
        text = (
            "".join(char for char in text if char.isprintable() and char not in _INVISIBLE) or text
        )
    name = unicodedata.normalize("NFC", text).strip()
    if not stored and (not name or printable(name) != name):
        raise ValueError(
            f"a name has characters that can be seen, and no others, got {shown(text)}"
        )
    return name


def meant(word: object, known: Iterable[str], mark: str = "") -> str:
    """Return a question whether one of the known words is meant, the nearest; empty if none is."""
    from difflib import get_close_matches  # of errors only

    near = get_close_matches(word, list(known), 1) if isinstance(word, str) else []
    return f"; did you mean {mark}{near[0]}?" if near else ""


def listed(names: Iterable[str]) -> str:
    """Names for a message, with commas between them, safe to print."""
    return ", ".join(map(printable, names))


def aligned(rows: Iterable[Iterable[str]]) -> list[str]:
    """A table's rows as lines that are safe to print, the columns as wide as they must be."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def integer_to_text(value: int) -> str:
    """Decimal, or hexadecimal with 0x when it is long; `integer_from_text` reads both."""
    return str(value) if abs(value) < _DECIMAL_LIMIT else hex(value)


def integer_from_text(text: str) -> int:
    """An integer, decimal or in lower-case hexadecimal with 0x; ValueError for anything else."""
    if not isinstance(text, str) or not _INTEGER.fullmatch(text):
        raise ValueError(f"expected an integer written as a string, got {text!r:.80}")
    if len(text) > _LONGEST_DECIMAL and "x" not in text:
        raise ValueError(f"{len(text)} digits are written in hexadecimal, with 0x")
    return int(text, 16 if "x" in text else 10)


def to_text(value: Fraction) -> str:
    """``a/b`` or ``a``: read back by `from_text`."""
    numerator = integer_to_text(value.numerator)
    return (
        numerator if value.denominator == 1 else f"{numerator}/{integer_to_text(value.denominator)}"
    )


def from_text(text: str) -> Fraction:
    """A fraction that `to_text` wrote; ValueError unless an integer or a quotient of two."""
    if not isinstance(text, str):
        raise ValueError(f"expected a fraction written as a string, got {text!r:.80}")
    numerator, slash, denominator = text.partition("/")
    bottom = integer_from_text(denominator) if slash else 1
    if bottom <= 0:
        raise ValueError(f"a denominator must be positive, got {text[:80]!r}")
    return Fraction(integer_from_text(numerator), bottom)


def brief(value: Fraction | float, digits: int = 6) -> str:
    """Return ``value`` to a few significant digits, for messages, also beyond floats' range.

    >>> brief(Fraction(1, 3)), brief(Fraction(10) ** 400)
    ('0.333333', '1.00000E+400')
    """
    if isinstance(value, float) or value == 0 or 1e-300 < abs(value) < 1e300:
        return f"{float(value):.{digits}g}"
    context = Context(prec=digits, Emin=-MAX_EMAX, Emax=MAX_EMAX)
    return f"{context.divide(Decimal(value.numerator), Decimal(value.denominator)):.{digits - 1}E}"


def filled(text: str, width: int) -> str:
    """A paragraph in lines of at most that many characters; no line begins with a % sign."""
    return fill(text.replace(" %", "\N{NO-BREAK SPACE}%"), width).replace("\N{NO-BREAK SPACE}", " ")


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Say which extra has a library that an import inside does not find: as an ImportError."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{what}, of the extra {extra!r}: in a clone, pip install '.[{extra}]'"
        ) from error


def rounded_up(value: Fraction, digits: int = 3) -> str:
    """Return ``value`` >= 0 to a few significant digits, never less than it is: for risks.

    >>> rounded_up(Fraction(1000, 333)), rounded_up(Fraction(3)), rounded_up(Fraction(10) ** 30)
    ('3.01', '3', '1E+30')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING, Emin=-MAX_EMAX, Emax=MAX_EMAX)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{quotient.normalize(context):{'f' if quotient.adjusted() in range(-4, 7) else ''}}"


def percent(share: Fraction, decimals: int = 0, *, up: bool = False) -> str:
    """Return a share of 0 to 1 in percent, rounded down: "in 14 %" means "in at least 14 %"."""
    # What is not 0 or 1 is never shown as 0 % or 100 %.
    if share in (0, 1):
        return f"{100 * share} %"
    if not Fraction(1, 100) <= share <= Fraction(99, 100):
        decimals = 2
    if share < Fraction(1, 10_000):
        return "<0.01 %"
    if share > Fraction(9_999, 10_000):
        return ">99.99 %"
    scale = 100 * 10**decimals
    units = -(-share * scale // 1) if up else share * scale // 1
    return f"{Decimal(units).scaleb(-decimals, Context())} %"


def reason(error: BaseException) -> str:
    """Return the message of any error in plain words, for one raised or printed in its place."""
    # Python's own messages of recursion, long numbers, missing keys, and files speak of Python.
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, MemoryError):
        return f"this takes more memory than there is. {error}".strip()
    if isinstance(error, OSError) and error.strerror:
        return _of_file(error)
    text = str(error)
    if isinstance(error, ValueError) and text.startswith("Exceeds the limit"):
        return f"a number of more than {_LONGEST_DECIMAL} digits"
    if isinstance(error, KeyError) and len(error.args) == 1:
        return text if " " in text else f"the key {text} is missing"
    return text


def _of_file(error: OSError) -> str:
    full = error.errno in FULL
    message = "there is no room on the disk; nothing was written" if full else str(error.strerror)
    # Of one that was to be renamed, the new name; a number is a descriptor
    name = error.filename if error.filename2 is None else error.filename2
    if not isinstance(name, (str, bytes, os.PathLike)):
        return message
    if isinstance(error, FileNotFoundError):
        return f"no such file: {os.fsdecode(name)}"
    return f"{os.fsdecode(name)}: {message}"


def shown(value: object) -> str:
    """Return ``repr(value)``, cut short, for messages."""
    # Python refuses to print very long integers: of those only the type is named.
    try:
        return printable(f"{value!r:.60}")
    except ValueError:
        return f"a huge {type(value).__name__}"
