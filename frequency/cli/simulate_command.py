"""The command ``mechdesign simulate``: a protocol tried out on public or synthetic data."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from frequency.cli.schema_command import add_users, show_chain
from frequency.measured_errors import measure_errors
from frequency.schema import Encoded, Schema, Survey
from mechdesign import InvalidFile
from mechdesign.base.files import replacing
from mechdesign.base.progress import ProgressMeter
from mechdesign.cli.options import (
    AddCommand,
    add_force,
    check_written,
    say,
)


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
    found = measure_errors(
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
    print(found)
    if options.out is not None:
        with replacing(options.out) as stream:
            stream.write(found.csv().encode())
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
