"""Designs for shuffled reports against published protocols whose reports are shuffled too.

    python benchmarks/shuffle_designs.py            half an hour on one busy core
    python benchmarks/shuffle_designs.py --quick    64 items, prefixes and ranges, 100,000 users

All keep the same (epsilon, delta) of the collection, by `mechdesign.accounting.shuffled`: a
published protocol has the largest local epsilon for which that is proved. Variances are those of
the unbiased estimate of least variance, averaged over queries, for equally frequent items; with
the sampling of levels. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from range_queries import one_core, table
from scipy.optimize import brentq

from frequency import GRR, HRR, OLH, OUE, SUE, ProjectiveGeometry, SubsetSelection
from mechdesign.accounting import shuffled
from mechdesign.local import shuffle_optimal
from rangeq import HaarHRR, HierarchicalHistogram

DELTA = 1e-8

LOCAL = 0.01, 12.0
"""The local epsilons that are tried."""

CASES = [
    (k, n, epsilon)
    for k, n in ((16, 10**5), (64, 10**5), (16, 10**4), (64, 10**4))
    for epsilon in (0.25, 1.0)
] + [(128, 10**5, 0.25)]

MANY = 10**9

WORKLOADS = {"histogram": None, "prefixes": "prefixes", "ranges": "all ranges"}
"""The names of mechdesign, and those of rangeq."""


def rivals(workload: str, k: int) -> Iterator[tuple[str, Callable[[float], Any]]]:
    """Published protocols by name, each as a function of the local epsilon."""
    oracles = GRR, SUE, OUE, SubsetSelection, OLH, HRR, ProjectiveGeometry
    if workload == "histogram":
        for oracle in oracles:
            yield oracle.__name__, partial(oracle, k)
        return
    yield "HaarHRR", partial(HaarHRR, k)
    for branching in sorted({b for b in (2, 4, 8, k) if b <= k}):
        for oracle in (GRR, OUE, SubsetSelection, HRR):
            name = f"{oracle.__name__}, {'flat' if branching == k else f'tree of {branching}'}"
            yield (
                name,
                partial(HierarchicalHistogram, k, branching=branching, oracle=oracle.__name__),
            )


def amplified(make: Callable[[float], Any], n: int, epsilon: float) -> float:
    """The largest local epsilon of which (epsilon, DELTA) is proved, to one in a thousand."""

    def excess(local: float) -> float:
        found = max(shuffled(make(local), n).delta(epsilon), 1e-300)
        return math.sqrt(-2 * math.log(DELTA)) - math.sqrt(-2 * math.log(found))

    least, most = LOCAL
    if excess(most) <= 0:
        return most
    root = float(brentq(excess, max(least, epsilon), most, xtol=1e-3))
    return root if excess(root) <= 0 else root - 1e-3


def variance(protocol: Any, workload: str, k: int) -> float:
    """Of one user, averaged over queries."""
    name = WORKLOADS[workload]
    if name is None:
        return float(protocol.variance(MANY, 1 / k)) * MANY
    return float(protocol.average_rmse(MANY, name)) ** 2 * MANY


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    one_core()
    rows = []
    reached: dict[tuple[str, int, int, float], float] = {}
    for k, n, epsilon in CASES:
        if arguments.quick and (k, n) != (64, 10**5):
            continue
        for workload in WORKLOADS:
            if arguments.quick and workload == "histogram":
                continue
            found = []
            for name, make in rivals(workload, k):
                key = name, k, n, epsilon
                if key not in reached:
                    reached[key] = amplified(make, n, epsilon)
                found.append((variance(make(reached[key]), workload, k), name, reached[key]))
            response = min(value for value, name, _ in found if name in ("GRR", "GRR, flat"))
            best, name, local = min(found)
            start = time.perf_counter()
            design = shuffle_optimal(workload, k, n, epsilon, DELTA)
            seconds = time.perf_counter() - start
            mine = design.variance / design.queries
            rows.append(
                [
                    workload,
                    str(k),
                    f"{n:,}",
                    f"{epsilon:g}",
                    f"{response:.4g}",
                    name,
                    f"{best:.4g}",
                    f"{local:.2f}",
                    f"{mine:.4g}",
                    f"{design.central.local_epsilon:.2f}",
                    f"{100 * (1 - mine / best):.1f} %",
                    f"{design.bound / design.queries:.4g}",
                    str(design.mechanism.outputs),
                    f"{seconds:.1f}",
                ]
            )
            print(" | ".join(rows[-1]), flush=True)
    table(
        f"Variance of one user and query, delta = {DELTA:g}",
        [
            "workload",
            "k",
            "n",
            "epsilon",
            "GRR",
            "best published",
            "its variance",
            "its local epsilon",
            "design",
            "its local epsilon",
            "less",
            "bound",
            "outputs",
            "seconds",
        ],
        rows,
    )


if __name__ == "__main__":
    main()
