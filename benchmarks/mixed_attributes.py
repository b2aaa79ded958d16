"""Categorical and ordered attributes in one collection: WaveGrid, told which are which, and not.

Errors of random conjunctions over one, two and three attributes, of half of the values of each:
ranges of ordered attributes, sets of categories. Of few attributes CALM, too, fitted as one model.
With ``--adult`` the census extract at this path, as CSV with a header line, its numbers in at most
100 bins.

python benchmarks/mixed_attributes.py [--adult FILE] [--users N] [--repeats R] [--epsilons E ...]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from frequency import Between
from frequency.marginals import CALM, Domain
from mechdesign.evaluate import EstimatedBy, evaluate
from rangeq.grids import WaveGrid

BINS = 100
LAMBDAS = (1, 2, 3)
QUERIES = 60

Table = dict[str, np.ndarray]


def census(path: str) -> tuple[Table, list[str]]:
    """Columns as values 0, 1, ..., and the names of those that are categorical."""
    import pandas as pd

    columns, named = {}, []
    for name, column in pd.read_csv(path, skipinitialspace=True).items():
        if not pd.api.types.is_numeric_dtype(column):
            columns[str(name)] = pd.factorize(column, sort=True)[0]
            named.append(str(name))
        elif name != "fnlwgt":  # weights of the sample, and nothing of a person's
            values = column.to_numpy(float)
            width = max(1.0, np.ceil((np.quantile(values, 0.99) - values.min()) / (BINS - 1)))
            binned = np.minimum((values - values.min()) // width, BINS - 1)
            columns[str(name)] = binned.astype(np.int64)
    return columns, named


def staff(users: int, rng: np.random.Generator) -> tuple[Table, list[str]]:
    """Jobs that have ages of their own, towns that have jobs, and a yes or no."""
    job = rng.choice(9, size=users, p=np.array([30, 20, 14, 10, 8, 7, 5, 4, 2]) / 100)
    middle = np.array([20, 5, 26, 12, 3, 22, 9, 15, 28])[job]
    age = np.clip(np.rint(rng.normal(middle, 4.0)), 0, 29).astype(np.int64)
    town = np.where(rng.random(users) < 0.6, (job * 5) % 12, rng.integers(0, 12, users))
    smokes = (rng.random(users) < np.where(np.isin(job, [1, 4, 6]), 0.7, 0.2)).astype(np.int64)
    return {"age": age, "job": job, "smokes": smokes, "town": town}, ["job", "town"]


def queries(sizes: dict[str, int], named: list[str], several: int, seed: int) -> list[Any]:
    """Of half of the values of each of some attributes."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(QUERIES):
        where: dict[str, Any] = {}
        for name in rng.choice(list(sizes), several, replace=False).tolist():
            half = max(1, sizes[name] // 2)
            if name in named:
                where[name] = sorted(rng.choice(sizes[name], half, replace=False).tolist())
            else:
                first = int(rng.integers(0, sizes[name] - half + 1))
                where[name] = Between(first, first + half - 1)
        found.append(where)
    return found


def fitted_calm(domain: Domain, epsilon: float) -> EstimatedBy:
    protocol = CALM(domain, 3, epsilon)
    return EstimatedBy(protocol, lambda aggregate: protocol.estimate(aggregate).fitted())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adult", help="the census extract, as CSV")
    parser.add_argument("--users", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 4.0])
    given = parser.parse_args()
    populations = {"staff": staff(100_000, np.random.default_rng(1))}
    if given.adult:
        populations["census"] = census(given.adult)
    print("| data | attributes of a query | epsilon | protocol | error | +- | covered |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for title, (table, named) in populations.items():
        sizes = {name: int(column.max()) + 1 for name, column in table.items()}
        protocols: dict[str, Callable[[float], Any]] = {
            "WaveGrid": partial(WaveGrid, sizes, categorical=named),
            "WaveGrid, all ordered": partial(WaveGrid, sizes),
        }
        if len(sizes) < 6:
            protocols["CALM, fitted"] = partial(fitted_calm, Domain(sizes))
        asked = {str(several): queries(sizes, named, several, several) for several in LAMBDAS}
        found = evaluate(
            protocols, {title: table}, asked, given.epsilons, given.repeats, users=given.users
        )
        for row in found.summary():
            covered = "-" if np.isnan(row.covered) else f"{row.covered:.2f}"
            print(
                f"| {title} | {row.queries} | {row.epsilon:g} | {row.protocol} | {row.error:.4f} |"
                f" {row.standard_error:.4f} | {covered} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
