"""Posteriors of released histograms beside the unbiased answers: errors, intervals, time.

Prints a Markdown table: for ten kinds of data, root mean square errors over all ranges of the
posterior over those of what was released, of the histogram without negative numbers too; and how
many of the intervals of 95 % of random ranges held, and how much shorter they were.

    python benchmarks/posteriors.py [--cells D] [--repeats N]     four minutes
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
from range_queries import one_core, table

from frequency import Between
from mechdesign import Privacy
from mechdesign.base import Floats
from rangeq.central import NoPosterior, workload_optimal


def kinds(cells: int) -> dict[str, Floats]:
    """Shares of ten kinds of data."""
    rng = np.random.default_rng(5)
    item = np.arange(cells)
    x = (item + 0.5) / cells
    spikes, few = np.full(cells, 0.2), np.zeros(cells)
    spikes[rng.choice(cells, 8, replace=False)] += 20
    few[rng.choice(cells, 6, replace=False)] = 1
    heaps = 1 + 5 * (item % 5 == 0) + 6 * (item % 10 == 0)
    found = {
        "even": np.ones(cells),
        "normal": np.exp(-(((x - 0.4) / 0.1) ** 2) / 2),
        "two modes": np.exp(-(((x - 0.3) / 0.05) ** 2) / 2)
        + np.exp(-(((x - 0.75) / 0.08) ** 2) / 2) / 2,
        "Zipf": 1 / (item + 1.0),
        "Zipf, shuffled": rng.permutation(1 / (item + 1.0)),
        "steps": np.repeat(rng.exponential(1, 8), cells // 8),
        "spikes": spikes,
        "six cells": few,
        "heaps": np.exp(-(((x - 0.3) / 0.2) ** 2) / 2) * heaps,
        "exponential": np.exp(-8 * x),
    }
    return {name: shares / shares.sum() for name, shares in found.items()}


def over_ranges(error: Floats) -> float:
    """The mean square of an error over all ranges."""
    prefix = np.concatenate([[0.0], np.cumsum(error)])
    return 2 * len(prefix) / (len(prefix) - 1) * float(prefix.var())  # over all pairs of ends


def rows(cells: int, repeats: int) -> Iterator[list[str]]:
    """A row for each number of users and epsilon."""
    ends = np.triu_indices(cells)
    for users, epsilon in ((1000, "0.1"), (1000, "1"), (10_000, "0.1"), (10_000, "1")):
        mechanism = workload_optimal("ranges", cells, Privacy.from_epsilon(epsilon)).mechanism
        ratios, positive, held, widths, seconds, none = [], [], [], [], 0.0, 0
        for shares in kinds(cells).values():
            own = probable = without = 0.0
            for seed in range(repeats):
                rng = np.random.default_rng(seed)
                truth = rng.multinomial(users, shares)
                estimate = mechanism.release(truth, rng)
                start = time.perf_counter()
                try:
                    posterior = estimate.posterior()
                except NoPosterior:
                    none += 1
                    continue
                seconds = max(seconds, time.perf_counter() - start)
                own += over_ranges(estimate.counts - truth)
                probable += over_ranges(posterior.counts - truth)
                without += over_ranges(estimate.nonnegative() - truth)
                some = rng.integers(0, len(ends[0]), 400)
                asked = Between(ends[0][some], ends[1][some])
                prefix = np.concatenate([[0], np.cumsum(truth)])
                exactly = prefix[asked.last + 1] - prefix[asked.first]
                low, high = posterior.answer(asked).interval(on_average=True)
                other = estimate.answer(asked).interval()
                held.append(np.mean((low <= exactly) & (exactly <= high)))
                widths.append(np.median((high - low) / (other.high - other.low)))
            ratios.append((probable / own) ** 0.5)
            positive.append((without / own) ** 0.5)
        yield [
            f"{users:,}",
            epsilon,
            f"{np.exp(np.mean(np.log(ratios))):.2f} ({max(ratios):.2f})",
            f"{np.exp(np.mean(np.log(positive))):.2f} ({max(positive):.2f})",
            f"{np.mean(held):.3f}",
            f"{np.mean(widths):.2f}",
            f"{seconds:.2f}",
            str(none),
        ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cells", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    one_core()
    head = ["users", "epsilon", "posterior (worst)", "nonnegative (worst)", "held", "width"]
    head += ["seconds at most", "none"]
    table(f"{options.cells} cells", head, rows(options.cells, options.repeats))


if __name__ == "__main__":
    main()
