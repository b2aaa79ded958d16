"""Expressions of cvxpy are read as what cvxpy computes, exactly where they are affine."""

import warnings
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from mechdesign import Counts
from mechdesign.convex.atoms import Affine
from mechdesign.convex.reading import ConvexProgram, Reader, decimal
from mechdesign.exceptions import InvalidExpression

C = np.array([[0.3, 0.1, 0], [0.1, 0.2, 0], [0, 0, 1]])
CASES = {
    "scaled": lambda P: 0.1 * P / 3 - 1,
    "product": lambda P: C @ P @ C[0],
    "multiply": lambda P: cp.multiply(C, P) + cp.sum(P, axis=1, keepdims=True),
    "index": lambda P: cp.hstack([P[1:, 0], P[0, ::2], P[np.array([0, 2]), np.array([1, 1])]]),
    "rows": lambda P: P[[0, 2]],
    "trace": lambda P: cp.trace(C @ P) + cp.sum(cp.diag(P)) - cp.mean(P),
    "diagonal": lambda P: cp.diag(P[:, 0]) + P.T,
    "cumsum": lambda P: cp.cumsum(P, axis=1),
    "rearranged": lambda P: cp.vstack([cp.vec(P, order="F"), cp.reshape(P, (9,), order="C")]),
    "blocks": lambda P: cp.bmat([[P, C], [C, -P]]),
    "kron": lambda P: cp.kron(C, P),
    "convolve": lambda P: cp.convolve(C[0], P[:, 0]),
    "diff": lambda P: cp.diff(P, axis=1),
    "triangle": lambda P: cp.sum(cp.upper_tri(P)),
    "constants": lambda P: cp.Constant(0.1) * cp.Constant(0.2) * P + cp.sqrt(2),
    "parameter": lambda P: cp.Parameter(value=0.3) * P,
    "abs": lambda P: cp.abs(P - 0.3),
    "norm1": lambda P: cp.norm(P - C, 1) + cp.norm1(P - C),
    "max": lambda P: cp.max(P, axis=0) - cp.min(P, axis=1),
    "maximum": lambda P: cp.maximum(P, 0.3, P.T) - cp.minimum(P, 0.2) + cp.pos(P - 0.4),
    "square": lambda P: cp.square(P) + P**4 + cp.power(P, 1.5),
    "sum_squares": lambda P: cp.sum_squares(P) + cp.quad_over_lin(P[0], P[0, 0]),
    "norms": lambda P: cp.norm(P, "fro") + cp.norm(P[0], "inf") + cp.mixed_norm(P, 2, 1),
    "columns": lambda P: cp.norm(P, 2, axis=0),
    "quad_form": lambda P: cp.quad_form(P[:, 0] - 0.1, C),
    "variance": lambda P: cp.var(P[:, 0]) + cp.std(P[0]),
    "matrix_frac": lambda P: cp.matrix_frac(np.ones((3, 2)), P + P.T + 3 * np.eye(3)),
    "entropies": lambda P: cp.rel_entr(P, P.T) + cp.kl_div(P, 0.4) - cp.entr(P),
    "exp": lambda P: cp.exp(P) - cp.log(P) + cp.logistic(P),
    "log_sum_exp": lambda P: cp.log_sum_exp(P, axis=1),
    "roots": lambda P: cp.inv_pos(P) - cp.sqrt(P) + cp.power(P, -1.5),
    "geo_mean": lambda P: -cp.geo_mean(P[:, 0]),
    "largest": lambda P: cp.sum_largest(P, 2) + cp.cvar(P[0], 0.5) - cp.sum_smallest(P, 2),
    "dotsort": lambda P: cp.dotsort(P[:, 0], [0.5, -0.25, 0.5]) + cp.dotsort(P, [1, 0.5]),
    "nested": lambda P: cp.square(cp.norm(P, "fro")) + cp.exp(cp.max(cp.square(P))),
}


def read(expression, table):
    """What is read from an expression, evaluated at a table."""
    reader = Reader(expression.variables()[0])
    forms = reader.forms(expression)
    outputs, inputs = (Counts(0, size - 1) for size in table.shape)
    program = ConvexProgram(outputs, inputs, tuple(reader.nodes), Affine(Fraction(0)), (), "")
    _, values = program.floats(table)
    return np.array([Affine.of(form).at(values.__getitem__, float) for form in forms.ravel()])


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_has_the_value_of_cvxpy(name):
    table = cp.Variable((3, 3))
    table.value = np.random.default_rng(3).dirichlet(np.ones(3), 3).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of cvxpy, about its own functions
        expression = CASES[name](table)
        expected = np.ravel(expression.value)
    np.testing.assert_allclose(read(expression, table.value), expected, rtol=1e-12, atol=1e-12)


def test_constants_are_the_shortest_decimals():
    table = cp.Variable((1, 2))
    form = Reader(table).forms(0.1 * table[0, 0] + np.float64(0.3) * table[0, 1] - 7).item()
    assert form.terms == {0: Fraction(1, 10), 1: Fraction(3, 10)}
    assert form.constant == -7
    assert decimal(1e-3) == Fraction(1, 1000)
    assert decimal(np.int64(2) ** 60) == 2**60


def test_affine_expressions_have_no_nodes():
    table = cp.Variable((3, 3))
    reader = Reader(table)
    reader.forms(cp.sum(cp.cumsum(C @ table, axis=0)) + cp.trace(table))
    assert not reader.nodes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda P: P @ P[:, 0], "not affine"),
        (lambda P: P + cp.Variable(), "another variable"),
        (lambda P: P + np.inf, "finite"),
        (lambda P: P * cp.Parameter(), "no value"),
        (lambda P: cp.lambda_max(P), "lambda_max .* no certificate"),
        (lambda P: cp.norm(P[0], 3), "of norms"),
        (lambda P: cp.huber(P), "huber .* no certificate"),
        (lambda P: cp.matrix_frac(np.ones(3), P), "not symmetric"),
        (lambda P: cp.quad_form(P[0], np.diag([1, -1, 1])), "semidefinite"),
        (lambda P: cp.quad_form(P[0], np.array([[0, 1, 0], [1, 5, 0], [0, 0, 1]])), "semidef"),
        (lambda P: P + 1j, "finite real"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(make, message):
    table = cp.Variable((3, 3))
    with pytest.raises(InvalidExpression, match=message):
        Reader(table).forms(make(table))
