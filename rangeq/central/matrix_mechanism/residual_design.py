"""The best residuals for a sum of products of workloads, under Gaussian noise.

With matrices Y_i = R_i'R_i of ones on the diagonal, and lambda_S >= 0, the strategy whose Gram
matrix is the sum over S of lambda_S (x)_{S} Y_i (x) J / n_i has columns of squared norm

    sum of c_S lambda_S = 1,    c_S = product of 1 / n_i over the attributes that are not in S,

and the sum of its variances is the sum of g_S / lambda_S, where g_S adds up over the terms of the
workload the products of tr(G_i Y_i^+) in S and of 1'G_i 1 / n_i outside. For given Y_i the best
lambda_S is in proportion to (g_S / c_S)^(1/2). For given lambda_S and other sides Y_i is the
optimum for a workload of one attribute, orthogonal to the mean. Both steps alternate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mechdesign.base.arrays import Floats, Integers
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.gram_optimum import optimal_gram
from rangeq.central.matrix_mechanism.marginal_strategy import View, subsets
from rangeq.central.matrix_mechanism.residual_strategy import ResidualStrategy
from rangeq.central.matrix_mechanism.several_attributes import MOST_BITS
from rangeq.central.matrix_mechanism.workload import Workload

_ROUNDS = 8

_CLOSE = 1e-3
"""Rounds end where the error falls by less, relative to it."""

_WEIGHT_BITS = 9
"""Of the bits of entries so many are for weights, and the others for the sides."""

_LEAST = 1e-9
"""An eigenvalue that is taken for 0, relative to the largest."""

_NOTHING = 1e-13
"""A part of the error that is taken for 0, relative to the largest."""


class _Side(NamedTuple):
    """A matrix along an attribute.

    Attributes
    ----------
    gram : numpy.ndarray of float64
        Y, with a diagonal of at most 1, and rows that sum to 0.
    alike : bool
        Whether all cells of the attribute are alike to the workload.
    """

    gram: Floats
    alike: bool


def tells_differences(workload: Workload) -> bool:
    """Whether along every attribute the queries tell all differences between cells.

    Parameters
    ----------
    workload : Workload
        Of up to 2048 cells along each attribute.

    Returns
    -------
    bool
        Whether `residual_optimum` is for it.
    """
    for i, size in enumerate(workload.sizes):
        queries = [term.factors[i] for term in workload.terms]
        if size > 1 and not all(own.exchangeable for own in queries):
            parts = [_centred(own.gram / np.trace(own.gram)) for own in queries]
            values = np.linalg.eigvalsh(np.sum(parts, axis=0))
            if not values[1] > _LEAST * values[-1]:
                return False
    return True


def residual_optimum(
    workload: Workload, tolerance: float, bits: int = MOST_BITS
) -> ResidualStrategy:
    """Residuals of small error for a workload over several attributes, under Gaussian noise.

    Parameters
    ----------
    workload : Workload
        Of up to 2048 cells along each attribute, of which it `tells_differences`.
    tolerance : float
        For each attribute by itself: see `optimal_gram`.
    bits : int, default 27
        As for `marginal_optimum`.

    Returns
    -------
    ResidualStrategy
        Of the last round.

    Raises
    ------
    InvalidWorkload
        An attribute has more cells.
    """
    sizes, terms = workload.sizes, workload.terms
    places = range(len(sizes))
    views = subsets(tuple(i for i in places if sizes[i] > 1))
    weights = np.array([term.weight for term in terms])
    means = np.array([[own.total / own.size for own in term.factors] for term in terms])
    centred = [[_centred(term.factors[i].gram) for term in terms] for i in places]
    sides = [
        _Side(
            _centred(np.eye(n)) / max(1 - 1 / n, 0.5),
            all(term.factors[i].exchangeable for term in terms),
        )
        for i, n in enumerate(sizes)
    ]
    errors = np.array([_errors(side.gram, centred[i]) for i, side in enumerate(sides)]).T
    scales = {
        view: math.prod(1 / n for i, n in enumerate(sizes) if i not in view) for view in views
    }
    reached, shares = math.inf, dict[View, float]()
    for _ in range(_ROUNDS):
        parts = {view: _products(errors, means, view) for view in views}
        asked = {view: float(weights @ part) for view, part in parts.items()}
        largest = max(asked[view] * scales[view] for view in views)
        asked = {v: own for v, own in asked.items() if own * scales[v] > _NOTHING * largest}
        total = math.fsum(math.sqrt(own * scales[view]) for view, own in asked.items())
        shares = {view: math.sqrt(own / scales[view]) / total for view, own in asked.items()}
        before, reached = reached, total**2
        if reached > (1 - _CLOSE) * before:
            break
        for i in places:
            inside = [view for view in shares if i in view]
            if sides[i].alike or not inside:
                continue
            own = weights * sum(
                _products(np.delete(errors, i, 1), np.delete(means, i, 1), _without(view, i))
                / shares[view]
                for view in inside
            )
            gram = sum(w * part for w, part in zip(own, centred[i], strict=True))
            found = _centred(optimal_gram(gram, tolerance, rank=sizes[i] - 1).gram)
            sides[i] = sides[i]._replace(gram=found / np.diag(found).max())
            errors[:, i] = _errors(sides[i].gram, centred[i])
    return _rounded(sides, shares, bits)


def _centred(matrix: Floats) -> Floats:
    """Beside the mean: (I - J/n) G (I - J/n)."""
    rows = matrix - matrix.mean(axis=0)
    found: Floats = rows - rows.mean(axis=1)[:, None]
    return found


def _errors(gram: Floats, queries: list[Floats]) -> list[float]:
    inverse = np.linalg.pinv(gram, rcond=1e-9, hermitian=True)
    return [max(float(np.sum(own * inverse)), 0.0) for own in queries]


def _products(errors: Floats, means: Floats, view: View) -> Floats:
    """For each term the product of errors along a view and of means along the others."""
    columns = [errors[:, i] if i in view else means[:, i] for i in range(errors.shape[1])]
    found: Floats = np.prod(columns, axis=0) if columns else np.ones(len(errors))
    return found


def _without(view: View, place: int) -> View:
    """A view of the other attributes, when one is taken away."""
    return tuple(i - (i > place) for i in view if i != place)


def _rounded(sides: list[_Side], shares: dict[View, float], most: int) -> ResidualStrategy:
    """Integers near it: matrices first, then the weights that suit them."""
    sizes = [len(side.gram) for side in sides]
    searched = [i for i, side in enumerate(sides) if not side.alike and sizes[i] > 2]
    bits = max(min((most - _WEIGHT_BITS) // max(len(searched), 1), 12), 2)
    matrices = [_matrix(side, bits if i in searched else None) for i, side in enumerate(sides)]
    squares = [float((matrix.astype(float) ** 2).sum(axis=0).max()) for matrix in matrices]
    weights = []
    for view, share in shares.items():
        beyond = math.prod(n for i, n in enumerate(sizes) if i not in view)
        own = math.prod(squares[i] for i in view)
        weights.append(max(1, round(2.0**most * math.sqrt(share / beyond / own))))
    return ResidualStrategy(matrices, list(shares), weights)


def _matrix(side: _Side, bits: int | None) -> Integers:
    """Rows that sum to 0: of integers up to 2^bits, or small ones where all cells are alike."""
    size = len(side.gram)
    if size == 1:
        return np.zeros((1, 1), dtype=np.int64)
    if bits is None:
        alike = size * np.eye(size, dtype=np.int64) - 1
        return alike if size > 2 else alike[:1]
    differences = np.eye(size, dtype=np.int64)[:-1] - np.eye(size, k=1, dtype=np.int64)[:-1]
    return DenseStrategy.of_gram(side.gram, differences, bits=bits).matrix
