"""Quantiles from a trusted curator: rank errors of the exponential mechanism and of a tree; speed.

Prints Markdown tables.

python benchmarks/central_quantiles.py [--users 5000] [--domain 256] [--epsilon 0.1] [--runs 60]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rangeq.central import Hierarchy, quantiles

Values = npt.NDArray[np.int64]


def populations(domain: int, users: int) -> dict[str, Callable[[np.random.Generator], Values]]:
    return {
        "even": lambda rng: rng.integers(0, domain, users),
        "binomial": lambda rng: rng.binomial(domain - 1, 0.4, users),
        "heaped at tenths": lambda rng: rng.integers(0, 10, users) * (domain // 10),
        "half at one value": lambda rng: np.where(
            rng.random(users) < 0.5, domain // 3, rng.integers(0, domain, users)
        ),
    }


def off(values: Values, found: npt.ArrayLike, asked: npt.NDArray[np.float64]) -> float:
    """The mean over quantiles of how far their ranks are from a value's, as a fraction."""
    ordered, told = np.sort(values), np.atleast_1d(found)
    low = np.searchsorted(ordered, told, side="left") / len(values)
    high = np.searchsorted(ordered, told, side="right") / len(values)
    return float(np.maximum(0, np.maximum(low - asked, asked - high)).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=5000)
    parser.add_argument("--domain", type=int, default=256)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=60)
    options = parser.parse_args()
    rng, domain, epsilon = np.random.default_rng(1), options.domain, options.epsilon
    tree = Hierarchy(domain, epsilon, 16)
    print(f"Mean rank error in per cent: {options.users} users, {domain} values, epsilon {epsilon}")
    print("\n| population | quantiles | exponential mechanism | tree, branching 16 |")
    print("| --- | --- | --- | --- |")
    for name, draw in populations(domain, options.users).items():
        for number in (1, 9, 99):
            asked = np.arange(1, number + 1) / (number + 1)
            errors = np.empty((options.runs, 2))
            for run in range(options.runs):
                values = draw(rng)
                own = quantiles(values, asked.tolist(), epsilon, domain=domain, rng=rng)
                other = tree.release(np.bincount(values, minlength=domain), rng).quantile(asked)
                errors[run] = off(values, own, asked), off(values, other, asked)
            one, two = 100 * errors.mean(axis=0)
            print(f"| {name} | {number} | {one:.2f} | {two:.2f} |")
    values = rng.integers(0, 1 << 20, 10**6)
    begun = time.perf_counter()
    quantiles(values, [k / 100 for k in range(1, 100)], 1.0, domain=1 << 20, rng=rng)
    print(f"\n99 quantiles of 10^6 values out of 2^20: {time.perf_counter() - begun:.2f} s")


if __name__ == "__main__":
    main()
