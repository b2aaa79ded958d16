"""Linear programs that bound a convex one from below, in floats: they suggest supporting planes.

Each node is a free variable above planes that touch its function. As planes are added where the
linear program has its optimum (Kelley 1960), its value rises to that of the convex program; the
multipliers of its planes mix those of one node to a single plane.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from mechdesign.base import Booleans, Floats
from mechdesign.convex.atoms import Affine, rational
from mechdesign.convex.reading import ConvexProgram, SupportingPlane, load
from mechdesign.convex.statement import Statement
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.lp.constraints import Constraints

_TOLERANCE = 1e-10  # the feasibility tolerances of the solver: the least that it accepts


@dataclass(frozen=True)
class Suggestion:
    """The solution of the linear program: a table, planes and multipliers, none of them proved."""

    value: float  # its optimum: a lower bound, about
    matrix: Floats  # shape (outputs, inputs), the table of the optimum
    nodes: Floats  # their values in it
    planes: tuple[SupportingPlane, ...]  # one for each node
    multipliers: tuple[Fraction, ...]  # one for each convex constraint, at least 0
    equalities: Floats  # the multipliers of the equations of the polytope
    inequalities: Floats  # those of its inequalities


class Relaxation:
    """The linear program, to which planes are added: first those that touch at a table.

    Shapes: `near` (outputs, inputs), that table. ``polytope`` has all constraints but the convex
    ones of ``program``.
    """

    # Nodes and objective are given to the solver in units of what they are near the table, since
    # its tolerances are absolute.

    def __init__(self, program: ConvexProgram, polytope: Polytope, near: Floats) -> None:
        self.program, self.polytope = program, polytope
        self.columns = program.size + len(program.nodes)
        self.owners: list[int] = []
        self.planes: list[SupportingPlane] = []
        self._known: set[tuple[int, tuple[Fraction, ...]]] = set()
        # Linear constraints do not mention the nodes: columns of zeros on the right. They are built
        # once, since only cuts are added from round to round.
        self._base = [
            (
                sparse.hstack(
                    [a, sparse.csr_array((a.shape[0], len(program.nodes)))], format="csr"
                ),
                b,
            )
            for a, b in (polytope.equalities, polytope.inequalities)
        ]
        self._constraints = matrix_of_forms(program.constraints, self.columns)
        flat = [form for node in program.nodes for form in node.arguments]
        self._arguments = matrix_of_forms(flat, self.columns)
        sizes = [len(node.arguments) for node in program.nodes]
        # Arguments of all nodes in one matrix; those of node k begin at row _first[k].
        self._first = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        self._objective = np.zeros(self.columns)
        for v, coefficient in program.objective.terms.items():
            self._objective[v] = float(coefficient)
        _, values = program.floats(near)
        self._units = np.ones(self.columns)
        # Entries of the table are probabilities, of order 1 already; a node can be of any size.
        self._units[program.size :] = _unit(values[program.size :])
        value = float(self._objective @ values + float(program.objective.constant))
        self._scale = float(_unit(np.array([value]))[0])
        # Each free node needs a plane below it, else the first program would be unbounded.
        self.touch(near)

    def touch(self, matrix: Floats, only: set[int] | None = None) -> int:
        """Add planes that touch the functions at a table; the number of new ones."""
        arguments, _ = self.program.floats(matrix)
        before = len(self.planes)
        for k, (node, u) in enumerate(zip(self.program.nodes, arguments, strict=True)):
            if (only is None or k in only) and np.isfinite(u).all():
                # Slopes are made exact before the plane is: its constant is the conjugate at
                # exactly this slope, so that the plane is valid however inaccurate the gradient
                # was.
                for suggested in node.atom.slopes(u):
                    slope = node.atom.rounded(suggested)
                    # A repeated row would be degenerate, and `minimise` stops when no plane is new.
                    if (k, slope) not in self._known:
                        self._known.add((k, slope))
                        self.owners.append(k)
                        self.planes.append(SupportingPlane.of(node.atom, slope))
        return len(self.planes) - before

    def solve(self) -> Suggestion:
        """Return the optimum of the planes so far; raise Infeasible or SolverFailure if none."""
        (equal, right), (lower, bounds) = self._base
        above, constants = self._cuts()
        convex, offsets = self._constraints
        units = sparse.diags_array(self._units)
        # Each cut is scaled by the unit of its node, too: its slack is then of order 1, as the
        # solver's absolute tolerance expects.
        rows = 1 / self._units[self.program.size + np.array(self.owners, dtype=np.int64)]
        result = linprog(
            self._objective * self._units / self._scale,
            A_ub=sparse.vstack(
                [-lower, sparse.diags_array(rows) @ above @ units, convex @ units], format="csr"
            ),
            b_ub=np.concatenate([-bounds, -constants * rows, -offsets]),
            A_eq=equal,
            b_eq=right,
            bounds=[(0, None)] * self.program.size + [(None, None)] * len(self.program.nodes),
            method="highs",
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        if result.status == 2:
            raise Infeasible("no mechanism satisfies all the constraints at this privacy")
        if result.x is None or result.status:
            raise SolverFailure(f"the linear program of planes was not solved: {result.message}")
        # SciPy's marginals are derivatives by the right side, at most 0 for `<=`: Lagrange
        # multipliers are their negatives, in units of the objective.
        dual = -result.ineqlin.marginals * self._scale
        x = result.x * self._units
        inequalities, weights, multipliers = np.split(
            dual, [len(bounds), len(bounds) + len(constants)]
        )
        # The multipliers of cuts are not scaled back by `rows`: a node's weights matter in
        # proportion only, and all its cuts share the same unit.
        size = self.program.size
        return Suggestion(
            float(self._objective @ x) + float(self.program.objective.constant),
            x[:size].reshape(self.program.outputs.size, -1),
            x[size:],
            self._mixed(weights),
            # A multiplier that is negative by rounding would invalidate the minorant; 0 does not.
            tuple(max(Fraction(0), rational(value)) for value in multipliers.tolist()),
            result.eqlin.marginals * self._scale,
            inequalities,
        )

    def _cuts(self) -> tuple[sparse.csr_array, Floats]:
        """Return the constraints ``slope u - t <= -constant`` of all planes: matrix and offsets."""
        arguments, constants = self._arguments
        rows, cells, values = [], [], []
        for r, (k, plane) in enumerate(zip(self.owners, self.planes, strict=True)):
            for place, slope in enumerate(plane.slope):
                rows.append(r)
                cells.append(int(self._first[k]) + place)
                values.append(float(slope))
        count = len(self.planes)
        slopes = sparse.csr_array((values, (rows, cells)), shape=(count, arguments.shape[0]))
        nodes = sparse.csr_array(
            (np.ones(count), (np.arange(count), self.program.size + np.array(self.owners))),
            shape=(count, self.columns),
        )
        offset = np.array([float(plane.constant) for plane in self.planes])
        # u = arguments x + constants: a plane in u becomes one in the table and in earlier nodes.
        return sparse.csr_array(slopes @ arguments - nodes), slopes @ constants + offset

    def _mixed(self, weights: Floats) -> tuple[SupportingPlane, ...]:
        """Return one plane for each node: the mean of its planes, weighted by their multipliers."""
        means = [np.zeros(len(node.arguments)) for node in self.program.nodes]
        totals = np.zeros(len(means))
        first: dict[int, SupportingPlane] = {}
        # A convex combination of planes below a function is a plane below it, and at an optimum of
        # the linear program it is as good as all of them together (linear programming duality). Its
        # constant is proved anew from the conjugate, which is at least the mean of the constants.
        for k, plane, weight in zip(self.owners, self.planes, weights.tolist(), strict=True):
            first.setdefault(k, plane)
            means[k] += max(weight, 0.0) * np.array([float(each) for each in plane.slope])
            totals[k] += max(weight, 0.0)
        mixed_planes = []
        for k, node in enumerate(self.program.nodes):
            if totals[k] <= 0:  # it adds nothing, but its weight need not be 0 exactly
                mixed_planes.append(first[k])
                continue
            slope = node.atom.rounded(means[k] / totals[k])
            mixed_planes.append(SupportingPlane.of(node.atom, slope))
        return tuple(mixed_planes)


def _unit(values: Floats) -> Floats:
    """Return absolute values, with 1 in the place of those that are tiny or not finite."""
    sizes = np.abs(values)
    return np.where(np.isfinite(sizes) & (sizes > 1e-12), sizes, 1.0)


# ------------------------------------------------------------------------------------------------
# Convex programs over mechanisms in floats, by the conic solvers of cvxpy.
#
# Nothing here is trusted: it only suggests tables.


_FILTERS = Lock()

# Solvers with their options, in the order in which they are tried.
_ATTEMPTS: tuple[tuple[str, dict[str, float]], ...] = (
    ("CLARABEL", {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}),
    ("CLARABEL", {}),
    ("SCS", {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}),
)


def optimum(statement: Statement, polytope: Polytope, scale: float) -> Floats:
    """Return a table with nearly the least objective, of shape (outputs, inputs)."""
    # Solvers are given the objective divided by ``scale``.
    cvxpy, table = load(), statement.variable
    lower, bounds = polytope.inequalities
    constraints = [*_equations(statement, polytope), table >= 0, *statement.constraints]
    if len(bounds):
        constraints.append(lower @ cvxpy.vec(table, order="C") >= bounds)
    _solved(cvxpy.Problem(cvxpy.Minimize(statement.objective / scale), constraints))
    return _value(table)


def interior(statement: Statement, polytope: Polytope, tight: Booleans) -> tuple[Floats, float]:
    """Return a table far from every constraint but the ``tight`` ones, and its margin."""
    cvxpy, table = load(), statement.variable
    margin = cvxpy.Variable()
    left, bounds = _all_inequalities(polytope)
    # Bounded, since without inequalities that are not tight the margin could be anything.
    constraints = [*_equations(statement, polytope), margin <= 1]
    x = cvxpy.vec(table, order="C")
    constraints.append(left[~tight] @ x >= bounds[~tight] + margin)
    if tight.any():
        constraints.append(left[tight] @ x == bounds[tight])
    # DCP form: expr <= 0 with a convex expr, so that a margin on the left keeps it convex.
    for constraint in statement.constraints:
        constraints.append(constraint.expr + margin <= 0)
    _solved(cvxpy.Problem(cvxpy.Maximize(margin), constraints))
    return _value(table), float(margin.value)


def always_tight(statement: Statement, polytope: Polytope) -> Booleans:
    """Return which inequalities hold with equality for every mechanism, entries at the end."""
    # Each has a slack of its own in the program, small enough that all that can be slack are so at
    # once.
    cvxpy, table = load(), statement.variable
    left, bounds = _all_inequalities(polytope)
    slack = cvxpy.Variable(len(bounds))
    x = cvxpy.vec(table, order="C")
    constraints = [*_equations(statement, polytope), left @ x >= bounds + slack, slack >= 0]
    # By convexity the mean of tables, each of which makes one inequality slack, makes all of them
    # slack at once, if the slacks asked for are small. What is wrongly taken for tight, because its
    # largest slack is below the threshold, costs a little of the objective and no validity.
    constraints.append(slack <= 1e-3)
    _solved(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(slack)), constraints))
    return np.asarray(slack.value) < 1e-8


def _all_inequalities(polytope: Polytope) -> tuple[Any, Floats]:
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
            # Tolerances as tight as the first ones often end in "optimal_inaccurate" and a warning.
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


# ------------------------------------------------------------------------------------------------
# The mechanisms with given privacy and properties, as exact constraints and as float matrices.


@dataclass(frozen=True)
class Polytope:
    """A polyhedron of points x >= 0 with exact linear constraints."""

    size: int  # the number of variables
    groups: tuple[Constraints, ...]  # all constraints but x >= 0

    def forms(self, equality: bool) -> Iterator[Affine]:
        """Yield the forms that are 0, or those that are at least 0, with x >= 0 at the end."""
        for group in self.groups:
            if group.equality == equality:
                for cells in group.cells.tolist():
                    terms: dict[int, Fraction] = {}
                    for v, a in zip(cells, group.coefficients, strict=True):
                        # A variable may occur twice in a constraint, and its coefficients may
                        # cancel.
                        terms[v] = terms.get(v, Fraction(0)) + a
                    yield Affine(-group.bound, {v: a for v, a in terms.items() if a})
        if not equality:
            yield from map(Affine.variable, range(self.size))

    @cached_property
    def equalities(self) -> tuple[sparse.csr_array, Floats]:
        """The constraint matrix A and the right side b of A x = b."""
        return matrix_of([g for g in self.groups if g.equality], self.size)

    @cached_property
    def inequalities(self) -> tuple[sparse.csr_array, Floats]:
        """The constraint matrix A and the right side b of A x >= b, without x >= 0."""
        return matrix_of([g for g in self.groups if not g.equality], self.size)


def matrix_of(groups: Sequence[Constraints], variables: int) -> tuple[sparse.csr_array, Floats]:
    """Return the constraint matrix of some groups, sparse, and the right sides, in floats."""
    rows, cells, values, bounds = [], [], [], []
    count = 0
    for group in groups:
        number, terms = group.cells.shape
        rows.append(np.repeat(np.arange(count, count + number), terms))
        cells.append(group.cells.ravel())
        values.append(np.tile([float(c) for c in group.coefficients], number))
        bounds.append(np.full(number, float(group.bound)))
        count += number
    if not count:
        return sparse.csr_array((0, variables)), np.zeros(0)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cells)))
    # Conversion from coordinates adds up entries at the same place, as `forms` does.
    matrix = sparse.csr_array(sparse.coo_array(entries, shape=(count, variables)))
    return matrix, np.concatenate(bounds)


def matrix_of_forms(forms: Iterable[Affine], variables: int) -> tuple[sparse.csr_array, Floats]:
    """Return the coefficients of some forms as a sparse matrix, and their constants, in floats."""
    rows, cells, values, constants = [], [], [], []
    for r, form in enumerate(forms):
        constants.append(float(form.constant))
        for v, coefficient in form.terms.items():
            rows.append(r)
            cells.append(v)
            values.append(float(coefficient))
    matrix = sparse.coo_array((values, (rows, cells)), shape=(len(constants), variables))
    return sparse.csr_array(matrix), np.array(constants)
