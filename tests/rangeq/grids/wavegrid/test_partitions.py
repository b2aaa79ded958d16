"""Random partitions of categories: against their definition, and what reports of them reveal."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from rangeq.grids import WaveGrid
from rangeq.grids.cells import equal_cells
from rangeq.grids.wavegrid.partitions import Partition
from rangeq.grids.wavegrid.square_waves import Wave, WaveCells

PARTITIONS = [
    Partition(3, 2),
    Partition(3, 3),
    Partition(4, 4),
    Partition(5, 4),
    Partition(7, 2),
    Partition(16, 4),
    Partition(17, 4),
    Partition(64, 2),
    Partition(200, 4),
]


def times(a: int, b: int) -> int:
    """The product of two elements of the field of 4, as polynomials modulo x^2 + x + 1."""
    product = (a if b & 1 else 0) ^ (a << 1 if b & 2 else 0)
    return product ^ 0b111 if product & 4 else product


def functions(size: int, arcs: int) -> list[list[int]]:
    """Which set each value is in: all linear functions, those first whose leading factor is 1."""
    base = 2 if arcs == 2 else 4
    digits = next(t for t in itertools.count(1) if base**t >= size)
    found = []
    for vector in itertools.product(range(base), repeat=digits):
        if next((a for a in vector if a), 0) != 1:
            continue
        sets = []
        for value in range(size):
            total = 0
            for place, a in enumerate(vector):
                digit = value // base**place % base
                total ^= times(a, digit) if base == 4 else a * digit
            sets.append(total)
        found.append(sets)
    return found


@pytest.mark.parametrize("partition", PARTITIONS, ids=str)
def test_sets_are_those_of_linear_functions(partition: Partition) -> None:
    values = np.arange(partition.size)
    found = sorted(
        partition.arc(np.full(partition.size, configuration), values).tolist()
        for configuration in range(partition.configurations)
    )
    assert found == sorted(functions(partition.size, partition.arcs))


@pytest.mark.parametrize("partition", PARTITIONS, ids=str)
def test_any_two_values_are_told_apart_as_often(partition: Partition) -> None:
    shares = partition.shares(equal_cells(partition.size, partition.size))
    assert set(np.unique(shares)) == {0.0, 1.0}
    assert (shares.sum(axis=1) == 1).all()
    together = np.einsum("kax,kay->xy", shares, shares)
    apart = together[~np.eye(partition.size, dtype=bool)]
    assert np.ptp(apart) == 0
    assert apart[0] < partition.configurations
    halves = partition.shares((0, 2, partition.size))
    np.testing.assert_allclose(halves[:, :, 0], shares[:, :, :2].mean(axis=2))


@pytest.mark.parametrize("epsilon", [0.4, 2.0, 6.0])
def test_the_audit_is_the_worst_ratio_of_all_reports(epsilon: float) -> None:
    cells = WaveCells(15, epsilon, (Partition(5, 4 if epsilon > 1 else 2), Wave(3, 2)))
    # No configuration depends on the record: those of a report and a record are the base's
    p, k, d = cells.base.p, cells.base.size, cells.base.domain
    within, without = p / math.comb(d - 1, k - 1), (1 - p) / math.comb(d - 1, k)
    worst = Fraction(0)
    records = list(itertools.product(range(5), range(3)))
    for asked in itertools.product(*(range(wave.configurations) for wave in cells.waves)):
        held = {
            int(
                np.ravel_multi_index(
                    [
                        wave.arc(np.array([one]), np.array([value]))[0]
                        for wave, one, value in zip(cells.waves, asked, record, strict=True)
                    ],
                    cells.arcs,
                )
            )
            for record in records
        }
        for chosen in itertools.combinations(range(d), k):
            ratios = [within if cell in chosen else without for cell in held]
            worst = max(worst, max(ratios) / min(ratios))
    audit = cells.audit()
    assert audit.holds
    assert worst == audit.ratio <= audit.allowed
    assert sum(number * chance for number, chance in cells._chances) == Fraction(1)


def test_categories_are_another_question_than_order() -> None:
    ordered, named = WaveGrid([5, 7], 1.0), WaveGrid([5, 7], 1.0, categorical=["1"])
    assert ordered.parameters != named.parameters
    assert named.parameters == WaveGrid([5, 7], 1.0, categorical=[1]).parameters
    # Two values have no order
    assert WaveGrid([5, 2], 1.0, categorical=[1]).parameters == WaveGrid([5, 2], 1.0).parameters
