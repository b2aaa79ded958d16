"""Plans for several days: what is predicted is what happens, and what is spent is what is said."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from frequency import GRR, Categorical, Schema, plan_survey
from frequency.longitudinal import Memoised
from frequency.planning.tasks import Frequencies
from mechdesign import InvalidRequest, Ledger, plan
from mechdesign.accounting.pair_law import exp_below
from tests.own_oracles import Bare

DAYS, USERS, REPEATS = 5, 400, 800
WITHIN = 0.04
"""Of 15 REPEATS squares or more the root mean square errs by 0.65 % (as one standard deviation):
the false-alarm rate is less than 1e-8.
"""


def errors_of(question: Memoised) -> tuple[float, float]:
    """Measured root mean square errors of a day, and of the mean of all: of an even population."""
    domain, rng = question.protocol.domain, np.random.default_rng(28)
    values = np.tile(np.arange(domain).repeat(USERS // domain), REPEATS)
    state = question.start(values, rng)
    found = []
    for _ in range(DAYS):
        reports = question.privatize(state, values, rng).reshape(REPEATS, USERS)
        aggregates = map(question.protocol.aggregate, reports)
        found.append([question.protocol.estimate(one).frequencies for one in aggregates])
    errors = np.array(found) - 1 / domain
    return math.sqrt(np.mean(errors[0] ** 2)), math.sqrt(np.mean(errors.mean(axis=0) ** 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "domain", "given"),
    [
        ("SubsetSelection", 16, {"epsilon": 2}),
        ("OLH", 20, {"epsilon": 6, "changes": 1, "day": "1"}),
    ],
)
def test_predictions_are_measured_errors(name: str, domain: int, given: dict[str, Any]) -> None:
    found = plan("frequencies", domain, n=USERS, days=DAYS, **given)
    (item,) = (item for item in found.candidates if item.name == name)
    mean = dict(item.other_errors)["mean"]
    day_measured, mean_measured = errors_of(item.protocol)
    assert day_measured == pytest.approx(item.error, rel=WITHIN)
    assert mean_measured == pytest.approx(mean, rel=WITHIN)
    # As fresh reports of each day would have it, or one report
    assert mean_measured > item.error / math.sqrt(DAYS) * (1 + WITHIN)
    assert mean_measured < item.error * (1 - WITHIN)


def test_what_is_spent_is_what_was_given() -> None:
    """By each candidate, and exactly: the ledger takes it."""
    for changes in (0, 2):
        found = plan("frequencies", 16, n=1000, epsilon="3/2", days=30, changes=changes)
        for item in found.candidates:
            cost = item.protocol.cost(changes)
            assert cost.epsilon == Fraction(3, 2)
            assert item.protocol.audit().ratio ** (changes + 1) <= exp_below(cost.epsilon)
        total, day = Frequencies(16, 30, changes).epsilons(Fraction(3, 2))
        assert f"one day tell {float(day):.4g} at most" in str(found)
        assert total == Fraction(3, 2) / (changes + 1)
    ledger = Ledger("3/2")
    assert plan("frequencies", 16, n=1000, days=2, ledger=ledger).best.epsilon == Fraction(3, 2)


@pytest.mark.parametrize("days", [2, 30, 365])
@pytest.mark.parametrize("total", ["1/10", "1", "4"])
def test_the_day_that_is_chosen_is_the_least_that_is_nearly_as_good(days: int, total: str) -> None:
    """For many items: of all days the mean over them errs least with the largest epsilon of one."""

    def mean(day: Any) -> float:
        task = Frequencies(1000, days, day=day)
        offer = task.offer("SubsetSelection", Fraction(total), 1)
        return dict(task.other_errors(offer.protocol, 1))["mean"]

    _, day = Frequencies(1000, days).epsilons(Fraction(total))
    best = mean(total)
    assert mean(day) == pytest.approx(1.1 * best, rel=0.02)
    assert mean(Fraction(day) * Fraction(3, 4)) > 1.13 * best
    assert mean(Fraction(day) / 2) > mean(Fraction(day) * Fraction(3, 4))


def test_a_search_finds_what_an_error_on_a_day_takes() -> None:
    found = plan("frequencies", 16, n=100_000, error=0.01, days=30, changes=1)
    best = found.best
    assert best.error <= 0.01
    less = plan("frequencies", 16, n=100_000, epsilon=best.epsilon - Fraction(1, 1000), days=30)
    assert {item.name for item in less.candidates} == {item.name for item in found.candidates}
    same = plan("frequencies", 16, n=100_000, epsilon=best.epsilon, days=30, changes=1)
    (again,) = (item for item in same.candidates if item.name == best.name)
    assert again.error == best.error
    lower = plan(
        "frequencies", 16, n=100_000, epsilon=best.epsilon - Fraction(1, 100), days=30, changes=1
    )
    assert min(item.error for item in lower.candidates) > 0.01
    users = plan("frequencies", 16, epsilon=2, error=0.01, days=30, day=1).best.n
    assert users == plan("frequencies", 16, epsilon=1, error=0.01).best.n


@pytest.mark.parametrize("epsilon", ["1/1000000", "50", "1000", 1e6])
def test_an_epsilon_that_is_odd_has_a_day(epsilon: Any) -> None:
    total, day = Frequencies(16, 30).epsilons(epsilon)
    assert 0 < Fraction(day) <= total == Fraction(epsilon)
    assert plan("frequencies", 16, n=100, epsilon=epsilon, days=30).best.error > 0


def test_one_day_is_planned_as_before() -> None:
    assert str(plan("frequencies", 16, n=9, epsilon=1, days=1)) == str(
        plan("frequencies", 16, n=9, epsilon=1)
    )


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"days": 0}, "days must be a number of days, 1 to"),
        ({"days": 1.5}, "days"),
        ({"days": 3, "changes": 3}, "changes must be .* 0 to 2"),
        ({"changes": 1}, "changes"),
        ({"day": 1}, "give the days"),
        ({"days": 3, "day": 0}, "epsilon"),
        ({"days": 3, "day": 2}, "at least the epsilon of a day"),
        ({"days": 3, "trust": "shuffled", "delta": "1e-8"}, "plan for one day"),
        ({"days": 3, "trust": "curator"}, "several days"),
    ],
)
def test_what_is_refused(details: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan("frequencies", 16, n=1000, epsilon=1, **details)


def test_candidates_that_state_no_likelihoods_cannot_serve() -> None:
    found = plan("frequencies", 3, n=99, epsilon=1, days=2, candidates={"bare": Bare, "own": GRR})
    assert [name for name, _ in found.refused] == ["bare"]
    (own,) = (item for item in found.candidates if item.name == "own")
    assert isinstance(own.protocol, Memoised)


def test_surveys_are_asked_once() -> None:
    schema = Schema([Categorical("smokes", ["never", "daily"])])
    with pytest.raises(InvalidRequest, match="a survey is asked once"):
        plan_survey("frequencies", schema, epsilon=1, n=99, days=3)
