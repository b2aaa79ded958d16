"""The picture that shows an estimate, and the numbers in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from matplotlib.figure import Figure

from frequency.core.answer import Answer, of_each, place_of
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.schema.attribute import FRACTION, ItemAttribute
from frequency.schema.joint_plot import MOST_COLUMNS, MOST_PARTS, heat_map, mosaic
from frequency.schema.ordered import Ordered
from frequency.schema.plot import bars, cumulative, histogram
from frequency.schema.scales import are_dates, bin_edges, rounded, title
from mechdesign.base.linear_algebra import Floats
from mechdesign.base.text import listed, shown

Kind: TypeAlias = Literal["bars", "cdf", "histogram", "heat map", "mosaic"]
"""The kinds of pictures."""

_OR_THREE = {"heat map": "", "mosaic": " or three"}

LARGEST = 40
"""The most bars that are drawn: of more items, the largest."""


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
    each = of_each(confidence, values.size) if kind == "heat map" else confidence
    around, unknown = _interval(answer, each)
    options: dict[str, Any] = {"measure": source.measure, "confidence": confidence}
    options["caption"] = unknown
    if kind == "histogram":
        first, bins = chosen[0], chosen[0].bins
        options["caption"] = _remarks(_besides(first, values, source.measure), unknown)
        inner = None if around is None else (around[0][:bins], around[1][:bins])
        edges = first.cuts if are_dates(first.cuts) else bin_edges(first)
        return histogram(
            edges, values[:bins], inner, xlabel=title(first), unit=first.unit, **options
        )
    if kind == "bars":
        labels = [", ".join(map(str, row)) for row in product(*map(estimate.item_labels, names))]
        single = len(chosen) == 1 and isinstance(chosen[0], ItemAttribute)
        return bars(
            labels,
            values.ravel(),
            None if around is None else (around[0].ravel(), around[1].ravel()),
            largest=LARGEST if len(labels) > LARGEST else None,
            apart=len(chosen[0].extra) if single else 0,
            **options,
        )
    return (heat_map if kind == "heat map" else mosaic)(chosen, values, around, **options)


def _fitting_kind(chosen: Sequence[Any]) -> Kind:
    ordered = [isinstance(attribute, Ordered) for attribute in chosen]
    if len(chosen) == 1:
        return "cdf" if ordered[0] else "bars"
    if len(chosen) == 2:
        small = chosen[0].size <= MOST_COLUMNS and chosen[1].size <= MOST_PARTS
        return "mosaic" if small and not any(ordered) else "heat map"
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


class _Source(NamedTuple):
    """An estimate, and whether fractions of the users are drawn whatever it measures."""

    estimate: Any
    shares: bool

    @property
    def measure(self) -> str:
        measure: str = FRACTION if self.shares else self.estimate.measure
        return measure

    def told(self, answer: Answer) -> Answer:
        """An answer of the estimate in this measure."""
        counts: Answer = self.estimate.shares(answer) if self.shares else answer
        return counts


def _cdf(source: _Source, one: Ordered, cells: Floats, confidence: float) -> Figure:
    """The distribution over the values of an attribute, with its deciles."""
    estimate = source.estimate
    last = one.values_in(np.arange(one.bins), np.ones(one.bins))
    answer = source.told(estimate.answer({one.name: (None, last)}))
    around, unknown = _interval(answer, confidence)
    values = np.asarray(answer.value, dtype=np.float64)
    whole = float(estimate.n) if source.measure == "users" else 1.0
    if one.extra:  # deciles are of those who have a value
        whole = float(np.clip(values[-1], 0.0, whole))
    levels = np.arange(1, 10) / 10
    quantiles: Any = None
    try:
        places = estimate.quantile(levels, one.name)
        quantiles = (levels * whole, places, None)
        ends = estimate.quantile_interval(levels, confidence, one.name)
        quantiles = (levels * whole, places, ends)
    except (InvalidQuestion, UnknownVariance):
        pass  # the protocol has no quantiles, or does not know their errors
    return cumulative(
        one.cuts,
        values,
        around,
        xlabel=title(one),
        ylabel=f"{source.measure} at or below",
        whole=whole,
        steps=one.single,
        quantiles=quantiles,
        confidence=confidence,
        caption=_remarks(_besides(one, cells, source.measure), unknown),
    )


def _interval(
    answer: Answer, confidence: float
) -> tuple[tuple[Floats, Floats], str] | tuple[None, str]:
    """The ends; or None where they are not known, with a remark."""
    try:
        low, high = answer.interval(confidence)
    except UnknownVariance:
        return None, "the errors of these estimates are not known"
    return (np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)), ""


def _besides(one: ItemAttribute, cells: Floats, measure: str) -> str:
    """Return what a picture of the bins alone leaves out."""
    factor, unit = (1, " users") if measure == "users" else (100, "% of the users")
    return ", ".join(
        f"without {label} ({rounded(factor * value)}{unit})"
        for label, value in zip(one.extra, cells[one.bins :], strict=True)
    )


def _remarks(*texts: str) -> str:
    return "; ".join(filter(None, texts))
