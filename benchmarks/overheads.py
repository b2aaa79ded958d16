"""What calls cost beside their arithmetic: one item's report, construction, a few variances.

    python benchmarks/overheads.py            ten seconds
    python benchmarks/overheads.py --quick    four seconds

Prints one Markdown table a section. Times are wall-clock medians of single calls in one run on one
core, after a first call that fills the protocol's caches. Epsilon is 1 unless stated otherwise.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import platform
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
from range_queries import one_core, table

from frequency import GRR
from frequency.heavy import TreeHist
from frequency.marginals import Domain, InpOLH
from mechdesign.privacy import exact_epsilon
from rangeq import HierarchicalHistogram, optimise
from rangeq.grids import HIO, LHIO, HaarHRR2D

EPSILON = 1.0
SIZES = [64] * 6
"""The attributes of the grids."""

Row = Sequence[str]


def median(work: Callable[[], object], repeats: int) -> float:
    """The median time of a call in seconds, a first one left out."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def microseconds(work: Callable[[], object], repeats: int) -> str:
    return f"{median(work, repeats) * 1e6:.1f}"


def one_report(repeats: int) -> Iterator[Row]:
    rng = np.random.default_rng(1)
    protocols: dict[str, tuple[Any, Any]] = {
        "GRR(16)": (GRR(16, EPSILON), 3),
        "TreeHist(32)": (TreeHist(32, EPSILON), [12345]),
        "HaarHRR2D, 6 attributes of 64 values": (HaarHRR2D(SIZES, EPSILON), [[3] * 6]),
        "LHIO, the same": (LHIO(SIZES, EPSILON), [[3] * 6]),
        "HIO, the same": (HIO(SIZES, EPSILON), [[3] * 6]),
    }
    for name, (protocol, item) in protocols.items():
        seeded, secure = (
            microseconds(lambda: protocol.privatize(item, source), repeats)
            for source in (rng, None)
        )
        yield name, seeded, secure


def construction(repeats: int) -> Iterator[Row]:
    yield "GRR(16)", microseconds(lambda: GRR(16, EPSILON), repeats)
    yield (
        "HierarchicalHistogram(1024)",
        microseconds(lambda: HierarchicalHistogram(1024, EPSILON), repeats // 10),
    )
    yield (
        "HaarHRR2D, 6 attributes of 64 values",
        microseconds(lambda: HaarHRR2D(SIZES, EPSILON), max(repeats // 100, 3)),
    )


def times_parsed(work: Callable[[], object]) -> str:
    """How often an epsilon is parsed in a call: of protocols with an epsilon of its own."""
    real, parse = exact_epsilon, Mock(side_effect=exact_epsilon)
    with ExitStack() as stack:
        for module in list(sys.modules.values()):
            if getattr(module, "exact_epsilon", None) is real:
                stack.enter_context(patch.object(module, "exact_epsilon", parse))
        work()
    return str(parse.call_count)


def parsing() -> Iterator[Row]:
    # Each with an epsilon that nothing else here has, since it is parsed only once
    yield "optimise(1024, 1.01, 10^5)", times_parsed(lambda: optimise(1024, 1.01, 100_000))
    yield "HaarHRR2D([64] * 6, 1.02)", times_parsed(lambda: HaarHRR2D(SIZES, 1.02))


def variances(repeats: int) -> Iterator[Row]:
    domain = Domain.binary(*(f"a{k}" for k in range(12)))
    protocol = InpOLH(domain, 4, EPSILON)
    rng = np.random.default_rng(1)
    records = rng.integers(0, 2, (100_000, 12))
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    names = domain.names[:2]
    took = median(lambda: estimate.cells(names).interval(), repeats)
    yield "InpOLH, 2^12 records: intervals of a marginal of 4 cells", f"{took * 1e3:.1f}", ""

    ranges = HierarchicalHistogram(2048, EPSILON)
    frequencies = 1 / np.arange(1, 2049)
    frequencies /= frequencies.sum()
    took = median(lambda: ranges.average_rmse(100_000, frequencies=frequencies), 3)
    tracemalloc.start()
    ranges.average_rmse(100_000, frequencies=frequencies)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield (
        "HierarchicalHistogram(2048): average_rmse with frequencies",
        f"{took * 1e3:.0f}",
        f"{peak / 1e6:.0f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    quick = parser.parse_args().quick
    one_core()
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {load}")
    repeats = 300 if quick else 3000

    table("Parsing", ("call", "epsilons parsed"), parsing())
    head = ("protocol", "seeded, us", "secure, us")
    table("privatize of one item", head, one_report(repeats))
    table("Construction", ("protocol", "us"), construction(repeats))
    table("Variances", ("call", "ms", "peak memory, MB"), variances(5 if quick else 20))


if __name__ == "__main__":
    main()
