"""The state of what has been counted of which files: right at every moment, in memory and file."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from frequency.core.aggregate import REPORTS, Aggregate, differing
from frequency.core.channel import Channel
from frequency.exceptions import IncompatibleAggregate
from frequency.storage.counting import FileEntry, Part
from mechdesign import InvalidFile
from mechdesign.base.fields import TEXT, list_of, row_of, table_of
from mechdesign.base.files import opened, replacing
from mechdesign.base.text import reason

_KIND = "counted files"

_FIELDS = {"files": list_of(row_of(TEXT, TEXT, REPORTS, table_of(REPORTS)))}
"""The fields of a state beside its aggregate: files, digests, what was counted or left out."""

_SHARE = 20
"""Saving the state may take one part in so many of the time."""


class Settled(NamedTuple):
    """The counts of files, settled for good: nothing in it ever changes."""

    aggregate: Aggregate
    files: int
    """The number of files: the first ones of the state's."""


class State:
    """The state of what has been counted of which files, in memory and, with a path, in a file.

    `settled` is replaced by one assignment, and the file in one step. So whatever interrupts this,
    wherever it does, what is then saved or read again is right.

    Attributes
    ----------
    settled : Settled
        What has been counted.
    files : dict of str to FileEntry
        The files that it was counted of, by path; then, perhaps, some that an interrupt kept out.
    claimed : dict of str to str
        Who has the digest of each file that was counted or is being counted: its path.
    refused : dict of str to str
        Why a file was refused, by its path.
    """

    def __init__(self, channel: Channel, path: Path | None) -> None:
        self.channel, self.path = channel, path
        nothing = np.zeros(channel.counts_shape, dtype=np.int64)
        self.settled = Settled(Aggregate(channel.signature, 0, nothing), 0)
        self.files: dict[str, FileEntry] = {}
        self.claimed: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self._kept: int | None = None  # so many files are in the file
        if path is not None and path.exists():
            self._load(path)
        self._saved, self._cost = time.monotonic(), 0.0

    def absorb(self, part: Part) -> None:
        """Add a settled part; save the state if it is time."""
        n, counts = self.settled.aggregate.n, self.settled.aggregate.counts
        for entry in part.entries:
            if entry.reason is None:
                self.files[entry.path] = entry
                n += entry.counted
            else:
                self.refused[entry.path] = entry.reason
                del self.claimed[entry.digest]  # a copy may take its place
        total = Aggregate(self.channel.signature, n, np.add(counts, part.counts, dtype=np.int64))
        self.settled = Settled(total, len(self.files))
        if time.monotonic() - self._saved > _SHARE * self._cost:
            self.save()

    def save(self) -> None:
        """Replace the file in one step, if there is anything new."""
        if self.path is None or self._kept == self.settled.files:
            return
        begun, settled = time.monotonic(), self.settled
        files = [
            [entry.path, entry.digest, entry.counted, entry.left_out]
            for entry in islice(self.files.values(), settled.files)
        ]
        with replacing(self.path) as stream:
            settled.aggregate.write(stream, _KIND, files=files)
        self._kept, self._saved = settled.files, time.monotonic()
        self._cost = self._saved - begun

    def _load(self, path: Path) -> None:
        try:
            with opened(path) as stream:
                aggregate, header = Aggregate.read(stream.read(), _KIND, _FIELDS)
            entries = [
                FileEntry(name, digest, counted, left_out, None)
                for name, digest, counted, left_out in header["files"]
            ]
            if (
                sum(entry.counted for entry in entries) != aggregate.n
                or len({entry.digest for entry in entries}) != len(entries)
                or len({entry.path for entry in entries}) != len(entries)
            ):
                raise ValueError("its files do not add up to its counts")
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidFile(f"{path}: {reason(error)}") from error
        if aggregate.parameters != self.channel.signature:
            raise IncompatibleAggregate(
                f"{path} is of {differing(aggregate.parameters, self.channel.signature)}"
            )
        self.channel.require_own(aggregate)
        self.files = {entry.path: entry for entry in entries}
        self.claimed = {entry.digest: entry.path for entry in entries}
        self.settled, self._kept = Settled(aggregate, len(entries)), len(entries)
