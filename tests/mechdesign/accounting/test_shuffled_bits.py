"""Shuffled bits: between the two bounds lies what enumeration and convolution find, exactly."""

import math
import random
from fractions import Fraction
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpz_poly
from scipy import stats

from frequency import GRR
from mechdesign import Mechanism, Privacy
from mechdesign.accounting import compose, shuffled, shuffled_bits
from mechdesign.accounting.pair_law import PairLaws, TableLaws, exp_above, exp_below
from mechdesign.accounting.shuffled_bits import ShuffledBits, orders_of_bits
from mechdesign.accounting.shuffling import Shuffled
from mechdesign.base import precision
from mechdesign.base.numbers import ball
from tests.mechdesign.accounting.enumerated import shuffled_delta


def deltas(low, high, n, ratio, numbers=None):
    """The delta of each number m of others with the larger probability, or of some; exact.

    The law of the number of ones has the coefficients of polynomials of degree one, multiplied.
    """
    whole = math.lcm(low.denominator, high.denominator)
    a, b = int(low * whole), int(high * whole)
    up, down = ratio.as_integer_ratio()
    first, second = fmpz_poly([whole - b, b]), fmpz_poly([whole - a, a])
    difference = down * first - up * second
    unit = down * whole**n
    for m in range(n) if numbers is None else numbers:
        law = second ** (n - 1 - m) * first**m * difference
        yield Fraction(int(sum(c for c in law.coeffs() if c > 0)), unit)


class Relabelled:
    """The same reports, of which only laws are known."""

    def __init__(self, oracle):
        self.oracle = oracle

    def pair_laws(self):
        return list(self.oracle.pair_laws())

    def attack_laws(self):
        return self.oracle.attack_laws()


def exactly(x):
    return arb(fmpq(x.numerator, x.denominator))


def require_around(bounds, delta, close):
    """Both bounds, which are balls, on the right side of delta, and close to it."""
    with precision(400):
        low, high = bounds
        assert low.lower() <= exactly(delta) <= high.upper()
        # Of smaller deltas only that it is a bound: the search may be given up there.
        if exactly(delta) > 1.1 * arb(2) ** -45:
            assert high.upper() <= exactly(delta * close)
            assert low.upper() >= exactly(delta / close)


def cases(count, largest, seed):
    """Random probabilities, sizes and ratios up to the largest with a delta."""
    chosen = random.Random(seed)
    for _ in range(count):
        units = chosen.choice([7, 20, 1000, 10**6])
        a, b = sorted(chosen.sample(range(1, units), 2))
        low, high = Fraction(a, units), Fraction(b, units)
        if chosen.random() < 0.4:
            low, high = min(low, 1 - low), max(low, 1 - low)
        if low == high:
            continue
        share = Fraction(chosen.randrange(100), 100) ** 2
        yield low, high, chosen.randint(1, largest), 1 + share * (high / low - 1)


def test_enumeration_of_few_users():
    """All compositions, in fractions; seeded."""
    checked = 0
    for low, high, n, ratio in cases(3200, 7, seed=1):
        delta = max(deltas(low, high, n, ratio))
        require_around(ShuffledBits(low, high, n - 1).delta(ratio), delta, Fraction(100001, 100000))
        checked += 1
    assert checked >= 3000


def test_the_search_finds_what_the_list_does():
    """The same with the search that many users need; seeded."""
    with patch.object(shuffled_bits, "_LISTED", -1):
        for low, high, n, ratio in cases(400, 7, seed=2):
            delta = max(deltas(low, high, n, ratio))
            bits = ShuffledBits(low, high, n - 1)
            require_around(bits.delta(ratio), delta, Fraction(1003, 1000))


@pytest.mark.parametrize("seed", range(4))
def test_convolution_of_hundreds_of_users(seed):
    for low, high, n, ratio in cases(12, 300, seed=10 + seed):
        share = (ratio - 1) / (high / low - 1)
        # Where most deltas are neither negligible nor those of a report alone
        ratio = 1 + share * min(high / low - 1, Fraction(4 / math.sqrt(n)))
        delta = max(deltas(low, high, n, ratio))
        for bits in (ShuffledBits(low, high, n - 1), ShuffledBits(low, high, n - 1).mirrored):
            if bits.low != low:
                delta = max(deltas(bits.low, bits.high, n, ratio))
            if ratio * bits.low < bits.high:
                require_around(bits.delta(ratio), delta, Fraction(102, 100))


@pytest.mark.parametrize(
    ("low", "high", "n", "ratio", "worst"),
    [
        (Fraction(23, 50), Fraction(13, 25), 1992, "1.00295", 14),
        (Fraction(6, 25), Fraction(8, 25), 2248, "1.0328", 0),
        (Fraction(51, 100), Fraction(4, 5), 2143, "1.0725", 2142),
    ],
)
def test_convolution_of_wide_laws(low, high, n, ratio, worst):
    """Where thresholds are taken as real numbers: at some of the compositions, the worst known."""
    ratio = Fraction(ratio)
    bits = ShuffledBits(low, high, n - 1)
    assert bits.wide
    some = sorted({0, 1, worst, n // 3, n // 2, n - 2, n - 1})
    told = list(deltas(low, high, n, ratio, some))
    assert some[told.index(max(told))] == worst
    require_around(bits.delta(ratio), max(told), Fraction(101, 100))


def test_a_search_that_misses_compositions_is_found_out():
    """Planted: only the ends are looked at, and the bound is that; all others are left out."""
    missed = 0
    for low, high, n, ratio in cases(60, 60, seed=3):
        worst = list(deltas(low, high, n, ratio))
        inner = max(worst[4:-4], default=Fraction(0))
        at_ends = ShuffledBits(low, high, n - 1)
        with patch.object(shuffled_bits, "_LISTED", -1), patch.object(shuffled_bits, "_ENDS", 1):
            found = at_ends.delta_at_ends(ratio)
        missed += bool(found.upper() < exactly(max(worst)) * arb("0.999999"))
        assert inner <= max(worst)
    assert missed


def test_thresholds_stay_or_rise_by_one():
    """For one more of the others with the larger probability: in fractions."""
    for low, high, n, ratio in cases(40, 25, seed=4):
        gain = high - ratio * low
        loss = gain + ratio - 1
        if gain <= 0:
            continue
        found = []
        for m in range(n):
            law = [Fraction(1)]
            for p in [high] * m + [low] * (n - 1 - m):
                kept = [x * (1 - p) for x in law] + [Fraction(0)]
                law = [x + y * p for x, y in zip(kept, [Fraction(0), *law], strict=True)]
            before, here = [Fraction(0), *law], [*law, Fraction(0)]
            signs = [gain * x - loss * y > 0 for x, y in zip(before, here, strict=True)]
            assert signs == sorted(signs)
            found.append(signs.index(True))
        assert {b - a for a, b in pairwise(found)} <= {0, 1}


@pytest.mark.parametrize(
    ("local", "n", "told"),
    [
        ("0.5", 200_000, 0.00312),
        ("1", 20_000, 0.02443),
        ("2", 200_000, 0.01689),
        ("4", 200_000, 0.05785),
    ],
)
def test_many_users_against_floats(local, n, told):
    """Tails of the binomial law, in floats, where all others hold the same value."""
    bits = GRR(2, local)
    many, p = shuffled(bits, n), float(bits.p)
    epsilon = many.epsilon("1e-6")
    assert epsilon == pytest.approx(told, rel=2e-3)
    assert many.epsilon_at_least("1e-6") <= epsilon <= many.epsilon_at_least("1e-6") * 1.001
    t, k = math.exp(epsilon), np.arange(n)
    gain, more = p - t * (1 - p), t - 1
    alike = [
        gain * law.pmf(k - 1) - more * law.sf(k - 1)
        for law in (stats.binom(n - 1, p), stats.binom(n - 1, 1 - p))
    ]
    assert max(map(np.max, alike)) == pytest.approx(1e-6, rel=0.02)
    assert max(map(np.max, alike)) <= 1.000001e-6


@pytest.mark.parametrize("n", [10, 300, 20_000, 10**9, 10**12])
@pytest.mark.parametrize("local", ["0.01", "1", "4", "12"])
def test_bounds_meet_at_all_sizes(n, local):
    many = shuffled(GRR(2, local), n)
    above, below = many.epsilon("1e-6"), many.epsilon_at_least("1e-6")
    assert below <= above <= below * (1 + 1.1e-3) or above < 1e-9
    assert many.delta(above) <= 1e-6 or above == many.local_epsilon


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_two_answers_of_any_number_of_values(n):
    """Values with probabilities between the extreme ones reveal no more: datasets are listed."""
    chosen = np.random.default_rng(n)
    for _ in range(6):
        ones = [Fraction(int(k), 24) for k in chosen.integers(1, 24, 3)]
        table = [ones, [1 - p for p in ones]]
        mechanism = Mechanism(table, Privacy(alpha="1/23", neighbours="all"))
        many = shuffled(mechanism, n)
        for epsilon in (0.0, 0.1, 0.7, 2.0):
            above = shuffled_delta(table, n, exp_below(Fraction(epsilon)))
            below = shuffled_delta(table, n, exp_above(Fraction(epsilon)))
            assert below * Fraction(1 - 1e-9) <= Fraction(many.delta(epsilon))
            assert above <= Fraction(many.delta(epsilon))
            assert many.delta_at_least(epsilon) <= above
            assert many.delta(epsilon) <= float(above) * (1 + 1e-9)


def test_extreme_probabilities():
    tiny = Fraction(1, 10**200)
    for low, high in ((tiny, 2 * tiny), (tiny, 1 - tiny), (1 - 2 * tiny, 1 - tiny)):
        for n in (1, 5, 1000, 10**12):
            bits = ShuffledBits(low, high, n - 1)
            for ratio in (Fraction(1), Fraction(3, 2)):
                below, above = bits.delta(ratio)
                assert 0 <= above.upper() <= 1.01
                assert not below.lower() > above.upper()
    assert ShuffledBits(tiny, 1 - tiny, 10).delta(Fraction(1, tiny))[1] == 0


def test_equal_probabilities_reveal_nothing():
    half = [["1/2", "1/2"], ["1/2", "1/2"]]
    many = shuffled(Mechanism(half, Privacy(alpha=1, neighbours="all")), 100)
    assert (many.delta(0), many.epsilon("1e-9")) == (0, 0)


def test_only_tables_of_two_outputs_are_of_bits():
    (bits,) = orders_of_bits([[3, 1], [1, 3]], 10)
    assert (bits.low, bits.high, bits.others) == (Fraction(1, 4), Fraction(3, 4), 9)
    assert orders_of_bits([[1, 1, 1], [1, 1, 1]], 10) == ()
    first, second = orders_of_bits([[4, 3, 2], [1, 2, 3]], 10)
    assert (first.low, first.high) == (Fraction(1, 5), Fraction(3, 5))
    assert (second.low, second.high) == (Fraction(2, 5), Fraction(4, 5))
    assert TableLaws([[3, 1], [0, 0], [1, 3]]).rows == [[3, 1], [1, 3]]
    assert PairLaws([TableLaws([[3, 1], [1, 3]])[0]]).rows is None


def test_collections_of_bits_compose():
    many = shuffled(GRR(2, 1.0), 10_000)
    one, four = many.epsilon("1e-6"), compose([many] * 4).epsilon("1e-6")
    assert one < four < 4 * many.epsilon("2.5e-7")


@pytest.mark.parametrize(("local", "n"), [("1", 2000), ("3", 2000), ("1", 10**6)])
def test_the_profile_is_above_what_some_dataset_tells(local, n):
    """Also where it is made of the blanket's bounds; and at most a few per cent above."""
    many = shuffled(GRR(2, local), n)
    for delta in ("1e-3", "1e-6", "1e-10", "1e-20"):
        epsilon = many.epsilon_at_least(delta)
        told = Fraction(many.delta_at_least(epsilon))
        assert many.profile.delta(exp_below(Fraction(epsilon))) >= told > 0
    promised = many.profile.delta(exp_below(Fraction(many.epsilon("1e-6"))))
    assert promised <= 1.1e-6 or not many._bits[0].wide


@pytest.mark.parametrize(("local", "n", "delta"), [("1", 3000, "1e-300"), ("8", 10**6, "1e-30")])
def test_a_search_that_is_given_up_is_not_begun_again(local, n, delta):
    bits = GRR(2, local)
    blanket = shuffled(Relabelled(bits), n).epsilon(delta)
    search = shuffled_bits._Search
    with patch.object(search, "bounds", autospec=True, side_effect=search.bounds) as begun:
        assert shuffled(bits, n).epsilon(delta) == blanket
    assert begun.call_count == 1


def test_a_bound_that_is_no_number_promises_nothing():
    """Planted."""
    nothing = arb.nan(), arb.nan()
    with patch.object(ShuffledBits, "delta", lambda *_: nothing):
        many = shuffled(GRR(2, 1.0), 1000)
        assert many.delta(0.1) == 1
        assert many.epsilon("1e-6") == shuffled(Relabelled(GRR(2, 1.0)), 1000).epsilon("1e-6")
    with patch.object(Shuffled, "below", lambda *_: nothing[0]):
        assert many.epsilon_at_least("1e-6") == many.delta_at_least(0.1) == 0
    with patch.object(Shuffled, "above", lambda *_: nothing[0]):
        assert many.epsilon("1e-6") == many.local_epsilon


def test_precision_is_left_as_it_was():
    before = ctx.prec
    ctx.prec = 77
    try:
        ShuffledBits(Fraction(1, 4), Fraction(3, 4), 999).delta(Fraction(11, 10))
        assert ctx.prec == 77
        assert ball(Fraction(1, 3)).rad() > 0
    finally:
        ctx.prec = before
