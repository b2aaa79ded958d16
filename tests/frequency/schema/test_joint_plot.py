"""Heat maps and mosaics show what they say, and their texts have room."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from frequency import Categorical, Numeric
from frequency.schema import joint_plot
from frequency.schema import plot as scales
from tests.frequency.schema.survey_attributes import (
    AGE,
    CHILDREN,
    COUNTRY,
    DATES,
    DELAY,
    INCOME,
    ISLAND,
    MASS,
    ONE,
    SEX,
    SMOKES,
    WORK,
    noisy,
)
from tests.pictures import collisions, legend, patches, ticks, title

# -- pairs
# --------------------------------------------------------------------------------------------------

PAIRS = [
    (AGE, INCOME),
    (SEX, AGE),
    (INCOME, SEX),
    (ISLAND, SMOKES),
    (COUNTRY, WORK),
    (WORK, COUNTRY),
    (MASS, DATES["month"]),
    (DATES["year"], MASS),
    (DATES["day"], DELAY),
    (ONE, ONE),
    (CHILDREN, CHILDREN),
]


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(one.name for one in pair))
def test_heat_maps_have_room(pair) -> None:
    shape = tuple(one.size for one in pair)
    figure = joint_plot.heat_map(pair, *noisy(shape, error=0.3 / np.prod(shape)))
    assert collisions(figure) == []
    for axis, one in zip("xy", pair, strict=True):
        marked = ticks(figure, axis)
        assert 1 <= len(marked) <= 40 + len(one.extra)
        assert set(one.extra) <= set(marked)
    axes, scale = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == tuple(map(scales.title, pair))
    assert scale.get_ylabel() == "fraction of the users"


@pytest.mark.slow
@pytest.mark.parametrize(("count", "every"), [(40, 1), (41, 2)])
def test_names_are_left_out_only_where_there_are_many(count, every) -> None:
    city = Categorical("city", [f"Town number {k}" for k in range(count)], missing="item")
    named = [*city.labels[::every], "missing"]
    for pair in ((city, AGE), (SEX, city)):
        figure = joint_plot.heat_map(pair, np.ones([one.size for one in pair]))
        assert collisions(figure) == []
        assert sorted(ticks(figure, "xy"[pair.index(city)])) == sorted(named)


@pytest.mark.slow
def test_what_is_within_the_noise_is_blank() -> None:
    values, (low, high) = noisy((6, 3))
    figure = joint_plot.heat_map((CHILDREN, ISLAND), values, (low, high), confidence=0.9)
    cells: Any = np.ma.asarray(figure.axes[0].collections[0].get_array())
    np.testing.assert_array_equal(np.ma.getmaskarray(cells), (low <= 0).T)
    assert (low <= 0).any()
    np.testing.assert_array_equal(cells.compressed(), values.T[low.T > 0])
    assert legend(figure) == ["within the noise: 90% intervals for all 18 cells at once reach 0"]
    assert collisions(figure) == []
    printed = {text.get_text() for text in figure.axes[0].texts}
    assert printed == {f"{value:.3f}".replace("-", "−") for value in values.flat}
    cells = joint_plot.heat_map((CHILDREN, ISLAND), values).axes[0].collections[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(cells), (values <= 0).T)  # of unknown errors
    assert legend(joint_plot.heat_map((CHILDREN, ISLAND), values)) == ["not above 0"]
    assert joint_plot.heat_map((CHILDREN, ISLAND), np.abs(values)).legends == []


@pytest.mark.slow
def test_a_map_without_a_coloured_cell_has_no_scale() -> None:
    values, _ = noisy((6, 3))
    for interval in (None, (values - 2, values + 2)):
        figure = joint_plot.heat_map((CHILDREN, ISLAND), -np.abs(values), interval)
        assert len(figure.axes) == 1
        assert title(figure) == "no cell can be told from 0: ask for fewer items, or wider bins"
        assert len(legend(figure)) == 1
        assert collisions(figure) == []


def test_all_bins_are_as_wide_as_each_other() -> None:
    shape = (INCOME.size, DELAY.size)
    (axes, _) = joint_plot.heat_map((INCOME, DELAY), np.ones(shape)).axes
    edges = axes.transData.transform(np.stack([INCOME.cuts, np.full(25, -60.0)], axis=1))[:, 0]
    np.testing.assert_allclose(np.diff(edges), np.diff(edges)[0], rtol=1e-6)
    (axes, _) = joint_plot.heat_map((DELAY, INCOME), np.ones(shape[::-1])).axes
    assert ticks(axes.figure, "x") == ["−60", "0", "15", "60", "600"]


@pytest.mark.slow
def test_many_bins_of_different_widths_have_ticks_at_equal_steps() -> None:
    cuts = [-10, -5, *range(21), 25, 30, 45, 60, 90, 120, 180, 360]
    delay = Numeric("delay", edges=cuts, whole=True)
    (axes, _) = joint_plot.heat_map((SEX, delay), np.ones((SEX.size, delay.size))).axes
    marked = [cuts.index(int(text.replace("−", "-"))) for text in ticks(axes.figure, "y")]
    assert len(marked) > 8
    assert len(set(np.diff(marked))) == 1
    assert collisions(axes.figure) == []


# -- mosaics
# --------------------------------------------------------------------------------------------------

GROUPS = [
    (ISLAND, SEX),
    (SEX, ISLAND),
    (WORK, SMOKES),
    (SMOKES, SMOKES),
    (ISLAND, SMOKES, SEX),
    (Categorical("work", [f"A long name of an occupation {k}" for k in range(16)]), CHILDREN),
    (Categorical("airline", [f"W{k}" for k in "ABCDEFGHIJKLMNOP"]), ISLAND),
]


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: "-".join(one.name for one in group))
def test_mosaics_have_room(group) -> None:
    shape = tuple(one.size for one in group)
    figure = joint_plot.mosaic(group, *noisy(shape, error=0.3 / np.prod(shape)))
    assert collisions(figure) == []
    assert len(ticks(figure, "x")) == group[0].size
    assert [key.get_title().get_text() for key in figure.legends] == [one.name for one in group[1:]]
    assert [len(key.get_texts()) for key in figure.legends] == list(shape[1:])


@pytest.mark.slow
def test_narrow_columns_have_room_for_their_names() -> None:
    table = np.array([[0.9, 0.05], [0.001, 0.001], [0.001, 0.002], [0.002, 0.001], [0.03, 0]])
    work = Categorical("work", [f"occupation {k}" for k in range(5)])
    figure = joint_plot.mosaic((work, SMOKES), table)
    assert collisions(figure) == []
    assert ticks(figure, "x") == list(work.item_labels)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_areas_are_shares(scale) -> None:
    table = scale * np.array([[0.2, 0.3, -0.1], [0.1, 0.0, 0.4]])
    figure = joint_plot.mosaic(
        (SMOKES, ISLAND), table, measure="users" if scale > 1 else "fraction"
    )
    tiles = patches(figure, Rectangle)
    areas = [tile.get_width() * tile.get_height() for tile in tiles]
    np.testing.assert_allclose(areas, np.array([0.2, 0.3, 0.1, 0.4]))
    rest = "1,000,000" if scale > 1 else "1"
    lost = "−100,000" if scale > 1 else "−0.1"
    assert title(figure) == (
        f"1 of 6 tiles are below 0, {lost} in all, and drawn as 0; areas are shares of the rest,"
        f" {rest}"
    )
    thirds = np.stack([table, table], axis=2) / 2
    split = patches(joint_plot.mosaic((SMOKES, ISLAND, SMOKES), thirds), Rectangle)
    areas = [tile.get_width() * tile.get_height() for tile in split]
    np.testing.assert_allclose(areas, np.repeat([0.1, 0.15, 0.05, 0.2], 2))
    assert title(joint_plot.mosaic((SMOKES, ISLAND), np.abs(table) / np.abs(table).sum())) == ""


@pytest.mark.slow
def test_the_legend_of_a_mosaic_names_the_tiles_that_are_seen() -> None:
    table = np.array([[0.2, 0.3, -0.1], [0.1, 1e-9, 0.0]])
    figure = joint_plot.mosaic((SMOKES, ISLAND), table)
    assert legend(figure) == ["Dream", "Biscoe"]
    assert title(figure).endswith("no visible tile of island for: Torgersen")
    assert collisions(figure) == []
    halves = np.stack([np.abs(table), 0 * table], axis=2)
    figure = joint_plot.mosaic((SMOKES, ISLAND, SMOKES), halves)
    assert [[text.get_text() for text in key.get_texts()] for key in figure.legends] == [
        ["Torgersen", "Dream", "Biscoe"],
        [SMOKES.item_labels[0]],
    ]
    assert title(figure).endswith(f"no visible tile of smokes for: {SMOKES.item_labels[1]}")
    assert collisions(figure) == []


# -- errors
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [joint_plot.heat_map, joint_plot.mosaic])
def test_what_cannot_be_drawn(draw) -> None:
    with pytest.raises(ValueError, match="nothing to draw: no reports"):
        draw((SMOKES, SMOKES), np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match=r"have \(2, 3\) items, got values of shape \(3, 2\)"):
        draw((SMOKES, ISLAND), np.ones((3, 2)))
    with pytest.raises(ValueError, match="attributes, not of 1"):
        draw((SMOKES,), np.ones(2))


def test_what_no_mosaic_shows() -> None:
    with pytest.raises(ValueError, match="no value is above 0"):
        joint_plot.mosaic((SMOKES, SMOKES), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="country has 62 items, and a mosaic shows at most 8"):
        joint_plot.mosaic((SMOKES, COUNTRY), np.zeros((2, 62)))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["svg", "pdf", "png"])
def test_every_format(format) -> None:
    target = io.BytesIO()
    joint_plot.heat_map((SEX, AGE), np.ones((3, 122))).savefig(target, format=format)
    assert target.getvalue()
