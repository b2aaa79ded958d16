"""Aggregates as files, and the way from files to them: nothing lost, nothing counted twice."""

import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import rangeq
import rangeq.grids
from frequency import HRR, OLH, IncompatibleAggregate
from frequency.storage import (
    aggregate_files,
    collection,
    load_aggregate,
    read_reports,
    save_aggregate,
    save_protocol,
    write_reports,
)
from frequency.storage.parquet import footer_of
from frequency.storage.state import State
from mechdesign import InvalidFile
from tests.contracts.examples import numbers
from tests.frequency.storage.dying import Dying
from tests.frequency.storage.test_parquet import GOOD, foreign
from tests.processes import heard, tell


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
    random, counted = np.random.default_rng(1), list[int]()
    while kills > 0 or len(set(counted)) < 2:  # some kills do come in the middle
        kills -= 1
        run = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(workers)],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with run:
            for _ in range(random.integers(1, 8)):
                assert heard(run) == "counted"
                tell(run, "go on")
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
