"""Errors of tables of small counts that are made to agree, and of regions in regions.

Root mean square errors over repeated releases of random tables, in people. Prints Markdown tables.

python benchmarks/consistent_tables.py [--releases 40]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from mechdesign.base.numbers import Floats
from mechdesign.tables import release_contingency
from rangeq.central import Regions, release_regions

SHARES = [0.5, 0.3, 0.1, 0.07, 0.03]
"""Of the answers that people give."""


def root_mean_square(errors: Any) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def contingency(releases: int) -> None:
    """Sixty regions of twelve people each, with five answers."""
    rng = np.random.default_rng(1)
    counts = rng.multinomial(12, SHARES, size=60)
    axes = {"region": [f"r{k}" for k in range(60)], "answer": list("abcde")}
    print("| sums by answer | table | cell | sum of an answer | least and largest mean error |")
    print("| --- | --- | --- | --- | --- |")
    asked: dict[str, dict[tuple[str, ...], int]]
    asked = {"not released": {}, "epsilon 1": {("answer",): 1}}
    for name, margins in asked.items():
        errors: dict[str, list[Any]] = {}
        for _ in range(releases):
            found = release_contingency(
                counts, axes, 1, within=["region"], margins=margins, rng=rng
            )
            tables = {
                "released": found.released,
                "estimates of single cells": _estimates(found),
                "consistent": found.consistent().cells,
                "whole numbers": found.whole(draws=2, rng=rng).cells,
            }
            for kind, cells in tables.items():
                errors.setdefault(kind, []).append(cells - counts)
        for kind, all_errors in errors.items():
            sums = np.sum(all_errors, axis=1)
            means = sums.mean(axis=0)
            print(
                f"| {name} | {kind} | {root_mean_square(all_errors):.2f} |"
                f" {root_mean_square(sums):.1f} | {means.min():+.1f}, {means.max():+.1f} |"
            )


def _estimates(found: Any) -> Floats:
    cells = [cell.estimate for cell in found.cells.cells()]
    return np.array(cells, dtype=np.float64).reshape(found.axes.shape)


def regions(releases: int) -> None:
    """Four hundred leaves of 5 to 20 people in twenty counties of a country."""
    rng = np.random.default_rng(1)
    tree = Regions([("country", f"county {k // 20}", f"ward {k}") for k in range(400)])
    sizes = rng.integers(5, 21, 400)
    counts = rng.binomial(sizes, 0.2)
    truth = tree.sums(counts)
    print("| budget | country | county | ward |")
    print("| --- | --- | --- | --- |")
    for budget in ("leaves", (1, 2, 4), "equal"):
        errors = np.array(
            [
                release_regions(tree, counts, sizes, 1, budget=budget, rng=rng).estimate().values
                - truth
                for _ in range(releases)
            ]
        )
        depths = [f"{root_mean_square(errors[:, tree.depths == d]):.1f}" for d in range(3)]
        print(f"| {budget} | {' | '.join(depths)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=40, help="how many of each")
    options = parser.parse_args()
    contingency(options.releases)
    print()
    regions(options.releases)


if __name__ == "__main__":
    main()
