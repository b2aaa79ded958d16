"""The figure of suppression beside a mechanism.

This loads matplotlib: it is imported where something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mechdesign._support.arrays import Floats
from mechdesign._support.figures import (
    BAND,
    COLOURS,
    ESTIMATE,
    MUTED,
    TRUTH,
    fitting,
    legend_above,
    panel,
)

LARGEST_FIGURE = 150
"""The most entries that a figure has lines for."""


def intervals_and_errors(
    names: Sequence[str], possible: Floats, taken: Floats, rmse: Floats, cells: int
) -> Figure:
    """For each entry what is possible, what is taken and how far off a mechanism is.

    All numbers are differences from the true count.

    Parameters
    ----------
    names : sequence of str
        Of the entries, first the cells, then the totals.
    possible : numpy.ndarray of float64
        The ends of the intervals, shape (entries, 2).
    taken : numpy.ndarray of float64
        What readers of a suppressed table take, shape (entries,).
    rmse : numpy.ndarray of float64
        Of the mechanism, shape (entries,); NaN where it is not known.
    cells : int
        How many of the entries are cells.

    Returns
    -------
    matplotlib.figure.Figure
        The first entry is uppermost.

    Raises
    ------
    ValueError
        There are no entries or more than `LARGEST_FIGURE`.
    """
    if not 1 <= len(names) <= LARGEST_FIGURE:
        raise ValueError(
            f"a figure has 1 to {LARGEST_FIGURE} cells and totals, this table {len(names)}"
        )
    height = 1.6 + 0.24 * len(names)
    figure, axes = panel("difference from the true count (persons)", "", 7.2, height, grid="x")
    y = np.arange(len(names), dtype=np.float64)
    known = possible[:, 0] == possible[:, 1]
    wide = ~known
    axes.axvline(0, color=MUTED, linewidth=0.8, zorder=1)
    if 0 < cells < len(names):
        axes.axhline(cells - 0.5, color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.hlines(
        y[wide] - 0.16,
        possible[wide, 0],
        possible[wide, 1],
        color=BAND,
        linewidth=4.5,
        label="suppression: possible counts",
    )
    axes.plot(
        taken[wide],
        y[wide] - 0.16,
        "o",
        color=ESTIMATE,
        markersize=4,
        label="suppression: the number taken",
    )
    axes.plot(
        possible[known, 0],
        y[known] - 0.16,
        "X",
        color=COLOURS[4],
        markersize=5,
        label="suppression: known exactly",
    )
    axes.hlines(
        y + 0.2,
        -rmse,
        rmse,
        color=TRUTH,
        linewidth=1.6,
        label="mechanism: root mean square error",
    )
    axes.set_yticks(y, fitting(names, 34))
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    legend_above(figure)
    return figure
