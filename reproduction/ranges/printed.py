"""Tables 5.2 and 5.3, printed, predicted and simulated."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from large_domains import Workload
from published_ranges import EPSILONS, NAMES, protocol
from published_ranges import PRINTED as SMALL_DOMAINS
from range_queries import N

from rangeq import RangeProtocol
from reproduction.ranges.variances import geometric_mean, population, predicted
from reproduction.report import Number, Settings, table

PRINTED = SMALL_DOMAINS | {
    ("5.2", 20): """
        10.043 10.493 11.511 9.285  5.378 4.751 5.617 5.261  3.605 3.603 4.483 3.693
        3.047 3.042 3.352 3.316  2.522 2.690 3.131 2.915  2.556 2.540 2.729 2.722
        2.619 2.488 2.757 2.640  2.339 2.304 2.652 2.505
    """,
    ("5.2", 22): """
        8.629 8.889 - 8.422  4.546 4.951 - 4.470  3.181 3.420 - 3.085
        2.657 2.692 - 2.462  2.247 2.358 - 2.254  1.979 2.252 - 2.139
        2.120 2.066 - 1.946  1.650 1.885 - 1.990
    """,
    ("5.3", 20): """
        8.874 8.255 10.462 7.237  4.734 4.395 5.754 4.271  3.788 3.485 4.055 3.377
        3.287 3.094 3.268 3.108  3.022 2.848 2.826 2.920  3.053 2.756 2.727 2.727
        3.145 2.627 2.914 2.754  2.975 2.659 2.543 2.696
    """,
    ("5.3", 22): """
        8.620 8.638 - 8.099  4.181 4.330 - 4.233  2.932 3.077 - 3.063
        2.215 2.590 - 2.528  1.958 2.246 - 2.326  1.777 2.319 - 2.181
        1.929 2.174 - 2.205  1.613 1.868 - 2.156
    """,
}
"""A row of the four of `NAMES` for each of `EPSILONS`, by table and bits; none of HH16c at 2^22."""


def value(which: str, bits: int, name: str, k: int) -> float:
    return float(PRINTED[which, bits].split()[4 * k + NAMES.index(name)])


def simulated(
    one: RangeProtocol, held: np.ndarray, repeats: int, rng: np.random.Generator, step: int = 1
) -> np.ndarray:
    """Mean squares over ranges from every ``step``-th item, and over prefixes.

    Scaled to N users: shape (repeats, 2).
    """
    n = int(held.sum())
    truth = np.concatenate([[0.0], np.cumsum(held) / n])
    found = []
    for _ in range(repeats):
        error = np.concatenate([[0.0], one.estimate(one.simulate(held, rng)).cdf()]) - truth
        found.append(
            [Workload(one.domain, step).mean_square(error), float(np.mean(error[1:] ** 2))]
        )
    return np.array(found) * n / N


@cache
def measured(bits: int, quick: bool) -> dict[tuple[str, float], tuple[float, float]]:
    """Root mean squares x 1000 over all ranges and over prefixes.

    HaarHRR is simulated user by user, with 2^20 users, and scaled.
    """
    rng, found = np.random.default_rng([5, bits]), {}
    repeats = (2 if quick else 30) if bits == 8 else (1 if quick else 4)
    for epsilon in EPSILONS:
        for name in NAMES:
            held = population(1 << bits, 1 << 20 if name == "HaarHRR" else N, rng)
            squares = simulated(protocol(name, 1 << bits, epsilon), held, repeats, rng)
            found[name, epsilon] = tuple(np.sqrt(squares.mean(axis=0)) * 1000)
    return found


WORKLOADS = {"5.2": "ranges", "5.3": "prefixes"}


def expected(which: str, bits: int, name: str, epsilon: float) -> float:
    return protocol(name, 1 << bits, epsilon).average_rmse(N, WORKLOADS[which]) * 1000


@cache
def expected_of_some(name: str, epsilon: float, bits: int = 16, step: int = 8) -> float:
    """Of the ranges that begin at every 2^step-th item."""
    first, last = Workload(1 << bits, 1 << step).sample(np.random.default_rng(6))
    return (
        math.sqrt(predicted(protocol(name, 1 << bits, epsilon), first[::8], last[::8]).mean())
        * 1000
    )


def over_expected(which: str, bits: int, name: str, some: bool = False) -> list[float]:
    """Printed over predicted, for each epsilon."""
    return [
        value(which, bits, name, k)
        / (expected_of_some(name, epsilon) if some else expected(which, bits, name, epsilon))
        for k, epsilon in enumerate(EPSILONS)
    ]


def cells(which: str, bits: int, settings: Settings) -> str:
    rows, at = [], list(WORKLOADS).index(which)
    for k, epsilon in enumerate(EPSILONS):
        row = [f"{epsilon:g}"]
        for name in NAMES:
            printed, exact = value(which, bits, name, k), expected(which, bits, name, epsilon)
            row.append(
                f"{printed:.3f} / {exact:.3f} /"
                f" {measured(bits, settings.quick)[name, epsilon][at]:.3f}"
            )
        rows.append(row)
    head = [f"{name}: printed (thesis = paper) / predicted / simulated" for name in NAMES]
    return table(["epsilon", *head], rows)


def simulation_agrees(which: str, bits: int, settings: Settings) -> float:
    """The mean over cells of simulated over predicted."""
    at = list(WORKLOADS).index(which)
    found = measured(bits, settings.quick)
    return geometric_mean(
        [found[name, e][at] / expected(which, bits, name, e) for name in NAMES for e in EPSILONS]
    )


def numbers(
    which: str, bits: int, names: tuple[str, ...], some: bool = False
) -> tuple[Number, ...]:
    """Printed and predicted numbers of columns."""
    found = []
    for name in names:
        for k, epsilon in enumerate(EPSILONS):
            own = expected_of_some(name, epsilon) if some else expected(which, bits, name, epsilon)
            printed = f"{value(which, bits, name, k):.3f}"
            found.append(Number(f"{name}, epsilon = {epsilon:g}", printed, f"{own:.3f}"))
    return tuple(found)
