"""The command ``mechdesign sample``: synthetic rows of what was collected."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from frequency.cli.schema_command import show_chain
from frequency.exceptions import InvalidQuestion
from mechdesign.base.csv_rows import comma_separated
from mechdesign.base.files import replacing
from mechdesign.base.numbers import whole
from mechdesign.cli.options import (
    AddCommand,
    add_force,
    add_seed,
    add_spreadsheet,
    check_written,
    say,
)
from rangeq.cli.answering import EstimateSource
from rangeq.cli.collected import add_collected, source_of

NOT_PEOPLE = (
    "these rows are not people: nobody has them. They hold what was estimated and nothing else."
    " Counts of them have the error of the estimate and that of the draw of the rows besides; tests"
    " and regressions on them know nothing of the first, nor of what was not estimated"
)
"""What is to be known of rows, wherever they are written."""

_BLOCK = 1 << 16
"""Rows that are text at a time."""


def add_sample(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "sample",
        _sample,
        "write synthetic rows with the distribution that was estimated, in the columns, labels and"
        " units of the schema, for programs that take a table; a value that is missing is empty,"
        " one outside of the schema's is outside; the rows are not people",
        "sample both.agg --protocol both.json --rows 10000 --out synthetic.csv\n  mechdesign sample"
        " age.release --rows 10000 --out synthetic.csv",
    )
    add_collected(chosen)
    chosen.add_argument("--rows", type=int, required=True, metavar="N", help="how many, at least 1")
    chosen.add_argument("--out", type=Path, required=True, help="the file to write (.csv)")
    add_seed(chosen, "of the random numbers, to repeat them; privacy does not depend on them")
    add_spreadsheet(chosen)
    add_force(chosen)
    show_chain(chosen)


def _sample(options: argparse.Namespace) -> int:
    rows = whole(options.rows, "--rows", 1, what="a number of rows")
    check_written(options, options.out, ".csv", sources=[options.collected, options.protocol])
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
    return 0
