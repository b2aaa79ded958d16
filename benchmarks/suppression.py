"""What suppression and rounding hide in random tables, and how long the attack takes.

Prints a Markdown table.

python benchmarks/suppression.py [--largest 3000]
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from mechdesign.tables import SuppressionRule, reconstruct

RULES = {
    "below 7": SuppressionRule(7),
    "below 7, complementary": SuppressionRule(7, complementary=True),
    "below 7, to 5": SuppressionRule(7, 5),
    "below 7, to 5, totals too": SuppressionRule(7, 5, totals="rounded"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=3000, help="the most cells of a table")
    options = parser.parse_args()
    print("| cells | rule | suppressed | recovered | within 1 | tight | s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for shape in ((12, 8), (30, 10), (60, 20), (100, 30), (4, 4, 4), (8, 6, 5), (4, 4, 4, 4)):
        if math.prod(shape) > options.largest:
            continue
        rng = np.random.default_rng(1)
        counts = rng.poisson(rng.gamma(1, 8, shape))  # half of them below 7
        for name, rule in RULES.items():
            published = rule.publish(counts)
            start = time.perf_counter()
            found = reconstruct(published)
            seconds = time.perf_counter() - start
            cells = published.suppressed[(slice(-1),) * len(shape)]
            known, near = (
                (each & published.suppressed)[(slice(-1),) * len(shape)].sum()
                for each in (found.recovered, found.within_one)
            )
            numbers = f"{cells.sum()} | {known} | {near} | {found.tight.mean():.0%}"
            print(f"| {' x '.join(map(str, shape))} | {name} | {numbers} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
