"""SuccinctHistogram at real sizes: what it finds, said beforehand and measured, and times.

Prints a Markdown table.

python benchmarks/succinct_histograms.py [--quick]

Items at the least frequency that is found with probability 95 %, by `least_frequency`, among others
just below what the bound allows them in a channel ("rivals", the worst company), and among items of
Zipf's law; and items of half that frequency. One item counts in each repeat: over seeds.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import time
from collections.abc import Iterator

import numpy as np
from range_queries import one_core, table
from tqdm import tqdm

from frequency.heavy import SuccinctHistogram


def others(kind: str, users: int, held: int) -> np.ndarray:
    """How many users hold each of the other items."""
    if kind == "rivals":
        below = max(1, held * 3 // 10)
        return np.full(max(users // below, 1), below)
    weights = np.arange(1, 2001) ** -1.1
    return (users * weights / weights.sum()).astype(int)


def recall(bits: int, epsilon: float, n: int, kind: str, share: float, repeats: int) -> str:
    """How often one item of this share of the users is found."""
    hits = 0
    for seed in range(repeats):
        protocol = SuccinctHistogram(bits, epsilon, n=n, seed=seed)
        rng = np.random.default_rng([3, seed])
        held = int(np.ceil(share * n))
        counts = np.concatenate([[held], others(kind, n - held, held)])
        words = np.unique(rng.integers(0, 1 << bits, 2 * len(counts), dtype=np.uint64))
        items = rng.permutation(words)[: len(counts)]
        found = protocol.find(protocol.simulate(counts[: len(items)], rng, items))
        hits += bool((found.items == items[0]).any())
    return f"{hits / repeats:.2f}"


def rows(cases: list[tuple[int, float, int]], repeats: int, timed: int) -> Iterator[list[str]]:
    for bits, epsilon, n in tqdm(cases, leave=False, disable=None):
        protocol = SuccinctHistogram(bits, epsilon, n=n)
        channel, least = protocol.channel, protocol.least_frequency
        values = np.random.default_rng(1).integers(0, 1 << bits, timed, dtype=np.uint64)
        start = time.process_time()
        reports = protocol.privatize(values, np.random.default_rng(2))
        client = time.process_time() - start
        start = time.process_time()
        aggregate = protocol.aggregate(reports)
        server = (time.process_time() - start) * n / timed
        start = time.process_time()
        protocol.find(aggregate)
        find = time.process_time() - start
        yield [
            str(bits),
            f"{epsilon:g}",
            str(n),
            f"{channel.hashes} x {channel.channels} x {channel.code.length}",
            f"{least:.2%}",
            *(recall(bits, epsilon, n, kind, least, repeats) for kind in ("rivals", "Zipf")),
            recall(bits, epsilon, n, "Zipf", least / 2, repeats),
            f"{1e6 * client / timed:.0f}",
            f"{server:.1f}",
            f"{find:.1f}",
        ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    one_core()
    head = ["bits", "epsilon", "n", "hashes x channels x signs", "found from"]
    head += ["among rivals", "among Zipf's", "half of it", "client, µs", "aggregate, s", "find, s"]
    cases = [(16, epsilon, n) for n in (200_000, 1_000_000) for epsilon in (1.0, 2.0, 4.0)]
    cases += [(64, 2.0, 200_000), (64, 2.0, 1_000_000)]
    print("\n# Succinct histograms at real sizes")
    table(
        "The least frequency found with probability 95 %: said beforehand, and measured",
        head,
        rows(cases[1:2] if quick else cases, 4 if quick else 20, 2000 if quick else 20_000),
    )
