"""Tables of true counts in CSV files, with a row for each row of the table or for each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mechdesign.base.csv_rows import count_in, read_csv
from mechdesign.base.files import opened
from mechdesign.base.linear_algebra import Integers
from mechdesign.base.text import listed, shown
from mechdesign.exceptions import InvalidTable, NoRows
from mechdesign.tables.totals import is_total_label

_Rows = Sequence[tuple[list[str], int]]


class LabelledCounts(NamedTuple):
    """A table of counts as a file has it.

    Attributes
    ----------
    names : tuple of str
        Of the axes: of columns of the file; for a row of the table a row, "column" is the last.
    labels : tuple of (tuple of str)
        The names along each axis, in the order of the file.
    counts : numpy.ndarray of int64
        A cell for each of their combinations.
    sizes : numpy.ndarray of int64 or None
        The sizes of the groups, of the same shape, if the file has them.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    counts: Integers
    sizes: Integers | None


def read_counts(source: Path, count: str | None = None, size: str | None = None) -> LabelledCounts:
    """Read a table of counts without its totals.

    The file is like those of `mechdesign.column_release.release_column`. Without the name of a
    column of counts it has two axes: its first column names the rows, its header the columns.
    With it, each row of the file is a cell, and all other columns but that of sizes are axes.

    Parameters
    ----------
    source : Path
        The file.
    count : str, optional
        The column of counts, if each row is a cell.
    size : str, optional
        The column of the sizes of groups; only if each row is a cell.

    Returns
    -------
    LabelledCounts
        Counts, labels and sizes.

    Raises
    ------
    InvalidTable
        No such columns, no rows, a cell that is no count, a label that comes twice or is "total",
        or a combination of labels that comes twice or not at all; the message names the line.
    ValueError
        Sizes without a column of counts.
    """
    if count is None and size is not None:
        raise ValueError("sizes are a column beside that of counts, which must be named as well")
    with opened(source, "r", newline="", encoding="utf-8") as stream:
        read = read_csv(stream, source)
        rows = list(read.rows)
    if not rows:
        raise NoRows(f"{source} has no rows")
    if count is None:
        return _wide(source, read.header, rows)
    read.places([count] if size is None else [count, size], source)
    return _long(source, read.header, rows, count, size)


def _wide(source: Path, header: list[str], rows: _Rows) -> LabelledCounts:
    """A row for each row of the table."""
    labels = (tuple(row[0] for row, _ in rows), tuple(header[1:]))
    if not labels[1]:
        raise InvalidTable(f"{source} has one column: there must be labels and counts")
    for own, lines in zip(labels, ([line for _, line in rows], [1] * len(header)), strict=True):
        _check(source, own, lines)
        if len(set(own)) < len(own):
            again = next(label for k, label in enumerate(own) if label in own[:k])
            raise InvalidTable(
                f"{source}: the label {shown(again)} comes twice: a table has a row for each of its"
                " rows, not for each person; a file with a row for each cell needs the name of its"
                " column of counts"
            )
    counts = [[_count(source, line, cell) for cell in row[1:]] for row, line in rows]
    names = (header[0] or "row", "column")
    found = LabelledCounts(names, labels, np.array(counts, dtype=np.int64), None)
    _check_sums(source, found)
    return found


def _long(
    source: Path, header: list[str], rows: _Rows, count: str, size: str | None
) -> LabelledCounts:
    """A row for each cell."""
    axes = [place for place, name in enumerate(header) if name not in (count, size)]
    if not axes:
        raise InvalidTable(f"{source} has no column of labels")
    labels = tuple(tuple(dict.fromkeys(row[axis] for row, _ in rows)) for axis in axes)
    for axis in axes:
        _check(source, [row[axis] for row, _ in rows], [line for _, line in rows])
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for row, line in rows:
        cell = tuple(row[axis] for axis in axes)
        if cell in found:
            raise InvalidTable(f"{source}, line {line}: the cell {listed(cell)} comes twice")
        held = _count(source, line, row[header.index(count)])
        group = 0 if size is None else _count(source, line, row[header.index(size)])
        if size is not None and held > group:
            raise InvalidTable(f"{source}, line {line}: a count is above the size of its group")
        found[cell] = held, group
    for cell in product(*labels):
        if cell not in found:
            raise InvalidTable(
                f"{source} has no row for {listed(cell)}: every combination of labels must have"
                " one, with a count of 0 if nobody is there; labels that lie in others, as towns in"
                " counties, are no axes: leave one of the columns out"
            )
    pairs = np.array([found[cell] for cell in product(*labels)], dtype=np.int64)
    counts, sizes = pairs.T.reshape(2, *map(len, labels))
    names = tuple(header[axis] for axis in axes)
    table = LabelledCounts(names, labels, counts, None if size is None else sizes)
    _check_sums(source, table)
    return table


def _check(source: Path, labels: Iterable[str], lines: Iterable[int]) -> None:
    """Refuse totals, which would be counted as cells."""
    for label, line in zip(labels, lines, strict=False):
        if is_total_label(label):
            raise InvalidTable(
                f"{source}, line {line}: {shown(label)} is no label of a cell; leave totals out,"
                " they are computed"
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


def _count(source: Path, line: int, text: str) -> int:
    found = count_in(text)
    if found < 0:
        raise InvalidTable(f"{source}, line {line}: {shown(text)} is no count")
    return found
