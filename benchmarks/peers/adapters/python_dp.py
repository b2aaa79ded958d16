"""python-dp (PyDP): Google's library, one number a call."""

from peers.adapters import choice


def laplace(epsilon):
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    return LaplaceMechanism(epsilon, 1.0)


def noise(kind, epsilon, n):
    add = choice({"Laplace, rounded, secure": laplace}, kind)(epsilon).add_noise
    return lambda true, draws: [add(true) for _ in range(draws)]


def ranges(kind, domain, epsilon):
    add = choice({"cells": laplace}, kind)(epsilon).add_noise
    return lambda counts: [add(count) for count in counts]


def quantiles(kind, domain, epsilon, probabilities):
    from pydp.algorithms.laplacian import Percentile

    choice({"binary search": None}, kind)

    def release(counts):
        items = [float(cell) for cell, count in enumerate(counts) for _ in range(count)]
        share = epsilon / len(probabilities)
        bounds = {"lower_bound": 0, "upper_bound": domain - 1, "dtype": "float"}
        return [
            round(Percentile(epsilon=share, percentile=q, **bounds).quick_result(items))
            for q in probabilities
        ]

    return release


def _integers():
    from pydp.algorithms.laplacian import Percentile

    answer = Percentile(
        epsilon=100.0, percentile=0.5, lower_bound=0, upper_bound=255, dtype="int"
    ).quick_result([100] * 1000)
    assert abs(answer - 100) < 5, (
        f"the median of a thousand values 100 is said to be {answer}, at epsilon = 100"
    )


def _error():
    interval = laplace(1.0).noise_confidence_interval(0.95, 1.0)
    return f"interval of noise: ± {(interval.upper_bound - interval.lower_bound) / 2:.2f}"


PROBES = {"error of an answer": _error}

FEATURES = {
    "import": lambda: __import__("pydp"),
    "counts": lambda: noise("Laplace, rounded, secure", 1.0, 8)(3, 10),
    "quantiles of floats": lambda: quantiles("binary search", 64, 1.0, [0.5])([10] * 64),
    "quantiles of integers": _integers,
}
