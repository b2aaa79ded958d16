"""Cells: of equal size, of trees, and of records."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rangeq.grids.cells import Grid, common, equal_cells, refined, tree_cells


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
