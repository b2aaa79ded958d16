"""The solver that other tests compare with must not pass off a poor answer as a good one."""

import cvxpy
import pytest

from tests.general_solver import solve

x = cvxpy.Variable(2)
ROUND = cvxpy.Minimize(cvxpy.norm(x))


def test_solutions_are_accurate() -> None:
    problem = cvxpy.Problem(ROUND, [cvxpy.sum(x) == 1])
    solve(problem)
    assert problem.value == pytest.approx(0.5**0.5, rel=1e-6)


def test_what_stops_early_or_has_no_solution_is_refused() -> None:
    with pytest.raises(AssertionError):
        solve(cvxpy.Problem(ROUND, [cvxpy.sum(x) == 1]), max_iter=3)
    with pytest.raises(AssertionError):
        solve(cvxpy.Problem(ROUND, [cvxpy.sum(x) == 1, cvxpy.sum(x) == 2]))
    with pytest.raises(AssertionError):
        solve(cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x))))
