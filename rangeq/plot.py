"""Figures of range estimates: `matplotlib.figure.Figure` objects, as in `mechdesign.plot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mechdesign._support.arrays import Integers
from rangeq.core.estimate import RangeEstimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cdf(
    estimate: RangeEstimate,
    truth: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    xlabel: str = "item",
) -> Figure:
    """The estimated cumulative distribution with its band, the deciles, and the truth if known.

    Parameters
    ----------
    estimate : RangeEstimate
        At least one report.
    truth : array_like, optional
        Shape (domain,): the true fraction of every item, for a study where it is known.
    confidence : float, default 0.95
        In (0, 1): of the band at each item, and of each decile's interval, by itself.
    xlabel : str, default "item"
        What the items are.

    Returns
    -------
    Figure
        Of matplotlib: ``figure.savefig(...)``.

    Raises
    ------
    ValueError
        No reports, or a truth of another length.
    """
    if estimate.n == 0:
        raise ValueError("there is nothing to draw: no reports")
    last: Integers = np.arange(len(estimate.frequencies))
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if known is not None and known.shape != last.shape:
        raise ValueError(
            f"truth must have one entry for each of the {len(last)} items, got shape {known.shape}"
        )
    low, high = estimate.answer((np.zeros_like(last), last)).interval(confidence)
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
