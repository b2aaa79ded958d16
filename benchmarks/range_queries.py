"""Range queries: accuracy against the published protocols, and speed. Prints Markdown tables.

python benchmarks/range_queries.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import math
import resource
import time
from collections.abc import Callable

import numpy as np
from tqdm import tqdm

from rangeq import HaarHRR, HierarchicalHistogram, RangeProtocol, central, optimise
from rangeq.consistency import consistent
from rangeq.optimise import describe
from rangeq.tree import Tree

N = 1 << 26


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def published(protocol: RangeProtocol) -> bool:
    return not (isinstance(protocol, HierarchicalHistogram) and isinstance(protocol.oracle, tuple))


def simulated(protocol: RangeProtocol, n: int, repeats: int, rng: np.random.Generator) -> float:
    """RMSE over all ranges of at least two items, for a population spread evenly."""
    domain = protocol.domain
    held = np.full(domain, n // domain)
    truth, total = np.arange(domain + 1) / domain, 0.0
    for _ in range(repeats):
        error = np.concatenate([[0.0], protocol.estimate(protocol.simulate(held, rng)).cdf()]) - truth
        squares = (domain + 1) * (error**2).sum() - error.sum() ** 2 - (np.diff(error) ** 2).sum()
        total += squares / (domain * (domain - 1) / 2)
    return math.sqrt(total / repeats)


def accuracy(domains: list[int], epsilons: list[float], repeats: int) -> None:
    rows = []
    rng = np.random.default_rng(1)
    for domain in domains:
        for epsilon in tqdm(epsilons, desc=f"D = {domain}", leave=False):
            best = optimise(domain, epsilon, N)
            prefixes = optimise(domain, epsilon, N, "prefixes")
            rival, error = next(pair for pair in best.alternatives if published(pair[0]))
            of_prefixes = next(rmse for protocol, rmse in prefixes.alternatives if published(protocol))
            users = 1 << 18
            measured = simulated(best.protocol, users, repeats, rng) / best.protocol.average_rmse(users)
            rows.append(
                [
                    *(str(domain), f"{epsilon:g}", describe(rival), f"{1000 * error:.3f}", f"{1000 * best.rmse:.3f}"),
                    *(f"{best.rmse / error:.3f}", f"{prefixes.rmse / of_prefixes:.3f}", f"{measured:.3f}"),
                ]
            )
    head = ["D", "epsilon", "best published", "its RMSE x 1000", "optimised", "ratio", "ratio, prefixes", "simulated / predicted"]
    table(
        f"All ranges, N = 2^26: optimised trees against the best of HH2c .. HH16c (OUE, HRR), HaarHRR, Flat; {repeats} repeats",
        head,
        rows,
    )


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def end_to_end(protocol: RangeProtocol, users: int) -> list[str]:
    rng = np.random.default_rng(2)
    domain = protocol.domain
    values = np.minimum((rng.beta(2, 5, users) * domain).astype(np.int64), domain - 1)
    start = time.perf_counter()
    total = sum(protocol.aggregate(protocol.privatize(part, rng)) for part in np.array_split(values, 16))
    collected = time.perf_counter()
    estimate = protocol.estimate(total)
    _ = estimate.frequencies
    estimated = time.perf_counter()
    ends = np.sort(rng.integers(0, domain, (2, 1_000_000)), axis=0)
    estimate.interval(*ends)
    answered = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    times = [f"{collected - start:.1f}", f"{estimated - collected:.1f}", f"{answered - estimated:.2f}"]
    return [describe(protocol), str(domain), str(users), *times, f"{memory:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller domains and fewer repeats")
    quick = parser.parse_args().quick
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    domain, users = (1 << 16, 1 << 20) if quick else (1 << 22, 1 << 24)
    protocols = [HierarchicalHistogram(domain, 1.1, 4, "HRR"), HaarHRR(domain, 1.1), HierarchicalHistogram(domain, 1.1, 16, "OLH")]
    head = [
        "protocol",
        "D",
        "users",
        "client and aggregation, s",
        "estimate, s",
        "10^6 answers with intervals, s",
        "peak memory so far, GiB",
    ]
    table("Real reports, end to end", head, [end_to_end(protocol, users) for protocol in protocols])

    rng = np.random.default_rng(3)
    tree = Tree.of(1 << 20, 16)
    levels = [rng.normal(size=nodes) for nodes in tree.nodes]
    counts = rng.integers(0, 100, 1 << 20)
    curator = central.Hierarchy(1 << 20, 1.0, 16)
    rows = [
        ["consistency, 2^20 leaves, B = 16", f"{seconds(lambda: consistent(tree, levels, [1.0] * tree.height)):.3f}"],
        [
            "central release with exact noise and inference, 2^20 leaves, b = 16",
            f"{seconds(lambda: curator.release(counts), 3):.2f}",
        ],
    ]
    table("Speed", ["", "seconds"], rows)
    accuracy([256] if quick else [17, 256, 1000, 1 << 16], [0.2, 1.1] if quick else [0.2, 0.6, 1.1, 1.4, 3.0], 10 if quick else 60)


if __name__ == "__main__":
    main()
