"""Designs for the noise that is drawn, beside published mechanisms and strategies of real noise.

Prints Markdown tables: mean variances of designs, of the best of the flat histogram, trees and the
wavelet, and of the best strategy for continuous noise, all for the integers that are drawn, with
the bound on every unbiased mechanism; noise on two and three numbers beside independent noise and
the least that any law has (a linear program on a box of integer vectors, in floats); and the same
for little Gaussian noise.

python benchmarks/drawn_noise.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import scipy
from range_queries import one_core, table

from mechdesign import ZCDP, Privacy
from mechdesign.noise.staircase import Staircase
from rangeq.central import CentralFlat, Hierarchy, Wavelet, best_branching, workload_optimal
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism
from rangeq.central.matrix_mechanism.p_identity import laplace_strategy
from rangeq.central.matrix_mechanism.staircase_strategy import best_group, rows_of_levels
from rangeq.central.matrix_mechanism.workload import Workload, gram_of
from rangeq.central.mechanism import CentralMechanism

EPSILONS = (0.5, 1.0, 2.0, 4.0)


def published(sizes: tuple[int, ...], epsilon: float) -> Iterator[tuple[str, CentralMechanism]]:
    yield "flat", CentralFlat(sizes, epsilon)
    if max(sizes) > 1:
        yield "wavelet", Wavelet(sizes, epsilon)
        trees = best_branching(sizes, epsilon, alternatives=4, exhaustive=False).table
        branchings: list[Any] = [2, *(row.fanouts for row in trees)]
        for branching in branchings:
            yield f"tree {branching}", Hierarchy(sizes, epsilon, branching)
            best = Hierarchy(sizes, epsilon, branching, budget="optimal")
            yield f"tree {branching}, best budget", best


def drawn(mechanism: CentralMechanism, workload: Workload) -> float:
    """The mean variance of a mechanism of levels."""
    rows, level = rows_of_levels(mechanism)
    variances = np.array([float(v) for v in mechanism.noise_variances if v is not None])
    precision = (rows.T / variances[level]) @ rows
    return float(np.trace(np.linalg.solve(precision, gram_of(workload)[0]))) / workload.weight


def compared(cases: list[tuple[Any, Any, float]]) -> None:
    rows, ratios = [], []
    for asked, domain, epsilon in cases:
        workload, promise = Workload.of(asked, domain), Privacy.from_epsilon(epsilon)
        trials = [(drawn(one, workload), name) for name, one in published(workload.sizes, epsilon)]
        least, name = min(trials)
        strategy = np.rint(laplace_strategy(gram_of(workload)[0]) * 2.0**20).astype(np.int64)
        continuous = MatrixMechanism(DenseStrategy(strategy, workload.sizes), promise)
        before = continuous.workload_variance(workload)
        start = time.perf_counter()
        design = workload_optimal(asked, domain, promise, cache=False)
        seconds = time.perf_counter() - start
        ratios.append(design.variance / least)
        rows.append(
            [
                f"{asked}, {domain}",
                f"{epsilon:g}",
                f"{least:.5g} ({name})",
                f"{before:.5g}",
                f"{design.variance:.5g}",
                f"{ratios[-1]:.3f}",
                f"{design.bound:.5g}",
                f"{100 * design.gap:.3g} %",
                f"{seconds:.1f}",
            ]
        )
    head = ["queries", "epsilon", "best published", "for continuous noise", "ours"]
    head += ["ours / published", "every unbiased mechanism has", "gap", "seconds"]
    table("Mean variances of the noise that is drawn", head, rows)
    geometric = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"\nours / published: geometric mean {geometric:.3f}, largest {max(ratios):.3f}")


def least_of_all(cost: Any, rate: float, reach: int, centre: tuple[float, ...]) -> float:
    """The least mean of z'Hz over laws on a box that a step changes by the factor alpha at most."""
    numbers, alpha = len(cost), math.exp(-rate)
    vectors = np.array(list(product(range(-reach, reach + 1), repeat=numbers)))
    vectors = vectors[np.abs(vectors).sum(axis=1) <= reach]
    place = {tuple(vector): i for i, vector in enumerate(vectors.tolist())}
    away = vectors + np.array(centre)
    costs, scale = ((away @ cost) * away).sum(axis=1), alpha ** np.abs(vectors).sum(axis=1)
    pairs = [
        (i, place[tuple(vector + step)])
        for i, vector in enumerate(vectors)
        for step in np.eye(numbers, dtype=int)
        if tuple(vector + step) in place
    ]
    first, second = np.array([*pairs, *((j, i) for i, j in pairs)]).T
    row = np.arange(len(first))
    largest = np.maximum(alpha * scale[first], scale[second])
    entries = np.concatenate([alpha * scale[first] / largest, -scale[second] / largest])
    places = np.concatenate([row, row]), np.concatenate([first, second])
    found = scipy.optimize.linprog(  # type: ignore[call-overload]
        costs * scale,
        A_ub=scipy.sparse.csr_array((entries, places)),
        b_ub=np.zeros(len(row)),
        A_eq=scale[None],
        b_eq=np.ones(1),
        method="highs-ipm",
    )
    return float(found.fun)


def together(quick: bool) -> None:
    """Noise on two and three numbers, of a cost that falls with their distance."""
    rows = []
    for numbers, correlation, epsilon in product((2, 3), (0.3, 0.6, 0.9), EPSILONS):
        if numbers == 3 and (quick or epsilon < 1):
            continue
        places = np.arange(numbers)
        cost = correlation ** np.abs(np.subtract.outer(places, places))
        independent = numbers / (math.cosh(epsilon) - 1)
        group = best_group(cost, epsilon)
        law = Staircase(alpha=Fraction(math.exp(-epsilon)), points=group.points)
        reach = round((13 if numbers == 2 else 9) / epsilon) + 3
        centres = product((0, 0.5), repeat=numbers)
        least = min(least_of_all(cost, epsilon, reach, centre) for centre in centres)
        rows.append(
            [
                str(numbers),
                f"{correlation:g}",
                f"{epsilon:g}",
                f"{independent:.5g}",
                f"{group.cost:.5g}",
                f"{least:.5g}",
                f"{1 - group.cost / independent:.1%}",
                str(len(group.points)),
                f"{law.acceptance:.2f}",
            ]
        )
    head = ["numbers", "correlation of the cost", "epsilon", "independent noise", "ours"]
    head += ["least of any law", "less than independent", "points", "accepted"]
    table("One noise on several numbers: mean cost", head, rows)


def gaussian() -> None:
    rows = []
    for asked, cells in (("cells", 1), ("ranges", 16), ("prefixes", 16)):
        for rho in ("1/10", "1/2", "1", "2", "4"):
            design = workload_optimal(asked, cells, ZCDP(rho), cache=False)
            bounds = f"{design.continuous_bound:.5g}", f"{design.bound:.5g}"
            rows.append([f"{asked}, {cells}", rho, f"{design.variance:.5g}", *bounds])
    head = ["queries", "rho", "ours", "bound for continuous noise", "every unbiased mechanism has"]
    table("Gaussian noise", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 16 cells, and two numbers")
    quick = parser.parse_args().quick
    one_core()
    sizes = (2, 4, 16) if quick else (2, 4, 8, 16, 32)
    compared([("ranges", size, epsilon) for size in sizes for epsilon in EPSILONS])
    others: list[tuple[Any, Any]] = [("prefixes", 16), ("width-4", 16), ("marginals", (2, 3, 4))]
    others += [] if quick else [("ranges", 64), ("prefixes", 64), ("ranges", 256)]
    compared([(*other, epsilon) for other in others for epsilon in EPSILONS])
    together(quick)
    gaussian()


if __name__ == "__main__":
    main()
