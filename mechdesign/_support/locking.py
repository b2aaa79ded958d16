"""A lock on a file, between processes and threads."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of ``path``: one thread of one process at a time.

    The lock is on a file beside it, ``path`` with ".lock" appended, since ``path`` itself may be
    replaced meanwhile. That file stays; the system frees the lock of a process that ends. The lock
    is advisory: it keeps out only those who ask for it.

    Raises
    ------
    OSError
        The directory cannot be written to, or its file system has no locks.
    """
    # Opened anew each time: threads, and processes that forked, would share the lock of one handle.
    with open(f"{os.path.realpath(path)}.lock", "ab") as stream:
        if sys.platform == "win32":
            import msvcrt

            stream.seek(0)
            while True:
                try:
                    msvcrt.locking(stream.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError as error:
                    if error.errno != errno.EDEADLK:  # ten seconds have passed: wait on
                        raise
            try:
                yield
            finally:
                stream.seek(0)
                msvcrt.locking(stream.fileno(), msvcrt.LK_UNLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX)
            yield  # closing the file frees the lock
