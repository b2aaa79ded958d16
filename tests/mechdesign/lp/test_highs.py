"""The solver in floats."""

from __future__ import annotations

import _thread
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import highspy
import numpy as np
import pytest
from scipy import sparse

from mechdesign import Privacy, design, tables
from mechdesign.lp import highs
from mechdesign.properties import WeakHonesty


def program(size: int) -> highs.FloatProgram:
    """An assignment problem with random costs."""
    sums = sparse.kron(sparse.eye(size), np.ones((1, size)))
    both = sparse.csr_array(
        sparse.vstack([sums, sparse.kron(np.ones((1, size)), sparse.eye(size))])
    )
    ones, cost = np.ones(2 * size), np.random.default_rng(size).random(size**2)
    return highs.FloatProgram(both, ones, ones, np.zeros(size**2), cost)


def test_a_design_prints_nothing() -> None:
    program = "from mechdesign import Privacy, design\ndesign(3, Privacy(alpha='1/2'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.slow
def test_designs_in_threads_are_those_of_one() -> None:
    """The solver's own threads share a lock of its class, and refuse each other."""
    asked = [(n, alpha) for n in range(2, 7) for alpha in ("1/2", "9/10")] * 8

    def designed(of: tuple[int, str]) -> Any:
        found = design(of[0], Privacy(alpha=of[1]), properties=[WeakHonesty()])
        return found.mechanism.table, found.certificate.bound

    def released(of: tuple[int, str]) -> str:
        counts, rng = np.arange(20) % (of[0] + 1), np.random.default_rng(of[0])
        found = tables.release(
            counts, np.full(20, of[0]), Privacy(alpha=of[1]), totals=False, rng=rng, cache=False
        )
        return str(found.content())

    for one in (designed, released):
        alone = [one(of) for of in asked[:10]] * 8
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(one, asked)) == alone


def test_an_interrupt_stops_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended before the program goes on, however Python was interrupted while it waited."""
    ended: list[highspy.HighsStatus] = []
    run = highspy.Highs.run

    def interrupted(self: highspy.Highs) -> highspy.HighsStatus:
        time.sleep(0.25)  # the program waits
        _thread.interrupt_main()
        time.sleep(0.25)  # and goes on
        ended.append(run(self))
        return ended[0]

    monkeypatch.setattr(highspy.Highs, "run", interrupted)
    # In a job that a shell has put into the background interrupts are ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            highs.solve(program(20))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended) == 1
