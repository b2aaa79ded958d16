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
import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from range_queries import one_core, table

from frequency import GRR, HRR, OLH, OUE, ProjectiveGeometry, SubsetSelection
from frequency.heavy import FewBits
from frequency.marginals import CALM, Domain, InpEM, InpHT, MargHT, MargPS
from mechdesign.evaluate import evaluate
from rangeq import (
    Between,
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


Makers = dict[str, Callable[[float], Any]]


def of_records(kind: Any, epsilon: float) -> Any:
    return kind(ATTRIBUTES, epsilon=epsilon, k=2)


def cases() -> Iterator[tuple[Makers, Any, list[Any]]]:
    """Protocols, a population, and questions about it."""
    rng = np.random.default_rng(1)
    counts = np.bincount(rng.binomial(DOMAIN - 1, 0.4, USERS), minlength=DOMAIN)
    oracles: list[Any] = [GRR, HRR, OLH, OUE, SubsetSelection, ProjectiveGeometry]
    yield {kind.__name__: partial(kind, DOMAIN) for kind in oracles}, counts, [np.arange(DOMAIN)]
    of_ranges: Makers = {
        "HaarHRR": lambda e: HaarHRR(DOMAIN, e),
        "HierarchicalHistogram": lambda e: HierarchicalHistogram(DOMAIN, e, 4, "OLH"),
        "DecomposedHistogram": lambda e: DecomposedHistogram(DOMAIN, e, 4, "HRR"),
        "CircularHistogram": lambda e: CircularHistogram(DOMAIN, e),
        "shaped": lambda e: shaped(DOMAIN, e, USERS),
        "SquareWave": lambda e: SquareWave(DOMAIN, e),
    }
    first = rng.integers(0, DOMAIN, 40)
    yield of_ranges, counts, [Between(first, np.maximum(first, rng.integers(0, DOMAIN, 40)))]
    records = {name: rng.binomial(ATTRIBUTES[name] - 1, 0.4, USERS) for name in ATTRIBUTES}
    asked: list[Any] = [{"a": x, "b": y} for x in range(2) for y in range(3)]
    asked += [{"c": x, "d": y} for x in range(4) for y in range(2)]
    of_marginals: list[Any] = [InpHT, MargPS, MargHT, CALM, InpEM]
    yield {kind.__name__: partial(of_records, kind) for kind in of_marginals}, records, asked
    records = {name: rng.binomial(15, 0.4, USERS) for name in SIZES}
    ends = [Between(0, 7), Between(4, 11), Between(4, 7)]
    asked = [{"x": a, name: b} for a in ends for b in ends for name in ("y", "z")]
    of_grids: list[Any] = [TDG, HDG, RangeCALM, HIO, LHIO, MSW, HaarHRR2D, WaveGrid]
    yield {kind.__name__: partial(kind, SIZES, n=USERS) for kind in of_grids}, records, asked


def few_bits(make: Callable[[float], Any], bits: int, epsilon: float) -> FewBits:
    return FewBits(make(epsilon), bits=bits)


def among_users(answers: np.ndarray, truth: np.ndarray) -> float:
    """The variance among users of what is asked."""
    return float(np.mean(truth * (1 - truth)))


def rows(runs: int) -> Iterator[list[str]]:
    for makers, population, asked in cases():
        reduced = {
            f"{name}, {bits}": partial(few_bits, make, bits)
            for name, make in makers.items()
            for bits in BITS
        }
        summary = evaluate(
            {**makers, **reduced},
            {"users": population},
            {"questions": asked},
            EPSILONS,
            runs,
            confidence=None,
            measures={"among": among_users},
        ).summary()
        found = {(row.protocol, row.epsilon): row for row in summary}
        for name, epsilon in product(makers, EPSILONS):
            own = found[name, epsilon]
            square, spread = own.error**2, 2 * own.standard_error / own.error
            row = [name, f"{epsilon:g}"]
            for bits in BITS:
                protocol = few_bits(makers[name], bits, epsilon)
                other = found[f"{name}, {bits}", epsilon]
                expected = protocol.predicted_variance(square, USERS, own.measures["among"])
                ratio = other.error**2 / square
                deviation = ratio * math.hypot(spread, 2 * other.standard_error / other.error)
                row.append(
                    f"{protocol.kept:.3f}: {expected / square:.2f}, {ratio:.2f} ± {deviation:.2f}"
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
