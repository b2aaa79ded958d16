"""Regular files: opened without waiting, and replaced in one step or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from mechdesign.base.text import FULL, printable
from mechdesign.exceptions import DiskFull, IrregularFile


def opened(path: str | os.PathLike[str], mode: str = "rb", **options: Any) -> IO[Any]:
    """Open a regular file to read it: what every reader of files calls."""
    return open(path, mode, opener=_regular, **options)


def _regular(path: str, flags: int) -> int:
    try:
        handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without a driver
            raise IrregularFile(path) from error
        raise
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return handle
    os.close(handle)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise IrregularFile(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a stream to a temporary file that replaces ``path``, durably, once it is complete.

    If anything fails, ``path`` is unchanged. Of a symbolic link the target is replaced.
    """
    # If anything fails, the temporary file is removed. The new file has the permission bits of the
    # one that it replaces.
    target = Path(os.path.realpath(path))
    mode = None
    if target.exists():
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            raise IrregularFile(os.fspath(path))
        mode = stat.S_IMODE(status.st_mode)
    elif os.path.islink(path):
        raise FileNotFoundError(errno.ENOENT, "a symbolic link that leads nowhere", os.fspath(path))
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")

    def private(path: str, flags: int) -> int:
        # Before it has the permissions of the file that it replaces, only its owner may read it.
        return os.open(path, flags, 0o666 if mode is None else 0o600)

    try:
        with open(aside, "xb", opener=private) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            aside.chmod(mode)
        aside.replace(target)
    except BaseException as error:
        aside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in FULL:
            raise DiskFull(os.fspath(path)) from error
        raise
    _sync(target.parent)


def _sync(directory: Path) -> None:
    """Write the entries of a directory to disk, where the system can, to survive a power cut."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ------------------------------------------------------------------------------------------------
# The progress of a long computation, on standard error.


_REDRAWN, _WRITTEN = 0.2, 5.0  #: Seconds after which a bar is drawn anew, and a line is written.

_PERCENTAGE = "{desc}: {percentage:.0f}%{postfix} [{elapsed}<{remaining}]"
_STEPS, _NO_STEPS = "{desc}: {n_fmt} {unit}{postfix} [{elapsed}]", "{desc}{postfix} [{elapsed}]"


class ProgressMeter:
    """A bar on a terminal, a line every few seconds elsewhere. A context manager.

    It is redrawn at regular times, also when the computation reports nothing. A computation that
    ends within seconds writes no line. ``total`` is the steps in all, where they are known;
    ``unit`` the name of a step, such as "rows", "B" for bytes: without both steps are not shown.
    """

    def __init__(
        self, description: str, total: int | None = None, unit: str = "", *, shown: bool = True
    ) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._steps, self._text, self._began = 0, "", time.monotonic()
        self._watch = threading.Thread(target=self._report, daemon=True) if shown else None
        self._done = threading.Event()

    def __enter__(self) -> Self:
        if self._watch is not None:
            self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._watch is not None:
            self._watch.join()

    def update(self, steps: int = 1) -> None:
        """Report that so many more steps are done."""
        self._steps += steps

    def say(self, text: str) -> None:
        """Set the text that says what is going on; calls are cheap."""
        self._text = text

    def _report(self) -> None:
        if not sys.stderr.isatty():
            while not self._done.wait(_WRITTEN):
                print(self._line(terminal=False), file=sys.stderr, flush=True)
            return
        width = 0
        while not self._done.wait(_REDRAWN):
            line = self._line(terminal=True)
            print(f"\r{line:{width}}", end="", file=sys.stderr, flush=True)
            width = len(line)
        print(end="\r" + " " * width + "\r" if width else "", file=sys.stderr, flush=True)

    def _line(self, terminal: bool) -> str:
        from tqdm import tqdm  # imported here: quick computations do not need it

        if self._total is not None:
            layout = "{l_bar}{bar}{r_bar}" if terminal else _PERCENTAGE
        else:
            layout = _STEPS if self._unit else _NO_STEPS
        return tqdm.format_meter(
            self._steps,
            self._total or 0,
            time.monotonic() - self._began,
            ncols=shutil.get_terminal_size().columns - 1 if terminal else None,
            prefix=printable(self._description),
            unit=self._unit,
            unit_scale=self._unit == "B",
            bar_format=layout,
            postfix=printable(self._text),
        )
