"""Bars and distributions show what they say, and their texts have room."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from frequency.schema import Categorical, Numeric, Schema, Survey, plot
from frequency.schema import plot as scales
from rangeq.grids import WaveGrid
from tests.frequency.schema.survey_attributes import (
    AGE,
    CHILDREN,
    DATES,
    DELAY,
    INCOME,
    ORDERED,
    noisy,
)
from tests.pictures import collisions, legend, patches, ticks, title

# -- bars
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_bars_have_room(count, scale) -> None:
    values, interval = noisy(count, scale)
    labels = [f"a very long label of an item whose number is {k}" for k in range(count)]
    figure = plot.bars(labels, values, interval, measure="users", apart=int(count > 2))
    assert collisions(figure) == []
    (axes,) = figure.axes
    bars = patches(figure, Rectangle)
    assert [bar.get_width() for bar in bars] == values.tolist()
    shown = [text.get_text() for text in axes.get_yticklabels()]
    assert len(set(shown)) == count
    assert max(map(len, shown)) <= 36
    assert axes.get_xlabel() == "users"


@pytest.mark.slow
def test_two_hundred_bars() -> None:
    values, interval = noisy(200)
    assert collisions(plot.bars([str(k) for k in range(200)], values, interval)) == []
    figure = plot.bars([str(k) for k in range(200)], values, interval, largest=3, apart=1)
    order = np.argsort(-values[:199], kind="stable")[:3]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == [
        *map(str, order),
        "199",
    ]
    assert title(figure) == "the 3 largest of 199 items"


def test_the_points_of_bars() -> None:
    values, (low, high) = np.array([0.5, 0.3, -0.01, 0.2]), (np.full(4, -0.1), np.full(4, 0.6))
    figure = plot.bars(
        ["$1 to $2", "_", "c", "missing"],
        values,
        (low, high),
        truth=[0.4, 0.3, 0, 0.3],
        apart=1,
        marks={"noise": 0.05},
        confidence=0.9,
        caption="a remark",
    )
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()][:2] == ["$1 to $2", "_"]
    assert legend(figure) == ["truth", "noise", "estimate, 90% interval"]
    assert title(figure) == "a remark"
    heights = [bar.get_y() for bar in patches(figure, Rectangle)]
    steps = [round(b - a, 9) for a, b in pairwise(heights)]
    assert steps == [1, 1, 1.5]  # the last one is apart, and of another colour
    faces = [to_hex(bar.get_facecolor()) for bar in patches(figure, Rectangle)]
    assert faces[0] == faces[1] == faces[2] != faces[3]
    assert collisions(figure) == []
    assert legend(plot.bars(["a"], [0.5])) == ["estimate"]


# -- distributions
# --------------------------------------------------------------------------------------------------


def distribution(one, error=0.02):
    values = np.cumsum(noisy(one.bins, error=0.0)[0])
    values += np.random.default_rng(2).normal(0, error, one.bins)
    return values, (values - 2 * error, values + 2 * error)


@pytest.mark.slow
@pytest.mark.parametrize("one", ORDERED, ids=lambda one: f"{one.name}-{one.bins}")
def test_distributions_have_room(one) -> None:
    values, interval = distribution(one)
    places = one.values_in(np.array([0, one.bins - 1]), np.array([0.3, 0.5]))
    cdf = plot.cumulative(
        one.cuts,
        values,
        interval,
        xlabel=scales.title(one),
        steps=one.single,
        quantiles=([0.1, 0.9], places, (one.cuts[[0, 0]], one.cuts[[1, -1]])),
    )
    bins = plot.histogram(scales.bin_edges(one), values, interval, xlabel=scales.title(one))
    for figure in (cdf, bins):
        assert collisions(figure) == []
        (axes,) = figure.axes
        assert axes.get_xscale() == ("log" if one is INCOME else "linear")
        assert len(ticks(figure, "x")) >= 2
    assert cdf.axes[0].get_xlabel() == scales.title(one)
    assert legend(cdf) == ["95% band", "estimate", "deciles, 95% intervals"]


def curve(figure: Figure):
    (line,) = (line for line in figure.axes[0].lines if line.get_label() == "estimate")
    return line.get_xdata(), line.get_ydata()


def test_the_line_is_straight_in_units_within_bins() -> None:
    for one in (INCOME, DELAY):
        values, interval = distribution(one)
        x, y = curve(plot.cumulative(one.cuts, values, interval, xlabel="x"))
        np.testing.assert_allclose(y, np.interp(x, one.cuts, [0, *values]), atol=1e-12)
        assert set(one.cuts) <= set(x)


def band(figure: Figure):
    """The lower and the upper end over each bin, and the edges."""
    (patch,) = (one for one in patches(figure, StepPatch) if one.get_label().endswith("band"))
    values, edges, baseline = patch.get_data()
    return baseline, values, edges


def test_the_band_holds_wherever_values_lie_within_bins() -> None:
    values, (low, high) = distribution(DELAY)
    lower, upper, edges = band(plot.cumulative(DELAY.cuts, values, (low, high), xlabel="x"))
    assert lower.tolist() == [0, *low[:-1]]
    assert upper.tolist() == high.tolist()
    assert edges.tolist() == DELAY.cuts.tolist()
    values, (low, high) = distribution(AGE)
    lower, upper, _ = band(plot.cumulative(AGE.cuts, values, (low, high), xlabel="x", steps=True))
    assert lower.tolist() == low.tolist()
    assert upper.tolist() == high.tolist()


def test_values_outside_are_drawn_and_said() -> None:
    noise = np.array([-0.1, 1.2, 0.9, 1.0])
    figure = plot.cumulative(DELAY.cuts, noise, xlabel="x", caption="without missing")
    assert title(figure) == (
        "without missing; noise makes the estimated curve fall in places, go below 0 and rise"
        " above 1; the true curve cannot"
    )
    low, high = figure.axes[0].get_ylim()
    assert low < -0.1
    assert high > 1.2
    assert curve(figure)[1].max() == 1.2
    assert title(plot.cumulative(DELAY.cuts, [0, 0.5, 0.5, 1], xlabel="x")) == ""
    rounding = plot.cumulative(DELAY.cuts, [0, 0.5, 0.5 - 1e-16, 1 + 1e-15], xlabel="x")
    assert title(rounding) == ""
    falls = plot.cumulative(DELAY.cuts, np.array([1, 3, 2, 4610.0]), xlabel="x", whole=4610)
    assert title(falls) == "noise makes the estimated curve fall in places; the true curve cannot"
    assert legend(plot.cumulative(DELAY.cuts, [0, 0.5, 0.5, 1], xlabel="x")) == ["estimate"]


@pytest.mark.slow
@pytest.mark.parametrize(("error", "steps"), [(0.2, True), (5, True), (400, True), (400, False)])
def test_a_band_is_in_the_legend_where_it_is_in_the_plot(error, steps) -> None:
    values = np.linspace(46, 4610, 100)
    figure = plot.cumulative(
        np.arange(101),
        values,
        (values - error, values + error),
        xlabel="age (years)",
        whole=4610,
        steps=steps,
        quantiles=([2305], np.array([50.0]), (np.array([50.0]), np.array([50.0 + error / 20]))),
    )
    assert collisions(figure) == []
    if error == 400:
        assert legend(figure) == ["95% band", "estimate", "deciles, 95% intervals"]
    else:
        within = "deciles, 95% intervals within the dots"
        assert legend(figure) == ["estimate, with a 95% band thinner than the line", within]


def test_intervals_that_dots_hide_are_said_to_be_within_them() -> None:
    values = np.array([400.0, 300, 20])
    for half, label in (
        (1, "estimate, 95% interval within the dot"),
        (50, "estimate, 95% interval"),
    ):
        ends = (values - half, values + half)
        for figure in (
            plot.bars(["a", "b", "c"], values, ends, measure="users"),
            plot.histogram([0, 1, 2, 3], values, ends, xlabel="x", measure="users"),
        ):
            assert legend(figure) == [label]


def heights(figure: Figure) -> list[float]:
    (patch,) = patches(figure, StepPatch)
    return patch.get_data()[0].tolist()


def test_densities() -> None:
    """Bins of different widths are drawn by area; months and bins of equal ratios by height."""
    figure = plot.histogram(DELAY.cuts, [0.6, 0.3, 0.09, 0.01], xlabel="x", unit="minutes")
    assert heights(figure) == pytest.approx([0.01, 0.02, 0.002, 0.01 / 540])
    assert figure.axes[0].get_ylabel() == "fraction of the users per unit (minutes)"
    for one in (DATES["month"], INCOME, CHILDREN):
        values = np.full(one.bins, 1 / one.bins)
        figure = plot.histogram(one.cuts, values, xlabel="x", measure="users")
        assert heights(figure) == values.tolist()
        assert figure.axes[0].get_ylabel() == "users, each bin"
    days = DATES["day"].cuts[[0, 1, 3]]
    assert plot.histogram(days, [0.5, 0.5], xlabel="x").axes[0].get_ylabel().endswith("per day")


# -- errors
# --------------------------------------------------------------------------------------------------

DRAWN = {
    "bars": lambda v, i: plot.bars(["a", "b"], v, i),
    "cumulative": lambda v, i: plot.cumulative([0, 1, 3], v, i, xlabel="x"),
    "histogram": lambda v, i: plot.histogram([0, 1, 3], v, i, xlabel="x"),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_what_cannot_be_drawn(draw) -> None:
    for bad in ([np.nan, np.nan], [0.5, np.inf]):
        with pytest.raises(ValueError, match="nothing to draw: no reports"):
            draw(bad, None)
    with pytest.raises(ValueError, match="infinite"):
        draw([0.5, 0.5], ([-np.inf, 0], [0.6, np.inf]))
    with pytest.raises(ValueError, match="a low and a high end for each value"):
        draw([0.5, 0.5], ([0.4], [0.6]))
    with pytest.raises(ValueError, match=r"one entry for each|have 4 edges"):
        draw([0.5, 0.3, 0.2], None)


def test_errors() -> None:
    with pytest.raises(ValueError, match="no items asked for"):
        plot.bars(["a"], [0.5], largest=0)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.bars([], [])
    with pytest.raises(ValueError, match="2 bins have 3 edges, ascending"):
        plot.cumulative([0, 0, 1], [0.5, 1], xlabel="x")
    with pytest.raises(ValueError, match="truth must have one entry"):
        plot.cumulative([0, 1, 2], [0.5, 1], xlabel="x", truth=[1])


def test_whole_numbers_have_no_ticks_between_them() -> None:
    figure = plot.histogram(np.arange(25) - 0.5, np.full(24, 1 / 24), xlabel="hour")
    labels = ticks(figure, "x")
    assert len(labels) > 4
    assert all(label.isdigit() for label in labels)


# -- both intervals
# --------------------------------------------------------------------------------------------------


def test_the_models_intervals_lie_within() -> None:
    values, half = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.15])
    around, inner = (values - half, values + half), (values - half / 4, values + half / 2)
    labels = ["a", "b", "c"]
    drawn = [
        (plot.bars(labels, values, around, inner=inner, largest=2), 0),
        (plot.groups(labels, values, around, inner=inner, measure="users", as_given=True), 0),
        (plot.histogram(range(4), values, around, inner=inner, xlabel="x"), 1),
    ]
    for figure, along in drawn:
        assert "of the model, on average" in legend(figure)
        lines = figure.axes[0].findobj(LineCollection)[-2:]
        ends = [np.array([segment[:, along] for segment in one.get_segments()]) for one in lines]
        shown = ends[0].mean(axis=1)
        np.testing.assert_allclose(np.sort(shown), np.sort(values[np.isin(values, shown)]))
        for middle, (low, high) in zip(shown, ends[1], strict=True):
            (k,) = np.flatnonzero(np.isclose(values, middle))
            assert (low, high) == pytest.approx((inner[0][k], inner[1][k]))
        assert collisions(figure) == []
    cdf = plot.cumulative(range(4), values.cumsum(), around, inner=inner, xlabel="x", steps=True)
    assert "of the model, on average" in legend(cdf)
    assert len([patch for patch in patches(cdf, StepPatch) if patch.get_fill()]) == 2


def test_estimates_by_a_model_are_drawn_with_both() -> None:
    schema = Schema([Numeric("age", low=0, high=39, whole=True), Categorical("job", ["a", "b"])])
    survey, rng = Survey(WaveGrid(schema, 1.0, 4000), schema), np.random.default_rng(1)
    people = {"age": rng.binomial(39, 0.4, 4000), "job": rng.choice(["a", "b"], 4000)}
    estimate = survey.estimate(survey.aggregate(survey.privatize(people, rng)))
    for kind in ("cdf", "histogram", "bars"):
        figure = estimate.plot("age", kind=kind)
        assert "of the model, on average" in legend(figure)
