"""Two square waves, each of half of epsilon: laws, privacy, maximum likelihood.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from frequency import Between, InvalidReport, InvalidValue
from rangeq.spatial import SquareWave2D
from tests.goodness_of_fit import FALSE_ALARM


def law(protocol, item):
    """The probability of each output, the product of both waves' own."""
    found = []
    for wave, value in zip(protocol.channel.waves, item, strict=True):
        near = [value <= output <= value + 2 * wave.reach for output in range(wave.outputs)]
        found.append([wave.p if inside else wave.q for inside in near])
    return np.array([[one * other for other in found[1]] for one in found[0]], dtype=object)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, "2/3", 2000])
@pytest.mark.parametrize("sides", [(3, 4), (1, 5), (1, 1)])
def test_both_reports_together_are_within_the_ratio(epsilon, sides) -> None:
    protocol = SquareWave2D(list(sides), epsilon)
    laws = [law(protocol, item).ravel() for item in np.ndindex(sides)]
    assert all(sum(one) == 1 for one in laws)
    audit = protocol.audit()
    assert audit.ratio == max(max(cell) / min(cell) for cell in zip(*laws, strict=True))
    assert audit.holds
    assert protocol.proof().verify()
    if max(sides) > 1 and epsilon != 2000:  # all of it, also where one attribute says nothing
        assert math.log(audit.ratio) == pytest.approx(float(protocol.privacy.epsilon), rel=1e-6)
    if epsilon == 1.0 and sides == (3, 4):  # halves that are a little larger do not hold
        larger = SquareWave2D(list(sides), 1.00001).audit()
        assert larger.ratio > audit.allowed


def test_reports_have_the_stated_law() -> None:
    protocol, n, rng = SquareWave2D([4, 3], 2.0), 40_000, np.random.default_rng(1)
    right, wrong = (law(protocol, item).astype(float).ravel() * n for item in ((1, 2), (3, 0)))
    held = np.zeros((4, 3), dtype=int)
    held[1, 2] = n
    for aggregate in (
        protocol.aggregate(protocol.privatize(np.tile((1, 2), (n, 1)), rng)),
        protocol.simulate(held.ravel(), rng),
    ):
        counts = aggregate.counts.ravel()
        assert stats.chisquare(counts, right).pvalue > FALSE_ALARM
        assert stats.chisquare(counts, wrong).pvalue < FALSE_ALARM


def test_maps_are_those_of_the_laws_and_each_other_s_transpose() -> None:
    channel = SquareWave2D([5, 4], 2.0).channel
    rng = np.random.default_rng(2)
    f = rng.dirichlet(np.ones(20)).reshape(5, 4)
    numbers = rng.random(channel.counts_shape)
    laws = [law(SquareWave2D([5, 4], 2.0), item).astype(float) for item in np.ndindex(5, 4)]
    expected = sum(share * one for share, one in zip(f.ravel(), laws, strict=True))
    np.testing.assert_allclose(channel.reported(f), expected, atol=1e-12)
    back = [(one * numbers).sum() for one in laws]
    np.testing.assert_allclose(channel.backward(numbers).ravel(), back, atol=1e-12)


def test_users_are_found_again() -> None:
    rng, n = np.random.default_rng(3), 100_000
    x = rng.integers(0, 16, n)
    records = np.stack([x, 15 - x], axis=1)  # which two single distributions do not tell
    protocol = SquareWave2D([16, 16], 4.0)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    assert estimate.answer({0: Between(0, 7), 1: Between(8, 15)}).value == pytest.approx(
        0.5, abs=0.05
    )
    assert estimate.answer({0: Between(0, 7), 1: Between(0, 7)}).value == pytest.approx(0, abs=0.05)


def test_wrong_inputs() -> None:
    protocol = SquareWave2D([4, 3], 1.0)
    with pytest.raises(InvalidValue):
        protocol.privatize([[0, 3]])
    with pytest.raises(ValueError, match="two attributes"):
        SquareWave2D([4, 3, 2], 1.0)
    reports = protocol.privatize([[0, 0]], np.random.default_rng(1))
    for name in ("x", "y"):
        bad = reports.copy()
        bad[name] = 250
        with pytest.raises(InvalidReport):
            protocol.aggregate(bad)
