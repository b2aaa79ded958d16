"""Descriptions: the client half as data, which runs on devices that have no packages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from frequency.core.aggregate import canonical

_EXACT = 1 << 53  # larger integers are text in JSON, as JavaScript has floats there


Step: TypeAlias = dict[
    str, Any
]  #: A step of a description: its name under "do", and what it needs.


def signed(content: dict[str, Any]) -> dict[str, Any]:
    """A description with its digest."""
    return {**content, "digest": f"shake256:{sponge(canonical(content), 32).hex()}"}


def unstated(channel: object) -> TypeError:
    """The error of channels of one's own without a description."""
    return TypeError(f"{type(channel).__name__} does not state its client half as steps")


def sponge(text: str, size: int) -> bytes:
    """The first bytes of SHAKE-256 of a text."""
    return hashlib.shake_256(text.encode()).digest(size)


def json_integer(value: int) -> int | str:
    """An integer as descriptions hold it: as text where JavaScript would round it."""
    return int(value) if abs(value) < _EXACT else str(int(value))


def json_integers(values: Iterable[int]) -> list[int | str]:
    """Integers as descriptions hold them."""
    return [json_integer(value) for value in values]


def width_of(largest: int) -> int:
    """The bytes of the narrowest unsigned integer that holds 0 .. largest."""
    return next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))


def coin(values: range) -> dict[str, Any]:
    """A public coin that is each of some numbers with the same probability."""
    count, width = json_integer(len(values)), width_of(values.stop - 1)
    return {"start": values.start, "count": count, "width": width}


def tossed(
    coins: Sequence[dict[str, Any]], cell: list[Any], then: dict[str, Any]
) -> dict[str, Any]:
    """The step that tosses public coins, and goes on with what they make of the item."""
    return {"do": "public", "coins": list(coins), "distinct": False, "cell": cell, "then": then}


def lies(outcomes: int, lie: int, width: int = 1, **more: Any) -> Step:
    """The step that tells one of so many outcomes by randomised response."""
    told = {"outcomes": outcomes, "lie": json_integer(lie), "width": width}
    return {"do": "lie", **told, "field": None, "signs": 0, **more}
