"""An estimate's picture is of the kind that fits, and shows its answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.patches import Rectangle, StepPatch

from frequency import GRR, InvalidQuestion, Survey
from frequency.core.answer import Answer
from frequency.heavy import PrefixExtension
from frequency.marginals import MargPS
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, SurveyEstimate, Text
from frequency.schema import plot as scales
from frequency.schema.joint_plot import places_among
from frequency.schema.plot import title as axis_title
from rangeq import Between, HaarHRR
from rangeq.central import CentralFlat, Release
from tests.pictures import collisions, legend, patches, ticks, title

AGE = Numeric("age", low=0, high=30, whole=True, unit="years", missing="item")
INCOME = Numeric("income", low=100, high=1e6, bins=16, spacing="logarithmic", outside="clip")
SEX = Categorical("sex", ["female", "male"], missing="item")
ISLAND = Categorical("island", ["Biscoe", "Dream", "Torgersen"])
WHEN = Dates("flown", "2013-01-01", "2013-12-31", "month")
SMOKES = Boolean("smokes")


def table(users):
    rng = np.random.default_rng(1)
    age = np.where(rng.random(users) < 0.1, np.nan, np.minimum(rng.poisson(9, users), 30))
    return {
        "age": age,
        "income": np.exp(rng.normal(9, 1, users)),
        "sex": rng.choice(np.array(["female", "male", None]), users, p=[0.5, 0.4, 0.1]),
        "island": rng.choice(["Biscoe", "Dream", "Torgersen"], users, p=[0.6, 0.3, 0.1]),
        "flown": np.datetime64("2013-01-01") + rng.integers(0, 365, users),
        "smokes": rng.random(users) < 0.3,
    }


def survey(protocol, *attributes, users=3000):
    asked = Survey(protocol, Schema(attributes))
    data = table(users)
    reports = asked.privatize(
        {one.name: data[one.name] for one in attributes}, np.random.default_rng(2)
    )
    return asked.estimate(asked.aggregate(reports))


@pytest.fixture(scope="module")
def records():
    schema = Schema([SEX, ISLAND, SMOKES, WHEN])
    return survey(MargPS(schema.domain, 2, 5.0), *schema)


def kind_of(figure) -> str:
    axes = figure.axes[0]
    if len(figure.axes) == 2:
        return "heat map"
    if axes.get_ylabel().endswith("at or below"):
        return "cdf"
    if axes.get_ylabel() == "share within each column":
        return "mosaic"
    return "histogram" if any(isinstance(one, StepPatch) for one in axes.patches) else "bars"


@pytest.mark.slow
def test_the_kind_that_fits(records) -> None:
    for names, kind in (
        ("sex", "bars"),
        (["island"], "bars"),
        ("flown", "cdf"),
        (["sex", "island"], "mosaic"),
        (["sex", "flown"], "heat map"),
        (["flown", "smokes"], "heat map"),
    ):
        figure = records.plot(names)
        assert kind_of(figure) == kind
        assert collisions(figure) == []
    assert kind_of(records.plot(["sex", "island"], kind="heat map")) == "heat map"
    assert kind_of(records.plot("flown", kind="histogram")) == "histogram"
    assert kind_of(records.plot("flown", kind="bars")) == "bars"


def shown(figure):
    """Which cells of a heat map are coloured."""
    cells = np.ma.asarray(figure.axes[0].collections[0].get_array())
    return ~np.ma.getmaskarray(cells).T


def flat_release(schema, counts, seed):
    rng = np.random.default_rng(seed)
    return Release.draw(schema, CentralFlat(schema.sizes, 1.0), counts, rng).estimate


def collected(schema, counts, seed):
    protocol = MargPS(schema.domain, 2, 4.0)
    records = np.repeat(np.argwhere(counts + 1 > 0), counts.ravel(), axis=0)
    reports = protocol.privatize(records, np.random.default_rng(seed))
    return SurveyEstimate(schema, protocol.estimate(protocol.aggregate(reports)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sizes", "users"), [(flat_release, (60, 50), 60), (collected, (30, 20), 2000)]
)
def test_empty_cells_are_coloured_as_seldom_as_the_legend_says(make, sizes, users) -> None:
    """The intervals of all cells together miss in 5% of the collections at most, and so in 9 of 20
    or more with a chance of 2e-7. Of intervals that each hold by themselves some miss every time.
    """
    schema = Schema(
        [Numeric(name, low=0, high=k - 1, whole=True) for name, k in zip("xy", sizes, strict=True)]
    )
    counts = np.zeros(sizes, dtype=int)
    counts[5:9, 3] = users  # their estimates are ten deviations above what is coloured, or more
    missed = missed_one_by_one = 0
    for seed in range(20):
        estimate = make(schema, counts, seed)
        figure = estimate.plot()
        coloured = shown(figure)
        assert coloured[counts > 0].all()
        missed += coloured[counts == 0].any()
        low, _ = estimate.interval(0.95)
        missed_one_by_one += (low[counts == 0] > 0).any()
    assert missed < 9
    assert missed_one_by_one >= 9
    cells = f"{counts.size:,}"
    assert legend(figure) == [
        f"within the noise: 95% intervals for all {cells} cells at once reach 0"
    ]


def test_many_items_make_a_heat_map() -> None:
    country = Categorical("country", [str(k) for k in range(20)])
    schema = Schema([SMOKES, country])
    protocol = MargPS(schema.domain, 2, 5.0)
    estimate = SurveyEstimate(
        schema, protocol.estimate(protocol.aggregate(protocol.privatize(np.ones((9, 2), int))))
    )
    assert kind_of(estimate.plot()) == "heat map"


def test_bars_show_the_answers(records) -> None:
    figure = records.plot("sex", confidence=0.8)
    answer = records.answer({"sex": ["female"]})
    bars = patches(figure, Rectangle)
    assert bars[0].get_width() == answer.value
    assert legend(figure) == ["estimate, 80% interval"]
    assert ticks(figure, "y") == ["missing", "male", "female"]
    pairs = records.plot(["sex", "smokes"], kind="bars")
    assert ticks(pairs, "y")[-1] == f"female, {SMOKES.item_labels[0]}"


def test_the_cdf_shows_answers_and_deciles() -> None:
    estimate = survey(HaarHRR(AGE.size, 3.0), AGE, users=20_000)
    figure = estimate.plot()
    (axes,) = figure.axes
    (curve,) = (one for one in axes.patches if one.get_label() == "estimate")
    assert isinstance(curve, StepPatch)
    ages = np.arange(31)
    np.testing.assert_allclose(
        curve.get_data()[0], estimate.answer({"age": Between(None, ages)}).value, rtol=1e-12
    )
    (deciles,) = (line for line in axes.lines if str(line.get_label()).startswith("deciles"))
    levels = np.arange(1, 10) / 10
    np.testing.assert_array_equal(deciles.get_xdata(), estimate.quantile(levels))
    whole = estimate.answer({"age": Between(None, None)}).value  # of those who have an age
    np.testing.assert_allclose(deciles.get_ydata(), levels * whole)
    missing = estimate.answer({"age": "missing"}).value
    besides = f"without missing ({scales.rounded(100 * missing)}% of the users)"
    assert title(figure).startswith(besides)
    assert axes.get_xlabel() == "age (years)"
    bins = estimate.plot(kind="histogram")
    assert title(bins).startswith(besides)
    assert bins.axes[0].get_xlim() == (-0.5, 30.5)


@pytest.mark.slow
def test_a_histogram_of_dates_has_dates(records) -> None:
    for figure in (records.plot("flown"), records.plot("flown", kind="histogram")):
        assert ticks(figure, "x")[:2] == ["2013", "Mar"]
        assert collisions(figure) == []
    assert records.plot("flown", kind="histogram").axes[0].get_ylabel().endswith("each bin")


@pytest.mark.slow
def test_logarithmic_bins() -> None:
    estimate = survey(HaarHRR(INCOME.size, 3.0), INCOME)
    for kind in ("cdf", "histogram"):
        figure = estimate.plot(kind=kind)
        assert figure.axes[0].get_xscale() == "log"
        assert collisions(figure) == []
    (deciles,) = (
        line for line in estimate.plot().axes[0].lines if "deciles" in str(line.get_label())
    )
    np.testing.assert_array_equal(deciles.get_xdata(), estimate.quantile(np.arange(1, 10) / 10))


def test_without_quantiles_or_errors() -> None:
    """Oracles have no quantiles; some estimates do not know their errors."""
    figure = survey(GRR(WHEN.size, 3.0), WHEN).plot()
    assert legend(figure) == ["95% band", "estimate"]

    class Unknown:
        n = 100

        def answer(self, where):
            items = next(iter(where.values())) if isinstance(where, dict) else where
            asked = items if isinstance(items, Between) else Between(items, items)
            first, last = asked.first, asked.last
            return Answer((np.asarray(last) - np.asarray(first) + 1) / 12, None, "unknown")

    estimate = SurveyEstimate(Schema([WHEN]), Unknown())
    for kind in ("cdf", "bars", "histogram"):
        figure = estimate.plot(kind=kind)
        assert legend(figure) == ["estimate"]
        assert title(figure) == "the errors of these estimates are not known"


def test_counts_of_users() -> None:
    class Counted:
        n = 1200

        def answer(self, where):
            asked = where if isinstance(where, Between) else Between(where, where)
            count = 100.0 * (np.asarray(asked.last) - np.asarray(asked.first) + 1)
            return Answer(count, np.full(np.shape(count), 9.0))

    estimate = SurveyEstimate(Schema([WHEN]), Counted(), "users")
    (axes,) = estimate.plot().axes
    assert axes.get_ylabel() == "users at or below"
    assert axes.get_ylim()[1] > 1200
    assert estimate.plot(kind="bars").axes[0].get_xlabel() == "users"


WEEK = Numeric("day", low=0, high=6, whole=True, missing="item")


def curve_of(figure):
    steps = patches(figure, StepPatch)
    named = [one for one in steps if str(one.get_label()).startswith("estimate")]
    return (named or steps)[0].get_data()[0]


def bars_of(figure):
    return np.array([one.get_width() for one in patches(figure, Rectangle)])


def cells_of(figure):
    return np.ma.asarray(figure.axes[0].collections[0].get_array()).compressed()


def axis_labels(figure) -> set[str]:
    return {text for one in figure.axes for text in (one.get_xlabel(), one.get_ylabel())}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "kind", "place", "measured"),
    [
        (["day"], "cdf", lambda figure: curve_of(figure)[:7], "{} at or below"),
        (["day"], "histogram", lambda figure: curve_of(figure)[:7], "{}, each bin"),
        (["island"], "bars", bars_of, "{}"),
        (["day", "island"], "heat map", cells_of, "{}"),
    ],
)
def test_fractions_of_a_release(names, kind, place, measured) -> None:
    """All that is drawn is divided by the estimated number of users, and the axis says so."""
    schema = Schema([WEEK, ISLAND])
    counts = np.random.default_rng(3).integers(100, 900, schema.sizes)
    estimate = flat_release(schema, counts, 4)
    users, fractions = (estimate.plot(names, kind, shares=shares) for shares in (False, True))
    np.testing.assert_allclose(place(users) / estimate.n, place(fractions), rtol=1e-12)
    assert measured.format("users") in axis_labels(users) - axis_labels(fractions)
    assert measured.format("fraction of the users") in axis_labels(fractions) - axis_labels(users)
    assert collisions(fractions) == []
    if kind in ("cdf", "histogram"):
        missing = estimate.answer({"day": "missing"}).value
        assert title(users).startswith(f"without missing ({scales.rounded(missing)} users)")
        percent = scales.rounded(100 * missing / estimate.n)
        assert title(fractions).startswith(f"without missing ({percent}% of the users)")
    if kind == "cdf":
        lines = [list(each.axes[0].lines) for each in (users, fractions)]
        for of_users, of_fractions in zip(*lines, strict=True):
            heights = np.asarray(of_users.get_ydata(), dtype=float)
            np.testing.assert_allclose(
                heights / estimate.n, np.asarray(of_fractions.get_ydata(), dtype=float), rtol=1e-12
            )
    reported = survey(GRR(3, 3.0), ISLAND)
    np.testing.assert_array_equal(bars_of(reported.plot()), bars_of(reported.plot(shares=True)))


LONGITUDE = Numeric("pickup_Longitude", low=-74.1, high=-73.9, bins=4, outside="item")
LATITUDE = Numeric("pickup_latitude", low=40.6, high=40.9, bins=6, outside="item")


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (LATITUDE, LONGITUDE, ("pickup_Longitude", "pickup_latitude", True)),
        (replace(LATITUDE, name="latency"), LONGITUDE, None),
        (replace(LATITUDE, low=-100.0), LONGITUDE, None),
        (replace(LATITUDE, name="lat"), LATITUDE, None),
        (replace(LATITUDE, name="y", unit="km"), replace(LONGITUDE, name="x", unit="m"), None),
        (replace(LATITUDE, name="y"), replace(LONGITUDE, name="x"), None),
        (
            replace(LATITUDE, name="Northing", unit="m"),
            replace(LONGITUDE, name="easting", unit="m"),
            ("easting", "Northing", False),
        ),
        (ISLAND, SEX, None),
    ],
)
def test_places_are_told_by_their_names(first, second, found) -> None:
    assert places_among([first, SEX, second]) == found


def test_a_map_has_longitude_across_and_is_at_scale() -> None:
    schema = Schema([LATITUDE, LONGITUDE])
    counts = np.random.default_rng(5).integers(1000, 5000, schema.sizes)
    estimate = flat_release(schema, counts, 4)
    figure = estimate.plot()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("pickup_Longitude", "pickup_latitude")
    drawn = np.asarray(axes.collections[0].get_array())
    values = np.asarray(estimate.cells(schema.names).value)
    np.testing.assert_allclose(drawn, values[:6, :4], rtol=1e-12)
    elsewhere = scales.rounded(values.sum() - values[:6, :4].sum())
    assert title(figure) == f"without {elsewhere} users who are at no place of it"
    assert axes.get_aspect() == pytest.approx(1 / np.cos(np.radians(40.75)))
    assert axes.get_ylim() == (40.6, 40.9)
    assert collisions(figure) == []
    assert cells_of(estimate.plot(kind="heat map")).size == values.size


def test_large_cells_of_a_map_are_not_dark_for_their_size() -> None:
    """People who are spread evenly over the plane have one colour."""
    cuts = ([0, 1, 2, 5, 10], [0, 1, 2, 3, 4, 8])
    x, y = (Numeric(name, list(ends), unit="km") for name, ends in zip("xy", cuts, strict=True))
    counts = 10_000 * np.multiply.outer(*map(np.diff, cuts))
    figure = flat_release(Schema([x, y]), counts, 4).plot()
    drawn = np.asarray(figure.axes[0].collections[0].get_array())
    np.testing.assert_allclose(drawn, 10_000, rtol=0.01)
    assert "users per km²" in axis_labels(figure)
    assert collisions(figure) == []
    degrees = Schema([LONGITUDE, Numeric("latitude", [40.6, 40.7, 40.9])])
    density = flat_release(degrees, np.full(degrees.sizes, 1000), 4).plot()
    drawn = np.asarray(density.axes[0].collections[0].get_array())
    # A twentieth of a degree of longitude by a tenth of latitude, at 40.75 degrees
    np.testing.assert_allclose(drawn[0], 1000 / (4.22 * 11.12), rtol=0.02)
    assert "users per km²" in axis_labels(density)


def test_found_texts() -> None:
    asked = Survey(PrefixExtension(16, 5.0, text=True), Schema([Text("word", bytes=2)]))
    words = {"word": ["ja"] * 3000 + ["no"] * 1500}
    estimate = asked.estimate(asked.aggregate(asked.privatize(words, np.random.default_rng(1))))
    figure = estimate.plot()
    assert ticks(figure, "y") == ["no", "ja"]
    with pytest.raises(ValueError, match="a cdf is of one attribute with an order, got word"):
        estimate.plot(kind="cdf")
    with pytest.raises(ValueError, match="whose values are listed, got word"):
        estimate.plot(kind="mosaic")


def test_errors(records) -> None:
    with pytest.raises(ValueError, match="at most three attributes, not of 4: name some"):
        records.plot()
    with pytest.raises(ValueError, match="bars, cdf, histogram, heat map, map, mosaic, got 'pie'"):
        records.plot("sex", kind="pie")
    with pytest.raises(ValueError, match="a histogram is of one attribute with an order, got sex"):
        records.plot("sex", kind="histogram")
    with pytest.raises(ValueError, match="a heat map is of two attributes, got sex"):
        records.plot("sex", kind="heat map")
    with pytest.raises(ValueError, match="a mosaic is of two attributes or three, got sex"):
        records.plot("sex", kind="mosaic")
    for names in ("sex", ["sex", "flown"]):
        with pytest.raises(ValueError, match="a map is of longitude and latitude, or of x and y"):
            records.plot(names, kind="map")
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        records.plot("sex", confidence=1)
    with pytest.raises(InvalidQuestion, match="got 'nobody'"):
        records.plot(["nobody"])
    with pytest.raises(InvalidQuestion, match="distinct names"):
        records.plot(["sex", "sex"])
    nobody = survey(GRR(3, 1.0), ISLAND, users=0)
    with pytest.raises(ValueError, match="nothing to draw: no reports"):
        nobody.plot()


def test_an_axis_does_not_repeat_a_unit_that_is_the_name():
    minutes = Numeric("minutes", low=0, high=180, whole=True, unit="minutes")
    assert [axis_title(one) for one in (minutes, AGE, INCOME)] == [
        "minutes",
        "age (years)",
        "income",
    ]
