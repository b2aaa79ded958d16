"""Rational functions in alpha, as text and as formulas."""

from fractions import Fraction as Q

import matplotlib.mathtext
import pytest
from flint import fmpz_poly

from mechdesign.symbolic import ALPHA, RationalFunction
from mechdesign.symbolic.semialgebraic import rational
from tests.mechdesign.symbolic.alphas import ONE, evaluated


@pytest.mark.parametrize(
    ("top", "bottom", "text", "latex"),
    [
        ([0, 2, -2], [1, 0, -1], "2α/(1 + α)", r"\frac{2\alpha}{1 + \alpha}"),
        ([0], [3, 1], "0", "0"),
        ([3], [-6], "-1/2", r"\frac{-1}{2}"),
        ([-2, 8], [0, 9], "2(4α - 1)/(9α)", r"\frac{2(4\alpha - 1)}{9\alpha}"),
        ([1, 2, 1], [1], "(1 + α)^2", r"(1 + \alpha)^{2}"),
        ([1, 1], [1], "1 + α", r"1 + \alpha"),
        ([0, 0, -1], [2], "-α^2/2", r"\frac{-\alpha^{2}}{2}"),
        ([1], [1, -2], "-1/(2α - 1)", r"\frac{-1}{2\alpha - 1}"),
        ([-1, -1], [1], "-(1 + α)", r"-(1 + \alpha)"),
        ([-1, 3, -1], [0, 3], "(-1 + 3α - α^2)/(3α)", r"\frac{-1 + 3\alpha - \alpha^{2}}{3\alpha}"),
    ],
)
def test_formulas_in_text_and_latex(top, bottom, text, latex):
    formula = RationalFunction(fmpz_poly(top), fmpz_poly(bottom))
    assert str(formula) == text
    assert formula.latex() == latex
    assert formula._repr_latex_() == f"${latex}$"
    assert formula == RationalFunction(
        fmpz_poly(top) * fmpz_poly([-5, 7]), fmpz_poly(bottom) * fmpz_poly([-5, 7])
    )
    assert formula("1/3") == evaluated(fmpz_poly(top), Q(1, 3)) / evaluated(
        fmpz_poly(bottom), Q(1, 3)
    )
    matplotlib.mathtext.MathTextParser("path").parse(f"${latex}$")


def test_a_pole_has_no_value():
    with pytest.raises(ZeroDivisionError):
        RationalFunction(ONE, 1 - 2 * ALPHA)("1/2")
    with pytest.raises(ZeroDivisionError):
        RationalFunction(ONE, fmpz_poly([]))


def test_arithmetic_is_that_of_the_values():
    f, g = RationalFunction(1 + ALPHA, 2 - ALPHA), RationalFunction(3 * ALPHA, 1 + ALPHA**2)
    for other in (g, ALPHA**2, Q(-2, 3), 5):
        for alpha in (Q(1, 7), Q(4, 5)):
            x, y = f(alpha), rational(other)(alpha)
            assert ((f + other)(alpha), (f - other)(alpha)) == (x + y, x - y)
            assert ((f * other)(alpha), (f / other)(alpha)) == (x * y, x / y)
    assert f - f == rational(0)
    assert f * g / g == f
    assert len({f, f + 0, f * 1, rational(f)}) == 1
    with pytest.raises(ZeroDivisionError):
        f / 0
