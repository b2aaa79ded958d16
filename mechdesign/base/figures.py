"""The look of figures: colours, panels, ticks that have room, labels that fit.

This loads matplotlib: it is imported where something is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from textwrap import fill
from threading import RLock
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib import dates, rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.collections import Collection
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.rcsetup import cycler
from matplotlib.textpath import text_to_path
from matplotlib.ticker import (
    FixedLocator,
    Formatter,
    Locator,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from mechdesign.base.numbers import Floats
from mechdesign.base.text import printable

#: Okabe and Ito's palette, which colour-blind readers can tell apart.
#:
#: It is without its yellow, which is faint on white. The lengths of colours and markers are
#: coprime, so no two of the first 56 series look alike.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.3)), (0, (5, 1.5, 1, 1.5)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "oooo")

#: What is estimated, the truth where it is known, and the error of the estimate.
ESTIMATE, TRUTH, BAND = COLOURS[0], COLOURS[1], COLOURS[5]

GRID, MUTED = "0.9", "0.45"  #: Greys: of lines behind the data, and of what is set apart from them.


def look(series: int) -> dict[str, Any]:
    """Return how one of several series looks: no two are told apart by colour alone.

    The result are the arguments ``color``, ``marker`` and ``linestyle`` of
    `matplotlib.axes.Axes.plot`.

    Parameters
    ----------
    series : int
        Its number, from 0; the first 56 look different.

    Raises
    ------
    ValueError
        A number below 0.

    Examples
    --------
    >>> look(0)
    {'color': '#0072B2', 'marker': 'o', 'linestyle': '-'}
    """
    if series < 0:
        raise ValueError(f"series are counted from 0, got {series}")
    return {
        "color": COLOURS[series % len(COLOURS)],
        "marker": MARKERS[series % len(MARKERS)],
        "linestyle": DASHES[series % len(DASHES)],
    }


_LOOKS = [look(series) for series in range(len(COLOURS) * len(MARKERS))]

_LOCK = RLock()

#: What `style` sets of matplotlib's parameters: a dict, whose keys not all releases type alike.
#:
#: Fonts, and how large text is, are the user's.
STYLE: Any = {
    "axes.axisbelow": True,
    "axes.formatter.limits": (-4, 7),  # plain numbers, with no factor at the end of the axis
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.prop_cycle": cycler(**{name: [entry[name] for entry in _LOOKS] for name in _LOOKS[0]}),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.titlesize": "medium",
    "grid.color": GRID,
    "legend.fontsize": "medium",
    "legend.frameon": False,
    "legend.handlelength": 2.8,  # dashes are seen
    "lines.markerfacecolor": "none",  # what is below remains seen
    "lines.markersize": 5.0,
    "pdf.fonttype": 42,  # texts are texts, in the font itself
    "savefig.dpi": 200,
}


@contextmanager
def style() -> Iterator[None]:
    """Figures that are made within look like ours, as ``with mechdesign.plot.style():``.

    Series are in colours that colour-blind readers can tell apart, and differ in markers and dashes
    too (`look`); of many points mark some, ``plot(x, y, markevery=0.05)``, or none, ``marker=""``.
    Behind them is a light grid, around them no frame. Panels have room for their texts, all of one
    size. Pictures are saved with 200 dots an inch, or as vectors; the texts of a PDF can be
    searched. Fonts and their size remain those of ``matplotlib.rcParams``, where everything is
    afterwards as it was. Threads take turns, as these settings belong to the whole process. It
    decorates functions, too: ``@style()``.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> with style():
    ...     figure = Figure()
    ...     axes = figure.add_subplot(xlabel="privacy loss epsilon", ylabel="error")
    ...     for factor in (1, 2):
    ...         line = axes.plot([0.5, 1.0, 2.0], [4 * factor, 2 * factor, factor])
    >>> axes.lines[1].get_color(), axes.lines[1].get_marker(), axes.spines["top"].get_visible()
    ('#D55E00', 's', False)
    """
    with _LOCK, rc_context(STYLE):
        yield


def panel(
    xlabel: str,
    ylabel: str = "",
    width: float = 6.4,
    height: float = 4.0,
    grid: Literal["both", "x", "y"] = "both",
) -> tuple[Figure, Axes]:
    """A figure with one panel: a light grid behind the data, and no frame."""
    with style(), rc_context({"axes.grid.axis": grid}):
        figure = Figure(figsize=(width, height))
        axes = figure.add_subplot()
    axes.set_xlabel(printable(xlabel), parse_math=False)
    axes.set_ylabel(printable(ylabel), parse_math=False)
    mark_numbers(axes.xaxis)
    axes.yaxis.set_major_formatter(PlainNumbers())
    return figure, axes


def text_size(text: str, size: float | str | None = None) -> tuple[float, float]:
    """The width and the height of a line of text, in points."""
    chosen = rcParams["xtick.labelsize"] if size is None else size
    return _text_size(text, chosen, *rcParams["font.family"], *rcParams["font.sans-serif"])


@lru_cache(maxsize=4096)  # a figure is laid out several times
def _text_size(text: str, size: float | str, *fonts: str) -> tuple[float, float]:
    """The same; fonts are those that users have chosen for all figures."""
    font = FontProperties(size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width), 1.2 * float(font.get_size_in_points())


class PlainNumbers(Formatter):
    """Ticks as plain numbers: 0.025, 1,500,000. No factor is moved to the end of an axis."""

    # Those at equal steps have as many decimals as any of them needs, others only their own.

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """The labels of all ticks of an axis."""
        exact = [self._exact(value) for value in values]
        decimals = [len(text.partition(".")[2]) if "e" not in text else 0 for text in exact]
        steps = np.diff(values)
        if np.allclose(steps, steps[:1], atol=0):
            decimals = [max(decimals, default=0)] * len(exact)
        return [
            self._text(text, float(text) + 0.0, places)  # + 0.0: no negative zero
            for text, places in zip(exact, decimals, strict=True)
        ]

    @staticmethod
    def _exact(value: float) -> str:
        text = f"{value:.12g}"
        if "e-" in text and abs(value) >= 1e-6:  # 0.00005 beside 0.0001
            text = f"{value:.16f}".rstrip("0")
        return text

    @staticmethod
    def _text(exact: str, value: float, places: int) -> str:
        plain = exact if "e" in exact and value else f"{value:,.{places}f}"
        return plain.replace("-", "\N{MINUS SIGN}")

    def __call__(self, value: float, place: int | None = None) -> str:
        """The label of one number."""
        return self.format_ticks([value])[0]


class SpacedTicks(Locator):
    """The densest of several choices of ticks whose labels have room beside each other.

    The densest is first; the last is taken if none has room. At ``end`` numbers end, and the axis
    goes on with something else.
    """

    def __init__(self, choices: Sequence[Locator], end: float = np.inf) -> None:
        self._choices, self._end = choices, end

    def __call__(self) -> list[float]:
        """The ticks of the axis as it is now."""
        assert isinstance(self.axis, Axis)
        low, high = sorted(self.axis.get_view_interval())
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """The ticks between two numbers."""
        ticks = np.zeros(0)
        for choice in self._choices:
            ticks = np.asarray(choice.tick_values(vmin, min(vmax, self._end)), dtype=np.float64)
            ticks = ticks[(ticks >= vmin) & (ticks <= min(vmax, self._end))]
            if len(ticks) > 1 and self._have_room(ticks):
                break
        return ticks.tolist()

    def _have_room(self, ticks: Floats) -> bool:
        axis = self.axis
        assert isinstance(axis, Axis)
        labels = axis.get_major_formatter().format_ticks(ticks.tolist())
        size = axis.get_major_ticks(1)[0].label1.get_fontsize()
        sizes = np.array([text_size(label, size) for label in labels])
        figure = axis.axes.get_figure(root=True)
        assert figure is not None
        box = axis.axes.bbox
        across = isinstance(axis, XAxis)
        pixels = box.width if across else box.height
        ends = axis.get_transform().transform(np.array(axis.get_view_interval()))
        places = axis.get_transform().transform(ticks) / abs(ends[1] - ends[0])
        steps = np.abs(np.diff(places)) * pixels / figure.dpi * 72
        taken = (sizes[:-1, 0] + sizes[1:, 0]) / 2 if across else sizes[1:, 1]
        gap = 1.5 * text_size("0", size)[0]
        return bool((steps >= taken + gap).all())


def mark_numbers(
    axis: Axis,
    *first_choices: Sequence[float],
    whole: bool = False,
    logarithmic: bool = False,
    most: int = 10,
    end: float = np.inf,
) -> None:
    """Mark round numbers on an axis, as many as have room.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        Of any scale.
    *first_choices : sequence of float
        Numbers to mark instead: the first of these choices that all have room.
    whole : bool, default False
        Only integers.
    logarithmic : bool, default False
        Powers of 10 and their first multiples, where there are some.
    most : int, default 10
        How many steps there may be.
    end : float, default inf
        Nothing is marked above it.
    """
    steps = [1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10]
    choices: list[Locator] = [
        MaxNLocator(count, steps=steps, integer=whole, min_n_ticks=1)
        for count in range(most, 0, -1)
    ]
    if logarithmic:
        choices = [
            LogLocator(base, subs, numticks=1000)
            for base, subs in ((10, (1, 2, 5)), (10, (1,)), (100, (1,)), (1000, (1,)))
        ] + choices
    choices = [FixedLocator(choice) for choice in first_choices] + choices
    axis.set_major_locator(SpacedTicks(choices, end))
    axis.set_major_formatter(PlainNumbers())
    axis.set_minor_formatter(NullFormatter())


def mark_dates(axis: Axis, first: float, last: float) -> None:
    """Mark dates on an axis, with labels that say no more than they must."""
    untyped: Any = dates
    locator = untyped.AutoDateLocator(minticks=3, maxticks=8)
    ticks = np.asarray(locator.tick_values(untyped.num2date(first), untyped.num2date(last)))
    axis.set_major_locator(FixedLocator(ticks[(ticks >= first) & (ticks <= last)].tolist()))
    axis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    axis.set_minor_locator(NullLocator())


def legend_above(figure: Figure) -> None:
    """A legend above the panel, in as many columns as the figure has room for."""
    handles, labels = legend_entries(figure)
    if not labels:
        return
    size = STYLE["legend.fontsize"]
    widths = np.array([text_size(label, size)[0] + 55.0 for label in labels])  # with a sample each

    def width(columns: int) -> float:
        return float(sum(part.max() for part in np.array_split(widths, columns)))

    room = 72.0 * figure.get_figwidth()
    columns = next((k for k in range(len(widths), 0, -1) if width(k) <= room), 1)
    with style():
        legend = figure.legend(handles, labels, loc="outside upper right", ncols=columns)
    for text in legend.get_texts():
        text.set_parse_math(False)


def legend_entries(figure: Figure) -> tuple[list[Any], list[str]]:
    """Return what a legend names: each label once, and none of what nobody sees."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            parts = handle.get_children() if isinstance(handle, Container) else [handle]
            if label not in entries and any(_is_seen(axes, part) for part in parts):
                entries[label] = handle
    return [*entries.values()], [*entries]


def _is_seen(axes: Axes, artist: Any) -> bool:
    """Whether an artist draws anything within its panel: not so NaN, or lines of no length."""
    axes.get_xlim(), axes.get_ylim()  # scales to what is drawn, if that is not done yet
    paths = artist.get_paths() if isinstance(artist, Collection) else [artist.get_path()]
    filled = isinstance(artist, Patch) and artist.get_fill()
    marked = isinstance(artist, Line2D) and artist.get_marker() not in ("", "None", None)
    for path in paths:
        places = artist.get_transform().transform_path(path).vertices
        places = places[np.isfinite(places).all(axis=1)]
        # A line may cross the panel though its ends are outside: a box around them is compared
        boxes = [(place, place) for place in places] if marked else []
        sides = np.ptp(places, axis=0) if len(places) else np.zeros(2)
        if (sides > 0).all() if filled else (sides > 0).any():
            boxes.append((places.min(axis=0), places.max(axis=0)))
        panel_box = axes.bbox.padded(1)
        if any((a <= panel_box.max).all() and (b >= panel_box.min).all() for a, b in boxes):
            return True
    return False


def caption_above(axes: Axes, text: str, width: int = 84) -> None:
    """A remark above the left end of a panel."""
    axes.set_title(fill(printable(text), width), fontsize=9, loc="left", parse_math=False)


def fitting(labels: Sequence[str], most: int) -> list[str]:
    """Labels cut to a length, and safe to print: at the end, or inside if they would look alike."""
    safe = [printable(label) for label in labels]
    cut = [text if len(text) <= most else text[: most - 1] + "…" for text in safe]
    if len(set(cut)) == len(set(safe)):
        return cut
    tail = (most - 1) // 2
    return [
        text if len(text) <= most else f"{text[: most - 1 - tail]}…{text[-tail:]}" for text in safe
    ]


def ink_on(colours: Floats) -> npt.NDArray[np.str_]:
    """Black or white, whichever is legible on each colour."""
    # Relative luminance, with the usual power law for sRGB; at 0.18 black and white contrast
    # equally.
    luminance = (colours[..., :3] ** 2.2) @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(luminance < 0.18, "white", "black")
