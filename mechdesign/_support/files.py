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


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream to a temporary file that replaces ``path``, durably, once it is complete.

    If anything fails, the temporary file is removed and ``path`` is unchanged. The new file has
    the permission bits of the one that it replaces. If ``path`` is a symbolic link, its target is
    replaced.

    Raises
    ------
    OSError
        ``path`` is a broken symbolic link or not a regular file, or cannot be written.
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

    def opened(path: str, flags: int) -> int:
        # Before it has the permissions of the file that it replaces, only its owner may read it.
        return os.open(path, flags, 0o666 if mode is None else 0o600)

    try:
        with open(aside, "xb", opener=opened) as stream:
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
    """Write the entries of a directory to disk, where the system can, to survive a power cut."""
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
