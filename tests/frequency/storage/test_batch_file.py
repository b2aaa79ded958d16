"""Batches in files: whole or refused, of both versions, and known wherever they are copied to."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frequency import GRR, HRR, OLH, InvalidReport
from frequency.storage import (
    RefusedFile,
    aggregate_files,
    batch_file,
    read_reports,
    save_aggregate,
    write_reports,
)
from frequency.storage.protocol_file import file_of
from tests.contracts.examples import WITH_VALUES, numbers
from tests.frequency.core.messages import batch_header, header_of, message

PROTOCOL = HRR(16, 1.0)

OLD = (
    b'LDPF\xca\x00\x00\x00{"count":3,"kind":"reports","parameters":"{\\"alpha\\":\\"1001/2721\\",'
    b'\\"coefficients\\":1,\\"domain\\":16,\\"lie\\":\\"4961093717835373769\\",\\"protocol\\":\\"HRR'
    b'\\",\\"truth\\":\\"13485650355874177847\\"}","version":1}\x0b\xff\x02\x01\x0f\x01'
)
"""A batch as the first version wrote them."""


def some_reports(protocol, n, seed=1):
    return protocol.privatize(numbers(16, n), np.random.default_rng(seed))


@WITH_VALUES
def test_reports_are_what_they_were(protocol, values, tmp_path):
    reports = protocol.privatize(values, np.random.default_rng(2))
    path = tmp_path / "day=1" / "reports.ldp"
    parts = (part for part in np.array_split(reports, 3))
    assert write_reports(path, protocol, parts) == len(reports)
    assert protocol.reports_from_bytes(path.read_bytes()).tobytes() == reports.tobytes()
    (tmp_path / "sent.ldp").write_bytes(protocol.reports_to_bytes(reports))
    assert np.array_equal(read_reports(path, protocol), reports)
    for batch in (7, None):
        collected = aggregate_files(protocol, path, batch=batch)
        assert collected.aggregate == protocol.aggregate(reports)
        assert collected.counted == {str(path): len(reports)}
        assert (collected.refused, collected.left_out) == ({}, {})
    assert aggregate_files(protocol, tmp_path).aggregate.n == 2 * len(reports)


def test_batches_of_the_first_version_are_read(tmp_path):
    path, again = tmp_path / "a.ldp", tmp_path / "b.ldp"
    path.write_bytes(OLD)
    again.write_bytes(OLD)
    found = read_reports(path, PROTOCOL)
    assert found["index"].ravel().tolist() == [11, 2, 15]
    assert found["sign"].ravel().tolist() == [-1, 1, 1]
    collected = aggregate_files(PROTOCOL, tmp_path, resume=tmp_path / "state")
    assert collected.counted == {str(path): 3}
    assert collected.refused == {str(again): f"holds the same reports as {path}"}
    again.write_bytes(OLD[:-1] + b"\xff")  # three others: files without an id
    assert aggregate_files(PROTOCOL, tmp_path, resume=tmp_path / "state").aggregate.n == 6


@pytest.mark.slow
def test_a_large_batch_is_counted_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_file, "GROUP", 50)
    reports, path = some_reports(PROTOCOL, 1234), tmp_path / "a.ldp"
    write_reports(path, PROTOCOL, reports)
    assert file_of(path, PROTOCOL).outline().groups == (50,) * 24 + (34,)
    for workers, batch in ((1, 7), (1, 20), (2, 60)):
        collected = aggregate_files(PROTOCOL, path, workers, batch=batch)
        assert collected.aggregate == PROTOCOL.aggregate(reports)
    file = file_of(path, PROTOCOL)
    found = np.concatenate(list(file.batches([3, 24, 0], 8, None)))
    assert np.array_equal(found, reports[[*range(150, 200), *range(1200, 1234), *range(50)]])


def test_a_header_with_one_id_counts_once_whatever_follows(tmp_path):
    header, body = batch_header(PROTOCOL, count=9), some_reports(PROTOCOL, 9).tobytes()
    other = some_reports(PROTOCOL, 9, 2).tobytes()
    for name, content in {
        "1.ldp": message(header, body[:-1]),
        "2.ldp": message(header, body + b"\0"),
        "3.ldp": message(header, body),
        "4.ldp": message(header, body),
        "5.ldp": message(header, other),
        "6.ldp": message({**header, "id": "f" * 32}, body),
    }.items():
        (tmp_path / name).write_bytes(content)
    collected = aggregate_files(PROTOCOL, tmp_path)
    assert {path[-5:]: n for path, n in collected.counted.items()} == {"3.ldp": 9, "6.ldp": 9}
    third = tmp_path / "3.ldp"
    assert {path[-5:]: reason for path, reason in collected.refused.items()} == {
        "1.ldp": "damaged: 9 reports were announced, which are 18 bytes, and 17 follow",
        "2.ldp": "damaged: 9 reports were announced, which are 18 bytes, and 19 follow",
        "4.ldp": f"holds the same reports as {third}",
        "5.ldp": f"it has the id of {third}, but other bytes: it was written anew, or one of"
        " them is made up",
    }


def test_impossible_reports_are_left_out_and_counted(tmp_path):
    reports, path = some_reports(PROTOCOL, 9), tmp_path / "a.ldp"
    reports["sign"][[2, 5]] = 0
    path.write_bytes(message(batch_header(PROTOCOL, count=9), reports.tobytes()))
    collected = aggregate_files(PROTOCOL, path)
    assert collected.left_out == {str(path): {"impossible": 2}}
    assert collected.aggregate == PROTOCOL.aggregate(np.delete(reports, [2, 5]))
    with pytest.raises(InvalidReport, match="cannot have been sent"):
        read_reports(path, PROTOCOL)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no batch of reports: not a message of this library: it begins with b''"),
        (b"LDPF", "no batch of reports: cut short within the header"),
        (b"hello, world", "no batch of reports: not a message"),
        (b"LDPF\xff\xff\xff\xff{}", "no batch of reports: cut short within the header"),
        (b"LDPF\x02\0\0\0{}", "no batch of reports: version None, this library reads version 1, 2"),
        (message({"version": 3, "kind": "reports"}), "version 3, this library reads version 1, 2"),
        (
            message(batch_header(PROTOCOL, count=-1)),
            r"count must be an integer from 0 to 2\^63 - 1, got -1",
        ),
        (message(batch_header(PROTOCOL, count=2**62)), "damaged: 4611686018427387904 reports"),
        (
            message(batch_header(PROTOCOL, id="x")),
            "id must be an id of 32 hexadecimal digits, got 'x'",
        ),
        (message(batch_header(PROTOCOL, more=1)), "unknown key 'more'"),
        (message(batch_header(HRR(16, 2.0))), "foreign: its reports are of '55"),
        (message(header_of(HRR(16, 2.0))), "foreign: its reports are of .*alpha"),
    ],
)
def test_what_is_no_batch_of_this_protocol_is_refused_by_name(content, reason, tmp_path):
    good, bad = tmp_path / "good.ldp", tmp_path / "bad.ldp"
    write_reports(good, PROTOCOL, reports := some_reports(PROTOCOL, 30))
    bad.write_bytes(content)
    with pytest.raises(RefusedFile, match=reason):
        read_reports(bad, PROTOCOL, Counter())
    collected = aggregate_files(PROTOCOL, tmp_path)
    assert collected.aggregate == PROTOCOL.aggregate(reports)
    assert list(collected.refused) == [str(bad)]


def test_aggregates_are_not_reports(tmp_path):
    """Their files have the same ending; so may what ``resume`` keeps."""
    aggregate = PROTOCOL.aggregate(some_reports(PROTOCOL, 30))
    save_aggregate(tmp_path / "a.ldp", aggregate)
    write_reports(tmp_path / "c.ldp", PROTOCOL, some_reports(PROTOCOL, 30))
    aggregate_files(PROTOCOL, tmp_path / "c.ldp", resume=tmp_path / "b.ldp")
    collected = aggregate_files(PROTOCOL, tmp_path)
    assert collected.aggregate.n == 30
    assert collected.refused == {
        str(tmp_path / "a.ldp"): "no batch of reports: it holds 'aggregate', not reports",
        str(tmp_path / "b.ldp"): "no batch of reports: it holds 'counted files', not reports",
    }


@pytest.mark.parametrize("size", [30, 4])
def test_a_file_that_was_replaced_is_refused(size, tmp_path):
    path = tmp_path / "a.ldp"
    write_reports(path, PROTOCOL, some_reports(PROTOCOL, 30))
    file = file_of(path, PROTOCOL)
    digest = file.outline().digest
    assert sum(map(len, file.batches((0,), 7, Counter(), digest))) == 30
    write_reports(path, PROTOCOL, some_reports(PROTOCOL, size))
    with pytest.raises(RefusedFile, match="it was replaced while it was being counted"):
        next(file.batches((0,), 7, Counter(), digest))


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "a.ldp"
    write_reports(path, PROTOCOL, some_reports(PROTOCOL, 30_000))
    parts = file_of(path, PROTOCOL).batches(None, 10_000, Counter())
    assert len(next(parts)) == 10_000
    with path.open("r+b") as stream:
        stream.truncate(40_000)
    with pytest.raises(RefusedFile, match="replaced"):
        list(parts)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_chopped_and_changed_batches_are_read_as_messages_are_or_refused(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("batches") / "a.ldp"
    protocol = data.draw(st.sampled_from([PROTOCOL, GRR(300, 1.0), OLH(50, 1.0)]))
    header = data.draw(st.sampled_from([header_of, batch_header]))(protocol, count=12)
    content = message(header, some_reports(protocol, 12).tobytes())
    for _ in range(data.draw(st.integers(0, 3))):
        at, to = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        content = content[:at] + data.draw(st.binary(max_size=3)) + content[to:]
    path.write_bytes(content)
    tally, expected = Counter[str](), Counter[str]()
    reports = protocol.reports_from_bytes(content, expected)
    if expected.keys() <= {"impossible"}:
        assert np.array_equal(read_reports(path, protocol, tally), reports)
        assert tally == expected
    else:
        with pytest.raises(RefusedFile):
            read_reports(path, protocol, tally)
        assert aggregate_files(protocol, path).aggregate.n == 0
