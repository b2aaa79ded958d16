"""The command ``mechdesign collect``: from files of reports to an aggregate, and an account of what was refused."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mechdesign.cli import AddCommand, add_force, check_suffix, check_targets, say
from mechdesign.formats import replacing
from mechdesign.text import comma_separated, printable


def collect(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "collect",
        _collect,
        "count the reports in Parquet files, each file once; exit code 1 if any file or report was refused",
        "collect reports/ --protocol protocol.json --out aggregate.ldp --resume counted.state --refused refused.csv",
    )
    chosen.add_argument("paths", type=Path, nargs="+", help="files, or directories of *.parquet")
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


def _collect(options: argparse.Namespace) -> int:
    check_targets(options, options.out, options.refused)
    check_suffix(options.refused, ".csv")
    _check_apart(options)
    from frequency.storage import (
        aggregate_files,
        load_protocol,
        save_aggregate,
    )  # pyarrow only for those who collect

    protocol = load_protocol(options.protocol)
    client: Any = None
    if options.scheduler is not None:
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError(
                "--scheduler needs the extra 'distributed': in a clone, pip install '.[distributed]'"
            ) from error
        client = Client(options.scheduler)
    try:
        collected = aggregate_files(
            protocol, options.paths, options.workers, options.resume, client
        )
    finally:
        if client is not None:
            client.close()
    if not collected.counted and not collected.refused:
        raise ValueError(
            f"no file that ends in .parquet in {', '.join(map(str, options.paths))}; nothing was written"
        )
    save_aggregate(options.out, collected.aggregate)
    print(collected)
    say(f"wrote {options.out}")
    if options.refused is not None:
        rows = [
            ["file", "reports left out", "reason"],
            *([path, "all", reason] for path, reason in collected.refused.items()),
        ]
        rows += [
            [path, str(count), reason]
            for path, reasons in collected.left_out.items()
            for reason, count in reasons.items()
        ]
        with replacing(options.refused) as stream:
            stream.write(comma_separated([map(printable, row) for row in rows]).encode())
        say(f"wrote {options.refused}")
    return 1 if collected.refused or collected.left_out else 0


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
        if path.suffix == ".parquet" and any(place in path.parents for place in read)
    ]
    if len(set(written)) < len(written) or set(read) & set(written) or reports:
        raise ValueError(
            "a file to write would replace what is read, or another one that is written"
        )
