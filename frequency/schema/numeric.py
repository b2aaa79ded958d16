"""Numeric: numbers in bins, whole or real."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from frequency.exceptions import InvalidCell, InvalidQuestion
from frequency.schema.attribute import (
    ABOVE,
    ABSENT,
    BELOW,
    MOST_ITEMS,
    Categorical,
    Coded,
    ItemAttribute,
    Span,
)
from frequency.schema.column import Column, NumberForm, TimeForm, number_of, seconds, time_of
from mechdesign.base import Between, Floats, Items, later, printable, set_fields, shown
from mechdesign.base import whole as whole_number

# ------------------------------------------------------------------------------------------------
# Ordered: attributes whose values are put into bins, of which ranges are asked.


class Ordered(ItemAttribute):
    """An attribute with bins between edges, in order.

    Positions are bins and parts of bins: k + t is t of the way through bin k, from 0 to `bins`.
    """

    ordered: ClassVar[bool] = True
    policies: ClassVar[tuple[str, ...]] = ("refuse", "clip", "item")

    @property
    @abstractmethod
    def cuts(self) -> npt.NDArray[Any]:
        """The edges of the bins, ascending, shape (bins + 1,): numbers, or times to the second.

        Bins are closed on the left and open on the right, but the last one is closed.
        """

    @property
    def rounding(self) -> str:
        """What people often round to, in words; "" if nothing is known of that."""
        return ""

    @property
    @abstractmethod
    def single(self) -> bool:
        """Whether each bin is one value, such as a year of age or a day."""

    @abstractmethod
    def _ends(self, given: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return where values begin and end, comparable with `cuts`; else InvalidQuestion."""

    @abstractmethod
    def values_in(self, items: Items, part: Floats) -> npt.NDArray[Any]:
        """The values that are part of the way through bins.

        Parameters
        ----------
        items : numpy.ndarray of int64
            The bins, 0 .. `bins` - 1.
        part : numpy.ndarray of float64
            From 0 to 1.

        Returns
        -------
        numpy.ndarray
            In the attribute's unit: of whole numbers and dates those where that is, in the bin.
        """

    def drawn_in(self, items: Items, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Return values drawn evenly from bins: for synthetic rows.

        Parameters
        ----------
        items : numpy.ndarray of int64
            The bins, 0 .. `bins` - 1: shape (n,).
        rng : numpy.random.Generator
            To draw with.

        Returns
        -------
        numpy.ndarray
            Shape (n,), as of `values_in`.
        """
        return self.values_in(items, rng.random(len(items)))

    @abstractmethod
    def value_text(self, value: Any) -> str:
        """A value as text."""

    def label(self, item: int) -> str:
        first, last = (self.values_in(np.array(item), np.array(part)) for part in (0.0, 1.0))
        ends = (self.value_text(first), self.value_text(last))
        return ends[0] if self.single or ends[0] == ends[1] else " to ".join(ends)

    def _positions(self, values: npt.NDArray[Any]) -> Floats:
        """The positions of values, those outside at the ends."""
        cuts = self.cuts
        inside = np.clip(values, cuts[0], cuts[-1])
        bins = np.minimum(np.searchsorted(cuts, inside, side="right") - 1, self.bins - 1)
        return bins + (inside - cuts[bins]) / (cuts[bins + 1] - cuts[bins])

    def _client_content(self) -> dict[str, Any]:
        return {"cuts": _described(self.cuts)}

    def asked(self, given: Any) -> Any:
        if isinstance(given, Between):
            return self._span(given)
        try:
            return super().asked(given)
        except InvalidQuestion:
            # A value may hold colons as well: only a text that is none is read as a range
            ranges = list(Between.in_text(given)) if isinstance(given, str) else []
            if len(ranges) == 1:
                return self._span(ranges[0])
            for asked in ranges:
                with suppress(InvalidQuestion):
                    return self._span(asked)
            raise

    def _span(self, given: Between) -> Span:
        low, high = given.first, given.last
        ends = [
            self.cuts[:1].reshape(()) if low is None else self._ends(low)[0],
            self.cuts[-1:].reshape(()) if high is None else self._ends(high)[1],
        ]
        try:
            first, last = np.broadcast_arrays(*ends)
        except ValueError:
            raise InvalidQuestion(
                f"the ends of ranges must broadcast, got shapes {ends[0].shape} and {ends[1].shape}"
            ) from None
        span = Span(self._positions(first), self._positions(last))
        bad = (first >= last) | (span.first >= span.last)
        if bad.any():
            point = (first == last).any()  # never of whole numbers and dates, which have a width
            width = ": a single number has no width, unless numbers are whole" if point else ""
            raise InvalidQuestion(
                f"{printable(self.name)} is {self.values}: the range {shown(given)} holds none"
                f"{width}"
            )
        return span

    def _own_item(self, given: Any) -> int | None:
        first, last = self._ends(given)
        if first.ndim or first < self.cuts[0] or last > self.cuts[-1]:
            return None
        start, end = self._positions(first), self._positions(last)
        if start != int(start) or end != start + 1:
            this = f", such as from {shown(given)} to {shown(given)}" if start < end else ""
            raise InvalidQuestion(
                f"{shown(given)} is not a bin of {printable(self.name)}, such as"
                f" {self.label(int(start))}: ask for a range{this}"
            )
        return int(start)


def filled(items: Items, absent: Any, words: Items | None, bins: int) -> Items:
    """The same items, with missing values and the items after the bins that words ask for."""
    items[absent] = ABSENT
    if words is not None:
        items[words >= 0] = bins + words[words >= 0]
    return items


def _described(cuts: npt.NDArray[Any]) -> list[int | str] | dict[str, int]:
    """Return edges without floats: integers, perhaps by their step, and texts of other numbers."""
    if cuts.dtype.kind == "f" and (cuts % 1 != 0).any():
        return [int(cut) if cut % 1 == 0 else repr(cut) for cut in cuts.tolist()]
    whole = cuts.astype(np.int64)
    steps = np.diff(whole)
    if (steps == steps[0]).all():
        return {"first": int(whole[0]), "step": int(steps[0]), "bins": len(steps)}
    return whole.tolist()


#: The largest integer of which the next one is exact, too, as floats and in JSON.
LARGEST = 2.0**53 - 2


# What may part thousands, and begin decimals.
_THOUSANDS, _DECIMAL = ("", ",", ".", " ", "'", "\u00a0", "\u202f"), (".", ",")


@dataclass(frozen=True)
class Numeric(Ordered):
    """An attribute of numbers, put into bins: between given edges, or from ``low`` to ``high``.

    Parameters
    ----------
    name, unit, title, missing : str
        As of `Attribute`.
    edges : sequence of numbers, optional
        Of the bins, ascending, two at least. Of whole numbers the last is the first too large.
    low, high : number, optional
        Instead of edges: the smallest and the largest value.
    bins : int, optional
        How many bins there are from low to high; of whole numbers, which need not be given, the
        default is one for each.
    spacing : str, default "equal"
        "equal" bins, or "logarithmic" ones, of equal ratios, for which low is above 0.
    whole : bool, default False
        True: values are integers, and so are edges. Bins may then be a little unequal.
    thousands, decimal : str, default "" and "."
        How numbers are written in tables of text: "2,161.5" has the thousands "," and the decimal
        "."; "2.161,5" the other way round. Groups of thousands are of three digits.
    heaps : sequence of numbers, default ()
        Numbers to whose multiples people are known to round, such as 5 and 10 of years. It changes
        no item: answers say so, since many people are just at such ends of ranges.
    outside : str, default "refuse"
        "refuse", "clip" or "item": see `Attribute`.

    Raises
    ------
    ValueError
        Edges that do not ascend, bounds and bins that make none, or what `Attribute` refuses.

    Examples
    --------
    >>> Numeric("age", low=0, high=120, whole=True, unit="years").size
    121
    >>> delay = Numeric("delay", [-60, 0, 15, 60, 600], unit="minutes", outside="clip")
    >>> delay.coded([-3.5, 15, 1000]).items, delay.item_labels[1]
    (array([0, 2, 3]), '0 to 15')
    """

    edges: Sequence[float] | None = None
    _: KW_ONLY
    low: float | None = None
    high: float | None = None
    bins: int = 0
    spacing: Literal["equal", "logarithmic"] = "equal"
    whole: bool = False
    thousands: str = ""
    decimal: str = "."
    heaps: Sequence[float] = ()

    kind: ClassVar[str] = "numeric"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.whole, bool) or self.spacing not in ("equal", "logarithmic"):
            raise ValueError(
                f"{printable(self.name)}: whole is True or False, and spacing 'equal' or"
                f" 'logarithmic', got {shown(self.whole)} and {shown(self.spacing)}"
            )
        if self.thousands not in _THOUSANDS or self.decimal not in _DECIMAL:
            raise ValueError(
                f"{printable(self.name)}: thousands are parted by one of {shown(_THOUSANDS)}, and"
                f" decimals begin with one of {shown(_DECIMAL)}, got {shown(self.thousands)} and"
                f" {shown(self.decimal)}"
            )
        if self.thousands == self.decimal:
            raise ValueError(f"{printable(self.name)}: thousands and decimal are the same")
        several = isinstance(self.heaps, (list, tuple))
        heaps = [self._number(heap, "a heap") for heap in (self.heaps if several else [None])]
        if any(heap <= 0 for heap in heaps):
            raise ValueError(
                f"heaps of {printable(self.name)} are numbers above 0, got {shown(heaps)}"
            )
        set_fields(self, heaps=tuple(heaps))
        if (self.edges is None) == (self.low is None or self.high is None):
            raise ValueError(f"{printable(self.name)} needs edges, or low and high, and not both")
        if self.edges is not None:
            self._check_edges(self.edges)
        else:
            self._check_bounds()

    def _check_edges(self, given: Sequence[float]) -> None:
        if any(number is not None for number in (self.low, self.high)) or self.spacing != "equal":
            raise ValueError(f"{printable(self.name)} has edges: bounds and spacing are not needed")
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        edges = tuple(self._number(number, "an edge") for number in given) if several else ()
        if not 2 <= len(edges) <= MOST_ITEMS + 1:
            raise ValueError(
                f"{printable(self.name)} needs 2 to {MOST_ITEMS + 1} edges, and has {len(edges)}"
            )
        for place in range(1, len(edges)):
            if edges[place] <= edges[place - 1]:
                raise ValueError(
                    f"the edges of {printable(self.name)} must ascend, got"
                    f" {edges[place]:.12g} after {edges[place - 1]:.12g}"
                )
        if self.bins not in (0, len(edges) - 1):
            raise ValueError(
                f"{printable(self.name)} has {len(edges) - 1} bins between its edges, not"
                f" {shown(self.bins)}"
            )
        set_fields(self, edges=edges, bins=len(edges) - 1)

    def _check_bounds(self) -> None:
        low, high = self._number(self.low, "low"), self._number(self.high, "high")
        values = int(high - low) + 1 if self.whole else MOST_ITEMS
        if high < low or (high == low and not self.whole):
            raise ValueError(
                f"{printable(self.name)}: low is {low:.12g} and high {high:.12g}, not above it"
            )
        if self.spacing == "logarithmic" and low <= 0:
            raise ValueError(
                f"{printable(self.name)}: bins of equal ratios begin above 0, not at {low:.12g}"
            )
        if not self.whole and self.bins == 0:
            raise ValueError(f"{printable(self.name)}: give bins or edges, or whole = true")
        given = values if self.whole and self.bins == 0 else self.bins
        bins = whole_number(given, "bins", 1, min(values, MOST_ITEMS), what="a number of bins")
        set_fields(self, low=low, high=high, bins=bins)
        if not self._is_wide and not (np.diff(self.cuts) > 0).all():
            raise ValueError(
                f"{printable(self.name)}: {bins} bins from {low:.12g} to {high:.12g} are too narrow"
            )

    def _number(self, given: Any, what: str) -> float:
        number = number_of(given) if not isinstance(given, str) else None
        if number is None or not abs(number) <= LARGEST or (self.whole and number % 1):
            kind = "an integer" if self.whole else "a finite number"
            raise ValueError(f"{what} of {printable(self.name)} must be {kind}, got {shown(given)}")
        return int(number) if self.whole or isinstance(given, int) else number

    @property
    def _is_wide(self) -> bool:
        """Whether bins are so wide that no two edges are rounded to one: then none is computed."""
        assert self.low is not None
        assert self.high is not None
        low, end = float(self.low), float(self.high) + self.whole
        if self.spacing == "logarithmic":
            narrowest = low * math.expm1(math.log(end / low) / self.bins)
            return narrowest > 2 * max(self.whole, 1e-11 * end)
        return self.whole or (end - low) / self.bins > 4 * math.ulp(max(abs(low), abs(end)))

    @cached_property
    def cuts(self) -> npt.NDArray[Any]:
        kind = np.int64 if self.whole else np.float64
        if self.edges is not None:
            return np.array(self.edges, dtype=kind)
        assert self.low is not None
        assert self.high is not None
        step = np.arange(self.bins + 1)
        low, end = self.low, self.high + self.whole  # whole numbers end before the next one
        if self.spacing == "logarithmic":
            # To twelve digits: beyond them the logarithms of machines may differ
            ratios = (math.log(end / low) / self.bins) * step[1:-1]
            inner = [float(f"{low * math.exp(ratio):.12g}") for ratio in ratios.tolist()]
            cuts = np.array([low, *inner, end])
            return np.rint(cuts).astype(np.int64) if self.whole else cuts.astype(np.float64)
        if self.whole:
            return np.int64(low) + step * int(end - low) // self.bins
        # The floats next to the exact edges, as those of a table are next to its decimals
        first, last = Fraction(str(low)), Fraction(str(end))
        bottom = math.lcm(first.denominator, last.denominator) * self.bins
        top, width = int(first * bottom), int((last - first) * bottom) // self.bins
        return np.array([(top + width * k) / bottom for k in range(self.bins + 1)])

    @property
    def rounding(self) -> str:
        heaps = " and ".join(f"{heap:.12g}" for heap in self.heaps)
        return f"multiples of {heaps}" if heaps else ""

    @cached_property
    def single(self) -> bool:
        return self.whole and bool(self.cuts[-1] - self.cuts[0] == self.bins)

    @property
    def values(self) -> str:
        last = self.cuts[-1] - 1 if self.whole else self.cuts[-1]
        what = "an integer" if self.whole else "a number"
        return f"{what} from {self.value_text(self.cuts[0])} to {self.value_text(last)}"

    def value_text(self, value: Any) -> str:
        if self.whole:
            return f"{int(value)}"
        text = f"{float(value):.6g}"
        return f"{float(value):.0f}" if "e+" in text else text

    def _raw(self, column: Column) -> Items:
        return self._placed(column, self._binned, self.bins)

    def _binned(self, numbers: npt.NDArray[Any]) -> Items:
        if self.single:  # and so whole
            return numbers.astype(np.int64) - int(self.cuts[0])
        items = np.searchsorted(self.cuts, numbers, side="right") - 1
        items[items == self.bins] -= 1  # the last bin is closed, but of whole numbers
        return items

    def _placed(
        self, column: Column, items_of: Callable[[npt.NDArray[Any]], Items], bins: int
    ) -> Items:
        """What a function makes of the numbers of a column: so many items, and what is none."""
        form = NumberForm(self.thousands, self.decimal)
        own = None if form == NumberForm() else form.read
        numbers, absent, words = column.numbers(self.extra, own)
        integers = numbers.dtype.kind in "iu"
        # Compared with integers of any width exactly
        low, end = self.cuts[0].item(), self.cuts[-1].item()
        if not integers:
            present = ~absent
            if self.whole:
                broken = (np.floor(numbers) != numbers) | np.isinf(numbers)
                self._refuse_first(broken & present, column, "an integer")
            else:
                self._refuse_first(np.isinf(numbers) & present, column, "a finite number")
        with np.errstate(invalid="ignore"):  # what is no integer of 64 bits is replaced below
            items = items_of(numbers)
        items[numbers >= end if self.whole else numbers > end] = ABOVE
        items[numbers < low] = BELOW
        return filled(items, absent, words, bins)

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The least and the largest value, exactly as they are written."""
        low, end = (Fraction(str(end.item())) for end in (self.cuts[0], self.cuts[-1]))
        return low, end - self.whole

    def in_steps(self, values: Any, step: Fraction) -> Coded:
        """A column as whole steps from the least value, of which the largest is a whole number.

        Parameters
        ----------
        values : Series or array_like
            As for `coded`.
        step : Fraction
            In the attribute's unit, above 0; values are rounded to whole ones.

        Returns
        -------
        Coded
            Numbers of steps, from 0 up to that of the largest value, and after it the items of
            policies.

        Raises
        ------
        InvalidCell
            As for `coded`.
        """
        low, high = self.bounds
        most = math.ceil((high - low) / step)

        def steps(numbers: npt.NDArray[Any]) -> Items:
            if step == 1 and self.whole:
                return numbers.astype(np.int64) - int(low)
            away = (numbers.astype(np.float64) - float(low)) * float(1 / step)
            return np.minimum(np.rint(away), most).astype(np.int64)

        return self._coded(values, lambda column: self._placed(column, steps, most + 1), most + 1)

    def _refuse_first(self, bad: npt.NDArray[np.bool_], column: Column, expected: str) -> None:
        if bad.any():
            row = int(np.argmax(bad))
            raise InvalidCell(row, self.name, column.value(row), expected)

    def _ends(self, given: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        numbers = np.asarray(number_of(given) if np.ndim(given) == 0 else given)
        if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
            raise InvalidQuestion(f"{printable(self.name)} is {self.values}, got {shown(given)}")
        if not self.whole:
            return numbers, numbers
        if (numbers % 1 != 0).any():
            raise InvalidQuestion(f"{printable(self.name)} is {self.values}, got {shown(given)}")
        return numbers, numbers + 1

    def values_in(self, items: Items, part: Floats) -> npt.NDArray[Any]:
        first, last = self.cuts[items], self.cuts[items + 1]
        if self.whole:
            width = last - first
            return first + np.minimum((width * part).astype(np.int64), width - 1)
        return first * (1 - part) + last * part  # both edges exactly

    def drawn_in(self, items: Items, rng: np.random.Generator) -> npt.NDArray[Any]:
        values = super().drawn_in(items, rng)
        # No more decimals than tell a thousand values of a bin apart
        scale = 10.0 ** max(3 - math.floor(math.log10(np.diff(self.cuts).min())), 0)
        if self.whole or scale * np.abs(self.cuts).max() > LARGEST:
            return values
        return np.maximum(np.floor(values * scale) / scale, self.cuts[items])

    def _client_content(self) -> dict[str, Any]:
        return {"whole": self.whole, **super()._client_content()}

    def _content(self) -> dict[str, Any]:
        form: dict[str, Any] = {"thousands": self.thousands} if self.thousands else {}
        form |= {"decimal": self.decimal} if self.decimal != "." else {}
        form |= {"heaps": [*self.heaps]} if self.heaps else {}
        if self.edges is not None:
            return {"edges": list(self.edges), "whole": self.whole, **form}
        bins = {} if self.single else {"bins": self.bins, "spacing": self.spacing}
        return {"low": self.low, "high": self.high, **bins, "whole": self.whole, **form}


# ------------------------------------------------------------------------------------------------
# Ordinal: labels in an order.


@dataclass(frozen=True)
class Ordinal(Categorical, Ordered):
    """A categorical attribute whose labels have an order, such as bands of ages or grades.

    Ranges of labels and quantiles may be asked for. In files it is a categorical attribute with
    ``ordered = true``.

    Parameters
    ----------
    name, unit, title, missing, outside : str
        As of `Categorical`.
    labels : sequence of str
        Distinct, in their order, the least one first.

    Raises
    ------
    ValueError
        What `Categorical` refuses.

    Examples
    --------
    >>> often = Ordinal("reads", ["never", "seldom", "often", "daily"])
    >>> often.coded(["daily", "never"]).items
    array([3, 0])
    >>> often.asked("often:") == often.asked(Between("often", "daily")) == (2, 4)
    True
    """

    ordered: ClassVar[bool] = True
    policies: ClassVar[tuple[str, ...]] = Categorical.policies

    @cached_property
    def cuts(self) -> npt.NDArray[Any]:
        return np.arange(self.bins + 1)

    @property
    def single(self) -> bool:
        return True

    @cached_property
    def _texts(self) -> npt.NDArray[Any]:
        return np.array(self.labels, dtype=object)

    def values_in(self, items: Items, part: Floats) -> npt.NDArray[Any]:
        return np.asarray(self._texts[items], dtype=object)

    def drawn_in(self, items: Items, rng: np.random.Generator) -> npt.NDArray[Any]:
        return self.values_in(items, np.zeros(len(items)))

    def value_text(self, value: Any) -> str:
        return str(value)

    def places(self, labels: npt.ArrayLike) -> Floats:
        """The places of labels in their order, from 0, as numbers."""
        given = np.asarray(labels, dtype=object)
        found = [self._own_item(label) for label in given.ravel().tolist()]
        if None in found:
            wrong = given.ravel()[found.index(None)]
            raise InvalidQuestion(f"{printable(self.name)} is {self.values}, got {shown(wrong)}")
        return np.array(found, dtype=np.float64).reshape(given.shape)

    def _ends(self, given: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        places = self.places(given)
        return places, places + 1

    def _client_content(self) -> dict[str, Any]:
        return super()._content()  # devices need no order

    def _content(self) -> dict[str, Any]:
        return {**super()._content(), "ordered": True}


# ------------------------------------------------------------------------------------------------
# Dates: dates and times in bins of the calendar.


_YEAR = re.compile(r"\d{4}", re.ASCII)

Every = Literal["minute", "hour", "day", "week", "month", "quarter", "year"]

# The unit of NumPy's times, and how many of it a bin has.
_STEPS: dict[str, tuple[str, int]] = {
    "minute": ("m", 1),
    "hour": ("h", 1),
    "day": ("D", 1),
    "week": ("D", 7),
    "month": ("M", 1),
    "quarter": ("M", 3),
    "year": ("Y", 1),
}

# Bins whose values are days; those of the others are times.
_LONG = ("day", "week", "month", "quarter", "year")

# Units of what always has a time, as those of data frames: midnight stands for a day.
_PRECISE = ("ms", "us", "ns")


@dataclass(frozen=True)
class Dates(Ordered):
    """An attribute of dates, or of times without a zone, in bins of the calendar.

    The first bin holds ``first``, the last one the end of ``last``: "2013-10-28" ends with its last
    hour or minute, "2013-10" with its last day. Weeks begin on the weekday of ``first``; quarters
    with its month; months, years, hours and minutes where they begin.

    Parameters
    ----------
    name, unit, title, missing : str
        As of `Attribute`.
    first, last : str, datetime.date or numpy.datetime64
        The first and the last date or time, such as "2013-01-01" or "2013-01-01 05:00".
    every : str, default "day"
        "minute", "hour", "day", "week", "month", "quarter" or "year".
    date_format : sequence of str, default ()
        How they are written in tables of text, as `datetime.datetime.strptime` has it, such as
        "%d.%m.%Y": tried in order, and nothing else is. None: by ISO 8601.
    heaps : sequence of str, default ()
        "month" or "year" where people are known to give its first day: as of `Numeric`.
    zone : str, default ""
        Of the local time that counts, such as "Europe/Berlin": times with a zone are converted to
        it, those without are in it already; those in an hour that it skips are refused.
    outside : str, default "refuse"
        "refuse", "clip" or "item": see `Attribute`.

    Raises
    ------
    ValueError
        What is no date, a last one before the first, too many bins, or what `Attribute` refuses.

    Examples
    --------
    >>> Dates("flown", "2013-01-01", "2013-12-31", "month").coded(["2013-02-28"]).items
    array([1])
    """

    first: str | date
    last: str | date
    every: Every = "day"
    _: KW_ONLY
    date_format: Sequence[str] = ()
    zone: str = ""
    heaps: Sequence[str] = ()

    kind: ClassVar[str] = "dates"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_form()
        if self.every not in get_args(Every):
            raise ValueError(
                f"every of {printable(self.name)} must be one of {', '.join(get_args(Every))}, got"
                f" {shown(self.every)}"
            )
        given = [time_of(time) for time in (self.first, self.last)]
        ends = [time for time in given if time is not None and not np.isnat(time)]
        if len(ends) < 2:
            raise ValueError(
                f"first and last of {printable(self.name)} are dates, such as 2013-01-31, got"
                f" {shown(self.first)} and {shown(self.last)}"
            )
        years = np.array([time.astype("datetime64[Y]") for time in ends]).astype(int) + 1970
        if years.min() < 0 or years.max() > 9999:
            raise ValueError(f"{printable(self.name)}: dates are of the years 0 to 9999")
        first, last = (np.asarray(time) for time in ends)
        first = first.astype(f"datetime64[{self._unit}]")
        # A day is in bins of hours until its end, and a month in those of days
        end = later(later(last, 1).astype(first.dtype), -1)
        last = np.maximum(end, last.astype(first.dtype))
        if last < first:
            raise ValueError(f"{printable(self.name)}: the last date is before the first")
        if self.every == "year":  # which by itself would be a number
            first, last = first.astype("datetime64[M]"), last.astype("datetime64[M]")
        set_fields(self, first=str(first), last=str(last))
        if self._between // self._step >= MOST_ITEMS:
            raise ValueError(f"{printable(self.name)} has more than {MOST_ITEMS} bins")

    def _check_form(self) -> None:
        given = self.heaps
        if not isinstance(given, (list, tuple)) or not {*given} <= {"month", "year"}:
            raise ValueError(
                f"heaps of {printable(self.name)} are month and year, got {shown(given)}"
            )
        set_fields(self, heaps=tuple(given))
        formats = self.date_format
        if not isinstance(formats, (list, tuple)) or not all(map(_tells_days, formats)):
            raise ValueError(
                f"date_format of {printable(self.name)} is a list of formats with a year, a month"
                f' and a day, such as "%d.%m.%Y", got {shown(formats)}'
            )
        set_fields(self, date_format=tuple(formats))
        if self.zone:
            try:
                ZoneInfo(self.zone)
            except (ZoneInfoNotFoundError, ValueError, OSError, TypeError):
                raise ValueError(
                    f"zone of {printable(self.name)} is one of the IANA database, such as"
                    f" Europe/Berlin, got {shown(self.zone)}"
                ) from None

    @property
    def _unit(self) -> Any:
        return _STEPS[self.every][0]

    @property
    def _step(self) -> int:
        return _STEPS[self.every][1]

    @property
    def _own_ends(self) -> npt.NDArray[np.datetime64]:
        return np.array([self.first, self.last], dtype=f"datetime64[{self._unit}]")

    @property
    def _between(self) -> int:
        """Return how many of its unit are between the ends."""
        first, last = self._own_ends.astype(np.int64).tolist()
        return int(last - first)

    @cached_property
    def _edges(self) -> npt.NDArray[np.datetime64]:
        """The edges, in their own unit."""
        steps = np.arange(self._between // self._step + 2)
        return later(self._own_ends[0], self._step * steps)

    @cached_property
    def cuts(self) -> npt.NDArray[np.datetime64]:
        return self._edges.astype("datetime64[s]")

    @property
    def bins(self) -> int:
        return len(self._edges) - 1

    @property
    def rounding(self) -> str:
        return " and ".join(f"the first of a {heap}" for heap in self.heaps)

    @property
    def single(self) -> bool:
        return self.every == "day"

    @property
    def values(self) -> str:
        what = "a date" if self.every in _LONG else "a time"
        last = self.value_text(self.cuts[-1] - np.timedelta64(1, "s"))
        return f"{what} from {self.value_text(self.cuts[0])} to {last}"

    def value_text(self, value: Any) -> str:
        return str(np.datetime64(value, "D" if self.every in _LONG else "m"))

    def _content(self) -> dict[str, Any]:
        content = super()._content()
        for name in ("date_format", "zone", "heaps"):
            if not content[name]:
                del content[name]
        return content

    def label(self, item: int) -> str:
        if self.every in ("minute", "hour", "month", "year"):
            return str(self._edges[item])
        return super().label(item)

    def _raw(self, column: Column) -> Items:
        form = TimeForm(tuple(self.date_format), self.zone)
        times, absent, words = column.times(self.extra, None if form == TimeForm() else form.read)
        items = np.searchsorted(self.cuts, times, side="right") - 1
        above, below = items >= self.bins, items < 0
        items[above] = ABOVE
        items[below] = BELOW
        return filled(items, absent, words, self.bins)

    def _ends(self, given: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if isinstance(given, np.ndarray) and given.ndim:
            times = given
        else:
            is_year = isinstance(given, str) and _YEAR.fullmatch(given)
            times = np.asarray(np.datetime64(given) if is_year else time_of(given))
        if times.dtype.kind != "M" or np.isnat(times).any():
            raise InvalidQuestion(f"{printable(self.name)} is {self.values}, got {shown(given)}")
        start = seconds(times)
        # A day, or a month, ends where the next one begins
        end = np.maximum(seconds(later(times, 1)), later(start, 1))
        if self.every in _LONG and np.datetime_data(times.dtype)[0] in _PRECISE:
            day = times.astype("datetime64[D]")
            end = np.where(times == day, later(day, 1).astype("datetime64[s]"), end)
        return start, end

    def values_in(self, items: Items, part: Floats) -> npt.NDArray[Any]:
        length = (self.cuts[items + 1] - self.cuts[items]).astype(np.int64)
        within = np.minimum((length * part).astype(np.int64), length - 1)
        times = self.cuts[items] + within.astype("timedelta64[s]")
        return times.astype("datetime64[D]") if self.every in _LONG else times


def _tells_days(form: Any) -> bool:
    """Whether a text is a format of `strptime` with a year, a month and a day."""
    day = datetime(2013, 12, 31, tzinfo=UTC)
    # Python from 3.13 on warns of a day without a year
    if not isinstance(form, str) or not {*re.findall("%(.)", form)} & {*"YyGcxDF"}:
        return False
    try:
        return datetime.strptime(day.strftime(form), form).date() == day.date()
    except ValueError:
        return False
