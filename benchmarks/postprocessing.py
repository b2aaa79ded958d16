"""Errors and intervals of empirical Bayes beside every other method of `frequency.postprocess`.

    python benchmarks/postprocessing.py            five minutes
    python benchmarks/postprocessing.py --quick    a minute

Prints a Markdown table. A line is a family of data, over all sizes of survey and oracles. Errors
are sums of squares over the items, averaged over repeats, in units of the error of the method that
was best in hindsight, without empirical Bayes, for that family, survey and oracle: "mean" is the
geometric mean over surveys, "worst" the largest. "Within 1.05" is how many surveys are at most
that. "Covered" are the intervals of 95 %: on average over items and over the ten items of largest
estimate, and the least over surveys.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency import GRR, HRR, OLH, OUE, Estimate, Oracle, postprocess

Array = npt.NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], npt.NDArray[Any]]

FAMILIES: dict[str, Draw] = {
    "even": lambda k, rng: np.ones(k),
    "few equal items": lambda k, rng: (np.arange(k) < min(40, k // 4)) * 1.0,
    "Zipf, exponent 1": lambda k, rng: 1.0 / np.arange(1, k + 1),
    "Zipf, exponent 1.5": lambda k, rng: np.arange(1, k + 1) ** -1.5,
    "geometric": lambda k, rng: 0.95 ** np.arange(k),
    "three spikes": lambda k, rng: np.concatenate([[0.3, 0.15, 0.05], np.full(k - 3, 0.5 / k)]),
    "two levels": lambda k, rng: np.where(np.arange(k) < k // 8, 10.0, 1.0),
    "sparse": lambda k, rng: (rng.random(k) < 0.05) * rng.exponential(size=k) + 1e-12,
    "Dirichlet, 0.1": lambda k, rng: rng.gamma(0.1, size=k) + 1e-300,
    "Dirichlet, 1": lambda k, rng: rng.gamma(1.0, size=k),
    "log-normal": lambda k, rng: np.exp(1.5 * rng.normal(size=k)),
    "three levels": lambda k, rng: np.repeat([4.0, 1.0, 0.0], [k // 4, k // 2, k - 3 * (k // 4)]),
}
"""Frequencies up to a factor. The last two were not looked at when constants were chosen."""

SURVEYS: list[tuple[Callable[[int, float], Oracle], int, float, int]] = [
    (GRR, 16, 1.0, 1000),
    (GRR, 16, 4.0, 100_000),
    (OUE, 16, 2.0, 1000),
    (OUE, 64, 1.0, 10_000),
    (HRR, 256, 0.5, 100_000),
    (GRR, 256, 4.0, 100_000),
    (OLH, 512, 2.0, 20_000),
    (OUE, 1024, 1.0, 100_000),
    (OUE, 4096, 2.0, 1_000_000),
    (OUE, 4096, 1.0, 10_000),
]


@dataclass
class Line:
    """What was measured of one family."""

    ratios: list[float] = field(default_factory=list)
    nearest: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)


def others(estimate: Estimate, oracle: Oracle) -> dict[str, Array]:
    """What every other method makes of an estimate."""
    values, deviation = estimate.frequencies, math.sqrt(oracle.variance(estimate.n))
    simple = ("base_pos", "norm", "norm_mul", "norm_sub", "norm_cut")
    found = {name: getattr(postprocess, name)(values) for name in simple}
    found["base_cut"] = postprocess.base_cut(values, deviation)
    found["power_ns"] = postprocess.power_ns(values, deviation, estimate.n)
    if isinstance(oracle, (GRR, OUE, OLH)):
        found["mle_apx"] = postprocess.mle_apx(values, float(oracle.p), float(oracle.q))
    return found


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="The methods of frequency.postprocess.")
    parser.add_argument("--quick", action="store_true", help="2 repeats instead of 10")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    repeats = 2 if options.quick else 10
    rng = np.random.default_rng(options.seed)
    print("| family | mean | worst | at | within 1.05 | norm_sub | covered | largest ten |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    seconds = []
    for name, draw in FAMILIES.items():
        line, worst = Line(), (0.0, "")
        for oracle_of, items, epsilon, n in SURVEYS:
            oracle = oracle_of(items, epsilon)
            errors: dict[str, float] = {}
            covered, largest = 0.0, 0.0
            for _ in range(repeats):
                weights = draw(items, rng)
                counts = rng.multinomial(n, weights / weights.sum())
                truth, estimate = counts / n, oracle.estimate(oracle.simulate(counts, rng))
                start = time.perf_counter()
                found = postprocess.empirical_bayes(estimate)
                seconds.append(time.perf_counter() - start)
                low, high = found.interval(0.95)
                inside = (low <= truth) & (truth <= high)
                top = np.argsort(-found.frequencies)[:10]
                covered += inside.mean() / repeats
                largest += inside[top].mean() / repeats
                everything = {**others(estimate, oracle), "": found.frequencies}
                for method, values in everything.items():
                    error = float(((values - truth) ** 2).sum())
                    errors[method] = errors.get(method, 0.0) + error
            best = min((m for m in errors if m), key=lambda m: errors[m])
            ratio = errors[""] / errors[best]
            line.ratios.append(ratio)
            line.nearest.append(errors["norm_sub"] / errors[best])
            line.covered.append(covered)
            line.largest.append(largest)
            where = f"{type(oracle).__name__}({items}, {epsilon:g}), n = {n}, {best}"
            worst = max(worst, (ratio, where))
        print(
            f"| {name} | {mean(line.ratios):.2f} | {worst[0]:.2f} | {worst[1]} |"
            f" {sum(r <= 1.05 for r in line.ratios)} of {len(SURVEYS)} |"
            f" {mean(line.nearest):.2f} |"
            f" {np.mean(line.covered):.3f}, {min(line.covered):.3f} |"
            f" {np.mean(line.largest):.3f}, {min(line.largest):.3f} |",
            flush=True,
        )
    print(f"\nEmpirical Bayes takes {np.median(seconds):.3f} s (median).")


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(float(np.mean(np.log(ratios))))


if __name__ == "__main__":
    main()
