"""The columns of a table in a file: how they are read, and what the file says of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

#: The key of what a file says of a column, among the metadata of its field in Arrow.
NOTES = b"mechdesign.notes"


class TableFile(NamedTuple):
    """A table in a file that is open."""

    names: list[str]  # of the columns, in order; perhaps one of them twice
    # the columns at these places, in batches of any number of rows, perhaps of some of the groups
    # of rows; fields may have `NOTES`
    read: Callable[..., Iterator[Any]]
    unit: str = "row"  # what rows are counted in, from `first` on
    first: int = 0
    # where a row is, counted from 0, if that is not its number
    place: Callable[[int], str] | None = None
    # the rows of each group that can be read by itself, if there are such
    groups: Callable[[], list[int]] | None = None
    # what the file says of its columns, by name, as `noted` is given it: no cell is read for it
    notes: Callable[[], dict[str, dict[str, Any]]] | None = None

    def where(self, row: int) -> str:
        """Return where a row is, counted from 0."""
        return f"{self.unit} {self.first + row}" if self.place is None else self.place(row)


def noted(
    name: str,
    kind: Any,
    title: str,
    labels: Sequence[Any],
    missing: Sequence[Any],
    ordered: bool = False,
) -> Any:
    """Return a field of Arrow with what a file says of its column, if it says anything.

    ``labels`` are pairs of a code and its label; ``missing`` are codes of missing values, and texts
    such as "97:99" and ":-1" for ranges of them, with both ends; ``ordered``: its labels have an
    order, which is that of their codes.
    """
    import pyarrow as pa

    known = {"title": title, "labels": labels, "missing": missing, "ordered": ordered}
    notes = {key: value for key, value in known.items() if value}
    return pa.field(name, kind, metadata={NOTES: json.dumps(notes)} if notes else None)


def notes_of(field: Any) -> dict[str, Any]:
    """Return what the file says of a column: as `noted` is given it."""
    notes: dict[str, Any] = json.loads((field.metadata or {}).get(NOTES, b"{}"))
    return notes


def text_of(value: Any) -> str:
    """Return a cell as text: a number in full, a date by ISO 8601, and no value as no text.

    >>> [text_of(value) for value in (7.0, 0.00001, True, None, date(2013, 1, 31))]
    ['7', '0.00001', 'true', '', '2013-01-31']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e16
        return str(int(value)) if whole else format(Decimal(repr(value)), "f")
    if isinstance(value, (date, time)):  # datetimes are dates, too
        return value.isoformat()
    return str(value)


def cells_of(values: Sequence[Any]) -> Any:
    """Return cells of a column as an array: of their type if they have one, else as text."""
    import pyarrow as pa

    given = [None if value == "" else value for value in values]
    kinds = {type(value) for value in given if value is not None}
    if kinds <= {int, float}:
        return pa.array(given, pa.float64() if kinds else pa.null())
    if kinds == {date, datetime}:  # midnight is a date for the workbook
        return pa.array(
            [
                datetime(value.year, value.month, value.day) if type(value) is date else value
                for value in given
            ],
            pa.timestamp("us"),
        )
    if len(kinds) == 1 and kinds <= {bool, str, date, datetime, time, timedelta}:
        return pa.array(given)
    return pa.array([None if value is None else text_of(value) for value in given], pa.string())
