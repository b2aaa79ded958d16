"""Figures that compare mechanisms: heat maps, losses and errors (thesis 6.3, 6.6.3, 6.7).

Those that draw return a `matplotlib.figure.Figure`: ``figure.savefig("gm.png")`` writes it,
``save(figure, "gm.png")`` does so in one step, and a notebook that has run ``%matplotlib inline``
shows it. No window opens and pyplot keeps no reference, so there is nothing to close. All values
are exact expectations, turned into floats only to be drawn.

``with style():`` makes figures of one's own look like these; `look` is how a series looks, and
`mark_numbers` marks an axis with as many plain numbers as have room.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, NullLocator

from mechdesign.base import (
    BAND,
    COLOURS,
    DASHES,
    ESTIMATE,
    HATCHES,
    MUTED,
    PlainNumbers,
    Rational,
    SpacedTicks,
    filled,
    ink_on,
    legend_entries,
    look,
    mark_numbers,
    panel,
    printable,
    replacing,
    style,
)
from mechdesign.exceptions import NotSquare
from mechdesign.mechanism.explanation import QUESTIONS, Explanation
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.values import Counts, Unbounded, Values

__all__ = [
    "error_against_epsilon",
    "error_histograms",
    "explanation_page",
    "heatmaps",
    "l0d_against_d",
    "lines",
    "look",
    "mark_numbers",
    "save",
    "style",
]

_Point = TypeVar("_Point", int, Fraction)

_NEAR_1 = tuple(1 + k / 10**digits for digits in (4, 3, 2) for k in (1, 2, 5))
# Values of e^epsilon that are marked: the densest that have room.
_ODDS = (
    (*_NEAR_1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1e3, 1e4, 1e6, 1e8),
    (*_NEAR_1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 100, 1e4, 1e12, 1e40),
    (1.001, 1.01, 1.1, 1.5, 2, 5, 10, 100, 1e4, 1e12, 1e40),
    (1.001, 1.1, 2, 10, 1e3, 1e12, 1e40),
)

_PAGE = (8.27, 11.69)  # A4, upright, in inches

_SOME_ERRORS = 500  # up to so many errors either way are drawn one by one

_SEPARATE = 61  # up to so many points and bars are drawn one by one

_PRINTED = 9  # tables of at most this many rows and columns (n <= 8) have their entries printed


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure, replacing the file in one step or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    path : str or os.PathLike
        Its suffix is the format: .png, of 200 points an inch, .pdf, .svg, or another of
        matplotlib's.
    """
    with replacing(path) as stream, style():
        figure.savefig(stream, format=Path(path).suffix[1:])


def heatmaps(mechanisms: Mapping[str, Mechanism]) -> Figure:
    """Draw the tables side by side on one colour scale (Figures 6.1, 6.6).

    It is from 0 to the largest entry of all. Rows are outputs, the first at the top as in a matrix;
    columns are inputs. For n <= 8 the entries are printed to two places, with a bare 0 for an exact
    zero. The tables may have different sizes, as in Figure 6.1, and may be rectangular.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        title -> mechanism, at least one; a panel for each, in this order.

    Raises
    ------
    ValueError
        No mechanism.
    """
    _some(mechanisms, "mechanisms")
    columns = len(mechanisms) if len(mechanisms) <= 3 else math.isqrt(len(mechanisms) - 1) + 1
    rows = -(-len(mechanisms) // columns)
    side = 0.9 + 0.4 * min(
        max(max(item.outputs, item.inputs, 5) for item in mechanisms.values()), _PRINTED
    )
    layout = ConstrainedLayoutEngine(compress=True, w_pad=0.1, h_pad=0.1)
    figure = Figure(figsize=(side * columns + 0.7, side * rows), layout=layout)
    scale = Normalize(0, max(float(item.matrix.max()) for item in mechanisms.values()))
    for position, (title, mechanism) in enumerate(mechanisms.items(), start=1):
        with style(), rc_context({"axes.grid": False}):
            axes = figure.add_subplot(rows, columns, position)
        square = mechanism.outputs == mechanism.inputs
        image = axes.imshow(
            mechanism.matrix,
            norm=scale,
            aspect="equal" if square else "auto",
            interpolation="nearest",
            cmap="viridis",
        )
        axes.set(xlabel="input", ylabel="output")
        axes.set_title(title, loc="left", fontsize="medium")
        _mark_values(axes.xaxis, mechanism.input_values)
        _mark_values(axes.yaxis, mechanism.output_values)
        if max(mechanism.outputs, mechanism.inputs) <= _PRINTED:
            ink = ink_on(image.cmap(scale(mechanism.matrix)))
            for (i, j), entry in np.ndenumerate(mechanism.matrix):
                text = f"{entry:.2f}" if entry else "0"
                axes.text(j, i, text, ha="center", va="center", fontsize=8, color=ink[i, j])
    figure.colorbar(image, ax=figure.axes, label="Pr[output | input]")
    return figure


def error_histograms(
    mechanisms: Mapping[str, Mechanism], prior: Sequence[Rational] | None = None
) -> Figure:
    """Draw how often each error, output minus input, occurs (Figure 6.13).

    There is a group of bars for every error in -n .. n.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        label -> mechanism, all (n+1) x (n+1) for one n.
    prior : sequence of Fraction, int, str or Decimal, optional
        n + 1 exact weights over the inputs that sum to one, such as `losses.binomial`; uniform if
        None.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        No mechanism, different sizes, a rectangular one, or a prior that does not fit
        (`InvalidPrior`).
    """
    n = _common_n(mechanisms)
    errors = {
        name: mechanism.error_distribution(prior).histogram
        for name, mechanism in mechanisms.items()
    }
    width = 0.84 / len(errors)
    inches = min(max(0.13 * (2 * n + 1) * (len(errors) + 0.5), 5.5), 14.0)
    figure, axes = panel("error (output minus input)", "probability of the error", inches)
    mark_numbers(axes.xaxis, whole=True)
    for index, (name, histogram) in enumerate(errors.items()):
        offset = (index - (len(errors) - 1) / 2) * width
        axes.bar(
            [error + offset for error in histogram],
            [float(share) for share in histogram.values()],
            width,
            label=name,
            color=COLOURS[index % len(COLOURS)],
            hatch=HATCHES[index % len(HATCHES)],
            edgecolor="white",
            linewidth=0,
        )
    axes.margins(x=0.01)
    _legend(figure)
    return figure


def l0d_against_d(
    mechanisms: Mapping[str, Mechanism], prior: Sequence[Rational] | None = None
) -> Figure:
    """Draw the chance of an answer more than d steps off, for d = 0 .. n-1 (Figure 6.11).

    This is the plain L0,d, a probability: not the scaled one of eq. 6.1.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        By their labels: see `error_histograms`.
    prior : sequence of Fraction, int, str or Decimal, optional
        Exact weights over the inputs that sum to one; uniform if None.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        As for `error_histograms`; also when n = 0, which leaves no d.
    """
    n = _common_n(mechanisms)
    if n == 0:
        raise ValueError("with n = 0 no answer can be wrong: there is no d to draw")
    errors = {name: mechanism.error_distribution(prior) for name, mechanism in mechanisms.items()}
    tails = {name: [float(each.tail(d)) for d in range(n)] for name, each in errors.items()}
    return lines("distance d (steps)", "Pr[ |output − input| > d ]", range(n), tails, whole=True)


@style()
def explanation_page(told: Explanation) -> Figure:
    """Draw what a mechanism does, on one page (A4): four answers in words, each with a picture.

    How often each error occurs, as far as 99.9 % of the cases; the typical error for each true
    count; for each published value the range that holds the truth with 90 %, and the likeliest
    truth (of pairs of counts how likely the value is right); and what an observer may believe of
    one person after seeing a published value, by what was believed before.

    Parameters
    ----------
    told : Explanation
        What `mechdesign.mechanism.explanation.explain` returns.

    Returns
    -------
    matplotlib.figure.Figure
        One page, upright.
    """
    figure = Figure(figsize=_PAGE)
    figure.suptitle(filled(told.statement, 96), fontsize=11, x=0.01, ha="left", parse_math=False)
    drawings = (_errors, _by_count, _truths, _beliefs)
    grid = figure.add_gridspec(4, 1)
    for row, (question, answer, draw) in enumerate(
        zip(QUESTIONS, told.answers, drawings, strict=True)
    ):
        part = figure.add_subfigure(grid[row])
        part.suptitle(question, fontsize=11, fontweight="bold", x=0.01, ha="left")
        axes = part.add_subplot()
        axes.set_title(filled(answer, 112), fontsize=9, loc="left", parse_math=False)
        draw(axes, told)
    return figure


def _errors(axes: Axes, told: Explanation) -> None:
    table = told.table
    signed = isinstance(table.output_values, Counts) and isinstance(table.input_values, Counts)
    end = told.reach(Fraction(999, 1000))
    if signed:
        # Of very many errors some, evenly spread
        step = max(1, end // _SOME_ERRORS)
        errors = table.error_distribution(told.prior)
        most = end // step
        chances = {k * step: errors.probability(k * step) for k in range(-most, most + 1)}
    else:
        chances = dict(enumerate(told.distances[: end + 1]))
    shown = {error: 100 * float(p) for error, p in chances.items()}
    axes.bar([*shown], [*shown.values()], _thickness(shown) * _gap([*shown]), color=ESTIMATE)
    axes.set_xlabel("published minus true" if signed else "distance of published and true")
    axes.set_ylabel("% of cases")
    axes.set_xlim((-end if signed else 0) - 0.6, end + 0.6)
    mark_numbers(axes.xaxis, whole=True)
    mark_numbers(axes.yaxis, most=5)


def _by_count(axes: Axes, told: Explanation) -> None:
    values = told.table.input_values
    typical = [math.sqrt(each.mean_square) for each in told.true_counts]
    marker = "o" if len(typical) <= _SEPARATE else ""
    axes.plot(told.places[0], typical, marker + "-", color=ESTIMATE)
    axes.axhline(told.standard_errors.published, color=MUTED, linestyle=DASHES[1], linewidth=1)
    axes.set_xlabel("true count (dashed line: all together)")
    axes.set_ylabel("typical error")
    axes.set_ylim(0, 1.1 * max(typical) or 1)
    axes.set_xlim(-0.6, values.size - 0.4)
    _mark_values(axes.xaxis, values)
    mark_numbers(axes.yaxis, most=5)


def _truths(axes: Axes, told: Explanation) -> None:
    outputs, inputs = told.table.output_values, told.table.input_values
    if isinstance(inputs, Counts):
        ranges = [
            (place, int(each.extent[0]), int(each.extent[1]), int(each.likeliest[0]))
            for place, each in zip(told.places[1], told.published_values, strict=True)
            if each.extent is not None and each.likeliest is not None
        ]
        x, low, high, likeliest = zip(*ranges, strict=True)
        width = _thickness(x) * _gap(x)
        axes.bar(x, np.subtract(high, low) + 0.8, width, np.subtract(low, 0.4), color=BAND)
        size = 3.5 if len(x) <= _SEPARATE else 1
        axes.plot(x, likeliest, "o", color="black", markerfacecolor="black", markersize=size)
        axes.set_xlabel("published value (bar: the truth with at least 90 %; dot: the likeliest)")
        axes.set_ylabel("true count")
        axes.set_ylim(inputs.low - 0.6, inputs.high + 0.6)
        mark_numbers(axes.yaxis, whole=True, most=5)
    else:
        right = [100 * float(each.right or 0) for each in told.published_values]
        axes.bar(range(outputs.size), right, _thickness(right), color=ESTIMATE)
        axes.set_xlabel("published value")
        axes.set_ylabel("right in %")
        mark_numbers(axes.yaxis, most=5)
    axes.set_xlim(-0.6, told.places[1][-1] + 0.6)
    _mark_values(axes.xaxis, inputs if isinstance(outputs, Unbounded) else outputs)


def _beliefs(axes: Axes, told: Explanation) -> None:
    before = [Fraction(k, 100) for k in range(101)]
    percents = [100 * float(p) for p in before]
    for risk, dash in zip(told.risks, DASHES, strict=False):
        most = [100 * float(risk.belief(p)) for p in before]
        least = [100 - value for value in reversed(most)]
        if risk is told.risks[0]:
            axes.fill_between(percents, least, most, color=BAND, alpha=0.5, linewidth=0)
        for bound in (least, most):
            axes.plot(percents, bound, color=ESTIMATE, linestyle=dash, marker="", linewidth=1.2)
    axes.plot(percents, percents, "-", color=MUTED, linewidth=1)
    axes.set_xlabel("belief in a fact about one person before, in % (grey line: nothing learnt)")
    axes.set_ylabel("belief after, in %")
    axes.set(xlim=(0, 100), ylim=(0, 100))
    mark_numbers(axes.xaxis)
    mark_numbers(axes.yaxis, most=5)


def _thickness(bars: Collection[object]) -> float:
    """The width of bars one apart: with gaps where those would be seen."""
    return 0.8 if len(bars) <= _SEPARATE else 1.0


def _gap(places: Sequence[int]) -> int:
    """How far the first two places are apart, which are evenly spread."""
    return places[1] - places[0] if len(places) > 1 else 1


def error_against_epsilon(
    epsilons: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    title: str = "",
    marked: tuple[float, float, str] | None = None,
) -> Figure:
    """Draw errors against epsilon, both logarithmic, as `mechdesign.Plan.plot` shows them.

    Above the panel are the values of e^epsilon, the likelihood ratio, by which odds change at most.

    Parameters
    ----------
    epsilons : sequence of float
        Each above 0, joined in order.
    curves : mapping of str to sequence of float
        For each name, an error for each epsilon; NaN where there is none.
    title : str, default ""
        Above the axes.
    marked : tuple of (float, float, str), optional
        An epsilon and an error, with a label.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        No epsilon.
    """
    _some(epsilons, "epsilons")
    figure = lines("privacy loss epsilon", "predicted error", epsilons, curves)
    figure.set_size_inches(9.0, 4.6)
    axes = figure.axes[0]
    axes.set(xscale="log", yscale="log")
    for axis in (axes.xaxis, axes.yaxis):
        mark_numbers(axis, logarithmic=True)
    _mark_odds(axes)
    axes.set_title(title, fontsize=9, loc="left")
    if marked is not None:
        epsilon, error, label = marked
        axes.plot(
            epsilon, error, "*", markersize=17, color="black", markeredgecolor="white", zorder=5
        )
        box = {
            "boxstyle": "round,pad=0.15",
            "facecolor": "white",
            "edgecolor": "none",
            "alpha": 0.8,
        }
        axes.annotate(
            label,
            (epsilon, error),
            xytext=(-8, -8),
            textcoords="offset points",
            ha="right",
            va="top",
            bbox=box,
            zorder=6,
        )
    return figure


class _AsOdds(PlainNumbers):
    """Ticks of epsilon as e^epsilon."""

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return super().format_ticks([math.exp(value) for value in values])


def _mark_odds(axes: Axes) -> None:
    """Mark above an axis of epsilon by which factors odds change, e^epsilon."""
    odds = axes.secondary_xaxis("top")
    odds.set_xlabel("e^epsilon: odds change by this factor")
    choices = [FixedLocator([math.log(ratio) for ratio in ratios]) for ratios in _ODDS]
    odds.xaxis.set_major_locator(SpacedTicks(choices))
    odds.xaxis.set_major_formatter(_AsOdds())
    odds.xaxis.set_minor_locator(NullLocator())


def lines(
    xlabel: str,
    ylabel: str,
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    *,
    whole: bool = False,
) -> Figure:
    """Draw curves that remain distinct where they coincide, in print and to the colour-blind.

    Parameters
    ----------
    xlabel, ylabel : str
        Labels of the axes.
    x : sequence of float
        Where the curves are known; joined in this order.
    curves : mapping of str to sequence of float
        label -> as many values.
    whole : bool, default False
        Only integers are marked on the horizontal axis.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        No curve, or no point.
    """
    _some(curves, "curves")
    _some(x, "x")
    figure, axes = panel(xlabel, ylabel)
    if whole:
        mark_numbers(axes.xaxis, whole=True)
    for index, (name, y) in enumerate(curves.items()):
        # Mechanisms often coincide, as GM and WM do for many n: a later line is thinner and markers
        # are hollow, so both show.
        axes.plot(
            x,
            y,
            **look(index),
            label=name,
            linewidth=max(2.8 - 0.5 * index, 1.2),
            markevery=-(-len(x) // 30),
            markersize=max(8.0 - index, 4.5),
            markerfacecolor="none",
        )
    _legend(figure)
    return figure


def _mark_values(axis: Axis, values: Values) -> None:
    """Mark what some of the rows or columns stand for."""
    if values == Counts(0, values.size - 1):
        mark_numbers(axis, whole=True)
        return
    step = -(-values.size // _PRINTED)
    places = range(0, values.size, step)
    labels = values.labels
    axis.set_ticks(places, [labels[k] for k in places])


def _some(items: Mapping[str, Any] | Sequence[Any], name: str) -> None:
    if len(items) == 0:
        raise ValueError(f"{name} is empty: there is nothing to draw")


def _common_n(mechanisms: Mapping[str, Mechanism]) -> int:
    """The one n of all the mechanisms, which are (n+1) x (n+1)."""
    _some(mechanisms, "mechanisms")
    first, n = "", -1
    for name, mechanism in mechanisms.items():
        if mechanism.outputs != mechanism.inputs:
            raise NotSquare(
                f"{name} is {mechanism.outputs} x {mechanism.inputs}: its outputs are not counts of"
                " the same respondents"
            )
        if n < 0:
            first, n = name, mechanism.inputs - 1
        if mechanism.inputs != n + 1:
            raise ValueError(
                f"one figure needs one n: {printable(first)} has n = {n}, "
                f"{printable(name)} has n = {mechanism.inputs - 1}"
            )
    return n


def _legend(figure: Figure) -> None:
    with style():
        figure.legend(*legend_entries(figure), loc="outside right upper")
