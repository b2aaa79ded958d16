"""The work of a worker: looking at files, and counting tasks made of them, as pure functions."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.core.channel import Channel, Reports
from frequency.storage.formats import file_of
from frequency.storage.reports_file import Outline, RefusedFile

Counts: TypeAlias = npt.NDArray[np.signedinteger[Any]]
"""Integers of any width: `narrowed`."""


@dataclass(frozen=True)
class FilePiece:
    """A piece of a file: some groups of its reports.

    Attributes
    ----------
    path : str
        The file.
    digest : str
        By which it is known.
    groups : tuple of (int, int)
        The first of them, and the first after the last.
    size : int
        How many bytes of the file they are.
    """

    path: str
    digest: str
    groups: tuple[int, int]
    size: int


Task: TypeAlias = tuple[FilePiece, ...]
"""Small files as wholes, or one piece of a large one."""

Job: TypeAlias = tuple[Task, ...]
"""Tasks that are settled together: all pieces of a large file, or one task of small files."""


class FileEntry(NamedTuple):
    """The outcome of counting a piece of a file.

    Attributes
    ----------
    path : str
        The file.
    digest : str
        By which it is known.
    counted : int
        How many of its reports were counted.
    left_out : dict of str to int
        How many were not, by the reason.
    reason : str or None
        Why the file was refused; None: it was not.
    """

    path: str
    digest: str
    counted: int
    left_out: dict[str, int]
    reason: str | None


@dataclass(frozen=True, eq=False)
class Part:
    """The counts of some pieces of files.

    Attributes
    ----------
    counts : numpy.ndarray of integers
        Shaped as those of the protocol's aggregates.
    entries : tuple of FileEntry
        The outcome of each piece.
    """

    counts: Counts
    entries: tuple[FileEntry, ...]


def look(protocol: bytes, paths: tuple[str, ...]) -> list[Outline | str]:
    """Return the outline of each file, or why it is refused."""
    channel, outlines = _unpickled(protocol), list[Outline | str]()
    for path in paths:
        try:
            outlines.append(file_of(path, channel).outline())
        except (RefusedFile, OSError) as error:
            outlines.append(str(error))
    return outlines


def count(protocol: bytes, batch: int, task: Task) -> Part:
    """Read and count a task.

    The reports of small files are counted together, as a count costs as the counts are many, but
    those of a file only when it has been read to its end. A file alone is counted as it is read.
    """
    channel = _unpickled(protocol)
    counts = np.zeros(channel.counts_shape, dtype=np.int64)
    waiting: list[Reports] = []
    entries = []
    alone = len(task) == 1
    for piece in task:
        mark, tally, n = len(waiting), Counter[str](), 0
        try:
            file = file_of(piece.path, channel)
            for reports in file.batches(range(*piece.groups), batch, tally, piece.digest):
                waiting.append(reports)
                n += len(reports)
                if alone:  # nothing else would be lost with these counts
                    channel.add_counts(waiting.pop(), counts)
        except (RefusedFile, OSError) as error:
            entries.append(FileEntry(piece.path, piece.digest, 0, {}, str(error)))
            del waiting[mark:]
            if alone:
                counts[:] = 0
            continue
        entries.append(FileEntry(piece.path, piece.digest, n, dict(tally), None))
        if sum(map(len, waiting)) >= batch:
            channel.add_counts(np.concatenate(waiting), counts)
            waiting = []
    if waiting:
        channel.add_counts(np.concatenate(waiting), counts)
    return Part(narrowed(counts), tuple(entries))


@lru_cache(maxsize=4)
def _unpickled(protocol: bytes) -> Channel:
    """Return the protocol, made once a process: anew for each task, its tables would be, too."""
    channel: Channel = pickle.loads(protocol)
    return channel


def narrowed(counts: Counts) -> Counts:
    """Return the same integers in as few bytes as they need, to wait and travel in less memory."""
    least, most = int(counts.min(initial=0)), int(counts.max(initial=0))
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max:
            return counts.astype(dtype)
    return counts


def merge(first: Part, second: Part) -> Part:
    """Return two parts as one."""
    counts = np.add(first.counts, second.counts, dtype=np.int64)
    return Part(narrowed(counts), first.entries + second.entries)


def settle(part: Part) -> Part:
    """Return the part of a job, with one entry for each file.

    A large file counts with all of its pieces or not at all.
    """
    path, digest = part.entries[0].path, part.entries[0].digest
    if len(part.entries) == 1 or part.entries[1].path != path:
        return part
    reason = next((entry.reason for entry in part.entries if entry.reason is not None), None)
    if reason is not None:
        return Part(np.zeros_like(part.counts), (FileEntry(path, digest, 0, {}, reason),))
    left_out = sum((Counter(entry.left_out) for entry in part.entries), Counter[str]())
    counted = sum(entry.counted for entry in part.entries)
    return Part(part.counts, (FileEntry(path, digest, counted, dict(left_out), None),))


def pieces(path: str, outline: Outline, size: int, reports: int) -> Iterator[FilePiece]:
    """Yield a file in pieces of about so many reports."""
    first = reached = before = 0
    for k, here in enumerate(outline.groups):
        reached += here
        if reached - before >= reports or k == len(outline.groups) - 1:
            share = size * reached // outline.reports - size * before // outline.reports
            yield FilePiece(path, outline.digest, (first, k + 1), share)
            first, before = k + 1, reached
