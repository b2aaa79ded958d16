"""Patterns of rows: balanced ones, rotations, and searches for better ones."""

from itertools import combinations
from math import exp

import numpy as np
import pytest

from mechdesign.local.optimality import Criterion
from mechdesign.local.patterns import balanced, climb, flat, turn_climb, turned
from tests.mechdesign.local.workloads import some_gram, some_prior


@pytest.mark.parametrize("k", [*range(2, 34), 64, 100])
def test_balanced_sets_are_balanced(k):
    rng = np.random.default_rng(7)
    for ratio in (1.001, exp(1.1), 1e4) if k < 20 else (exp(1.1),):
        sets = list(balanced(k, ratio, rng))
        assert sets
        for patterns in sets:
            assert patterns.dtype == bool
            assert patterns.shape[1] == k
            assert len(set(patterns.sum(axis=0))) == 1
            assert patterns.any()
            assert not patterns.all()


@pytest.mark.parametrize(("size", "held"), [(7, 3), (13, 4), (11, 5)])
def test_flat_finds_difference_sets(size, held):
    found = [flat(size, size / held - 1, np.random.default_rng(seed)) for seed in range(5)]
    assert all(pattern.sum() == held for pattern in found)
    spread = [
        {int((pattern & np.roll(pattern, turn)).sum()) for turn in range(1, size)}
        for pattern in found
    ]
    assert min(map(len, spread)) == 1
    assert {1, held * (held - 1) // (size - 1)} >= min(spread, key=len)


def test_turned_is_all_rotations():
    pattern = np.array([True, True, False, True, False])
    assert {row.tobytes() for row in turned(pattern)} == {
        np.roll(pattern, turn).tobytes() for turn in range(5)
    }


@pytest.mark.parametrize("seed", range(12))
def test_climb_ends_where_no_flip_or_exchange_is_better(seed):
    rng = np.random.default_rng(seed)
    k, ratio = int(rng.integers(2, 9)), exp(rng.uniform(0.3, 4))
    criterion = Criterion(some_gram(k, seed)[1], some_prior(k, seed), ratio)
    slope, multipliers = some_gram(k, seed + 50)[1], rng.normal(size=k) * k

    def worth(patterns):
        return criterion.priced(slope, multipliers, 1 + (ratio - 1) * np.array(patterns))

    start = np.arange(k) == rng.integers(k)
    end = climb(criterion, slope, multipliers, start.copy())
    near = []
    for count in (1, 2):
        for places in combinations(range(k), count):
            other = end.copy()
            other[list(places)] ^= True
            if other.any() and (count == 1 or other.sum() == end.sum()):
                near.append(other)
    found = float(worth([end])[0])
    assert found >= float(worth([start])[0])
    assert worth(near).max() <= found + 1e-9 * abs(found)


@pytest.mark.parametrize("seed", range(8))
def test_turn_climb_ends_where_no_exchange_is_better(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 10))
    criterion = Criterion(np.eye(k), np.full(k, 1 / k), exp(1.0))
    slope = some_gram(k, seed)[1]
    start = np.arange(k) < rng.integers(1, k)

    def worth(pattern):
        return float(
            np.einsum(
                "ij,jk,ik->", turned(pattern).astype(float), slope, turned(pattern).astype(float)
            )
        )

    end = turn_climb(criterion, slope, start.copy())
    assert end.sum() == start.sum()
    assert worth(end) >= worth(start) - 1e-9
    for a in np.flatnonzero(end):
        for b in np.flatnonzero(~end):
            other = end.copy()
            other[a], other[b] = False, True
            assert worth(other) <= worth(end) * (1 + 1e-9)
