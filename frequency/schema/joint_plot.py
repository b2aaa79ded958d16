"""Figures of several attributes: heat maps and maps of two, and mosaics of two or three.

They are `matplotlib.figure.Figure` objects, like those of `mechdesign.plot`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import scipy
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.scale import FuncScale
from matplotlib.ticker import FixedFormatter, FixedLocator

from frequency.core import Answer, of_each, place_of
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.schema.attribute import COUNTED, Attribute, ItemAttribute
from frequency.schema.numeric import Dates, Numeric, Ordered, Ordinal
from frequency.schema.plot import (
    MOST_NAMES,
    Interval,
    are_dates,
    are_equal,
    bars,
    bin_edges,
    cumulative,
    finite,
    histogram,
    mark_labels,
    mark_units,
    rounded,
    slant,
    title,
)
from mechdesign.base import (
    COLOURS,
    HATCHES,
    MUTED,
    Between,
    Floats,
    PlainNumbers,
    caption_above,
    fitting,
    ink_on,
    legend_above,
    listed,
    mark_numbers,
    panel,
    printable,
    shown,
    style,
    text_size,
)

MOST_PARTS = 8  #: The most parts that a tile of a mosaic is divided into.

MOST_COLUMNS = 16  #: The largest number of columns of a mosaic.

# The least size of tiles seen between white edges: in the panel's height and width.
_LEAST_SIDE = 0.006

_ACROSS, _UP = 4.6, 4.0  #: The least length of the axes of cells, in inches.

_BLACK = COLOURS[4]
# The colours of tiles, the dark ones last.
_TILES = (*(colour for colour in COLOURS if colour != _BLACK), MUTED, _BLACK)

_MOST_DATES = 24  # of so many dates each has its name beside its cells

_BLANK = "0.9"  # the colour of what is within the noise

# Names of attributes that are places, across and up: on the Earth in degrees, or in one unit.
_DEGREES = (r"lon|lng|long|longitude", r"lat|latitude")
_PLANE = (r"x|east|easting|eastings", r"y|north|northing|northings")

_KM_OF_DEGREE = 111.2  # of latitude

# The colours, from light to dark.
_SHADES = ListedColormap(colormaps["YlGnBu"](np.linspace(0.1, 1, 256)), "shades")


def heat_map(
    attributes: Sequence[ItemAttribute],
    values: npt.ArrayLike,
    interval: Interval | None = None,
    *,
    measure: str = "fraction of the users",
    confidence: float = 0.95,
    caption: str = "",
    aspect: float | None = None,
) -> Figure:
    """A cell for each pair of items, by colour; blank where its interval reaches 0.

    Intervals must hold for all cells at once: of many empty ones some would else be coloured by
    chance. All bins are as wide as each other, whatever their widths in units; but with an aspect
    they are at scale, and a unit up is so many times as long as one across.
    """
    table, ends = finite(values, interval)
    _fits(table, [each.size if aspect is None else each.bins for each in attributes])
    if len(attributes) != 2:
        raise ValueError(f"a heat map is of two attributes, not of {len(attributes)}")
    first, second = attributes
    # Longer where many names need room: across they are slanted
    wide = max(_ACROSS, 0.24 * _named(first))
    high = max(_UP, 0.19 * _named(second))
    if aspect is not None:
        assert isinstance(first, Ordered)
        assert isinstance(second, Ordered)
        across, up = bin_edges(first), bin_edges(second)
        ratio = float(np.ptp(up) / np.ptp(across)) * aspect
        wide, high = min(wide, 1.5 * _UP / ratio), min(1.5 * _UP, wide * ratio)
    figure, axes = panel(title(first), title(second), max(wide, 3.4) + 2.2, max(high, 2) + 1.2)
    axes.grid(False)
    blank = table <= 0 if ends is None else ends[0] <= 0
    seen = table[~blank]
    if aspect is None:
        across, up = _laid_out(axes.xaxis, first, wide), _laid_out(axes.yaxis, second, high)
    else:
        axes.set(aspect=aspect, xlim=across[[0, -1]], ylim=up[[0, -1]])
        mark_numbers(axes.xaxis)
        mark_numbers(axes.yaxis)
    if blank.any():
        together = f" for all {table.size:,} cells at once" if table.size > 1 else ""
        noise = f"within the noise: {confidence:.0%} intervals{together} reach 0"
        corner, sides = (across[0], up[0]), (np.ptp(across), np.ptp(up))
        label = "not above 0" if ends is None else noise
        axes.add_patch(Rectangle(corner, *sides, facecolor=_BLANK, linewidth=0, label=label))
    most = float(seen.max(initial=0.0))
    image = _coloured(axes, across, up, np.ma.masked_array(table, blank).T, most)
    if seen.size:
        figure.colorbar(image, ax=axes, label=measure, format=PlainNumbers(), shrink=0.9)
    else:
        nothing = "no cell can be told from 0: ask for fewer items, or wider bins"
        caption = f"{caption}{caption and '; '}{nothing}"
    if max(table.shape) < 16:
        _print_values(axes, across, up, table, np.where(blank, MUTED, ink_on(image.to_rgba(table))))
    caption_above(axes, caption, 66 if aspect is None else round(14 * wide))
    legend_above(figure)
    return figure


def maps(
    corners: Floats,
    panels: Mapping[str, Floats],
    labels: tuple[str, str],
    aspect: float,
    measure: str,
) -> Figure:
    """Draw cells at places of the plane, by colour: a panel for each table, of one colour scale.

    Shapes: `corners` (across + 1, along + 1, 2), `panels` (across, along).
    """
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    across, up = (high - low) * [1.0, aspect]
    height = min(max(4.8 * up / across, 2.2), 6.4)
    width = max(height * across / up, 2.2) + 0.4
    most = max(float(np.max(table)) for table in panels.values())
    with style(), rc_context({"axes.grid": False}):
        figure = Figure(figsize=(width * len(panels) + 1.9, height + 0.8))
        all_axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (name, table) in zip(all_axes, panels.items(), strict=True):
        image = _coloured(axes, corners[..., 0], corners[..., 1], table, most)
        axes.set_aspect(aspect)
        axes.set_xlabel(printable(labels[0]), parse_math=False)
        mark_numbers(axes.xaxis)
        mark_numbers(axes.yaxis)
        axes.set_title(printable(name), fontsize="medium", loc="left", parse_math=False)
    all_axes[0].set_ylabel(printable(labels[1]), parse_math=False)
    figure.colorbar(image, ax=list(all_axes), label=measure, format=PlainNumbers(), shrink=0.9)
    return figure


def _coloured(axes: Axes, x: Floats, y: Floats, table: Floats, most: float) -> Any:
    """Cells of a panel without a frame, by colour: from 0 to the most, which may be none."""
    axes.spines[:].set_visible(False)
    top = most if most > 0 else 1.0
    return axes.pcolormesh(x, y, table, cmap=_SHADES, vmin=0.0, vmax=top, rasterized=True)


def _every(attribute: ItemAttribute) -> int:
    """Return which of the items are named: 1 for all."""
    return -(-attribute.bins // MOST_NAMES)


def _has_units(attribute: Attribute) -> bool:
    """Whether an axis of it is marked by numbers or dates, and not by labels."""
    return isinstance(attribute, Ordered) and not isinstance(attribute, Ordinal)


def _is_marked(attribute: Attribute) -> bool:
    """Whether cells along an axis are marked at their ends: few months and years have names."""
    return _has_units(attribute) and not (
        isinstance(attribute, Dates) and attribute.bins <= _MOST_DATES
    )


def _named(attribute: ItemAttribute) -> int:
    """Return how many names an axis must have room for: numbers without room are left out."""
    if _is_marked(attribute):
        return 0
    return -(-attribute.bins // _every(attribute)) + len(attribute.extra)


def _laid_out(axis: Axis, attribute: ItemAttribute, inches: float) -> Floats:
    """The edges of an attribute's cells along an axis that is about so long, with ticks."""
    bins, extra, across = attribute.bins, len(attribute.extra), _is_across(axis)
    gap, wide = 0.03 * bins, max(1.0, 0.07 * bins)
    # Items that are no bins come after a gap, and are wide enough for their labels
    starts = np.concatenate([np.arange(bins), bins + gap + wide * np.arange(extra)])
    ends = starts + np.repeat([1.0, wide], [bins, extra])
    if isinstance(attribute, Ordered) and _is_marked(attribute):
        starts, ends = _scaled(axis, attribute, starts, ends)
        mark_units(axis, attribute.cuts, ends[bins - 1], even=True)
        axis.set_minor_locator(FixedLocator(((starts + ends) / 2)[bins:].tolist()))
        axis.set_minor_formatter(FixedFormatter(list(attribute.extra)))
        axis.set_tick_params(which="minor", length=0, labelcolor=MUTED)
        if across:  # upright, and below the numbers
            axis.set_tick_params(which="minor", labelrotation=90, pad=17)
    else:
        every = _every(attribute)
        shown = [*range(0, bins, every), *range(bins, bins + extra)]
        names = [attribute.item_labels[k] for k in shown]
        mark_labels(axis, ((starts + ends) / 2)[shown], names, inches * every / ends[-1])
        axis.set_inverted(not across)
    edges = np.append(starts, ends[-1])
    if extra:
        span = axis.axes.axvspan if across else axis.axes.axhspan
        span(ends[bins - 1], starts[bins], facecolor="white", zorder=2)
        edges[bins] = ends[bins - 1]
    return edges


def _scaled(axis: Axis, attribute: Ordered, *places: Floats) -> list[Floats]:
    """Return places in units, on a scale where all bins are as wide as each other."""
    cuts, end = bin_edges(attribute), places[-1][-1]
    widths = np.diff(cuts)
    # Straight on beyond both ends, where matplotlib looks too
    known = np.concatenate([cuts[:1] - widths[0], cuts, cuts[-1:] + widths[-1] * (end + 1)])
    at = np.concatenate([[-1.0], np.arange(len(cuts)), [len(cuts) + end]])

    def to_places(values: Any) -> Any:
        return np.interp(values, known, at)

    def to_units(place: Any) -> Any:
        return np.interp(place, at, known)

    name = "x" if _is_across(axis) else "y"
    scale = FuncScale(axis, (to_places, to_units))
    axis.axes.set(**{f"{name}lim": to_units([0.0, end]), f"{name}scale": scale})
    return [to_units(place) for place in places]


def _print_values(
    axes: Axes, across: Floats, up: Floats, table: Floats, ink: npt.NDArray[np.str_]
) -> None:
    """The values in their cells, if all have room."""
    digits = min(max(2 - math.floor(math.log10(np.abs(table).max() or 1.0)), 0), 6)
    texts = [f"{value:,.{digits}f}".replace("-", "\N{MINUS SIGN}") for value in table.flat]
    if max(text_size(text, 8)[0] for text in texts) > 72 * 4.2 / len(across):
        return
    for (i, j), text in zip(np.ndindex(table.shape), texts, strict=True):
        x, y = (across[i] + across[i + 1]) / 2, (up[j] + up[j + 1]) / 2
        axes.text(x, y, text, ha="center", va="center", fontsize=8, color=ink[i, j])


def mosaic(
    attributes: Sequence[ItemAttribute],
    values: npt.ArrayLike,
    interval: Interval | None = None,
    *,
    measure: str = "fraction of the users",
    confidence: float = 0.95,
    caption: str = "",
) -> Figure:
    """A tile for each combination of items, whose area is its share, of `values` (items of each).

    Columns are as wide as the shares of the first attribute's items; each is divided by the shares
    of the second's within it, and these by those of the third's. What is below 0 is drawn as 0, and
    the rest is made to sum to 1; the caption says how much that changed.
    """
    table, ends = finite(values, interval)
    _fits(table, [attribute.size for attribute in attributes])
    if len(attributes) not in (2, 3):
        raise ValueError(f"a mosaic is of two or three attributes, not of {len(attributes)}")
    for attribute, most in zip(attributes, (MOST_COLUMNS, MOST_PARTS, MOST_PARTS), strict=False):
        if attribute.size > most:
            raise ValueError(
                f"{printable(attribute.name)} has {attribute.size} items, and a mosaic shows at"
                f" most {most} of them: draw a heat map of two attributes"
            )
    drawn = np.maximum(table, 0.0)
    if not drawn.sum() > 0:
        raise ValueError("there is nothing to draw: no value is above 0")
    drawn /= drawn.sum()
    remarks = [caption, _changed(table, measure)]
    if ends is not None:
        most_off = float(np.maximum(ends[1] - table, table - ends[0]).max())
        off = _amount(most_off, measure)
        remarks.append(f"{confidence:.0%} interval of each tile: ± {off} at most")
    figure, axes = panel(title(attributes[0]), "share within each column", 6.8, 4.8)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    shares = drawn.sum(axis=tuple(range(1, drawn.ndim)))
    left = np.concatenate([[0.0], np.cumsum(shares)])
    seen: set[tuple[int, int]] = set()
    for x, width, column in zip(left, shares, drawn, strict=False):
        if width > 0:
            seen |= _divide(axes, x, width, (column / width).reshape(len(column), -1))
    _name_columns(axes, (left[1:] + left[:-1]) / 2, attributes[0].item_labels)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    remarks += _name_parts(figure, attributes[1:], [{k for k, _ in seen}, {j for _, j in seen}])
    caption_above(axes, "; ".join(filter(None, remarks)), 56)
    return figure


def _divide(axes: Axes, x: float, width: float, shares: Floats) -> set[tuple[int, int]]:
    """Draw the tiles of a column: from below those of the second attribute, divided by the third.

    Return which parts, of the second and of the third attribute, are large enough to be seen.
    """
    foot, seen = 0.0, set()
    for k, parts in enumerate(shares):
        height, place = parts.sum(), x
        for j, part in enumerate(parts):
            if part > 0:
                wide = width * part / height
                axes.add_patch(
                    Rectangle((place, foot), wide, height, **_look(k, j if len(parts) > 1 else 0))
                )
                place += wide
                if min(wide, height) > _LEAST_SIDE:
                    seen.add((k, j))
        foot += height
    return seen


def _look(colour: int, hatch: int) -> dict[str, Any]:
    """Return how a tile looks."""
    return {
        "facecolor": (_TILES[colour], 0.75),
        "edgecolor": "white",
        "linewidth": 1.0,
        "hatch": HATCHES[hatch],
    }


def _name_columns(axes: Axes, centres: Floats, labels: Sequence[str]) -> None:
    """Draw labels below columns, apart from each other: a line leads to those that are moved."""
    names = fitting(labels, 24)
    widths = [text_size(name)[0] / (72 * 4.6) for name in names]
    count = len(names)
    room = max(widths) + 0.015
    slanted = bool(count > 1 and room > 1 / count)
    least = 0.055 if slanted else room
    steps = least * np.arange(count)
    places = centres - steps
    if count > 1:
        places = scipy.optimize.isotonic_regression(places).x
    places = np.clip(places, 0.0, max(0.0, 1.0 - steps[-1])) + steps
    below = axes.get_xaxis_transform()
    for centre, place in zip(centres, places, strict=True):
        axes.plot(
            [centre, centre, place, place],
            [0, -0.012, -0.035, -0.045],
            color=MUTED,
            linestyle="-",
            marker="",
            linewidth=0.8,
            transform=below,
            clip_on=False,
        )
    axes.set_xticks(places, names, parse_math=False)
    axes.tick_params(axis="x", length=0, pad=14)
    if slanted:
        slant(axes.xaxis)


def _name_parts(
    figure: Figure, attributes: Sequence[ItemAttribute], seen: Sequence[set[int]]
) -> list[str]:
    """The colours of the second attribute's items, the topmost first, and the third's hatches.

    Items without a tile that is seen are not named: remarks say which these are.
    """
    remarks = []
    grey = _TILES.index(MUTED)
    styles: Any = (
        ([_look(k, 0) for k in range(MOST_PARTS)], "outside right upper"),
        ([_look(grey, k) for k in range(MOST_PARTS)], "outside right lower"),
    )
    for attribute, (looks, where), shown_items in zip(attributes, styles, seen, strict=False):
        names = fitting(attribute.item_labels, 24)
        named = [k for k in reversed(range(attribute.size)) if k in shown_items]
        small = [name for k, name in enumerate(names) if k not in shown_items]
        if small:
            remarks.append(f"no visible tile of {attribute.name} for: {listed(small)}")
        with style():
            legend = figure.legend(
                [Rectangle((0, 0), 1, 1, **looks[k]) for k in named],
                [names[k] for k in named],
                title=printable(attribute.name),
                loc=where,
                alignment="left",
            )
        for text in (legend.get_title(), *legend.get_texts()):
            text.set_parse_math(False)
    return remarks


def _changed(table: Floats, measure: str) -> str:
    """Return what drawing areas changed."""
    below = table[table < 0]
    rest = rounded(table[table > 0].sum())
    if len(below):
        return (
            f"{len(below)} of {table.size} tiles are below 0, {rounded(below.sum())} in all, and"
            f" drawn as 0; areas are shares of the rest, {rest}"
        )
    if measure.startswith("fraction") and abs(table.sum() - 1) > 5e-4:
        return f"areas are shares of all tiles, {rest}"
    return ""


def _fits(table: Floats, sizes: Sequence[int]) -> None:
    if table.shape != tuple(sizes):
        raise ValueError(
            f"the attributes have {tuple(sizes)} items, got values of shape {table.shape}"
        )


def _is_across(axis: Axis) -> bool:
    return axis is axis.axes.xaxis


# ------------------------------------------------------------------------------------------------
# The picture that shows an estimate, and the numbers in it.


#: The kinds of pictures.
Kind: TypeAlias = Literal["bars", "cdf", "histogram", "heat map", "map", "mosaic"]

_OR_THREE = {"heat map": "", "mosaic": " or three"}

LARGEST = 40  #: The most bars that are drawn: of more items, the largest.


def picture_of(
    estimate: Any,
    attributes: Sequence[str] | None,
    kind: Kind | None,
    confidence: float,
    shares: bool = False,
) -> Figure:
    """The picture of an estimate: see `SurveyEstimate.plot`."""
    known = estimate.schema.names
    wanted = known if attributes is None else attributes
    places = [place_of(name, known) for name in ([wanted] if isinstance(wanted, str) else wanted)]
    names, chosen = ([part[place] for place in places] for part in (known, list(estimate.schema)))
    if kind is None:
        kind = _fitting_kind(chosen)
    _check(kind, chosen)
    source = _Source(estimate, shares)
    answer = source.told(estimate.cells(names))
    values = np.asarray(answer.value, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise ValueError("there is nothing to draw: no reports, or nothing was found")
    if kind == "cdf":
        return _cdf(source, chosen[0], values, confidence)
    # Which cells are blank is a statement about all of them
    each = of_each(confidence, values.size) if kind in ("heat map", "map") else confidence
    around = _around(answer, each)
    unknown = around.unknown
    options: dict[str, Any] = {"measure": source.measure, "confidence": confidence}
    options["caption"] = unknown
    if kind == "histogram":
        first, bins = chosen[0], chosen[0].bins
        options["caption"] = _remarks(_besides(first, values, source.measure), unknown)
        edges = first.cuts if are_dates(first.cuts) else bin_edges(first)
        return histogram(
            edges,
            values[:bins],
            **around.items(slice(bins)),
            xlabel=title(first),
            unit=first.unit,
            labels=_labels(first),
            **options,
        )
    if kind == "bars":
        labels = [", ".join(map(str, row)) for row in product(*map(estimate.item_labels, names))]
        single = len(chosen) == 1 and isinstance(chosen[0], ItemAttribute)
        return bars(
            labels,
            values.ravel(),
            **around.items(slice(None)),
            largest=LARGEST if len(labels) > LARGEST else None,
            apart=len(chosen[0].extra) if single else 0,
            **options,
        )
    if kind == "map":
        return _map(chosen, values, around.ends, **options)
    return (heat_map if kind == "heat map" else mosaic)(chosen, values, around.ends, **options)


class PlaceNames(NamedTuple):
    """Attributes that tell where somebody is."""

    across: str  # the name of longitude, or of x
    up: str
    degrees: bool


def places_among(attributes: Sequence[Any]) -> PlaceNames | None:
    """Which attributes are where somebody is, if two are: by their names, bounds and units.

    Parameters
    ----------
    attributes : sequence of Attribute or NumericField

    Returns
    -------
    PlaceNames or None
        Longitude and latitude, within the bounds of these; or x and y, or easting and northing, in
        one unit that they state.
    """
    numbers = [each for each in attributes if isinstance(each, Numeric)]
    for marks in (_DEGREES, _PLANE):
        pattern = [re.compile(rf"(?<![a-z])({mark})(?![a-z])", re.IGNORECASE) for mark in marks]
        found = [[each for each in numbers if one.search(each.name)] for one in pattern]
        if not len(found[0]) == len(found[1]) == 1:
            continue
        (x,), (y,) = found
        degrees = marks is _DEGREES
        on_earth = max(map(abs, x.bounds)) <= 180 and max(map(abs, y.bounds)) <= 90
        if on_earth if degrees else x.unit and x.unit == y.unit:
            return PlaceNames(x.name, y.name, degrees)
    return None


def _map(
    chosen: Sequence[Any], values: Floats, interval: Interval | None, **options: Any
) -> Figure:
    """Where users are: cells at scale, with those who are at no place in the caption."""
    places = places_among(chosen)
    assert places is not None
    tables = [values, *(() if interval is None else interval)]
    if places.across != chosen[0].name:
        chosen, tables = chosen[::-1], [table.T for table in tables]
    first, second = chosen
    tables = [table[: first.bins, : second.bins] for table in tables]
    elsewhere = float(values.sum() - tables[0].sum())
    if any(attribute.extra for attribute in chosen):
        rest = f"without {_amount(elsewhere, options['measure'])} who are at no place of it"
        options["caption"] = _remarks(rest, options["caption"])
    narrow, unit = 1.0, first.unit
    if places.degrees:
        narrow, unit = math.cos(math.radians(float(sum(second.bounds)) / 2)), "km"
    widths = [np.diff(bin_edges(attribute)) for attribute in chosen]
    if not all(map(are_equal, widths)):  # or large cells would be dark for their size
        scale = _KM_OF_DEGREE**2 * narrow if places.degrees else 1.0
        tables = [table / (scale * np.multiply.outer(*widths)) for table in tables]
        options["measure"] += f" per {unit}²"
    ends = None if interval is None else (tables[1], tables[2])
    return heat_map(chosen, tables[0], ends, aspect=1 / max(narrow, 0.01), **options)


def _fitting_kind(chosen: Sequence[Any]) -> Kind:
    if len(chosen) == 1:
        return "cdf" if isinstance(chosen[0], Ordered) else "bars"
    if len(chosen) == 2:
        if places_among(chosen) is not None:
            return "map"
        small = chosen[0].size <= MOST_COLUMNS and chosen[1].size <= MOST_PARTS
        return "mosaic" if small and not any(map(_has_units, chosen)) else "heat map"
    if len(chosen) == 3:
        return "mosaic"
    raise ValueError(f"a picture is of at most three attributes, not of {len(chosen)}: name some")


def _check(kind: Any, chosen: Sequence[Any]) -> None:
    names = listed(attribute.name for attribute in chosen)
    if kind not in get_args(Kind):
        raise ValueError(f"a picture is one of {listed(get_args(Kind))}, got {shown(kind)}")
    if kind in ("cdf", "histogram") and not (len(chosen) == 1 and isinstance(chosen[0], Ordered)):
        raise ValueError(f"a {kind} is of one attribute with an order, got {names}")
    if kind in ("heat map", "mosaic"):
        if not all(isinstance(attribute, ItemAttribute) for attribute in chosen):
            raise ValueError(f"a {kind} is of attributes whose values are listed, got {names}")
        if len(chosen) != 2 and (kind, len(chosen)) != ("mosaic", 3):
            raise ValueError(f"a {kind} is of two attributes{_OR_THREE[kind]}, got {names}")
    if kind == "map" and (len(chosen) != 2 or places_among(chosen) is None):
        raise ValueError(
            f"a map is of longitude and latitude, or of x and y in one unit, got {names}"
        )


class _Source(NamedTuple):
    """An estimate, and whether fractions of the users are drawn whatever it measures."""

    estimate: Any
    shares: bool

    @property
    def measure(self) -> str:
        return self.estimate.unit_of_shares if self.shares else self.estimate.measure

    def told(self, answer: Answer) -> Answer:
        """An answer of the estimate in this measure."""
        return self.estimate.shares(answer) if self.shares else answer


def _cdf(source: _Source, one: Ordered, cells: Floats, confidence: float) -> Figure:
    """The distribution over the values of an attribute, with its deciles."""
    estimate = source.estimate
    last = one.values_in(np.arange(one.bins), np.ones(one.bins))
    answer = source.told(estimate.answer({one.name: Between(None, last)}))
    around = _around(answer, confidence)
    values = np.asarray(answer.value, dtype=np.float64)
    whole = float(estimate.n) if source.measure in COUNTED else 1.0
    if one.extra:  # deciles are of those who have a value
        whole = float(np.clip(values[-1], 0.0, whole))
    levels = np.arange(1, 10) / 10
    quantiles: Any = None
    try:
        places = _along(one, estimate.quantile(levels, one.name))
        quantiles = (levels * whole, places, None)
        first, second = estimate.quantile_interval(levels, confidence, one.name)
        ends = _along(one, first), _along(one, second)
        quantiles = (levels * whole, places, ends)
    except (InvalidQuestion, UnknownVariance):
        pass  # the protocol has no quantiles, or does not know their errors
    return cumulative(
        one.cuts,
        values,
        **around.items(slice(None)),
        xlabel=title(one),
        ylabel=f"{source.measure} at or below",
        whole=whole,
        steps=one.single,
        labels=_labels(one),
        quantiles=quantiles,
        confidence=confidence,
        caption=_remarks(_besides(one, cells, source.measure), around.unknown),
    )


def _labels(one: Ordered) -> Sequence[str]:
    """The labels of the bins, if these have no units."""
    return one.labels if isinstance(one, Ordinal) else ()


def _along(one: Ordered, values: Any) -> Any:
    """Where values are along an axis: labels in the middles of their bins."""
    return one.places(values) + 0.5 if isinstance(one, Ordinal) else values


class _Around(NamedTuple):
    """The intervals of answers, as far as they are known."""

    ends: tuple[Floats, Floats] | None
    inner: tuple[Floats, Floats] | None  # those of a model, on average over questions
    unknown: str = ""  # a remark, where there are none

    def items(self, chosen: slice) -> dict[str, Any]:
        """What pictures of some of the items take."""
        return {
            name: None if around is None else (around[0].ravel()[chosen], around[1].ravel()[chosen])
            for name, around in (("interval", self.ends), ("inner", self.inner))
        }


def _around(answer: Answer, confidence: float) -> _Around:
    """The intervals of answers."""

    def numbers(on_average: bool) -> tuple[Floats, Floats]:
        low, high = answer.interval(confidence, on_average=on_average)
        return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)

    try:
        return _Around(numbers(False), numbers(True) if answer.has_model else None)
    except UnknownVariance:
        return _Around(None, None, "the errors of these estimates are not known")


def _besides(one: ItemAttribute, cells: Floats, measure: str) -> str:
    """Return what a picture of the bins alone leaves out."""
    return ", ".join(
        f"without {label} ({_amount(value, measure)})"
        for label, value in zip(one.extra, cells[one.bins :], strict=True)
    )


def _amount(value: float, measure: str) -> str:
    """Return how many users that are, or what part of them."""
    if measure in COUNTED:
        return f"{rounded(value)} {measure}"
    return f"{rounded(100 * value)}{measure.replace('fraction', '%')}"


def _remarks(*texts: str) -> str:
    return "; ".join(filter(None, texts))
