"""Pools in which functions are called: here, or in other processes of this machine.

A `Pool` is all that the rest knows of it; `frequency.storage.distributed.Cluster` is one of many
machines.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from frequency.core import Channel, Reports
from frequency.exceptions import WorkersLost
from frequency.storage.batch_file import Outline, RefusedFile
from frequency.storage.protocol_file import file_of

# ------------------------------------------------------------------------------------------------
# The work of a worker: looking at files, and counting tasks made of them, as pure functions.


Counts: TypeAlias = npt.NDArray[np.signedinteger[Any]]  #: Integers of any width: `narrowed`.


@dataclass(frozen=True)
class FilePiece:
    """A piece of a file: some groups of its reports."""

    path: str
    digest: str  # by which the file is known
    groups: tuple[int, int]  # the first, and the first after the last
    size: int  # bytes of the file


Task: TypeAlias = tuple[FilePiece, ...]  #: Small files as wholes, or one piece of a large one.

#: Tasks that are settled together: all pieces of a large file, or one task of small files.
Job: TypeAlias = tuple[Task, ...]


class FileEntry(NamedTuple):
    """The outcome of counting a piece of a file."""

    path: str
    digest: str  # by which the file is known
    counted: int  # reports
    left_out: dict[str, int]  # reports that were not, by the reason
    reason: str | None  # why the file was refused; None: it was not


@dataclass(frozen=True, eq=False)
class Part:
    """The counts of pieces of files, shaped as those of aggregates, and the outcome of each."""

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
    """Read and count a task."""
    channel = _unpickled(protocol)
    counts = np.zeros(channel.counts_shape, dtype=np.int64)
    # The reports of small files are counted together, as a count costs as the counts are many, but
    # those of a file only when it has been read to its end. A file alone is counted as it is read
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
    return pickle.loads(protocol)


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
    """Return the part of a job, with one entry for each file."""
    path, digest = part.entries[0].path, part.entries[0].digest
    if len(part.entries) == 1 or part.entries[1].path != path:
        return part
    # A large file counts with all of its pieces or not at all
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


_IDLE = 10.0  # seconds after which a process without work ends

_PULSE = 0.5  # seconds between two looks of a process whether its parent is still there

_T = TypeVar("_T")
_R = TypeVar("_R")


class Pool(ABC):
    """A pool that calls functions, pure ones, which may be called again where a worker was lost.

    Every method raises WorkersLost when there is nobody left to do the work.
    """

    @abstractmethod
    def width(self) -> int:
        """The number of calls to have under way, so that nobody waits for work."""

    @abstractmethod
    def submit(self, function: Callable[[_T], _R], argument: _T) -> Any:
        """Call a function, now or later; return a future of ``function(argument)``, for `result`.

        Both can be pickled.
        """

    @abstractmethod
    def finished(self, futures: Collection[Any]) -> Collection[Any]:
        """Return those of some futures that are done, as soon as there is one."""

    @abstractmethod
    def result(self, future: Any) -> Any:
        """Return what came of a future that is done."""


class Here(Pool):
    """A pool that calls at once."""

    def width(self) -> int:
        return 1

    def submit(self, function: Callable[[_T], _R], argument: _T) -> Future[_R]:
        future: Future[_R] = Future()
        future.set_result(function(argument))
        return future

    def finished(self, futures: Collection[Any]) -> Collection[Any]:
        return list(futures)

    def result(self, future: Any) -> Any:
        return future.result()


class Processes(Pool):
    """A pool of processes that need nothing of the caller's script, and stay for the next call."""

    def __init__(self, workers: int) -> None:
        from loky import get_reusable_executor

        self.workers = workers
        self.executor = get_reusable_executor(
            workers, timeout=_IDLE, initializer=follow, initargs=(os.getpid(),)
        )

    def width(self) -> int:
        return 2 * self.workers

    def submit(self, function: Callable[[_T], _R], argument: _T) -> Any:
        with _lost(), _uninterrupted():  # which may begin a process
            return self.executor.submit(function, argument)

    def finished(self, futures: Collection[Any]) -> Collection[Any]:
        return wait(futures, return_when=FIRST_COMPLETED).done

    def result(self, future: Any) -> Any:
        with _lost():
            return future.result()


@contextmanager
def processes(workers: int) -> Iterator[Pool]:
    """Yield `Processes`, which are ended at once if anything is raised while they work."""
    pool = Processes(workers)
    try:
        yield pool
    except BaseException:
        pool.executor.shutdown(kill_workers=True)
        raise


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except BrokenExecutor as error:
        raise WorkersLost(
            "a process ended in the middle of its work, perhaps for want of memory; resume to go on"
        ) from error


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let interrupts wait; a process that begins meanwhile gets none, not even before `follow`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow(parent: int) -> None:
    """Make this process end when its parent does, and leave interrupts to the parent."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PULSE)
        os._exit(1)  # also in the middle of a call, or of writing to a pipe that nobody reads

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


def in_order(pool: Pool, function: Callable[[_T], _R], arguments: Iterator[_T]) -> Iterator[_R]:
    """Yield ``map(function, arguments)``, some calls ahead of whoever takes the results."""
    waiting: deque[Any] = deque()
    try:
        while True:
            ahead = max(0, pool.width() - len(waiting))
            waiting.extend(pool.submit(function, argument) for argument in islice(arguments, ahead))
            if not waiting:
                return
            pool.finished([waiting[0]])
            yield pool.result(waiting.popleft())
    finally:
        waiting.clear()  # a traceback may keep this frame, and with it calls that nobody waits for
