"""A curator's releases: the choice, time and memory, and average variances of boxes.

Prints Markdown tables.

python benchmarks/central_boxes.py [--largest 24]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
import tracemalloc

import numpy as np

from frequency import Between
from mechdesign import plan
from rangeq.central import CentralFlat, CentralMechanism, Hierarchy, Wavelet, best_branching


def kinds(shape: tuple[int, ...]) -> dict[str, CentralMechanism]:
    best = best_branching(shape, 1.0, drawn=False).best.fanouts
    return {
        "flat": CentralFlat(shape, 1.0),
        "best of equal branchings": min(
            (Hierarchy(shape, 1.0, b) for b in range(2, min(max(shape), 64))),
            key=lambda tree: tree.average_variance(),
        ),
        f"best found, {' x '.join(map(str, best))}": Hierarchy(shape, 1.0, best),
        "the same, optimal budget": Hierarchy(shape, 1.0, best, budget="optimal"),
        "wavelet": Wavelet(shape, 1.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=24, help="log2 of the most cells")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    print("Average variance over all boxes, epsilon = 1\n")
    print("| cells | release | average variance | over that of flat |\n| --- | --- | --- | --- |")
    for shape in ((64, 64), (1024, 1024), (100, 37), (16,) * 3, (32,) * 3, (64,) * 3, (8,) * 4):
        flat = CentralFlat(shape, 1.0).average_variance()
        for name, mechanism in kinds(shape).items():
            variance = mechanism.average_variance()
            size = " x ".join(map(str, shape))
            print(f"| {size} | {name} | {variance:.1f} | {variance / flat:.3f} |")
    print("\nTime to choose a release\n")
    print("| cells | chosen | s |\n| --- | --- | --- |")
    for asked in ([121], [1 << 16], [1 << 26], [121, 50], [4096, 4096], [64] * 4, [2] * 8):
        start = time.perf_counter()
        best = plan("curated-ranges", asked, epsilon=1).best
        seconds = time.perf_counter() - start
        print(f"| {' x '.join(map(str, asked))} | {best.protocol} | {seconds:.2f} |")
    print("\nA release, 10,000 boxes with their variances\n")
    print("| cells | release | release, s | boxes, s | peak MB |\n| --- | --- | --- | --- | --- |")
    for shape in ((1024, 1024), (4096, 4096), (256, 256, 256)):
        if math.prod(shape) > 1 << options.largest:
            continue
        counts = rng.integers(0, 100, shape)
        sizes = np.array(shape)[:, None]
        first = rng.integers(0, sizes, (len(shape), 10_000))
        where = dict(enumerate(map(Between, first, rng.integers(first, sizes))))
        for mechanism in (CentralFlat(shape, 1.0), Hierarchy(shape, 1.0, 16), Wavelet(shape, 1.0)):
            mechanism.audit()
            start = time.perf_counter()
            estimate = mechanism.release(counts)
            middle = time.perf_counter()
            estimate.answer(where).interval()
            end = time.perf_counter()
            tracemalloc.start()
            mechanism.release(counts)
            peak = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            size, name = " x ".join(map(str, shape)), type(mechanism).__name__
            row = f"{middle - start:.2f} | {end - middle:.2f} | {peak:.0f}"
            print(f"| {size} | {name} | {row} |", flush=True)


if __name__ == "__main__":
    main()
