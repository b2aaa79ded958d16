"""Draws are exact: every word decides as the definition in integers says, and no probability is off
by a unit.
"""

import math
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from frequency import GRR, HRR, OLH, SUE, CountMeanSketch
from frequency.algebra.exact_draws import TruthOrLie, bernoulli, bernoulli_bits, root, uniform
from mechdesign import InexactNumber
from mechdesign.base.numbers import bit_source
from tests.goodness_of_fit import FALSE_ALARM
from tests.tape import WORD, Tape, played

SETTINGS = settings(derandomize=True, deadline=None, max_examples=300)


def ratios_at_least(least):
    return st.one_of(
        st.fractions(min_value=least, max_value=1 << 20),
        st.floats(0, 700).map(lambda epsilon: max(least, Fraction(math.exp(epsilon)))),
        st.integers(0, 62).map(lambda bits: 1 + Fraction(1, 1 << bits)),
        st.tuples(st.integers(1, 10**40), st.integers(1, 10**40)).map(
            lambda pair: max(least, Fraction(*pair))
        ),
    )


# ----------------------------------------------------------------------------- the truth or a lie


@pytest.mark.slow
@SETTINGS
@given(
    ratios_at_least(Fraction(1)),
    st.one_of(
        st.integers(1, 40), st.integers(1, 1 << 31), st.integers(0, 31).map(lambda b: 1 << b)
    ),
)
def test_weights_keep_the_ratio_and_no_smaller_lie_does(ratio, k):
    choice = TruthOrLie.within(ratio, k)
    truth, lie = choice.truth, choice.lie
    assert truth + (k - 1) * lie == WORD
    assert lie >= 1
    assert truth >= 1
    assert (choice.p, choice.q, choice.k) == (Fraction(truth, WORD), Fraction(lie, WORD), k)
    if k == 1:
        assert choice.ratio == 1
        assert truth == WORD
        return
    assert choice.ratio == Fraction(truth, lie)
    assert choice.ratio <= ratio
    # One unit less a lie would be beyond the ratio, or no lie at all.
    assert lie == 1 or Fraction(WORD - (k - 1) * (lie - 1), lie - 1) > ratio


@pytest.mark.parametrize(
    ("ratio", "k"),
    [(Fraction(3), 2), (Fraction(5), 4), (Fraction(1), 2), (Fraction(1), 8), (Fraction(2), 7)],
)
def test_weights_without_rounding(ratio, k):
    found = TruthOrLie.within(ratio, k).ratio
    assert found == ratio or (
        WORD % (ratio + k - 1) and abs(found / ratio - 1) <= Fraction(10 * k, WORD)
    )


def test_weights_by_hand():
    for ratio, k, truth, lie in (
        (Fraction(3), 2, 3 << 62, 1 << 62),
        (Fraction(5), 4, 5 << 61, 1 << 61),
        (Fraction(2), 2, WORD - 6148914691236517206, 6148914691236517206),  # 2^64 / 3, up
        (Fraction(10) ** 300, 3, WORD - 2, 1),
    ):
        found = TruthOrLie.within(ratio, k)
        assert (found, found.truth) == (TruthOrLie(k, lie), truth)


@pytest.mark.parametrize("domain", [1 << 32, 3 << 30, 1 << 31])
def test_too_near_to_one(domain):
    """Where whole weights would make the truth no likelier than a lie, there is no oracle."""
    with pytest.raises(ValueError, match="too small for"):
        GRR(domain, 3e-10)
    assert GRR(domain >> 16, 3e-10).audit().holds


def test_hadamard_response_too_near_to_one():
    with pytest.raises(ValueError, match="too small"):
        HRR(1 << 17, 2.4e-10, coefficients=17)


@pytest.mark.parametrize("epsilon", [1e-11, 2.0**-33, 0, 0.0])
def test_no_epsilon_at_all(epsilon):
    for kind in (GRR, SUE, OLH, HRR, CountMeanSketch):
        with pytest.raises(ValueError, match="epsilon must be at least"):
            kind(4, epsilon)


@pytest.mark.parametrize("epsilon", [[1], (1, [2]), Decimal("sNaN")])
def test_what_has_no_hash_is_no_epsilon(epsilon):
    """Epsilons are parsed once: those parsed are kept in a dictionary."""
    with pytest.raises((InexactNumber, ValueError), match="epsilon must be"):
        GRR(4, epsilon)


def definition(choice, word):
    """The first k - 1 intervals of ``lie`` words are the lies, in order; the rest is the truth."""
    return next(
        (i + 1 for i in range(choice.k - 1) if i * choice.lie <= word < (i + 1) * choice.lie), 0
    )


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 17, 100])
@pytest.mark.parametrize(
    "ratio",
    [
        Fraction(1),
        1 + Fraction(1, 1 << 32),
        Fraction(3),
        Fraction(math.e),
        Fraction(10) ** 9,
        Fraction(10) ** 30,
    ],
)
def test_draw_at_every_threshold(ratio, k):
    choice = TruthOrLie.within(ratio, k)
    edges = {i * choice.lie + step for i in range(k + 1) for step in (-2, -1, 0, 1)} | {
        0,
        1,
        WORD - 1,
        WORD // 2,
    }
    words = sorted(word for word in edges if 0 <= word < WORD)
    found = played(lambda tape: choice.draw(len(words), tape), words)
    assert found.dtype == np.int64
    assert found.tolist() == [definition(choice, word) for word in words]
    alone = [played(lambda tape: choice.draw(1, tape), [word]) for word in words]
    assert {one.dtype for one in alone} == {np.dtype(np.int64)}
    assert np.concatenate(alone).tolist() == found.tolist()


@pytest.mark.slow
@SETTINGS
@given(
    ratios_at_least(Fraction(1)),
    st.integers(1, 1 << 31),
    st.lists(st.integers(0, WORD - 1), max_size=20),
    st.integers(0, 1 << 31),
)
def test_draw_of_any_words(ratio, k, words, which):
    choice = TruthOrLie.within(ratio, k)
    words = [
        *words,
        min(WORD - 1, (which % k) * choice.lie),
        min(WORD - 1, (which % k + 1) * choice.lie - 1),
    ]
    if k == 1:
        assert played(lambda tape: choice.draw(len(words), tape), []).tolist() == [0] * len(words)
        return
    found = played(lambda tape: choice.draw(len(words), tape), words).tolist()
    assert found == [word // choice.lie + 1 if word < (k - 1) * choice.lie else 0 for word in words]


@pytest.mark.parametrize(("k", "truth", "lie"), [(2, 40, 24), (3, 20, 22), (4, 61, 1), (64, 1, 1)])
def test_every_outcome_has_as_many_words_as_its_weight(k, truth, lie):
    """All words of six bits, in steps of 2^58."""
    choice = TruthOrLie(k, lie << 58)
    assert choice.truth == truth << 58
    words = [i << 58 for i in range(64)]
    found = np.bincount(played(lambda tape: choice.draw(64, tape), words), minlength=k)
    assert found.tolist() == [truth] + [lie] * (k - 1)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_draw_frequencies(k):
    choice = TruthOrLie.within(Fraction(3), k)
    found = np.bincount(choice.draw(100_000, bit_source(np.random.default_rng(k))), minlength=k)
    assert (
        stats.chisquare(
            found, [100_000 * float(choice.p)] + [100_000 * float(choice.q)] * (k - 1)
        ).pvalue
        > FALSE_ALARM
    )


# ------------------------------------------------------------------------------------------ roots


@SETTINGS
@given(ratios_at_least(Fraction(1)))
def test_root_is_below_and_tight(ratio):
    found = root(ratio)
    assert found**2 <= ratio
    assert (found + Fraction(1, WORD)) ** 2 > ratio
    assert found >= 1
    assert (found * (1 + Fraction(1, WORD))) ** 2 >= ratio


@pytest.mark.slow
@SETTINGS
@given(ratios_at_least(Fraction(1)), st.integers(1, 40))
def test_root_of_any_degree_is_below_and_tight(ratio, degree):
    found = root(ratio, degree)
    assert found >= 1
    assert found**degree <= ratio < (found + Fraction(1, WORD)) ** degree


def test_roots_of_squares():
    for number in (
        Fraction(1),
        Fraction(4),
        Fraction(9, 4),
        Fraction(10) ** 40,
        Fraction(3, 1 << 60) ** 2,
    ):
        assert root(number) ** 2 == number


# ---------------------------------------------------------------------------------------- uniform


@pytest.mark.parametrize("k", [2, 4, 1 << 20, 1 << 62, 1 << 63])
def test_uniform_of_powers_of_two(k):
    """The leading bits of a word: every number has WORD / k words, and none is refused."""
    step = WORD // k
    words = [
        0,
        step - 1,
        step,
        2 * step - 1,
        WORD // 2 - 1,
        WORD // 2,
        WORD - step,
        WORD - step - 1,
        WORD - 1,
    ]
    found = played(lambda tape: uniform(len(words), k, tape), words)
    assert found.dtype == np.int64
    assert found.tolist() == [word // step for word in words]


def test_uniform_of_one():
    assert played(lambda tape: uniform(5, 1, tape), []).tolist() == [0] * 5


@pytest.mark.parametrize(
    "k", [3, 5, 6, 7, 100, (1 << 32) + 1, 10**18, (1 << 62) + 1, (1 << 63) - 1]
)
def test_uniform_refuses_what_is_left_over(k):
    """Every number has exactly floor(WORD / k) words; the others are drawn again, one by one,
    wherever they stand.
    """
    step = WORD // k
    middle = k // 2
    good = [0, step - 1, step, middle * step - 1, middle * step, (k - 1) * step, k * step - 1]
    bad = [k * step, WORD - 1]
    first = [good[0], bad[0], good[1], bad[1], *good[2:]]
    # The second retry fails twice more
    words = [*first, bad[1], (k - 1) * step, bad[0], bad[0], middle * step]
    found = played(lambda tape: uniform(len(first), k, tape), words).tolist()
    expected = [word // step for word in first]
    expected[1], expected[3] = middle, k - 1
    assert found == expected
    assert max(found) == k - 1
    assert step * k + len(range(k * step, WORD)) == WORD


@SETTINGS
@given(
    st.one_of(st.integers(1, 1 << 63), st.integers(0, 63).map(lambda b: 1 << b)),
    st.lists(st.integers(0, WORD - 1), max_size=12),
)
def test_uniform_of_any_words(k, words):
    step = WORD // k
    # Whoever draws again gets a 1
    found = uniform(len(words), k, Tape([*words, *[step] * len(words)])).tolist()
    assert found == [word // step if word < k * step else 1 for word in words]


@pytest.mark.parametrize("k", [2, 3, 7, 16, 100])
def test_uniform_frequencies(k):
    found = np.bincount(uniform(100_000, k, bit_source(np.random.default_rng(k))), minlength=k)
    assert len(found) == k
    assert stats.chisquare(found).pvalue > FALSE_ALARM


def test_uniform_over_most_of_the_words():
    """k = 2^63 - 1 and 2^62 + 1 refuse about 2 words, and one in four; the results are even over
    eight ranges.
    """
    for k in ((1 << 63) - 1, (1 << 62) + 1):
        found = uniform(80_000, k, bit_source(np.random.default_rng(5)))
        assert found.min() >= 0
        assert found.max() < k
        assert (
            stats.chisquare(
                np.bincount([int(x) * 8 // k for x in found.tolist()], minlength=8)
            ).pvalue
            > FALSE_ALARM
        )


def test_nobody_draws_nothing():
    empty = Tape([])
    assert (
        len(uniform(0, 3, empty))
        == len(uniform(0, 4, empty))
        == len(bernoulli(0, 5, empty))
        == len(bernoulli_bits(0, 5, empty))
        == 0
    )
    assert len(TruthOrLie.within(Fraction(2), 3).draw(0, empty)) == 0


# -------------------------------------------------------------------------------------- Bernoulli

NUMERATORS = [
    0,
    1,
    2,
    3,
    1 << 32,
    WORD // 3,
    (1 << 63) - 1,
    1 << 63,
    (1 << 63) + 1,
    3 << 62,
    0xAAAAAAAAAAAAAAAA,
    WORD - 2,
    WORD - 1,
]


@pytest.mark.parametrize("numerator", NUMERATORS)
def test_bernoulli_at_its_threshold(numerator):
    words = sorted(
        word
        for word in {0, 1, numerator - 1, numerator, numerator + 1, WORD - 1}
        if 0 <= word < WORD
    )
    found = played(lambda tape: bernoulli(len(words), numerator, tape), words)
    assert found.dtype == np.bool_
    assert found.tolist() == [word < numerator for word in words]


def test_bernoulli_of_certain_things():
    assert bernoulli(4, WORD, Tape([])).tolist() == [True] * 4
    assert not bernoulli(3, 0, Tape([0, 1, WORD - 1])).any()


@pytest.mark.slow
@SETTINGS
@given(
    st.one_of(
        st.integers(0, WORD - 1),
        st.sampled_from(NUMERATORS),
        st.integers(0, 63).map(lambda b: 1 << b),
    ),
    st.integers(0, 1 << 32),
    st.sampled_from([0.0, 0.05, 0.5]),
)
def test_bits_compare_their_own_numbers(numerator, seed, departure):
    """A word's bit b is [U_b < numerator], U_b the column of bits b of the words drawn for it.

    The columns follow the binary digits of the numerator, with departures, so that many are decided
    late or never.
    """
    random, numbers = Random(seed), []
    for _ in range(64):
        departs = next((place for place in range(63, -1, -1) if random.random() < departure), -1)
        number = random.getrandbits(64)
        shared = WORD - (1 << (departs + 1))
        number = numerator & shared | number & ~shared & (WORD - 1)
        numbers.append(number ^ (1 << departs if departs >= 0 else 0))
    numbers[:3] = numerator, max(numerator - 1, 0), min(numerator + 1, WORD - 1)
    planes = [
        sum((number >> place & 1) << b for b, number in enumerate(numbers))
        for place in range(63, -1, -1)
    ]
    found = int(bernoulli_bits(1, numerator, Tape(planes))[0])
    assert [found >> b & 1 for b in range(64)] == [int(number < numerator) for number in numbers]


@pytest.mark.parametrize(
    "probability",
    [
        *(
            Fraction(top, bottom)
            for top, bottom in ((1, 3), (2, 3), (1, 2), (1, 7), (0, 1), (3, 8))
        ),
        Fraction((1 << 127) - 1, (1 << 128) + 51),
        Fraction((1 << 90) - 5, 1 << 90),
        Fraction(5, (1 << 80) - 3),
    ],
)
def test_bits_of_any_probability(probability):
    """A word's bit b is [U_b < probability], to as many places as it takes."""
    numerator, denominator = probability.numerator, probability.denominator
    random, places = Random(numerator), 200
    digits = [(numerator << place + 1) // denominator & 1 for place in range(places)]
    numbers = []
    for departs in (0, 1, 5, 60, 63, 64, 65, 66, 88, 89, 90, 128, 150):
        drawn = [random.getrandbits(1) for _ in range(places)]
        numbers.append([*digits[:departs], 1 - digits[departs], *drawn[departs + 1 :]])
    numbers += [[random.getrandbits(1) for _ in range(places)] for _ in range(64 - len(numbers))]
    planes = [
        sum(number[place] << b for b, number in enumerate(numbers)) for place in range(places)
    ]
    found = int(bernoulli_bits(1, numerator, Tape(planes), denominator)[0])
    expected = [
        int(int("".join(map(str, number)), 2) * denominator < numerator << places)
        for number in numbers
    ]
    assert [found >> b & 1 for b in range(64)] == expected


class Witness:
    """Random words, with a record of what each call was given."""

    def __init__(self, seed):
        self.rng, self.calls = np.random.default_rng(seed), []

    def __call__(self, size):
        self.calls.append(self.rng.integers(0, WORD, size=size, dtype=np.uint64).tolist())
        return np.array(self.calls[-1], dtype=np.uint64)


@pytest.mark.parametrize(
    "numerator", [*NUMERATORS, 0x123456789ABCDEF0, 0x8000000000000001, 1 << 58, 1 << 57]
)
@pytest.mark.parametrize("size", [1, 2, 3, 17, 200])
def test_bits_against_one_bit_at_a_time(numerator, size):
    """The same words, handed out to words that have undecided bits: each of their bits gets a digit
    of its uniform number.
    """
    witness = Witness(size)
    found = bernoulli_bits(size, numerator, witness).tolist()
    numbers = [[0] * 64 for _ in range(size)]  # the digits drawn so far
    undecided, bits = [WORD - 1] * size, [0] * size
    active = list(range(size))
    for depth, drawn in enumerate(witness.calls):
        # Only words that are not decided take part, once there are few
        if len(drawn) != len(active):
            active = [w for w in active if undecided[w]]
        assert len(drawn) == len(active)
        place = 63 - depth
        for w, word in zip(active, drawn, strict=True):
            for b in range(64):
                if undecided[w] >> b & 1:
                    numbers[w][b] = numbers[w][b] << 1 | word >> b & 1
                    prefix = numerator >> place
                    if numbers[w][b] != prefix:
                        undecided[w] ^= 1 << b
                        bits[w] |= int(numbers[w][b] < prefix) << b
    # Bits still undecided are not below: the rest of the numerator is zero, or all are decided
    assert found == bits
    rest = numerator & ((1 << (64 - len(witness.calls))) - 1)
    assert rest == 0 or not any(undecided)


def test_bits_need_few_words():
    """About eight words for each, as documented, and not 64."""
    witness = Witness(0)
    bernoulli_bits(2000, WORD // 3, witness)
    assert sum(map(len, witness.calls)) < 9 * 2000
    for numerator, calls in ((0, 1), (1 << 63, 1), (1 << 62, 2), (3 << 62, 2)):
        witness = Witness(0)
        bernoulli_bits(2000, numerator, witness)
        assert len(witness.calls) == calls


@pytest.mark.parametrize(
    "numerator", [*NUMERATORS, WORD // 10, WORD - WORD // 10, 0x0123456789ABCDEF]
)
def test_bits_frequencies_and_neighbours(numerator):
    """Frequencies in each of the 64 positions, and independence of bits 1, 2 and 32 apart and of
    the next word's.

    Five chi-square tests for each of 16 numerators: a false alarm in about 8e-5 of all versions of
    numpy's generator.
    """
    users, p = 20_000, numerator / WORD
    words = bernoulli_bits(
        users, numerator, bit_source(np.random.default_rng(numerator % (1 << 32)))
    )
    bits = (
        np.unpackbits(words.view(np.uint8), bitorder="little").reshape(users, 64).astype(np.int64)
    )
    if p * users * 64 < 1e-6:
        assert not bits.any()
        return
    if (1 - p) * users * 64 < 1e-6:
        assert bits.all()
        return
    ones = bits.sum(axis=0)
    scale = users * p * (1 - p)
    if scale < 100:  # only bits in all: too rare for positions
        assert stats.binomtest(int(ones.sum()), users * 64, p).pvalue > FALSE_ALARM
        return
    assert stats.chi2.sf(((ones - users * p) ** 2 / scale).sum(), 64) > FALSE_ALARM
    centred = bits - p
    for pairs in (
        centred[:, :-1] * centred[:, 1:],
        centred[:, :-2] * centred[:, 2:],
        centred[:, :32] * centred[:, 32:],
        centred[:-1] * centred[1:],
    ):
        score = pairs.sum() / (p * (1 - p) * math.sqrt(pairs.size))
        assert 2 * stats.norm.sf(abs(score)) > FALSE_ALARM
