"""Memory of counting files, in this process and in workers, and the speed of workers.

    python benchmarks/collection.py                     some minutes, 300 MB of disk

Every row is measured in its own process. Memory is the largest resident set, with all
libraries; workers, two of them, are asked for theirs.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from frequency import HRR
from frequency.core.protocol import channel_of
from frequency.heavy import PrefixExtension
from frequency.storage import aggregate_files, write_reports
from frequency.storage.workers import processes
from rangeq import CircularHistogram

WAYS = ("one process", "resume", "resume again", "two processes", "Dask")

SELF = resource.RUSAGE_SELF

BATCH = 1 << 18
"""Reports read at a time in the lines of memory: many tasks in few files."""


def protocols() -> dict[str, tuple[Any, int, int, int]]:
    """Protocols, the number of their values, files, and reports in each."""
    return {
        "PrefixExtension, 64 bits": (PrefixExtension(64, 1.0), 1 << 40, 20, 10**6),
        "CircularHistogram, 2^20 values": (CircularHistogram(1 << 20, 1.0), 1 << 20, 10, 400_000),
        "HRR, 65536 items, small files": (HRR(1 << 16, 1.0), 1 << 16, 20_000, 100),
    }


def written(name: str, place: Path) -> None:
    protocol, values, files, each = protocols()[name]
    rng = np.random.default_rng(1)
    reports = protocol.privatize(rng.integers(0, values, min(each, 100_000)), rng)

    def parts() -> Iterator[Any]:
        for start in range(0, each, len(reports)):
            yield reports[: each - start]

    for k in range(files):
        write_reports(place / f"{k}.parquet", protocol, parts())


def memory(*usages: Any) -> int:
    """The most of some processes, or of this one, in MiB."""
    return max(usage.ru_maxrss for usage in usages or [resource.getrusage(SELF)]) >> 10


def counted(name: str, place: Path, way: str, batch: int | None) -> tuple[float, int, int]:
    """Seconds, and the memory of this process and of the largest worker."""
    protocol = protocols()[name][0]
    state = place.with_suffix(".state") if way.startswith("resume") else None
    if way == "Dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            begun = time.perf_counter()
            aggregate_files(protocol, place, client=client, batch=batch)
            seconds = time.perf_counter() - begun
            return seconds, memory(), memory(*client.run(resource.getrusage, SELF).values())
    workers = 2 if way == "two processes" else 1
    if workers == 2:
        aggregate_files(protocol, place / "0.parquet", workers)  # they begin
    begun = time.perf_counter()
    aggregate_files(protocol, place, workers, state, batch=batch)
    seconds, theirs = time.perf_counter() - begun, 0
    if workers == 2:
        with processes(workers) as pool:
            asked = [pool.submit(resource.getrusage, SELF) for _ in range(8)]
            theirs = memory(*map(pool.result, asked))
    return seconds, memory(), theirs


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    print("| protocol | counts, MiB | way | seconds | memory, MiB | of a worker, MiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as top:
        for name, (protocol, *_) in protocols().items():
            place = Path(top) / name.replace(" ", "")
            written(name, place)
            size = 8 * int(np.prod(channel_of(protocol).counts_shape)) / 2**20
            small = name.endswith("small files")
            for way in ("one process", "two processes") if small else WAYS:
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    found = pool.submit(counted, name, place, way, None if small else BATCH)
                    seconds, here, theirs = found.result()
                print(
                    f"| {name} | {size:.0f} | {way} | {seconds:.1f} | {here} | {theirs or ''} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
