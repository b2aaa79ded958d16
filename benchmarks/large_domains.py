"""Range queries at D = 2^20 and 2^22 with 2^26 users: predicted and simulated errors, and costs.

Prints Markdown tables.

python benchmarks/large_domains.py [--quick]
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
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from range_queries import N, one_core, short, table
from tqdm import tqdm

from frequency.core.aggregate import Aggregate
from rangeq import (
    Between,
    CircularHistogram,
    DecomposedHistogram,
    Flat,
    HaarHRR,
    HierarchicalHistogram,
    RangeEstimate,
    RangeProtocol,
    optimise,
)

SAMPLE = 1 << 18
"""Ranges to average over where there is no sum over all of them."""


@dataclass
class Workload:
    """The pairs a < b of which a is a multiple of ``step``: 1 for all ranges."""

    domain: int
    step: int

    @property
    def starts(self) -> np.ndarray:
        return np.arange(0, self.domain - 1, self.step)

    def mean_square(self, error: np.ndarray) -> float:
        """The mean of (error[b + 1] - error[a])^2, from the errors of the prefixes.

        The empty prefix comes first. The terms are sums over all b for each a.
        """
        after, starts = error[2:][::-1], self.starts
        sums, squares = (np.cumsum(values)[::-1][starts] for values in (after, after**2))
        at, pairs = error[starts], self.domain - 1 - starts
        return float((squares - 2 * at * sums + pairs * at**2).sum() / pairs.sum())

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        pairs = self.domain - 1 - self.starts
        first = rng.choice(self.starts, SAMPLE, p=pairs / pairs.sum())
        return first, first + 1 + rng.integers(0, self.domain - 1 - first)


class Measured:
    """Squared errors and seconds of the repeats of one protocol."""

    def __init__(self, protocol: RangeProtocol) -> None:
        self.protocol = protocol
        self.squares: list[list[float]] = []
        self.predicted = [protocol.average_rmse(N)]
        self.seconds: list[tuple[float, float]] = []

    def add(
        self, aggregate: Aggregate, simulated: float, truth: np.ndarray, workloads: list[Workload]
    ) -> None:
        start = time.process_time()
        estimate = self.protocol.estimate(aggregate)
        _ = estimate.frequencies
        self.seconds.append((simulated, time.process_time() - start))
        rng = np.random.default_rng(len(self.squares))
        if self.protocol.even is not None:
            error = np.concatenate([[0.0], estimate.cdf()]) - truth
            self.squares.append([workload.mean_square(error) for workload in workloads])
        else:
            self.squares.append([sampled(estimate, truth, workload, rng) for workload in workloads])
        # Of the ranges that are not all: from the variances of a sample of them
        if len(self.predicted) == 1:
            ranges = workloads[1].sample(rng)
            self.predicted.append(
                math.sqrt(float(np.mean(estimate.answer(Between(*ranges)).variance)))
            )

    def row(self) -> list[str]:
        squares = np.array(self.squares)
        means = squares.mean(axis=0)
        deviation = squares.std(axis=0, ddof=1) / math.sqrt(len(squares)) / (2 * means)
        cells = [name(self.protocol), str(self.protocol.report_bits)]
        for predicted, mean, error in zip(self.predicted, np.sqrt(means), deviation, strict=True):
            cells += [
                f"{1000 * predicted:.3f}",
                f"{1000 * mean:.3f}",
                f"{mean / predicted:.3f} ± {error:.3f}",
            ]
        return [*cells, *(f"{s:.1f}" for s in np.median(self.seconds, axis=0)), str(len(squares))]


def sampled(
    estimate: RangeEstimate, truth: np.ndarray, workload: Workload, rng: np.random.Generator
) -> float:
    first, last = workload.sample(rng)
    return float(np.mean((estimate.range(first, last) - (truth[last + 1] - truth[first])) ** 2))


def name(protocol: RangeProtocol) -> str:
    decomposed = isinstance(protocol, DecomposedHistogram)
    return short(protocol) + (", without consistency" if decomposed else "")


def protocols(domain: int, epsilon: float) -> Iterator[RangeProtocol]:
    found = [protocol for protocol, _ in optimise(domain, epsilon, N, progress=True).alternatives]
    yield next(protocol for protocol in found if isinstance(protocol, CircularHistogram))
    yield next(
        p for p in found if isinstance(p, HierarchicalHistogram) and isinstance(p.oracle, tuple)
    )
    yield HaarHRR(domain, epsilon)
    for oracle in ("OUE", "HRR"):
        for branching in (2, 4, 8, 16):
            yield HierarchicalHistogram(domain, epsilon, branching, oracle)
    for oracle in ("OUE", "HRR"):
        yield Flat(domain, epsilon, oracle=oracle)


def cauchy(domain: int, users: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of so many users from the paper's default population.

    Its centre is 0.4 D, its height D / 10, and no item is outside the domain.
    """
    density = 1 / (1 + ((np.arange(domain) - 0.4 * domain) / (0.1 * domain)) ** 2)
    return rng.multinomial(users, density / density.sum())


def more(done: int, seconds: float, repeats: int) -> bool:
    """Whether to repeat: beyond ``repeats`` what is quick."""
    return done < repeats or (seconds < 8 and done < 10 * repeats)


def measure(domain: int, step: int, epsilon: float, repeats: int) -> None:
    rng = np.random.default_rng(5)
    held = cauchy(domain, N, rng)
    truth = np.concatenate([[0.0], np.cumsum(held) / N])
    workloads = [Workload(domain, 1), Workload(domain, step)]
    rows, inconsistent = [], []
    for protocol in tqdm(
        list(protocols(domain, epsilon)), desc=f"D = 2^{domain.bit_length() - 1}", leave=False
    ):
        begun, found = time.process_time(), [Measured(protocol)]
        if isinstance(protocol, HierarchicalHistogram) and isinstance(protocol.oracle, str):
            p = protocol
            loose = DecomposedHistogram(p.domain, p.epsilon, p.branching, p.oracle, p.probabilities)
            found.append(Measured(loose))
        while more(len(found[0].squares), time.process_time() - begun, repeats):
            start = time.process_time()
            aggregate = protocol.simulate(held, rng)
            simulated = time.process_time() - start
            for one in found:  # what users send is the same with and without consistency
                one.add(
                    Aggregate(one.protocol.channel.signature, aggregate.n, aggregate.counts),
                    simulated,
                    truth,
                    workloads,
                )
        rows.append(found[0].row())
        inconsistent += [one.row() for one in found[1:]]
    ranges = len(workloads[1].starts) * (domain - 1) - int(workloads[1].starts.sum())
    head = [
        "protocol",
        "bits",
        "all ranges: predicted",
        "simulated",
        "ratio",
        f"{ranges / 1e6:.0f} M ranges: predicted",
        "simulated",
    ]
    table(
        f"D = 2^{domain.bit_length() - 1}, N = 2^26, epsilon = {epsilon:g}: RMSE x 1000",
        [*head, "ratio", "simulate, s", "estimate, s", "repeats"],
        rows + inconsistent,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller domain and fewer repeats")
    quick = parser.parse_args().quick
    one_core()
    for domain, step in [(1 << 16, 1 << 8)] if quick else [(1 << 20, 1 << 15), (1 << 22, 1 << 16)]:
        measure(domain, step, 1.1, 2 if quick else 5)
    print(f"\nPeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB.")


if __name__ == "__main__":
    main()
