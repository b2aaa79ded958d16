"""Synthetic rows of a curator's releases beside the answers: do they agree, and do they err more?

Prints a Markdown table. Of eleven tables that `benchmarks/curators.py` reads, the first three
attributes by what `plan("curated-ranges")` recommends, and the first five as marginals
(`workload_optimal("marginals")`), both at epsilon 1 without a delta: how many of the one-way and
two-way counts of as many rows as there are estimated users lie in the 95 % interval of the
release's own answer, and the root mean square errors of these counts over those of the answers, the
mean over attributes and over pairs, also of clipped and rounded noise (`TableAnswers.sample`, of
releases that tell all cells); seconds for a posterior and its rows.

    python benchmarks/released_rows.py [--repeats N]     four minutes
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from curators import SEEN, UNSEEN, People, columns_of, of_so_many, schema_of
from range_queries import one_core, table

from mechdesign import Privacy, plan
from mechdesign.base import Floats, Integers
from rangeq.central import CentralEstimate, count_cells, workload_optimal
from rangeq.central.answers import TableAnswers

EPSILON = "1"


def counted(rows: Integers, sizes: tuple[int, ...], view: tuple[int, ...]) -> Floats:
    """The rows in each combination of some attributes."""
    shape = [sizes[place] for place in view]
    cells = np.ravel_multi_index([rows[:, place] for place in view], shape)
    return np.bincount(cells, minlength=math.prod(shape)).astype(np.float64)


def rows(repeats: int) -> Iterator[list[str]]:
    """A row for each table and kind of release."""
    every, worst = [], np.zeros(2)
    for users in (5000, 20_000):
        for name, people in of_so_many({**SEEN, **UNSEEN}, users):
            for attributes in (3, 5):
                sizes = people.sizes[:attributes]
                kept = tuple(place for place in people.categories if place < attributes)
                few = People(people.records[:, :attributes], sizes, kept)
                schema = schema_of(few)
                if attributes == 3:
                    mechanism = plan("curated-ranges", schema, epsilon=EPSILON).best.protocol
                else:
                    promise = Privacy.from_epsilon(EPSILON)
                    mechanism = workload_optimal("marginals", sizes, promise).mechanism
                counts = count_cells(schema, [columns_of(few, schema)])
                views = [*((i,) for i in range(attributes)), *combinations(range(attributes), 2)]
                errors, held, seconds = np.zeros((3, len(views))), [], 0.0
                for seed in range(repeats):
                    rng = np.random.default_rng(seed)
                    estimate: CentralEstimate = mechanism.release(counts, rng)
                    number = max(round(estimate.n), 1)
                    start = time.perf_counter()
                    drawn = estimate.posterior(schema).sample(number, rng)
                    seconds = max(seconds, time.perf_counter() - start)
                    clipped = (
                        TableAnswers.sample(estimate, number, rng) if attributes == 3 else drawn
                    )
                    for place, view in enumerate(views):
                        cells = np.indices([sizes[i] for i in view]).reshape(len(view), -1)
                        answer = estimate.answer(dict(zip(view, cells, strict=True)))
                        truth = counted(few.records, sizes, view)
                        found = counted(drawn, sizes, view)
                        low, high = answer.interval()
                        held.append(np.mean((low <= found) & (found <= high)))
                        for which, values in enumerate((answer.value, found)):
                            errors[which, place] += np.mean((values - truth) ** 2)
                        errors[2, place] += np.mean((counted(clipped, sizes, view) - truth) ** 2)
                own = np.sqrt(errors / repeats)
                parts = [own[:, :attributes].mean(axis=1), own[:, attributes:].mean(axis=1)]
                ratios = [part[1] / part[0] for part in parts]
                others = [f"{part[2] / part[0]:.2f}" if attributes == 3 else "–" for part in parts]
                every.append([np.mean(held), *ratios])
                worst = np.maximum(worst, ratios)
                yield [
                    name,
                    f"{users:,}",
                    "3, planned" if attributes == 3 else "5, marginals",
                    f"{np.mean(held):.3f}",
                    *(f"{part[0]:.1f}" for part in parts),
                    *(f"{ratio:.2f}" for ratio in ratios),
                    *others,
                    f"{seconds:.2f}",
                ]
    held, *means = np.array(every).T
    averages = [f"{np.exp(np.mean(np.log(m))):.2f}" for m in means]
    worst_of = [f"{mean} ({w:.2f})" for mean, w in zip(averages, worst, strict=True)]
    yield ["all", "", "", f"{np.min(held):.3f} at least", "", "", *worst_of, "", "", ""]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    one_core()
    head = [
        "table",
        "users",
        "attributes",
        "in intervals",
        "error, one",
        "two",
        "rows over it, one",
    ]
    head += ["two", "clipped, one", "two", "seconds at most"]
    table("Synthetic rows beside the answers of their release", head, rows(options.repeats))


if __name__ == "__main__":
    main()
