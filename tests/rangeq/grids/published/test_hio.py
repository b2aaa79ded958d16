"""HIO: the nodes whose union is a range, and answers, by listing all nodes and cells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from rangeq import Between
from rangeq.grids.cells import tree_cells
from rangeq.grids.channel import GridChannel, LevelSketch
from rangeq.grids.published import hio_lhio as hio
from rangeq.grids.published.hio_lhio import HIO, intervals


@pytest.mark.parametrize(("size", "branching"), [(1, 4), (7, 2), (16, 4), (21, 4)])
def test_intervals_are_the_fewest_nodes(size: int, branching: int) -> None:
    levels = tree_cells(size, branching)
    for left in range(size):
        for right in range(left, size):
            covered = np.zeros(size, dtype=int)
            count = 0
            for level, start, end in intervals(levels, left, right):
                covered[levels[level][start] : levels[level][end]] += 1
                count += end - start
            assert (covered[left : right + 1] == 1).all()
            assert covered.sum() == right - left + 1
            # Fewest: a node counts if it is in the range and its parent is not.
            inside = [
                {(a, b) for a, b in pairwise(edges) if left <= a and b <= right + 1}
                for edges in levels
            ]
            fewest = {node for nodes in inside for node in nodes}
            fewest = {
                n
                for n in fewest
                if not any(m != n and m[0] <= n[0] and n[1] <= m[1] for m in fewest)
            }
            assert count == len(fewest)


SIZES = (16, 20, 3)
LEFT, RIGHT = [[0, 3, 1], [2, 0, 0], [5, 5, 2]], [[10, 17, 2], [15, 18, 1], [5, 5, 2]]


def blocks(protocol: HIO, left: list[int], right: list[int]) -> Iterator[Any]:
    """The level of each block of a query's cells, its number, and all of its cells."""
    runs = [intervals(*given) for given in zip(protocol.levels, left, right, strict=True)]
    counts = [len(levels) for levels in protocol.levels]
    for block in product(*runs):
        levels = [level for level, _, _ in block]
        part = int(np.ravel_multi_index(levels, counts))
        yield levels, part, product(*(range(start, end) for _, start, end in block))


@pytest.mark.parametrize("users", [30, 20_000])
def test_answers_are_sums_over_cells(users: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tables, of sketches for more than 256 cells, and of levels that nobody reported on."""
    monkeypatch.setattr(hio, "_MOST_COUNTS", 1)
    protocol, rng = HIO(SIZES, 2.0), np.random.default_rng(1)
    assert isinstance(protocol.channel, GridChannel)
    channel = protocol.channel
    aggregate = protocol.simulate(1, rng, rng.integers(0, SIZES, size=(users, 3)))
    found = protocol.estimate(aggregate).answers([0, 1, 2], LEFT, RIGHT)
    sketched = 0
    for left, right, answer in zip(LEFT, RIGHT, found, strict=True):
        expected = 0.0
        for _, part, cells in blocks(protocol, left, right):
            grid, level = channel.grids[part], channel.part_aggregate(aggregate, part)
            numbers = np.array([np.ravel_multi_index(cell, grid.shape) for cell in cells])
            if level.n:
                expected += channel.parts[part].frequencies_of(level, numbers).sum()
                sketched += grid.cells > 256
            else:
                expected += grid.even.ravel()[numbers].sum()
        assert answer == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert sketched


def test_many_levels_are_summed_without_listing_their_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hio, "_MOST_TABLES", 10)
    monkeypatch.setattr(hio, "_MOST_COUNTS", 1 << 10)
    protocol, rng = HIO(SIZES, 2.0), np.random.default_rng(2)
    assert isinstance(protocol.channel, LevelSketch)
    channel = protocol.channel
    assert channel.width == 32
    aggregate = protocol.simulate(1, rng, rng.integers(0, SIZES, size=(5000, 3)))
    found = protocol.estimate(aggregate).answers([0, 1, 2], LEFT, RIGHT)
    for left, right, answer in zip(LEFT, RIGHT, found, strict=True):
        expected = 0.0
        for levels, part, cells in blocks(protocol, left, right):
            for cell in cells:
                hashed = 0
                for hashes, level, node in zip(channel.hashes, levels, cell, strict=True):
                    hashed ^= int(hashes[level][node])
                signs = 1 - 2 * (np.bitwise_count(np.arange(32) & hashed).astype(int) & 1)
                expected += aggregate.counts[part] @ signs
        expected *= len(aggregate.counts) / (5000 * channel.contrast)
        assert answer == pytest.approx(expected, rel=1e-9)


def test_sketched_levels_are_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of 40 answers within 6 of their standard errors: 10^-6 for each of four."""
    monkeypatch.setattr(hio, "_MOST_TABLES", 1)
    protocol, rng = HIO([8, 8], 2.0), np.random.default_rng(3)
    assert isinstance(protocol.channel, LevelSketch)
    first = rng.binomial(7, 0.4, 20_000)
    records = np.stack([first, 7 - first], axis=1)
    asked = [[0, 0], [2, 4], [0, 3], [3, 1]], [[3, 3], [3, 5], [2, 6], [6, 4]]
    true = [
        ((records >= a) & (records <= b)).all(axis=1).mean() for a, b in zip(*asked, strict=True)
    ]
    found = np.array(
        [
            protocol.estimate(protocol.simulate(1, rng, records)).answers([0, 1], *asked)
            for _ in range(40)
        ]
    )
    error = np.abs(found.mean(axis=0) - true)
    spread = found.std(axis=0, ddof=1) / 40**0.5
    assert (error < 6 * spread + 0.03).all()  # what 256 cells confuse, for the seed used
    # A quarter of the population more would be seen.
    assert (np.abs(found.mean(axis=0) - true - 0.25) > 6 * spread + 0.03).all()


def test_what_a_sketch_of_levels_cannot_be_is_refused() -> None:
    assert isinstance(HIO([64] * 10, 1.0).channel, LevelSketch)
    with pytest.raises(ValueError, match="16384 levels of HIO are kept in a sketch"):
        HIO([4] * 14, 1.0, oracle="OUE")
    with pytest.raises(ValueError, match="60466176 levels, more than 1048576"):
        HIO([1000] * 10, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "c"), [(10, 64), (6, 1000)])
def test_the_published_numbers_of_attributes_and_of_values(d: int, c: int) -> None:
    protocol, rng = HIO([c] * d, 1.0), np.random.default_rng(4)
    records = rng.integers(0, c, size=(50_000, d))
    aggregate = protocol.aggregate(protocol.privatize(records, rng))
    estimate = protocol.estimate(protocol.aggregate_from_bytes(aggregate.to_bytes()))
    for several in (1, 2, 4):
        left = rng.integers(0, c // 2, size=(3, several))
        answers = estimate.answers(np.arange(several), left, left + c // 2 - 1)
        assert np.isfinite(answers).all()
    assert estimate.answer(dict.fromkeys(range(d), Between(0, c - 1))).value == 1
