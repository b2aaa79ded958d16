"""Intervals of totals of released counts: how often they cover, and how long they are.

Over count mechanisms for groups of 1 to 30 people (GM, EM, and GM of which every other output is a
guess), epsilon from 1/20 to 5, and six ways in which true counts are heaped or spread. Prints a
Markdown table: for the number of groups in a total, the least coverage over all of these and the
mean; and half the length in standard errors, of which normal errors need 1.96 at 95 %, where a
standard error is at least one person, and at most an eighth of all, so that ends are not cut.

python benchmarks/table_intervals.py [--trials 1000]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from mechdesign import Mechanism, Privacy, named
from mechdesign.base.numbers import Integers
from mechdesign.tables.estimates import TotalEstimate, group_errors

EPSILONS = ("1/20", "1/2", "2", "5")
SIZES = (1, 2, 8, 30)
GROUPS = (2, 3, 10, 100, 5000)
CONFIDENCES = (0.5, 0.8, 0.95, 0.99)


def mechanisms() -> Iterator[Mechanism]:
    for epsilon, n in product(EPSILONS, SIZES):
        privacy = Privacy.from_epsilon(epsilon)
        geometric = named.geometric(n, alpha=privacy.alpha)
        share = Fraction(1, 2 * (n + 1))
        yield geometric
        yield named.explicit_fair(n, alpha=privacy.alpha)
        yield Mechanism([[p / 2 + share for p in row] for row in geometric.table], privacy)


def populations(n: int, groups: int) -> Iterator[Integers]:
    """The true counts of the groups: heaped at an end, in the middle, at both, or spread."""
    yield np.zeros(groups, dtype=np.int64)
    yield np.full(groups, n)
    yield np.full(groups, n // 2)
    yield np.arange(groups) % 2 * n
    yield np.arange(groups) % (n + 1)
    yield np.minimum(np.arange(groups) % 3 // 2, n)


def measured(
    mechanism: Mechanism, counts: Integers, confidence: float, trials: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The coverage, and half the mean length in standard errors; NaN where that says nothing."""
    errors, truth = group_errors(mechanism), int(counts.sum())
    drawn = np.zeros((trials, mechanism.outputs), dtype=np.int64)
    for count, groups in zip(*np.unique(counts, return_counts=True), strict=True):
        column = mechanism.matrix[:, count]
        drawn += rng.multinomial(groups, column / column.sum(), size=trials)
    totals = [TotalEstimate([(errors, outputs)]) for outputs in drawn]
    ends = np.array([total.interval(confidence) for total in totals])
    covered = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    deviation = np.std([total.value for total in totals])
    half = float(np.mean(ends[:, 1] - ends[:, 0]) / 2 / deviation)
    return float(covered.mean()), half if 1 < deviation < totals[0].people / 8 else np.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000, help="of each case")
    trials = parser.parse_args().trials
    rng = np.random.default_rng(1)
    print("| confidence | groups | least coverage | mean | half length: median | 9 in 10 below |")
    print("| --- | --- | --- | --- | --- | --- |")
    for confidence, groups in product(CONFIDENCES, GROUPS):
        cases = [
            measured(mechanism, counts, confidence, trials, rng)
            for mechanism in mechanisms()
            for counts in populations(mechanism.inputs - 1, groups)
        ]
        coverage, lengths = np.transpose(cases)
        print(
            f"| {confidence} | {groups} | {coverage.min():.3f} | {coverage.mean():.3f}"
            f" | {np.nanmedian(lengths):.2f} | {np.nanquantile(lengths, 0.9):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
