"""The command ``mechdesign release-day``: counts that are released day by day."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from frequency import Between
from mechdesign.base import whole, write_csv
from mechdesign.cli.options import CONFIDENCE as CONFIDENCE_OPTION
from mechdesign.cli.options import (
    FORCE,
    SEED,
    SPREADSHEET,
    check_apart,
    command,
    confidence_of,
    generator_of,
    ledger_of,
    say,
)
from rangeq.central import CountStream
from rangeq.cli.curate_command import promise_of

_NOTE = """\
The first call makes the stream, with --days and a promise: all days together keep it, for one row
more or less, and the ledger is charged once. Each further call adds one day, and draws once: a day
that was added is refused. The file of the stream holds the true counts and is as private as they
are; what --out writes may be published. Estimates of earlier days become more precise with later
ones, and the errors of totals since the beginning hardly grow: at 365 days the variance of a total
is 6.9 times that of a single count with all of the budget."""


@command(
    "release-day",
    "release the count of one more day of a stream, with noise such that totals since the beginning"
    " have small errors on every day",
    "release-day visits.stream --days 365 --rho 1/2 --day 2026-11-29 --count 37 --out visits.csv\n"
    "  mechdesign release-day visits.stream --day 2026-11-30 --count 41 --out visits.csv --force",
    """
    state [file, .stream]  the file of the stream, which is private
    --count N [int, required]  how many users the day has
    --day NAME  its public name, such as a date (default: its number)
    --out FILE [.csv, required]  the table of all days so far, to publish
    """,
    """
    --days N [int]  make the stream, of at most so many days
    | --rho RHO  its promise is rho-zero-concentrated privacy
    | --epsilon EPSILON [epsilon]  its promise is (epsilon, delta)-differential privacy
    --delta DELTA  such as 1e-9
    --workload prefixes|ranges  what has the least errors: totals since the beginning (the default),
        or sums of any days in a row
    --ledger FILE [file]  spend the promise from this ledger
    """,
    CONFIDENCE_OPTION,
    SEED,
    SPREADSHEET,
    FORCE,
    notes=_NOTE,
)
def run_release_day(options: argparse.Namespace) -> None:
    check_apart(options.out, options.state)
    confidence = confidence_of(options)
    count = whole(options.count, "--count", 0, what="a number of users")  # before anything is made
    stream = _stream(options)
    stream.add(count, options.day, generator_of(options, "the numbers of this day"))
    _write_table(stream, options, confidence)
    seeded = ", SEEDED and therefore not private" if stream.reproducible else ""
    say(f"wrote {options.out}: {len(stream.days)} of at most {stream.most} days{seeded}")


def _stream(options: argparse.Namespace) -> CountStream:
    given = [
        name
        for name in ("days", "rho", "epsilon", "delta", "workload", "ledger")
        if getattr(options, name) is not None
    ]
    if Path(options.state).exists():
        if given:
            raise ValueError(f"--{given[0]} makes a stream, and {options.state} is one already")
        return CountStream(options.state)
    if options.days is None:
        raise ValueError(f"there is no {options.state}: --days, with --rho or --delta, makes it")
    if options.rho is None and options.delta is None:
        raise ValueError("a stream has Gaussian noise: --rho, or --epsilon with --delta")
    promise: Any = promise_of(options)
    workload = options.workload or "prefixes"
    return CountStream.create(options.state, options.days, promise, workload, ledger_of(options))


def _write_table(stream: CountStream, options: argparse.Namespace, confidence: float) -> None:
    """A row for each day: its count, and the total up to it, with intervals."""
    estimate, place = stream.estimate, np.arange(len(stream.days))
    answers = estimate.answer(place), estimate.answer(Between(np.zeros_like(place), place))
    names = ("count", "low", "high", "total", "total low", "total high")
    lines: list[list[Any]] = [["day", *names]]
    columns: list[Any] = []
    for answer in answers:
        columns += [answer.value, *answer.interval(confidence)]
    for day, *numbers in zip(stream.days, *columns, strict=True):
        lines.append([day, *(f"{float(number):.1f}" for number in numbers)])
    write_csv(options.out, lines, spreadsheet=options.spreadsheet)
