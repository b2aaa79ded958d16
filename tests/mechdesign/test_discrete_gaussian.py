"""Discrete Gaussian noise: its law, word by word, and its variance."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import scipy
from flint import arb, ctx, fmpq

from mechdesign import InexactNumber
from mechdesign.noise.discrete import LEAST_SIGMA2, DiscreteGaussian

SIGMA2 = [LEAST_SIGMA2, Fraction(1, 100), "1/3", 1, "7/2", 30, Fraction(10**6, 7), 1 << 40, 1 << 62]


def ball(x):
    return arb(fmpq(x.numerator, x.denominator))


def exponent(noise, y):
    """ln of what y is accepted with, from the definition, up to a constant in y."""
    alpha = noise._proposal.alpha
    return -y * y / (2 * ball(noise.sigma2)) - abs(y) * ball(alpha).log()


@pytest.mark.parametrize("sigma2", SIGMA2)
def test_proposals_times_acceptances_are_the_law(sigma2):
    """alpha^|y| exp(-g(y)) = C exp(-y^2 / (2 sigma2)), and no exp(-g) is above 1."""
    noise = DiscreteGaussian(sigma2)
    scale = math.isqrt(math.ceil(noise.sigma2))
    with ctx.workprec(400):
        centre = noise._centre()
        constants = []
        for y in {0, 1, -1, 2, 5, scale, -scale, 3 * scale, 40 * scale}:
            g = (abs(y) - centre) ** 2 / (2 * ball(noise.sigma2))
            assert -g <= 0
            constants.append(exponent(noise, y) + g)
        for other in constants[1:]:
            assert abs(other - constants[0]) < arb(2) ** -200


def _forced(first, source, size):
    """Words that were chosen, and then others."""
    given = next(first, None)
    return source(size) if given is None else given


@pytest.mark.parametrize("sigma2", SIGMA2)
def test_words_next_to_a_threshold_are_decided_exactly(sigma2):
    """A word is below exp(-g) 2^64 or not: the fast comparison says what the exact one says."""
    noise = DiscreteGaussian(sigma2)
    scale = math.isqrt(math.ceil(noise.sigma2))
    rng, extended = np.random.default_rng(1), []

    def source(size):
        extended.append(size)
        return np.full(size, 1 << 63, dtype=np.uint64)

    for y in sorted({0, 1, 2, 3, scale, 2 * scale, 5 * scale, 9 * scale, 10 * scale, 60 * scale}):
        with ctx.workprec(400):
            g = (abs(y) - noise._centre()) ** 2 / (2 * ball(noise.sigma2))
            exactly = (-g).exp() * arb(2) ** 64
            whole = int(exactly.floor().unique_fmpz())
            half = bool(exactly - whole > arb(1) / 2)  # what the words 2^63 that follow are below
        near = {0, 1, 2, whole - 1, whole, whole + 1, whole - 2**20, whole + 2**20, 2**64 - 1}
        words = [w for w in near if 0 <= w < 2**64] + rng.integers(0, 1 << 63, 50).tolist()

        first = iter([np.array(words, dtype=np.uint64)])
        taken = noise._accepted(np.full(len(words), y), partial(_forced, first, source))
        for word, found in zip(words, taken.tolist(), strict=True):
            expected = word < whole or (word == whole and half)
            assert found == expected, (y, word)
    assert extended  # some words were extended


def _one(rest, size):
    return [next(rest)]


def test_a_word_that_decides_nothing_is_extended_as_long_as_needed():
    noise = DiscreteGaussian("7/2")
    with ctx.workprec(600):
        g = (3 - noise._centre()) ** 2 / (2 * ball(noise.sigma2))
        digits = int(((-g).exp() * arb(2) ** 320).floor().unique_fmpz())
    words = [(digits >> (256 - 64 * k)) & (2**64 - 1) for k in range(5)]
    for last, expected in ((words[4] - 1, True), (words[4] + 1, False)):
        rest = iter([*words[1:4], last])
        assert noise._below(3, words[0], partial(_one, rest)) is expected
        assert next(rest, None) is None


@pytest.mark.parametrize("sigma2", ["1/10", "1/3", 1, "7/2", 30])
def test_frequencies_are_those_of_the_law(sigma2):
    """A chi-squared test at 1e-6 of 10^5 draws, which finds another sigma2."""
    noise = DiscreteGaussian(sigma2)
    draws = noise.draw(100_000, np.random.default_rng(7).bit_generator.random_raw)

    def statistic(assumed):
        reach = max(2, math.ceil(3.5 * math.sqrt(assumed)))
        x = np.arange(-12 * reach, 12 * reach + 1)
        law = np.exp(-x * x / (2 * assumed))
        law /= law.sum()
        inside = np.abs(x) < reach
        expected = np.append(law[inside], law[~inside].sum()) * len(draws)
        found = [int((draws == value).sum()) for value in x[inside]]
        found.append(len(draws) - sum(found))
        used = expected > 5
        away = ((np.array(found) - expected)[used] ** 2 / expected[used]).sum()
        return scipy.stats.chi2.sf(away, used.sum() - 1)

    assert statistic(float(Fraction(sigma2))) > 1e-6
    assert statistic(1.2 * float(Fraction(sigma2))) < 1e-6


@pytest.mark.parametrize("sigma2", [10**6, 1 << 40, 1 << 62])
def test_large_noise_is_normal(sigma2):
    """Kolmogorov and Smirnov's test at 1e-6, which finds a mean of a fiftieth of sigma."""
    draws = DiscreteGaussian(sigma2).draw(
        200_000, np.random.default_rng(8).bit_generator.random_raw
    )
    scaled = draws / math.sqrt(sigma2)
    assert scipy.stats.kstest(scaled, "norm").pvalue > 1e-6
    assert scipy.stats.kstest(scaled + 0.02, "norm").pvalue < 1e-6


@pytest.mark.parametrize("sigma2", ["1/100", "1/3", 1, "7/2", 30, 64, 65, 10**9, (1 << 64) - 1])
def test_the_variance_is_rounded_up(sigma2):
    noise = DiscreteGaussian(sigma2)
    value = float(noise.sigma2)
    if noise.sigma2 <= 100:
        with ctx.workprec(200):
            weights = {
                x: (-ball(Fraction(x * x)) / (2 * ball(noise.sigma2))).exp() for x in range(400)
            }
            mass = 1 + 2 * sum(list(weights.values())[1:], arb(0))
            exactly = 2 * sum((x * x * w for x, w in weights.items()), arb(0)) / mass
        assert arb(noise.variance) >= exactly.lower()
        assert noise.variance == pytest.approx(float(exactly), rel=1e-14, abs=1e-18)
    else:
        assert noise.variance == pytest.approx(value, rel=1e-15)
        assert Fraction(noise.variance) >= noise.sigma2


def test_little_noise_is_none():
    """Pr[X = 0] = 1 - 2 e^-50."""
    raw = np.random.default_rng(1).bit_generator.random_raw
    assert not DiscreteGaussian("1/100").draw(10_000, raw).any()


def test_none_are_drawn_and_a_seed_gives_the_same():
    noise = DiscreteGaussian(5)
    raw = np.random.default_rng(1).bit_generator.random_raw
    assert noise.draw(0, raw).shape == (0,)
    first, again = (
        noise.draw(70_000, np.random.default_rng(3).bit_generator.random_raw) for _ in range(2)
    )
    assert np.array_equal(first, again)


@pytest.mark.parametrize("sigma2", [0, -1, Fraction(1, 1 << 17), (1 << 64) + 1, "inf", "nan"])
def test_numbers_out_of_range_are_refused(sigma2):
    with pytest.raises(ValueError, match="sigma"):
        DiscreteGaussian(sigma2)


def test_floats_are_refused():
    with pytest.raises(InexactNumber):
        DiscreteGaussian(1.0)
