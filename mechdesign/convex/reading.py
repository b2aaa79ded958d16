"""Expressions of cvxpy, read as exact programs.

Constants are read as the shortest decimals that print them: 0.1 is 1/10. Affine functions are
applied to exact affine forms, not to floats; each convex function becomes a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base.text import brief, shown
from mechdesign.convex.affine import Affine, combined
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
    QuadOverLin,
    RealPower,
    RelativeEntropy,
    Square,
)
from mechdesign.convex.program import Node
from mechdesign.exceptions import InvalidExpression

Forms: TypeAlias = npt.NDArray[np.object_]
"""Affine forms or exact numbers, in the shape of an expression."""


def load() -> ModuleType:
    """The package cvxpy. ImportError where it is not installed."""
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError(
            "objectives and constraints of the table need cvxpy: pip install 'mechdesign[convex]'"
        ) from error
    return cvxpy  # type: ignore[no-any-return]


class Reader:
    """Reads expressions of one variable, and collects their nodes.

    Parameters
    ----------
    variable : cvxpy.Variable
        The table, shape (outputs, inputs).
    """

    def __init__(self, variable: Any) -> None:
        self.cvxpy, self.variable = load(), variable
        self.nodes: list[Node] = []
        self._known: dict[int, tuple[Any, Forms]] = {}

    def forms(self, expression: Any) -> Forms:
        """The forms of an expression, in its shape.

        Raises
        ------
        InvalidExpression
            It has another variable, a number that is not finite, or a function that is not known
            here.
        """
        if id(expression) not in self._known:
            found = np.empty(expression.shape, dtype=object)
            found[...] = np.reshape(_objects(self._read(expression)), expression.shape)
            # The expression is kept, so that its id is not given to another.
            self._known[id(expression)] = expression, found
        return self._known[id(expression)][1]

    def _read(self, expression: Any) -> object:
        if expression is self.variable:
            cells = np.arange(expression.size).reshape(expression.shape)
            return _mapped(Affine.variable, cells)
        kind = type(expression).__name__.removesuffix("Approx").lower()
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
    """The shortest decimal that prints a float; an integer exactly.

    >>> decimal(0.1), decimal(np.float64(1e-3)), decimal(3)
    (Fraction(1, 10), Fraction(1, 1000), Fraction(3, 1))
    """
    if isinstance(value, (bool, np.bool_, np.integer)):
        return Fraction(int(value))
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
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
    """The groups of entries that a function with an axis combines, in the order of its results."""
    axis = getattr(expression, "axis", None)  # older functions have none
    if axis is None:
        yield list(array.ravel())
        return
    axes = tuple(a % array.ndim for a in np.atleast_1d(axis).tolist())
    kept = [a for a in range(array.ndim) if a not in axes]
    moved = np.transpose(array, [*kept, *axes])
    yield from map(list, moved.reshape(math.prod(moved.shape[: len(kept)]), -1))


def _arithmetic(reader: Reader, expression: Any, *arguments: Forms) -> object:
    """Sums and products: what cvxpy does with numbers, done with forms."""
    return expression.numeric(list(arguments))


def _rearranged(reader: Reader, expression: Any, *arguments: Forms) -> object:
    """Entries in other places, as cvxpy moves their numbers; 0 where it puts none."""
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
        found = [combine(reader, expression, group) for group in _along(expression, array)]
        return _mapped(found.__getitem__, np.arange(len(found)))

    return read


def _largest(reader: Reader, entries: Sequence[object]) -> object:
    forms = [Affine.of(entry) for entry in entries]
    if all(form.is_constant for form in forms):
        return max(form.constant for form in forms)
    return forms[0] if len(forms) == 1 else reader.node(Largest(), forms)


def _absolute(reader: Reader, entry: object) -> object:
    return _largest(reader, [entry, -Affine.of(entry)])


def _sum_largest(reader: Reader, expression: Any, group: list[object]) -> object:
    count = min(decimal(expression.k), Fraction(len(group)))
    return reader.node(LargestSum(count), group)


def _dotsort(reader: Reader, expression: Any, array: Forms, weights: Forms) -> object:
    """Sorted entries times sorted weights: a sum of sums of the largest."""
    entries = [Affine.of(entry) for entry in array.ravel()]
    numbers = [Affine.of(weight) for weight in weights.ravel()]
    if not all(number.is_constant for number in numbers):
        raise InvalidExpression("the weights of dotsort must be constant")
    padding = [Fraction(0)] * (len(entries) - len(numbers))
    order = sorted([*(number.constant for number in numbers), *padding], reverse=True)
    total = combined([order[-1]] * len(entries), entries)
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
    sign = -1 if 0 < p < 1 else 1
    return reader.each(lambda u: sign * reader.node(atom, [u]), array)


def _quad_over_lin(reader: Reader, expression: Any, array: Forms, below: Forms) -> object:
    divisor = Affine.of(below.item())

    def term(u: object) -> Affine:
        if divisor.is_constant:
            return reader.node(Square(), [u]) / divisor
        return reader.node(QuadOverLin(), [u, divisor])

    squares = reader.each(term, array)
    sums = [sum(group, Affine(Fraction(0))) for group in _along(expression, squares)]
    return _mapped(sums.__getitem__, np.arange(len(sums)))


def _quad_form(reader: Reader, expression: Any, vector: Forms, matrix: Forms) -> object:
    """x' C x as a sum of squares: C = L D L' is factorised exactly."""
    size = vector.size
    entries = [[Affine.of(entry) for entry in row] for row in matrix]
    if not all(entry.is_constant for row in entries for entry in row):
        raise InvalidExpression("the matrix of quad_form must be constant")
    rest = [
        [(entries[i][j].constant + entries[j][i].constant) / 2 for j in range(size)]
        for i in range(size)
    ]
    x = [Affine.of(entry) for entry in vector.ravel()]
    total = Affine(Fraction(0))
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
            apart = entries[i][j] - entries[j][i]
            if apart.terms or apart.constant:
                raise InvalidExpression(
                    f"the matrix of matrix_frac is not symmetric at ({i}, {j}), exactly"
                )
    flat = [entry for row in entries for entry in row]
    columns = vectors.reshape(size, -1).T
    found = (reader.node(MatrixFraction(size), [*column, *flat]) for column in columns)
    return sum(found, Affine(Fraction(0)))


def _geo_mean(reader: Reader, expression: Any, vector: Forms) -> object:
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
