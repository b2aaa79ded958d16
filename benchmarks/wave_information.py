"""What the reports of WaveGrid tell by theory, by the part of the users asked about one attribute.

Fisher information of all reports about a pair of six attributes of 32 values, the other four taken
to be even, and with it the mean absolute errors of ranges with random ends that are left under a
normal prior: rough, in which cells vary by themselves, or smooth, in which waves vary by one over
their frequencies. On even data, and on two clusters. Errors about one attribute and about two, in
parts of those where all report on pairs. Prints a Markdown table.

python benchmarks/wave_information.py [--epsilons E ...] [--alone A ...] [--users N]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Iterator

import numpy as np
from range_queries import one_core, table

from frequency.oracles.subset_selection import SubsetSelection
from rangeq.grids import WaveGrid
from rangeq.grids.wavegrid.partitions import ValueSets
from rangeq.grids.wavegrid.square_waves import HALVES, information

SIZE, ATTRIBUTES, QUERIES = 32, 6, 300
PAIRS = ATTRIBUTES * (ATTRIBUTES - 1) // 2


def told(oracle: SubsetSelection, cells: np.ndarray, population: np.ndarray) -> np.ndarray:
    """The information of a report on one of the cells, rows of what part of each value they hold.

    Of sets of several cells that of equally frequent ones.
    """
    if oracle.size == 1:
        q = (1 - float(oracle.p)) / (oracle.domain - 1)
        held = cells @ population
        rows = (float(oracle.p) - q) * cells / np.sqrt(q + (float(oracle.p) - q) * held)[:, None]
    else:
        rows = np.sqrt(information(oracle) * oracle.domain) * cells
    return rows.T @ rows


def of_waves(waves: tuple[ValueSets, ...], epsilon: float, population: np.ndarray) -> np.ndarray:
    """The information of a report on one attribute or two."""
    edges = tuple(range(SIZE + 1))
    shares = [wave.shares(edges) for wave in waves]
    total = np.zeros((population.size, population.size))
    oracle = SubsetSelection(int(np.prod([wave.arcs for wave in waves])), epsilon)
    for setting in np.ndindex(*(wave.configurations for wave in waves)):
        cells = np.ones((1, 1))
        for own, configuration in zip(shares, setting, strict=True):
            cells = np.kron(cells, own[configuration])
        chance = np.prod(
            [wave.probabilities[one] for wave, one in zip(waves, setting, strict=True)]
        )
        total += chance * told(oracle, cells, population.ravel())
    return total


def priors() -> Iterator[tuple[str, np.ndarray]]:
    """Covariances of the frequencies of a pair's cells."""
    cells = SIZE**2
    yield "rough", np.eye(cells) * (2 / cells) ** 2
    frequency = np.arange(SIZE)
    waves = np.cos(np.pi * np.outer((np.arange(SIZE) + 0.5) / SIZE, frequency))
    waves *= np.where(frequency > 0, np.sqrt(2), 1) / SIZE / np.maximum(frequency, 0.5)
    yield "smooth", np.kron(waves @ waves.T, waves @ waves.T) + np.eye(cells) * 1e-13


def populations() -> Iterator[tuple[str, np.ndarray]]:
    """Frequencies of a pair's cells."""
    yield "even", np.full((SIZE, SIZE), 1 / SIZE**2)
    x = (np.arange(SIZE) + 0.5) / SIZE
    clusters = np.zeros((SIZE, SIZE))
    for a, b in ((0.3, 0.3), (0.7, 0.6)):
        clusters += np.exp(-50 * np.add.outer((x - a) ** 2, (x - b) ** 2))
    yield "clusters", (clusters + 0.01) / (clusters + 0.01).sum()


def queries() -> tuple[np.ndarray, np.ndarray]:
    """Ranges of the first attribute, and of both: rows of zeros and ones."""
    rng = np.random.default_rng(0)
    ends = np.sort([rng.choice(SIZE + 1, (2, 2)) for _ in range(QUERIES)], axis=2)
    inside = (ends[..., :1] <= np.arange(SIZE)) & (np.arange(SIZE) < ends[..., 1:])
    both = np.einsum("qa,qb->qab", inside[:, 0], inside[:, 1]).reshape(QUERIES, -1)
    return np.repeat(inside[:, 0], SIZE, axis=1).astype(float), both.astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1, 2, 3, 4, 6])
    parser.add_argument("--alone", type=float, nargs="+", default=[0.1, 0.2, 0.3333, 0.5])
    parser.add_argument("--users", type=int, default=300_000)
    given = parser.parse_args()
    one_core()
    rows, asked, one = [], queries(), np.ones((1, SIZE))
    sums = (np.kron(np.eye(SIZE), one), np.kron(one, np.eye(SIZE)))  # of a pair's cells
    halves = np.array([np.arange(SIZE) < SIZE // 2, np.arange(SIZE) >= SIZE // 2], dtype=float)
    for epsilon in given.epsilons:
        channel = WaveGrid([SIZE] * ATTRIBUTES, epsilon).channel
        pair, single = channel.waves[:2], channel.waves_alone[:1]
        for name, population in populations():
            on_halves = told(
                SubsetSelection(4, epsilon), np.kron(halves, halves), population.ravel()
            )
            on_pair = float(1 - HALVES) * of_waves(pair, epsilon, population)
            on_pair += float(HALVES) * on_halves
            own = [of_waves(single, epsilon, population.sum(axis=axis)) for axis in (1, 0)]
            for kind, prior in priors():
                errors, before = [], np.linalg.inv(prior)
                for alone in [0.0, *given.alone]:
                    of_pair = given.users * (1 - alone) / PAIRS * on_pair
                    known = of_pair + before + 1e9  # a sum of 1
                    for part, by_itself in zip(sums, own, strict=True):
                        spread = part.T / SIZE  # an even attribute beside this one
                        others = (ATTRIBUTES - 2) * spread.T @ of_pair @ spread
                        own_users = given.users * alone / ATTRIBUTES
                        known += part.T @ (others + own_users * by_itself) @ part
                    left = np.linalg.inv(known)
                    errors.append(
                        [
                            np.sqrt(np.maximum(np.einsum("qi,qi->q", w @ left, w), 0)).mean()
                            for w in asked
                        ]
                    )
                found = np.array(errors)
                ratios = [" / ".join(f"{ratio:.2f}" for ratio in row / found[0]) for row in found]
                arcs = f"{pair[0].arcs}, {single[0].arcs}"
                rows.append([f"{epsilon:g}", arcs, name, kind, *ratios[1:]])
    table(
        f"Ranges of one attribute / two, n = {given.users}, by the part asked about one",
        ["epsilon", "arcs in a pair, alone", "data", "prior", *(f"{a:g}" for a in given.alone)],
        rows,
    )


if __name__ == "__main__":
    main()
