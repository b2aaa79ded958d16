"""Reports at rest: Parquet files, each with the parameters of its protocol.

A field of a report is a column: integers as integers, everything else (the bits of a unary report,
the body of a composite one) as binary of fixed width. The schema's metadata say of which protocol
the reports are, and hold a random number by which one and the same file is known wherever it is
copied to. Pages carry checksums.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from frequency.core.aggregate import canonical, differing
from frequency.core.channel import Channel, Reports
from frequency.core.protocol import channel_of
from frequency.exceptions import InvalidReport
from mechdesign._support.text import from_json, keyed, shown
from mechdesign.files import replacing

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError(
        "reports in Parquet files need pyarrow, of the extra 'storage': in a clone, pip install"
        " '.[storage]'"
    ) from error

FORMAT, VERSION = "mechdesign.reports", 1

_KEY = b"mechdesign"
_GROUP = 1 << 20
"""Reports in a row group of the files written here."""

_BATCH_BYTES = 1 << 25
"""How much of reports is held at a time, where they are long."""

_BUFFER = 1 << 22
"""Row groups are read by pieces of so many bytes, or by pages: however long they are, memory is
bounded by the largest page.
"""

_STRING = 1 << 24
"""The longest text that a footer may hold: JSON takes many times its length in memory."""


class RefusedFile(InvalidReport):
    """A file that does not hold reports of this protocol, or is damaged. Nothing of it was counted."""


@dataclass(frozen=True)
class Footer:
    """The end of a file: a digest of it, by which the file is known, and the number of reports in
    each row group.
    """

    digest: str
    groups: tuple[int, ...]

    @property
    def reports(self) -> int:
        """The number of reports."""
        return sum(self.groups)


def batch_of(channel: Channel) -> int:
    """How many reports to hold at a time: as many as the counts are, so that these are not the
    cost, within reason.
    """
    most = max(1, _BATCH_BYTES // channel.report_dtype.itemsize)
    return min(max(_GROUP, int(np.prod(channel._shape))), most)


def write_reports(
    path: str | os.PathLike[str], protocol: Any, reports: Reports | Iterable[Reports]
) -> int:
    """Write reports to a Parquet file, replacing it in one step or not at all; directories are made
    as needed.

    Parameters
    ----------
    path
        Collectors that are to be told apart write to directories of their own, such as
        ``collector=7/2026-11-21.parquet``.
    protocol
        What the reports are of.
    reports
        An array of the protocol's ``report_dtype``, or an iterable of such arrays, which need not
        fit in memory together.

    Returns
    -------
    How many reports were written.

    Raises
    ------
    InvalidReport
        A report that no client of this protocol can have sent; no file is written.
    """
    channel, target = channel_of(protocol), Path(path)
    arrays = (
        channel._accepted(array, None)
        for array in ([reports] if isinstance(reports, np.ndarray) else reports)
    )
    # Before any file or directory is made
    first = next(arrays, np.zeros(0, dtype=channel.report_dtype))
    header = {
        "format": FORMAT,
        "version": VERSION,
        "parameters": channel._signature,
        "id": secrets.token_hex(16),
    }
    schema = _schema(channel).with_metadata({_KEY: canonical(header).encode()})
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with (
        replacing(target) as stream,
        pq.ParquetWriter(
            stream,
            schema,
            compression="zstd",
            # Most of a report is random: bytes in the order of their places pack better, and faster
            use_dictionary=False,
            use_byte_stream_split=True,
            write_statistics=False,
            write_page_checksum=True,
        ) as writer,
    ):
        for accepted in chain([first], arrays):
            for start in range(0, len(accepted), _GROUP):
                writer.write_batch(_to_arrow(accepted[start : start + _GROUP], schema))
            written += len(accepted)
    return written


def read_reports(
    path: str | os.PathLike[str], protocol: Any, tally: Counter[str] | None = None
) -> Reports:
    """All reports of a file, as an array.

    Parameters
    ----------
    tally
        None: a report that nobody can have sent raises InvalidReport. A Counter: it is left out,
        and counted as "impossible".

    Raises
    ------
    RefusedFile
        A file of another protocol or of other parameters, of other columns, cut short, or damaged.
    """
    channel = channel_of(protocol)
    footer = footer_of(path, channel)
    empty = np.zeros(0, dtype=channel.report_dtype)
    return np.concatenate(
        [empty, *batches(path, channel, range(len(footer.groups)), batch_of(channel), tally)]
    )


def footer_of(path: str | os.PathLike[str], channel: Channel) -> Footer:
    """What a file says of itself; RefusedFile unless it is of this channel. No report is read."""
    with (
        _refusing(),
        open(path, "rb") as stream,
        pq.ParquetFile(stream, thrift_string_size_limit=_STRING) as file,
    ):
        schema, metadata = file.schema_arrow, file.metadata
        groups = tuple(metadata.row_group(k).num_rows for k in range(metadata.num_row_groups))
        digest = _digest(stream, metadata)
    header = _header(schema)
    if header.get("format") != FORMAT or not isinstance(header.get("id"), str):
        raise RefusedFile("it does not say that it holds reports")
    version = header.get("version")
    if type(version) is not int or version != VERSION:
        raise RefusedFile(f"version {shown(version)}, this library reads {VERSION}")
    try:
        keyed(header, "format", "version", "parameters", "id")
    except ValueError as error:
        raise RefusedFile(f"its header: {error}") from error
    if header.get("parameters") != channel._signature:
        raise RefusedFile(
            "foreign: its reports are of"
            f" {differing(str(header.get('parameters')), channel._signature)}"
        )
    for field in _schema(channel):
        found = [schema.field(k) for k in schema.get_all_field_indices(field.name)]
        if [column.type for column in found] != [field.type]:
            what = " and ".join(str(column.type) for column in found) or "missing"
            raise RefusedFile(f"column {field.name!r} is {what}, not {field.type}")
    return Footer(digest, groups)


def batches(
    path: str | os.PathLike[str],
    channel: Channel,
    groups: Iterable[int],
    batch: int,
    tally: Counter[str] | None,
    digest: str | None = None,
) -> Iterator[Reports]:
    """The possible reports of some row groups, at most ``batch`` at a time; others go to the tally.

    RefusedFile when damaged, or, if there is a ``digest``, when the file is not the one whose
    `Footer` has it.
    """
    names = list(channel.report_dtype.names or ())
    with _refusing():
        stream = pa.OSFile(os.fspath(path))
    with stream:
        with _refusing():
            file = pq.ParquetFile(
                stream, page_checksum_verification=True, buffer_size=_BUFFER, pre_buffer=False
            )
            if digest is not None and _digest(stream, file.metadata) != digest:
                raise RefusedFile("it was replaced while it was being counted")
        read = file.iter_batches(
            batch_size=batch, row_groups=list(groups), columns=names, use_threads=False
        )
        while True:
            with _refusing():
                part = next(read, None)
                if part is None:
                    return
                reports = _from_arrow(part, channel)
            yield channel._accepted(reports, tally)


def _digest(stream: Any, metadata: Any) -> str:
    stream.seek(stream.seek(0, os.SEEK_END) - metadata.serialized_size - 8)
    return hashlib.sha256(stream.read()).hexdigest()


@contextmanager
def _refusing() -> Iterator[None]:
    """Turns what pyarrow says of a damaged file into RefusedFile."""
    try:
        yield
    except RefusedFile:
        raise
    except (pa.ArrowException, ValueError, OSError) as error:
        # A file that is missing stays so
        if isinstance(error, OSError) and type(error) is not OSError:
            raise
        raise RefusedFile(
            f"damaged or no Parquet file: {' '.join(str(error).split())[:200]}"
        ) from error


def _header(schema: Any) -> dict[str, Any]:
    try:
        header = from_json((schema.metadata or {}).get(_KEY, b"null"))
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _kind(field: np.dtype[Any]) -> Any:
    """The Arrow type of a field of a report: an integer, or binary of its width."""
    whole = field.base.kind in "iu" and field.itemsize == field.base.itemsize
    return pa.from_numpy_dtype(field.base) if whole else pa.binary(field.itemsize)


def _schema(channel: Channel) -> Any:
    dtype = channel.report_dtype
    return pa.schema(
        [pa.field(name, _kind(dtype[name]), nullable=False) for name in dtype.names or ()]
    )


def _to_arrow(reports: Reports, schema: Any) -> Any:
    columns = []
    for field in schema:
        values = np.ascontiguousarray(reports[field.name])
        columns.append(
            pa.Array.from_buffers(field.type, len(reports), [None, pa.py_buffer(values)])
        )
    return pa.record_batch(columns, schema=schema)


def _from_arrow(part: Any, channel: Channel) -> Reports:
    reports = np.empty(len(part), dtype=channel.report_dtype)
    for name, column in zip(part.schema.names, part.columns, strict=True):
        if column.null_count:
            raise RefusedFile(f"column {name!r} has nulls")
        if not len(part):
            continue
        field = reports.dtype[name]
        values = np.frombuffer(column.buffers()[1], dtype=field.base)
        size = field.itemsize // field.base.itemsize
        values = values[column.offset * size : (column.offset + len(part)) * size]
        reports[name] = values.reshape(len(part), *field.shape)
    return reports
