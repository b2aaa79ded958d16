"""Tables of groups in CSV files: a row for each group, with its true count and its public size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mechdesign._support.csv_rows import count_in, read_csv
from mechdesign._support.files import opened
from mechdesign._support.text import shown
from mechdesign.exceptions import InvalidTable, NoRows


class GroupRows(NamedTuple):
    """What a file says of each group, in its order.

    Attributes
    ----------
    counts, sizes : list of int
        The true counts, and how many people each group has.
    kept : dict of str to (list of str)
        Other columns that were asked for, by name.
    mark, separator : str
        The byte order mark of the file, or "", and what separates its cells.
    """

    counts: list[int]
    sizes: list[int]
    kept: dict[str, list[str]]
    mark: str
    separator: str


def read_groups(
    source: Path, count: str, size: str, keep: Sequence[str] = (), separator: str | None = None
) -> GroupRows:
    """Read the groups of a CSV file, as `mechdesign.column_release.release_column` reads one.

    Parameters
    ----------
    source : Path
        The file.
    count, size : str
        The columns of true counts and of the public sizes of the groups.
    keep : sequence of str, optional
        Other columns to read.
    separator : str, optional
        ``,``, ``;``, ``|`` or a tab. None: the one that splits the header line into the most cells.

    Returns
    -------
    GroupRows
        At least one group.

    Raises
    ------
    InvalidTable
        No such columns, no rows, a malformed line, what is no count, or a count above the size of
        its group; the message names the line.
    """
    counts, sizes, lines = list[int](), list[int](), list[list[str]]()
    with opened(source, "r", newline="", encoding="utf-8") as stream:
        read = read_csv(stream, source, separator)
        at, of, *kept = read.places((count, size, *keep), source)
        for row, line in read.rows:
            group = count_in(row[of])
            if group < 0:
                raise InvalidTable(
                    f"{source}, line {line}: {shown(row[of])} is no size of a group; nothing was"
                    " written"
                )
            held = count_in(row[at])
            if not 0 <= held <= group:
                raise InvalidTable(
                    f"{source}, line {line}: {shown(row[at])} is not an integer between 0 and"
                    f" {group}; nothing was written"
                )
            counts.append(held)
            sizes.append(group)
            lines.append([row[k] for k in kept])
    if not counts:
        raise NoRows(f"{source} has no rows; nothing was written")
    columns = zip(*lines, strict=True) if keep else ()
    named = dict(zip(keep, map(list, columns), strict=True))
    return GroupRows(counts, sizes, named, read.mark, read.separator)
