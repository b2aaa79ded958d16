"""Releases of prefixes and ranges over many cells: the error, the proved bound, and times.

Prints a Markdown table. Variances are means over all queries in squared users, for rho = 1/2; that
of trees is of real Gaussian noise, equal on all levels, for ranges alone.

python benchmarks/many_cells.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import time
from collections.abc import Iterator

import numpy as np
from range_queries import one_core, table

from mechdesign import ZCDP
from rangeq.central import Hierarchy, workload_optimal

HEAD = (
    "queries",
    "cells",
    "identity",
    "best tree",
    "ours",
    "bound",
    "gap",
    "design, s",
    "release, s",
)


def tree(size: int) -> float:
    """The least variance of trees of equal branching, of which a user changes a number a level."""
    laplace = [Hierarchy(size, 1.0, branching=b) for b in (2, 3, 4, 8, 16)]
    return min(one.average_variance() / 2 / len(one.shares) for one in laplace)


def rows(exponents: list[int]) -> Iterator[list[str]]:
    for name in ("prefixes", "ranges"):
        for exponent in exponents:
            size = 1 << exponent
            start = time.perf_counter()
            design = workload_optimal(name, size, ZCDP("1/2"))
            variance = design.variance
            designed = time.perf_counter()
            rng = np.random.default_rng(1)
            design.release(rng.integers(0, 1000, size), rng)
            released = time.perf_counter()
            identity = (size + 1) / 2 if name == "prefixes" else (size + 2) / 3
            yield [
                name,
                f"2^{exponent}",
                f"{identity:.0f}",
                f"{tree(size):.2f}" if name == "ranges" else "–",
                f"{variance:.2f}",
                f"{design.bound:.2f}",
                f"{100 * design.gap:.2f} %",
                f"{designed - start:.1f}",
                f"{released - designed:.1f}",
            ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 2^14 cells")
    options = parser.parse_args()
    one_core()
    exponents = [12, 14] if options.quick else [12, 14, 16, 18, 20]
    table("Prefixes and ranges over many cells, rho = 1/2", HEAD, rows(exponents))


if __name__ == "__main__":
    main()
