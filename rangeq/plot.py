"""Figures of range estimates: `matplotlib.figure.Figure` objects, as in `mechdesign.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mechdesign.base import Between, Integers
from rangeq.core import RangeEstimate
from rangeq.spatial.likelihood import SpatialEstimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cdf(
    estimate: RangeEstimate,
    truth: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    xlabel: str = "item",
) -> Figure:
    """Draw the estimated cdf with its band, the deciles, and the truth (domain,), if known."""
    if estimate.n == 0:
        raise ValueError("there is nothing to draw: no reports")
    last: Integers = np.arange(len(estimate.frequencies))
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if known is not None and known.shape != last.shape:
        raise ValueError(
            f"truth must have one entry for each of the {len(last)} items, got shape {known.shape}"
        )
    low, high = estimate.answer(Between(np.zeros_like(last), last)).interval(confidence)
    deciles = np.arange(1, 10) / 10
    # Here, so that importing the package does not take as long again
    from frequency.schema.plot import cumulative

    return cumulative(
        np.arange(len(last) + 1),
        estimate.cdf(),
        (low, high),
        xlabel=xlabel,
        steps=True,
        truth=None if known is None else np.cumsum(known),
        quantiles=(
            deciles,
            estimate.quantile(deciles),
            estimate.quantile_interval(deciles, confidence),
        ),
        confidence=confidence,
    )


def density_map(
    estimate: SpatialEstimate, unit: str = "unit", truth: npt.ArrayLike | None = None
) -> Figure:
    """The estimated density of users as a map: each cell by colour, at its place.

    Axes are the users' coordinates, at the scale of the grid's centre: a cell is drawn square, and
    turned as the grid is.

    Parameters
    ----------
    estimate : SpatialEstimate
        At least one report.
    unit : str, default "unit"
        Of the coordinates, if the grid is not geographic.
    truth : array_like, optional
        Of the grid's shape: the number of users in every cell, for a study where they are known. It
        is drawn beside the estimate, by the same colours.

    Returns
    -------
    Figure
        Of matplotlib: ``figure.savefig(...)``. One panel, or two, and a colour scale in users per
        square kilometre, or per squared unit. Cells below 0 have the colour of 0.

    Raises
    ------
    ValueError
        No reports, or a truth of another shape.
    """
    if not estimate.estimate.reports:
        raise ValueError("there is nothing to draw: no reports")
    grid, reports = estimate.grid, estimate.estimate.reports
    panels = {f"estimate from {reports:,} reports": estimate.density()}
    if truth is not None:
        known = np.asarray(truth, dtype=np.float64)
        if known.shape != grid.shape:
            raise ValueError(
                f"truth must have one number for each of {grid.shape} cells, got {known.shape}"
            )
        panels["truth"] = known / grid.cell_area
    if grid.geographic:
        labels = "longitude, degrees", "latitude, degrees"
        narrow = float(np.cos(np.radians(grid.centre[1])))
    else:
        labels, narrow = (f"x, {unit}", f"y, {unit}"), 1.0
    measure = f"users per {'km' if grid.geographic else unit}²"
    from frequency.schema.joint_plot import maps

    return maps(grid.corners, panels, labels, 1 / narrow, measure)
