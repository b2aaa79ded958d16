"""Batches of reports in files (``.ldp``): the messages of `Channel.reports_to_bytes`.

In a file a batch must be whole: what is cut short was not written as it was meant.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO

import numpy as np

from frequency.core import Batch, Channel, Reports, beginning, pack
from frequency.exceptions import InvalidReport
from mechdesign.base import opened

GROUP = 1 << 20  #: Reports that are handled at a time, unless they are long.

_BATCH_BYTES = 1 << 25  # the amount of reports that is held at a time, where they are long

_BLOCK = 1 << 20

REPLACED = "it was replaced while it was being counted"


class RefusedFile(InvalidReport):
    """The error for a file that does not hold reports of this protocol, or is damaged.

    Nothing of it was counted.
    """


@dataclass(frozen=True)
class Outline:
    """The outline: what a file says of the reports in it."""

    digest: str  # by which the file is known, wherever it is copied to
    # reports of each part that can be read by itself; of lines at most so many
    groups: tuple[int, ...]

    @property
    def reports(self) -> int:
        """The number of reports, at most."""
        return sum(self.groups)


class ReportsFile(ABC):
    """A file of reports of a channel, which each method opens anew."""

    def __init__(self, path: str | os.PathLike[str], channel: Channel) -> None:
        self.path, self.channel = path, channel

    @abstractmethod
    def outline(self) -> Outline:
        """Return what the file says of itself.

        RefusedFile if it holds no reports of this channel, or is damaged, as far as can be seen
        without reading them.
        """

    @abstractmethod
    def batches(
        self,
        groups: Sequence[int] | None,
        batch: int,
        tally: Counter[str] | None,
        digest: str | None = None,
    ) -> Iterator[Reports]:
        """Yield the valid reports of some groups of the `Outline`, at most ``batch`` at a time.

        None stands for all groups. A tally counts what is left out; None: the first thing wrong
        raises InvalidReport. RefusedFile if the file is of another channel, damaged, or has another
        than this digest: perhaps only after the last batch.
        """

    @staticmethod
    @abstractmethod
    def write(stream: IO[bytes], channel: Channel, arrays: Iterable[Reports]) -> int:
        """Write valid reports, return their number; ValueError if the format cannot hold them."""


def most(channel: Channel) -> int:
    """Return how many reports there is room for."""
    return max(1, _BATCH_BYTES // channel.report_dtype.itemsize)


def batch_of(channel: Channel) -> int:
    """Return how many reports to hold at a time."""
    # As many as the counts are, so that these are not the cost, within reason
    return min(max(GROUP, int(np.prod(channel.counts_shape))), most(channel))


def digest_of_id(name: str) -> str:
    """Return the digest by which a file with this id is known, in whatever format it is."""
    return hashlib.sha256(f"mechdesign reports {name}".encode()).hexdigest()


def digest_of_content(stream: IO[bytes]) -> str:
    """Return the digest by which a file without an id is known: that of all its bytes."""
    stream.seek(0)
    digest = hashlib.sha256()
    while block := stream.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


# ------------------------------------------------------------------------------------------------
# Files of one batch, `.ldp`.


_HEADER = 1 << 24  # the longest header that is read: JSON takes many times its length in memory

# Bytes of reports that are held in memory, not in a temporary file, until they are counted.
_HELD = 1 << 25


class BatchFile(ReportsFile):
    """A file of one batch, of the version that is written or an older one, without an id."""

    def outline(self) -> Outline:
        with opened(self.path) as stream:
            return self._outline(stream, self._header(stream))

    def batches(
        self,
        groups: Sequence[int] | None,
        batch: int,
        tally: Counter[str] | None,
        digest: str | None = None,
    ) -> Iterator[Reports]:
        dtype = self.channel.report_dtype
        with opened(self.path) as stream:
            header = self._header(stream)
            first, outline = stream.tell(), self._outline(stream, header)
            if digest is not None and outline.digest != digest:
                raise RefusedFile(REPLACED)
            for k in range(len(outline.groups)) if groups is None else groups:
                stream.seek(first + sum(outline.groups[:k]) * dtype.itemsize)
                for start in range(0, outline.groups[k], batch):
                    count = min(batch, outline.groups[k] - start)
                    content = stream.read(count * dtype.itemsize)
                    if len(content) < count * dtype.itemsize:
                        raise RefusedFile(REPLACED)  # by a shorter one
                    yield self.channel.transport.accepted(
                        np.frombuffer(content, dtype=dtype), tally
                    )

    def _header(self, stream: IO[bytes]) -> Batch:
        """Return what an open file says of itself; the stream is then where its reports begin."""
        try:
            header = self.channel.transport.batch(beginning(stream, _HEADER))
        except ValueError as error:
            raise RefusedFile(f"no batch of reports: {error}") from error
        if header.foreign is not None:
            raise RefusedFile(f"foreign: its reports are of {header.foreign}")
        size = os.fstat(stream.fileno()).st_size - stream.tell()
        expected = header.count * self.channel.report_dtype.itemsize
        if size != expected:
            raise RefusedFile(
                f"damaged: {header.count} reports were announced, which are {expected} bytes, and"
                f" {size} follow"
            )
        return header

    def _outline(self, stream: IO[bytes], header: Batch) -> Outline:
        if header.id is None:  # where all is read for the digest, little is gained by parts
            return Outline(digest_of_content(stream), (header.count,) if header.count else ())
        step = min(GROUP, most(self.channel))
        whole, rest = divmod(header.count, step)
        return Outline(digest_of_id(header.id), (step,) * whole + (rest,) * bool(rest))

    @staticmethod
    def write(stream: IO[bytes], channel: Channel, arrays: Iterable[Reports]) -> int:
        written = 0
        with SpooledTemporaryFile(_HELD) as body:
            for reports in arrays:
                body.write(reports.tobytes())
                written += len(reports)
            body.seek(0)
            stream.write(pack(channel.transport.batch_header(written), b""))
            shutil.copyfileobj(body, stream)
        return written
