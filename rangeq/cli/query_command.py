"""The command ``mechdesign query``: from an aggregate or a release to answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from frequency.cli.protocol_commands import CHAIN
from frequency.marginals.estimate import MarginalEstimate
from mechdesign.base import listed, printable
from mechdesign.cli.options import (
    CONFIDENCE,
    FORCE,
    SPREADSHEET,
    command,
    confidence_of,
    save_figure,
    say,
    write_text,
)
from rangeq.cli.answer_rows import AnswerList, AnswerRow, compared
from rangeq.cli.answering import AskedText, EstimateSource, QuantileSource, by_labels
from rangeq.cli.collected import COLLECTED, Source, source_of
from rangeq.cli.published_answers import ENDINGS, published_table

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
Means, sums and variances are of the middles of bins: where bins hold several values, their
intervals hold wherever in these the users are. Of a release of sums and means (curate --mean) they
have no such error.

JSON: {"n": users, "confidence": .., "notes": [..], "answers": [{"question", "value",
"standard error", "low", "high", "unit", "interpolated"}, ..]}, null where something is not known.
"""


@command(
    "query",
    "answer questions from what was collected, in the labels and units of its schema, with"
    " confidence intervals",
    'query age.agg --protocol age.json --where "age 18:64" --quantile 0.5 --table\n'
    '  mechdesign query both.agg --protocol both.json --where "age 18: and sex female"'
    " --marginal sex --out answers.csv",
    COLLECTED,
    """
    --where CONDITIONS [where, repeated, as asked]  how many users meet them all, such as "age 18:64
        and sex female"; "sex female given age 18:" is the fraction of those who are 18 or older
    --quantile PHI [quantile, repeated, as asked]  the value with the fraction PHI of the users at
        or below it; of several attributes "PHI of NAME", perhaps "PHI of NAME where CONDITIONS"
    --mean NAME [mean, repeated, as asked]  the mean of a numeric attribute, perhaps "NAME where
        CONDITIONS"
    --sum NAME [sum, repeated, as asked]  the sum of its values over the users, likewise
    --variance NAME [variance, repeated, as asked]  the variance of its values, likewise
    --line LINE [line, repeated, as asked]  the least squares line of a numeric attribute on another
        one, such as "income on age", and the correlation
    --by NAME [repeated]  ask every --where, --quantile, --mean, .. for each label of an attribute,
        of several for each combination, and let --plot compare the answers; without a question: how
        many have each
    --difference LABEL  with --by: by how much every other label's answer is larger than that of
        this one, with intervals: where 0 is in none, one of the two is larger
    --ratio LABEL  with --by: how many times it is that of this one
    --marginal NAMES [marginal, repeated, as asked]  each combination of values of some attributes,
        such as age,sex
    --cells [marginal, repeated, as asked]  each item, or combination of items of all attributes
    --fitted  answer by one model that is fitted to all reports on ranges of several attributes, or
        to all numbers of a curator's release, which mostly errs less; of marginals the default
    --raw  answer by each marginal's own reports
    --on-average  the shorter intervals of the model of smoothed answers, which hold on average over
        questions, but not at peaks and steps
    --shares  answer and draw in fractions of the users also from a release, which is in users
    | --table  print a table to read (default: CSV)
    | --json  print JSON
    --out FILE [.csv .json .xlsx .px .parquet]  write the answers; as .xlsx, .px, .parquet and
        .sdmx.csv without a question all cells, in the formats of statistical offices
    --plot FILE [.png .pdf .svg]  draw the attributes that are asked about, or all, three at most;
        some of more are a query of their own, such as --marginal sex,age
    --kind [bars|cdf|histogram|heat-map|map|mosaic]  of the picture (default: the cdf of one
        attribute with an order, bars of one without, a map of longitude and latitude, or of x and y
        in one unit, a heat map or a mosaic of several others)
    """,
    CONFIDENCE,
    SPREADSHEET,
    FORCE,
    notes=f"{_QUESTIONS}\n{CHAIN}",
    where=partial(AskedText, "where"),
    quantile=partial(AskedText, "quantile"),
    mean=partial(AskedText, "mean"),
    sum=partial(AskedText, "sum"),
    variance=partial(AskedText, "variance"),
    line=partial(AskedText, "line"),
    marginal=partial(AskedText, "marginal"),
)
def run_query(options: argparse.Namespace) -> None:
    if options.kind is not None and options.plot is None:
        raise ValueError("--kind is for --plot")
    confidence = confidence_of(options)
    source = _as_asked(options, source_of(options.collected, options.protocol, confidence))
    if options.out is not None and options.out.name.lower().endswith(ENDINGS):
        _publish(options, source)
        return
    if options.by and not (options.asked or options.difference or options.ratio):
        # A question of each combination of labels is how many there are
        options.asked, options.by = [AskedText("marginal", "", tuple(options.by))], []
    asked, rows = _answered(options, source)
    answers = AnswerList.of(source, rows, confidence, asked)
    figure = None
    if options.plot is not None and options.by:
        if len(options.asked) > 1:
            raise ValueError("--plot with --by draws one question")
        title = f"{options.asked[0].question} by {listed(options.by)}".strip()
        assert not isinstance(source, QuantileSource)  # which takes no --by
        # Of several attributes groups stay together
        ordered = len(options.by) > 1 or all(source.schema[name].ordered for name in options.by)
        groups = [one.group for one in asked]
        figure = compared(title, groups, rows, confidence, as_given=ordered)
    elif options.plot is not None:
        figure = _picture(options, source, rows, confidence)
    # Standard output is for answers, if any are printed
    told_of = sys.stderr if options.out is None or options.table or options.json else None
    if options.out is not None:
        written = (
            answers.json() if options.out.suffix == ".json" else answers.csv(options.spreadsheet)
        )
        number = f": {len(rows)} answer{'s' * (len(rows) != 1)}"
        write_text(options.out, written, number, told_of)
    if figure is not None:
        save_figure(figure, options.plot, stream=told_of)
    if options.table:
        print(answers.table(), end="")
        return
    if options.json:
        print(answers.json(), end="")
    elif options.out is None:
        safe = [
            row._replace(
                question=printable(row.question),
                cell={printable(name): printable(label) for name, label in row.cell.items()},
            )
            for row in rows
        ]
        print(answers._replace(rows=safe).csv(), end="")
    for line in (answers.reported, *answers.notes):
        say(f"mechdesign: {line}", sys.stderr)


def _picture(
    options: argparse.Namespace, source: Source, rows: Sequence[AnswerRow], confidence: float
) -> Any:
    """The picture of the attributes asked about; of the answers, where these have none."""
    try:
        return source.picture(options.asked, options.kind and options.kind.replace("-", " "))
    except ValueError:
        if options.kind or not options.asked or len({row.unit for row in rows}) > 1:
            raise
        with suppress(ValueError):
            labels = [row.question for row in rows]
            return compared("answers", labels, rows, confidence, as_given=True)
        raise


def _publish(options: argparse.Namespace, source: Source) -> None:
    """Write all cells as a table."""
    others = ("asked", "by", "plot", "difference", "ratio", "table", "json")
    given = next((name for name in others if getattr(options, name)), None)
    if given is not None:
        raise ValueError(f"a table of {options.out.suffix} has all cells, and no questions beside")
    statement = f"Answers of mechdesign from {printable(options.collected.name)}."
    published_table(source, statement).save(options.out)
    say(f"wrote {options.out}")


def _answered(
    options: argparse.Namespace, source: Source
) -> tuple[Sequence[AskedText], list[AnswerRow]]:
    """The questions as they are asked of each group, and their answers."""
    if options.difference is not None and options.ratio is not None:
        raise ValueError("--difference and --ratio are two queries")
    beside = options.difference if options.ratio is None else options.ratio
    if not options.by:
        if beside is not None:
            raise ValueError("--difference and --ratio are for --by")
        asked = options.asked or source.usual()
        return asked, source.answers(asked)
    if not options.asked or isinstance(source, QuantileSource):
        raise ValueError("--by is for questions to a table or an estimate: --where, --mean, ..")
    asked = by_labels(options.asked, options.by, source.schema)
    if beside is None:
        return asked, source.answers(asked)
    if not isinstance(source, EstimateSource):
        raise ValueError("--difference and --ratio are of an estimate")
    rows = source.beside(asked, beside, options.ratio is not None)
    return [one for one in asked if one.group != beside], rows


def _as_asked(options: argparse.Namespace, source: Source) -> Source:
    """The source that answers by a model or not, in the unit and with the intervals asked for."""
    if options.fitted and options.raw:
        raise ValueError("--fitted and --raw are two queries")
    if options.fitted or (_of_marginals(source) and not options.raw):
        source = _fitted(source)
    if options.shares and isinstance(source, EstimateSource):  # quantiles are in their units
        source = source._replace(shares=True)
    if options.on_average:
        if not isinstance(source, EstimateSource):
            raise ValueError("--on-average is of an estimate by a model")
        source = source._replace(on_average=True)
    return source


def _of_marginals(source: Source) -> bool:
    """Whether users reported on marginals, whose cells are estimated one by one."""
    return isinstance(source, EstimateSource) and isinstance(
        source.estimate.estimate, MarginalEstimate
    )


def _fitted(source: Source) -> EstimateSource:
    """The same answers by the fitted model; ValueError if there is none."""
    if not isinstance(source, EstimateSource):
        raise ValueError("--fitted is of what users reported, and of a curator's release of counts")
    return source._replace(name=f"the model of {source.name}", estimate=source.estimate.fitted())
