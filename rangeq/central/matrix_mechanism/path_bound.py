"""How small the error of prefixes or ranges can be under Gaussian noise: proved, up to 2^20 cells.

The error of a strategy A with X = A'A and columns of norms of at most 1 is tr(G X^+), and for all
mu >= 0, with M = diag(mu), it is at least (tr (M^(1/2) G M^(1/2))^(1/2))^2 / sum(mu): see
`rangeq.central.matrix_mechanism.gram_optimum`. Prefixes of weight p and ranges of weight r have

    G[i, j] = (p + r (i + 1)) (size - j)  for i <= j,

which is p + r (size + 1) times the inverse of the second difference L along a path: tridiagonal,
with rows (-1, 2, -1), but for the first, (2 - p / (p + r), -1). The right end of the path is fixed,
the left one free for prefixes alone, and fixed for ranges alone. So with T = M^(-1/2) L M^(-1/2)
what is needed is tr T^(-1/2), and, for the next mu, the diagonal of that matrix.

For every x > 0 the sum of 2^k / (4^k + x) over all integers k, times 2 ln 2 / pi, is x^(-1/2) up to
a factor within 1 +- 2.8e-6: with h = ln 2 and c = ln(x) / 2 it is x^(-1/2) h / pi times the sum of
sech(k h - c), which by Poisson's summation is pi / h times a sum of sech(pi^2 n / h) cos(2 pi n c /
h). All terms are positive, so that any of them, divided by 1 + 2.8e-6, stay below x^(-1/2). And

    mu_j (L + s M)^(-1)[j, j] = mu_j / (a_j + b_j + s mu_j),

where a_(j+1) = (a_j + s mu_j) / (1 + a_j + s mu_j) from the left, beginning with r / (p + r), and b
likewise from the right, beginning with 1: elimination from both ends. Nothing is subtracted, and
the step from a_j to a_(j+1) makes relative errors smaller, so that rounding adds up to a known
multiple of the number of cells.
"""

from __future__ import annotations

import math

import numpy as np

from mechdesign.base.arrays import Floats
from mechdesign.base.numbers import whole
from rangeq.central.matrix_mechanism.workload import Workload

LARGEST_PATH = 1 << 20
"""The most cells of a path."""

_ABOVE = 2.8e-6
"""At least twice the sum of sech(pi^2 n / ln 2) over n >= 1, which is 2.62e-6."""

_ROUNDS = 3

_CHUNK = 1 << 22

_SCALED = 8
"""After so many steps numbers are scaled by a power of two: a step is less than 2^100."""


def path_weights(workload: Workload) -> tuple[float, float] | None:
    """The weights of prefixes and of ranges in a workload of nothing else.

    Parameters
    ----------
    workload : Workload
        Over any cells.

    Returns
    -------
    tuple of (float, float), or None
        None for other queries, more than one attribute, or more than 2^20 cells.
    """
    weights = {"prefixes": 0.0, "ranges": 0.0}
    if len(workload.sizes) > 1 or workload.cells > LARGEST_PATH:
        return None
    for term in workload.terms:
        if term.factors[0].name not in weights:
            return None
        weights[term.factors[0].name] += term.weight
    return weights["prefixes"], weights["ranges"]


def least_path_error(prefixes: float, ranges: float, size: int) -> float:
    """A proved lower bound on the error of prefixes and ranges, for all strategies.

    Parameters
    ----------
    prefixes, ranges : float
        The weights of their squared errors, at least 0 and not both 0.
    size : int
        The number of cells, 1 .. 2^20.

    Returns
    -------
    float
        At most tr(G X^+) for every X with a diagonal of at most 1: the weighted sum of all
        variances, per unit of noise variance and squared sensitivity; rounded down.

    Raises
    ------
    ValueError
        Another size.

    >>> round(least_path_error(1, 0, 256))
    1631
    """
    size = whole(size, "size", 1, LARGEST_PATH)
    start = ranges / (prefixes + ranges)
    mu, best = np.ones(size), 0.0
    for _ in range(_ROUNDS):
        diagonal = root_diagonal(mu, start)
        best = max(best, float(diagonal.sum()) ** 2 / float(mu.sum()))
        mu = diagonal**2 / mu  # stays where mu is the diagonal, and comes there in few rounds
        mu /= mu.mean()
    # Elimination rounds less than 16 size + 1024 times on the way to a number
    slack = (64 * size + 4096) * 2.0**-53
    return (prefixes + ranges * (size + 1)) * best * (1 - slack) / (1 + _ABOVE) ** 2


def root_diagonal(mu: Floats, start: float) -> Floats:
    """The diagonal of (M^(1/2) L^(-1) M^(1/2))^(1/2), nearly.

    Parameters
    ----------
    mu : numpy.ndarray of float64
        Above 0, shape (size,), of mean 1.
    start : float
        From 0, the left end of the path is free, to 1, it is fixed: the first row of L is (1 +
        start, -1).

    Returns
    -------
    numpy.ndarray of float64
        Shape (size,): at most the true diagonal's, but for rounding and a factor of 1 + 2.8e-6 in
        their sum.
    """
    size = len(mu)
    # Eigenvalues of T are within 1 / (size^2 max(mu)) and 4 / min(mu), roughly
    least = -math.ceil(math.log2(size * math.sqrt(mu.max()))) - 12
    most = math.ceil(1 - math.log2(mu.min()) / 2) + 12
    nodes = np.arange(least, most + 1)
    step, found = max(1, _CHUNK // size), np.zeros(size)
    for begin in range(0, len(nodes), step):
        some = nodes[begin : begin + step, None]
        added = 4.0**some * mu
        left = _eliminated(added, start)
        right = _eliminated(added[:, ::-1], 1.0)[:, ::-1]
        found += (2.0**some * mu / (left + right + added)).sum(axis=0)
    return found * (2 * math.log(2) / math.pi)


def _eliminated(added: Floats, start: float) -> Floats:
    """The numbers a_0 = start, a_(j+1) = (a_j + c_j) / (1 + a_j + c_j), for each row c of `added`.

    A step is the matrix (1, c; 1, 1 + c) on numerator and denominator, so steps are put together as
    products: the cells are cut into blocks, and done at the same time in all of them.
    """
    nodes, size = added.shape
    blocks = math.isqrt(size - 1) + 1
    length = -(-size // blocks)
    padded = np.zeros((nodes, blocks * length))
    padded[:, :size] = added
    cells = np.ascontiguousarray(padded.reshape(nodes, blocks, length).transpose(2, 0, 1))
    # The product of a block's steps: two columns of a numerator and a denominator
    above, below = np.zeros((2, 2, nodes, blocks))
    above[0], below[1] = 1.0, 1.0
    for done, c in enumerate(cells):
        above += c * below
        below += above
        if done % _SCALED == 0:
            _, shift = np.frexp(below.max(axis=0))
            above, below = np.ldexp(above, -shift), np.ldexp(below, -shift)
    value = np.full(nodes, start)
    starts = np.empty((nodes, blocks))
    for block in range(blocks):
        starts[:, block] = value
        numerator = above[0, :, block] * value + above[1, :, block]
        value = numerator / (below[0, :, block] * value + below[1, :, block])
    found, values = np.empty_like(cells), starts
    for place, c in enumerate(cells):
        found[place] = values
        total = values + c
        values = total / (1 + total)
    return found.transpose(1, 2, 0).reshape(nodes, -1)[:, :size]
