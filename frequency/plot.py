"""Figures of estimates, `matplotlib.figure.Figure` objects like those of `mechdesign.plot`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from frequency.core.estimate import Estimate


def frequencies(
    estimate: Estimate,
    truth: npt.ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    confidence: float = 0.95,
    largest: int = 40,
) -> Figure:
    """The estimated frequencies with confidence intervals, largest first.

    Parameters
    ----------
    estimate : Estimate
        At least one report.
    truth : array_like, optional
        Shape (items,): the true fractions, for a study where they are known; drawn as crosses.
    labels : sequence of str, optional
        Names of the items, as many as the estimate has; None: their numbers.
    confidence : float, default 0.95
        Of each interval by itself, in (0, 1).
    largest : int, default 40
        How many items to draw, at least 1.

    Returns
    -------
    matplotlib.figure.Figure
        One panel, with the true fractions where they are known.

    Raises
    ------
    ValueError
        No reports, or a length that does not fit.
    """
    count = len(estimate.frequencies)
    items = np.arange(count) if estimate.items is None else estimate.items
    names = [str(item) for item in items] if labels is None else list(labels)
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if estimate.n == 0 or largest < 1:
        raise ValueError("there is nothing to draw: no reports, or no items asked for")
    if len(names) != count or (known is not None and known.shape != (count,)):
        raise ValueError(f"labels and truth must have one entry for each of the {count} items")
    low, high = estimate.interval(confidence)
    chosen = np.argsort(-estimate.frequencies, kind="stable")[:largest]
    height = np.arange(len(chosen))
    figure = Figure(figsize=(6.4, 1.4 + 0.22 * len(chosen)), layout="constrained")
    axes = figure.add_subplot(xlabel="fraction of the population", axisbelow=True)
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.grid(axis="x", color="0.9")
    axes.spines[["top", "right", "left"]].set_visible(False)
    centre = estimate.frequencies[chosen]
    arms = np.maximum(np.stack([centre - low[chosen], high[chosen] - centre]), 0.0)
    label = f"estimate, {confidence:.0%} interval"
    axes.errorbar(
        centre,
        height,
        xerr=arms,
        fmt="o",
        markersize=4.5,
        color="#0072B2",
        elinewidth=1.6,
        label=label,
    )
    if known is not None:
        axes.plot(
            known[chosen],
            height,
            "x",
            markersize=6,
            markeredgewidth=1.6,
            color="#D55E00",
            label="truth",
        )
    axes.set_yticks(height, [names[k] for k in chosen])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(chosen) - 0.4, -0.6)
    if len(chosen) < count:
        axes.set_title(f"the {len(chosen)} largest of {count} items", fontsize=10, loc="left")
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure
