"""The strategy of least error under Gaussian noise, as its Gram matrix, with a proved lower bound.

For queries with the Gram matrix G = W'W, and a strategy A with X = A'A whose columns have norms of
at most 1, the sum of the least-squares answers' variances is tr(G X^+), per unit of noise variance
(Li, Miklau, Hay, McGregor and Rastogi 2015: The matrix mechanism, section 3). So the optimum is

    minimise tr(G X^+)  over X >= 0 with  diag X <= 1,

a convex program. For every mu >= 0, with M = diag(mu), Lagrangian duality gives

    tr(G X^+) >= (tr (M^(1/2) G M^(1/2))^(1/2))^2 / sum(mu);

mu = 1 is the spectral bound of Li and Miklau (2013). At the optimum mu = diag((M^(1/2) G
M^(1/2))^(1/2)) up to a factor, and X = M^(-1/2) (M^(1/2) G M^(1/2))^(1/2) M^(-1/2): the fixed-point
iteration of Denisov, McMahan, Rush, Smith and Guha Thakurta (NeurIPS 2022, section 3). It is done
in floats. The bound holds for any mu, so it needs no convergence, and its evaluation bounds all
rounding: see `trace_of_root`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Floats

_ROUNDS = 200

_LEAST = 1e-12
"""Eigenvalues below it, relative to the largest, are taken for 0."""

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class GramOptimum:
    """A strategy's Gram matrix, and how near its error is to the least.

    Attributes
    ----------
    gram : numpy.ndarray of float64
        X, shape (cells, cells), of the same range as G, with a diagonal of at most 1.
    value : float
        tr(G X^+), as floats have it.
    bound : float
        A proved lower bound on it, for all strategies.
    """

    gram: Floats
    value: float
    bound: float


def optimal_gram(
    gram: Floats, tolerance: float = 1e-4, error: float = 0.0, rank: int | None = None
) -> GramOptimum:
    """Minimise tr(G X^+) over X with a diagonal of at most 1.

    It takes some tens of eigenvalue decompositions.

    Parameters
    ----------
    gram : numpy.ndarray of float64
        G, shape (cells, cells): symmetric, positive semidefinite, not 0.
    tolerance : float, default 1e-4
        It stops where the value is above the bound by no more than that, relative to it.
    error : float, default 0
        At least the spectral norm of what ``gram`` lacks to the true G.
    rank : int, optional
        That of the true G, so that X has the same range also where some queries matter little;
        None: as floats have it.

    Returns
    -------
    GramOptimum
        For all cells.
    """
    asked = np.flatnonzero(np.diag(gram) > 0)
    inner = gram[np.ix_(asked, asked)]
    scale = float(np.abs(inner).max())
    inner = inner / scale  # no square overflows
    mu, ranks = np.ones(len(asked)), np.arange(len(asked))
    best, best_mu, optimum, value = 0.0, mu, np.eye(len(asked)), math.inf
    for _ in range(_ROUNDS):
        m = np.sqrt(mu)
        values, vectors = np.linalg.eigh(m[:, None] * inner * m)
        kept = values > _LEAST * values[-1] if rank is None else ranks >= len(asked) - rank
        bound = float(np.sqrt(np.maximum(values[kept], 0.0)).sum() ** 2 / mu.sum())
        roots, vectors = np.sqrt(np.maximum(values[kept], _LEAST * values[-1])), vectors[:, kept]
        if bound > best:
            best, best_mu = bound, mu
        diagonal = np.einsum("ij,j,ij->i", vectors, roots, vectors)
        # X = N M^(-1/2) root M^(-1/2) N; where G has a null space, N = 1 keeps it, up to a factor
        norms = diagonal / mu if kept.all() else np.full(len(mu), (diagonal / mu).max())
        back = m * np.sqrt(norms)
        found = float(np.sum(((vectors / roots).T @ (back[:, None] * inner * back)).T * vectors))
        if found < value:
            value = found
            part = vectors * np.sqrt(roots) / back[:, None]
            optimum = part @ part.T
        if value <= (1 + tolerance) * best:
            break
        mu = diagonal * diagonal / mu  # twice the step of the fixed point, in logarithms
        mu = np.maximum(mu / mu.mean(), _LEAST)
    full = np.zeros_like(gram)
    full[np.ix_(asked, asked)] = optimum
    root = np.zeros(len(gram))
    root[asked] = np.sqrt(best_mu)
    return GramOptimum(full, value * scale, dual_bound(gram, root, error))


def dual_bound(gram: Floats, root: Floats, error: float = 0.0) -> float:
    """A proved lower bound on tr(G X^+) for every X with a diagonal of at most 1.

    Parameters
    ----------
    gram : numpy.ndarray of float64
        G, shape (cells, cells): symmetric, positive semidefinite.
    root : numpy.ndarray of float64
        Square roots of the multipliers, >= 0 and not all 0, shape (cells,): the nearer to those of
        the optimum, the better the bound.
    error : float, default 0
        At least the spectral norm of what ``gram`` lacks to the true G.

    Returns
    -------
    float
        The bound, rounded down.
    """
    largest = float(root.max())
    shares = root / largest  # at most 1, so an error of G grows by no factor
    norm = trace_of_root(shares[:, None] * gram * shares, error, products=2)
    total = float((shares * shares).sum()) * (1 + (len(shares) + 2) * _UNIT * 2)
    return norm * norm / total * (1 - 8 * _UNIT)


def trace_of_root(matrix: Floats, error: float = 0.0, products: int = 0) -> float:
    """A proved lower bound on the trace of the square root of a positive semidefinite matrix.

    With K = Q L Q' nearly, for floats Q and L >= 0, let d bound the norm of Q'Q - I and r that of
    K - Q L Q'. Then (Ostrowski, Weyl) the eigenvalues of K are at least (1 - d) l - r each. Both
    norms are bounded by the Frobenius norms of computed matrices and of the rounding of their
    products: a sum of k products of floats is known to within k u / (1 - k u) times the sum of
    their absolute values, in whatever order it is computed (Higham 2002, section 3.1).

    Parameters
    ----------
    matrix : numpy.ndarray of float64
        Symmetric, shape (size, size), no entry so large or small that products leave the range of
        floats.
    error : float, default 0
        At least the spectral norm of what the matrix lacks to the true K.
    products : int, default 0
        How many roundings each of its entries has seen already.

    Returns
    -------
    float
        The bound, rounded down; at least 0.
    """
    size = len(matrix)
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 0.0)
    terms = (size + 4) * _UNIT / (1 - (size + 4) * _UNIT)
    away = np.abs(vectors)
    apart = vectors.T @ vectors
    apart[np.diag_indices(size)] -= 1
    defect = _norm(apart) + terms * _norm(away.T @ away) + 2 * size * _UNIT
    rest = matrix - (vectors * values) @ vectors.T
    rounding = terms * _norm((away * values) @ away.T) + (products + 2) * _UNIT * _norm(matrix)
    residual = _norm(rest) + rounding + error
    slack = 1 + 2.0**-20  # for the rounding of the bounds themselves
    lower = (1 - slack * defect) * values - slack * residual
    return float(np.sqrt(np.maximum(lower, 0.0)).sum()) * (1 - (size + 4) * 2 * _UNIT)


def _norm(matrix: Floats) -> float:
    return float(np.linalg.norm(matrix))
