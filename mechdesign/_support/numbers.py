"""Exact rationals from what people type.

Wherever this library promises an exact answer it refuses binary floats: ``0.9`` is not nine tenths,
and a privacy parameter that silently differs from the one that was meant is a privacy bug.
"""

from __future__ import annotations

import numbers
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TypeAlias

from mechdesign._support.text import from_text
from mechdesign.exceptions import InexactNumber

Rational: TypeAlias = Fraction | int | str | Decimal
"""What is accepted where an exact number is wanted: ``Fraction(9, 10)``, ``1``, ``"9/10"``,
``"0.9"``, ``Decimal("0.9")``.
"""

_EXPONENT_LIMIT = 100_000


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
    if isinstance(value, str) and "0x" in value:
        return from_text(value)  # a number so long that it was written in hexadecimal
    try:
        # A short string can stand for a number too long for any memory.
        if (isinstance(value, Decimal) or "e" in value.lower()) and abs(
            Decimal(value).adjusted()
        ) > _EXPONENT_LIMIT:
            raise ValueError("the exponent is too large")
        return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError, InvalidOperation) as error:
        raise ValueError(
            f"{name} must be a finite rational number such as '9/10' or '0.9', got"
            f" {str(value)[:80]!r}"
        ) from error
