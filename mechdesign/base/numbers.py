"""Exact rationals and whole numbers from what users type.

Wherever this library promises an exact answer it refuses binary floats: the float ``0.9`` is not
9/10, and a privacy parameter that differs from the intended one can violate the privacy claimed.
"""

from __future__ import annotations

import numbers
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from mechdesign.base.text import from_text, shown
from mechdesign.exceptions import InexactNumber

Rational: TypeAlias = Fraction | int | str | Decimal
"""What is accepted where an exact number is wanted.

Such as ``Fraction(9, 10)``, ``1``, ``"9/10"``, ``"0.9"`` or ``Decimal("0.9")``.
"""

_STRICT = Context(traps=[InvalidOperation])
"""What is no number is refused, whatever the caller's context."""

_EXPONENT_LIMIT = 100_000


def exact(value: Rational, name: str = "value") -> Fraction:
    """``value`` as a Fraction, without rounding.

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
        # A short string such as 1e999999999 can stand for a number that no memory holds.
        if (isinstance(value, Decimal) or "e" in value.lower()) and abs(
            Decimal(value, _STRICT).adjusted()
        ) > _EXPONENT_LIMIT:
            raise ValueError("the exponent is too large")
        return Fraction(value)
    except (ValueError, OverflowError, ZeroDivisionError, InvalidOperation) as error:
        raise ValueError(
            f"{name} must be a finite rational number such as '9/10' or '0.9', got"
            f" {str(value)[:80]!r}"
        ) from error


def exact_sum(values: npt.NDArray[np.integer[Any]]) -> int:
    """The sum of an array of integers, which may exceed 64 bits.

    Parameters
    ----------
    values : numpy.ndarray of integers
        Of any shape, at most 2^31 of them.

    Returns
    -------
    int
        The sum: 0 of none.

    Examples
    --------
    >>> exact_sum(np.array([2**63 - 1, 2**63 - 1])) == 2**64 - 2
    True
    """
    wide = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64, copy=False)
    half = wide.dtype.type(32)
    return (int((wide >> half).sum()) << 32) + int((wide & wide.dtype.type(0xFFFF_FFFF)).sum())


def is_whole(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer of Python or of numpy; a bool is none, nor is 3.0."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole(
    value: object,
    name: str,
    low: int = 0,
    high: int | None = None,
    *,
    what: str = "an integer",
    error: type[Exception] = ValueError,
) -> int:
    """``value`` as a Python int, if it is an integer from ``low`` to ``high``.

    Parameters
    ----------
    value : object
        What was given: an integer of Python or of numpy. A bool, a float and a string are refused.
    name : str
        What the argument is called, for the message.
    low : int, default 0
        The least that is accepted.
    high : int, optional
        The largest that is accepted; None: there is no limit.
    what : str, default "an integer"
        What is expected, for the message: ``"a number of users"``.
    error : type, default ValueError
        The type of error to raise.

    Raises
    ------
    ValueError
        Or ``error``: it is not such an integer. The message says what was expected and given.

    >>> whole(3, "k", 1)
    3
    """
    if not is_whole(value) or value < low or (high is not None and value > high):
        extent = f"at least {low}" if high is None else f"{low} to {_legible(high)}"
        raise error(f"{name} must be {what}, {extent}, got {shown(value)}")
    return int(value)


def _legible(limit: int) -> str:
    """A limit for a message: large powers of two as such."""
    power = limit.bit_length() - 1
    return f"2^{power}" if power >= 24 and limit == 1 << power else str(limit)
