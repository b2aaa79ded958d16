"""Dates: dates and times in bins of the calendar."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from frequency.exceptions import InvalidQuestion
from frequency.schema.attribute import ABOVE, BELOW, MOST_ITEMS
from frequency.schema.column import Column, seconds, time_of
from frequency.schema.numeric import Ordered, filled
from mechdesign.base import Floats, Items, printable, set_fields, shown

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
    name, unit, missing : str
        As of `Attribute`.
    first, last : str, datetime.date or numpy.datetime64
        The first and the last date or time, such as "2013-01-01" or "2013-01-01 05:00".
    every : str, default "day"
        "minute", "hour", "day", "week", "month", "quarter" or "year".
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

    kind: ClassVar[str] = "dates"

    def __post_init__(self) -> None:
        super().__post_init__()
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
        last = np.maximum((last + 1).astype(first.dtype) - 1, last.astype(first.dtype))
        if last < first:
            raise ValueError(f"{printable(self.name)}: the last date is before the first")
        if self.every == "year":  # which by itself would be a number
            first, last = first.astype("datetime64[M]"), last.astype("datetime64[M]")
        set_fields(self, first=str(first), last=str(last))
        if self._between // self._step >= MOST_ITEMS:
            raise ValueError(f"{printable(self.name)} has more than {MOST_ITEMS} bins")

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
        edges: npt.NDArray[np.datetime64] = self._own_ends[0] + self._step * steps
        return edges

    @cached_property
    def cuts(self) -> npt.NDArray[np.datetime64]:
        return self._edges.astype("datetime64[s]")

    @property
    def bins(self) -> int:
        return len(self._edges) - 1

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

    def label(self, item: int) -> str:
        if self.every in ("minute", "hour", "month", "year"):
            return str(self._edges[item])
        return super().label(item)

    def _raw(self, column: Column) -> Items:
        times, absent, words = column.times(self.extra)
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
        end = np.maximum(seconds(times + 1), start + 1)
        if self.every in _LONG and np.datetime_data(times.dtype)[0] in _PRECISE:
            day = times.astype("datetime64[D]")
            end = np.where(times == day, (day + 1).astype("datetime64[s]"), end)
        return start, end

    def values_in(self, items: Items, part: Floats) -> npt.NDArray[Any]:
        length = (self.cuts[items + 1] - self.cuts[items]).astype(np.int64)
        within = np.minimum((length * part).astype(np.int64), length - 1)
        times = self.cuts[items] + within.astype("timedelta64[s]")
        return times.astype("datetime64[D]") if self.every in _LONG else times

    def _content(self) -> dict[str, Any]:
        return {"first": str(self.first), "last": str(self.last), "every": self.every}
