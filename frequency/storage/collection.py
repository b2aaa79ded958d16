"""The way from files of reports to one aggregate, in bounded memory, each file counted once.

The integers of an aggregate add up, so the result does not depend on the order of the files, on how
reports are batched, or on how many processes or machines share the work. A file is counted when all
of it has been read, or not at all. What has been counted is kept in one file, the aggregate
together with the list of files, written in one step: after a crash it holds an earlier state or
the next one, and both are right.

Directories are listed here (`file_listing`). Workers (`workers`) then look at each file, at its end
or its beginning, some ahead of those that count. What is to be counted is decided here, file by
file in order; workers count it (`counting`), and here it is added up (`state`).
"""

from __future__ import annotations

import filecmp
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frequency.core import REPORTS, Aggregate, Channel, channel_of, differing
from frequency.exceptions import IncompatibleAggregate
from frequency.storage.batch_file import Outline, RefusedFile, batch_of
from frequency.storage.protocol_file import Paths, file_of, listing_of
from frequency.storage.workers import (
    FileEntry,
    FilePiece,
    Here,
    Job,
    Part,
    Pool,
    Task,
    count,
    in_order,
    look,
    merge,
    pieces,
    processes,
    settle,
)
from mechdesign import InvalidFile
from mechdesign.base import (
    TEXT,
    ProgressMeter,
    list_of,
    opened,
    printable,
    reason,
    replacing,
    row_of,
    table_of,
    whole,
)

# ------------------------------------------------------------------------------------------------
# The state of what has been counted of which files: right at every moment, in memory and file.


_KIND = "counted files"

# The fields of a state beside its aggregate: files, digests, what was counted or left out.
_FIELDS = {"files": list_of(row_of(TEXT, TEXT, REPORTS, table_of(REPORTS)))}

_SHARE = 20  # saving the state may take one part in so many of the time


class Settled(NamedTuple):
    """The counts of files, settled for good: nothing in it ever changes."""

    aggregate: Aggregate
    files: int  #: The number of files: the first ones of the state's.


class State:
    """The state of what has been counted of which files, in memory and, with a path, in a file.

    `settled` is replaced by one assignment, and the file in one step. So whatever interrupts this,
    wherever it does, what is then saved or read again is right.

    ``files``, by path, are those that it was counted of, and perhaps some that an interrupt kept
    out; ``claimed`` has by digest whose file was or is being counted, ``refused`` by path the
    reasons.
    """

    def __init__(self, channel: Channel, path: Path | None) -> None:
        self.channel, self.path = channel, path
        nothing = np.zeros(channel.counts_shape, dtype=np.int64)
        self.settled = Settled(Aggregate(channel.signature, 0, nothing), 0)
        self.files: dict[str, FileEntry] = {}
        self.claimed: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self._kept: int | None = None  # so many files are in the file
        if path is not None and path.exists():
            self._load(path)
        self._saved, self._cost = time.monotonic(), 0.0

    def absorb(self, part: Part) -> None:
        """Add a settled part; save the state if it is time."""
        n, counts = self.settled.aggregate.n, self.settled.aggregate.counts
        for entry in part.entries:
            if entry.reason is None:
                self.files[entry.path] = entry
                n += entry.counted
            else:
                self.refused[entry.path] = entry.reason
                del self.claimed[entry.digest]  # a copy may take its place
        total = Aggregate(self.channel.signature, n, np.add(counts, part.counts, dtype=np.int64))
        self.settled = Settled(total, len(self.files))
        if time.monotonic() - self._saved > _SHARE * self._cost:
            self.save()

    def save(self) -> None:
        """Replace the file in one step, if there is anything new."""
        if self.path is None or self._kept == self.settled.files:
            return
        begun, settled = time.monotonic(), self.settled
        files = [
            [entry.path, entry.digest, entry.counted, entry.left_out]
            for entry in islice(self.files.values(), settled.files)
        ]
        with replacing(self.path) as stream:
            settled.aggregate.write(stream, _KIND, files=files)
        self._kept, self._saved = settled.files, time.monotonic()
        self._cost = self._saved - begun

    def _load(self, path: Path) -> None:
        try:
            with opened(path) as stream:
                aggregate, header = Aggregate.read(stream.read(), _KIND, _FIELDS)
            entries = [
                FileEntry(name, digest, counted, left_out, None)
                for name, digest, counted, left_out in header["files"]
            ]
            if (
                sum(entry.counted for entry in entries) != aggregate.n
                or len({entry.digest for entry in entries}) != len(entries)
                or len({entry.path for entry in entries}) != len(entries)
            ):
                raise ValueError("its files do not add up to its counts")
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidFile(f"{path}: {reason(error)}") from error
        if aggregate.parameters != self.channel.signature:
            raise IncompatibleAggregate(
                f"{path} is of {differing(aggregate.parameters, self.channel.signature)}"
            )
        self.channel.require_own(aggregate)
        self.files = {entry.path: entry for entry in entries}
        self.claimed = {entry.digest: entry.path for entry in entries}
        self.settled, self._kept = Settled(aggregate, len(entries)), len(entries)


_TASK = 4  # A task is of about so many batches: to add up its counts costs what those of a batch do

# A file of more than one part in so many of a batch is a task by itself.
#
# Reports of other files are held until the end of their file.
_ALONE = 2

_OPENING = 1 << 12  # opening a file takes the time of counting about so many reports

_LOOKS = 100  # files that are looked at in one call


@dataclass(frozen=True, eq=False)
class Collected:
    """The aggregate of files of reports, and an account of every file.

    Attributes
    ----------
    aggregate : Aggregate
        Of all the reports that were counted, for the protocol's ``estimate``.
    counted : dict of str to int
        By absolute path, how many of a file's reports were, with ``resume`` in earlier runs too.
    refused : dict of str to str
        For each file that was not, or directory that could not be listed, why.
    left_out : dict of str to dict of str to int
        For each file that was counted without some of its reports, how many and why, as
        `Channel.aggregate` tallies them.
    found : int
        How many files and directories that could not be listed there were, in this run.
    """

    aggregate: Aggregate
    counted: dict[str, int]
    refused: dict[str, str]
    left_out: dict[str, dict[str, int]]
    found: int

    def __str__(self) -> str:
        n, counted, refused = self.aggregate.n, len(self.counted), len(self.refused)
        lines = [
            f"{n} report{'s' * (n != 1)} of {counted} file{'s' * (counted != 1)} counted,"
            f" {refused} file{'s' * (refused != 1)} refused"
        ]
        lines += [f"  {path}: {reason}" for path, reason in self.refused.items()]
        lines += [
            f"  {path}: left out"
            f" {', '.join(f'{count} {reason}' for reason, count in reasons.items())}"
            for path, reasons in self.left_out.items()
        ]
        return "\n".join(map(printable, lines))


def aggregate_files(
    protocol: Any,
    paths: Paths,
    workers: int = 1,
    resume: str | os.PathLike[str] | None = None,
    client: Any = None,
    *,
    batch: int | None = None,
) -> Collected:
    """Count all reports of files and directories, each file exactly once.

    Memory holds the counts at most three times here (what has been counted, those of a task, and
    those of a batch), and at most twice in each worker, which also holds three batches of reports
    and a row group of a file, or the keys of 2^20 lines. The counts of tasks that wait to be added
    up, two for each worker, are held in as few bytes as their largest needs; Dask copies them as
    they travel. Progress shows on standard error: a bar on a terminal, a line every few seconds
    elsewhere.

    Parameters
    ----------
    protocol : Channel or Protocol
        What the reports are of.
    paths : str, os.PathLike or iterable of these
        A file or directory, or several. Of directories every file below that ends in ``.parquet``,
        ``.ldp`` (batches) or ``.b64`` (lines), in any case, is taken, but for names that begin with
        "." or "_"; links are followed. The same file, given twice or copied elsewhere, counts once.
    workers : int, default 1
        Processes on this machine. They end when this process does, however it ends.
    resume : str or os.PathLike, optional
        A file that keeps what has been counted. If it exists, its files are not counted again;
        files that were refused are tried again. It is kept up to date while the work goes on, and
        when it is done or interrupted: call again to go on, or, later, to add files that have come
        since. One run at a time: of two the last one to save wins, and the other's files count
        again.
    client : dask.distributed.Client, optional
        Its workers, which can read the same paths, do the work; ``workers`` is ignored. A cluster
        that is still without workers is given two minutes to get one.
    batch : int, optional
        Reports read at a time. None: as many as are handled well.

    Returns
    -------
    Collected
        The aggregate, and an account of every file.

    Raises
    ------
    OSError, ValueError
        A path that does not exist, a directory that cannot be listed, or what is no regular file;
        nothing has been read. What is found so below a directory is refused, and the rest goes on.
    WorkersLost
        A process ended in the middle of its work; or a cluster has no workers, lost its scheduler,
        or cancelled the work. What was counted is kept, with ``resume``.
    IncompatibleAggregate, InvalidFile
        ``resume`` is of another protocol, or no such file; nothing has been read.
    """
    channel = channel_of(protocol)
    workers = whole(workers, "workers", 1, what="a number of processes")
    size = batch_of(channel)
    if batch is not None:
        size = whole(batch, "batch", 1, what="a number of reports")
    listing = listing_of(paths)
    state = State(channel, None if resume is None else Path(resume))
    state.refused.update(listing.refused)
    pickled, sizes = pickle.dumps(channel), listing.sizes
    try:
        with (
            pool_of(workers, client) as pool,
            ProgressMeter("files", sum(sizes.values()), "B") as meter,
        ):
            left = list(sizes)
            while left:
                copies: dict[str, str] = {}
                calls = in_order(pool, partial(look, pickled), _calls(left))
                looks = (outline for call in calls for outline in call)
                jobs = _jobs(
                    {path: sizes[path] for path in left}, looks, state, size, copies, meter.update
                )
                for part in _settled(pool, partial(count, pickled, size), jobs, meter.update):
                    state.absorb(part)
                # A copy takes the place of a file that turned out to be damaged.
                left = [path for path, original in copies.items() if original not in state.files]
                state.refused.update(
                    {
                        path: _repeated(path, copies[path], channel)
                        for path in copies
                        if path not in left
                    }
                )
    finally:
        state.save()
    return Collected(
        state.settled.aggregate,
        {path: entry.counted for path, entry in state.files.items()},
        state.refused,
        {path: entry.left_out for path, entry in state.files.items() if entry.left_out},
        len(listing.sizes) + len(listing.refused),
    )


def pool_of(workers: int, client: Any) -> AbstractContextManager[Pool]:
    """The pool of a Dask client, or of so many processes of this machine."""
    if client is not None:
        from frequency.storage.distributed import Cluster  # of an extra

        return nullcontext(Cluster(client))
    return nullcontext(Here()) if workers == 1 else processes(workers)


def _calls(paths: Iterable[str]) -> Iterator[tuple[str, ...]]:
    rest = iter(paths)
    while call := tuple(islice(rest, _LOOKS)):
        yield call


def _jobs(
    sizes: dict[str, int],
    looks: Iterator[Outline | str],
    state: State,
    batch: int,
    copies: dict[str, str],
    done: Callable[[int], object],
) -> Iterator[Job]:
    """Yield what is to be counted of these files, as one gets to them.

    What need not or cannot be counted is noted.
    """
    small: list[FilePiece] = []
    weight = 0
    for (path, size), outline in zip(sizes.items(), looks, strict=True):
        if isinstance(outline, str):
            state.refused[path] = outline
            done(size)
            continue
        original = state.claimed.get(outline.digest)
        if original is not None or path in state.files:
            if original is None:
                state.refused[path] = "it is not the file that was counted in its place before"
            elif original != path:
                copies[path] = original
            done(size)
            continue
        state.claimed[outline.digest] = path
        if outline.reports > _TASK * batch:
            yield tuple((piece,) for piece in pieces(path, outline, size, _TASK * batch))
            continue
        whole = FilePiece(path, outline.digest, (0, len(outline.groups)), size)
        if _ALONE * outline.reports > batch:
            yield ((whole,),)
            continue
        small.append(whole)
        weight += outline.reports + _OPENING
        if weight >= _TASK * batch:
            yield (tuple(small),)
            small, weight = [], 0
    if small:
        yield (tuple(small),)


def _repeated(path: str, original: str, channel: Channel) -> str:
    """Return why a file that is known as another one is not counted."""
    try:
        # Somebody may have made it, or the other one, to be taken for it
        # Nobody has replaced one since
        digests = [file_of(file, channel).outline().digest for file in (path, original)]
        if digests[0] == digests[1] and not filecmp.cmp(path, original, shallow=False):
            return (
                f"it has the id of {original}, but other bytes: it was written anew, or one of them"
                " is made up"
            )
    except (RefusedFile, OSError):
        pass
    if not os.path.lexists(original):  # renamed, or a copy whose original was removed
        return f"was counted already, as {original}, which is there no more"
    return f"holds the same reports as {original}"


@dataclass(eq=False)
class _Open:
    """A job under way: how many of its tasks are not done, and what has come of the others."""

    left: int
    part: Part | None = None


def _settled(
    pool: Pool, counting: Callable[[Task], Part], jobs: Iterator[Job], done: Callable[[int], object]
) -> Iterator[Part]:
    """Yield the settled parts of jobs, as they come; say how many bytes are done."""
    waiting: dict[Any, tuple[_Open, int]] = {}

    def next_ones() -> Iterator[Part]:
        for future in pool.finished(waiting):
            job, size = waiting.pop(future)
            part = pool.result(future)
            job.part = part if job.part is None else merge(job.part, part)
            job.left -= 1
            done(size)
            if not job.left:
                yield settle(job.part)

    try:
        for job in jobs:
            begun = _Open(len(job))
            for task in job:
                while len(waiting) >= pool.width():
                    yield from next_ones()
                waiting[pool.submit(counting, task)] = begun, sum(piece.size for piece in task)
        while waiting:
            yield from next_ones()
    finally:
        waiting.clear()  # a traceback may keep this frame, and with it calls that nobody waits for
