"""What is measured on data is what users' own reports would give, and the truth is the data's.

False alarms: of R runs, whose errors are normal, let S be the mean square over its expectation. It
is above, or below, x with probability at most exp(-R (x - 1 - ln x) / 2) whatever the correlations
within a run (see `tests/rangeq/test_tasks.py`). Two independent ones differ by more than the ratio
of the x with that at 2.5e-7, above and below, with probability at most 1e-6.
"""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from frequency import (
    GRR,
    Boolean,
    Categorical,
    Dates,
    InvalidCell,
    Numeric,
    Schema,
    Survey,
    Text,
    UnknownColumn,
    measure_errors,
)
from frequency.heavy import PrefixExtension
from frequency.marginals import CALM, InpPS
from rangeq import HaarHRR, PerAttribute, SquareWave
from rangeq.grids import RangeCALM
from tests.frequency.schema.test_survey import SURVEYS
from tests.frequency.schema.test_survey import TABLE as MANY

AGE = Numeric("age", low=0, high=15, whole=True, unit="years", missing="item")
MASS = Numeric("mass", [0.0, 1.0, 2.5, 4.0, 8.0], unit="kg", outside="clip")
SEX = Categorical("sex", ["female", "male"], missing="skip")
SEEN = Dates("seen", "2026-01-01", "2026-02-28", "week")
TABLE = {
    "age": [*range(16), None, 3] * 20,
    "mass": [0.5, 3.0, 9.0] * 120,
    "sex": ["female", "male", "male", "female"] * 90,
    "seen": ["2026-01-05", "2026-01-20", "2026-02-03", "2026-02-27"] * 90,
    "word": ["to", "be", "or", "no", "to", "be"] * 60,
}
RUNS = 60


def apart(one, other):
    """Whether mean squares of `RUNS` runs each cannot be of one distribution."""
    limit = 2 * math.log(1 / 2.5e-7) / RUNS
    low, high = (
        brentq(lambda x: x - 1 - math.log(x) - limit, *ends) for ends in ((1e-9, 1), (1, 99))
    )
    return not low / high < one / other < high / low


def by_user(survey, table, ask, truth):
    """The mean square error of answers from reports that users draw one by one."""
    rng, squares = np.random.default_rng(2), []
    for _ in range(RUNS):
        estimate = survey.estimate(survey.aggregate(survey.privatize(table, rng, Counter())))
        squares.append(np.mean((np.asarray(ask(estimate)) - truth) ** 2))
    return float(np.mean(squares))


@pytest.mark.slow
def test_errors_are_those_of_the_users_own_reports():
    survey = Survey(GRR(4, 1.0), Schema([MASS]))
    found = measure_errors(survey, TABLE, RUNS, np.random.default_rng(1))
    items = found.rows[0]
    assert (items.questions, items.number, items.unit) == ("items of mass", 4, "fraction")
    assert (found.users, found.skipped, found.clipped, found.repeats) == (360, 0, 120, RUNS)
    assert str(found).startswith(f"360 users, 120 values clipped, {RUNS} repeats\n")
    slow = by_user(survey, TABLE, lambda told: told.frequencies, np.array([1, 0, 1, 1]) / 3)
    assert not apart(items.measured**2, slow)
    assert not apart(items.measured**2, items.predicted**2)
    assert 0.85 < items.coverage < 1
    # A planted error is seen
    weak = Survey(GRR(4, 0.25), Schema([MASS]))
    other = measure_errors(weak, TABLE, RUNS, np.random.default_rng(1)).rows[0]
    assert apart(other.measured**2, slow)


@pytest.mark.slow
def test_quantiles_are_those_of_the_users_own_reports():
    survey = Survey(HaarHRR(17, 1.0), Schema([AGE]))
    found = measure_errors(survey, TABLE, RUNS, np.random.default_rng(1))
    assert [row.questions for row in found.rows] == [
        f"{asked} of age" for asked in ("items", "ranges", "deciles")
    ]
    assert [row.unit for row in found.rows] == ["fraction", "fraction", "years"]
    deciles = np.arange(1, 10) / 10
    ages = np.sort([age for age in TABLE["age"] if age is not None])
    truth = ages[np.ceil(deciles * len(ages)).astype(int) - 1]
    slow = by_user(survey, TABLE, lambda estimate: estimate.quantile(deciles), truth)
    assert not apart(found.rows[2].measured ** 2, slow)


@pytest.mark.slow
def test_deciles_err_as_predicted():
    schema = Schema([Numeric("mass", low=0.0, high=8.0, bins=64)])
    mass = {"mass": np.random.default_rng(3).gamma(4, 0.6, 40_000).clip(0, 8)}
    found = measure_errors(
        Survey(HaarHRR(64, 1.0), schema), mass, RUNS, np.random.default_rng(1)
    ).rows[2]
    assert not apart(found.measured**2, found.predicted**2)
    assert apart(found.measured**2, 16 * found.predicted**2)


def test_one_repeat_is_what_a_simulated_aggregate_gives():
    survey, truth = Survey(GRR(2, 1.0), Schema([SEX])), np.array([12, 30]) / 42
    table = {"sex": ["male"] * 30 + ["female"] * 12}
    (row,) = measure_errors(survey, table, 1, np.random.default_rng(1)).rows
    estimate = survey.estimate(survey.simulate([12, 30], np.random.default_rng(1)))
    errors, (low, high) = estimate.frequencies - truth, estimate.interval(0.95)
    assert row.measured == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert row.predicted == pytest.approx(np.sqrt(estimate.variances.mean()))
    assert row.worst == pytest.approx(np.abs(errors).max())
    assert row.coverage == np.mean((low <= truth) & (truth <= high))


BOTH = Schema([SEX, MASS])
EXACT = {
    "oracle": Survey(GRR(4, 50.0), Schema([MASS])),
    "one": Survey(InpPS(Schema([SEX]).domain, 1, 60.0), Schema([SEX])),
    "marginals": Survey(InpPS(BOTH.domain, 2, 60.0), BOTH),
    "conjunctions": Survey(RangeCALM(BOTH.domain, 8.0, 360), BOTH),  # of little noise
}
ASKED = {
    "oracle": ["items of mass", "ranges of mass"],
    "one": ["items of sex"],
    "marginals": ["items of sex", "items of mass", "ranges of mass", "marginals of 2"],
    "conjunctions": [
        "items of sex", "items of mass", "ranges of mass", "deciles of mass", "conjunctions of 2",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_without_noise_there_are_no_errors(name):
    """So the true answers are right, of every kind of questions."""
    found = measure_errors(EXACT[name], TABLE, 2, np.random.default_rng(1))
    assert [row.questions for row in found.rows] == ASKED[name]
    for row in found.rows:
        assert row.answered == 1
        most = 1e-6 if name != "conjunctions" else {"fraction": 0.03, "kg": 0.3}[row.unit]
        assert row.worst < most, row


def test_deciles_of_dates_are_in_days():
    found = measure_errors(
        Survey(HaarHRR(9, 8.0), Schema([SEEN])), TABLE, 2, np.random.default_rng(1)
    )
    assert [(row.questions, row.unit) for row in found.rows[2:]] == [("deciles of seen", "days")]
    assert 0 < found.rows[2].measured < 60


def test_what_is_not_known_is_not_said():
    survey = Survey(SquareWave(4, 1.0), Schema([MASS]))
    found = measure_errors(survey, TABLE, 2, np.random.default_rng(1))
    assert all(math.isnan(row.predicted) and math.isnan(row.coverage) for row in found.rows)
    assert all(row.measured > 0 for row in found.rows)
    assert str(found).count("unknown") == 2 * len(found.rows)
    lines = found.csv().splitlines()
    assert lines[0] == "questions,number,unit,answered,predicted,measured,coverage,worst"
    assert lines[1].startswith("items of mass,4,fraction,1.0,,")
    calm = Survey(CALM(Schema([SEX, MASS]).domain, 2, 1.0), Schema([SEX, MASS]))
    of_noise = measure_errors(calm, TABLE, 2, np.random.default_rng(1))
    assert all(row.coverage > 0 for row in of_noise.rows)


def test_what_an_estimate_does_not_answer_is_not_asked():
    schema = Schema([MASS, SEX])
    found = measure_errors(Survey(PerAttribute.of(schema.domain, 1.0), schema), TABLE, 1)
    assert "conjunctions of 2" not in [row.questions for row in found.rows]
    assert len(found.rows) >= 3


def test_the_frequent_ones_are_found_or_not():
    for survey in (
        Survey(PrefixExtension(16, 60.0, True), Schema([Text("word", 2)])),
        Survey(PrefixExtension(9, 60.0), Schema([Numeric("age", low=0, high=299, whole=True)])),
    ):
        name = survey.schema.names[0]
        some = {"word": ["to"] * 4000 + ["be"] * 2000, "age": [7] * 4000 + [299] * 2000}
        (row,) = measure_errors(survey, {name: some[name]}, 3, np.random.default_rng(1)).rows
        assert (row.questions, row.number, row.answered) == ("the 2 most frequent", 2, 1.0)
        assert row.measured < 0.05
        rare = {"word": [f"{k:02}" for k in range(100)], "age": list(range(100))}
        weak = Survey(replace(survey.protocol, epsilon=0.1), survey.schema)
        (row,) = measure_errors(weak, {name: rare[name]}, 2, np.random.default_rng(1)).rows
        assert row.number == 20
        assert row.answered < 0.5


@pytest.mark.slow
def test_long_texts_are_simulated():
    survey = Survey(PrefixExtension(80, 6.0, True), Schema([Text("city", 10)]))
    cities = ["Reykjavík"] * 4000 + ["Garðabær"] * 2000
    (row,) = measure_errors(survey, {"city": cities}, 2, np.random.default_rng(1)).rows
    assert (row.questions, row.number, row.answered) == ("the 2 most frequent", 2, 1.0)
    assert row.measured < 0.05


def test_nobody_has_a_value_or_there_is_one_user():
    survey = Survey(HaarHRR(17, 1.0), Schema([AGE]))
    found = measure_errors(survey, {"age": [None] * 5}, 2)
    assert [row.questions for row in found.rows] == ["items of age", "ranges of age"]
    assert len(measure_errors(survey, {"age": [3]}, 2).rows) == 3


@pytest.mark.parametrize("name", SURVEYS)
def test_every_kind_of_protocol(name):
    found = measure_errors(SURVEYS[name], MANY, 2, np.random.default_rng(1))
    assert found.rows
    assert all(row.measured >= 0 or row.answered == 0 for row in found.rows)
    assert str(found)


def test_users_without_a_value_are_left_out():
    sex = [None, "female", "male", None, "male"]
    found = measure_errors(Survey(GRR(2, 50.0), Schema([SEX])), {"sex": sex}, 1)
    assert (found.users, found.skipped) == (3, 2)
    assert str(found).startswith("3 users (2 rows have none), 1 repeats\n")
    assert found.rows[0].worst < 1e-6


def test_tables_of_any_kind_and_encoded_ones():
    survey = Survey(GRR(2, 1.0), Schema([SEX]))
    tables = [TABLE, pd.DataFrame(TABLE), survey.schema.encode(TABLE)]
    found = {measure_errors(survey, table, 3, np.random.default_rng(1)) for table in tables}
    assert len(found) == 1


@pytest.mark.slow
def test_many_attributes_and_items_are_asked_about_in_part():
    many = Schema([Boolean(f"b{k}") for k in range(40)])
    table = {name: [True, False] for name in many.names}
    found = measure_errors(Survey(RangeCALM(many.domain, 1.0, 2), many), table, 1)
    assert found.rows[-1].questions == "conjunctions of 2"
    assert found.rows[-1].number == 256
    wide = Schema([Numeric("pay", low=0, high=3000, whole=True)])
    found = measure_errors(Survey(HaarHRR(3001, 1.0), wide), {"pay": [5, 3000]}, 1)
    assert [row.number for row in found.rows] == [256, 256, 9]


@pytest.mark.parametrize(
    ("table", "repeats", "error", "message"),
    [
        ({"sex": []}, 1, ValueError, "no user reports"),
        ({"sex": [None, None]}, 1, ValueError, "no user reports"),
        ({"sex": ["mail"]}, 1, InvalidCell, "'mail'"),
        ({"six": ["male"]}, 1, UnknownColumn, "no column 'sex'"),
        ({"sex": ["male"]}, 0, ValueError, "repeats"),
        ({"sex": ["male"]}, 2.5, ValueError, "repeats"),
    ],
)
def test_what_is_wrong_is_said(table, repeats, error, message):
    with pytest.raises(error, match=message):
        measure_errors(Survey(GRR(2, 1.0), Schema([SEX])), table, repeats)
    with pytest.raises(ValueError, match=r"expected a frequency\.Survey"):
        measure_errors(GRR(2, 1.0), {"sex": ["male"]})
