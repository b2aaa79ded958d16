"""Expressions of cvxpy, read as exact programs.

Constants are read as the shortest decimals that print them: 0.1 is 1/10. Affine functions are
applied to exact affine forms, not to floats; each convex function becomes a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from flint import arb

from mechdesign.base import Floats, ball, brief, precision, shown
from mechdesign.convex.atoms import (
    Affine,
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
    QuadOverLin,
    RealPower,
    RelativeEntropy,
    Slope,
    Square,
    combined,
    upper,
)
from mechdesign.exceptions import InvalidExpression
from mechdesign.losses import Costs
from mechdesign.mechanism.table import Table
from mechdesign.mechanism.values import Values

#: An array of affine forms or exact numbers, in the shape of an expression.
Forms: TypeAlias = npt.NDArray[np.object_]


def load() -> ModuleType:
    """The package cvxpy, imported when there are expressions: it takes seconds."""
    import cvxpy

    return cvxpy  # type: ignore[no-any-return]


class Reader:
    """A reader of expressions of one variable, the table, that collects their nodes."""

    def __init__(self, variable: Any) -> None:
        self.cvxpy, self.variable = load(), variable
        self.nodes: list[Node] = []
        self._known: dict[int, tuple[Any, Forms]] = {}

    def forms(self, expression: Any) -> Forms:
        """Return the forms of an expression, in its shape."""
        # A part that is shared is read once, so that it is one node: two nodes for it would get
        # planes of their own, and the relaxation would be weaker.
        if id(expression) not in self._known:
            forms = np.empty(expression.shape, dtype=object)
            forms[...] = np.reshape(_objects(self._read(expression)), expression.shape)
            # The expression is kept, so that its id is not given to another.
            self._known[id(expression)] = expression, forms
        return self._known[id(expression)][1]

    def _read(self, expression: Any) -> object:
        if expression is self.variable:
            cells = np.arange(expression.size).reshape(expression.shape)
            return _mapped(Affine.variable, cells)
        # Class names, not classes, which move between versions of cvxpy. The suffix marks how a
        # power is handed to the conic solver; here the exact function is meant.
        kind = type(expression).__name__.removesuffix("Approx").lower()
        # A constant such as log(2) is the float that cvxpy computes; constants of affine functions,
        # such as 0.1 + 0.2, stay exact.
        if not expression.args or (expression.is_constant() and kind not in _AFFINE):
            return self._constant(expression)
        read = _AFFINE.get(kind) or _ATOMS.get(kind)
        if read is None:
            raise InvalidExpression(
                f"the function {type(expression).__name__} in {_brief(expression)} has no"
                f" certificate here; those that have one are {', '.join(sorted(_ATOMS))} and most"
                " affine ones"
            )
        arguments = [self.forms(argument) for argument in expression.args]
        try:
            return read(self, expression, *arguments)
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            if isinstance(error, InvalidExpression):
                raise
            raise InvalidExpression(
                f"{type(expression).__name__} in {_brief(expression)} cannot be read exactly:"
                f" {error}"
            ) from error

    def _constant(self, expression: Any) -> object:
        if expression.variables():
            raise InvalidExpression(
                f"{_brief(expression)} is another variable; the table is the only one"
            )
        value = expression.value
        if value is None:
            raise InvalidExpression(f"{_brief(expression)} has no value")
        dense = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
        return _mapped(decimal, dense)

    def node(self, atom: Atom, arguments: Sequence[object]) -> Affine:
        """The value of a convex function, as a new variable."""
        self.nodes.append(Node(atom, tuple(map(Affine.of, arguments))))
        return Affine.variable(self.variable.size + len(self.nodes) - 1)

    def each(self, function: Callable[..., object], *arguments: Forms) -> Forms:
        """A function applied to each entry."""
        return _mapped(function, *np.broadcast_arrays(*arguments))


def decimal(value: object) -> Fraction:
    """Return the shortest decimal that prints a float, such as 1/10 for 0.1; an integer exactly."""
    if isinstance(value, (bool, np.bool_, np.integer)):
        return Fraction(int(value))
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        # `repr` prints the shortest decimal that reads as this float: the number that the user
        # typed. The binary fraction itself would make 3 * 0.1 == 0.3 contradict a column sum.
        return Fraction(repr(float(value)))
    raise InvalidExpression(f"constants are finite real numbers, got {shown(value)}")


def _mapped(function: Callable[..., object], *arrays: npt.NDArray[Any]) -> Forms:
    result = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(result.shape):
        result[place] = function(*(array[place] for array in arrays))
    return result


def _objects(value: object) -> Forms:
    array = np.empty((), dtype=object)
    if isinstance(value, np.ndarray):
        return value
    array[()] = value
    return array


def _brief(expression: object) -> str:
    return " ".join(str(expression).split())[:60]


def _along(expression: Any, array: Forms) -> Iterator[list[Any]]:
    """Yield the groups of entries that a function with an axis combines, one for each result."""
    axis = getattr(expression, "axis", None)  # older functions have none
    if axis is None:
        yield list(array.ravel())
        return
    axes = tuple(a % array.ndim for a in np.atleast_1d(axis).tolist())
    kept = [a for a in range(array.ndim) if a not in axes]
    moved = np.transpose(array, [*kept, *axes])
    yield from map(list, moved.reshape(math.prod(moved.shape[: len(kept)]), -1))


def _arithmetic(reader: Reader, expression: Any, *arguments: Forms) -> object:
    """Return sums and products of forms, by what cvxpy does with numbers."""
    # Arrays of objects follow the same numpy code as floats do, so that shapes and broadcasting
    # cannot differ from cvxpy's, and `Affine` refuses what is not affine.
    return expression.numeric(list(arguments))


def _rearranged(reader: Reader, expression: Any, *arguments: Forms) -> object:
    """Return the entries in the places to which cvxpy moves their numbers; 0 where it puts none."""
    # Number 0 stands for the zeros that cvxpy puts in, as beside a diagonal; floats, since some of
    # its functions convert, and integers below 2^53 survive that.
    entries: list[object] = [Fraction(0)]
    numbered = []
    for array in arguments:
        numbers = np.arange(len(entries), len(entries) + array.size, dtype=np.float64)
        numbered.append(numbers.reshape(array.shape))
        entries += array.ravel().tolist()
    return _mapped(lambda number: entries[int(number)], np.asarray(expression.numeric(numbered)))


def _grouped(
    combine: Callable[[Reader, Any, list[object]], object],
) -> Callable[..., object]:
    """A function of groups of entries, as a reader of expressions with an axis."""

    def read(reader: Reader, expression: Any, array: Forms, *_: Forms) -> object:
        results = [combine(reader, expression, group) for group in _along(expression, array)]
        return _mapped(results.__getitem__, np.arange(len(results)))

    return read


def _largest(reader: Reader, entries: Sequence[object]) -> object:
    forms = [Affine.of(entry) for entry in entries]
    # Without variables there is nothing to bound: a node would make a linear program convex.
    if all(form.is_constant for form in forms):
        return max(form.constant for form in forms)
    return forms[0] if len(forms) == 1 else reader.node(Largest(), forms)


def _absolute(reader: Reader, entry: object) -> object:
    return _largest(reader, [entry, -Affine.of(entry)])


def _sum_largest(reader: Reader, expression: Any, group: list[object]) -> object:
    count = min(decimal(expression.k), Fraction(len(group)))
    return reader.node(LargestSum(count), group)


def _dotsort(reader: Reader, expression: Any, array: Forms, weights: Forms) -> object:
    """Return sorted entries times sorted weights, as a sum of sums of the largest."""
    entries = [Affine.of(entry) for entry in array.ravel()]
    numbers = [Affine.of(weight) for weight in weights.ravel()]
    if not all(number.is_constant for number in numbers):
        raise InvalidExpression("the weights of dotsort must be constant")
    padding = [Fraction(0)] * (len(entries) - len(numbers))
    order = sorted([*(number.constant for number in numbers), *padding], reverse=True)
    total = combined([order[-1]] * len(entries), entries)
    # Abel's summation: sum w_k u_(k) = w_n sum u + sum_k (w_k - w_(k+1)) (sum of the k largest),
    # where all the differences are at least 0, so that convexity is kept.
    for k, (weight, following) in enumerate(pairwise(order), 1):
        if weight > following:
            total = total + (weight - following) * reader.node(LargestSum(Fraction(k)), entries)
    return total


def _norm(reader: Reader, expression: Any, group: list[object]) -> object:
    if decimal(expression.p) != 2:
        raise InvalidExpression(
            f"of norms, 1, 2 and inf have a certificate here, not {_brief(expression)}"
        )
    return reader.node(EuclideanNorm(), group)


def _power(reader: Reader, expression: Any, array: Forms) -> object:
    p = decimal(expression.p.value.item() if hasattr(expression.p, "value") else expression.p)
    if p == 1:
        return array
    if p == 2:
        return reader.each(lambda u: reader.node(Square(), [u]), array)
    atom = RealPower(p)
    # Roots are concave: the node is -u^p, which is convex.
    sign = -1 if 0 < p < 1 else 1
    return reader.each(lambda u: sign * reader.node(atom, [u]), array)


def _quad_over_lin(reader: Reader, expression: Any, array: Forms, below: Forms) -> object:
    divisor = Affine.of(below.item())

    def term(u: object) -> Affine:
        # A plain square is a better node: every slope has a plane, where u^2 / v needs slopes on
        # the boundary of the conjugate's domain.
        if divisor.is_constant:
            return reader.node(Square(), [u]) / divisor
        return reader.node(QuadOverLin(), [u, divisor])

    squares = reader.each(term, array)
    sums = [sum(group, Affine(Fraction(0))) for group in _along(expression, squares)]
    return _mapped(sums.__getitem__, np.arange(len(sums)))


def _quad_form(reader: Reader, expression: Any, vector: Forms, matrix: Forms) -> object:
    """Return x' C x as a sum of squares: C = L D L' is factorised exactly."""
    size = vector.size
    entries = [[Affine.of(entry) for entry in row] for row in matrix]
    if not all(entry.is_constant for row in entries for entry in row):
        raise InvalidExpression("the matrix of quad_form must be constant")
    # Only the symmetric part matters for x' C x.
    rest = [
        [(entries[i][j].constant + entries[j][i].constant) / 2 for j in range(size)]
        for i in range(size)
    ]
    x = [Affine.of(entry) for entry in vector.ravel()]
    total = Affine(Fraction(0))
    # L D L', not Cholesky: it needs no roots, so that it is exact over the rationals. A pivot of 0
    # with a nonzero row is a negative 2x2 minor, hence not semidefinite: that decides, where an
    # eigenvalue in floats cannot tell 0 from -1e-17. The update is the Schur complement.
    for k in range(size):
        pivot = rest[k][k]
        if pivot < 0 or (pivot == 0 and any(rest[k][k:])):
            raise InvalidExpression(
                f"the matrix of quad_form is not positive semidefinite, exactly: pivot {k} is"
                f" {brief(pivot, 6)}; sum_squares(A @ x) is convex as it stands"
            )
        if pivot:
            form = sum((rest[k][j] / pivot * x[j] for j in range(k, size)), Affine(Fraction(0)))
            total = total + pivot * reader.node(Square(), [form])
            for i in range(k + 1, size):
                for j in range(k + 1, size):
                    rest[i][j] -= rest[i][k] * rest[k][j] / pivot
    return total


def _matrix_frac(reader: Reader, expression: Any, vectors: Forms, matrix: Forms) -> object:
    entries = [[Affine.of(entry) for entry in row] for row in matrix]
    size = len(entries)
    for i in range(size):
        for j in range(i):
            # cvxpy takes symmetry for granted; the plane in the matrix is below the function only
            # among symmetric ones.
            apart = entries[i][j] - entries[j][i]
            if apart.terms or apart.constant:
                raise InvalidExpression(
                    f"the matrix of matrix_frac is not symmetric at ({i}, {j}), exactly"
                )
    flat = [entry for row in entries for entry in row]
    columns = vectors.reshape(size, -1).T
    fractions = (reader.node(MatrixFraction(size), [*column, *flat]) for column in columns)
    return sum(fractions, Affine(Fraction(0)))


def _geo_mean(reader: Reader, expression: Any, vector: Forms) -> object:
    # Factors of weight 0 are left out: they would demand u > 0 and do nothing else.
    pairs = [
        (decimal(weight), u)
        for weight, u in zip(expression.w, vector.ravel(), strict=True)
        if weight
    ]
    weights, arguments = zip(*pairs, strict=True)
    return -reader.node(MinusGeometricMean(weights), arguments)


def _kl_div(reader: Reader, u: object, v: object) -> object:
    return reader.node(RelativeEntropy(), [u, v]) - Affine.of(u) + v


_AFFINE: dict[str, Callable[..., object]] = {
    **dict.fromkeys(
        ("addexpression", "divexpression", "mulexpression", "multiply", "negexpression", "sum"),
        _arithmetic,
    ),
    **dict.fromkeys(
        ("broadcast_to", "concatenate", "diag_mat", "diag_vec", "hstack", "index", "promote"),
        _rearranged,
    ),
    **dict.fromkeys(
        ("reshape", "special_index", "stack", "squeeze", "transpose", "upper_tri", "vstack"),
        _rearranged,
    ),
    **dict.fromkeys(("conj", "nonneg_wrap", "psd_wrap", "real"), lambda r, e, u: u),
    "conv": lambda r, e, u, v: np.convolve(u.ravel(), v.ravel()),
    "convolve": lambda r, e, u, v: np.convolve(u, v),
    "cumsum": lambda r, e, u: np.cumsum(u, axis=e.axis),
    "kron": lambda r, e, u, v: np.kron(u, v),
    "trace": lambda r, e, u: sum(np.diagonal(u)),
}

_ATOMS: dict[str, Callable[..., object]] = {
    "abs": lambda r, e, u: r.each(lambda a: _absolute(r, a), u),
    "dotsort": _dotsort,
    "entr": lambda r, e, u: r.each(lambda a: -r.node(MinusEntropy(), [a]), u),
    "exp": lambda r, e, u: r.each(lambda a: r.node(Exponential(), [a]), u),
    "geo_mean": _geo_mean,
    "geomean": _geo_mean,
    "kl_div": lambda r, e, u, v: r.each(lambda a, b: _kl_div(r, a, b), u, v),
    "log": lambda r, e, u: r.each(lambda a: -r.node(MinusLog(), [a]), u),
    "log_sum_exp": _grouped(lambda r, e, group: r.node(LogSumExp(), group)),
    "logistic": lambda r, e, u: r.each(lambda a: r.node(LogSumExp(), [Fraction(0), a]), u),
    "matrixfrac": _matrix_frac,
    "max": _grouped(lambda r, e, group: _largest(r, group)),
    "maximum": lambda r, e, *u: r.each(lambda *a: _largest(r, a), *u),
    "min": _grouped(lambda r, e, group: -Affine.of(_largest(r, [-Affine.of(a) for a in group]))),
    "minimum": lambda r, e, *u: r.each(
        lambda *a: -Affine.of(_largest(r, [-Affine.of(b) for b in a])), *u
    ),
    "norm1": _grouped(lambda r, e, group: sum(Affine.of(_absolute(r, a)) for a in group)),
    "norm_inf": _grouped(
        lambda r, e, group: _largest(r, [*group, *(-Affine.of(a) for a in group)])
    ),
    "pnorm": _grouped(_norm),
    "power": _power,
    "quad_over_lin": _quad_over_lin,
    "quadform": _quad_form,
    "rel_entr": lambda r, e, u, v: r.each(lambda a, b: r.node(RelativeEntropy(), [a, b]), u, v),
    "sum_largest": _grouped(_sum_largest),
}


# ------------------------------------------------------------------------------------------------
# Convex programs over mechanisms: exact affine forms of the table and of convex functions of them.
#
# Variable ``i * inputs + j`` is P[i, j]. A node is a convex function of affine forms, of the table
# and of earlier nodes; the value of node k is variable ``outputs * inputs + k``. The objective and
# the constraints are affine forms of all of these. Nothing here depends on how a program was
# stated, or on how it is solved.


@dataclass(frozen=True)
class Node:
    """A convex function of affine forms.

    Attributes
    ----------
    atom : Atom
        The function.
    arguments : tuple of Affine
        Its arguments.
    """

    atom: Atom
    arguments: tuple[Affine, ...]


@dataclass(frozen=True)
class SupportingPlane:
    """An affine function of a node's arguments, to be proved nowhere above the node's function.

    Attributes
    ----------
    slope : tuple of Fraction
        One number for each argument.
    constant : Fraction
        The value where all arguments are 0.
    """

    slope: Slope
    constant: Fraction

    @classmethod
    def of(cls, atom: Atom, slope: Slope) -> SupportingPlane:
        """Return the plane of this slope as high as is proved, but for rounding.

        Parameters
        ----------
        atom : Atom
            The function that it is to lie below.
        slope : tuple of Fraction
            One number for each argument. OutsideDomain is raised where there is no plane of it.

        Returns
        -------
        SupportingPlane
        """
        # The conjugate is rounded up twice, to the end of its ball and to the grid: the constant
        # goes down, and the plane stays below the function.
        return cls(slope, -rounded_up(upper(atom.conjugate(slope))))

    def proved(self, atom: Atom) -> bool:
        """Whether the plane is below the function everywhere; OutsideDomain if none like it is."""
        return bool(ball(-self.constant) >= atom.conjugate(self.slope))


def rounded_up(value: Fraction, bits: int = 80) -> Fraction:
    """Return the least multiple of 2^-bits that is not below ``value``."""
    # Floor division of the negative is the ceiling.
    return Fraction(-((-value.numerator << bits) // value.denominator), 1 << bits)


class NoMinorant(ValueError):
    """The error for planes and multipliers from which no lower bound follows."""


@dataclass(frozen=True)
class ConvexProgram:
    """A convex program over tables of one shape: minimise a form where others are at most 0.

    Attributes
    ----------
    outputs, inputs : Values
        What the rows and the columns of the table stand for.
    nodes : tuple of Node
        The convex functions, each of forms of the table and of nodes before it.
    objective : Affine
        What is minimised.
    constraints : tuple of Affine
        Forms that are at most 0, besides privacy and properties.
    text : str
        The objective as it was stated, for messages.
    """

    outputs: Values
    inputs: Values
    nodes: tuple[Node, ...]
    objective: Affine
    constraints: tuple[Affine, ...]
    text: str

    @property
    def size(self) -> int:
        """The number of entries of the table."""
        return self.outputs.size * self.inputs.size

    def balls(self, table: Table) -> Evaluation:
        """Return the values of all nodes at a table, in balls."""
        entries = [
            ball(Fraction(weight, table.denominator)) for row in table.weights for weight in row
        ]
        evaluation = Evaluation(entries, [])
        for node in self.nodes:
            arguments = [evaluation.at(form) for form in node.arguments]
            evaluation.arguments.append(arguments)
            evaluation.values.append(node.atom.value(arguments))
        return evaluation

    @precision()
    def floats(self, matrix: Floats) -> tuple[list[Floats], Floats]:
        """Return the nodes' arguments at a table of floats, and the table with their values."""
        values = matrix.ravel().tolist()
        arguments = []
        for node in self.nodes:
            u = np.array([form.at(values.__getitem__, float) for form in node.arguments])
            arguments.append(u)
            # The same code as the rigorous values, at 53 bits: there is one definition of each
            # function.
            values.append(float(node.atom.value([arb(each) for each in u.tolist()]).mid()))
        return arguments, np.array(values)

    def minorant(
        self, planes: Sequence[SupportingPlane], multipliers: Sequence[Fraction]
    ) -> Affine:
        """Return an affine form of the table alone that the objective is nowhere below.

        It holds for the tables that satisfy the constraints, if every plane is below its function:
        the constraints are added to the objective with their multipliers, and each node, from the
        last to the first, is replaced by its plane.

        Parameters
        ----------
        planes : sequence of SupportingPlane
            One for each node.
        multipliers : sequence of Fraction
            One for each constraint.

        Returns
        -------
        Affine

        Raises
        ------
        NoMinorant
            Constraints and multipliers do not match, or a weight that has to be at least 0 is not.
        """
        if len(multipliers) != len(self.constraints):
            raise NoMinorant("the multipliers belong to another program")
        if min(multipliers, default=0) < 0:
            raise NoMinorant("a multiplier of a constraint is negative")
        # The Lagrangian: constraints are at most 0 on feasible tables, so that adding them with
        # weights of at least 0 cannot raise the objective.
        total = combined([Fraction(1), *multipliers], [self.objective, *self.constraints])
        # Arguments of a node mention earlier nodes only: from the last one, each is final when it
        # is replaced. Invariant: total <= objective on feasible tables, and no node above k occurs.
        for k in reversed(range(len(self.nodes))):
            weight = total.terms.get(self.size + k)
            if weight is None:
                continue
            node, plane = self.nodes[k], planes[k]
            # Replacing t by something smaller lowers the form only if t has a weight of at least 0.
            # The DCP rules ensure that for planes that touch where the conic solver ends.
            if weight < 0:
                raise NoMinorant(f"the weight of node {k}, {node.atom.name}, is negative")
            below = combined(plane.slope, node.arguments) + plane.constant
            total = total + weight * (below - Affine.variable(self.size + k))
        return total


class Evaluation:
    """An evaluation of a program: the entries of a table and the values of nodes, in balls."""

    def __init__(self, entries: Iterable[arb], arguments: list[list[arb]]) -> None:
        self.values = list(entries)
        self.arguments = arguments

    def at(self, form: Affine) -> arb:
        """Return a ball that contains the value of a form."""
        return form.at(self.values.__getitem__, ball)


def costs_of(form: Affine, outputs: int, inputs: int) -> Costs:
    """Return a form of the table as a loss, up to a constant: see `shift_of`."""
    table = [
        # A loss under the uniform prior weighs each input by 1 / inputs.
        [form.terms.get(i * inputs + j, Fraction(0)) * inputs for j in range(inputs)]
        for i in range(outputs)
    ]
    # A constant in a column changes no comparison, as its entries sum to 1: costs are made to begin
    # at 0, since a loss may not be negative.
    least = [min(column) for column in zip(*table, strict=True)]
    return Costs([[cost - low for cost, low in zip(row, least, strict=True)] for row in table])


def shift_of(form: Affine, costs: Costs) -> Fraction:
    """Return the largest number by which the form exceeds the loss for every mechanism."""
    # The loss has the uniform prior, and each column of a mechanism sums to one.
    table = costs.table
    outputs, inputs = len(table), len(table[0])
    return form.constant + sum(
        (
            min(
                form.terms.get(i * inputs + j, Fraction(0)) - table[i][j] / inputs
                for i in range(outputs)
            )
            for j in range(inputs)
        ),
        Fraction(0),
    )
