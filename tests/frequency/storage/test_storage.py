"""Reports, aggregates and protocols as files, and the way from files to an aggregate: nothing lost,
nothing counted twice.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frequency
import rangeq
import rangeq.grids
from frequency import GRR, HRR, OLH, OUE, IncompatibleAggregate, InvalidReport, Tabular
from frequency.core.protocol import channel_of
from frequency.storage import (
    RefusedFile,
    aggregate_files,
    collection,
    load_aggregate,
    load_protocol,
    read_reports,
    save_aggregate,
    save_protocol,
    write_reports,
)
from frequency.storage.parquet import footer_of
from frequency.storage.state import State
from mechdesign import InvalidFile, Privacy, named
from mechdesign._support.strict_json import digest_of
from mechdesign.local import extremal
from mechdesign.utilities import MutualInformation
from tests.contracts.examples import WITH_VALUES, numbers
from tests.frequency.storage.dying import Dying

# ----------------------------------------------------------------------------- protocols as files


@WITH_VALUES
def test_a_protocol_is_what_it_was(protocol, values, tmp_path):
    save_protocol(tmp_path / "protocol.json", protocol)
    again = load_protocol(tmp_path / "protocol.json")
    assert type(again) is type(protocol)
    assert channel_of(again) == channel_of(protocol)
    assert again.report_dtype == protocol.report_dtype
    drawn = [p.privatize(values, np.random.default_rng(5)) for p in (protocol, again)]
    assert np.array_equal(*drawn)
    assert again.aggregate(drawn[0]) == protocol.aggregate(drawn[1])


def rewritten(path, change):
    """A protocol file with other content and the right digest."""
    content = json.loads(path.read_text())
    change(content)
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="x"), "not a protocol file"),
        (lambda c: c.update(version=2), "version 2"),
        (lambda c: c.update(version=True), "version True"),
        (lambda c: c.update(version=1.0), "version 1.0"),
        (lambda c: c.update(comment="harmless"), "unknown key 'comment'"),
        (lambda c: c["arguments"].update(domain={"fraction": "16", "more": 1}), "one key"),
        (lambda c: c["arguments"].update(domain={"number": "16"}), "unknown key 'number'"),
        (lambda c: c["agreed"].update(domain=16.0), "would draw reports otherwise.*domain"),
        (lambda c: c.update(protocol="os.system"), "not a protocol of this library"),
        (lambda c: c.update(protocol="frequency.Estimate"), "not a protocol of this library"),
        (lambda c: c.update(protocol="frequency.np"), "not a protocol of this library"),
        (lambda c: c.update(protocol="frequency.Oracle"), "TypeError"),
        (lambda c: c.update(protocol=5), "AttributeError"),
        (lambda c: c.pop("protocol"), "'protocol' is missing"),
        (lambda c: c.pop("arguments"), "'arguments' is missing"),
        (lambda c: c.pop("agreed"), "'agreed' is missing"),
        (lambda c: c["arguments"].update(domain=-1), "domain must be"),
        (
            lambda c: c["arguments"].update(domain={"fraction": "1/0"}),
            "a denominator must be positive",
        ),
        (lambda c: c["arguments"].update(more=1), "TypeError"),
        (lambda c: c["arguments"].update(epsilon=1.25), "would draw reports otherwise.*alpha"),
        (lambda c: c["agreed"].update(truth="1"), "would draw reports otherwise.*truth"),
        (lambda c: c.update(agreed=[]), "would draw reports otherwise"),
    ],
)
def test_a_protocol_file_that_lies_is_refused(change, message, tmp_path):
    path = tmp_path / "protocol.json"
    save_protocol(path, HRR(16, 1.0))
    rewritten(path, lambda content: None)
    assert load_protocol(path) == HRR(16, 1.0)
    rewritten(path, change)
    with pytest.raises(InvalidFile, match=message):
        load_protocol(path)


def test_a_protocol_file_that_was_changed_or_cut_is_refused(tmp_path):
    path = tmp_path / "protocol.json"
    save_protocol(path, HRR(16, 1.0))
    text = path.read_text()
    for damaged in (
        text[:-20],
        text.replace('"domain": 16', '"domain": 17'),
        "",
        "[" * 100_000,
        "null",
        "3",
    ):
        path.write_text(damaged)
        with pytest.raises(InvalidFile):
            load_protocol(path)


def test_the_mechanisms_of_a_protocol_file_share_what_checking_may_take(tmp_path):
    path, size = tmp_path / "protocol.json", 40
    save_protocol(path, Tabular(named.krr(size, "1/2")))
    distances = [[abs(j - k) for k in range(size)] for j in range(size)]
    heavy = {
        "alpha": "1/2",
        "neighbours": {"distances": distances},
        "denominator": str(size),
        "weights": [["1"] * size] * size,
        "certificate": None,
    }
    for number, message in ((1, "TypeError"), (12, "too long to check")):
        more = [{"mechanism": heavy}] * number
        rewritten(path, lambda c, more=more: c["arguments"].update(x=more))
        with pytest.raises(InvalidFile, match=message):
            load_protocol(path)


def test_what_occurs_twice_in_a_protocol_file_is_refused(tmp_path):
    path = tmp_path / "protocol.json"
    save_protocol(path, HRR(16, 1.0))
    path.write_text(path.read_text().replace('"domain": 16', '"domain": 4, "domain": 16', 1))
    with pytest.raises(InvalidFile, match="'domain' occurs twice"):
        load_protocol(path)
    protocol = frequency.marginals.InpHT(frequency.marginals.Domain({"a": 2, "b": 3}), 2, 1.0)
    save_protocol(path, protocol)
    assert load_protocol(path) == protocol
    rewritten(path, lambda c: c["arguments"]["domain"]["attributes"].append(["a", 2]))
    with pytest.raises(InvalidFile, match="occurs twice"):
        load_protocol(path)


def test_a_designed_mechanism_in_a_protocol_file_is_audited_again(tmp_path):
    design = extremal(3, Privacy("1/2", neighbours="all"), MutualInformation(["1/3"] * 3))
    path = tmp_path / "protocol.json"
    save_protocol(path, Tabular(design.mechanism))
    assert load_protocol(path).mechanism == design.mechanism

    def lie(content):
        content["arguments"]["mechanism"]["mechanism"]["alpha"] = "3/4"

    rewritten(path, lie)
    with pytest.raises(Exception, match="not private"):
        load_protocol(path)


def test_only_public_protocols_have_files(tmp_path):
    class Own(GRR):
        pass

    for wrong in (Own(3, 1.0), channel_of(frequency.heavy.PrefixExtension(24, 1.0)), 3, GRR):
        with pytest.raises(TypeError):
            save_protocol(tmp_path / "x.json", wrong)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------- reports as files


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
        (GOOD, {"groups": [[True, "0" * 64]]}, "damaged: what it says of itself"),
        (GOOD, {"groups": [[1]]}, "damaged: what it says of itself"),
        (GOOD, {"groups": 1}, "damaged: what it says of itself"),
        (GOOD, {"parameters": HRR(16, 1.5)._signature}, "foreign.*alpha"),
        (GOOD, {"parameters": None}, "foreign"),
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
        assert footer_of(path, protocol).groups == (7, 7, 7, 7, 7, 5)[:whole]


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


@pytest.mark.parametrize("workers", [1, 2])
def test_any_order_batch_and_number_of_workers(workers, tmp_path):
    protocol = rangeq.HierarchicalHistogram(64, 1.0, oracle="HRR")
    reports = protocol.privatize(numbers(64, 20_000), np.random.default_rng(1))
    cuts = [0, 1, 1, 50, 3000, 11_000, 20_000]
    for k, (start, end) in enumerate(pairwise(cuts)):
        write_reports(
            tmp_path / f"collector={k % 2}" / f"{k}.parquet",
            protocol,
            iter(np.array_split(reports[start:end], 3)),
        )
    (tmp_path / "_temporary").mkdir()
    for ignored in ("_temporary/x.parquet", ".y.parquet", "README.txt"):
        (tmp_path / ignored).write_text("not reports")
    paths = [str(path) for path in sorted(tmp_path.rglob("*/[0-9].parquet"))]
    for batch in (1, 999, None) if workers == 1 else (999,):
        for order in ([tmp_path], paths, paths[::-1], [*paths, tmp_path, paths[0]]):
            collected = aggregate_files(protocol, order, workers=workers, batch=batch)
            assert collected.aggregate == protocol.aggregate(reports)
            assert sum(collected.counted.values()) == 20_000
            assert set(collected.counted) == set(paths)
            assert collected.refused == {}
            if workers > 1 or batch == 1:
                break


def test_wrong_requests_are_refused_before_any_work(tmp_path):
    protocol = HRR(16, 1.0)
    with pytest.raises(FileNotFoundError):
        aggregate_files(protocol, [tmp_path, tmp_path / "missing.parquet"])
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="workers"):
            aggregate_files(protocol, tmp_path, workers=wrong)
        with pytest.raises(ValueError, match="batch"):
            aggregate_files(protocol, tmp_path, batch=wrong)
    with pytest.raises(TypeError):
        aggregate_files("HRR", tmp_path)
    with pytest.raises(FileNotFoundError):
        read_reports(tmp_path / "missing.parquet", protocol)


# ------------------------------------------------------------------------- each file exactly once


def test_a_copy_counts_once_and_replaces_a_damaged_original(tmp_path):
    protocol = HRR(16, 1.0)
    reports = protocol.privatize(numbers(16))
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_reports(first, protocol, reports)
    shutil.copy(first, second)
    collected = aggregate_files(protocol, tmp_path)
    assert collected.aggregate.n == 200
    assert collected.refused == {str(second): f"holds the same reports as {first}"}
    content = first.read_bytes()
    first.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
    collected = aggregate_files(protocol, tmp_path)
    assert collected.aggregate == protocol.aggregate(reports)
    assert (list(collected.counted), list(collected.refused)) == ([str(second)], [str(first)])


def test_a_file_replaced_while_it_is_counted_is_refused(tmp_path, monkeypatch):
    """Its pieces would be of two files."""
    protocol = HRR(16, 1.0)
    reports = protocol.privatize(numbers(16, 2000), np.random.default_rng(1))
    path, other = tmp_path / "a.parquet", tmp_path / "b"
    write_reports(path, protocol, reports[:1000])
    write_reports(other, protocol, reports[1000:])
    pieces = collection._jobs

    def jobs(*arguments):
        for job in pieces(*arguments):
            os.replace(other, path)
            yield job

    monkeypatch.setattr(collection, "_jobs", jobs)
    collected = aggregate_files(protocol, tmp_path, batch=10)
    assert collected.aggregate.n == 0
    assert collected.refused == {str(path): "it was replaced while it was being counted"}


def test_a_file_made_to_end_like_another_is_noticed(tmp_path):
    """The end of a file does not tell its pages: whoever reads it can make another that ends so."""
    protocol = HRR(256, 1.0)
    honest, liar = tmp_path / "b.parquet", tmp_path / "a.parquet"
    write_reports(
        honest, protocol, protocol.privatize(numbers(256, 3000), np.random.default_rng(1))
    )
    content = honest.read_bytes()
    liar.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    collected = aggregate_files(protocol, tmp_path)
    assert list(collected.counted) == [str(honest)]  # the pages' checksums told
    original = footer_of(honest, protocol)
    assert footer_of(liar, protocol) == original
    assert collection._repeated(str(liar), str(honest), protocol).endswith(
        "not the same: one of them is made up"
    )
    assert (
        collection._repeated(str(honest), str(honest), protocol)
        == f"holds the same reports as {honest}"
    )


def test_resuming_counts_what_is_new_and_nothing_twice(tmp_path):
    protocol = HRR(16, 1.0)
    reports = protocol.privatize(numbers(16, 300), np.random.default_rng(1))
    state, days = tmp_path / "state", tmp_path / "days"
    for day in range(3):
        write_reports(days / f"{day}.parquet", protocol, reports[100 * day : 100 * (day + 1)])
        collected = aggregate_files(protocol, days, resume=state)
        assert collected.aggregate == protocol.aggregate(reports[: 100 * (day + 1)])
        assert len(collected.counted) == day + 1
    later = aggregate_files(protocol, [], resume=state)  # nothing new: what has been counted
    assert (later.aggregate, later.counted) == (collected.aggregate, collected.counted)

    # A file that was counted is replaced by another, or comes again from elsewhere.
    shutil.copy(days / "1.parquet", days / "moved.parquet")
    write_reports(days / "1.parquet", protocol, reports[:50])
    collected = aggregate_files(protocol, days, resume=state)
    assert collected.aggregate == protocol.aggregate(reports)
    assert sorted(collected.refused) == [str(days / "1.parquet"), str(days / "moved.parquet")]

    # A file that was refused is tried again.
    content = (days / "0.parquet").read_bytes()
    other = tmp_path / "other"
    (days / "late.parquet").write_bytes(content[:200])
    assert str(days / "late.parquet") in aggregate_files(protocol, days, resume=state).refused
    write_reports(days / "late.parquet", protocol, reports[:7])
    collected = aggregate_files(protocol, days, resume=state)
    assert collected.counted[str(days / "late.parquet")] == 7

    save_aggregate(other, collected.aggregate)
    for wrong, error in ((other, InvalidFile), (days / "0.parquet", InvalidFile)):
        with pytest.raises(error):
            aggregate_files(protocol, days, resume=wrong)
    message = state.read_bytes()
    for damaged in (b"", message[:-1], message[:50] + b"x" + message[51:]):
        other.write_bytes(damaged)
        with pytest.raises(InvalidFile, match="cut short or changed"):
            aggregate_files(protocol, days, resume=other)
    n = collected.aggregate.n
    for files in (
        [["a", "b", 3, {}]],
        [["a", "b", n, {}], ["a", "c", 0, {}]],
        [["a", "b", n, {}], ["c", "b", 0, {}]],
    ):
        with other.open("wb") as stream:
            collected.aggregate.write(stream, "counted files", files=files)
        with pytest.raises(InvalidFile, match="do not add up"):
            aggregate_files(protocol, days, resume=other)
    with pytest.raises(IncompatibleAggregate, match="alpha"):
        aggregate_files(HRR(16, 2.0), days, resume=state)
    assert state.read_bytes() == message


def test_left_out_reports_are_remembered(tmp_path):
    protocol = HRR(16, 1.0)
    foreign(tmp_path / "x.parquet", protocol, pa.table(GOOD | {"index": pa.array([0], pa.uint8())}))
    for _ in range(2):
        collected = aggregate_files(protocol, tmp_path, resume=tmp_path / "state")
        assert collected.left_out == {str(tmp_path / "x.parquet"): {"impossible": 1}}
        assert collected.counted == {str(tmp_path / "x.parquet"): 0}


def test_what_was_counted_before_an_error_is_kept(tmp_path, monkeypatch):
    protocol = HRR(16, 1.0)
    reports = protocol.privatize(numbers(16, 300), np.random.default_rng(1))
    for k in range(3):
        write_reports(tmp_path / f"{k}.parquet", protocol, reports[100 * k : 100 * (k + 1)])
    absorb = State.absorb

    def interrupted(self, part):
        absorb(self, part)
        raise KeyboardInterrupt

    monkeypatch.setattr(State, "absorb", interrupted)
    for k in range(3):
        with pytest.raises(KeyboardInterrupt):
            aggregate_files(protocol, tmp_path, resume=tmp_path / "state", batch=10)
        assert State(protocol, tmp_path / "state").settled.aggregate.n == 100 * (k + 1)
    monkeypatch.undo()
    assert aggregate_files(
        protocol, tmp_path, resume=tmp_path / "state"
    ).aggregate == protocol.aggregate(reports)


KILLED = """
import sys
from frequency.storage.state import State
from frequency.storage import aggregate_files, load_protocol
protocol = load_protocol("protocol.json")
absorb = State.absorb
def slow(self, part):
    absorb(self, part)
    print("counted", flush=True)
    sys.stdin.readline()
State.absorb = slow
workers = int(sys.argv[1])
collected = aggregate_files(protocol, "reports", workers=workers, resume="state", batch=300)
print(collected.aggregate.n)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_worker_killed_loses_nothing(tmp_path):
    protocol = HRR(64, 1.0)
    for k in range(4):
        write_reports(
            tmp_path / f"{k}.parquet",
            protocol,
            protocol.privatize(numbers(64, 500), np.random.default_rng(k)),
        )
    with pytest.raises(OSError, match="ended in the middle"):
        aggregate_files(Dying(64, 1.0), tmp_path, workers=2, resume=tmp_path / "state", batch=500)
    assert aggregate_files(protocol, tmp_path, resume=tmp_path / "state").aggregate.n == 2000


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
@pytest.mark.parametrize(("workers", "kills"), [(1, 12), (2, 3)])
def test_killed_at_random_moments(workers, kills, tmp_path):
    protocol = HRR(64, 1.0)
    reports = protocol.privatize(numbers(64, 45_000), np.random.default_rng(1))
    parts = np.array_split(reports, 150)
    for k, part in enumerate(parts):
        write_reports(tmp_path / "reports" / f"{k}.parquet", protocol, part)
    save_protocol(tmp_path / "protocol.json", protocol)
    random, counted = np.random.default_rng(1), []
    for _ in range(kills):
        run = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(workers)],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with run:
            for _ in range(random.integers(1, 8)):
                assert run.stdout.readline() == "counted\n"
                run.stdin.write("go on\n")
                run.stdin.flush()
            time.sleep(random.uniform(0, 0.01))
            run.send_signal(signal.SIGKILL)
        if (tmp_path / "state").exists():
            state = State(protocol, tmp_path / "state")
            done = [
                reports[:0],
                *(parts[int(os.path.basename(path)[:-8])] for path in state.files),
            ]
            assert state.settled.aggregate == protocol.aggregate(np.concatenate(done))
            counted.append(len(state.files))
    assert counted == sorted(counted)
    assert len(set(counted)) > 1  # kills did come in the middle
    collected = aggregate_files(protocol, tmp_path / "reports", resume=tmp_path / "state")
    assert collected.aggregate == protocol.aggregate(reports)
    assert len(collected.counted) == 150


# ---------------------------------------------------------------------------- aggregates as files


def test_an_aggregate_is_what_it_was(tmp_path):
    protocol = OLH(50, 1.0)
    aggregate = protocol.aggregate(protocol.privatize(numbers(50)))
    path = tmp_path / "aggregate"
    save_aggregate(path, aggregate)
    assert load_aggregate(path, protocol) == aggregate
    with pytest.raises(IncompatibleAggregate):
        load_aggregate(path, OLH(50, 2.0))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IncompatibleAggregate):
        load_aggregate(path, protocol)
