"""Populations and queries for the tests: section 5.1."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.base.numbers import Floats, Integers
from rangeq.grids.wavegrid.interactions import Halves


def people(
    kind: str, n: int, d: int, c: int, rng: np.random.Generator, covariance: float = 0.8
) -> Integers:
    """Multivariate normal or Laplace records: mean 0, deviation 1; c equal bins on [-6, 6], the
    ends clipped.
    """
    matrix = np.full((d, d), covariance)
    np.fill_diagonal(matrix, 1.0)
    values = rng.multivariate_normal(np.zeros(d), matrix, size=n, method="cholesky")
    if kind == "laplace":
        values *= np.sqrt(rng.exponential(size=(n, 1)))
    return np.clip(((values + 6) / 12 * c).astype(np.int64), 0, c - 1)


def queries(
    m: int, several: int, d: int, c: int, rng: np.random.Generator, volume: float = 0.5
) -> tuple[Integers, Integers, Integers]:
    """Attributes and ends of m queries; sides are a fixed part of the domain, placed anywhere."""
    places = np.array([rng.choice(d, several, replace=False) for _ in range(m)])
    side = max(1, int(c * volume))
    left = rng.integers(0, c - side + 1, size=(m, several))
    return places, left, left + side - 1


def truth(records: Integers, places: Integers, left: Integers, right: Integers) -> Floats:
    """The fraction of records in each query."""
    found = []
    for chosen, a, b in zip(places, left, right, strict=True):
        values = records[:, chosen]
        found.append(((values >= a) & (values <= b)).all(axis=1).mean())
    return np.array(found)


def collected(protocol: Any, records: Any, seed: int = 1) -> Any:
    """The estimate from a report of every record."""
    return protocol.estimate(
        protocol.aggregate(protocol.privatize(records, np.random.default_rng(seed)))
    )


def told_halves(table: Floats, users: float = 0.0, seed: int = 0) -> Halves:
    """What reports on the halves of a pair of this distribution tell, with noise of variance N."""
    left, right = (np.where(np.arange(cells) < cells // 2, 1.0, -1.0) for cells in table.shape)
    noise = users**0.5 * np.random.default_rng(seed).normal()
    return Halves(left, right, users * float(left @ table @ right) + noise, users)
