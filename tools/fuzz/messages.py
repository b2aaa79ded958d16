"""Reports, aggregates and states, the files that hold them, and a table of counts."""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import io
import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from frequency import (
    GRR,
    HRR,
    OUE,
    IncompatibleAggregate,
    InvalidReport,
)
from frequency.schema import Schema
from frequency.storage import (
    RefusedFile,
    aggregate_files,
    read_reports,
    write_reports,
)
from mechdesign import InvalidFile, named
from mechdesign.cli import main as command
from rangeq.central import (
    CentralFlat,
    CentralMechanism,
    Hierarchy,
    Release,
    Wavelet,
)
from tools.fuzz.documents import AGE, PAY, SMOKES, loses_more, rational
from tools.fuzz.formats import (
    LENIENT,
    Format,
    digest_of,
    mutated_bytes,
    mutated_json,
    parsed,
    resealed,
    written,
)

SECONDS, MEGABYTES = 5.0, 500

# Reports, aggregates and states are of three oracles whose definitions fit in a line.

ORACLES = (GRR(5, 1.0), OUE(9, 1.0), HRR(16, 1.0, 2))
COUNTS = ((5,), (9,), (16,))
USERS = 40


def reports_of(oracle: Any, users: int = USERS) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    found: np.ndarray[Any, Any] = oracle.privatize(rng.integers(0, oracle.domain, users), rng)
    return found


def sendable(k: int, report: Any) -> bool:
    """Whether a client of the k-th oracle can have sent this."""
    if k == 0:
        return bool(report["item"] < 5)
    if k == 1:
        return bool(report["bits"][1] < 2)
    index, sign = report["index"].tolist(), report["sign"].tolist()
    return 0 not in index and max(index) < 16 and len(set(index)) == 2 and {*sign} <= {-1, 1}


def countable(k: int, n: int, counts: list[int]) -> bool:
    """Whether n reports to the k-th oracle can have these counts."""
    if k == 0:
        return min(counts) >= 0 and sum(counts) == n
    if k == 1:
        return all(0 <= count <= n for count in counts)
    size, most = sum(map(abs, counts)), sum(n - (n - count) % 2 for count in counts[1:])
    return (
        counts[0] == 0
        and max(map(abs, counts)) <= n
        and size <= 2 * n <= most
        and (2 * n - size) % 2 == 0
    )


def signature(oracle: Any) -> str:
    return json.dumps(oracle.parameters, sort_keys=True, separators=(",", ":"))


def wire(oracle: Any) -> bytes:
    return hashlib.shake_256(signature(oracle).encode()).digest(8)


def batch_of(k: int, version: int) -> bytes:
    """A batch of the k-th oracle, whose id is no random number: reproducible."""
    reports, oracle = reports_of(ORACLES[k]), ORACLES[k]
    named = (
        {"parameters": signature(oracle)}
        if version == 1
        else {"protocol": wire(oracle).hex(), "id": f"{k:032x}"}
    )
    header = {"version": version, "kind": "reports", "count": len(reports), **named}
    return message(json.dumps(header).encode(), reports.tobytes())


def message(header: bytes, body: bytes) -> bytes:
    return b"LDPF" + len(header).to_bytes(4, "little") + header + body


def split(data: bytes) -> tuple[bytes, bytes]:
    end = 8 + int.from_bytes(data[4:8], "little")
    return data[8:end], data[end:]


class MessageFormat(Format):
    """A header of JSON, and integers behind it; sealed by a digest, which is mostly made anew."""

    sealed: ClassVar[bool]

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        content = data[:-32] if self.sealed else data
        header, body = split(content)
        match rng.randrange(6):
            case 0:
                content = mutated_bytes(content, rng.choice(self.originals), rng)
            case 1 | 2 | 3:
                text = written(mutated_json(parsed(header.decode()), rng))
                content = message(text.encode(*LENIENT), body)
            case 4:
                content = message(header, self.changed(body, rng))
            case 5:
                other = rng.choice(self.originals)
                content = message(header, split(other[:-32] if self.sealed else other)[1])
        if not self.sealed:
            return content
        digest = hashlib.sha256(content).digest() if rng.randrange(8) else data[-32:]
        return content + digest

    def changed(self, body: bytes, rng: random.Random) -> bytes:
        """Other integers, or bytes."""
        if not self.sealed or len(body) % 8 or not body:
            return mutated_bytes(body, body, rng) if body else rng.randbytes(9)
        counts = [
            int.from_bytes(body[at : at + 8], "little", signed=True)
            for at in range(0, len(body), 8)
        ]
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(counts))
            step = rng.choice([-1, 1, -2, 2, USERS, -USERS, 2**62, -(2**62)])
            counts[at] = max(-(2**63), min(2**63 - 1, counts[at] + step))
        return b"".join(count.to_bytes(8, "little", signed=True) for count in counts)

    def which(self, data: bytes) -> int:
        """Whose message it is."""
        header = json.loads(split(data)[0])
        if "parameters" in header:
            return [*map(signature, ORACLES)].index(header["parameters"])
        return [wire(oracle).hex() for oracle in ORACLES].index(header["protocol"])


class ReportsMessage(MessageFormat):
    """Reports on their way, read by each of the three oracles."""

    name = "reports"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)
    sealed = False

    def valid(self) -> Iterator[bytes]:
        yield from (batch_of(k, version) for version in (1, 2) for k in range(len(ORACLES)))

    def read(self, path: Path) -> Any:
        data, found = path.read_bytes(), []
        for k, oracle in enumerate(ORACLES):
            tally: Counter[str] = Counter()
            reports = oracle.reports_from_bytes(data, tally)
            found.append((k, reports, tally))
        for oracle in ORACLES:
            with contextlib.suppress(InvalidReport):
                oracle.reports_from_bytes(data)
                return found
        raise InvalidReport("by all of them")

    def lie(self, found: Any, data: bytes) -> str | None:
        for k, reports, tally in found:
            if not all(sendable(k, report) for report in reports):
                return "a report that nobody can have sent"
            if not all(0 < count <= max(1, len(data)) for count in tally.values()):
                return f"{tally}"
            if len(reports) and (
                k != self.which(data) or len(reports) > json.loads(split(data)[0])["count"]
            ):
                return "reports that are not in it"
        return None


class AggregateMessage(MessageFormat):
    """Sums of reports."""

    name = "aggregate"
    refusals: ClassVar[tuple[type[Exception], ...]] = (IncompatibleAggregate,)
    sealed = True

    def valid(self) -> Iterator[bytes]:
        yield from (oracle.aggregate(reports_of(oracle)).to_bytes() for oracle in ORACLES)

    def read(self, path: Path) -> Any:
        data = path.read_bytes()
        for oracle in ORACLES:
            with contextlib.suppress(IncompatibleAggregate):
                return oracle.aggregate_from_bytes(data)
        raise IncompatibleAggregate("of none of them")

    def lie(self, found: Any, data: bytes) -> str | None:
        k = self.which(data)
        header, body = split(data[:-32])
        counts = found.counts.ravel().tolist()
        if found.counts.astype("<i8").tobytes() != body or found.n != json.loads(header)["n"]:
            return "it is not what the message says"
        if found.counts.shape != COUNTS[k] or not countable(k, found.n, counts):
            return f"no {found.n} reports have these counts"
        return None


class ReleaseFile(MessageFormat):
    """The histogram that a curator has published."""

    name = "release"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile,)
    sealed = True

    def valid(self) -> Iterator[bytes]:
        for schema, kind in (
            (Schema([AGE]), partial(Hierarchy, branching=[3, 4], budget=(1, 2))),
            (Schema([PAY, SMOKES]), partial(Hierarchy, branching=2, inference=False)),
            (Schema([AGE, PAY, SMOKES]), CentralFlat),
            (Schema([AGE, PAY]), Wavelet),
        ):
            mechanism: CentralMechanism = kind(schema.sizes, Fraction(1, 2))
            counts = np.arange(mechanism.domain).reshape(mechanism.sizes)
            found = Release.draw(schema, mechanism, counts, np.random.default_rng(1))
            yield self.saved(found.save)

    def read(self, path: Path) -> Any:
        found = Release.load(path)
        found.estimate.cells()
        return found

    def lie(self, found: Any, data: bytes) -> str | None:
        header, body = split(data[:-32])
        content = json.loads(header)
        alphas = [alpha for alpha in content["alphas"] if alpha is not None]
        if b"".join(level.astype("<i8").tobytes() for level in found.levels) != body:
            return "it is not what the file says"
        drawn = [noise.alpha for noise in found.mechanism.noise if noise is not None]
        if drawn != [*map(rational, alphas)]:
            return "its noise is not that of the file"
        if loses_more(content["mechanism"], alphas):
            return "it loses more than its epsilon"
        return None


class StateFile(AggregateMessage):
    """What was counted, and of which files."""

    name = "state"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidFile, IncompatibleAggregate)

    def valid(self) -> Iterator[bytes]:
        for k, oracle in enumerate(ORACLES):
            reports, days = reports_of(oracle), self.place / f"days{k}"
            for day in range(3):
                write_reports(days / f"{day}.parquet", oracle, reports[10 * day : 10 * day + 10])
            yield self.saved(partial(aggregate_files, oracle, days, 1), str(k))

    def read(self, path: Path) -> Any:
        reasons: list[Exception] = []
        for oracle in ORACLES:
            try:
                return aggregate_files(oracle, [], resume=path)
            except self.refusals as error:
                reasons.append(error)
        raise reasons[0]

    def lie(self, found: Any, data: bytes) -> str | None:
        numbers = [
            *found.counted.values(),
            *(n for t in found.left_out.values() for n in t.values()),
        ]
        if any(type(n) is not int or not 0 <= n < 1 << 63 for n in numbers):
            return "a number that no reports can have"
        if sum(found.counted.values()) != found.aggregate.n:
            return "the files do not add up to the counts"
        return super().lie(found.aggregate, data)


class ReportsFile(Format):
    """Parquet files. Their footers mostly say what is in them, as changed."""

    name = "parquet"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)

    def valid(self) -> Iterator[bytes]:
        self._headers = []
        for k, oracle in enumerate(ORACLES):
            path = self.place / "original.parquet"
            write_reports(path, oracle, reports_of(oracle))
            header = json.loads(pq.read_metadata(path).metadata[b"mechdesign"])
            self._headers.append({**header, "id": f"{k:032x}"})  # no random number: reproducible
            yield self._file(k, reports_of(oracle), self._headers[k])

    def _file(self, k: int, reports: np.ndarray[Any, Any], header: dict[str, Any] | str) -> bytes:
        columns = {}
        for name in reports.dtype.names or ():
            column = np.ascontiguousarray(reports[name])
            if column.ndim == 1:
                columns[name] = pa.array(column)
            else:
                rows = [row.tobytes() for row in column]
                columns[name] = pa.array(rows, pa.binary(column[0].nbytes))
        schema = pa.schema([pa.field(n, c.type, nullable=False) for n, c in columns.items()])
        if isinstance(header, dict):
            groups = [reports[at : at + 15] for at in range(0, len(reports), 15)]
            header["groups"] = [[len(g), hashlib.sha256(g.tobytes()).hexdigest()] for g in groups]
            header["digest"] = digest_of(header)
            header = json.dumps(header)
        table = pa.table(columns, schema=schema).replace_schema_metadata({"mechdesign": header})
        stream = io.BytesIO()
        pq.write_table(
            table, stream, row_group_size=15, write_page_checksum=True, compression="zstd"
        )
        return stream.getvalue()

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        kind, k = rng.randrange(4), rng.randrange(len(ORACLES))
        if kind < 2:
            return mutated_bytes(data, rng.choice(self.originals), rng)
        reports = reports_of(ORACLES[k])
        if kind == 2:
            changed = mutated_bytes(reports.tobytes(), reports.tobytes(), rng)
            size = reports.itemsize
            changed = changed[: len(changed) // size * size] or bytes(size)
            return self._file(k, np.frombuffer(changed, reports.dtype), dict(self._headers[k]))
        header = dict(self._headers[k])
        self._file(k, reports, header)  # which fills the header in
        value = mutated_json(parsed(json.dumps(header)), rng)
        text = resealed(value) if rng.randrange(8) else written(value)
        return self._file(k, reports, text.encode(*LENIENT).decode("utf-8", "replace"))

    def read(self, path: Path) -> Any:
        found = None
        for k, oracle in enumerate(ORACLES):
            tally: Counter[str] = Counter()
            with contextlib.suppress(RefusedFile):
                found = k, read_reports(path, oracle, tally), tally
        if found is None:
            raise RefusedFile("by all of them")
        return found

    def lie(self, found: Any, data: bytes) -> str | None:
        k, reports, tally = found
        if not all(sendable(k, report) for report in reports):
            return "a report that nobody can have sent"
        header = json.loads(pq.read_metadata(io.BytesIO(data)).metadata[b"mechdesign"])
        if header["digest"] != digest_of(header):
            return "it was changed"
        if len(reports) + tally.total() != sum(n for n, _ in header["groups"]):
            return "not as many reports as it says"
        if not tally:
            ends = np.cumsum([0, *(n for n, _ in header["groups"])])
            groups = [reports[a:b] for a, b in pairwise(ends)]
            if [hashlib.sha256(g.tobytes()).hexdigest() for g in groups] != [
                digest for _, digest in header["groups"]
            ]:
                return "other reports than it says"
        return None


class BatchFile(MessageFormat):
    """Batches in files, which must be whole, each beside one that is."""

    name = "batch"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)
    sealed = False

    def valid(self) -> Iterator[bytes]:
        yield from (batch_of(k, version) for version in (1, 2) for k in range(len(ORACLES)))

    def read(self, path: Path) -> Any:
        return counted_twice(path, self.place, ".ldp")

    def lie(self, found: Any, data: bytes) -> str | None:
        k, reports, tally = found
        if not all(sendable(k, report) for report in reports):
            return "a report that nobody can have sent"
        header, body = split(data)
        size = ORACLES[k].report_dtype.itemsize
        if k != self.which(data) or len(body) != size * json.loads(header)["count"]:
            return "it is not whole, or of another protocol"
        if len(reports) + tally.total() != len(body) // size or {*tally} - {"impossible"}:
            return f"{len(reports)} reports, and left out {tally}"
        return None


class LinesFile(Format):
    """Lines of base64, perhaps with keys."""

    name = "lines"
    refusals: ClassVar[tuple[type[Exception], ...]] = (InvalidReport,)

    def valid(self) -> Iterator[bytes]:
        for k, oracle in enumerate(ORACLES):
            lines = [
                base64.b64encode(wire(oracle) + report.tobytes()) for report in reports_of(oracle)
            ]
            keys = [b" k%d" % (number % 30) for number in range(len(lines))]
            yield b"\n".join([*lines, b""])
            yield b"\n".join([*(line + key for line, key in zip(lines, keys, strict=True)), b""])
            yield b"\n".join([b"# mechdesign reports %032x" % k, *lines, b""])

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(2):
            return mutated_bytes(data, rng.choice(self.originals), rng)
        lines = data.split(b"\n")
        if not rng.randrange(4):  # none of them is a report
            start = rng.randrange(1, 12)
            return b"\n".join(line[start:] for line in lines)
        others = [*lines, *rng.choice(self.originals).split(b"\n"), b"#", b"", b"=", b"a" * 3000]
        for _ in range(rng.randrange(1, 6)):
            at, line = rng.randrange(len(lines)), rng.choice(others)
            cut = rng.randrange(len(line) + 1)
            ends = [b"\r", b" ", b" k1", b" \xff", b" " + b"k" * 65, b"=", b"==", b"\n", b"\0"]
            lines[at] = rng.choice([line, line[:cut], line[cut:], line + rng.choice(ends)])
        return b"\n".join(lines * rng.choice([1, 1, 1, 50]))

    def read(self, path: Path) -> Any:
        return counted_twice(path, self.place, ".b64")

    def lie(self, found: Any, data: bytes) -> str | None:
        k, reports, tally = found
        *lines, last = data.split(b"\n")
        own, keys, left = [], set[bytes](), 1 if last else 0
        for line in lines:
            text, *key = line.split(b" ", 1)
            try:
                raw = base64.b64decode(text, validate=True)
            except ValueError:
                raw = b""
            right = base64.b64encode(raw) == text and raw[:8] == wire(ORACLES[k])
            right &= not key or bool(re.fullmatch(rb"[A-Za-z0-9_.-]{1,64}", key[0]))
            right &= len(raw) == 8 + reports.itemsize and not keys.intersection(key)
            if right:
                keys.update(key)
                own.append(raw[8:])
            left += not right and not line.startswith(b"#")
        sent = np.frombuffer(b"".join(own), reports.dtype)
        kept = [report for report in sent if sendable(k, report)]
        if [report.tobytes() for report in reports] != [report.tobytes() for report in kept]:
            return "other reports than it holds"
        if tally.total() != left + len(sent) - len(kept):
            return f"{tally} were left out"
        return None


def counted_twice(path: Path, place: Path, suffix: str) -> tuple[int, Any, Counter[str]]:
    """Whose reports they are, these, and what was left out; but they and a copy count once."""
    first, second = place / f"first{suffix}", place / f"second{suffix}"
    shutil.copy(path, first)
    shutil.copy(path, second)
    for k, oracle in enumerate(ORACLES):
        with contextlib.suppress(RefusedFile):
            tally: Counter[str] = Counter()
            reports = read_reports(first, oracle, tally)
            collected = aggregate_files(oracle, [first, second])
            if len(collected.counted) != 1 or collected.aggregate != oracle.aggregate(reports):
                raise AssertionError(f"{collected}")
            if collected.left_out != ({str(first): tally} if tally else {}):
                raise AssertionError(f"left out: {collected.left_out}, not {tally}")
            return k, reports, tally
    for oracle in ORACLES:
        if aggregate_files(oracle, [first, second]).counted:
            raise AssertionError("counted, although it is refused")
    raise RefusedFile("by all of them")


class CountsTable(Format):
    """CSV files of true counts, for ``mechdesign release``."""

    name = "counts"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError,)
    tables: ClassVar[tuple[str, ...]] = (
        "id,count,note\n1,0,a\n2,4,b\n3,2,c\n",
        "\ufeffid;count\r\n1;3\r\n2;2,0\r\n",
        'id\tcount\n"a\nb"\t1\nc\t4\n',
        'count,"id"\n"3","x, y"\n4,"z ""w"""\n0,\n',
    )

    def valid(self) -> Iterator[bytes]:
        self._mechanism = self.place / "wm.json"
        named.geometric(4, alpha="9/10").save(self._mechanism)
        yield from (table.encode() for table in self.tables)

    def mutated(self, data: bytes, rng: random.Random) -> bytes:
        if rng.randrange(2):
            return mutated_bytes(data, rng.choice(self.originals), rng)
        odd = ["", "-1", "5", "4.0", "2.5", "1e0", "١", "0x1", " 3", "3 ", "007", "nan", "9" * 5000]
        odd += [
            '"',
            '""',
            '"3',
            "3\n4",
            "3,4",
            "\x00",
            "\ufeff",
            "=1+1",
            "x" * 200_000,
            "\r",
            "1_0",
        ]
        cells = re.split(r"([,;\t\n\r]+)", data.decode())
        for _ in range(rng.randrange(1, 4)):
            cells[rng.randrange(len(cells))] = rng.choice([*odd, *",;\t\n"])
        return "".join(cells * rng.choice([1, 1, 1, 40])).encode()

    def read(self, path: Path) -> Any:
        out, said = self.place / "released.csv", io.StringIO()
        out.unlink(missing_ok=True)
        given = ["release", self._mechanism, "--input", path, "--out", out, "--force"]
        names = ["--column", "count", "--keep", "id"]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = command([*map(str, given), *names])
        if code:
            if code != 2 or out.exists() or not said.getvalue().startswith("mechdesign: "):
                raise AssertionError(f"exit code {code}: {said.getvalue()[:200]}")
            raise ValueError(said.getvalue())
        return out.read_bytes().decode()

    def lie(self, found: Any, data: bytes) -> str | None:
        text = data.decode("utf-8-sig")
        separator = next(mark for mark in ",;\t|" if f"id{mark}count" in found)
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        while rows and not rows[-1]:
            rows.pop()
        out = list(
            csv.reader(io.StringIO(found.removeprefix("\ufeff"), newline=""), delimiter=separator)
        )
        count, kept = rows[0].index("count"), rows[0].index("id")
        if [row[0] for row in out] != [row[kept] for row in rows]:
            return "other rows than in the file"
        for row, (_, released) in zip(rows[1:], out[1:], strict=True):
            plain = re.fullmatch(r"\s*0*([0-4])([.,]0{1,2})?\s*", row[count], re.ASCII)
            if not plain or released not in "01234":
                return f"a count of {row[count]!r:.40} was released as {released!r:.40}"
        return None
