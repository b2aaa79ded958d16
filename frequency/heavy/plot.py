"""Figures of found items, `matplotlib.figure.Figure` objects like those of `mechdesign.plot`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from frequency.heavy.found import Found

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heavy_hitters(
    items: Found, truth: Mapping[Any, float] | None = None, largest: int = 40
) -> Figure:
    """The listed items with their intervals, most frequent first.

    Lines show what noise alone may reach, and what is listed with the stated confidence.

    Parameters
    ----------
    items : Found
        At least one of them.
    truth : mapping, optional
        The true fractions of items, for a study where they are known, drawn as crosses; those that
        are not in it are 0.
    largest : int, default 40
        How many items to draw, at least 1.

    Returns
    -------
    matplotlib.figure.Figure
        One panel.

    Raises
    ------
    ValueError
        Nothing was found, or no items are asked for.
    """
    if len(items) == 0 or largest < 1:
        raise ValueError("there is nothing to draw: nothing was found, or no items asked for")
    names, frequencies = items.items.tolist()[:largest], items.frequencies[:largest]
    height = np.arange(len(names))
    # Here, so that importing the package does not take as long again
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 1.7 + 0.22 * len(names)), layout="constrained")
    axes = figure.add_subplot(xlabel="fraction of the users", axisbelow=True)
    axes.axvline(0, color="0.6", linewidth=0.8)
    axes.grid(axis="x", color="0.9")
    axes.spines[["top", "right", "left"]].set_visible(False)
    low, high = (end[:largest] for end in items.interval())
    arms = np.stack([frequencies - low, high - frequencies])
    label = f"estimate, {items.confidence:.0%} interval"
    axes.errorbar(
        frequencies,
        height,
        xerr=arms,
        fmt="o",
        markersize=4.5,
        color="#0072B2",
        elinewidth=1.6,
        label=label,
    )
    if truth is not None:
        known = [truth.get(name, 0.0) for name in names]
        axes.plot(
            known, height, "x", markersize=6, markeredgewidth=1.6, color="#D55E00", label="truth"
        )
    axes.axvline(
        items.noise,
        color="0.35",
        linestyle="--",
        linewidth=1,
        label=f"noise alone stays below: {items.confidence:.0%}",
    )
    if np.isfinite(items.complete_above):
        axes.axvline(
            items.complete_above,
            color="#009E73",
            linestyle="-.",
            linewidth=1.2,
            label=f"an item from here on is listed: {items.confidence:.0%}",
        )
    axes.set_yticks(height, [repr(name) if isinstance(name, str) else str(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    if len(names) < len(items):
        axes.set_title(
            f"the {len(names)} most frequent of {len(items)} items", fontsize=10, loc="left"
        )
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure
