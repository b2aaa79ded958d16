"""Each phase against its definition, cell by cell: consistency, response matrices, weighted update,
hierarchies, wavelets.
"""

from __future__ import annotations

from itertools import combinations, pairwise, product

import cvxpy
import numpy as np
import pytest

from rangeq.grids.cells import Grid, common, equal_cells, tree_cells
from rangeq.grids.fitting.grid_consistency import Agreement, agreeing, clean
from rangeq.grids.fitting.maximum_entropy import weighted_update
from rangeq.grids.fitting.piecewise import Line, Plane
from rangeq.grids.fitting.response_matrix import response_matrices
from rangeq.grids.systems.haar import inverse
from rangeq.grids.systems.hio import intervals
from rangeq.grids.systems.lhio import hierarchy_fit
from tests.general_solver import solve


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


# ---------------------------------------------------------------------------------------- Phase 2


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


# --------------------------------------------------------------------------- Phase 3: Algorithm 1


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


def test_planes_answer_by_adding_up_values() -> None:
    rng = np.random.default_rng(4)
    plane = Plane(((0, 3, 4, 10), (0, 2, 7)), rng.dirichlet(np.ones(6)).reshape(3, 2))
    values = plane.values()
    assert values.sum() == pytest.approx(1)
    ends = np.array(
        [
            (a, b, e, f)
            for a in range(10)
            for b in range(a, 10)
            for e in range(7)
            for f in range(e, 7)
        ]
    )
    found = plane.quadrants(ends[:, [0, 2]], ends[:, [1, 3]])
    for (a, b, e, f), quadrants in zip(ends, found, strict=True):
        x, y = np.zeros(10, dtype=bool), np.zeros(7, dtype=bool)
        x[a : b + 1] = y[e : f + 1] = True
        expected = [[values[np.ix_(u, v)].sum() for v in (y, ~y)] for u in (x, ~x)]
        np.testing.assert_allclose(quadrants, expected, atol=1e-12)
    line = plane.marginal(1)
    assert line.answers(np.array([1]), np.array([4]))[0] == pytest.approx(values[:, 1:5].sum())


# --------------------------------------------------------------------------- Phase 3: Algorithm 2


def quadrants_of(joint: np.ndarray) -> np.ndarray:
    """Those of one query, whose parts these are: shape (1, pairs, 2, 2)."""
    axes = range(joint.ndim)
    return np.stack(
        [joint.sum(axis=tuple(a for a in axes if a not in pair)) for pair in combinations(axes, 2)]
    )[None]


def most_entropy(quadrants: np.ndarray, several: int) -> np.ndarray:
    """Appendix A.8 by a convex solver: shape (2, .., 2)."""
    parts = cvxpy.Variable(2**several, nonneg=True)
    bits = np.array(list(product((0, 1), repeat=several)))
    constraints = []
    for number, pair in enumerate(combinations(range(several), 2)):
        for x, y in product((0, 1), repeat=2):
            inside = np.flatnonzero((bits[:, pair[0]] == x) & (bits[:, pair[1]] == y))
            constraints.append(cvxpy.sum(parts[inside]) == quadrants[number, x, y])
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.entr(parts))), constraints)
    solve(problem)
    return np.asarray(parts.value).reshape((2,) * several)


@pytest.mark.parametrize("several", [3, 4, 5])
def test_weighted_update_finds_the_most_entropy(several: int) -> None:
    rng = np.random.default_rng(several)
    joints = [rng.dirichlet(np.full(2**several, 1.5)).reshape((2,) * several) for _ in range(3)]
    quadrants = np.concatenate([quadrants_of(joint) for joint in joints])
    found, changes = weighted_update(quadrants, several, 1e-10)
    for row in range(3):
        np.testing.assert_allclose(found[row], most_entropy(quadrants[row], several), atol=2e-4)
        np.testing.assert_allclose(quadrants_of(found[row])[0], quadrants[row], atol=1e-4)
    assert changes[0] > changes[-1]


def test_weighted_update_of_independent_full_and_empty_ranges() -> None:
    inside = np.array(
        [[0.3, 0.5, 0.9, 0.2], [1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0], [1.0, 0.4, 1.0, 1.0]]
    )
    both = np.stack([inside, 1 - inside], axis=2)
    quadrants = np.stack(
        [both[:, j, :, None] * both[:, k, None, :] for j, k in combinations(range(4), 2)], axis=1
    )
    found, _ = weighted_update(quadrants, 4, 1e-12)
    np.testing.assert_allclose(found[:, 0, 0, 0, 0], inside.prod(axis=1), atol=1e-9)


def test_batches_do_not_matter() -> None:
    rng = np.random.default_rng(6)
    # Contradicting each other
    quadrants = rng.dirichlet(np.ones(4), size=(50, 6)).reshape(50, 6, 2, 2)
    together, _ = weighted_update(quadrants, 4, 1e-8)
    alone = np.concatenate([weighted_update(quadrants[k : k + 1], 4, 1e-8)[0] for k in range(50)])
    np.testing.assert_array_equal(together, alone)
    assert np.isfinite(together).all()


# -------------------------------------------------------------------------- hierarchies, wavelets


@pytest.mark.parametrize(
    ("heights", "branching"), [((1, 1), 2), ((2, 1), 2), ((2, 2), 2), ((1, 2), 3), ((0, 2), 2)]
)
def test_hierarchy_fit_is_weighted_least_squares(heights: tuple[int, int], branching: int) -> None:
    rng = np.random.default_rng(7)
    b, shape = branching, (branching ** heights[0], branching ** heights[1])
    levels = [
        level
        for level in product(range(heights[0] + 1), range(heights[1] + 1))
        if level not in [(0, 0), (1, 1)]
    ]
    tables = {level: rng.normal(size=(b ** level[0], b ** level[1])) for level in levels}
    precisions = {level: float(rng.uniform(0.5, 3)) for level in levels}
    rows, values, weights = [np.ones(shape).ravel()], [1.0], [1e12]  # the sum is known
    for level in levels:
        for x, y in np.ndindex(*tables[level].shape):
            node = np.zeros(shape)
            wide, high = shape[0] // b ** level[0], shape[1] // b ** level[1]
            node[x * wide : (x + 1) * wide, y * high : (y + 1) * high] = 1
            rows.append(node.ravel())
            values.append(tables[level][x, y])
            weights.append(precisions[level])
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(np.array(rows) * root[:, None], np.array(values) * root, rcond=None)[
        0
    ].reshape(shape)
    found = hierarchy_fit(tables, precisions, heights, branching)
    if (levels and max(levels) == heights) or heights[0] == 0:
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.sum() == pytest.approx(1)


def test_a_hierarchy_without_its_leaves_spreads_evenly() -> None:
    found = hierarchy_fit({(1, 0): np.array([[0.7], [0.3]])}, {(1, 0): 1.0}, (2, 1), 2)
    np.testing.assert_allclose(found, np.repeat([[0.175], [0.075]], 2, axis=0) @ np.ones((1, 2)))


@pytest.mark.parametrize("heights", [(1, 1), (2, 1), (2, 3), (0, 2)])
def test_haar_coefficients_come_back(heights: tuple[int, int]) -> None:
    joint = (
        np.random.default_rng(8)
        .dirichlet(np.ones(2 ** sum(heights)))
        .reshape(2 ** heights[0], 2 ** heights[1])
    )
    x, y = np.indices(joint.shape)
    coefficients = {}
    for i, m in product(range(heights[0] + 1), range(heights[1] + 1)):
        if i == m == 0:
            continue
        nodes = np.zeros((1 << max(i - 1, 0), 1 << max(m - 1, 0)))
        child_x, child_y = x >> (heights[0] - i), y >> (heights[1] - m)
        sign = (1 - 2 * (child_x & 1) if i else 1) * (1 - 2 * (child_y & 1) if m else 1)
        np.add.at(nodes, (child_x >> 1 if i else 0 * x, child_y >> 1 if m else 0 * y), sign * joint)
        coefficients[i, m] = nodes
    np.testing.assert_allclose(inverse(coefficients, heights), joint, atol=1e-12)


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
