"""Exact solutions of equations near floats, and mixtures without negative forms."""

from fractions import Fraction

import numpy as np
import pytest

from mechdesign import Infeasible
from mechdesign.convex.atoms import Affine, combined
from mechdesign.convex.minimise import Equations, least_share, mixed

X, Y, Z = map(Affine.variable, range(3))


def test_solutions_satisfy_every_equation_exactly():
    rng = np.random.default_rng(1)
    forms = [
        combined(map(Fraction, row.tolist()), map(Affine.variable, range(12))) - 1
        for row in rng.integers(-3, 4, (5, 12))
    ]
    forms.append(forms[0] + 2 * forms[1])  # depends on the others
    near = rng.random(12)
    x = Equations(forms, near).solution(near)
    assert all(form.at(x.__getitem__, Fraction) == 0 for form in forms)


def test_what_solves_them_stays_where_it_is():
    near = np.array([0.25, 0.5, 0.25])
    x = Equations([X + Y + Z - 1, X - Z], near).solution(near + np.array([0, 1e-9, 0]))
    assert x == [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]


def test_contradictions_are_proved():
    with pytest.raises(Infeasible, match="proved"):
        Equations([X + Y - 1, X - Y, Y - 1], np.ones(3))


def test_the_least_share_makes_no_form_negative():
    outside, inside = [Fraction(-1, 10), Fraction(1)], [Fraction(1), Fraction(1)]
    share = least_share([X, Y], outside, inside)
    assert share is not None
    assert Fraction(1, 11) <= share <= Fraction(1, 11) + Fraction(1, 1 << 60)
    assert mixed(outside, inside, share)[0] >= 0
    assert least_share([X, Y], inside, inside) == 0


def test_there_may_be_no_share():
    assert least_share([X - 2], [Fraction(1)], [Fraction(1)]) is None
    assert least_share([X], [Fraction(-1)], [Fraction(0)]) is None
