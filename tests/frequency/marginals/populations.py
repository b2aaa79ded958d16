"""Populations of records for the tests of marginals."""

from __future__ import annotations

import numpy as np

from frequency.marginals import Domain

MIXED = Domain({"a": 2, "b": 3, "c": 1, "d": 4})


def held_of(domain: Domain, n: int, seed: int, evenness: float = 0.3) -> np.ndarray:
    """How many of n users hold each record; nearly as many of each if ``evenness`` is large."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, rng.dirichlet(np.full(domain.size, evenness)))
