"""The command ``release``: a column of true counts through a mechanism."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mechdesign.base.csv_rows import SEPARATORS
from mechdesign.cli.options import (
    AddCommand,
    add_force,
    add_seed,
    add_spreadsheet,
    check_apart,
    check_suffix,
    check_targets,
    generator_of,
    say,
    warn_of_epsilon,
)
from mechdesign.column_release import release_column
from mechdesign.mechanism import Mechanism
from mechdesign.values import CountPairs


def add_release(add: AddCommand) -> None:
    """Add ``release``."""
    chosen = add(
        "release",
        _release,
        "apply a mechanism to a column of true counts",
        "release wm.json --input true.csv --column count --out released.csv",
    )
    chosen.add_argument(
        "file", type=Path, help="the mechanism (.json); a certificate in it is not read"
    )
    chosen.add_argument("--input", type=Path, required=True, help="CSV file with a header line")
    chosen.add_argument(
        "--column",
        required=True,
        help="the column of true counts; it is replaced, never copied. Of pairs of counts: A,B",
    )
    chosen.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="NAME",
        help="a column to copy unchanged; may be repeated",
    )
    chosen.add_argument(
        "--separator",
        choices=["tab" if each == "\t" else each for each in SEPARATORS],
        help="what separates cells, in both files (default: found from the header line)",
    )
    chosen.add_argument("--out", type=Path, required=True, help="CSV file to write")
    add_seed(chosen)
    add_spreadsheet(chosen)
    add_force(chosen)


def _release(options: argparse.Namespace) -> int:
    check_targets(options, options.out)
    check_suffix(options.out, ".csv")
    check_apart(options.out, options.file, options.input)
    mechanism = Mechanism.load(options.file, certificate=False)
    warn_of_epsilon(mechanism.privacy.epsilon)
    pairs = isinstance(mechanism.input_values, CountPairs)
    columns = options.column.split(",") if pairs else [options.column]
    for column in columns:
        if column in options.keep:
            raise ValueError(f"--keep {column} would publish the true counts")
    read = release_column(
        mechanism,
        options.input,
        options.out,
        columns,
        options.keep,
        "\t" if options.separator == "tab" else options.separator,
        generator_of(options, "these counts"),
        options.spreadsheet,
    )
    say(
        f"mechdesign: read {read.rows} rows of {options.input}, "
        f"separator {read.separator!r}, column {options.column!r}",
        sys.stderr,
    )
    say(f"wrote {options.out}: {read.rows} counts")
    return 0
