"""Reports at rest: Parquet files, each with the parameters of its protocol.

A field of a report is a column: integers as integers, everything else (the bits of a unary report,
the body of a composite one) as binary of fixed width, or as binary or large binary of which every
value has that width.

The file's key-value metadata, under the key ``mechdesign``, are a JSON object: of which protocol
the reports are; a random number by which one and the same file is known wherever it is copied to;
for each row group the number of its reports and the SHA-256 digest of their bytes, as arrays of the
protocol's ``report_dtype``; and a digest of all this. Page checksums alone do not do: they cover
neither the headers of pages nor the footer, where one changed bit can hide reports.

Other writers do not know their row groups beforehand: a file's header may be `parquet_header` its
reports instead, whose count and digest are of all of them together.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from frequency.clients.device import canonical
from frequency.core import REPORTS, Channel, Reports, channel_of, differing, new_id
from frequency.storage.batch_file import (
    GROUP,
    REPLACED,
    Outline,
    RefusedFile,
    ReportsFile,
    digest_of_id,
    most,
)
from mechdesign.base import (
    ANYTHING,
    TEXT,
    digest_of,
    from_json,
    list_of,
    needing,
    opened,
    record,
    row_of,
    shown,
    whole_number,
)

with needing("reports in Parquet files need pyarrow", "storage"):
    import pyarrow as pa
    import pyarrow.parquet as pq

FORMAT, VERSION, OTHERS_VERSION = "mechdesign.reports", 2, 3

_KEY = b"mechdesign"
_GROUP = GROUP  # reports in a row group of the files written here, unless they are long

#: Reports may take so many bytes in memory, or so many times what their file takes.
_SMALL, _PACKED = 1 << 26, 128

# The longest text that a footer may hold: JSON takes many times its length in memory.
_STRING = 1 << 24


# The fields of a header, by its version, beside "format" and "version".
_FIELDS = {
    VERSION: {
        "parameters": TEXT,
        "id": TEXT,
        "groups": list_of(row_of(whole_number(1), TEXT)),
        "digest": TEXT,
    },
    OTHERS_VERSION: {"protocol": TEXT, "id": TEXT, "count": REPORTS, "digest": TEXT},
}

_ANY_WIDTH = (pa.binary(), pa.large_binary(), pa.binary_view())


@dataclass(frozen=True)
class Footer(Outline):
    """The end of a file: what it says of the reports in it.

    Its digest is of the end itself, or of its id if another tool wrote it; groups are row groups.
    """

    digests: tuple[str, ...] = ()  # of the bytes of each row group's reports
    # whether the row groups stand as one, the first, since they have one digest
    together: bool = False


class ParquetReports(ReportsFile):
    """A Parquet file of reports."""

    def outline(self) -> Footer:
        with (
            _refusing(),
            opened(self.path) as stream,
            pq.ParquetFile(stream, thrift_string_size_limit=_STRING) as file,
        ):
            return _footer(stream, file, self.channel)

    def batches(
        self,
        groups: Sequence[int] | None,
        batch: int,
        tally: Counter[str] | None,
        digest: str | None = None,
    ) -> Iterator[Reports]:
        with _refusing():
            opened(self.path).close()  # which refuses what is no regular file
            stream = pa.OSFile(os.fsencode(self.path))  # a name may hold any bytes
        with stream:
            with _refusing():
                file = _opened(stream, ())
                footer = _footer(stream, file, self.channel)
                # A value that occurs often is held once, however long a forged one is
                free = [column.name for column in file.schema_arrow if column.type in _ANY_WIDTH]
                file = _opened(stream, free) if free else file
            if digest is not None and footer.digest != digest:
                raise RefusedFile(REPLACED)
            chosen = range(len(footer.groups)) if groups is None else groups
            taken = range(file.num_row_groups) if footer.together and chosen else chosen
            for reports in _intact(_read(file, self.channel, taken, batch), footer, chosen):
                yield self.channel.transport.accepted(reports, tally)

    @staticmethod
    def write(stream: IO[bytes], channel: Channel, arrays: Iterable[Reports]) -> int:
        schema, groups = _schema(channel), list[tuple[int, str]]()
        with pq.ParquetWriter(
            stream,
            schema,
            compression="zstd",
            # Most of a report is random: bytes in the order of their places pack better.
            use_dictionary=False,
            use_byte_stream_split=True,
            write_statistics=False,
            write_page_checksum=True,
            store_schema=False,
        ) as writer:
            for group in _grouped(arrays, channel):
                writer.write_batch(_to_arrow(group, schema))
                groups.append((len(group), hashlib.sha256(group.data).hexdigest()))
            header = {
                "format": FORMAT,
                "version": VERSION,
                "parameters": channel.signature,
                "id": new_id(),
                "groups": groups,
            }
            header["digest"] = digest_of(header)
            writer.add_key_value_metadata({_KEY: canonical(header).encode()})
            writer.close()
            written = sum(size for size, _ in groups)
            if not _is_plausible(written, stream.tell(), channel):
                raise ValueError(f"{written} reports pack too well for one file: write several")
        return written


def _is_plausible(reports: int, size: int, channel: Channel) -> bool:
    """Whether so many reports may be in a file of so many bytes."""
    return reports * channel.report_dtype.itemsize <= max(_SMALL, _PACKED * size)


def _grouped(arrays: Iterable[Reports], channel: Channel) -> Iterator[Reports]:
    """Yield the same reports, in one array a row group, which is overwritten by the next."""
    group = np.empty(min(_GROUP, most(channel)), dtype=channel.report_dtype)
    filled = 0
    for array in arrays:
        start = 0
        while start < len(array):
            part = array[start : start + len(group) - filled]
            group[filled : filled + len(part)] = part
            start, filled = start + len(part), filled + len(part)
            if filled == len(group):
                yield group
                filled = 0
    if filled:
        yield group[:filled]


def parquet_header(protocol: Any, reports: Reports) -> str:
    """Return what another writer puts under the key ``mechdesign`` of a file's metadata.

    Parameters
    ----------
    protocol : Channel or Protocol
        What the reports are of.
    reports : structured numpy.ndarray
        Of ``report_dtype``, in the order of the file's rows.

    Returns
    -------
    str
        JSON: format, version, the protocol's eight bytes (`Channel.wire`) in hexadecimal digits, a
        random id, the number of the reports, and the SHA-256 digest of their bytes.

    Raises
    ------
    InvalidReport
        A report that no client of this protocol can have sent.
    """
    channel = channel_of(protocol)
    accepted = np.ascontiguousarray(channel.transport.accepted(reports, None))
    header = {
        "format": FORMAT,
        "version": OTHERS_VERSION,
        "protocol": channel.wire.hex(),
        "id": new_id(),
        "count": len(accepted),
        "digest": f"sha256:{hashlib.sha256(accepted.tobytes()).hexdigest()}",
    }
    return canonical(header)


def _opened(stream: Any, dictionaries: Sequence[str]) -> Any:
    """Yield a file of which some columns come as dictionaries."""
    return pq.ParquetFile(
        stream,
        page_checksum_verification=True,
        buffer_size=0,  # a buffer would become as large as a damaged page says that it is
        pre_buffer=False,
        thrift_string_size_limit=_STRING,
        read_dictionary=list(dictionaries),
    )


def _read(file: Any, channel: Channel, groups: Sequence[int], batch: int) -> Iterator[Reports]:
    names = list(channel.report_dtype.names or ())
    with _refusing():
        for part in file.iter_batches(
            batch_size=batch, row_groups=list(groups), columns=names, use_threads=False
        ):
            yield _from_arrow(part, channel)


def _intact(parts: Iterable[Reports], footer: Footer, groups: Sequence[int]) -> Iterator[Reports]:
    """Yield the same parts; RefusedFile as soon as a row group is not what the footer says."""
    expected = deque((k, footer.groups[k], footer.digests[k]) for k in groups)
    hashed, filled = hashlib.sha256(), 0
    for part in parts:
        rest = part
        while len(rest) and expected:
            k, size, digest = expected[0]
            here, rest = rest[: size - filled], rest[size - filled :]
            hashed.update(here.data)
            filled += len(here)
            if filled == size:
                if hashed.hexdigest() != digest:
                    raise RefusedFile(f"damaged: row group {k} is not what was written")
                expected.popleft()
                hashed, filled = hashlib.sha256(), 0
        if len(rest):
            raise RefusedFile("damaged: more reports than were written")
        yield part
    if expected:
        raise RefusedFile(f"damaged: row group {expected[0][0]} is cut short")


def _footer(stream: Any, file: Any, channel: Channel) -> Footer:
    """Return what an open file says of itself, compared with what it is.

    RefusedFile unless it is of this channel.
    """
    metadata, schema = file.metadata, file.schema_arrow
    header = _header(metadata)
    name = header["id"]
    together = header["version"] == OTHERS_VERSION
    if together:
        if header["protocol"] != channel.wire.hex():
            raise RefusedFile(f"foreign: its reports are of {shown(header['protocol'])}")
        header = {"groups": [[header["count"], header["digest"].removeprefix("sha256:")]]}
    elif header["parameters"] != channel.signature:
        what = differing(str(header["parameters"]), channel.signature)
        raise RefusedFile(f"foreign: its reports are of {what}")
    for field in _schema(channel):
        columns = [schema.field(k) for k in schema.get_all_field_indices(field.name)]
        if len(columns) != 1 or not _holds(columns[0].type, field.type):
            what = " and ".join(str(column.type) for column in columns) or "missing"
            raise RefusedFile(f"column {field.name!r} is {what}, not {field.type}")
    sizes = tuple(size for size, _ in header["groups"])
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    rows = tuple(group.num_rows for group in groups)
    if sizes != ((sum(rows),) if together else rows):
        raise RefusedFile("damaged: its row groups are not those that were written")
    if together and not sizes[0]:
        sizes, header = (), {"groups": []}
    end = stream.seek(0, os.SEEK_END)
    if not _is_plausible(sum(sizes), end, channel) or any(
        group.column(k).total_compressed_size > end
        for group in groups
        for k in range(group.num_columns)
    ):
        raise RefusedFile(f"it says that it holds {sum(sizes)} reports, in {end} bytes")
    stream.seek(end - metadata.serialized_size - 8)
    footer = hashlib.sha256(stream.read()).hexdigest()
    digest = digest_of_id(name) if together else footer  # others write the same reports anew
    return Footer(
        digest, sizes, tuple(group_digest for _, group_digest in header["groups"]), together
    )


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn what pyarrow says of a damaged file into RefusedFile."""
    try:
        yield
    except RefusedFile:
        raise
    except (pa.ArrowException, ValueError, OSError) as error:
        # A file that is missing stays so
        if isinstance(error, OSError) and type(error) is not OSError:
            raise
        message = " ".join(str(error).split())[:200]
        if "magic bytes" in message:
            message = "cut short, or of another kind; of a table reports are made first (privatize)"
        raise RefusedFile(f"damaged or no Parquet file: {message}") from error


def _header(metadata: Any) -> dict[str, Any]:
    """Return what the metadata hold under our key; RefusedFile unless it is intact."""
    try:
        header = from_json((metadata.metadata or {}).get(_KEY, b"null"))
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise RefusedFile("it does not say that it holds reports")
    version = header.get("version")
    if type(version) is not int or version not in (VERSION, OTHERS_VERSION):
        raise RefusedFile(
            f"version {shown(version)}, this library reads {VERSION} and {OTHERS_VERSION}"
        )
    try:
        record({"format": TEXT, "version": ANYTHING, **_FIELDS[version]}).require(header)
    except ValueError as error:
        raise RefusedFile(f"its header: {error}") from error
    if version == VERSION and header["digest"] != digest_of(header):
        raise RefusedFile("damaged: what it says of itself was changed")
    return header


def _kind(field: np.dtype[Any]) -> Any:
    """Return the Arrow type of a field of a report: an integer, or binary of its width."""
    whole = field.base.kind in "iu" and field.itemsize == field.base.itemsize
    return pa.from_numpy_dtype(field.base) if whole else pa.binary(field.itemsize)


def _holds(found: Any, expected: Any) -> bool:
    """Whether a column of this type may hold a field of that one."""
    binary = pa.types.is_fixed_size_binary(expected)
    return bool(found == expected or (binary and found in _ANY_WIDTH))


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
        if pa.types.is_dictionary(column.type):
            reports[name] = _of_width(column, name, field).reshape(len(part), *field.shape)
            continue
        values = np.frombuffer(column.buffers()[1], dtype=field.base)
        size = field.itemsize // field.base.itemsize
        values = values[column.offset * size : (column.offset + len(part)) * size]
        reports[name] = values.reshape(len(part), *field.shape)
    return reports


def _of_width(column: Any, name: str, field: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the values of a binary column; RefusedFile unless all have the field's width."""
    values = column.dictionary.cast(pa.large_binary())
    lengths = set(pa.compute.binary_length(values).to_pylist())
    if lengths - {field.itemsize}:
        raise RefusedFile(
            f"column {name!r} has values of {sorted(lengths)[:4]} bytes, not {field.itemsize}"
        )
    values_there = np.frombuffer(b"".join(values.to_pylist()), dtype=field.base)
    rows = values_there.reshape(len(values), field.itemsize // field.base.itemsize)
    return rows[column.indices.to_numpy()]
