"""The systems of the paper on grids as it compares with them: errors, and seconds of hierarchies.

Prints Markdown tables.

python benchmarks/published_grids.py [--quick] [--users N] [--costs]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from grids import ATTRIBUTES, SIZE, conjunctions, population, queries
from range_queries import one_core, table

from mechdesign.evaluate import evaluate, mean_absolute
from rangeq.grids import HDG, HIO, LHIO, MSW, TDG, RangeCALM, Uniform

SYSTEMS: dict[str, Callable[..., Any]] = {
    "Uniform": Uniform,
    "MSW": MSW,
    "MSW, smooth": partial(MSW, smooth=True),
    "RangeCALM": RangeCALM,
    "RangeCALM, nonnegative": partial(RangeCALM, nonnegative=True),
    "LHIO": LHIO,
    "LHIO, nonnegative": partial(LHIO, nonnegative=True),
    "TDG": TDG,
    "HDG": HDG,
}
SEVERAL = (2, 4, 6)
COSTS: tuple[tuple[str, Callable[..., Any], int, int], ...] = (
    ("HIO", HIO, 6, 64),
    ("HIO", HIO, 6, 1000),
    ("HIO", HIO, 10, 64),
    ("LHIO", LHIO, 6, 1000),
    ("LHIO", LHIO, 10, 1000),
    ("LHIO, nonnegative", SYSTEMS["LHIO, nonnegative"], 6, 1000),
    ("RangeCALM, nonnegative", SYSTEMS["RangeCALM, nonnegative"], 6, 1000),
)


def seconds(made: Callable[[], Any]) -> tuple[float, Any]:
    """Of the processor: other programs may run beside."""
    start = time.process_time()
    result = made()
    return time.process_time() - start, result


def errors(sets: list[str], epsilons: list[float], users: int) -> None:
    found = evaluate(
        {name: partial(kind, [SIZE] * ATTRIBUTES, n=users) for name, kind in SYSTEMS.items()},
        {name: population(name, users) for name in sets},
        {f"{k}": conjunctions(*queries(np.random.default_rng(k), k)) for k in SEVERAL},
        epsilons,
        repeats=1,
        confidence=None,
        measures={"mean absolute": mean_absolute},
    )
    rows: dict[tuple[str, ...], list[str]] = {}
    for row in found.rows:
        case = row.population, f"{row.epsilon:g}", row.protocol
        rows.setdefault(case, [*case]).append(f"{row.measures['mean absolute']:.4f}")
    table(
        f"Mean absolute error of 200 queries of half of each attribute, {users} users",
        ["records", "epsilon", "system", *(f"{several} attributes" for several in SEVERAL)],
        rows.values(),
    )


def costs(users: int) -> None:
    rows: list[list[str]] = []
    for name, kind, d, c in COSTS:
        rng = np.random.default_rng(d)
        centre = rng.normal(c / 2, c / 8, size=(users, 1))
        records = np.clip(centre + rng.normal(0, c / 16, size=(users, d)), 0, c - 1).astype(int)
        first, protocol = seconds(partial(kind, [c] * d, 1.0))
        client, reports = seconds(partial(protocol.privatize, records, rng))
        count, aggregate = seconds(partial(protocol.aggregate, reports))
        fit, estimate = seconds(partial(protocol.estimate, aggregate))
        answering = []
        for several in (2, 4, 6):
            places = np.argsort(rng.random((200, d)), axis=1)[:, :several]
            left = rng.integers(0, c - c // 2 + 1, size=(200, several))
            ends = left, left + c // 2 - 1
            answering.append(seconds(partial(estimate.answers, places, *ends))[0])
        spent = (first, client, count, fit, *answering)
        numbers = f"{aggregate.counts.size}"
        rows.append([name, f"{d}", f"{c}", numbers, *(f"{x:.2f}" for x in spent)])
    table(
        f"CPU seconds, {users} users, epsilon 1, branching 4",
        [
            "system",
            "d",
            "c",
            "numbers",
            "made",
            "reports",
            "aggregate",
            "estimate",
            *(f"200 answers, {several} attributes" for several in (2, 4, 6)),
        ],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the Normal records, two epsilons")
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--costs", action="store_true", help="the seconds alone")
    given = parser.parse_args()
    one_core()
    if not given.costs:
        sets, epsilons = ["Normal", "Laplace"], [0.2, 0.6, 1.0, 2.0]
        errors(sets[: 1 if given.quick else 2], epsilons[:: 2 if given.quick else 1], given.users)
    costs(given.users)


if __name__ == "__main__":
    main()
