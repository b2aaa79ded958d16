"""Smoothed range estimates beside unbiased ones and the square wave: errors, coverage, time.

Prints Markdown tables.

python benchmarks/shaped_ranges.py [--quick]
python benchmarks/shaped_ranges.py --data NAME ... [--domains D ...] [--users N] [--repeats N]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from range_queries import best_of, circular, one_core, table, values_alone

from mechdesign.evaluate import evaluate, mean_square_of_ranges
from rangeq import Between, HaarHRR, SquareWave, optimise, shaped

N = 1_000_000
EPSILONS = (0.2, 0.6, 1.1, 1.4)
RANGES = 4000
"""To ask for intervals of."""


def bell(x: np.ndarray, centre: float, width: float) -> np.ndarray:
    return np.exp(-(((x - centre) / width) ** 2) / 2) / width


def bars(domain: int) -> np.ndarray:
    """Ten items that hold 70 % in unlike shares, on an even ground."""
    rng = np.random.default_rng(5)
    result = np.full(domain, 0.3 / domain)
    np.add.at(result, rng.integers(0, domain, 10), 0.7 * rng.dirichlet(np.ones(10)))
    return result


def heaped(x: np.ndarray) -> np.ndarray:
    """A normal density, 60 % of which is rounded down to multiples of 8."""
    smooth = bell(x, 0.45, 1 / 7)
    result = 0.4 * smooth
    result[::8] += 0.6 * np.add.reduceat(smooth, np.arange(0, len(x), 8))
    return result


DENSITIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Cauchy": lambda x: 1 / (1 + ((x - 0.4) / 0.1) ** 2),
    "normal": lambda x: bell(x, 0.5, 1 / 8),
    "Laplace": lambda x: np.exp(-np.abs(x - 0.5) * 12),
    "bimodal": lambda x: 0.6 * bell(x, 0.25, 0.03) + 0.4 * bell(x, 0.7, 0.08),
    "step": lambda x: 0.3 + 2.8 * ((x >= 0.2) & (x < 0.45)),
    "spikes": lambda x: bars(len(x)),
    "Zipf": lambda x: 1 / np.arange(1, len(x) + 1),
    "heaped": heaped,
}
"""As functions of the middles of the items, in fractions of the domain."""


def population(name: str, domain: int) -> np.ndarray:
    """The shares of the items."""
    density = DENSITIES[name]((np.arange(domain) + 0.5) / domain)
    return density / density.sum()


def some_ranges(domain: int) -> tuple[np.ndarray, np.ndarray]:
    """Of all with two items or more, as likely each."""
    rng, chances = np.random.default_rng(domain), np.arange(domain - 1, 0, -1)
    first = rng.choice(domain - 1, RANGES, p=chances / chances.sum())
    return first, first + 1 + rng.integers(0, domain - 1 - first)


def measured(values: list[float], factor: float = 1e5) -> str:
    found = np.array(values) * factor
    return f"{found.mean():.3g} ± {found.std(ddof=1) / math.sqrt(len(found)):.2g}"


def row(
    name: str, domain: int, epsilon: float, repeats: int, rivals: bool, users: int = N
) -> list[str]:
    """Smoothed; predicted and, of rivals, simulated errors of the others; coverage of intervals."""
    best = best_of(optimise(domain, epsilon, users), circular)[0]
    haar = HaarHRR(domain, epsilon)
    others: dict[str, Callable[[float], Any]] = {}
    if rivals:
        others |= {"circular": lambda _: values_alone(best), "haar": lambda _: values_alone(haar)}
    if domain <= 1024:
        others["wave"] = partial(SquareWave, domain)
    evaluated = partial(
        evaluate,
        populations={name: population(name, domain)},
        epsilons=[epsilon],
        repeats=repeats,
        users=users,
        measures={"all ranges": partial(mean_square_of_ranges, least=2)},
    )
    prefixes = {"prefixes": [(0, np.arange(domain))]}
    ours = evaluated(
        {"ours": lambda epsilon: shaped(domain, epsilon, users)},
        queries={**prefixes, "ranges": [some_ranges(domain)]},
    )
    rows = ours.rows + (evaluated(others, queries=prefixes, confidence=None).rows if others else ())
    errors: dict[str, list[float]] = {"ours": [], "circular": [], "haar": [], "wave": []}
    for one in rows:
        if one.queries == "prefixes":
            errors[one.protocol].append(one.measures["all ranges"])
    coverage = ours.summary()[1].covered
    cells = [name, str(domain), f"{epsilon:g}", measured(errors["ours"])]
    for key, protocol in (("circular", best), ("haar", haar)):
        simulated = f" / {measured(errors[key])}" if errors[key] else ""
        cells.append(f"{protocol.average_rmse(users) ** 2 * 1e5:.3g}{simulated}")
    cells.append(measured(errors["wave"]) if errors["wave"] else "")
    ratio = best.average_rmse(users) ** 2 / np.mean(errors["ours"])
    return [*cells, f"{ratio:.2g}", f"{coverage:.3f}", str(repeats)]


def seconds(domain: int, epsilon: float) -> list[str]:
    """CPU seconds of the design, 10^6 real reports, the estimate, and 10^5 intervals."""
    rng = np.random.default_rng(1)
    values = np.repeat(np.arange(domain), rng.multinomial(N, population("Cauchy", domain)))
    rng.shuffle(values)
    times = [time.process_time()]
    protocol = shaped(domain, epsilon, N + 1)  # designs are kept: not the one made above
    times.append(time.process_time())
    reports = protocol.privatize(values, rng)
    times.append(time.process_time())
    aggregate = protocol.aggregate(reports)
    times.append(time.process_time())
    estimate = protocol.estimate(aggregate)
    times.append(time.process_time())
    estimate.answer(Between(*np.sort(rng.integers(0, domain, (2, 100_000)), axis=0))).interval()
    times.append(time.process_time())
    return [
        str(domain),
        f"{epsilon:g}",
        str(protocol.report_bits),
        *(f"{t:.2f}" for t in np.diff(times)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="256 items only, and three repeats")
    parser.add_argument("--data", nargs="+", choices=DENSITIES, help="these only, all simulated")
    parser.add_argument("--domains", nargs="+", type=int, default=[256], help="with --data")
    parser.add_argument("--users", type=int, default=N, help="with --data")
    parser.add_argument("--repeats", type=int, default=15, help="with --data")
    given = parser.parse_args()
    quick = given.quick
    one_core()
    repeats = 3 if quick else 15
    domains = (256,) if quick else (256, 1024, 1 << 16)
    head = [
        "data",
        "D",
        "epsilon",
        "shaped",
        "circular",
        "HaarHRR",
        "square wave, EM",
        "circular / shaped",
        "coverage",
        "repeats",
    ]
    if given.data:
        rows = [
            row(name, domain, epsilon, given.repeats, True, given.users)
            for name in given.data
            for domain in given.domains
            for epsilon in EPSILONS
        ]
        table(
            f"Mean squared error x 10^5 of all ranges, n = {given.users}; of unbiased estimates "
            "predicted / simulated",
            head,
            rows,
        )
        return
    rows = [
        row("Cauchy", domain, epsilon, min(repeats, 10) if domain > 1024 else repeats, True)
        for domain in domains
        for epsilon in EPSILONS
    ]
    table(
        "Mean squared error x 10^5 of all ranges, Cauchy data; of unbiased estimates predicted /"
        " simulated",
        head,
        rows,
    )
    names = [name for name in DENSITIES if name != "Cauchy"]
    rows = [row(name, 256, epsilon, repeats, False) for name in names for epsilon in EPSILONS]
    table(
        "Mean squared error x 10^5 of all ranges, other data; of unbiased estimates predicted",
        head,
        rows,
    )
    head = [
        "D",
        "epsilon",
        "bits",
        "design, s",
        "privatize, s",
        "aggregate, s",
        "estimate, s",
        "10^5 intervals, s",
    ]
    table(
        "CPU seconds for 10^6 reports",
        head,
        [seconds(domain, epsilon) for domain in domains for epsilon in (0.6, 1.4)],
    )


if __name__ == "__main__":
    main()
