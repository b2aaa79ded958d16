"""The command ``mechdesign protocol``: from a schema and a question to a protocol's file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from frequency.schema import Attribute, Ordered, Schema, draft_schema
from frequency.schema.column import MissingCode
from frequency.schema.schema import save_content, text_of
from mechdesign.base import AS_IT_IS, ProgressMeter, listed, printable
from mechdesign.cli.options import (
    DETAILS,
    FORCE,
    TABLE,
    command,
    details_of,
    ledger_of,
    read_options,
    say,
)

#: The commands before and after each, for their help.
CHAIN = """from a table to answers, by reports that are private before they are collected:
  mechdesign schema public.csv --public --out people.toml
  mechdesign protocol ranges --schema people.toml --attribute age --epsilon 1 \\
      --n 100000 --out age.json
  mechdesign simulate public.csv --protocol age.json
  mechdesign privatize people.csv --protocol age.json --out reports/day1.parquet
  mechdesign collect reports/ --protocol age.json --out age.agg
  mechdesign query age.agg --protocol age.json --where "age 18:64"
or by a curator who is trusted with the table:
  mechdesign curate people.csv --schema people.toml --attribute age --epsilon 1 --out age.release
  mechdesign query age.release --where "age 18:64"
"""

USERS = f"""
table [file]  one row a user: .csv or .tsv (with a header line, perhaps .gz or .zst), .parquet or a
    directory of such files, .arrow, .xlsx, .sav, .dta, .sas7bdat, .xpt, .sqlite, .duckdb
{TABLE}
"""

SURVEY = """
--protocol FILE [file, required]  a protocol with a schema (.json)
"""


@command(
    "protocol",
    "choose a protocol for a question about attributes of a schema, say why and by how much it"
    " errs, and write protocol and schema to a file, for users and server",
    """protocol ranges --schema people.toml --attribute age --epsilon 1 --n 100000 --out age.json
  mechdesign protocol marginals --schema people.toml --attribute age --attribute sex --epsilon 1 \\
      --error 0.01 --detail k=2 --out both.json""",
    """
    task  frequencies, ranges, prefixes, quantiles or shaped of one attribute; marginals or
        conjunctions of several; heavy-hitters of short text, or of many items
    --schema FILE [file, required]  a schema (.toml or .json)
    --attribute NAME [repeated]  what is asked for (default: all of the schema)
    --epsilon EPSILON [epsilon]  privacy loss of a report
    --n N [int]  number of users who report; of n, epsilon and error give two
    --error ERROR  target, in the task's unit, which the table states
    --protocol NAME  of the table, instead of the recommended one
    --out FILE [.json, required]  the protocol to write
    """,
    DETAILS,
    FORCE,
    notes=CHAIN,
)
def run_protocol(options: argparse.Namespace) -> None:
    from frequency.planning.survey_plan import plan_survey  # other commands need neither
    from frequency.storage import save_protocol

    plan = plan_survey(
        options.task,
        Schema.load(options.schema),
        options.attribute or None,
        n=options.n,
        epsilon=options.epsilon,
        error=options.error,
        protocol=options.protocol,
        ledger=ledger_of(options),
        **details_of(options),
    )
    save_protocol(options.out, plan.survey)
    print(plan)
    if options.ledger is not None:
        epsilon = plan.chosen.epsilon
        say(
            f"nothing is spent: before users report: mechdesign ledger {options.ledger} --spend"
            f" {epsilon} --what NAME --reports"
        )
    say(f"wrote {options.out}")


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign schema``: drafts a schema, or checks and shows one.


@command(
    "schema",
    "check and show a schema, or draft one from a table that you declare public",
    "schema people.toml\n  mechdesign schema public.csv --public --out people.toml",
    """
    file [file]  a schema (.toml, .json), or a table (.csv, .xlsx, .sav, .parquet
        and others)
    --public  anybody may know what is in the table: a draft tells its labels and extremes
    --attribute NAME [repeated]  a column to draft an attribute of (default: all)
    --out FILE [.toml .json]  write the draft, and do not print it
    """,
    TABLE,
    FORCE,
    notes=CHAIN,
)
def run_schema(options: argparse.Namespace) -> None:
    if options.file.suffix.lower() in (".toml", ".json"):
        if options.public or options.attribute or options.out or read_options(options) != AS_IT_IS:
            raise ValueError(
                f"{options.file} is a schema: it is checked and shown, which takes no other options"
            )
        schema = Schema.load(options.file)
        print(schema)
        for attribute in schema:
            if isinstance(attribute, Ordered) and not attribute.single:
                print(f"bins of {printable(attribute.name)}: {_bins(attribute)}")
        for attribute in schema:
            _print_more(attribute)
        print(f"digest: {schema.digest}")
    else:
        _draft(options)


def _print_more(one: Attribute) -> None:
    """Say what a schema knows of an attribute and its table has no column for."""
    name = printable(one.name)
    if one.title:
        say(f"title of {name}: {one.title}")
    if isinstance(one, Ordered) and one.rounding:
        say(f"heaps of {name}: {one.rounding}")
    if one.missing_codes:
        codes = []
        for code in map(MissingCode.of, one.missing_codes):
            said = ", ".join(filter(None, (code.label, code.missing)))
            codes.append(f"{code.code}{said and f' ({said})'}")
        say(f"missing values of {name}: {listed(codes)}")


def _bins(one: Ordered) -> str:
    """The first bins and the last one: how a question meets them is seen from these."""
    first = [one.label(item) for item in range(min(one.bins, 4))]
    return ", ".join(first if one.bins <= 4 else [*first[:3], "...", one.label(one.bins - 1)])


def _draft(options: argparse.Namespace) -> None:
    if not options.public:
        raise ValueError(
            f"a schema is public, and a draft tells what is in {options.file}. If anybody may know"
            " that: --public. If not, write the schema by hand; an example is in"
            " docs/tables.md"
        )
    from frequency.storage.table import blocks  # pyarrow only for those who need it

    with ProgressMeter("draft", unit="rows") as meter:
        given = read_options(options)

        def read() -> Iterator[Any]:
            for block in blocks(options.file, options.attribute or None, given):
                yield block
                meter.update(len(block))

        draft = draft_schema(read(), f"{options.file.name}, which was declared public")
    content = draft.schema.content()  # without a digest: it is there to be changed
    if options.out is None:
        print(text_of(content, "draft.toml"), end="")
    else:
        save_content(options.out, content)
        print(draft.schema)
        say(f"wrote {options.out}: look through it, and change what does not fit")
    for name, reason in draft.left_out.items():
        print(f"left out: {printable(name)}: {reason}", file=sys.stderr)
    for name, reason in draft.doubts.items():
        print(f"look at {printable(name)}: {reason}", file=sys.stderr)
