"""Tables of true counts in CSV files: of labelled cells, or of groups with public sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mechdesign.base import CsvRows, Integers, count_in, listed, opened_csv, shown
from mechdesign.exceptions import InvalidTable
from mechdesign.tables.totals import is_total_label, refuse_totals


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


def read_counts(source: Path, count: str | None = None, size: str | None = None) -> LabelledCounts:
    """Read a table of counts without its totals, from a file like those of `release_column`.

    Without ``count``, the first column names the rows and the header the columns. With it, each row
    of the file is a cell, and all other columns but that of sizes are axes.
    """
    if count is None and size is not None:
        raise ValueError("sizes are a column beside that of counts, which must be named as well")
    with opened_csv(source) as read:
        table = _wide(read) if count is None else _long(read, count, size)
    _check_sums(source, table)
    return table


def read_groups(
    source: Path,
    count: str,
    size: str,
    keep: Sequence[str] = (),
    *,
    separator: str | None = None,
    labels: Sequence[str] | None = None,
    overlap: int = 1,
    remedy: str = "--overlap",
) -> GroupRows:
    """Read the groups of a CSV file, as `release_column` reads one."""
    with opened_csv(source, separator) as read:
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
        refuse_totals(counts, sizes, [columns[k] for k in others], overlap, lines, remedy)
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
