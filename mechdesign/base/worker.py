"""A process that computes what may take long, so that it can be stopped at any time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Stopped(RuntimeError):
    """What was computed by a `Worker` was stopped."""


class Worker:
    """A process of its own that calls functions, one after the other, until it is stopped.

    What functions remember, such as caches, stays there until then. The process ends with the one
    that made it, however that ends. Threads may share a worker: each waits for its turn.
    """

    def __init__(self) -> None:
        self._turn, self._beginning = threading.Lock(), threading.Lock()
        self._process: Any = None
        self._stopped: Any = None  # the process that was stopped last, which may still be ending

    def begin(self) -> None:
        """Begin the process, if there is none, so that the first call need not wait for it."""
        with self._beginning:
            if self._process is None:
                self._begin()

    def _begin(self) -> None:
        fresh = multiprocessing.get_context("spawn")  # a fork of a process with threads may hang
        self._ours, theirs = fresh.Pipe()
        process = fresh.Process(target=_serve, args=(theirs,), daemon=True)
        process.start()
        self._process = process  # which `stop` may end from now on
        theirs.close()  # or nobody would see that the process has ended

    def _again(self) -> None:
        self._ours.close()
        self._process.join()
        self._begin()

    def __call__(self, function: Callable[..., Any], *given: Any) -> Any:
        """Call a function there.

        Parameters
        ----------
        function : callable
            Of a module, by its name; it must not raise what cannot be pickled.
        *given : Any
            What it is called with. These, and what it returns, are pickled.

        Returns
        -------
        Any
            What it returns.

        Raises
        ------
        Stopped
            The process ended before the function did; another one has begun.
        Exception
            What the function raises.
        """
        self.begin()
        with self._turn:
            if self._stopped is self._process:
                self._again()
            try:
                self._ours.send((function, given))
            except BrokenPipeError:  # it has ended before it was asked
                self._again()
                self._ours.send((function, given))
            try:
                fine, found = self._ours.recv()
            except (EOFError, OSError):
                self._again()
                raise Stopped("stopped before it was done") from None
        if not fine:
            raise found
        return found

    def stop(self) -> None:
        """End what is computed now, if anything is: whoever waits for it gets `Stopped`."""
        if (process := self._process) is not None:
            self._stopped = process
            process.kill()


def _serve(pipe: Any) -> None:
    """Call functions until nobody is left to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides on that
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        while True:
            function, given = pipe.recv()
            try:
                answer = True, function(*given)
            except Exception as error:
                answer = False, error
            pipe.send(answer)


def _end_with_parent() -> None:
    """End this process with the one that made it, whatever is computed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
