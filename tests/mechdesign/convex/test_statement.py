"""What users ask in expressions of cvxpy: refused with the reason, or read exactly."""

import sys
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from mechdesign import Counts, Infeasible, InvalidExpression, Privacy, design
from mechdesign.convex import reading
from mechdesign.convex.statement import stated
from mechdesign.losses import L0, L1
from tests.mechdesign.convex.proofs import proof

HALF = Privacy(alpha="1/2")
TRUTH = np.eye(4)


def errors(P):
    i, j = np.indices(P.shape)
    return cp.sum(cp.multiply(abs(i - j), P), axis=0)


def test_an_affine_objective_is_a_loss_and_keeps_the_exact_certificate():
    d = design(3, HALF, objective=lambda P: cp.sum(errors(P)) / 4 - 3, properties=["CM"])
    same = design(3, HALF, L1(), properties=["CM"])
    assert d.certificate.gap == proof(d).gap == 0
    assert proof(d).objective == same.certificate.objective - 3
    assert d.mechanism.loss(L1()) == same.certificate.objective


def test_affine_constraints_hold_exactly_and_floats_mean_decimals():
    d = design(
        3,
        HALF,
        constraints=lambda P: [P[0, 0] == 0.4, cp.sum(P[1]) <= 1.1, P[2, 2] >= P[1, 1]],
        properties=["WH"],
    )
    table = d.mechanism.table
    assert table[0][0] == Fraction(2, 5)
    assert sum(table[1]) <= Fraction(11, 10)
    assert table[2][2] >= table[1][1]
    assert d.certificate.gap == 0
    assert d.convex is None
    assert d.certificate.verify(d.mechanism)


def test_the_texts_of_constraints_join_those_asked_for_as_properties():
    d = design(3, HALF, properties=["linear:P[3,3] >= 2/5"], constraints=lambda P: P[0, 0] >= 0.45)
    table = d.mechanism.table
    assert table[3][3] >= Fraction(2, 5)
    assert table[0][0] >= Fraction(9, 20)


def test_outputs_may_be_wider_than_inputs():
    d = design(
        Counts(0, 2),
        HALF,
        outputs=Counts(-8, 10),
        properties=["unbiased"],
        objective=lambda P: cp.sum(np.arange(-8, 11) ** 2 @ P),
    )
    assert proof(d).gap == 0
    assert d.mechanism.outputs == 19


def test_constants_are_objectives():
    assert proof(design(2, HALF, objective=lambda P: 3)).objective == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda P: cp.sum(cp.entr(P)), "is concave"),
        (lambda P: cp.max(cp.sqrt(errors(P))), r"no curvature of max\("),
        (lambda P: 1 + cp.square(cp.sqrt(P[0, 0]) - 1), "no curvature of .*[Pp]ower"),
        (lambda P: P, "shape"),
        (lambda P: cp.Maximize(cp.trace(P)), "minimised"),
        (lambda P: cp.lambda_max(P + P.T), "lambda_max"),
        (lambda P: cp.sum(cp.square(P - cp.Variable((4, 4)))), "another variable"),
    ],
)
def test_objectives_that_are_not_convex_or_not_known_are_refused(make, message):
    with pytest.raises(InvalidExpression, match=message):
        design(3, HALF, objective=make)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda P: [cp.sqrt(P[0, 0]) <= 0.2], "not convex"),
        (lambda P: [cp.square(P[0, 0]) == 0.2], "not convex"),
        (lambda P: [cp.max(cp.sqrt(P)) <= 0.2], r"no curvature of max\("),
        (lambda P: [P >> 0], "PSD"),
        (lambda P: [cp.SOC(P[0, 0], P[:, 1])], "SOC"),
    ],
)
def test_constraints_that_are_not_convex_or_not_known_are_refused(make, message):
    with pytest.raises(InvalidExpression, match=message):
        design(3, HALF, constraints=make)


@pytest.mark.parametrize(
    "arguments",
    [
        {"objective": 3},
        {"objective": lambda P: "trace"},
        {"constraints": 3},
        {"constraints": lambda P: [True]},
        {"constraints": lambda P: 3},
        {"objective": lambda P: cp.trace(P), "loss": L0()},
    ],
)
def test_what_is_no_statement_is_a_type_error(arguments):
    with pytest.raises(TypeError):
        design(3, HALF, **arguments)


@pytest.mark.parametrize(
    "constraints",
    [
        lambda P: [cp.Constant(1) <= 0],
        lambda P: [P[0, 0] >= 0.7, P[0, 0] <= 0.6],
        lambda P: [cp.norm(P - TRUTH, "fro") <= 0.1],
        lambda P: [cp.norm(P - TRUTH, "fro") <= 2, P[0, 0] == 1],
    ],
)
def test_what_no_mechanism_satisfies_is_infeasible(constraints):
    with pytest.raises(Infeasible):
        design(3, HALF, constraints=constraints)


def test_cvxpy_is_imported_where_there_are_expressions_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    assert design(3, HALF, L1()).certificate.gap == 0
    with pytest.raises(ImportError, match="cvxpy"):
        design(3, HALF, objective=lambda P: 0)


def test_a_function_that_is_read_wrongly_is_found_out(monkeypatch):
    wrong = {**reading._ATOMS, "exp": reading._ATOMS["abs"]}
    monkeypatch.setattr(reading, "_ATOMS", wrong)
    with pytest.raises(InvalidExpression, match="was read as"):
        stated(lambda P: cp.sum(cp.exp(P)), None, Counts(0, 2), Counts(0, 2))
