"""Ticks and labels have room, whatever is drawn."""

from __future__ import annotations

import re
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context, rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mechdesign import plot
from mechdesign.base.figures import (
    STYLE,
    PlainNumbers,
    caption_above,
    fitting,
    ink_on,
    legend_above,
    legend_entries,
    look,
    mark_dates,
    mark_numbers,
    panel,
    style,
    text_size,
)
from tests.pictures import collisions, legend, ticks, unseen

ROOT = Path(__file__).parents[3]
RANGES = [
    (-0.025, 0.024),
    (0, 1),
    (-1e-6, 3e-6),
    (0, 3e8),
    (1999.5, 2000.5),
    (0, 7e15),
    (0.1, 0.1000001),
    (-5, -4.99),
]


@pytest.mark.parametrize("ends", RANGES)
@pytest.mark.parametrize("width", [1.6, 2.6, 6.4])
def test_numbers_have_room(ends, width) -> None:
    figure, axes = panel("x", width=width)
    axes.set_xlim(*ends)
    assert collisions(figure) == []
    assert len(ticks(figure, "x")) >= (3 if width > 6 else 1)


def test_the_ticks_of_matplotlib_do_collide() -> None:
    """The check above rejects the ticks that are there by default."""
    figure = Figure(figsize=(1.2, 2), layout="constrained")
    figure.add_subplot(xlim=(-0.025, 0.024))
    assert collisions(figure)


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(0.001, 1e9), (1, 1e12), (100, 300), (1000, 1100), (2, 2e6)])
def test_logarithmic_axes(ends) -> None:
    figure, axes = panel("x")
    axes.set(xscale="log", xlim=ends)
    mark_numbers(axes.xaxis, logarithmic=True)
    assert collisions(figure) == []
    assert len(ticks(figure, "x")) >= 2


@pytest.mark.parametrize("days", [1 / 24, 0.5, 1, 3, 6, 20, 90, 400, 3000, 40_000])
def test_dates(days) -> None:
    figure, axes = panel("x")
    axes.set_xlim(15_700.0, 15_700 + days)
    mark_dates(axes.xaxis, 15_700.0, 15_700 + days)
    assert collisions(figure) == []
    assert 2 <= len(ticks(figure, "x")) <= 10


def test_what_is_marked() -> None:
    figure, axes = panel("x")
    axes.set_xlim(0, 10)
    mark_numbers(axes.xaxis, [0, 3, 10])
    assert ticks(figure, "x") == ["0", "3", "10"]
    mark_numbers(axes.xaxis, [0, 0.001, 10])  # without room for all
    assert ticks(figure, "x") == [str(k) for k in range(11)]
    mark_numbers(axes.xaxis, end=4)
    assert ticks(figure, "x")[-1] == "4"
    axes.set_xlim(0, 1.2)
    mark_numbers(axes.xaxis, whole=True)
    assert ticks(figure, "x") == ["0", "1"]


def test_plain_numbers() -> None:
    def texts(*values: float) -> list[str]:
        return PlainNumbers().format_ticks(values)

    assert texts(-0.025, -0.0, 0.025) == ["−0.025", "0.000", "0.025"]
    assert texts(0, 500_000, 1_000_000) == ["0", "500,000", "1,000,000"]
    assert texts(0.01, 0.1, 1, 1000) == ["0.01", "0.1", "1", "1,000"]
    assert texts(0, 2e-7) == ["0", "2e−07"]
    assert texts(2e-6, 5e-5, 0.0001) == ["0.000002", "0.00005", "0.0001"]
    assert texts() == []
    assert PlainNumbers()(0.1 + 0.2) == "0.3"


def test_labels_are_cut_and_stay_apart() -> None:
    assert fitting(["a\x1b[2J", "b"], 10) == ["a\\x1b[2J", "b"]
    assert fitting(["x" * 50], 6) == ["xxxxx…"]
    assert fitting([f"{'x' * 50}{k}" for k in range(3)], 6) == ["xxx…x0", "xxx…x1", "xxx…x2"]
    assert fitting(["same" * 9, "same" * 9], 6) == ["sames…", "sames…"]
    assert fitting([], 6) == []


def test_texts_are_no_formulas() -> None:
    figure, axes = panel("$x", "a$ to b$")
    axes.plot([0, 1], label="$\\frac$")
    caption_above(axes, "$\\nothing$")
    legend_above(figure)
    FigureCanvasAgg(figure).draw()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["$\\frac$"]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
def test_legends_are_within_the_figure(count) -> None:
    figure, axes = panel("x")
    for k in range(count):
        axes.plot([k], label=f"{'a long name ' * (k % 4)}{k}")
    legend_above(figure)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box = figure.legends[0].get_window_extent(canvas.get_renderer())
    assert box.x0 >= 0
    assert box.x1 <= canvas.get_width_height()[0]


def test_text_sizes_are_those_that_are_drawn() -> None:
    figure, axes = panel("x")
    canvas = FigureCanvasAgg(figure)
    text = axes.text(0, 0, "1,234 of them", fontsize=9)
    box = text.get_window_extent(canvas.get_renderer())
    assert text_size("1,234 of them", 9)[0] == pytest.approx(72 * box.width / figure.dpi, rel=0.05)


def test_text_sizes_follow_what_users_choose_for_all_figures() -> None:
    width, height = text_size("Williams")
    with rc_context({"font.family": "DejaVu Serif", "xtick.labelsize": 20}):
        assert text_size("Williams")[1] == pytest.approx(2 * height)
        assert text_size("Williams")[0] != pytest.approx(2 * width, rel=1e-6)
        figure, axes = panel("x", width=3)
        axes.set_xlim(-0.025, 0.024)
        assert collisions(figure) == []
    assert text_size("Williams") == (width, height)


def test_ink() -> None:
    assert ink_on(np.array([[1.0, 1, 1, 1], [0, 0, 0.5, 1]])).tolist() == ["black", "white"]


@pytest.mark.slow
def test_pictures_have_enough_points(tmp_path) -> None:
    from matplotlib.image import imread

    figure, _ = panel("x", width=3, height=2)
    plot.save(figure, tmp_path / "figure.png")
    assert imread(tmp_path / "figure.png").shape[:2] == (400, 600)
    plot.save(figure, tmp_path / "figure.svg")
    assert b"<svg" in (tmp_path / "figure.svg").read_bytes()[:1000]
    plot.save(figure, tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_texts_in_each_others_place_are_found() -> None:
    """The check above rejects them, and what is cut off."""
    figure, axes = panel("x")
    axes.set_yticks([0, 0.01], ["one of them", "another"])
    axes.set_ylim(0, 1)
    assert collisions(figure) == ["'one of them' over 'another'"]
    axes.set_xticks([0, 0.01], ["first", "second"], rotation=45, ha="right")
    assert "'first' over 'second'" in collisions(figure)
    figure.text(0.98, 0.5, "at the edge")
    assert "cut off: at the edge" in collisions(figure)


def test_series_are_told_apart_without_colours() -> None:
    looks = [look(series) for series in range(57)]
    assert len({(one["color"], one["marker"]) for one in looks[:56]}) == 56
    assert looks[56]["color"] == looks[0]["color"]
    for before, after in pairwise(looks):
        assert before["marker"] != after["marker"]
        assert before["linestyle"] != after["linestyle"]
    with pytest.raises(ValueError, match="counted from 0, got -1"):
        look(-1)


def test_figures_of_users_look_like_ours() -> None:
    before = dict(rcParams)
    with style():
        figure = Figure()
        axes = figure.add_subplot()
        for series in range(60):
            axes.plot([0, 1], [0, series])
    _, panels = panel("x")
    assert {name: rcParams[name] for name in before} == before
    for series, line in enumerate(axes.lines):
        assert {"color": line.get_color(), "marker": line.get_marker()}.items() <= (
            look(series).items()
        )
        assert line.get_markerfacecolor() == "none"
    assert [axes.spines[side].get_visible() for side in ("top", "right", "left")] == [0, 0, 1]
    assert figure.get_layout_engine() is not None
    assert axes.xaxis.get_gridlines()[0].get_color() == STYLE["grid.color"]
    # One home: a panel of ours has nothing but the style
    assert panels.xaxis.get_gridlines()[0].get_color() == STYLE["grid.color"]
    assert [panels.spines[side].get_visible() for side in ("top", "right", "left")] == [0, 0, 1]
    assert panels.plot([0, 1])[0].get_marker() == "o"
    plain = Figure().add_subplot()
    assert plain.plot([0, 1])[0].get_marker() == "None"


def test_a_function_has_the_style_and_loses_it_by_an_error() -> None:
    @style()
    def drawn(ends: tuple[float, float]) -> bool:
        low, high = ends
        return rcParams["axes.grid"] and low < high

    assert drawn((0, 1))
    with pytest.raises(TypeError):
        drawn(3)
    assert not rcParams["axes.grid"]


FOLDERS = ("mechdesign", "frequency", "rangeq", "examples", "reproduction", "benchmarks", "tools")
SOURCES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def own_looks(source: str) -> list[str]:
    """Colours of a file's own, and figures that do without the style."""
    colours = re.findall(r"[\"']#[0-9A-Fa-f]{6}[\"']", source)
    numbered = re.findall(r"color=f?[\"']C\{?\d?", source)
    plain = re.findall(r"\bFigure\(", source) if "style()" not in source else []
    return colours + numbered + plain


def test_every_figure_has_the_style() -> None:
    """Only its home says which colours there are."""
    found = {path: own_looks(source) for path, source in SOURCES.items()}
    assert found.pop("mechdesign/base/figures.py")
    assert {path: looks for path, looks in found.items() if looks} == {}


def test_a_figure_without_the_style_would_be_found() -> None:
    for source in ("color='#0072B2'", 'color=f"C{k}"', "Figure(figsize=(4, 3))"):
        assert own_looks(source)
    assert not own_looks("with style():\n    figure = Figure()")


def crowded() -> Figure:
    """A panel with artists of every kind that are seen, and with their twins that nobody sees."""
    figure, axes = panel("x", "y")
    axes.set(xlim=(0, 4), ylim=(0, 4))
    for seen in (True, False):
        name, nan = ("seen" if seen else "not"), (1.0 if seen else np.nan)
        axes.plot([1, 2], [nan, np.nan], "o", label=f"dots {name}")
        axes.plot([1, 2], [3 if seen else 9, 3.5 if seen else 9], label=f"line {name}")
        axes.hlines([1, 2], [1, 1], [2 if seen else 1, 1], label=f"lines {name}")
        axes.bar([1, 2], [0.5 * seen, 0], label=f"bars {name}")
        axes.errorbar([3], [2 * nan], [0.5], fmt="o", label=f"error {name}")
        axes.stairs([3 * nan, 2 * nan], [2, 3, 4], label=f"stairs {name}")
        axes.add_patch(Rectangle((3, 1), 0.5 * seen, 0.5, label=f"patch {name}"))
    axes.axvline(7, label="mark not")
    axes.plot([-1, 5], [2, 2.5], marker="", label="across seen")  # its ends are outside
    return figure


@pytest.mark.slow
def test_a_legend_names_what_is_seen() -> None:
    figure = crowded()
    legend_above(figure)
    names = legend(figure)
    assert all(name.endswith("seen") for name in names)
    assert len(names) == 8
    assert unseen(figure) == []


def test_a_legend_names_what_any_panel_shows_once() -> None:
    with style():
        figure = Figure()
        for values in ([np.nan, np.nan], [1, 2], [2, 1]):
            axes = figure.add_subplot()
            axes.plot([0, 1], values, label="error")
    handles, labels = legend_entries(figure)
    assert labels == ["error"]
    assert handles[0].get_ydata().tolist() == [1, 2]
    figure.axes[1].set_yscale("log")
    figure.axes[1].plot([0, 1], [0, -1], label="no logarithm")
    assert legend_entries(figure)[1] == ["error"]


@pytest.mark.slow
def test_a_legend_of_what_nobody_sees_would_be_found() -> None:
    """The check of the pictures, which sees pixels: of lines below others, too."""
    figure = crowded()
    axes = figure.axes[0]
    axes.plot([0, 4], [3.9, 3.9], linewidth=1, marker="", label="below not")
    axes.plot([0, 4], [3.9, 3.9], "k-", linewidth=6, zorder=5)
    figure.legend()
    found = [text.removeprefix("in the legend and not in the plot: ") for text in unseen(figure)]
    assert len(found) == 9
    assert all(text.endswith("not") for text in found)


@pytest.mark.slow
def test_saved_texts_can_be_searched(tmp_path) -> None:
    figure, _ = panel("a label that is text")
    plot.save(figure, tmp_path / "figure.pdf")
    assert b"/FontFile2" in (tmp_path / "figure.pdf").read_bytes()
    figure.savefig(tmp_path / "plain.pdf")
    assert b"/FontFile2" not in (tmp_path / "plain.pdf").read_bytes()


@pytest.mark.slow
def test_threads_take_turns_and_leave_settings_as_they_were() -> None:
    before, first, second = dict(rcParams), threading.Event(), threading.Event()

    def early() -> None:
        with style():
            first.set()
            second.wait(1)

    def late() -> None:
        first.wait(10)
        with style():
            second.set()
            threads[0].join(1)

    threads = [threading.Thread(target=early), threading.Thread(target=late)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(rcParams) == before
