"""Parquet files that other tools write are read, and are as well protected."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frequency import GRR, OLH, OUE
from frequency.storage import RefusedFile, aggregate_files, parquet_header, read_reports
from rangeq import HaarHRR
from tests.contracts.examples import WITH_VALUES

PROTOCOL = OUE(20, 1.0)
REPORTS = PROTOCOL.privatize(np.arange(5000) % 20, np.random.default_rng(3))


def frame(reports: np.ndarray) -> pl.DataFrame:
    """A table with a column for each field, as Polars has it: binary of any width."""
    columns: dict[str, Any] = {}
    for name in reports.dtype.names or ():
        field, kind = reports[name], reports.dtype[name]
        whole = kind.base.kind in "iu" and kind.itemsize == kind.base.itemsize
        columns[name] = field.ravel() if whole else [value.tobytes() for value in field]
    return pl.DataFrame(columns)


def by_polars(path: Any, reports: np.ndarray, header: str) -> None:
    frame(reports).write_parquet(path, metadata={"mechdesign": header}, row_group_size=1000)


def by_duckdb(path: Any, reports: np.ndarray, header: str) -> None:
    with duckdb.connect() as connection:
        connection.register("reports", frame(reports).to_arrow())
        options = f"FORMAT parquet, ROW_GROUP_SIZE 2048, KV_METADATA {{mechdesign: '{header}'}}"
        connection.execute(f"COPY (SELECT * FROM reports) TO '{path}' ({options})")


def by_pyarrow(kind: Any) -> Callable[[Any, np.ndarray, str], None]:
    def write(path: Any, reports: np.ndarray, header: str) -> None:
        table = frame(reports).to_arrow()
        types = [kind if column.type == pa.large_binary() else column.type for column in table]
        table = table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
        pq.write_table(table.replace_schema_metadata({"mechdesign": header}), path)

    return write


WRITERS = {
    "polars": by_polars,
    "duckdb": by_duckdb,
    "binary": by_pyarrow(pa.binary()),
    "large binary": by_pyarrow(pa.large_binary()),
    "fixed width": by_pyarrow(pa.binary(3)),
}


@pytest.mark.parametrize("writer", sorted(WRITERS))
@pytest.mark.parametrize("workers", [1, 2])
def test_reports_of_other_writers_are_counted(writer, workers, tmp_path):
    path = tmp_path / "reports.parquet"
    WRITERS[writer](path, REPORTS, parquet_header(PROTOCOL, REPORTS))
    assert np.array_equal(read_reports(path, PROTOCOL), REPORTS)
    found = aggregate_files(PROTOCOL, [path, path], workers=workers)
    assert found.aggregate == PROTOCOL.aggregate(REPORTS)
    assert found.refused == {}


@WITH_VALUES
def test_reports_of_every_protocol_by_polars(protocol, values, tmp_path):
    reports = protocol.privatize(values[:50], np.random.default_rng(5))
    by_polars(tmp_path / "reports.parquet", reports, parquet_header(protocol, reports))
    assert np.array_equal(read_reports(tmp_path / "reports.parquet", protocol), reports)


def test_the_header_needs_nothing_of_this_library(tmp_path):
    """As `docs/wire.md` has it: the count, and the digest of the reports one after the other."""
    protocol = HaarHRR(30, 1.0)
    reports = protocol.privatize(np.arange(300) % 30, np.random.default_rng(1))
    rows = frame(reports)
    told = b"".join(
        level.to_bytes(1, "little") + body
        for level, body in rows.select("level", "body").iter_rows()
    )
    header = {
        "format": "mechdesign.reports",
        "version": 3,
        "protocol": protocol.wire.hex(),
        "id": "2026-11-23 by hand",
        "count": len(rows),
        "digest": f"sha256:{hashlib.sha256(told).hexdigest()}",
    }
    by_duckdb(tmp_path / "reports.parquet", reports, json.dumps(header))
    assert np.array_equal(read_reports(tmp_path / "reports.parquet", protocol), reports)


def test_the_same_reports_of_two_files_are_told_apart(tmp_path):
    for name in "ab":
        by_polars(tmp_path / f"{name}.parquet", REPORTS, parquet_header(PROTOCOL, REPORTS))
    (tmp_path / "copy.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    found = aggregate_files(PROTOCOL, tmp_path)
    assert found.aggregate.n == 2 * len(REPORTS)


@pytest.mark.parametrize("count", [0, 1])
def test_few_reports(count, tmp_path):
    by_polars(tmp_path / "x.parquet", REPORTS[:count], parquet_header(PROTOCOL, REPORTS[:count]))
    assert aggregate_files(PROTOCOL, tmp_path).aggregate.n == count


def header(**changes: Any) -> str:
    content = {**json.loads(parquet_header(PROTOCOL, REPORTS)), **changes}
    return json.dumps({key: value for key, value in content.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"protocol": GRR(20, 1.0).wire.hex()}, "foreign"),
        ({"protocol": 5}, "protocol must be a text, got 5"),
        ({"count": 4999}, "row groups are not those"),
        ({"count": "5000"}, "count must be an integer from 0 to 2^63 - 1, got '5000'"),
        ({"count": True}, "count must be an integer from 0 to 2^63 - 1, got True"),
        ({"digest": f"sha256:{'0' * 64}"}, "not what was written"),
        ({"digest": 1}, "digest must be a text, got 1"),
        ({"id": None}, "'id' is missing"),
        ({"comment": "harmless"}, "unknown key 'comment'"),
        ({"version": 4}, "version 4, this library reads 2 and 3"),
        ({"format": "other"}, "does not say that it holds reports"),
    ],
)
def test_a_header_that_lies_is_refused(changes, reason, tmp_path):
    by_polars(tmp_path / "x.parquet", REPORTS, header(**changes))
    found = aggregate_files(PROTOCOL, tmp_path)
    assert found.aggregate.n == 0
    assert reason in str(found.refused)


@pytest.mark.parametrize("width", [0, 2, 4, 1 << 20])
def test_a_value_of_another_width_is_refused(width, tmp_path):
    rows = frame(REPORTS)["bits"].to_list()
    rows[4321] = b"\1" * width
    table = pl.DataFrame({"bits": rows})
    table.write_parquet(tmp_path / "x.parquet", metadata={"mechdesign": header()})
    with pytest.raises(RefusedFile, match=f"column 'bits' has values of .*{width}.* bytes, not 3"):
        read_reports(tmp_path / "x.parquet", PROTOCOL)


def test_a_changed_or_hidden_report_is_noticed(tmp_path):
    changed = REPORTS.copy()
    changed["bits"][77] ^= 1
    for reports in (changed, REPORTS[::-1]):
        by_polars(tmp_path / "x.parquet", reports, header())
        with pytest.raises(RefusedFile, match="not what was written"):
            read_reports(tmp_path / "x.parquet", PROTOCOL)
    by_polars(tmp_path / "x.parquet", REPORTS[:-1], header())
    with pytest.raises(RefusedFile, match="row groups are not those"):
        read_reports(tmp_path / "x.parquet", PROTOCOL)


def test_nulls_and_other_columns_are_refused(tmp_path):
    rows: list[bytes | None] = [*frame(REPORTS)["bits"].to_list()[:-1], None]
    pl.DataFrame({"bits": rows}).write_parquet(
        tmp_path / "x.parquet", metadata={"mechdesign": header()}
    )
    with pytest.raises(RefusedFile, match="column 'bits' has nulls"):
        read_reports(tmp_path / "x.parquet", PROTOCOL)
    oracle = OLH(1000, 1.0)
    reports = oracle.privatize(np.arange(50), np.random.default_rng(1))
    wider = frame(reports).with_columns(pl.col("value").cast(pl.Int64))
    wider.write_parquet(
        tmp_path / "y.parquet", metadata={"mechdesign": parquet_header(oracle, reports)}
    )
    with pytest.raises(RefusedFile, match="column 'value' is int64, not uint8"):
        read_reports(tmp_path / "y.parquet", oracle)


def test_a_long_value_that_occurs_often_takes_little_memory(tmp_path):
    """Two kilobytes of file that would be a terabyte: refused by the one value that it holds."""
    table = pa.table({"bits": pa.DictionaryArray.from_arrays([0] * 100_000, [b"\0" * (1 << 20)])})
    lying = header(count=100_000)
    pq.write_table(
        table.replace_schema_metadata({"mechdesign": lying}),
        tmp_path / "x.parquet",
        compression="zstd",
        store_schema=False,
    )
    with pytest.raises(RefusedFile):
        read_reports(tmp_path / "x.parquet", PROTOCOL)


def test_reports_that_are_written_again_count_once(tmp_path):
    """By their id, whatever writes them; other reports with that id are refused."""
    header = parquet_header(PROTOCOL, REPORTS)
    for name, writer in (("1", "polars"), ("2", "duckdb"), ("3", "binary")):
        WRITERS[writer](tmp_path / f"{name}.parquet", REPORTS, header)
    other = {**json.loads(parquet_header(PROTOCOL, REPORTS[::-1])), "id": json.loads(header)["id"]}
    by_polars(tmp_path / "4.parquet", REPORTS[::-1], json.dumps(other))
    by_polars(tmp_path / "5.parquet", REPORTS, parquet_header(PROTOCOL, REPORTS))
    collected = aggregate_files(PROTOCOL, tmp_path)
    first = str(tmp_path / "1.parquet")
    assert set(collected.counted) == {first, str(tmp_path / "5.parquet")}
    assert len(collected.refused) == 3
    assert all(
        reason.startswith(f"it has the id of {first}, but other bytes")
        for reason in collected.refused.values()
    )
