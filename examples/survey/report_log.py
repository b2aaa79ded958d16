"""Reports in files, each key once: durable when they are acknowledged, many for one fsync.

Reports are appended to FOLDER/*.b64.part, a line each, in base64 and with its key. A file becomes
*.b64, which ``mechdesign collect`` reads, when it is full or old, when the log ends, or when the
next one begins if this one was killed. A comment, ``# name NAME of KEY``, has another name of the
batch whose reports have the keys KEY.0, KEY.1 and so on.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import sys
import time
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Container, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from filelock import FileLock

_KEY = rb"[A-Za-z0-9._-]{1,64}"
LINE = re.compile(
    rb"^(?:([A-Za-z0-9+/]+={0,2})|# name (%b) of) (%b)\n" % (_KEY, _KEY), re.MULTILINE
)
SHARE = 40
"""So many reports of a batch take the memory of one key."""


class KeyTaken(ValueError):
    """A key came with another report before."""


class NotStored(OSError):
    """Not all was stored, such as on a full disk: the same should be tried again."""


class Memory:
    """The newest keys, with hashes of their reports, and other names of batches.

    The keys KEY.0, KEY.1 and so on of a batch are one run. All that a log remembers is here, so
    that a key is forgotten with all of its run.

    Parameters
    ----------
    keys : int
        How many are remembered. In a batch `SHARE` count as one.
    """

    def __init__(self, keys: int) -> None:
        self.cost, self._most = 0, keys
        # The number of the first key of each run, and the hashes; of which the oldest goes quickly
        self._runs = OrderedDict[str, "tuple[int, array[int]]"]()
        self._loose = False  # whether some key KEY.N may be by itself
        self.names = OrderedDict[str, str]()

    def _place(self, key: str) -> tuple[str, int]:
        """In which run a key is or would be, and where: by itself unless it goes on with one."""
        front, _, number = key.rpartition(".")
        if front and number.isdecimal() and len(number) < 9 and (number[0] != "0" or number == "0"):
            run, at = f"{front} ", int(number)  # a space is in no key
            entry = self._runs.get(run)
            if entry is None:
                return run, 0
            if 0 <= at - entry[0] <= len(entry[1]):
                return run, at - entry[0]
        return key, 0

    def _new_run(self, keys: list[str]) -> str | None:
        """The run that these keys are, if it is certain that none of them is known."""
        front = keys[0].rpartition(".")[0] if keys else ""
        run = f"{front} "
        if not front or self._loose or run in self._runs:
            return None
        return run if keys == [f"{front}.{place}" for place in range(len(keys))] else None

    def get(self, key: str) -> int | None:
        """The hash of the report that came with a key; None if it is not known."""
        run, place = self._place(key)
        entry = self._runs.get(run)
        if entry is not None and place < len(entry[1]):
            return entry[1][place]
        entry = self._runs.get(key)
        return None if entry is None else entry[1][0]

    def new(self, reports: dict[str, bytes]) -> dict[str, bytes]:
        """Those whose keys are not known; KeyTaken if one came with another report."""
        if self._new_run([*reports]) is not None:
            return reports
        found = dict[str, bytes]()
        for key, report in reports.items():
            known = self.get(key)
            if known is None:
                found[key] = report
            elif known != hash(report):
                raise KeyTaken(f"the key {key} came with another report before")
        return found

    def add(self, reports: dict[str, bytes]) -> None:
        """Remember keys that are not known."""
        run = self._new_run([*reports])
        if run is not None:
            self._runs[run] = 0, array("q", map(hash, reports.values()))
            self.cost += -(-len(reports) // SHARE)
            return
        for key, report in reports.items():
            run, place = self._place(key)
            if not place:
                self._runs[run] = 0 if run == key else int(key[len(run) :]), array("q")
                self._loose |= run == key and f"{key.rpartition('.')[0]} " in self._runs
            self._runs[run][1].append(hash(report))
            self.cost += place % SHARE == 0

    def remove(self, key: str) -> None:
        """Forget a key, and before it all that came after it."""
        run, place = self._place(key)
        if run not in self._runs or place == len(self._runs[run][1]):
            run, place = key, 0
        self._runs[run][1].pop()
        self.cost -= place % SHARE == 0
        if not place:
            del self._runs[run]

    def forget(self, spared: Container[str]) -> None:
        """Forget the oldest if they are too many, but none that is still to be stored."""
        while self.cost > self._most:
            run, (first, hashes) = next(iter(self._runs.items()))
            last = f"{run[:-1]}.{first + len(hashes) - 1}" if run.endswith(" ") else run
            if last in spared:
                break
            self.cost -= -(-len(hashes) // SHARE)
            del self._runs[run]
        while len(self.names) > self._most and f"# {next(iter(self.names))}" not in spared:
            self.names.popitem(last=False)

    def read(self, path: Path) -> None:
        """Remember what a file holds."""
        for report, name, key in LINE.findall(path.read_bytes()):
            text = key.decode()
            if name:
                self.names.setdefault(name.decode(), text)
            elif self.get(text) is None:
                self.add({text: report})
            else:  # it came again when it was forgotten
                self._runs.move_to_end(self._place(text)[0])
        self.forget(())


def least_cost(path: Path) -> int:
    """How many keys the memory of a file counts as, at least."""
    content = path.read_bytes()
    batches = len(re.findall(rb"\.[0-9]+\n", content))
    alone = content.count(b"\n") - content.count(b"\n# ") - 1 - batches
    return alone + max(content.count(b".0\n"), batches // SHARE)


class ReportLog:
    """Reports with their keys in files of a folder, which no other process may write to.

    It remembers as many keys as it is told, the newest, from files that it finds, too: who tries
    again after so many others, or whose file was moved away before a restart, counts twice.

    Parameters
    ----------
    folder : pathlib.Path
        Made if it is not there. ``filelock.Timeout`` if another log writes to it.
    lines : int
        How many lines a file has at most, but for the first one.
    seconds : float
        After how many seconds a file is closed.
    keys : int
        How many keys are remembered, in about 350 bytes each; in a batch `SHARE` count as one. As
        many other names of batches are, in about 250 bytes. It must be more than can be on their
        way, such as of those who try again at the same time.
    """

    def __init__(
        self, folder: Path, lines: int = 100_000, seconds: float = 3600.0, keys: int = 1_000_000
    ) -> None:
        self._folder, self._most, self._seconds = folder, lines, seconds
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
        newest, cost = list[Path](), 0
        for path in sorted(folder.glob("*.b64"), reverse=True):
            if cost >= keys:
                break
            newest.append(path)
            cost += least_cost(path)
        self._memory = Memory(keys)
        for path in reversed(newest):
            self._memory.read(path)
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
        self._group: dict[str, bytes] = {}  # lines by their keys, names by "# " and the name
        self._done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def key_of(self, names: Iterable[str], key: str) -> str:
        """The key of the batch that came with one of these names before; or else this key."""
        known = (self._memory.names.get(name) for name in names)
        return next(filter(None, known), key)

    async def add(self, reports: dict[str, bytes], names: dict[str, str] | None = None) -> int:
        """Store base64 reports by their keys, and other names of a key: how many reports are new.

        On return all are durable. KeyTaken or NotStored if they are not.
        """
        memory = self._memory
        new = memory.new(reports)
        memory.add(new)
        for name, key in (names or {}).items():
            if name != key and name not in memory.names:
                memory.names[name] = key
                self._group[f"# {name}"] = b"# name %b of %b\n" % (name.encode(), key.encode())
        self._group |= {key: b"%b %b\n" % (one, key.encode()) for key, one in new.items()}
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
                print(f"not stored: {error}", file=sys.stderr, flush=True)
                # What came since may wait for the same keys
                for key in reversed([*group, *self._group]):
                    if key.startswith("# "):
                        del self._memory.names[key[2:]]
                    else:
                        self._memory.remove(key)
                done.set_result(False)
                self._done.set_result(False)
                self._new_group()
            self._memory.forget(self._group)
        if self._durable:
            self._close(self._part, self._durable)

    def _append(self, group: dict[str, bytes]) -> None:
        """Write lines, in as many files as they need, and take out of the group what is durable."""
        while True:
            old = time.monotonic() >= self._until
            if self._durable and (self._lines >= self._most or old):
                self._close(self._part, self._durable)
                self._begin()
            if not group:
                return
            keys = list(islice(group, self._most - self._lines))
            text = b"".join(map(group.__getitem__, keys))
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
            self._lines += len(keys)
            for key in keys:
                del group[key]


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)
