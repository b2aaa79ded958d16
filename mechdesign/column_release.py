"""Release a column of true counts in a CSV file, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mechdesign.base.csv_rows import comma_separated, count_in, opened_csv
from mechdesign.base.files import replacing
from mechdesign.base.progress import ProgressMeter
from mechdesign.exceptions import InvalidCount
from mechdesign.mechanism import Mechanism
from mechdesign.values import Bands, CountPairs

_ROWS = 1 << 10
"""Rows held at a time: few enough for the cache. Seeded draws do not depend on it."""


class Read(NamedTuple):
    """The number of rows of a file, and what separated their cells."""

    rows: int
    separator: str


def release_column(
    mechanism: Mechanism,
    source: Path,
    target: Path,
    column: str | Sequence[str],
    keep: Sequence[str] = (),
    separator: str | None = None,
    rng: np.random.Generator | None = None,
    spreadsheet: bool = False,
) -> Read:
    """Write a CSV file with copied columns of another and released counts, or nothing at all.

    What is read is UTF-8 with a header line, as spreadsheets and data frames write it: with any
    line ends, with quotes around separators and line ends, with a byte order mark or without. Empty
    lines at the end are no rows; elsewhere they are missing counts. A count is an integer, maybe
    with a decimal part of one or two zeros, after a point or a comma: 7.0 and 7,0. Three zeros are
    refused: 7.000 may be seven thousand.

    What is written has the separator and the byte order mark of what is read, the line ends of
    RFC 4180, and quotes where they are needed.
    """
    names = [column] if isinstance(column, str) else [*column]
    values, pairs = mechanism.output_values, isinstance(mechanism.input_values, CountPairs)
    if len(names) != 1 + pairs:
        wanted = "pairs of counts, two columns" if pairs else "counts, one column"
        raise ValueError(f"the mechanism takes {wanted}, got {len(names)}")
    total = 0
    with (
        opened_csv(source, separator) as table,
        replacing(target) as out,
        ProgressMeter("release", unit="rows") as meter,
    ):
        between = table.separator
        places, kept = table.places(names), table.places(keep)
        heading = comma_separated([[*keep, *names]], between, spreadsheet)
        out.write((table.mark + heading).encode())
        while block := list(islice(table.rows, _ROWS)):
            texts = [[row[place] for place in places] for row, _ in block]
            counts = [[count_in(cell) for cell in cells] for cells in texts]
            try:
                released = mechanism.release(counts if pairs else [one for (one,) in counts], rng)
            except InvalidCount as error:
                bad = error.index if isinstance(error.index, int) else error.index[0]
                shown = ", ".join(map(repr, texts[bad]))
                raise table.refusal(
                    block[bad][1], f"{shown:.60} is not an integer between 0 and {error.largest}"
                ) from error
            columns: list[list[Any]] = [[row[k] for row, _ in block] for k in kept]
            answers = released.reshape(len(block), -1).T.tolist()
            if isinstance(values, Bands):
                columns += [[values.labels[k] for k in answer] for answer in answers]
            else:
                columns += answers
            lines = zip(*columns, strict=True)
            out.write(comma_separated(lines, between, spreadsheet).encode())
            total += len(block)
            meter.update(len(block))
        if not total:
            raise table.without_rows()
    return Read(total, between)
