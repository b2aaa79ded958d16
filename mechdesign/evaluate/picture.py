"""Pictures of evaluations: errors against epsilon."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from mechdesign.base import legend_entries, listed, look, mark_numbers, printable, shown, style
from mechdesign.evaluate.measures import Summary

_ACROSS = 3  # panels in a row, at most


@style()
def errors_by_epsilon(summaries: Sequence[Summary], queries: str | None = None) -> Figure:
    """Errors against epsilon: see `mechdesign.evaluate.ErrorTable.plot`."""
    families = list(dict.fromkeys(summary.queries for summary in summaries))
    if not families:
        raise ValueError("nothing was measured: there is nothing to draw")
    family = families[0] if queries is None else queries
    if family not in families:
        raise ValueError(f"queries are {listed(families)}, got {shown(queries)}")
    rows = [summary for summary in summaries if summary.queries == family]
    names = list(dict.fromkeys(summary.protocol for summary in rows))
    populations = list(dict.fromkeys(summary.population for summary in rows))
    across = min(len(populations), _ACROSS)
    down = -(-len(populations) // across)
    figure = Figure(figsize=(3.4 * across + 1.6, 3.2 * down + 0.4))
    panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in panels[len(populations) :]:
        axes.set_visible(False)
    for place, (axes, population) in enumerate(zip(panels, populations, strict=False)):
        axes.set_title(printable(population), parse_math=False)
        axes.set(xscale="log", yscale="log")
        for number, name in enumerate(names):
            mine = sorted(
                (
                    summary
                    for summary in rows
                    if (summary.protocol, summary.population) == (name, population)
                ),
                key=lambda summary: summary.epsilon,
            )
            axes.errorbar(
                [summary.epsilon for summary in mine],
                [summary.error for summary in mine],
                yerr=2 * np.nan_to_num([summary.standard_error for summary in mine]),
                **look(number),
                label=name,
                capsize=2,
            )
        if place + across >= len(populations):
            axes.set_xlabel("privacy loss epsilon")
            axes.tick_params(labelbottom=True)
        if place % across == 0:
            axes.set_ylabel("root mean square error\n(fraction of the users)")
        mark_numbers(axes.xaxis, sorted({summary.epsilon for summary in rows}), logarithmic=True)
        mark_numbers(axes.yaxis, logarithmic=True)
    figure.legend(
        *legend_entries(figure),
        loc="outside upper center",
        ncols=min(len(names), 4),
        title=printable(family),
    )
    return figure
