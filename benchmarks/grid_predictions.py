"""Predicted and measured errors of ranges of two attributes, by the systems for conjunctions.

Predictions are those of ``plan("conjunctions", ...)``. Measured are collections from all attributes
with all of their values: on the reference populations that predictions are made on, and on others,
of which a table of records is the guess that is given to the plan (``like=``). Prints the ratio of
what is measured to what is predicted: of the root mean square over the populations, its least and
its largest on one.

python benchmarks/grid_predictions.py [--cases D,C,EPSILON,N ...] [--systems NAME ...] [--repeats R]
    [--others] [--all]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from frequency import Between
from frequency.schema import Domain
from mechdesign.evaluate import evaluate
from rangeq.grids import HDG, HIO, LHIO, MSW, TDG, RangeCALM, Uniform, WaveGrid
from rangeq.grids.sampling import REFERENCE_RECORDS, ExpectedRecords, drawn_records
from rangeq.grids.simulated_errors import conjunction_errors

SYSTEMS: dict[str, Any] = {
    kind.__name__: kind for kind in (WaveGrid, HDG, TDG, RangeCALM, LHIO, HIO, MSW, Uniform)
}

CASES = ((1, 64, 1.0, 100_000), (2, 32, 1.0, 30_000), (3, 64, 2.0, 100_000), (6, 64, 1.0, 300_000))

QUERIES = 400
KNOWN = 5_000
"""Records of a guess: as many as there are of a pilot."""


def scaled(values: np.ndarray, c: int) -> np.ndarray:
    return np.clip(values * c, 0, c - 1).astype(np.int64)


def laplace(n: int, d: int, c: int, rng: np.random.Generator) -> np.ndarray:
    matrix = np.full((d, d), 0.8)
    np.fill_diagonal(matrix, 1.0)
    values = rng.multivariate_normal(np.zeros(d), matrix, size=n, method="cholesky")
    return scaled((values * np.sqrt(rng.exponential(size=(n, 1))) + 6) / 12, c)


def ring(n: int, d: int, c: int, rng: np.random.Generator) -> np.ndarray:
    """Neighbouring attributes on circles with a shared angle: no correlation, much dependence."""
    angle, phase = rng.uniform(0, 2 * np.pi, (n, 1)), np.arange(d) * np.pi / 2
    return scaled(0.5 + 0.35 * np.cos(angle + phase) + 0.04 * rng.normal(size=(n, d)), c)


def opposed(n: int, d: int, c: int, rng: np.random.Generator) -> np.ndarray:
    """Correlations of either sign, of any size, and exponential attributes among them."""
    loads = np.linspace(-0.95, 0.95, d)
    values = loads * rng.normal(size=(n, 1)) + np.sqrt(1 - loads**2) * rng.normal(size=(n, d))
    parts = 0.5 + values / 8
    parts[:, ::2] = np.exp(1.2 * values[:, ::2] - 4)
    return scaled(parts, c)


def xor(n: int, d: int, c: int, rng: np.random.Generator) -> np.ndarray:
    """Every two attributes are in the same half, or in opposite ones, by pairs."""
    half = rng.integers(0, 2, (n, d))
    half[:, 1::2] = half[:, : d - d % 2 : 2] ^ (rng.random((n, d // 2)) < 0.1)
    return scaled((half + rng.random((n, d))) / 2, c)


OTHERS: dict[str, Callable[..., np.ndarray]] = {
    "laplace": laplace,
    "ring": ring,
    "opposed": opposed,
    "xor": xor,
}


def conjunctions(d: int, c: int, rng: np.random.Generator) -> list[dict[int, Any]]:
    """Ranges of two attributes, as many of each pair: one question for all of a pair."""
    first, last = np.triu_indices(c)
    proper = np.flatnonzero(last - first < c - 1)
    pairs, asked = list(combinations(range(d), min(d, 2))), []
    for pair in pairs:
        chosen = {place: rng.choice(proper, QUERIES // len(pairs)) for place in pair}
        asked.append({place: Between(first[some], last[some]) for place, some in chosen.items()})
    return asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", nargs="*", default=[",".join(map(str, case)) for case in CASES])
    parser.add_argument("--systems", nargs="*", default=list(SYSTEMS), choices=SYSTEMS)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--others", action="store_true", help="data of other families, by a guess")
    parser.add_argument("--all", action="store_true", help="print every population")
    options = parser.parse_args()
    print("| d, c, epsilon, n | system | seconds | predicted | measured | ratio | least | most |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in options.cases:
        first, second, third, fourth = case.split(",")
        d, c, epsilon, n = int(first), int(second), float(third), int(float(fourth))
        attributes, rng = Domain.of([c] * d), np.random.default_rng(3)
        data: dict[str, np.ndarray] = (
            {name: make(n, d, c, rng) for name, make in OTHERS.items()}
            if options.others
            else {name: drawn_records(name, attributes, n, rng) for name in REFERENCE_RECORDS}
        )
        systems = {}
        for name in options.systems:
            with suppress(ValueError):
                SYSTEMS[name](attributes, epsilon, n)
                systems[name] = partial(SYSTEMS[name], attributes, n=n)
        asked = {"ranges": conjunctions(d, c, rng)}
        errors = {
            (row.protocol, row.population): row.error
            for row in evaluate(
                systems, data, asked, [epsilon], options.repeats, confidence=None
            ).summary()
        }
        for name in systems:
            start = time.process_time()
            predicted = (
                {
                    key: conjunction_errors(
                        SYSTEMS[name],
                        attributes,
                        epsilon,
                        n,
                        ExpectedRecords.of(one[rng.integers(0, n, KNOWN)], attributes),
                    )[0][1]
                    for key, one in data.items()
                }
                if options.others
                else dict(conjunction_errors(SYSTEMS[name], attributes, epsilon, n))
            )
            seconds = time.process_time() - start
            predicted = {key: predicted.get(key, next(iter(predicted.values()))) for key in data}
            found = {key: errors[name, key] for key in data}
            ratios = {key: found[key] / predicted[key] for key in data}
            both = [math.sqrt(np.mean(np.square(list(one.values())))) for one in (predicted, found)]
            least, most = (pick(ratios, key=ratios.__getitem__) for pick in (min, max))
            print(
                f"| {d}, {c}, {epsilon:g}, {n} | {name} | {seconds:.2f} | {both[0]:.4f} |"
                f" {both[1]:.4f} | {both[1] / both[0]:.2f} | {ratios[least]:.2f} {least} |"
                f" {ratios[most]:.2f} {most} |",
                flush=True,
            )
            if options.all:
                for key in data:
                    print(
                        f"|  | {key} |  | {predicted[key]:.4f} | {found[key]:.4f} |"
                        f" {ratios[key]:.2f} |  |  |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
