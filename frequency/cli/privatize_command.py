"""The command ``mechdesign privatize``: from a table of users to private reports."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from frequency.cli.schema_command import add_users, show_chain
from frequency.core.protocol import channel_of
from frequency.schema import Schema, Survey
from frequency.storage import load_protocol, write_reports
from frequency.storage.formats import SUFFIXES
from frequency.storage.shuffle import shuffled
from mechdesign.base.progress import ProgressMeter
from mechdesign.base.randomness import bit_source
from mechdesign.base.text import listed
from mechdesign.cli.options import (
    AddCommand,
    add_force,
    add_seed,
    check_apart,
    check_suffix,
    check_targets,
    generator_of,
    say,
    warn_of_epsilon,
)


def add_privatize(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "privatize",
        _privatize,
        "draw a private report for each row of a table, by the protocol and the schema in its file;"
        " the table may be of any length, and the reports are in random order",
        "privatize people.csv --protocol age.json --out reports/day1.parquet",
    )
    add_users(chosen)
    chosen.add_argument(
        "--protocol", type=Path, required=True, help="a protocol with a schema (.json)"
    )
    chosen.add_argument(
        "--out", type=Path, required=True, help="the reports to write (.parquet, .ldp, .b64)"
    )
    add_seed(chosen)
    add_force(chosen)
    show_chain(chosen)


def _privatize(options: argparse.Namespace) -> int:
    check_suffix(options.out, *SUFFIXES)
    check_apart(options.out, options.table, options.protocol)
    from frequency.storage.table import applied  # which needs pyarrow

    survey = load_protocol(options.protocol)
    if not isinstance(survey, Survey):
        raise ValueError(
            f"{options.protocol} has no schema, which says what the columns of a table hold; make"
            " one with mechdesign schema, and the protocol with mechdesign protocol --schema"
        )
    warn_of_epsilon(channel_of(survey).epsilon)
    tally = Counter[str]()
    with _folder_of(options), ProgressMeter("privatize", unit="rows") as meter:
        rng = generator_of(options, "these reports")

        def privatized(block: Any) -> Any:
            reports = survey.privatize(block, rng, tally)
            meter.update(len(block))
            return reports

        reports = applied(options.table, survey.schema.names, privatized)
        source = bit_source(None if rng is None else rng.spawn(1)[0])  # draws stay those of rng
        written = write_reports(options.out, survey, shuffled(reports, survey.report_dtype, source))
    for line in _account(survey.schema, written, tally):
        say(line)
    say(f"wrote {options.out}")
    return 0


def _account(schema: Schema, written: int, tally: Counter[str]) -> Iterator[str]:
    """What became of the rows."""
    skipped = tally[""]
    yield f"{written + skipped} rows: {written} reports"
    if any(attribute.missing == "skip" for attribute in schema):
        yield f"left out, since a value is missing: {skipped} rows"
    clipped = [attribute.name for attribute in schema if attribute.outside == "clip"]
    if clipped:
        counts = listed(f"{name} {tally[name]}" for name in clipped)
        yield f"clipped, since they are outside: {counts}"


@contextmanager
def _folder_of(options: argparse.Namespace) -> Iterator[None]:
    """`check_targets`, but the folder of the reports is made, and removed if there are none."""
    made = list(takewhile(lambda folder: not folder.exists(), options.out.parents))
    check_targets(options, made[-1] if made else options.out)
    try:
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):  # it was not made yet, or others have written to it
                folder.rmdir()
        raise
