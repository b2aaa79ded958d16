"""Promises: what noise they take, and what is no promise."""

import math
from fractions import Fraction

import pytest

from mechdesign import ZCDP, ApproximateDP


def test_zcdp_takes_noise_of_one_over_twice_rho():
    assert ZCDP("1/8").noise_ratio == 4
    assert ZCDP(0.5) == ZCDP("1/2") == ZCDP(Fraction(1, 2))
    assert repr(ZCDP("1/8")) == "ZCDP(0.125)"


def normal_delta(ratio, epsilon):
    """delta of Gaussian noise of this sigma^2 over squared sensitivity (Balle and Wang 2018)."""
    mu = 1 / math.sqrt(ratio)

    def below(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("epsilon", ["0.01", "0.25", 1, 4, 20])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12"])
def test_noise_keeps_epsilon_and_delta_and_little_more(epsilon, delta):
    ratio = ApproximateDP(epsilon, delta).noise_ratio
    told = normal_delta(float(ratio), float(Fraction(epsilon)))
    assert told <= float(delta)
    assert normal_delta(float(ratio) / 1.8, float(Fraction(epsilon))) > float(delta)


@pytest.mark.parametrize("value", [0, -1, "nan", "inf", math.inf, 1025, 2.0**-41, "x"])
def test_what_is_no_promise_is_refused(value):
    with pytest.raises(ValueError, match="rho"):
        ZCDP(value)
    with pytest.raises(ValueError, match="epsilon"):
        ApproximateDP(value, "1e-6")


@pytest.mark.parametrize("delta", [0, 1, -1, 2, math.nan, "1e-40000"])
def test_deltas_are_between_0_and_1(delta):
    with pytest.raises(ValueError, match="delta"):
        ApproximateDP(1, delta)
