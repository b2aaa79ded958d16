"""Column: one column of a table, of whatever library, as arrays of numbers, times or codes."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from frequency.clients.device import NO_VALUE, NUMBER, digits
from frequency.exceptions import InvalidCell, UnknownColumn
from mechdesign.base import Items, printable, shown

_NUMBERS = (int, float, Decimal, Fraction, np.integer, np.floating)
_READABLE = (str, np.bool_, date, np.datetime64, *_NUMBERS)
_NO_CODES = np.empty(0, dtype=np.int64)
_COARSE, _FINE = ("Y", "M", "W", "D", "h", "m"), ("ns", "ps", "fs")
_LAST_SECOND = 1 << 62

# Texts repeat where the first so many have no more different ones than so few.
_MANY, _FEW = 1 << 12, 1 << 9
_NARROW = 1 << 16  # whole numbers in so wide a range are counted, not sorted

_MIDNIGHT = "T00:00:00"

READABLE = "a text, a number, true or false, or a date, perhaps with a time"
A_TIME = (
    "a date or time without a time zone (those with one: as local time, such as 2013-01-31T09:30)"
)
# A range of codes, one of whose ends may be open.
_RANGE = re.compile(
    r"\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)?\s*:\s*([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)?\s*"
)
_ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ].*(?:Z|[+-]\d\d:?\d\d)", re.ASCII)  # a time with a zone
_TIME = re.compile(r"\s*\d{4}-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?)?\s*", re.ASCII)


class Factors(NamedTuple):
    """A column as numbers of its different values."""

    codes: Items  # shape (rows,): places in `values`, -1 where there is no value
    values: list[Any]


class Parsed(NamedTuple):
    """A column as numbers or times."""

    # shape (rows,): integers of any width, float64, or times to the second
    values: npt.NDArray[Any]
    # shape (rows,), or a scalar that is false: where there is no value
    absent: npt.NDArray[np.bool_] | np.bool_
    # shape (rows,): which word asked for it is, or -1; None: no cell is one
    words: Items | None = None


class MissingCode(NamedTuple):
    """A code of missing values of which more is said.

    Attributes
    ----------
    code : int, float or str
        A number, a range or a text: see `Attribute`.
    label : str
        What it means, such as "refused"; "" if nobody said.
    missing : str
        What becomes of these values, if not what becomes of the other missing ones; or "".
    """

    code: Any
    label: str = ""
    missing: str = ""

    @staticmethod
    def of(given: Any) -> MissingCode:
        """A code as a schema has it: by itself, or with its label and its fate.

        ValueError for anything else.
        """
        if isinstance(given, MissingCode):
            return given
        if not isinstance(given, Mapping):
            return MissingCode(given)
        if "code" not in given or not {*given} <= {*MissingCode._fields}:
            raise ValueError(
                f"a code of missing values has a code, and perhaps a label and missing, got"
                f" {shown(dict(given))}"
            )
        found = MissingCode(**given)
        if not isinstance(found.label, str) or not isinstance(found.missing, str):
            raise ValueError(f"label and missing of a code are texts, got {shown(dict(given))}")
        return found

    def content(self) -> Any:
        """The code as files have it."""
        said = {name: text for name, text in self._asdict().items() if text != ""}
        return self.code if len(said) == 1 else said


class MissingCodes:
    """Codes that stand for missing values: numbers, ranges of numbers, and texts.

    Parameters
    ----------
    codes : sequence of int, float or str
        A number stands for itself, however it is written; "97:99", ":-1" and "90:" for all numbers
        between two ends, both included; any other text for the same text, without blanks around.

    Raises
    ------
    ValueError
        Anything else, a number that is not finite, or a code that comes twice.
    """

    def __init__(self, codes: Sequence[Any]) -> None:
        self._texts: set[str] = set()
        self._ranges: list[tuple[float, float]] = []
        for code in codes:
            if isinstance(code, str) and (found := _RANGE.fullmatch(code)) and found[0] != ":":
                first, last = (float(end) if end else None for end in found.groups())
                low = -math.inf if first is None else first
                high = math.inf if last is None else last
                if low > high:
                    raise ValueError(f"the range of codes {shown(code)} ends before it begins")
                self._ranges.append((low, high))
                continue
            number = number_of(code)
            if number is not None and math.isfinite(number):
                self._ranges.append((number, number))
            elif isinstance(code, str) and number is None and code.strip():
                self._texts.add(code.strip())
            else:
                raise ValueError(f"a code is a number, a range or a text, got {shown(code)}")
        if len(self._texts) + len(set(self._ranges)) < len(codes):
            raise ValueError(f"a code comes twice in {shown([*codes])}")

    def __contains__(self, value: Any) -> bool:
        if isinstance(value, str) and value.strip() in self._texts:
            return True
        number = number_of(value)
        return number is not None and bool(self.among(np.array([number]))[0])

    def among(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which numbers of an array are codes."""
        found = np.zeros(len(numbers), dtype=bool)
        for low, high in self._ranges:
            found |= (numbers >= low) & (numbers <= high)
        return found


class Column:
    """A column of a table: every container reads as a list of its values would.

    A Series of a library that narwhals reads, an array of pyarrow or NumPy, or a list; ``name`` is
    what errors call it. ``notes`` are what a file says of it: of "labels" pairs of a code and its
    label, of "missing" the codes of missing values. UnknownColumn for what is no column, or one of
    a type that holds no texts, numbers, truths, dates or times.
    """

    def __init__(self, name: str, values: Any, notes: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.notes = notes or {}
        # Exactly one of these three holds the column:
        self._series: Any = None  # texts or truths, of a library that finds the different ones
        self._coded: tuple[Items, Column] | None = None  # places in a column of categories
        self._array: npt.NDArray[Any] = np.empty(0, dtype=object)  # all else
        #: The places where the array has no value, if integers stand there that mean nothing.
        self._absent: npt.NDArray[np.bool_] | None = None
        if isinstance(values, np.ma.MaskedArray):
            self._take_array(np.asarray(values.data))
            self._absent = np.ma.getmaskarray(values)
        elif isinstance(values, np.ndarray):
            self._take_array(values)
        elif isinstance(values, (list, tuple, range)):
            self._array = _objects(values)
        else:
            self._take(values)

    def _take_array(self, values: npt.NDArray[Any]) -> None:
        if values.ndim != 1:
            raise UnknownColumn(f"column {self.name!r} has shape {values.shape}, not (rows,)")
        if values.dtype.kind not in "biufMUTO":
            raise self._unreadable(values.dtype)
        if values.dtype.kind == "f" and values.dtype.itemsize > 8:
            values = values.astype(np.float64)  # as `number_of` reads each
        self._array = values.astype(object) if values.dtype.kind == "T" else values

    def _take(self, values: Any) -> None:
        """A series of a library that narwhals reads, or an array of pyarrow."""
        import narwhals as nw  # takes as long as the rest of the schema

        if type(getattr(values, "dtype", None)).__name__ == "ArrowDtype":  # of pandas
            values = values.array.__arrow_array__()
        arrow = sys.modules.get("pyarrow")  # whose arrays are no series of narwhals
        if arrow is not None and isinstance(values, (arrow.Array, arrow.ChunkedArray)):
            self._take_arrow(values, arrow)
            return
        series = nw.from_native(values, series_only=True, pass_through=True)
        if not isinstance(series, nw.Series):
            raise UnknownColumn(
                f"column {self.name!r} is a {type(values).__name__}: expected a Series, an array or"
                " a list"
            )
        kind = series.dtype
        if kind in (nw.Categorical, nw.Enum):
            native = series.to_native()
            if series.implementation.is_pandas_like():  # whose categories may be of any type
                codes = np.asarray(native.cat.codes, dtype=np.int64)
                self._coded = codes, Column(self.name, native.cat.categories.to_series())
                return
            series = series.cast(nw.String)
        local = kind == nw.Date or (isinstance(kind, nw.Datetime) and kind.time_zone is None)
        if series.dtype in (nw.String, nw.Boolean):
            self._series = series
        elif kind.is_integer() and kind not in (nw.Int128, nw.UInt128):
            self._absent = series.is_null().to_numpy()
            self._array = (series.fill_null(0) if self._absent.any() else series).to_numpy()
        elif kind.is_float() or local:
            self._array = series.to_numpy()
        elif kind in (nw.Duration, nw.Time, nw.Binary) or kind.is_nested():
            raise self._unreadable(kind)
        else:  # decimals, wide integers, times with a zone, and objects, which may be anything
            self._array = _objects(series.to_list())

    def _take_arrow(self, values: Any, arrow: Any) -> None:
        import narwhals as nw

        whole = arrow.chunked_array([values]) if isinstance(values, arrow.Array) else values
        kind, types = whole.type, arrow.types
        if types.is_run_end_encoded(kind):
            import pyarrow.compute as pc

            parts = [pc.run_end_decode(chunk) for chunk in whole.chunks]
            self._take_arrow(arrow.chunked_array(parts, kind.value_type), arrow)
        elif types.is_dictionary(kind):
            whole = whole.unify_dictionaries()
            entries = (
                whole.chunk(0).dictionary if whole.num_chunks else arrow.array([], kind.value_type)
            )
            codes = [chunk.indices.fill_null(-1) for chunk in whole.chunks]  # an index fits a sign
            joined = [np.asarray(codes_there).astype(np.int64) for codes_there in codes]
            self._coded = np.concatenate([*joined, _NO_CODES]), Column(self.name, entries)
        elif types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
            self._series = nw.from_native(whole, series_only=True)
        elif types.is_string_view(kind):
            self._series = nw.from_native(whole.cast(arrow.large_string()), series_only=True)
        elif types.is_integer(kind):
            self._absent = whole.is_null().to_numpy()
            self._array = (whole.fill_null(0) if whole.null_count else whole).to_numpy()
        elif types.is_timestamp(kind) and kind.tz is not None:
            micro = whole.cast(arrow.timestamp("us", kind.tz), safe=False)  # as Python has them
            self._array = _objects(micro.to_pylist())
        elif types.is_floating(kind) or types.is_date(kind) or types.is_timestamp(kind):
            self._array = whole.to_numpy()
        elif types.is_decimal(kind) or types.is_null(kind):
            self._array = _objects(whole.to_pylist())
        else:
            raise self._unreadable(kind)

    def _unreadable(self, kind: Any) -> UnknownColumn:
        return UnknownColumn(
            f"column {printable(repr(self.name))} is of the type {shown(str(kind))}: a value"
            f" is {READABLE}"
        )

    def __len__(self) -> int:
        if self._coded is not None:
            return len(self._coded[0])
        return len(self._array) if self._series is None else len(self._series)

    def value(self, row: int) -> Any:
        """Return what is in a row; None if nothing is."""
        if self._coded is not None:
            codes, categories = self._coded
            return categories.value(int(codes[row])) if codes[row] >= 0 else None
        if self._absent is not None and self._absent[row]:
            return None
        cell = plain(self._array[row] if self._series is None else self._series[row])
        return None if is_nothing(cell) else cell

    @property
    def categories(self) -> list[Any]:
        """The values that its type lists, in their order; none if it lists none."""
        return [] if self._coded is None else self._coded[1].factors().values

    def declared(self) -> Column:
        """The column with no values in the place of those that its file declares missing."""
        codes = self.notes.get("missing", ())
        return self.without(MissingCodes(codes)) if codes else self

    def holding(self, codes: MissingCodes) -> npt.NDArray[np.bool_]:
        """Which rows hold a code of missing values: shape (rows,)."""
        places, values = self.factors()
        return np.array([*(value in codes for value in values), False], dtype=bool)[places]

    def without(self, codes: MissingCodes) -> Column:
        """The column with no values in the place of codes of missing ones."""
        if self._coded is None and self._array.dtype.kind in "iuf":
            missing = codes.among(self._array)
            if not missing.any():
                return self
            rest = Column(self.name, self._array, self.notes)
            rest._absent = missing if self._absent is None else missing | self._absent
            return rest
        return self._changed(lambda value: None if value in codes else value)

    def labelled(self, known: Callable[[str], bool]) -> Column:
        """The column with labels in the place of codes whose label is known."""
        # As they are written: beside missing values with a name all codes of a column are texts
        labels = {
            _spelt(code): label for code, label in self.notes.get("labels", ()) if known(label)
        }
        return self._changed(lambda value: labels.get(_spelt(value), value)) if labels else self

    def _changed(self, change: Callable[[Any], Any]) -> Column:
        """The column with other values in the place of some, or none."""
        codes, values = self.factors()
        changed = [change(value) for value in values]
        if all(new is old for new, old in zip(changed, values, strict=True)):
            return self
        result = Column(self.name, [], self.notes)
        present = np.array([value is not None for value in changed] + [False])
        result._coded = np.where(present[codes], codes, -1), Column(self.name, changed)
        return result

    def by_category(self, items_of: Callable[[Column], Items], absent: int) -> Items:
        """What a function makes of each row, and ``absent`` of those without a value.

        It is asked for each category where there are some, or texts that often repeat.
        """
        coded = self._coded if self._series is None else self._repeated()
        if coded is not None:
            codes, categories = coded
            # What it refuses may be a category that no row has, and its place is not that of a row
            with suppress(InvalidCell):
                return np.append(items_of(categories), absent)[codes]
        return items_of(self)

    def _repeated(self) -> tuple[Items, Column] | None:
        """Texts of pyarrow as places among the different ones, if these are few."""
        arrow = sys.modules.get("pyarrow")
        texts = self._series.to_native()
        if arrow is None or not isinstance(texts, arrow.ChunkedArray) or len(texts) < _MANY:
            return None
        if len(texts.slice(0, _MANY).unique()) <= _FEW:
            # No value is one of them, too
            coded = texts.dictionary_encode(null_encoding="encode").combine_chunks()
            if len(coded.dictionary) <= len(texts) // 8:
                categories = Column(self.name, coded.dictionary.to_pylist())
                # By DLPack: to_numpy loads pandas, where there is one
                return np.asarray(np.from_dlpack(coded.indices), dtype=np.int64), categories
        return None

    def factors(self) -> Factors:
        """The different values, and which of them each row has."""
        if self._coded is not None:
            places, categories = self._coded
            inner = categories.factors()
            return Factors(np.append(inner.codes, -1)[places], inner.values)
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
            present = self._array == self._array  # not NaN, NaT
            if self._absent is not None:
                present &= ~self._absent
            codes = np.full(len(self), -1)
            there, codes[present] = _unique(self._array[present])
            return Factors(codes, [plain(factor) for factor in there])
        known: dict[Any, int] = {}
        codes, values = np.empty(len(self), dtype=np.int64), []
        for row, value in enumerate(self._array.tolist()):
            key = (type(value), value if isinstance(value, Hashable) else id(value))
            nothing = is_nothing(value) or (self._absent is not None and self._absent[row])
            code = -1 if nothing else known.setdefault(key, len(values))
            if code == len(values):
                if not is_readable(value):
                    raise InvalidCell(row, self.name, value, READABLE)
                values.append(plain(value))
            codes[row] = code
        return Factors(codes, values)

    def numbers(
        self, words: Sequence[str] = (), read: Callable[[Any], float | None] | None = None
    ) -> Parsed:
        """The column as numbers, of which texts are read by a function of one's own, if given."""
        if self._array.dtype.kind in "iu":
            return Parsed(self._array, np.False_ if self._absent is None else self._absent)
        if self._array.dtype.kind == "f":
            absent = np.isnan(self._array)
            return Parsed(self._array, absent if self._absent is None else absent | self._absent)
        if self._series is not None and read is None:
            import narwhals as nw

            # Each library has its own errors, and takes some more texts for numbers: pandas 1_000
            with suppress(Exception):
                texts = self._without_nothing()
                if not texts.implementation.is_pandas_like() or (
                    texts.drop_nulls().str.contains(f"^{NUMBER.pattern}$").all()
                ):
                    parsed: npt.NDArray[np.float64] = texts.cast(nw.Float64).to_numpy()
                    absent = np.isnan(parsed)
                    if absent.sum() == texts.null_count():
                        return Parsed(parsed, absent)
        return self._parsed(
            read or number_of, "a number", np.float64, words
        )  # which finds what is wrong

    def times(
        self,
        words: Sequence[str] = (),
        read: Callable[[Any], np.datetime64 | None] | None = None,
    ) -> Parsed:
        """The column as times to the second, rounded down, perhaps read by one's own function."""
        if self._array.dtype.kind == "M":
            absent = np.isnat(self._array)
            absent = absent if self._absent is None else absent | self._absent
            return Parsed(seconds(self._array), absent)
        parse = _second_of if read is None else lambda value: _to_second(read(value))
        return self._parsed(parse, A_TIME, "datetime64[s]", words)

    def _without_nothing(self) -> Any:
        """The series, with nulls in the place of texts that say that there is no value."""
        import narwhals as nw

        if not self._series.is_in(NO_VALUE).any():  # of truths that is no question
            return self._series
        frame = self._series.alias("column").to_frame()
        present = nw.when(~nw.col("column").is_in(NO_VALUE)).then(nw.col("column"))
        return frame.select(present)["column"]

    def _parsed(
        self, parse: Callable[[Any], Any], expected: str, dtype: Any, words: Sequence[str]
    ) -> Parsed:
        """The column by its different values: None is what is no such value."""
        codes, values = self.factors()
        parsed = np.zeros(len(values) + 1, dtype=dtype)  # the last one is that of no value
        absent, spelt = np.ones(len(parsed), dtype=bool), np.full(len(parsed), -1)
        bad = []
        for code, value in enumerate(values):
            if is_no_value(value):
                continue
            number = parse(value)
            if number is not None:
                parsed[code], absent[code] = number, False
            elif isinstance(value, str) and value in words:
                spelt[code] = words.index(value)
            else:
                bad.append(code)
        if bad:
            row = int(np.argmax(np.isin(codes, bad)))
            raise InvalidCell(row, self.name, self.value(row), expected)
        return Parsed(parsed[codes], absent[codes], spelt[codes] if (spelt >= 0).any() else None)


def _unique(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Items]:
    """The different values, ascending, and the place of each: as `numpy.unique` gives them."""
    kind = values.dtype.kind
    if kind in "iuf" and len(values):
        low, high = values.min().item(), values.max().item()
        if high - low < _NARROW and low > -_LAST_SECOND and high < _LAST_SECOND:
            places = (
                (values - low).astype(np.int64) if kind == "f" else values.astype(np.int64) - low
            )
            if kind != "f" or bool((low + places == values).all()):
                there = np.zeros(int(places.max()) + 1, dtype=bool)
                there[places] = True
                order = np.cumsum(there) - 1
                return (low + np.flatnonzero(there)).astype(values.dtype), order[places]
    found, inverse = np.unique(values, return_inverse=True)
    return found, inverse


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


def is_readable(value: Any) -> bool:
    """Whether it is of a type that columns may hold."""
    readable = isinstance(value, _READABLE) and not isinstance(value, np.timedelta64)
    return readable or _is_interval(value)


def _is_interval(value: Any) -> bool:
    """Whether it is an interval of pandas, as `pandas.cut` makes them."""
    return type(value).__name__ == "Interval" and type(value).__module__.startswith("pandas")


def plain(value: Any) -> Any:
    """A value of NumPy as Python has it, if it has it; anything else as it is."""
    if not isinstance(value, np.datetime64):
        return value.item() if isinstance(value, np.generic) else value
    integer = value.item()
    if np.datetime_data(value.dtype)[0] in _FINE:  # of which items are bare integers
        micro = value.astype("datetime64[us]")
        integer = micro.item() if micro == value else 0
    return value if isinstance(integer, int) else integer


def texts_of(value: Any) -> tuple[str, ...]:
    """Yield how a label may be written for a value to be looked up by it, the first one first.

    A text stands for itself. A number is written in full: 7 for 7.0, 0.5, 0.00001. A truth is true
    or false. A date is 2013-01-31, a time 2013-01-31T09:30:00, perhaps with a blank for the T.
    Midnight is the date, since data frames have times for dates. An interval of pandas is (0, 5].
    """
    value = plain(value)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        return (str(value).lower(),)
    if isinstance(value, date):
        text = value.isoformat()
        if text[10:] not in ("", _MIDNIGHT):
            return text, text.replace("T", " ", 1)
        return text[:10], f"{text[:10]}{_MIDNIGHT}", f"{text[:10]} 00:00:00"
    if _is_interval(value):
        left, right = (next(iter(texts_of(end)), str(end)) for end in (value.left, value.right))
        first = "[" if value.closed in ("left", "both") else "("
        last = "]" if value.closed in ("right", "both") else ")"
        return f"{first}{left}, {right}{last}", str(value)
    if isinstance(value, np.datetime64):  # beyond the years and nanoseconds of Python
        return (str(value),)
    number = digits(value)
    return () if number is None else (number,)


def _spelt(value: Any) -> str:
    """A value as a label has it."""
    return next(iter(texts_of(value)), "")


def key_of(value: Any) -> bytes:
    """What tells a value from others, however a column holds it: 7 as 7.0 and the text 7."""
    return _spelt(value).encode("utf-8", "surrogatepass")


def number_of(value: Any) -> float | None:
    """A number, or a text that spells one; None for anything else."""
    if isinstance(value, str):
        return float(value) if NUMBER.fullmatch(value) else None
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, _NUMBERS):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


class NumberForm(NamedTuple):
    """How numbers are written: what parts thousands, if anything does, and what begins decimals."""

    thousands: str = ""
    decimal: str = "."

    def read(self, value: Any) -> float | None:
        """A number, or a text that spells one in this form; None for anything else."""
        if not isinstance(value, str):
            return number_of(value)
        if not _written_as(self.thousands, self.decimal).fullmatch(value):
            return None
        plain_text = value.replace(self.thousands, "") if self.thousands else value
        return number_of(plain_text.replace(self.decimal, "."))


@cache
def _written_as(thousands: str, decimal: str) -> re.Pattern[str]:
    """The texts of numbers: whole groups of thousands, or none."""
    group = rf"[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|" if thousands else ""
    return re.compile(rf"\s*[+-]?(?:{group}[0-9]+)(?:{re.escape(decimal)}[0-9]*)?\s*")


class TimeForm(NamedTuple):
    """How dates and times are written, and in which zone they are."""

    formats: tuple[str, ...] = ()  # of strptime, tried in order; none: as ISO 8601 has them
    zone: str = ""  # of the local times that count, such as "Europe/Berlin"

    def read(self, value: Any) -> np.datetime64 | None:
        """A local time; None for what is none, in the zone or in one of the formats."""
        if isinstance(value, str):
            given = self._in_text(value.strip())
            if given is None:
                # Without formats: what has no zone, perhaps to the month alone
                return None if self.formats or self._gap(value) else time_of(value)
        elif isinstance(value, datetime):
            given = value
        else:
            return time_of(value)
        if given.tzinfo is not None:
            if not self.zone:
                return None
            given = given.astimezone(ZoneInfo(self.zone)).replace(tzinfo=None)
        elif self._skipped(given):
            return None
        midnight = given.time() == given.min.time() and isinstance(value, str)
        return np.datetime64(given.date() if midnight else given)

    def _in_text(self, text: str) -> datetime | None:
        for form in self.formats:
            with suppress(ValueError):
                return datetime.strptime(text, form)
        if not self.formats and self.zone and _ZONED.fullmatch(text):
            with suppress(ValueError):
                return datetime.fromisoformat(text)
        return None

    def _gap(self, text: str) -> bool:
        """Whether a time without a zone is in an hour that its zone skips."""
        with suppress(ValueError):
            return self._skipped(datetime.fromisoformat(text.strip()))
        return False

    def _skipped(self, local: datetime) -> bool:
        if not self.zone:
            return False
        there = local.replace(tzinfo=ZoneInfo(self.zone))
        return there.astimezone(UTC).astimezone(there.tzinfo).replace(tzinfo=None) != local


def time_of(value: Any) -> np.datetime64 | None:
    """Return a date or time, or one that a text spells as ISO 8601, without a zone; else None.

    It is as precise as it is given, such as to the day or the month.
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


def seconds(times: npt.NDArray[np.datetime64]) -> npt.NDArray[np.datetime64]:
    """Return times to the second, rounded down; those beyond what has seconds, at its ends."""
    if np.datetime_data(times.dtype)[0] in _COARSE:  # years and hours may be beyond all seconds
        ends = np.array([-_LAST_SECOND, _LAST_SECOND]).astype("datetime64[s]").astype(times.dtype)
        times = np.clip(times, *ends)
    return times.astype("datetime64[s]")


def _second_of(value: Any) -> np.datetime64 | None:
    """A date or time to the second, None for others."""
    return _to_second(time_of(value))


def _to_second(time: np.datetime64 | None) -> np.datetime64 | None:
    return None if time is None else cast("np.datetime64", seconds(np.array([time]))[0])


def notes_in(table: Any, name: str) -> dict[str, Any]:
    """Return what a table of pyarrow that was read from a file says of a column."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None or not isinstance(table, arrow.Table):
        return {}
    from mechdesign.base import notes_of

    return notes_of(table.schema.field(name))


def require_columns(names: Sequence[str], there: Sequence[Any]) -> None:
    """Raise UnknownColumn unless a table has each of some columns once."""
    for name in names:
        if there.count(name) != 1:
            many = "more than one column" if name in there else "no column"
            raise UnknownColumn(f"the table has {many} {name!r}; its columns are {shown(there)}")


def is_of_dask(table: Any) -> bool:
    """Whether it is a DataFrame of Dask, which narwhals reads by a package of its own."""
    dask = sys.modules.get("dask.dataframe")
    return dask is not None and isinstance(table, dask.DataFrame)


def framed(table: Any) -> Any:
    """A table or a column as narwhals has it; anything else as it is."""
    import narwhals as nw

    try:
        return nw.from_native(table, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise UnknownColumn(f"two columns have one name: {' '.join(str(error).split())}") from None


def gathered(table: Any, names: Sequence[str]) -> Any:
    """Return a table of a kind whose rows come in parts, or later, with these columns in memory."""
    import narwhals as nw

    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(table, arrow.RecordBatch):
        return arrow.Table.from_batches([table])
    if arrow is not None and isinstance(table, arrow.RecordBatchReader):
        require_columns(names, table.schema.names)
        parts = [batch.select([*names]) for batch in table]
        fields = [table.schema.field(name) for name in names]
        return arrow.Table.from_batches(parts, arrow.schema(fields))
    if is_of_dask(table):
        require_columns(names, [*table.columns])
        return table[[*names]].compute()
    frame = framed(table)
    if not isinstance(frame, nw.LazyFrame):
        return table
    require_columns(names, frame.collect_schema().names())
    return frame.select(*names).collect().to_native()


def columns_of(table: Any, names: tuple[str, ...]) -> list[Column]:
    """Return columns of a table."""
    if not isinstance(table, (Mapping, Sequence, np.ndarray)):
        table = gathered(table, names)
    if isinstance(table, Mapping):
        there, column = list(table), table.__getitem__
    else:
        import narwhals as nw

        frame = framed(table)
        if isinstance(frame, nw.DataFrame):
            there, column = frame.columns, frame.__getitem__
        elif len(names) == 1:
            return [Column(names[0], table)]
        else:
            raise UnknownColumn(
                "expected a table: a DataFrame of pandas, polars or pyarrow, or a mapping of names"
                f" to columns, got a {type(table).__name__}"
            )
    require_columns(names, there)
    columns = [Column(name, column(name), notes_in(table, name)) for name in names]
    lengths = {len(each) for each in columns}
    if len(lengths) > 1:
        raise UnknownColumn(
            "columns must have one length, got"
            f" {', '.join(f'{each.name}: {len(each)}' for each in columns)}"
        )
    return columns
