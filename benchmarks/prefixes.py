"""How far unbiased prefixes are above the bound: shifted histograms, circles and trees.

Prints a Markdown table; with --repeats, simulations beside the predictions.

python benchmarks/prefixes.py [--repeats 200]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from range_queries import one_core, table, values_alone

from mechdesign.evaluate import evaluate
from rangeq import CircularHistogram, HierarchicalHistogram, ShiftedHistogram
from rangeq.local.optimisation import optimise

USERS = 100_000
KINDS = (ShiftedHistogram, CircularHistogram, HierarchicalHistogram)


def rows(repeats: int) -> Iterator[list[str]]:
    for domain in (64, 256, 1000, 4096, 65536):
        for epsilon in (0.2, 0.5, 1.0, 2.0, 4.0):
            found = optimise(domain, epsilon, USERS, "prefixes")
            best = [
                min(rmse for other, rmse in found.alternatives if isinstance(other, kind))
                for kind in KINDS
            ]
            row = [str(domain), f"{epsilon:g}", f"{found.bound:.4g}"]
            row += [f"{rmse / found.bound:.3f}" for rmse in best]
            if repeats:
                protocol = next(
                    other for other, _ in found.alternatives if isinstance(other, ShiftedHistogram)
                )
                users = np.random.default_rng(1).geometric(20 / domain, USERS) - 1
                uneven = np.bincount(users % domain, minlength=domain)
                measured = evaluate(
                    {"shifted": lambda _: values_alone(protocol)},
                    {"even": np.full(domain, USERS // domain), "skewed": uneven},
                    {"prefixes": [(0, np.arange(domain))]},
                    [epsilon],
                    repeats,
                    confidence=None,
                )
                for one in measured.summary():
                    predicted = protocol.average_rmse(one.users, "prefixes")
                    row.append(f"{one.error / predicted:.3f}")
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=0)
    repeats = parser.parse_args().repeats
    one_core()
    head = ["D", "epsilon", "bound", "shifted / bound", "circular / bound", "tree / bound"]
    if repeats:
        head += ["shifted: simulated / predicted, even", "and skewed"]
    table(f"Prefixes, {USERS} users: RMSE", head, rows(repeats))


if __name__ == "__main__":
    main()
