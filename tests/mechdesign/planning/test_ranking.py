"""The ranked table: its order and its reason, its text, its CSV and its figure."""

import csv
import io
import math

import matplotlib.image
import numpy as np
import pytest

from mechdesign import plan
from mechdesign.planning.task import Offer
from tests.mechdesign.planning.conftest import Toy


@pytest.mark.usefixtures("toy")
def test_errors_are_ranked_and_unknown_ones_come_last():
    found = plan("toy", 5, n=10_000, epsilon=1.0, scale=2.0)
    assert [item.name for item in found.candidates] == ["floor", "noise", "mystery"]
    assert found.best is found.candidates[0]
    assert found.best.error == math.hypot(0.02, 0.01)
    assert found.best.protocol == ("floor", 1.0)
    assert found.reason == "error 0.02236 is the least, 44.1% below noise's"
    assert str(found).splitlines()[:5] == [
        "toys of 5, n = 10000, epsilon = 1; error: how wrong",
        "   candidate  error    bits  client  server",
        "*  floor      0.0224   8     1       n",
        "   noise      0.04     3     1       n",
        "   mystery    unknown  3     1       n",
    ]


@pytest.mark.usefixtures("toy")
def test_rows_and_csv_hold_the_whole_table():
    found = plan("toy", 5, n=100, epsilon=1)
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert [row["candidate"] for row in rows] == [item.name for item in found.candidates]
    assert [row["best"] for row in rows] == ["True", "False", "False"]
    assert float(rows[0]["error"]) == found.best.error
    assert rows[-1]["error"] == "", "unknown"
    assert [row["bits"] for row in rows] == [str(item.bits) for item in found.candidates]
    assert found.rows()[0]["protocol"] == repr(found.best.protocol)


@pytest.mark.slow
@pytest.mark.usefixtures("toy")
def test_the_figure_is_logarithmic_labelled_and_marks_the_choice(tmp_path):
    found = plan("toy", 5, n=10_000, error=0.02)
    figure = found.plot()
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [item.name for item in found.candidates]
    star = axes.lines[-1]
    x, y = np.asarray(star.get_xydata())[0]
    assert (x, y) == (
        float(found.best.epsilon),
        found.best.error,
    )
    for line, (name, row) in zip(
        axes.lines, found.errors(axes.lines[0].get_xdata()).items(), strict=False
    ):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_ydata(), row)
    found.plot().savefig(tmp_path / "toy.png")
    assert matplotlib.image.imread(tmp_path / "toy.png").std() > 0.05
    assert list(found.plot([1.0, 2.0]).axes[0].lines[0].get_xdata()) == [1.0, 2.0]
    with pytest.raises(ValueError, match="epsilons is empty"):
        found.plot([])


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("solved_for", ["error", "epsilon"])
def test_equal_errors_are_ranked_by_size_and_place_however_they_are_rounded(
    monkeypatch, solved_for
):
    """As another processor adds: what is ranked differs from the same number in the last digits."""
    bits = {"one": 4, "two": 3, "three": 3, "four": 5}
    given = {"error": {"epsilon": 1.0}, "epsilon": {"error": 0.019}}[solved_for]
    rng = np.random.default_rng(9)
    monkeypatch.setattr(Toy, "names", tuple(bits))
    tables = set()
    for _ in range(20):
        off = dict(zip(bits, (1 + 1e-13 * rng.uniform(-1, 1, len(bits))).tolist(), strict=True))

        def offer(self, name, epsilon, n, off=off):
            error = off[name] * 2 / (float(epsilon) * math.sqrt(n))
            return Offer((name, epsilon), error, bits[name])

        monkeypatch.setattr(Toy, "offer", offer)
        found = plan("toy", 5, n=10_000, **given)
        assert [item.name for item in found.candidates] == ["two", "three", "one", "four"]
        assert found.best is found.candidates[0]
        tables.add(str(found))
    assert len(tables) == 1
