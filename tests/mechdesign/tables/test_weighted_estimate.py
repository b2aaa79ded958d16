"""Weighted sums of measurements: variances and intervals, against those of totals and by law."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mechdesign import named
from mechdesign.tables.estimates import (
    MeasuredCells,
    MeasurementErrors,
    TotalEstimate,
    WeightedEstimate,
    group_errors,
)

SIZES = np.array([3, 1, 3, 0, 2])
MECHANISMS = {n: named.geometric(n, alpha="1/2") for n in range(4)}
OUTPUTS = np.array([3, 0, 1, 0, 2])


def estimate(weights, outputs=OUTPUTS):
    cells = MeasuredCells(SIZES, MECHANISMS)
    value = float(weights @ cells.values(outputs))
    return WeightedEstimate(value, weights, cells.errors(outputs), int(SIZES.sum()))


def test_with_equal_weights_it_is_the_estimate_of_a_total():
    found = estimate(np.ones(5))
    groups = [(group_errors(m), OUTPUTS[n == SIZES]) for n, m in MECHANISMS.items()]
    total = TotalEstimate(groups)
    assert found.value == pytest.approx(total.value)
    assert found.variance == pytest.approx(total.variance)
    assert found.worst_variance == pytest.approx(total.worst_variance)
    assert found.standard_error == pytest.approx(total.standard_error)
    for confidence in (0.5, 0.95, 0.999):
        assert found.interval(confidence) == total.interval(confidence)


def test_cells_are_looked_up_by_the_size_of_their_group():
    cells = MeasuredCells(SIZES, MECHANISMS)
    for k, (size, output) in enumerate(zip(SIZES.tolist(), OUTPUTS.tolist(), strict=True)):
        group = group_errors(MECHANISMS[size])
        own = group.errors
        errors = cells.errors(OUTPUTS)
        assert cells.values(OUTPUTS)[k] == group.layers.estimates(np.array([output]))[0]
        assert cells.worst[k] == errors.worst[k] == own.worst
        found = errors.variances[k], errors.least[k], errors.spread[k]
        assert found == (
            group.layers.estimated_variances(np.array([output]))[0],
            own.least,
            own.spread,
        )
        assert (errors.tails[k], errors.step[k]) == (own.tails, own.step)


def test_new_outputs_have_the_law_of_the_mechanisms():
    """A cell of 4000 draws is off by 5.1 standard errors with probability below 4e-7."""
    cells, counts = MeasuredCells(SIZES, MECHANISMS), np.array([1, 1, 3, 0, 0])
    words = np.random.default_rng(8).bit_generator.random_raw
    drawn = np.array([cells.draw(counts, words) for _ in range(4000)])
    for k, (size, count) in enumerate(zip(SIZES.tolist(), counts.tolist(), strict=True)):
        chances = MECHANISMS[size].matrix[:, count]
        shares = np.bincount(drawn[:, k], minlength=size + 1) / 4000
        errors = np.sqrt(chances * (1 - chances) / 4000)
        assert (np.abs(shares - chances) <= 5.1 * errors).all()
        if size == 3:
            # The law of another count is told apart
            other = MECHANISMS[size].matrix[:, 3 - count]
            assert (np.abs(shares - other) > 5.1 * errors).any()


def test_noise_is_known_exactly():
    errors = MeasurementErrors.of_noise([None, Fraction(1, 2), Fraction(1, 3)])
    assert errors.variances.tolist() == errors.worst.tolist() == [0, 4, 1.5]
    x = np.arange(-200, 201)
    chances = 0.5 ** np.abs(x) / 3
    fourth, second = chances @ x**4.0, chances @ x**2.0
    assert errors.tails[:2] == pytest.approx([0, fourth - 3 * second**2])
    assert errors.step.tolist() == [0, 1, 1]
    both = errors.and_then(errors)
    assert [len(each) for each in both] == [6] * 6


@pytest.mark.parametrize("weights", [[1.0], [-2.0], [1.0, 0.01], [0.5, 0.5]])
def test_intervals_of_laplace_noise_cover_and_are_little_longer_than_they_must_be(weights):
    """By the law of the sum, of noise whose scale is 20; the shortest intervals are known."""
    alpha = Fraction(20, 21)
    x = np.arange(-800, 801)
    law = float(alpha) ** np.abs(x)
    law /= law.sum()
    sums = np.add.outer(weights[0] * x, [0.0] if len(weights) == 1 else weights[1] * x).ravel()
    chances = law if len(weights) == 1 else np.outer(law, law).ravel()
    order = np.argsort(np.abs(sums))
    reached = np.cumsum(chances[order])
    errors = MeasurementErrors.of_noise([alpha] * len(weights))
    for confidence, most in ((0.5, 1.55), (0.8, 1.2), (0.95, 1.15), (0.99, 1.25)):
        needed = np.abs(sums[order])[np.searchsorted(reached, confidence)]
        found = WeightedEstimate(5000.0, np.array(weights), errors, 10_000)
        low, high = found.interval(confidence)
        assert chances[(low - 5000 <= sums) & (sums <= high - 5000)].sum() >= confidence
        assert (high - low) / 2 <= most * needed + 1


@pytest.mark.of_rounding
def test_variances_are_moved_to_what_is_possible():
    low, high = np.full(1, 2.0), np.full(1, 3.0)
    for told, moved in ((-5.0, 2.0), (2.5, 2.5), (9.0, 3.0)):
        errors = MeasurementErrors(np.array([told]), low, high, *np.zeros((3, 1)))
        found = WeightedEstimate(1.0, np.full(1, -2.0), errors, 9)
        assert (found.variance, found.worst_variance) == (4 * moved, 12)


def test_another_confidence_is_refused():
    for confidence in (0, 1, 95, float("nan")):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            estimate(np.ones(5)).interval(confidence)
    assert repr(estimate(np.zeros(5))) == "WeightedEstimate(value=0, standard_error=0)"
