"""Linear algebra on one thread."""

import json
import os
import subprocess
import sys

import pytest

from mechdesign.base.numbers import one_thread

PROGRAM = """
import json, numpy
from mechdesign.base.numbers import one_thread
from threadpoolctl import threadpool_info

def threads():
    return sorted({item["num_threads"] for item in threadpool_info() if item["user_api"] == "blas"})

before, within = threads(), one_thread(threads)()
try:
    one_thread(lambda: 1 / 0)()
except ZeroDivisionError:
    print(json.dumps([before, within, threads()]))
"""


def test_there_is_one_within_and_as_many_as_before_afterwards() -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    before, within, after = json.loads(done.stdout)
    assert within == [1]
    assert after == before


def test_the_function_is_otherwise_itself() -> None:
    @one_thread
    def divided(a: int, *, by: int) -> float:
        """A fraction."""
        return a / by

    assert divided(3, by=4) == 0.75
    assert (divided.__name__, divided.__doc__) == ("divided", "A fraction.")


OVERLAPPING = """
import json, threading
from mechdesign.base.numbers import one_thread
from threadpoolctl import threadpool_info
import scipy.linalg

def threads():
    return sorted({item["num_threads"] for item in threadpool_info() if item["user_api"] == "blas"})

before = threads()
first, second, seen = threading.Event(), threading.Event(), []

@one_thread
def early():
    first.set()
    second.wait(10)

@one_thread
def late():
    second.set()
    one.join(10)
    seen.append(threads())

one = threading.Thread(target=early)
two = threading.Thread(target=lambda: first.wait(10) and late())
one.start(), two.start(), one.join(), two.join()
print(json.dumps([before, seen[0], threads()]))
"""


@pytest.mark.slow
def test_functions_that_overlap_leave_as_many_threads_as_there_were() -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")
    }
    done = subprocess.run(
        [sys.executable, "-c", OVERLAPPING],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    before, within, after = json.loads(done.stdout)
    assert within == [1]
    assert after == before
