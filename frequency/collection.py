"""From files of reports to one aggregate: bounded memory, every file counted exactly once, whatever happens in between.

The integers of an aggregate add up, so the result does not depend on the order of the files, on how reports are batched, or on how
many processes or machines share the work. A file is counted when all of it has been read, or not at all. What has been counted is
kept in one file, the aggregate together with the list of files, written in one step: after a crash it holds an earlier state or
the next one, and both are right.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import pickle
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.aggregate import Aggregate, differing, pack, unpack
from frequency.channel import Channel, Reports
from frequency.description import channel_of
from frequency.exceptions import IncompatibleAggregate
from frequency.parquet import Footer, RefusedFile, batch_of, batches, footer_of
from mechdesign import InvalidFile
from mechdesign.formats import replacing
from mechdesign.progress import ProgressMeter
from mechdesign.text import printable, shown

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_PIECE = 4
"""A file of more batches than this is shared out by so many batches."""

_IDLE = 10.0
"""Seconds after which a process without work ends."""

_SHARE = 20
"""Saving the state may take one part in so many of the time."""


@dataclass(frozen=True, eq=False)
class Collected:
    """What came of files of reports.

    Attributes
    ----------
    aggregate
        Of all the reports that were counted, for the protocol's ``estimate``.
    counted
        For each file that was counted, by its absolute path, how many of its reports were. With ``resume`` those of earlier runs
        too.
    refused
        For each file that was not, why.
    left_out
        For each file that was counted without some of its reports, how many and why, as `Channel.aggregate` tallies them.
    """

    aggregate: Aggregate
    counted: dict[str, int]
    refused: dict[str, str]
    left_out: dict[str, dict[str, int]]

    def __str__(self) -> str:
        lines = [
            f"{self.aggregate.n} reports of {len(self.counted)} files counted, {len(self.refused)} files refused"
        ]
        lines += [f"  {path}: {reason}" for path, reason in self.refused.items()]
        lines += [
            f"  {path}: left out {', '.join(f'{count} {reason}' for reason, count in reasons.items())}"
            for path, reasons in self.left_out.items()
        ]
        return "\n".join(map(printable, lines))


# ------------------------------------------------------------------------------------------------ what a worker does


@dataclass(frozen=True)
class Piece:
    """Some row groups of a file, and how many bytes of it they are."""

    path: str
    digest: str
    groups: tuple[int, int]
    size: int


Task: TypeAlias = tuple[Piece, ...]
"""Small files as wholes, or one piece of a large one."""

Job: TypeAlias = tuple[Task, ...]
"""Tasks that are settled together: all pieces of a large file, or one task of small files."""


class Entry(NamedTuple):
    """How a piece of a file fared: how many reports were counted, how many left out, and why it was refused, if it was."""

    path: str
    counted: int
    left_out: dict[str, int]
    reason: str | None


@dataclass(frozen=True, eq=False)
class Part:
    """The counts of some pieces of files."""

    counts: npt.NDArray[np.int64]
    entries: tuple[Entry, ...]


def count(protocol: bytes, batch: int, task: Task) -> Part:
    """Read and count a task, given the pickled channel. Small files are counted together: a count costs as the counts are many."""
    channel = _unpickled(protocol)
    counts = np.zeros(channel._shape, dtype=np.int64)
    held: list[Reports] = []
    entries = []
    alone = len(task) == 1
    for piece in task:
        mark, tally, n = len(held), Counter[str](), 0
        try:
            for reports in batches(
                piece.path, channel, range(*piece.groups), batch, tally, piece.digest
            ):
                held.append(reports)
                n += len(reports)
                if alone:  # nothing else would be lost with these counts
                    counts += channel._count(held.pop())
        except (RefusedFile, OSError) as error:
            entries.append(Entry(piece.path, 0, {}, str(error)))
            del held[mark:]
            if alone:
                counts[:] = 0
            continue
        entries.append(Entry(piece.path, n, dict(tally), None))
        if sum(map(len, held)) >= batch:
            counts += channel._count(np.concatenate(held))
            held = []
    if held:
        counts += channel._count(np.concatenate(held))
    return Part(counts, tuple(entries))


@lru_cache(maxsize=4)
def _unpickled(protocol: bytes) -> Channel:
    """Once a process: making it anew for each task would make its tables anew."""
    channel: Channel = pickle.loads(protocol)
    return channel


def merge(*parts: Part) -> Part:
    """Parts as one."""
    counts = sum(part.counts for part in parts)
    return Part(np.asarray(counts), tuple(entry for part in parts for entry in part.entries))


def settle(part: Part) -> Part:
    """The part of a job, with one entry for each file: a large file counts with all of its pieces or not at all."""
    path = part.entries[0].path
    if len(part.entries) == 1 or part.entries[1].path != path:
        return part
    reason = next((entry.reason for entry in part.entries if entry.reason is not None), None)
    if reason is not None:
        return Part(np.zeros_like(part.counts), (Entry(path, 0, {}, reason),))
    left_out = sum((Counter(entry.left_out) for entry in part.entries), Counter[str]())
    return Part(
        part.counts,
        (Entry(path, sum(entry.counted for entry in part.entries), dict(left_out), None),),
    )


# ------------------------------------------------------------------------------------------------ what has been counted


class State:
    """What has been counted of which files, in memory and, if there is a path, in a file."""

    def __init__(self, channel: Channel, path: Path | None) -> None:
        self.channel, self.path = channel, path
        self.n = 0
        self.counts = np.zeros(channel._shape, dtype=np.int64)
        self.counted: dict[str, int] = {}
        self.left_out: dict[str, dict[str, int]] = {}
        self.refused: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        """The digest of the end of every file that was counted or is being counted, and where it is."""
        if path is not None and path.exists():
            self._load(path)
        self._saved, self._cost = time.monotonic(), 0.0

    def absorb(self, part: Part) -> None:
        """Add a settled part; save the state if it is time."""
        self.counts += part.counts
        refused = {entry.path: entry.reason for entry in part.entries if entry.reason is not None}
        if refused:
            self.refused.update(refused)
            self.ids = {name: place for name, place in self.ids.items() if place not in refused}
        for path, n, left_out, _ in part.entries:
            if path not in refused:
                self.n += n
                self.counted[path] = n
                if left_out:
                    self.left_out[path] = left_out
        if self.path is not None and time.monotonic() - self._saved > _SHARE * self._cost:
            self.save()

    def aggregate(self) -> Aggregate:
        """The counts as an aggregate of their own."""
        return Aggregate(self.channel._signature, self.n, self.counts.copy())

    def save(self) -> None:
        """Replace the file in one step."""
        if self.path is None:
            return
        begun = time.monotonic()
        places = {path: name for name, path in self.ids.items()}
        files = [
            [path, places[path], n, self.left_out.get(path, {})] for path, n in self.counted.items()
        ]
        message = pack({"kind": "counted files", "files": files}, self.aggregate().to_bytes())
        with replacing(self.path) as stream:
            stream.write(message + hashlib.sha256(message).digest())
        self._saved = time.monotonic()
        self._cost = self._saved - begun

    def _load(self, path: Path) -> None:
        message = path.read_bytes()
        try:
            if hashlib.sha256(message[:-32]).digest() != message[-32:]:
                raise ValueError("cut short or changed: the digest does not match")
            header, body = unpack(message[:-32], "counted files", "files")
            aggregate = Aggregate.from_bytes(body)
            files = [
                (str(place), str(name), int(n), dict(left_out))
                for place, name, n, left_out in header["files"]
            ]
            if sum(n for _, _, n, _ in files) != aggregate.n or len(
                {name for _, name, _, _ in files}
            ) != len(files):
                raise ValueError("its files do not add up to its counts")
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise InvalidFile(f"{path}: {error}") from error
        if aggregate.parameters != self.channel._signature:
            raise IncompatibleAggregate(
                f"{path} is of {differing(aggregate.parameters, self.channel._signature)}"
            )
        self.channel._own(aggregate)
        self.n, self.counts = aggregate.n, aggregate.counts.copy()
        for place, name, n, left_out in files:
            self.counted[place], self.ids[name] = n, place
            if left_out:
                self.left_out[place] = left_out


# ------------------------------------------------------------------------------------------------ who does what


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

    Memory holds the counts twice, and for each worker its counts, one batch of reports and a row
    group of a file. Progress shows on standard error: a bar on a terminal, a line every few seconds
    elsewhere.

    Parameters
    ----------
    protocol
        What the reports are of.
    paths
        A file or directory, or several. Of directories every file below that ends in ``.parquet`` is taken, but for names that
        begin with "." or "_". The same file, given twice or copied elsewhere, counts once.
    workers
        Processes on this machine.
    resume
        A file that keeps what has been counted. If it exists, its files are not counted again; files that were refused are tried
        again. It is kept up to date while the work goes on, and when it is done or interrupted: call again to go on, or, later, to
        add the files that have come since. One run at a time: of two the last one to save wins, and the other's files count again.
    client
        A ``dask.distributed.Client``, whose workers can read the same paths: they do the work, ``workers`` is ignored.
    batch
        Reports read at a time. None: as many as are handled well.

    Raises
    ------
    OSError, ValueError
        A path that does not exist, a directory that cannot be listed, or what is no regular file; nothing has been read.
        OSError too when a process ends in the middle of its work: what was counted is kept, with ``resume``.
    IncompatibleAggregate, InvalidFile
        ``resume`` is of another protocol, or no such file; nothing has been read.
    """
    channel = channel_of(protocol)
    if isinstance(workers, bool) or not isinstance(workers, (int, np.integer)) or workers < 1:
        raise ValueError(f"workers must be a number of processes, at least 1, got {shown(workers)}")
    if batch is not None and (
        isinstance(batch, bool) or not isinstance(batch, (int, np.integer)) or batch < 1
    ):
        raise ValueError(f"batch must be a number of reports, at least 1, got {shown(batch)}")
    size = batch_of(channel) if batch is None else int(batch)
    sizes = _files(paths)
    state = State(channel, None if resume is None else Path(resume))
    counting = partial(count, pickle.dumps(channel), size)
    try:
        with (
            _runner(workers, client, counting) as run,
            ProgressMeter("files", sum(sizes.values()), "B") as meter,
        ):
            left = list(sizes)
            while left:
                copies: dict[str, str] = {}
                jobs = _jobs(
                    {path: sizes[path] for path in left}, state, size, copies, meter.update
                )
                for part in run(jobs, meter.update):
                    state.absorb(part)
                # A copy takes the place of a file that turned out to be damaged.
                left = [path for path, original in copies.items() if original not in state.counted]
                state.refused.update(
                    {
                        path: _repeated(path, copies[path], channel)
                        for path in copies
                        if path not in left
                    }
                )
    finally:
        state.save()
    return Collected(state.aggregate(), state.counted, state.refused, state.left_out)


def _files(paths: Paths) -> dict[str, int]:
    """All files, and their sizes in bytes."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: dict[str, int] = {}
    for path in (
        Path(os.path.abspath(path)) for path in given
    ):  # the same for whoever resumes elsewhere
        if not path.is_dir():
            found[str(path)] = _size(path)
            continue
        for below in sorted(_below(path)):
            found[str(below)] = _size(below)
    return found


def _below(directory: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:  # what cannot be listed is not left out in silence
        raise error

    for place, folders, names in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (
            Path(place, name)
            for name in names
            if name.endswith(".parquet") and not name.startswith((".", "_"))
        )


def _size(path: Path) -> int:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is no regular file")
    return found.st_size


def _jobs(
    sizes: dict[str, int],
    state: State,
    batch: int,
    copies: dict[str, str],
    done: Callable[[int], object],
) -> Iterator[Job]:
    """What is to be counted of these files, as one gets to them; what need not or cannot be is noted."""
    small: list[Piece] = []
    reports = 0
    for path, size in sizes.items():
        try:
            footer = footer_of(path, state.channel)
        except (RefusedFile, OSError) as error:
            state.refused[path] = str(error)
            done(size)
            continue
        original = state.ids.get(footer.digest)
        if original is not None or path in state.counted:
            if original is None:
                state.refused[path] = "it is not the file that was counted in its place before"
            elif original != path:
                copies[path] = original
            done(size)
            continue
        state.ids[footer.digest] = path
        if footer.reports > _PIECE * batch:
            yield tuple((piece,) for piece in _pieces(path, footer, size, _PIECE * batch))
            continue
        small.append(Piece(path, footer.digest, (0, len(footer.groups)), size))
        reports += footer.reports
        if reports >= batch:
            yield (tuple(small),)
            small, reports = [], 0
    if small:
        yield (tuple(small),)


def _repeated(path: str, original: str, channel: Channel) -> str:
    """Why a file is not counted that ends like another one: somebody may have made it, or the other one, to end so."""
    try:
        whole = (
            footer_of(path, channel).digest == footer_of(original, channel).digest
        )  # nobody has replaced one since
        if whole and not filecmp.cmp(path, original, shallow=False):
            return f"it ends like {original}, but is not the same: one of them is made up"
    except (RefusedFile, OSError):
        pass
    return f"holds the same reports as {original}"


def _pieces(path: str, footer: Footer, size: int, reports: int) -> Iterator[Piece]:
    """A file in pieces of about so many reports."""
    first = held = 0
    for k, here in enumerate(footer.groups):
        held += here
        if held >= reports or k == len(footer.groups) - 1:
            yield Piece(path, footer.digest, (first, k + 1), size * held // footer.reports)
            first, held = k + 1, 0


Counting: TypeAlias = Callable[[Task], Part]


@dataclass(eq=False)
class _Open:
    """A job under way: how many of its tasks are not done, and what has come of the others."""

    left: int
    part: Part | None = None


def _settled(
    executor: Executor,
    window: int,
    counting: Counting,
    jobs: Iterator[Job],
    done: Callable[[int], object],
) -> Iterator[Part]:
    """The settled parts of jobs, as they come, with at most ``window`` tasks under way."""
    waiting: dict[Future[Part], tuple[_Open, int]] = {}

    def next_ones() -> Iterator[Part]:
        ready, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in ready:
            job, size = waiting.pop(future)
            try:
                part = future.result()
            except BrokenExecutor as error:
                raise OSError(
                    "a process ended in the middle of its work, perhaps for want of memory; resume to go on"
                ) from error
            job.part = part if job.part is None else merge(job.part, part)
            job.left -= 1
            done(size)
            if not job.left:
                yield settle(job.part)

    for job in jobs:
        begun = _Open(len(job))
        for task in job:
            while len(waiting) >= window:
                yield from next_ones()
            waiting[executor.submit(counting, task)] = begun, sum(piece.size for piece in task)
    while waiting:
        yield from next_ones()


class _Here(Executor):
    """Does what it is asked to at once."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **named))
        return future


Runner: TypeAlias = Callable[[Iterator[Job], Callable[[int], object]], Iterator[Part]]
"""Turns jobs into settled parts, and says how many bytes are done."""


@contextmanager
def _runner(workers: int, client: Any, counting: Counting) -> Iterator[Runner]:
    if client is not None:
        from frequency.distributed import on_cluster

        yield partial(on_cluster, client, counting)
    elif workers == 1:
        yield partial(_settled, _Here(), 1, counting)
    else:
        from loky import (
            get_reusable_executor,
        )  # of processes that need nothing of the caller's script, and stay for the next call

        pool = get_reusable_executor(workers, timeout=_IDLE)
        try:
            yield partial(_settled, pool, 2 * workers, counting)
        except BaseException:
            pool.shutdown(kill_workers=True)
            raise
