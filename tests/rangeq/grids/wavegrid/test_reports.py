"""What reports alone tell: against dense least squares, and how often its intervals hold.

False alarms: coverage is compared at 1e-6, seeded; that of the model alone is seen to be too short.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from frequency import Between, Categorical, Numeric, Schema
from rangeq.core.density import Told, posterior_densities
from rangeq.grids import HDG, WaveGrid
from rangeq.grids.wavegrid.distributions import Axis, FittedJoint
from rangeq.grids.wavegrid.interactions import Halves, Pair
from rangeq.grids.wavegrid.local_terms import PairExplanation
from rangeq.grids.wavegrid.reports import ReportsAlone, UnbiasedAnswers
from tests.goodness_of_fit import FALSE_ALARM, at_most


def contrast_basis(cells: int) -> Any:
    """Orthonormal columns of sum 0: shape (cells, cells - 1)."""
    return np.linalg.qr(np.column_stack([np.ones(cells), np.eye(cells)[:, 1:]]))[0][:, 1:]


def gram(rng: np.random.Generator, cells: int) -> Any:
    root = rng.normal(size=(cells, 2 * cells))
    return root @ root.T / cells


def of_one(told: Told) -> tuple[ReportsAlone, Axis]:
    edges = tuple(range(len(told.scores) + 1))
    axis = Axis.of(edges, posterior_densities([told])[0])
    return ReportsAlone([told], [axis], {}, [False]), axis


def test_answers_about_an_attribute_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(1)
    for cells in (2, 5, 12):
        precision = 1e4 * gram(rng, cells)
        scores = precision @ rng.dirichlet(np.ones(cells)) + 50 * rng.normal(size=cells)
        reports, _ = of_one(Told(scores, precision, np.ones(cells)))
        weights = rng.integers(0, 2, (6, cells)).astype(float)
        basis, even = contrast_basis(cells), np.full(cells, 1 / cells)
        covariance = np.linalg.inv(basis.T @ precision @ basis)
        best = even + basis @ covariance @ basis.T @ (scores - precision @ even)
        found = reports.alone(0, weights)
        np.testing.assert_allclose(found.values, weights @ best, rtol=1e-7, atol=1e-9)
        turned = weights @ basis
        expected = np.einsum("qi,ij,qj->q", turned, covariance, turned)
        np.testing.assert_allclose(found.variances, expected, rtol=1e-7, atol=1e-12)


def test_what_no_report_is_about_is_the_models() -> None:
    # Reports on the first two of four cells together: of each by itself they tell nothing
    together = np.array([1.0, 1.0, 0.0, 0.0])
    precision = 1e5 * np.outer(together - 0.5, together - 0.5)
    reports, axis = of_one(Told(precision @ [0.5, 0.3, 0.1, 0.1], precision, np.ones(4)))
    found = reports.alone(0, np.array([together, [1.0, 0.0, 0.0, 0.0]]))
    assert found.values[0] == pytest.approx(0.8)
    assert found.variances[0] == pytest.approx(1 / 1e5)
    off = np.array([0.5, -0.5, 0.0, 0.0])
    assert found.variances[1] == pytest.approx(0.25 / 1e5 + off @ axis.changes @ off)
    assert found.values[1] == pytest.approx(0.4 + off @ axis.line.cells)


@pytest.mark.parametrize("precision", [0.0, 300.0])
def test_answers_about_a_pair_are_those_of_least_squares(precision: float) -> None:
    rng = np.random.default_rng(2)
    rows, columns, users = 5, 4, 2000.0
    margins = rng.dirichlet(np.full(rows, 3.0)), rng.dirichlet(np.full(columns, 3.0))
    grams, product = (gram(rng, rows), gram(rng, columns)), np.outer(*margins)
    halves = Halves(np.array([1.0, 1, -1, -1, -1]), np.array([1.0, 1, -1, -1]), 20.0, precision)
    scores = users * grams[0] @ product @ grams[1] + 40 * rng.normal(size=(rows, columns))
    pair = Pair(scores, users, grams, margins, halves)
    none = np.zeros((0, 0))
    left, right = np.zeros((rows, 0)), np.zeros((columns, 0))
    bare = PairExplanation(1.0, pair.independent(), product, left, right, none, none, False)
    reports = ReportsAlone([], [], {(0, 1): FittedJoint(pair, [bare])}, [True, True])
    f = rng.integers(0, 2, (8, rows)).astype(float)
    g = rng.integers(0, 2, (8, columns)).astype(float)
    known = [
        UnbiasedAnswers(f @ margins[0], np.zeros(8)),
        UnbiasedAnswers(g @ margins[1], np.zeros(8)),
    ]
    found = reports.together((0, 1), f, g, known)
    basis = np.kron(contrast_basis(rows), contrast_basis(columns))
    about = np.kron(halves.left, halves.right)
    information = users * np.kron(*grams) + precision * np.outer(about, about)
    covariance = np.linalg.inv(basis.T @ information @ basis)
    score = scores.ravel() + (halves.score * about if precision else 0.0)
    off = basis @ covariance @ basis.T @ (score - information @ product.ravel())
    asked = np.einsum("qi,qj->qij", f, g).reshape(8, -1)
    np.testing.assert_allclose(found.values, asked @ (product.ravel() + off), rtol=1e-7, atol=1e-9)
    turned = asked @ basis
    expected = np.einsum("qi,ij,qj->q", turned, covariance, turned)
    np.testing.assert_allclose(found.variances, expected, rtol=1e-6, atol=1e-12)
    # Margins that are not known add theirs
    doubtful = [UnbiasedAnswers(part.values, np.full(8, 1e-4)) for part in known]
    more = reports.together((0, 1), f, g, doubtful).variances - found.variances
    left, right = known[0].values, known[1].values
    np.testing.assert_allclose(more, 1e-4 * (left**2 + right**2) + 1e-8, rtol=1e-6)


@pytest.mark.slow
def test_intervals_hold_at_heaps_and_for_a_group_of_another_kind() -> None:
    users, trials = 50_000, 20
    value = np.arange(60)
    heaped = np.exp(-(((value - 25) / 14) ** 2) / 2)
    heaped *= 1 + 5 * (value % 5 == 0) + 6 * (value % 10 == 0)
    schema = Schema(
        [
            Numeric("age", low=0, high=59, whole=True),
            *(Numeric(name, low=0, high=59, whole=True) for name in ("hours", "rooms", "miles")),
            Categorical("job", ["work", "student", "none"]),
        ]
    )
    protocol = WaveGrid(schema, 1.0, users)
    heaps, missed = np.arange(0, 60, 5), np.zeros(4, dtype=int)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        age = rng.choice(60, users, p=heaped / heaped.sum())
        job = rng.choice([0, 2], users, p=[0.7, 0.3])
        student = rng.random(users) < 0.02
        age[student], job[student] = rng.integers(0, 8, student.sum()), 1
        others = rng.choice(60, (users, 3), p=heaped / heaped.sum())
        records = np.column_stack([age, others, job])
        estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
        both = estimate.answer({"age": Between(0, 7), "job": 1})
        young = float(np.mean(student & (age < 8)))
        for place, on_average in enumerate((False, True)):
            for attribute in range(4):
                shares = np.bincount(records[:, attribute], minlength=60)[heaps] / users
                low, high = estimate.answer({attribute: heaps}).interval(on_average=on_average)
                missed[place] += ((shares < low) | (high < shares)).sum()
            low, high = both.interval(on_average=on_average)
            missed[2 + place] += not low <= young <= high
        assert both.has_model
    number = np.array([trials * 4 * len(heaps)] * 2 + [trials] * 2)
    told = [at_most(int(m), int(n), 0.05) for m, n in zip(missed, number, strict=True)]
    assert told[0] > FALSE_ALARM
    assert told[2] > FALSE_ALARM
    assert told[1] < FALSE_ALARM  # the model's, at heaps
    assert told[3] < FALSE_ALARM  # and of students


def test_intervals_of_wide_attributes_and_of_several() -> None:
    rng = np.random.default_rng(4)
    records = np.stack([rng.integers(0, 1000, 3000), rng.integers(0, 9, 3000)], axis=1)
    protocol = WaveGrid([1000, 9], 2.0, 3000)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    # A value of about four in a cell has no more than wider ranges, of which more is told
    one = estimate.answer({0: 501}).interval()
    assert one.low == 0.0
    assert one.high < estimate.answer({0: Between(400, 600)}).interval().high + 0.05
    # An attribute in whole restricts nothing, and arrays have the intervals of their questions
    whole = estimate.answer({0: Between(100, 300), 1: Between(0, 8)}).interval()
    assert whole == pytest.approx(estimate.answer({0: Between(100, 300)}).interval())
    first, last = np.array([0, 40, 500]), np.array([99, 40, 999])
    low, high = estimate.answer({0: Between(first, last), 1: [1, 3, 4]}).interval(0.8)
    for place in range(3):
        one = estimate.answer({0: Between(first[place], last[place]), 1: [1, 3, 4]}).interval(0.8)
        assert one == pytest.approx((low[place], high[place]))
        assert 0 <= one.low <= one.high <= 1


def test_fitted_grids_have_both_intervals() -> None:
    rng = np.random.default_rng(5)
    records = np.stack([rng.binomial(63, 0.3, 4000), rng.binomial(63, 0.6, 4000)], axis=1)
    protocol = HDG([64, 64], 1.0, 4000)
    fitted = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng))).fitted()
    answer = fitted.answer({0: Between(0, 31), 1: Between(32, 63)})
    (low, high), (inner_low, inner_high) = answer.interval(), answer.interval(on_average=True)
    assert low <= inner_low + 1e-12
    assert high - low > inner_high - inner_low
    truth = np.mean((records[:, 0] < 32) & (records[:, 1] > 31))
    assert low <= truth <= high
