"""The command ``mechdesign curate``: from a table to a curator's release of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from frequency.cli.protocol_commands import CHAIN, USERS
from frequency.exceptions import InvalidQuestion
from frequency.schema import Encoded, Schema
from mechdesign import ZCDP, ApproximateDP, NoRows, Privacy
from mechdesign.accounting import Ledger
from mechdesign.base import (
    ProgressMeter,
    comma_separated,
    listed,
    replacing,
    shown,
    untaken,
    whole,
    write_csv,
)
from mechdesign.cli.options import (
    FORCE,
    PRIVACY,
    PROPERTIES,
    RELEASE,
    SEED,
    SPREADSHEET,
    TABLE,
    check_apart,
    command,
    confidence_of,
    generator_of,
    ledger_of,
    privacy_of,
    read_options,
    say,
)
from mechdesign.planning.planner import plan
from mechdesign.tables.axes import read_groups
from rangeq.central import (
    MatrixMechanism,
    RegionEstimate,
    Regions,
    Release,
    ReleasedQuantiles,
    count_cells,
    load_strategy,
    release_regions,
    save_strategy,
    workload_optimal,
)
from rangeq.central.inputs import cells_along
from rangeq.central.matrix_mechanism.mechanism import Promise
from rangeq.central.release import promised
from rangeq.cli.answering import EstimateSource
from rangeq.cli.collected import COLLECTED, source_of

_NOTE = """\
What is printed and written follows from the schema and the release: no number of rows is said, nor
of those that are left out or clipped, nor whether there are any. A row is a user: what is promised
is for one row more or less. With --quantile nothing but these quantiles is released, with less
noise; else the histogram, which mechdesign query asks for ranges, boxes and quantiles. With
--strategy best what is measured is designed for the queries of --workload, with a bound on what
could be gained; --rho or --delta take Gaussian noise, with which many queries cost less."""


@command(
    "curate",
    "release a histogram or quantiles of a table with noise, as a curator who is trusted with it;"
    " the mechanism of the least predicted error is chosen, and the table is read in blocks",
    "curate people.csv --schema people.toml --attribute age --attribute sex --epsilon 1 --out"
    " people.release",
    USERS,
    """
    --schema FILE [file, required]  what its columns hold (.toml or .json)
    --attribute NAME [repeated, required]  to release; several are released together, for boxes
    | --epsilon EPSILON [epsilon, required]  the privacy loss of the release
    | --rho RHO  the promise is rho-zero-concentrated privacy instead; takes --strategy
    --delta DELTA  the promise is (epsilon, delta)-differential privacy, such as 1e-9
    --quantile PHI [repeated]  release this quantile of the attribute, such as 0.5
    --mechanism NAME  flat, tree, wavelet, strategy, or with --delta gaussian (of quantiles
        exponential or tree) (default: the best)
    --strategy best|FILE  design what is measured for the workload, or take it from a file (.npz)
    --workload NAME  what the strategy is designed for: ranges (of ordered attributes, the default),
        prefixes, cells, marginals, 3-way marginals, width-30, or a name for each attribute with
        commas between them
    --save-strategy FILE [.npz]  write the strategy, too
    --ledger FILE [file]  spend epsilon from this ledger, under the name of the file that is written
    --out FILE [.release, required]  the release to write
    """,
    SEED,
    FORCE,
    notes=f"{_NOTE}\n\n{CHAIN}",
)
def run_curate(options: argparse.Namespace) -> None:
    if options.strategy not in (None, "best"):
        for target in filter(None, (options.out, options.save_strategy)):
            check_apart(target, Path(options.strategy))
    schema = Schema.load(options.schema).project(options.attribute)
    ledger = ledger_of(options)
    choose = _chooser(options, schema, ledger)
    # First the table, so that what is wrong in it is said at once: the choice may take longer
    with ProgressMeter("curate"):  # without steps, which would tell the number of rows
        counts = count_cells(schema, _encoded(options, schema))
    mechanism = choose()
    say(f"mechanism: {mechanism!r}")
    rng = generator_of(options, "the numbers of this release")
    if ledger is not None:
        matrix = isinstance(mechanism, MatrixMechanism)
        gaussian = matrix and not isinstance(mechanism.promise, Privacy)
        ledger.spend(mechanism.cost if gaussian else options.epsilon, options.out.name)
    kind = ReleasedQuantiles if options.quantile else Release
    released = kind.draw(schema, mechanism, counts, rng)
    released.save(options.out)
    for line in _policies(schema):
        say(line)
    if isinstance(released, ReleasedQuantiles):
        print(released)
    said = f"epsilon {options.epsilon}" if options.quantile else promised(mechanism)
    seeded = ", SEEDED and therefore not private" if released.reproducible else ""
    say(f"wrote {options.out}: {said} for each row{seeded}")
    if options.save_strategy:
        save_strategy(options.save_strategy, mechanism.strategy)
        say(f"wrote {options.save_strategy}")


def _chooser(
    options: argparse.Namespace, schema: Schema, ledger: Ledger | None
) -> Callable[[], Any]:
    """Return what chooses the mechanism; ValueError for options that contradict each other."""
    strategy, workload = options.strategy, options.workload
    if strategy is None and options.rho is not None:
        raise ValueError("--rho takes --strategy best, or a strategy from a file")
    if strategy is None and (workload is not None or options.save_strategy is not None):
        raise ValueError("--workload and --save-strategy are for --strategy best")
    if strategy is not None and (options.quantile or options.mechanism is not None):
        raise ValueError("--strategy is instead of --quantile and --mechanism")
    if options.quantile and options.delta is not None:
        raise ValueError("quantiles keep an epsilon with a delta of 0: leave out --delta")
    promise = _promise(options)
    if strategy is None:
        if ledger is not None:
            ledger.require(options.epsilon, "this release")
        return partial(_planned, options, schema)
    sizes = cells_along(schema)
    if strategy == "best":
        return partial(_designed, _workload(workload, schema), sizes, promise)
    if workload is not None:
        raise ValueError("--workload is for --strategy best: a file has a strategy already")
    loaded = load_strategy(strategy).strategy
    if loaded.sizes != sizes:  # found here, before a ledger is spent from
        raise ValueError(
            f"{strategy}: a strategy for {shown(loaded.sizes)} cells, and the attributes have"
            f" {shown(sizes)} items"
        )
    return partial(MatrixMechanism, loaded, promise)


def _planned(options: argparse.Namespace, schema: Schema) -> Any:
    """The mechanism of the least predicted error, or that of a name; prints the table."""
    asked: dict[str, Any] = {"q": tuple(options.quantile)} if options.quantile else {}
    task = "curated-quantiles" if options.quantile else "curated-ranges"
    if options.delta is not None:
        asked["delta"] = options.delta
    found = plan(task, schema, epsilon=options.epsilon, **asked)
    print(found)
    protocols = {item.name: item.protocol for item in found.candidates}
    name = found.best.name if options.mechanism is None else options.mechanism
    if name not in protocols:
        refused = dict(found.refused).get(name, f"here there are {listed(protocols)}")
        raise ValueError(f"--mechanism {name}: {refused}")
    return protocols[name]


def _designed(
    workload: str | list[str], sizes: tuple[int, ...], promise: Promise
) -> MatrixMechanism:
    design = workload_optimal(workload, sizes, promise)
    say(str(design))
    return design.mechanism


def _promise(options: argparse.Namespace) -> Promise:
    if options.rho is not None:
        if options.delta is not None:
            raise ValueError("--delta is for --epsilon: --rho says all")
        return ZCDP(options.rho)
    if options.delta is not None:
        return ApproximateDP(options.epsilon, options.delta)
    return Privacy.from_epsilon(options.epsilon)


def _workload(asked: str | None, schema: Schema) -> str | list[str]:
    """The names for each attribute: ranges and prefixes are of ordered ones."""
    if asked is None or asked in ("ranges", "prefixes"):
        return [(asked or "ranges") if attribute.ordered else "cells" for attribute in schema]
    return [name.strip() for name in asked.split(",")] if "," in asked else asked


def _encoded(options: argparse.Namespace, schema: Schema) -> Iterator[Encoded]:
    """The rows of the table, in blocks; of an empty one none: to refuse it would tell that."""
    from frequency.storage.table import applied  # pyarrow only for those who need it

    with suppress(NoRows):
        yield from applied(options.table, schema.names, schema.encode, read_options(options))


def _policies(schema: Schema) -> Iterator[str]:
    """Say what became of rows that do not fit, but not of how many."""
    skipping = [attribute.name for attribute in schema if attribute.missing == "skip"]
    if skipping:
        yield f"rows without {listed(skipping)} are left out: how many is not said"
    clipping = [attribute.name for attribute in schema if attribute.outside == "clip"]
    if clipping:
        yield f"values outside of {listed(clipping)} are in the end bins: how many is not said"


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign sample``: synthetic rows of what was collected.


#: What is to be known of rows, wherever they are written.
NOT_PEOPLE = (
    "these rows are not people: nobody has them. They hold what was estimated and nothing else."
    " Counts of them have the error of the estimate and that of the draw of the rows besides; tests"
    " and regressions on them know nothing of the first, nor of what was not estimated"
)

_BLOCK = 1 << 16  # rows that are text at a time


@command(
    "sample",
    "write synthetic rows with the distribution that was estimated, in the columns, labels and"
    " units of the schema, for programs that take a table; a value that is missing is empty, one"
    " outside of the schema's is outside; the rows are not people",
    "sample both.agg --protocol both.json --rows 10000 --out synthetic.csv\n"
    "  mechdesign sample age.release --rows 10000 --out synthetic.csv",
    COLLECTED,
    """
    --rows N [int, required]  how many, at least 1
    --out FILE [.csv, required]  the file to write
    --seed SEED [seed]  of the random numbers, to repeat them; privacy does not depend on them
    """,
    SPREADSHEET,
    FORCE,
    notes=CHAIN,
)
def run_sample(options: argparse.Namespace) -> None:
    rows = whole(options.rows, "--rows", 1, what="a number of rows")
    source = source_of(options.collected, options.protocol)
    if not isinstance(source, EstimateSource):
        raise InvalidQuestion(
            f"{options.collected} is a release of counts or of quantiles alone: there is no"
            " distribution to draw rows from; curate without --quantile releases one"
        )
    try:
        columns = source.estimate.sample(rows, np.random.default_rng(options.seed))
    except InvalidQuestion as error:
        raise InvalidQuestion(f"{source.name}: {error}") from None
    with replacing(options.out) as stream:
        stream.write(comma_separated([columns], spreadsheet=options.spreadsheet).encode())
        for first in range(0, rows, _BLOCK):
            block = (values[first : first + _BLOCK].tolist() for values in columns.values())
            lines = zip(*block, strict=True)
            stream.write(comma_separated(lines, spreadsheet=options.spreadsheet).encode())
    say(f"wrote {options.out}: {rows} row{'s' * (rows != 1)}")
    say(f"mechdesign: {NOT_PEOPLE}", sys.stderr)


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign release-regions``: small counts of regions in regions.


_REGIONS_NOTE = """\
One person's answer changes the count of one leaf by one, and of each region above: --epsilon is the
loss of all of that. The estimates of --table are unbiased, and parts add up; low and high are ends
of an interval for the true count. For the total let the first --region be a column that is the same
in all rows, such as the country."""


@command(
    "release-regions",
    "release small counts of regions in regions, such as wards in counties: the leaves by the best"
    " mechanisms for their sizes, the regions above with noise, and estimates that add up",
    "release-regions wards.csv --region county --region ward --count ill --size residents"
    " --epsilon 1 --out ill.json --table ill.csv",
    """
    leaves [file]  table with a row for each leaf (.csv, .xlsx, .sav, .parquet and others)
    --region COLUMN [repeated, required]  a column of names, from the top down to that of the
        leaves; the last ones of a row may be empty
    --count COLUMN [required]  the column of counts
    --size COLUMN [required]  the column of the largest possible counts, which are public
    --budget WEIGHTS [default equal]  how epsilon is split: equal; leaves: these alone; or weights
        separated by commas, for each depth from the top and for the leaves
    --table FILE [.csv]  write the estimates of all regions
    """,
    TABLE,
    PRIVACY,
    PROPERTIES,
    RELEASE,
    notes=_REGIONS_NOTE,
)
def run_release_regions(options: argparse.Namespace) -> None:
    confidence, privacy = confidence_of(options), privacy_of(options)
    named = options.budget in ("equal", "leaves")
    regions = options.region
    leaves = read_groups(
        options.leaves,
        options.count,
        options.size,
        regions,
        options=read_options(options),
        labels=regions,
        remedy="",
    )
    paths = [_path(names) for names in zip(*map(leaves.kept.__getitem__, regions), strict=True)]
    release = release_regions(
        Regions(paths),
        leaves.counts,
        leaves.sizes,
        privacy,
        properties=options.property,
        budget=options.budget if named else options.budget.split(","),
        rng=generator_of(options, "these counts"),
    )
    release.save(options.out)
    print(release.statement)
    say(f"wrote {options.out}: {len(paths)} leaves of {len(release.regions)} regions")
    if options.table is not None:
        _write_table(release.estimate(), options, confidence)
        say(f"wrote {options.table}")


def _path(names: Sequence[str]) -> list[str]:
    """The regions of a leaf, from the top down, without the last ones that are empty."""
    path = [*names]
    while path and not path[-1].strip():
        path.pop()
    return path


def _write_table(estimate: RegionEstimate, options: argparse.Namespace, confidence: float) -> None:
    names, results = options.region, ("estimate", "standard error", "low", "high")
    lines: list[list[Any]] = [[*names, *(untaken(name, names) for name in results)]]
    errors = estimate.standard_errors
    for path, value, error in zip(estimate.regions.paths, estimate.values, errors, strict=True):
        cells = [*path, *[""] * (len(names) - len(path))]
        interval = estimate.answer(path).interval(confidence)
        ends = (f"{float(end):.0f}" for end in interval)
        lines.append([*cells, f"{value:.2f}", f"{error:.2f}", *ends])
    write_csv(options.table, lines, spreadsheet=options.spreadsheet)
