"""The command ``mechdesign release-regions``: small counts of regions in regions."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mechdesign.base.csv_rows import untaken, write_csv
from mechdesign.cli.options import (
    AddCommand,
    add_privacy,
    add_properties,
    add_release_files,
    check_release,
    confidence_of,
    generator_of,
    privacy_of,
    say,
)
from mechdesign.tables.counts_csv import read_groups
from rangeq.central import RegionEstimate, Regions, release_regions

_NOTE = """\
One person's answer changes the count of one leaf by one, and of each region above: --epsilon is the
loss of all of that. The estimates of --table are unbiased, and parts add up; low and high are ends
of an interval for the true count. For the total let the first --region be a column that is the same
in all rows, such as the country."""


def add_release_regions(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "release-regions",
        _release_regions,
        "release small counts of regions in regions, such as wards in counties: the leaves by the"
        " best mechanisms for their sizes, the regions above with noise, and estimates that add up",
        "release-regions wards.csv --region county --region ward --count ill --size residents"
        " --epsilon 1 --out ill.json --table ill.csv",
    )
    chosen.epilog = f"{_NOTE}\n\n{chosen.epilog}"
    chosen.add_argument("leaves", type=Path, help="CSV file with a row for each leaf")
    chosen.add_argument(
        "--region",
        action="append",
        required=True,
        dest="regions",
        metavar="COLUMN",
        help="a column of names, from the top down to that of the leaves; may be repeated; the last"
        " ones of a row may be empty",
    )
    chosen.add_argument("--count", required=True, metavar="COLUMN", help="the column of counts")
    chosen.add_argument(
        "--size",
        required=True,
        metavar="COLUMN",
        help="the column of the largest possible counts, which are public",
    )
    add_privacy(chosen)
    add_properties(chosen, "what the mechanisms of leaves must have, as in design")
    chosen.add_argument(
        "--budget",
        default="equal",
        metavar="WEIGHTS",
        help="how epsilon is split: equal (default); leaves: these alone; or weights separated by"
        " commas, for each depth from the top and for the leaves",
    )
    add_release_files(chosen, "write the estimates of all regions (.csv)")


def _release_regions(options: argparse.Namespace) -> int:
    check_release(options, options.leaves)
    confidence, privacy = confidence_of(options), privacy_of(options)
    named = options.budget in ("equal", "leaves")
    regions = options.regions
    leaves = read_groups(
        options.leaves, options.count, options.size, regions, labels=regions, remedy=""
    )
    paths = [_path(names) for names in zip(*map(leaves.kept.__getitem__, regions), strict=True)]
    release = release_regions(
        Regions(paths),
        leaves.counts,
        leaves.sizes,
        privacy,
        properties=options.properties,
        budget=options.budget if named else options.budget.split(","),
        rng=generator_of(options, "these counts"),
    )
    release.save(options.out)
    print(release.statement)
    say(f"wrote {options.out}: {len(paths)} leaves of {len(release.regions)} regions")
    if options.table is not None:
        _write_table(release.estimate(), options, confidence)
        say(f"wrote {options.table}")
    return 0


def _path(names: Sequence[str]) -> list[str]:
    """The regions of a leaf, from the top down, without the last ones that are empty."""
    path = [*names]
    while path and not path[-1].strip():
        path.pop()
    return path


def _write_table(estimate: RegionEstimate, options: argparse.Namespace, confidence: float) -> None:
    names, results = options.regions, ("estimate", "standard error", "low", "high")
    lines: list[list[Any]] = [[*names, *(untaken(name, names) for name in results)]]
    errors = estimate.standard_errors
    for path, value, error in zip(estimate.regions.paths, estimate.values, errors, strict=True):
        cells = [*path, *[""] * (len(names) - len(path))]
        interval = estimate.answer(path).interval(confidence)
        ends = (f"{float(end):.0f}" for end in interval)
        lines.append([*cells, f"{value:.2f}", f"{error:.2f}", *ends])
    write_csv(options.table, lines, spreadsheet=options.spreadsheet)
