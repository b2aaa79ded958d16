"""The strategy whose largest variance over the queries is least, under Gaussian noise.

For any weights of sum 1 the largest variance is at least the weighted mean, and so at least the
least weighted mean of any strategy. For the best weights both are equal: these are convex programs
that are dual to each other. Weights are found by multiplying each with its query's variance, over
the weighted mean, again and again (as Titterington 1976 does for designs of experiments), and each
round has a strategy, whose largest variance is above the optimum, and a bound below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

from mechdesign.base import Floats, Integers
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.gram_optimum import optimal_gram
from rangeq.central.matrix_mechanism.several_attributes import exchangeable, marginal_optimum
from rangeq.central.matrix_mechanism.strategy import Strategy
from rangeq.central.matrix_mechanism.workload import InvalidWorkload, Term, Workload
from rangeq.core import cumulated

#: The most cells of one attribute.
MOST_CELLS = 1 << 10

_ROUNDS = 200

_LEAST = 1e-12  # the least weight, so that none is lost for good

_GAP = 1e-3  # of the largest variance over its bound, that ends them


def largest_variance(strategy: Strategy, workload: Workload) -> float:
    """Return the largest variance of a query, per unit of noise variance.

    Of marginals, of several attributes, all cells of one have the same.
    """
    if len(workload.sizes) > 1:
        return max(strategy.workload_variance(_alone(workload, term)) for term in workload.terms)
    first, last = _ends(workload)
    return float(strategy.variance(first[None], last[None]).max())


def require_minimax(asked: Workload) -> None:
    """Refuse queries of which the largest variance is not made small here."""
    if len(asked.sizes) > 1 and exchangeable(asked):
        return
    names = {queries.name for term in asked.terms for queries in term.factors}
    if len(asked.sizes) > 1 or names - {"ranges", "prefixes"} or asked.sizes[0] > MOST_CELLS:
        raise InvalidWorkload(
            "the largest variance is made small of marginals, and of prefixes and ranges of one"
            f" attribute of at most {MOST_CELLS} cells, got {asked!r}"
        )


def least_largest(asked: Workload, tolerance: float, bits: int) -> tuple[Strategy, float]:
    """Return a strategy, and a lower bound on the largest variance for columns of norm 1."""
    if exchangeable(asked) and len(asked.sizes) > 1:
        return _of_marginals(asked, bits)
    first, last = _ends(asked)
    size = asked.sizes[0]

    def solve(weights: Floats) -> tuple[Floats, Floats, float]:
        gram, error = _gram(weights, first, last, size)
        optimum = optimal_gram(gram, tolerance, error)
        found = optimum.gram / np.diag(optimum.gram).max()
        sums = cumulated(np.linalg.inv(found))
        low, high = first, last + 1
        variances = sums[high, high] - sums[low, high] - sums[high, low] + sums[low, low]
        return found, variances, optimum.bound

    found, bound = _reweighted(solve, len(first))
    return DenseStrategy.of_gram(found, np.eye(size, dtype=np.int64), asked.sizes, bits), bound


def _of_marginals(asked: Workload, bits: int) -> tuple[Strategy, float]:
    alone = [_alone(asked, term) for term in asked.terms]
    counts = np.array([term.count for term in asked.terms], dtype=np.float64)

    def solve(weights: Floats) -> tuple[Strategy, Floats, float]:
        # All cells of a term share its weight
        terms = [
            replace(term, weight=float(weight))
            for term, weight in zip(asked.terms, weights / counts, strict=True)
        ]
        strategy, bound = marginal_optimum(Workload(asked.sizes, tuple(terms)), bits)
        variances = [strategy.l2_squared * strategy.workload_variance(each) for each in alone]
        return strategy, np.array(variances), bound

    return _reweighted(solve, len(alone))


Found = TypeVar("Found")


def _reweighted(
    solve: Callable[[Floats], tuple[Found, Floats, float]], queries: int
) -> tuple[Found, float]:
    """Search weights: `solve` gives what is best for some, the queries' variances, and a bound."""
    weights = np.full(queries, 1 / queries)
    best, found = np.inf, None
    bound = 0.0
    for _ in range(_ROUNDS):
        candidate, variances, least = solve(weights)
        bound = max(bound, least)
        if variances.max() < best:
            best, found = float(variances.max()), candidate
        if best <= bound * (1 + _GAP):
            break
        weights = weights * variances
        weights = np.maximum(weights / weights.sum(), _LEAST)
        weights /= weights.sum()
    assert found is not None
    return found, bound


def _alone(workload: Workload, term: Term) -> Workload:
    return Workload(workload.sizes, (replace(term, weight=1.0),))


def _ends(workload: Workload) -> tuple[Integers, Integers]:
    """The closed ends of all ranges, or of all prefixes if no ranges are asked."""
    size = workload.sizes[0]
    if any(term.factors[0].name == "ranges" for term in workload.terms):
        first, last = np.triu_indices(size)
        return first, last
    return np.zeros(size, dtype=np.int64), np.arange(size)


def _gram(weights: Floats, first: Integers, last: Integers, size: int) -> tuple[Floats, float]:
    """The Gram matrix of weighted ranges, and a bound on its rounding error."""
    # Two cells are both in the ranges that begin up to the first and end from the second on
    table = np.zeros((size, size))
    table[first, last] = weights
    covering = table.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1]
    cell = np.arange(size)
    gram = covering[np.minimum.outer(cell, cell), np.maximum.outer(cell, cell)]
    # Sums of at most size^2 numbers >= 0 in runs of 2 size (Higham 2002, section 4.2); the spectral
    # norm of what is off is at most its largest row sum
    return gram, 4 * size * 2.0**-53 * float(gram.sum(axis=1).max())
