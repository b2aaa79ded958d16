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

from frequency.cli.protocol_commands import add_users, show_chain
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
from frequency.storage.table import shuffled
from mechdesign import InvalidFile
from mechdesign.base import (
    ProgressMeter,
    bit_source,
    comma_separated,
    listed,
    opened,
    printable,
    replacing,
    write_csv,
)
from mechdesign.cli.options import (
    AddCommand,
    add_force,
    add_seed,
    check_apart,
    check_suffix,
    check_targets,
    check_written,
    generator_of,
    say,
    warn_of_epsilon,
)


def add_collect(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "collect",
        _collect,
        "count the reports in files, each file once; exit code 1 if any file or report was refused",
        "collect reports/ --protocol protocol.json --out aggregate.ldp --resume counted.state"
        " --refused refused.csv",
    )
    chosen.add_argument(
        "paths",
        type=Path,
        nargs="+",
        help="files, or directories of *.parquet, *.ldp (batches) and *.b64 (lines)",
    )
    chosen.add_argument(
        "--protocol", type=Path, required=True, help="what save_protocol wrote (.json)"
    )
    chosen.add_argument("--out", type=Path, required=True, help="the aggregate to write")
    chosen.add_argument(
        "--refused", type=Path, help="write what was refused or left out, and why (.csv)"
    )
    chosen.add_argument(
        "--resume",
        type=Path,
        help="keeps what has been counted: to go on after a crash, or to add files later",
    )
    chosen.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    chosen.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster that does the work, such as tcp://10.0.0.1:8786",
    )
    add_force(chosen)
    show_chain(chosen)


def _collect(options: argparse.Namespace) -> int:
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
    """`check_targets`; but with ``--resume`` an earlier run's own files may be replaced.

    That is an aggregate of this protocol (and, see `_check_replaced`, one that the new one
    continues), and a table with the headings of ``--refused``.
    """
    for target, is_own in ((options.out, _is_aggregate), (options.refused, _is_account)):
        resumed = options.resume is not None and target is not None and is_own(target, protocol)
        check_targets(argparse.Namespace(force=options.force or resumed), target)


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
    """Yield an account of the rows."""
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


# ------------------------------------------------------------------------------------------------
# The command ``mechdesign simulate``: a protocol tried out on public or synthetic data.


def add_simulate(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "simulate",
        _simulate,
        "repeat a protocol on PUBLIC or SYNTHETIC data, and show predicted beside measured errors;"
        " what is shown are statistics of the data, without any privacy",
        "simulate public.csv --protocol age.json --repeat 20 --out errors.csv",
    )
    add_users(chosen)
    chosen.add_argument(
        "--protocol", type=Path, required=True, help="a protocol with a schema (.json)"
    )
    chosen.add_argument(
        "--repeat", type=int, default=20, metavar="TIMES", help="how often (default 20)"
    )
    chosen.add_argument("--seed", type=int, help="of the random numbers, to repeat them")
    chosen.add_argument("--out", type=Path, help="write the table (.csv)")
    add_force(chosen)
    show_chain(chosen)


def _simulate(options: argparse.Namespace) -> int:
    check_written(options, options.out, ".csv", sources=[options.table, options.protocol])
    if options.seed is not None and options.seed < 0:
        raise ValueError(f"a seed is an integer >= 0, got {options.seed}")
    from frequency.storage import load_protocol

    survey = load_protocol(options.protocol)
    if not isinstance(survey, Survey):
        raise InvalidFile(
            f"{options.protocol} has no schema, which says what the columns of a table hold; make"
            " one with mechdesign schema, and the protocol with mechdesign protocol --schema"
        )
    errors = measure_errors(
        survey,
        _encoded(options.table, survey.schema),
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
        with replacing(options.out) as stream:
            stream.write(errors.csv().encode())
        say(f"wrote {options.out}")
    return 0


def _encoded(path: Path, schema: Schema) -> Encoded:
    """The rows of a table as items."""
    from frequency.storage.table import applied

    with ProgressMeter("read", unit="rows") as meter:

        def encoded(block: Any) -> Encoded:
            meter.update(len(block))
            return schema.encode(block)

        parts = list(applied(path, schema.names, encoded))
    columns = zip(*(part.columns for part in parts), strict=True)
    clipped = sum((Counter(part.clipped) for part in parts), Counter[str]())
    skipped = sum(part.skipped for part in parts)
    return Encoded(tuple(map(np.concatenate, columns)), dict(clipped), skipped)
