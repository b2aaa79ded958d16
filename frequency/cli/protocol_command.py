"""The command ``mechdesign protocol``: from a schema and a question to a protocol's file."""

from __future__ import annotations

import argparse
from pathlib import Path

from frequency.cli.schema_command import show_chain
from frequency.schema import Schema
from frequency.survey_plan import plan_survey
from mechdesign.cli.options import (
    AddCommand,
    add_details,
    add_force,
    check_written,
    details_of,
    ledger_of,
    say,
)


def add_protocol(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "protocol",
        _protocol,
        "choose a protocol for a question about attributes of a schema, say why and by how much it"
        " errs, and write protocol and schema to a file, for users and server",
        "protocol ranges --schema people.toml --attribute age --epsilon 1 --n 100000"
        " --out age.json\n  mechdesign protocol marginals --schema people.toml --attribute age"
        " --attribute sex --epsilon 1 \\\n      --error 0.01 --detail k=2 --out both.json",
    )
    chosen.add_argument(
        "task",
        help="frequencies, ranges, prefixes, quantiles or shaped of one attribute; marginals or"
        " conjunctions of several; heavy-hitters of short text, or of many items",
    )
    chosen.add_argument("--schema", type=Path, required=True, help="a schema (.toml or .json)")
    chosen.add_argument(
        "--attribute",
        action="append",
        metavar="NAME",
        help="what is asked for; may be repeated; default: all of the schema",
    )
    chosen.add_argument("--epsilon", help="privacy loss of a report")
    chosen.add_argument(
        "--n", type=int, help="number of users who report; of n, epsilon and error give two"
    )
    chosen.add_argument("--error", help="target, in the task's unit, which the table states")
    chosen.add_argument(
        "--protocol", metavar="NAME", help="of the table, instead of the recommended one"
    )
    add_details(chosen)
    chosen.add_argument("--out", type=Path, required=True, help="the protocol to write (.json)")
    add_force(chosen)
    show_chain(chosen)


def _protocol(options: argparse.Namespace) -> int:
    check_written(options, options.out, ".json", sources=[options.schema, options.ledger])
    from frequency.storage import save_protocol

    found = plan_survey(
        options.task,
        Schema.load(options.schema),
        options.attribute,
        n=options.n,
        epsilon=options.epsilon,
        error=options.error,
        protocol=options.protocol,
        ledger=ledger_of(options),
        **details_of(options),
    )
    save_protocol(options.out, found.survey)
    print(found)
    if options.ledger is not None:
        epsilon = found.chosen.epsilon
        say(
            f"nothing is spent: before users report: mechdesign ledger {options.ledger} --spend"
            f" {epsilon} --what NAME --reports"
        )
    say(f"wrote {options.out}")
    return 0
