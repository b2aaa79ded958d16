"""However the counting of files is interrupted, to go on ends in the exact counts.

And what a terminal shows meanwhile.
"""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from frequency import GRR, HRR
from frequency.storage import (
    aggregate_files,
    collection,
    continues,
    counting,
    parquet,
    save_protocol,
    state,
    write_reports,
)

INTERRUPTED = (
    "collection.py",
    "counting.py",
    "state.py",
    "workers.py",
    "aggregate.py",
    "formats.py",
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_an_interrupt_before_any_line(tmp_path, monkeypatch):
    """Between no two lines is an interruption a bad moment.

    The files: one that was counted the day before, a large one in pieces, and small ones.
    """
    monkeypatch.setattr(state, "_SHARE", 0)  # saved after each task, whatever the clock says
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no power is cut
    monkeypatch.setattr(collection, "ProgressMeter", Meter)  # whose threads would outlive it
    monkeypatch.setattr(parquet, "_GROUP", 5)
    protocol = GRR(3, 1.0)
    reports = protocol.privatize(np.arange(40) % 3, np.random.default_rng(1))
    files = [tmp_path / f"{k}.parquet" for k in range(4)]
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
took, interrupted = time.perf_counter() - begun, 0
for k in range(50):
    os.remove("state")
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            run()
        except KeyboardInterrupt:
            os._exit(3)
        os._exit(0)
    time.sleep(took * (k // 2 + 0.5) / 25)
    os.kill(child, (signal.SIGINT, signal.SIGTERM)[k % 2])
    _, status = os.waitpid(child, 0)
    interrupted += status != 0
    collected = run()
    assert (collected.aggregate == expected, collected.refused) == (True, {}), k
print(interrupted)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_real_signals(tmp_path):
    """Fifty, spread over the run."""
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
    assert int(run.stdout) > 15  # the others came too late


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
    held, count = [], HRR._count

    def counted(self, reports, counts=None):
        held.append(len(reports))
        return count(self, reports, counts)

    monkeypatch.setattr(HRR, "_count", counted)
    lengths = [30, 49, 50, 51, 199, 40, 45, 20]
    for k, n in enumerate(lengths):
        reports = protocol.privatize(np.arange(n) % 16, np.random.default_rng(k))
        write_reports(tmp_path / f"{k}.parquet", protocol, reports)
    collected = aggregate_files(protocol, tmp_path, batch=100)
    assert collected.aggregate.n == sum(lengths)
    assert sorted(held) == [51, 99, 100, 105, 129]


def test_counts_travel_in_few_bytes():
    for most, dtype in ((127, np.int8), (128, np.int16), (1 << 15, np.int32), (1 << 31, np.int64)):
        for counts in (np.array([most, 0]), np.array([-most - 1, 3])):
            assert np.array_equal(counting.narrowed(counts), counts)
        assert counting.narrowed(np.array([most])).dtype == dtype
        first = counting.Part(counting.narrowed(np.array([most, 1])), ())
        assert counting.merge(first, first).counts.tolist() == [2 * most, 2]
    assert counting.narrowed(np.array([-129])).dtype == np.int16


def test_an_aggregate_that_continues_another():
    protocol = HRR(64, 1.0)
    reports = protocol.privatize(np.arange(3000) % 64, np.random.default_rng(1))
    first, both = protocol.aggregate(reports[:1000]), protocol.aggregate(reports)
    other = protocol.aggregate(protocol.privatize(np.arange(2900) % 7, np.random.default_rng(2)))
    assert continues(protocol, both, first)
    assert continues(protocol, both, both)
    assert not continues(protocol, first, both)
    assert not continues(protocol, both, other)
    foreign = HRR(64, 2.0).aggregate(reports[:10])
    for pair in ((both, foreign), (foreign, both)):
        with pytest.raises(ValueError, match="not an aggregate of this protocol"):
            continues(protocol, *pair)
