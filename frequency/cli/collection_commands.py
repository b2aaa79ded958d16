"""The command ``mechdesign collect``: from files of reports to an aggregate."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from frequency.cli.protocol_commands import CHAIN, SURVEY, USERS
from frequency.core import channel_of
from frequency.exceptions import IncompatibleAggregate
from frequency.planning.measured_errors import measure_errors
from frequency.schema import Encoded, Schema, Survey
from frequency.storage import (
    aggregate_files,
    continues,
    load_aggregate,
    load_protocol,
    save_aggregate,
    write_reports,
)
from frequency.storage.protocol_file import SUFFIXES
from mechdesign.base import (
    ProgressMeter,
    bit_source,
    comma_separated,
    listed,
    opened,
    printable,
    write_csv,
)
from mechdesign.cli.options import (
    FORCE,
    SEED,
    check_apart,
    check_suffix,
    check_target,
    command,
    generator_of,
    read_options,
    say,
    warn_of_epsilon,
    write_text,
)


@command(
    "collect",
    "count the reports in files, each file once; exit code 1 if any file or report was refused",
    "collect reports/ --protocol protocol.json --out aggregate.ldp --resume counted.state"
    " --refused refused.csv",
    """
    paths [file, repeated]  files, or directories of *.parquet, *.ldp (batches) and *.b64 (lines)
    --protocol FILE [file, required]  what save_protocol wrote (.json)
    --out FILE [file, required]  the aggregate to write
    --refused FILE [file]  write what was refused or left out, and why (.csv)
    --resume FILE [file]  keeps what has been counted: to go on after a crash, or to add files later
    --workers N [int, default 1]  processes
    --scheduler ADDRESS  of a Dask cluster that does the work, such as tcp://10.0.0.1:8786
    """,
    FORCE,
    notes=CHAIN,
)
def run_collect(options: argparse.Namespace) -> int:
    if options.refused is not None:
        check_suffix(options.refused, ".csv")
    _check_apart(options)
    protocol = load_protocol(options.protocol)
    _check_targets(options, protocol)
    try:
        with _client(options.scheduler) as client:
            collected = aggregate_files(
                protocol, options.paths, options.workers, options.resume, client
            )
    except KeyboardInterrupt:
        if options.resume is None:
            raise
        say(f"mechdesign: interrupted; {options.resume} keeps what was counted", sys.stderr)
        return 130
    if not collected.counted and not collected.refused:
        raise ValueError(
            f"no file that ends in {', '.join(SUFFIXES)} in"
            f" {', '.join(map(str, options.paths))}; nothing was written"
        )
    print(collected)
    if 0 < collected.found == len(collected.refused):
        say(f"mechdesign: every file was refused; {options.out} was not written", sys.stderr)
    else:
        _check_replaced(options, protocol, collected.aggregate)
        save_aggregate(options.out, collected.aggregate)
        say(f"wrote {options.out}")
    if options.refused is not None:
        rows = [
            _HEADINGS,
            *([path, "all", reason] for path, reason in collected.refused.items()),
        ]
        rows += [
            [path, str(count), reason]
            for path, reasons in collected.left_out.items()
            for reason, count in reasons.items()
        ]
        write_csv(options.refused, [map(printable, row) for row in rows])
        say(f"wrote {options.refused}")
    lost = {reason for reasons in collected.left_out.values() for reason in reasons}
    return 1 if collected.refused or lost - {"repeated"} else 0  # who tried again was counted


_HEADINGS = ["file", "reports left out", "reason"]


@contextmanager
def _client(scheduler: str | None) -> Iterator[Any]:
    """A client of the Dask cluster, if one is named."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "--scheduler needs the extra 'distributed': in a clone, pip install '.[distributed]'"
        ) from error
    logging.disable(logging.CRITICAL)  # what goes wrong is said once, as an error of the command
    try:
        with Client(scheduler) as client:
            yield client
    finally:
        logging.disable(logging.NOTSET)


def _check_targets(options: argparse.Namespace, protocol: Any) -> None:
    """`check_target`; but with ``--resume`` an earlier run's own files may be replaced.

    That is an aggregate of this protocol (and, see `_check_replaced`, one that the new one
    continues), and a table with the headings of ``--refused``.
    """
    for target, is_own in ((options.out, _is_aggregate), (options.refused, _is_account)):
        if target is not None:
            resumed = options.resume is not None and is_own(target, protocol)
            check_target(target, options.force or resumed)


def _is_aggregate(path: Path, protocol: Any) -> bool:
    try:
        load_aggregate(path, protocol)
    except (IncompatibleAggregate, OSError):
        return False
    return True


def _is_account(path: Path, protocol: Any) -> bool:
    headings = comma_separated([_HEADINGS]).encode()
    try:
        with opened(path) as stream:
            return stream.read(len(headings)) == headings
    except OSError:
        return False


def _check_replaced(options: argparse.Namespace, protocol: Any, aggregate: Any) -> None:
    """Refuse to replace an aggregate, without ``--force``, that is of other reports too."""
    if options.force or not options.out.exists():
        return
    if not continues(protocol, aggregate, load_aggregate(options.out, protocol)):
        raise ValueError(
            f"{options.out} is of reports that are not in {options.resume}, which keeps what was "
            "counted; use --force to overwrite it"
        )


def _check_apart(options: argparse.Namespace) -> None:
    """ValueError if a file to write is one that is read, or another one that is written."""
    written = [
        path.resolve()
        for path in (options.out, options.refused, options.resume)
        if path is not None
    ]
    read = [path.resolve() for path in (options.protocol, *options.paths)]
    reports = [
        path
        for path in written
        if path.suffix.lower() in SUFFIXES and any(place in path.parents for place in read)
    ]
    if len(set(written)) < len(written) or set(read) & set(written) or reports:
        raise ValueError(
            "a file to write would replace what is read, or another one that is written, or be read"
            " as reports the next time"
        )


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign privatize``: from a table of users to private reports.


@command(
    "privatize",
    "draw a private report for each row of a table, by the protocol and the schema in its file; the"
    " table may be of any length, and the reports are in random order",
    "privatize people.csv --protocol age.json --out reports/day1.parquet",
    USERS,
    SURVEY,
    "--out FILE [file, required]  the reports to write (.parquet, .ldp, .b64)",
    SEED,
    FORCE,
    notes=CHAIN,
)
def run_privatize(options: argparse.Namespace) -> None:
    check_suffix(options.out, *SUFFIXES)
    check_apart(options.out, options.table, options.protocol)
    from frequency.storage.table import applied, shuffled  # which need pyarrow

    survey = _survey(options.protocol)
    warn_of_epsilon(channel_of(survey).epsilon)
    tally = Counter[str]()
    with _folder_of(options), ProgressMeter("privatize", unit="rows") as meter:
        rng = generator_of(options, "these reports")

        def privatized(block: Any) -> Any:
            reports = survey.privatize(block, rng, tally)
            meter.update(len(block))
            return reports

        reports = applied(options.table, survey.schema.names, privatized, read_options(options))
        source = bit_source(None if rng is None else rng.spawn(1)[0])  # draws stay those of rng
        written = write_reports(options.out, survey, shuffled(reports, survey.report_dtype, source))
    for line in _account(survey.schema, written, tally):
        say(line)
    say(f"wrote {options.out}")


def _survey(path: Path) -> Survey:
    """The protocol in a file; ValueError if it has no schema."""
    survey = load_protocol(path)
    if not isinstance(survey, Survey):
        raise ValueError(
            f"{path} has no schema, which says what the columns of a table hold; make one with"
            " mechdesign schema, and the protocol with mechdesign protocol --schema"
        )
    return survey


def _account(schema: Schema, written: int, tally: Counter[str]) -> Iterator[str]:
    """Yield an account of the rows."""
    skipped = tally[""]
    yield f"{written + skipped} rows: {written} reports"
    if any(attribute.skips for attribute in schema):
        yield f"left out, since a value is missing: {skipped} rows"
    clipped = [attribute.name for attribute in schema if attribute.outside == "clip"]
    if clipped:
        counts = [f"{tally[name]} of {name}" for name in clipped if tally[name]]
        yield f"clipped, since they are outside: {listed(counts) if counts else 'none'}"


@contextmanager
def _folder_of(options: argparse.Namespace) -> Iterator[None]:
    """`check_target`, but the folder of the reports is made, and removed if there are none."""
    made = list(takewhile(lambda folder: not folder.exists(), options.out.parents))
    check_target(made[-1] if made else options.out, options.force)
    try:
        yield
    except BaseException:
        for folder in made:
            with suppress(OSError):  # it was not made yet, or others have written to it
                folder.rmdir()
        raise


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign simulate``: a protocol tried out on public or synthetic data.


@command(
    "simulate",
    "repeat a protocol on PUBLIC or SYNTHETIC data, and show predicted beside measured errors; what"
    " is shown are statistics of the data, without any privacy",
    "simulate public.csv --protocol age.json --repeat 20 --out errors.csv",
    USERS,
    SURVEY,
    """
    --repeat TIMES [int, default 20]  how often
    --seed SEED [seed]  of the random numbers, to repeat them
    --out FILE [.csv]  write the table
    """,
    FORCE,
    notes=CHAIN,
)
def run_simulate(options: argparse.Namespace) -> None:
    survey = _survey(options.protocol)
    errors = measure_errors(
        survey,
        _encoded(options, survey.schema),
        options.repeat,
        np.random.default_rng(options.seed),
        progress=True,
    )
    say(
        f"mechdesign: these are statistics of {options.table}, which must be public or synthetic",
        sys.stderr,
    )
    print(errors)
    if options.out is not None:
        write_text(options.out, errors.csv())


def _encoded(options: argparse.Namespace, schema: Schema) -> Encoded:
    """The rows of a table as items."""
    from frequency.storage.table import applied

    with ProgressMeter("read", unit="rows") as meter:

        def encoded(block: Any) -> Encoded:
            meter.update(len(block))
            return schema.encode(block)

        parts = list(applied(options.table, schema.names, encoded, read_options(options)))
    columns = zip(*(part.columns for part in parts), strict=True)
    clipped = sum((Counter(part.clipped) for part in parts), Counter[str]())
    skipped = sum(part.skipped for part in parts)
    return Encoded(tuple(map(np.concatenate, columns)), dict(clipped), skipped)
