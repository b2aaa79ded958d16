"""Attributes: what a column of a table may hold, and the items that stand for its values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from frequency.clients.device import TRUTHS
from frequency.core import bare_tuple
from frequency.exceptions import A_VALUE, InvalidCell, InvalidQuestion
from frequency.schema.column import (
    Column,
    MissingCode,
    MissingCodes,
    is_no_value,
    is_readable,
    texts_of,
)
from mechdesign.base import Between, Floats, Items, listed, printable, set_fields, shown, whole

Missing: TypeAlias = Literal["refuse", "item", "skip"]  #: The fate of a missing value.

#: The fate of a value that the attribute does not have.
Outside: TypeAlias = Literal["refuse", "clip", "item"]

MISSING, OUTSIDE = "missing", "outside"  #: The labels of the items that the policies ``item`` add.

FRACTION = "fraction of the users"  #: The measure of answers, if users reported.
#: The measures of a curator's counts: of users, or of rows where one user has several.
COUNTED = ("users", "rows")

#: The numbers in the place of an item: a missing value, and one outside of the attribute's.
ABSENT, BELOW, ABOVE, UNKNOWN = -1, -2, -3, -4

MOST_ITEMS = 1 << 24  #: The largest number of items of an attribute.


class Coded(NamedTuple):
    """A column as items.

    Attributes
    ----------
    items : numpy.ndarray
        Shape (rows,): int64, -1 for users who do not report; of short text the strings.
    clipped : int
        How many values outside were put into the first or last bin.
    """

    items: npt.NDArray[Any]
    clipped: int


class Span(NamedTuple):
    """A range of an ordered attribute, in bins: its ends may lie within bins.

    0 <= first < last <= bins, where k is the lower edge of bin k; of the shape of the question.
    """

    first: Floats
    last: Floats


@dataclass(frozen=True)
class Attribute(ABC):
    """An attribute that every user is asked: a name, a unit, and the values that there may be.

    Each value stands for one of the items ``0 .. size - 1``.

    Parameters
    ----------
    name : str
        The column's name.
    unit : str, default ""
        Such as "years".
    title : str, default ""
        What it is called in tables and pictures, if the name is not for readers: such as "How
        healthy do you feel?" of a column q12.
    missing : str, default "refuse"
        "refuse": an error. "item": no value is an answer like any other, and hidden like any other.
        "skip": the user does not report, which tells that the value is missing.
    outside : str, default "refuse"
        "refuse": an error. "clip": the first or last bin, which is counted and said; of ordered
        attributes and text alone. "item": an answer of its own.
    missing_codes : sequence of int, float or str, default ()
        What stands for a missing value in a table, besides empty cells: numbers, ranges such as
        "97:99" or ":-1", texts such as "-" or ".a". One of which more is known is a mapping with
        "code", perhaps "label", what it means, and perhaps "missing", the policy for it alone:
        "item" only where that is the policy of the attribute. Devices that ask people have no such
        codes.

    Raises
    ------
    ValueError
        Anything else.
    """

    name: str
    _: KW_ONLY
    unit: str = ""
    title: str = ""
    missing: Missing = "refuse"
    outside: Outside = "refuse"
    missing_codes: Sequence[Any] = ()

    kind: ClassVar[str]  #: The name of its kind in files.
    ordered: ClassVar[bool] = False  #: Whether ranges of its values may be asked for.
    #: The values that ``outside`` may have.
    policies: ClassVar[tuple[str, ...]] = ("refuse", "item")

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f"an attribute's name is text, got {shown(self.name)}")
        for what, text in (("unit", self.unit), ("title", self.title)):
            if not isinstance(text, str):
                raise ValueError(f"the {what} of {printable(self.name)} is text, got {shown(text)}")
        for what, given, known in (
            ("missing", self.missing, get_args(Missing)),
            ("outside", self.outside, self.policies),
        ):
            if given not in known:
                raise ValueError(
                    f"{what} of {printable(self.name)} must be one of {listed(known)}, got"
                    f" {shown(given)}"
                )
        codes = self.missing_codes
        if not isinstance(codes, (list, tuple)):
            raise ValueError(f"missing_codes is a list of codes, got {shown(codes)}")
        try:
            entries = [MissingCode.of(code) for code in codes]
            self._codes  # noqa: B018  what is no code is found here
        except ValueError as error:
            raise ValueError(f"missing_codes of {printable(self.name)}: {error}") from None
        allowed = ("refuse", "skip", *(["item"] if self.missing == "item" else []))
        for each in entries:
            if each.missing not in ("", *allowed):
                raise ValueError(
                    f"missing of the code {shown(each.code)} of {printable(self.name)} must be one"
                    f" of {listed(allowed)}, got {shown(each.missing)}"
                )
        plain = (int, float, str)
        kept = (
            code if isinstance(code, plain) else each
            for code, each in zip(codes, entries, strict=True)
        )
        set_fields(self, missing_codes=tuple(kept))

    @cached_property
    def _codes(self) -> MissingCodes:
        return MissingCodes([MissingCode.of(code).code for code in self.missing_codes])

    @cached_property
    def _fates(self) -> dict[str, MissingCodes]:
        """The codes whose policy is not that of other missing values, by their policies."""
        known = [MissingCode.of(code) for code in self.missing_codes]
        return {
            policy: MissingCodes([each.code for each in known if each.missing == policy])
            for policy in dict.fromkeys(each.missing for each in known)
            if policy not in ("", self.missing)
        }

    @property
    def skips(self) -> bool:
        """Whether users may not report, since a value is missing."""
        return self.missing == "skip" or "skip" in self._fates

    def _by_policy(
        self, given: Column, absent: npt.NDArray[np.bool_]
    ) -> dict[str, npt.NDArray[np.bool_]]:
        """Which missing values of a column each policy is for."""
        fates = {policy: np.zeros(len(absent), dtype=bool) for policy in get_args(Missing)}
        fates[self.missing] = absent
        for policy, codes in self._fates.items():
            rows = given.holding(codes)
            fates = {other: there & ~rows for other, there in fates.items()}
            fates[policy] |= rows
        return fates

    def _given(self, values: Any) -> Column:
        return values if isinstance(values, Column) else Column(self.name, values)

    def _column(self, given: Column) -> Column:
        """Return a column with labels for the codes of a file, and nothing for missing ones."""
        column = given.declared()
        if self.missing_codes:
            column = column.without(self._codes)
        return column.labelled(self._has_label)

    def _has_label(self, text: str) -> bool:
        """Whether a code of a file may stand for this label of it."""
        return False

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of items, those of the policies included."""

    @property
    @abstractmethod
    def values(self) -> str:
        """The values that there may be, in words."""

    @abstractmethod
    def coded(self, values: Any) -> Coded:
        """A column as items.

        Parameters
        ----------
        values : Series or array_like
            Shape (rows,): of pandas, polars, pyarrow or NumPy, or a list.

        Returns
        -------
        Coded
            The items, and how many values were clipped.

        Raises
        ------
        InvalidCell
            The first value that is none of the attribute's, or missing, unless a policy takes it.
        """

    @abstractmethod
    def asked(self, given: Any) -> Any:
        """Return what a question in units and labels asks of the items.

        Parameters
        ----------
        given : object
            A value, an array or a list of values, or of ordered attributes a closed range `Between`
            two ends, which may be None, or a text such as "18:64"; "missing" and "outside" where
            they are items.

        Returns
        -------
        int, list of int, numpy.ndarray or Span
            An item, several of which it may be one, an item for each of many questions, or a range.

        Raises
        ------
        InvalidQuestion
            What is no value of the attribute.
        """

    def _refusal(self, column: Column, row: int, expected: str) -> InvalidCell:
        return InvalidCell(row, self.name, column.value(row), expected)

    # ---------------------------------------------------------------------------------------- files

    def _content(self) -> dict[str, Any]:
        """Return what makes it, beside the name, the unit and the policies: as JSON has it."""
        common = {field.name for field in fields(Attribute)}
        own = [field.name for field in fields(self) if field.name not in common]
        values = {name: getattr(self, name) for name in own}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @property
    def client_values(self) -> dict[str, Any]:
        """The knowledge by which a client turns a value into an item: JSON without floats."""
        policies = {"missing": self.missing, "outside": self.outside}
        return {"name": self.name, "kind": self.kind, **policies, **self._client_content()}

    def _client_content(self) -> dict[str, Any]:
        """Return what else a client must know than name and policies: by default what makes it."""
        return self._content()

    def content(self) -> dict[str, Any]:
        """Return what makes it, as TOML and JSON have it."""
        content = {"name": self.name, "kind": self.kind, **self._content()}
        content |= {what: text for what in ("unit", "title") if (text := getattr(self, what))}
        content |= {"missing": self.missing, "outside": self.outside}
        if self.missing_codes:
            content["missing_codes"] = [
                MissingCode.of(code).content() for code in self.missing_codes
            ]
        return content


class ItemAttribute(Attribute):
    """An attribute whose values are listed: each stands for one of few enough items.

    First those of the values, in order, then one for values outside and one for missing values,
    where the policies say so. In a column the words "outside" and "missing" stand for these two, as
    in questions, so that synthetic rows can be read.
    """

    @property
    @abstractmethod
    def bins(self) -> int:
        """The number of items that stand for values."""

    @property
    def size(self) -> int:
        return self.bins + len(self.extra)

    @property
    def extra(self) -> tuple[str, ...]:
        """The labels of the items after the bins."""
        policies = ((OUTSIDE, self.outside), (MISSING, self.missing))
        return tuple(label for label, policy in policies if policy == "item")

    @property
    def item_labels(self) -> tuple[str, ...]:
        """The labels by which the items are called."""
        return (*(self.label(item) for item in range(self.bins)), *self.extra)

    @abstractmethod
    def label(self, item: int) -> str:
        """Return what an item ``0 .. bins - 1`` is called."""

    def coded(self, values: Any) -> Coded:
        return self._coded(values, self._raw, self.bins)

    def _coded(self, values: Any, raw: Callable[[Column], Items], bins: int) -> Coded:
        """A column as items, of so many by a function, after which those of the policies come."""
        given = self._given(values)
        column = self._column(given)
        items = column.by_category(raw, ABSENT)
        if not len(items) or items.min() >= 0:
            return Coded(items, 0)
        absent, clipped = self._by_policy(given, items == ABSENT), 0
        if absent["refuse"].any():
            raise self._refusal(column, int(np.argmax(absent["refuse"])), A_VALUE)
        outside = items < ABSENT
        if self.outside == "refuse" and outside.any():
            raise self._refusal(column, int(np.argmax(outside)), self.values)
        if self.outside == "clip":
            clipped = int(outside.sum())
            items[items == BELOW] = 0
            items[items == ABOVE] = bins - 1
        else:
            items[outside] = bins
        items[absent["item"]] = bins + len(self.extra) - 1
        return Coded(items, clipped)

    @abstractmethod
    def _raw(self, column: Column) -> Items:
        """Return items, or the negative numbers above, (rows,): a new array."""

    def asked(self, given: Any) -> Any:
        if isinstance(given, (list, set, frozenset)):
            return [self._item(value) for value in given]
        if isinstance(given, np.ndarray) and given.ndim:
            items = [self._item(value) for value in given.ravel().tolist()]
            return np.array(items, dtype=np.int64).reshape(given.shape)
        if isinstance(given, tuple):
            raise bare_tuple(given)
        if isinstance(given, Between):
            raise InvalidQuestion(
                f"{printable(self.name)} has no order: ask for values, not for a range"
            )
        return self._item(given)

    def _item(self, given: Any) -> int:
        if isinstance(given, str) and given in self.extra:
            return self.bins + self.extra.index(given)
        item = self._own_item(given)
        if item is None:
            extra = f", or {listed(self.extra)}" if self.extra else ""
            raise InvalidQuestion(
                f"{printable(self.name)} is {self.values}{extra}, got {shown(given)}"
            )
        return item

    @abstractmethod
    def _own_item(self, given: Any) -> int | None:
        """The item that stands for this value alone; None if there is none."""


# ------------------------------------------------------------------------------------------------
# Categorical and Boolean: attributes whose values have labels and no order.


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
    name, unit, title, missing : str
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
        both = next((label for label in given if label in self._codes), None)
        if both is not None:
            raise ValueError(
                f"{shown(both)} is a label of {printable(self.name)}, and a code of missing values"
            )

    def _has_label(self, text: str) -> bool:
        return text in self._places

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
    return TRUTHS.get(_word(value))


def _word(value: Any) -> str:
    """A value as words for yes and no are compared."""
    return next(iter(texts_of(value)), "").strip().lower()


@dataclass(frozen=True)
class Boolean(Labelled):
    """A boolean attribute, no or yes: true or false, 0 or 1, t or f, y or n, in any case.

    Parameters
    ----------
    name, unit, title, missing, outside : str
        As of `Attribute`; outside "refuse" or "item".
    true, false : sequence of str or int, default ()
        What else means yes, and no, in a table, in any case: such as "ja", or 2 where surveys have
        1 for yes and 2 for no. These come before the usual words.

    Raises
    ------
    ValueError
        Words that are for both, or for a missing value, or what `Attribute` refuses.

    Examples
    --------
    >>> Boolean("smokes").coded([True, False, "yes", 0]).items
    array([1, 0, 1, 0])
    """

    _: KW_ONLY
    true: Sequence[str | int] = ()
    false: Sequence[str | int] = ()

    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, given in (("true", self.true), ("false", self.false)):
            several = isinstance(given, (list, tuple))
            if not several or not all(
                isinstance(each, (str, int)) and _word(each) for each in given
            ):
                raise ValueError(
                    f"{what} of {printable(self.name)} is a list of words, got {shown(given)}"
                )
            set_fields(self, **{what: tuple(given)})
        both = {*map(_word, self.true)}.intersection(map(_word, self.false))
        both |= {_word(each) for each in (*self.true, *self.false) if each in self._codes}
        if both:
            raise ValueError(f"{printable(self.name)}: {shown(min(both))} has two meanings")

    @cached_property
    def _words(self) -> dict[str, int]:
        return {_word(each): item for item, of in enumerate((self.false, self.true)) for each in of}

    def _has_label(self, text: str) -> bool:
        return self._own_item(text) is not None

    def _content(self) -> dict[str, Any]:
        return {name: [*words] for name in ("true", "false") if (words := getattr(self, name))}

    def _client_content(self) -> dict[str, Any]:
        return {}  # devices ask for yes and no

    @property
    def bins(self) -> int:
        return 2

    def label(self, item: int) -> str:
        return ("no", "yes")[item]

    @property
    def values(self) -> str:
        own = [*self.true, *self.false]
        return "yes or no, true or false, 1 or 0" + (f", or {listed(map(str, own))}" if own else "")

    def _own_item(self, given: Any) -> int | None:
        word = _word(given)
        return self._words[word] if word in self._words else TRUTHS.get(word)


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
        given = self._given(values)
        column = self._column(given)
        codes, entries = column.factors()
        written = [next(iter(texts_of(value)), None) for value in entries]
        texts = [None if value is None else self._fitting(value) for value in written]
        for code, text in enumerate(texts):
            if text is None:
                raise self._refusal(column, int(np.argmax(codes == code)), self.values)
        absent = self._by_policy(given, codes < 0)
        if absent["refuse"].any():
            raise self._refusal(column, int(np.argmax(absent["refuse"])), A_VALUE)
        items = np.array([*texts, None], dtype=object)[codes]
        items[absent["item"]] = ""
        clipped = np.array(
            [*(value != text for value, text in zip(written, texts, strict=True)), False]
        )
        return Coded(items, int(clipped[codes].sum()))

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
