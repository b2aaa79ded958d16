"""Tables 5.2 and 5.3 of the thesis (figures 5 and 6 of range queries), predicted and simulated.

Prints Markdown tables.

python benchmarks/published_ranges.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
from functools import partial

import numpy as np
from large_domains import Workload, cauchy
from range_queries import N, one_core, short, table, values_alone
from tqdm import tqdm

from mechdesign.evaluate import evaluate, mean_square_of_ranges
from rangeq import Between, HaarHRR, HierarchicalHistogram, RangeProtocol

EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.1, 1.2, 1.4)
NAMES = ("HH2c", "HH4c", "HH16c", "HaarHRR")
PRINTED = {
    ("5.2", 8): """
        4.269 4.037 4.176 3.684  2.024 2.193 2.590 1.831  1.388 1.341 1.535 1.278
        1.002 0.950 1.130 0.987  0.844 0.744 0.844 0.811  0.722 0.667 0.820 0.748
        0.684 0.658 0.642 0.732  0.571 0.542 0.592 0.601
    """,
    ("5.2", 16): """
        6.745 7.129 8.692 6.666  3.616 3.424 4.648 3.526  2.333 2.360 2.793 2.342
        1.644 1.728 2.075 1.711  1.356 1.377 1.642 1.484  1.303 1.270 1.597 1.345
        1.090 1.140 1.433 1.201  0.922 0.995 1.158 1.130
    """,
    ("5.3", 8): """
        4.306 2.968 4.282 2.857  1.859 1.439 1.828 1.377  1.366 0.957 1.758 1.031
        0.937 0.778 0.896 0.758  0.802 0.561 0.637 0.613  0.684 0.533 0.666 0.626
        0.658 0.437 0.670 0.568  0.573 0.420 0.478 0.494
    """,
    ("5.3", 16): """
        7.701 6.172 7.014 5.870  3.266 3.101 3.744 2.880  2.402 2.176 2.426 2.018
        1.663 1.503 1.834 1.511  1.338 1.220 1.426 1.244  1.202 1.051 1.259 1.120
        1.080 0.978 1.147 1.054  0.973 0.848 0.981 0.973
    """,
}
"""A row of the four of `NAMES` for each of `EPSILONS`; the domain is 2^8 or 2^16."""


def protocol(name: str, domain: int, epsilon: float) -> RangeProtocol:
    if name == "HaarHRR":
        return HaarHRR(domain, epsilon)
    return HierarchicalHistogram(domain, epsilon, int(name[2:-1]), "OUE")


def simulated(one: RangeProtocol, repeats: int, rng: np.random.Generator) -> list[float]:
    """RMSE x 1000 of all ranges, of ranges from every 2^8th item, and of all prefixes."""

    def of_some(answers: np.ndarray, truth: np.ndarray) -> float:
        return Workload(one.domain, 256).mean_square(np.concatenate([[0.0], answers - truth]))

    (found,) = evaluate(
        {short(one): lambda _: values_alone(one)},
        {"Cauchy": cauchy(one.domain, N, rng)},
        {"prefixes": [(0, np.arange(one.domain))]},
        [float(one.epsilon)],
        repeats,
        confidence=None,
        measures={"ranges": partial(mean_square_of_ranges, least=2), "some": of_some},
    ).summary()
    squares = *found.measures.values(), found.error**2
    return [1000 * math.sqrt(square) for square in squares]


def from_every_256th(one: RangeProtocol, rng: np.random.Generator) -> float:
    """The predicted RMSE of the ranges that begin at every 2^8th item."""
    estimate = one.estimate(one.simulate(np.full(one.domain, N // one.domain), rng))
    return math.sqrt(
        float(np.mean(estimate.answer(Between(*Workload(one.domain, 256).sample(rng))).variance))
    )


def mean_ratio(ratios: list[float]) -> str:
    logs = np.log(ratios)
    return f"{math.exp(logs.mean()):.3f} ± {logs.std(ddof=1):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2^8 items only, and fewer repeats")
    quick = parser.parse_args().quick
    one_core()
    rng = np.random.default_rng(6)
    rows: dict[str, list[list[str]]] = {"5.2": [], "5.3": []}
    summary: list[list[str]] = []
    for bits in (8,) if quick else (8, 16):
        ratios: dict[tuple[str, str, str], list[float]] = {}
        for k, epsilon in enumerate(tqdm(EPSILONS, desc=f"2^{bits}", leave=False)):
            cells: dict[str, list[str]] = {"5.2": [], "5.3": []}
            for column, name in enumerate(NAMES):
                one = protocol(name, 1 << bits, epsilon)
                users = name == "HaarHRR"  # simulated user by user
                means = simulated(
                    one,
                    (
                        (2 if quick else 10 if bits == 8 else 5)
                        if users
                        else (20 if quick or bits == 16 else 400)
                    ),
                    rng,
                )
                for which, workload, at in (("5.2", "ranges", 0), ("5.3", "prefixes", 2)):
                    printed = float(PRINTED[which, bits].split()[4 * k + column])
                    predicted = one.average_rmse(N, workload) * 1000
                    cells[which].append(
                        f"{printed:.3f} / {predicted:.3f} / {means[at]:.3f}"
                        f" ({printed / predicted:.2f})"
                    )
                    compared = {
                        "published": printed / predicted,
                        "simulated": means[at] / predicted,
                    }
                    if which == "5.2" and bits == 16:
                        some = from_every_256th(one, rng) * 1000
                        compared |= {
                            "published, from every 2^8th item": printed / some,
                            "simulated, ditto": means[1] / some,
                        }
                    for what, ratio in compared.items():
                        ratios.setdefault((which, what, name), []).append(ratio)
            for which, line in cells.items():
                rows[which].append([f"2^{bits}", f"{epsilon:g}", *line])
        for which, what in dict.fromkeys((which, what) for which, what, _ in ratios):
            summary.append(
                [
                    which,
                    f"2^{bits}",
                    f"{what} / predicted",
                    *(mean_ratio(ratios[which, what, name]) for name in NAMES),
                ]
            )
    for which, queries in (("5.2", "all ranges"), ("5.3", "all prefixes")):
        title = (
            f"Table {which}, {queries}: RMSE x 1000, published / predicted / simulated (published"
            " over predicted)"
        )
        table(title, ["D", "epsilon", *NAMES], sorted(rows[which], key=lambda row: int(row[0][2:])))
    table(
        "Ratios: geometric means over the eight epsilons, and the scatter of one",
        ["table", "D", "ratio", *NAMES],
        summary,
    )


if __name__ == "__main__":
    main()
