"""Properties of one's own as polynomials in alpha."""

from fractions import Fraction as Q
from itertools import product

import pytest

from mechdesign import Constraints, Metric, Privacy, Property, design
from mechdesign.properties import OutputRatio
from mechdesign.symbolic import (
    ALPHA,
    NotPolynomial,
    RationalFunction,
    SymbolicMechanism,
    explain,
    explicit_fair,
    geometric,
    optimized_unary,
    parametric,
    uniform,
)
from tests.mechdesign.symbolic.alphas import ALL, near, proved, rationals


class Quadratic(Property):
    """(1 + alpha^2) P[0, 0] >= 2 alpha P[1, 1]: a coefficient of degree two, as in the test of
    section 6.6.3.
    """

    short = "QUADRATIC"

    def constraints(self, at, privacy):
        yield Constraints(
            at[[0, 1], [0, 1]].reshape(1, 2),
            (1 + privacy.alpha**2, -2 * privacy.alpha),
            Q(0),
            False,
        )


class Rational(Property):
    """A coefficient that is no polynomial in alpha."""

    short = "RATIONAL"

    def constraints(self, at, privacy):
        yield Constraints.at_least(at[0, 0], at[0, 0], 1 / privacy.alpha)


class Moving(Property):
    """Rows about other entries for other alpha."""

    short = "MOVING"

    def constraints(self, at, privacy):
        i = int(privacy.alpha > Q(1, 2))
        yield Constraints.at_least(at[i, i], at[0, 0])


class Counting(Property):
    """More rows for larger alpha."""

    short = "COUNTING"

    def constraints(self, at, privacy):
        for _ in range(1 + int(privacy.alpha > Q(1, 2))):
            yield Constraints.at_least(at[0, 0], at[1, 1])


def test_properties_of_your_own():
    for item, table in product(
        (OutputRatio(), OutputRatio(Q(1, 2)), Quadratic()),
        (geometric(3), explicit_fair(4), optimized_unary(2)),
    ):
        region = table.where(item)
        for alpha in rationals(7, 15) + [a for point in region.points for a in near(point)]:
            assert (alpha in region) == item.holds(table.at(alpha))
    for item in (Rational(), Moving(), Counting()):
        with pytest.raises(NotPolynomial):
            geometric(2).where(item)
        with pytest.raises(NotPolynomial):
            parametric(2, properties=[item])


def test_distances_are_followed_up_to_a_power():
    far = Metric([[0, 33], [33, 0]])
    for ask in (
        lambda: parametric(1, neighbours=far),
        lambda: explain(design(1, Privacy(alpha="9/10", neighbours=far))),
    ):
        with pytest.raises(NotPolynomial, match="degree at most 32"):
            ask()
    # Which no distance enters
    assert SymbolicMechanism(uniform(1).weights, uniform(1).denominator, far).where("F") == ALL
    (piece,) = proved(parametric(1, neighbours=Metric([[0, 32], [32, 0]])))
    assert piece.objective == RationalFunction(ALPHA**32, 1 + ALPHA**32)  # randomized response
