"""Categorical and Boolean: attributes whose values have labels and no order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.schema.attribute import ABSENT, MOST_ITEMS, UNKNOWN, ItemAttribute
from frequency.schema.column import Column, is_no_value
from mechdesign._support.arrays import Items
from mechdesign._support.frozen import set_fields
from mechdesign._support.text import listed, printable, shown

_SHOWN = 8
"""Labels that a message names."""


class Labelled(ItemAttribute):
    """Attributes of which each value is looked up among labels."""

    def _raw(self, column: Column) -> Items:
        codes, values = column.factors()
        items = [self._own_item(value) for value in values]
        absent = [ABSENT if is_no_value(value) else UNKNOWN for value in values]
        found = [other if item is None else item for item, other in zip(items, absent, strict=True)]
        return np.array([*found, ABSENT], dtype=np.int64)[codes]


@dataclass(frozen=True)
class Categorical(Labelled):
    """One of some labels.

    Values that are no text are compared as it is written: the integer 7, and the float 7.0, with
    the label "7".

    Parameters
    ----------
    name : str
        The column's name.
    labels : sequence of str
        Distinct; integers stand for their text.
    unit : str, default ""
        Such as "years".
    missing : str, default "refuse"
        "refuse", "item" or "skip": see `Attribute`.
    outside : str, default "refuse"
        "refuse" or "item", which stands for all other labels: see `Attribute`.

    Raises
    ------
    ValueError
        No labels or more than 2^24, labels that are not distinct text, or what `Attribute` refuses.

    Examples
    --------
    >>> species = Categorical("species", ["Adelie", "Chinstrap", "Gentoo"], missing="item")
    >>> species.coded(["Gentoo", None, "Adelie"]).items
    array([2, 3, 0])
    """

    labels: Sequence[str]

    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        several = isinstance(self.labels, Iterable) and not isinstance(self.labels, (str, bytes))
        given = tuple(map(_text, self.labels)) if several else ()
        set_fields(self, labels=given)
        super().__post_init__()
        if not 1 <= len(given) <= MOST_ITEMS or not all(
            isinstance(one, str) and one for one in given
        ):
            raise ValueError(
                f"{printable(self.name)} needs labels, a list of texts, got {shown(list(given))}"
            )
        taken = [*given, *self.extra]
        if len(set(taken)) < len(taken):
            twice = next(one for one in taken if taken.count(one) > 1)
            raise ValueError(f"{printable(self.name)} has the label {shown(twice)} twice")

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}

    @property
    def bins(self) -> int:
        return len(self.labels)

    def label(self, item: int) -> str:
        return self.labels[item]

    @property
    def values(self) -> str:
        names = listed(self.labels[:_SHOWN])
        more = f" or another of its {self.bins} labels" if self.bins > _SHOWN else ""
        return f"one of {names}{more}"

    def _own_item(self, given: Any) -> int | None:
        text = _text(given)
        return self._places.get(text) if isinstance(text, str) else None

    def _content(self) -> dict[str, Any]:
        return {"labels": list(self.labels)}


_LONG = Context(prec=4300, traps=[InvalidOperation])
"""Of as many digits as Python writes, whatever the caller's context."""


def _text(value: Any) -> Any:
    """A value as its label is written: integers and dates as text, whatever else as it is."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool):
        return str(value).lower()
    try:
        if isinstance(value, Decimal):
            value = int(value) if _LONG.remainder(value, 1) == 0 else value
        elif isinstance(value, (float, Fraction)) and value % 1 == 0:
            value = int(value)
        if isinstance(value, int):
            return str(value)
    except (ArithmeticError, ValueError):  # of so many digits that Python does not write them
        return None
    return value.isoformat() if isinstance(value, date) else value


_TRUTHS = {
    **dict.fromkeys(("false", "no", "n", "f", "0"), 0),
    **dict.fromkeys(("true", "yes", "y", "t", "1"), 1),
}


def truth_of(value: Any) -> int | None:
    """1 for what is true, or spells it, 0 for what is false; None for anything else."""
    text = _text(value)
    return _TRUTHS.get(text.strip().lower()) if isinstance(text, str) else None


@dataclass(frozen=True)
class Boolean(Labelled):
    """No or yes: true or false, 0 or 1, t or f, y or n, in any case.

    Parameters
    ----------
    name : str
        The column's name.
    unit : str, default ""
        Such as "years".
    missing : str, default "refuse"
        "refuse", "item" or "skip": see `Attribute`.
    outside : str, default "refuse"
        "refuse" or "item": see `Attribute`.

    Raises
    ------
    ValueError
        What `Attribute` refuses.

    Examples
    --------
    >>> Boolean("smokes").coded([True, False, "yes", 0]).items
    array([1, 0, 1, 0])
    """

    kind: ClassVar[str] = "boolean"

    @property
    def bins(self) -> int:
        return 2

    def label(self, item: int) -> str:
        return ("no", "yes")[item]

    @property
    def values(self) -> str:
        return "yes or no, true or false, 1 or 0"

    def _own_item(self, given: Any) -> int | None:
        return truth_of(given)

    def _content(self) -> dict[str, Any]:
        return {}
