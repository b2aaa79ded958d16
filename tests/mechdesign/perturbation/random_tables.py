"""Random small perturbation tables, and those that pages and tests have in common."""

from __future__ import annotations

import numpy as np

from mechdesign.perturbation import PerturbationTable


def random_table(rng: np.random.Generator, counts: int = 6, noise: int = 3) -> PerturbationTable:
    """A table of counts to at most ``counts``, of 4 to 16 keys, with few outputs here and there."""
    keys = int(rng.integers(4, 17))
    size = int(rng.integers(1, counts + 1))
    rows = np.zeros((size + 1, keys), dtype=np.int64)
    for count in range(size + 1):
        choices = np.arange(-min(noise, count), noise + 1)
        kept = rng.choice(choices, size=int(rng.integers(1, len(choices) + 1)), replace=False)
        rows[count] = rng.choice(kept, size=keys)
    return PerturbationTable.of_noise(rows, int(rng.integers(1, size + 2)))


def published_rule(threshold: int = 10, base: int = 5) -> PerturbationTable:
    """The table of cell_key_perturbation: nothing below a threshold, else the nearest multiple."""
    counts = np.arange(751)
    rounded = np.where(counts < threshold, 0, (counts + base // 2) // base * base)
    return PerturbationTable.of_noise(np.repeat((rounded - counts)[:, None], 256, axis=1), 250)
