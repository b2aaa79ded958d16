"""Convex functions: planes are below them, touch them, and are refused where they are not."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb

from mechdesign.base.numbers import ball
from mechdesign.convex.atoms import (
    Atom,
    EuclideanNorm,
    Exponential,
    Largest,
    LargestSum,
    LogSumExp,
    MatrixFraction,
    MinusEntropy,
    MinusGeometricMean,
    MinusLog,
    OutsideDomain,
    QuadOverLin,
    RealPower,
    RelativeEntropy,
    Square,
    lower,
    upper,
)
from mechdesign.convex.reading import SupportingPlane

LINE, ABOVE_0 = (-3.0, 3.0), (0.01, 3.0)


@dataclass(frozen=True)
class Case:
    """A function, the box in which it is tried, and what it is in plain numpy."""

    atom: Atom
    box: tuple[tuple[float, float], ...]
    plain: Callable[..., Any]


def _fraction(u):
    m = np.array([[u[2], u[3]], [u[4], u[5]]])
    return u[:2] @ np.linalg.solve(m, u[:2])


def _matrix(rng):
    root = rng.normal(size=(2, 2))
    m = root @ root.T + 0.1 * np.eye(2)
    return np.concatenate([rng.normal(size=2), m.ravel()])


CASES = {
    "max": Case(Largest(), (LINE,) * 3, np.max),
    "sum_largest": Case(LargestSum(Fraction(2)), (LINE,) * 4, lambda u: np.sort(u)[-2:].sum()),
    "sum of 3/2 largest": Case(
        LargestSum(Fraction(3, 2)), (LINE,) * 3, lambda u: np.sort(u) @ [0, 0.5, 1]
    ),
    "square": Case(Square(), (LINE,), lambda u: u[0] ** 2),
    "quad_over_lin": Case(QuadOverLin(), (LINE, ABOVE_0), lambda u: u[0] ** 2 / u[1]),
    "norm2": Case(EuclideanNorm(), (LINE,) * 3, np.linalg.norm),
    "exp": Case(Exponential(), (LINE,), lambda u: np.exp(u[0])),
    "log": Case(MinusLog(), (ABOVE_0,), lambda u: -np.log(u[0])),
    "entr": Case(MinusEntropy(), (ABOVE_0,), lambda u: u[0] * np.log(u[0])),
    "rel_entr": Case(RelativeEntropy(), (ABOVE_0,) * 2, lambda u: u[0] * np.log(u[0] / u[1])),
    "log_sum_exp": Case(LogSumExp(), (LINE,) * 3, lambda u: np.log(np.exp(u).sum())),
    "u^3": Case(RealPower(Fraction(3)), (ABOVE_0,), lambda u: u[0] ** 3),
    "u^4": Case(RealPower(Fraction(4)), (LINE,), lambda u: u[0] ** 4),
    "u^(3/2)": Case(RealPower(Fraction(3, 2)), (ABOVE_0,), lambda u: u[0] ** 1.5),
    "u^1.1": Case(RealPower(Fraction(11, 10)), (ABOVE_0,), lambda u: u[0] ** 1.1),
    "-sqrt": Case(RealPower(Fraction(1, 2)), (ABOVE_0,), lambda u: -np.sqrt(u[0])),
    "-u^0.3": Case(RealPower(Fraction(3, 10)), (ABOVE_0,), lambda u: -(u[0] ** 0.3)),
    "1/u": Case(RealPower(Fraction(-1)), (ABOVE_0,), lambda u: 1 / u[0]),
    "u^-1.5": Case(RealPower(Fraction(-3, 2)), (ABOVE_0,), lambda u: u[0] ** -1.5),
    "geo_mean": Case(
        MinusGeometricMean((Fraction(1, 2), Fraction(1, 3), Fraction(1, 6))),
        (ABOVE_0,) * 3,
        lambda u: -np.prod(u ** np.array([1 / 2, 1 / 3, 1 / 6])),
    ),
    "matrix_frac": Case(MatrixFraction(2), ((0.0, 0.0),) * 6, _fraction),
}


def points(case, seed, count):
    rng = np.random.default_rng(seed)
    if isinstance(case.atom, MatrixFraction):
        return [_matrix(rng) for _ in range(count)]
    low, high = np.array(case.box).T
    return list(rng.uniform(low, high, (count, len(low))))


def at(case, u):
    return case.atom.value([arb(each) for each in u.tolist()])


def on(plane, u):
    return float(plane.constant) + float(np.array([float(s) for s in plane.slope]) @ u)


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_plain_formulas(name):
    case = CASES[name]
    for u in points(case, 1, 20):
        value = at(case, u)
        assert float(value.mid()) == pytest.approx(float(case.plain(u)), rel=1e-9, abs=1e-9)
        assert float(value.rad()) < 1e-9


@pytest.mark.parametrize("name", CASES)
def test_planes_are_proved_touch_the_function_and_are_below_it(name):
    case = CASES[name]
    tried = points(case, 2, 40)
    for u in tried[:10]:
        plane = SupportingPlane.of(case.atom, case.atom.rounded(case.atom.slope(u)))
        assert plane.proved(case.atom)
        assert on(plane, u) == pytest.approx(float(case.plain(u)), rel=1e-7, abs=1e-7)
        assert all(on(plane, v) <= float(case.plain(v)) + 1e-9 for v in tried)


@pytest.mark.parametrize("name", CASES)
def test_a_plane_that_is_too_high_is_not_proved(name):
    case = CASES[name]
    plane = SupportingPlane.of(case.atom, case.atom.rounded(case.atom.slope(points(case, 3, 1)[0])))
    higher = SupportingPlane(plane.slope, plane.constant + Fraction(1, 10**6))
    assert not higher.proved(case.atom)


@pytest.mark.parametrize("name", CASES)
def test_a_plane_with_a_wrong_gradient_is_not_proved(name):
    case = CASES[name]
    plane = SupportingPlane.of(case.atom, case.atom.rounded(case.atom.slope(points(case, 4, 1)[0])))
    for k, step in product(range(len(plane.slope)), (Fraction(1, 100), Fraction(-1, 100))):
        slope = tuple(s + step * (i == k) for i, s in enumerate(plane.slope))
        moved = SupportingPlane(slope, plane.constant)
        try:
            proved = moved.proved(case.atom)
        except OutsideDomain:
            continue
        # What is proved all the same is true: below the function wherever it is tried.
        if proved:
            tried = points(case, 5, 200)
            assert all(on(moved, v) <= float(case.plain(v)) + 1e-9 for v in tried)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"matrix_frac"}))
def test_the_conjugate_is_the_largest_difference_over_a_grid(name):
    """The slow twin: no point of a grid exceeds it, and near the touching point it is reached."""
    case = CASES[name]
    u = points(case, 6, 1)[0]
    slope = case.atom.rounded(case.atom.slope(u))
    floats = np.array([float(s) for s in slope])
    grids = [np.linspace(*box, 9) for box in case.box]
    largest = max(floats @ np.array(v) - float(case.plain(np.array(v))) for v in product(*grids))
    conjugate = float(case.atom.conjugate(slope).mid())
    assert largest <= conjugate + 1e-9
    assert floats @ u - float(case.plain(u)) == pytest.approx(conjugate, abs=1e-7)


@pytest.mark.parametrize(
    ("atom", "slope"),
    [
        (Largest(), (1, 1)),
        (Largest(), (2, -1)),
        (LargestSum(Fraction(2)), (2, 0, 0)),
        (QuadOverLin(), (2, 0)),
        (EuclideanNorm(), (1, 1)),
        (Exponential(), (-1,)),
        (MinusLog(), (0,)),
        (RelativeEntropy(), (1, -Fraction(999, 1000))),
        (LogSumExp(), (Fraction(1, 2), Fraction(1, 3))),
        (LogSumExp(), (2, -1)),
        (RealPower(Fraction(-1)), (1,)),
        (RealPower(Fraction(1, 2)), (0,)),
        (MinusGeometricMean((Fraction(1, 2),) * 2), (-Fraction(1, 2), -Fraction(49, 100))),
        (MatrixFraction(1), (2, 0)),
    ],
)
def test_slopes_without_a_plane_are_refused(atom, slope):
    with pytest.raises(OutsideDomain):
        atom.conjugate(tuple(map(Fraction, slope)))


@pytest.mark.parametrize(
    ("atom", "u"),
    [
        (MinusLog(), [0]),
        (MinusEntropy(), [-1]),
        (RelativeEntropy(), [1, 0]),
        (RelativeEntropy(), [0, -1]),
        (QuadOverLin(), [1, 0]),
        (RealPower(Fraction(-1)), [0]),
        (RealPower(Fraction(3)), [-1]),
        (RealPower(Fraction(1, 2)), [-1]),
        (MinusGeometricMean((Fraction(1, 2),) * 2), [-1, 1]),
        (MatrixFraction(2), [1, 1, 1, 2, 2, 1]),
    ],
)
def test_values_outside_of_the_domain_are_not_finite(atom, u):
    assert not atom.value(list(map(arb, u))).is_finite()


@pytest.mark.parametrize(
    ("atom", "u"),
    [
        (MinusEntropy(), [0]),
        (RelativeEntropy(), [0, 0]),
        (RealPower(Fraction(1, 2)), [0]),
        (MinusGeometricMean((Fraction(1, 2),) * 2), [0, 1]),
    ],
)
def test_values_at_the_edge_of_the_domain_are_0(atom, u):
    assert atom.value(list(map(arb, u))) == 0


def test_bounds_of_a_ball_are_exact_numbers_on_both_sides():
    root = arb(2).sqrt()
    assert lower(root) ** 2 < 2 < upper(root) ** 2
    assert lower(ball(Fraction(1, 4))) == upper(ball(Fraction(1, 4))) == Fraction(1, 4)
