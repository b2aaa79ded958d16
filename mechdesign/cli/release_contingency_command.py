"""The command ``release-contingency``: a table of people by several attributes, once."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mechdesign.base.csv_rows import untaken, write_csv
from mechdesign.base.numbers import exact
from mechdesign.cli.options import (
    AddCommand,
    add_labelled_counts,
    add_privacy,
    add_properties,
    add_release_files,
    check_release,
    confidence_of,
    generator_of,
    privacy_of,
    say,
)
from mechdesign.privacy import Privacy
from mechdesign.tables.axes import Axes
from mechdesign.tables.contingency import ContingencyRelease, release_contingency
from mechdesign.tables.counts_csv import read_counts

_TOLD = """privacy:
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
    chosen.epilog = f"{_TOLD}\n\n{chosen.epilog}"
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
        names: Privacy.from_epsilon(exact(own, "--margin") / parts)
        for names, own in options.margins
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
    """That of a cell: of so many parts of the epsilon that is asked for."""
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
