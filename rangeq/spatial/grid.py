"""SpatialGrid: square cells over a public area, and the cells that hold points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from frequency.exceptions import FrequencyError
from frequency.schema import Domain
from mechdesign.base import Floats, Items, set_fields, shown, whole

#: The mean radius of the earth in metres: lengths err by at most 0.6 % for its flattening.
EARTH_RADIUS = 6_371_008.8

MOST_CELLS = 1 << 22  #: The most cells of a grid: what an estimate holds for each is in memory.

_STEEPEST = 85.0  # the largest latitude of the centre of a grid, in degrees

_ROUNDING = 1e-9  # the part of a cell by which a point may lie beyond the border and be on it


class InvalidPoint(FrequencyError, ValueError):
    """A point that is no position, or lies outside of the grid; nothing has been drawn.

    Attributes
    ----------
    index : int
        The place of the first bad one.
    """

    def __init__(self, message: str, index: int) -> None:
        self.index = index
        super().__init__(message, index)

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class SpatialGrid:
    """Square cells over a rectangle of the plane or of the earth's surface: all of it is public.

    Coordinates are those of the users: longitude and latitude in degrees (``geographic``), or any
    two coordinates in one unit. Degrees are turned into metres by a local equirectangular
    projection about the centre, with cos(latitude of the centre) between east-west and north-south:
    see `distortion`. The first axis of cells runs across, the second along the ``bearing``.

    Parameters
    ----------
    centre : tuple of float
        The middle of the rectangle, in the users' coordinates: x and y, or longitude and latitude.
    cell : float
        The side of a cell: in metres if ``geographic``, else in the coordinates' unit.
    shape : tuple of int
        The numbers of cells across and along the bearing, at least 1 each: any numbers.
    bearing : float, default 0
        The direction of the second axis in degrees, clockwise from north (or from the y axis), such
        as 29 for the avenues of Manhattan.
    geographic : bool, default False
        Whether coordinates are longitude and latitude.

    Raises
    ------
    ValueError
        The first parameter out of range.

    Examples
    --------
    >>> grid = SpatialGrid.covering([(-74.03, 40.69), (-73.90, 40.88)], cell=500, geographic=True)
    >>> grid.shape, grid.domain
    ((22, 43), Domain({'x': 22, 'y': 43}))
    >>> grid.records([(-73.9857, 40.7484)])
    array([[ 7, 13]])
    >>> grid.cell_area
    0.25
    """

    centre: tuple[float, float]
    cell: float
    shape: tuple[int, int]
    bearing: float = 0.0
    geographic: bool = False

    def __post_init__(self) -> None:
        centre = _pair(self.centre, "centre")
        if self.geographic and not abs(centre[1]) <= _STEEPEST:
            raise ValueError(
                f"the centre's latitude must lie within ±{_STEEPEST:g} degrees, got {centre[1]:g}"
            )
        cell = _finite(self.cell, "cell")
        if not cell > 0:
            raise ValueError(f"cell must be a length above 0, got {shown(self.cell)}")
        if not isinstance(self.shape, (tuple, list)) or len(self.shape) != 2:
            raise ValueError(
                f"shape must be two numbers of cells, such as (32, 64), got {shown(self.shape)}"
            )
        across, along = (
            whole(number, "shape", 1, what="a number of cells") for number in self.shape
        )
        if across * along > MOST_CELLS:
            raise ValueError(f"a grid has at most {MOST_CELLS} cells, got {across} x {along}")
        set_fields(
            self,
            centre=centre,
            cell=cell,
            shape=(across, along),
            bearing=_finite(self.bearing, "bearing"),
            geographic=bool(self.geographic),
        )

    @classmethod
    def covering(
        cls,
        outline: npt.ArrayLike,
        *,
        cell: float | None = None,
        cells: int | None = None,
        bearing: float = 0.0,
        geographic: bool = False,
    ) -> SpatialGrid:
        """The smallest grid of a bearing that covers a public outline, borders included.

        Parameters
        ----------
        outline : array_like
            Shape (points, 2), in the users' coordinates: two opposite corners of a bounding box, or
            any more points that are to be inside. They must be public: not the users' own.
        cell : float, optional
            The side of a cell, in metres or in the coordinates' unit.
        cells : int, optional
            Instead: how many cells there may be in all; they are as small as that allows.
        bearing, geographic : as of `SpatialGrid`
            An outline across the antimeridian has longitudes beyond 180.

        Returns
        -------
        SpatialGrid
            Whose middle is that of the outline.

        Raises
        ------
        ValueError
            Both or neither of ``cell`` and ``cells``, no outline, one point alone with ``cells``,
            or a parameter out of range.

        Examples
        --------
        >>> SpatialGrid.covering([(0, 0), (30, 10)], cells=80).shape
        (15, 5)
        """
        corners = np.asarray(outline, dtype=np.float64)
        if corners.ndim != 2 or corners.shape[1] != 2 or not len(corners):
            raise ValueError(f"outline must have shape (points, 2), got {corners.shape}")
        if not np.isfinite(corners).all():
            raise ValueError("all coordinates of the outline must be finite")
        if (cell is None) == (cells is None):
            raise ValueError("give the side of a cell, or the number of cells: one of both")
        if len(corners) == 2:
            (a, b), (c, d) = corners
            corners = np.array([(a, b), (c, b), (c, d), (a, d)])
        middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
        for _ in range(20):  # the scale of degrees depends on the centre's latitude
            trial = cls((float(middle[0]), float(middle[1])), 1.0, (1, 1), bearing, geographic)
            # A fixed point: the middle in the plane of the grid, whose scale depends on the
            # middle's latitude; a few turns, of which 20 are far more than enough
            local = trial._local(corners)
            low, high = local.min(axis=0), local.max(axis=0)
            middle = trial._global((low + high) / 2)
        trial = cls((float(middle[0]), float(middle[1])), 1.0, (1, 1), bearing, geographic)
        sides = 2 * np.abs(trial._local(corners)).max(axis=0)
        side = _finite(cell, "cell") if cell is not None else _side(sides, cells)
        if not side > 0:
            raise ValueError(f"cell must be a length above 0, got {shown(cell)}")
        across, along = _cells_of(sides, np.array([side]))[0].tolist()
        return cls(trial.centre, side, (int(across), int(along)), bearing, geographic)

    # --------------------------------------------------------------------------- what it is made of

    @property
    def domain(self) -> Domain:
        """The ordered attributes ``x``, across, and ``y``, along the bearing: for any protocol."""
        return Domain({"x": self.shape[0], "y": self.shape[1]})

    @property
    def cell_area(self) -> float:
        """The area of a cell: in square kilometres if geographic, else in squared units."""
        return (self.cell / 1000 if self.geographic else self.cell) ** 2

    @property
    def distortion(self) -> float:
        """The largest relative error of east-west lengths in the grid: 0 for plane coordinates.

        Cells are square at the latitude of the centre; toward the poles they are narrower in truth.
        """
        if not self.geographic:
            return 0.0
        # Where it reaches across the equator it reaches as far beyond, and more is lost at its end
        latitudes = np.clip(self.corners[..., 1], -90.0, 90.0)
        widths = np.cos(np.radians(latitudes)) / math.cos(math.radians(self.centre[1]))
        return float(np.abs(widths - 1).max())

    @cached_property
    def centres(self) -> Floats:
        """The middle of every cell, in the users' coordinates: shape (\\*shape, 2)."""
        return self._global(self._places(0.5))

    @cached_property
    def corners(self) -> Floats:
        """The corners of cells, in users' coordinates: shape (across + 1, along + 1, 2)."""
        return self._global(self._places(0.0))

    def polygons(self) -> Floats:
        """The four corners of every cell, in the users' coordinates.

        Returns
        -------
        numpy.ndarray of float64
            Shape (\\*shape, 4, 2): counter-clockwise on a map.
        """
        at = self.corners
        return np.stack([at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]], axis=2)

    # ----------------------------------------------------------------------------- points and cells

    def records(
        self, points: npt.ArrayLike, outside: Literal["refuse", "clip"] = "refuse"
    ) -> Items:
        """The cells that hold points, as records of a protocol over `domain`.

        Parameters
        ----------
        points : array_like
            Shape (n, 2), in the users' coordinates.
        outside : {"refuse", "clip"}, default "refuse"
            What happens to points outside of the grid: InvalidPoint, or the nearest cell.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, 2). A point on the border of two cells is in the one further on; those on the
            outer border are inside.

        Raises
        ------
        InvalidPoint
            A coordinate that is not finite, a latitude beyond 90 degrees, or a point outside. Its
            ``index`` is the first.
        ValueError
            Another shape, or another ``outside``.
        """
        if outside not in ("refuse", "clip"):
            raise ValueError(f'outside must be "refuse" or "clip", got {shown(outside)}')
        given = self._checked(points)
        cell = self._local(given) / self.cell + np.array(self.shape) / 2
        # Points on the outer border may round to beyond it: they are inside
        beyond = ((cell < -_ROUNDING) | (cell > np.array(self.shape) + _ROUNDING)).any(axis=1)
        if outside == "refuse" and beyond.any():
            k = int(np.argmax(beyond))
            raise InvalidPoint(
                f"points[{k}] = ({given[k, 0]:g}, {given[k, 1]:g}) lies outside of the grid;"
                ' outside="clip" takes the nearest cell; nothing was drawn',
                k,
            )
        return np.clip(np.floor(cell), 0, np.array(self.shape) - 1).astype(np.int64)

    def counts(
        self, points: npt.ArrayLike, outside: Literal["refuse", "clip"] = "refuse"
    ) -> npt.NDArray[np.int64]:
        """Return the number of points in each cell: the map that a curator would have.

        Parameters
        ----------
        points, outside : as of `records`
            In the users' coordinates, and what happens to those outside of the grid.

        Returns
        -------
        numpy.ndarray of int64
            Of the grid's shape.

        Raises
        ------
        InvalidPoint
            As for `records`.
        """
        counts = np.zeros(self.shape, dtype=np.int64)
        np.add.at(counts, tuple(self.records(points, outside).T), 1)
        return counts

    def within(self, polygon: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """The cells whose centres lie within a polygon.

        Parameters
        ----------
        polygon : array_like
            Shape (corners, 2), in the users' coordinates, at least three corners, in the order of
            the outline; sides are straight in the plane of the grid. Where it crosses itself, what
            is surrounded an odd number of times is inside. Masks of several polygons are combined
            by ``|``, ``&`` and ``~``.

        Returns
        -------
        numpy.ndarray of bool
            Of the grid's shape.

        Raises
        ------
        ValueError
            Another shape, fewer corners, or all of them on a line.
        InvalidPoint
            A corner that is no position.
        """
        corners = self._local(self._checked(polygon, "polygon"))
        if len(corners) < 3 or np.linalg.matrix_rank(corners - corners[0]) < 2:
            raise ValueError("a polygon has at least three corners, not all on a line")
        following = np.roll(corners, -1, axis=0)
        across, along = np.moveaxis(self._places(0.5), -1, 0)
        inside = np.zeros(self.shape, dtype=np.bool_)
        for (a, b), (c, d) in zip(corners, following, strict=True):
            if b != d:
                # Even-odd rule: a ray across from the centre crosses the outline an odd number of
                # times. Half-open sides, so that a corner counts once
                crossed = (b > along) != (d > along)
                inside ^= crossed & (across < a + (along - b) * (c - a) / (d - b))
        return inside

    def distance(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
        """The distances between the middles of cells.

        Parameters
        ----------
        first, second : array_like
            Records: integers of shapes (..., 2) that broadcast.

        Returns
        -------
        numpy.ndarray of float64
            In metres if geographic, else in the coordinates' unit.
        """
        apart = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
        return np.asarray(self.cell * np.hypot(apart[..., 0], apart[..., 1]))

    def _places(self, offset: float) -> Floats:
        """Corners of cells (0) or their middles (1/2), in the plane of the grid."""
        ends = [np.arange(size + (offset == 0)) + offset - size / 2 for size in self.shape]
        return self.cell * np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1)

    def _checked(self, points: npt.ArrayLike, what: str = "points") -> Floats:
        try:
            given = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{what} must be numbers, got {shown(points)}") from None
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(f"{what} must have shape (n, 2), got {given.shape}")
        bad = ~np.isfinite(given).all(axis=1)
        if self.geographic:
            bad |= np.abs(given[:, 1]) > 90
        if bad.any():
            k = int(np.argmax(bad))
            where = "longitude and latitude" if self.geographic else "coordinates"
            raise InvalidPoint(
                f"{what}[{k}] = ({given[k, 0]:g}, {given[k, 1]:g}) is no {where};"
                " nothing was drawn",
                k,
            )
        return given

    @property
    def _scale(self) -> Floats:
        """The length of a unit of either coordinate."""
        degree = math.radians(EARTH_RADIUS) if self.geographic else 1.0
        narrow = math.cos(math.radians(self.centre[1])) if self.geographic else 1.0
        return np.array([degree * narrow, degree])

    @property
    def _turn(self) -> Floats:
        """The rotation from east and north to the axes of the grid."""
        angle = math.radians(self.bearing)
        return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])

    def _local(self, points: Floats) -> Floats:
        """Lengths along the axes of the grid, from its centre."""
        apart = points - np.array(self.centre)
        if self.geographic:  # the short way around
            apart[..., 0] = (apart[..., 0] + 180) % 360 - 180
        return np.asarray((apart * self._scale) @ self._turn.T)

    def _global(self, local: Floats) -> Floats:
        return np.asarray((local @ self._turn) / self._scale + np.array(self.centre))


def _finite(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {shown(value)}")
    return number


def _pair(value: Any, name: str) -> tuple[float, float]:
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise ValueError(f"{name} must be two coordinates, got {shown(value)}")
    return _finite(value[0], name), _finite(value[1], name)


def _cells_of(sides: Floats, cell: Floats) -> Floats:
    """The numbers of cells of each side that cover a rectangle: shape (cells, 2)."""
    return np.maximum(np.ceil(sides / cell[:, None] - _ROUNDING), 1.0)


def _side(sides: Floats, cells: Any) -> float:
    """The shortest side of so many cells at most that cover a rectangle."""
    most = whole(cells, "cells", 1, MOST_CELLS, what="a number of cells")
    if not sides.max() > 0:
        raise ValueError("the outline is one point: give the side of a cell")
    # One of the rectangle's sides is a whole number of them
    tried = np.unique(np.concatenate([side / np.arange(1, most + 1) for side in sides if side > 0]))
    # `argmax` of ascending sides: the first that is enough is the shortest
    enough = _cells_of(sides, tried).prod(axis=1) <= most
    return float(tried[np.argmax(enough)])


# ------------------------------------------------------------------------------------------------
# The Wasserstein-2 distance of two distributions over the cells of a grid, exactly.


MOST_FLOWS = 1 << 19  #: The most flows of the linear program: that of 64 x 64 cells.


_NEGLIGIBLE = 1e-12  # the part of all mass below which a cell is empty


def wasserstein(first: npt.ArrayLike, second: npt.ArrayLike, cell: float = 1.0) -> float:
    """The Wasserstein-2 distance of two distributions.

    The root of the least mean squared distance by which the first is moved to become the second,
    from middles of cells to middles of cells. Squared distances are sums over both axes, so that
    mass may be moved along one axis first and then along the other (Auricchio et al., NeurIPS
    2018): X Y (X + Y) flows instead of X^2 Y^2, in a linear program that HiGHS solves.

    Parameters
    ----------
    first, second : array_like
        Shape (X, Y) both: at least 0, of the same positive sum; they are brought to sum 1.
    cell : float, default 1
        The side of a cell: the distance is in its unit.

    Returns
    -------
    float
        At least 0.

    Raises
    ------
    ValueError
        Shapes that differ or are not of two axes, negative or not finite numbers, sums that differ
        by more than one part in 10^6, or more than `MOST_FLOWS` flows.

    Examples
    --------
    >>> wasserstein([[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]], cell=500)
    707.1067811865476
    """
    p, q = (np.asarray(masses, dtype=np.float64) for masses in (first, second))
    if p.ndim != 2 or p.shape != q.shape:
        raise ValueError(f"expected two arrays of one shape (X, Y), got {p.shape} and {q.shape}")
    if not all(
        np.isfinite(masses).all() and (masses >= 0).all() and masses.sum() > 0 for masses in (p, q)
    ):
        raise ValueError("frequencies must be finite, at least 0, and not all 0")
    if not np.isclose(p.sum(), q.sum(), rtol=1e-6, atol=0):
        raise ValueError(f"both must have the same sum, got {p.sum():g} and {q.sum():g}")
    across, along = p.shape
    if across * along * (across + along) > MOST_FLOWS:
        raise ValueError(
            f"{across} x {along} cells have {across * along * (across + along)} flows, more than"
            f" {MOST_FLOWS}: join cells first"
        )
    cells = across * along
    # Cells of next to no mass would only add flows, and constraints below the solver's tolerance
    p, q = (np.where(masses > _NEGLIGIBLE * masses.sum(), masses, 0.0) for masses in (p, q))
    p, q = cells * p / p.sum(), cells * q / q.sum()  # about 1, to which the solver's tolerance fits
    # From (x, y) to (z, y), and from there to (z, w), where there is something to move, or to hold
    x, z, y = (axis.ravel() for axis in np.indices((across, across, along)))
    x, z, y = (axis[p[x, y] > 0] for axis in (x, z, y))
    u, v, w = (axis.ravel() for axis in np.indices((across, along, along)))
    u, v, w = (axis[q[u, w] > 0] for axis in (u, v, w))
    left, right = np.arange(len(x)), len(x) + np.arange(len(u))
    rows = [x * along + y, cells + z * along + y, cells + u * along + v, 2 * cells + u * along + w]
    signs = np.repeat([1.0, 1.0, -1.0, 1.0], [len(x), len(x), len(u), len(u)])
    columns = np.concatenate([left, left, right, right])
    balance: Any = scipy.sparse.csr_array(
        (signs, (np.concatenate(rows), columns)), shape=(3 * cells, len(x) + len(u))
    )
    demand = np.concatenate([p.ravel(), np.zeros(cells), q.ravel()])
    lengths = np.concatenate([(x - z) ** 2, (v - w) ** 2]).astype(np.float64)
    # One balance follows from the others, and rounding must not contradict it: the largest
    kept = np.arange(3 * cells) != 2 * cells + int(np.argmax(q))
    solution = scipy.optimize.linprog(
        lengths, A_eq=balance[kept], b_eq=demand[kept], method="highs"
    )
    if solution.status:
        raise ArithmeticError(f"the linear program was not solved: {solution.message}")
    return float(cell * np.sqrt(max(solution.fun or 0.0, 0.0) / cells))
