"""Cells and the guideline."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rangeq.grids import TDG, granularities
from rangeq.grids.cells import Grid, common, equal_cells, refined, tree_cells

# Table 2: (d, lg n) and (g1, g2) at epsilon = 0.2, 0.4, .., 2.0, alpha1 = 0.7, alpha2 = 0.03, c =
# 64.
TABLE_2 = """
3 6.0  8 2 16 4 32 4 32 4 32 4 32 4 32 8 64 8 64 8 64 8
4 6.0  8 2 16 2 16 4 32 4 32 4 32 4 32 4 32 4 32 8 64 8
5 6.0  8 2 16 2 16 4 16 4 32 4 32 4 32 4 32 4 32 4 32 8
6 6.0  8 2 16 2 16 2 16 4 16 4 32 4 32 4 32 4 32 4 32 4
6 5.0  4 2 4 2 8 2 8 2 8 2 16 2 16 2 16 2 16 2 16 4
6 5.2  4 2 8 2 8 2 8 2 16 2 16 2 16 2 16 4 16 4 16 4
6 5.4  4 2 8 2 8 2 16 2 16 2 16 2 16 4 16 4 16 4 32 4
6 5.6  4 2 8 2 8 2 16 2 16 2 16 4 16 4 32 4 32 4 32 4
6 5.8  8 2 8 2 16 2 16 2 16 4 16 4 32 4 32 4 32 4 32 4
"""


@pytest.mark.parametrize("row", TABLE_2.strip().splitlines())
def test_table_2(row: str) -> None:
    d, lg, *values = row.split()
    printed = list(zip(map(int, values[::2]), map(int, values[1::2]), strict=True))
    found = [
        granularities(int(d), round(10 ** float(lg)), tenths / 10, 64) for tenths in range(2, 21, 2)
    ]
    assert found == printed


def test_granularities_stay_within_the_domain() -> None:
    assert granularities(2, 10**9, 5.0, 3) == (3, 3)
    assert granularities(6, 1, 0.01, 64) == (2, 2)
    assert granularities(6, 10**6, 1.0, 1) == (1, 1)
    assert granularities(1, 10**6, 1.0, 1024)[0] == 64
    assert TDG([64] * 6, 2.0, 10**6).granularity == (8,) * 6
    with pytest.raises(ValueError, match="at least 1"):
        granularities(6, 0, 1.0, 64)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 64, 100])
@pytest.mark.parametrize("granularity", [1, 2, 3, 4, 7, 64, 200])
def test_cells_lose_no_value(size: int, granularity: int) -> None:
    edges = equal_cells(size, granularity)
    assert edges[0] == 0
    assert edges[-1] == size
    widths = np.diff(edges)
    assert len(widths) == min(size, granularity)
    assert widths.max() - widths.min() <= 1
    assert set(equal_cells(size, 4)) <= set(equal_cells(size, 8)) or size < 8


@pytest.mark.parametrize(
    ("size", "branching"), [(1, 4), (2, 4), (10, 4), (64, 4), (65, 4), (9, 2), (1024, 4)]
)
def test_levels_of_a_tree_nest(size: int, branching: int) -> None:
    levels = tree_cells(size, branching)
    assert levels[0] == (0, size)
    assert levels[-1] == tuple(range(size + 1))
    for above, below in pairwise(levels):
        assert set(above) <= set(below)
        assert max(np.diff([below.index(edge) for edge in above])) <= branching


def test_cells_of_records() -> None:
    grid = Grid((2, 0), ((0, 3, 5), (0, 1, 2, 4)))
    records = np.array([[0, 9, 0], [3, 9, 4], [1, 9, 2]])
    assert grid.cell_of(records).tolist() == [0, 5, 1]
    assert grid.even.sum() == pytest.approx(1)
    assert grid.even[1, 2] == pytest.approx(2 / 5 * 2 / 4)
    assert common((0, 2, 4, 6), (0, 3, 6), (0, 6)) == (0, 6)
    assert refined((0, 2, 6), (0, 3, 6)) == (0, 2, 3, 6)
