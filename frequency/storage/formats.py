"""The formats of files of reports, and reading and writing them whatever their format is.

The name of a file says it: ``.ldp`` is a batch, ``.b64`` are lines, and everything else is Parquet.
"""

from __future__ import annotations

import os
import stat
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from frequency.core import Channel, Reports, channel_of
from frequency.storage.batch_file import BatchFile, ReportsFile, batch_of
from frequency.storage.line_file import LineFile
from mechdesign.base import replacing


def _parquet() -> type[ReportsFile]:
    """Return the class, loaded only where it is used: it needs pyarrow, which others do without."""
    kind: type[ReportsFile] = import_module("frequency.storage.parquet").ParquetReports
    return kind


_FORMATS: dict[str, Callable[[], type[ReportsFile]]] = {
    ".parquet": _parquet,
    ".ldp": lambda: BatchFile,
    ".b64": lambda: LineFile,
}

SUFFIXES = tuple(_FORMATS)  #: The endings of the names of files of reports, in any case.


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
        Of the protocol's ``report_dtype``; several arrays need not fit in memory together.

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


# ------------------------------------------------------------------------------------------------
# The files of reports below the paths that a caller names: nothing is left out silently.


Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


@dataclass
class Listing:
    """The listing of what there is to read, by absolute path."""

    sizes: dict[str, int] = field(default_factory=dict)  # bytes of each file
    # why a file or a directory below one that was named cannot be read
    refused: dict[str, str] = field(default_factory=dict)


def listing_of(paths: Paths) -> Listing:
    """Return files, and of directories every file below whose name ends as those of reports do.

    Names that begin with "." or "_" are passed over. Links are followed; a directory is listed
    once, however many links lead to it, and by its own name if it is below one that was named.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    listing = Listing()
    listed: set[tuple[int, int]] = set()
    for path in map(os.path.abspath, given):  # the same for whoever resumes elsewhere
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            os.scandir(path).close()
            _list(path, listing, listed)
        elif stat.S_ISREG(status.st_mode):
            listing.sizes[path] = status.st_size
        else:
            raise ValueError(f"{path} is no regular file")
    return listing


def _list(top: str, found: Listing, listed: set[tuple[int, int]]) -> None:
    directories, links = deque([top]), deque[str]()
    while directories or links:
        place = directories.popleft() if directories else links.popleft()
        try:
            status = os.stat(place)
            if (status.st_dev, status.st_ino) in listed:
                continue
            with os.scandir(place) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            found.refused[place] = str(error)
            continue
        listed.add((status.st_dev, status.st_ino))
        for entry in inside:
            if entry.name.startswith((".", "_")):
                continue
            try:
                status = entry.stat()
            except OSError as error:  # a link to nothing: who knows what should be there
                found.refused[entry.path] = str(error)
                continue
            if stat.S_ISDIR(status.st_mode):
                if not entry.is_symlink():
                    directories.append(entry.path)
                elif _is_around(entry.path):
                    found.refused[entry.path] = "a link to a directory that it is in"
                else:
                    links.append(entry.path)
            elif entry.name.lower().endswith(SUFFIXES):
                if stat.S_ISREG(status.st_mode):
                    found.sizes[entry.path] = status.st_size
                else:
                    found.refused[entry.path] = "no regular file"


def _is_around(link: str) -> bool:
    """Whether a link leads to a directory that it is in itself."""
    return Path(os.path.realpath(os.path.dirname(link))).is_relative_to(os.path.realpath(link))
