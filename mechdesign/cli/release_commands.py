"""The command ``release-table``: a table of counts, each through the mechanism of its group."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from fractions import Fraction
from importlib.metadata import entry_points
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mechdesign.base import (
    Integers,
    aligned,
    brief,
    count_in,
    exact,
    listed,
    opened_rows,
    printable,
    to_text,
    untaken,
    write_csv,
)
from mechdesign.cli.mechanism_commands import costs_in
from mechdesign.cli.options import (
    CONFIDENCE,
    COPIED,
    FORCE,
    LABELLED_COUNTS,
    PRIOR,
    PRIVACY,
    PROPERTIES,
    RELEASE,
    SEED,
    SPREADSHEET,
    command,
    confidence_of,
    epsilon_in,
    generator_of,
    ledger_of,
    prior_in,
    privacy_of,
    read_options,
    save_figure,
    say,
)
from mechdesign.exceptions import InvalidTable
from mechdesign.losses import L0, Costs, Loss, Power, prior_for
from mechdesign.mechanism.closed_form import SMALL, FairLaw
from mechdesign.mechanism.comparison import UNBIASED, StandardErrors
from mechdesign.mechanism.values import Counts
from mechdesign.optimisation.theory import LARGEST_GROUP, closed_form
from mechdesign.perturbation import PerturbationTable
from mechdesign.privacy import Privacy
from mechdesign.tables import (
    Axes,
    ContingencyRelease,
    PublishedTable,
    SuppressionRule,
    TableRelease,
    TotalEstimate,
    compare_suppression,
    release,
    release_contingency,
)
from mechdesign.tables.axes import GroupRows, LabelledCounts, read_counts, read_groups
from mechdesign.tables.design_cache import TOTAL

_FULL = 4  # so many times as many cells as rows make a table that is published by its columns

_SHOWN = 8  # sizes of groups whose errors are printed; --json has all

_TABLE_NOTES = """columns of a .csv file:
  those of --total and --keep, the public size, and the released count under the name of --count;
  with --estimates also the unbiased estimate of each count, and the ends of an interval for it

Excel (.xlsx), PX (.px), SDMX-CSV 2 (.sdmx.csv) and Parquet files have all of these, and the
  statement, for columns of labels that differ in each row.

from a table with a row for each person:
  with --group the groups are those of the attributes' labels, in all combinations, and --count is a
  condition such as "ill yes and age 18:". How many people a group has is taken for public, as
  sizes are. With --cells FILE only the combinations in it are groups, and somebody in another one
  is an error; --size is then a column of it. No true count is written.

A .json file holds the release, with the columns of --total and --keep as names of its counts:
  mechdesign.tables.TableRelease.load reads it, and estimates totals from it."""


@command(
    "release-table",
    "release a table of counts of groups of public sizes, with totals and a statement",
    "release-table schools.csv --count ill --size pupils --epsilon 1 --property WH --property CM"
    " --total town --out released.csv",
    """
    counts [file]  table with a row for each group (.csv, .xlsx, .sav, .parquet and others), or with
        --group for each person
    --count COLUMN [required]  the column of true counts; it is replaced, never copied
    --size COLUMN  the column of group sizes, which are public
    --group NAME [repeated]  an attribute of people, whose labels make the groups, see below
    --schema FILE [file]  of people (.toml or .json)
    --cells all|FILE  the groups of people: all combinations of labels (default), or those of a
        file with a column for each --group
    --loss LOSS  what the mechanisms minimise: L0 (default), L1, L2, ... for single counts; total
        for totals
    --cost CSV [file]  instead of a loss: a table of exact costs >= 0, a line for each output, a
        cell for each count up to the largest size; smaller groups take the first ones
    --overlap K [int, default 1]  in how many groups of the table one person can be
    --total COLUMN [repeated]  print the subtotals for each label of this column, too
    --estimates  add estimates of counts to a .csv file
    --ledger FILE [file]  spend from this ledger what a person loses in all, under the name of the
        first file that is written
    --out FILE [.csv .json .xlsx .px .parquet, repeated, required]  write the released counts, or in
        .json the whole release
    --json  print JSON
    --no-cache  design anew, and do not keep the designs for the next table
    """,
    PRIVACY,
    PROPERTIES,
    PRIOR,
    COPIED,
    CONFIDENCE,
    SEED,
    SPREADSHEET,
    FORCE,
    notes=_TABLE_NOTES,
)
def run_release_table(options: argparse.Namespace) -> None:
    targets = list(dict.fromkeys(options.out))
    columns = list(dict.fromkeys([*options.total, *options.keep]))
    if options.count in columns:
        raise ValueError(f"the column {options.count} would publish the true counts")
    confidence = confidence_of(options)
    privacy, ledger, prior = privacy_of(options), ledger_of(options), prior_in(options)
    loss: Loss | Literal["total"] = _loss(options.loss or "L0")
    if options.cost is not None and options.loss is not None:
        raise ValueError("--cost takes the place of --loss")
    count, size, read = _groups(options, columns)
    columns = [*read.kept] if options.group else columns
    if options.cost is not None:
        counts = Counts(0, max(read.sizes))
        loss = Costs(costs_in(options.cost, counts, counts))
    copied = [(name, read.kept[name]) for name in columns if name != size]
    published = {target for target in targets if _is_published(target)}
    axes, places = _axes_of(copied) if published else (None, None)
    labels = zip(*(column for _, column in copied), strict=True)
    noisy_table = release(
        read.counts,
        read.sizes,
        privacy,
        loss,
        options.property,
        prior=prior,
        names=[", ".join(row) for row in labels] if copied else None,
        overlap=options.overlap,
        rng=generator_of(options, "these counts"),
        cache=not options.no_cache,
        progress=True,
    )
    texts = (size, count, options.estimates)

    def write(target: Path, path: Path) -> None:
        if target.suffix == ".json":
            noisy_table.save(path)
        elif axes is not None and places is not None and target in published:
            title = f"{count} by {', '.join(axes.names)}"
            _published(noisy_table, axes, places, title, confidence).save(path)
        else:
            lines = _lines(noisy_table, copied, texts, confidence)
            write_csv(path, lines, read.separator, options.spreadsheet, read.mark)

    first, *others = targets
    cost = Fraction(noisy_table.statement.epsilon)
    spending = nullcontext(first) if ledger is None else ledger.publishing(cost, first.name, first)
    with spending as path:
        write(first, path)
    for target in others:  # of the same draw, which is published by now
        write(target, target)
    sizes = list(noisy_table.mechanisms) if options.json else _shown(list(noisy_table.mechanisms))
    errors = {
        size: StandardErrors.of(noisy_table.mechanisms[size], prior_for(size, prior))
        for size in sizes
    }
    totals = list(_totals(noisy_table, {name: read.kept[name] for name in options.total}))
    if options.json:
        print(json.dumps(_to_dict(noisy_table, errors, totals, confidence), indent=1))
    else:
        _print(noisy_table, errors, totals, confidence, _not_designed(noisy_table, loss, options))
        for target in targets:
            say(f"wrote {target}: {len(read.counts)} counts")


def _is_published(target: Path) -> bool:
    """Whether a file is in a format of `PublishedTable`, by its name."""
    plain = target.suffix == ".json" or target.suffix == ".csv"
    return not plain or target.name.endswith(".sdmx.csv")


def _groups(options: argparse.Namespace, columns: Sequence[str]) -> tuple[str, str, GroupRows]:
    """The names of the columns of counts and sizes, and the groups."""
    if not options.group:
        if options.schema is not None or options.cells is not None:
            raise ValueError("--schema and --cells are of people, of whom --group makes groups")
        if options.size is None:
            raise ValueError("--size names the column of group sizes, which are public")
        read = read_groups(
            options.counts,
            options.count,
            options.size,
            columns,
            options=read_options(options),
            overlap=options.overlap,
        )
        return options.count, options.size, read
    listed_cells = options.cells not in (None, "all")
    if options.schema is None:
        raise ValueError("--group takes a --schema, which says what columns hold")
    if options.overlap != 1:
        raise ValueError("--overlap is for tables of groups: a row is a person, in one group")
    if options.size is not None and not listed_cells:
        raise ValueError("with --group, --size is a column of the file of --cells")
    if strange := [name for name in columns if name not in options.group]:
        raise ValueError(f"{strange[0]} is no --group, and each row of the result is one of these")
    people = _people(options, options.group, options.count)
    count, size = untaken("count", people.names), untaken("people", people.names)
    if not listed_cells:
        cells = [*product(*people.labels)]
        sizes = people.people.ravel().tolist()
    else:
        cells, sizes = _listed_cells(Path(options.cells), people, options)
    places = dict(zip(product(*people.labels), people.met.ravel().tolist(), strict=True))
    counts = [places[cell] for cell in cells]
    kept = {name: [cell[k] for cell in cells] for k, name in enumerate(people.names)}
    return count, options.size or size, GroupRows(counts, sizes, kept, "", ",")


def _people(options: argparse.Namespace, by: Sequence[str], where: str | None) -> Any:
    """The people of a table by attributes, in true counts."""
    counting = [*entry_points(group="mechdesign.people")]
    if not counting:
        raise ValueError("counting people needs the package rangeq, which is not installed")
    return counting[0].load()(options.counts, options.schema, by, where, read_options(options))


def _listed_cells(
    source: Path, people: Any, options: argparse.Namespace
) -> tuple[list[tuple[str, ...]], list[int]]:
    """The groups that a file lists, and their sizes; nobody may be in another one."""
    known = dict(zip(product(*people.labels), people.people.ravel().tolist(), strict=True))
    cells: list[tuple[str, ...]] = []
    sizes: list[int] = []
    with opened_rows(source) as read:
        names = read.places(people.names)
        (column,) = read.places([options.size]) if options.size is not None else (None,)
        for row, line in read.at_least_one():
            cell = tuple(row[place] for place in names)
            if cell not in known or cell in cells:
                what = "comes twice" if cell in known else "is no combination of labels"
                raise read.refusal(line, f"{listed(cell)} {what}")
            size = known[cell] if column is None else count_in(row[column])
            if size < known[cell]:
                raise read.refusal(
                    line,
                    f"{row[column or 0]!r} is no size of a group, or less than"
                    " the people who are in it",
                )
            cells.append(cell)
            sizes.append(size)
    if outside := [cell for cell, there in known.items() if there and cell not in {*cells}]:
        raise InvalidTable(
            f"{source} does not list {listed(outside[0])}, where somebody is; nothing was written"
        )
    return cells, sizes


def _loss(text: str) -> Loss | Literal["total"]:
    if text == TOTAL:
        return TOTAL
    if not text.startswith("L"):
        raise ValueError(f"a loss is L0, L1, L2, Lp or {TOTAL}, got {text!r}")
    return Power(exact(text[1:], "the p of --loss"))


def _lines(
    found: TableRelease,
    copied: Sequence[tuple[str, Sequence[str]]],
    asked: tuple[str, str, bool],
    confidence: float,
) -> Iterator[Sequence[Any]]:
    """The header and the rows of the released table, by the names of size and count."""
    size, count, estimated = asked
    names = [*(name for name, _ in copied), size, count]
    estimates = ["estimate", "low", "high"] if estimated else []
    yield [*names, *(untaken(name, names) for name in estimates)]
    known: list[tuple[Any, ...]] = [()] * len(found.sizes)
    if estimated:  # only then: the intervals take exact sums
        cells = found.cells(confidence)
        known = [(f"{each.estimate:.3f}", each.low, each.high) for each in cells]
    rows = zip(found.sizes.tolist(), found.released.tolist(), known, strict=True)
    for k, (size, released, more) in enumerate(rows):
        yield [*(column[k] for _, column in copied), size, released, *more]


def _axes_of(copied: Sequence[tuple[str, Sequence[str]]]) -> tuple[Axes, Integers]:
    """The axes of a published table, and which of their cells each row is.

    They are the columns of labels, or where hardly any of their combinations are rows, as of towns
    in counties, all of them together. InvalidTable if two rows have the same labels.
    """
    cells = [*zip(*(column for _, column in copied), strict=True)]
    if not cells or len({*cells}) < len(cells):
        raise InvalidTable(
            "a published table has other labels in each row: copy more columns by --keep; nothing"
            " was written"
        )
    axes = Axes({name: [*dict.fromkeys(column)] for name, column in copied})
    if axes.size > _FULL * len(cells):
        cells = [(", ".join(cell),) for cell in cells]
        axes = Axes({", ".join(name for name, _ in copied): [cell for (cell,) in cells]})
    places = {cell: place for place, cell in enumerate(axes.cells())}
    return axes, np.array([places[cell] for cell in cells], dtype=np.int64)


def _published(
    found: TableRelease, axes: Axes, places: Integers, title: str, confidence: float
) -> PublishedTable:
    """The released table for an office."""
    known = found.cells(confidence)
    columns = {
        "people": found.sizes,
        "released": found.released,
        "estimate": np.array(
            [np.nan if each.estimate is None else each.estimate for each in known]
        ),
        "low": np.array([each.low for each in known]),
        "high": np.array([each.high for each in known]),
    }
    numbers = {name: np.zeros(axes.size, dtype=column.dtype) for name, column in columns.items()}
    for name, column in columns.items():
        numbers[name][places] = column
    impossible = np.ones(axes.size, dtype=bool)
    impossible[places] = False
    statement = f"{found.statement}\nlow .. high: {confidence:g} intervals"
    return PublishedTable(axes, numbers, title, statement, impossible)


def _totals(
    found: TableRelease, columns: dict[str, list[str]]
) -> Iterator[tuple[str, str, TotalEstimate]]:
    """The subtotals by each column, and the total: column, label and estimate."""
    for name, column in columns.items():
        labels = np.array(column, dtype=object)
        for label in dict.fromkeys(column):
            yield name, label, found.total(labels == label)
    yield "", "", found.total()


def _not_designed(found: TableRelease, loss: Loss | Literal["total"], options: Any) -> str:
    """How much the closed forms can lose that stand for optima which would take too long."""
    least = LARGEST_GROUP if loss == TOTAL else SMALL
    sizes = [size for size, each in found.mechanisms.items() if size > least and each.law]
    if loss == L0():
        privacy = found.statement.privacy
        known = {size: closed_form(size, privacy, options.property).excess for size in sizes}
        sizes = [size for size in sizes if known[size]]
        most = brief(max(known.values(), default=Fraction(0)), 3)
        loses = f"others are wrong less often by at most {most} (proved)"
    else:
        # For totals the geometric mechanism has the least variance.
        fair = [size for size in sizes if isinstance(found.mechanisms[size].law, FairLaw)]
        sizes = fair if loss == TOTAL else sizes
        loses = "how much less others lose is not known"
    if not sizes:
        return ""
    forms = f"{len(sizes)} sizes from {min(sizes)} on, too large for a program, have a closed form"
    return f"{forms}: {loses}"


def _shown(sizes: Sequence[int]) -> list[int]:
    """Return the sizes, or where they are many a few of them, evenly spread."""
    places = np.linspace(0, len(sizes) - 1, min(len(sizes), _SHOWN)).round().astype(int)
    return [sizes[k] for k in places]


def _print(
    found: TableRelease,
    errors: dict[int, StandardErrors],
    totals: Sequence[tuple[str, str, TotalEstimate]],
    confidence: float,
    not_designed: str,
) -> None:
    print(found.statement)
    names = ("size", "groups", *next(iter(errors.values())).cells())
    rows = [list(names)]
    for size, both in errors.items():
        rows.append([str(size), str((found.sizes == size).sum()), *both.cells().values()])
    print("", *aligned(rows), sep="\n")
    if len(found.mechanisms) > len(errors):
        print(f"... {len(found.mechanisms)} sizes in all")
    if not_designed:
        print(not_designed)
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

--table writes CSV, Excel (.xlsx), PX (.px), JSON-stat 2 (.json), SDMX-CSV 2 (.sdmx.csv) or Parquet

columns of --table:
  released           what the mechanism gave: biased at both ends of its range
  estimate           the least squares estimate: unbiased, and cells, margins and total agree
  standard error     of the estimate
  low, high          ends of an interval for the true count; with --cap 50 a count of 50 or more is\
 "50 or more",
                     and estimate and standard error are those of the count up to 50
  whole number       with --whole: the nearest table of whole numbers from 0 up, which is biased
  measured bias      of the whole number, measured by drawing again with it as the true count"""


def _margin(text: str) -> tuple[tuple[str, ...], str]:
    names, equals, epsilon = text.rpartition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"a margin is AXES=EPSILON, got {text!r}")
    return tuple(name for name in names.split(",") if name), epsilon_in(epsilon)


@command(
    "release-contingency",
    "release a table of people by several attributes, and estimates that agree",
    "release-contingency people.csv --count people --within region --epsilon 1"
    " --margin answer=0.5 --out answers.json --table answers.csv",
    LABELLED_COUNTS,
    """
    --attribute NAME [repeated]  an attribute of people, of whom the table has a row each: they are
        counted by all combinations of labels, and no true count is written
    --schema FILE [file]  of people (.toml or .json)
    | --within AXIS [repeated, required]  how many people have each label is public; one who moves
        to another cell with the same label is protected; several with commas between them, for
        combinations of labels
    | --public-total  the number of all people is public; one who moves to another cell is protected
    | --cap N [int]  no number of people is public; one who is added or removed is protected; counts
        above N are taken for it
    | --size COLUMN  the column of group sizes, which are public, of which each cell counts some
        people; one who changes whether they count is protected
    --per-person  epsilons are those of one person and not of one cell or sum: the whole release
        costs their sum
    --margin AXES=EPSILON [margin, repeated]  release the sums by these axes, too (separated by
        commas; none for the total), each with this epsilon
    --whole  add biased whole numbers to --table, see below
    --ledger FILE [file]  spend from this ledger what a person loses in all, under the name of --out
    --table FILE [.csv .json .parquet .px .xlsx]  write a table of cells, see below
    """,
    PRIVACY,
    PROPERTIES,
    RELEASE,
    notes=_CONTINGENCY_NOTES,
    margin=_margin,
)
def run_release_contingency(options: argparse.Namespace) -> None:
    if options.whole and options.table is None:
        raise ValueError("--whole adds to --table, which is not given")
    if len(dict(options.margin)) < len(options.margin):
        raise ValueError("a --margin is given twice")
    changed = 2 if options.within or options.public_total else 1
    parts = changed if options.per_person else 1
    confidence, privacy = confidence_of(options), _privacy(options, parts)
    ledger = ledger_of(options)
    margins = {
        names: Privacy.from_epsilon(exact(epsilon, "--margin") / parts)
        for names, epsilon in options.margin
    }
    if options.attribute:
        if options.count is not None or options.size is not None or options.schema is None:
            raise ValueError(
                "--attribute counts people, each of them in one cell: it takes a --schema, and"
                " neither --count nor --size"
            )
        people = _people(options, options.attribute, None)
        read = LabelledCounts(people.names, people.labels, people.people, None)
    else:
        read = read_counts(options.counts, options.count, options.size, read_options(options))
    rng = generator_of(options, "these counts")
    release = release_contingency(
        read.counts,
        Axes(dict(zip(read.names, read.labels, strict=True))),
        privacy,
        properties=options.property,
        within=[] if options.public_total else _axes(options.within, read.names) or None,
        caps=options.cap if options.size is None else read.sizes,
        margins=margins,
        rng=rng,
    )
    if ledger is None:
        release.save(options.out)
    else:
        cost = Fraction(release.statement.epsilon)
        with ledger.publishing(cost, options.out.name, options.out) as path:
            release.save(path)
    print(release.statement)
    say(f"wrote {options.out}: {release.axes.size} cells")
    if options.table is not None:
        _write_table(release, options, confidence)
        say(f"wrote {options.table}")


def _axes(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names of axes, each by itself or several with commas between them."""
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
    table = release.consistent()
    names = release.axes.names
    intervals = [
        table.estimate(dict(zip(names, labels, strict=True))).interval(confidence)
        for labels in release.axes.cells()
    ]
    low, high = np.array(intervals, dtype=np.int64).T
    numbers = {
        "released": release.released.ravel(),
        "estimate": table.cells.ravel(),
        "standard error": table.standard_errors.ravel(),
        "low": low,
        "high": high,
    }
    if options.whole:
        nearest = release.whole()
        numbers |= {"whole number": nearest.cells.ravel(), "measured bias": nearest.bias.ravel()}
        say(
            f"whole numbers are biased: measured over {nearest.draws} draws, by"
            f" {nearest.bias.min():+.2f} to {nearest.bias.max():+.2f} in a cell and"
            f" {nearest.bias.sum():+.2f} in the total"
        )
    if options.table.suffix == ".json" or _is_published(options.table):
        title = f"{options.count or 'people'} by {', '.join(names)}"
        statement = f"{release.statement}\nlow .. high: {confidence:g} intervals"
        if options.cap is not None:
            statement += f"\n{options.cap}: so many or more"
        PublishedTable(release.axes, numbers, title, statement).save(options.table)
        return
    texts = [_texts(name, values, options.cap) for name, values in numbers.items()]
    rows = zip(release.axes.cells(), *texts, strict=True)
    lines = [[*names, *(untaken(name, names) for name in numbers)]]
    lines += [[*labels, *cells] for labels, *cells in rows]
    write_csv(options.table, lines, spreadsheet=options.spreadsheet)


def _texts(name: str, numbers: Any, cap: int | None) -> list[str]:
    """A column of numbers as a table of text has it."""
    if numbers.dtype.kind == "f":
        sign = "+" if name == "measured bias" else ""
        return [f"{number:{sign}.2f}" for number in numbers]
    most = None if name == "low" else cap
    return [f"{n}" if most is None or n < most else f"{most} or more" for n in numbers]


# ------------------------------------------------------------------------------------------------
# The command ``compare-suppression``: a suppressed table, attacked, beside a mechanism.


@command(
    "compare-suppression",
    "suppress and round a table of true counts, recover what its totals give away, and compare with"
    " a mechanism",
    """compare-suppression table.csv --threshold 7 --round 5 --epsilon 1
  mechdesign compare-suppression cells.csv --count ill --size residents --threshold 7 --epsilon 1\
 --property WH --property CM""",
    LABELLED_COUNTS,
    """
    --size COLUMN  the column of group sizes, which are public
    --threshold THRESHOLD [int, required]  counts below it are suppressed
    --round BASE [int, default 1]  round the others to multiples of it: of 1, not at all
    --random  round to one of the two multiples around, so that the mean is right; otherwise to the
        nearest
    --suppress-zeros  suppress zeros as other small counts
    --complementary  suppress more, until no row or column has exactly one suppressed entry
    --totals [exact|rounded|none, default exact]  publish totals as they are, rounded, or not at all
    --perturbation FILE [file, repeated]  perturbation tables of cell keys, .csv or .txt,
        to compare as well
    --json  print everything as JSON
    --plot FILE [.png .pdf .svg]  draw intervals and errors
    """,
    PRIVACY,
    PROPERTIES,
    SEED,
    FORCE,
)
def run_compare_suppression(options: argparse.Namespace) -> None:
    rule = SuppressionRule(
        options.threshold,
        options.round,
        "random" if options.random else "nearest",
        options.suppress_zeros,
        options.complementary,
        options.totals,
    )
    privacy = privacy_of(options)
    table = read_counts(options.counts, options.count, options.size, read_options(options))
    comparison = compare_suppression(
        table.counts,
        rule,
        privacy,
        table.sizes,
        properties=options.property,
        labels=table.labels,
        perturbation={
            printable(path.name): PerturbationTable.read(path) for path in options.perturbation
        },
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
