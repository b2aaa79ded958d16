"""The command ``release-table``: a table of counts, each through the mechanism of its group."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mechdesign.base.csv_rows import untaken, write_csv
from mechdesign.base.numbers import exact
from mechdesign.base.text import aligned, printable, to_text
from mechdesign.cli.options import (
    AddCommand,
    add_confidence,
    add_copied,
    add_force,
    add_privacy,
    add_properties,
    add_seed,
    add_spreadsheet,
    check_written,
    confidence_of,
    generator_of,
    privacy_of,
    say,
    separator_of,
)
from mechdesign.losses import Loss, Power
from mechdesign.standard_errors import UNBIASED, StandardErrors
from mechdesign.tables.counts_csv import read_groups
from mechdesign.tables.design_cache import TOTAL
from mechdesign.tables.estimates import TotalEstimate
from mechdesign.tables.table_release import TableRelease, release

_SHOWN = 8
"""Sizes of groups whose errors are printed; --json has all."""

_TOLD = """columns of a .csv file:
  those of --total and --keep, the public size, and the released count under the name of --count;
  with --estimates also the unbiased estimate of each count, and the ends of an interval for it

A .json file holds the release, with the columns of --total and --keep as names of its counts:
  mechdesign.tables.TableRelease.load reads it, and estimates totals from it."""


def add_release_table(add: AddCommand) -> None:
    """Add ``release-table``."""
    chosen = add(
        "release-table",
        _release_table,
        "release a table of counts of groups of public sizes, with totals and a statement",
        "release-table schools.csv --count ill --size pupils --epsilon 1 --property WH"
        " --property CM --total town --out released.csv",
    )
    chosen.epilog = f"{_TOLD}\n\n{chosen.epilog}"
    chosen.add_argument("counts", type=Path, help="CSV file with a row for each group")
    chosen.add_argument(
        "--count",
        required=True,
        metavar="COLUMN",
        help="the column of true counts; it is replaced, never copied",
    )
    chosen.add_argument(
        "--size",
        required=True,
        metavar="COLUMN",
        help="the column of group sizes, which are public",
    )
    add_privacy(chosen)
    chosen.add_argument(
        "--loss",
        default="L0",
        help="what the mechanisms minimise: L0 (default), L1, L2, ... for single counts; total for"
        " totals",
    )
    add_properties(chosen)
    chosen.add_argument(
        "--overlap",
        type=int,
        default=1,
        metavar="K",
        help="in how many groups of the table one person can be (default 1)",
    )
    chosen.add_argument(
        "--total",
        action="append",
        default=[],
        dest="totals",
        metavar="COLUMN",
        help="print the subtotals for each label of this column, too; may be repeated",
    )
    add_copied(chosen)
    add_confidence(chosen)
    chosen.add_argument(
        "--estimates", action="store_true", help="add estimates of counts to a .csv file"
    )
    chosen.add_argument(
        "--out",
        type=Path,
        action="append",
        required=True,
        help="write the released counts (.csv), or the whole release (.json); may be repeated",
    )
    chosen.add_argument("--json", action="store_true", help="print JSON")
    chosen.add_argument(
        "--no-cache",
        action="store_true",
        help="design anew, and do not keep the designs for the next table",
    )
    add_seed(chosen)
    add_spreadsheet(chosen)
    add_force(chosen)


def _release_table(options: argparse.Namespace) -> int:
    targets = list(dict.fromkeys(options.out))
    for target in targets:
        check_written(options, target, ".csv", ".json", sources=[options.counts])
    columns = list(dict.fromkeys([*options.totals, *options.keep]))
    if options.count in columns:
        raise ValueError(f"the column {options.count} would publish the true counts")
    confidence = confidence_of(options)
    privacy, loss = privacy_of(options), _loss(options.loss)
    read = read_groups(
        options.counts,
        options.count,
        options.size,
        columns,
        separator_of(options),
        overlap=options.overlap,
    )
    copied = [(name, read.kept[name]) for name in columns if name != options.size]
    labels = zip(*(column for _, column in copied), strict=True)
    found = release(
        read.counts,
        read.sizes,
        privacy,
        loss,
        options.properties,
        names=[", ".join(row) for row in labels] if copied else None,
        overlap=options.overlap,
        rng=generator_of(options, "these counts"),
        cache=not options.no_cache,
        progress=True,
    )
    for target in targets:
        if target.suffix == ".json":
            found.save(target)
            continue
        lines = _lines(found, copied, options, confidence)
        write_csv(target, lines, read.separator, options.spreadsheet, read.mark)
    sizes = list(found.mechanisms) if options.json else _shown(list(found.mechanisms))
    errors = {size: StandardErrors.of(found.mechanisms[size]) for size in sizes}
    totals = list(_totals(found, {name: read.kept[name] for name in options.totals}))
    if options.json:
        print(json.dumps(_to_dict(found, errors, totals, confidence), indent=1))
    else:
        _print(found, errors, totals, confidence)
        for target in targets:
            say(f"wrote {target}: {len(read.counts)} counts")
    return 0


def _loss(text: str) -> Loss | Literal["total"]:
    if text == TOTAL:
        return TOTAL
    if not text.startswith("L"):
        raise ValueError(f"a loss is L0, L1, L2, Lp or {TOTAL}, got {text!r}")
    return Power(exact(text[1:], "the p of --loss"))


def _lines(
    found: TableRelease,
    copied: Sequence[tuple[str, Sequence[str]]],
    options: argparse.Namespace,
    confidence: float,
) -> Iterator[Sequence[Any]]:
    """The header and the rows of the released table."""
    names = [*(name for name, _ in copied), options.size, options.count]
    estimates = ["estimate", "low", "high"] if options.estimates else []
    yield [*names, *(untaken(name, names) for name in estimates)]
    known: list[tuple[Any, ...]] = [()] * len(found.sizes)
    if options.estimates:  # only then: the intervals take exact sums
        cells = found.cells(confidence)
        known = [(f"{each.estimate:.3f}", each.low, each.high) for each in cells]
    rows = zip(found.sizes.tolist(), found.released.tolist(), known, strict=True)
    for k, (size, released, more) in enumerate(rows):
        yield [*(column[k] for _, column in copied), size, released, *more]


def _totals(
    found: TableRelease, columns: dict[str, list[str]]
) -> Iterator[tuple[str, str, TotalEstimate]]:
    """The subtotals by each column, and the total: column, label and estimate."""
    for name, column in columns.items():
        labels = np.array(column, dtype=object)
        for label in dict.fromkeys(column):
            yield name, label, found.total(labels == label)
    yield "", "", found.total()


def _shown(sizes: Sequence[int]) -> list[int]:
    """Some of the sizes, evenly spread, where they are many."""
    places = np.linspace(0, len(sizes) - 1, min(len(sizes), _SHOWN)).round().astype(int)
    return [sizes[k] for k in places]


def _print(
    found: TableRelease,
    errors: dict[int, StandardErrors],
    totals: Sequence[tuple[str, str, TotalEstimate]],
    confidence: float,
) -> None:
    print(found.statement)
    names = ("size", "groups", *next(iter(errors.values())).cells())
    rows = [list(names)]
    for size, both in errors.items():
        rows.append([str(size), str((found.sizes == size).sum()), *both.cells().values()])
    print("", *aligned(rows), sep="\n")
    if len(found.mechanisms) > len(errors):
        print(f"... {len(found.mechanisms)} sizes in all")
    print(UNBIASED)
    rows = [["total", "groups", "people", "estimate", "standard error", f"{confidence:g} interval"]]
    for name, label, total in totals:
        low, high = total.interval(confidence)
        rows.append(
            [
                f"{printable(name)} {printable(label)}" if name else "all",
                str(total.cells),
                str(total.people),
                f"{total.value:.1f}",
                f"{total.standard_error:.2f}",
                f"{low} .. {high}",
            ]
        )
    print("", *aligned(rows), sep="\n")


def _to_dict(
    found: TableRelease,
    errors: dict[int, StandardErrors],
    totals: Sequence[tuple[str, str, TotalEstimate]],
    confidence: float,
) -> dict[str, Any]:
    statement = found.statement
    return {
        "cells": statement.cells,
        "overlap": statement.overlap,
        "alpha_of_a_cell": to_text(statement.privacy.alpha),
        "alpha": to_text(statement.alpha),
        "epsilon": statement.epsilon,
        "audited_ratio": to_text(statement.ratio),
        "reproducible": statement.reproducible,
        "sizes": [
            {
                "size": size,
                "groups": int((found.sizes == size).sum()),
                "rmse": each.published,
                "unbiased_standard_error": each.unbiased,
            }
            for size, each in errors.items()
        ],
        "confidence": confidence,
        "totals": [
            {
                "column": name or None,
                "label": label if name else None,
                "groups": total.cells,
                "people": total.people,
                "value": total.value,
                "variance": total.variance,
                "interval": [*total.interval(confidence)],
            }
            for name, label, total in totals
        ],
    }
