"""Local mechanisms for ranges and prefixes, against range protocols and projected gradient.

Prints Markdown tables.

python benchmarks/local_mechanisms.py [--quick] [--rounds 8]
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

import numpy as np
from range_queries import best_of, circular, one_core, simulated, table
from tqdm import tqdm

from mechdesign.local.patterns import gram
from mechdesign.local.workload_mechanism import WorkloadDesign, workload_optimal
from rangeq import HaarHRR, HierarchicalHistogram, Optimised, RangeProtocol, optimise
from rangeq.local.optimisation import compose

MANY = 10**9
"""Users of the predictions: the variance of one user is the variance times this."""

WORKLOADS = {"ranges": "all ranges", "prefixes": "prefixes"}
"""The names of mechdesign, and those of rangeq."""

LONGEST = 60.0
"""Seconds after which projected gradient stops."""

PUBLISHED_WORST = {"hierarchical": 5666, "projected gradient": 1911}
"""Worst-case variance of all prefixes, k = 128, epsilon = 1: the example of the authors'
implementation.
"""

Designs = dict[tuple[str, int, float], WorkloadDesign]


def project(q: np.ndarray, z: np.ndarray, ratio: float) -> np.ndarray:
    """The nearest columns between z and ratio z that sum to 1.

    They are clipped after a shift, which is found by bisection.
    """
    low, high = z[:, None], ratio * z[:, None]
    least, most = (low - q).min(axis=0), (high - q).max(axis=0)
    for _ in range(50):
        shift = (least + most) / 2
        short = np.clip(q + shift, low, high).sum(axis=0) < 1
        least, most = np.where(short, shift, least), np.where(short, most, shift)
    return np.clip(q + most, low, high)


def variance_and_slope(q: np.ndarray, workload: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean over inputs of the variance of all queries, and its gradient in Q.

    The mean is tr(G M^-1) - tr(G) / k with M = Q' diag(Q 1 / k)^-1 Q.
    """
    k = q.shape[1]
    seen = q.mean(axis=1)
    u = q / seen[:, None]
    inverse = np.linalg.inv(q.T @ u)
    by_slope = u @ (inverse @ workload @ inverse)
    slope = np.einsum("ij,ij->i", by_slope, u)[:, None] / k - 2 * by_slope
    return float(np.sum(workload * inverse) - np.trace(workload) / k), slope


def descend(
    workload: np.ndarray, ratio: float, pace: float, iterations: int, until: float
) -> float:
    """The least variance on a gradient descent from a random start.

    The steps go down the gradients of Q and, ``pace`` times as long, of its bounds z.
    """
    k = len(workload)
    rng, rows = np.random.default_rng(0), 4 * k
    z = np.full(rows, (1 + 1 / ratio) / (2 * rows))
    q = project(rng.random((rows, k)), z, ratio)
    value, slope = variance_and_slope(q, workload)
    step = 8 * q.mean() / np.abs(slope).max()
    best, stale = (value, slope, q, z), 0
    for _ in range(iterations):
        if time.perf_counter() > until:
            break
        low, high = q <= z[:, None], q >= ratio * z[:, None]
        inside = ~low & ~high
        # Entries at a bound move with it, and those inside make up for that, all alike.
        beyond = slope - (slope * inside).sum(axis=0) / np.maximum(inside.sum(axis=0), 1)
        z = np.clip(z - step * pace * ((low + ratio * high) * beyond).sum(axis=1), 1e-9 / rows, 1.0)
        z = z * np.clip(z.sum(), 1.000001 / ratio, 0.999999) / z.sum()
        q = project(q - step * slope, z, ratio)
        try:
            value, slope = variance_and_slope(q, workload)
        except np.linalg.LinAlgError:
            value = math.inf
        if 0 < value < best[0]:
            best, stale = (value, slope, q, z), 0
        else:
            stale += 1
        if stale == 30 or not 0 < value < 2 * best[0]:  # back to the best, with smaller steps
            (value, slope, q, z), stale = best, 0
            step /= 2
    return best[0]


def projected_gradient(
    workload: np.ndarray, epsilon: float, iterations: int = 500
) -> tuple[float, float]:
    """The method of McKenna, Maity, Mazumdar and Miklau (PVLDB 2020): variance and seconds.

    A table Q of 4k rows, begun at random, and bounds z: steps down the gradient of both, that of z
    through the projection of every column onto {z <= q <= e^eps z, sum q = 1}. The best of three
    lengths for the steps of z.
    """
    start, scale = time.perf_counter(), len(workload) * math.exp(epsilon)
    paces = [1 / scale, 0.1 / scale, 0.02 / scale]
    limits = [start + LONGEST * (place + 1) / len(paces) for place in range(len(paces))]
    pairs = zip(paces, limits, strict=True)
    value = min(
        descend(workload, math.exp(epsilon), pace, iterations, until) for pace, until in pairs
    )
    return value, time.perf_counter() - start


def haar(protocol: RangeProtocol) -> bool:
    return isinstance(protocol, HaarHRR)


def hierarchy(protocol: RangeProtocol) -> bool:
    """HH_Bc of the papers: one branching, one oracle, all levels alike."""
    return isinstance(protocol, HierarchicalHistogram) and isinstance(protocol.oracle, str)


def best_tree(found: Optimised) -> float:
    """RMSE of the best protocol that is not circular: an optimised tree, nearly always."""
    return best_of(found, lambda protocol: not circular(protocol))[1]


def of_one_user(rmse: float) -> float:
    return rmse**2 * MANY


def cells(
    domains: list[int], epsilons: list[float], rounds: int, designs: Designs
) -> Iterator[list[str]]:
    cases = [(name, k, epsilon) for k in domains for name in WORKLOADS for epsilon in epsilons]
    for name, k, epsilon in tqdm(cases, desc="designs", leave=False):
        start = time.perf_counter()
        design = workload_optimal(name, k, epsilon, rounds=max(30, rounds) if k <= 32 else rounds)
        taken = time.perf_counter() - start
        designs[name, k, epsilon] = design
        variance = design.variance / design.queries
        found = optimise(k, epsilon, MANY, WORKLOADS[name])
        rivals = [
            best_of(found, haar)[1],
            best_of(found, hierarchy)[1],
            best_tree(found),
            best_of(found, circular)[1],
        ]
        ratios = [f"{math.sqrt(variance / of_one_user(rmse)):.3f}" for rmse in rivals]
        other, seconds = projected_gradient(gram(name, k)[0], epsilon)
        ratios += [f"{math.sqrt(design.variance / other):.3f}", f"{seconds:.1f}"]
        row = [
            name,
            str(k),
            f"{epsilon:g}",
            f"{variance:.5g}",
            *ratios,
            f"{100 * design.gap:.2f} %",
        ]
        yield [*row, str(design.mechanism.outputs), f"{taken:.1f}"]


def worst(rounds: int) -> Iterator[list[str]]:
    start = time.perf_counter()
    design = workload_optimal("prefixes", 128, 1.0, "worst", rounds=rounds)
    taken = time.perf_counter() - start
    published = [f"{total} ({design.variance / total:.3f})" for total in PUBLISHED_WORST.values()]
    gap = f"{100 * design.gap:.2f} %"
    yield [
        f"{design.variance:.0f}",
        f"{design.bound:.0f}",
        gap,
        *published,
        str(design.mechanism.outputs),
        f"{taken:.1f}",
    ]


def composites(
    domain: int, sizes: list[int], repeats: int, rounds: int, designs: Designs
) -> Iterator[list[str]]:
    users = 1 << 20
    for epsilon in (0.2, 1.1):
        found = optimise(domain, epsilon, users)
        for k in sizes:
            design = designs.get(("ranges", k, epsilon)) or workload_optimal(
                "ranges", k, epsilon, rounds=rounds
            )
            composite = compose(design.mechanism, domain, epsilon)
            rmse = composite.average_rmse(users)
            measured = simulated(composite, users, repeats) / rmse
            ratios = [
                rmse / best_tree(found),
                rmse / best_of(found, circular)[1],
                rmse / found.bound,
                measured,
            ]
            bits = str(composite.report_bits)
            yield [
                str(domain),
                str(k),
                f"{epsilon:g}",
                f"{1000 * rmse:.3f}",
                *(f"{ratio:.3f}" for ratio in ratios),
                bits,
            ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 32 inputs only")
    parser.add_argument("--rounds", type=int, default=8, help="of pricing, for more than 32 inputs")
    arguments = parser.parse_args()
    quick, rounds = arguments.quick, arguments.rounds
    one_core()
    designs: Designs = {}

    epsilons = [0.2, 0.6, 1.1, 1.4]
    head = [
        "workload",
        "k",
        "epsilon",
        "variance a query",
        "/ HaarHRR",
        "/ best HH_Bc",
        "/ best tree",
        "/ circular",
    ]
    head += ["/ projected gradient", "its seconds", "gap to the bound", "outputs", "seconds"]
    domains = [8, 16, 32] if quick else [8, 16, 32, 64, 128, 256]
    # Rows are printed as they come.
    table(
        "Variance of one user, and ratios of RMSE", head, cells(domains, epsilons, rounds, designs)
    )

    if not quick:
        head = [
            "least worst case",
            "bound",
            "gap",
            *(f"{name}, published (ratio of variances)" for name in PUBLISHED_WORST),
            "outputs",
            "seconds",
        ]
        table(
            "All prefixes, k = 128, epsilon = 1: total variance of the worst input",
            head,
            worst(rounds),
        )
    head = [
        "D",
        "k",
        "epsilon",
        "RMSE x 1000",
        "/ best tree",
        "/ circular",
        "/ bound",
        "simulated / predicted",
        "bits",
    ]
    repeats, sizes, domain = (10, [32], 1 << 12) if quick else (30, [128, 256], 1 << 16)
    title = (
        "Composite: a mechanism for ranges over k blocks, a binary tree within them; 2^20 users,"
        f" {repeats} repeats"
    )
    table(title, head, composites(domain, sizes, repeats, rounds, designs))


if __name__ == "__main__":
    main()
