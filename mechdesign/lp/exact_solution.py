"""Exact primal and dual solutions of a program, which prove optimality, from a basis of floats.

1. HiGHS suggests an optimal basis. Its linear system is solved exactly (`simplex.Vertex`): a vertex
   x and multipliers y.
2. If x or y breaks a sign condition, however slightly, the program is re-centred at (x, y) and
   scaled until that violation is of size one, and HiGHS continues from the basis: iterative
   refinement of linear programs (Gleixner, Steffy and Wolter, INFORMS J. Computing 28(3), 2016,
   section 3), with exact vertices. This is repeated until no sign is wrong: then x is optimal, and
   y proves it.
3. Where refinement does not succeed, exact simplex steps finish the work, as many as are affordable
   for the size of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpq
from scipy import sparse

from mechdesign.base import Floats
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.lp.basis import ONE, Program, SingularBasis, to_fraction
from mechdesign.lp.highs import INTERIOR_POINT_CONSTRAINTS, FloatProgram, Progress, solve, to_float
from mechdesign.lp.simplex import Basis, Problem, Vertex, reoptimised

MAX_REFINEMENTS = 40
MAX_WORK = 2_000_000  #: Exact simplex steps times constraints of the program: about a minute.

# Refinements without progress after which refinement ends.
#
# A refinement that lowers the primal or dual violation may at first raise the other a little.
_PATIENCE = 3

# The scaled distance beyond which one is treated as infinite; scaled costs are clipped to it.
_FAR = 1e9

#: The unit in which distances are scaled if none is violated, and the least unit of costs.
#:
#: A smaller unit of costs would scale them out of proportion.
_FINE, _FINEST = fmpq(1, 10**6), fmpq(1, 10**9)


@dataclass(frozen=True)
class Solution:
    """A solution of a program: its optimum and the multipliers that prove it, both exact."""

    x: list[Fraction]
    multipliers: list[Fraction]  # one for each constraint, counted through all groups
    refinements: int  # the number that were needed


def certify(
    program: Program,
    progress: Progress | None = None,
    max_refinements: int = MAX_REFINEMENTS,
    max_work: int = MAX_WORK,
    denied: Callable[[], None] | None = None,
    sizes: Floats | None = None,
) -> Solution:
    """Solve a program of `mechanism_program`, reduced or not, exactly.

    ``denied`` is called where floats find no feasible point, and may raise an error with a proof
    that there is none. ``sizes`` (variables,) are about as large as the variables.
    """
    # If ``denied`` returns, exact simplex steps decide. The sizes scale the variables for the
    # interior point method, which cannot tell 1e-9 from 0.
    problem = Problem.of(program)
    vertex, refinements = _best_vertex(problem, max_refinements, max_work, progress, denied, sizes)
    if not vertex.optimal:
        raise SolverFailure(
            f"the program, of {len(problem.constraints)} constraints, was not solved exactly by"
            f" {refinements} refinements and {max_work // len(problem.constraints)} simplex steps"
        )
    return Solution(
        [to_fraction(value) for value in vertex.x],
        [to_fraction(value) for value in vertex.y],
        refinements,
    )


def _best_vertex(
    problem: Problem,
    max_refinements: int,
    max_work: int,
    progress: Progress | None,
    denied: Callable[[], None] | None,
    sizes: Floats | None,
) -> tuple[Vertex, int]:
    """Return an optimal vertex, else the best one found, and the number of refinements."""
    floats = FloatProgram.of(problem)
    steps = max_work // len(problem.constraints)
    large = len(problem.constraints) > INTERIOR_POINT_CONSTRAINTS
    # Bases are the same at every scaling of variables, so that the exact solution need not know.
    first = floats if sizes is None or not large else floats.scaled(sizes)
    vertex = _first_vertex(problem, first, steps, progress, denied)
    return refined(vertex, floats, max_refinements, max_work, progress)


def refined(
    vertex: Vertex,
    floats: FloatProgram,
    max_refinements: int = MAX_REFINEMENTS,
    max_work: int = MAX_WORK,
    progress: Progress | None = None,
) -> tuple[Vertex, int]:
    """Return an optimal vertex, from one nearby, else the best one found, and the refinements."""
    problem, best = vertex.problem, vertex
    steps = max_work // len(problem.constraints)
    refinements = in_vain = 0
    unit = ONE
    # Sign conditions are exact: there is no tolerance, and an optimal vertex is its own proof.
    # Violations below the solver's tolerances are invisible to it until they are magnified.
    while not vertex.optimal and refinements < max_refinements and in_vain < _PATIENCE:
        refinements += 1
        if progress is not None:
            progress(f"refinement {refinements}")
        try:
            vertex = Vertex(problem, _refined(vertex, floats, unit, progress))
        except (SolverFailure, Infeasible, SingularBasis):
            break  # floats could not solve the scaled program
        improved = _violation(vertex) < _violation(best)
        # A feasible vertex with smaller violations of costs is progress, too: next time that primal
        # feasibility is lost, costs keep the resolution that they have reached.
        closer = vertex.primal_violation == 0 and 0 < vertex.dual_violation < unit
        best = vertex if improved else best
        unit = max(vertex.dual_violation, _FINEST) if closer else unit
        in_vain = 0 if improved or closer else in_vain + 1
    if not best.optimal and steps:
        if progress is not None:
            progress("exact simplex steps")
        # Before the steps reach an optimum they may increase the violation.
        vertex = reoptimised(best, steps)
        best = vertex if vertex.optimal else best
    return best, refinements


def _violation(vertex: Vertex) -> fmpq:
    return max(vertex.primal_violation, vertex.dual_violation)


def _first_vertex(
    problem: Problem,
    floats: FloatProgram,
    steps: int,
    progress: Progress | None,
    denied: Callable[[], None] | None,
) -> Vertex:
    """Return the vertex that HiGHS finds."""
    # Where it finds none, or says that there is none, exact simplex steps decide, if affordable.
    failure: Exception | None = None
    # Presolve may decide infeasibility within tolerances, or return a basis that is singular in
    # exact arithmetic; without it HiGHS works on the very program.
    for presolve in (True, False):
        try:
            return Vertex(problem, solve(floats, presolve=presolve, progress=progress).basis)
        except (Infeasible, SolverFailure, SingularBasis) as error:
            failure = error
    if denied is not None and isinstance(failure, Infeasible):
        denied()
    # The basis matrix is then the identity, for every program with costs of at least 0:
    # Every slack is basic, and no column: x = 0, and no reduced cost is negative.
    start = Vertex(
        problem,
        Basis(
            np.zeros(len(problem.cost), dtype=np.bool_),
            np.ones(len(problem.constraints), dtype=np.bool_),
        ),
    )
    vertex = reoptimised(start, steps)
    if vertex.primal_violation > 0:
        raise failure if isinstance(failure, Infeasible) else SolverFailure(str(failure))
    return vertex


def _refined(vertex: Vertex, floats: FloatProgram, unit: fmpq, progress: Progress | None) -> Basis:
    """Return a better basis, from the program centred at a vertex, scaled, with slacks."""
    # While the vertex is infeasible, negative reduced costs are set to 0 and the others scaled by
    # 1 / ``unit``, which keeps their accuracy. Once it is feasible, the costs are scaled by their
    # violation. If both were scaled at once, the program could be unbounded.
    equality = vertex.problem.equality
    inequality = np.flatnonzero(~equality)
    rows, variables = floats.matrix.shape
    # A slack that is small and basic has to be magnified as a small variable is; as a column it can
    # have a lower bound of its own, where a row has the bounds of its constraint only.
    slack = sparse.csr_array(
        (-np.ones(len(inequality)), (inequality, np.arange(len(inequality)))),
        shape=(rows, len(inequality)),
    )
    feasible = vertex.primal_violation == 0
    # In z = (x - vertex) / unit the bounds are -distance, the rows have the residual on the right,
    # and the costs are the reduced costs: the same vertices, magnified around this one. Violations
    # become of order 1, which tolerances of 1e-7 cannot overlook.
    near = _FINE if feasible else vertex.primal_violation
    distance = _scaled([*vertex.x, *(vertex.slack[r] for r in inequality)], near)
    # Only fixed slacks leave a residual: those of inequalities are columns now.
    residual = np.where(equality, -_scaled(vertex.slack, vertex.primal_violation), 0.0)
    cost = _scaled(
        [*vertex.reduced, *(vertex.y[r] for r in inequality)],
        vertex.dual_violation if feasible else unit,
    )
    if not feasible:
        cost = np.maximum(cost, 0.0)
    scaled = FloatProgram(
        sparse.csr_array(sparse.hstack([floats.matrix, slack], format="csr")),
        residual,
        residual,
        # A bound that far away cannot become active near the vertex, and numbers beyond 1e9 would
        # spoil the conditioning of the program that has to resolve units.
        np.where(distance < _FAR, -distance, -np.inf),
        np.minimum(cost, _FAR),
    )
    basis = vertex.basis
    # The current basis, with inequality slacks as columns: HiGHS begins where exact arithmetic
    # ended.
    start = Basis(np.concatenate([basis.columns, basis.rows[inequality]]), basis.rows & equality)
    refined = solve(scaled, start, progress=progress).basis
    # Back to slacks by rows: that of an inequality is basic if its column is, or if HiGHS has put
    # the row's own logical variable, which is 0, into the basis instead.
    basic_rows = refined.rows.copy()
    basic_rows[inequality] |= refined.columns[variables:]
    return Basis(refined.columns[:variables], basic_rows)


def _scaled(values: Sequence[fmpq], unit: fmpq) -> Floats:
    """Return ``values`` in units of a violation; as they are if there is none."""
    # Multiplied exactly before it is rounded to a float: differences of 1e-30 survive the
    # conversion.
    scale = 1 / unit if 0 < unit < 1 else ONE
    return np.array([to_float(value * scale) for value in values])
