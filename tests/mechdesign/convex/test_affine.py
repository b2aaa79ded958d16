"""Affine forms: exact arithmetic, in arrays too."""

from fractions import Fraction

import numpy as np
import pytest

from mechdesign.convex.atoms import Affine, combined

X, Y = Affine.variable(0), Affine.variable(1)


def at(form, x, y):
    return form.at([Fraction(x), Fraction(y)].__getitem__, Fraction)


def test_arithmetic_is_that_of_the_values():
    form = 2 * (X - 3 * Y) / Fraction(7) + Fraction(1, 3) - (1 - Y)
    assert at(form, 5, 2) == Fraction(2 * (5 - 6), 7) + Fraction(1, 3) - (1 - 2)
    assert at(2 - form, 5, 2) == 2 - at(form, 5, 2)


def test_terms_that_cancel_are_gone():
    assert not (X - X).terms
    assert not (0 * X).terms
    assert (X + Y - X).terms == {1: 1}


def test_arrays_multiply():
    forms = np.array([[X, Y], [Y, X]], dtype=object)
    numbers = np.array([Fraction(1, 2), Fraction(3)], dtype=object)
    assert at((forms @ numbers)[1], 5, 7) == Fraction(7, 2) + 15


def test_a_product_of_forms_is_refused():
    with pytest.raises(ArithmeticError, match="not affine"):
        X * Y
    with pytest.raises(ArithmeticError, match="not affine"):
        1 / X


def test_floats_are_refused():
    with pytest.raises(TypeError):
        X * 0.5
    with pytest.raises(TypeError, match="exact"):
        Affine.of(0.5)


def test_combined_is_the_sum():
    total = combined([Fraction(2), Fraction(-1)], [X + 1, X + Y])
    assert at(total, 5, 7) == 2 * 6 - 12
    assert combined([Fraction(1), Fraction(-1)], [X, X]).is_constant
