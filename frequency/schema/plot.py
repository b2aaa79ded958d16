"""Figures of one attribute, or of labelled numbers: bars and distributions, in units.

All are `matplotlib.figure.Figure` objects, like those of `mechdesign.plot`, and draw numbers as
they are: estimates may be below 0, above 1, or fall where they should rise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from frequency.schema.attribute import Attribute
from frequency.schema.numeric import Ordered
from mechdesign.base import (
    BAND,
    COLOURS,
    ESTIMATE,
    MUTED,
    TRUTH,
    Floats,
    PlainNumbers,
    caption_above,
    fitting,
    legend_above,
    mark_dates,
    mark_numbers,
    panel,
    printable,
    text_size,
)

# ------------------------------------------------------------------------------------------------
# Numbers and dates along the axes of figures: what can be drawn, and where its ticks are.


#: The lower and the upper ends of intervals, one for each value.
Interval: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]


def finite(values: npt.ArrayLike, interval: Interval | None) -> tuple[Floats, Floats | None]:
    """Return values and the ends of their intervals, as they are drawn."""
    centre = np.asarray(values, dtype=np.float64)
    ends = None if interval is None else np.asarray(interval, dtype=np.float64)
    if ends is not None and ends.shape != (2, *centre.shape):
        raise ValueError(
            f"an interval has a low and a high end for each value, of shape {centre.shape}, got"
            f" shape {ends.shape}"
        )
    if not centre.size or not np.isfinite(centre).all():
        raise ValueError("there is nothing to draw: no reports, or values that are no numbers")
    if ends is not None and not np.isfinite(ends).all():
        raise ValueError("there is nothing to draw: intervals that are infinite")
    return centre, ends


def title(attribute: Attribute) -> str:
    """The title of an attribute, or else its name, with its unit unless that says it."""
    name = attribute.title or attribute.name
    return name if attribute.unit in ("", name) else f"{name} ({attribute.unit})"


def rounded(value: float) -> str:
    """A number in a caption, to three digits."""
    return PlainNumbers()(float(f"{value:.3g}"))


def are_dates(places: npt.ArrayLike) -> bool:
    """Whether places are of type datetime64."""
    return np.asarray(places).dtype.kind == "M"


def numbers(places: npt.ArrayLike) -> Floats:
    """Return places in units as numbers: of dates the days since 1970."""
    untyped: Any = dates
    return np.asarray(untyped.date2num(places) if are_dates(places) else places, dtype=np.float64)


def bin_edges(attribute: Ordered) -> Floats:
    """The edges of bins as numbers; a whole number with a bin of its own is in its middle."""
    cuts = numbers(attribute.cuts)
    return cuts - 0.5 if attribute.single and not are_dates(attribute.cuts) else cuts


def are_equal(widths: Floats) -> bool:
    """Whether bins are as wide as each other: nearly, as months are."""
    return bool(widths.max() <= 1.15 * widths.min())


def is_logarithmic(edges: npt.ArrayLike) -> bool:
    """Whether the ratios of bins are more alike than their widths, which differ much."""
    cuts = numbers(edges)
    if are_dates(edges) or cuts[0] <= 0:
        return False
    widths, ratios = np.diff(cuts), np.diff(np.log(cuts))
    return bool(widths.max() / widths.min() > max(10.0, ratios.max() / ratios.min()))


#: The most items, if no numbers, that are named along an axis: of more every second, or third.
MOST_NAMES = 40


def mark_labels(axis: Axis, places: Floats, labels: Sequence[str], inches: float) -> None:
    """Mark places with labels, each of which has about so much room across."""
    names = fitting(labels, 20)
    axis.set_ticks(places.tolist(), names, parse_math=False)
    axis.set_tick_params(length=0)
    widest = max(text_size(name)[0] for name in names) + text_size("0")[0]
    if axis is axis.axes.xaxis and widest > 72 * inches:
        slant(axis)


def slant(axis: Axis) -> None:
    """Turn the texts along an axis."""
    for label in axis.get_ticklabels():
        label.set(rotation=45, ha="right", rotation_mode="anchor")


def mark_units(
    axis: Axis, edges: npt.ArrayLike, end: float = np.inf, *, even: bool = False
) -> None:
    """Mark an axis in units."""
    cuts = numbers(edges)
    if are_dates(edges):
        mark_dates(axis, cuts[0], cuts[-1])
        return
    logarithmic = is_logarithmic(edges)
    # As `bin_edges` has whole numbers with bins of their own.
    in_middles = bool(((cuts + 0.5) % 1 == 0).all())
    choices: list[list[float]] = []
    if not logarithmic and not are_equal(np.diff(cuts)):
        most = len(cuts) if even else 1 + (len(cuts) < 14)
        choices = [cuts[::step].tolist() for step in range(1, most)]
    mark_numbers(
        axis,
        *choices,
        whole=in_middles or np.asarray(edges).dtype.kind in "iu",
        logarithmic=logarithmic,
        end=end,
    )


#: The width of the line of a distribution, and of the dots of its deciles, in points.
_LINE, _DOT = 1.6, 3.5

_WIDTH = 5.0  # about that of a panel, in inches

_BY_MODEL = "of the model, on average"  # the intervals within those that hold for each question

_SEEN = 1.0  # the distance from a line or a dot at which something is seen beside it, in points


def bars(
    labels: Sequence[str],
    values: npt.ArrayLike,
    interval: Interval | None = None,
    *,
    inner: Interval | None = None,
    measure: str = "fraction of the users",
    truth: npt.ArrayLike | None = None,
    largest: int | None = None,
    apart: int = 0,
    marks: Mapping[str, float] | None = None,
    confidence: float = 0.95,
    caption: str = "",
) -> Figure:
    """Draw a bar for each item, with its interval, and that of a model within it.

    Shapes: `values` (items,), `truth` (items,).
    """
    centre, ends = finite(values, interval)
    count = len(centre)
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if centre.ndim != 1 or len(labels) != count or (known is not None and known.shape != (count,)):
        raise ValueError(f"labels and truth must have one entry for each of the {count} items")
    if largest is not None and largest < 1:
        raise ValueError("there is nothing to draw: no items asked for")
    regular = count - apart
    chosen = np.arange(regular)
    if largest is not None:
        chosen = np.argsort(-centre[:regular], kind="stable")[:largest]
        if len(chosen) < regular:
            caption = f"the {len(chosen)} largest of {regular} items{caption and '; '}{caption}"
    height = np.arange(len(chosen) + apart, dtype=np.float64)
    height[len(chosen) :] += 0.5
    chosen = np.concatenate([chosen, np.arange(regular, count)])
    names = fitting([labels[k] for k in chosen.tolist()], 36)
    width = max(6.4, 5.0 + max(text_size(name)[0] for name in names) / 72)
    figure, axes = panel(measure, "", width, 1.4 + 0.22 * (height[-1] + 1), grid="x")
    axes.spines["left"].set_visible(False)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    shades = np.where(np.arange(len(chosen)) < len(chosen) - apart, BAND, "0.75")
    axes.barh(height, centre[chosen], height=0.62, color=shades, alpha=0.45)
    around = None if ends is None else ends[:, chosen]
    within = None if inner is None else np.asarray(inner)[:, chosen]
    _dotted(axes, (centre[chosen], height), "x", (around, within), confidence)
    if known is not None:
        axes.plot(
            known[chosen],
            height,
            "x",
            markersize=6,
            markeredgewidth=1.6,
            color=TRUTH,
            label="truth",
        )
    looks = cycle((("0.35", "--"), (COLOURS[2], "-."), (COLOURS[3], ":")))
    for (name, value), (colour, dashes) in zip((marks or {}).items(), looks, strict=False):
        axes.axvline(value, color=colour, linestyle=dashes, linewidth=1.2, label=name)
    axes.set_yticks(height, names, parse_math=False)
    for tick in axes.get_yticklabels()[len(chosen) - apart :]:
        tick.set_color(MUTED)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(height[-1] + 0.6, -0.6)
    caption_above(axes, caption)
    legend_above(figure)
    return figure


def groups(
    labels: Sequence[str],
    values: npt.ArrayLike,
    interval: Interval,
    *,
    inner: Interval | None = None,
    measure: str,
    title: str = "",
    confidence: float = 0.95,
    as_given: bool = False,
) -> Figure:
    """Draw a point with its interval for each group, in the order of their values or as given.

    Shapes: `values` (groups,).
    """
    centre, ends = finite(values, interval)
    assert ends is not None
    order = np.arange(len(centre)) if as_given else np.argsort(-centre, kind="stable")
    height = np.arange(len(order), dtype=np.float64)
    names = fitting([labels[k] for k in order.tolist()], 36)
    width = max(6.4, 5.0 + max(text_size(name)[0] for name in names) / 72)
    figure, axes = panel(measure, "", width, 1.4 + 0.22 * (height[-1] + 1), grid="x")
    axes.spines["left"].set_visible(False)
    within = None if inner is None else np.asarray(inner)[:, order]
    _dotted(axes, (centre[order], height), "x", (ends[:, order], within), confidence)
    axes.set_yticks(height, names, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(height[-1] + 0.6, -0.6)
    caption_above(axes, title)
    legend_above(figure)
    return figure


def cumulative(
    edges: npt.ArrayLike,
    values: npt.ArrayLike,
    interval: Interval | None = None,
    *,
    inner: Interval | None = None,
    xlabel: str,
    ylabel: str = "fraction at or below",
    whole: float = 1.0,
    steps: bool = False,
    labels: Sequence[str] = (),
    truth: npt.ArrayLike | None = None,
    quantiles: tuple[npt.ArrayLike, npt.ArrayLike, Interval | None] | None = None,
    confidence: float = 0.95,
    caption: str = "",
) -> Figure:
    """A cumulative distribution with its band and quantiles.

    Within a bin the line is straight in units; the band there reaches from the interval of its
    lower edge to that of its upper one, and so holds however values lie within bins.
    Shapes: `edges` (bins + 1,), `values` (bins,), `truth` (bins,), `labels` of bins (bins,) if they
    have no units.
    """
    heights, ends = finite(values, interval)
    cuts = _edges(edges, len(heights))
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if known is not None and known.shape != heights.shape:
        raise ValueError(
            f"truth must have one entry for each of the {len(heights)} items, got shape"
            f" {known.shape}"
        )
    figure, axes = panel(xlabel, ylabel)
    _mark_bins(axes, edges, labels)
    for level in (0.0, whole):
        axes.axhline(level, color=MUTED, linewidth=0.8)
    bands = []
    for part in (ends, None if inner is None else np.asarray(inner)):
        if part is not None:
            low, high = part
            if not steps:
                low = np.concatenate([[0.0], low[:-1]])
            shade: dict[str, Any] = {"color": BAND, "alpha": 0.4, "linewidth": 0}
            bands.append(axes.stairs(high, cuts, baseline=low, fill=True, **shade))
    shown: dict[str, Any] = {"color": ESTIMATE, "linewidth": _LINE, "linestyle": "-"}
    line = _risen(axes, cuts, heights, steps, **shown, label="estimate")
    if known is not None:
        shown = {"color": TRUTH, "linewidth": 1.2, "linestyle": "--"}
        _risen(axes, cuts, known, steps, **shown, label="truth")
    if quantiles is not None:
        levels, places, around = quantiles
        at = numbers(places)
        if around is not None:
            sides = numbers(around[0]), numbers(around[1])
            axes.hlines(levels, *sides, color="black", linewidth=1.2)
        (dots,) = axes.plot(at, levels, "o", markersize=_DOT, color="black", label="deciles")
    axes.set_xlim(cuts[0], cuts[-1])
    axes.margins(y=0.03)
    if ends is not None:
        if _is_beside_line(axes, cuts, heights, ends, steps):
            bands[0].set_label(f"{confidence:.0%} band")
            if inner is not None:
                bands[1].set_label(_BY_MODEL)
        else:
            line.set_label(f"estimate, with a {confidence:.0%} band thinner than the line")
    if quantiles is not None and around is not None:
        dots.set_label(_with_intervals("deciles", axes, "x", (at, sides), _DOT, confidence))
    remarks = (caption, _against_noise(heights, whole))
    caption_above(axes, "; ".join(filter(None, remarks)))
    legend_above(figure)
    return figure


def histogram(
    edges: npt.ArrayLike,
    values: npt.ArrayLike,
    interval: Interval | None = None,
    *,
    inner: Interval | None = None,
    xlabel: str,
    measure: str = "fraction of the users",
    unit: str = "",
    labels: Sequence[str] = (),
    confidence: float = 0.95,
    caption: str = "",
) -> Figure:
    """The bins of a distribution: their values, or densities where their widths differ.

    Shapes: `edges` (bins + 1,), `values` (bins,), `labels` of bins (bins,) if they have no units.
    """
    heights, ends = finite(values, interval)
    cuts = _edges(edges, len(heights))
    figure, axes = panel(xlabel)
    _mark_bins(axes, edges, labels)
    scaled = np.log10(cuts) if axes.get_xscale() == "log" else cuts
    widths, centre = np.diff(scaled), (scaled[1:] + scaled[:-1]) / 2
    if axes.get_xscale() == "log":
        centre, per = 10**centre, "per factor of 10"
    else:
        per = "per day" if are_dates(edges) else f"per unit{unit and ' ('}{unit}{unit and ')'}"
    if are_equal(widths):
        widths, ylabel = np.ones(len(widths)), f"{measure}, each bin"
    else:
        ylabel = f"{measure} {per}"
    axes.set_ylabel(printable(ylabel), parse_math=False)
    heights = heights / widths
    axes.axhline(0, color=MUTED, linewidth=0.8)
    axes.stairs(heights, cuts, fill=True, color=BAND, alpha=0.45)
    size = min(4.5, max(1.5, 120 / len(centre)))
    around = None if ends is None else ends / widths
    within = None if inner is None else np.asarray(inner) / widths
    _dotted(axes, (centre, heights), "y", (around, within), confidence, size)
    axes.set_xlim(cuts[0], cuts[-1])
    caption_above(axes, caption)
    legend_above(figure)
    return figure


def _mark_bins(axes: Axes, edges: npt.ArrayLike, labels: Sequence[str]) -> None:
    if labels:
        cuts, every = numbers(edges), -(-len(labels) // MOST_NAMES)
        middles = ((cuts[1:] + cuts[:-1]) / 2)[::every]
        mark_labels(axes.xaxis, middles, labels[::every], _WIDTH / len(middles))
        return
    axes.set_xscale("log" if is_logarithmic(edges) else "linear")
    mark_units(axes.xaxis, edges)


def _edges(edges: npt.ArrayLike, bins: int) -> Floats:
    cuts = numbers(edges)
    if cuts.shape != (bins + 1,) or not (np.diff(cuts) > 0).all():
        raise ValueError(f"{bins} bins have {bins + 1} edges, ascending, got shape {cuts.shape}")
    return cuts


def _dotted(
    axes: Axes,
    points: tuple[Floats, Floats],
    along: str,
    around: tuple[Floats | None, Floats | None],
    confidence: float,
    size: float = 4.5,
) -> None:
    """Draw estimates as points, with their intervals along an axis, and those of a model."""
    (ends, inner), centre = around, points[along == "y"]

    def off(ends: Floats | None) -> dict[str, Any]:
        if ends is None:
            return {}
        return {f"{along}err": np.maximum([centre - ends[0], ends[1] - centre], 0.0)}

    x, y = points
    look: dict[str, Any] = {"color": ESTIMATE, "elinewidth": 1.6 * size / 4.5, "label": "estimate"}
    drawn = axes.errorbar(x, y, fmt="o", markersize=size, **look, **off(ends))
    if inner is not None:
        thick: dict[str, Any] = {"elinewidth": size, "alpha": 0.45, "label": _BY_MODEL}
        axes.errorbar(x, y, fmt="none", ecolor=ESTIMATE, **thick, **off(inner))
    if ends is not None:
        label = _with_intervals("estimate", axes, along, (centre, ends), size, confidence)
        drawn.set_label(label)


def _with_intervals(
    name: str, axes: Axes, along: str, around: tuple[Floats, Any], size: float, confidence: float
) -> str:
    """The label of dots with intervals; where all dots hide theirs it says so."""
    centre, (low, high) = around
    inches = _inches(axes, along, low), _inches(axes, along, centre), _inches(axes, along, high)
    beside = max((inches[1] - inches[0]).max(), (inches[2] - inches[1]).max())
    if 72 * beside > size / 2 + _SEEN:
        return f"{name}, {confidence:.0%} interval{'s' * name.endswith('s')}"
    many = name.endswith("s")
    return f"{name}, {confidence:.0%} interval{'s' * many} within the dot{'s' * many}"


def _is_beside_line(axes: Axes, cuts: Floats, heights: Floats, ends: Floats, steps: bool) -> bool:
    """Whether the band of a distribution is seen anywhere beside its line."""
    right, up = np.diff(_inches(axes, "x", cuts)), np.diff(_inches(axes, "y", heights), prepend=0.0)
    up[0] = 0.0 if steps else up[0] - _inches(axes, "y", np.zeros(1))[0]
    beside = np.maximum(
        _inches(axes, "y", ends[1]) - _inches(axes, "y", heights),
        _inches(axes, "y", heights) - _inches(axes, "y", ends[0]),
    )
    # Between two edges the band begins where the line was at the one before
    beside += 0.0 if steps else np.abs(up)
    # Across the line where that is steep, not upwards
    return bool((72 * beside * right / np.hypot(right, up)).max() > _LINE / 2 + _SEEN)


def _inches(axes: Axes, along: str, places: npt.ArrayLike) -> Floats:
    """Return places along an axis, on paper: nearly, as the panel is laid out when it is drawn."""
    values = np.asarray(places, dtype=np.float64)
    (left, _), (low, _), side = axes.get_xlim(), axes.get_ylim(), int(along == "y")
    both = np.array([np.full(len(values), left), np.full(len(values), low)])
    both[side] = values
    figure = axes.get_figure(root=True)
    assert figure is not None
    return axes.transData.transform(both.T)[:, side] / figure.dpi


def _against_noise(heights: Floats, whole: float) -> str:
    """Return what noise makes of a curve that should rise from 0 to the whole, as a note."""
    slack = 1e-9 * whole
    does = [
        text
        for text, is_so in (
            ("fall in places", (np.diff(heights) < -slack).any()),
            ("go below 0", heights.min() < -slack),
            (f"rise above {rounded(whole)}", heights.max() > whole + slack),
        )
        if is_so
    ]
    if not does:
        return ""
    *others, last = does
    return (
        f"noise makes the estimated curve {', '.join(others)}{' and ' if others else ''}{last};"
        " the true curve cannot"
    )


def _risen(axes: Axes, cuts: Floats, heights: Floats, steps: bool, **look: Any) -> Any:
    """A line through what is reached at the upper edges of bins, or at their lower ones."""
    if steps:
        return axes.stairs(heights, cuts, baseline=None, **look)
    # On a logarithmic axis a straight line in units is curved
    fine = 16 if axes.get_xscale() == "log" else 1
    parts = np.linspace(0, len(heights), fine * len(heights) + 1)
    at = np.arange(len(cuts))
    reached = np.concatenate([[0.0], heights])
    return axes.plot(np.interp(parts, at, cuts), np.interp(parts, at, reached), marker="", **look)[
        0
    ]
