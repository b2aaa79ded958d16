"""The command ``mechdesign curate``: from a table to a curator's release of it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from frequency.cli.chain import show_chain
from frequency.schema import Encoded, Schema
from mechdesign import NoRows
from mechdesign._support.progress import ProgressMeter
from mechdesign._support.text import listed
from mechdesign.accounting.ledger import Ledger
from mechdesign.cli.options import (
    AddCommand,
    add_force,
    add_seed,
    check_apart,
    check_suffix,
    check_targets,
    generator_of,
    say,
)
from mechdesign.planning.planner import plan
from mechdesign.planning.ranking import Plan
from rangeq.central import Release, ReleasedQuantiles, count_cells

_NOTE = """\
What is printed and written follows from the schema and the release: no number of rows is said, nor
of those that are left out or clipped, nor whether there are any. A row is a user: epsilon is the
privacy loss for one row more or less. With --quantile nothing but these quantiles is released, with
less noise; else the histogram, which mechdesign query asks for ranges, boxes and quantiles."""


def add_curate(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "curate",
        _curate,
        "release a histogram or quantiles of a table with noise, as a curator who is trusted with"
        " it; the mechanism of the least predicted error is chosen, and the table is read in"
        " blocks",
        "curate people.csv --schema people.toml --attribute age --attribute sex --epsilon 1 --out"
        " people.release",
    )
    chosen.epilog = f"{_NOTE}\n\n{chosen.epilog}"
    chosen.add_argument(
        "table",
        type=Path,
        help="one row a user: .csv or .tsv (in UTF-8 with a header line, perhaps .gz) or .parquet",
    )
    chosen.add_argument(
        "--schema", type=Path, required=True, help="what its columns hold (.toml or .json)"
    )
    chosen.add_argument(
        "--attribute",
        action="append",
        required=True,
        metavar="NAME",
        help="to release; several are released together, for boxes",
    )
    chosen.add_argument("--epsilon", required=True, help="the privacy loss of the release")
    chosen.add_argument(
        "--quantile",
        action="append",
        default=[],
        metavar="PHI",
        help="release this quantile of the attribute, such as 0.5; may be repeated",
    )
    chosen.add_argument(
        "--mechanism",
        metavar="NAME",
        help="flat, tree or wavelet (of quantiles exponential or tree); default: the best",
    )
    chosen.add_argument(
        "--ledger",
        type=Path,
        help="spend epsilon from this ledger, under the name of the file that is written",
    )
    chosen.add_argument("--out", type=Path, required=True, help="the release to write (.release)")
    add_seed(chosen)
    add_force(chosen)
    show_chain(chosen)


def _curate(options: argparse.Namespace) -> int:
    check_targets(options, options.out)
    check_suffix(options.out, ".release")
    ledgers = [] if options.ledger is None else [options.ledger]
    check_apart(options.out, options.table, options.schema, *ledgers)
    schema = Schema.load(options.schema).project(options.attribute)
    ledger = None if options.ledger is None else Ledger.open(options.ledger)
    asked: dict[str, Any] = {"q": tuple(options.quantile)} if options.quantile else {}
    task = "curated-quantiles" if options.quantile else "curated-ranges"
    chosen = plan(task, schema, epsilon=options.epsilon, ledger=ledger, **asked)
    print(chosen)
    mechanism = _mechanism(chosen, options.mechanism)
    say(f"mechanism: {mechanism!r}")
    with ProgressMeter("curate"):  # without steps, which would tell the number of rows
        counts = count_cells(schema, _encoded(options.table, schema))
    rng = generator_of(options, "the numbers of this release")
    if ledger is not None:
        ledger.spend(options.epsilon, options.out.name)
    kind = ReleasedQuantiles if options.quantile else Release
    released = kind.draw(schema, mechanism, counts, rng)
    released.save(options.out)
    for line in _policies(schema):
        say(line)
    if isinstance(released, ReleasedQuantiles):
        print(released)
    say(f"wrote {options.out}: epsilon {options.epsilon} for each row")
    return 0


def _encoded(table: Path, schema: Schema) -> Iterator[Encoded]:
    """The rows of the table, in blocks; of an empty one none: to refuse it would tell that."""
    from frequency.storage.table import applied  # pyarrow only for those who need it

    with suppress(NoRows):
        yield from applied(table, schema.names, schema.encode)


def _mechanism(chosen: Plan, name: str | None) -> Any:
    """The one that was chosen, or that of a name."""
    found = {item.name: item.protocol for item in chosen.candidates}
    if name is None:
        return chosen.best.protocol
    if name not in found:
        refused = dict(chosen.refused).get(name, f"here there are {listed(found)}")
        raise ValueError(f"--mechanism {name}: {refused}")
    return found[name]


def _policies(schema: Schema) -> Iterator[str]:
    """What became of rows that do not fit, but not of how many."""
    skipping = [one.name for one in schema if one.missing == "skip"]
    if skipping:
        yield f"rows without {listed(skipping)} are left out: how many is not said"
    clipping = [one.name for one in schema if one.outside == "clip"]
    if clipping:
        yield f"values outside of {listed(clipping)} are in the end bins: how many is not said"
