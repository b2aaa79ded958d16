"""The sketch of all d-dim levels: hashes, the law of a report, and sums cell by cell."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from frequency.schema import Domain
from rangeq.grids.cells import tree_widths
from rangeq.grids.channel import LevelSketch

SIZES = (5, 4, 3)


def sketch(width: int = 8, seed: int = 0, epsilon: float = 2.0) -> LevelSketch:
    widths = tuple(tree_widths(size, 2) for size in SIZES)
    return LevelSketch(60, epsilon, Domain.of(SIZES), widths, width, seed)


def hash_of(channel: LevelSketch, levels: tuple[int, ...], nodes: tuple[int, ...]) -> int:
    """Of one cell, node by node."""
    result = 0
    for hashes, level, node in zip(channel.hashes, levels, nodes, strict=True):
        result ^= int(hashes[level][node])
    return result


def test_a_report_is_a_sign_of_the_hash_of_the_records_cell() -> None:
    channel = sketch(epsilon=40.0)  # next to no lies
    records = np.stack(np.unravel_index(np.arange(60).repeat(50), SIZES), axis=1)
    reports = channel.privatize(records, np.random.default_rng(1))
    numbers = list(product(*(range(count) for count in channel.levels)))
    assert set(reports["level"].tolist()) == set(range(len(numbers)))
    assert set(reports["index"].tolist()) == set(range(1, 8))
    for record, report in zip(records.tolist(), reports, strict=True):
        levels = numbers[report["level"]]
        nodes = tuple(
            value // widths[level]
            for value, widths, level in zip(record, channel.widths, levels, strict=True)
        )
        minus = (int(report["index"]) & hash_of(channel, levels, nodes)).bit_count() & 1
        assert report["sign"] == 1 - 2 * minus


def test_cells_agree_as_often_as_numbers_drawn_at_random() -> None:
    """Over 500 seeds; 5 deviations of 500 events of probability 1/8 are 37."""
    cells = [((3, 2, 2), (4, 1, 0)), ((3, 2, 2), (0, 1, 0)), ((3, 2, 2), (0, 3, 2))]
    channels = [sketch(8, seed) for seed in range(500)]
    found = [[hash_of(channel, *cell) for cell in cells] for channel in channels]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs(sum(row[one] == row[other] for row in found) - 62.5) < 37


def test_privacy_is_that_of_the_sign() -> None:
    channel = sketch(epsilon=0.5)
    audit = channel.audit()
    assert audit.holds
    assert audit.ratio == channel.likelihoods[0][1] / channel.likelihoods[0][0]
    assert channel.proof() is not None
    assert LevelSketch(1, 0.5, Domain.of([1, 1]), ((1,), (1,)), 2).audit().ratio == Fraction(1)


def test_parameters_tell_what_decides_a_report() -> None:
    assert sketch() == sketch()
    assert len({sketch(*given).signature for given in ((8, 0), (16, 0), (8, 1))}) == 3
    other = LevelSketch(60, 2.0, Domain.of(SIZES), ((5, 1), (4, 1), (3, 1)), 8)
    assert other.signature != sketch().signature


def test_sums_are_products_of_coefficients() -> None:
    channel, rng = sketch(), np.random.default_rng(2)
    records = rng.integers(0, SIZES, size=(400, 3))
    aggregate = channel.aggregate(channel.privatize(records, rng))
    runs: dict[int, list[Any]] = {0: [(1, 0, 1), (3, 3, 5)], 2: [(2, 1, 3)]}
    tensor = channel.tensor(aggregate, (0, 2))
    assert tensor.shape == (4, 3, 8)
    found = np.einsum(
        "abr,ar,br->", tensor, *(channel.coefficients(place, held) for place, held in runs.items())
    )
    # The attribute between is at its root.
    total, counts = 0.0, aggregate.counts.reshape(*channel.levels, 8)
    for (level, start, end), (other, first, last) in product(runs[0], runs[2]):
        for node, far in product(range(start, end), range(first, last)):
            cell = hash_of(channel, (level, 0, other), (node, 0, far))
            for index in range(1, 8):
                sign = 1 - 2 * ((index & cell).bit_count() & 1)
                total += sign * counts[level, 0, other, index]
    expected = total * len(counts.ravel()) / 8 / (400 * channel.contrast)
    assert found == pytest.approx(expected, rel=1e-12)
