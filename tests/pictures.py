"""What can be seen in a figure: whether its texts have room, and what its legends name."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def texts(figure: Figure) -> list[tuple[Text, Bbox]]:
    """All texts that are drawn, with their places in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if not low - slack <= tick.get_loc() <= high + slack:
                    hidden |= {tick.label1, tick.label2}
    return [
        (text, text.get_window_extent(canvas.get_renderer()))
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text.get_visible()
        and text.get_text().strip()
        and text not in hidden
    ]


def collisions(figure: Figure) -> list[str]:
    """What is cut off, the pairs of texts that overlap, and legends of what is not drawn."""
    found = texts(figure)
    width, height = figure.bbox.width, figure.bbox.height
    bad = [
        f"cut off: {text.get_text()}"
        for text, box in found
        if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1
    ]
    for (one, a), (other, b) in combinations(found, 2):
        slanted = one.get_rotation() == other.get_rotation() == 45
        if slanted:  # side by side, at the ends of their lines
            size = float(one.get_fontsize()) * figure.dpi / 72
            overlap = abs(a.x1 - b.x1) * math.sin(math.radians(45)) < 0.95 * size
        else:
            overlap = bool(a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1)
            overlap &= one.get_rotation() != 45 and other.get_rotation() != 45
        if overlap:
            bad.append(f"{one.get_text()!r} over {other.get_text()!r}")
    return bad + unseen(figure)


def unseen(figure: Figure) -> list[str]:
    """What a legend names, and nobody sees: the panel is the same without it."""
    FigureCanvasAgg(figure).draw()
    keys = [*figure.legends, *(one for axes in figure.axes if (one := axes.get_legend()))]
    bad = []
    for key in keys:
        handles = list(key.legend_handles)
        alike = len({to_hex(_face(one)) for one in handles if isinstance(one, Patch)}) < 2
        for handle, text in zip(handles, key.get_texts(), strict=True):
            label = text.get_text()
            named = [(axes, one) for axes in figure.axes for one in _labelled(axes, label)]
            if not named and isinstance(handle, Patch):  # a sample of tiles
                named = [
                    (axes, one)
                    for axes in figure.axes
                    for one in axes.patches
                    if (
                        one.get_hatch() == handle.get_hatch()
                        if alike
                        else _face(one) == _face(handle)
                    )
                ]
            if not any(_changes(figure, axes, one) for axes, one in named):
                bad.append(f"in the legend and not in the plot: {label}")
    return bad


def _face(patch: Any) -> Any:
    return tuple(patch.get_facecolor())


def _labelled(axes: Axes, label: str) -> list[Any]:
    """The artists of a panel that have a label, those of containers one by one."""
    found = [one for one in axes.get_children() if one.get_label() == label]
    for container in axes.containers:
        if container.get_label() == label:
            found += container.get_children()
    return found


def _changes(figure: Figure, axes: Axes, artist: Any) -> bool:
    """Whether at least a few pixels of a panel are others without an artist."""
    pictures = []
    for visible in (True, False):
        artist.set_visible(visible)
        canvas = RendererAgg(*figure.bbox.size, figure.dpi)
        axes.draw(canvas)
        pictures.append(np.asarray(canvas.buffer_rgba()).astype(int))
    artist.set_visible(True)
    return int((np.abs(pictures[0] - pictures[1]).max(axis=-1) > 8).sum()) >= 8


def ticks(figure: Figure, axis: str) -> list[str]:
    """The labels along an axis of the first panel, in order."""
    one = figure.axes[0].xaxis if axis == "x" else figure.axes[0].yaxis
    own = {tick.label1 for tick in [*one.get_major_ticks(), *one.get_minor_ticks()]}
    along = [
        (box.x0 if axis == "x" else box.y0, text) for text, box in texts(figure) if text in own
    ]
    return [text.get_text() for _, text in sorted(along, key=lambda one: one[0])]


def legend(figure: Figure) -> list[str]:
    """The texts of the first legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def title(figure: Figure) -> str:
    """The remark above the first panel, in one line."""
    return figure.axes[0].get_title(loc="left").replace("\n", " ")


def patches(figure: Figure, kind: type) -> list[Any]:
    """The bars, tiles or steps of the first panel."""
    return [one for one in figure.axes[0].patches if isinstance(one, kind)]
