"""The command ``release-table``: a table of counts, each through the mechanism of its group."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mechdesign.base import aligned, exact, printable, to_text, untaken, write_csv
from mechdesign.cli.options import (
    PICTURES,
    AddCommand,
    add_confidence,
    add_copied,
    add_force,
    add_labelled_counts,
    add_privacy,
    add_properties,
    add_release_files,
    add_seed,
    add_spreadsheet,
    check_release,
    check_written,
    confidence_of,
    generator_of,
    privacy_of,
    save_figure,
    say,
    separator_of,
)
from mechdesign.losses import Loss, Power
from mechdesign.mechanism.comparison import UNBIASED, StandardErrors
from mechdesign.privacy import Privacy
from mechdesign.tables import (
    Axes,
    ContingencyRelease,
    SuppressionRule,
    TableRelease,
    TotalEstimate,
    compare_suppression,
    release,
    release_contingency,
)
from mechdesign.tables.axes import read_counts, read_groups
from mechdesign.tables.design_cache import TOTAL

_SHOWN = 8  # sizes of groups whose errors are printed; --json has all

_TABLE_NOTES = """columns of a .csv file:
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
    chosen.epilog = f"{_TABLE_NOTES}\n\n{chosen.epilog}"
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
        separator=separator_of(options),
        overlap=options.overlap,
    )
    copied = [(name, read.kept[name]) for name in columns if name != options.size]
    labels = zip(*(column for _, column in copied), strict=True)
    noisy_table = release(
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
            noisy_table.save(target)
            continue
        lines = _lines(noisy_table, copied, options, confidence)
        write_csv(target, lines, read.separator, options.spreadsheet, read.mark)
    sizes = list(noisy_table.mechanisms) if options.json else _shown(list(noisy_table.mechanisms))
    errors = {size: StandardErrors.of(noisy_table.mechanisms[size]) for size in sizes}
    totals = list(_totals(noisy_table, {name: read.kept[name] for name in options.totals}))
    if options.json:
        print(json.dumps(_to_dict(noisy_table, errors, totals, confidence), indent=1))
    else:
        _print(noisy_table, errors, totals, confidence)
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
    """Return the sizes, or where they are many a few of them, evenly spread."""
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


# ------------------------------------------------------------------------------------------------
# The command ``release-contingency``: a table of people by several attributes, once.


_CONTINGENCY_NOTES = """privacy:
  --epsilon is that of one cell and --margin that of one sum, for counts that differ by one. With\
 --within and
  --public-total a person changes two of each, with --cap and --size one: what the whole release\
 costs them is printed.
  With --per-person --epsilon is what a person loses by all cells, and --margin by all of its sums.

columns of --table:
  released           what the mechanism gave: biased at both ends of its range
  estimate           the least squares estimate: unbiased, and cells, margins and total agree
  standard error     of the estimate
  low, high          ends of an interval for the true count; with --cap 50 a count of 50 or more is\
 "50 or more",
                     and estimate and standard error are those of the count up to 50
  whole number       with --whole: the nearest table of whole numbers from 0 up, which is biased
  measured bias      of the whole number, measured by drawing again with it as the true count"""


def add_release_contingency(add: AddCommand) -> None:
    """Add ``release-contingency``."""
    chosen = add(
        "release-contingency",
        _release_contingency,
        "release a table of people by several attributes, and estimates that agree",
        "release-contingency people.csv --count people --within region --epsilon 1"
        " --margin answer=0.5 --out answers.json --table answers.csv",
    )
    chosen.epilog = f"{_CONTINGENCY_NOTES}\n\n{chosen.epilog}"
    add_labelled_counts(chosen, "counts")
    public = chosen.add_mutually_exclusive_group(required=True)
    public.add_argument(
        "--within",
        action="append",
        metavar="AXIS",
        help="how many people have each label is public; one who moves to another cell with the"
        " same label is protected; several with commas between them, for combinations of labels",
    )
    public.add_argument(
        "--public-total",
        action="store_true",
        help="the number of all people is public; one who moves to another cell is protected",
    )
    public.add_argument(
        "--cap",
        type=int,
        metavar="N",
        help="no number of people is public; one who is added or removed is protected; counts above"
        " N are taken for it",
    )
    public.add_argument(
        "--size",
        metavar="COLUMN",
        help="the column of group sizes, which are public, of which each cell counts some people;"
        " one who changes whether they count is protected",
    )
    add_privacy(chosen)
    chosen.add_argument(
        "--per-person",
        action="store_true",
        help="epsilons are those of one person and not of one cell or sum: the whole release costs"
        " their sum",
    )
    add_properties(chosen)
    chosen.add_argument(
        "--margin",
        action="append",
        default=[],
        type=_margin,
        dest="margins",
        metavar="AXES=EPSILON",
        help="release the sums by these axes, too (separated by commas; none for the total), each"
        " with this epsilon; may be repeated",
    )
    chosen.add_argument(
        "--whole", action="store_true", help="add biased whole numbers to --table, see below"
    )
    add_release_files(chosen, "write a table of cells (.csv), see below")


def _margin(text: str) -> tuple[tuple[str, ...], str]:
    names, equals, epsilon = text.rpartition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"a margin is AXES=EPSILON, got {text!r}")
    return tuple(name for name in names.split(",") if name), epsilon


def _release_contingency(options: argparse.Namespace) -> int:
    check_release(options, options.counts)
    if options.whole and options.table is None:
        raise ValueError("--whole adds to --table, which is not given")
    if len(dict(options.margins)) < len(options.margins):
        raise ValueError("a --margin is given twice")
    changed = 2 if options.within or options.public_total else 1
    parts = changed if options.per_person else 1
    confidence, privacy = confidence_of(options), _privacy(options, parts)
    margins = {
        names: Privacy.from_epsilon(exact(epsilon, "--margin") / parts)
        for names, epsilon in options.margins
    }
    read = read_counts(options.counts, options.count, options.size)
    rng = generator_of(options, "these counts")
    release = release_contingency(
        read.counts,
        Axes(dict(zip(read.names, read.labels, strict=True))),
        privacy,
        properties=options.properties,
        within=[] if options.public_total else _axes(options.within, read.names),
        caps=options.cap if options.size is None else read.sizes,
        margins=margins,
        rng=rng,
    )
    release.save(options.out)
    print(release.statement)
    say(f"wrote {options.out}: {release.axes.size} cells")
    if options.table is not None:
        _write_table(release, options, confidence)
        say(f"wrote {options.table}")
    return 0


def _axes(given: list[str] | None, names: Sequence[str]) -> list[str] | None:
    """Names of axes, each by itself or several with commas between them."""
    if given is None:
        return None
    return [name for text in given for name in ([text] if text in names else text.split(","))]


def _privacy(options: argparse.Namespace, parts: int) -> Privacy:
    """Return the privacy of a cell: one of so many parts of the epsilon that is asked for."""
    if parts == 1:
        return privacy_of(options)
    if options.epsilon is None:
        raise ValueError("--per-person divides an --epsilon; the root of an alpha is no fraction")
    epsilon = exact(options.epsilon, "--epsilon") / parts
    return privacy_of(argparse.Namespace(**{**vars(options), "epsilon": epsilon}))


def _write_table(
    release: ContingencyRelease, options: argparse.Namespace, confidence: float
) -> None:
    cap = options.cap

    def capped(count: int) -> str:
        return f"{count}" if cap is None or count < cap else f"{cap} or more"

    table = release.consistent()
    names = release.axes.names
    intervals = [
        table.estimate(dict(zip(names, labels, strict=True))).interval(confidence)
        for labels in release.axes.cells()
    ]
    columns = [
        ("released", [*map(capped, release.released.ravel().tolist())]),
        ("estimate", [f"{value:.2f}" for value in table.cells.ravel()]),
        ("standard error", [f"{value:.2f}" for value in table.standard_errors.ravel()]),
        ("low", [str(low) for low, _ in intervals]),
        ("high", [capped(high) for _, high in intervals]),
    ]
    if options.whole:
        nearest = release.whole()
        columns += [
            ("whole number", [*map(capped, nearest.cells.ravel().tolist())]),
            ("measured bias", [f"{value:+.2f}" for value in nearest.bias.ravel()]),
        ]
        say(
            f"whole numbers are biased: measured over {nearest.draws} draws, by"
            f" {nearest.bias.min():+.2f} to {nearest.bias.max():+.2f} in a cell and"
            f" {nearest.bias.sum():+.2f} in the total"
        )
    rows = zip(release.axes.cells(), *(cells for _, cells in columns), strict=True)
    lines = [[*names, *(untaken(name, names) for name, _ in columns)]]
    lines += [[*labels, *cells] for labels, *cells in rows]
    write_csv(options.table, lines, spreadsheet=options.spreadsheet)


# ------------------------------------------------------------------------------------------------
# The command ``compare-suppression``: a suppressed table, attacked, beside a mechanism.


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
    comparison = compare_suppression(
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
    print(json.dumps(comparison.to_dict(), indent=1) if options.json else comparison)
    if options.plot is not None:
        save_figure(comparison.plot(), options.plot, ", which is confidential", sys.stderr)
    return 0
