"""The formats of files of reports, and reading and writing them whatever their format is.

The name of a file says it: ``.ldp`` is a batch, ``.b64`` are lines, and everything else is Parquet.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from frequency.core.channel import Channel, Reports
from frequency.core.protocol import channel_of
from frequency.storage.batch_file import BatchFile
from frequency.storage.line_file import LineFile
from frequency.storage.reports_file import ReportsFile, batch_of
from mechdesign.base.files import replacing


def _parquet() -> type[ReportsFile]:
    """Return the class, loaded only where it is used: it needs pyarrow, which others do without."""
    kind: type[ReportsFile] = import_module("frequency.storage.parquet").ParquetReports
    return kind


_FORMATS: dict[str, Callable[[], type[ReportsFile]]] = {
    ".parquet": _parquet,
    ".ldp": lambda: BatchFile,
    ".b64": lambda: LineFile,
}

SUFFIXES = tuple(_FORMATS)
"""The endings of the names of files of reports, in any case."""


def _format_of(path: str | os.PathLike[str]) -> type[ReportsFile]:
    return _FORMATS.get(Path(path).suffix.lower(), _parquet)()


def file_of(path: str | os.PathLike[str], channel: Channel) -> ReportsFile:
    """Return a file of reports, by the format that its name says."""
    return _format_of(path)(path, channel)


def write_reports(
    path: str | os.PathLike[str], protocol: Any, reports: Reports | Iterable[Reports]
) -> int:
    """Write reports to a file, replacing it in one step or not at all.

    Directories are made as needed.

    Parameters
    ----------
    path : str or os.PathLike
        The name says the format: ``.ldp`` is a batch, ``.b64`` are lines of base64, everything else
        is Parquet. Collectors that are to be told apart write to directories of their own, such as
        ``collector=7/2026-11-21.parquet``.
    protocol : Channel or Protocol
        What the reports are of.
    reports : structured numpy.ndarray or iterable of structured numpy.ndarray
        An array of the protocol's ``report_dtype``, or an iterable of such arrays, which need not
        fit in memory together.

    Returns
    -------
    int
        How many reports were written.

    Raises
    ------
    InvalidReport
        A report that no client of this protocol can have sent; no file is written.
    ValueError
        Reports that are nearly all the same, and too many for one Parquet file (see
        ``docs/limits/files.md``); no file is written.
    """
    channel, target = channel_of(protocol), Path(path)
    arrays = (
        channel.transport.accepted(array, None)
        for array in ([reports] if isinstance(reports, np.ndarray) else reports)
    )
    kind = _format_of(target)
    # The first is checked before any file or directory is made.
    first = next(arrays, np.zeros(0, dtype=channel.report_dtype))
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as stream:
        return kind.write(stream, channel, chain([first], arrays))


def read_reports(
    path: str | os.PathLike[str], protocol: Any, tally: Counter[str] | None = None
) -> Reports:
    """Return all reports of a file, as an array.

    Parameters
    ----------
    path : str or os.PathLike
        What `write_reports` wrote, or a collector.
    protocol : Channel or Protocol
        What the reports are of.
    tally : collections.Counter, optional
        None: a report that nobody can have sent, or a line that is none, raises InvalidReport. A
        Counter: it is left out, and counted under the reason, such as "impossible".

    Returns
    -------
    numpy.ndarray
        Shape (reports,), of the protocol's ``report_dtype``.

    Raises
    ------
    RefusedFile
        A file of another protocol or of other parameters, of other columns, cut short, or damaged.
    """
    channel = channel_of(protocol)
    parts = file_of(path, channel).batches(None, batch_of(channel), tally)
    return np.concatenate([np.zeros(0, dtype=channel.report_dtype), *parts])
