"""Which picture shows an estimate, and the numbers in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from matplotlib.figure import Figure

from frequency.core.answer import Answer, place_of
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.schema.attribute import ItemAttribute
from frequency.schema.joint_plot import MOST_COLUMNS, MOST_PARTS, heat_map, mosaic
from frequency.schema.ordered import Ordered
from frequency.schema.plot import bars, cumulative, histogram
from frequency.schema.scales import bin_edges, rounded, title
from mechdesign._support.arrays import Floats
from mechdesign._support.text import listed, shown

Kind: TypeAlias = Literal["bars", "cdf", "histogram", "heat map", "mosaic"]
"""What a picture may be."""

LARGEST = 40
"""How many bars are drawn: of more items, the largest."""


def picture_of(
    estimate: Any, attributes: Sequence[str] | None, kind: Kind | None, confidence: float
) -> Figure:
    """The picture of an estimate: see `SurveyEstimate.plot`.

    Parameters
    ----------
    estimate : SurveyEstimate
        What is drawn.
    attributes : sequence of str or None
        The names of those that are drawn; None: all.
    kind : str or None
        One of `Kind`; None: the one that fits.
    confidence : float
        Of the intervals.

    Returns
    -------
    matplotlib.figure.Figure
        One panel.

    Raises
    ------
    ValueError
        A kind that the attributes do not fit, or no reports.
    """
    known = estimate.schema.names
    wanted = known if attributes is None else attributes
    places = [place_of(name, known) for name in ([wanted] if isinstance(wanted, str) else wanted)]
    names, chosen = ([part[place] for place in places] for part in (known, list(estimate.schema)))
    if kind is None:
        kind = _fitting_kind(chosen)
    elif kind not in get_args(Kind):
        raise ValueError(f"a picture is one of {listed(get_args(Kind))}, got {shown(kind)}")
    answer = estimate.cells(names)
    values = np.asarray(answer.value, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise ValueError("there is nothing to draw: no reports, or nothing was found")
    around = _interval(answer, confidence)
    told: dict[str, Any] = {"measure": estimate.measure, "confidence": confidence}
    if kind == "bars":
        labels = [", ".join(map(str, row)) for row in product(*map(estimate.item_labels, names))]
        many = len(labels) > LARGEST
        apart = len(chosen[0].extra) if isinstance(chosen[0], ItemAttribute) else 0
        return bars(
            labels,
            values.ravel(),
            None if around is None else (around[0].ravel(), around[1].ravel()),
            largest=LARGEST if many else None,
            apart=apart if len(names) == 1 else 0,
            **told,
        )
    if kind in ("cdf", "histogram"):
        if len(chosen) != 1 or not isinstance(chosen[0], Ordered):
            raise ValueError(f"a {kind} is of one attribute with an order, got {listed(names)}")
        one, bins = chosen[0], chosen[0].bins
        extra = zip(one.extra, values[bins:], strict=True)
        besides = listed(f"{label} ({rounded(value)})" for label, value in extra)
        told["caption"] = f"without {besides}" if besides else ""
        told["xlabel"] = title(one)
        if kind == "histogram":
            inner = None if around is None else (around[0][:bins], around[1][:bins])
            return histogram(bin_edges(one), values[:bins], inner, unit=one.unit, **told)
        return _cdf(estimate, one, told)
    if not all(isinstance(one, ItemAttribute) for one in chosen):
        raise ValueError(f"a {kind} is of attributes whose values are listed, got {listed(names)}")
    return (heat_map if kind == "heat map" else mosaic)(chosen, values, around, **told)


def _fitting_kind(chosen: Sequence[Any]) -> Kind:
    ordered = [isinstance(one, Ordered) for one in chosen]
    if len(chosen) == 1:
        return "cdf" if ordered[0] else "bars"
    if len(chosen) == 2:
        small = chosen[0].size <= MOST_COLUMNS and chosen[1].size <= MOST_PARTS
        return "mosaic" if small and not any(ordered) else "heat map"
    if len(chosen) == 3:
        return "mosaic"
    raise ValueError(f"a picture is of at most three attributes, not of {len(chosen)}: name some")


def _cdf(estimate: Any, one: Ordered, told: dict[str, Any]) -> Figure:
    """The distribution over the values of an attribute, with its deciles."""
    name, confidence = one.name, told["confidence"]
    last = one.values_in(np.arange(one.bins), np.ones(one.bins))
    answer = estimate.answer({name: (None, last)})
    values = np.asarray(answer.value, dtype=np.float64)
    whole = float(estimate.n) if estimate.measure == "users" else 1.0
    if one.extra:  # deciles are of those who have a value
        whole = float(np.clip(values[-1], 0.0, whole))
    levels = np.arange(1, 10) / 10
    quantiles: Any = None
    try:
        places = estimate.quantile(levels, name)
        quantiles = (levels * whole, places, None)
        ends = estimate.quantile_interval(levels, confidence, name)
        quantiles = (levels * whole, places, ends)
    except (InvalidQuestion, UnknownVariance):
        pass  # the protocol has no quantiles, or does not know their errors
    return cumulative(
        one.cuts,
        values,
        _interval(answer, confidence),
        ylabel=f"{told.pop('measure')} at or below",
        whole=whole,
        steps=one.single,
        quantiles=quantiles,
        **told,
    )


def _interval(answer: Answer, confidence: float) -> tuple[Floats, Floats] | None:
    """None where the protocol does not know its errors."""
    try:
        low, high = answer.interval(confidence)
    except UnknownVariance:
        return None
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
