"""Batches of reports in files (``.ldp``): the messages of `Channel.reports_to_bytes`.

In a file a batch must be whole: what is cut short was not written as it was meant.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import IO

import numpy as np

from frequency.core.aggregate import beginning, pack
from frequency.core.channel import Channel, Reports
from frequency.core.transport import Batch
from frequency.storage.reports_file import (
    GROUP,
    REPLACED,
    Outline,
    RefusedFile,
    ReportsFile,
    digest_of_content,
    digest_of_id,
    most,
)
from mechdesign.base.files import opened

_HEADER = 1 << 24
"""The longest header that is read: JSON takes many times its length in memory."""

_HELD = 1 << 25
"""Bytes of reports that are held in memory, not in a temporary file, until they are counted."""


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
