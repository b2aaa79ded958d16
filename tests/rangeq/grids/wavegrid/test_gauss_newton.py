"""Damped Gauss-Newton against general solvers of least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import optimize

from mechdesign.base.numbers import Floats
from rangeq.grids.fitting import Expansion, climb

TIMES = np.linspace(0, 2, 15)


class Problem(NamedTuple):
    """Residuals and their slopes; the function is minus half the sum of the squared residuals."""

    residuals: Callable[[Floats], Floats]
    slopes: Callable[[Floats], Floats]

    def objective(self, point: Floats, state: Floats | None) -> tuple[float, Floats]:
        """The value; what is kept of a point is the point itself."""
        return -0.5 * float((self.residuals(point) ** 2).sum()), point

    def expansion(self, point: Floats, state: Floats) -> Expansion[Floats]:
        np.testing.assert_array_equal(point, state)
        slopes = self.slopes(point)
        return Expansion(slopes, -slopes.T @ self.residuals(point), slopes.T @ slopes)


def decay(rng: np.random.Generator) -> Problem:
    """A height and a rate of decay, from noisy values: shape (2,)."""
    values = 3 * np.exp(-1.5 * TIMES) + 0.05 * rng.normal(size=len(TIMES))

    def slopes(x: Floats) -> Floats:
        falling = np.exp(-x[1] * TIMES)
        return np.stack([falling, -x[0] * TIMES * falling], axis=1)

    return Problem(lambda x: x[0] * np.exp(-x[1] * TIMES) - values, slopes)


def bounded() -> Problem:
    """One residual, arctan(x): from beyond 1.4 undamped steps move away from 0."""
    return Problem(np.arctan, lambda x: (1 / (1 + x**2))[:, None])


def test_linear_problems_are_solved() -> None:
    rng = np.random.default_rng(1)
    rows, right = rng.normal(size=(12, 4)), rng.normal(size=12)
    problem = Problem(lambda x: rows @ x - right, lambda x: rows)
    point, value, _, _ = climb(np.zeros(4), problem.objective, problem.expansion, 20, 1e-14)
    expected, squares, _, _ = np.linalg.lstsq(rows, right)
    np.testing.assert_allclose(point, expected, atol=1e-7)
    assert value == pytest.approx(-squares[0] / 2)


@pytest.mark.parametrize("start", [(1.0, 0.0), (3.0, 1.5), (10.0, 3.0), (0.5, -1.0)])
def test_the_maximum_is_that_of_a_general_solver(start: tuple[float, float]) -> None:
    problem = decay(np.random.default_rng(2))
    point, value, state, here = climb(
        np.array(start), problem.objective, problem.expansion, 100, 1e-14
    )
    expected = optimize.least_squares(
        problem.residuals, start, problem.slopes, xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    np.testing.assert_allclose(point, expected.x, atol=1e-5)
    assert value == pytest.approx(-expected.cost)
    # What is returned is all of the last point.
    assert value == problem.objective(point, None)[0]
    np.testing.assert_array_equal(state, point)
    for found, known in zip(here, problem.expansion(point, point), strict=True):
        np.testing.assert_array_equal(found, known)


def test_steps_that_are_too_long_are_damped() -> None:
    problem, start = bounded(), np.array([3.0])
    here = problem.expansion(start, start)
    undamped = start + np.linalg.solve(here.hessian, here.gradient)
    assert problem.objective(undamped, None) < problem.objective(start, None)
    point, _, _, _ = climb(start, problem.objective, problem.expansion, 50, 1e-16)
    np.testing.assert_allclose(point, 0, atol=1e-6)


def test_every_step_gains_and_there_are_no_more_than_asked() -> None:
    problem, start = decay(np.random.default_rng(3)), np.array([10.0, 3.0])
    values = [
        climb(start, problem.objective, problem.expansion, steps, 0.0)[1] for steps in range(6)
    ]
    assert values[0] == problem.objective(start, None)[0]
    assert (np.diff(values) > 0).all()
    # One step gains less than this, and is the last.
    once = climb(start, problem.objective, problem.expansion, 50, 1e9)[1]
    assert once == values[1]


def test_a_maximum_is_not_left() -> None:
    problem, top = bounded(), np.zeros(1)
    point, value, _, _ = climb(top, problem.objective, problem.expansion, 10, 0.0)
    assert point.tolist() == [0.0]
    assert value == 0


def test_the_objective_is_told_what_was_kept_at_the_last_point() -> None:
    problem, told = bounded(), []

    def objective(point: Floats, state: Floats | None) -> tuple[float, Floats]:
        told.append(None if state is None else float(state[0]))
        return problem.objective(point, state)

    climb(np.array([3.0]), objective, problem.expansion, 50, 1e-16)
    assert told[0] is None
    assert told[1] == 3.0
    # Refused steps leave it as it is, and those taken come nearer to the maximum, 0.
    nearer = [abs(place) for place in told[1:] if place is not None]
    assert nearer == sorted(nearer, reverse=True)
    assert len(nearer) > len(set(nearer))
