"""What a user asks of the table in expressions of cvxpy: checked, and read exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mechdesign._support.arrays import Floats
from mechdesign._support.text import shown, to_text
from mechdesign.convex.affine import Affine
from mechdesign.convex.program import ConvexProgram, costs_of
from mechdesign.convex.reading import Reader, load
from mechdesign.exceptions import Infeasible, InvalidExpression
from mechdesign.losses import Costs
from mechdesign.properties import Property, resolve

Objective: TypeAlias = Callable[[Any], Any]
"""Makes an expression of cvxpy, a number, from the table, a variable of cvxpy."""

Requirements: TypeAlias = Callable[[Any], Iterable[Any]]
"""Makes constraints of cvxpy from the table, a variable of cvxpy."""


@dataclass(frozen=True)
class Statement:
    """An objective and constraints, as exact programs and as cvxpy has them.

    Attributes
    ----------
    program : ConvexProgram
        The objective and the constraints that are not linear.
    linear : tuple of (Affine, bool)
        Forms of the table that are at least 0, or 0 where the second is True.
    variable : cvxpy.Variable
        The table, shape (outputs, inputs).
    objective : cvxpy.Expression
        What is minimised.
    constraints : tuple of cvxpy.Constraint
        Those that are not linear.
    """

    program: ConvexProgram
    linear: tuple[tuple[Affine, bool], ...]
    variable: Any
    objective: Any
    constraints: tuple[Any, ...]

    @property
    def is_linear(self) -> bool:
        """Whether it is an ordinary linear program."""
        return not self.program.nodes

    @property
    def costs(self) -> Costs:
        """A linear objective as a loss: see `costs_of`."""
        program = self.program
        return costs_of(program.objective, program.outputs, program.inputs)

    def properties(self, wanted: Sequence[Property]) -> tuple[Property, ...]:
        """The properties, and that of the linear constraints."""
        if not self.linear:
            return tuple(wanted)
        stated = [self._text(form, equality) for form, equality in self.linear]
        kept = [item for item in wanted if item.short != "linear"]
        stated += [item.text.partition(":")[2] for item in wanted if item.short == "linear"]
        return (*kept, resolve("linear:" + "; ".join(dict.fromkeys(stated))))

    def _text(self, form: Affine, equality: bool) -> str:
        inputs = self.program.inputs
        terms = " ".join(
            f"{'+' if c > 0 else '-'}{to_text(abs(c))}*P[{v // inputs},{v % inputs}]"
            for v, c in sorted(form.terms.items())
        )
        return f"{terms.removeprefix('+')} {'==' if equality else '>='} {to_text(-form.constant)}"


def stated(
    objective: Objective,
    constraints: Requirements | None,
    outputs: int,
    inputs: int,
) -> Statement:
    """The statement of an objective and of constraints, over tables of one shape.

    Parameters
    ----------
    objective : callable
        From the table, a ``cvxpy.Variable`` of shape (outputs, inputs), to a convex expression.
    constraints : callable, optional
        From the table to a list of constraints that cvxpy accepts as convex.
    outputs, inputs : int
        The shape.

    Raises
    ------
    ImportError
        cvxpy is not installed.
    TypeError
        What is given is not callable, or makes something else.
    InvalidExpression
        An expression is not convex, or cannot be read exactly.
    Infeasible
        A constraint cannot hold, whatever the table.
    """
    cvxpy = load()
    variable = cvxpy.Variable((outputs, inputs), name="P")
    reader = Reader(variable)
    for name, given in (("objective", objective), ("constraints", constraints)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be a function of the table, got {shown(given)}")
    expression = _minimised(cvxpy, objective(variable))
    form = Affine.of(reader.forms(expression).item())
    linear: list[tuple[Affine, bool]] = []
    convex: list[Affine] = []
    kept = []
    for constraint in _listed(cvxpy, constraints, variable):
        sides, equality = _sides(constraint)
        forms = [Affine.of(entry) for entry in reader.forms(sides).ravel()]
        if any(v >= variable.size for each in forms for v in each.terms):
            convex += forms
            kept.append(constraint)
            continue
        for each in forms:
            if not each.is_constant:
                linear.append((-each, equality))
            elif each.constant > 0 or (equality and each.constant):
                raise Infeasible(f"the constraint {_brief(constraint)} holds for no table")
    program = ConvexProgram(
        outputs, inputs, tuple(reader.nodes), form, tuple(convex), _brief(expression)
    )
    found = Statement(program, tuple(linear), variable, expression, tuple(kept))
    _compared(found, reader)
    return found


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
    """The expression that is at most 0, or 0 where the second is True."""
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
    """The smallest part of an expression that has no curvature."""
    for part in expression.args:
        if part.curvature == "UNKNOWN":
            return _culprit(part)
    return expression


def _compared(statement: Statement, reader: Reader) -> None:
    """Compare what was read with what cvxpy computes, at two tables.

    Raises InvalidExpression where they differ: a function of cvxpy means something else.
    """
    program, variable = statement.program, statement.variable
    expressions = [statement.objective, *(_sides(each)[0] for each in statement.constraints)]
    for matrix in _tables(program.outputs, program.inputs):
        variable.value = matrix
        _, values = program.floats(matrix)
        for expression in expressions:
            expected = np.asarray(expression.value, dtype=np.float64).ravel()
            forms = reader.forms(expression).ravel()
            read = np.array([Affine.of(each).at(values.__getitem__, float) for each in forms])
            both = np.isfinite(expected) & np.isfinite(read)
            if not np.allclose(expected[both], read[both], rtol=1e-6, atol=1e-9):
                raise InvalidExpression(
                    f"{_brief(expression)} is {expected[both]} in cvxpy, and was read as"
                    f" {read[both]}"
                )
    variable.value = None


def _tables(outputs: int, inputs: int) -> Iterable[Floats]:
    i, j = np.indices((outputs, inputs))
    for table in (1.0 + (i + 2 * j) % 3, 1.0 / (1.0 + abs(i - j))):
        yield table / table.sum(axis=0)


def _brief(expression: object) -> str:
    return " ".join(str(expression).split())[:80]
