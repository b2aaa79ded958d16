"""Exact rationals and whole numbers from what users type.

Wherever this library promises an exact answer it refuses binary floats: the float ``0.9`` is not
9/10, and a privacy parameter that differs from the intended one can violate the privacy claimed.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from threading import RLock
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from mechdesign.base.text import from_text, shown
from mechdesign.exceptions import InexactNumber, InvalidCount

Rational: TypeAlias = Fraction | int | str | Decimal
"""What is accepted where an exact number is wanted.

Such as ``Fraction(9, 10)``, ``1``, ``"9/10"``, ``"0.9"`` or ``Decimal("0.9")``.
"""

_STRICT = Context(traps=[InvalidOperation])
"""What is no number is refused, whatever the caller's context."""

_EXPONENT_LIMIT = 100_000


def exact(value: Rational, name: str = "value") -> Fraction:
    """``value`` as a Fraction, without rounding."""
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
    """``value`` as a Python int, if it is an integer from ``low`` to ``high``."""
    if not is_whole(value) or value < low or (high is not None and value > high):
        extent = f"at least {low}" if high is None else f"{low} to {_legible(high)}"
        raise error(f"{name} must be {what}, {extent}, got {shown(value)}")
    return int(value)


def _legible(limit: int) -> str:
    """A limit for a message: large powers of two as such."""
    power = limit.bit_length() - 1
    return f"2^{power}" if power >= 24 and limit == 1 << power else str(limit)


# ------------------------------------------------------------------------------------------------
# Ball arithmetic (python-flint): its precision belongs to the whole process, and is set here only.
#
# A computation sets the precision of all that it does, so that its numbers are the same whatever
# the caller uses balls for.


_LOCK = RLock()


@contextmanager
def precision(bits: int = 53) -> Iterator[None]:
    """Balls have this many bits within (by default as floats), and as many as before afterwards.

    It decorates functions, too. Threads take turns: one that comes meanwhile waits for the end.
    Nothing in it may wait for another thread.
    """
    with _LOCK:
        before = ctx.prec
        try:
            ctx.prec = bits
            yield
        finally:
            ctx.prec = before


def ball(x: Fraction) -> arb:
    """A rational number as a ball of the present precision."""
    return arb(fmpq(x.numerator, x.denominator))


# ------------------------------------------------------------------------------------------------
# Arrays of counts, checked: what may come from users is refused before it is used.


def checked_counts(
    counts: npt.ArrayLike,
    largest: int,
    refusal: Callable[[int | tuple[int, ...], object, int], Exception] = InvalidCount,
) -> npt.NDArray[np.int64]:
    """``counts`` as int64 in 0 .. largest.

    Raises ``refusal(position, value, largest)`` for the first that is not such an integer.
    """
    values = np.asarray(counts)
    if isinstance(counts, np.ma.MaskedArray):
        # A masked entry is a missing count, not the number under the mask.
        values = counts.data.astype(object)
        values[np.ma.getmaskarray(counts)] = None
    elif values.dtype.kind not in "biuf":
        # Not asarray: that makes strings of all entries if one is
        values = np.array(counts, dtype=object)
    elif values.dtype.kind in "iu" and _all_within(values, largest):
        return values.astype(np.int64)
    if values.dtype.kind in "biu":
        bad = (
            np.zeros(values.shape, dtype=bool)
            if values.dtype.kind == "b"
            else (values < 0) | (values > largest)
        )
        if values.dtype.kind == "b" and largest < 1:
            bad = values.astype(bool)
    elif values.dtype.kind == "f":
        # A comparison in a narrower float would round ``largest``
        values = values.astype(np.float64) if values.dtype.itemsize < 8 else values
        bad = ~((values >= 0) & (values <= largest) & (values == np.floor(values)))
    else:
        bad = np.array(
            [not _is_count(value, largest) for value in values.ravel()], dtype=bool
        ).reshape(values.shape)
    if bad.any():
        position = np.unravel_index(int(np.argmax(bad.ravel())), values.shape)
        index = int(position[0]) if len(position) == 1 else tuple(int(k) for k in position)
        raise refusal(
            index,
            values[position].item() if values.dtype.kind != "O" else values[position],
            largest,
        )
    return values.astype(np.int64)


def _all_within(values: npt.NDArray[np.integer[Any]], largest: int) -> bool:
    """Whether integers lie in 0 .. largest."""
    if values.size == 1:  # a client's one item: several times as fast as with numpy
        return bool(0 <= values.item() <= largest)
    return not values.size or bool(values.min() >= 0 and int(values.max()) <= largest)


def _is_count(value: Any, largest: int) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    try:
        return bool(0 <= value <= largest and value == int(value))
    except (TypeError, ValueError, OverflowError):
        return False
