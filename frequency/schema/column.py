"""Column: one column of a table, of whatever library, as arrays of numbers, times or codes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
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
        import narwhals as nw  # takes as long as the rest of the schema

        self.name = name
        self._series: Any = None
        self._array: npt.NDArray[Any]
        if isinstance(values, np.ma.MaskedArray):
            self._array = np.array(values.tolist(), dtype=object)
        elif isinstance(values, np.ndarray):
            self._array = values
        elif isinstance(values, (list, tuple, range)):
            self._array = np.empty(len(values), dtype=object)
            self._array[:] = values
        else:
            series = nw.from_native(values, series_only=True, pass_through=True)
            if not isinstance(series, nw.Series):
                raise UnknownColumn(
                    f"column {name!r} is a {type(values).__name__}: expected a Series, an array or"
                    " a list"
                )
            if series.dtype == nw.Object:
                self._array = series.to_numpy()
            else:
                if series.dtype in (nw.Categorical, nw.Enum):
                    series = series.cast(nw.String)
                self._series = series
        if self._series is None and self._array.ndim != 1:
            raise UnknownColumn(f"column {name!r} has shape {self._array.shape}, not (rows,)")

    def __len__(self) -> int:
        return len(self._array) if self._series is None else len(self._series)

    def value(self, row: int) -> Any:
        """What is in a row; None if nothing is."""
        found = self._array[row] if self._series is None else self._series[row]
        found = getattr(found, "as_py", lambda: found)()
        found = found.item() if isinstance(found, np.generic) else found
        return None if is_nothing(found) else found

    def factors(self) -> Factors:
        """The different values, and which of them each row has."""
        if self._series is not None:
            import narwhals as nw

            values = [one for one in self._series.unique().to_list() if not is_nothing(one)]
            if not values:
                return Factors(np.full(len(self), -1), values)
            codes = self._series.replace_strict(
                values, list(range(len(values))), return_dtype=nw.Int64
            )
            return Factors(codes.fill_null(-1).to_numpy().astype(np.int64), values)
        if self._array.dtype.kind in "biufU":
            found, codes = np.unique(self._array, return_inverse=True)
            values = found.tolist()
            if values and is_nothing(values[-1]):  # NaN, which is sorted last
                codes = np.where(codes == len(values) - 1, -1, codes)
                values.pop()
            return Factors(codes.astype(np.int64).reshape(-1), values)
        known: dict[Any, int] = {}
        codes = np.empty(len(self._array), dtype=np.int64)
        for row, value in enumerate(self._array.tolist()):
            codes[row] = (
                -1 if is_nothing(value) else known.setdefault((type(value), value), len(known))
            )
        return Factors(codes, [value for _, value in known])

    def numbers(self) -> npt.NDArray[Any]:
        """Shape (rows,): float64 with NaN where there is no value, or integers.

        Raises
        ------
        InvalidCell
            The first value that is no number.
        """
        if self._series is not None:
            import narwhals as nw

            kind = self._series.dtype
            if kind.is_integer() or kind.is_float():
                return self._series.to_numpy()
            if kind.is_decimal():
                return self._series.cast(nw.Float64).to_numpy()
            # Quick, and strict but for other spellings of NaN; pandas takes 1_000 for a number
            if kind == nw.String and not self._series.implementation.is_pandas_like():
                with suppress(Exception):  # each library has its own; what is wrong is found below
                    told = self._without_nothing()
                    found: npt.NDArray[np.float64] = told.cast(nw.Float64).to_numpy()
                    if np.isnan(found).sum() == told.null_count():
                        return found
        elif self._array.dtype.kind in "iuf":
            return self._array
        return self._parsed(number_of, "a number", "f8")

    def times(self) -> npt.NDArray[np.datetime64]:
        """Shape (rows,): times to the second, rounded down, NaT where there is no value.

        Raises
        ------
        InvalidCell
            The first value that is no date or time, or one with a time zone.
        """
        if self._series is not None:
            import narwhals as nw

            kind = self._series.dtype
            if kind == nw.Date or (kind == nw.Datetime and kind.time_zone is None):
                return self._series.to_numpy().astype("datetime64[s]")
        elif self._array.dtype.kind == "M":
            return self._array.astype("datetime64[s]")
        return self._parsed(time_of, "a date or time without a time zone", "datetime64[s]")

    def _without_nothing(self) -> Any:
        """The series, with nulls in the place of texts that say that there is no value."""
        import narwhals as nw

        if self._series.dtype != nw.String or not self._series.is_in(NO_VALUE).any():
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


def is_nothing(value: Any) -> bool:
    """Whether it is None, NaN or NaT."""
    return value is None or bool(value != value)


def is_no_value(value: Any) -> bool:
    """Whether it is nothing, or a text that says that there is no value."""
    return is_nothing(value) or (isinstance(value, str) and value.strip() in NO_VALUE)


def number_of(value: Any) -> float | None:
    """A number, or a text that spells one; None for anything else."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    number = isinstance(value, (int, float, Decimal, Fraction, np.number))
    return float(value) if number and not isinstance(value, bool) else None


def time_of(value: Any) -> np.datetime64 | None:
    """A date or time, or a text that spells one as ISO 8601, without a zone; None for others.

    As precise as it is given, such as to the day or the month.
    """
    if isinstance(value, str):
        if not _TIME.fullmatch(value):
            return None
        value = value.strip()
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
