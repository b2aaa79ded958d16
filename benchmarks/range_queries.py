"""Range queries: accuracy against the published protocols, and speed, in seconds of one core.

Prints Markdown tables.

python benchmarks/range_queries.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
from tqdm import tqdm

from mechdesign.evaluate import EstimatedBy, evaluate, mean_square_of_ranges
from rangeq import (
    Between,
    CircularHistogram,
    Distribution,
    HaarHRR,
    HierarchicalHistogram,
    Optimised,
    RangeProtocol,
    central,
    optimise,
)
from rangeq.core.tree import Tree
from rangeq.core.tree_inference import consistent
from rangeq.local.hierarchy import LevelHistograms
from rangeq.local.optimisation import describe

N = 1 << 26


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def one_core() -> None:
    """Stay on one core, the last of those allowed."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def circular(protocol: RangeProtocol) -> bool:
    return isinstance(protocol, CircularHistogram)


def tree(protocol: RangeProtocol) -> bool:
    """Whether optimised: with an oracle for each level."""
    return isinstance(protocol, HierarchicalHistogram) and isinstance(protocol.oracle, tuple)


def published(protocol: RangeProtocol) -> bool:
    return not circular(protocol) and not tree(protocol)


def best_of(found: Optimised, kind: Callable[[RangeProtocol], bool]) -> tuple[RangeProtocol, float]:
    return next(pair for pair in found.alternatives if kind(pair[0]))


def short(protocol: RangeProtocol) -> str:
    """A description without the oracles and probabilities of the levels.

    A tree of equal branching is written as HH2c.
    """
    if (
        isinstance(protocol, LevelHistograms)
        and isinstance(protocol.oracle, str)
        and protocol.tree.height > 1
    ):
        consistent = "c" if isinstance(protocol, HierarchicalHistogram) else ""
        return f"HH{max(protocol.tree.branching)}{consistent}, {protocol.oracle}"
    return describe(protocol).split(":")[0]


def values_alone(protocol: RangeProtocol) -> EstimatedBy:
    """Without the variances of answers, which for all prefixes take long."""
    return EstimatedBy(
        protocol, lambda aggregate: Distribution(protocol.estimate(aggregate).frequencies)
    )


def simulated(protocol: RangeProtocol, n: int, repeats: int) -> float:
    """RMSE over all ranges of at least two items, for an even population."""
    domain = protocol.domain
    (found,) = evaluate(
        {short(protocol): lambda _: values_alone(protocol)},
        {"even": np.full(domain, n // domain)},
        {"prefixes": [(0, np.arange(domain))]},
        [float(protocol.epsilon)],
        repeats,
        confidence=None,
        measures={"ranges": partial(mean_square_of_ranges, least=2)},
    ).summary()
    return math.sqrt(found.measures["ranges"])


def accuracy(domains: list[int], epsilons: list[float], repeats: int) -> None:
    rows = []
    for domain in domains:
        for epsilon in tqdm(epsilons, desc=f"D = {domain}", leave=False):
            best, prefixes = optimise(domain, epsilon, N), optimise(domain, epsilon, N, "prefixes")
            rival, error = best_of(best, published)
            of_prefixes = best_of(prefixes, published)[1]
            users = 1 << 18
            measured = simulated(best.protocol, users, repeats) / best.protocol.average_rmse(users)
            ratios = [best_of(best, tree)[1] / error, best.rmse / error, best.bound / error]
            ratios += [prefixes.rmse / of_prefixes, prefixes.bound / of_prefixes, measured]
            row = [
                str(domain),
                f"{epsilon:g}",
                short(rival),
                f"{1000 * error:.3f}",
                short(best.protocol),
                str(best.protocol.report_bits),
            ]
            rows.append(row + [f"{ratio:.3f}" for ratio in ratios])
    head = ["D", "epsilon", "best published", "its RMSE x 1000", "optimised", "bits"]
    head += [
        "best tree",
        "optimised",
        "proved bound",
        "prefixes: optimised",
        "proved bound",
        "simulated / predicted",
    ]
    table(
        f"All ranges, N = 2^26: ratios to the RMSE of the best published protocol; {repeats}"
        " repeats",
        head,
        rows,
    )


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """The median time on the processor, so that others who use it do not count."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def end_to_end(protocol: RangeProtocol, users: int) -> list[str]:
    rng = np.random.default_rng(2)
    domain = protocol.domain
    values = np.minimum((rng.beta(2, 5, users) * domain).astype(np.int64), domain - 1)
    start = time.process_time()
    parts = np.array_split(values, 16)
    total = protocol.aggregate(protocol.privatize(parts[0], rng))
    for part in parts[1:]:
        total = total + protocol.aggregate(protocol.privatize(part, rng))
    collected = time.process_time()
    estimate = protocol.estimate(total)
    _ = estimate.frequencies
    estimated = time.process_time()
    ends = np.sort(rng.integers(0, domain, (2, 1_000_000)), axis=0)
    estimate.answer(Between(*ends)).interval()
    answered = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    times = [
        f"{collected - start:.1f}",
        f"{estimated - collected:.1f}",
        f"{answered - estimated:.2f}",
    ]
    return [
        short(protocol),
        str(domain),
        str(users),
        str(protocol.report_bits),
        *times,
        f"{memory:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller domains and fewer repeats")
    quick = parser.parse_args().quick
    one_core()

    domains, users = (
        ([1 << 14, 1 << 16], 1 << 20) if quick else ([1 << 16, 1 << 20, 1 << 22], 1 << 24)
    )
    domain = domains[-1]
    protocols: list[RangeProtocol] = [
        HierarchicalHistogram(domain, 1.1, 4, "HRR"),
        HaarHRR(domain, 1.1),
        HierarchicalHistogram(domain, 1.1, 16, "OLH"),
    ]
    protocols += [best_of(optimise(domain, 1.1, users), circular)[0] for domain in domains]
    head = [
        "protocol",
        "D",
        "users",
        "bits",
        "client and aggregation, s",
        "estimate, s",
        "10^6 answers with intervals, s",
        "peak memory so far, GiB",
    ]
    table("Real reports, end to end", head, [end_to_end(protocol, users) for protocol in protocols])

    rng = np.random.default_rng(3)
    large = Tree.of(1 << 20, 16)
    levels = [rng.normal(size=nodes) for nodes in large.nodes]
    counts = rng.integers(0, 100, 1 << 20)
    curator = central.Hierarchy(1 << 20, 1.0, 16)
    rows = [
        [
            "consistency, 2^20 leaves, B = 16",
            f"{seconds(lambda: consistent(large, levels, [1.0] * large.height)):.3f}",
        ],
        [
            "central release with exact noise and inference, 2^20 leaves, b = 16",
            f"{seconds(lambda: curator.release(counts), 3):.2f}",
        ],
    ]
    table("Speed", ["", "seconds"], rows)
    accuracy(
        [256] if quick else [17, 256, 1000, 1 << 16],
        [0.2, 1.1] if quick else [0.2, 0.6, 1.1, 1.4, 3.0],
        10 if quick else 60,
    )


if __name__ == "__main__":
    main()
