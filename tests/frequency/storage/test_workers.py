"""Processes that share the work: they end when their parent does, and what they lose is said."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from frequency import HRR
from frequency.exceptions import WorkersLost
from frequency.storage import aggregate_files, save_protocol, write_reports
from frequency.storage.workers import Here, in_order, processes
from tests.contracts.examples import numbers
from tests.frequency.storage.dying import Dying
from tests.processes import heard

PARENT = """
import sys, time
from frequency.storage import aggregate_files, load_protocol, workers
from frequency.storage.collection import State
workers._IDLE = 3600  # whoever ends does so with the parent
absorb = State.absorb
def slow(self, part):
    absorb(self, part)
    print("counted", flush=True)
    time.sleep(0.05)
State.absorb = slow
aggregate_files(load_protocol("protocol.json"), "reports", workers=2, resume="state", batch=30)
"""


def session(leader):
    """The processes of a session that still run."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if place.name.isdigit() and int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(place.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP", "SIGINT"])
def test_workers_end_with_their_parent(name, tmp_path):
    protocol = HRR(64, 1.0)
    for k in range(300):
        reports = protocol.privatize(np.arange(20) % 64, np.random.default_rng(k))
        write_reports(tmp_path / "reports" / f"{k}.parquet", protocol, reports)
    save_protocol(tmp_path / "protocol.json", protocol)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as run:
        assert heard(run) == "counted"
        assert len(session(run.pid)) >= 3
        if name == "SIGINT":  # as a terminal does: to all of them
            os.killpg(run.pid, signal.SIGINT)
        else:
            run.send_signal(getattr(signal, name))
        run.wait()
        ended = time.monotonic()
        while session(run.pid) and time.monotonic() < ended + 60:
            time.sleep(0.1)
        left = session(run.pid)
        for process in left:
            os.kill(process, signal.SIGKILL)
        assert left == []
        if name == "SIGINT":  # one traceback, the parent's
            assert run.stderr is not None
            assert run.stderr.read().count("KeyboardInterrupt") == 1
    collected = aggregate_files(protocol, tmp_path / "reports", resume=tmp_path / "state")
    assert (collected.aggregate.n, collected.refused) == (6000, {})


def fatal(argument):
    if argument == 3:
        os._exit(1)
    return argument


@pytest.mark.slow
def test_a_process_that_ends_is_an_error_of_this_library():
    with pytest.raises(WorkersLost, match="ended in the middle"), processes(2) as pool:
        list(in_order(pool, fatal, iter(range(5))))


def test_calls_are_made_ahead_and_their_results_come_in_order():
    begun = []

    class Wide(Here):
        def width(self):
            return 3

    def square(k):
        begun.append(k)
        return k * k

    results = in_order(Wide(), square, iter(range(6)))
    assert begun == []
    assert (next(results), begun) == (0, [0, 1, 2])
    assert (next(results), begun) == (1, [0, 1, 2, 3])
    assert list(results) == [4, 9, 16, 25]


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
