"""A general solver for tests that compare with one."""

import warnings

import cvxpy


def solve(problem: cvxpy.Problem, accuracy: float = 1e-6, **options: float) -> None:
    """Solve a convex problem by Clarabel, to this accuracy: of both residuals and of the gap.

    The numbers are checked, not the solver's verdict. Whether it reaches the last of the digits
    that it asks of itself, or stops just short with a warning, depends on the processor.
    """
    data, chain, inverse = problem.get_problem_data(cvxpy.CLARABEL, solver_opts=options)
    found = chain.solve_via_data(problem, data, solver_opts=options)
    gap = abs(found.obj_val - found.obj_val_dual) / max(1.0, abs(found.obj_val))
    # One by one: they are no numbers where there is no solution.
    assert all(each < accuracy for each in (found.r_prim, found.r_dual, gap)), found.status
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        problem.unpack_results(found, chain, inverse)
