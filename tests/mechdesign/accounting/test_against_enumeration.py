"""Bounds of the accounting against what is listed outcome by outcome, for tables at random.

The bounds are for rational numbers on the safe side of e^epsilon; so are the lists, exactly.
"""

import math
import re
from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from flint import arb, fmpq, fmpz_poly
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechdesign import Privacy, named
from mechdesign.accounting import compose, shuffled
from mechdesign.accounting.inversion import Advantage, Function, Mean, Summands
from mechdesign.accounting.pair_law import (
    PairLaws,
    TableLaws,
    attack_laws_of,
    exp_above,
    exp_below,
)
from mechdesign.accounting.privacy_loss import dominating
from mechdesign.accounting.shuffling import Shuffled
from mechdesign.base.numbers import ball
from mechdesign.exceptions import UnboundedRatio
from mechdesign.mechanism.table import Table
from tests.mechdesign.accounting.enumerated import composed_delta, shuffled_delta


def table_of(columns):
    return Table(list(zip(*columns, strict=True)), Privacy(alpha="1/2", neighbours="all"))


def column(weights):
    return [Fraction(w, sum(weights)) for w in weights]


@st.composite
def tables(draw, weights=(1, 2, 3, 5, 1000)):
    outputs = draw(st.integers(2, 3))
    one = st.lists(st.sampled_from(weights), min_size=outputs, max_size=outputs).filter(any)
    return table_of([column(w) for w in draw(st.lists(one, min_size=2, max_size=3))])


EPSILONS = st.fractions(0, 3, max_denominator=20)
TINY = Fraction(1, 10**12)
NEAR = table_of([column([1, 1]), column([1 + TINY, 1])])
FAR = table_of([column([10**6, 1, 1]), column([1, 10**6, 1]), column([1, 1, 1])])


def require_between(bounds, exact, epsilon):
    """``exact`` gives the exact delta at a ratio."""
    assert bounds.delta(epsilon) >= exact(exp_below(epsilon))
    assert bounds.delta_at_least(epsilon) <= exact(exp_above(epsilon))


# ------------------------------------------------------------------------------ shuffled reports


@pytest.mark.slow
@given(table=tables(), n=st.integers(1, 3), epsilon=EPSILONS)
@example(table=NEAR, n=3, epsilon=Fraction(0))
@example(table=NEAR, n=2, epsilon=TINY / 3)
@example(table=FAR, n=3, epsilon=Fraction(1, 2))
@example(table=FAR, n=2, epsilon=Fraction(13))
@settings(max_examples=12, deadline=None)
def test_no_dataset_tells_more_and_some_dataset_tells_as_much(table, n, epsilon):
    require_between(
        shuffled(table, n), lambda ratio: shuffled_delta(table.table, n, ratio), epsilon
    )


def by_blanket(table, n):
    """The bounds of the blanket and of attacks, also where more is known of the table."""
    laws = TableLaws(table.sampler.weights)
    stated = PairLaws([laws[k] for k in range(len(laws))])
    return Shuffled(stated, attack_laws_of(table.sampler.weights), n)


def positive_mean(law, n):
    """E (W_1 + ... + W_n)_+ / n; what the weights lack to 1 is that of W = 0."""
    law = [*law, (1 - sum(weight for weight, _ in law), Fraction(0))]
    sums = Counter({Fraction(0): Fraction(1)})
    for _ in range(n):
        longer: Counter[Fraction] = Counter()
        for (total, p), (weight, value) in product(sums.items(), law):
            longer[total + value] += p * weight
        sums = longer
    return sum((p * max(total, Fraction(0)) for total, p in sums.items()), Fraction(0)) / n


@pytest.mark.slow
@given(table=tables(weights=(1, 2, 3, 5)), n=st.integers(1, 5), epsilon=EPSILONS)
@settings(max_examples=8, deadline=None, derandomize=True)  # how near depends on the table
def test_the_bounds_are_nearly_what_their_formulas_say(table, n, epsilon):
    """The mean under the blanket from above, under the attacks from below.

    From above where there is one pair of values: of several, the bound is for all at once.
    """

    def largest(laws, ratio):
        means = [positive_mean([(w, u - ratio * v) for w, u, v in law], n) for law in laws]
        return max(means, default=Fraction(0))

    bounds, weights = by_blanket(table, n), table.sampler.weights
    laws = TableLaws(weights)
    blanket = largest([laws[k] for k in range(len(laws))], exp_below(epsilon))
    attacked = largest(attack_laws_of(weights), exp_above(epsilon))
    told, found = bounds.delta(epsilon), bounds.delta_at_least(epsilon)
    assert found <= attacked <= blanket
    if not epsilon or bounds.local_epsilon > 1.2 * epsilon:
        assert found >= 0.8 * attacked
        if table.inputs == 2:
            assert told <= 1.2 * blanket


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "n", "delta"),
    [(NEAR, 2, "1e-300"), (FAR, 2, "0.5"), (named.krr(3, alpha="1/9"), 1000, "1e-300")],
    ids=["near", "far", "many"],
)
def test_epsilons_of_extreme_deltas(table, n, delta):
    bounds = shuffled(table, n)
    found, least = bounds.epsilon(delta), bounds.epsilon_at_least(delta)
    assert 0 <= least <= found <= bounds.local_epsilon
    assert found == bounds.local_epsilon or bounds.delta(found) <= Fraction(delta)
    assert least == 0 or bounds.delta_at_least(least) >= Fraction(delta) * Fraction(999, 1000)


@pytest.mark.slow
def test_more_users_and_larger_epsilons_tell_less():
    # Of up to nine users the exact delta is stated, which may be below a bound for more.
    sizes = [by_blanket(FAR, n) for n in (1, 3, 30, 10**7)]
    assert all(shuffled(FAR, n).delta("0.3") <= sizes[0].delta("0.3") for n in (1, 3))
    curve = [many.delta("0.3") for many in sizes]
    assert curve == sorted(curve, reverse=True)
    deltas = [sizes[2].delta(epsilon) for epsilon in ("0", "0.1", "2", "2.9", "14")]
    assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("epsilon", ["0", "0.5", "2"])
@pytest.mark.parametrize("table", [NEAR, FAR], ids=["near", "far"])
def test_a_report_alone_tells_what_its_table_says(table, epsilon):
    """Also where rare reports have giant ratios; the bound on few reports is not above it."""
    alone = shuffled_delta(table.table, 1, exp_below(Fraction(epsilon)))
    assert alone <= shuffled(table, 1).delta(epsilon) <= alone * 1.0001 + 2**-40
    assert shuffled(table, 5).delta(epsilon) <= alone * 1.0001 + 2**-40


def binary_delta(n, ratio):
    """The largest divergence over all datasets of n users who tell the truth with 3/4; exact.

    The law of how many reports are 1 has the coefficients of (3 + x)^k (1 + 3 x)^(n - 1 - k), times
    3 + x or 1 + 3 x for the user.
    """
    zeros = [fmpz_poly([3, 1]) ** k for k in range(n)]
    ones = [fmpz_poly([1, 3]) ** k for k in range(n)]
    worst, (up, down) = 0, ratio.as_integer_ratio()
    for k in range(n):  # by symmetry the user may hold 0
        others = zeros[k] * ones[n - 1 - k]
        more = down * others * fmpz_poly([3, 1]) - up * others * fmpz_poly([1, 3])
        worst = max(worst, sum(c for c in more.coeffs() if c > 0))
    return Fraction(int(worst), down * 4**n)


ROW = re.compile(r"\| ([0-9/]+) \| (.*) \|")


@pytest.mark.slow
def test_deltas_of_few_users_are_as_far_off_as_the_page_on_limits_says():
    page = Path(__file__).parents[3] / "docs" / "limits" / "shuffling.md"
    rows = [m for line in page.read_text(encoding="utf-8").splitlines() if (m := ROW.match(line))]
    assert [row[1] for row in rows] == ["5/4", "3/2", "2"]
    table = Table([["3/4", "1/4"], ["1/4", "3/4"]], Privacy(alpha="1/3", neighbours="all"))
    assert binary_delta(3, Fraction(3, 2)) == shuffled_delta(table.table, 3, Fraction(3, 2))
    for row in rows:
        for n, cell in zip((10, 20, 50, 100), row[2].split(" | "), strict=True):
            delta, factor = map(float, cell.split(", "))
            exact, bounds = binary_delta(n, Fraction(row[1])), shuffled(table, n)
            epsilon = math.log(Fraction(row[1]))
            assert float(exact) == pytest.approx(delta, rel=0.05)
            blanket = by_blanket(table, n).delta(epsilon)
            assert blanket / float(exact) == pytest.approx(factor, abs=6e-3)
            assert bounds.delta(epsilon) == pytest.approx(float(exact), rel=2e-3)
            assert bounds.delta_at_least(epsilon) == pytest.approx(float(exact), rel=1e-9)


def test_where_floats_end():
    """Ratios that differ from 1 by 1e-400, and ratios of 1e400."""
    tiny = Fraction(1, 10**400)
    same = table_of([[Fraction(1, 2)] * 2, [Fraction(1, 2) + tiny, Fraction(1, 2) - tiny]])
    for bounds in (shuffled(same, 10), compose([same] * 2)):
        assert bounds.delta_at_least(0) == 0 <= tiny < bounds.delta(0) < 1e-40
        assert bounds.epsilon("1e-30") == 0
    rare = table_of([[tiny, 1 - tiny], [Fraction(1, 2)] * 2])
    for refuses in (lambda: shuffled(rare, 10), lambda: compose([rare])):
        with pytest.raises(UnboundedRatio, match=r"more than 2\^900 times as likely"):
            refuses()
    rarer = table_of([[tiny, 1 - tiny], [tiny / 2, 1 - tiny / 2]])
    assert shuffled(rarer, 10).delta("0.1") < 1e-100


# -------------------------------------------------------------------------------- composition


@given(
    drawn=st.lists(
        st.tuples(tables(weights=(0, 1, 2, 7)), st.integers(1, 2)), min_size=1, max_size=2
    ),
    epsilon=EPSILONS,
)
@example(drawn=[(table_of([column([1, 0]), column([0, 1])]), 1)], epsilon=Fraction(1))
@settings(max_examples=12, deadline=None)
def test_no_releases_together_tell_more(drawn, epsilon):
    releases = [table for table, times in drawn for _ in range(times)]
    columns = [list(zip(*table.table, strict=True)) for table in releases]

    def exact(ratio):
        pairs = product(*(list(permutations(found, 2)) for found in columns))
        return max(composed_delta(list(chosen), ratio) for chosen in pairs)

    require_between(compose(releases), exact, epsilon)


def test_disjoint_outputs_tell_everything():
    certain = table_of([column([1, 0]), column([0, 1])])
    together = compose([certain, FAR])
    assert (together.delta(2), together.delta_at_least(2)) == (1, 1)
    assert together.epsilon("0.999") == math.inf


# ------------------------------------------------------------------- the parts they are made of


def exactly(x):
    return arb(fmpq(x.numerator, x.denominator))


@st.composite
def summands(draw):
    size = draw(st.integers(1, 3))
    weights = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    missing = draw(st.integers(0, 5))
    total = sum(weights) + missing
    values = draw(st.lists(st.fractions(-3, 5, max_denominator=6), min_size=size, max_size=size))
    law = list(zip((Fraction(w, total) for w in weights), values, strict=True))
    return law, draw(st.integers(1, 3)), draw(st.booleans())


def listed(parts):
    """The law of the sum; what is infinitely small is left out."""
    sums = {Fraction(0): Fraction(1)}
    for law, times, complete in parts:
        rest = [(1 - sum(p for p, _ in law), Fraction(0))] if complete else []
        for _ in range(times):
            longer: Counter[Fraction] = Counter()
            for (total, p), (q, x) in product(sums.items(), [*law, *rest]):
                longer[total + x] += p * q
            sums = dict(longer)
    return sums


@pytest.mark.slow
@given(
    parts=st.lists(summands(), min_size=1, max_size=3),
    shift=st.fractions(-4, 12, max_denominator=4),
    function=st.sampled_from([Function, Advantage]),
    smoothing=st.sampled_from([0.3, 0.03, 0.005]),
)
@settings(max_examples=40, deadline=None)
def test_means_of_sums_lie_between_the_bounds(parts, shift, function, smoothing):
    sums = listed(parts)
    made = [
        Summands(tuple(ball(p) for p, _ in law), tuple(ball(x) for _, x in law), times, complete)
        for law, times, complete in parts
    ]
    if function is Function:
        exact = exactly(
            sum((p * max(x - shift, Fraction(0)) for x, p in sums.items()), Fraction(0))
        )
    else:
        exact = sum(
            (exactly(p) * (1 - (-exactly(x - shift)).exp()) for x, p in sums.items() if x > shift),
            arb(0),
        )
    found = Mean(made, ball(shift), function)
    assert not found.lower(smoothing).lower() > exact
    assert not found.upper(smoothing).upper() < exact


@pytest.mark.parametrize("far", [0, 3, 12])
@pytest.mark.parametrize("times", [50, 4000])
def test_means_of_many_summands_lie_closely_between_the_bounds(times, far):
    """Heads less twice the tails, of an unfair coin: most terms of the transform are left out."""
    heads, shift = Fraction(2, 3), Fraction(far) * math.isqrt(2 * times)
    exact = sum(
        math.comb(times, k) * 2**k * max(3 * k - 2 * times - shift, 0) for k in range(times + 1)
    ) / Fraction(3**times)
    coin = Summands((ball(heads), ball(1 - heads)), (arb(1), arb(-2)), times, complete=True)
    found = Mean([coin], ball(shift), Function)
    assert found.lower(0.005).lower() <= exactly(exact) <= found.upper(0.005).upper()
    assert found.lower(0.005).lower() >= exactly(exact * Fraction(9, 10))
    assert found.upper(0.005).upper() <= exactly(exact * Fraction(1001, 1000))


@pytest.mark.slow
@given(data=st.data(), laws=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_a_dominating_law_is_above_all(data, laws):
    """Its call function, at every place where one of them may bend."""
    drawn = []
    for _ in range(laws):
        size = data.draw(st.integers(1, 5))
        weights = data.draw(st.lists(st.integers(1, 99), min_size=size, max_size=size))
        scale = data.draw(st.sampled_from([1, 10**6, Fraction(1, 10**9)]))
        places = st.fractions(-1, 1, max_denominator=1000)
        values = data.draw(st.lists(places, min_size=size, max_size=size, unique=True))
        drawn.append(
            [(Fraction(w, sum(weights)), x * scale) for w, x in zip(weights, values, strict=True)]
        )
    floats = [tuple(np.array([[float(x) for x in pair] for pair in law]).T) for law in drawn]
    most = max(abs(x) for law in drawn for _, x in law) + 1
    means = [sum(p * x for p, x in law) for law in drawn]
    found = dominating(
        [(p, x, 0.0) for p, x in floats],
        (-most, most),
        (max(means) + most, Fraction(0)),
        float(most) + 1,
    )
    assert sum(p for p, _ in found) == 1
    assert all(p > 0 for p, _ in found)

    def call(law, t):
        return sum((p * max(x - t, Fraction(0)) for p, x in law), Fraction(0))

    for law in drawn:
        for t in {x for _, x in found} | {x for law in drawn for _, x in law}:
            assert call(found, t) >= call(law, t)
            assert float(call(found, t) - max(call(other, t) for other in drawn)) < 1e-9 * most
