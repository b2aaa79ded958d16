"""Answers in labels and units: those of the items, interpolated within bins, with intervals."""

import datetime as dt
import re
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from frequency import (
    GRR,
    Boolean,
    Categorical,
    Dates,
    InvalidQuestion,
    Numeric,
    Schema,
    Survey,
    SurveyEstimate,
    Text,
    UnknownVariance,
    plan_survey,
)
from frequency.heavy import PrefixExtension
from frequency.marginals import InpHT, MargPS
from rangeq import Between, Distribution, HaarHRR, PerAttribute
from rangeq.central import CentralFlat
from rangeq.grids import HDG

AGE = Numeric("age", low=0, high=15, whole=True, unit="years", missing="item")
DELAY = Numeric("delay", [-60, 0, 15, 60, 600], unit="minutes")
SEX = Categorical("sex", ["female", "male"])
DAY = Dates("day", "2013-01-01", "2013-12-31", "month")


def known(schema, frequencies):
    """Answers of a distribution that is known, without noise."""
    return SurveyEstimate(schema, Distribution(np.array(frequencies, dtype=float)))


def ages(n=4000, epsilon=8.0, seed=1):
    values = np.random.default_rng(seed).binomial(15, 0.4, n).astype(object)
    values[: n // 4] = None
    survey = Survey(HaarHRR(AGE.size, epsilon), Schema([AGE]))
    reports = survey.privatize({"age": values}, np.random.default_rng(seed + 1))
    return survey.estimate(survey.aggregate(reports)), values


def test_answers_about_whole_bins_are_those_of_the_items():
    estimate, _ = ages()
    inner = estimate.estimate
    for asked, items in [
        (Between(3, 7), Between(3, 7)),
        ("3:7", "3:7"),
        ({"age": Between(3, 7)}, Between(3, 7)),
        ({0: Between(3, 7)}, {0: Between(3, 7)}),
        (Between(None, 7), Between(0, 7)),
        (":7", Between(None, 7)),
        (Between(3, None), Between(3, 15)),
        (Between(-5, 99), Between(0, 15)),
        (4, 4),
        ("missing", 16),
        ([1, 2, "missing"], [1, 2, 16]),
        (Between(np.array([1, 2]), 7), Between(np.array([1, 2]), 7)),
        (np.array([1, 2]), np.array([1, 2])),
    ]:
        ours, theirs = estimate.answer(asked), inner.answer(items)
        np.testing.assert_array_equal(ours.value, theirs.value)
        np.testing.assert_array_equal(ours.variance, theirs.variance)
        np.testing.assert_array_equal(ours.interval(), theirs.interval())


def test_ranges_that_cut_bins_are_interpolated():
    estimate = known(Schema([DELAY]), [0.1, 0.2, 0.3, 0.4])

    def cdf(x):
        return np.interp(x, [-60, 0, 15, 60, 600], [0, 0.1, 0.3, 0.6, 1.0])

    rng = np.random.default_rng(1)
    for low, high in np.sort(rng.uniform(-60, 600, (50, 2))):
        expected = cdf(high) - cdf(low)
        assert estimate.answer(Between(low, high)).value == pytest.approx(expected, abs=1e-12)
    low, high = np.sort(rng.uniform(-60, 600, (2, 50)), axis=0)
    found = estimate.answer({"delay": Between(low, high)}).value
    np.testing.assert_allclose(found, cdf(high) - cdf(low), atol=1e-12)


def test_several_attributes_that_are_cut_are_interpolated_each():
    schema = Schema([DELAY, SEX, Numeric("hour", low=0, high=24, bins=4)])
    cells = np.random.default_rng(1).dirichlet(np.ones(32)).reshape(4, 2, 4)
    mechanism = CentralFlat((4, 2, 4), 1.0)
    # Without noise: these cells themselves, in units of 2^-40
    counts = np.rint(cells * 2**40).astype(np.int64)
    estimate = SurveyEstimate(schema, mechanism.estimate([counts]), "users")
    value = estimate.answer(
        {"delay": Between(7.5, 100), "sex": "male", "hour": Between(5, 9)}
    ).value
    one = np.array([0, 0.5, 1, 40 / 540])
    other = np.array([1 / 6, 0.5, 0, 0])
    expected = np.einsum("i,ij,j->", one, counts[:, 1], other)
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_the_interval_of_a_cut_range_holds_for_any_users_within_the_bins():
    survey = Survey(GRR(4, 3.0), Schema([DELAY]))
    rng, missed = np.random.default_rng(1), 0
    for _ in range(200):
        edge = rng.choice([1.0, 14.0])  # all users of the bin 0 to 15 are at one of its ends
        values = rng.choice([-30.0, edge, 40.0, 500.0], 3000, p=[0.1, 0.5, 0.2, 0.2])
        estimate = survey.estimate(
            survey.simulate(
                np.bincount(survey.schema.encode({"delay": values}).columns[0], minlength=4), rng
            )
        )
        answer = estimate.answer(Between(5, 60))
        low, high = answer.interval()
        missed += not low <= np.mean((values >= 5) & (values <= 60)) <= high
        with pytest.raises(UnknownVariance, match="ends within bins"):
            _ = answer.variance
    assert missed <= 10  # about 2.5 % at each end: more than 20 of 200 have probability below 1e-6


def test_quantiles_are_interpolated_within_bins():
    estimate = known(Schema([DELAY]), [0.1, 0.2, 0.3, 0.4])
    phi = np.array([0.0, 0.05, 0.1, 0.2, 0.45, 0.8, 1.0])
    expected = np.interp(phi, [0, 0.1, 0.3, 0.6, 1.0], [-60, 0, 15, 60, 600])
    np.testing.assert_allclose(estimate.quantile(phi), expected, atol=1e-9)
    assert estimate.quantile(0.45) == pytest.approx(37.5)
    with pytest.raises(UnknownVariance):
        estimate.quantile_interval(0.5)
    wrong: Any = "delay"
    with pytest.raises(InvalidQuestion, match=r"quantile_interval\(0.5, attribute='delay'\)"):
        estimate.quantile_interval(0.5, wrong)


def test_quantiles_of_whole_numbers_and_dates_are_such():
    ages = known(Schema([Numeric("age", low=0, high=3, whole=True)]), [0.1, 0.2, 0.3, 0.4])
    assert [ages.quantile(phi) for phi in (0.05, 0.1, 0.25, 0.6, 0.7)] == [0, 0, 1, 2, 3]
    assert ages.quantile(np.array([0.05, 0.7])).tolist() == [0, 3]
    wide = known(Schema([Numeric("age", low=0, high=9, whole=True, bins=2)]), [0.5, 0.5])
    assert [wide.quantile(phi) for phi in (0.05, 0.25, 0.5, 0.75, 1.0)] == [0, 2, 4, 7, 9]
    months = known(Schema([DAY]), [1 / 12] * 12)
    assert months.quantile(1 / 24) == dt.date(2013, 1, 16)


@pytest.mark.slow
def test_quantiles_are_of_those_who_have_a_value():
    estimate, values = ages(400_000)
    told = np.array([one for one in values if one is not None], dtype=float)
    for phi in (0.1, 0.5, 0.9):
        assert abs(estimate.quantile(phi) - np.quantile(told, phi)) <= 1
        low, high = estimate.quantile_interval(phi)
        assert low <= np.quantile(told, phi) <= high
        assert high - low <= 2


@pytest.mark.slow
def test_intervals_of_quantiles_cover():
    missed = 0
    for seed in range(300):
        estimate, values = ages(2000, 2.0, seed)
        told = np.sort([one for one in values if one is not None])
        low, high = estimate.quantile_interval(0.3)
        missed += not low <= told[int(np.ceil(0.3 * len(told))) - 1] <= high
    assert missed <= 35  # at most 5 %: more than 35 of 300 have probability below 1e-6


def test_a_curators_answers_are_users():
    counts = np.array([40, 30, 20, 10])
    noiseless = CentralFlat(4, 1024).release(counts, np.random.default_rng(1))
    estimate = SurveyEstimate(Schema([DELAY]), noiseless, "users")
    assert estimate.answer(Between(0, 60)).value == 50
    assert estimate.answer(Between(None, 7.5)).value == 55
    assert estimate.quantile(0.55) == pytest.approx(7.5)
    low, high = estimate.quantile_interval(0.55)
    assert low <= 7.5 <= high
    assert estimate.columns()["users"] == [40, 30, 20, 10]


def test_labels_of_several_attributes():
    schema = Schema([AGE, SEX])
    rows = {"age": [3] * 600 + [9] * 400, "sex": (["female", "male"] * 500)}
    for protocol in (MargPS(schema.domain, 2, 8.0), HDG(schema.domain, 8.0, 1000)):
        survey = Survey(protocol, schema)
        estimate = survey.estimate(survey.aggregate(survey.privatize(rows)))
        answer = estimate.answer({"age": Between(0, 5), "sex": "female"})
        assert answer.value == pytest.approx(0.3, abs=0.15)
        cells = estimate.cells(["sex", "age"])
        assert np.shape(cells.value) == (2, 17)
        assert cells.value[0, 3] == pytest.approx(
            estimate.answer({"age": 3, "sex": "female"}).value
        )


def test_frames():
    estimate, _ = ages()
    for backend, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        frame = estimate.to_frame(backend=backend)
        assert isinstance(frame, kind)
        assert list(frame.columns) == ["age", "frequency", "standard error", "low", "high"]
        assert list(frame["age"])[-2:] == ["15", "missing"]
        assert frame["frequency"].to_numpy() == pytest.approx(estimate.estimate.frequencies)
        assert (frame["low"].to_numpy() < frame["frequency"].to_numpy()).all()
    unknown = known(Schema([DELAY]), [0.1, 0.2, 0.3, 0.4]).to_frame()
    assert unknown["delay"].tolist() == ["-60 to 0", "0 to 15", "15 to 60", "60 to 600"]
    assert unknown["standard error"].isna().all()


def test_a_frame_of_a_package_that_is_not_installed_names_it(monkeypatch: pytest.MonkeyPatch):
    estimate, _ = ages()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas: pip install pandas"):
        estimate.to_frame()


def test_frequent_texts_are_labels():
    survey = Survey(PrefixExtension(16, 6.0, True), Schema([Text("word", 2)]))
    values = ["hi"] * 3000 + ["yo"] * 2000
    estimate = survey.estimate(survey.aggregate(survey.privatize({"word": values})))
    assert estimate.columns()["word"][:2] == ["hi", "yo"]
    assert estimate.answer({"word": "hi"}).value == pytest.approx(0.6, abs=0.1)


def test_frequent_integers_have_the_labels_of_their_items():
    survey = Survey(PrefixExtension(2, 8.0), Schema([Categorical("sex", ["f", "m", "x"])]))
    values = ["m"] * 3000 + ["x"] * 2000
    aggregate = survey.aggregate(survey.privatize({"sex": values}, np.random.default_rng(1)))
    columns = survey.estimate(aggregate).columns()
    assert columns["sex"][:2] == ["m", "x"]
    np.testing.assert_allclose(columns["frequency"][:2], [0.6, 0.4], atol=0.1)
    # Nobody should report it, and anybody may
    found = survey.protocol.find(survey.protocol.aggregate(survey.protocol.privatize([3] * 5000)))
    assert SurveyEstimate(survey.schema, found).item_labels("sex")[0] == "no item (3)"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({}, "names no attribute"),
        ({"sex": 1}, "an attribute is one of delay"),
        ({"delay": Between(30, 20)}, "the range .* holds none"),
        ({"delay": Between(700, 800)}, "the range .* holds none"),
        ({"delay": Between(20, 20)}, "the range .* holds none: a single number has no width"),
        ({"delay": (1, 2, 3)}, "values are given in a list, and a range by Between"),
        ({"delay": (0, 15)}, r"range is Between\(0, 15\), and the values are \[0, 15\]"),
        ({"delay": Between("a", 20)}, "a number from -60 to 600"),
        ({"delay": 20}, "is not a bin"),
        ({"delay": "missing"}, "a number from -60 to 600"),
        ({"delay": Between(np.nan, 20)}, "a number from -60 to 600"),
        ({"delay": Between(np.zeros(2), np.zeros(3))}, "must broadcast"),
        ({"delay": Between(0, 20), 0: Between(0, 20)}, "named twice"),
    ],
)
def test_what_is_no_question_is_refused(where, message):
    with pytest.raises(InvalidQuestion, match=message):
        known(Schema([DELAY]), [0.1, 0.2, 0.3, 0.4]).answer(where)


def test_a_month_is_a_range_of_days():
    month = known(Schema([Dates("day", "2013-01-01", "2013-03-31")]), [1 / 90] * 90)
    with pytest.raises(InvalidQuestion, match="for a range, such as from '2013-02' to '2013-02'"):
        month.answer({"day": "2013-02"})
    assert month.answer({"day": Between("2013-02", "2013-02")}).value == pytest.approx(28 / 90)


@pytest.mark.parametrize(
    "kind", [dt.datetime, pd.Timestamp, lambda *day: np.datetime64(dt.date(*day), "ns")]
)
@pytest.mark.parametrize("every", ["day", "week"])
def test_a_time_that_is_midnight_is_the_day_that_begins(kind, every):
    """Data frames and Python give days as times: a range to one holds all of it."""
    size = 14 if every == "day" else 2
    days = known(Schema([Dates("day", "2013-01-01", "2013-01-14", every)]), [1 / size] * size)
    by_day = days.answer({"day": Between(dt.date(2013, 1, 3), dt.date(2013, 1, 9))}).value
    first, last = kind(2013, 1, 3), kind(2013, 1, 9)
    assert days.answer({"day": Between(first, last)}).value == pytest.approx(by_day)
    arrays = Between(*(np.array([end] * 2, dtype="datetime64[ns]") for end in (first, last)))
    assert days.answer({"day": arrays}).value.tolist() == pytest.approx([by_day] * 2)
    assert days.answer({"day": Between(first, first)}).value == pytest.approx(1 / 14)


def test_a_time_of_hours_ends_with_its_second():
    hours = known(Schema([Dates("seen", "2013-01-01 00", "2013-01-01 23", "hour")]), [1 / 24] * 24)
    midnight, one = dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 1, 0, 59, 59)
    assert hours.answer({"seen": Between(midnight, one)}).value == pytest.approx(1 / 24)
    assert hours.answer({"seen": Between(midnight, midnight)}).value == pytest.approx(1 / 24 / 3600)


def test_what_has_no_order_is_refused():
    survey = Survey(GRR(2, 1.0), Schema([SEX]))
    estimate = survey.estimate(survey.simulate([50, 50]))
    with pytest.raises(InvalidQuestion, match="sex has no order: ask for values"):
        estimate.answer({"sex": Between("female", "male")})
    with pytest.raises(InvalidQuestion, match="sex is one of female, male, got 'x'"):
        estimate.answer({"sex": "x"})
    with pytest.raises(InvalidQuestion, match="no order, and so no quantiles"):
        estimate.quantile(0.5)
    plain = Survey(GRR(4, 1.0), Schema([DELAY]))
    with pytest.raises(InvalidQuestion, match="protocols for ranges have"):
        plain.estimate(plain.simulate([5, 5, 5, 5])).quantile(0.5)


def test_no_reports_are_told_as_such():
    for protocol, schema in [
        (HaarHRR(17, 1.0), Schema([AGE])),
        (PerAttribute.of(Schema([AGE, SEX]).domain, 1.0), Schema([AGE, SEX])),
    ]:
        survey = Survey(protocol, schema)
        estimate = survey.estimate(survey.aggregate(survey.privatize({"age": [], "sex": []})))
        assert np.isnan(estimate.answer({"age": Between(3, 5)}).value)
        with pytest.raises(ValueError, match=r"no reports|no quantiles"):
            estimate.quantile(0.5, "age")


# ---------------------------------------------------------------------------------- synthetic rows


def test_sampled_rows_are_in_labels_and_units():
    schema = Schema(
        [
            Numeric("age", low=20, high=29, whole=True, unit="years", missing="item"),
            Categorical("sex", ["female", "male"], outside="item"),
            Boolean("smokes"),
        ]
    )
    rng = np.random.default_rng(1)
    n = 20_000
    age = rng.integers(20, 30, n).astype(object)
    age[rng.random(n) < 0.2] = None
    sex = np.array(["female", "male", "none"], dtype=object)[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    people = {"age": age, "sex": sex, "smokes": (sex == "male") & (rng.random(n) < 0.5)}
    survey = Survey(InpHT(schema.domain, 2, 5.0), schema)
    estimate = survey.estimate(survey.aggregate(survey.privatize(people, rng)))
    rows = estimate.sample(5_000, np.random.default_rng(2))
    assert list(rows) == ["age", "sex", "smokes"]
    assert {len(column) for column in rows.values()} == {5_000}
    # They are what the schema takes
    encoded = schema.encode(rows)
    fitted = estimate.fitted()
    assert fitted.schema is schema
    assert type(fitted.estimate) is type(estimate.estimate.fitted())
    assert type(fitted.estimate) is not type(estimate.estimate)
    for names in (["sex", "smokes"], ["age"]):
        places = [schema.names.index(name) for name in names]
        counted = schema.domain.project(names).items(
            np.stack([encoded.columns[place] for place in places], axis=1)
        )
        shape = schema.domain.project(names).shape
        shares = np.bincount(counted, minlength=int(np.prod(shape))).reshape(shape) / 5_000
        assert shares == pytest.approx(np.asarray(fitted.cells(names).value), abs=2e-3)
    assert set(rows["sex"]) == {"female", "male", "outside"}
    assert {one for one in rows["age"] if one is not None} <= set(range(20, 30))
    tables = estimate.samples(1_000, 3, np.random.default_rng(3))
    assert [len(one["age"]) for one in tables] == [1_000] * 3
    assert any((tables[0]["sex"] != tables[1]["sex"]).tolist())


def test_what_gives_no_distribution_is_not_sampled():
    schema = Schema([Categorical("sex", ["female", "male"])])
    survey = Survey(GRR(2, 1.0), schema)
    estimate = survey.estimate(survey.aggregate(survey.privatize({"sex": ["female"]})))
    for ask in (lambda: estimate.sample(5), lambda: estimate.samples(5, 2)):
        with pytest.raises(InvalidQuestion, match="no distribution"):
            ask()
    with pytest.raises(InvalidQuestion, match="no model is fitted"):
        estimate.fitted()


@pytest.mark.parametrize("phi", [50, -0.5, [0.5, 1.5]])
def test_the_fraction_that_is_refused_is_the_one_that_was_given(phi):
    """And not its part of those who have a value."""
    estimate, _ = ages()
    for ask in (estimate.quantile, estimate.quantile_interval):
        with pytest.raises(ValueError, match=re.escape(f"phi must lie in [0, 1], got {phi}")):
            ask(phi)


@pytest.mark.slow
def test_an_estimate_says_what_it_can_do_and_what_is_to_be_known_of_it() -> None:
    schema = Schema([Boolean("smokes"), Numeric("age", low=0, high=9, whole=True)])
    rows = {"smokes": [True, False] * 50, "age": [3, 7] * 50}
    survey = plan_survey("marginals", schema, epsilon=1, n=100).survey
    estimate = survey.estimate(survey.aggregate(survey.privatize(rows)))
    assert (estimate.joined, estimate.has_quantiles) == (2, False)
    assert "--raw" in estimate.caveats()[0]
    assert estimate.fitted().caveats() == ()
    survey = plan_survey("conjunctions", schema, epsilon=1, n=100, protocol="WaveGrid").survey
    estimate = survey.estimate(survey.aggregate(survey.privatize(rows)))
    assert (estimate.joined, estimate.has_quantiles, estimate.caveats()) == (2, True, ())
    assert "towards independence" in estimate.caveats(several=True)[0]
