"""GenProt: what one bit or a few from each user cost, predicted and measured, for every protocol.

Prints a Markdown table.

python benchmarks/one_bit.py [--quick]

The squared error of answers of `OneBit` and `FewBits`, over that of the protocol itself with as
many users; beside it what is predicted: 1 / kept, and what drawing the users of an answer adds.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from range_queries import one_core, table
from tqdm import tqdm

from frequency import GRR, HRR, OLH, OUE, ProjectiveGeometry, SubsetSelection
from frequency.heavy import FewBits
from frequency.marginals import CALM, Domain, InpEM, InpHT, MargHT, MargPS
from rangeq import (
    CircularHistogram,
    DecomposedHistogram,
    HaarHRR,
    HierarchicalHistogram,
    SquareWave,
    shaped,
)
from rangeq.grids import HDG, HIO, LHIO, MSW, TDG, HaarHRR2D, RangeCALM, WaveGrid

USERS, DOMAIN = 100_000, 64
ATTRIBUTES = Domain({"a": 2, "b": 3, "c": 4, "d": 2})
SIZES = {"x": 16, "y": 16, "z": 16}
EPSILONS, BITS = (0.5, 2.0), (1, 2, 4)


class Case(NamedTuple):
    """A protocol, the values of its users, and questions about them with their true answers."""

    make: Callable[[float], Any]
    values: np.ndarray
    asked: list[Any]
    true: np.ndarray


def ordered(rng: np.random.Generator) -> tuple[np.ndarray, list[Any], np.ndarray]:
    values = rng.binomial(DOMAIN - 1, 0.4, USERS)
    first = rng.integers(0, DOMAIN, 40)
    last = np.maximum(first, rng.integers(0, DOMAIN, 40))
    true = np.array(
        [((values >= a) & (values <= b)).mean() for a, b in zip(first, last, strict=True)]
    )
    return values, [(first, last)], true


def records(rng: np.random.Generator) -> tuple[np.ndarray, list[Any], np.ndarray]:
    values = np.stack([rng.binomial(size - 1, 0.4, USERS) for size in ATTRIBUTES.sizes], axis=1)
    asked = [{"a": x, "b": y} for x in range(2) for y in range(3)]
    asked += [{"c": x, "d": y} for x in range(4) for y in range(2)]
    places = [{"abcd".index(name): value for name, value in one.items()} for one in asked]
    true = [np.all([values[:, p] == x for p, x in one.items()], axis=0).mean() for one in places]
    return values, asked, np.array(true)


def boxes(rng: np.random.Generator) -> tuple[np.ndarray, list[Any], np.ndarray]:
    values = np.stack([rng.binomial(15, 0.4, USERS) for _ in SIZES], axis=1)
    ends = [(0, 7), (4, 11), (4, 7)]
    asked = [{"x": a, name: b} for a in ends for b in ends for name in ("y", "z")]
    true = []
    for one in asked:
        inside = np.ones(USERS, dtype=bool)
        for name, (a, b) in one.items():
            column = values[:, "xyz".index(name)]
            inside &= (column >= a) & (column <= b)
        true.append(inside.mean())
    return values, asked, np.array(true)


def of_records(kind: Any, epsilon: float) -> Any:
    return kind(ATTRIBUTES, epsilon=epsilon, k=2)


def cases() -> dict[str, Case]:
    rng = np.random.default_rng(1)
    found: dict[str, Case] = {}
    values, ranges, true = ordered(rng)
    items = np.arange(DOMAIN)
    shares = np.bincount(values, minlength=DOMAIN) / USERS
    oracles: list[Any] = [GRR, HRR, OLH, OUE, SubsetSelection, ProjectiveGeometry]
    for kind in oracles:
        found[kind.__name__] = Case(partial(kind, DOMAIN), values, [items], shares)
    of_ranges: dict[str, Callable[[float], Any]] = {
        "HaarHRR": lambda e: HaarHRR(DOMAIN, e),
        "HierarchicalHistogram": lambda e: HierarchicalHistogram(DOMAIN, e, 4, "OLH"),
        "DecomposedHistogram": lambda e: DecomposedHistogram(DOMAIN, e, 4, "HRR"),
        "CircularHistogram": lambda e: CircularHistogram(DOMAIN, e),
        "shaped": lambda e: shaped(DOMAIN, e, USERS),
        "SquareWave": lambda e: SquareWave(DOMAIN, e),
    }
    for name, make in of_ranges.items():
        found[name] = Case(make, values, ranges, true)
    values, asked, true = records(rng)
    of_marginals: list[Any] = [InpHT, MargPS, MargHT, CALM, InpEM]
    for kind in of_marginals:
        found[kind.__name__] = Case(partial(of_records, kind), values, asked, true)
    values, asked, true = boxes(rng)
    of_grids: list[Any] = [TDG, HDG, RangeCALM, HIO, LHIO, MSW, HaarHRR2D, WaveGrid]
    for kind in of_grids:
        found[kind.__name__] = Case(partial(kind, SIZES, n=USERS), values, asked, true)
    return found


def error(protocol: Any, case: Case, runs: int) -> tuple[float, float]:
    """The mean squared error, and its standard error relative to it."""
    errors = []
    held, counts = np.unique(case.values, axis=0, return_counts=True)
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        estimate = protocol.estimate(protocol.simulate(counts, rng, held))
        answers = np.concatenate([np.ravel(estimate.answer(where).value) for where in case.asked])
        errors.append(((answers - case.true) ** 2).mean())
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / np.mean(errors) / runs**0.5)


def rows(runs: int) -> Iterator[list[str]]:
    found = cases()
    for name, case in tqdm(found.items(), leave=False, disable=None):
        for epsilon in EPSILONS:
            inner = case.make(epsilon)
            own, spread = error(inner, case, runs)
            among = float((case.true * (1 - case.true)).mean())
            row = [name, f"{epsilon:g}"]
            for bits in BITS:
                protocol = FewBits(inner, bits=bits)
                measured, other = error(protocol, case, runs)
                expected = protocol.predicted_variance(own, USERS, among) / own
                ratio, deviation = measured / own, np.hypot(spread, other)
                row.append(
                    f"{protocol.kept:.3f}: {expected:.2f}, {ratio:.2f} ± {ratio * deviation:.2f}"
                )
            yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    one_core()
    head = ["protocol", "epsilon", *(f"{b} bit{'s' * (b > 1)}" for b in BITS)]
    print("\n# GenProt: what one bit or a few cost")
    table(
        "The fraction kept: squared error over the protocol's own, predicted, measured",
        head,
        rows(4 if options.quick else 30),
    )
