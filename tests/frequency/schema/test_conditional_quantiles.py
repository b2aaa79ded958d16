"""Quantiles among some of the users: against plain counting, and how often intervals cover.

False alarms: coverage is compared at 1e-6, seeded, and an interval that is too short is seen.
"""

import numpy as np
import pytest

from frequency.core.answer import Answer, ConditionalQuantiles
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.marginals import InpHT, MargPS
from frequency.schema import Boolean, Categorical, Numeric, Schema, Survey
from rangeq.central import CentralFlat, Release, count_cells
from tests.goodness_of_fit import FALSE_ALARM, at_most

HOURS = Numeric("hours", low=0, high=9, whole=True, unit="hours")
SCHEMA = Schema([HOURS, Categorical("job", ["cook", "smith"])])


def asking(cells, variance=0.0):
    """The answers of a table of cells, attribute by attribute, all with one variance."""

    def answer(where):
        rows = np.ones(cells.shape[1], dtype=bool)
        first, last = (np.atleast_1d(end) for end in (where[0].first, where[0].last))
        if 1 in where:
            rows = np.isin(np.arange(cells.shape[1]), where[1])
        sums = np.append(0, np.cumsum(cells[:, rows].sum(axis=1)))
        return Answer(sums[last + 1] - sums[first], np.full(len(first), variance))

    return answer


def of(cells, condition, variance=0.0):
    return ConditionalQuantiles(asking(cells, variance), condition, 0, len(cells))


def plainly(cells, phi):
    """The first bin that reaches phi, and the first from which on all do, in the middle."""
    sums, wanted = np.cumsum(cells), phi * sum(cells)
    reaching = [k for k in range(len(cells)) if sums[k] >= wanted or k == len(cells) - 1]
    for_good = [k for k in reaching if all(j in reaching for j in range(k, len(cells)))]
    return (reaching[0] + for_good[0]) // 2


@pytest.mark.parametrize("bins", [1, 2, 7])
def test_bins_are_those_of_plain_counting(bins):
    rng = np.random.default_rng(bins)
    for _ in range(20):
        cells = rng.normal(2.0, 2.0, (bins, 3))
        for condition, column in (({1: 2}, cells[:, 2]), ({1: [0, 1]}, cells[:, :2].sum(axis=1))):
            if column.sum() <= 0:
                continue
            phi = np.array([[0.0, 0.2, 0.5], [0.7, 0.99, 1.0]])
            found = of(cells, condition).bins(phi)
            expected = [[plainly(column, share) for share in row] for row in phi]
            assert found.tolist() == expected


def test_intervals_hold_the_bins_and_shrink_with_the_errors():
    cells = np.random.default_rng(1).integers(1, 50, (8, 2)).astype(float)
    phi = np.linspace(0, 1, 11)
    sizes = []
    for variance in (0.0, 4.0, 400.0, 1e9):
        quantiles = of(cells, {1: 1}, variance)
        first, last = quantiles.ends(phi, 0.95)
        middle = quantiles.bins(phi)
        assert ((first <= middle) & (middle <= last)).all()
        sizes.append(int((last - first).sum()))
    assert sizes == sorted(sizes)
    assert sizes[-1] == 7 * len(phi)


def test_without_errors_there_are_no_intervals():
    def blind(where):
        known = asking(np.ones((4, 2)))(where)
        return Answer(known.value, None, "nobody knows")

    quantiles = ConditionalQuantiles(blind, {1: 1}, 0, 4)
    assert quantiles.bins(0.5) == 1
    with pytest.raises(UnknownVariance):
        quantiles.ends(0.5, 0.9)


def people(users, rng):
    cook = rng.random(users) < 0.3
    hours = rng.binomial(9, np.where(cook, 0.7, 0.3))
    return {"hours": hours, "job": np.where(cook, "cook", "smith")}


@pytest.mark.slow
@pytest.mark.parametrize("job", ["cook", "smith"])
def test_intervals_cover(job):
    rng, covered, short, trials = np.random.default_rng(3), 0, 0, 200
    schema = Schema([Numeric("hours", low=0, high=59, whole=True), SCHEMA["job"]])
    mechanism = CentralFlat(schema.sizes, "1/20")
    table = people(3000, rng)
    table["hours"] = 5 * table["hours"] + rng.integers(0, 10, 3000)
    counts = count_cells(schema, [table])
    true = int(np.quantile(table["hours"][table["job"] == job], 0.5, method="inverted_cdf"))
    for _ in range(trials):
        estimate = Release.draw(schema, mechanism, counts, rng).estimate
        low, high = estimate.quantile_interval(0.5, 0.8, "hours", {"job": job})
        covered += low <= true <= high
        short += estimate.quantile(0.5, "hours", {"job": job}) == true
    assert at_most(trials - covered, trials, 0.2) > FALSE_ALARM
    assert at_most(trials - short, trials, 0.2) < FALSE_ALARM  # the quantile alone as an interval


def test_of_marginals_and_in_units():
    rng = np.random.default_rng(5)
    survey = Survey(MargPS(SCHEMA.domain, 2, 8.0), SCHEMA)
    table = people(20_000, rng)
    estimate = survey.estimate(survey.aggregate(survey.privatize(table, rng)))
    found = estimate.quantile([0.1, 0.9], "hours", {"job": "cook"})
    true = np.quantile(table["hours"][table["job"] == "cook"], [0.1, 0.9], method="inverted_cdf")
    assert found.tolist() == true.tolist()


def test_what_is_no_question():
    rng = np.random.default_rng(6)
    survey = Survey(MargPS(SCHEMA.domain, 2, 8.0), SCHEMA)
    estimate = survey.estimate(survey.aggregate(survey.privatize(people(2000, rng), rng)))
    for ask, message in (
        (lambda: estimate.quantile(0.5, "hours", {"hours": 3}), "about hours itself"),
        (lambda: estimate.quantile(0.5, "job", {"hours": 3}), "job has no order"),
        (lambda: estimate.quantile(0.5, "hours", {"town": "x"}), "one of hours, job"),
        (lambda: estimate.quantile(0.5, "hours", {}), "names no attribute"),
    ):
        with pytest.raises(InvalidQuestion, match=message):
            ask()
    for phi in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="phi"):
            estimate.quantile(phi, "hours", {"job": "cook"})
        with pytest.raises(ValueError, match="phi"):
            estimate.quantile_interval(phi, 0.9, "hours", {"job": "cook"})
    wide = Schema([Numeric("pay", [0, 10, 20, 40]), Boolean("ill")])
    bits = Survey(InpHT(wide.domain, 2, 8.0), wide)
    told = bits.estimate(
        bits.aggregate(bits.privatize({"pay": [5, 15], "ill": [True, False]}, rng))
    )
    with pytest.raises(InvalidQuestion, match="ill has no order"):
        told.quantile(0.5, "ill", {"pay": (0, 10)})
