"""Categorical and Boolean: attributes whose values have labels and no order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.clients.device import TRUTHS
from frequency.exceptions import A_VALUE
from frequency.schema.attribute import ABSENT, MOST_ITEMS, UNKNOWN, Attribute, Coded, ItemAttribute
from frequency.schema.column import Column, is_no_value, is_readable, texts_of
from mechdesign.base import Items, listed, printable, set_fields, shown, whole

_SHOWN = 8  # labels that a message names


class Labelled(ItemAttribute):
    """An attribute of which each value is looked up among labels."""

    def _raw(self, column: Column) -> Items:
        codes, values = column.factors()
        return np.array([*map(self._read, values), ABSENT], dtype=np.int64)[codes]

    def _read(self, value: Any) -> int:
        """The item of a value, or what stands there."""
        item = self._own_item(value)
        if item is not None:
            return item
        if isinstance(value, str) and value in self.extra:
            return self.bins + self.extra.index(value)
        return ABSENT if is_no_value(value) else UNKNOWN


@dataclass(frozen=True)
class Categorical(Labelled):
    """A categorical attribute: one of some labels.

    Values that are no text are compared as they are written: the integer 7, and the float 7.0, with
    the label "7"; 0.5 with "0.5"; a date, and midnight of it, with "2013-01-31". A label is one
    text: 7 is not "07".

    Parameters
    ----------
    name, unit, missing : str
        As of `Attribute`.
    labels : sequence of str
        Distinct; integers stand for their text.
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
        given = tuple(_label(label) for label in self.labels) if several else ()
        set_fields(self, labels=given)
        super().__post_init__()
        if not 1 <= len(given) <= MOST_ITEMS or not all(
            isinstance(label, str) and label for label in given
        ):
            raise ValueError(
                f"{printable(self.name)} needs labels, a list of texts, got {shown(list(given))}"
            )
        taken = [*given, *self.extra]
        if len(set(taken)) < len(taken):
            twice = next(label for label in taken if taken.count(label) > 1)
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
        places = (self._places.get(text) for text in texts_of(given))
        return next((place for place in places if place is not None), None)


def _label(value: Any) -> Any:
    """A label as text, if it is a value."""
    return next(iter(texts_of(value)), value) if is_readable(value) else value


def truth_of(value: Any) -> int | None:
    """Return 1 for what is true, or spells it, 0 for what is false; None for anything else."""
    texts = texts_of(value)
    return TRUTHS.get(texts[0].strip().lower()) if texts else None


@dataclass(frozen=True)
class Boolean(Labelled):
    """A boolean attribute, no or yes: true or false, 0 or 1, t or f, y or n, in any case.

    Parameters
    ----------
    name, unit, missing, outside : str
        As of `Attribute`; outside "refuse" or "item".

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


# ------------------------------------------------------------------------------------------------
# Text: short texts that nobody can list, of which the frequent ones are found.


LONGEST = 64  #: Bytes of the longest texts.


@dataclass(frozen=True)
class Text(Attribute):
    """An attribute of short texts, of which the frequent ones are found: see `frequency.heavy`.

    Numbers, truths and dates are taken as labels are written: see `Categorical`.

    Parameters
    ----------
    name, unit : str
        As of `Attribute`.
    bytes : int, default 8
        The longest in UTF-8, 1 to 64. Of more than 8 only `PrefixExtension` finds frequent ones.
    missing : str, default "refuse"
        "refuse", "item", which is the empty text, or "skip": see `Attribute`.
    outside : str, default "refuse"
        Of texts that are too long: "refuse", or "clip", their first characters stand for them.

    Raises
    ------
    ValueError
        Another length, or what `Attribute` refuses.
    """

    bytes: int = 8

    kind: ClassVar[str] = "text"
    policies: ClassVar[tuple[str, ...]] = ("refuse", "clip")

    def __post_init__(self) -> None:
        super().__post_init__()
        what = f"the number of bytes of {printable(self.name)}"
        set_fields(self, bytes=whole(self.bytes, "bytes", 1, LONGEST, what=what))

    @property
    def size(self) -> int:
        return 1 << (8 * self.bytes)

    @property
    def values(self) -> str:
        return f"a text of at most {self.bytes} bytes of UTF-8"

    def coded(self, values: Any) -> Coded:
        column = values if isinstance(values, Column) else Column(self.name, values)
        codes, entries = column.factors()
        written = [next(iter(texts_of(value)), None) for value in entries]
        texts = [None if value is None else self._fitting(value) for value in written]
        for code, text in enumerate(texts):
            if text is None:
                raise self._refusal(column, int(np.argmax(codes == code)), self.values)
        absent = codes < 0
        if self.missing == "refuse" and absent.any():
            raise self._refusal(column, int(np.argmax(absent)), A_VALUE)
        lookup = np.array([*texts, "" if self.missing == "item" else None], dtype=object)
        clipped = np.array(
            [*(value != text for value, text in zip(written, texts, strict=True)), False]
        )
        return Coded(lookup[codes], int(clipped[codes].sum()))

    def _fitting(self, value: str) -> str | None:
        """The text that stands for a text; None if none does."""
        if "\0" in value:
            return None
        try:
            spelt = value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        if len(spelt) <= self.bytes:
            return value
        return spelt[: self.bytes].decode(errors="ignore") if self.outside == "clip" else None

    def asked(self, given: Any) -> Any:
        return given
