"""Column: one column of a table, of whatever library, as arrays of numbers, times or codes."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.exceptions import InvalidCell, UnknownColumn
from mechdesign._support.arrays import Items
from mechdesign._support.text import shown

NO_VALUE = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
"""Texts that say that there is no value, unless they are labels."""

_NUMBER = re.compile(
    r"[ \t\r\n]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\r\n]*", re.ASCII
)
_NUMBERS = (int, float, Decimal, Fraction, np.number)
_TIME = re.compile(r"\s*\d{4}-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?)?\s*", re.ASCII)


class Factors(NamedTuple):
    """A column as numbers of its different values.

    Attributes
    ----------
    codes : numpy.ndarray of int64
        Shape (rows,): places in ``values``, -1 where there is no value.
    values : list
        The different values.
    """

    codes: Items
    values: list[Any]


class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        What errors call it.
    values : Series or array_like
        Shape (rows,): of a library that narwhals reads, of NumPy, or a list.

    Raises
    ------
    UnknownColumn
        It is no column.
    """

    def __init__(self, name: str, values: Any) -> None:
        self.name = name
        self._series: Any = None
        """Texts or truths; what else a library has is an array."""
        self._array: npt.NDArray[Any]
        if isinstance(values, np.ma.MaskedArray):
            self._array = _objects(values.tolist())
        elif isinstance(values, np.ndarray):
            self._array = values
        elif isinstance(values, (list, tuple, range)):
            self._array = _objects(values)
        else:
            self._take(values)
        if self._series is None and self._array.ndim != 1:
            raise UnknownColumn(f"column {name!r} has shape {self._array.shape}, not (rows,)")

    def _take(self, values: Any) -> None:
        """A series of a library that narwhals reads."""
        import narwhals as nw  # takes as long as the rest of the schema

        arrow = sys.modules.get("pyarrow")  # whose arrays are no series of narwhals
        if arrow is not None and isinstance(values, arrow.Array):
            values = arrow.chunked_array([values])
        series = nw.from_native(values, series_only=True, pass_through=True)
        if not isinstance(series, nw.Series):
            raise UnknownColumn(
                f"column {self.name!r} is a {type(values).__name__}: expected a Series, an array or"
                " a list"
            )
        kind = series.dtype
        if kind in (nw.Categorical, nw.Enum):
            series = series.cast(nw.String)
        local = kind == nw.Date or (isinstance(kind, nw.Datetime) and kind.time_zone is None)
        if series.dtype in (nw.String, nw.Boolean):
            self._series = series
        elif kind.is_integer() or kind.is_float() or local:
            self._array = series.to_numpy()
        else:
            self._array = _objects(series.to_list())

    def __len__(self) -> int:
        return len(self._array) if self._series is None else len(self._series)

    def value(self, row: int) -> Any:
        """What is in a row; None if nothing is."""
        found = self._array[row] if self._series is None else self._series[row]
        found = found.item() if isinstance(found, np.generic) else found
        return None if is_nothing(found) else found

    def factors(self) -> Factors:
        """The different values, and which of them each row has."""
        if self._series is not None:
            import narwhals as nw

            values = self._series.drop_nulls().unique().to_list()
            if not values:
                return Factors(np.full(len(self), -1), values)
            codes = self._series.replace_strict(
                values, list(range(len(values))), return_dtype=nw.Int64
            )
            return Factors(codes.fill_null(-1).to_numpy().astype(np.int64), values)
        if self._array.dtype.kind in "biufUM":
            found, codes = np.unique(self._array, return_inverse=True)
            codes, nothing = codes.astype(np.int64).reshape(-1), found != found  # NaN, NaT
            codes[nothing[codes]] = -1
            if found.dtype == "M8[ns]":  # which Python has no type for
                found = found.astype("M8[us]")
            return Factors(codes, found[~nothing].tolist())
        known: dict[Any, int] = {}
        codes, values = np.empty(len(self._array), dtype=np.int64), []
        for row, value in enumerate(self._array.tolist()):
            key = (type(value), value if isinstance(value, Hashable) else id(value))
            code = -1 if is_nothing(value) else known.setdefault(key, len(values))
            if code == len(values):
                values.append(value)
            codes[row] = code
        return Factors(codes, values)

    def numbers(self) -> npt.NDArray[Any]:
        """Shape (rows,): float64 with NaN where there is no value, or integers.

        Raises
        ------
        InvalidCell
            The first value that is no number.
        """
        if self._series is None and self._array.dtype.kind in "iuf":
            return self._array
        if self._series is not None:
            import narwhals as nw

            # Each library has its own errors, and takes some more texts for numbers: pandas 1_000
            with suppress(Exception):
                texts = self._without_nothing()
                if not texts.implementation.is_pandas_like() or (
                    texts.drop_nulls().str.contains(f"^{_NUMBER.pattern}$").all()
                ):
                    found: npt.NDArray[np.float64] = texts.cast(nw.Float64).to_numpy()
                    if np.isnan(found).sum() == texts.null_count():
                        return found
        return self._parsed(number_of, "a number", "f8")  # which finds what is wrong

    def times(self) -> npt.NDArray[np.datetime64]:
        """Shape (rows,): times to the second, rounded down, NaT where there is no value.

        Raises
        ------
        InvalidCell
            The first value that is no date or time, or one with a time zone.
        """
        if self._series is None and self._array.dtype.kind == "M":
            return self._array.astype("datetime64[s]")
        return self._parsed(time_of, "a date or time without a time zone", "datetime64[s]")

    def _without_nothing(self) -> Any:
        """The series, with nulls in the place of texts that say that there is no value."""
        import narwhals as nw

        if not self._series.is_in(NO_VALUE).any():  # of truths that is no question
            return self._series
        frame = self._series.alias("column").to_frame()
        told = nw.when(~nw.col("column").is_in(NO_VALUE)).then(nw.col("column"))
        return frame.select(told)["column"]

    def _parsed(self, parse: Callable[[Any], Any], expected: str, dtype: str) -> npt.NDArray[Any]:
        """The column by its different values: None is what is no such value."""
        codes, values = self.factors()
        nothing = np.array(["nan" if dtype == "f8" else "NaT"]).astype(dtype)
        parsed = [nothing[0] if is_no_value(value) else parse(value) for value in values]
        bad = [code for code, one in enumerate(parsed) if one is None]
        if bad:
            row = int(np.argmax(np.isin(codes, bad)))
            raise InvalidCell(row, self.name, self.value(row), expected)
        return np.concatenate([np.array(parsed, dtype=dtype), nothing])[codes]


def _objects(values: Any) -> npt.NDArray[Any]:
    """An array of these objects, whatever they are."""
    return np.fromiter(values, dtype=object, count=len(values))


def is_nothing(value: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA."""
    if value is None or type(value).__name__ == "NAType":
        return True
    other = value != value
    return isinstance(other, (bool, np.bool_)) and bool(other)


def is_no_value(value: Any) -> bool:
    """Whether it is nothing, or a text that says that there is no value."""
    return is_nothing(value) or (isinstance(value, str) and value.strip() in NO_VALUE)


def number_of(value: Any) -> float | None:
    """A number, or a text that spells one; None for anything else."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def time_of(value: Any) -> np.datetime64 | None:
    """A date or time, or a text that spells one as ISO 8601, without a zone; None for others.

    As precise as it is given, such as to the day or the month.
    """
    if isinstance(value, str):
        if not _TIME.fullmatch(value):
            return None
        value = value.strip()[:26]  # with nanoseconds NumPy's times are of a few centuries
    elif isinstance(value, datetime):
        if value.tzinfo is not None:
            return None
    elif not isinstance(value, (date, np.datetime64)):
        return None
    try:
        return np.datetime64(value)
    except ValueError:  # such as the 30th of February
        return None


def columns_of(table: Any, names: tuple[str, ...]) -> list[Column]:
    """Columns of a table.

    Parameters
    ----------
    table : DataFrame or mapping
        Of pandas, polars, pyarrow or another library that narwhals reads; or columns by their
        names. Where there is one name: perhaps the column itself.
    names : tuple of str
        The columns that are needed.

    Returns
    -------
    list of Column
        In this order, of one length.

    Raises
    ------
    UnknownColumn
        One that is missing or there twice, columns of different lengths, or what is no table.
    """
    if isinstance(table, Mapping):
        there, column = list(table), table.__getitem__
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(table, eager_only=True, allow_series=True, pass_through=True)
        except nw.exceptions.DuplicateError as error:
            raise UnknownColumn(
                f"two columns have one name: {' '.join(str(error).split())}"
            ) from None
        if isinstance(frame, nw.DataFrame):
            there, column = frame.columns, frame.__getitem__
        elif len(names) == 1:
            return [Column(names[0], table)]
        else:
            raise UnknownColumn(
                "expected a table: a DataFrame of pandas, polars or pyarrow, or a mapping of names"
                f" to columns, got a {type(table).__name__}"
            )
    for name in names:
        if there.count(name) != 1:
            many = "more than one column" if name in there else "no column"
            raise UnknownColumn(f"the table has {many} {name!r}; its columns are {shown(there)}")
    found = [Column(name, column(name)) for name in names]
    lengths = {len(one) for one in found}
    if len(lengths) > 1:
        raise UnknownColumn(
            "columns must have one length, got"
            f" {', '.join(f'{one.name}: {len(one)}' for one in found)}"
        )
    return found
