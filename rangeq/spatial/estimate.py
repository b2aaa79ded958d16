"""SpatialEstimate: the density of users on a map, and how many are in any region of it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from frequency.core.answer import Answer
from mechdesign.base.arrays import Floats
from rangeq.grids.estimate import ConjunctionEstimate, PairwiseEstimate
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.spatial.grid import SpatialGrid


class SpatialEstimate:
    """An estimate of the attributes of a `SpatialGrid`, in the units of the map.

    Attributes
    ----------
    grid : SpatialGrid
        The cells.
    estimate : ConjunctionEstimate
        Of its ``x`` and ``y``: by any protocol over ``grid.domain``.

    Raises
    ------
    ValueError
        An estimate of other attributes.

    Examples
    --------
    >>> from rangeq.grids import best
    >>> rng, grid = np.random.default_rng(1), SpatialGrid((0.0, 0.0), 1.0, (16, 16))
    >>> points = np.clip(rng.normal(0, 2, size=(50_000, 2)), -8, 8)
    >>> protocol = best(grid.domain, epsilon=2.0, n=50_000)
    >>> reports = protocol.privatize(grid.records(points), rng)
    >>> found = SpatialEstimate(grid, protocol.estimate(protocol.aggregate(reports)))
    >>> triangle = grid.within([(-4, -4), (4, -4), (0, 4)])
    >>> low, high = found.answer(triangle).interval(0.999999)
    >>> bool(low <= (triangle * grid.counts(points)).sum() / 50_000 <= high)
    True
    """

    def __init__(self, grid: SpatialGrid, estimate: ConjunctionEstimate) -> None:
        of = getattr(estimate, "attributes", None)
        if not isinstance(estimate, ConjunctionEstimate) or of != grid.domain:
            raise ValueError(
                f"expected an estimate by a protocol over grid.domain, {grid.domain!r}, got"
                f" {estimate!r} of {of!r}"
            )
        self.grid, self.estimate = grid, estimate

    @property
    def n(self) -> int:
        """The number of users that the estimate is about."""
        return self.estimate.n

    @cached_property
    def frequencies(self) -> Floats:
        """The fraction of the users in each cell: of the grid's shape; NaN with no reports."""
        if isinstance(self.estimate, (PairwiseEstimate, WaveEstimate)):
            return self.estimate.response_matrix("x", "y")
        cells = np.stack([axis.ravel() for axis in np.indices(self.grid.shape)], axis=1)
        return self.estimate.answers(["x", "y"], cells, cells).reshape(self.grid.shape)

    def density(self) -> Floats:
        """How many users there are in each cell for its area.

        Returns
        -------
        numpy.ndarray of float64
            Of the grid's shape: users per square kilometre if the grid is geographic, else per
            squared unit of its coordinates. NaN with no reports.
        """
        return self.n * self.frequencies / self.grid.cell_area

    def answer(self, region: npt.ArrayLike) -> Answer:
        """The fraction of the users in a region.

        Parameters
        ----------
        region : array_like of bool
            Of the grid's shape: which cells, such as those that `SpatialGrid.within` finds.

        Returns
        -------
        Answer
            With an interval where the estimate knows one: see `ConjunctionEstimate.region`.

        Raises
        ------
        InvalidQuestion
            Another shape, or no cell.
        """
        return self.estimate.region("x", "y", region)

    def users(self, region: npt.ArrayLike, confidence: float = 0.95) -> tuple[float, float, float]:
        """How many users are in a region, with the ends of an interval.

        Parameters
        ----------
        region : array_like of bool
            As for `answer`.
        confidence : float, default 0.95
            Strictly between 0 and 1.

        Returns
        -------
        tuple of float
            The estimate, and the lower and the upper end.

        Raises
        ------
        InvalidQuestion
            As for `answer`.
        UnknownVariance
            The estimate knows no intervals.
        """
        told = self.answer(region)
        low, high = told.interval(confidence)
        return self.n * float(told.value), self.n * float(low), self.n * float(high)

    def __repr__(self) -> str:
        across, along = self.grid.shape
        return f"<SpatialEstimate of {across} x {along} cells from {self.estimate.reports} reports>"
