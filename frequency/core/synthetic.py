"""Synthetic records of an estimated distribution: they are nobody's."""

from __future__ import annotations

import numpy as np

from mechdesign.base.linear_algebra import Floats, Items
from mechdesign.base.numbers import whole


def shared_out(weights: Floats, n: int, rng: np.random.Generator) -> Items:
    """Items in random order, of which each has its share, rounded at random.

    The numbers of items in any run from the first one on are off by less than one, and not by the
    root of n as if they were drawn one by one.

    Shapes: `weights` (items,); returns (n,).
    """
    parts = np.cumsum(weights)
    parts = parts / parts[-1] * n
    parts[-1] = n
    counts = np.diff(np.floor(parts + rng.random()), prepend=0).astype(np.int64)
    return rng.permutation(np.repeat(np.arange(len(weights)), counts))


def checked_sample(
    n: int, number: int, reports: int, rng: np.random.Generator | None
) -> tuple[int, int, np.random.Generator]:
    """How many records and samples are asked for, and what to draw with."""
    records = whole(n, "n", 1, what="a number of records")
    samples = whole(number, "number", 1, what="a number of samples")
    if not reports:
        raise ValueError("no reports: there is no distribution to sample from")
    return records, samples, np.random.default_rng() if rng is None else rng
