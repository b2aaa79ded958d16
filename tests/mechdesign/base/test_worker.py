"""A worker computes what it is asked, can be stopped, and does not outlive who made it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from math import factorial, sqrt
from pathlib import Path
from typing import Any

import pytest

from mechdesign.base import Stopped, Worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.stop()


def test_functions_are_called_elsewhere(worker):
    assert worker(factorial, 5) == 120
    assert (pid := worker(os.getpid)) != os.getpid()
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        worker(sqrt, -1)
    assert worker(os.getpid) == pid  # what it raises does not end it


def test_what_takes_long_is_stopped_and_the_next_is_computed(worker):
    said = []

    def ask() -> None:
        with pytest.raises(Stopped):
            worker(time.sleep, 600)
        said.append("stopped")

    pid = worker(os.getpid)
    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.2)  # asked by then
    worker.stop()
    thread.join(60)
    assert said == ["stopped"]
    assert worker(os.getpid) != pid
    pid = worker(os.getpid)
    for _ in range(5):
        worker.stop()  # nothing runs: whoever asks next, at once, is answered by another one
        assert worker(factorial, 3) == 6
    _wait_for_the_end_of(pid)


def test_threads_wait_for_their_turn(worker):
    found = {}

    def ask(number: int) -> None:
        found[number] = worker(factorial, number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {number: factorial(number) for number in range(8)}


def test_it_ignores_an_interrupt(worker):
    """Ctrl-C in a terminal is sent to all processes; the one that asks decides."""
    pid = worker(os.getpid)
    os.kill(pid, signal.SIGINT)
    assert worker(factorial, 4) == 24


@pytest.mark.parametrize("busy", [False, True])
def test_it_ends_with_who_made_it(tmp_path: Path, busy: bool):
    program = f"""
import os, threading, time
from mechdesign.base import Worker
if __name__ == "__main__":
    worker = Worker()
    print(worker(os.getpid), flush=True)
    if {busy}:
        threading.Thread(target=worker, args=(time.sleep, 600), daemon=True).start()
        time.sleep(0.5)
    os.kill(os.getpid(), 9)
"""
    script = tmp_path / "program.py"
    script.write_text(program)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr
    pid = int(run.stdout)
    _wait_for_the_end_of(pid)


def _wait_for_the_end_of(pid: int) -> None:
    end = time.monotonic() + 60
    while _runs(pid):
        assert time.monotonic() < end
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_stop_while_the_process_begins_is_no_error(worker, monkeypatch) -> None:
    kind = multiprocessing.get_context("spawn").Process
    start = kind.start

    def stopped_before_it_starts(process: Any) -> None:
        worker.stop()
        start(process)

    monkeypatch.setattr(kind, "start", stopped_before_it_starts)
    assert worker(sqrt, 9) == 3
