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
    """Draw the listed items with their intervals, most frequent first.

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
    # Here, so that importing the package does not take as long again
    from frequency.schema.plot import bars

    names = items.items.tolist()
    sure = f"{items.confidence:.0%}"
    marks = {f"noise alone stays below: {sure}": float(np.max(items.noise, initial=0.0))}
    if np.isfinite(items.complete_above):
        marks[f"an item from here on is listed: {sure}"] = items.complete_above
    return bars(
        [repr(name) if isinstance(name, str) else str(name) for name in names],
        items.frequencies,
        items.interval(),
        truth=None if truth is None else [truth.get(name, 0.0) for name in names],
        largest=largest,
        marks=marks,
        confidence=items.confidence,
    )
