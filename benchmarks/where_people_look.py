"""Intervals where people look: at the mode, heaps, steps, spikes, and the group that is larger.

For populations of 21 families, eleven of which were looked at while the intervals were made, and
for the questions that people ask of each, how many 95 % intervals of smoothed estimates hold: by
the reports alone, which is the default, and by the model, which is for ``on_average``; the median
of the widths of the first over the second. Of `shaped` for ordered values, of `empirical_bayes` for
items, and of `WaveGrid` and of `fitted()` of HDG for several attributes. Prints Markdown tables,
and with --plot draws them.

    python benchmarks/where_people_look.py [--repeats N] [--plot FILE]     four minutes
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from range_queries import one_core, table

from frequency import OUE, Between
from frequency.postprocess import empirical_bayes
from mechdesign.base import Floats, Integers
from rangeq import shaped
from rangeq.grids import HDG, WaveGrid

#: The population's shares, epsilon, and the number of users.
Family = tuple[Floats, float, int]


def even(share: Any) -> Floats:
    """Shares of sum 1."""
    shares = np.asarray(share, dtype=np.float64)
    return shares / shares.sum()


def spiked(size: int, place: int, share: float) -> Floats:
    """An even population, and one item of this share."""
    shares = np.full(size, (1 - share) / (size - 1))
    shares[place] = share
    return shares


def heaped(size: int) -> Floats:
    """A smooth density with heaps at multiples of 5 and 10."""
    x = np.arange(size)
    smooth = np.exp(-(((x - size / 2.4) / (size / 4.3)) ** 2) / 2)
    return even(smooth * (1 + 5 * (x % 5 == 0) + 6 * (x % 10 == 0)))


_ZIPF = np.random.default_rng(5).permutation(np.arange(1, 17) ** -1.1)

ORDERED: dict[str, Family] = {
    "spike of .102": (spiked(64, 20, 0.102), 0.5, 20_000),
    "saw teeth": (even(np.arange(128) % 16 + 1), 0.7, 50_000),
    "Zipf, shuffled": (even(_ZIPF), 0.5, 5000),
    "heaps": (heaped(60), 1.0, 50_000),
    "six steps": (even(np.repeat([1, 5, 2, 7, 3, 1], 10)), 1.0, 50_000),
    # Not looked at before
    "two spikes": (even(spiked(100, 0, 0.05) + spiked(100, 61, 0.08)), 0.7, 30_000),
    "smooth": (even(np.exp(-(((np.arange(128) - 50) / 20) ** 2) / 2)), 0.5, 20_000),
    "one value in a gap": (even([1.0] * 30 + [0] * 9 + [3.0] + [0] * 10 + [1.0] * 30), 1.0, 10_000),
    "exponential": (even(0.95 ** np.arange(100)), 0.3, 20_000),
    "doubling steps": (even(np.repeat(2.0 ** np.arange(8), 16)), 0.7, 50_000),
}

ITEMS: dict[str, Family] = {
    "8 of 64 twice as frequent": (even(np.where(np.arange(64) < 8, 2, 1)), 1.0, 42_955),
    "16 of 128 twice as frequent": (even(np.where(np.arange(128) < 16, 2, 1)), 1.0, 171_820),
    "Zipf": (even(1 / np.arange(1, 257)), 1.0, 50_000),
    # Not looked at before
    "one of 50 a half larger": (spiked(50, 7, 0.03), 1.0, 100_000),
    "geometric": (even(0.9 ** np.arange(64)), 0.5, 50_000),
}

#: Of several attributes the records of so many users, epsilon, and the categories' places.
People = tuple[Callable[[np.random.Generator], Integers], float, tuple[int, ...]]

USERS = 50_000


def alike(share: Floats, number: int) -> Callable[[np.random.Generator], Integers]:
    """Attributes that all have the same population, independently."""
    return lambda rng: rng.choice(len(share), (USERS, number), p=share)


def students(rng: np.random.Generator) -> Integers:
    """Ages, what people do, and incomes: students, 2 % of the users, are all young."""
    age = np.clip(rng.normal(29, 16, USERS), 0, 79)
    doing, income = rng.choice([0, 2, 3, 4], USERS, p=[0.6, 0.2, 0.1, 0.1]), rng.gamma(2, 15, USERS)
    student = rng.random(USERS) < 0.02
    age[student], doing[student] = rng.integers(2, 10, student.sum()), 1
    return np.column_stack([age, doing, np.clip(income, 0, 99)]).astype(np.int64)


def districts(rng: np.random.Generator) -> Integers:
    """Incomes in twelve districts, one of which is rich, and a third attribute."""
    district = rng.choice(12, USERS, p=even(1 / np.arange(1, 13)))
    income = rng.lognormal(np.where(district == 7, 3.8, 3.0), 0.5)
    return np.column_stack([np.clip(income, 0, 63), district, rng.integers(0, 4, USERS)]).astype(
        np.int64
    )


SEVERAL: dict[str, People] = {
    "heaps, five attributes": (alike(heaped(60), 5), 1.0, ()),
    "six steps, five attributes": (alike(even(np.repeat([1, 5, 2, 7, 3, 1], 10)), 5), 2.0, ()),
    "students": (students, 1.0, (1,)),
    # Not looked at before
    "students, epsilon 4": (students, 4.0, (1,)),
    "a rich district": (districts, 2.0, (1, 2)),
    "a spike of .1, three attributes": (alike(spiked(48, 11, 0.1), 3), 1.0, ()),
}

Asked = dict[str, tuple[Any, Any]]


def questions(share: Floats) -> Asked:
    """The ranges that people ask for, by their first and last values."""
    order = np.argsort(-share, kind="stable")
    steps = np.argsort(-np.abs(np.diff(share)), kind="stable")[:4] + 1
    mode, last = int(order[0]), len(share) - 1
    return {
        "mode": (mode, mode),
        "second": (int(order[1]), int(order[1])),
        "least": (int(order[-1]), int(order[-1])),
        "ends": (np.array([0, last]), np.array([0, last])),
        "behind steps": (steps, steps),
        "about the mode": (max(mode - 2, 0), min(mode + 2, last)),
        "halves": (np.array([0, last // 2 + 1]), np.array([last // 2, last])),
        "all values": (np.arange(last + 1), np.arange(last + 1)),
    }


def of_ranges(family: Family, asked: Asked, seed: int) -> Iterator[tuple[Floats, Any, Any]]:
    """The truth of each question, and both intervals, of `shaped`."""
    share, epsilon, users = family
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(users, share)
    protocol = shaped(len(share), epsilon, users)
    estimate = protocol.estimate(protocol.simulate(counts, rng))
    sums = np.concatenate([[0], np.cumsum(counts)]) / users
    for first, last in asked.values():
        answer = estimate.answer(Between(first, last))
        truth = sums[np.asarray(last) + 1] - sums[first]
        yield truth, answer.interval(), answer.interval(on_average=True)


def of_items(family: Family, asked: Asked, seed: int) -> Iterator[tuple[Floats, Any, Any]]:
    """The same of `empirical_bayes`: single items alone."""
    share, epsilon, users = family
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(users, share)
    oracle = OUE(len(share), epsilon)
    posterior = empirical_bayes(oracle.estimate(oracle.simulate(counts, rng)))
    both = posterior.interval(), posterior.interval(on_average=True)
    for first, _ in asked.values():
        (low, high), (inner_low, inner_high) = both
        ends = (low[first], high[first]), (inner_low[first], inner_high[first])
        yield counts[first] / users, *ends


def of_several(
    people: People, repeats: int, grid: Any
) -> Iterator[tuple[str, float, float, float]]:
    """Question, how many of both intervals held, and how their widths compare."""
    make, epsilon, named = people
    rng = np.random.default_rng(0)
    sizes = [int(column.max()) + 1 for column in make(rng).T]
    protocol = grid(sizes, epsilon, USERS, **({"categorical": named} if named else {}))
    ends = np.sort(rng.integers(0, sizes[0], (2, 200)), axis=0)
    share = even(np.bincount(make(rng)[:, 0], minlength=sizes[0]))
    asked: dict[str, dict[int, Any]] = {
        question: {0: Between(*ends)} for question, ends in questions(share).items()
    }
    other = np.sort(rng.integers(0, sizes[1], (2, 200)), axis=0)
    asked["rectangles"] = {0: Between(*ends), 1: Between(*other)}
    for value in range(sizes[1] if 1 in named else 0):
        asked[f"category {value}, at most 9"] = {0: Between(0, 9), 1: Between(value, value)}
    held: dict[str, list[Any]] = {question: [] for question in asked}
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        records = make(rng)
        reports = protocol.aggregate(protocol.privatize(records, rng))
        estimate = protocol.estimate(reports).fitted()
        table = np.zeros((sizes[0] + 1, sizes[1] + 1))
        np.add.at(table, (records[:, 0] + 1, records[:, 1] + 1), 1 / USERS)
        table = table.cumsum(axis=0).cumsum(axis=1)
        for question, where in asked.items():
            (a, b), (c, d) = (
                (np.asarray(each.first), np.asarray(each.last))
                for each in (where[0], where.get(1, Between(0, sizes[1] - 1)))
            )
            truth = table[b + 1, d + 1] - table[a, d + 1] - table[b + 1, c] + table[a, c]
            answer, parts, widths = estimate.answer(where), [], []
            for on_average in (False, True):
                low, high = answer.interval(on_average=on_average)
                parts.append(np.mean((low <= truth) & (truth <= high)))
                widths.append(np.subtract(high, low))
            parts.append(np.median(widths[0] / np.maximum(widths[1], 1e-12)))
            held[question].append(parts)
    for question, found in held.items():
        each, model, _ = np.mean(found, axis=0).tolist()
        yield question, each, model, float(np.median(np.array(found)[:, 2]))


def measured(
    families: dict[str, Family], ask: Callable[..., Any], repeats: int
) -> Iterator[tuple[str, str, float, float, float]]:
    """Family, question, how many of both intervals held, and how their widths compare."""
    for name, family in families.items():
        asked = questions(family[0])
        if ask is of_items:
            asked = {what: ends for what, ends in asked.items() if np.all(ends[0] == ends[1])}
        held = np.zeros((len(asked), 3, repeats))
        for seed in range(repeats):
            for place, (truth, *both) in enumerate(ask(family, asked, seed)):
                widths = []
                for which, (low, high) in enumerate(both):
                    held[place, which, seed] = np.mean((low <= truth) & (truth <= high))
                    widths.append(np.subtract(high, low))
                held[place, 2, seed] = np.median(widths[0] / np.maximum(widths[1], 1e-12))
        for place, what in enumerate(asked):
            each, model = held[place, 0].mean(), held[place, 1].mean()
            yield name, what, float(each), float(model), float(np.median(held[place, 2]))


def show(title: str, found: list[tuple[str, str, float, float, float]]) -> None:
    """Print a table."""
    head = ["population", "question", "held by reports", "by the model", "width over model's"]
    rows = [[*row[:2], f"{row[2]:.2f}", f"{row[3]:.2f}", f"{row[4]:.1f}"] for row in found]
    least = f"{min(row[2] for row in found):.2f}"
    model = f"{min(row[3] for row in found):.2f}"
    width = f"{np.median([row[4] for row in found]):.1f}"
    table(title, head, iter([*rows, ["least, median width", "", least, model, width]]))


def draw(found: list[tuple[str, str, float, float, float]], path: str) -> None:
    """A point for each family and question: how many of its intervals held."""
    from mechdesign.base.figures import panel

    asked = [re.sub(r"category \d+", "a category", row[1]) for row in found]
    names = list(dict.fromkeys(asked))
    title, height = "95 % intervals that held, for each population", 1.5 + 0.3 * len(names)
    figure, axes = panel(title, "", 7, height, grid="x")
    for which, label in ((2, "reports alone (default)"), (3, "model (on_average)")):
        places = [names.index(question) + (which - 2.5) * 0.24 for question in asked]
        axes.scatter([row[which] for row in found], places, s=16, alpha=0.7, label=label)
    axes.axvline(0.95, color="0.5", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.1), ncols=2, frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--plot")
    options = parser.parse_args()
    one_core()
    every = []
    for title, families, ask in (
        ("Ordered values: shaped", ORDERED, of_ranges),
        ("Items: empirical_bayes", ITEMS, of_items),
    ):
        found = list(measured(families, ask, options.repeats))
        every += found
        show(title, found)
    kinds: tuple[tuple[str, Any], ...] = (("WaveGrid", WaveGrid), ("HDG, fitted", HDG))
    for title, grid in kinds:
        found = [
            (name, *row)
            for name, people in SEVERAL.items()
            if grid is WaveGrid or not people[2]
            for row in of_several(people, options.repeats, grid)
        ]
        every += found
        show(f"Several attributes: {title}", found)
    if options.plot:
        draw(every, options.plot)


if __name__ == "__main__":
    main()
