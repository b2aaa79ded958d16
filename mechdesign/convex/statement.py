"""Objectives and constraints of the table in expressions of cvxpy: checked, and read exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from mechdesign.base import Floats, shown
from mechdesign.convex.atoms import Affine, Largest, combined
from mechdesign.convex.reading import ConvexProgram, Reader, costs_of, load
from mechdesign.exceptions import Infeasible, InvalidExpression
from mechdesign.losses import Loss
from mechdesign.mechanism.values import Values
from mechdesign.properties import Property
from mechdesign.requirements import Inequality, Linear, Relation

#: A function of the table, a variable of cvxpy, that returns a scalar expression of cvxpy.
Objective: TypeAlias = Callable[[Any], Any]

#: A function of the table, a variable of cvxpy, that returns constraints of cvxpy.
Requirements: TypeAlias = Callable[[Any], Iterable[Any]]


@dataclass(frozen=True)
class Statement:
    """An objective and constraints, both as an exact program and as expressions of cvxpy."""

    program: ConvexProgram  # the objective and the constraints that are not linear
    # forms of the table that are at least 0, or 0 where the second is True
    linear: tuple[tuple[Affine, bool], ...]
    loss: Loss | None  # what is minimised if it is linear, or was given as a loss
    variable: Any  # a cvxpy.Variable, the table, shape (outputs, inputs)
    objective: Any  # a cvxpy.Expression, minimised
    constraints: tuple[Any, ...]  # cvxpy.Constraint that are not linear

    def properties(self, wanted: Sequence[Property]) -> tuple[Property, ...]:
        """Return the ``wanted`` properties, followed by that of the linear constraints."""
        if not self.linear:
            return tuple(wanted)
        stated = [self._inequality(form, equality) for form, equality in self.linear]
        return tuple(dict.fromkeys([*wanted, Linear(stated)]))

    def _inequality(self, form: Affine, equality: bool) -> Inequality:
        """Return the constraint form >= 0, or == 0, with a leading coefficient above 0."""
        inputs = self.program.inputs.size
        # a x + b >= 0 and -a x - b <= 0 are the same constraint: one normal form, so that the
        # property and its text do not depend on which side of the relation the user wrote it.
        sign = 1 if form.terms[min(form.terms)] > 0 else -1
        terms = {divmod(v, inputs): sign * c for v, c in form.terms.items()}
        relation: Relation = "==" if equality else ">=" if sign > 0 else "<="
        return Inequality(terms, relation, -sign * form.constant)


def stated(
    objective: Objective | Loss,
    constraints: Requirements | None,
    outputs: Values,
    inputs: Values,
) -> Statement:
    """Return the statement of an objective and of constraints, over tables (outputs, inputs)."""
    cvxpy = load()
    variable = cvxpy.Variable((outputs.size, inputs.size), name="P")
    reader = Reader(variable)
    loss = None
    if isinstance(objective, Loss):
        loss = objective
        form, expression = _of_loss(loss, reader, outputs, inputs)
    else:
        _require_callable("objective", objective)
        expression = _minimised(cvxpy, objective(variable))
        form = Affine.of(reader.forms(expression).item())
        # Variables from `variable.size` on are values of nodes. A form without them is linear in
        # the table, so that the exact simplex method serves, and its gap is 0 instead of about
        # 1e-8.
        if all(v < variable.size for v in form.terms):
            loss = costs_of(form, outputs.size, inputs.size)
    linear: list[tuple[Affine, bool]] = []
    convex: list[Affine] = []
    kept = []
    for constraint in _listed(cvxpy, constraints, variable):
        sides, equality = _sides(constraint)
        forms = [Affine.of(entry) for entry in reader.forms(sides).ravel()]
        # All entries of a constraint go the same way, as cvxpy has them as one: the conic solver
        # is given either all of it or none.
        if any(v >= variable.size for each in forms for v in each.terms):
            convex += forms
            kept.append(constraint)
            continue
        for each in forms:
            if not each.is_constant:
                linear.append((-each, equality))
            # A constraint without variables is decided here: as a row of zeros it would be dropped
            # by some solvers and make the basis of others singular.
            elif each.constant > 0 or (equality and each.constant):
                raise Infeasible(f"the constraint {_brief(constraint)} holds for no table")
    text = repr(objective) if isinstance(objective, Loss) else _brief(expression)
    program = ConvexProgram(outputs, inputs, tuple(reader.nodes), form, tuple(convex), text)
    statement = Statement(program, tuple(linear), loss, variable, expression, tuple(kept))
    _compare(statement, reader)
    return statement


def _require_callable(name: str, given: object) -> None:
    if not callable(given):
        raise TypeError(f"{name} must be a function of the table, got {shown(given)}")


def _of_loss(loss: Loss, reader: Reader, outputs: Values, inputs: Values) -> tuple[Affine, Any]:
    """Return an ordinary loss as an exact form, and as an expression of cvxpy."""
    cvxpy, table = reader.cvxpy, reader.variable
    weights = loss.weights(inputs.size)
    costs = [
        [cost * weight for cost, weight in zip(row, weights, strict=True)]
        for row in loss.costs(outputs, inputs)
    ]
    forms = reader.forms(table).T
    # One form per input: the expected loss of that input, times its weight.
    columns = [combined(*pair) for pair in zip(zip(*costs, strict=True), forms, strict=True)]
    each = cvxpy.sum(cvxpy.multiply(np.array(costs, dtype=np.float64), table), axis=0)
    if loss.worst_case:
        return reader.node(Largest(), columns), cvxpy.max(each)
    return sum(columns, Affine(Fraction(0))), cvxpy.sum(each)


def _minimised(cvxpy: Any, given: Any) -> Any:
    if isinstance(given, cvxpy.Maximize):
        raise InvalidExpression(
            "the objective is minimised: give the negative of what is maximised"
        )
    if isinstance(given, cvxpy.Minimize):
        given = given.args[0]
    expression = cvxpy.Constant(given) if isinstance(given, (int, float)) else given
    if not isinstance(expression, cvxpy.Expression):
        raise TypeError(f"the objective must make an expression of cvxpy, got {shown(given)}")
    if expression.size != 1:
        raise InvalidExpression(f"the objective has shape {expression.shape}, and must be a number")
    if not expression.is_convex():
        if expression.is_concave():
            reason = "it is concave; a concave objective can be maximised, not minimised"
        else:
            reason = f"cvxpy knows no curvature of {_brief(_culprit(expression))}"
        raise InvalidExpression(f"the objective {_brief(expression)} is not convex: {reason}")
    return expression


def _listed(cvxpy: Any, constraints: Requirements | None, variable: Any) -> list[Any]:
    if constraints is None:
        return []
    _require_callable("constraints", constraints)
    given = constraints(variable)
    listed = [given] if isinstance(given, cvxpy.constraints.constraint.Constraint) else list(given)
    for constraint in listed:
        if not isinstance(constraint, cvxpy.constraints.constraint.Constraint):
            raise TypeError(f"constraints must be those of cvxpy, got {shown(constraint)}")
        if not constraint.is_dcp():
            sides = [each for each in constraint.args if each.curvature == "UNKNOWN"]
            reason = f": cvxpy knows no curvature of {_brief(_culprit(sides[0]))}" if sides else ""
            raise InvalidExpression(
                f"the constraint {_brief(constraint)} is not convex by the rules of cvxpy{reason}"
            )
    return listed


def _sides(constraint: Any) -> tuple[Any, bool]:
    """Return the expression that is at most 0, or 0 where the second value is True."""
    kind = type(constraint).__name__
    if kind in ("Inequality", "Equality"):
        return constraint.expr, kind == "Equality"
    if kind in ("NonPos", "NonNeg", "Zero"):
        expression = constraint.args[0]
        return (-expression if kind == "NonNeg" else expression), kind == "Zero"
    raise InvalidExpression(
        f"constraints are ==, <= or >= between expressions, got {kind}: {_brief(constraint)}"
    )


def _culprit(expression: Any) -> Any:
    """Return the smallest part of an expression that has no curvature."""
    for part in expression.args:
        if part.curvature == "UNKNOWN":
            return _culprit(part)
    return expression


def _compare(statement: Statement, reader: Reader) -> None:
    """Raise InvalidExpression where what was read differs from cvxpy's values, at two tables."""
    # Then a function of cvxpy means something else.
    program, variable = statement.program, statement.variable
    expressions = [statement.objective] if statement.loss is None else []
    expressions += [_sides(each)[0] for each in statement.constraints]
    for matrix in _tables(program.outputs.size, program.inputs.size):
        variable.value = matrix
        _, values = program.floats(matrix)
        for expression in expressions:
            expected = np.asarray(expression.value, dtype=np.float64).ravel()
            forms = reader.forms(expression).ravel()
            read = np.array([Affine.of(each).at(values.__getitem__, float) for each in forms])
            # Outside of a domain cvxpy returns inf or nan as its atoms see fit; only finite values
            # can contradict each other. Any of the differences looked for is of the order of the
            # value.
            both = np.isfinite(expected) & np.isfinite(read)
            if not np.allclose(expected[both], read[both], rtol=1e-6, atol=1e-9):
                raise InvalidExpression(
                    f"{_brief(expression)} is {expected[both]} in cvxpy, and was read as"
                    f" {read[both]}"
                )
    variable.value = None


def _tables(outputs: int, inputs: int) -> Iterable[Floats]:
    i, j = np.indices((outputs, inputs))
    # All entries are above 0, so that logarithms are finite, and neither table is symmetric in a
    # way that would hide a transposed axis or a permuted argument.
    for table in (1.0 + (i + 2 * j) % 3, 1.0 / (1.0 + abs(i - j))):
        yield table / table.sum(axis=0)


def _brief(expression: object) -> str:
    return " ".join(str(expression).split())[:80]
