"""Samples of grid estimates, each of another likely distribution: coverage of their intervals.

Six attributes of 64 values, ranges with random ends of one, two and four of them. For each system
how often 95 % intervals of `frequency.of_samples` hold the truth, and root mean square errors: of
the mean of all samples, of the estimate's one `sample` of as many records as users, and, which both
are in parts of, of the estimate's answers. With real data too, diamonds and flights as in
`real_grids.py`. Prints a Markdown table.

python benchmarks/grid_samples.py [--quick] [--systems NAME ...] [--sets NAME ...] [--repeats N]
    [--epsilons E ...] [--users N] [--samples M] [--records N]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from grids import SETS, SIZE, queries
from range_queries import one_core, table
from real_grids import binned, diamonds, flights

from frequency import of_samples
from rangeq.grids import (
    HDG,
    LHIO,
    TDG,
    HaarHRR2D,
    HierarchicalHistogram2D,
    RangeCALM,
    WaveGrid,
)

SYSTEMS = {
    kind.__name__: kind
    for kind in (TDG, HDG, RangeCALM, LHIO, HierarchicalHistogram2D, HaarHRR2D, WaveGrid)
}
REAL: dict[str, Callable[[], dict[str, Any]]] = {"diamonds": diamonds, "flights": flights}
SEVERAL, QUERIES = (1, 2, 4), 150


def records_of(name: str, users: int, rng: np.random.Generator) -> np.ndarray:
    if name not in REAL:
        return SETS[name](rng, users)
    columns = np.stack(list(binned(REAL[name]()).values()), axis=1)
    return columns[rng.integers(0, len(columns), users)]


def shares(records: np.ndarray, asked: tuple[np.ndarray, ...]) -> np.ndarray:
    """Which part of the records is in each query."""
    columns = np.ascontiguousarray(records.T.astype(np.int8))
    found = []
    for places, left, right in zip(*asked, strict=True):
        inside = np.ones(len(records), dtype=bool)
        for place, first, last in zip(places, left, right, strict=True):
            inside &= (columns[place] >= first) & (columns[place] <= last)
        found.append(inside.mean())
    return np.array(found)


def measured(name: str, system: str, epsilon: float, given: Any, seed: int) -> np.ndarray:
    """Coverage, and errors of the mean, of `sample` and of answers: (queries' sizes, 4)."""
    rng = np.random.default_rng(seed)
    records = records_of(name, given.users, rng)
    protocol = SYSTEMS[system]([SIZE] * records.shape[1], epsilon, given.users)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    samples = estimate.samples(given.records, given.samples, rng)
    one = estimate.sample(given.users, rng)
    rows = []
    for several in SEVERAL:
        asked = queries(rng, several, QUERIES, "random", records.shape[1])
        true = shares(records, asked)
        values = np.array([shares(one, asked) for one in samples])
        told = of_samples(values)
        low, high = told.interval(0.95)
        errors = [told.value - true, shares(one, asked) - true, estimate.answers(*asked) - true]
        covered = np.mean((low <= true) & (true <= high))
        rows.append([covered, *(np.mean(error**2) for error in errors)])
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="HDG, Normal, 30,000 users, once")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=["TDG", "HDG"])
    names = [*SETS, *REAL]
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=names,
        default=["Normal", "mixture", "skewed", "points", "uniform", *REAL],
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    parser.add_argument("--users", type=int, default=300_000)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--records", type=int, default=30_000)
    given = parser.parse_args()
    if given.quick:
        given.systems, given.sets, given.repeats, given.users = ["HDG"], ["Normal"], 1, 30_000
    one_core()
    rows = []
    for system in given.systems:
        for name in given.sets:
            for epsilon in given.epsilons:
                found = np.mean(
                    [measured(name, system, epsilon, given, seed) for seed in range(given.repeats)],
                    axis=0,
                )
                mean, one, answers = np.sqrt(found[:, 1:].T)
                rows.append(
                    [
                        system,
                        name,
                        f"{epsilon:g}",
                        " / ".join(f"{covered:.2f}" for covered in found[:, 0]),
                        " / ".join(f"{error:.4f}" for error in answers),
                        " / ".join(f"{ratio:.2f}" for ratio in mean / answers),
                        " / ".join(f"{ratio:.2f}" for ratio in one / answers),
                    ]
                )
    table(
        f"Queries about {' / '.join(map(str, SEVERAL))} attributes, n = {given.users}:"
        f" {given.samples} samples, {given.repeats} collections",
        ["system", "records", "epsilon", "covered", "answers err", "mean", "`sample`"],
        rows,
    )


if __name__ == "__main__":
    main()
