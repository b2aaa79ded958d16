"""The command ``mechdesign collect``: from files of reports to an aggregate."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frequency.cli.schema_command import show_chain
from frequency.exceptions import IncompatibleAggregate
from frequency.storage import (
    aggregate_files,
    continues,
    load_aggregate,
    load_protocol,
    save_aggregate,
)
from frequency.storage.formats import SUFFIXES
from mechdesign.base.csv_rows import comma_separated, write_csv
from mechdesign.base.files import opened
from mechdesign.base.text import printable
from mechdesign.cli.options import AddCommand, add_force, check_suffix, check_targets, say


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
