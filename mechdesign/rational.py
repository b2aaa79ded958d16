"""Exact rationals from what people type, and back to short text.

Wherever this library promises an exact answer it refuses binary floats: ``0.9`` is not nine tenths, and a privacy
parameter that silently differs from the one that was meant is a privacy bug.
"""

from __future__ import annotations

import numbers
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from mechdesign.exceptions import InexactNumber

Rational: TypeAlias = Fraction | int | str | Decimal
"""What is accepted where an exact number is wanted: ``Fraction(9, 10)``, ``1``, ``"9/10"``, ``"0.9"``, ``Decimal("0.9")``."""

_DECIMAL_LIMIT = 1 << 2048
"""Integers below it are written in decimal, larger ones in hexadecimal: Python refuses very long decimal conversions."""


def exact(value: Rational, name: str = "value") -> Fraction:
    """``value`` as a Fraction, with nothing lost.

    Raises
    ------
    InexactNumber
        For a float (or anything else that is not a rational number).
    ValueError
        For a string that is not a number, an infinity or a NaN.

    >>> exact("0.9"), exact("9/10"), exact(1)
    (Fraction(9, 10), Fraction(9, 10), Fraction(1, 1))
    """
    if isinstance(value, bool) or not isinstance(value, (numbers.Rational, Decimal, str)):
        raise InexactNumber(name, value)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    try:
        return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"{name} must be a finite rational number such as '9/10' or '0.9', got {str(value)[:80]!r}") from error


def integer_to_text(value: int) -> str:
    """Decimal, or hexadecimal with 0x when it is long; `integer_from_text` reads both."""
    return str(value) if abs(value) < _DECIMAL_LIMIT else hex(value)


def integer_from_text(text: str) -> int:
    """The inverse of `integer_to_text`; ValueError for anything else."""
    if not isinstance(text, str):
        raise ValueError(f"expected an integer written as a string, got {text!r:.80}")
    return int(text, 0)


def to_text(value: Fraction) -> str:
    """``a/b`` or ``a``: read back by `from_text`."""
    numerator = integer_to_text(value.numerator)
    return numerator if value.denominator == 1 else f"{numerator}/{integer_to_text(value.denominator)}"


def from_text(text: str) -> Fraction:
    """The inverse of `to_text`; ValueError for anything else."""
    if not isinstance(text, str):
        raise ValueError(f"expected a fraction written as a string, got {text!r:.80}")
    numerator, _, denominator = text.partition("/")
    bottom = integer_from_text(denominator) if denominator else 1
    if bottom <= 0:
        raise ValueError(f"a denominator must be positive, got {text[:80]!r}")
    return Fraction(integer_from_text(numerator), bottom)
