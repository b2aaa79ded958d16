"""All cells of a release, or an estimate, as a table in the formats of statistical offices."""

from __future__ import annotations

import math

from mechdesign.base import listed
from mechdesign.tables import Axes, PublishedTable
from rangeq.cli.answering import AskedText, EstimateSource
from rangeq.cli.collected import Source

#: How names of files end that `PublishedTable` writes, but for JSON-stat.
ENDINGS = (".xlsx", ".px", ".sdmx.csv", ".parquet")

_MOST_CELLS = 1 << 18

_NUMBERS = {"estimate": "value", "standard error": "error", "low": "low", "high": "high"}


def axes_of(source: Source) -> dict[str, list[str]]:
    """Return the attributes that are counted together, with labels; none if there is no table.

    Attributes of which sums and means are known are none of them.
    """
    if not isinstance(source, EstimateSource) or source.found is not None:
        return {}
    estimate = source.estimate
    names = [name for name in estimate.schema.names if name not in estimate.numbers]
    axes = {name: [*map(str, estimate.item_labels(name))] for name in names}
    number = math.prod(map(len, axes.values()))
    return axes if 0 < len(names) <= estimate.joined and 1 < number <= _MOST_CELLS else {}


def published_table(source: Source, statement: str) -> PublishedTable:
    """Return the numbers of users in all cells, with their errors and intervals.

    Parameters
    ----------
    source : EstimateSource
        What answers.
    statement : str
        Whom it protects, and how.

    Returns
    -------
    PublishedTable
        Estimates, standard errors, and the ends of intervals: NaN where they are not known.

    Raises
    ------
    ValueError
        It has no table of counts, or one of more than 2^18 cells.
    """
    axes = axes_of(source)
    if not axes or not isinstance(source, EstimateSource):
        raise ValueError(
            f"a table has 2 to {_MOST_CELLS} cells, of attributes that are counted together"
        )
    rows = source.answers([AskedText("marginal", "", tuple(axes))])
    numbers = {
        name: [math.nan if (value := getattr(row, of)) is None else value for row in rows]
        for name, of in _NUMBERS.items()
    }
    title = f"{'shares of ' if rows[0].unit.startswith('fraction') else ''}users by {listed(axes)}"
    return PublishedTable(Axes(axes), numbers, title, statement)
