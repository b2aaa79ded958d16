"""Lines walked point by point count what the transform of the whole plane does."""

import numpy as np
import pytest

from frequency import OLH
from frequency.algebra.error_correcting_codes import walkable, walked
from frequency.algebra.finite_field import space


def some_counts(v, many, rng):
    counts = np.zeros((v.directions, v.q), dtype=np.int64)
    place = rng.integers(0, v.directions, many), rng.integers(0, v.q, many)
    counts[place] = rng.integers(1, 1 << 50, many)
    counts[rng.integers(0, 3, 5), rng.integers(0, v.q, 5)] += 1  # the lines of special slopes
    return counts


@pytest.mark.parametrize("q", [2, 3, 5, 31, 257])
def test_walked_lines_are_the_transform(q):
    v, rng = space(q, 2), np.random.default_rng(q)
    for many in (0, 1, 40):
        counts = some_counts(v, many, rng)
        before, expected = counts.copy(), v.incident(counts)
        for domain in sorted({1, q - 1, q, q + 1, q * q // 2, q * q}):
            found = walked(v, counts, domain)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected[:domain])
        np.testing.assert_array_equal(counts, before)


def test_sums_up_to_the_largest():
    v = space(257, 2)
    counts = np.zeros((v.directions, v.q), dtype=np.int64)
    counts[5, 7], counts[200, 3] = 2**62, 2**62 - 1
    found, expected = walked(v, counts, 1000), v.incident(counts)[:1000]
    np.testing.assert_array_equal(found, expected)


def test_only_few_counts_in_a_large_plane_are_walked():
    plane = space(2039, 2)
    counts = np.zeros((plane.directions, plane.q), dtype=np.int64)
    assert walkable(plane, counts, 1 << 18)
    assert not walkable(plane, counts[None], 1 << 18)
    counts[:200] = 1
    assert not walkable(plane, counts, 1 << 18)
    assert walkable(plane, counts, 1 << 12)
    for other in (space(64, 2), space(53, 3), space(100_003, 2)):
        assert not walkable(other, np.zeros((2, 2), dtype=np.int64), 10)


def test_local_hashing_of_many_values_counts_its_supporters():
    """Report by report, by the hash function itself."""
    oracle = OLH(1 << 14, 8.0)
    v, rng = space(*oracle._order), np.random.default_rng(3)
    assert walkable(v, np.zeros((v.directions, v.q), dtype=np.int64), oracle.domain)
    reports = oracle.privatize(rng.integers(0, oracle.domain, 300), rng)
    reports["hash"][:4] = (0, 0, 1, v.q)
    reports["value"][:4] = (0, 1, 0, 5)
    items = np.arange(oracle.domain)
    expected = sum(
        v.dot(np.full(oracle.domain, a), items) == y
        for a, y in zip(reports["hash"].tolist(), reports["value"].tolist(), strict=True)
    )
    np.testing.assert_array_equal(
        oracle._supporters(oracle.aggregate(reports).counts), np.asarray(expected)
    )
