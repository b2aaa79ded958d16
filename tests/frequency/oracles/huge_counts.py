"""Counts of up to 2^63 - 1 reports, and estimates from them by exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from frequency import GRR, OLH, OUE, Aggregate
from tests.frequency.core.messages import signature


def times(q: int, a: int, b: int) -> int:
    """In F_q, q prime or 4."""
    return a * b % q if q != 4 else [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]][a][b]


def inner_product(q: int, t: int, a: int, x: int) -> int:
    terms = [times(q, a // q**j % q, x // q**j % q) for j in range(t)]
    return (
        sum(terms) % q
        if q != 4
        else terms[0] ^ (terms[1] if t > 1 else 0) ^ (terms[2] if t > 2 else 0)
    )


def huge(cells: int, n: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """Counts that sum to n: all in one cell, evenly spread, and at random."""
    yield [n] + [0] * (cells - 1)
    yield [n // cells + (k < n % cells) for k in range(cells)]
    for _ in range(4):
        cuts = sorted(int(cut) * n >> 62 for cut in rng.integers(0, 1 << 62, cells - 1))
        yield [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def check_exact(oracle: GRR | OUE | OLH, n: int, counts: list[int], supporters: list[int]) -> None:
    found = oracle.estimate(
        oracle.aggregate_from_bytes(Aggregate(signature(oracle), n, np.array(counts)).to_bytes())
    )
    exact = [float((Fraction(s, n) - oracle.q) / (oracle.p - oracle.q)) for s in supporters]
    assert found.frequencies == pytest.approx(exact, rel=1e-12, abs=1e-12)
    assert np.isfinite(found.variances).all()
