"""Axes: the names and labels of a table of counts with several attributes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from mechdesign.base import (
    AS_IT_IS,
    Booleans,
    CsvRows,
    Integers,
    ReadOptions,
    count_in,
    listed,
    opened_rows,
    set_fields,
    shown,
)
from mechdesign.exceptions import InvalidTable
from mechdesign.tables.totals import is_total_label, refuse_totals

_Number = TypeVar("_Number", np.float64, np.int64)

#: For some axes the label, or the labels, that cells must have.
Where: TypeAlias = Mapping[str, "str | Sequence[str]"]


@dataclass(frozen=True, init=False)
class Axes:
    """The axes of a contingency table.

    Parameters
    ----------
    labels : mapping of str to sequence of str
        For each axis, by its name, the labels along it: one at least, all different. The order of
        the axes is that of the array of counts. Kept as tuples, ``names`` and ``labels``.

    Raises
    ------
    InvalidTable
        No axes, a name or a label that is not a text or is empty, or one that comes twice.

    Examples
    --------
    >>> axes = Axes({"region": ["north", "south"], "answer": ["yes", "no", "unknown"]})
    >>> axes.shape, axes.where({"answer": "no"}).tolist()
    ((2, 3), [[False, True, False], [False, True, False]])
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]

    def __init__(self, labels: Mapping[str, Sequence[str]]) -> None:
        names = _texts(labels, "names of axes")
        texts = tuple(_texts(labels[name], f"labels of {name!r}") for name in names)
        set_fields(self, names=names, labels=texts)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of labels of each axis."""
        return tuple(map(len, self.labels))

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        return {
            name: {label: place for place, label in enumerate(labels)}
            for name, labels in zip(self.names, self.labels, strict=True)
        }

    def cells(self) -> Iterator[tuple[str, ...]]:
        """The labels of each cell, in the order of a flat array of counts."""
        return product(*self.labels)

    def kept(self, names: Sequence[str]) -> tuple[int, ...]:
        """The places of some axes, ascending.

        Raises
        ------
        InvalidTable
            There is no such axis, or one is named twice.
        """
        if isinstance(names, str):
            raise InvalidTable(f"axes are named by a sequence of texts, got {shown(names)}")
        for name in names:
            if name not in self.names or list(names).count(name) > 1:
                raise InvalidTable(
                    f"axes are some of {listed(self.names)}, each once; got {shown(tuple(names))}"
                )
        return tuple(sorted(self.names.index(name) for name in names))

    def groups(self, names: Sequence[str]) -> Integers:
        """Return the sum that each cell belongs to, of the sums over all axes but some.

        Parameters
        ----------
        names : sequence of str
            The axes that are kept.

        Returns
        -------
        numpy.ndarray of int64
            Shape (cells,): the places of `margin`, as of a flat array.

        Raises
        ------
        InvalidTable
            There is no such axis.
        """
        kept = self.kept(names)
        shape = tuple(self.shape[i] if i in kept else 1 for i in range(len(self.shape)))
        places = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
        return np.broadcast_to(places, self.shape).ravel()

    def margin(self, values: npt.NDArray[_Number], names: Sequence[str]) -> npt.NDArray[_Number]:
        """The sums of the values of cells over all axes but some.

        Parameters
        ----------
        values : numpy.ndarray
            Of the table's shape.
        names : sequence of str
            The axes that are kept; none for the total.

        Returns
        -------
        numpy.ndarray
            With these axes, in the table's order.

        Raises
        ------
        InvalidTable
            There is no such axis.
        """
        kept = self.kept(names)
        others = tuple(i for i in range(len(self.shape)) if i not in kept)
        return np.asarray(values.sum(axis=others))

    def where(self, conditions: Where) -> Booleans:
        """Return the mask of the cells that have these labels.

        Parameters
        ----------
        conditions : mapping of str to str or sequence of str
            For some axes, by name, a label or several. No conditions: every cell.

        Returns
        -------
        numpy.ndarray of bool
            Of the table's shape.

        Raises
        ------
        InvalidTable
            There is no such axis or no such label.
        """
        mask = np.ones(self.shape, dtype=np.bool_)
        for name, given in conditions.items():
            (axis,) = self.kept([name])
            known = self._places[name]
            along = np.zeros(len(known), dtype=np.bool_)
            for label in [given] if isinstance(given, str) else given:
                if label not in known:
                    raise InvalidTable(
                        f"{name} has the labels {listed(self.labels[axis][:20])}, got"
                        f" {shown(label)}"
                    )
                along[known[label]] = True
            mask &= along.reshape([-1 if i == axis else 1 for i in range(len(self.names))])
        return mask


def _texts(given: Sequence[str] | Mapping[str, object], what: str) -> tuple[str, ...]:
    """Different texts, none of them empty."""
    texts = () if isinstance(given, str) else tuple(given)
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidTable(f"{what} are texts, one at least, got {shown(given)}")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InvalidTable(f"{what} are different, but {shown(twice)} comes twice")
    return texts


# ------------------------------------------------------------------------------------------------
# Tables of true counts in CSV files: of labelled cells, or of groups with public sizes.


class LabelledCounts(NamedTuple):
    """A table of counts as a file has it."""

    # Of the axes: columns of the file. Where a row of the file is a row of the table, "column" is
    # the last.
    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]  # along each axis, in the order of the file
    counts: Integers  # a cell for each combination of labels
    sizes: Integers | None  # of the groups, of the same shape, if the file has them


class GroupRows(NamedTuple):
    """The groups of a file, in its order."""

    counts: list[int]
    sizes: list[int]  # how many people each group has
    kept: dict[str, list[str]]  # other columns that were asked for, by name
    mark: str  # the byte order mark of the file, or ""
    separator: str  # of its cells


def read_counts(
    source: Path,
    count: str | None = None,
    size: str | None = None,
    options: ReadOptions = AS_IT_IS,
) -> LabelledCounts:
    """Read a table of counts without its totals, from a file like those of `release_column`.

    Without ``count``, the first column names the rows and the header the columns. With it, each row
    of the file is a cell, and all other columns but that of sizes are axes.
    """
    if count is None and size is not None:
        raise ValueError("sizes are a column beside that of counts, which must be named as well")
    with opened_rows(source, options) as read:
        table = _wide(read) if count is None else _long(read, count, size)
    _check_sums(source, table)
    return table


def read_groups(
    source: Path,
    count: str,
    size: str,
    keep: Sequence[str] = (),
    *,
    options: ReadOptions = AS_IT_IS,
    labels: Sequence[str] | None = None,
    overlap: int = 1,
    remedy: str = "--overlap",
) -> GroupRows:
    """Read the groups of a CSV file, as `release_column` reads one."""
    with opened_rows(source, options) as read:
        pair, kept = read.places((count, size)), read.places(keep)
        others = (
            [place for place in range(len(read.header)) if place not in pair]
            if labels is None
            else read.places(labels)
        )
        groups = [(*_pair(read, row, line, *pair), row, line) for row, line in read.rows]
    if not groups:
        raise read.without_rows()
    counts, sizes, rows, lines = zip(*groups, strict=True)
    columns = [*zip(*rows, strict=True)]
    try:
        refuse_totals(
            counts, sizes, [columns[k] for k in others], overlap, lines, remedy, unit=read.unit
        )
    except InvalidTable as error:
        raise InvalidTable(f"{source}, {error}; nothing was written") from None
    named = {name: [*columns[place]] for name, place in zip(keep, kept, strict=True)}
    return GroupRows([*counts], [*sizes], named, read.mark, read.separator)


def _count(read: CsvRows, line: int, text: str, what: str = "count") -> int:
    count = count_in(text)
    if count < 0:
        raise read.refusal(line, f"{shown(text)} is no {what}")
    return count


def _pair(read: CsvRows, row: Sequence[str], line: int, count: int, size: int) -> tuple[int, int]:
    """The count and the size of a group, from two places in its row."""
    people = _count(read, line, row[size], "size of a group")
    if not 0 <= (inside := count_in(row[count])) <= people:
        raise read.refusal(line, f"{shown(row[count])} is not an integer between 0 and {people}")
    return inside, people


def _wide(read: CsvRows) -> LabelledCounts:
    """A row for each row of the table."""
    rows = read.at_least_one()
    labels = (tuple(row[0] for row, _ in rows), tuple(read.header[1:]))
    if not labels[1]:
        raise InvalidTable(f"{read.source} has one column: there must be labels and counts")
    places = ([line for _, line in rows], [1] * len(labels[1]))
    for along, lines in zip(labels, places, strict=True):
        _check_labels(read, along, lines)
        if len(set(along)) < len(along):
            again = next(label for k, label in enumerate(along) if label in along[:k])
            raise InvalidTable(
                f"{read.source}: the label {shown(again)} comes twice: a table has a row for each"
                " of its rows, not for each person; a file with a row for each cell needs the name"
                " of its column of counts"
            )
    counts = [[_count(read, line, cell) for cell in row[1:]] for row, line in rows]
    names = (read.header[0] or "row", "column")
    return LabelledCounts(names, labels, np.array(counts, dtype=np.int64), None)


def _long(read: CsvRows, count: str, size: str | None) -> LabelledCounts:
    """A row for each cell."""
    rows = read.at_least_one()
    pair = read.places([count] if size is None else [count, size])
    axes = [place for place in range(len(read.header)) if place not in pair]
    if not axes:
        raise InvalidTable(f"{read.source} has no column of labels")
    columns = [[row[axis] for row, _ in rows] for axis in axes]
    for column in columns:
        _check_labels(read, column, [line for _, line in rows])
    labels = tuple(tuple(dict.fromkeys(column)) for column in columns)
    numbers: dict[tuple[str, ...], Sequence[int]] = {}
    for cell, (row, line) in zip(zip(*columns, strict=True), rows, strict=True):
        if cell in numbers:
            raise read.refusal(line, f"the cell {listed(cell)} comes twice")
        numbers[cell] = (
            [_count(read, line, row[pair[0]])] if size is None else _pair(read, row, line, *pair)
        )
    for cell in product(*labels):
        if cell not in numbers:
            raise InvalidTable(
                f"{read.source} has no row for {listed(cell)}: every combination of labels must"
                " have one, with a count of 0 if nobody is there; labels that lie in others, as"
                " towns in counties, are no axes: leave one of the columns out"
            )
    table = np.array([numbers[cell] for cell in product(*labels)], dtype=np.int64)
    counts, *sizes = table.T.reshape(-1, *map(len, labels))
    names = tuple(read.header[axis] for axis in axes)
    return LabelledCounts(names, labels, counts, sizes[0] if sizes else None)


def _check_labels(read: CsvRows, labels: Iterable[str], lines: Iterable[int]) -> None:
    """Refuse totals, which would be counted as cells."""
    for label, line in zip(labels, lines, strict=True):
        if is_total_label(label):
            raise read.refusal(
                line,
                f"{shown(label)} is no label of a cell; leave totals out, they are computed",
            )


def _check_sums(source: Path, table: LabelledCounts) -> None:
    """Refuse a label whose counts are the sums of all others', in three places or more."""
    counts = table.counts if table.sizes is None else np.stack([table.counts, table.sizes])
    for axis, labels in zip(range(-len(table.labels), 0), table.labels, strict=True):
        along = np.moveaxis(counts, axis, 0).reshape(len(labels), -1)
        totals = (2 * along == along.sum(axis=0)).all(axis=1) & ((along > 0).sum(axis=1) > 2)
        if len(labels) > 2 and totals.any():
            raise InvalidTable(
                f"{source}: the counts of {shown(labels[int(np.argmax(totals))])} are the sums of"
                f" the others: leave totals out, they are computed"
            )
