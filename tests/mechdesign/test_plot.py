"""Figures: what is drawn equals what is computed another way, what cannot be drawn is refused."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mechdesign import (
    Bands,
    CountPairs,
    Counts,
    Mechanism,
    Privacy,
    design,
    explain,
    named,
    plot,
)
from mechdesign.losses import binomial
from mechdesign.mechanism.explanation import QUESTIONS
from tests.pictures import collisions, texts

ALPHA = Fraction(9, 10)
ALPHA_PRIVACY = Privacy(alpha=ALPHA)
PS = [Fraction(k, 10) for k in range(11)]
RECTANGULAR = Mechanism([["1/2", 0], ["1/4", "1/4"], ["1/4", "3/4"]], Privacy(alpha="1/3"))


def trio(n: int) -> dict[str, Mechanism]:
    return {
        "GM": named.geometric(n, alpha=ALPHA),
        "EM": named.explicit_fair(n, alpha=ALPHA),
        "UM": named.uniform(n),
    }


def error_shares(mechanism: Mechanism, prior: tuple[Fraction, ...]) -> dict[int, Fraction]:
    """The distribution of output minus input, entry by entry of the exact table."""
    shares: dict[int, Fraction] = {}
    for i, row in enumerate(mechanism.table):
        for j, entry in enumerate(row):
            shares[i - j] = shares.get(i - j, Fraction(0)) + prior[j] * entry
    return shares


def lines(figure: Figure) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    (axes,) = figure.axes
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()), np.asarray(line.get_ydata()))
        for line in axes.lines
    }


def legend(figure: Figure) -> list[str]:
    (box,) = figure.legends
    return [text.get_text() for text in box.get_texts()]


def every_figure() -> dict[str, Figure]:
    return {
        "heatmaps": plot.heatmaps(trio(4)),
        "error_histograms": plot.error_histograms(trio(4), binomial(4, "1/10")),
        "l0d_against_d": plot.l0d_against_d(trio(4), binomial(4, "1/2")),
    }


# -- every figure
# --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_figure_renders_and_is_labelled() -> None:
    for name, figure in every_figure().items():
        target = io.BytesIO()
        figure.savefig(target, format="png", dpi=100)
        assert target.getvalue().startswith(b"\x89PNG"), name
        for axes in figure.axes:
            assert axes.get_ylabel(), name
            assert axes.get_xlabel() or axes.get_label() == "<colorbar>", name


@pytest.mark.slow
def test_no_window_and_no_global_state() -> None:
    """In a fresh interpreter pyplot is not even imported, and importing the package does not import
    matplotlib.
    """
    code = """
import sys
import mechdesign
packages = {name.split(".")[0] for name in sys.modules}
assert "matplotlib" not in packages, "import mechdesign loads matplotlib"
from mechdesign import named, plot
plot.heatmaps({"GM": named.geometric(2, alpha="1/2")})
plot.lines("x", "y", [0, 1], {"GM": [1, 2]})
assert "matplotlib.pyplot" not in sys.modules, "pyplot was loaded"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_no_figure_is_left_open() -> None:
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    every_figure()
    assert pyplot.get_fignums() == before


# -- heat maps
# --------------------------------------------------------------------------------------------------


def test_heatmaps_draw_the_tables_on_one_scale() -> None:
    mechanisms = trio(4)
    figure = plot.heatmaps(mechanisms)
    panels, bars = figure.axes[:-1], figure.axes[-1:]
    assert [axes.get_title(loc="left") for axes in panels] == list(mechanisms)
    for axes, mechanism in zip(panels, mechanisms.values(), strict=True):
        (image,) = axes.images
        np.testing.assert_array_equal(
            np.asarray(image.get_array()),
            np.array([[float(x) for x in row] for row in mechanism.table]),
        )
        # 1 / (1 + alpha), the corner of GM, is the largest entry of the three tables.
        assert image.get_clim() == (0.0, float(1 / (1 + ALPHA)))
        bottom, top = axes.get_ylim()
        assert bottom > top, "output 0 belongs at the top"
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("input", "output")
    assert [axes.get_label() for axes in bars] == ["<colorbar>"]


@pytest.mark.parametrize("n", [0, 1, 4, 8, 20, 50])
def test_heatmap_ticks_are_integers(n: int) -> None:
    axes = plot.heatmaps({"EM": named.explicit_fair(n, alpha=ALPHA)}).axes[0]
    for ticks in (axes.get_xticks(), axes.get_yticks()):
        shown = [tick for tick in ticks if 0 <= tick <= n]
        assert shown
        assert all(tick == int(tick) for tick in ticks)
        assert n > 8 or shown == list(range(n + 1))


def test_small_tables_print_their_entries_legibly() -> None:
    mechanism = Mechanism([[1, "1/3", 0], [0, "1/3", 0], [0, "1/3", 1]], Privacy(alpha="1/2"))
    axes, _ = plot.heatmaps({"gaps": mechanism}).axes
    printed = {text.get_position(): text for text in axes.texts}
    expected = {
        (0, 0): "1.00",
        (1, 0): "0.33",
        (2, 0): "0",
        (0, 1): "0",
        (1, 1): "0.33",
        (2, 1): "0",
    }
    expected |= {(0, 2): "0", (1, 2): "0.33", (2, 2): "1.00"}
    assert {where: text.get_text() for where, text in printed.items()} == expected
    assert to_hex(printed[0, 0].get_color()) == "#000000"  # the lightest cell
    assert to_hex(printed[2, 0].get_color()) == "#ffffff"  # the darkest


@pytest.mark.parametrize("n", [4, 8, 9])
def test_contrast_of_printed_entries(n: int) -> None:
    """The WCAG contrast ratio of every printed number on its cell is at least 4; tables above n = 8
    print nothing.
    """

    def luminance(colour: npt.ArrayLike) -> float:
        channel = np.asarray(colour)[:3]
        linear = np.where(channel <= 0.04045, channel / 12.92, ((channel + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    figure = plot.heatmaps(
        {"ramp": named.geometric(n, alpha="3/4"), "EM": named.explicit_fair(n, alpha="3/4")}
    )
    for axes in figure.axes[:-1]:
        (image,) = axes.images
        values = image.get_array()
        assert values is not None
        assert len(axes.texts) == ((n + 1) ** 2 if n <= 8 else 0)
        for text in axes.texts:
            j, i = text.get_position()
            cell = luminance(image.cmap(image.norm(values[int(i), int(j)])))
            ink = luminance(to_rgba(text.get_color()))
            assert (max(cell, ink) + 0.05) / (min(cell, ink) + 0.05) >= 4


def test_heatmaps_say_what_rows_and_columns_stand_for() -> None:
    bands = design(8, Privacy(alpha="1/2"), outputs=Bands([(0, 2), (3, 8)])).mechanism
    wide = design(3, Privacy(alpha="1/2"), outputs=Counts(-5, 20)).mechanism
    pairs = design(CountPairs(1, 2), Privacy(alpha="1/2")).mechanism
    figure = plot.heatmaps({"bands": bands, "wide": wide, "pairs": pairs})
    marks = [
        [[text.get_text() for text in axis.get_ticklabels()] for axis in (axes.yaxis, axes.xaxis)]
        for axes in figure.axes[:3]
    ]
    assert marks[0][0] == ["0-2", "3-8"]
    assert marks[1][0] == ["-5", "-2", "1", "4", "7", "10", "13", "16", "19"]
    assert marks[2] == [["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]] * 2


def test_heatmaps_mix_sizes_and_take_rectangles() -> None:
    mechanisms = {
        "RR": named.randomized_response(alpha="1/2"),
        "GM": named.geometric(12, alpha="1/2"),
        "tall": RECTANGULAR,
    }
    figure = plot.heatmaps(mechanisms)
    assert [np.shape(axes.images[0].get_array()) for axes in figure.axes[:-1]] == [
        (2, 2),
        (13, 13),
        (3, 2),
    ]
    assert {axes.images[0].get_clim() for axes in figure.axes[:-1]} == {(0.0, 0.75)}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 10])
def test_any_number_of_panels(count: int) -> None:
    figure = plot.heatmaps({f"mechanism {k}": named.uniform(k) for k in range(count)})
    assert len(figure.axes) == count + 1
    corners = {
        (round(axes.get_position().x0, 3), round(axes.get_position().y0, 3))
        for axes in figure.axes[:-1]
    }
    assert len(corners) == count


# -- errors of the answers
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 4, 8])
def test_error_histograms(n: int) -> None:
    prior = binomial(n, "1/10")
    mechanisms = trio(n)
    figure = plot.error_histograms(mechanisms, prior)
    (axes,) = figure.axes
    assert legend(figure) == list(mechanisms)
    for bars, mechanism in zip(axes.containers, mechanisms.values(), strict=True):
        shares = error_shares(mechanism, prior)
        heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in bars}
        assert len(heights) == len(bars) == 2 * n + 1
        assert heights == pytest.approx(
            {error: float(share) for error, share in shares.items()}, rel=1e-12, abs=0
        )
        assert math.fsum(heights.values()) == pytest.approx(1, abs=1e-12)
    # Bars of one error stand side by side and within the half-steps around it.
    edges = sorted(
        (bar.get_x(), bar.get_x() + bar.get_width()) for bars in axes.containers for bar in bars
    )
    assert all(right <= left + 1e-9 for (_, right), (left, _) in pairwise(edges))
    assert all(round(left + 1e-9) == round(right - 1e-9) for left, right in edges)


def test_error_histograms_default_to_uniform_inputs() -> None:
    (axes,) = plot.error_histograms({"RR": named.randomized_response(alpha="1/2")}).axes
    assert [bar.get_height() for bar in axes.containers[0]] == pytest.approx([1 / 6, 2 / 3, 1 / 6])


@pytest.mark.parametrize("n", [1, 4])
def test_l0d_against_d(n: int) -> None:
    mechanisms, prior = trio(n), binomial(n, "3/10")
    figure = plot.l0d_against_d(mechanisms, prior)
    drawn = lines(figure)
    assert list(drawn) == legend(figure) == list(mechanisms)
    for name, (x, y) in drawn.items():
        shares = error_shares(mechanisms[name], prior)
        assert x.tolist() == list(range(n))
        assert y.tolist() == [
            float(sum(share for e, share in shares.items() if abs(e) > d)) for d in range(n)
        ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("low", "high", "some"),
    [(0.00013, 0.008, "1.001"), (0.03, 2.4, "1.1"), (0.25, 16, "2"), (12, 128, "1e+12")],
)
def test_the_factor_of_odds_is_marked_above_epsilon(low: float, high: float, some: str) -> None:
    epsilons = np.geomspace(low, high, 9).tolist()
    figure = plot.error_against_epsilon(epsilons, {"A": [1 / epsilon for epsilon in epsilons]})
    assert collisions(figure) == []
    (axes,) = figure.axes
    (odds,) = axes.child_axes
    left, right = axes.get_xlim()
    marked = [
        (epsilon, label.get_text())
        for epsilon, label in zip(odds.get_xticks(), odds.get_xticklabels(), strict=True)
        if left <= epsilon <= right
    ]
    assert len(marked) >= 2
    assert some in [text for _, text in marked]
    for epsilon, text in marked:
        np.testing.assert_allclose(float(text.replace(",", "")), math.exp(epsilon), rtol=1e-9)
    np.testing.assert_allclose(
        [odds.transData.transform((epsilon, 0))[0] for epsilon, _ in marked],
        [axes.transData.transform((epsilon, 1))[0] for epsilon, _ in marked],
    )


def test_a_legend_leaves_out_curves_without_a_point() -> None:
    curves = {"A": [2.0, 1.0], "no theory": [math.nan, math.nan], "one": [math.nan, 3.0]}
    figure = plot.error_against_epsilon([1.0, 2.0], curves)
    assert legend(figure) == ["A", "one"]
    assert collisions(figure) == []


def test_series_can_be_told_apart() -> None:
    many = {f"mechanism {k}": named.geometric(2, alpha=Fraction(k, 30)) for k in range(1, 29)}
    (axes,) = plot.l0d_against_d(many).axes
    looks = {(line.get_color(), line.get_marker()) for line in axes.lines}
    assert len(looks) == len(many)
    first = axes.lines[:7]
    assert (
        len({line.get_color() for line in first}) == len({line.get_marker() for line in first}) == 7
    )
    (axes,) = plot.error_histograms(many).axes
    assert len(
        {(to_hex(bars[0].get_facecolor()), bars[0].get_hatch()) for bars in axes.containers}
    ) == len(many)


# -- what cannot be drawn
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.heatmaps({}),
        lambda: plot.error_histograms({}, None),
        lambda: plot.l0d_against_d({}, None),
        lambda: plot.lines("x", "y", [1], {}),
        lambda: plot.lines("x", "y", [], {"UM": []}),
    ],
)
def test_nothing_to_draw(draw) -> None:
    with pytest.raises(ValueError, match="is empty: there is nothing to draw"):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        plot.error_histograms,
        plot.l0d_against_d,
    ],
)
def test_one_figure_has_one_n(draw) -> None:
    with pytest.raises(ValueError, match="one n: small has n = 2, large has n = 3"):
        draw({"small": named.uniform(2), "large": named.uniform(3)})
    with pytest.raises(ValueError, match="tall is 3 x 2"):
        draw({"tall": RECTANGULAR})


def test_bad_numbers() -> None:
    with pytest.raises(ValueError, match="no d to draw"):
        plot.l0d_against_d({"UM": named.uniform(0)})
    with pytest.raises(ValueError, match="3 weights for 5 inputs"):
        plot.error_histograms(trio(4), binomial(2, "1/2"))


# -- the page of an explanation
# --------------------------------------------------------------------------------------------------

PAIRS = CountPairs(2, 3)
EXPLAINED = {
    **{f"n = {n}": named.geometric(n, alpha=ALPHA) for n in (0, 1, 8, 20, 60)},
    "certain": Mechanism([[1, 0], [0, 1]], ALPHA_PRIVACY),
    "local": named.krr(5, alpha="1/2"),
    "wider": Mechanism(
        [["1/4", 0], ["1/4", "1/4"], ["1/4", "1/4"], ["1/4", "1/2"]],
        ALPHA_PRIVACY,
        outputs=Counts(-2, 1),
    ),
    "bands": Mechanism(
        [["2/3", "2/3", "1/3"], ["1/3", "1/3", "2/3"]],
        ALPHA_PRIVACY,
        outputs=Bands([(0, 1), (2, 200)]),
    ),
    "pairs": Mechanism(
        [["1/12"] * 12] * 12,
        Privacy(alpha="1/2", neighbours=PAIRS.neighbours()),
        outputs=PAIRS,
        inputs=PAIRS,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPLAINED)
def test_the_page_of_an_explanation_says_all_and_nothing_is_hidden(name: str) -> None:
    told = explain(EXPLAINED[name])
    figure = plot.explanation_page(told)
    assert collisions(figure) == []
    shown = " ".join(" ".join(text.get_text() for text, _ in texts(figure)).split())
    for line in (told.statement, *QUESTIONS, *told.answers):
        assert line in shown
    assert tuple(figure.get_size_inches()) == (8.27, 11.69)


def test_the_page_of_an_explanation_draws_its_numbers() -> None:
    told = explain(named.explicit_fair(8, alpha=ALPHA), binomial(8, "1/3"))
    errors, counts, truths, beliefs = plot.explanation_page(told).axes
    histogram = told.table.error_distribution(told.prior).histogram
    total = 0.0
    for bar in errors.patches:
        assert isinstance(bar, Rectangle)
        error = round(bar.get_x() + bar.get_width() / 2)
        assert bar.get_height() == pytest.approx(100 * float(histogram[error]))
        total += bar.get_height()
    assert 99.9 <= total <= 100.001
    typical = [math.sqrt(each.mean_square) for each in told.true_counts]
    np.testing.assert_allclose(counts.lines[0].get_ydata(), typical)
    for bar, each in zip(truths.patches, told.published_values, strict=True):
        assert isinstance(bar, Rectangle)
        assert each.extent is not None
        ends = bar.get_y() + 0.4, bar.get_y() + bar.get_height() - 0.4
        assert ends == pytest.approx((int(each.extent[0]), int(each.extent[1])))
    (least, most, same) = (line.get_ydata() for line in beliefs.lines)
    bound = [100 * float(told.risks[0].belief(Fraction(k, 100))) for k in range(101)]
    np.testing.assert_allclose(most, bound)
    np.testing.assert_allclose(least, 100 - np.array(bound)[::-1])
    np.testing.assert_allclose(same, range(101))
