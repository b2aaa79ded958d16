"""Figures: what is drawn equals what is computed another way, what cannot be drawn is refused."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import time
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure

from mechdesign import InexactNumber, Mechanism, Privacy, named, plot
from mechdesign.losses import binomial

ALPHA = Fraction(9, 10)
PS = [Fraction(k, 10) for k in range(11)]
RECTANGULAR = Mechanism([["1/2", 0], ["1/4", "1/4"], ["1/4", "3/4"]], Privacy("1/3"))


def trio(n: int) -> dict[str, Mechanism]:
    return {
        "GM": named.geometric(n, ALPHA),
        "EM": named.explicit_fair(n, ALPHA),
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
    by_n = {"GM": lambda n: named.geometric(n, ALPHA), "UM": named.uniform}
    by_alpha = {"GM": lambda alpha: named.geometric(3, alpha), "UM": lambda alpha: named.uniform(3)}
    return {
        "heatmaps": plot.heatmaps(trio(4)),
        "l0_against_n": plot.l0_against_n(by_n, range(1, 5)),
        "l0_against_alpha": plot.l0_against_alpha(by_alpha, [Fraction(1, 2), ALPHA]),
        "error_histograms": plot.error_histograms(trio(4), binomial(4, "1/10")),
        "rmse_against_p": plot.rmse_against_p(trio(4), PS),
        "l0d_against_p": plot.l0d_against_p(trio(4), PS),
        "l0d_against_d": plot.l0d_against_d(trio(4), binomial(4, "1/2")),
    }


# -- every figure
# --------------------------------------------------------------------------------------------------


def test_every_figure_renders_and_is_labelled() -> None:
    for name, figure in every_figure().items():
        target = io.BytesIO()
        figure.savefig(target, format="png", dpi=100)
        assert target.getvalue().startswith(b"\x89PNG"), name
        for axes in figure.axes:
            assert axes.get_ylabel(), name
            assert axes.get_xlabel() or axes.get_label() == "<colorbar>", name


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
plot.heatmaps({"GM": named.geometric(2, "1/2")})
plot.rmse_against_p({"GM": named.geometric(2, "1/2")}, [0, 1])
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
    assert [axes.get_title() for axes in panels] == list(mechanisms)
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
    axes = plot.heatmaps({"EM": named.explicit_fair(n, ALPHA)}).axes[0]
    for ticks in (axes.get_xticks(), axes.get_yticks()):
        shown = [tick for tick in ticks if 0 <= tick <= n]
        assert shown
        assert all(tick == int(tick) for tick in ticks)
        assert n > 8 or shown == list(range(n + 1))


def test_small_tables_print_their_entries_legibly() -> None:
    mechanism = Mechanism([[1, "1/3", 0], [0, "1/3", 0], [0, "1/3", 1]], Privacy("1/2"))
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

    figure = plot.heatmaps({"ramp": named.geometric(n, "3/4"), "EM": named.explicit_fair(n, "3/4")})
    for axes in figure.axes[:-1]:
        (image,) = axes.images
        assert len(axes.texts) == ((n + 1) ** 2 if n <= 8 else 0)
        for text in axes.texts:
            j, i = text.get_position()
            cell = luminance(image.cmap(image.norm(image.get_array()[i, j])))
            ink = luminance(to_rgba(text.get_color()))
            assert (max(cell, ink) + 0.05) / (min(cell, ink) + 0.05) >= 4


def test_heatmaps_mix_sizes_and_take_rectangles() -> None:
    mechanisms = {
        "RR": named.randomized_response("1/2"),
        "GM": named.geometric(12, "1/2"),
        "tall": RECTANGULAR,
    }
    figure = plot.heatmaps(mechanisms)
    assert [axes.images[0].get_array().shape for axes in figure.axes[:-1]] == [
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


# -- scaled L0
# --------------------------------------------------------------------------------------------------


def test_l0_against_n() -> None:
    """GM scores 2 alpha / (1 + alpha) and UM 1 (Figure 6.5); EM scores ((n + 1) - trace) / n (eq.
    6.1).
    """
    ns = [1, 2, 3, 8]
    curves = {
        "GM": lambda n: named.geometric(n, ALPHA),
        "EM": lambda n: named.explicit_fair(n, ALPHA),
        "UM": named.uniform,
    }
    figure = plot.l0_against_n(curves, ns)
    fair = [named.explicit_fair(n, ALPHA).table for n in ns]
    expected = {
        "GM": [18 / 19] * 4,
        "EM": [
            float((n + 1 - sum(table[i][i] for i in range(n + 1))) / n)
            for n, table in zip(ns, fair, strict=True)
        ],
        "UM": [1.0] * 4,
    }
    drawn = lines(figure)
    assert list(drawn) == legend(figure) == list(expected)
    for name, (x, y) in drawn.items():
        assert x.tolist() == ns
        assert y.tolist() == expected[name]
    assert figure.axes[0].get_ylabel() == "scaled L0 (eq. 6.1)"


def test_l0_against_alpha() -> None:
    alphas = ["1/2", Fraction(2, 3), ALPHA]
    seen: list[Fraction] = []

    def geometric(alpha: Fraction) -> Mechanism:
        seen.append(alpha)
        return named.geometric(5, alpha)

    figure = plot.l0_against_alpha({"GM": geometric, "UM": lambda alpha: named.uniform(5)}, alphas)
    assert seen == [Fraction(1, 2), Fraction(2, 3), Fraction(9, 10)]
    (x, y), (_, flat) = lines(figure).values()
    assert x.tolist() == [0.5, 2 / 3, 0.9]
    assert y.tolist() == [float(2 * alpha / (1 + alpha)) for alpha in seen]
    assert flat.tolist() == [1.0, 1.0, 1.0]
    assert figure.axes[0].get_ylabel() == "scaled L0 (eq. 6.1)"


def test_progress_only_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mechdesign._support.progress._WRITTEN", 0.01)

    def slow(n: int) -> Mechanism:
        time.sleep(0.3)
        return named.uniform(n)

    plot.l0_against_n({"UM": slow}, [1, 2])
    assert capsys.readouterr() == ("", "")
    plot.l0_against_n({"UM": slow}, [1, 2], progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "mechanisms" in shown.err


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
    (axes,) = plot.error_histograms({"RR": named.randomized_response("1/2")}).axes
    assert [bar.get_height() for bar in axes.containers[0]] == pytest.approx([1 / 6, 2 / 3, 1 / 6])


@pytest.mark.parametrize("n", [1, 4, 8])
def test_rmse_against_p(n: int) -> None:
    mechanisms = trio(n)
    figure = plot.rmse_against_p(mechanisms, PS)
    drawn = lines(figure)
    assert list(drawn) == legend(figure) == list(mechanisms)
    for name, (x, y) in drawn.items():
        shares = [error_shares(mechanisms[name], binomial(n, p)) for p in PS]
        assert x.tolist() == [float(p) for p in PS]
        assert y == pytest.approx(
            [math.sqrt(sum(e * e * share for e, share in row.items())) for row in shares], rel=1e-12
        )
    assert figure.axes[0].get_ylabel() == "root mean square error"


@pytest.mark.parametrize("d", [0, 1, 3])
def test_l0d_against_p(d: int) -> None:
    mechanisms = trio(4)
    figure = plot.l0d_against_p(mechanisms, PS, d) if d != 1 else plot.l0d_against_p(mechanisms, PS)
    for name, (x, y) in lines(figure).items():
        shares = [error_shares(mechanisms[name], binomial(4, p)) for p in PS]
        assert x.tolist() == [float(p) for p in PS]
        assert y.tolist() == [
            float(sum(share for e, share in row.items() if abs(e) > d)) for row in shares
        ]
    assert f"> {d}" in figure.axes[0].get_ylabel()


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


def test_series_can_be_told_apart() -> None:
    many = {f"mechanism {k}": named.geometric(2, Fraction(k, 30)) for k in range(1, 29)}
    (axes,) = plot.rmse_against_p(many, [0, 1]).axes
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
        lambda: plot.l0_against_n({}, [1]),
        lambda: plot.l0_against_n({"UM": named.uniform}, []),
        lambda: plot.l0_against_alpha({}, [ALPHA]),
        lambda: plot.l0_against_alpha({"UM": lambda alpha: named.uniform(2)}, []),
        lambda: plot.error_histograms({}, None),
        lambda: plot.rmse_against_p({}, PS),
        lambda: plot.rmse_against_p(trio(2), []),
        lambda: plot.l0d_against_p({}, PS),
        lambda: plot.l0d_against_p(trio(2), []),
        lambda: plot.l0d_against_d({}, None),
    ],
)
def test_nothing_to_draw(draw) -> None:
    with pytest.raises(ValueError, match="is empty: there is nothing to draw"):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        plot.error_histograms,
        lambda mechanisms: plot.rmse_against_p(mechanisms, PS),
        lambda mechanisms: plot.l0d_against_p(mechanisms, PS),
        plot.l0d_against_d,
    ],
)
def test_one_figure_has_one_n(draw) -> None:
    with pytest.raises(ValueError, match="one n: small has n = 2, large has n = 3"):
        draw({"small": named.uniform(2), "large": named.uniform(3)})
    with pytest.raises(ValueError, match="tall is 3 x 2"):
        draw({"tall": RECTANGULAR})


def test_curves_of_the_wrong_size() -> None:
    with pytest.raises(ValueError, match="UM gave a 4 x 4 mechanism for n = 2, not 3 x 3"):
        plot.l0_against_n({"UM": lambda n: named.uniform(n + 1)}, [2])
    with pytest.raises(
        ValueError, match="one n: GM at alpha = 1/2 has n = 3, UM at alpha = 1/2 has n = 4"
    ):
        plot.l0_against_alpha(
            {"GM": lambda alpha: named.geometric(3, alpha), "UM": lambda alpha: named.uniform(4)},
            ["1/2"],
        )
    with pytest.raises(ValueError, match="n >= 1"):
        plot.l0_against_n({"UM": named.uniform}, [0])


def test_bad_numbers() -> None:
    with pytest.raises(ValueError, match="no d to draw"):
        plot.l0d_against_d({"UM": named.uniform(0)})
    with pytest.raises(ValueError, match="distance threshold"):
        plot.l0d_against_p(trio(2), PS, d=-1)
    with pytest.raises(ValueError, match="3 weights for 5 inputs"):
        plot.error_histograms(trio(4), binomial(2, "1/2"))
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        plot.rmse_against_p(trio(2), [Fraction(3, 2)])
    with pytest.raises(InexactNumber):
        plot.rmse_against_p(trio(2), [0.5])  # type: ignore[list-item]
    with pytest.raises(InexactNumber):
        plot.l0_against_alpha({"UM": lambda alpha: named.uniform(2)}, [0.5])  # type: ignore[list-item]
