"""PerturbationTable: the noise of each count at each cell key, exact, and the files that hold it.

Three forms of files are read, told apart by the names of their columns:

- ``pcv, ckey, pvalue``, that of cell_key_perturbation (Office for National Statistics): a line for
  each count and key. Counts are 1 .. 750; above, those of 501 .. 750 are used again. A cell of
  nobody has key 0 and stays 0. Of rows that are the same up to the last, the first is kept.
- ``i; j; p; v; p_int_ub``, which the R package ptable writes for tau-Argus: an output j = i + v of
  count i for the keys, in [0, 1), up to ``p_int_ub``. The last count stands for all above.
- the same with ``p_int_lb`` besides, which ptable writes for SAS.

For one cell such a table is a mechanism, Pr[output | count], since the key of a cell that holds a
record with an unknown key is uniformly distributed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base import (
    CsvRows,
    Integers,
    brief,
    checked_counts,
    exact,
    is_whole,
    opened_csv,
    set_fields,
    shown,
    whole,
    write_csv,
)
from mechdesign.exceptions import InexactNumber, InvalidMechanism, InvalidTable

#: The forms of files that are written.
#:
#: "ons" is that of cell_key_perturbation, "tau-argus" and "sas" are those of ptable.
FileForm: TypeAlias = Literal["ons", "tau-argus", "sas"]

#: Consecutive keys with the same noise: how many keys, and the noise.
Run: TypeAlias = tuple[int, int]

LARGEST_NOISE = 10_000  #: The largest size of a noise.

MOST_KEYS = 1 << 16  #: The most keys that are listed one by one: in files of ONS, and for sums.

# Of cell_key_perturbation: the largest count with rows of its own, and how many rows are used again
_LISTED, _AGAIN = 750, 250

_ONS = ("pcv", "ckey", "pvalue")
_PTABLE = ("i", "j", "p", "v", "p_int_ub")

# How far the probability of a line of ptable may be from the width of its interval: both are
# printed with eight digits. The interval is what the tools apply.
_PRINTED = Fraction(1, 10**6)

_WHOLE = re.compile(r"\s*(-?[0-9]{1,9})\s*", re.ASCII)


@dataclass(frozen=True, repr=False)
class PerturbationTable:
    """A perturbation table: what is added to a count, by the count and the key of its cell.

    Counts above the largest use the last ``period`` rows again, in turn. Immutable; equal when the
    numbers are equal, key by key.

    Parameters
    ----------
    keys : int
        The number of cell keys, at least 1. Keys are the integers 0 .. keys - 1, added modulo
        ``keys``; of files of ptable, whose keys are numbers in [0, 1), units of the last decimal.
    rows : sequence of sequence of (int, int)
        For the counts 0, 1, 2, ... in turn: runs (number of keys, noise) in the order of the keys,
        whose numbers of keys add up to ``keys``.
    period : int, default 1
        How many of the last rows are used again, 1 to the number of rows.

    Raises
    ------
    InvalidMechanism
        Rows that do not cover the keys, a noise above `LARGEST_NOISE`, or an output below 0.

    Examples
    --------
    >>> table = PerturbationTable(4, [[(4, 0)], [(1, -1), (2, 0), (1, 1)]])
    >>> table.law(1)
    {-1: 1, 0: 2, 1: 1}
    >>> table.bias(7), table.variance(7)
    (Fraction(0, 1), Fraction(1, 2))
    """

    keys: int
    rows: tuple[tuple[Run, ...], ...]
    period: int = 1

    def __post_init__(self) -> None:
        refusal = InvalidMechanism
        keys = whole(self.keys, "the number of keys", 1, error=refusal)
        rows = tuple(tuple(_joined(row)) for row in self.rows)
        if not rows:
            raise refusal("a perturbation table needs a row at least, for count 0")
        period = whole(self.period, "the period", 1, len(rows), error=refusal)
        for count, row in enumerate(rows):
            total = sum(width for width, _ in row)
            if total != keys:
                raise refusal(f"the row of count {count} is for {total} keys, there are {keys}")
            for _, noise in row:
                if abs(noise) > LARGEST_NOISE:
                    raise refusal(f"count {count}: a noise of {noise}, beyond {LARGEST_NOISE}")
                if count + noise < 0:
                    raise refusal(f"count {count} with noise {noise} makes {count + noise}")
        # In a later turn counts are larger, so that no output is below 0 there either.
        set_fields(self, keys=keys, rows=rows, period=period)

    @classmethod
    def of_noise(cls, noise: npt.ArrayLike, period: int = 1) -> Self:
        """Return the table of a noise for each count and key.

        Parameters
        ----------
        noise : array_like of int
            Shape (counts, keys): ``noise[count, key]``, for the counts from 0 on.
        period : int, default 1
            As of the class.

        Returns
        -------
        PerturbationTable

        Raises
        ------
        InvalidMechanism
            An array that is none of integers with two axes, or no table.
        """
        array = np.asarray(noise)
        if array.ndim != 2 or array.dtype.kind not in "iu":
            raise InvalidMechanism(
                f"noise is an array of integers of shape (counts, keys), got {array.dtype} of shape"
                f" {array.shape}"
            )
        return cls(array.shape[1], [[(1, v) for v in row] for row in array.tolist()], period)  # type: ignore[arg-type]

    @classmethod
    def of_laws(cls, keys: int, laws: Iterable[Mapping[int, int]], period: int = 1) -> Self:
        """Return a table in which the noise rises with the key.

        Parameters
        ----------
        keys : int
            The number of keys.
        laws : iterable of mapping of int to int
            For each count from 0 on: noise -> number of keys that have it.
        period : int, default 1
            As of the class.

        Returns
        -------
        PerturbationTable

        Raises
        ------
        InvalidMechanism
            As the class does.
        """
        rows = tuple(tuple((law[noise], noise) for noise in sorted(law)) for law in laws)
        return cls(keys, rows, period)

    @property
    def largest(self) -> int:
        """The largest count with a row of its own."""
        return len(self.rows) - 1

    @property
    def largest_noise(self) -> int:
        """The largest size of a noise."""
        return max(abs(noise) for row in self.rows for _, noise in row)

    def place(self, count: int) -> int:
        """Return the row of a count of at least 0: the count itself, up to the largest."""
        beyond = whole(count, "a count") - len(self.rows)
        return count if beyond < 0 else len(self.rows) - self.period + beyond % self.period

    def law(self, count: int) -> dict[int, int]:
        """Return how many keys have each noise, by the noise in rising order.

        Divided by ``keys`` these are the probabilities of the noise.
        """
        return dict(self._laws[self.place(count)])

    @cached_property
    def _laws(self) -> tuple[dict[int, int], ...]:
        known: dict[tuple[Run, ...], dict[int, int]] = {}
        for row in self.rows:
            if row not in known:
                law: dict[int, int] = {}
                for width, noise in row:
                    law[noise] = law.get(noise, 0) + width
                known[row] = dict(sorted(law.items()))
        return tuple(known[row] for row in self.rows)

    def bias(self, count: int) -> Fraction:
        """Return the expected noise of a count, exact."""
        law = self._laws[self.place(count)]
        return Fraction(sum(noise * number for noise, number in law.items()), self.keys)

    def variance(self, count: int) -> Fraction:
        """Return the variance of the noise of a count, exact."""
        law = self._laws[self.place(count)]
        square = Fraction(sum(noise**2 * number for noise, number in law.items()), self.keys)
        return square - self.bias(count) ** 2

    @cached_property
    def _noise(self) -> Integers:
        if self.keys > MOST_KEYS:
            raise ValueError(
                f"the keys of this table are {self.keys} intervals, and {MOST_KEYS} are listed at"
                " most: round it to fewer keys first, see `rounded_to_keys`"
            )
        rows = [np.repeat([v for _, v in row], [width for width, _ in row]) for row in self.rows]
        return np.array(rows, dtype=np.int64)

    def noise(self, counts: npt.ArrayLike, keys: npt.ArrayLike) -> Integers:
        """Return what is added to each count, by the key of its cell.

        Parameters
        ----------
        counts : array_like of int
            True counts, at least 0.
        keys : array_like of int
            The sums of the record keys of the cells, of the same shape; of at least 0, taken modulo
            the number of keys.

        Returns
        -------
        numpy.ndarray of int64
            Of that shape.

        Raises
        ------
        InvalidCount
            What is no count, or no key.
        ValueError
            Shapes that do not fit, or a table of more than `MOST_KEYS` keys.
        """
        true, summed = checked_counts(counts, 1 << 62), checked_counts(keys, 1 << 62)
        if true.shape != summed.shape:
            raise ValueError(f"counts of shape {true.shape} and keys of shape {summed.shape}")
        size = len(self.rows)
        again = size - self.period + (true - size) % self.period
        noise: Integers = self._noise[np.where(true < size, true, again), summed % self.keys]
        return noise

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a table from a file of one of the three forms, told apart by its columns.

        Parameters
        ----------
        path : str or os.PathLike
            A file of text with a header line; a comma, a semicolon, a tab or a bar separates cells.

        Returns
        -------
        PerturbationTable

        Raises
        ------
        InvalidTable
            Other columns; a cell that holds no number; an entry that is missing, doubled, or not of
            the form that it claims; a count without a row. The message names the line.
        """
        with opened_csv(Path(path)) as rows:
            names = {name.strip() for name in rows.header}
            header = rows._replace(header=[name.strip() for name in rows.header])
            if names >= {*_ONS}:
                return cls(*_read_ons(header))
            if names >= {*_PTABLE}:
                return cls(*_read_ptable(header))
            raise InvalidTable(
                f"{path} is no perturbation table: its columns are {', '.join(rows.header)},"
                f" expected {', '.join(_ONS)}, or {', '.join(_PTABLE)}"
            )

    def write(self, path: str | os.PathLike[str], form: FileForm = "ons") -> None:
        """Write a file that the tools of offices read, in one step or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            The file, which is replaced if it exists.
        form : str, default "ons"
            "ons": for cell_key_perturbation, with the counts 1 .. 750. "tau-argus" or "sas": as
            ptable writes them, with numbers that are exact if ``keys`` divides a power of ten;
            lines of one count repeat an output whose keys are not next to each other.

        Raises
        ------
        ValueError
            A table that this form cannot hold: for "ons", noise on the count 0, or a period that
            does not divide 250; else a period above 1, or keys that are no decimals.
        """
        if form not in _WRITERS:
            raise ValueError(f"a form is one of {', '.join(_WRITERS)}, got {shown(form)}")
        lines, separator = _WRITERS[form](self)
        write_csv(Path(path), lines, separator)

    def __repr__(self) -> str:
        above = "the last row" if self.period == 1 else f"the last {self.period} rows"
        return (
            f"<PerturbationTable: counts 0 to {self.largest}, above them {above} again,"
            f" {self.keys} keys, noise up to {self.largest_noise}>"
        )


def _joined(row: Iterable[Sequence[int]]) -> Iterable[Run]:
    """Yield the runs of a row, those with the same noise beside each other as one."""
    runs = []
    for run in row:
        if len(run) != 2 or not all(map(is_whole, run)) or run[0] < 0:
            raise InvalidMechanism(
                f"a row is runs of (keys, noise), integers, keys >= 0: {shown(run)}"
            )
        if run[0]:
            runs.append((int(run[0]), int(run[1])))
    for noise, same in groupby(runs, key=lambda run: run[1]):
        yield sum(width for width, _ in same), noise


# ------------------------------------------------------------------------------------------------
# Reading.

# What a table is made of: keys, rows and period
_Parts: TypeAlias = tuple[int, tuple[tuple[Run, ...], ...], int]


@lru_cache(1 << 14)
def _whole(text: str) -> int | None:
    found = _WHOLE.fullmatch(text)
    return int(found[1]) if found else None


def _read_ons(rows: CsvRows) -> _Parts:
    first, second, third = places = rows.places(_ONS)
    found: dict[int, dict[int, int]] = {}
    lines: dict[int, int] = {}  # where each count was last seen
    for cells, line in rows.at_least_one():
        count, key, noise = _whole(cells[first]), _whole(cells[second]), _whole(cells[third])
        if count is None or key is None or noise is None:
            wrong = next(place for place in places if _whole(cells[place]) is None)
            name = rows.header[wrong]
            raise rows.refusal(line, f"{shown(cells[wrong])} under {name} is no integer")
        if count < 0 or not 0 <= key < MOST_KEYS:
            raise rows.refusal(line, f"count {count} and key {key}, expected at least 0")
        if count > _LISTED:
            raise rows.refusal(
                line,
                f"count {count}: cell_key_perturbation uses rows of at most {_LISTED}, and those of"
                f" {_LISTED - _AGAIN + 1} to {_LISTED} again above",
            )
        if count == 0 and noise:
            raise rows.refusal(line, "count 0 is perturbed, but a cell of nobody has always key 0")
        if count + noise < 0:
            raise rows.refusal(line, f"count {count} with noise {noise} makes {count + noise}")
        row = found.setdefault(count, {})
        if key in row:
            raise rows.refusal(line, f"count {count} and key {key} occur a second time")
        row[key] = noise
        lines[count] = line
    keys = 1 + max(map(max, found.values()))
    for count in range(1, _LISTED + 1):
        if count not in found:
            raise InvalidTable(
                f"{rows.source} has no entry of count {count}, which would not be perturbed;"
                f" expected are the counts 1 to {_LISTED}; nothing was written"
            )
        if len(found[count]) < keys:
            key = next(key for key in range(keys) if key not in found[count])
            raise rows.refusal(lines[count], f"count {count} has no entry for key {key}")
    table: list[tuple[Run, ...]] = [((keys, 0),)]
    for count in range(1, _LISTED + 1):
        table.append(tuple(_joined((1, found[count][key]) for key in range(keys))))
    if any(row != table[-1] for row in table[-_AGAIN:]):
        return keys, tuple(table), _AGAIN
    # The first of the same rows stands for all above.
    while len(table) > 1 and table[-2] == table[-1]:
        table.pop()
    return keys, tuple(table), 1


def _read_ptable(rows: CsvRows) -> _Parts:
    if "type" in rows.header:
        raise InvalidTable(
            f"{rows.source} has a column type: it is for magnitude tables; expected is one for"
            " counts; nothing was written"
        )
    lower = "p_int_lb" in rows.header
    names = [*_PTABLE, *["p_int_lb"] * lower]
    places = rows.places(names)
    table: list[list[tuple[Fraction, int]]] = []  # upper ends and noise, for each count
    last = 0
    for cells, line in rows.at_least_one():
        last = line
        entry = {
            name: _number(rows, line, name, cells[place])
            for name, place in zip(names, places, strict=True)
        }
        count, output, noise = (_integer(rows, line, name, entry[name]) for name in ("i", "j", "v"))
        if count not in (len(table) - 1, len(table)):
            raise rows.refusal(line, f"count {count} after {len(table) - 1}: they come in order")
        if output != count + noise or output < 0:
            raise rows.refusal(line, f"j = {output} is not i + v = {count + noise}, of at least 0")
        if count == len(table):
            _require_full(rows, line - 1, table)
            table.append([])
        before = table[count][-1][0] if table[count] else Fraction(0)
        end = entry["p_int_ub"]
        if not before < end <= 1:
            if end == before and entry["p"] == 0:
                continue  # an output without keys
            raise rows.refusal(
                line,
                f"p_int_ub {brief(end, 10)} does not rise from {brief(before, 10)}, or is above 1:"
                " an entry is doubled, negative, or out of order",
            )
        if abs(entry.get("p_int_lb", before) - before) > _PRINTED:
            raise rows.refusal(
                line, f"p_int_lb is not {brief(before, 10)}, where the last one ended"
            )
        if abs(entry["p"] - (end - before)) > _PRINTED:
            raise rows.refusal(
                line, f"p {brief(entry['p'], 10)} is not the width {brief(end - before, 10)}"
            )
        table[count].append((end, noise))
    _require_full(rows, last, table)
    keys = math.lcm(*(end.denominator for row in table for end, _ in row))
    return keys, tuple(tuple(_runs(row, keys)) for row in table), 1


def _require_full(
    rows: CsvRows, line: int, table: Sequence[Sequence[tuple[Fraction, int]]]
) -> None:
    """Raise InvalidTable unless the intervals of the last count end at 1."""
    end = table[-1][-1][0] if table and table[-1] else Fraction(0)
    if table and end != 1:
        raise rows.refusal(
            line, f"the intervals of count {len(table) - 1} end at {brief(end, 10)}, expected 1"
        )


def _runs(row: Iterable[tuple[Fraction, int]], keys: int) -> Iterable[Run]:
    before = Fraction(0)
    for end, noise in row:
        yield int((end - before) * keys), noise
        before = end


def _number(rows: CsvRows, line: int, name: str, text: str) -> Fraction:
    try:
        return exact(text.strip(), name)
    except (ValueError, InexactNumber):
        raise rows.refusal(line, f"{shown(text)} under {name} is no number") from None


def _integer(rows: CsvRows, line: int, name: str, value: Fraction) -> int:
    if value.denominator != 1:
        raise rows.refusal(line, f"{brief(value, 10)} under {name} is no integer")
    return value.numerator


# ------------------------------------------------------------------------------------------------
# Writing: lines of cells, and what separates the cells.

_Lines: TypeAlias = tuple[list[Sequence[object]], str]


def _ons_lines(table: PerturbationTable) -> _Lines:
    if table.law(0) != {0: table.keys}:
        raise ValueError(
            "count 0 is perturbed: cell_key_perturbation cannot do that, as a cell of nobody has"
            " always key 0"
        )
    if table.largest > _LISTED or (table.largest < _LISTED and _AGAIN % table.period):
        raise ValueError(
            f"cell_key_perturbation uses the rows of {_LISTED - _AGAIN + 1} to {_LISTED} again: the"
            f" largest count is at most {_LISTED} and the period divides {_AGAIN}, got"
            f" {table.largest} and {table.period}"
        )
    if table.largest == _LISTED and _AGAIN % table.period:
        raise ValueError(f"the period of {table.period} does not divide {_AGAIN}")
    counts = np.repeat(np.arange(1, _LISTED + 1), table.keys)
    keys = np.tile(np.arange(table.keys), _LISTED)
    noise = table.noise(counts, keys)
    listed = zip(counts.tolist(), keys.tolist(), noise.tolist(), strict=True)
    return [_ONS, *listed], ","


def _ptable_lines(table: PerturbationTable, lower: bool) -> _Lines:
    if table.period != 1:
        raise ValueError(
            f"the last row stands for all counts above it in this form, the last {table.period} do"
            " in the table"
        )
    lines: list[Sequence[object]] = [(*_PTABLE[:4], *["p_int_lb"] * lower, "p_int_ub")]
    for count, row in enumerate(table.rows):
        before = 0
        for width, noise in row:
            p, low, high = (
                _decimal(Fraction(number, table.keys)) for number in (width, before, before + width)
            )
            lines.append((count, count + noise, p, noise, *[low] * lower, high))
            before += width
    return lines, ";"


def _decimal(value: Fraction) -> str:
    """Return a number as a decimal of at least eight digits; ValueError if it has no end."""
    digits, power = 8, 10**8
    while value.denominator > 1 and power % value.denominator:
        digits, power = digits + 1, power * 10
        if digits > 40:
            raise ValueError(f"{value} is no decimal: round the table to 256 or 4096 keys first")
    scaled = abs(value.numerator) * (power // value.denominator)
    return f"{'-' * (value < 0)}{scaled // power}.{scaled % power:0{digits}d}"


_WRITERS: Mapping[str, Callable[[PerturbationTable], _Lines]] = {
    "ons": _ons_lines,
    "tau-argus": lambda table: _ptable_lines(table, lower=False),
    "sas": lambda table: _ptable_lines(table, lower=True),
}
