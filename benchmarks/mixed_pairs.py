"""Pairs of many kinds: with categories, with missing values, and of ordered attributes.

Kinds of data of two attributes, with a third that is independent of both: jobs of which one is
unlike all others, as many that are all somewhat unlike, none, heaps; missing values which depend on
another attribute, or not; incomes that fall from an age on, or are low in a group of the young; an
attribute that rises with the other in half of the users, and falls in the others.
Questions are random ranges of the ordered attribute with one category or with half of them; missing
values, or ranges of the others, with a random range (or category) of the second attribute; low
values of both ordered ones, or random ranges. Prints a Markdown table of root mean square errors
and of how often 95 % intervals cover, with CALM, fitted as one model, where both attributes are
small.

python benchmarks/mixed_pairs.py [--users N] [--epsilons E ...] [--repeats R]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from mixed_attributes import fitted_calm, staff
from range_queries import table

from frequency import Between
from frequency.marginals import Domain
from mechdesign.evaluate import evaluate
from rangeq.grids import WaveGrid

QUERIES = 40

Drawn = tuple[np.ndarray, np.ndarray]
Draw = Callable[[np.random.Generator, int], Drawn]


class Kind(NamedTuple):
    """Sizes of both attributes, and what of them is categorical or apart."""

    drawn: Draw
    sizes: tuple[int, int]
    protocol: dict[str, Any]


def cells(values: np.ndarray, size: int) -> np.ndarray:
    return np.clip(values, 0, size - 1).astype(np.int64)


def cooks(rng: np.random.Generator, n: int) -> Drawn:
    job = rng.integers(0, 5, n)
    age = np.where(job == 1, rng.uniform(18, 40, n), rng.uniform(25, 78, n))
    return cells((age - 18) / 2, 30), job


def students(rng: np.random.Generator, n: int) -> Drawn:
    age, job = rng.normal(40, 18, n), rng.choice(6, n, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05])
    studies = rng.random(n) < 0.08
    return cells(np.where(studies, rng.integers(18, 24, n), age), 100), np.where(studies, 5, job)


def two_of_twenty(rng: np.random.Generator, n: int) -> Drawn:
    town, share = rng.integers(0, 20, n), rng.beta(2, 3, n)
    share = np.where(town == 3, share**3, np.where(town == 11, 1 - share**2, share))
    return cells(share * 50, 50), town


def weak(rng: np.random.Generator, n: int) -> Drawn:
    job = rng.choice(8, n, p=np.arange(1, 9) / 36)
    value = rng.normal(np.linspace(-0.4, 0.4, 8)[(job * 3) % 8])
    return cells((value + 3) * 10, 60), job


def every_job(rng: np.random.Generator, n: int) -> Drawn:
    everyone, _ = staff(n, rng)
    return everyone["age"], everyone["job"]


def heaps(rng: np.random.Generator, n: int) -> Drawn:
    job, hours = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), rng.normal(38, 12, n)
    hours = np.where((job == 0) & (rng.random(n) < 0.7), 40, hours)
    return cells(np.where((job == 2) & (rng.random(n) < 0.5), 20, hours), 80), job


def independent(rng: np.random.Generator, n: int) -> Drawn:
    return rng.integers(0, 30, n), rng.integers(0, 5, n)


def smokers_withhold(rng: np.random.Generator, n: int) -> Drawn:
    smokes = rng.random(n) < 0.3
    age = cells(rng.normal(40 + 5 * smokes, 15), 80)
    missing = rng.random(n) < np.where(smokes, 0.25, 0.05)
    return np.where(missing, 80, age), smokes.astype(np.int64)


def incomes(rng: np.random.Generator, n: int, rising: bool) -> Drawn:
    age = cells(rng.normal(40, 15, n), 80)
    income = cells(8 * np.exp(rng.normal(0.02 * age, 0.5)), 60)
    missing = rng.random(n) < (0.02 + 0.4 * (age / 79) ** 2 if rising else 0.15)
    return np.where(missing, 60, income), age


def one_job_withholds(rng: np.random.Generator, n: int) -> Drawn:
    job = rng.integers(0, 5, n)
    age = cells(rng.normal(35 + 5 * job, 12), 80)
    missing = rng.random(n) < np.array([0.02, 0.05, 0.4, 0.05, 0.1])[job]
    return np.where(missing, 80, age), job


def missing_together(rng: np.random.Generator, n: int) -> Drawn:
    first, second = rng.normal(size=(2, n))
    missing, again = rng.random((2, n)) < 0.1
    again = np.where(rng.random(n) < 0.8, missing, again)
    values = cells((first + 3) * 10, 60), cells((0.6 * first + 0.8 * second + 3) * 10, 60)
    return np.where(missing, 60, values[0]), np.where(again, 60, values[1])


def incomes_fall(rng: np.random.Generator, n: int) -> Drawn:
    age = rng.integers(18, 91, n)
    typical = 10 + 0.03 * np.minimum(age, 62) - np.where(age > 62, 1.2, 0)
    return age - 18, cells(np.exp(rng.normal(typical, 0.5)) / 3000, 50)


def poor_students(rng: np.random.Generator, n: int) -> Drawn:
    studies = rng.random(n) < 0.12
    age = cells(np.where(studies, rng.gamma(2, 2, n), rng.normal(26, 12, n)), 73)
    return age, cells(np.exp(rng.normal(np.where(studies, 9.0, 10.4), 0.6)) / 2500, 40)


def rise_or_fall(rng: np.random.Generator, n: int) -> Drawn:
    first, rises = rng.uniform(0, 64, n), rng.random(n) < 0.5
    return cells(first, 64), cells(np.where(rises, first, 64 - first) + rng.normal(0, 2.5, n), 64)


NAMED, MISSING = {"categorical": ["b"]}, {"apart": {"a": 1}}
KINDS = {
    "one of five jobs is young": Kind(cooks, (30, 5), NAMED),
    "one of six jobs is 18 to 23": Kind(students, (100, 6), NAMED),
    "two of twenty are unlike": Kind(two_of_twenty, (50, 20), NAMED),
    "eight, all somewhat unlike": Kind(weak, (60, 8), NAMED),
    "nine, all very unlike": Kind(every_job, (30, 9), NAMED),
    "heaps of two of four": Kind(heaps, (80, 4), NAMED),
    "independent": Kind(independent, (30, 5), NAMED),
    "missing, and smokers": Kind(smokers_withhold, (81, 2), MISSING),
    "missing where old": Kind(partial(incomes, rising=True), (61, 80), MISSING),
    "missing at random": Kind(partial(incomes, rising=False), (61, 80), MISSING),
    "missing in one of five jobs": Kind(one_job_withholds, (81, 5), {**NAMED, **MISSING}),
    "missing together": Kind(missing_together, (61, 61), {"apart": {"a": 1, "b": 1}}),
    "income falls at 62": Kind(incomes_fall, (73, 50), {}),
    "an eighth young and poor": Kind(poor_students, (73, 40), {}),
    "half rise, half fall": Kind(rise_or_fall, (64, 64), {}),
}


def asked(kind: Kind) -> dict[str, list[dict[str, Any]]]:
    """One category and half of them, missing values and others, or low values and others."""
    rng, (first, second) = np.random.default_rng(1), kind.sizes
    found: dict[str, list[dict[str, Any]]] = {"first": [], "second": []}
    for _ in range(QUERIES):
        low, high = np.sort(rng.integers(0, first, 2)).tolist()
        one, other = np.sort(rng.integers(0, second, 2)).tolist()
        if not kind.protocol:
            low_end = {"a": Between(0, first // int(rng.integers(2, 9)))}
            found["first"].append({**low_end, "b": Between(0, second // int(rng.integers(2, 9)))})
            found["second"].append({"a": Between(low, high), "b": Between(one, other)})
        elif "apart" in kind.protocol:
            partner = one if second < 10 else Between(one, other)
            found["first"].append({"a": first - 1, "b": partner})
            found["second"].append({"a": Between(low, high), "b": partner})
        else:
            half = sorted(rng.choice(second, second // 2, replace=False).tolist())
            found["first"].append({"a": Between(low, high), "b": one})
            found["second"].append({"a": Between(low, high), "b": half})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=50_000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--repeats", type=int, default=12)
    given = parser.parse_args()
    rows = []
    for title, kind in KINDS.items():
        sizes = dict(zip("ab", kind.sizes, strict=True)) | {"c": 3}
        protocols: dict[str, Callable[[float], Any]] = {
            "WaveGrid": partial(WaveGrid, sizes, n=given.users, **kind.protocol)
        }
        if kind.sizes[1] < 10:
            protocols["CALM"] = partial(fitted_calm, Domain(sizes))

        def people(rng: np.random.Generator, kind: Kind = kind) -> Any:
            first, second = kind.drawn(rng, given.users)
            return {"a": first, "b": second, "c": rng.integers(0, 3, given.users)}

        told = evaluate(
            protocols,
            {title: people},
            asked(kind),
            given.epsilons,
            given.repeats,
            users=given.users,
        )
        found = {(row.queries, row.epsilon, row.protocol): row for row in told.summary()}
        for epsilon in given.epsilons:
            own = [
                [found[which, epsilon, name] for which in ("first", "second")] for name in protocols
            ]
            errors = [" / ".join(f"{row.error:.4f}" for row in both) for both in own]
            covered = " / ".join(f"{row.covered:.2f}" for row in own[0])
            rows.append([title, f"{epsilon:g}", errors[0], covered, *(errors[1:] or ["-"])])
    table(
        "Ranges with one category / with half of them; missing values / ranges with another"
        " attribute; low values / random ranges of both",
        ["data", "epsilon", "WaveGrid", "covered", "CALM, fitted"],
        rows,
    )


if __name__ == "__main__":
    main()
