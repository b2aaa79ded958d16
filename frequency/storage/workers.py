"""Pools in which functions are called: here, or in other processes of this machine.

A `Pool` is all that the rest knows of it; `frequency.distributed.Cluster` is one of many machines.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from frequency.exceptions import WorkersLost

_IDLE = 10.0
"""Seconds after which a process without work ends."""

_PULSE = 0.5
"""Seconds between two looks of a process whether its parent is still there."""

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
        """Call a function, now or later.

        Parameters
        ----------
        function : callable
            A pure one: it may be called again where a worker was lost.
        argument : object
            What it is called with; it can be pickled, and so can the function.

        Returns
        -------
        object
            A future of ``function(argument)``, for `finished` and `result`.

        Raises
        ------
        WorkersLost
            Nobody is left to do the work.
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
    """A pool of processes that need nothing of the caller's script, and stay for the next call.

    Parameters
    ----------
    workers : int
        How many processes, at least 1.
    """

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
