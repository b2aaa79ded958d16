"""Convex programs over mechanisms in floats, by the conic solvers of cvxpy.

Nothing here is trusted: it only suggests tables.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from mechdesign.base.arrays import Booleans, Floats
from mechdesign.convex.polytope import Polytope
from mechdesign.convex.reading import load
from mechdesign.convex.statement import Statement
from mechdesign.exceptions import Infeasible, SolverFailure

_FILTERS = Lock()

_ATTEMPTS: tuple[tuple[str, dict[str, float]], ...] = (
    ("CLARABEL", {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}),
    ("CLARABEL", {}),
    ("SCS", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}),
)
"""Solvers with their options, in the order in which they are tried."""


def optimum(statement: Statement, polytope: Polytope, scale: float) -> Floats:
    """The table of least objective, about; shape (outputs, inputs).

    Solvers are given the objective divided by ``scale``.

    Raises
    ------
    Infeasible
        The solver found none that satisfies the constraints.
    SolverFailure
        No solver came to an end.
    """
    cvxpy, table = load(), statement.variable
    lower, bounds = polytope.inequalities
    constraints = [*_equations(statement, polytope), table >= 0, *statement.constraints]
    if len(bounds):
        constraints.append(lower @ cvxpy.vec(table, order="C") >= bounds)
    _solved(cvxpy.Problem(cvxpy.Minimize(statement.objective / scale), constraints))
    return _value(table)


def interior(statement: Statement, polytope: Polytope, tight: Booleans) -> tuple[Floats, float]:
    """A table far from every constraint but the ``tight`` ones, and how far.

    Parameters
    ----------
    statement : Statement
        Its convex constraints are satisfied with a margin, too.
    polytope : Polytope
        Privacy and properties.
    tight : numpy.ndarray of bool
        Which inequalities hold with equality for every such table, entries of the table at the end.
    """
    cvxpy, table = load(), statement.variable
    margin = cvxpy.Variable()
    left, bounds = _all_inequalities(polytope)
    constraints = [*_equations(statement, polytope), margin <= 1]
    x = cvxpy.vec(table, order="C")
    constraints.append(left[~tight] @ x >= bounds[~tight] + margin)
    if tight.any():
        constraints.append(left[tight] @ x == bounds[tight])
    for constraint in statement.constraints:
        constraints.append(constraint.expr + margin <= 0)
    _solved(cvxpy.Problem(cvxpy.Maximize(margin), constraints))
    return _value(table), float(margin.value)


def always_tight(statement: Statement, polytope: Polytope) -> Booleans:
    """Which inequalities hold with equality for every mechanism, entries at the end.

    Each has a slack of its own in the program, small enough that all that can be slack are so at
    once.
    """
    cvxpy, table = load(), statement.variable
    left, bounds = _all_inequalities(polytope)
    slack = cvxpy.Variable(len(bounds))
    x = cvxpy.vec(table, order="C")
    constraints = [*_equations(statement, polytope), left @ x >= bounds + slack, slack >= 0]
    constraints.append(slack <= 1e-3)
    _solved(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(slack)), constraints))
    return np.asarray(slack.value) < 1e-8


def _all_inequalities(polytope: Polytope) -> tuple[Any, Floats]:
    from scipy import sparse

    lower, bounds = polytope.inequalities
    unit = sparse.eye_array(polytope.size, format="csr")
    joined = sparse.csr_array(sparse.vstack([lower, unit], format="csr"))
    return joined, np.concatenate([bounds, np.zeros(polytope.size)])


def _equations(statement: Statement, polytope: Polytope) -> Sequence[Any]:
    left, right = polytope.equalities
    return [left @ load().vec(statement.variable, order="C") == right]


def _value(table: Any) -> Floats:
    return np.asarray(table.value, dtype=np.float64)


def _solved(problem: Any) -> None:
    """Solve by the first solver that comes to an end."""
    cvxpy, reasons = load(), []
    for solver, options in _ATTEMPTS:
        try:
            # Filters belong to the whole process: threads take turns, and other warnings are shown
            with _FILTERS, warnings.catch_warnings():
                # Of inaccurate solutions: they are certified later
                warnings.filterwarnings("ignore", module=r"(cvxpy|mechdesign\.convex)\b")
                problem.solve(solver=solver, **options)
        except (cvxpy.SolverError, ArithmeticError, ValueError) as error:
            reasons.append(f"{solver}: {error}")
            continue
        if problem.status in ("optimal", "optimal_inaccurate"):
            return
        if problem.status == "infeasible":
            raise Infeasible("no mechanism satisfies all the constraints at this privacy")
        reasons.append(f"{solver}: {problem.status}")
    raise SolverFailure(f"no conic solver found an optimum: {'; '.join(reasons)[:300]}")
