"""Quantiles from a trusted curator: rank errors of several ways; speed.

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
from functools import partial

import numpy as np
import numpy.typing as npt

from rangeq.central import Hierarchy, QuantileRelease, TreeQuantiles, quantiles

Values = npt.NDArray[np.int64]
Release = Callable[[Values], npt.ArrayLike]


def populations(domain: int, users: int) -> dict[str, Callable[[np.random.Generator], Values]]:
    def inside(values: npt.NDArray[np.float64]) -> Values:
        return np.clip(values, 0, domain - 1).astype(np.int64)

    return {
        "even": lambda rng: rng.integers(0, domain, users),
        "binomial": lambda rng: rng.binomial(domain - 1, 0.4, users),
        "heaped at tenths": lambda rng: rng.integers(0, 10, users) * (domain // 10),
        "half at one value": lambda rng: np.where(
            rng.random(users) < 0.5, domain // 3, rng.integers(0, domain, users)
        ),
        "exponential": lambda rng: inside(rng.exponential(domain / 8, users)),
        "two bells": lambda rng: inside(
            domain
            * np.where(
                rng.random(users) < 0.3,
                rng.normal(0.2, 0.03, users),
                rng.normal(0.6, 0.1, users),
            )
        ),
        "steps": lambda rng: (
            rng.integers(0, domain // 4, users) + (rng.random(users) < 0.5) * (domain // 2)
        ),
        "Zipf": lambda rng: inside(rng.zipf(1.3, users) - 1.0),
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

    def alone(values: Values, q: tuple[float, ...]) -> npt.ArrayLike:
        found: npt.ArrayLike = tree.release(np.bincount(values, minlength=domain), rng).quantile(q)
        return found

    def inner(release: QuantileRelease | TreeQuantiles) -> Release:
        return lambda values: release.release(values, rng)

    print(f"Mean rank error in per cent: {options.users} users, {domain} values, epsilon {epsilon}")
    print("\n| population | quantiles | `quantiles` | exponential | smoothed tree | tree |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, draw in populations(domain, options.users).items():
        for number in (1, 9, 99):
            asked = np.arange(1, number + 1) / (number + 1)
            q = tuple(asked.tolist())
            ways: list[Release] = [
                partial(quantiles, q=q, epsilon=epsilon, domain=domain, rng=rng),
                inner(QuantileRelease(domain, q, epsilon)),
                inner(TreeQuantiles(domain, q, epsilon)),
                partial(alone, q=q),
            ]
            errors = np.empty((options.runs, len(ways)))
            for run in range(options.runs):
                values = draw(rng)
                errors[run] = [off(values, way(values), asked) for way in ways]
            row = " | ".join(f"{100 * error:.2f}" for error in errors.mean(axis=0))
            print(f"| {name} | {number} | {row} |", flush=True)
    values = rng.integers(0, 1 << 20, 10**6)
    begun = time.perf_counter()
    quantiles(values, [k / 100 for k in range(1, 100)], 1.0, domain=1 << 20, rng=rng)
    print(f"\n99 quantiles of 10^6 values out of 2^20: {time.perf_counter() - begun:.2f} s")
    begun = time.perf_counter()
    TreeQuantiles(1 << 20, tuple(k / 100 for k in range(1, 100)), 1.0).release(values, rng)
    print(f"The same by a smoothed tree: {time.perf_counter() - begun:.2f} s")


if __name__ == "__main__":
    main()
