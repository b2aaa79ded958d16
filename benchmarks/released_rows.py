"""Synthetic rows of a curator's releases beside the answers: do they agree, and do they err more?

Prints a Markdown table. Of eleven tables that `benchmarks/curators.py` reads, the first three
attributes by what `plan("curated-ranges")` recommends, and the first five as marginals
(`workload_optimal("marginals")`), both at epsilon 1 without a delta: how many of the one-way and
two-way counts of as many rows as there are estimated users lie in the 95 % interval of the
release's own answer, and the root mean square errors of these counts over those of the answers, the
mean over attributes and over pairs, also of clipped and rounded noise (`TableAnswers.sample`, of
releases that tell all cells); seconds for a posterior and its rows.

With --plans, instead: of six public tables, with their first five attributes and so many people as
4,720 to 10^6, drawn from 4,720 with replacement, what `plan("curated-attributes")` recommends: the
root mean square error of one-way counts over that of what has the least error of boxes of all five
(`plan("curated-ranges")`), both exact for any data; and how many 95 % intervals of one-way and
two-way counts held.

    python benchmarks/released_rows.py [--repeats N] [--plans]     four minutes, or two
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from itertools import combinations
from typing import Any

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


PUBLIC = ("flights", "diamonds", "health", "affairs", "doctors", "wages")

PEOPLE = (4_720, 100_000, 1_000_000)


def one_way(mechanism: Any, sizes: tuple[int, ...]) -> float:
    """The mean over the attributes of the standard error of a count of one of its items."""
    errors = []
    for place, size in enumerate(sizes):
        weights = [np.ones(each) for each in sizes]
        weights[place] = np.eye(1, size)[0]
        errors.append(math.sqrt(mechanism.errors.variance_of(weights)))
    return float(np.mean(errors))


def plans(repeats: int) -> Iterator[list[str]]:
    """A row for each table and number of people."""
    every = []
    for name, people in of_so_many({name: {**SEEN, **UNSEEN}[name] for name in PUBLIC}, PEOPLE[0]):
        sizes = people.sizes[:5]
        kept = tuple(place for place in people.categories if place < 5)
        schema = schema_of(People(people.records[:, :5], sizes, kept))
        now, before = (
            plan(task, schema, epsilon=EPSILON).best.protocol
            for task in ("curated-attributes", "curated-ranges")
        )
        ratio = one_way(now, sizes) / one_way(before, sizes)
        views = [*((i,) for i in range(5)), *combinations(range(5), 2)]
        for users in PEOPLE:
            held: list[Floats] = []
            for seed in range(repeats):
                rng = np.random.default_rng(seed)
                few = rng.choice(people.records[:, :5], users)
                counts = count_cells(schema, [columns_of(People(few, sizes, kept), schema)])
                estimate = now.release(counts, rng)
                for view in views:
                    cells = np.indices([sizes[i] for i in view]).reshape(len(view), -1)
                    low, high = estimate.answer(dict(zip(view, cells, strict=True))).interval()
                    truth = counted(few, sizes, view)
                    held.append(np.mean((low <= truth) & (truth <= high)))
            every.append([ratio, np.mean(held)])
            error = f"{one_way(now, sizes):.1f}"
            yield [name, f"{users:,}", error, f"{ratio:.2f}", f"{np.mean(held):.3f}"]
    ratios, held_of = np.array(every).T
    ends = f"{held_of.min():.3f} to {held_of.max():.3f}"
    yield ["all", "", "", f"{ratios.max():.2f} at most", ends]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--plans", action="store_true")
    options = parser.parse_args()
    one_core()
    if options.plans:
        head = ["table", "people", "error, one-way", "over that of boxes", "in intervals"]
        table("Five attributes as planned", head, plans(options.repeats))
        return
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
