"""The figure of suppression beside a mechanism.

This loads matplotlib: it is imported where something is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mechdesign.base import (
    BAND,
    COLOURS,
    ESTIMATE,
    MUTED,
    TRUTH,
    Booleans,
    Floats,
    fitting,
    legend_above,
    mark_numbers,
    style,
)

LARGEST_FIGURE = 150  #: The most entries that a figure has lines for.

_LONGEST = 40  # the most entries that a panel has lines for: more are in panels beside each other


def intervals_and_errors(
    names: Sequence[str],
    possible: Floats,
    protected: Booleans,
    taken: Floats,
    rmse: Floats,
    cells: int,
    *,
    perturbed: Mapping[str, Floats],
) -> Figure:
    """Plot for each entry what is possible, what is taken and how far off a mechanism is.

    All numbers are differences from the true count.
    Shapes: `possible` (entries, 2); `protected`, `taken`, `rmse` and those of `perturbed`, the root
    mean square errors of perturbation tables by their names, (entries,).
    """
    if not 1 <= len(names) <= LARGEST_FIGURE:
        raise ValueError(
            f"a figure has 1 to {LARGEST_FIGURE} cells and totals, this table {len(names)}"
        )
    columns = -(-len(names) // _LONGEST)
    rows = -(-len(names) // columns)
    with style(), rc_context({"axes.grid.axis": "x"}):
        figure = Figure(figsize=(1.8 + 5.4 * columns, 1.6 + 0.24 * rows))
        panels = figure.subplots(1, columns, sharex=True, squeeze=False)[0]
    for k, axes in enumerate(panels):
        part = slice(k * rows, (k + 1) * rows)
        ends, hidden = possible[part], protected[part]
        _draw(
            axes,
            names[part],
            ends,
            hidden,
            taken=taken[part],
            rmse=rmse[part],
            cells=cells - k * rows,
            perturbed={name: errors[part] for name, errors in perturbed.items()},
        )
        axes.set_ylim(rows - 0.4, -0.6)
    figure.supxlabel("difference from the true count (persons)", fontsize="medium")
    legend_above(figure)
    return figure


def _draw(
    axes: Axes,
    names: Sequence[str],
    possible: Floats,
    protected: Booleans,
    *,
    taken: Floats,
    rmse: Floats,
    cells: int,
    perturbed: Mapping[str, Floats],
) -> None:
    """Draw a panel of entries, of which so many are cells."""
    mark_numbers(axes.xaxis)
    y = np.arange(len(names), dtype=np.float64)
    wide = possible[:, 0] < possible[:, 1]
    recovered, published = ~wide & protected, ~wide & ~protected
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
    ends = possible[:, 0]
    for some, x, marker, size, colour, face, told in (
        (wide, taken, "o", 4, ESTIMATE, ESTIMATE, "the number readers take"),
        (recovered, ends, "X", 5, COLOURS[4], COLOURS[4], "hidden, but recovered exactly"),
        (published, ends, "o", 4.5, MUTED, "white", "published as it is"),
    ):
        axes.plot(
            x[some],
            y[some] - 0.16,
            marker,
            color=colour,
            markersize=size,
            markerfacecolor=face,
            label=f"suppression: {told}",
        )
    axes.hlines(
        y + 0.2,
        -rmse,
        rmse,
        color=TRUTH,
        linewidth=1.6,
        label="mechanism: root mean square error",
    )
    for k, (name, errors) in enumerate(perturbed.items()):
        # A bar with ends, below that of the mechanism
        axes.errorbar(
            np.zeros(len(y)),
            y + 0.2 + 0.2 * (k + 1) / (len(perturbed) + 1),
            xerr=errors,
            fmt="none",
            ecolor=COLOURS[(k + 2) % len(COLOURS)],
            elinewidth=1.0,
            capsize=2.0,
            label=f"{fitting([name], 24)[0]}: root mean square error",
        )
    axes.set_yticks(y, fitting(names, 34))
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.tick_params(axis="y", length=0)
