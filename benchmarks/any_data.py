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
from pathlib import Path
from typing import Any

import numpy as np
from range_queries import table
from tqdm import tqdm

from frequency.postprocess import norm_sub
from rangeq import SquareWave, optimise, shaped

Frequencies = Callable[[Any], np.ndarray]

ERRORS = ("ranges", "prefixes", "cdf", "W1")
OURS = ("shaped", "shaped for prefixes")
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


def errors(frequencies: np.ndarray, held: np.ndarray) -> list[float]:
    off = np.concatenate([[0.0], np.cumsum(frequencies) - np.cumsum(held) / held.sum()])
    points = len(off)  # a range is a pair of them
    ranges = (points * (off**2).sum() - off.sum() ** 2) / (points * (points - 1) / 2)
    return [ranges, float((off[1:] ** 2).mean()), np.abs(off).max(), float(np.abs(off).mean())]


def coverage(estimate: Any, held: np.ndarray) -> list[float]:
    """Of ranges of each of the sizes, and of prefixes."""
    domain, sums = len(held), np.concatenate([[0.0], np.cumsum(held) / held.sum()])
    asked = []
    for size in SIZES:
        length = 1 if size == 1 else max(2, domain // size)
        first = np.arange(domain - length + 1)
        asked.append((first, first + length - 1))
    asked.append((np.zeros(domain - 1, dtype=np.int64), np.arange(domain - 1)))
    result = []
    for first, last in asked:
        low, high = estimate.answer((first, last)).interval()
        truth = sums[last + 1] - sums[first]
        result.append(float(np.mean((low - 1e-9 <= truth) & (truth <= high + 1e-9))))
    return result


def protocols(
    domain: int, epsilon: float, users: int, names: list[str]
) -> dict[str, tuple[Any, Frequencies]]:
    """Protocols, and what makes frequencies of their estimates."""

    def of(estimate: Any) -> np.ndarray:
        return np.asarray(estimate.frequencies)

    def clean(estimate: Any) -> np.ndarray:
        return norm_sub(estimate.frequencies)

    makers: dict[str, Callable[[], tuple[Any, Frequencies]]] = {
        "shaped": lambda: (shaped(domain, epsilon, users), of),
        "shaped for prefixes": lambda: (shaped(domain, epsilon, users, "prefixes"), of),
        "square wave, EM": lambda: (SquareWave(domain, epsilon), of),
        "unbiased, ranges": lambda: (optimise(domain, epsilon, users).protocol, clean),
        "unbiased, prefixes": lambda: (
            optimise(domain, epsilon, users, "prefixes").protocol,
            clean,
        ),
    }
    made = {name: maker() for name, maker in makers.items() if not names or name in names}
    if "square wave, EM" in made:
        made["square wave, EMS"] = (made["square wave, EM"][0], of)
    return made


def measure(given: argparse.Namespace) -> list[dict[str, str]]:
    rows = []
    cells = [(d, e) for d in given.domains for e in given.epsilons]
    densities = [(kind, name, f) for kind, group in DATA.items() for name, f in group.items()]
    with tqdm(total=len(cells) * len(densities)) as meter:
        for domain, epsilon in cells:
            made = protocols(domain, epsilon, given.users, given.protocols)
            for kind, name, density in densities:
                share = density((np.arange(domain) + 0.5) / domain)
                found: dict[str, list[list[float]]] = {key: [] for key in made}
                for repeat in range(given.repeats):
                    rng = np.random.default_rng([repeat, domain, int(100 * epsilon)])
                    held = rng.multinomial(given.users, share / share.sum())
                    for key, (protocol, frequencies) in made.items():
                        aggregate = protocol.simulate(held, rng)
                        estimate = (
                            protocol.estimate(aggregate, smooth=True)
                            if key == "square wave, EMS"
                            else protocol.estimate(aggregate)
                        )
                        covered = coverage(estimate, held) if key in OURS else []
                        found[key].append([*errors(frequencies(estimate), held), *covered])
                for key, values in found.items():
                    means = np.mean(values, axis=0)
                    rows.append(
                        {
                            "kind": kind,
                            "data": name,
                            "domain": str(domain),
                            "epsilon": f"{epsilon:g}",
                            "protocol": key,
                            **{e: f"{v:.6g}" for e, v in zip(ERRORS, means, strict=False)},
                            "coverage": " ".join(f"{v:.4f}" for v in means[4:]),
                        }
                    )
                meter.update()
    return rows


def beside(rows: list[dict[str, str]], ours: str, rivals: list[str]) -> list[list[str]]:
    """Geometric means of the ratios to the best rival of each cell, by epsilon and kind of data."""
    cells: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    for row in rows:
        cell = tuple(row[key] for key in ("epsilon", "kind", "domain", "data"))
        cells.setdefault(cell, {})[row["protocol"]] = np.array([float(row[e]) for e in ERRORS])
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
    for ours in [name for name in OURS if name in names]:
        for title, others in compared.items():
            if others:
                table(
                    f"{ours} / {title}: geometric means (largest), n = {given.users}",
                    ["epsilon", "data", *ERRORS],
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
