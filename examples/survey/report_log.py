"""Reports in files, each key once: durable when they are acknowledged, many for one fsync.

Reports are appended to FOLDER/*.b64.part, a line each, in base64 and with its key. A file becomes
*.b64, which ``mechdesign collect`` reads, when it is full or old, when the log ends, or when the
next one begins if this one was killed.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

LINE = re.compile(rb"^([A-Za-z0-9+/]+={0,2}) ([A-Za-z0-9._-]{1,64})\n", re.MULTILINE)


class KeyTaken(ValueError):
    """A key came with another report before."""


class NotStored(OSError):
    """Nothing was stored, such as on a full disk: the same should be tried again."""


class ReportLog:
    """Reports with their keys in files of a folder, which no other process may write to.

    It remembers as many keys as it is told, the newest, from files that it finds, too: who tries
    again after so many others, or whose file was moved away before a restart, counts twice.

    Parameters
    ----------
    folder : pathlib.Path
        Made if it is not there. ``filelock.Timeout`` if another log writes to it.
    lines : int
        After about how many reports a file is closed.
    seconds : float
        And after how many seconds.
    keys : int
        How many keys are remembered, in about 200 bytes each.
    """

    def __init__(
        self, folder: Path, lines: int = 100_000, seconds: float = 3600.0, keys: int = 1_000_000
    ) -> None:
        self._folder, self._most, self._seconds, self._keys = folder, lines, seconds, keys
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / ".lock", timeout=0)
        self._lock.acquire()
        for part in sorted(folder.glob("*.b64.part")):
            # Without a last line that is not whole, and was never acknowledged
            content = part.read_bytes()
            end = first = content.find(b"\n") + 1
            while line := LINE.match(content, end):
                end = line.end()
            part.unlink() if end == first else self._close(part, end)
        found: list[tuple[str, int]] = []
        for path in sorted(folder.glob("*.b64"), reverse=True):
            own = LINE.findall(path.read_bytes()) if len(found) < keys else []
            found += [(key.decode(), hash(report)) for report, key in reversed(own)]
        self._seen = OrderedDict(reversed(found[:keys]))  # of which the oldest goes quickly
        """The hash of the report that came with a key, the oldest first."""
        self._begin()

    def _begin(self) -> None:
        """Name a file, which is made when the first report comes."""
        name = secrets.token_hex(16)
        self._header = f"# mechdesign reports {name}\n".encode()
        self._part = self._folder / f"{time.time_ns():020}-{name[:8]}.b64.part"
        self._durable = self._lines = 0
        self._until = float("inf")

    def _close(self, part: Path, size: int) -> None:
        """Whatever fails, it can be tried again."""
        os.truncate(part, size)
        _sync(part)
        part.rename(part.with_suffix(""))  # or a power cut undoes it, and the next start does it

    @asynccontextmanager
    async def taking(self, _app: Any = None) -> AsyncIterator[None]:
        """While reports are taken; in the end the file is closed."""
        self._open, self._wake = True, asyncio.Event()
        self._new_group()
        writer = asyncio.create_task(self._write())
        try:
            yield
        finally:
            self._open = False
            self._wake.set()
            await writer
            self._lock.release()

    def _new_group(self) -> None:
        self._group: dict[str, bytes] = {}
        self._done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def add(self, reports: dict[str, bytes]) -> int:
        """Store base64 reports by their keys, all or none: how many are new.

        On return all are durable. KeyTaken or NotStored if they are not.
        """
        for key, report in reports.items():
            if self._seen.get(key, hash(report)) != hash(report):
                raise KeyTaken(f"the key {key} came with another report before")
        new = {key: report for key, report in reports.items() if key not in self._seen}
        self._group |= new
        self._seen |= {key: hash(report) for key, report in new.items()}
        self._wake.set()
        # Of known reports, too, which may still be on their way: groups are done in order.
        # Others wait for the same group, if this caller is cancelled
        if not await asyncio.shield(self._done):
            raise NotStored("not stored, try again")
        return len(new)

    async def _write(self) -> None:
        """Write groups: whatever came while the last one was written shares an fsync."""
        while self._open or self._group:
            with suppress(TimeoutError):
                left = self._until - time.monotonic() if self._durable else None
                await asyncio.wait_for(self._wake.wait(), left)
            self._wake.clear()
            group, done = self._group, self._done
            self._new_group()
            try:
                await asyncio.to_thread(self._append, group)
                done.set_result(True)
            except OSError as error:
                print(f"nothing is stored: {error}", file=sys.stderr, flush=True)
                for key in (*group, *self._group):  # what came since may wait for the same keys
                    self._seen.pop(key, None)
                done.set_result(False)
                self._done.set_result(False)
                self._new_group()
            while len(self._seen) > self._keys:
                self._seen.popitem(last=False)
        if self._durable:
            self._close(self._part, self._durable)

    def _append(self, group: dict[str, bytes]) -> None:
        if self._durable and (self._lines >= self._most or time.monotonic() >= self._until):
            self._close(self._part, self._durable)
            self._begin()
        if not group:
            return
        text = b"".join(b"%b %b\n" % (report, key.encode()) for key, report in group.items())
        if first := not self._durable:
            text = self._header + text
        with self._part.open("wb" if first else "r+b") as stream:
            stream.seek(self._durable)
            stream.truncate()  # what an error may have left
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if first:
            _sync(self._folder)
            self._until = time.monotonic() + self._seconds
        self._durable += len(text)
        self._lines += len(group)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)
