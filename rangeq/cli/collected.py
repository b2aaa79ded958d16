"""What was collected, as a source of answers: an aggregate with its protocol, or a release."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

from frequency.core.aggregate import message_kind
from frequency.exceptions import IncompatibleAggregate
from frequency.schema import Survey
from frequency.schema.survey import wrapped
from frequency.storage import load_aggregate, load_protocol
from mechdesign import InvalidFile
from mechdesign.base.strict_json import format_of
from mechdesign.cli.options import release_kinds
from rangeq.central import ReleasedQuantiles, load_release
from rangeq.cli.answering import EstimateSource, QuantileSource
from rangeq.cli.plain_items import estimate_of
from rangeq.cli.released_table import TableSource

Source: TypeAlias = EstimateSource | QuantileSource | TableSource


def add_collected(parser: argparse.ArgumentParser) -> None:
    """Add ``collected`` and ``--protocol``, which `source_of` takes."""
    parser.add_argument(
        "collected", type=Path, help="an aggregate, which collect wrote, or a curator's release"
    )
    parser.add_argument(
        "--protocol", type=Path, help="of the aggregate (.json); a release needs none"
    )


def source_of(collected: Path, protocol: Path | None, confidence: float = 0.95) -> Source:
    """What was collected, ready to answer.

    Parameters
    ----------
    collected : Path
        A file of an aggregate or of a curator's release.
    protocol : Path or None
        The file of the aggregate's protocol; None: it is a release.
    confidence : float, default 0.95
        Of each interval by itself, in (0, 1).

    Returns
    -------
    EstimateSource, QuantileSource or TableSource
        Of a distribution, of released quantiles alone, or of a released table of counts.

    Raises
    ------
    InvalidFile
        Not what it should be, or an aggregate of another protocol.
    ValueError
        No reports.
    """
    if protocol is None:
        return _release(collected, confidence)
    return _aggregate(collected, protocol, confidence)


def _aggregate(collected: Path, given: Path, confidence: float) -> EstimateSource:
    """What an aggregate answers."""
    protocol = load_protocol(given)
    try:
        aggregate = load_aggregate(collected, protocol)
    except IncompatibleAggregate as error:
        if message_kind(collected) not in ("aggregate", "damaged"):
            raise InvalidFile(
                f"{collected} is not an aggregate: mechdesign collect makes one of reports"
            ) from error
        raise InvalidFile(f"{collected}: {error}") from error
    if not aggregate.n:
        raise ValueError(f"{collected} holds no reports: there is nothing to estimate from")
    own = protocol.protocol if isinstance(protocol, Survey) else protocol
    name = type(wrapped(own)).__name__
    return EstimateSource(name, estimate_of(protocol, aggregate), confidence)


def _release(collected: Path, confidence: float) -> Source:
    """What a curator's release answers."""
    try:
        released = load_release(collected)
    except InvalidFile as error:
        kind = release_kinds().get(format_of(collected))
        if kind is not None:
            return TableSource(kind.load().load(collected), confidence)
        if message_kind(collected) == "aggregate":
            raise InvalidFile(
                f"{collected} is an aggregate: add --protocol FILE.json, that of its reports"
            ) from error
        raise InvalidFile(f"{error}; --protocol says what an aggregate is of") from error
    if isinstance(released, ReleasedQuantiles):
        return QuantileSource(released)
    return EstimateSource(
        "the release", released.estimate, confidence, reproducible=released.reproducible
    )
