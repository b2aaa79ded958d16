"""Estimates about more users than reported: every variance grows by what drawing those adds."""

from typing import Any

import numpy as np
import pytest

from frequency import HRR, UnknownVariance
from frequency.marginals import CALM, Domain, InpEM, InpHT, MargPS, consistent
from rangeq import Between, CircularHistogram, DecomposedHistogram, HaarHRR, SquareWave, shaped
from rangeq.grids import HDG, MSW, TDG, WaveGrid

USERS, ALL = 400, 1000
RECORDS = Domain({"a": 4, "b": 4})
ONE = [HRR(16, 1.0), HaarHRR(16, 1.0), DecomposedHistogram(16, 1.0), CircularHistogram(16, 1.0)]
SEVERAL: list[Any] = [
    InpHT(RECORDS, 2, 1.0),
    MargPS(RECORDS, 2, 1.0),
    InpEM(RECORDS, 2, 1.0),
    CALM(RECORDS, 2, 1.0),
    TDG(RECORDS, 1.0, granularity=4),
    HDG(RECORDS, 1.0, granularity=4, line_granularity=4),
    WaveGrid(RECORDS, 1.0),
]


def estimated(protocol, users=USERS):
    channel = getattr(protocol, "channel", protocol)
    values = channel._every_item()[np.arange(users) % min(5, channel.domain)]
    return protocol.estimate(channel.aggregate(channel.privatize(values, np.random.default_rng(1))))


def check(estimate, questions, within=1e-9):
    """The same answers, about more users, and with them the larger variances.

    Within some tolerance where negative cells are cut before drawing is reckoned with.
    """
    more = estimate.of_population(ALL)
    assert (more.n, more.reports, estimate.n) == (ALL, USERS, USERS)
    for where in questions:
        one, other = estimate.answer(where), more.answer(where)
        assert np.array_equal(one.value, other.value)
        v = np.clip(one.value, 0, 1)
        added = v * (1 - v) * (1 / USERS - 1 / ALL)
        np.testing.assert_allclose(other.variance, one.variance + added, rtol=within, atol=1e-15)
    same = estimate.of_population(USERS)
    assert [told(same, where) for where in questions] == [told(estimate, w) for w in questions]


def told(estimate, where):
    return [np.ravel(part).tolist() for part in estimate.answer(where)]


@pytest.mark.parametrize("protocol", ONE, ids=lambda one: type(one).__name__)
def test_one_attribute(protocol):
    estimate = estimated(protocol)
    first = estimate.variances.copy()  # kept, and not to be kept by the other
    check(estimate, [0, 3, np.arange(16)])
    more = estimate.of_population(ALL)
    f = np.clip(estimate.frequencies, 0, 1)
    np.testing.assert_allclose(more.variances, first + f * (1 - f) * 0.0015)
    weights = np.array([[1.0, 0, 2, -1, *[0] * 12], [1.0, *[0] * 15]])
    shares = f / max(f.sum(), 1)
    among = weights**2 @ shares - (weights @ shares) ** 2
    own = estimate.linear(weights).variance
    np.testing.assert_allclose(more.linear(weights).variance, own + among * 0.0015)
    if hasattr(estimate, "range"):
        check(estimate, [Between(0, 5), Between(3, 12), Between(0, 15)])


@pytest.mark.parametrize("protocol", SEVERAL, ids=lambda one: type(one).__name__)
def test_several_attributes(protocol):
    check(estimated(protocol), [{"a": 0, "b": 0}, {"a": 1, "b": np.arange(4)}], 0.01)


def test_smoothed_estimates():
    check(estimated(shaped(16, 1.0, USERS)), [Between(0, 15), Between(0, 3), Between(4, 4)])
    check(estimated(shaped(3, 1.0, USERS)), [Between(0, 1), Between(1, 1)])


def test_what_has_no_variances_has_none():
    for protocol, where in ((SquareWave(16, 1.0), 0), (MSW(RECORDS, 1.0), {"a": Between(0, 1)})):
        more = estimated(protocol).of_population(ALL)
        assert (more.n, more.reports) == (ALL, USERS)
        with pytest.raises(UnknownVariance):
            _ = more.answer(where).variance


def test_a_fit_to_the_same_reports_is_about_the_same_users():
    estimate = estimated(MargPS(RECORDS, 1, 1.0))
    assert consistent(estimate.of_population(ALL)).n == ALL
    check(consistent(estimate), [{"a": 0}], 0.01)


def test_no_reports():
    nobody = estimated(HRR(16, 1.0), 0).of_population(10)
    assert nobody.n == 10
    assert np.isnan(nobody.frequencies).all()
    assert np.isposinf(nobody.variances).all()
    assert np.isposinf(nobody.linear(np.ones(16)).variance)


@pytest.mark.parametrize("n", [USERS - 1, 0, -1, 1e3, None, "1000"])
def test_fewer_users_than_reports_are_refused(n):
    with pytest.raises(ValueError, match="n must be"):
        estimated(HRR(16, 1.0)).of_population(n)
