"""Numbers and dates along the axes of figures: what can be drawn, and where its ticks are."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib import dates
from matplotlib.axis import Axis

from frequency.schema.attribute import ItemAttribute
from frequency.schema.ordered import Ordered
from mechdesign.base.figures import PlainNumbers, mark_dates, mark_numbers
from mechdesign.base.linear_algebra import Floats

Interval: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]
"""The lower and the upper ends of intervals, one for each value."""


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


def title(attribute: ItemAttribute) -> str:
    """The name of an attribute, with its unit unless the name says it."""
    if attribute.unit in ("", attribute.name):
        return attribute.name
    return f"{attribute.name} ({attribute.unit})"


def rounded(value: float) -> str:
    """A number in a caption, to three digits."""
    return PlainNumbers()(float(f"{value:.3g}"))


def are_dates(places: npt.ArrayLike) -> bool:
    """Whether places are of type datetime64."""
    return np.asarray(places).dtype.kind == "M"


def numbers(places: npt.ArrayLike) -> Floats:
    """Return places in units as numbers: of dates the days since 1970."""
    untyped: Any = dates
    result: Floats = np.asarray(
        untyped.date2num(places) if are_dates(places) else places, dtype=np.float64
    )
    return result


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
