"""Means and sums from estimates: beside dense covariances, and how often intervals hold.

False alarms: coverage is compared at 1e-6, seeded.
"""

import numpy as np
import pytest

from frequency.core.answer import Answer, WeightedCounts
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.marginals import InpHT
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, Survey
from mechdesign import ZCDP
from rangeq import HaarHRR
from rangeq.central import (
    CentralFlat,
    Hierarchy,
    MatrixMechanism,
    Release,
    count_cells,
    workload_optimal,
)
from tests.goodness_of_fit import FALSE_ALARM, at_most

HOURS = Numeric("hours", low=0, high=39, whole=True, unit="hours")
TOWN = Categorical("town", ["large", "small", "few", "none"])
SCHEMA = Schema([HOURS, TOWN])


def asking(counts, covariance):
    """The answers of counts with a covariance, about ranges."""

    def answer(where):
        first, last = np.atleast_1d(where[0].first), np.atleast_1d(where[0].last)
        rows = np.array(
            [
                (np.arange(len(counts)) >= a) & (np.arange(len(counts)) <= b)
                for a, b in zip(first, last, strict=True)
            ]
        ).astype(float)
        return Answer(rows @ counts, np.einsum("qi,ij,qj->q", rows, covariance, rows))

    return answer


@pytest.mark.parametrize("bins", [1, 2, 9])
def test_variances_are_those_of_the_covariance(bins):
    rng = np.random.default_rng(bins)
    root = rng.normal(size=(bins, bins))
    covariance, counts = root @ root.T, rng.random(bins) * 100 + 50
    values = np.sort(rng.normal(size=bins)) * 10 + 300
    weighted = WeightedCounts(asking(counts, covariance), {}, 0, bins)
    total = weighted.total(values)
    assert total.value == pytest.approx(values @ counts)
    assert total.variance == pytest.approx(values @ covariance @ values)
    mean = weighted.mean(values)
    users = counts.sum() ** 2 + np.ones(bins) @ covariance @ np.ones(bins)
    middle = (values.min() + values.max()) / 2
    expected = middle + (values - middle) @ counts * counts.sum() / users
    assert mean.value == pytest.approx(expected)
    gradient = (values - expected) / np.sqrt(users)
    assert mean.variance == pytest.approx(gradient @ covariance @ gradient, abs=1e-12)
    low, high = mean.interval(0.9)
    assert low <= mean.value + 1e-9
    assert high >= mean.value - 1e-9
    for end in (low, high):  # where the sum of values less it is as far from 0 as z deviations
        if values[0] < end < values[-1]:
            off = values - end
            deviation = np.sqrt(off @ covariance @ off)
            assert abs(off @ counts) == pytest.approx(1.6448536269514722 * deviation, rel=1e-6)


def test_many_bins_have_nearly_the_variance_of_all():
    bins = 1500

    def answer(where):
        lengths = where[0].last - where[0].first + 1.0
        return Answer(lengths, 4 * lengths)

    weighted = WeightedCounts(answer, {}, 0, bins)
    values = np.arange(bins) - 700.0
    assert weighted.total(values).variance == pytest.approx(4 * (values**2).sum(), rel=1e-3)


def test_where_users_are_not_told_from_none_all_values_are_possible():
    values = np.arange(5.0)
    weighted = WeightedCounts(asking(np.array([3.0, 0, 0, 0, 0]), 9 * np.eye(5)), {}, 0, 5)
    assert tuple(weighted.mean(values).interval()) == (0.0, 4.0)
    nobody = WeightedCounts(asking(-np.ones(5), np.eye(5)), {}, 0, 5)
    with pytest.raises(ValueError, match="nobody meets"):
        nobody.mean(values)
    assert nobody.total(values).value == -10
    odd = WeightedCounts(asking(np.array([-40.0, 50, 0, 0, 0]), np.eye(5)), {}, 0, 5)
    assert odd.mean(values).value == 4.0  # and not 5: within the values


@pytest.mark.parametrize("kind", ["flat", "tree", "designed"])
def test_intervals_hold_for_groups_of_all_sizes(kind):
    rng = np.random.default_rng(1)
    town = np.repeat(np.arange(3), [5000, 400, 12])
    hours = np.clip(np.rint(rng.normal(15 + 6 * town, 5)), 0, 39).astype(int)
    labels = np.array(TOWN.labels, dtype=object)
    truth = count_cells(SCHEMA, [{"hours": hours, "town": labels[town]}])
    mechanism = {
        "flat": lambda: CentralFlat(SCHEMA.sizes, 1),
        "tree": lambda: Hierarchy(SCHEMA.sizes, 1, 2),
        "designed": lambda: (
            workload_optimal("2-way ranges", SCHEMA.sizes, ZCDP("1/8"), cache=False).mechanism
        ),
    }[kind]()
    held = []
    for seed in range(60):
        estimate = Release.draw(SCHEMA, mechanism, truth, np.random.default_rng(seed)).estimate
        for group in range(3):
            exactly, where = hours[town == group], {"town": labels[group]}
            try:
                low, high = estimate.mean("hours", where).interval()
                held.append(low <= exactly.mean() <= high)
            except ValueError:  # by the noise nobody is there: no interval is stated
                assert group == 2
            low, high = estimate.total("hours", where).interval()
            held.append(low <= exactly.sum() <= high)
        low, high = estimate.mean("hours").interval()
        held.append(low <= hours.mean() <= high)
    missed = len(held) - sum(held)
    assert at_most(missed, len(held), 0.07) > FALSE_ALARM


def test_bins_of_several_values_widen_the_interval_and_leave_no_variance():
    pay = Numeric("pay", [0, 1000, 2000, 5000], unit="euros")
    schema = Schema([pay])
    mechanism = MatrixMechanism(
        workload_optimal("cells", 3, ZCDP(100), cache=False).mechanism.strategy, ZCDP(100)
    )
    truth = np.array([1000, 1000, 2000])
    estimate = Release.draw(schema, mechanism, truth, np.random.default_rng(1)).estimate
    answer = estimate.mean("pay")
    assert answer.value == pytest.approx((500 + 1500 + 2 * 3500) / 4, rel=0.01)
    with pytest.raises(UnknownVariance, match="within bins"):
        answer.variance  # noqa: B018
    low, high = answer.interval()
    assert low == pytest.approx((0 + 1000 + 2 * 2000) / 4, rel=0.02)
    assert high == pytest.approx((1000 + 2000 + 2 * 5000) / 4, rel=0.02)
    low, high = estimate.total().interval()
    assert low < 4000 * 1250 * 1.02
    assert high > 4000 * 3250 * 0.98


def test_a_survey_of_users_has_means_and_sums():
    hours = Numeric("hours", low=0, high=39, whole=True, missing="item")
    survey = Survey(HaarHRR(41, 3.0), Schema([hours]))
    values = np.append(np.full(30_000, 10), np.full(10_000, 30)).astype(object)
    given = np.append(values, np.full(10_000, None))
    reports = survey.privatize({"hours": given}, np.random.default_rng(2))
    estimate = survey.estimate(survey.aggregate(reports))
    for answer, truth in ((estimate.mean(), 15), (estimate.total("hours"), 600_000)):
        low, high = answer.interval(0.999)
        assert low < truth < high
        assert high - low < 0.2 * truth


def test_what_has_no_mean_is_said():
    schema = Schema([HOURS, TOWN, Dates("seen", "2020-01-01", "2020-12-31", "month")])
    truth = np.ones(schema.sizes, dtype=int)
    release = Release.draw(schema, CentralFlat(schema.sizes, 1), truth, np.random.default_rng(1))
    for name in ("town", "seen"):
        with pytest.raises(InvalidQuestion, match="has no"):
            release.estimate.mean(name)
    with pytest.raises(InvalidQuestion, match="there are 3 attributes"):
        release.estimate.mean()
    with pytest.raises(InvalidQuestion, match="about hours itself"):
        release.estimate.mean("hours", {"hours": 3})
    smokes = Schema([Boolean("smokes"), Numeric("kids", low=0, high=3, whole=True)])
    survey = Survey(InpHT(smokes.domain, 1, 1.0), smokes)
    none = survey.estimate(survey.aggregate(survey.privatize({"smokes": [], "kids": []})))
    with pytest.raises(ValueError, match="no reports"):
        none.mean("kids")
