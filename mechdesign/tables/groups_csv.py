"""Tables of groups in CSV files: a row for each group, with its true count and its public size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from mechdesign.base.csv_rows import count_in, read_csv
from mechdesign.base.files import opened
from mechdesign.base.text import shown
from mechdesign.exceptions import InvalidTable, NoRows
from mechdesign.tables.totals import refuse_totals


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
    source: Path,
    count: str,
    size: str,
    keep: Sequence[str] = (),
    separator: str | None = None,
    overlap: int = 1,
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
    overlap : int
        In how many groups one person can be.

    Returns
    -------
    GroupRows
        At least one group.

    Raises
    ------
    InvalidTable
        No such columns, no rows, a malformed line, what is no count, a count above the size of
        its group, or a row that adds up others; the message names the line.
    """
    counts, sizes, lines, rows = list[int](), list[int](), list[int](), list[list[str]]()
    with opened(source, "r", newline="", encoding="utf-8") as stream:
        read = read_csv(stream, source, separator)
        at, of, *kept = read.places((count, size, *keep), source)
        labels = [place for place in range(len(read.header)) if place not in (at, of)]
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
            lines.append(line)
            rows.append(row)
    if not counts:
        raise NoRows(f"{source} has no rows; nothing was written")
    columns = [*zip(*rows, strict=True)]
    try:
        others = [columns[place] for place in labels]
        refuse_totals(counts, sizes, others, overlap, lines, "--overlap")
    except InvalidTable as error:
        raise InvalidTable(f"{source}, {error}; nothing was written") from None
    named = {name: [*columns[place]] for name, place in zip(keep, kept, strict=True)}
    return GroupRows(counts, sizes, named, read.mark, read.separator)
