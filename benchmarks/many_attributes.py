"""WaveGrid on thirty attributes: all pairs, two rounds, or only the pairs that matter.

Attributes of 16 values: on a random tree, each with correlation 0.8 to the one that it hangs on, or
with many weak dependences, a correlation of 0.2 between any two. Errors and coverage of 95 %
intervals for random ranges of half of the values. In two rounds a fifth of the users report on all
pairs, and the others on those that `second_round` chooses.

python benchmarks/many_attributes.py [--users N] [--attributes D] [--repeats R] [--epsilons E ...]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import ndtr
from tqdm import tqdm

from rangeq.grids import WaveEstimate, WaveGrid

SIZE = 16
SEVERAL = (1, 2, 3)
QUERIES = 300
FIRST = 0.2
"""The part of the users who report in the first of two rounds."""

Edges = list[tuple[int, int]]


def values(normal: np.ndarray) -> np.ndarray:
    """Normal values as equally frequent numbers 0 .. SIZE - 1."""
    return np.minimum((ndtr(normal) * SIZE).astype(np.int64), SIZE - 1)


def on_a_tree(users: int, several: int, rng: np.random.Generator) -> tuple[np.ndarray, Edges]:
    """Records, and the pairs of the tree."""
    normal, edges = rng.normal(size=(users, several)), []
    for place in range(1, several):
        parent = int(rng.integers(place))
        normal[:, place] = 0.8 * normal[:, parent] + 0.6 * normal[:, place]
        edges.append((parent, place))
    return values(normal), edges


def weakly(users: int, several: int, rng: np.random.Generator) -> tuple[np.ndarray, Edges]:
    """Records of attributes of which any two have the correlation 0.2; no pairs matter more."""
    common = np.sqrt(0.2) * rng.normal(size=(users, 1))
    return values(common + np.sqrt(0.8) * rng.normal(size=(users, several))), []


def collected(
    protocol: WaveGrid, records: np.ndarray, rng: np.random.Generator
) -> tuple[WaveEstimate, str]:
    return protocol.estimate(protocol.aggregate(protocol.privatize(records, rng))), ""


def in_two_rounds(
    protocol: WaveGrid, records: np.ndarray, edges: Edges, rng: np.random.Generator
) -> tuple[WaveEstimate, str]:
    """The estimate from both rounds, and what the second one asked about."""
    users = int(FIRST * len(records))
    first = protocol.aggregate(protocol.privatize(records[:users], rng))
    second = protocol.second_round(first, n=len(records) - users)
    rest = second.aggregate(second.privatize(records[users:], rng))
    pairs = {(int(j), int(k)) for j, k in second.pairs}
    said = f"{len(pairs)} pairs, {len(pairs & set(edges))} of {len(edges)} of the tree"
    return second.estimate(rest, earlier=[(protocol, first)]), said


def estimates(
    records: np.ndarray, edges: Edges, epsilon: float, rng: np.random.Generator
) -> Iterator[tuple[str, WaveEstimate, str]]:
    """By each way to choose pairs: its name, the estimate, and what is to be said of it."""
    grid = WaveGrid([SIZE] * records.shape[1], epsilon)
    yield "all", *collected(grid, records, rng)
    if edges:
        known = WaveGrid([SIZE] * records.shape[1], epsilon, pairs=edges)
        yield "the tree's", *collected(known, records, rng)
    yield "two rounds", *in_two_rounds(grid, records, edges, rng)


def measured(estimate: WaveEstimate, records: np.ndarray, several: int) -> tuple[float, float]:
    """The mean absolute error of answers about so many attributes, and how often they cover."""
    rng, attributes = np.random.default_rng(several), records.shape[1]
    places = np.sort(np.argsort(rng.random((QUERIES, attributes)), axis=1)[:, :several], axis=1)
    left = rng.integers(0, SIZE // 2 + 1, size=places.shape)
    right = left + SIZE // 2 - 1
    truth = np.array(
        [
            np.mean(np.all((records[:, chosen] >= low) & (records[:, chosen] <= high), axis=1))
            for chosen, low, high in zip(places, left, right, strict=True)
        ]
    )
    off = np.abs(estimate.answers(places, left, right) - truth)
    known = estimate.predicted_error(places, left, right).total
    told = np.isfinite(known)
    covered = (off[told] <= 1.96 * np.sqrt(known[told])).mean() if told.any() else np.nan
    return float(off.mean()), float(covered)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=10**6)
    parser.add_argument("--attributes", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    given = parser.parse_args()
    sets: dict[str, Callable[..., tuple[np.ndarray, Edges]]] = {
        "on a tree": on_a_tree,
        "weakly": weakly,
    }
    print("| dependent | epsilon | pairs | error about 1 / 2 / 3 | covered | chosen at last |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, drawn), epsilon in ((one, e) for one in sets.items() for e in given.epsilons):
        found: dict[str, list[np.ndarray]] = {}
        chosen: dict[str, str] = {}
        for seed in tqdm(range(given.repeats), f"{name}, {epsilon:g}", leave=False, mininterval=5):
            # Apart, so that no report is drawn with the numbers that drew its user
            people, reports = np.random.default_rng([seed, 5]), np.random.default_rng([seed, 17])
            records, edges = drawn(given.users, given.attributes, people)
            for way, estimate, chosen[way] in estimates(records, edges, epsilon, reports):
                rows = [measured(estimate, records, several) for several in SEVERAL]
                found.setdefault(way, []).append(np.array(rows).T)
        for way, each in found.items():
            errors, covered = np.mean(each, axis=0)
            print(
                f"| {name} | {epsilon:g} | {way} |"
                f" {' / '.join(f'{one:.4f}' for one in errors)} |"
                f" {' / '.join(f'{one:.2f}' for one in covered)} | {chosen[way]} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
