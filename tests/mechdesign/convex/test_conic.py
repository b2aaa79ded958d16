"""Solving by conic solvers changes nothing of the process."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

from mechdesign.convex.relaxation import _solved


def test_threads_leave_the_filters_of_warnings_as_they_were() -> None:
    class Problem:
        status = "optimal"

        def __init__(self, meanwhile: Callable[[], None]) -> None:
            self.meanwhile = meanwhile

        def solve(self, **_: object) -> None:
            self.meanwhile()

    first, second = threading.Event(), threading.Event()

    def early() -> None:
        first.set()
        second.wait(1)

    def late() -> None:
        second.set()
        threads[0].join(1)

    def solve(meanwhile: Callable[[], None]) -> None:
        if meanwhile is late:
            first.wait(10)
        _solved(Problem(meanwhile))

    before = list(warnings.filters)
    threads = [threading.Thread(target=solve, args=[one]) for one in (early, late)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before
