"""Costs of a million reports, and of a billion users a day: writes docs/scale.md.

    python benchmarks/scale.py                     about fifteen minutes, 2 GiB of disk
    python benchmarks/scale.py --quick --out /dev/stdout

Every measurement is made in its own process. CPU seconds are those of all its threads and
children, best of three; memory is the largest resident set of it or of a child, with all libraries.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import platform
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    HadamardCountMeanSketch,
    ProjectiveGeometry,
    SubsetSelection,
)
from frequency.heavy import PrefixExtension
from frequency.marginals import Domain, InpHT
from frequency.storage import aggregate_files, write_reports
from rangeq import CircularHistogram, HaarHRR, HierarchicalHistogram
from rangeq.grids import HDG, best

EPSILON = 1.0
FILES = 10
DAY = 86_400
USERS = 10**9


def protocols() -> dict[str, tuple[Any, tuple[int, ...]]]:
    """What is measured, and the number of values of each attribute of its users."""
    pages, attributes = 1 << 16, {"age": 128, "income": 64, "hours": 64, "years": 32}
    return {
        "GRR, 64 items": (GRR(64, EPSILON), (64,)),
        "OUE, 1024 items": (OUE(1024, EPSILON), (1024,)),
        "SubsetSelection, 1024 items": (SubsetSelection(1024, EPSILON), (1024,)),
        "HRR, 65536 items": (HRR(pages, EPSILON), (pages,)),
        "OLH, 65536 items": (OLH(pages, EPSILON), (pages,)),
        "ProjectiveGeometry, 65536 items": (ProjectiveGeometry(pages, EPSILON), (pages,)),
        "HadamardCountMeanSketch, 2^32 items": (
            HadamardCountMeanSketch(1 << 32, EPSILON),
            (1 << 32,),
        ),
        "HH4 of HRR, 2^20 values": (HierarchicalHistogram(1 << 20, EPSILON, 4, "HRR"), (1 << 20,)),
        "HaarHRR, 2^20 values": (HaarHRR(1 << 20, EPSILON), (1 << 20,)),
        "CircularHistogram, 1024 values": (CircularHistogram(1024, EPSILON), (1024,)),
        "InpHT, 16 binary attributes, k = 2": (
            InpHT(Domain.binary(*"abcdefghijklmnop"), 2, EPSILON),
            (2,) * 16,
        ),
        "PrefixExtension, 64 bits": (PrefixExtension(64, EPSILON), (1 << 40,)),
        "HDG, 4 attributes": (HDG(attributes, EPSILON, 10**6), tuple(attributes.values())),
        "WaveGrid, 4 attributes": (best(attributes, EPSILON, 10**6), tuple(attributes.values())),
    }


REQUIRED = {"HRR, 65536 items": 20.0, "OLH, 65536 items": 10.0, "HH4 of HRR, 2^20 values": 5.0}
"""Million reports a second and core that reading and counting are to reach."""


class Cost(NamedTuple):
    """Of one step: wall and CPU seconds, and bytes of memory."""

    wall: float
    cpu: float
    memory: int


def cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def memory() -> int:
    return 1024 * max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of this module in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def users(sizes: tuple[int, ...], n: int) -> Any:
    """Values that get rarer, as real ones do."""
    rng = np.random.default_rng(1)
    columns = [np.minimum(rng.geometric(min(0.5, 8 / size), n) - 1, size - 1) for size in sizes]
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def written(name: str, n: int, place: Path, secure: bool) -> tuple[Cost, int]:
    """Write the reports of n users to files, a million at a time.

    Returns what the devices' part costs, and the bytes.
    """
    protocol, sizes = protocols()[name]
    values, step = users(sizes, min(n, 10**6)), n // FILES
    spent = Cost(0.0, 0.0, 0)
    for k in range(FILES):

        def reports(k: int = k) -> Any:
            nonlocal spent
            for start in range(0, step, len(values)):
                wall, used = time.perf_counter(), cpu()
                part = protocol.privatize(
                    values[: step - start], None if secure else np.random.default_rng([k, start])
                )
                spent = Cost(spent.wall + time.perf_counter() - wall, spent.cpu + cpu() - used, 0)
                yield part

        write_reports(place / f"collector={k}" / "reports.parquet", protocol, reports())
    return spent, sum(path.stat().st_size for path in place.rglob("*.parquet"))


def counted(name: str, place: Path, workers: int) -> Cost:
    """Read and count the files."""
    protocol, _ = protocols()[name]
    aggregate_files(protocol, place / "collector=0", workers=workers)  # processes, tables, caches
    wall, used = time.perf_counter(), cpu()
    aggregate_files(protocol, place, workers=workers)
    spent = time.perf_counter() - wall
    return Cost(spent, cpu() - used, memory())


def estimated(name: str, place: Path) -> tuple[Cost, int]:
    """Estimate everything that the protocol is for; and the bytes of the aggregate."""
    protocol, _ = protocols()[name]
    aggregate = aggregate_files(protocol, place).aggregate
    wall, used = time.perf_counter(), cpu()
    if hasattr(protocol, "find"):
        protocol.find(aggregate)
    elif not isinstance(protocol, HadamardCountMeanSketch):
        protocol.estimate(aggregate)
    else:
        protocol.estimate(aggregate, np.arange(1000))
    return Cost(time.perf_counter() - wall, cpu() - used, memory()), len(aggregate.to_bytes())


def best_of(repeats: int, function: Callable[..., Any], *arguments: Any) -> Cost:
    found = [alone(function, *arguments) for _ in range(repeats)]
    return Cost(
        min(cost.wall for cost in found),
        min(cost.cpu for cost in found),
        max(cost.memory for cost in found),
    )


def table(headings: list[str], rows: list[list[str]]) -> str:
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in [headings, ["---"] * len(headings), *rows]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="few reports: shows that everything runs"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("docs/scale.md"),
        help="the page to write (default: docs/scale.md)",
    )
    parser.add_argument(
        "--place",
        type=Path,
        help="where to put the files of reports (default: the system's temporary directory)",
    )
    options = parser.parse_args()
    many, some = (10**6, 10**5) if options.quick else (10**8, 4 * 10**6)
    repeats = 1 if options.quick else 3
    costs = []
    rates: list[tuple[str, int, Cost, Cost]] = []
    for name in tqdm(protocols(), unit="protocol"):
        protocol, _ = protocols()[name]
        n = many if name in REQUIRED else some
        place = Path(tempfile.mkdtemp(dir=options.place))
        try:
            client, stored = alone(written, name, n, place, False)
            counting = best_of(repeats, counted, name, place, 1)
            estimating, state = alone(estimated, name, place)
            if name in REQUIRED:
                two = best_of(repeats, counted, name, place, 2)
                rates.append((name, n, counting, two))
        finally:
            shutil.rmtree(place)
        costs.append(
            [
                name,
                protocol.report_dtype.itemsize,
                client.cpu / n,
                stored / n,
                counting,
                n,
                state,
                estimating,
            ]
        )
    page = PAGE.format(
        machine=f"{os.cpu_count()} cores, {platform.machine()}",
        versions=(
            f"Python {platform.python_version()}, numpy {version('numpy')}, pyarrow"
            f" {version('pyarrow')}"
        ),
        quick="**A quick run, with too few reports to judge by.**\n\n" if options.quick else "",
        rates=table(
            [
                "protocol",
                "reports",
                "M/s a core",
                "required",
                "memory, MiB",
                "two processes: times as fast",
            ],
            [
                [
                    name,
                    f"{n:.0e}".replace("e+0", " x 10^"),
                    f"{n / one.cpu / 1e6:.1f}",
                    f"{REQUIRED[name]:g}",
                    f"{one.memory / 2**20:.0f}",
                    f"{one.wall / two.wall:.2f}",
                ]
                for name, n, one, two in rates
            ],
        ),
        costs=table(
            [
                "protocol",
                "bytes sent",
                "bytes stored",
                "devices, CPU s",
                "reading and counting, CPU s",
                "memory, MiB",
                "aggregate, KiB",
                "estimate, s",
            ],
            [
                [
                    name,
                    f"{size}",
                    f"{stored:.2f}",
                    f"{client * 1e6:.3f}",
                    f"{counting.cpu / n * 1e6:.3f}",
                    f"{counting.memory / 2**20:.0f}",
                    f"{state / 1024:.0f}",
                    f"{estimating.cpu:.2f}",
                ]
                for name, size, client, stored, counting, n, state, estimating in costs
            ],
        ),
        day=table(
            [
                "protocol",
                "received, GB a day",
                "mean Mbit/s",
                "stored, GB a day",
                "CPU minutes a day",
                "reads at, MB/s",
            ],
            [
                [
                    name,
                    f"{size * USERS / 1e9:.1f}",
                    f"{size * USERS * 8 / DAY / 1e6:.2f}",
                    f"{stored * USERS / 1e9:.1f}",
                    f"{counting.cpu / n * USERS / 60:.1f}",
                    f"{stored * n / counting.cpu / 1e6:.0f}",
                ]
                for name, size, client, stored, counting, n, state, estimating in costs
            ],
        ),
    )
    options.out.write_text(page, encoding="utf-8")
    print(f"wrote {options.out}", file=sys.stderr)


PAGE = """# Millions of reports, on one machine

The costs of reports, measured by `python benchmarks/scale.py` on {machine}; {versions}.
All at epsilon = 1.

{quick}## From files to an aggregate

`aggregate_files` on ten Parquet files: reading, checking and counting. "A core" divides by the CPU
seconds of one process; memory is its largest resident set, with all libraries; the last column
compares wall times of one process and of two, which had begun (that takes 0.3 s).

{rates}

## A million reports

CPU seconds on one core for a million reports, in bulk. "Devices" is `privatize` with seeded
randomness, for simulations; a real device makes one report, in microseconds. Stored bytes are those
of a Parquet file with all its overheads. Fewer bytes are stored than sent where the fields of a
report are wider than their values. An aggregate's size and the time of an estimate do not depend on
the number of users.

{costs}

## A billion users a day

The same numbers times a thousand: one report from each of 10^9 users, every day.

{day}

One core can count each of these many times in a day. The servers that receive the reports have to
be large, not those that count them. The arithmetic assumes that

- reports come in files of at least about 10^5 each: a file costs about a millisecond, and
  more where the aggregate is large;
- each core can read the files at the rate of the last column; a network file system may be slower,
  and is then the limit;
- receiving a report, one request each over TLS, is not counted here: it costs far more than all
  of the above, for any report;
- peaks in a day stay below the capacity of the spare cores;
- counting goes on as files arrive (`resume`), or in one run: the integers are the same.

Several processes or machines divide the CPU minutes (`workers`, `client`), since aggregates are
merged by addition.
"""


if __name__ == "__main__":
    main()
