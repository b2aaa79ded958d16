"""Smoothed estimates of one attribute on smooth, edged, stepped and spiky data, beside others.

Four errors of each estimate, against the fractions of the users who reported: the mean square over
all ranges, and over all prefixes, the largest error of the distribution function, and the
Wasserstein-1 distance (in domains). Prints Markdown tables of geometric means over the data: of the
errors beside the best of the other protocols, picked in hindsight for each cell, and of the
coverage of 95 % intervals.

python benchmarks/any_data.py [--quick] [--domains D ...] [--epsilons E ...] [--users N]
    [--repeats R] [--protocols NAME ...] [--save FILE] [--beside FILE ...]

``--save`` keeps the errors of every cell as CSV, and ``--beside`` reads such a file: so another
version of the package is compared on the same populations.
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
from range_queries import table

from frequency.postprocess import norm_sub
from mechdesign.evaluate import EstimatedBy, evaluate, mean_square_of_ranges
from rangeq import Between, Distribution, SquareWave, optimise, shaped

SIZES = (1, 20, 5, 2)
"""Ranges of one item and of these parts of the domain are asked for intervals of."""


def bell(x: np.ndarray, centre: float, width: float) -> np.ndarray:
    return np.exp(-(((x - centre) / width) ** 2) / 2) / width


def spikes(domain: int, count: int, ground: float) -> np.ndarray:
    rng = np.random.default_rng(11)
    result = np.full(domain, ground / domain)
    np.add.at(result, rng.integers(0, domain, count), (1 - ground) * rng.dirichlet(np.ones(count)))
    return result


def heaped(x: np.ndarray, step: int, share: float) -> np.ndarray:
    """A bell, of which a share is rounded down to multiples of the step."""
    smooth = bell(x, 0.4, 0.2)
    result = (1 - share) * smooth
    result[::step] += share * np.add.reduceat(smooth, np.arange(0, len(x), step))
    return result


DATA: dict[str, dict[str, Callable[[np.ndarray], np.ndarray]]] = {
    "smooth": {
        "even": lambda x: np.ones(len(x)),
        "bell": lambda x: bell(x, 0.55, 0.1),
        "two bells": lambda x: 0.7 * bell(x, 0.3, 0.04) + 0.3 * bell(x, 0.75, 0.1),
        "sech": lambda x: 1 / np.cosh((x - 0.4) * 20),
    },
    "edged": {
        "exponential": lambda x: np.exp(-12 * x),
        "rising": lambda x: np.exp(4 * x),
        "arcsine": lambda x: 1 / np.sqrt(x * (1 - x)),
        "Zipf": lambda x: 1 / np.arange(1, len(x) + 1),
        "zeros": lambda x: 0.5 * (np.arange(len(x)) == 0) + 0.5 * bell(x, 0.2, 0.1) * (x[1] - x[0]),
    },
    "stepped": {
        "block": lambda x: 0.4 + 2.0 * ((x >= 0.55) & (x < 0.8)),
        "window": lambda x: ((x >= 0.12) & (x < 0.37)).astype(float),
        "staircase": lambda x: np.floor(5 * x) + 1.0,
    },
    "spiky": {
        "twelve spikes": lambda x: spikes(len(x), 12, 0.4),
        "four spikes": lambda x: spikes(len(x), 4, 0.0),
        "one spike": lambda x: (
            bell(x, 0.6, 0.1) / len(x) + 0.8 * (np.arange(len(x)) == len(x) // 3)
        ),
        "shuffled Zipf": lambda x: np.random.default_rng(11).permutation(
            1 / np.arange(1, len(x) + 1)
        ),
        "heaped at 10": lambda x: heaped(x, 10, 0.7),
    },
}
"""As functions of the middles of the items, in fractions of the domain."""


MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "ranges": mean_square_of_ranges,
    "prefixes": lambda answers, truth: np.mean((answers - truth) ** 2),
    "cdf": lambda answers, truth: np.abs(answers - truth).max(),
    "W1": lambda answers, truth: np.abs(answers - truth).sum() / (len(truth) + 1),
}
"""Of all prefixes."""


def intervals(domain: int) -> dict[str, list[Any]]:
    """Ranges of each of the sizes, and prefixes."""
    asked: dict[str, list[Any]] = {}
    for size in SIZES:
        length = 1 if size == 1 else max(2, domain // size)
        first = np.arange(domain - length + 1)
        asked[f"1 / {size}"] = [Between(first, first + length - 1)]
    return {**asked, "proper prefixes": [Between(0, np.arange(domain - 1))]}


def protocols(
    domain: int, users: int, names: list[str]
) -> tuple[dict[str, Callable[[float], Any]], dict[str, Callable[[float], Any]]]:
    """Ours, and the others."""

    def unbiased(workload: str, epsilon: float) -> EstimatedBy:
        protocol = optimise(domain, epsilon, users, workload).protocol
        return EstimatedBy(
            protocol, lambda sums: Distribution(norm_sub(protocol.estimate(sums).frequencies))
        )

    def smooth_wave(epsilon: float) -> EstimatedBy:
        protocol = SquareWave(domain, epsilon)
        return EstimatedBy(protocol, partial(protocol.estimate, smooth=True))

    ours: dict[str, Callable[[float], Any]] = {
        "shaped": lambda epsilon: shaped(domain, epsilon, users),
        "shaped for prefixes": lambda epsilon: shaped(domain, epsilon, users, "prefixes"),
    }
    others: dict[str, Callable[[float], Any]] = {
        "square wave, EM": partial(SquareWave, domain),
        "square wave, EMS": smooth_wave,
        "unbiased, ranges": partial(unbiased, "ranges"),
        "unbiased, prefixes": partial(unbiased, "prefixes"),
    }
    if names:
        ours, others = (
            {name: make for name, make in some.items() if name.removesuffix("S") in names}
            for some in (ours, others)
        )
    return ours, others


def measure(given: argparse.Namespace) -> list[dict[str, str]]:
    rows = []
    kinds = {name: kind for kind, group in DATA.items() for name in group}
    for domain in given.domains:
        middles = (np.arange(domain) + 0.5) / domain
        measured = partial(
            evaluate,
            populations={name: DATA[kind][name](middles) for name, kind in kinds.items()},
            epsilons=given.epsilons,
            repeats=given.repeats,
            users=given.users,
            measures=MEASURES,
        )
        ours, others = protocols(domain, given.users, given.protocols)
        prefixes = {"prefixes": [(0, np.arange(domain))]}
        found = []
        if ours:
            found += measured(ours, queries={**prefixes, **intervals(domain)}).summary()
        if others:
            found += measured(others, queries=prefixes, confidence=None).summary()
        covered: dict[tuple[str, str, float], list[str]] = {}
        for row in found:
            if row.queries != "prefixes":
                case = row.protocol, row.population, row.epsilon
                covered.setdefault(case, []).append(f"{row.covered:.4f}")
        rows += [
            {
                "kind": kinds[row.population],
                "data": row.population,
                "domain": str(domain),
                "epsilon": f"{row.epsilon:g}",
                "protocol": row.protocol,
                **{name: f"{value:.6g}" for name, value in row.measures.items()},
                "coverage": " ".join(covered.get((row.protocol, row.population, row.epsilon), [])),
            }
            for row in found
            if row.queries == "prefixes"
        ]
    return rows


def beside(rows: list[dict[str, str]], ours: str, rivals: list[str]) -> list[list[str]]:
    """Geometric means of the ratios to the best rival of each cell, by epsilon and kind of data."""
    cells: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    for row in rows:
        cell = tuple(row[key] for key in ("epsilon", "kind", "domain", "data"))
        cells.setdefault(cell, {})[row["protocol"]] = np.array([float(row[e]) for e in MEASURES])
    ratios = {
        cell: found[ours] / np.min([found[r] for r in rivals], axis=0)
        for cell, found in cells.items()
        if ours in found and all(r in found for r in rivals)
    }
    result = []
    for epsilon in [*dict.fromkeys(cell[0] for cell in ratios), "all"]:
        for kind in [*DATA, "all"]:
            some = {
                cell: ratio
                for cell, ratio in ratios.items()
                if epsilon in (cell[0], "all") and kind in (cell[1], "all")
            }
            if some:
                values = np.array(list(some.values()))
                means, worst = np.exp(np.log(values).mean(axis=0)), values.max(axis=0)
                shown = [f"{m:.2f} ({w:.2f})" for m, w in zip(means, worst, strict=True)]
                result.append([epsilon, kind, *shown])
    return result


def covering(rows: list[dict[str, str]], name: str) -> list[list[str]]:
    """Mean coverage over the data, the least of any, and whose that is."""
    result = []
    mine = [row for row in rows if row["protocol"] == name and row["coverage"]]
    for domain, epsilon in dict.fromkeys((row["domain"], row["epsilon"]) for row in mine):
        some = [row for row in mine if (row["domain"], row["epsilon"]) == (domain, epsilon)]
        values = np.array([[float(v) for v in row["coverage"].split()] for row in some])
        least = values.argmin(axis=0)
        result.append(
            [domain, epsilon]
            + [
                f"{values[:, k].mean():.3f} ({values[least[k], k]:.2f} {some[least[k]]['data']})"
                for k in range(values.shape[1])
            ]
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 items, two repeats")
    parser.add_argument("--domains", nargs="+", type=int, default=[100, 256, 1024])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.6, 2.0, 8.0])
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--protocols", nargs="+", default=[], help="these only")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--beside", type=Path, nargs="+", default=[])
    given = parser.parse_args()
    if given.quick:
        given.domains, given.repeats = [100], 2
    rows = measure(given)
    if given.save:
        with given.save.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    for path in given.beside:
        with path.open(newline="") as file:
            rows += [
                {**row, "protocol": f"{row['protocol']}, {path.stem}"}
                for row in csv.DictReader(file)
            ]
    names = list(dict.fromkeys(row["protocol"] for row in rows))
    rivals = [name for name in names if name.startswith(("square wave", "unbiased"))]
    compared = {"the best of the others in hindsight": rivals} | {
        name: [name] for name in names if name == "square wave, EM" or name.startswith("shaped, ")
    }
    for ours in [name for name in names if name in ("shaped", "shaped for prefixes")]:
        for title, others in compared.items():
            if others:
                table(
                    f"{ours} / {title}: geometric means (largest), n = {given.users}",
                    ["epsilon", "data", *MEASURES],
                    beside(rows, ours, others),
                )
        head = ["1 item", *(f"D / {size}" for size in SIZES[1:]), "prefixes"]
        table(
            f"{ours}: coverage of 95 % intervals, the mean over data (the least)",
            ["D", "epsilon", *head],
            covering(rows, ours),
        )


if __name__ == "__main__":
    main()
