"""Reports as Parquet files: nothing lost, and what is damaged or made up is refused."""

import hashlib
import json
import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frequency import GRR, HRR, OLH, OUE, InvalidReport
from frequency.storage import RefusedFile, aggregate_files, read_reports, write_reports
from frequency.storage.parquet import ParquetReports
from mechdesign.base.files import digest_of
from tests.contracts.examples import WITH_VALUES, numbers


@WITH_VALUES
def test_reports_are_what_they_were(protocol, values, tmp_path):
    reports = protocol.privatize(values, np.random.default_rng(2))
    path = tmp_path / "day=1" / "reports.parquet"
    assert write_reports(path, protocol, (part for part in np.array_split(reports, 3))) == len(
        reports
    )
    assert np.array_equal(read_reports(path, protocol), reports)
    for batch in (7, None):
        collected = aggregate_files(protocol, tmp_path, batch=batch)
        assert collected.aggregate == protocol.aggregate(reports)
        assert collected.counted == {str(path): len(reports)}
        assert (collected.refused, collected.left_out) == ({}, {})


def test_the_columns_are_what_other_tools_can_read(tmp_path):
    path = tmp_path / "reports.parquet"
    protocol = OLH(1000, 1.0)
    write_reports(path, protocol, reports := protocol.privatize(numbers(1000)))
    table = pq.read_table(path)
    assert table.schema.types == [pa.uint16(), pa.uint8()]
    assert np.array_equal(table["hash"].to_numpy(), reports["hash"])


def test_no_reports(tmp_path):
    protocol = HRR(16, 1.0)
    none = np.zeros(0, dtype=protocol.report_dtype)
    assert write_reports(tmp_path / "a.parquet", protocol, none) == 0
    assert write_reports(tmp_path / "b.parquet", protocol, iter([])) == 0
    assert len(read_reports(tmp_path / "a.parquet", protocol)) == 0
    assert aggregate_files(protocol, tmp_path).aggregate == protocol.aggregate(none)
    assert aggregate_files(protocol, []).aggregate == protocol.aggregate(none)


def test_a_report_that_nobody_can_have_sent_is_not_written(tmp_path):
    protocol = HRR(16, 1.0)
    good = protocol.privatize(numbers(16), np.random.default_rng(1))
    bad = good.copy()
    bad["sign"][3] = 0
    path = tmp_path / "reports.parquet"
    for reports in (bad, iter([good, bad]), good["index"], iter([good, good[0]])):
        with pytest.raises(InvalidReport):
            write_reports(path, protocol, reports)
    assert list(tmp_path.iterdir()) == []
    write_reports(path, protocol, good)
    with pytest.raises(InvalidReport):  # what was there stays
        write_reports(path, protocol, iter([good[:3], bad]))
    assert np.array_equal(read_reports(path, protocol), good)
    assert list(tmp_path.iterdir()) == [path]


def header_of(path):
    return json.loads(pq.read_metadata(path).metadata[b"mechdesign"])


def foreign(path, protocol, table, **metadata):
    """A file by another writer, with the header of ``protocol`` but for ``metadata``."""
    write_reports(path, protocol, np.zeros(0, dtype=protocol.report_dtype))
    reports = np.zeros(len(table), dtype=protocol.report_dtype)
    for name in set(table.column_names) & set(reports.dtype.names):
        column = table[name].to_numpy()
        if column.dtype.kind in "iu":
            reports[name] = column.reshape(reports[name].shape)
    groups = [[len(table), hashlib.sha256(reports).hexdigest()]]
    header = {**header_of(path), "groups": groups, **metadata}
    header["digest"] = metadata.get("digest", digest_of(header))
    pq.write_table(table.replace_schema_metadata({"mechdesign": json.dumps(header)}), path)


def test_impossible_reports_are_left_out_and_counted(tmp_path):
    protocol = HRR(16, 1.0)
    table = pa.table(
        {
            "sign": pa.array([1, -1, 0, 1, 5], pa.int8()),
            "index": pa.array([3, 4, 5, 0, 16], pa.uint8()),
            "time": [1] * 5,
        }
    )
    path = tmp_path / "x.parquet"
    foreign(path, protocol, table)
    collected = aggregate_files(protocol, path)
    assert collected.aggregate.n == 2
    assert (collected.aggregate.counts[3], collected.aggregate.counts[4]) == (1, -1)
    assert (collected.counted, collected.left_out) == (
        {str(path): 2},
        {str(path): {"impossible": 3}},
    )
    assert "left out 3 impossible" in str(collected)
    tally: Counter[str] = Counter()
    assert len(read_reports(path, protocol, tally)) == 2
    assert tally == {"impossible": 3}
    with pytest.raises(InvalidReport, match="cannot have been sent"):
        read_reports(path, protocol)


GOOD = {"index": pa.array([3], pa.uint8()), "sign": pa.array([1], pa.int8())}


@pytest.mark.parametrize(
    ("columns", "metadata", "reason"),
    [
        (GOOD | {"sign": pa.array([1], pa.int16())}, {}, "column 'sign' is int16, not int8"),
        (GOOD | {"index": pa.array(["x"])}, {}, "column 'index' is string"),
        (GOOD | {"index": pa.array([None], pa.uint8())}, {}, "column 'index' has nulls"),
        ({"index": GOOD["index"]}, {}, "column 'sign' is missing"),
        (GOOD, {"version": 1}, "version 1"),
        (GOOD, {"version": 1.0}, "version 1.0"),
        (GOOD, {"version": True}, "version True"),
        (GOOD, {"comment": "harmless"}, "unknown key 'comment'"),
        (GOOD, {"format": "other"}, "does not say that it holds reports"),
        (GOOD, {"digest": "sha256:0"}, "damaged: what it says of itself"),
        (GOOD, {"groups": []}, "damaged: its row groups"),
        (GOOD, {"groups": [[2, "0" * 64]]}, "damaged: its row groups"),
        (GOOD, {"groups": [[1, "0" * 64], [1, "0" * 64]]}, "damaged: its row groups"),
        (GOOD, {"groups": [[1, "0" * 64]]}, "damaged: row group 0 is not what was written"),
        (GOOD, {"groups": [[True, "0" * 64]]}, r"groups\[0\]\[0\] must be an integer"),
        (GOOD, {"groups": [[1]]}, r"groups\[0\] must be a list of 2"),
        (GOOD, {"groups": 1}, "groups must be a list"),
        (GOOD, {"parameters": HRR(16, 1.5).signature}, "foreign.*alpha"),
        (GOOD, {"parameters": None}, "parameters must be a text"),
        (GOOD, {"parameters": "[" * 100_000}, "foreign"),
        (GOOD, {"parameters": '{"protocol": "\\ud800"}'}, "foreign"),
    ],
)
def test_a_file_of_something_else_is_refused_by_name(columns, metadata, reason, tmp_path):
    protocol = HRR(16, 1.0)
    reports = protocol.privatize(numbers(16))
    write_reports(tmp_path / "good.parquet", protocol, reports)
    bad = tmp_path / "bad.parquet"
    foreign(bad, protocol, pa.table(columns), **metadata)
    with pytest.raises(RefusedFile, match=reason):
        read_reports(bad, protocol)
    collected = aggregate_files(protocol, tmp_path)
    assert collected.aggregate == protocol.aggregate(reports)
    assert list(collected.refused) == [str(bad)]
    assert collected.refused[str(bad)] in str(collected)


@pytest.mark.parametrize("workers", [1, 2])
def test_damaged_files_are_refused_and_the_rest_goes_on(workers, tmp_path):
    """Cut anywhere, or one bit changed in the pages: nothing of the file counts, not even what was
    intact.
    """
    protocol = HRR(256, 1.0)
    reports = protocol.privatize(numbers(256, 30_000), np.random.default_rng(1))
    good, kinds = tmp_path / "good.parquet", tmp_path / "kinds"
    write_reports(good, protocol, reports)
    content = good.read_bytes()
    kinds.mkdir()
    random = np.random.default_rng(1)
    for k, end in enumerate([0, 4, 100, len(content) // 2, len(content) - 1]):
        (kinds / f"cut{k}.parquet").write_bytes(content[:end])
    for k in range(5):
        place = int(random.integers(100, len(content) * 9 // 10))
        (kinds / f"changed{k}.parquet").write_bytes(
            content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :]
        )
    (kinds / "text.parquet").write_text("hello")
    for batch in (1000, None):  # in many pieces, and whole
        collected = aggregate_files(protocol, tmp_path, workers=workers, batch=batch)
        assert collected.aggregate == protocol.aggregate(reports)
        assert set(collected.refused) == set(map(str, kinds.iterdir()))
        assert list(collected.counted) == [str(good)]
        if workers > 1:
            break


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "users", "group"),
    [(GRR(5, 1.0), 300, 1 << 20), (OUE(9, 1.0), 5, 1 << 20), (HRR(16, 1.0, 2), 3, 2)],
    ids=repr,
)
def test_any_bit_may_flip(protocol, users, group, tmp_path, monkeypatch):
    """The file is refused, or holds the same reports: in pages, their headers or the footer."""
    monkeypatch.setattr("frequency.storage.parquet._GROUP", group)
    reports = protocol.privatize(numbers(5, users), np.random.default_rng(1))
    path = tmp_path / "reports.parquet"
    write_reports(path, protocol, reports)
    assert pq.read_metadata(path).num_row_groups == -(-users // group)
    content, refused = path.read_bytes(), 0
    with path.open("r+b", buffering=0) as stream:
        for bit in range(8 * len(content)):
            at = bit // 8
            os.pwrite(stream.fileno(), bytes([content[at] ^ 1 << bit % 8]), at)
            try:
                found = read_reports(path, protocol)
            except RefusedFile:
                refused += 1
            else:
                assert np.array_equal(found, reports), bit
            os.pwrite(stream.fileno(), content[at : at + 1], at)
    assert 2 * refused > 8 * len(content)


def test_row_groups_are_full_however_reports_come(tmp_path, monkeypatch):
    monkeypatch.setattr("frequency.storage.parquet._GROUP", 7)
    protocol, path = HRR(16, 1.0), tmp_path / "reports.parquet"
    reports = protocol.privatize(numbers(16, 40), np.random.default_rng(1))
    array = np.zeros(3, dtype=reports.dtype)

    def filled():  # anew each time
        for start in range(0, 40, 3):
            part = array[: len(reports[start : start + 3])]
            part[:] = reports[start : start + 3]
            yield part

    for parts in ([reports], reports[:0], filled()):
        expected = reports[: write_reports(path, protocol, parts)]
        assert np.array_equal(read_reports(path, protocol), expected)
        whole = -(-len(expected) // 7)
        assert ParquetReports(path, protocol).outline().groups == (7, 7, 7, 7, 7, 5)[:whole]


def test_a_file_holds_no_more_than_its_size_allows(tmp_path, monkeypatch):
    """Reports without information pack a thousandfold: a small file cannot ask for much memory."""
    monkeypatch.setattr("frequency.storage.parquet._SMALL", 1000)
    monkeypatch.setattr("frequency.storage.parquet._PACKED", 2)
    protocol, path = GRR(1, 1.0), tmp_path / "reports.parquet"
    reports = protocol.privatize(np.zeros(30_000, dtype=int))
    with pytest.raises(ValueError, match="write several"):
        write_reports(path, protocol, reports)
    assert list(tmp_path.iterdir()) == []
    assert write_reports(path, protocol, reports[:1000]) == 1000
    monkeypatch.setattr("frequency.storage.parquet._SMALL", 999)
    monkeypatch.setattr("frequency.storage.parquet._PACKED", 1)
    with pytest.raises(RefusedFile, match="it says that it holds 1000 reports, in"):
        read_reports(path, protocol)
