"""Regular files: opened without waiting, and replaced in one step or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from mechdesign.base.text import FULL
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
    """A stream to a temporary file that replaces ``path``, durably, once it is complete.

    If anything fails, the temporary file is removed and ``path`` is unchanged. The new file has
    the permission bits of the one that it replaces. If ``path`` is a symbolic link, its target is
    replaced.
    """
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
