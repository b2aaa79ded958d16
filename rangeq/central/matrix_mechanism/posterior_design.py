"""Designs for the posterior: what is measured where few numbers tell more than the prior."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from numbers import Real

import numpy as np

from mechdesign import ZCDP, ApproximateDP, Privacy
from mechdesign.base import Floats, one_thread, shown
from rangeq.central.inputs import LARGEST_MARGINALS, checked_shape
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.design import entry_bits, workload_optimal
from rangeq.central.matrix_mechanism.grouped_strategy import GroupedStrategy
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism, Promise
from rangeq.central.matrix_mechanism.several_attributes import MOST_BITS
from rangeq.central.matrix_mechanism.strategy import Strategy, View
from rangeq.central.matrix_mechanism.workload import QuerySet
from rangeq.central.posterior import MOST_CELLS
from rangeq.central.released_noise import LARGEST
from rangeq.core import contrasts


def posterior_optimal(
    domain: int | Sequence[int], promise: Promise, users: float
) -> MatrixMechanism:
    """What is measured for a release's posterior, of the least predicted risk.

    What `workload_optimal` designs has the least variance of unbiased answers. Those of
    `CentralEstimate.posterior` need numbers only where these tell more than the prior, which of few
    users and at low epsilon is little: the coarse shape of a histogram, and single attributes. How
    much of the budget these have is found by the predicted risk over a public family of
    populations. Some is left for all cells, or all pairs, so that unbiased answers follow, too.

    Of one attribute ranges are asked, of several single ones and pairs. Of more than 512 cells of
    one attribute a `GroupedStrategy` measures 512 groups of neighbours, and with some of the budget
    each cell: what is within groups is seen where it stands out.

    Parameters
    ----------
    domain : int or sequence of int
        The number of cells of one attribute, 2 to 4096, or along each of up to 100, two of which
        have more than one.
    promise : Privacy, ZCDP or ApproximateDP
        What a release keeps, for one user more or less.
    users : float
        How many there are, about, from what is public: at least 1. No data enter the design.

    Returns
    -------
    MatrixMechanism
        Of several attributes its `MarginalStrategy` measures residuals with Gaussian noise, and
        with Laplace noise counts.

    Raises
    ------
    ValueError, TypeError
        Another domain or promise, or a number of users that is none.

    Examples
    --------
    >>> from mechdesign.accounting import ApproximateDP
    >>> mechanism = posterior_optimal((10, 10, 2), ApproximateDP(1, "1e-9"), users=5000)
    >>> mechanism.strategy.rows, mechanism.audit().holds
    (163, True)
    """
    sizes = checked_shape(domain, LARGEST_MARGINALS)
    checked_users(users)
    if not isinstance(promise, (Privacy, ZCDP, ApproximateDP)):
        raise TypeError(
            f"a promise is a Privacy, a ZCDP or an ApproximateDP, got a {type(promise).__name__}"
        )
    exponential = isinstance(promise, Privacy)
    unit = 2 / promise.epsilon**2 if isinstance(promise, Privacy) else float(promise.noise_ratio)
    if len(sizes) == 1:
        if not 2 <= sizes[0] <= MOST_CELLS:
            raise ValueError(
                f"a histogram with a posterior has 2 to {MOST_CELLS} cells, got {sizes[0]}"
            )
        return MatrixMechanism(_for_ranges(sizes[0], promise, unit, users), promise)
    bits = MOST_BITS if isinstance(promise, Privacy) else entry_bits(promise.noise_ratio)
    strategy = marginals_for_posterior(sizes, unit / users**2, 1 + exponential, bits)
    return MatrixMechanism(strategy, promise)


def checked_users(users: float) -> float:
    """Check a number of users, from what is public."""
    if not (isinstance(users, Real) and math.isfinite(users) and users >= 1):
        raise ValueError(f"users must be a number of at least 1, got {shown(users)}")
    return float(users)


# ------------------------------------------------------------------------------------------------
# Histograms for the posterior of ranges.
#
# Let S be the covariance of the counts under the prior, G the Gram matrix of the ranges, and X that
# of the strategy over the variance of the noise. The risk is tr(G (S^-1 + X)^-1). In coordinates in
# which S is the identity and G is diagonal, with entries h_i, a diagonal X with entries x_i has the
# risk sum of h_i / (1 + x_i), least for x_i = ((h_i / (mu c_i))^(1/2) - 1)_+ under a bound on the
# trace of X = sum of c_i x_i. The unbiased design with these x_i is that for queries of which h_i
# is mu c_i x_i^2: so `workload_optimal` finds integers and noise for these queries.


#: Prior deviations of the logarithms of shares: of a smooth function and of a slope along the
#: attribute, of which two lengths are 1, its length, and those of each cell, for two populations.
_SMOOTH, _SLOPE, _LENGTH, _POINTS = 1.0, 1.0, 0.3, (0.3, 1.0)

_GUESS = 0.5  # the relative deviation of the number of users from what is said of it

_RANGES = 3e-3  # the part of all ranges among the queries, so that all cells are measured

#: The part of the total, times the fourth root of the part of the risk that the release leaves:
#: data that are more even than the family need no more than it, where little is told.
_TOTAL = 2.5

#: Parts of the budget that are tried for single cells beside groups. The least is for what the
#: family has not: with half of it ranges err as much on average, and more where there are spikes.
_SHARES = (0.1, 0.15, 0.2, 0.3)

# Laplace noise is in proportion to absolute sums of columns, which are larger than their norms.
_SHARPER = 8

_HALVINGS = 200  # of the interval that mu is sought in


def _for_ranges(size: int, promise: Promise, unit: float, users: float) -> Strategy:
    """What is measured of one attribute."""
    exponential = isinstance(promise, Privacy)
    power, sharper = (2, _SHARPER) if exponential else (1, 1)
    groups = min(size, LARGEST)
    share = 0.0
    if size > groups:
        share = _share_of_cells(size, groups, unit, users, power, sharper)
    queries = histogram_for_posterior(groups, sharper * unit / (1 - share) ** power, users)
    strategy = workload_optimal(queries, groups, promise).strategy
    if size == groups:
        return strategy
    assert isinstance(strategy, DenseStrategy)
    odds = share / (1 - share)
    weight = strategy.l1 * odds if exponential else math.sqrt(strategy.l2_squared * odds)
    return GroupedStrategy(strategy, max(1, round(weight)), size)


@one_thread
def _share_of_cells(
    size: int, groups: int, unit: float, users: float, power: int, sharper: float
) -> float:
    """The part of the budget for single cells of the least predicted risk.

    Its noise has the variance ``unit`` / part^``power``, and that of groups ``sharper`` times more.
    """
    ranges = QuerySet("ranges", groups).gram
    risks = dict.fromkeys(_SHARES, 0.0)
    for points, prior in _priors(groups, users):
        own = (points * users / size) ** 2
        for share in _SHARES:
            _, risk = _left_open(ranges, prior, sharper * unit / (1 - share) ** power)
            between = risk / (groups * (groups + 1) / 2)
            # Of k of b cells that sum to a group's count the variance is k (b - k) / b times that
            # of one: at both ends of a range, on average over k
            width, noise = size / groups, unit / share**power
            within = own * noise / (own + noise) * (width - 1 / width) / 3
            risks[share] += math.log(between + within)
    return min(_SHARES, key=lambda share: risks[share])


@one_thread
def histogram_for_posterior(cells: int, unit: float, users: float) -> Floats:
    """Return the queries that are measured for the posterior of ranges: (cells, cells).

    ``unit`` is the variance of the noise of a strategy whose columns have the norm 1.
    """
    ranges = QuerySet("ranges", cells).gram
    gram, left = np.zeros((cells, cells)), 0.0
    for _, prior in _priors(cells, users):
        queries, risk = _left_open(ranges, prior, unit)
        gram += queries / risk
        left = max(left, risk / float(np.sum(ranges * prior)))
    gram = gram / np.trace(gram) + _RANGES * ranges / np.trace(ranges)
    gram = gram / np.trace(gram) + _TOTAL * left**0.25 / cells
    return np.linalg.cholesky(gram).T


def _priors(cells: int, users: float) -> Iterator[tuple[float, Floats]]:
    """Yield of each population the deviation of its cells, and the covariance of their counts."""
    x = 2 * (np.arange(cells) + 0.5) / cells - 1
    smooth = _SMOOTH**2 * np.exp(-0.5 * ((x[:, None] - x) / _LENGTH) ** 2)
    smooth += _SLOPE**2 * np.outer(x, x)
    for points in _POINTS:
        # Counts are nearly even shares times what their logarithms differ by
        prior = contrasts(smooth + points**2 * np.eye(cells)) + _GUESS**2
        yield points, prior * (users / cells) ** 2


def _left_open(ranges: Floats, prior: Floats, unit: float) -> tuple[Floats, float]:
    """The Gram matrix of the queries for which a design is that of the least risk, and the risk."""
    root = np.linalg.cholesky(prior)
    weights, turns = np.linalg.eigh(root.T @ ranges @ root)
    weights = np.maximum(weights, 0.0)
    back = np.linalg.solve(root.T, turns)
    costs = (back**2).mean(axis=0)
    low, high = -60.0, 60.0  # of log10 of mu
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        told = np.maximum(np.sqrt(weights / (10.0**middle * costs)) - 1, 0.0)
        low, high = (middle, high) if (costs * told).sum() * unit > 1 else (low, middle)
    return (back * (costs * told**2)) @ back.T, float((weights / (1 + told)).sum())


# ------------------------------------------------------------------------------------------------
# Marginals for the posterior: how much of the budget each set of attributes has.
#
# The posterior does not need what its prior knows: at low epsilon noisy tables of pairs tell
# nothing, and single attributes everything. So the predicted risk is made small and not a variance:
# of populations whose shares are (1 + sum of g_a e_a) / cells, for orthonormal functions e_a along
# each attribute and products of two of them, with independent coefficients g_a whose variances fall
# with the square of a. A coefficient of prior variance p that is measured with the variance v is
# known to within p v / (p + v). The budgets b_S, of sum 1, are found by steps of b_S in proportion
# to b_S times a power of the risk's slope in log b_S: a fixed point is a stationary point.


#: The squares of all interactions of a pair, relative to shares that are even: from hardly any
#: dependence to much. The predicted risk is the geometric mean over these.
_DEPENDENCE = (0.02, 0.2, 2.0)

_SPARED = 0.1  # the least budget, in even ones

_STEPS = 60  # towards the budgets

_FINEST = 24  # the bits of weights, at most


def marginals_for_posterior(
    sizes: Sequence[int], unit: float, power: int, bits: int = MOST_BITS
) -> MarginalStrategy:
    """Return totals, single attributes and pairs for the least predicted risk of the posterior.

    ``unit`` is the variance of the noise of one number with all of the budget, in squared shares of
    the users. It is in proportion to budget^-``power``: 1 for Gaussian noise, of which residuals
    are measured, and 2 for Laplace noise, of which counts are.
    """
    wide = [i for i, n in enumerate(sizes) if n > 1]
    if len(wide) < 2:
        raise ValueError(f"of {shown(sizes)} cells there are no pairs of attributes to measure")
    views: list[View] = [(), *((i,) for i in wide), *combinations(wide, 2)]
    shapes = [tuple(sorted(sizes[i] for i in view)) for view in views]
    budgets = _budgets(Counter(shapes), unit, power)
    weights = []
    for shape in shapes:
        # A column of a residual of weight w has the squared norm w^2 prod n (n - 1)
        share = budgets[shape]
        if power == 1:
            share = math.sqrt(share / math.prod(n * (n - 1) for n in shape))
        weights.append(max(1, round(2.0 ** min(bits, _FINEST) * share)))
    return MarginalStrategy(sizes, views, weights, power == 1)


def falling(size: int) -> Floats:
    """The prior variances of the coefficients along an attribute, of sum 1: (size - 1,)."""
    squares = np.arange(1, size, dtype=np.float64) ** -2.0
    return np.asarray(squares / squares.sum())


def _budgets(shapes: Mapping[View, int], unit: float, power: int) -> dict[View, float]:
    """The budget of each total, attribute and pair, by its sizes, of which there are so many."""
    prior = {n: falling(n) for shape in shapes for n in shape}
    sources = {shape: _sources(shape, shapes, power) for shape in shapes}
    even = 1 / sum(shapes.values())
    budgets = dict.fromkeys(shapes, even)
    for _ in range(_STEPS):
        told = {
            shape: {other: factor * budgets[other] ** power for other, factor in from_.items()}
            for shape, from_ in sources.items()
        }
        variances = {shape: unit / sum(parts.values()) for shape, parts in told.items()}
        # Relative to even shares, in which a table of q cells has q times the square
        lower: dict[View, tuple[float, float]] = {
            shape: _left(prior[shape[0]], variances[shape] * shape[0])
            for shape in shapes
            if len(shape) == 1
        }
        lower[()] = variances[()], variances[()]
        slopes = dict.fromkeys(shapes, 0.0)
        for dependence in _DEPENDENCE:
            risk, own = 0.0, dict.fromkeys(shapes, 0.0)
            for pair, many in shapes.items():
                if len(pair) < 2:
                    continue
                squares: Floats = dependence * np.outer(*(prior[n] for n in pair)).ravel()
                parts = [
                    (pair, _left(squares, variances[pair] * math.prod(pair))),
                    *((shape, lower[shape]) for shape in ((), *((n,) for n in pair))),
                ]
                root = math.sqrt(sum(left for _, (left, _) in parts))
                risk += many * root
                for shape, (_, slope) in parts:
                    own[shape] += many * slope / root
            for shape, slope in own.items():
                for other, part in told[shape].items():
                    share = part * variances[shape] / unit
                    slopes[other] += share * slope / (risk * shapes[other])
        # None goes to 0: what is not measured could not be answered, however much it depends
        raised = {
            shape: max(budget * (slopes[shape] / budget) ** (1 / (power + 1)), _SPARED * even)
            for shape, budget in budgets.items()
        }
        total = math.fsum(raised[shape] * count for shape, count in shapes.items())
        budgets = {shape: value / total for shape, value in raised.items()}
    return budgets


def _sources(shape: View, shapes: Mapping[View, int], power: int) -> dict[View, float]:
    """What of each budget tells of a set of attributes of this shape, by the shape of its own."""
    if power == 1:  # residuals tell of nothing else, and have columns of a squared norm below 1
        return {shape: 1 / math.prod(1 - 1 / n for n in shape)}
    if len(shape) == 2:
        return {shape: 1.0}
    told = {shape: 1.0}
    for other, many in shapes.items():
        beyond = list(other)
        if len(other) <= len(shape) or (shape and shape[0] not in other):
            continue
        if shape:
            beyond.remove(shape[0])
            many = shapes[tuple(beyond)] - (tuple(beyond) == shape)
        # A sum of n counts has n times the variance
        told[other] = many / math.prod(beyond)
    return told


def _left(prior: Floats, variance: float) -> tuple[float, float]:
    """The sum of posterior variances of coefficients, and its slope in the logarithm of v."""
    known = prior / (prior + variance)
    return float((known * variance).sum()), float((known**2 * variance).sum())
