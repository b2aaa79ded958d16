"""Discrete Laplace noise: every word decides as the definition in integers says, and the
distribution is the one that is claimed.

False alarms: every statistical test here compares a p-value with 1e-6, is seeded, and is shown to
reject a planted error.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mechdesign import InexactNumber, Privacy
from mechdesign.base.numbers import bit_source
from mechdesign.noise.discrete import DiscreteLaplace, _power
from tests.goodness_of_fit import FALSE_ALARM
from tests.tape import WORD, played

SETTINGS = settings(derandomize=True, deadline=None, max_examples=200)

ALPHAS = [
    Fraction(1, 2),
    Fraction(1, 3),
    Fraction(3, 4),
    Fraction(99, 100),
    Fraction(999, 1000),
    Fraction(1, 10**30),
    Privacy.from_epsilon(1.0).alpha,
    Privacy.from_epsilon(1e-3).alpha,
    Privacy.from_epsilon(2.0**-32).alpha,
]


def p_value(draws, probabilities):
    """Chi-square of draws on 0 .. k-2 and the rest; cells of fewer than 10 expected are pooled from
    the right.
    """
    probabilities = np.asarray(probabilities)
    expected = probabilities * len(draws)
    last = int(np.flatnonzero(expected >= 10)[-1])
    observed = np.bincount(np.minimum(draws, last), minlength=last + 1)
    expected = np.append(expected[:last], len(draws) - expected[:last].sum())
    return stats.chisquare(observed, expected).pvalue


# ----------------------------------------------------------------------------------------- powers


@SETTINGS
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1).filter(lambda a: a < 1),
    st.integers(1, 300),
    st.integers(1, 200),
)
def test_powers_are_enclosed(alpha, exponent, bits):
    low, high = _power(alpha, exponent, bits)
    assert low <= alpha**exponent * 2**bits <= high
    assert high - low <= 2


@pytest.mark.slow
@SETTINGS
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=1).filter(lambda a: a < 1),
    st.integers(1, 300),
    st.integers(1, 3),
)
def test_leading_words_of_powers(alpha, exponent, words):
    if alpha > 1 - Fraction(1, 1 << 46):
        return
    assert DiscreteLaplace(alpha=alpha)._leading(exponent, words) == math.floor(
        alpha**exponent * 2 ** (64 * words)
    )


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(3, 4), Fraction(5, 8)])
def test_leading_words_of_powers_that_end(alpha):
    """Dyadic powers are integers after enough words: directed rounding must become exact, and must
    not loop.
    """
    noise = DiscreteLaplace(alpha=alpha)
    for exponent in (1, 2, 3, 20, 21, 22, 63, 64, 65, 128):
        for words in (1, 2, 3):
            assert noise._leading(exponent, words) == math.floor(
                alpha**exponent * 2 ** (64 * words)
            )


# ------------------------------------------------------------------------------------------ words


def definition(alpha, stride, length, numbers):
    """T from words: the number of k <= length with U < alpha^(stride k), and, while that is the
    length, another U on top.
    """
    total = 0
    for word in numbers:
        found = sum(Fraction(word, WORD) < alpha ** (stride * k) for k in range(1, length + 1))
        total += found
        if found < length:
            break
    return total


@pytest.mark.parametrize(
    "alpha",
    [
        Fraction(1, 2),
        Fraction(1, 3),
        Fraction(3, 4),
        Fraction(49, 50),
        Privacy.from_epsilon(1.0).alpha,
    ],
)
def test_draw_at_every_threshold(alpha):
    """The neighbours of the first words of all powers: they never tie."""
    noise = DiscreteLaplace(alpha=alpha)
    assert noise._stride == 1
    power = Fraction(WORD)
    for k in range(1, noise._length):
        power *= alpha
        for word, expected in ((math.floor(power) - 1, k), (math.floor(power) + 1, k - 1)):
            assert played(lambda tape: noise.geometric(1, tape), [word]).tolist() == [expected]
            assert k > 40 or definition(alpha, 1, noise._length, [word]) == expected


@pytest.mark.parametrize("alpha", [Fraction(1, 3), Fraction(3, 4), Fraction(49, 50)])
def test_a_word_that_ties_is_decided_by_the_next(alpha):
    noise = DiscreteLaplace(alpha=alpha)
    for k in (1, 2, 5):
        first = math.floor(alpha**k * WORD)
        second = math.floor(alpha**k * WORD**2) - first * WORD
        # The power ends with its first word: U is at least the power whatever comes after it, but 0
        if second == 0:
            assert played(lambda tape: noise.geometric(1, tape), [first, 1])[0] == k - 1
            continue
        assert played(lambda tape: noise.geometric(1, tape), [first, second - 1])[0] == k
        assert played(lambda tape: noise.geometric(1, tape), [first, second + 1])[0] == k - 1
        third = math.floor(alpha**k * WORD**3) - (first * WORD + second) * WORD
        if third:
            assert played(lambda tape: noise.geometric(1, tape), [first, second, third - 1])[0] == k
            assert (
                played(lambda tape: noise.geometric(1, tape), [first, second, third + 1])[0]
                == k - 1
            )


def test_beyond_the_table_it_starts_afresh():
    noise = DiscreteLaplace(alpha=Fraction(1, 2))
    none, one = WORD - 1, WORD // 2 - 1
    # The word 0 ties with nothing: every power of the table is at least 2^-64.
    assert played(lambda tape: noise.geometric(1, tape), [0, none]).tolist() == [noise._length]
    assert played(lambda tape: noise.geometric(1, tape), [0, 0, one]).tolist() == [
        2 * noise._length + 1
    ]
    # Only the draws that are beyond are continued, each with its own words.
    found = played(lambda tape: noise.geometric(4, tape), [0, none, 0, one, none, 0, one])
    assert found.tolist() == [noise._length, 0, 2 * noise._length + 1, 1]


@pytest.mark.parametrize("alpha", [Fraction(999, 1000), Privacy.from_epsilon(1e-3).alpha])
def test_remainders_at_every_threshold(alpha):
    """U is the leading bits of a word, and is kept if the next word is below alpha^U, digit by
    digit; else all begins again.
    """
    noise = DiscreteLaplace(alpha=alpha)
    bits = noise._shift
    assert 1 <= bits <= 6
    for u in range(1 << bits):
        first = u << (64 - bits)
        if u == 0:
            assert played(lambda tape: noise._remainders(1, tape), [first, WORD - 1]).tolist() == [
                0
            ]
            continue
        power = math.floor(alpha**u * WORD)
        assert played(lambda tape: noise._remainders(1, tape), [first, power - 1]).tolist() == [u]
        assert played(
            lambda tape: noise._remainders(1, tape), [first, power + 1, 0, 0]
        ).tolist() == [0]
        second = math.floor(alpha**u * WORD**2) - power * WORD
        assert played(
            lambda tape: noise._remainders(1, tape), [first, power, second - 1]
        ).tolist() == [u]
        assert played(
            lambda tape: noise._remainders(1, tape), [first, power, second + 1, 0, 0]
        ).tolist() == [0]


def test_remainders_of_several_digits():
    """The factors of alpha^U multiply: one word for every digit that is asked, in order from the
    lowest.
    """
    alpha = Privacy.from_epsilon(1e-4).alpha
    noise = DiscreteLaplace(alpha=alpha)
    bits = noise._shift
    assert 7 <= bits <= 12
    low, high = 5, 1
    first = ((high << 6) | low) << (64 - bits)
    powers = [math.floor(alpha**low * WORD), math.floor(alpha ** (high << 6) * WORD)]
    assert played(
        lambda tape: noise._remainders(1, tape), [first, powers[0] - 1, powers[1] - 1]
    ).tolist() == [64 + 5]
    assert played(
        lambda tape: noise._remainders(1, tape), [first, powers[0] + 1, 0, 0, 0]
    ).tolist() == [0]
    assert played(
        lambda tape: noise._remainders(1, tape), [first, powers[0] - 1, powers[1] + 1, 0, 0, 0]
    ).tolist() == [0]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_tables(alpha):
    """What is looked up is the floor of the powers; the floats that choose its length keep it
    short.
    """
    noise = DiscreteLaplace(alpha=alpha)
    assert noise._length <= 4096
    assert noise._stride == 1 << noise._shift
    assert len(noise._powers) == noise._length
    for k in {1, 2, noise._length // 2, noise._length} & set(range(1, noise._length + 1)):
        if noise._stride * k < 10**5:
            assert noise._powers[noise._length - k] == math.floor(
                alpha ** (noise._stride * k) * WORD
            )
    assert (np.diff(noise._powers.astype(object)) >= 0).all()
    if noise._shift:
        assert float(alpha) ** noise._stride > 0.96
        assert sum(len(table).bit_length() - 1 for table in noise._digits) == noise._shift
        for i, table in enumerate(noise._digits):
            assert table[1] == noise._leading(1 << (6 * i), 1)
            assert table[-1] == noise._leading((len(table) - 1) << (6 * i), 1)


# ---------------------------------------------------------------------------------- distributions

SEEDED = 200_000


@pytest.mark.parametrize(
    "alpha", [Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Privacy.from_epsilon(1.0).alpha]
)
def test_distribution_of_geometric(alpha):
    draws = DiscreteLaplace(alpha=alpha).geometric(SEEDED, bit_source(np.random.default_rng(5)))
    assert draws.min() == 0
    assert p_value(draws, [float((1 - alpha) * alpha**k) for k in range(200)]) > FALSE_ALARM
    wrong = alpha * Fraction(97, 100)
    assert p_value(draws, [float((1 - wrong) * wrong**k) for k in range(200)]) < FALSE_ALARM


def folded(alpha, size):
    """Pr[X = 0], Pr[X = 1], Pr[X = -1], Pr[X = 2], ..."""
    a = float(alpha)
    zero = (1 - a) / (1 + a)
    return [zero] + [zero * a ** ((k + 1) // 2) for k in range(1, size)]


def unfolded(draws):
    return np.where(draws > 0, 2 * draws - 1, -2 * draws)


@pytest.mark.parametrize(
    "alpha", [Fraction(1, 100), Fraction(1, 2), Fraction(4, 5), Fraction(49, 50)]
)
def test_distribution_of_noise(alpha):
    draws = DiscreteLaplace(alpha=alpha).draw(SEEDED, bit_source(np.random.default_rng(6)))
    assert draws.dtype == np.int64
    assert draws.shape == (SEEDED,)
    assert p_value(unfolded(draws), folded(alpha, 2000)) > FALSE_ALARM
    # A planted error: an alpha 3 % too small, and noise that is shifted.
    assert p_value(
        unfolded(draws), folded(alpha * Fraction(97, 100), 2000)
    ) < FALSE_ALARM or alpha < Fraction(1, 10)
    assert (
        p_value(unfolded(draws + (1 if alpha < Fraction(9, 10) else 3)), folded(alpha, 2000))
        < FALSE_ALARM
    )
    assert p_value(unfolded(draws), folded(alpha * Fraction(3, 4), 2000)) < FALSE_ALARM


@pytest.mark.parametrize("epsilon", [1e-2, 1e-3, 1e-5, 2.0**-30])
def test_distribution_when_alpha_is_near_one(epsilon):
    """alpha^G is uniform but for steps: equal bins of the distribution function, and the parity and
    the low bits by themselves.
    """
    alpha = Privacy.from_epsilon(epsilon).alpha
    noise = DiscreteLaplace(alpha=alpha)
    assert noise._shift > 0
    draws = noise.geometric(SEEDED, bit_source(np.random.default_rng(7)))
    rate = -math.log1p(-float(1 - alpha))
    for rates, expect in ((rate, True), (rate * 1.03, False)):
        edges = np.unique(np.ceil(-np.log(np.linspace(1, 0, 41)[1:-1]) / rates).astype(np.int64))
        tail = np.concatenate([[1.0], np.exp(-rates * edges), [0.0]])
        observed = np.histogram(draws, bins=np.concatenate([[0], edges, [1 << 62]]))[0]
        assert (stats.chisquare(observed, -np.diff(tail) * SEEDED).pvalue > FALSE_ALARM) == expect
    low = np.bincount(draws & 7, minlength=8)
    expected = float(1 - alpha) * np.exp(-rate * np.arange(8)) / -math.expm1(-8 * rate)
    assert stats.chisquare(low, expected / expected.sum() * SEEDED).pvalue > FALSE_ALARM
    assert (
        stats.chisquare(
            low + np.array([900, -900, 0, 0, 0, 0, 0, 0]), expected / expected.sum() * SEEDED
        ).pvalue
        < FALSE_ALARM
    )


def test_chunks_are_all_filled():
    noise = DiscreteLaplace(alpha=Fraction(999, 1000))
    draws = noise.draw((1 << 17) + 5, bit_source(np.random.default_rng(8)))
    for part in (draws[: 1 << 16], draws[1 << 16 : 1 << 17], draws[-1000:]):
        assert 0.8 < part.var() / float(noise.variance) < 1.2
    assert len(DiscreteLaplace(alpha=Fraction(1, 2)).draw(0, bit_source(None))) == 0
    assert DiscreteLaplace(alpha=Fraction(1, 2)).draw(1000, bit_source(None)).any()


def test_fourth_moment():
    x = np.arange(-2000, 2001).astype(float)
    for alpha in (Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)):
        likely = float(alpha) ** np.abs(x)
        exactly = float(DiscreteLaplace(alpha=alpha).fourth_moment)
        assert math.isclose(exactly, likely @ x**4 / likely.sum(), rel_tol=1e-9)
    assert DiscreteLaplace(alpha=Fraction(1, 2)).fourth_moment == 100


def test_variance():
    """2 alpha / (1 - alpha)^2, from the sum; it is below the 2 / epsilon^2 of continuous noise, by
    about 1/6.
    """
    for alpha in (Fraction(1, 2), Fraction(1, 3), Fraction(9, 10)):
        a = float(alpha)
        total = sum(2 * x * x * (1 - a) / (1 + a) * a**x for x in range(1, 2000))
        assert math.isclose(float(DiscreteLaplace(alpha=alpha).variance), total, rel_tol=1e-9)
    assert DiscreteLaplace(alpha=Fraction(1, 2)).variance == 4
    for epsilon in (0.01, 0.1):
        found = float(DiscreteLaplace(alpha=Privacy.from_epsilon(epsilon).alpha).variance)
        assert math.isclose(2 / epsilon**2 - found, 1 / 6, abs_tol=0.01)


@pytest.mark.parametrize("alpha", [0, 1, -1, Fraction(3, 2), 1 - Fraction(1, 1 << 47), "2"])
def test_refused_alphas(alpha):
    with pytest.raises(ValueError, match="alpha must lie above 0"):
        DiscreteLaplace(alpha=alpha)


def test_floats_are_refused():
    with pytest.raises(InexactNumber):
        DiscreteLaplace(alpha=0.5)


# --- every number is drawn ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "expected"), [(0, 0, 0), (1, 0, 1), (0, 2, -2), (3, 1, 2)]
)
def test_a_single_number_is_the_difference_of_two_words(first, second, expected):
    """``draw(1)`` too has noise: a word for each of the two geometric variables."""
    noise = DiscreteLaplace(alpha=Fraction(1, 2))

    def word(k):  # U just below alpha^k: at least k, and less than k + 1
        return (WORD >> k) - 1

    found = played(lambda tape: noise.draw(1, tape), [word(first), word(second)])
    assert found.tolist() == [expected]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 9])
def test_all_numbers_of_all_chunks_are_drawn(size, monkeypatch):
    """The first and the last of each chunk included: on a tape every number is another one."""
    monkeypatch.setattr("mechdesign.noise.discrete._CHUNK", 3)
    noise, words, expected = DiscreteLaplace(alpha=Fraction(1, 2)), [], []
    for start in range(0, size, 3):
        numbers = range(start, min(start + 3, size))
        words += [(WORD >> (k + 2)) - 1 for k in numbers] + [(WORD >> 1) - 1 for _ in numbers]
        expected += [k + 1 for k in numbers]
    monkeypatch.setattr("numpy.empty", lambda shape, dtype=float: np.full(shape, -777, dtype))
    assert played(lambda tape: noise.draw(size, tape), words).tolist() == expected


def test_no_number_is_drawn_of_none():
    assert DiscreteLaplace(alpha=Fraction(1, 2)).draw(0, bit_source(None)).shape == (0,)
