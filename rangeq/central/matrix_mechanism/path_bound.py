"""How small the error of prefixes or ranges can be under Gaussian noise: proved, up to 2^20 cells.

The error of a strategy A with X = A'A and columns of norms of at most 1 is tr(G X^+), and for all
mu >= 0, with M = diag(mu), it is at least (tr (M^(1/2) G M^(1/2))^(1/2))^2 / sum(mu): see
`rangeq.central.matrix_mechanism.gram_optimum`. Here G is a multiple of the inverse of the second
difference L along a path, which is tridiagonal. So with T = M^(-1/2) L M^(-1/2) what is needed is
tr T^(-1/2), and, for the next mu, the diagonal of that matrix.

For every x > 0 the sum of 2^k / (4^k + x) over all integers k, times 2 ln 2 / pi, is x^(-1/2) up to
a factor within 1 +- 2.8e-6: with h = ln 2 and c = ln(x) / 2 it is x^(-1/2) h / pi times the sum of
sech(k h - c), which by Poisson's summation is pi / h times a sum of sech(pi^2 n / h) cos(2 pi n c /
h). All terms are positive, so that any of them, divided by 1 + 2.8e-6, stay below x^(-1/2). And

    mu_j (L + s M)^(-1)[j, j] = mu_j / (a_j + b_j + s mu_j),

where a_(j+1) = (a_j + s mu_j) / (1 + a_j + s mu_j) from the left, b likewise from the right,
beginning with 1 at a fixed end and with 0 at a free one: elimination from both ends. Nothing is
subtracted, and the step from a_j to a_(j+1) makes relative errors smaller, so that rounding adds up
to a known multiple of the number of cells.
"""

from __future__ import annotations

import math

import numpy as np

from mechdesign._support.arrays import Floats
from mechdesign._support.numbers import whole
from mechdesign._support.text import shown
from rangeq.central.matrix_mechanism.workload import InvalidWorkload

LARGEST_PATH = 1 << 20
"""The most cells of a path."""

_ABOVE = 2.8e-6
"""At least twice the sum of sech(pi^2 n / ln 2) over n >= 1, which is 2.62e-6."""

_ROUNDS = 3

_CHUNK = 1 << 22

_SCALED = 8
"""After so many steps numbers are scaled by a power of two: a step is less than 2^100."""


def has_free_end(name: str) -> bool:
    """Whether the path of a workload has a free left end: that of prefixes, not that of ranges.

    Parameters
    ----------
    name : str
        "prefixes" or "ranges".

    Returns
    -------
    bool
        Of ranges both ends are fixed.

    Raises
    ------
    InvalidWorkload
        Another name.
    """
    if name not in ("prefixes", "ranges"):
        raise InvalidWorkload(f"what has a path is prefixes or ranges, got {shown(name)}")
    return name == "prefixes"


def least_path_error(name: str, size: int) -> float:
    """A proved lower bound on the error of prefixes or ranges, for all strategies.

    Parameters
    ----------
    name : str
        "prefixes" or "ranges".
    size : int
        The number of cells, 1 .. 2^20.

    Returns
    -------
    float
        At most tr(G X^+) for every X with a diagonal of at most 1: the sum of all variances, per
        unit of noise variance and squared sensitivity; rounded down.

    Raises
    ------
    InvalidWorkload
        Another name.
    ValueError
        Another size.

    >>> round(least_path_error("prefixes", 256))
    1631
    """
    free = has_free_end(name)
    size = whole(size, "size", 1, LARGEST_PATH)
    mu, best = np.ones(size), 0.0
    for _ in range(_ROUNDS):
        diagonal = root_diagonal(mu, free)
        best = max(best, float(diagonal.sum()) ** 2 / float(mu.sum()))
        mu = diagonal**2 / mu  # stays where mu is the diagonal, and comes there in few rounds
        mu /= mu.mean()
    # Elimination rounds less than 16 size + 1024 times on the way to a number
    slack = (64 * size + 4096) * 2.0**-53
    return (1 if free else size + 1) * best * (1 - slack) / (1 + _ABOVE) ** 2


def root_diagonal(mu: Floats, free: bool) -> Floats:
    """The diagonal of (M^(1/2) L^(-1) M^(1/2))^(1/2), nearly.

    Parameters
    ----------
    mu : numpy.ndarray of float64
        Above 0, shape (size,), of mean 1.
    free : bool
        Whether the left end of the path is free: L has the first row (1, -1) then, not (2, -1).

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
    for start in range(0, len(nodes), step):
        some = nodes[start : start + step, None]
        added = 4.0**some * mu
        left = _eliminated(added, 0.0 if free else 1.0)
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
