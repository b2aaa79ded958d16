"""Dummy reports in the shuffled model: the error of a frequency at one central (epsilon, delta).

Prints a Markdown table.

python benchmarks/shuffle_dummies.py [--quick]

Designs of the literature next to `frequency.longitudinal.augmented_shuffler`, for a rare item. That
one and the shuffled reports without dummies are as proved; the others are computed in floats, to
their favour:

- dummies that the shuffler draws from the protocol's blanket, as many as are best for the error
  (Wang et al., VLDB 2020): they hide a report as the others' random ones do;
- users who send their items, and each a little of dummies for each item, so that each item's number
  is Poisson or negative binomial, of the shape that is best (Ghazi et al., ICML 2020);
- a curator's two-sided geometric noise, with delta = 0.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from range_queries import one_core, table
from scipy import stats

from frequency import GRR
from frequency.longitudinal.augmented_shuffler import AugmentedShuffler
from mechdesign import named
from mechdesign.accounting import shuffled

HEAD = ["n", "epsilon", "design", "local epsilon", "reports a user", "standard error"]


def least(enough: Callable[[float], bool], low: float, high: float, steps: int = 40) -> float:
    """Nearly the least number that is enough, as all larger ones are."""
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def among_blankets(gamma: float, others: float, items: int, epsilon: float) -> float:
    """delta of a report of randomised response, given the number of blanket reports beside it."""
    n, ratio = round(others) + 1, math.exp(epsilon)
    spread = math.sqrt(n / items)
    own = np.arange(max(0, int(n / items - 11 * spread)), int(n / items + 11 * spread) + 3)
    # Of other reports like the second value there must be fewer than so many
    excess = own - gamma * n * (ratio - 1) / ((1 - gamma) * items)
    most, rest, p = np.floor(excess / ratio), n - own, 1 / (items - 1)
    mean = excess * stats.binom.cdf(most, rest, p)
    mean -= ratio * rest * p * stats.binom.cdf(most - 1, rest - 1, p)
    chances = stats.binom.pmf(own, n, 1 / items)
    return float(chances[excess > 0] @ mean[excess > 0]) * (1 - gamma) * items / n


def of_two_counts(log_law: np.ndarray, epsilon: float) -> float:
    """delta of two independent numbers, one of them one larger; from their log probabilities."""
    more, less = np.append(-np.inf, log_law), np.append(log_law, -np.inf)
    first, second = (more - less)[:-1], (less - more)[1:]
    order = np.argsort(second)
    tails = [np.append(np.cumsum(np.exp(law[1:])[order][::-1])[::-1], 0.0) for law in (less, more)]
    place = np.searchsorted(second[order], epsilon - first, side="right")
    gained = np.exp(more[:-1]) * tails[0][place]
    gained -= math.exp(epsilon) * np.exp(less[:-1]) * tails[1][place]
    certain = 1 - (1 - math.exp(more[-1])) * (1 - math.exp(less[0]))
    return certain + float(np.maximum(gained, 0).sum())


def designs(n: int, items: int, epsilon: float, delta: float, quick: bool) -> Iterator[list[str]]:
    def row(name: str, local: float, reports: float, error: float) -> list[str]:
        shown = "none" if math.isinf(local) else f"{local:.2f}"
        return [str(n), f"{epsilon:g}", name, shown, f"{reports:.2f}", f"{error:.2e}"]

    def private(alpha: float) -> bool:
        return shuffled(named.krr(items, alpha=Fraction(alpha)), n).delta(epsilon) <= delta

    alone = -math.log(least(private, 1e-5, 0.5, 8 if quick else 11))
    yield row("shuffled", alone, 1, GRR(items, alone).variance(n) ** 0.5)

    for local in (6.0, 8.0):
        gamma = items / (math.exp(local) + items - 1)

        def hidden(others: float, gamma: float = gamma) -> bool:
            return among_blankets(gamma, others, items, epsilon) <= delta

        needed = least(hidden, 10, 100 * n)
        dummies = max(0.0, needed - n * gamma)
        own = GRR(items, local).variance(n)
        error = math.sqrt(own + dummies / items / (n * (1 - gamma)) ** 2)
        yield row("shuffled, blanket dummies", local, 1 + dummies / n, error)

    mean = least(
        lambda mean: (
            of_two_counts(
                stats.poisson.logpmf(np.arange(mean + 20 * mean**0.5 + 50), mean), epsilon
            )
            <= delta
        ),
        1,
        1e5,
    )
    yield row("items, users' Poisson dummies", math.inf, 1 + mean * items / n, mean**0.5 / n)

    best = (math.inf, 0.0)
    for shape in np.geomspace(1, 1000, 4 if quick else 16):

        def enough(scale: float, shape: float = shape) -> bool:
            top = shape * scale + 60 * math.sqrt(shape) * (1 + scale) + 45 * (1 + scale)
            law = stats.nbinom.logpmf(np.arange(top), shape, 1 / (1 + scale))
            return of_two_counts(law, epsilon) <= delta

        scale = least(enough, 0.01, 300, 14)
        best = min(best, (shape * scale * (1 + scale), shape * scale))
    name = "items, users' negative binomial dummies"
    yield row(name, math.inf, 1 + best[1] * items / n, math.sqrt(best[0]) / n)

    for local in (6.0, 8.0, 12.0):
        shuffler = AugmentedShuffler(GRR(items, local), epsilon, delta)
        reports = 1 + shuffler.dummies_of_each_kind * items / n
        yield row("AugmentedShuffler", local, reports, shuffler.variance(n) ** 0.5)

    alpha = math.exp(-epsilon / 2)
    yield row("a curator", math.inf, 1, math.sqrt(2 * alpha) / (1 - alpha) / n)


def rows(cases: list[tuple[int, float]], quick: bool) -> Iterator[list[str]]:
    for n, epsilon in cases:
        yield from designs(n, 64, epsilon, 1e-8, quick)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    one_core()
    print("\n# Dummy reports in the shuffled model")
    cases = [(100_000, 0.25)] if quick else [(100_000, 0.25), (100_000, 1.0), (10**6, 0.25)]
    table("64 items, delta = 1e-8", HEAD, rows(cases, quick))
