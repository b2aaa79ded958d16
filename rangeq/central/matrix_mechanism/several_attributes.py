"""Strategies for several attributes, whose cells are too many for a matrix of cells by cells.

For a workload that is one product over the attributes, W = W_1 x W_2 x .., the product of the
sides' optima is optimal under Gaussian noise, and the product of their lower bounds is one: with
mu = mu_1 x mu_2 x .. the dual bound of `rangeq.central.matrix_mechanism.gram_optimum` is their
product. Of a sum of products every side is optimised in turn while the others stay: the error is
then that of a workload of one attribute, with weights. What is found may be far from the optimum. A
lower bound follows from the products by themselves, as the trace of the root is concave: with G =
sum of w_t G_t,

    tr G^(1/2) >= sum of p_t tr (w_t G_t / p_t)^(1/2)   for all p >= 0 of sum 1,

at best the root of the sum of w_t (tr G_t^(1/2))^2.

Workloads that treat the cells of each attribute alike have an optimum in closed form under Gaussian
noise, and good weights of marginals under Laplace noise: see
`rangeq.central.matrix_mechanism.marginal_strategy`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import scipy

from mechdesign.base import Floats
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy, ProductStrategy
from rangeq.central.matrix_mechanism.gram_optimum import optimal_gram, trace_of_root
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.p_identity import laplace_strategy
from rangeq.central.matrix_mechanism.strategy import View, subsets
from rangeq.central.matrix_mechanism.workload import (
    QuerySet,
    Term,
    Workload,
    basis_of,
    gram_of,
)

_BITS = 24  # the bits of the weights of marginals, and of the entries of a side

_ROUNDS = 30

#: The number of new starts for weights of marginals, and the logarithm of one left out.
_FLIPS, _OUT = 60, -8.0

_NO_WEIGHT = -80.0  # the least logarithm of a weight

_CLOSE = 1e-5  # the relative decrease of the error below which rounds end

#: The bits of products of entries of several strategies. Fewer are needed for much noise, whose
#: variance has a limit.
MOST_BITS = 27

_SMALL = 16  # entries of a side that treats all cells alike are below it

_LARGEST_VIEW = 1 << 22  # the most cells of a marginal that is measured though nobody asks for it

# The least weight of a marginal, relative to the largest; smaller ones are on their way to 0.
_LEAST_SHARE = 1e-4

_DOWN = 1 - 2.0**-40


def exchangeable(workload: Workload) -> bool:
    """Whether all cells of every attribute are alike to a workload, as to marginals."""
    return all(queries.exchangeable for term in workload.terms for queries in term.factors)


def marginal_optimum(workload: Workload, bits: int = MOST_BITS) -> tuple[MarginalStrategy, float]:
    """The best strategy under Gaussian noise for an `exchangeable` workload."""
    sizes = workload.sizes
    spectrum = _spectrum(workload)
    roots = {view: math.sqrt(value) for view, value in spectrum.items()}
    # Cauchy and Schwarz: with g_S and ranks m_S, the sum of m_S g_S / lambda_S subject to columns
    # of norm 1, sum of m_S lambda_S / cells = 1, is least for lambda_S = g_S^(1/2) cells / total,
    # where it is total^2 / cells. Here g_S is in units of the number of cells, which may be huge
    total = math.fsum(_rank(view, sizes) * root for view, root in roots.items())
    weights = []
    for view, root in roots.items():
        inside = math.prod(sizes[i] for i in view)
        # A residual of weight w has lambda_S = (w inside)^2 cells / inside
        weights.append(max(1, round(2.0**bits * math.sqrt(root / total / inside))))
    return MarginalStrategy(sizes, list(roots), weights, True), total * total * _DOWN


def marginal_weights(workload: Workload) -> MarginalStrategy:
    """Find marginals of small error under Laplace noise, for an `exchangeable` workload."""
    # The weights are found by quasi-Newton steps (McKenna et al. 2018, section 6.3)
    sizes = workload.sizes
    spectrum = _spectrum(workload)
    everything = subsets(tuple(i for i, n in enumerate(sizes) if n > 1))
    views = [
        view
        for view in everything
        if view in spectrum or math.prod(sizes[i] for i in view) <= _LARGEST_VIEW
    ]
    asked = np.array([_rank(view, sizes) * value for view, value in spectrum.items()])
    # The eigenvalue of every marginal's Gram matrix on every projection
    gains = np.array(
        [
            [
                math.prod(n for i, n in enumerate(sizes) if i not in other)
                if set(view) <= set(other)
                else 0
                for other in views
            ]
            for view in spectrum
        ],
        dtype=np.float64,
    )

    def error(logs: Floats) -> tuple[float, Floats]:
        # Softmax: the column of a marginal has the absolute sum 1, so the sensitivity is the sum of
        # the weights. For any logarithms they are positive and of sum 1, and no constraint is left
        # None underflows, as what is measured with a weight of 0 would have an infinite error
        shares = np.exp(np.maximum(logs - scipy.special.logsumexp(logs), _NO_WEIGHT))
        eigenvalues = gains @ shares**2
        value = float((asked / eigenvalues).sum())
        slope = -2 * shares**2 * (gains.T @ (asked / eigenvalues**2))
        # Chain rule through the softmax: d share_i / d log_j = share_i (1[i = j] - share_j)
        return math.log(value), (slope - shares * slope.sum()) / value

    def descended(start: Floats) -> scipy.optimize.OptimizeResult:
        return scipy.optimize.minimize(error, start, jac=True, method="L-BFGS-B")

    # A fixed seed, so that the same workload has the same strategy
    rng = np.random.default_rng(0)
    starts = [np.zeros(len(views)), *rng.normal(size=(8, len(views)))]
    best = min(map(descended, starts), key=lambda result: float(result.fun))
    for _ in range(_FLIPS):  # of many local minima: one to three marginals are put in, or left out
        # A weight that went to 0 has a slope of nearly 0, and no step would ever bring it back:
        # flipping it to either side is a new start near the best
        logs = np.maximum(best.x - scipy.special.logsumexp(best.x), _OUT)
        flipped = rng.choice(len(views), rng.integers(1, 4))
        logs[flipped] = np.where(logs[flipped] > _OUT / 2, _OUT, -1.0)
        best = min(best, descended(logs), key=lambda result: float(result.fun))
    shares = np.exp(best.x - scipy.special.logsumexp(best.x))
    weights = np.maximum(np.rint(shares * 2.0**_BITS), 1).astype(np.int64).tolist()
    kept = {
        view: weight
        for view, weight, share in zip(views, weights, shares / shares.max(), strict=True)
        if share > _LEAST_SHARE
    }
    for view, weight in zip(views, weights, strict=True):  # whatever is asked must follow
        if view in spectrum and not any(set(view) <= set(other) for other in kept):
            kept[view] = weight
    return MarginalStrategy(sizes, list(kept), list(kept.values()))


def _spectrum(workload: Workload) -> dict[View, float]:
    """The eigenvalue of the Gram matrix on each projection, where it is not 0, over all cells."""
    spectrum: dict[View, float] = {}
    for term in workload.terms:
        inside = tuple(i for i, queries in enumerate(term.factors) if queries.name == "cells")
        # A total along an attribute has the Gram matrix J, of eigenvalue n on the mean; cells have
        # the identity, of eigenvalue 1 on the mean and beside it, and so on all subsets
        value = term.weight / math.prod(workload.sizes[i] for i in inside)
        for view in subsets(inside):
            if all(workload.sizes[i] > 1 for i in view):
                spectrum[view] = spectrum.get(view, 0.0) + value
    return dict(sorted(spectrum.items()))


def _rank(view: View, sizes: Sequence[int]) -> int:
    return math.prod(sizes[i] - 1 for i in view)


def product_optimum(workload: Workload, tolerance: float, bits: int = MOST_BITS) -> ProductStrategy:
    """A product of strategies under Gaussian noise: optimal, if the workload is one product."""

    def side(queries: Workload) -> tuple[Floats, Callable[[int], DenseStrategy]]:
        gram, error = gram_of(queries)
        basis = basis_of(queries)
        optimum = optimal_gram(gram, tolerance, error, len(basis)).gram
        # Rounded later, once the other sides' entries show how many bits there are for this one
        return optimum, lambda side_bits: DenseStrategy.of_gram(optimum, basis, bits=side_bits)

    return _product(workload, side, 2, bits)


def product_for_laplace_noise(workload: Workload) -> ProductStrategy:
    """A product of strategies under Laplace noise."""

    def side(queries: Workload) -> tuple[Floats, Callable[[int], DenseStrategy]]:
        rows = laplace_strategy(gram_of(queries)[0])
        return rows.T @ rows, lambda bits: DenseStrategy(np.rint(rows * 2.0**bits).astype(np.int64))

    return _product(workload, side, 1)


def least_error(workload: Workload, tolerance: float) -> float:
    """A proved lower bound on the weighted sum of variances, for all strategies."""
    if len(workload.terms) == 1:
        (term,) = workload.terms
        sides = [
            optimal_gram(queries.gram, tolerance, queries.gram_error).bound
            for queries in term.factors
        ]
        return term.weight * math.prod(sides) * _DOWN
    # The bound of mu = 1 for a sum, by the concavity in the module's docstring: at its best p the
    # terms' own bounds add up. A dual bound with other mu would need the sum's Gram matrix
    parts = [
        term.weight
        * math.prod(
            trace_of_root(queries.gram, queries.gram_error) ** 2 for queries in term.factors
        )
        for term in workload.terms
    ]
    return math.fsum(parts) / workload.cells * _DOWN


# A side's Gram matrix A'A, and A as integers: rounded to multiples of 2^-bits, times 2^bits.
_Side: TypeAlias = tuple[Floats, Callable[[int], DenseStrategy]]


def _product(
    workload: Workload, solve: Callable[[Workload], _Side], power: int, most: int = MOST_BITS
) -> ProductStrategy:
    """Optimise each side in turn for the queries along its attribute, weighted by the others."""
    sizes, terms = workload.sizes, workload.terms
    along = [[term.factors[i] for term in terms] for i in range(len(sizes))]
    # Of every term and attribute, the sum of variances of its queries by the present strategy
    errors = np.array([[query_set.trace for query_set in term.factors] for term in terms])
    weights = np.array([term.weight for term in terms])
    alike = [i for i, queries in enumerate(along) if None not in map(_levels, queries)]
    sides: dict[int, _Side] = {}
    reached = math.inf
    for _ in range(_ROUNDS):
        for i, size in enumerate(sizes):
            # Block coordinate descent: for fixed other sides the error is linear in this side's
            # errors, so the terms' factors are the weights of a workload of one attribute. Their
            # scale does not matter, but keeps products of eight attributes from overflowing
            others = weights * np.delete(errors, i, axis=1).prod(axis=1)
            parts = zip(others / others.sum(), along[i], strict=True)
            queries = Workload(
                (size,), tuple(Term(float(weight), (query_set,)) for weight, query_set in parts)
            )
            sides[i] = _alike(queries, power) if i in alike else solve(queries)
            # A side has the range of its queries, which may be less than all cells
            inverse = np.linalg.pinv(sides[i][0], rcond=1e-9, hermitian=True)
            errors[:, i] = [float(np.sum(query_set.gram * inverse)) for query_set in along[i]]
        before, reached = reached, float(weights @ errors.prod(axis=1))
        # Of one product the sides do not depend on each other: one round is exact
        if len(terms) == 1 or reached > (1 - _CLOSE) * before:
            break
    # Small integers first, and of the rest of the bits as many for each other side
    factors = {i: sides[i][1](0) for i in alike}
    taken = math.prod(int(factor.matrix.max()) for factor in factors.values()).bit_length()
    searched = [i for i in range(len(sizes)) if i not in alike]
    bits = max(min((most - taken) // max(len(searched), 1), _BITS), 0)
    factors.update((i, sides[i][1](bits)) for i in searched)
    if not searched:  # a fine grid all the same
        spare = max(_BITS - int(factors[0].matrix.max()).bit_length(), 0)
        factors[0] = sides[0][1](min(bits, spare))
    return ProductStrategy([factors[i] for i in range(len(sizes))])


def _alike(workload: Workload, power: int) -> _Side:
    """A side for queries as good as cells and the total: both, with the best small integers."""
    (size,) = workload.sizes
    levels = [(term.weight, _levels(term.factors[0]) or (0.0, 0.0)) for term in workload.terms]
    cells = sum(weight * level for weight, (level, _) in levels)
    total = sum(weight * level for weight, (_, level) in levels)

    def error(a: int, b: int) -> float:
        """tr(G X^+) for X = a^2 I + b^2 J, with columns of norm 1."""
        if not a and (not b or (cells and size > 1)):
            return math.inf
        # X has the eigenvalue a^2 beside the mean, n - 1 times, and a^2 + n b^2 on it
        apart = cells * (size - 1) / a**2 if a else 0.0
        return (a**power + b**power) ** (2 / power) * (
            apart + (cells + total * size) / (a**2 + size * b**2)
        )

    # Coprime pairs, as a common factor changes neither the error nor the sensitivity's ratio to it;
    # exhaustive, as there are fewer than 256
    pairs = [(a, b) for a in range(_SMALL) for b in range(_SMALL) if math.gcd(a, b) == 1]
    a, b = min(pairs, key=lambda pair: error(*pair))
    parts = [a * np.eye(size, dtype=np.int64), np.full((1, size), b)]
    rows = np.vstack([part for part, entry in zip(parts, (a, b), strict=True) if entry])
    norm = (a**power + b**power) ** (2 / power)
    return (rows.T @ rows) / norm, lambda bits: DenseStrategy(rows << bits)


def _levels(queries: QuerySet) -> tuple[float, float] | None:
    """Return a and b, if the Gram matrix is a I + b J with b >= 0: that of a cells and b totals."""
    gram = queries.gram
    a, b = float(gram[0, 0]), float(gram[0, 1]) if queries.size > 1 else 0.0
    plain = np.full(gram.shape, b)
    np.fill_diagonal(plain, a)
    return (a - b, b) if b >= 0 and np.array_equal(gram, plain) else None
