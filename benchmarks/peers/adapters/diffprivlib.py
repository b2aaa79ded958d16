"""diffprivlib: mechanisms for one number a call, and tools for arrays."""

from fractions import Fraction
from itertools import pairwise
from math import e

from peers.adapters import choice


def mechanism(kind, epsilon, n, **options):
    from diffprivlib import mechanisms

    made = {
        "unbounded, secure": lambda: mechanisms.Geometric(epsilon=epsilon, **options),
        "truncated, secure": lambda: mechanisms.GeometricTruncated(
            epsilon=epsilon, lower=0, upper=n, **options
        ),
        "folded, secure": lambda: mechanisms.GeometricFolded(
            epsilon=epsilon, lower=0, upper=n, **options
        ),
    }
    return choice(made, kind)()


def noise(kind, epsilon, n):
    randomise = mechanism(kind, epsilon, n).randomise
    return lambda true, draws: [randomise(true) for _ in range(draws)]


def ranges(kind, domain, epsilon):
    from diffprivlib import tools

    choice({"cells": None}, kind)

    def release(counts):
        items = [cell for cell, count in enumerate(counts) for _ in range(count)]
        return tools.histogram(items, epsilon=epsilon, bins=domain, range=(-0.5, domain - 0.5))[0]

    return release


def quantiles(kind, domain, epsilon, probabilities):
    from diffprivlib import tools

    choice({"exponential mechanism": None}, kind)

    def release(counts):
        items = [cell for cell, count in enumerate(counts) for _ in range(count)]
        found = tools.quantile(items, list(probabilities), epsilon=epsilon, bounds=(0, domain))
        return found if len(probabilities) > 1 else [found]

    return release


class Planted:
    """A source of randomness that returns a given one of the 2^53 floats of `random`."""

    number = 0

    def random(self):
        return self.number / 2**53


def _privacy():
    """The law of the answers, counted over all uniform numbers and not sampled.

    All uniform numbers have the same probability. From 1/2 to 1 the answers fall to 0.
    """
    tested = mechanism("unbounded, secure", 1.0, 0)
    tested._rng = source = Planted()

    def first(answer):
        """The first number above 1/2 whose answer is at most this."""
        low, high = 2**52 + 1, 2**53
        while low < high:
            source.number = middle = (low + high) // 2
            low, high = (low, middle) if tested.randomise(0) <= answer else (middle + 1, high)
        return low

    # Of the answers 1, 2, ...
    weights = [first(answer - 1) - first(answer) for answer in range(1, 60)]
    largest = max(place for place, weight in enumerate(weights) if weight) + 1
    common = [Fraction(a, b) for a, b in pairwise(weights[:20])]
    off = max(abs(float(ratio) / e - 1) for ratio in common)
    impossible = f"no float gives an answer over {largest} off, though a neighbour does"
    return f"no statement; counted: {impossible}; the first 20 ratios are e (1 ± {off:.0e})"


def _error():
    return (
        f"variance {mechanism('unbounded, secure', 1.0, 0).variance(3):.2f}; not of truncated or"
        " folded"
    )


def _randomness():
    return (
        f"{type(mechanism('unbounded, secure', 1.0, 0)._rng).__name__} (the operating system's), or"
        " a seed"
    )


PROBES = {"privacy of what runs": _privacy, "error of an answer": _error, "randomness": _randomness}

FEATURES = {
    "import": lambda: __import__("diffprivlib"),
    "counts": lambda: noise("truncated, secure", 1.0, 8)(3, 10),
    "histograms": lambda: ranges("cells", 64, 1.0)([10] * 64),
    "quantiles": lambda: quantiles("exponential mechanism", 64, 1.0, [0.5])([10] * 64),
}
