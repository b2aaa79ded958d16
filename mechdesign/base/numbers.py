"""Exact rationals and whole numbers from what users type.

Wherever this library promises an exact answer it refuses binary floats: the float ``0.9`` is not
9/10, and a privacy parameter that differs from the intended one can violate the privacy claimed.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import wraps
from operator import itemgetter
from threading import Lock, RLock
from typing import Any, ParamSpec, TypeAlias, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from mechdesign.base.text import from_text, shown
from mechdesign.exceptions import InexactNumber, InvalidCount

#: What is accepted where an exact number is wanted.
#:
#: Such as ``Fraction(9, 10)``, ``1``, ``"9/10"``, ``"0.9"`` or ``Decimal("0.9")``.
Rational: TypeAlias = Fraction | int | str | Decimal

# What is no number is refused, whatever the caller's context.
_STRICT = Context(traps=[InvalidOperation])

_EXPONENT_LIMIT = 100_000

_COLONS = 5  # the most of a range as text: one, and two in each time


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


def fraction(value: float | Rational, name: str, what: str = "finite") -> Fraction:
    """Return a float as the binary number that it is; anything else must be exact."""
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be {what}, got {value}")
        return Fraction(float(value))
    return exact(value, name)


def exact_sum(values: npt.NDArray[np.integer[Any]]) -> int:
    """Return the sum of an array of integers, which may exceed 64 bits."""
    wide = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64, copy=False)
    half = wide.dtype.type(32)
    return (int((wide >> half).sum()) << 32) + int((wide & wide.dtype.type(0xFFFF_FFFF)).sum())


@dataclass(frozen=True)
class Between:
    """A closed range of values: both ends belong to it.

    Questions refuse a pair: it could be two values as well as a range, and is a list in JSON.

    Parameters
    ----------
    first, last : object
        Its ends, in the units of what is asked about. Arrays that broadcast are as many ranges.
        None: the least, or the largest value that there is.

    Examples
    --------
    >>> print(Between(18, 64))
    18:64
    """

    first: Any
    last: Any

    def __str__(self) -> str:
        return ":".join("" if end is None else str(end) for end in (self.first, self.last))

    @staticmethod
    def in_text(text: str) -> Iterator[Between]:
        """The ranges that a text such as "18:64" or "18:" may be: times have colons, too."""
        colons = [place for place, sign in enumerate(text) if sign == ":"]
        for colon in colons if len(colons) <= _COLONS else ():
            first, last = text[:colon].strip(), text[colon + 1 :].strip()
            yield Between(first or None, last or None)


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
    """Give balls this many bits within (by default as floats), and as many as before afterwards.

    It decorates functions, too. Threads take turns, so nothing in it may wait for another thread.
    """
    with _LOCK:
        before = ctx.prec
        try:
            ctx.prec = bits
            yield
        finally:
            ctx.prec = before


def rational_of(x: arb) -> Fraction:
    """Return a ball without radius as a rational number."""
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def ball(x: Fraction) -> arb:
    """A rational number as a ball of the present precision."""
    return arb(fmpq(x.numerator, x.denominator))


# Numbers that differ relatively by less are one number: processors sum in orders of their own.
_ROUNDING = 1e-9

_T = TypeVar("_T")


def ordered(items: Iterable[_T], *keys: Callable[[_T], Any]) -> list[_T]:
    """Return items in the order of the first key; those equal up to rounding, of the next ones.

    What is equal in all keys stays in the order given. So the order of floats that are equal in
    exact arithmetic is the same on every machine. None may be NaN.
    """
    groups = [list(enumerate(items))]
    for key in keys:
        groups = [part for group in groups for part in _apart(group, key)]
    return [item for group in groups for _, item in sorted(group, key=itemgetter(0))]


def _apart(group: list[tuple[int, _T]], key: Callable[[_T], Any]) -> Iterator[list[tuple[int, _T]]]:
    """Yield the parts of a group that have the same key up to rounding, in its order."""
    rated = sorted(((key(pair[1]), pair) for pair in group), key=itemgetter(0))
    start = 0
    for stop in range(1, len(rated) + 1):
        if stop == len(rated) or not _same(rated[stop - 1][0], rated[stop][0]):
            yield [pair for _, pair in rated[start:stop]]
            start = stop


def _same(one: Any, other: Any) -> bool:
    """Whether two neighbours of an ascending order differ by no more than rounding."""
    if isinstance(one, float) and math.isfinite(one) and math.isfinite(other):
        return bool(other - one <= _ROUNDING * max(abs(one), abs(other)))
    return bool(one == other)


# ------------------------------------------------------------------------------------------------
# Arrays of counts, checked: what may come from users is refused before it is used.


def later(
    times: npt.NDArray[np.datetime64] | np.datetime64, steps: npt.ArrayLike
) -> npt.NDArray[np.datetime64]:
    """Return the times that many of their own units later.

    >>> later(np.array(["2013-01", "2013-12"], dtype="M8[M]"), 1).tolist()
    [datetime.date(2013, 2, 1), datetime.date(2014, 1, 1)]
    """
    # NumPy from 2.5 on adds no integer without a unit
    moved: npt.NDArray[np.datetime64] = times + np.asarray(steps).astype(
        times.dtype.str.replace("M8", "m8")
    )
    return moved


def checked_counts(
    counts: npt.ArrayLike,
    largest: int,
    refusal: Callable[[int | tuple[int, ...], object, int], Exception] = InvalidCount,
) -> npt.NDArray[np.int64]:
    """Return ``counts`` as int64 in 0 .. largest.

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


# ------------------------------------------------------------------------------------------------
# Types of arrays, BLAS on one thread, and factors of positive semidefinite matrices.


# ------------------------------------------------------------------------------------------------
# Names for the types of arrays.


Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Items: TypeAlias = npt.NDArray[np.int64]  #: Numbers of items, 0 .. domain-1.
Booleans: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]  #: 64 bits each.


# ------------------------------------------------------------------------------------------------
# Linear algebra on one thread.
#
# The matrices here are small, of tens or hundreds of rows, and the algorithms take thousands of
# steps. A BLAS library that splits each step among threads spends more time on synchronisation than
# on arithmetic, above all if other programs use the same cores.


_THREADS_LOCK = Lock()
_RUNNING: list[Any] = []  # the limit once for every wrapped function that runs, in whatever thread

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Wrap a function so that the BLAS of numpy and that of scipy use one thread while it runs."""
    # The limit applies to the whole process until the last of the wrapped functions that run at the
    # same time returns. Other threads may run slower meanwhile; their results do not change.

    @wraps(function)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # Only libraries that are loaded are limited, and scipy has its own.
        import scipy.linalg  # noqa: F401
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        with _THREADS_LOCK:
            _RUNNING.append(_RUNNING[0] if _RUNNING else threadpool_limits(1, "blas"))
        try:
            return function(*args, **kwargs)
        finally:
            with _THREADS_LOCK:
                limit = _RUNNING.pop()
                if not _RUNNING:
                    limit.restore_original_limits()

    return limited


# ------------------------------------------------------------------------------------------------
# Positive definite matrices that are positive definite in every order of summation.
#
# A product W W' is off by rounding, relative to the lengths of the rows of W; a difference of two
# matrices is off by any factor, and may be indefinite. So what is factored here are products.


# How far entries of a product are off at most, relative to the roots of the diagonal's.
_ROUNDED = 2e-13


def cholesky(product: Floats, diagonal: Floats) -> Floats:
    """Return Cholesky's factor of a product W W' plus a diagonal matrix, whatever their scales.

    Shapes: `product` (rows, rows), `diagonal` (rows,); returns (rows, rows).
    """
    size = len(product)
    scale = np.sqrt(np.diag(product) + diagonal)
    inner = (product + np.diag(diagonal)) / scale / scale[:, None]
    triangle = np.linalg.cholesky(inner + size * _ROUNDED * np.eye(size))
    return np.asarray(triangle * scale[:, None], dtype=np.float64)


def posterior_root(root: Floats, product: Floats) -> tuple[Floats, float]:
    """Return a root U of root (I + product)^-1 root', and the logarithm of the determinant in it.

    Shapes: `root` (coordinates, rank), `product` (rank, rank).
    """
    # If the product is root' P root, U U' is the posterior covariance ((root root')^-1 + P)^-1,
    # also where root has no inverse: positive semidefinite, and not by a difference.
    triangle = cholesky(product, np.ones(len(product)))
    half = np.asarray(np.linalg.solve(triangle, root.T).T, dtype=np.float64)
    return half, 2 * float(np.log(np.diag(triangle)).sum())


# ------------------------------------------------------------------------------------------------
# Where random words come from: the operating system, or a seeded generator.


BitSource: TypeAlias = Callable[[int], Words]  #: Given k, k uniform 64-bit words.

# Bit generators whose raw outputs are the words that `numpy.random.Generator.integers` gives.
#
# For a few words `integers` takes ten times as long.
_OF_WORDS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)


def bit_source(rng: np.random.Generator | None) -> BitSource:
    """Words from the operating system (None) or from a seeded generator."""
    if rng is None:
        return lambda size: np.frombuffer(os.urandom(8 * size), np.uint64)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be None or a numpy.random.Generator, got {type(rng).__name__}")
    if type(rng) is np.random.Generator and type(rng.bit_generator) in _OF_WORDS:
        return rng.bit_generator.random_raw
    return lambda size: rng.integers(0, 1 << 64, size=size, dtype=np.uint64)
