"""Single attributes of several: smooth, edged, stepped, spiky and income-like ones, beside MSW.

Six attributes at a time, all independent, so that reports tell nothing of one through another: the
17 kinds of data of `any_data`, and incomes and waiting times, which rise steeply to their mode and
have long tails, what is above the domain in its last value. Ranges with random ends, and the first
values (a fortieth, a twentieth, a tenth and a fifth of the domain). Prints a Markdown table of root
mean square errors, and how often 95 % intervals cover.

python benchmarks/single_attributes.py [--size D] [--users N] [--epsilons E ...] [--repeats R]
    [--each] [--save FILE] [--beside FILE]

``--each`` prints every kind of data by itself; ``--save`` keeps errors as CSV, and ``--beside``
reads such a file: so another version of the package is compared on the same populations.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from any_data import DATA
from range_queries import table
from scipy import stats

from frequency import Between
from mechdesign.evaluate import evaluate
from rangeq.grids import MSW, best

AT_ONCE, QUERIES = 6, 200
SYSTEMS: dict[str, Callable[..., Any]] = {"MSW": MSW, "WaveGrid": best}


def clipped(law: Any, size: int) -> np.ndarray:
    """The last value holds all that is above the domain, the first all below."""
    ends = np.concatenate([[-np.inf], np.arange(1, size) / size, [np.inf]])
    return np.diff(law.cdf(ends))


STEEP = {
    "log-normal 0.4": stats.lognorm(0.4, scale=0.12),
    "log-normal 0.5": stats.lognorm(0.5, scale=0.2),
    "log-normal 0.8": stats.lognorm(0.8, scale=0.2),
    "log-normal 1.2": stats.lognorm(1.2, scale=0.1),
    "gamma 2": stats.gamma(2, scale=0.08),
    "gamma 5": stats.gamma(5, scale=0.03),
    "log-logistic": stats.fisk(3, scale=0.15),
    "inverse Gaussian": stats.invgauss(0.8, scale=0.25),
    "Weibull 1.5": stats.weibull_min(1.5, scale=0.2),
    "Burr": stats.burr12(2.5, 1.5, scale=0.2),
    "Pareto": stats.pareto(2, scale=0.05),
    "exponential, clipped": stats.expon(scale=0.35),
    "bell, clipped": stats.norm(0.5, 0.35),
}


def kinds(size: int) -> dict[str, dict[str, np.ndarray]]:
    """The frequencies of the values, by kind of data."""
    x = (np.arange(size) + 0.5) / size
    found = {
        group: {name: shape(x) / shape(x).sum() for name, shape in own.items()}
        for group, own in DATA.items()
    }
    return {**found, "steep": {name: clipped(law, size) for name, law in STEEP.items()}}


def records(shares: dict[str, np.ndarray], users: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: {
        name: rng.choice(len(own), users, p=own).astype(np.int32) for name, own in shares.items()
    }


def asked(name: str, size: int) -> dict[str, list[dict[str, Between]]]:
    ends = np.sort(np.random.default_rng(1).integers(0, size, (QUERIES, 2)), axis=1)
    first = [{name: Between(0, max(size // part - 1, 0))} for part in (40, 20, 10, 5)]
    return {
        f"{name}: ranges": [{name: Between(a, b)} for a, b in ends.tolist()],
        f"{name}: first": first,
    }


def measured(given: argparse.Namespace) -> dict[tuple[str, str, float, str], tuple[float, float]]:
    """Errors, and how many answers are covered, by data, question, epsilon and system."""
    every = {name: own for group in kinds(given.size).values() for name, own in group.items()}
    names, found = list(every), {}
    for start in range(0, len(names), AT_ONCE):
        some = {name: every[name] for name in names[start : start + AT_ONCE]}
        questions = {key: own for name in some for key, own in asked(name, given.size).items()}
        for system, made in SYSTEMS.items():
            told = evaluate(
                {system: partial(made, dict.fromkeys(some, given.size), n=given.users)},
                {"": records(some, given.users)},
                questions,
                given.epsilons,
                given.repeats,
                users=given.users,
                confidence=0.95 if system == "WaveGrid" else None,
            )
            for row in told.summary():
                name, question = row.queries.split(": ")
                found[name, question, row.epsilon, system] = row.error, row.covered or 0.0
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--each", action="store_true", help="every kind of data by itself")
    parser.add_argument("--save", type=Path, help="a CSV file for the errors")
    parser.add_argument("--beside", type=Path, help="such a file of another version")
    given = parser.parse_args()
    found = measured(given)
    if given.save:
        with given.save.open("w", newline="") as file:
            csv.writer(file).writerows([*key, *map(repr, row)] for key, row in found.items())
    before = {}
    if given.beside:
        with given.beside.open(newline="") as file:
            for name, question, epsilon, system, error, _ in csv.reader(file):
                before[name, question, float(epsilon), system] = float(error)
    rows = []
    for epsilon in given.epsilons:
        for group, own in kinds(given.size).items():
            for title, names in [(name, [name]) for name in own] if given.each else [(group, own)]:
                cells = []
                for question in ("ranges", "first"):
                    keys = [[(name, question, epsilon, one) for name in names] for one in SYSTEMS]
                    errors = [[found[key][0] for key in some] for some in keys]
                    errors.append([before.get(key, np.nan) for key in keys[-1]])
                    covers = [found[key][1] for key in keys[-1]]
                    means = np.exp(np.mean(np.log(errors), axis=1))
                    told = ["-" if np.isnan(mean) else f"{mean:.4f}" for mean in means]
                    cells.append([*told, f"{np.mean(covers):.2f} ({min(covers):.2f})"])
                rows.append([title, f"{epsilon:g}", *map(" / ".join, zip(*cells, strict=True))])
    table(
        f"Root mean square errors of ranges / of the first values of single attributes of"
        f" {given.size} values: geometric means over the kinds of data",
        ["data", "epsilon", *SYSTEMS, "before", "covered (the least)"],
        rows,
    )


if __name__ == "__main__":
    main()
