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
    # Here, so that importing the package does not take as long again
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot(xlabel=xlabel, ylabel="fraction at or below", axisbelow=True)
    axes.grid(color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.fill_between(
        last,
        low,
        high,
        step="post",
        color="#56B4E9",
        alpha=0.4,
        linewidth=0,
        label=f"{confidence:.0%} band",
    )
    axes.step(last, estimate.cdf(), where="post", color="#0072B2", linewidth=1.6, label="estimate")
    if known is not None:
        axes.step(
            last,
            np.cumsum(known),
            where="post",
            color="#D55E00",
            linewidth=1.2,
            linestyle=(0, (4, 2)),
            label="truth",
        )
    deciles = np.arange(1, 10) / 10
    left, right = estimate.quantile_interval(deciles, confidence)
    axes.hlines(
        deciles,
        left,
        right,
        color="#000000",
        linewidth=1.2,
        label=f"deciles, {confidence:.0%} intervals",
    )
    axes.plot(estimate.quantile(deciles), deciles, "o", markersize=3.5, color="#000000")
    axes.margins(x=0.01)
    axes.set_ylim(bottom=min(-0.02, axes.get_ylim()[0]))
    figure.legend(
        loc="outside upper right", ncols=4 if known is not None else 3, frameon=False, fontsize=9
    )
    return figure
