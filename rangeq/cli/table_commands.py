"""Commands about tables: true counts, synthetic rows, and small counts of regions."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frequency.cli.protocol_commands import CHAIN, USERS
from frequency.exceptions import InvalidQuestion
from frequency.schema import Attribute, Schema
from frequency.schema.attribute import ItemAttribute, Span
from mechdesign.base import (
    Integers,
    ProgressMeter,
    ReadOptions,
    comma_separated,
    replacing,
    untaken,
    whole,
    write_csv,
)
from mechdesign.cli.options import (
    FORCE,
    PRIVACY,
    PROPERTIES,
    RELEASE,
    SPREADSHEET,
    TABLE,
    check_apart,
    command,
    confidence_of,
    generator_of,
    privacy_of,
    read_options,
    say,
)
from mechdesign.tables.axes import read_groups
from rangeq.central import (
    RegionEstimate,
    Regions,
    count_cells,
    release_regions,
)
from rangeq.central.inputs import cells_along
from rangeq.cli.answering import EstimateSource
from rangeq.cli.collected import COLLECTED, source_of
from rangeq.cli.curate_command import encoded_blocks
from rangeq.cli.where_text import where_of

# ------------------------------------------------------------------------------------------------
# The command ``count``: from a table with a row for each person to a table of true counts.


_LARGEST_COUNTED = 1 << 20  # rows of a table of counts


class PeopleCounts(NamedTuple):
    """The people of a table by attributes: true counts."""

    names: tuple[str, ...]  # of the attributes
    labels: tuple[tuple[str, ...], ...]  # of each
    people: Integers  # of each combination of labels
    met: Integers  # how many of them meet the condition


_COUNT_NOTE = """\
The counts are true: the file is as private as the table, and is there for release-table, which
releases the column "count" of groups of the public size "people", or for release-contingency. It
has a row for each combination of the attributes' labels, also of those that nobody has, so that
the rows tell nothing. Rows that a policy skips are counted nowhere."""


@command(
    "count",
    "count a table of people by attributes, in all combinations of their labels, for release-table"
    " and release-contingency; the counts are true and not for publication",
    "count people.sav --schema people.toml --by ward --where 'ill yes' --out wards.csv\n"
    "  mechdesign release-table wards.csv --count count --size people --keep ward --epsilon 1"
    " --out released.csv",
    USERS,
    """
    --schema FILE [file, required]  the schema (.toml or .json)
    --by NAME [repeated, required]  an attribute whose labels the rows have
    --where CONDITION  a condition such as "age 18: and ill yes": count who meets it, of each row's
        people; without it only people are counted
    --out FILE [.csv, required]  the table to write: true counts
    """,
    FORCE,
    notes=f"{_COUNT_NOTE}\n\n{CHAIN}",
)
def run_count(options: argparse.Namespace) -> None:
    check_apart(options.out, options.table)
    found = count_people(
        options.table, options.schema, options.by, options.where, read_options(options)
    )
    columns = {"people": found.people}
    if options.where is not None:
        columns["count"] = found.met
    lines: list[list[Any]] = [[*found.names, *(untaken(name, found.names) for name in columns)]]
    numbers = [column.ravel().tolist() for column in columns.values()]
    cells = product(*found.labels)
    lines += [[*cell, *values] for cell, *values in zip(cells, *numbers, strict=True)]
    write_csv(options.out, lines)
    say(f"wrote {options.out}: {len(lines) - 1} rows of TRUE counts, not for publication")


def count_people(
    table: Path, schema: Path, by: Sequence[str], where: str | None, options: ReadOptions
) -> PeopleCounts:
    """Count the people of a table by attributes, and those of them who meet a condition.

    Rows that a policy skips are counted nowhere.

    Parameters
    ----------
    table, schema : Path
        The files: a row for each person, and what its columns hold.
    by : sequence of str
        The attributes.
    where : str, optional
        As `where_of` reads it, of other attributes; None: all meet it.
    options : ReadOptions
        Of the table.

    Returns
    -------
    PeopleCounts
        True counts.

    Raises
    ------
    ValueError, InvalidQuestion, InvalidTable, OSError
        No such attributes, conditions or files.
    """
    known = Schema.load(schema)
    return _counted(table, known, known.project(list(dict.fromkeys(by))), where, options)


def _counted(
    table: Path, schema: Schema, by: Schema, condition: str | None, options: ReadOptions
) -> PeopleCounts:
    where = {} if condition is None else where_of(condition, schema)
    both = next((name for name in where if name in by), None)
    if both is not None:
        raise ValueError(f"{both} is counted by, and in the condition: say it in one of them")
    counted = schema.project([*by.names, *where])
    cells_along(counted)  # text, which has no list of labels, is refused
    labels = [attribute.item_labels for attribute in by if isinstance(attribute, ItemAttribute)]
    if (rows := math.prod(by.sizes)) > _LARGEST_COUNTED:
        raise ValueError(
            f"{rows} combinations of labels are more than {_LARGEST_COUNTED}: count by fewer"
            " attributes, or by wider bins"
        )
    masks = [_mask(schema[name], given) for name, given in where.items()]
    with ProgressMeter("count"):
        cells = count_cells(counted, encoded_blocks(table, counted, options))
    # One condition after the other, from the last axis
    met = cells
    for mask in reversed(masks):
        met = met @ mask
    people = cells.reshape(*by.sizes, -1).sum(axis=-1)
    return PeopleCounts(by.names, tuple(labels), people, met)


def _mask(attribute: Attribute, given: Any) -> Integers:
    """1 for the items that meet a condition, else 0."""
    asked, mask = attribute.asked(given), np.zeros(attribute.size, dtype=np.int64)
    if isinstance(asked, Span):
        first, last = float(asked.first), float(asked.last)
        if first % 1 or last % 1:
            raise InvalidQuestion(
                f"--where: {attribute.name} {given} ends within a bin, where people cannot be told"
                " apart: ask for whole bins"
            )
        mask[int(first) : int(last)] = 1
    else:
        mask[np.atleast_1d(asked)] = 1
    return mask


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign sample``: synthetic rows of what was collected.


#: What is to be known of rows, wherever they are written.
NOT_PEOPLE = (
    "these rows are not people: nobody has them. They hold what was estimated and nothing else."
    " Counts of them have the error of the estimate and that of the draw of the rows besides; tests"
    " and regressions on them know nothing of the first, nor of what was not estimated"
)

_BLOCK = 1 << 16  # rows that are text at a time


@command(
    "sample",
    "write synthetic rows with the distribution that was estimated, in the columns, labels and"
    " units of the schema, for programs that take a table; a value that is missing is empty, one"
    " outside of the schema's is outside; the rows are not people",
    "sample both.agg --protocol both.json --rows 10000 --out synthetic.csv\n"
    "  mechdesign sample age.release --rows 10000 --out synthetic.csv",
    COLLECTED,
    """
    --rows N [int, required]  how many, at least 1
    --out FILE [.csv, required]  the file to write
    --seed SEED [seed]  of the random numbers, to repeat them; privacy does not depend on them
    """,
    SPREADSHEET,
    FORCE,
    notes=CHAIN,
)
def run_sample(options: argparse.Namespace) -> None:
    rows = whole(options.rows, "--rows", 1, what="a number of rows")
    source = source_of(options.collected, options.protocol)
    if not isinstance(source, EstimateSource):
        raise InvalidQuestion(
            f"{options.collected} is a release of counts or of quantiles alone: there is no"
            " distribution to draw rows from; curate without --quantile releases one"
        )
    try:
        columns = source.estimate.sample(rows, np.random.default_rng(options.seed))
    except InvalidQuestion as error:
        raise InvalidQuestion(f"{source.name}: {error}") from None
    with replacing(options.out) as stream:
        stream.write(comma_separated([columns], spreadsheet=options.spreadsheet).encode())
        for first in range(0, rows, _BLOCK):
            block = (values[first : first + _BLOCK].tolist() for values in columns.values())
            lines = zip(*block, strict=True)
            stream.write(comma_separated(lines, spreadsheet=options.spreadsheet).encode())
    say(f"wrote {options.out}: {rows} row{'s' * (rows != 1)}")
    say(f"mechdesign: {NOT_PEOPLE}", sys.stderr)


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign release-regions``: small counts of regions in regions.


_REGIONS_NOTE = """\
One person's answer changes the count of one leaf by one, and of each region above: --epsilon is the
loss of all of that. The estimates of --table are unbiased, and parts add up; low and high are ends
of an interval for the true count. For the total let the first --region be a column that is the same
in all rows, such as the country."""


@command(
    "release-regions",
    "release small counts of regions in regions, such as wards in counties: the leaves by the best"
    " mechanisms for their sizes, the regions above with noise, and estimates that add up",
    "release-regions wards.csv --region county --region ward --count ill --size residents"
    " --epsilon 1 --out ill.json --table ill.csv",
    """
    leaves [file]  table with a row for each leaf (.csv, .xlsx, .sav, .parquet and others)
    --region COLUMN [repeated, required]  a column of names, from the top down to that of the
        leaves; the last ones of a row may be empty
    --count COLUMN [required]  the column of counts
    --size COLUMN [required]  the column of the largest possible counts, which are public
    --budget WEIGHTS [default equal]  how epsilon is split: equal; leaves: these alone; or weights
        separated by commas, for each depth from the top and for the leaves
    --table FILE [.csv]  write the estimates of all regions
    --whole  write whole numbers, too, that are not negative and add up; these are biased
    """,
    TABLE,
    PRIVACY,
    PROPERTIES,
    RELEASE,
    notes=_REGIONS_NOTE,
)
def run_release_regions(options: argparse.Namespace) -> None:
    confidence, privacy = confidence_of(options), privacy_of(options)
    if options.whole and options.table is None:
        raise ValueError("--whole is for --table")
    named = options.budget in ("equal", "leaves")
    regions = options.region
    leaves = read_groups(
        options.leaves,
        options.count,
        options.size,
        regions,
        options=read_options(options),
        labels=regions,
        remedy="",
    )
    paths = [_path(names) for names in zip(*map(leaves.kept.__getitem__, regions), strict=True)]
    release = release_regions(
        Regions(paths),
        leaves.counts,
        leaves.sizes,
        privacy,
        properties=options.property,
        budget=options.budget if named else options.budget.split(","),
        rng=generator_of(options, "these counts"),
    )
    release.save(options.out)
    print(release.statement)
    say(f"wrote {options.out}: {len(paths)} leaves of {len(release.regions)} regions")
    if options.table is not None:
        _write_table(release.estimate(), options, confidence)
        say(f"wrote {options.table}")


def _path(names: Sequence[str]) -> list[str]:
    """The regions of a leaf, from the top down, without the last ones that are empty."""
    path = [*names]
    while path and not path[-1].strip():
        path.pop()
    return path


def _write_table(estimate: RegionEstimate, options: argparse.Namespace, confidence: float) -> None:
    names, results = options.region, ["estimate", "standard error", "low", "high"]
    results += ["whole"] * options.whole
    lines: list[list[Any]] = [[*names, *(untaken(name, names) for name in results)]]
    errors, numbers = estimate.standard_errors, estimate.whole().tolist()
    told = zip(estimate.regions.paths, estimate.values, errors, numbers, strict=True)
    for path, value, error, number in told:
        cells = [*path, *[""] * (len(names) - len(path))]
        interval = estimate.answer(path).interval(confidence)
        ends = (f"{float(end):.0f}" for end in interval)
        nearest = [number] * options.whole
        lines.append([*cells, f"{value:.2f}", f"{error:.2f}", *ends, *nearest])
    write_csv(options.table, lines, spreadsheet=options.spreadsheet)
