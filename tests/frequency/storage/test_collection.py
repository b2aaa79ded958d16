"""Files are counted each exactly once, in any order; however the counting is interrupted, to go on
ends in the exact counts.

And what a terminal shows meanwhile.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import rangeq
from frequency import GRR, HRR
from frequency.storage import (
    aggregate_files,
    batch_file,
    collection,
    parquet,
    read_reports,
    save_protocol,
    write_reports,
)
from frequency.storage import collection as state
from frequency.storage.collection import State
from frequency.storage.protocol_file import SUFFIXES, file_of
from tests.contracts.examples import numbers
from tests.processes import heard, tell

INTERRUPTED = (
    "collection.py",
    "counting.py",
    "state.py",
    "workers.py",
    "aggregate.py",
    "formats.py",
    "batch_file.py",
    "line_file.py",
)


class Interrupt:
    """Raises KeyboardInterrupt before the k-th line that is run of some modules, once."""

    def __init__(self, k):
        self.left = k

    def __call__(self, frame, event, _):
        if os.path.basename(frame.f_code.co_filename) not in INTERRUPTED:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self)

    def __exit__(self, *_):
        sys.settrace(self.before)


class Meter:
    """Keeps what is said of progress."""

    def __init__(self, description, total, unit):
        self.total, self.updates = total, []
        meters.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, done):
        self.updates.append(done)


meters: list[Any] = []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize(
    "endings",
    [[".parquet"] * 4, [".parquet", ".b64", ".ldp", ".b64"], [".b64", ".ldp", ".b64", ".ldp"]],
    ids=["parquet", "lines", "batches"],
)
def test_an_interrupt_before_any_line(endings, tmp_path, monkeypatch):
    """Between no two lines is an interruption a bad moment.

    The files: one that was counted the day before, a large one in pieces, and small ones.
    """
    monkeypatch.setattr(state, "_SHARE", 0)  # saved after each task, whatever the clock says
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power is cut
    monkeypatch.setattr(collection, "ProgressMeter", Meter)  # whose threads would outlive it
    monkeypatch.setattr(parquet, "_GROUP", 5)
    monkeypatch.setattr(batch_file, "GROUP", 5)
    protocol = GRR(3, 1.0)
    reports = protocol.privatize(np.arange(40) % 3, np.random.default_rng(1))
    files = [tmp_path / f"{k}{end}" for k, end in enumerate(endings)]
    for path, part in zip(files, np.split(reports, [8, 10, 38]), strict=True):
        write_reports(path, protocol, part)
    kept, now = tmp_path / "kept", tmp_path / "state"
    aggregate_files(protocol, files[0], resume=kept)
    day_before, seen = kept.read_bytes(), set()
    expected = protocol.aggregate(reports)
    k = 1
    while True:
        now.write_bytes(day_before)
        try:
            with Interrupt(k):
                aggregate_files(protocol, files, resume=now, batch=2)
            break
        except KeyboardInterrupt:
            pass
        k += 1
        if (content := now.read_bytes()) not in seen:
            seen.add(content)
            again = aggregate_files(protocol, files, resume=now)
            assert again.aggregate == expected
            assert (list(again.refused), sum(again.counted.values())) == ([], 40)
    assert k > 500
    assert len(seen) == 4  # interrupted between any two tasks


SIGNALLED = """
import os, signal, sys, time
import numpy as np
from frequency.storage import aggregate_files, load_protocol, load_aggregate
protocol = load_protocol("protocol.json")
expected = load_aggregate("expected", protocol)
def run():
    return aggregate_files(protocol, "reports", resume="state", batch=300)
begun = time.perf_counter()
assert run().aggregate == expected
took, interrupted, k = time.perf_counter() - begun, 0, 0
while interrupted < 25 and k < 500:
    os.remove("state")
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            run()
        except KeyboardInterrupt:
            os._exit(3)
        os._exit(0)
    time.sleep(took * (interrupted + 0.5) / 25)
    sent = (signal.SIGINT, signal.SIGTERM)[interrupted % 2]
    os.kill(child, sent)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) in (3, -sent):
        interrupted += 1
    else:  # it came too late: a run takes less than was thought
        assert status == 0
        took *= 0.9
    collected = run()
    assert (collected.aggregate == expected, collected.refused) == (True, {}), k
    k += 1
print(interrupted)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_real_signals(tmp_path):
    """Twenty-five that came in time, spread over the run."""
    protocol = HRR(1 << 14, 1.0)
    reports = protocol.privatize(np.arange(24_000) % 999, np.random.default_rng(1))
    for k, part in enumerate(np.split(reports, 30)):
        write_reports(tmp_path / "reports" / f"{k}.parquet", protocol, part)
    save_protocol(tmp_path / "protocol.json", protocol)
    (tmp_path / "expected").write_bytes(protocol.aggregate(reports).to_bytes())
    run = subprocess.run(
        [sys.executable, "-c", SIGNALLED], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == 25


def test_progress_adds_up_to_the_bytes_of_all_files(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP", 100)
    protocol = HRR(16, 1.0)

    def write(name, n, seed):
        reports = protocol.privatize(np.arange(n) % 16, np.random.default_rng(seed))
        write_reports(tmp_path / name, protocol, reports)
        return (tmp_path / name).stat().st_size

    small = write("a.parquet", 10, 1), write("b.parquet", 20, 2)
    large = write("c.parquet", 1050, 3)
    alone = write("d.parquet", 60, 4)
    (tmp_path / "e.parquet").write_bytes(b"x" * 77)
    (tmp_path / "f.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    monkeypatch.setattr(collection, "ProgressMeter", Meter)
    monkeypatch.setattr(collection, "_OPENING", 0)
    meters.clear()
    aggregate_files(protocol, tmp_path, batch=50)
    (meter,) = meters
    assert meter.total == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert sum(meter.updates) == meter.total
    # Pieces of 200 reports, whose shares are rounded so that they add up; what is no file or a copy
    # as it is looked at, which is before the file ahead of it is done; small files together.
    ends = [large * n // 1050 for n in (0, 200, 400, 600, 800, 1000, 1050)]
    assert meter.updates == [*np.diff(ends), 77, small[0], alone, sum(small)]


def test_small_files_make_tasks_by_the_time_to_open_them(tmp_path):
    """20,000 files of a few reports are many tasks, and not one or two."""
    protocol = HRR(16, 1.0)
    sizes = {str(k): 1000 for k in range(2000)}
    looks = [parquet.Footer(str(k), (10,), ()) for k in range(2000)]
    now = state.State(protocol, None)
    jobs = list(collection._jobs(sizes, iter(looks), now, 1 << 20, {}, None))
    assert [len(job) for job in jobs] == [1] * 2
    assert [len(job[0]) for job in jobs] == [1022, 978]


def test_files_of_half_a_batch_are_not_held(tmp_path, monkeypatch):
    """What waits for the end of a file, with reports of others, is at most a batch and a half."""
    monkeypatch.setattr(collection, "_OPENING", 0)
    protocol = HRR(16, 1.0)
    held, count = [], HRR.add_counts

    def counted(self, reports, counts=None):
        held.append(len(reports))
        return count(self, reports, counts)

    monkeypatch.setattr(HRR, "add_counts", counted)
    lengths = [30, 49, 50, 51, 199, 40, 45, 20]
    for k, n in enumerate(lengths):
        reports = protocol.privatize(np.arange(n) % 16, np.random.default_rng(k))
        write_reports(tmp_path / f"{k}.parquet", protocol, reports)
    collected = aggregate_files(protocol, tmp_path, batch=100)
    assert collected.aggregate.n == sum(lengths)
    assert sorted(held) == [51, 99, 100, 105, 129]


@pytest.mark.slow
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


@pytest.mark.parametrize("workers", [1, 2])
def test_files_of_every_format_in_one_directory(workers, tmp_path, monkeypatch):
    """Each counts once, today and tomorrow, whatever else is there."""
    monkeypatch.setattr(parquet, "_GROUP", 100)
    monkeypatch.setattr(batch_file, "GROUP", 100)
    protocol, state = rangeq.HaarHRR(64, 1.0), tmp_path / "state"
    reports = protocol.privatize(numbers(64, 12_000), np.random.default_rng(1))
    parts = np.array_split(reports, 24)
    for k, part in enumerate(parts[:12]):
        write_reports(tmp_path / f"day=1/{k}{SUFFIXES[k % 3]}", protocol, part)
    for name in ("x.b64.part", "x.txt", ".x.ldp"):
        (tmp_path / "day=1" / name).write_text("nobody's business")
    for days in (12, 24):
        for batch in (None, 70):
            collected = aggregate_files(protocol, tmp_path, workers, state, batch=batch)
            assert collected.aggregate == protocol.aggregate(np.concatenate(parts[:days]))
            assert (len(collected.counted), collected.left_out) == (days, {})
            assert (len(collected.refused) > 0) == (days == 24)
        for k, part in enumerate(parts[12:]):
            write_reports(tmp_path / f"day=2/{k}{SUFFIXES[k % 3]}", protocol, part)
            copy = tmp_path / f"day=2/again-{k}{SUFFIXES[k % 3]}"
            shutil.copy(tmp_path / f"day=1/{k}{SUFFIXES[k % 3]}", copy)
    assert all(reason.startswith("holds the same") for reason in collected.refused.values())


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
    original = file_of(honest, protocol).outline()
    assert file_of(liar, protocol).outline() == original
    assert collection._repeated(str(liar), str(honest), protocol).endswith(
        "other bytes: it was written anew, or one of them is made up"
    )
    assert (
        collection._repeated(str(honest), str(honest), protocol)
        == f"holds the same reports as {honest}"
    )


KILLED = """
import sys
from frequency.storage.collection import State
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
