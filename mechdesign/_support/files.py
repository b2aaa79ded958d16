"""Files that are replaced in one step or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_BINARY = getattr(os, "O_BINARY", 0)
"""Windows would otherwise translate line ends."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream to a file beside ``path`` that takes its place, durably, when all has been written.

    If anything fails, the file beside is removed, and ``path`` is what it was. A file that is
    replaced keeps its permission bits; of a symbolic link, the file that it leads to is replaced.

    Raises
    ------
    OSError
        ``path`` is a symbolic link that leads nowhere, or there is something that is no regular
        file; or nothing can be written there.
    """
    target = Path(os.path.realpath(path))
    mode = None
    if target.exists():
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        mode = stat.S_IMODE(status.st_mode)
    elif os.path.islink(path):
        raise FileNotFoundError(errno.ENOENT, "a symbolic link that leads nowhere", os.fspath(path))
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    # No one may read what is written before they may read the file that it replaces.
    opened = os.open(
        aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666 if mode is None else 0o600
    )
    try:
        with open(opened, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            aside.chmod(mode)
        aside.replace(target)
        _sync(target.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _sync(directory: Path) -> None:
    """Make the names in a directory outlive a power cut, where the system can."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
