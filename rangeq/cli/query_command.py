"""The command ``mechdesign query``: from an aggregate or a release to answers."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from frequency.cli.protocol_commands import show_chain
from frequency.core import normal_quantile
from mechdesign.base import printable, replacing
from mechdesign.cli.options import (
    PICTURES,
    AddCommand,
    add_force,
    add_spreadsheet,
    check_written,
    save_figure,
    say,
)
from rangeq.cli.answering import AnswerList, AskedText, EstimateSource
from rangeq.cli.collected import Source, add_collected, source_of


def add_query(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "query",
        _query,
        "answer questions from what was collected, in the labels and units of its schema, with"
        " confidence intervals",
        'query age.agg --protocol age.json --where "age 18:64" --quantile 0.5 --table\n  mechdesign'
        ' query both.agg --protocol both.json --where "age 18: and sex female" --marginal sex --out'
        " answers.csv",
    )
    chosen.epilog = f"{_QUESTIONS}\n{chosen.epilog}"
    add_collected(chosen)
    for kind, metavar, text in (
        ("where", "CONDITIONS", 'how many users meet them all, such as "age 18:64 and sex female"'),
        (
            "quantile",
            "PHI",
            "the value with the fraction PHI of the users at or below it; of several attributes"
            ' "PHI of NAME", perhaps "PHI of NAME where CONDITIONS"',
        ),
        ("marginal", "NAMES", "each combination of values of some attributes, such as age,sex"),
    ):
        chosen.add_argument(
            f"--{kind}",
            dest="asked",
            action="append",
            type=partial(AskedText, kind),
            metavar=metavar,
            help=f"{text}; may be repeated",
        )
    chosen.add_argument(
        "--cells",
        dest="asked",
        action="append_const",
        const=AskedText("marginal", ""),
        help="each item, or combination of items of all attributes",
    )
    chosen.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        help="of each interval by itself, in a heat map of those of all cells together"
        " (default 0.95)",
    )
    chosen.add_argument(
        "--fitted",
        action="store_true",
        help="answer by one model that is fitted to all reports on marginals, or on ranges of"
        " several attributes, which mostly errs less",
    )
    chosen.add_argument(
        "--shares",
        action="store_true",
        help="answer and draw in fractions of the users also from a release, which is in users",
    )
    form = chosen.add_mutually_exclusive_group()
    form.add_argument("--table", action="store_true", help="print a table to read; default: CSV")
    form.add_argument("--json", action="store_true", help="print JSON")
    chosen.add_argument("--out", type=Path, help="write the answers (.csv, .json)")
    add_spreadsheet(chosen)
    chosen.add_argument(
        "--plot",
        type=Path,
        help=(
            "draw the attributes that are asked about, or all, three at most (.png, .pdf, .svg);"
            " some of more are a query of their own, such as --marginal sex,age"
        ),
    )
    chosen.add_argument(
        "--kind",
        choices=("bars", "cdf", "histogram", "heat-map", "mosaic"),
        help=(
            "of the picture (default: the cdf of one attribute with an order, bars of one without,"
            " a heat map or a mosaic of several)"
        ),
    )
    add_force(chosen)
    show_chain(chosen)


_QUESTIONS = """Every --where is a question of its own; its conditions are joined by " and ".

  age 18:64                  a range, in the attribute's unit, of whole numbers with both ends; of
                             other numbers it ends before its last; age 60: and age :17 are open
  seen 2013-01:2013-03       dates, months, years, times
  carrier UA,AA              one of these labels
  age missing                where the schema keeps missing values as an answer
  delay=-60:0                negative numbers, after the name
  18:64                      the name may be left out where there is one attribute

Protocols without a schema have the attribute "item", or those of their domain, with values 0, 1, ..
Without a question: the frequent items that were found; or the deciles of each ordered attribute
(its items too, if they are few) and the items of others; or the marginals that were collected.

JSON: {"n": users, "confidence": .., "notes": [..], "answers": [{"question", "value",
"standard error", "low", "high", "unit", "interpolated"}, ..]}, null where something is not known.
"""


def _query(options: argparse.Namespace) -> int:
    read = [options.collected, options.protocol]
    check_written(options, options.out, ".csv", ".json", sources=read)
    check_written(options, options.plot, *PICTURES, sources=[*read, options.out])
    if options.kind is not None and options.plot is None:
        raise ValueError("--kind is for --plot")
    normal_quantile(options.confidence)
    source = source_of(options.collected, options.protocol, options.confidence)
    if options.fitted:
        source = _fitted(source)
    if options.shares and isinstance(source, EstimateSource):  # quantiles are in their units
        source = source._replace(shares=True)
    rows = source.answers(options.asked or source.usual())
    answers = AnswerList(rows, source.n, options.confidence, source.notes(rows))
    kind = options.kind and options.kind.replace("-", " ")
    figure = None if options.plot is None else source.picture(options.asked or [], kind)
    # Standard output is for answers, if any are printed
    told_of = sys.stderr if options.out is None or options.table or options.json else None
    if options.out is not None:
        written = (
            answers.json() if options.out.suffix == ".json" else answers.csv(options.spreadsheet)
        )
        with replacing(options.out) as stream:
            stream.write(written.encode())
        say(f"wrote {options.out}: {len(rows)} answer{'s' * (len(rows) != 1)}", told_of)
    if figure is not None:
        save_figure(figure, options.plot, stream=told_of)
    if options.table:
        print(answers.table(), end="")
        return 0
    if options.json:
        print(answers.json(), end="")
    elif options.out is None:
        safe = [row._replace(question=printable(row.question)) for row in rows]
        print(answers._replace(rows=safe).csv(), end="")
    for line in (answers.reported, *answers.notes):
        say(f"mechdesign: {line}", sys.stderr)
    return 0


def _fitted(source: Source) -> EstimateSource:
    """The same answers by the fitted model; ValueError if there is none."""
    if not isinstance(source, EstimateSource):
        raise ValueError("--fitted is of marginals and of ranges that users reported")
    return source._replace(name=f"the model of {source.name}", estimate=source.estimate.fitted())
