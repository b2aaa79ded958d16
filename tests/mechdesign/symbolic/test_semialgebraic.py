"""Sets of alphas against the signs of polynomials at many alphas."""

from fractions import Fraction as Q
from random import Random

import pytest
from flint import fmpz_poly

from mechdesign.symbolic.semialgebraic import (
    AlphaInterval,
    Root,
    between,
    nonnegative,
    roots,
    where,
)
from tests.mechdesign.symbolic.alphas import ALL, NONE, ONE, evaluated, near, rationals


def random_polynomial(random):
    """A product of small factors, with rational, irrational and repeated roots."""
    polynomial = ONE
    for _ in range(random.randint(1, 3)):
        factor = fmpz_poly([random.randint(-9, 9) for _ in range(random.randint(1, 4))])
        polynomial *= factor ** random.choice([1, 1, 2, 3])
    return polynomial


@pytest.mark.parametrize("seed", range(40))
def test_where_is_right_at_every_alpha_tried(seed):
    """The region of random conditions contains an alpha if and only if the conditions hold there,
    in plain arithmetic.
    """
    random = Random(seed)
    conditions = [random_polynomial(random) for _ in range(random.randint(1, 3))]
    nonzero = [p for p in [random_polynomial(random)] if p]
    region = where(conditions, nonzero)
    for alpha in rationals(seed, 60) + [a for point in region.points for a in near(point)]:
        holds = all(evaluated(p, alpha) >= 0 for p in conditions) and all(
            evaluated(p, alpha) != 0 for p in nonzero
        )
        assert (alpha in region) == holds
        assert (alpha in region.complement()) == (not holds)
        assert any(alpha in interval for interval in region.intervals) == holds
    assert region & region.complement() == NONE
    assert region & ALL == region == region.complement().complement()
    assert region == where([p * 7 for p in conditions[::-1]], nonzero)
    assert all(
        region.covers(interval) and interval == region.around(interval.low)
        for interval in region.intervals
        if all(interval.closed)
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_denominator_decides_signs(seed):
    random = Random(seed)
    top, bottom = random_polynomial(random), random_polynomial(random) or ONE
    region = nonnegative([top], bottom)
    for alpha in rationals(seed, 50) + [a for point in region.points for a in near(point)]:
        value = evaluated(bottom, alpha)
        assert (alpha in region) == (value != 0 and evaluated(top, alpha) / value >= 0)


def test_roots_that_are_close_are_told_apart():
    """Mignotte's polynomial has two roots within 1e-5 of 1/10; a change of sign proves that there
    is one in each bracket.
    """
    polynomial = fmpz_poly([0] * 9 + [1]) - 2 * fmpz_poly([-1, 10]) ** 2
    first, second = sorted(roots(polynomial))
    assert first < Q(1, 10) < second
    assert 0 < float(second) - float(first) < 1e-5
    for root in (first, second):
        assert isinstance(root, Root)
        low, high = root.bracket(Q(1, 10**30))
        assert high - low <= Q(1, 10**30)
        assert evaluated(polynomial, low) * evaluated(polynomial, high) < 0
    assert first < between(first, second) < second
    assert first != second
    assert first in {first}
    assert where([polynomial]).intervals == (AlphaInterval.of(first, second),)


def test_single_points_and_printing():
    golden = fmpz_poly([-1, 1, 1])
    square = where([-(golden**2) * fmpz_poly([-1, 3]) ** 2])
    assert str(square) == "α = 1/3 or α = 0.618033... (where α^2 + α - 1 = 0)"
    assert [interval.low == interval.high for interval in square.intervals] == [True, True]
    assert square.points[1] in square
    assert square.intervals[0].latex() == r"\alpha = \frac{1}{3}"
    assert str(ALL) == "all α"
    assert str(NONE) == "no α"
    assert NONE.latex() == r"\emptyset"
    assert not NONE
    half_open = where([ONE], [golden])
    assert str(half_open).startswith("0 < α < 0.618033...")
    assert half_open.intervals[0].closed == (False, False)
    assert not half_open.covers(AlphaInterval.of(Q(1, 2), Q(2, 3)))
    assert half_open.covers(half_open.intervals[0])
