"""Answers that are compared: differences and ratios with intervals."""

import numpy as np
import pytest

from frequency import GRR, Answer, UnknownVariance, difference, ratio
from tests.goodness_of_fit import FALSE_ALARM, at_most


@pytest.mark.parametrize("combined", [difference, ratio])
@pytest.mark.parametrize(("a", "b"), [(50.0, 40.0), (50.0, 12.0), (3.0, 100.0), (30.0, 30.0)])
def test_intervals_hold(combined, a, b):
    rng, trials = np.random.default_rng(3), 20_000
    first = Answer(a + 5 * rng.normal(size=trials), np.full(trials, 25.0))
    second = Answer(b + 4 * rng.normal(size=trials), np.full(trials, 16.0))
    told = combined(first, second)
    truth = a - b if combined is difference else a / b
    low, high = told.interval()
    missed = int(((low > truth) | (high < truth)).sum())
    # That of a ratio is approximate where the numerator is hardly told from 0
    assert at_most(missed, trials, 0.05 if combined is difference else 0.055) > FALSE_ALARM
    if combined is difference:
        assert told.value == pytest.approx(first.value - second.value)
        assert told.variance == pytest.approx(np.full(trials, 41.0))


def test_shares_of_one_population_are_not_independent():
    rng, trials = np.random.default_rng(4), 4000
    oracle = GRR(2, 1.0)
    differences, covered = [], 0
    for _ in range(trials):
        estimate = oracle.estimate(oracle.simulate([200, 200], rng))
        told = difference(estimate.answer(0), estimate.answer(1), estimate.answer([0, 1]))
        alone = difference(estimate.answer(0), estimate.answer(1))
        low, high = told.interval()
        covered += bool(low <= 0 <= high)
        differences.append((told.value, told.variance, alone.variance))
    values, variances, without = np.array(differences).T
    assert variances.mean() == pytest.approx(values.var(), rel=0.1)
    assert without.mean() == pytest.approx(variances.mean() / 2, rel=0.1)
    assert at_most(trials - covered, trials, 0.055) > FALSE_ALARM


def test_what_is_not_known_is_not_told():
    known, unknown = Answer(3.0, 1.0), Answer(2.0, None, "nobody knows")
    for combined in (difference, ratio):
        told = combined(known, unknown)
        with pytest.raises(UnknownVariance, match="nobody knows"):
            told.variance  # noqa: B018
        with pytest.raises(UnknownVariance):
            told.interval()


def test_a_ratio_over_what_may_be_nobody_has_no_end():
    low, high = ratio(Answer(30.0, 9.0), Answer(3.0, 4.0)).interval()
    assert low > 2
    assert high == np.inf
    assert np.isnan(ratio(Answer(30.0, 9.0), Answer(-3.0, 4.0)).value)
    assert ratio(Answer(0.0, 9.0), Answer(30.0, 4.0)).interval().low == 0
