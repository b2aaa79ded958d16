"""Drafts of schemas, from tables that somebody declares public."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from frequency.exceptions import InvalidCell, UnknownColumn
from frequency.schema.attribute import (
    LONGEST,
    MISSING,
    Attribute,
    Boolean,
    Categorical,
    Text,
    truth_of,
)
from frequency.schema.column import (
    Column,
    MissingCode,
    MissingCodes,
    NumberForm,
    TimeForm,
    is_no_value,
    notes_in,
    number_of,
    texts_of,
    time_of,
)
from frequency.schema.domain import MOST_ATTRIBUTES
from frequency.schema.numeric import LARGEST, Dates, Every, Numeric, Ordinal
from frequency.schema.schema import Schema
from mechdesign.base import Items, listed, shown
from mechdesign.exceptions import InvalidTable

_MOST_LABELS = 1 << 8  # A column of more different texts is one of short texts, or is left out

_MOST_BINS = 100  # bins of real numbers, and of integers that would have more than `_MOST_INTEGERS`

_MOST_INTEGERS = 1 << 11

_FEW, _ENOUGH = 20, 1 << 16  #: Fewer rows may differ by chance; more do not, if so many differ.

# How numbers and dates are written that are not as computers write them: the first forms first.
_NUMBER_FORMS = [NumberForm(thousands, ".") for thousands in (",", "'", " ")]
_NUMBER_FORMS += [NumberForm(thousands, ",") for thousands in ("", ".", " ")]
_DATE_FORMS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%m-%d-%Y", "%d-%m-%Y", "%Y%m%d")

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)

# The units in which times within so many days are told apart; dates not below days.
_DAYS: tuple[tuple[Every, float], ...] = (
    ("minute", 1 / 24),
    ("hour", 31),
    ("day", 3 * 366),
    ("week", 10 * 366),
    ("month", 100 * 366),
)


# Numbers that surveys use for missing values, below a scale and above it. So many numbers at either
# end are looked at. Codes are taken for such if they are as far from all others, at least three, as
# this part of the scale.
_LOW_CODES = {*range(-9, 0), *(-66, -77, -88, -99), *range(-999, -995), *range(-9999, -9995)}
_HIGH_CODES = [
    *(66, 77, 88, 97, 98, 99, 666, 777, 888, 997, 998, 999, 6666, 7777, 8888),
    *(9997, 9998, 9999, 99997, 99998, 99999, 999997, 999998, 999999),
]
_ENDS, _APART, _APART_AT_LEAST, _OTHERS = 12, 0.25, 5, 3

# What people round to. In a range of so many heaps, so many rows and such a share of them at heaps
# ask for it: without rounding it were a fifth at most.
_HEAPS, _HEAPS_IN_RANGE, _ROWS_OF_HEAPS, _COMMON = (1000, 100, 10, 5), 6, 100, 0.4

_SHOWN = 8  # values that a doubt names

_NAMES = {f".{letter}" for letter in f"_{ascii_letters}"}  # of missing values, in Stata and SAS

_LEAST_NEAR = 97  # codes near other numbers are asked about from it on


class Draft(NamedTuple):
    """A schema to look through and change.

    Attributes
    ----------
    schema : Schema
        What the columns seem to be.
    left_out : dict of str to str
        Why there is no attribute for some of the columns.
    doubts : dict of str to str
        What is to be looked at in some of the columns that have one.
    """

    schema: Schema
    left_out: dict[str, str]
    doubts: dict[str, str]


def draft_schema(tables: Iterable[Any], source: str) -> Draft:
    """A schema that fits a table which is public.

    It tells what is in the table: the labels that occur, the least and the largest numbers. It is
    not for private data, of which a schema must be written by hand.

    Parameters
    ----------
    tables : iterable of DataFrame
        The rows, some at a time: of a library that narwhals reads.
    source : str
        What the table is, for the schema to say.

    Returns
    -------
    Draft
        It takes every value of the table. Integers have a bin each where there are few, real
        numbers about a hundred bins between round edges, dates and times some hundreds. Missing
        values are an item where there are some; numbers and dates outside are clipped, other
        labels refused.

    Raises
    ------
    InvalidTable
        No column that a schema can hold.

    Examples
    --------
    >>> import pandas as pd
    >>> public = pd.DataFrame({"species": ["Adelie", "Gentoo", None], "mass": [3750.5, 5000, 4000]})
    >>> print(draft_schema([public], "three penguins").schema)
    name     kind         items  values                      unit  missing  outside
    species  categorical  3      one of Adelie, Gentoo             item     refuse
    mass     numeric      64     a number from 3740 to 5020        refuse   clip
    drafted from three penguins
    """
    import narwhals as nw

    seen: dict[str, _Seen] = {}
    for table in tables:
        frame = nw.from_native(table, eager_only=True)
        for name in frame.columns:
            there = seen.setdefault(name, _Seen())
            there.learn(notes_in(table, name))
            if nw.is_ordered_categorical(frame[name]):
                there.order = _categories(name, frame[name])
            there.add(name, frame[name])
    drafts = {name: each.attribute(name) for name, each in seen.items()}
    attributes = [each for each in drafts.values() if isinstance(each, Attribute)]
    left_out = {name: each for name, each in drafts.items() if isinstance(each, str)}
    if not attributes:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise InvalidTable(f"there is no column of which a schema can be drafted. {why}")
    for each in attributes[MOST_ATTRIBUTES:]:
        left_out[each.name] = (
            f"a schema has at most {MOST_ATTRIBUTES} attributes: say which are wanted"
        )
    attributes = attributes[:MOST_ATTRIBUTES]
    doubts = {name: seen[name].doubt for name in drafts if name not in left_out}
    return Draft(Schema(attributes, source), left_out, {k: v for k, v in doubts.items() if v})


@dataclass
class _Seen:
    """The summary of what has been seen of a column."""

    title: str = ""  #: of the column, as the file says
    codes: list[Any] = field(default_factory=list)  #: of missing values, as the file says
    #: Those of the codes that are texts and are there.
    named: set[Any] = field(default_factory=set)
    labels: dict[Any, str] = field(default_factory=dict)  #: of codes, as the file says
    #: The labels in their order, as the file says or the table's type of the column; None: no order
    order: list[str] | None = None
    #: The least numbers, and the largest, ascending: different ones.
    lowest: list[float] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)
    missing: bool = False
    texts: set[str] | None = field(default_factory=set)  #: None: too many to be labels.
    longest: int = 0  #: The length in bytes; of what `Text` does not take a lot.
    unread: str = ""  #: The reason why the column cannot be read, if it cannot.
    numbers: bool = True
    whole: bool = True
    truths: bool = True
    times: bool = True
    clock: bool = False  #: Whether some times are not midnight.
    #: The forms in which all values are numbers or dates, with the least and the largest.
    forms: dict[Any, tuple[Any, Any]] = field(
        default_factory=lambda: dict.fromkeys([*_NUMBER_FORMS, *_DATE_FORMS], (None, None))
    )
    #: The values, as long as each row has another one and they are not enough; else None.
    distinct: set[str] | None = field(default_factory=set)
    least: Any = None
    most: Any = None
    rows: int = 0  #: with a number other than 0
    heaped: dict[int, int] = field(default_factory=dict)  #: how many of them are multiples

    def learn(self, notes: dict[str, Any]) -> None:
        """Take what a file says of the column."""
        self.codes += [code for code in notes.get("missing", ()) if code not in self.codes]
        self.labels |= map(tuple, notes.get("labels", ()))
        self.title = notes.get("title", "")
        if notes.get("ordered"):
            missing = MissingCodes(notes.get("missing", ()))
            codes = sorted(
                (code for code in self.labels if code not in missing), key=_place_of_code
            )
            self.order = [self.labels[code] for code in codes]

    def add(self, name: str, values: Any) -> None:
        """Add more of the column."""
        if self.unread:
            return
        try:
            notes = {"labels": [*self.labels.items()], "missing": self.codes}
            column = Column(name, values, notes)
            if self.codes:
                if any(isinstance(code, str) for code in self.codes):
                    self.named |= {*self.codes}.intersection(map(_written, column.factors().values))
                column = column.declared()
            codes, values_of_codes = column.labelled(lambda label: True).factors()
        except InvalidCell as error:
            self.unread = f"{shown(error.value)} is not {error.expected}"
        except UnknownColumn as error:
            self.unread = str(error)
        else:
            self._see(codes, values_of_codes)

    def _see(self, codes: Items, values: list[Any]) -> None:
        present = [each for each in values if not is_no_value(each)]
        self.missing = self.missing or len(present) < len(values) or bool((codes < 0).any())
        if self.distinct is not None and len(self.distinct) < _ENOUGH:
            fresh = {_written(each) for each in present}
            once = len(fresh) == int((codes >= 0).sum()) and self.distinct.isdisjoint(fresh)
            self.distinct = self.distinct | fresh if once else None
        for value in present:
            self._add(value)
        if self.numbers and not self.unread:
            self._find_heaps(codes, values)

    def _find_heaps(self, codes: Items, values: list[Any]) -> None:
        """Count the rows whose numbers are multiples of what people round to; 0 is exact."""
        many = np.bincount(codes[codes >= 0], minlength=len(values))
        numbers = np.array([number_of(value) or 0.0 for value in values])
        self.rows += int(many[numbers != 0].sum())
        for heap in _HEAPS:
            there = int(many[(numbers % heap == 0) & (numbers != 0)].sum())
            self.heaped[heap] = self.heaped.get(heap, 0) + there

    def _add(self, value: Any) -> None:
        self.truths = self.truths and truth_of(value) is not None
        if not isinstance(value, str):
            self.forms.clear()
        for form, (least, most) in list(self.forms.items()):
            read = form.read(value) if isinstance(form, NumberForm) else _as_date(value, form)
            if read is None:
                del self.forms[form]
            else:
                self.forms[form] = (
                    (read, read) if least is None else (min(least, read), max(most, read))
                )
        text = _written(value)
        encoded = text.encode(errors="replace")
        taken = "\0" not in text and encoded == text.encode(errors="surrogatepass")
        self.longest = max(self.longest, len(encoded) if taken else LONGEST + 1)
        if self.texts is not None:
            self.texts.add(text)
            if len(self.texts) > _MOST_LABELS:
                self.texts = None
        number = number_of(value) if self.numbers else None
        self.numbers = number is not None
        if number is not None and not math.isfinite(number):
            self.unread = f"{shown(value)} is not a finite number"
        elif number is not None:
            self.times = False
            self.whole = self.whole and number.is_integer()
            self._between(number)
            self.lowest = sorted({*self.lowest, number})[:_ENDS]
            self.highest = sorted({*self.highest, number})[-_ENDS:]
            return
        time = time_of(value) if self.times else None
        self.times = time is not None
        if time is not None:
            day, second = time.astype("datetime64[D]"), time.astype("datetime64[s]")
            self.clock = self.clock or second != day
            self._between(second)

    def _between(self, value: Any) -> None:
        self.least = value if self.least is None else min(self.least, value)
        self.most = value if self.most is None else max(self.most, value)

    @property
    def doubt(self) -> str:
        """The reason why the attribute is doubtful; or nothing."""
        if not self.numbers and (form := self._number_form):
            thousands = f'"{form.thousands}" parts thousands, ' if form.thousands else ""
            return f'numbers? {thousands}"{form.decimal}" begins decimals'
        if not self.numbers and not self.times and (dates := self._date_forms):
            if len(dates) == 1:
                return f"dates as {dates[0]}?"
            return f"dates: as {' or as '.join(dates)}? Say which by date_format"
        if self.numbers and (taken := self._suspected()):
            codes = listed([f"{code:g}" for code in taken])
            return f"{codes}: codes of missing values? If not, delete them from missing_codes"
        if self.numbers and (near := self._near()):
            return f"{listed([f'{code:g}' for code in near])}: are these codes of missing values?"
        if self.numbers and self.whole and (heap := self._heap()):
            share = 100 * self.heaped[heap] / self.rows
            return f"{share:.0f} % are multiples of {heap}: do people round? heaps = [{heap}]"
        if twice := [label for label in self.texts or () if self._codes_of(label) > 1]:
            return f"several codes have the label {shown(min(twice))}: they are one label here"
        if self.labels and not self.numbers and (bare := self._unlabelled()):
            more = f" and {len(bare) - _SHOWN} others" if len(bare) > _SHOWN else ""
            return f"{listed(bare[:_SHOWN])}{more}: values without a label keep their number"
        if self._is_ordinal:
            return f"in the order {listed(self.order or [])}? If there is none, delete ordered"
        exact = self.whole if self.numbers else not self.times
        if exact and self.distinct is not None and len(self.distinct) >= _FEW:
            return "every row has another value: an identifier? Leave it out"
        return ""

    def _unlabelled(self) -> list[str]:
        """The values that have no label, where others have."""
        bare = (self.texts or set()).difference(self.labels.values())
        return sorted((text for text in bare if number_of(text) is not None), key=_place_of_code)

    def _codes_of(self, label: str) -> int:
        """How many codes have a label, as the file says."""
        return sum(known == label for known in self.labels.values())

    def _heap(self) -> int | None:
        """The largest number of which multiples are common enough among many others."""
        codes = self._suspected()
        values = [number for number in self.lowest + self.highest if number not in codes]
        spread = max(values) - min(values) if values else 0
        return next(
            (
                heap
                for heap in _HEAPS
                if spread >= _HEAPS_IN_RANGE * heap
                and self.rows >= _ROWS_OF_HEAPS
                and _COMMON <= self.heaped[heap] / self.rows < 1
            ),
            None,
        )

    @property
    def _is_ordinal(self) -> bool:
        labels = (self.texts or set()) - {MISSING}
        return self.order is not None and labels.issubset(self.order) and not self.truths

    @property
    def _number_form(self) -> NumberForm | None:
        return next((form for form in self.forms if isinstance(form, NumberForm)), None)

    @property
    def _date_forms(self) -> list[str]:
        return [form for form in self.forms if isinstance(form, str)]

    def _suspected(self) -> list[float]:
        """Numbers at the ends, far from all others, that surveys use for missing values."""
        if not self.whole or self.least == self.most:
            return []
        below = [number for number in self.lowest if number in _LOW_CODES]
        rest = [number for number in self.lowest if number not in below]
        # Below a scale that begins at 0 or above
        taken = below if len(rest) >= _OTHERS and rest[0] >= 0 else []
        first = rest[0] if rest else self.most
        above: list[float] = []
        for number in reversed(self.highest):
            if number not in _HIGH_CODES or number in taken:
                break
            above.insert(0, number)
        others = [number for number in self.highest if number < above[0]] if above else []
        if len(others) >= _OTHERS and above[0] - others[-1] >= max(
            _APART * (others[-1] - first), _APART_AT_LEAST
        ):
            taken = taken + above
        return taken

    def _near(self) -> list[float]:
        """Numbers at the upper end that may be codes, though others are near."""
        if not self.whole or len(self.highest) < _ENDS:
            return []
        return [each for each in self.highest[-3:] if each in _HIGH_CODES and each >= _LEAST_NEAR]

    def attribute(self, name: str) -> Attribute | str:
        """Return the attribute that the column seems to be; or why it is left out."""
        if self.unread:
            return self.unread
        if not name.strip():
            return "it has no name, as row numbers that R and pandas write"
        if self.texts is not None and not self.texts - {MISSING}:
            return "it has no values"
        try:
            return self._attribute(name)
        except (ArithmeticError, ValueError) as error:  # such as numbers beyond 2^53
            return str(error)

    def _attribute(self, name: str) -> Attribute | str:
        # Names of missing values are many, and few are there
        codes = [code for code in self.codes if code not in _NAMES or code in self.named]
        if self.numbers:
            codes += [int(code) for code in self._suspected()]
        policy: dict[str, Any] = {"missing": "item" if self.missing or codes else "refuse"}
        policy["missing_codes"] = [self._labelled(code) for code in codes]
        policy["title"] = self.title
        if self.truths:
            return Boolean(name, **policy)
        if self.numbers:
            return self._numeric(name, policy)
        if self.times:
            return self._dates(name, policy)
        if self.least is None and (form := self._number_form):
            self.least, self.most = self.forms[form]
            self.whole = False
            return self._numeric(name, {**policy, **form._asdict()})
        if self.least is None and len(self._date_forms) == 1:
            (dates,) = self._date_forms
            self.least, self.most = self.forms[dates]
            return self._dates(name, {**policy, "date_format": [dates]})
        if self.texts is not None:
            labels = self.texts - ({MISSING} if policy["missing"] == "item" else set())
            if self._is_ordinal:
                return Ordinal(name, self.order or [], **policy)
            # In the order of their codes, where the file has some; a number stands for itself
            codes_of = {label: code for code, label in self.labels.items()}
            key = _place_of_code if codes_of else str
            ordered = sorted(labels, key=lambda label: key(codes_of.get(label, label)))
            return Categorical(name, ordered, **policy)
        if self.longest <= LONGEST:
            return Text(name, self.longest, **policy)
        return f"it has more than {_MOST_LABELS} texts, not all of them of at most {LONGEST} bytes"

    def _labelled(self, code: Any) -> Any:
        """A code of missing values, with its label if the file has one."""
        label = self.labels.get(code, "")
        return MissingCode(code, label) if label else code

    def _numeric(self, name: str, policy: dict[str, Any]) -> Attribute:
        codes = self._suspected()
        low = float(min((n for n in self.lowest if n not in codes), default=self.least))
        high = float(max((n for n in self.highest if n not in codes), default=self.most))
        if max(-low, high) > LARGEST:
            raise ValueError(f"it has numbers beyond 2^53, such as {max(low, high, key=abs):.6g}")
        if self.whole and high - low < _MOST_INTEGERS:
            return Numeric(name, low=int(low), high=int(high), whole=True, outside="clip", **policy)
        if low == high:
            low, high = low - 0.5, high + 0.5
        rough = (high - low) / _MOST_BINS
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(nice * unit for nice in _NICE if nice * unit >= rough * (1 - 1e-9))
        step = max(step, 1.0) if self.whole else step
        first, last = math.floor(low / step), math.floor(high / step) + 1
        low, high = (float(f"{end * step:.12g}") for end in (first, last))
        if self.whole:
            high -= 1
        return Numeric(
            name,
            low=low,
            high=high,
            bins=last - first,
            whole=self.whole,
            outside="clip",
            **policy,
        )

    def _dates(self, name: str, policy: dict[str, Any]) -> Attribute:
        days = float((self.most - self.least) / np.timedelta64(1, "D"))
        choices = [(every, most) for every, most in _DAYS if self.clock or most > 31]
        every: Every = next((every for every, most in choices if days < most), "year")
        first, last = str(self.least), str(self.most)
        return Dates(name, first, last, every, outside="clip", **policy)


def _as_date(text: str, form: str) -> np.datetime64 | None:
    time = TimeForm((form,)).read(text)
    return None if time is None else time.astype("datetime64[s]")


def _categories(name: str, series: Any) -> list[str]:
    """The labels of a column of ordered categories, in their order."""
    known = getattr(series.dtype, "categories", None)
    return [*map(_written, Column(name, series.to_native()).categories if known is None else known)]


def _place_of_code(code: Any) -> tuple[float, str]:
    """The place of a code among others: numbers by size."""
    number = number_of(code)
    return (math.inf if number is None else number, str(code))


def _written(value: Any) -> str:
    """A value as a label has it; of a number that no label spells another text."""
    return next(iter(texts_of(value)), repr(value))
