"""Response matrices against the published Algorithm 1, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

from rangeq.grids.fitting import Line, Plane, response_matrices
from tests.rangeq.grids.fitting.test_grid_consistency import grids_of


def algorithm_1(line_j: Line, line_k: Line, plane: Plane, tolerance: float) -> np.ndarray:
    """As printed: all c x c entries, cell by cell."""
    sizes = plane.edges[0][-1], plane.edges[1][-1]
    matrix = np.full(sizes, 1 / (sizes[0] * sizes[1]))
    cells = [
        (slice(a, b), slice(None), f)
        for a, b, f in zip(line_j.edges, line_j.edges[1:], line_j.cells, strict=False)
    ]
    cells += [
        (slice(None), slice(a, b), f)
        for a, b, f in zip(line_k.edges, line_k.edges[1:], line_k.cells, strict=False)
    ]
    for x, row in enumerate(plane.cells):
        for y, f in enumerate(row):
            cells.append((slice(*plane.edges[0][x : x + 2]), slice(*plane.edges[1][y : y + 2]), f))
    for _ in range(1000):
        before = matrix.copy()
        for rows, columns, f in cells:
            total = matrix[rows, columns].sum()
            if total != 0:
                matrix[rows, columns] *= f / total
        if np.abs(matrix - before).sum() < tolerance:
            break
    return matrix


@pytest.mark.parametrize(
    ("c", "g1", "g2"),
    [((8, 8), 4, 2), ((10, 7), 5, 2), ((9, 12), 5, 3), ((3, 2), 3, 2), ((4, 4), 4, 4)],
)
def test_response_matrices_are_those_of_algorithm_1(c: tuple[int, int], g1: int, g2: int) -> None:
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.full(c[0] * c[1], 0.3), size=2).reshape(2, *c)
    lines, planes = [], []
    for table in joint:
        grids = grids_of(list(c), g1, g2)
        sums = [np.add.reduceat(table.sum(axis=1 - k), grids[k].edges[0][:-1]) for k in (0, 1)]
        lines += [Line(grids[k].edges[0], sums[k]) for k in (0, 1)]
        rows, columns = (edges[:-1] for edges in grids[2].edges)
        planes.append(
            Plane(
                grids[2].edges,
                np.add.reduceat(np.add.reduceat(table, rows, axis=0), columns, axis=1),
            )
        )
    found = response_matrices(lines, [(0, 1), (2, 3)], planes, 1e-12)  # two pairs in one go
    for number, plane in enumerate(found.planes):
        expected = algorithm_1(lines[2 * number], lines[2 * number + 1], planes[number], 1e-12)
        np.testing.assert_allclose(plane.values(), expected, atol=1e-9)
        for axis in (0, 1):  # what the grids say comes out again
            line = lines[2 * number + axis]
            ends = np.array(line.edges)
            np.testing.assert_allclose(
                plane.marginal(axis).answers(ends[:-1], ends[1:] - 1), line.cells, atol=1e-6
            )
    assert (np.diff(found.changes) <= 1e-12).all()
    if g1 % g2 == 0:  # cells nest: one round is enough
        assert (found.changes[1:] < 1e-12).all()


def test_a_cell_that_the_lines_deny_keeps_its_frequency() -> None:
    lines = [Line((0, 1, 2, 3, 4), np.array([0.0, 0.0, 0.5, 0.5]))] * 2
    plane = Plane(((0, 2, 4), (0, 2, 4)), np.array([[0.1, 0.2], [0.3, 0.4]]))
    (found,) = response_matrices(lines, [(0, 1)], [plane], 1e-9).planes
    np.testing.assert_allclose(found.values().reshape(2, 2, 2, 2).sum(axis=(1, 3)), plane.cells)
