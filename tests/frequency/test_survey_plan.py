"""Which protocol is planned for attributes of a schema, and which attributes a task takes."""

import numpy as np
import pytest

from frequency import (
    Boolean,
    Categorical,
    Dates,
    Numeric,
    Schema,
    Survey,
    Text,
    plan_survey,
)
from mechdesign import BudgetExceeded, InvalidRequest, Ledger, UnknownTask, Unreachable, plan

PEOPLE = Schema(
    [
        Numeric("age", low=0, high=30, whole=True, unit="years", missing="item", outside="item"),
        Categorical("sex", ["female", "male"]),
        Dates("seen", "2026-01-01", "2026-01-16", outside="clip"),
        Boolean("smokes"),
        Text("word", 2),
        Numeric("postcode", low=1, high=300, whole=True),
    ]
)
TABLE = {
    "age": [7, None, 99, 30],
    "sex": ["male", "female", "male", "male"],
    "seen": ["2026-01-01", "2026-01-16", "2025-12-31", "2026-01-05"],
    "smokes": [True, False, True, True],
    "word": ["hi", "ho", "", "ü"],
    "postcode": [1, 2, 300, 4],
}
ASKED = [
    ("frequencies", ["age"], "frequencies", 33, {}),
    ("frequencies", ["sex"], "frequencies", 2, {}),
    ("ranges", ["age"], "ranges", 33, {}),
    ("Prefixes", ["seen"], "prefixes", 16, {}),
    ("quantiles", ["age"], "quantiles", 33, {}),
    ("shaped", ["age"], "shaped", 33, {}),
    ("marginals", ["sex", "smokes"], "marginals", {"sex": 2, "smokes": 2}, {"k": 2}),
    ("conjunctions", ["seen", "sex"], "conjunctions", {"seen": 16, "sex": 2}, {}),
    ("heavy hitters", ["word"], "heavy-hitters", 16, {"text": True}),
    ("heavy_hitters", ["postcode"], "heavy-hitters", 9, {"text": False}),
]


@pytest.mark.parametrize(("task", "names", "key", "domain", "details"), ASKED)
def test_the_plan_is_that_of_the_numbers_of_items(task, names, key, domain, details):
    found = plan_survey(task, PEOPLE, names, epsilon=2, n=1000)
    expected = plan(key, domain, epsilon=2, n=1000, **details)
    assert str(found).startswith(str(expected))
    assert found.chosen is found.plan.best
    assert found.survey == Survey(expected.best.protocol, PEOPLE.project(names))
    reports = found.survey.privatize(TABLE, np.random.default_rng(1), tally := {"": 0, "seen": 0})
    assert len(reports) == 4
    assert tally == {"": 0, "seen": int("seen" in names)}
    assert found.survey.estimate(found.survey.aggregate(reports)).schema.names == tuple(names)


def test_marginals_are_of_three_attributes_unless_it_is_said():
    four = Schema([Boolean(name) for name in "abcd"])
    for given, k in (({}, 3), ({"k": 1}, 1), ({"k": 4}, 4)):
        found = plan_survey("marginals", four, epsilon=1, n=1000, **given)
        assert found.survey.protocol.k == k
    assert plan_survey("marginals", four, "a", epsilon=1, n=1000).survey.protocol.k == 1


@pytest.mark.slow
def test_one_of_the_protocols_may_be_asked_for():
    found = plan_survey("ranges", PEOPLE, "age", epsilon=1, n=1000, protocol="HH_4 OUE")
    assert found.chosen.name == "HH_4 OUE" != found.plan.best.name
    assert found.survey.protocol == found.chosen.protocol
    assert "\ntaken, since it was asked for: HH_4 OUE\nHH_4 OUE: a range errs by" in str(found)


@pytest.mark.slow
def test_errors_are_predicted_in_words():
    found = plan_survey("ranges", PEOPLE, "age", epsilon=1, n=10_000)
    error = found.chosen.error
    assert f"a range errs by about {100 * error:.2g} % of the users" in found.expectation
    assert f"({error * 1e4:.3g} of 10000)" in found.expectation
    assert found.expectation.endswith(f"on populations: {found.chosen.resting_on}")
    found = plan_survey("ranges", PEOPLE, "age", epsilon=1, n=10_000, protocol="circular")
    assert found.expectation.endswith("for an even population")
    for task, names, *_ in ASKED:
        found = plan_survey(task, PEOPLE, names, epsilon=2, n=1000)
        known = found.chosen.error == found.chosen.error
        assert ("% of the users" in found.expectation) == known, task
        assert ("nothing is predicted" in found.expectation) == (not known), task


def test_a_survey_that_would_tell_nothing_says_so():
    found = plan_survey("frequencies", PEOPLE, "age", epsilon="0.01", n=500)
    assert found.chosen.error > 1
    assert (
        "\nanswers would tell nothing at epsilon 0.01 and 500 users: mechdesign plan says how many"
        in str(found)
    )
    found = plan_survey("frequencies", PEOPLE, "age", epsilon=1, n=50_000)
    assert "would tell nothing" not in str(found)


@pytest.mark.slow
def test_two_of_three_are_given_and_a_ledger_is_left_alone():
    ledger = Ledger("1/2")
    assert plan_survey("ranges", PEOPLE, "age", n=99, ledger=ledger).survey.protocol.epsilon == 0.5
    enough = plan_survey("ranges", PEOPLE, "age", error="0.01", ledger=ledger).chosen.n
    assert enough is not None
    assert enough > 99
    assert ledger.remaining == 0.5
    with pytest.raises(BudgetExceeded):
        plan_survey("ranges", PEOPLE, "age", n=99, epsilon=1, ledger=ledger)
    with pytest.raises(InvalidRequest, match="exactly two of n, epsilon and error"):
        plan_survey("ranges", PEOPLE, "age", epsilon=1)
    with pytest.raises(Unreachable, match="the least predicted is"):
        plan_survey("shaped", PEOPLE, "age", n=10, error=1e-4)


@pytest.mark.parametrize(
    ("task", "names", "message"),
    [
        ("ranges", ["sex"], "sex has no order, which ranges needs"),
        ("quantiles", ["smokes"], "no order"),
        ("shaped", ["sex"], "no order"),
        ("ranges", ["age", "seen"], "ranges asks for one attribute, got age, seen; several at"),
        ("frequencies", ["age", "sex"], "conjunctions, and their joint distribution for marginals"),
        ("frequencies", ["word"], "word is text, which nobody can list: heavy-hitters"),
        ("ranges", ["word"], "text"),
        ("marginals", ["sex", "word"], "text"),
        ("conjunctions", ["age", "word"], "text"),
        ("heavy-hitters", ["sex"], "sex has 2 items, which frequencies lists all"),
        ("heavy-hitters", ["word", "sex"], "one attribute"),
    ],
)
def test_which_attributes_a_task_takes(task, names, message):
    with pytest.raises(InvalidRequest, match=message):
        plan_survey(task, PEOPLE, names, epsilon=1, n=1000)


@pytest.mark.slow
def test_conjunctions_of_labels_alone() -> None:
    told = plan_survey("conjunctions", PEOPLE, ["sex", "smokes"], epsilon=1, n=1000).survey
    records = {"sex": ["female", "male"] * 500, "smokes": [False, True] * 500}
    estimate = told.estimate(told.aggregate(told.privatize(records)))
    answer = estimate.answer({"sex": "male", "smokes": True})
    assert abs(answer.value - 0.5) < 6 * answer.variance**0.5 + 0.05


@pytest.mark.parametrize("task", ["count", "curated-ranges", "colours", "", None, 7])
def test_tasks_that_are_none_of_surveys(task):
    with pytest.raises(UnknownTask, match="there are frequencies, ranges"):
        plan_survey(task, PEOPLE, "age", epsilon=1, n=1000)
    with pytest.raises(UnknownTask, match=r"unknown task 'range'; .*; did you mean ranges\?$"):
        plan_survey("range", PEOPLE, "age", epsilon=1, n=1000)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"attributes": "agx"}, ValueError, "no attribute 'agx'"),
        ({"attributes": []}, ValueError, "list of attributes"),
        ({"protocol": "HaarHR"}, InvalidRequest, "no protocol 'HaarHR' for this; there are '"),
        ({"branching": 4}, InvalidRequest, "does not know branching"),
        ({"epsilon": 0}, InvalidRequest, "epsilon must be above 0"),
        ({"n": 0}, InvalidRequest, "number of users"),
    ],
)
def test_what_is_wrong_is_said(given, error, message):
    with pytest.raises(error, match=message):
        plan_survey(
            **{
                "task": "ranges",
                "schema": PEOPLE,
                "attributes": "age",
                "epsilon": 1,
                "n": 99,
                **given,
            }
        )


@pytest.mark.slow
def test_protocols_that_cannot_serve_or_reach_an_error():
    asked = {"task": "heavy-hitters", "schema": PEOPLE, "attributes": "word"}
    with pytest.raises(InvalidRequest, match="text follows from the attribute"):
        plan_survey(**asked, epsilon=1, n=99, text=False)
    many = Schema([Numeric(name, low=0, high=63, whole=True) for name in "abc"])
    with pytest.raises(InvalidRequest, match="InpRR cannot serve: InpRR tells records apart"):
        plan_survey("marginals", many, k=1, epsilon=1, n=10**6, protocol="InpRR")
    with pytest.raises(InvalidRequest, match="not predicted to reach that error with an epsilon"):
        plan_survey("ranges", PEOPLE, "age", n=100, error="0.03", protocol="HaarHRR")
    with pytest.raises(InvalidRequest, match="nothing is predicted of SquareWave"):
        plan_survey("shaped", PEOPLE, "seen", n=3000, error="0.05", protocol="SquareWave")
