"""The values that fields of files may hold: each has one declared type and range.

A format is declared once, of `FieldType`s that are made of others: what a file may hold, what an
object has in its place, and how it is written. Nothing is guessed: a count is no flag, a text no
number, and a list no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from mechdesign.base.text import (
    from_text,
    integer_from_text,
    integer_to_text,
    shown,
    to_text,
)

#: Integers of files are less than this in absolute value, unless a field says otherwise.
WORD = 1 << 63

_INTEGER = "(?:[0-9]+|0x[0-9a-f]+)"
_WHOLE, _FRACTION = re.compile(f"-?{_INTEGER}"), re.compile(f"-?{_INTEGER}(?:/{_INTEGER})?")


def _same(value: Any) -> Any:
    """Return it as it is."""
    return value


@dataclass(frozen=True)
class FieldType:
    """The values that a field may hold."""

    what: str  # the same in words
    # given a value and the name of its place, raises ValueError for what may not be there
    check: Callable[[Any, str], None]
    read: Callable[[Any], Any] = _same  #: what an object has in the place of a value
    write: Callable[[Any], Any] = _same  #: the value of what an object has

    def require(self, value: Any, place: str = "") -> Any:
        """The value itself."""
        self.check(value, place)
        return value

    def __or__(self, other: FieldType) -> FieldType:
        def check(value: Any, place: str) -> None:
            try:
                self.check(value, place)
            except ValueError as first:
                try:
                    other.check(value, place)
                except ValueError as second:
                    # What is wrong deeper inside says more than that it is neither
                    inside = [
                        error
                        for error in (first, second)
                        if isinstance(error, _Wrong) and error.place != place
                    ]
                    if len(inside) == 1:
                        raise inside[0] from None
                    raise _wrong(value, place, what) from None

        what = f"{self.what}, or {other.what}"
        return FieldType(what, check)


class _Wrong(ValueError):
    """A field that holds what it may not, and its place."""

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place


def _wrong(value: Any, place: str, what: str) -> _Wrong:
    return _Wrong(f"{place or 'it'} must be {what}, got {shown(value)}", place)


def _those(what: str, test: Callable[[Any], bool]) -> FieldType:
    def check(value: Any, place: str) -> None:
        if not test(value):
            raise _wrong(value, place, what)

    return FieldType(what, check)


FLAG = _those("true or false", lambda value: isinstance(value, bool))
TEXT = _those("a text", lambda value: isinstance(value, str))
NOTHING = _those("null", lambda value: value is None)
INTEGER_TEXT = replace(
    _those(
        "an integer as text", lambda value: isinstance(value, str) and bool(_WHOLE.fullmatch(value))
    ),
    read=integer_from_text,
    write=integer_to_text,
)
FRACTION_TEXT = replace(
    _those(
        "a fraction as text",
        lambda value: isinstance(value, str) and bool(_FRACTION.fullmatch(value)),
    ),
    read=from_text,
    write=to_text,
)
#: Of content that a declaration of its own checks.
ANYTHING = _those("anything", lambda value: True)


def whole_number(low: int = -WORD, high: int = WORD - 1) -> FieldType:
    """An integer from ``low`` to ``high``."""
    what = f"an integer from {_legible(low)} to {_legible(high)}"
    return _those(what, lambda value: type(value) is int and low <= value <= high)


def _legible(limit: int) -> str:
    """A limit of 64 bits by its power of two."""
    return {-WORD: "-2^63", WORD - 1: "2^63 - 1"}.get(limit, str(limit))


def one_of(*texts: str) -> FieldType:
    """One of some texts."""
    return _those(
        f"one of {', '.join(texts)}", lambda value: isinstance(value, str) and value in texts
    )


def matching(what: str, pattern: str) -> FieldType:
    """A text that matches a regular expression."""
    expression = re.compile(pattern)
    return _those(what, lambda value: isinstance(value, str) and bool(expression.fullmatch(value)))


def optional(field: FieldType) -> FieldType:
    """The field, or null."""
    return replace(
        field | NOTHING,
        read=lambda value: None if value is None else field.read(value),
        write=lambda value: None if value is None else field.write(value),
    )


def list_of(field: FieldType, most: int | None = None) -> FieldType:
    """A list, of at most so many; in an object a tuple."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or (most is not None and len(value) > most):
            raise _wrong(value, place, what)
        for k, entry in enumerate(value):
            field.check(entry, f"{place}[{k}]")

    what = "a list" if most is None else f"a list of at most {most}"
    return FieldType(
        what,
        check,
        lambda value: tuple(map(field.read, value)),
        lambda value: [*map(field.write, value)],
    )


def row_of(*fields: FieldType) -> FieldType:
    """A list with one entry for each of some fields; in an object a tuple."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list) or len(value) != len(fields):
            raise _wrong(value, place, what)
        for k, (entry, field) in enumerate(zip(value, fields, strict=True)):
            field.check(entry, f"{place}[{k}]")

    what = f"a list of {len(fields)}"
    return FieldType(
        what,
        check,
        lambda value: tuple(f.read(entry) for f, entry in zip(fields, value, strict=True)),
        lambda value: [f.write(entry) for f, entry in zip(fields, value, strict=True)],
    )


def array_of(field: FieldType) -> FieldType:
    """The field, or lists of lists of it."""

    def check(value: Any, place: str) -> None:
        (every if isinstance(value, list) else field).check(value, place)

    every = list_of(FieldType(field.what, check))
    return FieldType(f"{field.what}, or lists of them", check)


#: Integers of 64 bits, or lists of lists of them: in an object an array.
INTEGERS = replace(
    array_of(whole_number()),
    read=lambda value: np.array(value, np.int64),
    write=lambda value: value.tolist(),
)

_PLAIN = (bool, int, float, str, NoneType)


def require_declared(kind: type, arguments: Mapping[str, Any]) -> None:
    """Raise ValueError unless arguments have the types that a class declares of them."""
    declared = get_type_hints(kind if is_dataclass(kind) else vars(kind).get("__init__", kind))
    for name, value in arguments.items():
        if name in declared and not _is_of(value, declared[name]):
            words = str(declared[name]) if get_origin(declared[name]) else declared[name].__name__
            raise ValueError(f"{name} must be {words}, got {shown(value)}")


def _is_of(value: Any, declared: Any) -> bool:
    parts = get_args(declared)
    if get_origin(declared) in (Union, UnionType):
        return any(_is_of(value, part) for part in parts)
    if get_origin(declared) is Literal:
        return any(type(value) is type(part) and value == part for part in parts)
    if isinstance(value, (list, tuple)) and get_origin(declared) in (tuple, list, Sequence):
        if get_origin(declared) is not tuple or parts[1:] == (...,):
            return all(_is_of(entry, parts[0]) for entry in value)
        return len(value) == len(parts) and all(map(_is_of, value, parts))
    if declared is float:
        return type(value) in (int, float)
    if get_origin(declared) in (tuple, list, Sequence):
        return False
    if declared in _PLAIN or isinstance(value, _PLAIN):
        return declared in (Any, type(value))
    return True


def table_of(field: FieldType, key: FieldType = TEXT) -> FieldType:
    """An object with any keys."""

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(value, place, "an object")
        for name, entry in value.items():
            key.check(name, f"a key of {place}")
            field.check(entry, f"{place}[{shown(name)}]")

    return FieldType(
        "an object",
        check,
        lambda value: {key.read(name): field.read(entry) for name, entry in value.items()},
        lambda value: {key.write(name): field.write(entry) for name, entry in value.items()},
    )


def record(fields: Mapping[str, FieldType], kind: Callable[..., Any] = dict) -> FieldType:
    """An object with these keys, all of them and no others.

    It is read as what ``kind`` makes of its entries, and written from the attributes of that.
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(value, place, what)
        inside = f"{place}: " if place else ""
        for name in fields:
            if name not in value:
                raise _Wrong(f"{inside}the key {name!r} is missing", f"{place}.{name}")
        for key in value:
            if key not in fields:
                known = ", ".join(fields)
                raise _Wrong(f"{inside}unknown key {shown(key)}; known: {known}", f"{place}.{key}")
        for name, field in fields.items():
            field.check(value[name], f"{place}.{name}" if place else name)

    def write(value: Any) -> dict[str, Any]:
        entry = value.__getitem__ if isinstance(value, dict) else partial(getattr, value)
        return {name: field.write(entry(name)) for name, field in fields.items()}

    what = f"an object with the keys {', '.join(fields)}"
    return FieldType(
        what,
        check,
        lambda value: kind(**{name: field.read(value[name]) for name, field in fields.items()}),
        write,
    )


# ------------------------------------------------------------------------------------------------
# Fields of frozen dataclasses, set while the instance is made.


def set_fields(instance: Any, **values: Any) -> None:
    """Store values in a frozen dataclass; only for ``__init__`` and ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)
