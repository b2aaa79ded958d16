"""Ranges over six attributes from 10^6 users: errors of grids and waves, coverage, seconds.

Prints Markdown tables.

python benchmarks/grids.py [--quick] [--repeats N] [--sets NAME ...] [--epsilons E ...] [--users N]
    [--several K ...] [--ends half|random]
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
from range_queries import one_core, table
from scipy.special import ndtr

from frequency import Between
from mechdesign.evaluate import evaluate, mean_absolute
from rangeq.grids import HDG, MSW, TDG, WaveGrid, best

USERS, ATTRIBUTES, SIZE = 1_000_000, 6, 64
QUERIES = 200
SYSTEMS: dict[str, Callable[..., Any]] = {"HDG": HDG, "TDG": TDG, "MSW": MSW, "WaveGrid": best}
"""WaveGrid last."""
TWO = math.erf(math.sqrt(2))
"""The confidence of intervals of two standard errors to either side."""


def correlated(rng: np.random.Generator, n: int, covariance: float) -> np.ndarray:
    matrix = np.full((ATTRIBUTES, ATTRIBUTES), covariance)
    np.fill_diagonal(matrix, 1.0)
    return rng.multivariate_normal(np.zeros(ATTRIBUTES), matrix, size=n, method="cholesky")


def binned(values: np.ndarray) -> np.ndarray:
    """Equal bins on [-6, 6], the ends clipped."""
    return np.clip(np.floor((values + 6) / 12 * SIZE).astype(int), 0, SIZE - 1)


def laplace(rng: np.random.Generator, n: int) -> np.ndarray:
    """Multivariate Laplace, covariance 0.8."""
    return binned(correlated(rng, n, 0.8) * np.sqrt(rng.exponential(size=(n, 1))))


def skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Exponentials, a twelfth of the domain long, with a normal copula of correlation 0.6."""
    return np.clip((-np.log1p(-ndtr(correlated(rng, n, 0.6))) * SIZE / 12).astype(int), 0, SIZE - 1)


def mixture(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two clusters far apart in most directions, with negative correlations inside."""
    apart = np.array([2, -2, 1.5, -1, 2.5, 0])
    return binned(
        0.7 * correlated(rng, n, -0.15) + np.where(rng.random((n, 1)) < 0.4, apart, -apart)
    )


def points(rng: np.random.Generator, n: int) -> np.ndarray:
    """Records like those of a survey.

    Ages, incomes heaped at fives, hours (half of them 40), gains (mostly 0), four degrees, two
    sexes.
    """
    z = correlated(rng, n, 0.4)
    age = 18 + 18 * np.abs(z[:, 0])
    income = np.exp(2.2 + 0.8 * (0.6 * z[:, 1] + 0.4 * z[:, 0]))
    income = np.where(rng.random(n) < 0.5, np.round(income / 5) * 5, income)
    hours = np.where(rng.random(n) < 0.5, 40, 36 + 9 * z[:, 2])
    gains = np.where(z[:, 3] < 1.0, 0, 5 + 15 * (z[:, 3] - 1))
    degree = np.array([27, 36, 48, 54])[np.searchsorted([-0.8, 0.2, 1.2], z[:, 4])]
    sex = np.where(z[:, 5] + 0.3 * rng.normal(size=n) > 0, SIZE - 1, 0)
    return np.clip(np.stack([age, income, hours, gains, degree, sex], axis=1), 0, SIZE - 1).astype(
        int
    )


def tight(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two clusters of the same size, far apart in every attribute.

    Their deviations are a twentieth of the domain.
    """
    centre = np.where(rng.random((n, 1)) < 0.5, SIZE // 4, 3 * SIZE // 4)
    return np.clip(np.round(centre + 3 * rng.normal(size=(n, ATTRIBUTES))).astype(int), 0, SIZE - 1)


def checkerboard(rng: np.random.Generator, n: int) -> np.ndarray:
    """Pairs of attributes that fill the fields of one colour of a board of 8 x 8.

    The pairs are 0 and 1, 2 and 3, 4 and 5. Within the fields, records are even.
    """
    first = rng.integers(0, SIZE, size=(n, ATTRIBUTES // 2))
    field = 2 * rng.integers(0, 4, size=first.shape) + first // (SIZE // 8) % 2
    second = field * (SIZE // 8) + rng.integers(0, SIZE // 8, size=first.shape)
    return np.stack([first, second], axis=2).reshape(n, ATTRIBUTES)


def board(rng: np.random.Generator, n: int) -> np.ndarray:
    """The first pair of `checkerboard` alone: two attributes."""
    return checkerboard(rng, n)[:, :2]


def exclusive(rng: np.random.Generator, n: int, several: int) -> np.ndarray:
    """Even attributes, of each few of which an even number is in the upper half."""
    found = rng.integers(0, SIZE, size=(n, ATTRIBUTES))
    upper = (found >= SIZE // 2).reshape(n, -1, several)
    found[:, several - 1 :: several] += SIZE // 2 * (upper.sum(axis=2) % 2)
    return found % SIZE


SETS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "Normal": lambda rng, n: binned(correlated(rng, n, 0.8)),
    "Laplace": laplace,
    "skewed": skewed,
    "mixture": mixture,
    "points": points,
    "uniform": lambda rng, n: rng.integers(0, SIZE, size=(n, ATTRIBUTES)),
    "tight": tight,
    "checkerboard": checkerboard,
    "board": board,
    "xor": lambda rng, n: exclusive(rng, n, 2),
    "parity": lambda rng, n: exclusive(rng, n, 3),
}
USUAL = list(SETS)[:6]


def queries(
    rng: np.random.Generator,
    several: int,
    m: int = QUERIES,
    ends: str = "half",
    attributes: int = ATTRIBUTES,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sides of half of the domain, placed anywhere; or with random ends."""
    places = np.sort(np.argsort(rng.random((m, attributes)), axis=1)[:, :several], axis=1)
    if ends == "random":
        left, right = np.sort(rng.integers(0, SIZE, size=(2, m, several)), axis=0)
        return places, left, right
    left = rng.integers(0, SIZE // 2 + 1, size=(m, several))
    return places, left, left + SIZE // 2 - 1


def conjunctions(places: np.ndarray, left: np.ndarray, right: np.ndarray) -> list[dict[int, Any]]:
    """Such queries as questions, one for all about the same attributes."""
    found = []
    for chosen in np.unique(places, axis=0).tolist():
        same = (places == chosen).all(axis=1)
        found.append({at: Between(left[same, k], right[same, k]) for k, at in enumerate(chosen)})
    return found


def population(name: str, users: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Draws records of a set, in bytes, column by column."""
    return lambda rng: np.asfortranarray(SETS[name](rng, users).astype(np.int8))


def seconds(made: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = made()
    return time.perf_counter() - start, result


def errors(
    sets: list[str], epsilons: list[float], repeats: int, users: int, sizes: list[int], ends: str
) -> None:
    rows, covered = [], []
    for name in sets:
        attributes = SETS[name](np.random.default_rng(0), 1).shape[1]
        asked = {
            f"{k}": conjunctions(
                *queries(np.random.default_rng(k), k, ends=ends, attributes=attributes)
            )
            for k in sizes
            if k <= attributes
        }
        measured = partial(
            evaluate,
            populations={name: population(name, users)},
            queries=asked,
            epsilons=epsilons,
            repeats=repeats,
            measures={"mean absolute": mean_absolute},
        )
        systems = {one: partial(SYSTEMS[one], [SIZE] * attributes, n=users) for one in SYSTEMS}
        ours = {"WaveGrid": systems.pop("WaveGrid")}
        found = measured(systems, confidence=None).summary()
        found += measured(ours, confidence=TWO).summary()
        for epsilon in epsilons:
            some = [row for row in found if row.epsilon == epsilon]
            means = np.array(
                [
                    [row.measures["mean absolute"] for row in some if row.protocol == system]
                    for system in SYSTEMS
                ]
            )
            cells = [
                *(" / ".join(f"{mean:.4f}" for mean in each) for each in means),
                " / ".join(f"{ratio:.1f}" for ratio in means[:-1].min(axis=0) / means[-1]),
            ]
            rows.append([name, f"{epsilon:g}", *cells])
            within = [f"{row.covered:.2f}" for row in some if row.protocol == "WaveGrid"]
            covered.append([name, f"{epsilon:g}", *within])
    table(
        f"Mean absolute error of {QUERIES} queries about {' / '.join(map(str, sizes))} attributes, "
        f"mean of {repeats} collections",
        ["records", "epsilon", *SYSTEMS, "best other / WaveGrid"],
        rows,
    )
    table(
        "How often WaveGrid's answers are within two of their standard errors",
        ["records", "epsilon", *map(str, sizes)],
        covered,
    )


def costs() -> None:
    rng, rows = np.random.default_rng(7), []
    for system, d, size in (
        (HDG, 6, 64),
        (WaveGrid, 6, 64),
        (WaveGrid, 10, 64),
        (WaveGrid, 4, 256),
    ):
        normal = rng.normal(size=(USERS, 1)) * 0.8**0.5 + rng.normal(size=(USERS, d)) * 0.2**0.5
        records = np.clip((normal + 6) * (size / 12), 0, size - 1).astype(np.int64)
        places, left, _ = queries(rng, 4, 10_000, attributes=d)
        asked = places, left, left + size // 2 - 1
        protocol = system([size] * d, 1.0, USERS)
        client, reports = seconds(lambda: protocol.privatize(records, rng))
        count, aggregate = seconds(lambda: protocol.aggregate(reports))
        fit, estimate = seconds(lambda: protocol.estimate(aggregate))
        answer, _ = seconds(lambda: estimate.answers(*asked))
        stated = "-"
        if system is WaveGrid:
            own, _ = seconds(lambda: np.sqrt(estimate.predicted_error(*asked).total))
            stated = f"{own:.2f}"
        bits, numbers = f"{protocol.report_bits}", f"{aggregate.counts.size}"
        rows.append(
            [
                system.__name__,
                f"{d}",
                f"{size}",
                bits,
                numbers,
                *(f"{value:.2f}" for value in (client, count, fit, answer)),
                stated,
            ]
        )
    table(
        "Normal, epsilon 1: bits of a report, numbers in an aggregate, and seconds",
        [
            "system",
            "d",
            "c",
            "bits",
            "numbers",
            "10^6 reports",
            "aggregate",
            "estimate",
            "10,000 4-D answers",
            "their errors",
        ],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="one repeat, Normal and mixture, two epsilons"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=USUAL)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.2, 0.6, 1.0, 2.0])
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument(
        "--several", nargs="+", type=int, default=[2, 4], help="attributes of a query"
    )
    parser.add_argument(
        "--ends",
        choices=["half", "random"],
        default="half",
        help="ranges: half of the domain, or any",
    )
    given = parser.parse_args()
    if given.quick:
        given.repeats, given.sets, given.epsilons = 1, ["Normal", "mixture"], [0.2, 1.0]
    one_core()
    errors(given.sets, given.epsilons, given.repeats, given.users, given.several, given.ends)
    costs()


if __name__ == "__main__":
    main()
