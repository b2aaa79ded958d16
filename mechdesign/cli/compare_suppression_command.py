"""The command ``compare-suppression``: a suppressed table, attacked, beside a mechanism."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from mechdesign.cli.options import (
    PICTURES,
    AddCommand,
    add_force,
    add_labelled_counts,
    add_privacy,
    add_properties,
    add_seed,
    check_written,
    privacy_of,
    save_figure,
    say,
)
from mechdesign.tables.counts_csv import read_counts
from mechdesign.tables.suppression import SuppressionRule
from mechdesign.tables.suppression_comparison import compare_suppression


def add_compare_suppression(add: AddCommand) -> None:
    """Add ``compare-suppression``."""
    chosen = add(
        "compare-suppression",
        _compare_suppression,
        "suppress and round a table of true counts, recover what its totals give away, and compare"
        " with a mechanism",
        "compare-suppression table.csv --threshold 7 --round 5 --epsilon 1\n"
        "  mechdesign compare-suppression cells.csv --count ill --size residents --threshold 7"
        " --epsilon 1 --property WH --property CM",
    )
    add_labelled_counts(chosen, "table")
    chosen.add_argument(
        "--size", metavar="COLUMN", help="the column of group sizes, which are public"
    )
    chosen.add_argument(
        "--threshold", type=int, required=True, help="counts below it are suppressed"
    )
    chosen.add_argument(
        "--round",
        type=int,
        default=1,
        metavar="BASE",
        help="round the others to multiples of it (default 1: not rounded)",
    )
    chosen.add_argument(
        "--random",
        action="store_true",
        help="round to one of the two multiples around, so that the mean is right; otherwise to the"
        " nearest",
    )
    chosen.add_argument(
        "--suppress-zeros", action="store_true", help="suppress zeros as other small counts"
    )
    chosen.add_argument(
        "--complementary",
        action="store_true",
        help="suppress more, until no row or column has exactly one suppressed entry",
    )
    chosen.add_argument(
        "--totals",
        choices=["exact", "rounded", "none"],
        default="exact",
        help="publish totals as they are (default), rounded, or not at all",
    )
    add_privacy(chosen)
    add_properties(chosen, "what the mechanism must have, as in design")
    chosen.add_argument("--json", action="store_true", help="print everything as JSON")
    chosen.add_argument("--plot", type=Path, help="draw intervals and errors (.png, .pdf, .svg)")
    add_seed(chosen)
    add_force(chosen)


def _compare_suppression(options: argparse.Namespace) -> int:
    check_written(options, options.plot, *PICTURES, sources=[options.table])
    rule = SuppressionRule(
        options.threshold,
        options.round,
        "random" if options.random else "nearest",
        options.suppress_zeros,
        options.complementary,
        options.totals,
    )
    privacy = privacy_of(options)
    table = read_counts(options.table, options.count, options.size)
    found = compare_suppression(
        table.counts,
        rule,
        privacy,
        table.sizes,
        properties=options.properties,
        labels=table.labels,
        rng=None if options.seed is None else np.random.default_rng(options.seed),
        progress=True,
    )
    say(
        "mechdesign: this is computed from true counts and gives them away: it is confidential",
        sys.stderr,
    )
    print(json.dumps(found.to_dict(), indent=1) if options.json else found)
    if options.plot is not None:
        save_figure(found.plot(), options.plot, ", which is confidential", sys.stderr)
    return 0
