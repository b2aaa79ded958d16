"""The cells of a map: lengths, directions, borders, polygons, and what is no grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rangeq.grids import best
from rangeq.spatial import InvalidPoint, SpatialGrid

MANHATTAN = [(-74.02, 40.70), (-73.97, 40.705), (-73.91, 40.87), (-73.93, 40.88)]
DEGREE = 2 * math.pi * 6_371_008.8 / 360
"""A degree of latitude in metres, for the sphere."""


def great_circle(one, other):
    """The distance of two positions in metres, by the haversine formula."""
    (a, b), (c, d) = (np.radians(one), np.radians(other))
    half = math.sin((d - b) / 2) ** 2 + math.cos(b) * math.cos(d) * math.sin((c - a) / 2) ** 2
    return 2 * 6_371_008.8 * math.asin(math.sqrt(half))


@pytest.mark.parametrize("latitude", [-60.0, 0.0, 40.8, 69.6])
@pytest.mark.parametrize("bearing", [0.0, 29.0, 90.0, -135.0])
def test_cells_are_square_in_true_lengths(latitude: float, bearing: float) -> None:
    grid = SpatialGrid((10.0, latitude), 500.0, (8, 20), bearing, geographic=True)
    corners = grid.polygons()
    assert corners.shape == (8, 20, 4, 2)
    for cell in (corners[0, 0], corners[7, 0], corners[3, 19]):
        sides = [great_circle(cell[k], cell[(k + 1) % 4]) for k in range(4)]
        assert sides == pytest.approx([500.0] * 4, rel=max(2 * grid.distortion, 1e-5))
    assert grid.cell_area == 0.25
    # The second axis runs along the bearing, the first to its right
    north = grid.centres[3, 11] - grid.centres[3, 10]
    east = north[0] * math.cos(math.radians(latitude))
    assert math.degrees(math.atan2(east, north[1])) == pytest.approx(bearing, abs=1e-6)
    right = grid.centres[4, 10] - grid.centres[3, 10]
    turned = np.array([right[0] * math.cos(math.radians(latitude)), right[1]])
    ahead = np.array([east, north[1]])
    assert turned @ ahead == pytest.approx(0, abs=1e-9)
    assert ahead[0] * turned[1] - ahead[1] * turned[0] < 0
    far = great_circle(grid.centres[0, 0], grid.centres[7, 19])
    assert grid.distance([0, 0], [7, 19]) == pytest.approx(far, rel=2 * grid.distortion + 1e-5)


def test_distortion_is_that_of_the_parallels() -> None:
    grid = SpatialGrid.covering([(-125, 24), (-66, 50)], cell=20_000, geographic=True)
    middle = math.cos(math.radians(grid.centre[1]))
    north = math.cos(math.radians(grid.corners[..., 1].max()))
    south = math.cos(math.radians(grid.corners[..., 1].min()))
    assert grid.distortion == pytest.approx(max(1 - north / middle, south / middle - 1))
    assert grid.distortion > 0.1
    assert SpatialGrid((0, 0), 1.0, (3, 3)).distortion == 0
    # On both sides of the equator no parallel in between is further off than the last one
    grid = SpatialGrid((0.0, 10.0), DEGREE, (1, 60), geographic=True)
    between = np.cos(np.radians(np.linspace(-20, 40, 601))) / math.cos(math.radians(10))
    assert grid.distortion == pytest.approx(np.abs(between - 1).max())


@given(
    st.floats(-180, 180),
    st.floats(-80, 80),
    st.floats(-360, 360),
    st.integers(1, 9),
    st.integers(1, 9),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_cell_holds_its_middle(x, y, bearing, across, along, geographic) -> None:
    grid = SpatialGrid((x, y), 100.0, (across, along), bearing, geographic)
    records = np.stack([axis.ravel() for axis in np.indices(grid.shape)], axis=1)
    np.testing.assert_array_equal(grid.records(grid.centres.reshape(-1, 2)), records)
    # and so does every corner, within what rounding leaves of it
    grid.records(grid.corners.reshape(-1, 2))


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=2, max_size=6),
    st.floats(-180, 180),
    st.floats(0.3, 20),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_grid_covers_its_outline(outline, bearing, cell, geographic) -> None:
    cell *= DEGREE if geographic else 1
    grid = SpatialGrid.covering(outline, cell=cell, bearing=bearing, geographic=geographic)
    assert grid.cell == cell
    grid.records(outline)
    if len(outline) > 2:  # and no row less would do
        local = grid._local(np.array(outline, dtype=float))
        extent = np.ptp(local, axis=0) / cell
        assert (np.array(grid.shape) <= np.maximum(np.ceil(extent + 1e-6), 1)).all()


@pytest.mark.parametrize("cells", [1, 2, 17, 80, 1000, 4096])
def test_as_many_cells_as_allowed(cells: int) -> None:
    for outline in ([(0, 0), (30, 10)], [(0, 0), (1, 77)], [(0, 0), (5, 0)]):
        grid = SpatialGrid.covering(outline, cells=cells)
        grid.records(outline)
        assert math.prod(grid.shape) <= cells
        # With sides a hair shorter there would be too many
        shorter = SpatialGrid.covering(outline, cell=grid.cell * (1 - 1e-6))
        assert math.prod(shorter.shape) > cells
    assert SpatialGrid.covering([(0, 0), (5, 0)], cells=cells).shape == (cells, 1)


def test_a_turned_city_needs_fewer_cells() -> None:
    upright, turned = (
        SpatialGrid.covering(MANHATTAN, cell=250, bearing=bearing, geographic=True)
        for bearing in (0.0, 29.0)
    )
    assert math.prod(turned.shape) < 0.75 * math.prod(upright.shape)
    for grid in (upright, turned):
        assert len(grid.records(MANHATTAN)) == 4


def test_across_the_antimeridian() -> None:
    grid = SpatialGrid.covering([(176, -20), (183, -15)], cells=100, geographic=True)
    np.testing.assert_array_equal(grid.records([(-179.0, -17.0)]), grid.records([(181.0, -17.0)]))
    with pytest.raises(InvalidPoint):
        grid.records([(-170.0, -17.0)])


def test_borders_and_points_outside() -> None:
    grid = SpatialGrid((0.0, 0.0), 1.0, (4, 2))
    points = [(-2, -1), (2, 1), (0, 0), (-0.5, 0.999), (1.999, -1)]
    expected = [[0, 0], [3, 1], [2, 1], [1, 1], [3, 0]]
    assert grid.records(points).tolist() == expected
    assert grid.counts(points).tolist() == [[1, 0], [0, 1], [0, 1], [1, 1]]
    with pytest.raises(InvalidPoint, match=r"points\[1\] = \(2.1, 0\) lies outside.*nothing") as no:
        grid.records([(0, 0), (2.1, 0), (9, 9)])
    assert no.value.index == 1
    clipped = grid.records([(2.1, 0), (-1e300, 1e300), (0, -9)], outside="clip")
    assert clipped.tolist() == [[3, 1], [0, 1], [2, 0]]
    assert grid.records(np.empty((0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    ("points", "index"),
    [([(0, 0), (math.nan, 0)], 1), ([(math.inf, 0)], 0), ([(0, 0), (0, 0), (0, -90.5)], 2)],
)
def test_what_is_no_position_is_refused(points, index) -> None:
    grid = SpatialGrid((0.0, 0.0), 1e5, (10, 10), geographic=True)
    for outside in ("refuse", "clip"):
        with pytest.raises(InvalidPoint, match=r"is no longitude and latitude") as no:
            grid.records(points, outside)
        assert no.value.index == index


def test_wrong_points() -> None:
    grid = SpatialGrid((0.0, 0.0), 1.0, (4, 2))
    for points in ([1.0, 2.0], [[1.0, 2.0, 3.0]], [["a", "b"]], "map"):
        with pytest.raises(ValueError, match="points must"):
            grid.records(points)
    with pytest.raises(ValueError, match="outside must be"):
        grid.records([(0, 0)], outside="drop")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"centre": (0.0, math.nan)}, "centre must be a finite number"),
        ({"centre": 3.0}, "centre must be two coordinates"),
        ({"cell": 0.0}, "cell must be a length above 0"),
        ({"cell": -1.0}, "cell must be a length above 0"),
        ({"cell": "wide"}, "cell must be a finite number"),
        ({"shape": (0, 4)}, "shape must"),
        ({"shape": (2.5, 4)}, "shape must"),
        ({"shape": 16}, "shape must be two numbers"),
        ({"shape": (4096, 4096)}, "at most 4194304 cells"),
        ({"bearing": math.inf}, "bearing must be a finite number"),
        ({"bearing": math.nan}, "bearing must be a finite number"),
        ({"centre": (0.0, 89.0), "geographic": True}, "latitude must lie within"),
    ],
)
def test_what_is_no_grid(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        SpatialGrid(**{"centre": (0.0, 0.0), "cell": 1.0, "shape": (4, 4), **arguments})


@pytest.mark.parametrize(
    ("outline", "arguments", "message"),
    [
        ([(0, 0), (1, 1)], {}, "one of both"),
        ([(0, 0), (1, 1)], {"cell": 1.0, "cells": 9}, "one of both"),
        ([(0, 0), (0, 0)], {"cells": 9}, "one point"),
        ([(0, 0), (1, 1)], {"cells": 0}, "cells must"),
        ([(0, 0), (1, 1)], {"cell": 0}, "cell must be a length above 0"),
        ([(0, 0), (1, 1)], {"cell": 1e-9}, "at most 4194304 cells"),
        ([(0, 0), (1, math.nan)], {"cells": 9}, "finite"),
        ([], {"cells": 9}, r"outline must have shape \(points, 2\)"),
        ([1, 2, 3], {"cells": 9}, r"outline must have shape \(points, 2\)"),
    ],
)
def test_what_is_no_outline(outline, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        SpatialGrid.covering(outline, **arguments)


def test_one_point_has_one_cell_of_a_given_side() -> None:
    assert SpatialGrid.covering([(3, 4)], cell=2.0) == SpatialGrid((3.0, 4.0), 2.0, (1, 1))


def test_a_grid_is_what_it_says() -> None:
    grid = SpatialGrid.covering(MANHATTAN, cells=300, bearing=29, geographic=True)
    assert eval(repr(grid)) == grid
    assert hash(eval(repr(grid))) == hash(grid)
    assert best(grid.domain, 1.0, 1000).attributes.shape == grid.shape


# ---------------------------------------------------------------------------------------- polygons


def crossings(polygon, point):
    """Whether a point is inside, by the winding of angles: of polygons that do not cross."""
    apart = np.asarray(polygon, dtype=float) - point
    angles = np.arctan2(apart[:, 1], apart[:, 0])
    steps = (np.diff(angles, append=angles[:1]) + math.pi) % (2 * math.pi) - math.pi
    return abs(steps.sum()) > math.pi


@given(st.integers(3, 9), st.integers(0, 10_000), st.floats(-180, 180))
@settings(max_examples=40, deadline=None)
def test_cells_of_a_polygon_are_those_with_their_middles_inside(corners, seed, bearing) -> None:
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 2 * math.pi, corners))
    if np.diff(angle, append=angle[0] + 2 * math.pi).max() > math.pi - 0.1:
        return  # its centre is not inside, and angles do not order it
    radius = rng.uniform(1, 6, corners)
    star = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    grid = SpatialGrid((0.3, -0.2), 0.7, (13, 11), bearing)
    found = grid.within(star)
    for cell in np.ndindex(grid.shape):
        assert found[cell] == crossings(star, grid.centres[cell])
    np.testing.assert_array_equal(grid.within(star[::-1]), found)


def test_polygons_with_holes_and_crossings() -> None:
    grid = SpatialGrid((0.0, 0.0), 1.0, (6, 6))
    square = [(-3, -3), (3, -3), (3, 3), (-3, 3)]
    hole = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    assert grid.within(square).all()
    ring = grid.within(square) & ~grid.within(hole)
    assert ring.sum() == 32
    twice = grid.within([*square, *square])  # surrounded twice
    assert not twice.any()
    bow = grid.within([(-3, -3), (3, 3), (3, -3), (-3, 3)])
    assert bow[0].any()
    assert not bow[2:4, 0].any()


@pytest.mark.parametrize(
    "polygon",
    [[(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)], [(1, 1), (1, 1), (1, 1)], np.empty((0, 2))],
)
def test_polygons_without_area_are_refused(polygon) -> None:
    with pytest.raises(ValueError, match="three corners"):
        SpatialGrid((0.0, 0.0), 1.0, (4, 4)).within(polygon)


def test_a_corner_that_is_no_position() -> None:
    with pytest.raises(InvalidPoint, match=r"polygon\[2\]"):
        SpatialGrid((0.0, 0.0), 1.0, (4, 4)).within([(0, 0), (1, 0), (0, math.nan)])


def test_the_area_of_a_polygon_is_that_of_its_cells() -> None:
    grid = SpatialGrid.covering(MANHATTAN, cell=50, bearing=29, geographic=True)
    local = grid._local(np.array(MANHATTAN))
    x, y = local.T
    area = abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2e6
    assert grid.within(MANHATTAN).sum() * grid.cell_area == pytest.approx(area, rel=0.003)
