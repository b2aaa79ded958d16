"""Errors over several days: covariances in fractions from the joint law, and measured ones."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    IncompatibleAggregate,
    ProjectiveGeometry,
    SubsetSelection,
    UnknownVariance,
)
from frequency.longitudinal import (
    Memoised,
    change_of_days,
    day_covariance,
    least_change,
    mean_of_days,
)
from rangeq import HaarHRR
from tests.contracts.test_laws import CASES, of_ratio
from tests.frequency.longitudinal.test_memoised import laws_of

LISTED = [GRR(4, 1), SubsetSelection(4, "3/10"), OLH(4, 1), ProjectiveGeometry(3, 1)]


def scores(oracle: Any, law: dict[bytes, Fraction], item: int) -> dict[bytes, Fraction]:
    """What each report adds to n times the estimate of an item."""
    reports = np.frombuffer(b"".join(law), oracle.report_dtype)
    told = [
        int(oracle._supporters(oracle.aggregate(reports[k : k + 1]).counts)[item])
        for k in range(len(reports))
    ]
    scale = oracle.p - oracle.q
    return {report: (yes - oracle.q) / scale for report, yes in zip(law, told, strict=True)}


def covariance(question: Memoised, item: int, value: int) -> Fraction:
    """Of the scores of two days with the same value: from the law of all pairs of reports."""
    _, permanent, blank = laws_of(question, value)
    score = scores(question.protocol, permanent, item)
    kept = question.kept
    nothing = (1 - kept) * sum((blank[r] * score[r] for r in blank), Fraction(0))
    # Given the permanent report the days are independent
    means = {report: kept * score[report] + nothing for report in permanent}
    mean = sum((permanent[r] * means[r] for r in permanent), Fraction(0))
    assert mean == int(item == value)  # unbiased
    return sum((permanent[r] * means[r] ** 2 for r in permanent), Fraction(0)) - mean**2


def check(oracle: Any, total: Any) -> None:
    question = Memoised(oracle, total=total)
    own, other = covariance(question, 0, 0), covariance(question, 0, 1)
    assert day_covariance(question, 1, 1.0) == pytest.approx(float(own), rel=1e-12)
    assert day_covariance(question, 1) == pytest.approx(float(other), rel=1e-12)
    found = day_covariance(question, 10, np.array([0.0, 0.25]))
    assert found == pytest.approx([float(other) / 10, float(own + 3 * other) / 40], rel=1e-12)
    assert (found < oracle.variance(10, np.array([0.0, 0.25]))).all()


@pytest.mark.parametrize("oracle", LISTED, ids=lambda oracle: type(oracle).__name__)
@pytest.mark.parametrize("total", ["3/2", 4])
def test_the_covariance_of_two_days(oracle: Any, total: Any) -> None:
    check(oracle, total)


@pytest.mark.parametrize("name", ["OUE", "SUE"])
def test_the_covariance_of_two_days_of_bits(name: str) -> None:
    with of_ratio(CASES[name].ratio):
        check(CASES[name].make(), 3)


DAYS, USERS, TIMES = 4, 400, 400


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [SubsetSelection(16, 1), OUE(16, 1), SUE(16, 1), GRR(16, 1)])
def test_measured_over_predicted(oracle: Any) -> None:
    """Of 400 collections of four days and 16 items, the last day after a tenth have changed.

    An item's mean square error is about chi-square with 400 degrees of freedom; those of 16 items
    are nearly independent, or their mean would vary more. The criterion is 7 standard errors.
    """
    question, rng = Memoised(oracle, total=2), np.random.default_rng(11)
    values = rng.integers(0, 16, USERS) // rng.integers(1, 5, USERS)  # the first more frequent
    moved = values.copy()
    moved[: USERS // 10] = (moved[: USERS // 10] + 1) % 16
    state = question.start(np.tile(values, TIMES), rng)
    days = []
    for day in range(DAYS + 1):
        held = np.tile(moved if day == DAYS else values, TIMES)
        reports = question.privatize(state, held, rng).reshape(TIMES, USERS)
        days.append([oracle.aggregate(row) for row in reports])
    true, after = (np.bincount(held, minlength=16) / USERS for held in (values, moved))
    means = [mean_of_days(question, aggregates) for aggregates in zip(*days[:DAYS], strict=True)]
    stays = [
        change_of_days(question, one, other, 1.0)
        for one, other in zip(days[0], days[1], strict=True)
    ]
    moves = [
        change_of_days(question, one, other, 0.9)
        for one, other in zip(days[0], days[DAYS], strict=True)
    ]
    for answers, truth, bound in ((means, true, 0), (stays, 0 * true, 0), (moves, after - true, 1)):
        errors = np.mean([(answer.value - truth) ** 2 for answer in answers], axis=0)
        stated = np.mean([answer.variance for answer in answers], axis=0)
        margin = 7 * np.sqrt(2 / (TIMES * 16))
        if not bound:
            assert abs(errors.sum() / stated.sum() - 1) < margin
        else:  # at most, by what is not known of those who stay
            assert 1 - 2 * margin < errors.sum() / stated.sum() < 1 + margin
        covered = np.mean(
            [
                (answer.interval(0.95).low <= truth) & (truth <= answer.interval(0.95).high)
                for answer in answers
            ]
        )
        assert abs(covered - 0.95) < 7 * np.sqrt(0.05 * 0.95 / (TIMES * 16))
    # A planted error: as if days were independent, or permanent reports were all that is sent
    day = np.mean([oracle.variance(USERS, true)])
    assert np.mean([answer.variance for answer in means]) > 1.2 * day / DAYS
    assert np.mean([answer.variance for answer in stays]) < 0.9 * 2 * day


def test_days_do_not_average_out() -> None:
    """The mean of many days comes near the error of the permanent report; and no further."""
    question = Memoised(SubsetSelection(16, 1), total=2)
    rng = np.random.default_rng(2)
    state = question.start(np.zeros(500, dtype=int), rng)
    aggregates = [
        question.protocol.aggregate(question.privatize(state, np.zeros(500, dtype=int), rng))
        for _ in range(50)
    ]
    one, many = mean_of_days(question, aggregates[:1]), mean_of_days(question, aggregates)
    assert one.variance[3] == question.protocol.variance(500, one.value[3])
    least = day_covariance(question, 500, many.value[3])
    assert least < many.variance[3] < 1.1 * least


def answers_of_turnover(
    question: Any, times: int, seed: int
) -> tuple[list[Any], list[Any], np.ndarray, np.ndarray]:
    """Some collections of users of whom a quarter leave after the first day, and fewer arrive; and
    of four days of which every user misses some. Means and changes, with the truth.
    """
    rng, users, items = np.random.default_rng(seed), 400, 16
    values = rng.integers(0, items, users) // rng.integers(1, 5, users)
    present = np.zeros((6, users), dtype=bool)
    present[0, :320], present[1, 80:360] = True, True
    present[2:] = rng.random((4, users)) < np.array([0.9, 0.5, 0.7, 0.6])[:, None]
    shared = present[2:].astype(int) @ present[2:].T.astype(int)
    state = question.start(np.tile(values, times), rng)
    days = []
    for here in present:
        who = np.flatnonzero(np.tile(here, times))
        reports = question.privatize(state, values[who % users], rng, users=who)
        rows = reports.reshape(times, -1)
        days.append([question.protocol.aggregate(row) for row in rows])
    stayed = present[:2].all(axis=0).sum() / present[0].sum()
    changes = [
        change_of_days(question, one, two, stayed) for one, two in zip(*days[:2], strict=True)
    ]
    means = [mean_of_days(question, four, shared) for four in zip(*days[2:], strict=True)]
    true = [np.bincount(values[here], minlength=items) / here.sum() for here in present]
    return changes, means, true[1] - true[0], np.mean(true[2:], axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [SubsetSelection(16, 1), OUE(16, 1)])
def test_users_who_arrive_leave_and_miss_days(oracle: Any) -> None:
    """Measured errors over those stated, and coverage, of 300 collections: 7 standard errors, as
    above. What is not known of those who stay makes intervals of changes a little too wide.
    """
    times = 300
    changes, means, moved, true = answers_of_turnover(Memoised(oracle, total=2), times, 4)
    margin, spread = 7 * np.sqrt(2 / (times * 16)), 7 * np.sqrt(0.05 * 0.95 / (times * 16))
    for answers, truth, slack in ((changes, moved, 0.1), (means, true, 0.0)):
        errors = np.mean([(answer.value - truth) ** 2 for answer in answers], axis=0).sum()
        stated = np.mean([answer.variance for answer in answers], axis=0).sum()
        assert 1 - margin - slack < errors / stated < 1 + margin
        ends = [answer.interval(0.95) for answer in answers]
        covered = np.mean([(low <= truth) & (truth <= high) for low, high in ends])
        assert 0.95 - spread < covered < 0.95 + spread + slack / 4
    # An error planted: as if the same users' reports were independent
    alone = [oracle.variance(320) + oracle.variance(280), np.mean([oracle.variance(270)]) / 4]
    assert np.mean([answer.variance for answer in changes]) < 0.93 * alone[0]
    assert np.mean([answer.variance for answer in means]) > 1.2 * alone[1]


@pytest.mark.slow
def test_the_power_is_as_stated() -> None:
    """Of 600 collections each, with users who are known to stay and without, a change that is to be
    found with this probability is found about as often. False alarms: 1e-6 by the binomial law of
    the number found, which is given 0.03 for what is not normal, or not known of those who stay.
    """
    question, rng = Memoised(SubsetSelection(16, 1), total=2), np.random.default_rng(8)
    users, times, item = 1000, 600, 3
    found = {}
    for power, stayed in ((0.5, 0.0), (0.8, 0.7), (0.95, 0.0)):
        grown = least_change(question, users, 0.2, stayed, power=power)
        before = np.where(np.arange(users) < 0.2 * users - grown * users / 2, item, 15)
        after = before.copy()
        after[np.flatnonzero(before != item)[: round(grown * users)]] = item
        fresh = round((1 - stayed) * users)  # so many are others, but for those who change
        days = []
        state = question.start(np.tile(before, times), rng)
        days.append(question.privatize(state, np.tile(before, times), rng))
        if stayed == 0:
            state = question.start(np.tile(after, times), rng)
        else:
            assert fresh >= round(grown * users)
            again = question.start(np.tile(after, times), rng)
            others = np.tile(np.arange(users) >= users - fresh, times)
            others |= np.tile(before != after, times)
            state.reports[0, others] = again.reports[0, others]
            state.items[0, others] = again.items[0, others]
        days.append(question.privatize(state, np.tile(after, times), rng))
        told = [
            [question.protocol.aggregate(row) for row in day.reshape(times, users)] for day in days
        ]
        answers = [
            change_of_days(question, one, two, stayed) for one, two in zip(*told, strict=True)
        ]
        found[power] = sum(int(answer.interval(0.95).low[item] > 0) for answer in answers)
        assert stats.binom.sf(found[power] - 1, times, min(power + 0.03, 0.999)) > 1e-6
        assert stats.binom.cdf(found[power], times, power - 0.03) > 1e-6
    # Errors planted: the powers of the others
    assert stats.binom.cdf(found[0.5], times, 0.77) < 1e-6
    assert stats.binom.sf(found[0.95] - 1, times, 0.83) < 1e-6


def test_a_change_costs_no_more_than_two_days() -> None:
    """The more users are known to stay, the less; the interval of an unknown number is the sum."""
    question, rng = Memoised(SubsetSelection(8, 1), total=3), np.random.default_rng(3)
    values = rng.integers(0, 8, 2000)
    state = question.start(values, rng)
    before, after = (
        question.protocol.aggregate(question.privatize(state, values, rng)) for _ in range(2)
    )
    stated = [change_of_days(question, before, after, stayed).variance for stayed in (0, 0.5, 1)]
    assert (stated[0] > stated[1]).all()
    assert (stated[1] > stated[2]).all()
    own = [
        question.protocol.variance(2000, question.protocol.estimate(day).frequencies)
        for day in (before, after)
    ]
    assert stated[0] == pytest.approx(sum(own))


@pytest.mark.slow
def test_the_least_change_is_found_as_often_as_said() -> None:
    """Of a rare item that some users come to have: by normal errors, 8 times in 10."""
    question, rng = Memoised(SubsetSelection(16, 1), total=2), np.random.default_rng(5)
    users, times = 2000, 300
    grown = least_change(question, users, 0.05)
    before = np.arange(users) // (users // 20) % 20 % 16
    after = before.copy()
    others = np.flatnonzero(before != 3)
    after[others[: round(grown * users)]] = 3
    state = question.start(np.tile(before, times), rng)
    days = [
        question.privatize(state, np.tile(values, times), rng).reshape(times, users)
        for values in (before, after)
    ]
    found = 0
    for one, other in zip(*days, strict=True):
        answer = change_of_days(question, *(question.protocol.aggregate(r) for r in (one, other)))
        found += int(answer.interval(0.95).low[3] > 0)
    # Those who stay make the error a little less, and holders of the item a little more
    assert stats.binom.sf(found - 1, times, 0.9) > 1e-6
    assert stats.binom.cdf(found, times, 0.75) > 1e-6
    assert least_change(question, users, 0.05, power=0.5) < grown
    assert least_change(question, users, 0.05, stayed=1.0) < grown
    assert least_change(question, 4 * users, 0.05) == pytest.approx(grown / 2)


@pytest.mark.parametrize("protocol", [HRR(8, 1), HaarHRR(8, 1)], ids=lambda one: type(one).__name__)
def test_covariances_that_are_not_known(protocol: Any) -> None:
    question = Memoised(protocol, total=2)
    aggregate = protocol.aggregate(protocol.privatize([0, 1]))
    for call in (
        lambda: day_covariance(question, 10),
        lambda: mean_of_days(question, [aggregate]),
        lambda: change_of_days(question, aggregate, aggregate),
        lambda: least_change(question, 10),
    ):
        with pytest.raises(UnknownVariance, match=type(protocol).__name__):
            call()


def test_what_is_refused() -> None:
    question, other = Memoised(GRR(4, 1), total=2), GRR(5, 1)
    one, two = (question.protocol.aggregate(question.protocol.privatize([0] * n)) for n in (1, 2))
    none = question.protocol.aggregate(question.protocol.privatize([]))
    foreign = other.aggregate(other.privatize([0]))
    for aggregates in ([], [one, two], [none]):
        with pytest.raises(ValueError, match="the same users must report on each of the days"):
            mean_of_days(question, aggregates)
    with pytest.raises(ValueError, match=r"shared must say .*; got \[1, 2\] users"):
        mean_of_days(question, [one, two])
    with pytest.raises(ValueError, match=r"no more than report on the second, 1; got 0\.8"):
        change_of_days(question, two, one, 0.8)
    for shared in ([[1, 1], [1, 1]], [[1, 0], [1, 2]], [[1, 2], [2, 2]], [[1, 0.5], [0.5, 2]], [1]):
        with pytest.raises(ValueError, match="shared must be a symmetric table of 2 days"):
            mean_of_days(question, [one, two], shared)
    days = [question.protocol.estimate(day).variances for day in (one, two)]
    assert change_of_days(question, one, two).variance == pytest.approx(sum(days))
    with pytest.raises(ValueError, match="on both days, got 0 and 0"):
        change_of_days(question, none, none)
    for stayed in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="stayed must be a fraction"):
            change_of_days(question, one, one, stayed)
    for call in (
        lambda: mean_of_days(question, [foreign]),
        lambda: change_of_days(question, one, foreign),
    ):
        with pytest.raises(IncompatibleAggregate):
            call()
    with pytest.raises(ValueError, match="a number of users"):
        day_covariance(question, 0)
    with pytest.raises(ValueError, match="a number of users"):
        least_change(question, 0)
    for power in (0.4, 1):
        with pytest.raises(ValueError, match="power"):
            least_change(question, 10, power=power)
