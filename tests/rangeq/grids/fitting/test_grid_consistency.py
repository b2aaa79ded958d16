"""Consistency of grids against its definition, block by block and cell by cell."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest

from rangeq.grids.cells import Grid, common, equal_cells
from rangeq.grids.fitting import Agreement, agreeing, clean


def grids_of(sizes: list[int], g1: int, g2: int) -> list[Grid]:
    lines = [Grid((j,), (equal_cells(c, g1),)) for j, c in enumerate(sizes)]
    pairs = combinations(range(len(sizes)), 2)
    return lines + [
        Grid((j, k), (equal_cells(sizes[j], g2), equal_cells(sizes[k], g2))) for j, k in pairs
    ]


def said(grid: Grid, table: np.ndarray, place: int, start: int, end: int) -> tuple[float, int]:
    """The frequency of start .. end - 1 of an attribute in a grid, and how many cells it is the sum
    of.
    """
    axis = grid.places.index(place)
    cells = [k for k, edge in enumerate(grid.edges[axis][:-1]) if start <= edge < end]
    inside = np.take(table, cells, axis=axis)
    return float(inside.sum()), inside.size


@pytest.mark.parametrize(
    ("sizes", "g1", "g2"),
    [([8, 8, 8], 4, 2), ([10, 7, 5], 5, 2), ([10, 7, 3], 6, 3), ([4, 1, 4], 4, 2)],
)
def test_consistency_is_the_weighted_mean_in_every_block(
    sizes: list[int], g1: int, g2: int
) -> None:
    grids = grids_of(sizes, g1, g2)
    rng = np.random.default_rng(1)
    tables = [rng.dirichlet(np.ones(grid.cells)).reshape(grid.shape) for grid in grids]
    precisions = rng.uniform(0.5, 2, len(grids))
    found = Agreement(grids, precisions).apply(tables)
    expected = [table.copy() for table in tables]
    # One attribute after the other, block after block, cell after cell
    for place in range(len(sizes)):
        inside = [k for k, grid in enumerate(grids) if place in grid.places]
        blocks = common(*(grids[k].edges[grids[k].places.index(place)] for k in inside))
        owns, means, totals = [], [], []
        for start, end in pairwise(blocks):
            owns.append({k: said(grids[k], expected[k], place, start, end) for k in inside})
            weights = {k: precisions[k] / size for k, (_, size) in owns[-1].items()}
            totals.append(sum(weights.values()))
            means.append(sum(weights[k] * owns[-1][k][0] for k in inside) / totals[-1])
        over = (sum(means) - 1) / sum(1 / total for total in totals)
        for start, end, own, mean, total in zip(
            blocks, blocks[1:], owns, means, totals, strict=False
        ):
            for k in inside:
                axis = grids[k].places.index(place)
                for cell in product(*map(range, grids[k].shape)):
                    if start <= grids[k].edges[axis][cell[axis]] < end:
                        expected[k][cell] += (mean - over / total - own[k][0]) / own[k][1]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)
    # A later attribute does not undo an earlier one; and something has changed.
    for place in range(len(sizes)):
        inside = [k for k, grid in enumerate(grids) if place in grid.places]
        blocks = common(*(grids[k].edges[grids[k].places.index(place)] for k in inside))
        for start, end in pairwise(blocks):
            assert np.ptp([said(grids[k], found[k], place, start, end)[0] for k in inside]) < 1e-12
    assert max(np.abs(one - other).max() for one, other in zip(found, tables, strict=True)) > 0.01


def test_the_printed_weights_have_the_least_variance() -> None:
    grids = grids_of([16, 16, 16], 8, 2)
    precisions = np.ones(len(grids))
    tables = [grid.even for grid in grids]
    # Of the 1-D grid g1 / g2 = 4 cells are added up, of a 2-D grid g2 = 2
    for k, size in ((0, 4), (3, 2)):
        changed = [table.copy() for table in tables]
        changed[k].reshape(-1)[0] += 1e-3
        changed[k].reshape(-1)[-1] -= 1e-3
        found = Agreement(grids, precisions).apply(changed)
        theta = (1 / size) / (1 / 4 + 1 / 2 + 1 / 2)
        assert said(grids[0], found[0], 0, 0, 8)[0] - 0.5 == pytest.approx(theta * 1e-3)


@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_cleaned_grids_are_distributions_that_agree(noise: float) -> None:
    grids = grids_of([12, 9, 16], 8, 3)
    rng = np.random.default_rng(2)
    tables = [grid.even + noise * rng.normal(size=grid.shape) for grid in grids]
    found = clean(grids, tables, np.ones(len(grids)))
    for table in found:
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(1)
    for place in range(3):
        inside = [k for k, grid in enumerate(grids) if place in grid.places]
        blocks = common(*(grids[k].edges[grids[k].places.index(place)] for k in inside))
        for start, end in pairwise(blocks):
            assert np.ptp(
                [said(grids[k], found[k], place, start, end)[0] for k in inside]
            ) < 1e-3 * (1 + 100 * (noise > 0.1))
    linear = agreeing(grids, tables, np.ones(len(grids)))
    assert all(table.sum() == pytest.approx(1) for table in linear)
    assert min(table.min() for table in linear) < 0 or noise < 0.1


def test_a_grid_that_says_nothing_takes_what_others_say() -> None:
    grids = grids_of([4, 4], 4, 2)
    tables = [np.array([0.7, 0.1, 0.1, 0.1]), np.full(4, 0.25), np.full((2, 2), 0.25)]
    found = clean(grids, tables, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(found[2].sum(axis=1), [0.8, 0.2])
    np.testing.assert_allclose(clean(grids, tables, [0.0, 0.0, 0.0])[1], 0.25)
