"""Maps in the users' units: densities, regions, and counts with intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from frequency.exceptions import InvalidQuestion, UnknownVariance
from rangeq import plot
from rangeq.grids import HDG, HIO, MSW, best
from rangeq.spatial import SpatialEstimate, SpatialGrid
from tests.pictures import collisions

N = 30_000


@pytest.fixture(scope="module")
def city():
    """A turned grid of a city, and users in two places of it."""
    outline = [(-74.02, 40.70), (-73.97, 40.705), (-73.91, 40.87), (-73.93, 40.88)]
    grid = SpatialGrid.covering(outline, cells=500, bearing=29, geographic=True)
    rng = np.random.default_rng(1)
    places = np.array([[-73.985, 40.755], [-73.95, 40.81]])[rng.integers(0, 2, N)]
    return grid, places + rng.normal(size=(N, 2)) * [0.006, 0.008]


def map_of(system, city, epsilon=2.0):
    grid, points = city
    rng = np.random.default_rng(2)
    protocol = system(grid.domain, epsilon, N)
    reports = protocol.privatize(grid.records(points, "clip"), rng)
    return SpatialEstimate(grid, protocol.estimate(protocol.aggregate(reports)))


@pytest.fixture(scope="module")
def found(city):
    return map_of(best, city)


def test_density_is_users_for_an_area(city, found) -> None:
    grid, _ = city
    assert found.n == N
    assert found.density().shape == grid.shape
    assert found.density().sum() * grid.cell_area == pytest.approx(N)
    np.testing.assert_allclose(found.frequencies.sum(), 1)
    plane = SpatialGrid((0.0, 0.0), 3.0, grid.shape)
    other = SpatialEstimate(plane, found.estimate)
    np.testing.assert_allclose(other.density(), N * found.frequencies / 9)


@pytest.mark.parametrize("system", [best, HDG])
def test_users_in_a_shape(city, system) -> None:
    """Intervals of confidence 1 - 10^-6 hold; those of another place do not."""
    grid, points = city
    found, truth = map_of(system, city), grid.counts(points, "clip")
    shape = [(-74.01, 40.74), (-73.97, 40.735), (-73.95, 40.78), (-73.99, 40.79)]
    region = grid.within(shape)
    assert 0 < region.sum() < region.size
    users, low, high = found.users(region, confidence=1 - 1e-6)
    assert low <= truth[region].sum() <= high
    assert low <= users <= high
    assert users == pytest.approx(found.answer(region).value * N)
    moved = grid.within([(x - 0.01, y - 0.03) for x, y in shape])
    assert not low <= truth[moved].sum() <= high


@pytest.mark.parametrize("system", [MSW, HIO])
def test_any_protocol_has_frequencies(city, system) -> None:
    found = map_of(system, city)
    assert found.frequencies.shape == found.grid.shape
    cell = np.zeros(found.grid.shape, dtype=bool)
    cell[7, 20] = True
    assert found.answer(cell).value == pytest.approx(found.frequencies[7, 20])
    if system is HIO:
        with pytest.raises(UnknownVariance):
            found.users(found.grid.within(found.grid.corners[[0, -1, -1], [0, 0, -1]]))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1), (1, 24), (24, 1), (2, 1)])
def test_streets_and_single_cells(shape) -> None:
    grid = SpatialGrid((5.0, 5.0), 2.0, shape, bearing=30)
    protocol = best(grid.domain, 2.0, 5000)
    points = grid.centres[tuple(np.array(shape) // 2)]
    reports = protocol.privatize(grid.records(np.tile(points, (5000, 1))), np.random.default_rng(3))
    found = SpatialEstimate(grid, protocol.estimate(protocol.aggregate(reports)))
    assert found.density().sum() * 4 == pytest.approx(5000)
    every = np.ones(shape, dtype=bool)
    assert found.answer(every).value == pytest.approx(1)
    if max(shape) > 2:
        ends = np.zeros(shape, dtype=bool)
        ends[[0, -1], [0, -1]] = True
        users, low, high = found.users(ends, 1 - 1e-6)
        assert low <= 0.01
        assert low <= users <= high
    assert collisions(plot.density_map(found)) == []


def test_what_is_no_map(city, found) -> None:
    grid, _ = city
    other = SpatialGrid((0.0, 0.0), 1.0, (3, 3))
    with pytest.raises(ValueError, match="a protocol over"):
        SpatialEstimate(other, found.estimate)
    with pytest.raises(ValueError, match="a protocol over"):
        SpatialEstimate(grid, found.density())
    with pytest.raises(InvalidQuestion, match="booleans"):
        found.answer(np.ones(grid.shape))
    with pytest.raises(InvalidQuestion, match="empty"):
        found.users(np.zeros(grid.shape, dtype=bool))


# ------------------------------------------------------------------------------------------ figures


@pytest.mark.slow
def test_cells_are_drawn_where_they_are(city, found) -> None:
    grid, points = city
    figure = plot.density_map(found)
    panel, bar = figure.axes
    (mesh,) = panel.collections
    assert isinstance(mesh, QuadMesh)
    np.testing.assert_allclose(mesh.get_coordinates(), grid.corners)
    np.testing.assert_allclose(mesh.get_array(), found.density())
    assert panel.get_aspect() == pytest.approx(1 / math.cos(math.radians(grid.centre[1])))
    assert bar.get_ylabel() == "users per km²"
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("longitude, degrees", "latitude, degrees")
    assert panel.get_title(loc="left") == "estimate from 30,000 reports"
    assert mesh.get_clim() == (0, found.density().max())
    assert collisions(figure) == []
    both = plot.density_map(found, truth=grid.counts(points, "clip"))
    first, second, _ = both.axes
    truth = grid.counts(points, "clip") / grid.cell_area
    np.testing.assert_allclose(second.collections[0].get_array(), truth)
    assert first.collections[0].get_clim() == second.collections[0].get_clim()
    assert collisions(both) == []


def test_plane_coordinates_have_their_unit(found) -> None:
    shape = found.grid.shape
    figure = plot.density_map(SpatialEstimate(SpatialGrid((0, 0), 2.0, shape), found.estimate), "m")
    assert figure.axes[0].get_xlabel() == "x, m"
    assert figure.axes[0].get_aspect() == 1
    assert figure.axes[1].get_ylabel() == "users per m²"
    assert collisions(figure) == []


def test_what_cannot_be_drawn(city, found) -> None:
    grid, _ = city
    with pytest.raises(ValueError, match="one number for each"):
        plot.density_map(found, truth=[1, 2])
    protocol = best(grid.domain, 1.0, 10)
    nobody = protocol.estimate(protocol.simulate([], values=np.zeros((0, 2), dtype=int)))
    assert np.isnan(SpatialEstimate(grid, nobody).density()).all()
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.density_map(SpatialEstimate(grid, nobody))
