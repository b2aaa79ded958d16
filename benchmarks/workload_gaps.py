"""How far designs of `mechdesign.local.workload_optimal` are above their bounds.

Prints a Markdown table.

python benchmarks/workload_gaps.py [--domains 8 16 32] [--epsilons 1 2 4] [--criterion worst]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
from range_queries import one_core, table

from mechdesign.base.numbers import Floats
from mechdesign.local.patterns import NAMES, marginals, parities
from mechdesign.local.workload_mechanism import workload_optimal


def workloads(domain: int) -> Iterator[tuple[str, str | Floats]]:
    yield from ((name, name) for name in NAMES)
    bits = domain.bit_length() - 1
    if domain == 1 << bits and bits >= 3:
        yield "3-way parities", parities(bits, 3)
        yield "2-way marginals", marginals([2] * bits, 2)
    rng = np.random.default_rng(domain)
    for queries in (1, 3):
        yield f"{queries} random", rng.integers(-3, 4, size=(queries, domain)).astype(np.float64)


def cells(domains: list[int], epsilons: list[float], criterion: str) -> Iterator[list[str]]:
    for domain in domains:
        for name, workload in workloads(domain):
            for epsilon in epsilons:
                start = time.perf_counter()
                design = workload_optimal(workload, domain, epsilon, criterion)
                taken = time.perf_counter() - start
                row = [name, str(domain), f"{epsilon:g}", f"{design.variance:.6g}"]
                gap = f"{100 * design.gap:.3g} %"
                yield [*row, gap, str(design.mechanism.outputs), f"{taken:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--domains", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--criterion", choices=["average", "worst"], default="average")
    arguments = parser.parse_args()
    one_core()
    head = ["workload", "k", "epsilon", "total variance", "gap", "outputs", "seconds"]
    rows = cells(arguments.domains, arguments.epsilons, arguments.criterion)
    table(f"Designs for the {arguments.criterion}", head, rows)


if __name__ == "__main__":
    main()
