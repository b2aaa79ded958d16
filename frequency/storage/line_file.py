"""Reports as lines of text (``.b64``): what a collector appends to, and any tool can read.

A line is one report, its wire and payload, in base64; or that, a space and an idempotency key: who
is not sure that a report arrived sends it again with the same key, and of lines with one key in a
file the first counts, however many keys there are. Lines that begin with "#" are comments; if the
first one is ``# mechdesign reports`` and 32 hexadecimal digits, drawn at random, the file is known
by them.

Lines are decoded many at a time. What is not a report of the channel is judged one by one.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.core import WIRE, Channel, Reports, new_id
from frequency.exceptions import InvalidReport
from frequency.storage.batch_file import (
    REPLACED,
    Outline,
    RefusedFile,
    ReportsFile,
    digest_of_content,
    digest_of_id,
)
from mechdesign.base import listed, opened, shown

Bytes: TypeAlias = npt.NDArray[np.uint8]

_CHUNK = 1 << 20  # the number of bytes that are decoded at a time

# The most keys held in memory, of about 150 bytes each: a file with more is read in turns.
_KEYS = 1 << 20

_HELD = 1 << 25  # bytes of lines that wait for the next turn in memory, not in a temporary file

_KEY = 64  # the longest key

_FIRST = re.compile(rb"# mechdesign reports ([0-9a-f]{32})\n")
_LINE = re.compile(rb"([A-Za-z0-9+/]+={0,2})(?: [A-Za-z0-9_.-]{1,64})?")
_NEWLINE, _SPACE, _HASH, _PAD = b"\n #="

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LETTERS = _ALPHABET + bytes(192)
_DIGITS = bytes(max(_ALPHABET.find(k), 0) if k in _ALPHABET else 255 for k in range(256))
_IN_KEYS = _ALPHABET[:62] + b"._-"


class LineFile(ReportsFile):
    """A file of reports as lines in base64."""

    def __init__(self, path: str | os.PathLike[str], channel: Channel) -> None:
        super().__init__(path, channel)
        self._size = WIRE + channel.report_dtype.itemsize
        self._length = _encoded(self._size)
        self._wire = np.frombuffer(channel.wire, dtype=np.uint8)

    def outline(self) -> Outline:
        with opened(self.path) as stream:
            return self._outline(stream)

    def _outline(self, stream: IO[bytes]) -> Outline:
        first = _FIRST.fullmatch(stream.readline(_CHUNK))
        digest = digest_of_id(first[1].decode()) if first else digest_of_content(stream)
        return Outline(digest, (os.fstat(stream.fileno()).st_size // (self._length + 1),))

    def batches(
        self,
        groups: Sequence[int] | None,
        batch: int,
        tally: Counter[str] | None,
        digest: str | None = None,
    ) -> Iterator[Reports]:
        with opened(self.path) as stream:
            if digest is not None and self._outline(stream).digest != digest:
                raise RefusedFile(REPLACED)
            stream.seek(0)
            yield from _regrouped(self._accepted(stream, tally), batch)

    def _accepted(self, stream: IO[bytes], tally: Counter[str] | None) -> Iterator[Reports]:
        """Yield the valid reports of an open file; RefusedFile at its end if no line is one."""
        left_out, accepted = Counter[str](), 0
        for content, keys, later in self._turns(stream):
            if not content.endswith(b"\n"):
                wrong, reports = [(content, "truncated")], None
            else:
                reports, repeated, lines = self._read(content, keys, later)
                wrong = [(line, self._wrong(line)) for line in lines]
                accepted += len(reports) + repeated
                left_out["repeated"] += repeated
            for line, reason in wrong:
                if tally is None:
                    raise InvalidReport(f"the line {shown(line[:80])} is {reason}")
                left_out[reason] += 1
            if reports is not None:
                yield self.channel.transport.accepted(reports, tally)
        left_out = +left_out  # without zeros
        if not accepted and left_out.keys() & {"foreign", "malformed"}:
            what = "foreign" if "malformed" not in left_out else "it holds no report"
            reasons = listed(f"{count} {reason}" for reason, count in left_out.items())
            raise RefusedFile(f"{what}: of its lines, {reasons}")
        if tally is not None:
            tally.update(left_out)

    def _turns(self, stream: IO[bytes]) -> Iterator[tuple[bytes, set[bytes], IO[bytes]]]:
        """Yield whole lines, the keys that came before, and a file for lines of the next turn."""
        size = max(_CHUNK, 4 * (self._length + _KEY + 2))
        with ExitStack() as stack:
            while True:
                with stack.pop_all():  # which closes the file that this turn reads
                    later = stack.enter_context(SpooledTemporaryFile(_HELD))
                    # When there are as many keys as are held, all lines that follow and have none
                    # of these wait for the next turn, which begins without any. So their order
                    # stays, and memory is bounded; each turn reads what the one before left
                    keys = set[bytes]()
                    for content in _whole_lines(stream, size):
                        yield content, keys, later
                if not later.tell():
                    return
                later.seek(0)
                stream = later

    def _read(
        self, content: bytes, keys: set[bytes], later: IO[bytes]
    ) -> tuple[Reports, int, list[bytes]]:
        """The channel's reports, how many known keys kept out, and other lines but comments."""
        text = np.frombuffer(content, dtype=np.uint8)
        ends = np.flatnonzero(text == _NEWLINE)
        starts = np.concatenate([[0], ends[:-1] + 1])
        comments = text[starts] == _HASH
        beyond = ends - starts - self._length
        # New keys are added while there is room; then lines go to the file for the next turn
        keyed = (beyond >= 2) & (beyond <= _KEY + 1) & ~comments
        keyed[keyed] = text[starts[keyed] + self._length] == _SPACE
        shaped = np.flatnonzero(keyed | ((beyond == 0) & ~comments))
        raw, decoded = decode(_windows(text, starts[shaped], self._length), self._size)
        decoded &= (raw[:, :WIRE] == self._wire).all(axis=1)
        good = np.zeros(len(starts), dtype=bool)
        good[shaped] = decoded
        new = good.copy()
        named = np.flatnonzero(keyed & good)
        first, behind = (starts[named] + self._length + 1).tolist(), ends[named].tolist()
        full = 0 if later.tell() else len(starts)  # from this line on nothing is read in this turn
        for k, start, end in zip(named.tolist(), first, behind, strict=True):
            key = content[start:end]
            if key.translate(None, _IN_KEYS):
                good[k] = new[k] = False
            elif key in keys:
                new[k] = False
            elif len(keys) < _KEYS:
                keys.add(key)
            else:
                full = min(full, k)
        repeated = int((good & ~new).sum())
        for k in (np.flatnonzero(new[full:]) + full).tolist():
            later.write(content[starts[k] : ends[k] + 1])
        new[full:] = False
        payloads = np.ascontiguousarray(raw[new[shaped], WIRE:])
        reports = payloads.reshape(-1).view(self.channel.report_dtype)
        lines = np.flatnonzero(~good & ~comments)
        return reports, repeated, [content[starts[k] : ends[k]] for k in lines]

    def _wrong(self, line: bytes) -> str:
        """Return why a line is left out, which is no report of the channel."""
        match = _LINE.fullmatch(line)
        try:
            content = binascii.a2b_base64(match[1], strict_mode=True) if match else b""
        except binascii.Error:
            return "malformed"
        if match is None or base64.b64encode(content) != match[1]:
            return "malformed"
        return self.channel.transport.wrong_of_single(content) or "malformed"

    @staticmethod
    def write(stream: IO[bytes], channel: Channel, arrays: Iterable[Reports]) -> int:
        wire, written = np.frombuffer(channel.wire, dtype=np.uint8), 0
        stream.write(f"# mechdesign reports {new_id()}\n".encode())
        step = max(1, _CHUNK // channel.report_dtype.itemsize)
        for array in arrays:
            for reports in (array[k : k + step] for k in range(0, len(array), step)):
                payloads = np.frombuffer(reports.tobytes(), dtype=np.uint8)
                rows = payloads.reshape(len(reports), -1)
                front = np.broadcast_to(wire, (len(reports), WIRE))
                lines = encode(np.concatenate([front, rows], axis=1))
                newline = np.full((len(reports), 1), _NEWLINE, dtype=np.uint8)
                stream.write(np.concatenate([lines, newline], axis=1).tobytes())
            written += len(array)
        return written


def _whole_lines(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the bytes of a file, in parts of about so many that end with a line.

    The last part is what follows the last newline, if anything does. A longer line comes as one
    that is malformed, or a comment, as it begins.
    """
    rest = b""
    while part := stream.read(size):
        end = part.rfind(b"\n") + 1
        if end:
            yield rest + part[:end]
            rest = part[end:]
        elif len(rest) + len(part) <= size:
            rest += part
        else:
            rest = b"#" if (rest or part).startswith(b"#") else b"!"
    if rest:
        yield rest


def _regrouped(parts: Iterable[Reports], batch: int) -> Iterator[Reports]:
    """Yield the same reports, so many at a time: counting some costs as the counts are many."""
    waiting: list[Reports] = []
    for part in parts:
        waiting.append(part)
        number = sum(map(len, waiting))
        if number >= batch:
            together, whole = np.concatenate(waiting), number // batch * batch
            yield from (together[k : k + batch] for k in range(0, whole, batch))
            waiting = [together[whole:]]
    if sum(map(len, waiting)):
        yield np.concatenate(waiting)


# ----------------------------------------------------------------------------- base64, many at once


def encode(content: Bytes) -> Bytes:
    """Return base64, (rows, characters), of rows of bytes."""
    rows, size = content.shape
    padding = -size % 3
    padded = np.pad(content, ((0, 0), (0, padding))).reshape(rows, -(-size // 3), 3)
    first, second, third = (padded[:, :, k] for k in range(3))
    digits = [
        first >> 2,
        (first & 3) << 4 | second >> 4,
        (second & 15) << 2 | third >> 6,
        third & 63,
    ]
    letters = bytearray(np.stack(digits, axis=2)).translate(_LETTERS)
    text = np.frombuffer(letters, dtype=np.uint8).reshape(rows, _encoded(size))
    text[:, _encoded(size) - padding :] = _PAD
    return text


def decode(text: Bytes, size: int) -> tuple[Bytes, npt.NDArray[np.bool_]]:
    """Return rows of bytes, (rows, size), from their base64."""
    padding = -size % 3
    translated = bytearray(text).translate(_DIGITS)
    digits = np.frombuffer(translated, dtype=np.uint8).reshape(text.shape)
    kept = digits[:, : text.shape[1] - padding]
    good = (kept < 64).all(axis=1) & (text[:, kept.shape[1] :] == _PAD).all(axis=1)
    digits[:, kept.shape[1] :] = 0
    a, b, c, d = (digits[:, k::4] for k in range(4))
    three = np.stack([a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d], axis=2)
    content = three.reshape(len(text), size + padding)
    return content[:, :size], good & (content[:, size:] == 0).all(axis=1)


def _encoded(size: int) -> int:
    """Return how many characters base64 has of so many bytes."""
    return 4 * (-(-size // 3))


def _windows(text: Bytes, starts: Any, size: int) -> Bytes:
    """Return so many bytes from each start: shape (starts, size)."""
    if not len(starts):
        return np.zeros((0, size), dtype=np.uint8)
    return np.lib.stride_tricks.sliding_window_view(text, size)[starts]
