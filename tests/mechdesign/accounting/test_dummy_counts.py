"""Dummies of a shuffler: their law, and what is proved, against enumerations of all collections."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mechdesign.accounting import compose
from mechdesign.accounting.dummy_counts import AmongDummies, DummyCounts
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.mechdesign.accounting.enumerated import divergence

WORDS = np.random.default_rng(5).bit_generator.random_raw
CERTAIN = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))


def near(ball, value):
    exact = arb(fmpq(value.numerator, value.denominator))
    return ball.overlaps(exact) and ball.rel_accuracy_bits() > 100


def law_of(counts):
    weights = [counts.alpha ** abs(z - counts.centre) for z in range(2 * counts.centre + 1)]
    return {z: weight / sum(weights) for z, weight in enumerate(weights)}


def together(*laws):
    """The law of several independent numbers."""
    found: Counter[tuple[int, ...]] = Counter({(): Fraction(1)})
    for law in laws:
        found = Counter({(*k, x): p * q for (k, p), (x, q) in product(found.items(), law.items())})
    return found


def with_report(law, column):
    """The law of numbers of each kind, with one more report of a kind drawn from a column."""
    found: Counter[tuple[int, ...]] = Counter()
    for (numbers, p), (kind, q) in product(law.items(), enumerate(column)):
        found[(*numbers[:kind], numbers[kind] + 1, *numbers[kind + 1 :])] += p * q
    return found


def columns(kinds):
    weights = st.lists(st.integers(0, 5), min_size=kinds, max_size=kinds).filter(any)
    return weights.map(lambda found: [Fraction(w, sum(found)) for w in found])


def distance(first, second):
    return sum(max(p - q, Fraction(0)) for p, q in zip(first, second, strict=True))


@pytest.mark.parametrize("centre", [1, 2, 5])
def test_counts_have_the_stated_law(centre):
    counts = DummyCounts(Fraction(2, 3), centre)
    law = law_of(counts)
    assert near(counts.end, law[0])
    assert near(counts.middle, law[centre])
    mean = sum(z * p for z, p in law.items())
    assert mean == centre
    assert counts.variance == pytest.approx(float(sum((z - mean) ** 2 * p for z, p in law.items())))


def test_draws_have_exactly_this_law():
    counts = DummyCounts(Fraction(4, 5), 6)
    law = law_of(counts)
    drawn = counts.draw(200_000, WORDS)
    seen = np.bincount(drawn, minlength=13)
    assert len(seen) == 13
    assert goodness(seen, [float(p) for p in law.values()]) > FALSE_ALARM
    # Cut off at the ends instead of drawn again, it would be seen
    cut = np.clip(stats.dlaplace.rvs(-np.log(0.8), size=200_000, random_state=1), -6, 6) + 6
    assert goodness(np.bincount(cut), [float(p) for p in law.values()]) < FALSE_ALARM


@given(
    ratio=st.fractions(1, 9, max_denominator=12),
    alpha=st.fractions(Fraction(1, 5), Fraction(9, 10), max_denominator=10),
    centre=st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_the_divergence_of_two_counts_is_exact(ratio, alpha, centre):
    counts = DummyCounts(alpha, centre)
    law = law_of(counts)
    more = {z + 1: p for z, p in law.items()}
    first, second = together(more, law), together(law, more)
    expected = divergence(first, second, ratio)
    assert near(counts.divergence(ratio), expected)
    attacked = counts.least_divergence(ratio, CERTAIN)
    assert near(attacked, expected) or expected == attacked == 0 or ratio * alpha**2 > 1


@pytest.mark.slow
@given(data=st.data(), kinds=st.integers(2, 3), ratio=st.fractions(1, 6, max_denominator=8))
@settings(max_examples=60, deadline=None)
def test_no_collection_of_any_table_tells_more_than_is_proved(data, kinds, ratio):
    """With one other user, who colludes and has sent kind 0, or is honest."""
    table = [data.draw(columns(kinds)) for _ in range(3)]
    counts = DummyCounts(data.draw(st.sampled_from([Fraction(1, 2), Fraction(3, 4)])), 1)
    dummies = together(*[law_of(counts)] * kinds)
    colluding = [Fraction(1)] + [Fraction(0)] * (kinds - 1)
    for x, z in permutations(range(3), 2):
        apart = distance(table[x], table[z])
        if not apart:
            continue
        most = max(range(kinds), key=lambda y: table[x][y] - table[z][y])
        least = min(range(kinds), key=lambda y: table[x][y] - table[z][y])
        attack = [(table[v][most], table[v][least]) for v in (x, z)]
        curve = AmongDummies(counts, apart, attack)
        above, below = curve.above(ratio, 0.0), curve.below(ratio, 0.0)
        for other in (colluding, table[2]):
            others = with_report(dummies, other)
            first, second = (with_report(others, table[v]) for v in (x, z))
            exact = divergence(first, second, ratio)
            told = arb(fmpq(exact.numerator, exact.denominator))
            assert not told > above
            if other is colluding:
                assert not told < below


@pytest.mark.parametrize("apart", [Fraction(1), Fraction(7, 10)])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1/4", "1e-8"), (1.0, 1e-6), (3, "0.01"), (20, "0.4")]
)
def test_the_dummies_keep_the_promise_and_fewer_would_not(epsilon, delta, apart):
    both = ((apart, 1 - apart), (Fraction(0), 1 - apart))
    curve = AmongDummies.keeping(epsilon, delta, apart, CERTAIN if apart == 1 else both)
    assert curve.delta(epsilon) <= Fraction(delta)
    if curve.counts.centre > 1:
        fewer = AmongDummies(DummyCounts(curve.counts.alpha, curve.counts.centre - 1), apart, both)
        assert fewer.delta(epsilon) > Fraction(delta)
    assert curve.delta(float(Fraction(epsilon)) * (1 - 2**-20)) > curve.delta(epsilon)
    assert curve.delta_at_least(epsilon) <= curve.delta(epsilon)
    assert curve.epsilon(delta) <= float(Fraction(epsilon)) * 1.0002


def test_with_certain_reports_the_bounds_meet():
    curve = AmongDummies.keeping("1/4", "1e-8", Fraction(1), CERTAIN)
    for epsilon in (0, "0.1", "0.2", "0.26", 3):
        assert curve.delta_at_least(epsilon) == pytest.approx(curve.delta(epsilon), rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "wrong"),
    [
        (0, "0.1", "epsilon must be above 0"),
        (-1, "0.1", "epsilon"),
        (1, 0, "delta must be strictly between"),
        (1, 1.0, "delta must be strictly between"),
        (1e-9, "1e-8", "more than 16777216 dummies"),
        (1e-300, "1e-8", "nearly 0"),
    ],
)
def test_promises_that_no_dummies_keep_are_refused(epsilon, delta, wrong):
    with pytest.raises(ValueError, match=wrong):
        AmongDummies.keeping(epsilon, delta, Fraction(1), CERTAIN)


@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(3, 2), Fraction(3), Fraction(5)])
def test_two_collections_tell_no_more_than_their_composition(ratio):
    """Each with its own dummies, of users who send their items."""
    counts = DummyCounts(Fraction(3, 4), 2)
    law = law_of(counts)
    more = {z + 1: p for z, p in law.items()}
    exact = divergence(together(more, law, more, law), together(law, more, law, more), ratio)
    loss = AmongDummies(counts, Fraction(1), CERTAIN).profile
    told = compose([loss] * 2).above(ratio, 0.005)
    assert not arb(fmpq(exact.numerator, exact.denominator)) > told
    assert float(exact) == pytest.approx(float(told.upper()), rel=0.01)
