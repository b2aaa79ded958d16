"""Least squares lines from samples of what was estimated."""

import numpy as np
import pytest

from frequency.exceptions import InvalidQuestion
from frequency.marginals import InpHT
from frequency.schema import Boolean, Categorical, Numeric, Schema, Survey, least_squares
from mechdesign import Privacy
from rangeq.central import (
    CentralFlat,
    GroupedSums,
    MatrixMechanism,
    Release,
    count_cells,
    count_marginals,
)
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from tests.goodness_of_fit import FALSE_ALARM, at_most

X = Numeric("x", low=0, high=11, whole=True, unit="years", missing="item")
Y = Numeric("y", low=0, high=100, bins=10, unit="EUR", outside="clip")
Z = Numeric("z", low=0, high=3, whole=True)


def people(n, rng):
    x = rng.integers(0, 12, n)
    z = np.clip(x // 4 + rng.integers(-1, 2, n), 0, 3)
    y = np.clip(20 + 4 * x - 5 * z + rng.normal(0, 10, n), 0, 100)
    known = np.array(x, dtype=object)
    known[rng.random(n) < 0.1] = None
    return {"x": known, "y": y, "z": z}


def by_definition(schema, table, of, on):
    """The line through the middles of bins of the users who have values of both."""
    columns = []
    for name in (of, on):
        attribute = schema[name]
        items = attribute.coded(table[name]).items
        ends = [attribute.cuts[:-1], attribute.cuts[1:] - attribute.whole]
        middles = np.append(np.mean(ends, axis=0), np.full(len(attribute.extra), np.nan))
        columns.append(middles[items])
    known = ~np.isnan(columns).any(axis=0)
    y, x = (column[known] for column in columns)
    slope, intercept = np.polyfit(x, y, 1)
    return intercept, slope, float(np.corrcoef(x, y)[0, 1]), float(known.mean())


@pytest.mark.parametrize(("of", "on"), [("y", "x"), ("x", "y")])
def test_lines_are_those_of_the_table_where_noise_is_little(of, on):
    schema, table = Schema([X, Y]), people(50_000, np.random.default_rng(1))
    counts = count_cells(schema, [table])
    mechanism = CentralFlat(schema.sizes, 50)
    estimate = Release.draw(schema, mechanism, counts, np.random.default_rng(2)).estimate
    found = least_squares(estimate, of, on)
    *truths, known = by_definition(schema, table, of, on)
    for answer, truth in zip(found[:3], truths, strict=True):
        assert answer.value == pytest.approx(truth, abs=6 * answer.variance**0.5)
        assert answer.value == pytest.approx(truth, rel=0.02, abs=0.05)
    assert found.users == pytest.approx(known, abs=0.02)


def test_a_falling_line_has_a_negative_correlation():
    schema = Schema([X, Z])
    x = np.random.default_rng(1).integers(0, 12, 20_000)
    counts = count_cells(schema, [{"x": x, "z": 3 - x // 3}])
    estimate = Release.draw(schema, CentralFlat(schema.sizes, 5), counts).estimate
    found = least_squares(estimate, "z", "x", np.random.default_rng(3))
    assert found.correlation.value < -0.9
    assert found.slope.value < 0


@pytest.mark.slow
def test_intervals_hold_on_average():
    schema, asked, missed, repeats = Schema([X, Y]), 0, 0, 40
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        table = people(5000, rng)
        _, slope, correlation, _ = by_definition(schema, table, "y", "x")
        counts = count_cells(schema, [table])
        estimate = Release.draw(schema, CentralFlat(schema.sizes, 1), counts, rng).estimate
        found = least_squares(estimate, "y", "x")
        for answer, truth in (
            (found.slope, slope),
            (found.correlation, correlation),
        ):
            low, high = answer.interval()
            missed += not low <= truth <= high
            asked += 1
    assert at_most(missed, asked, 0.15) > FALSE_ALARM


def test_lines_follow_from_marginals_too():
    schema, rng = Schema([X, Y, Z]), np.random.default_rng(4)
    table = people(20_000, rng)
    views = [(0, 1), (0, 2), (1, 2)]
    mechanism = MatrixMechanism(
        MarginalStrategy(schema.sizes, views, [1] * 3), Privacy.from_epsilon(5)
    )
    counts = count_marginals(schema, [table])
    estimate = Release.draw(schema, mechanism, counts, rng).estimate
    _, slope, _, _ = by_definition(schema, table, "y", "x")
    assert least_squares(estimate, "y", "x").slope.value == pytest.approx(slope, abs=0.3)


def test_what_has_no_line():
    schema = Schema([X, Y, Z, Categorical("town", ["a", "b"])])
    counts = np.full(schema.sizes, 3)
    estimate = Release.draw(schema, CentralFlat(schema.sizes, 1), counts).estimate
    for of, on, message in [
        ("y", "town", "not numeric"),
        ("y", "y", "y twice"),
        ("y", "w", "an attribute is one of"),
    ]:
        with pytest.raises(InvalidQuestion, match=message):
            least_squares(estimate, of, on)
    single = Schema([Numeric("x", low=5, high=5, whole=True), Z])
    alike = Release.draw(single, CentralFlat(single.sizes, 1), np.full(single.sizes, 99)).estimate
    with pytest.raises(ValueError, match="hardly anybody"):
        least_squares(alike, "z", "x")
    sums = GroupedSums(Schema([Boolean("smokes"), Z]))
    mechanism = sums.mechanism(Privacy.from_epsilon(1))
    told = Release.draw(sums.schema, mechanism, sums.count([], mechanism), sums=sums).estimate
    with pytest.raises(InvalidQuestion):
        least_squares(told, "z", "smokes")


def test_local_estimates_that_have_samples_have_lines():
    schema, rng = Schema([Z, Numeric("w", low=0, high=3, whole=True)]), np.random.default_rng(5)
    survey = Survey(InpHT(schema.domain, 2, 4.0), schema)
    z = rng.integers(0, 4, 30_000)
    reports = survey.privatize({"z": z, "w": np.clip(z + rng.integers(-1, 2, len(z)), 0, 3)}, rng)
    fitted = survey.estimate(survey.aggregate(reports)).fitted()
    assert least_squares(fitted, "w", "z").slope.value == pytest.approx(0.8, abs=0.15)
