"""Reports, aggregates and protocols in files, and the way from reports to an aggregate.

A protocol is a small JSON file, an aggregate is one binary file. Reports are batches (``.ldp``),
lines of base64 (``.b64``), or Parquet files, for which the extra ``storage`` is needed.

>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> from frequency import HRR
>>> from frequency.storage import aggregate_files, write_reports
>>> place = Path(tempfile.mkdtemp())
>>> save_protocol(place / "protocol.json", HRR(domain=64, epsilon=1.0))
>>> protocol = load_protocol(place / "protocol.json")
>>> for day in range(3):
...     reports = protocol.privatize(np.arange(1000) % 64, np.random.default_rng(day))
...     _ = write_reports(place / f"collector=7/day-{day}.parquet", protocol, reports)
>>> collected = aggregate_files(protocol, place, resume=place / "counted.state")
>>> print(collected)
3000 reports of 3 files counted, 0 files refused
>>> save_aggregate(place / "aggregate.ldp", collected.aggregate)
>>> protocol.estimate(load_aggregate(place / "aggregate.ldp", protocol)).n
3000
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from frequency.core import Aggregate, channel_of
from frequency.exceptions import IncompatibleAggregate
from frequency.storage.batch_file import RefusedFile
from frequency.storage.collection import Collected, aggregate_files
from frequency.storage.protocol_file import (
    load_protocol,
    read_reports,
    save_protocol,
    write_reports,
)
from mechdesign.base import opened, replacing

if TYPE_CHECKING:
    from frequency.storage.parquet import parquet_header

__all__ = [
    "Collected",
    "RefusedFile",
    "aggregate_files",
    "continues",
    "load_aggregate",
    "load_protocol",
    "parquet_header",
    "read_reports",
    "save_aggregate",
    "save_protocol",
    "write_reports",
]

if not TYPE_CHECKING:  # a checker would take any misspelt name for it

    def __getattr__(name):
        if name == "parquet_header":  # the one that needs pyarrow
            return import_module("frequency.storage.parquet").parquet_header
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), "parquet_header"})


def save_aggregate(path: str | os.PathLike[str], aggregate: Aggregate) -> None:
    """Write an aggregate, replacing the file in one step or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        Where; what is there is replaced.
    aggregate : Aggregate
        What to write.
    """
    with replacing(path) as stream:
        aggregate.write(stream)


def load_aggregate(path: str | os.PathLike[str], protocol: Any) -> Aggregate:
    """Read an aggregate of a protocol.

    Parameters
    ----------
    path : str or os.PathLike
        What `save_aggregate` wrote.
    protocol : Channel or Protocol
        What the aggregate is of.

    Returns
    -------
    Aggregate
        Equal to the one that was saved.

    Raises
    ------
    IncompatibleAggregate
        It is not whole, of another protocol, or impossible.
    """
    with opened(path) as stream:
        return channel_of(protocol).aggregate_from_bytes(stream.read())


def continues(protocol: Any, later: Aggregate, earlier: Aggregate) -> bool:
    """Whether an aggregate can hold all reports of an earlier one.

    That is, whether the rest can be counts of reports.

    Parameters
    ----------
    protocol : Channel or Protocol
        What both are of.
    later, earlier : Aggregate
        The aggregates.

    Returns
    -------
    bool
        False shows that some reports of the earlier one are not in the later one.

    Raises
    ------
    IncompatibleAggregate
        One of them is not of this protocol.
    """
    channel = channel_of(protocol)
    for aggregate in (later, earlier):
        if aggregate.parameters != channel.signature:
            raise IncompatibleAggregate("not an aggregate of this protocol")
    n, counts = later.n - earlier.n, later.counts - earlier.counts
    if n < 0:
        return False
    try:
        channel.require_own(Aggregate(channel.signature, n, counts))
    except IncompatibleAggregate:
        return False
    return True
