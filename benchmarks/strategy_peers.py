"""What the literature measures for ranges of one attribute: strategies written out as matrices.

The error of a strategy A on queries with the Gram matrix G, in root mean square per query, for
noise whose variance is the squared sensitivity: sqrt(s^2 tr(G (A'A)^+) / queries), where s is the
largest L1 norm of a column for Laplace noise (epsilon^2 = 2) and the largest L2 norm for Gaussian
noise (rho = 1/2).
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float64]


def identity(cells: int) -> Matrix:
    """Every cell."""
    return np.eye(cells)


def tree(cells: int, branching: int) -> Matrix:
    """Every node of a tree, with equal budgets (Hay et al., VLDB 2010): the root first.

    Nodes without cells are left out, and the last nodes may have fewer cells than the others.
    """
    widths = [1]
    while widths[-1] < cells:
        widths.append(widths[-1] * branching)
    cell = np.arange(cells)
    levels = [cell // width == np.arange(-(-cells // width))[:, None] for width in widths[::-1]]
    return np.concatenate(levels).astype(np.float64)


def hb(cells: int) -> Matrix:
    """The tree with the branching that Qardaji, Yang and Li (VLDB 2013, section 3.3) choose.

    With consistency, b minimises (b - 1) h^3 - 2 (b + 1) h^2 / 3, where h is the height without the
    root; one level is the identity.
    """

    def height(b: int) -> int:
        h = 1
        while b**h < cells:
            h += 1
        return h

    def variance(b: int) -> float:
        h = height(b)
        return (b - 1) * h**3 - 2 * (b + 1) * h**2 / 3

    best = min(range(2, cells + 1), key=variance)
    return tree(cells, best)[1:]


def wavelet(cells: int) -> Matrix:
    """The Haar coefficients (Privelet: Xiao, Wang and Gehrke, ICDE 2010), for a power of two."""
    rows = [np.ones((1, cells))]
    width = cells
    while width > 1:
        start = np.arange(0, cells, width)[:, None]
        place = np.arange(cells) - start
        inside = (place >= 0) & (place < width)
        rows.append(np.where(inside, np.where(place < width // 2, 1.0, -1.0), 0.0))
        width //= 2
    return np.concatenate(rows)


def greedy(gram: Matrix, norm: int) -> Matrix:
    """A binary tree with greedy weights, from the leaves up, after GreedyH (Li et al., VLDB 2014).

    Given the strategies of both halves, whose columns have norms 1, the node itself is measured
    with the share of the budget that is best for the part of the workload inside the node. With X
    the halves' A'A, a share a for the node and b for the halves, inside the node

        (a 11' + b X)^-1 = (S - a S11'S / (b + a 1'S1)) / b,   S = X^-1,

    so that the error is a function of one number. Shares are of the norms: a = w^2 and b =
    (1 - w)^2 for L1, a + b = 1 for L2.
    """
    cells = len(gram)
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 0.999, 4000)])
    a, b = (grid**2, (1 - grid) ** 2) if norm == 1 else (grid, 1 - grid)
    covariance = np.eye(cells)
    weights = np.ones((1, cells))  # squared, of the levels from the leaves up, by cell
    width = 2
    while width < 2 * cells:
        shares = np.empty((2, cells))
        for start in range(0, cells, width):
            some = slice(start, start + width)
            around = slice(start // (2 * width) * 2 * width, (start // (2 * width) + 1) * 2 * width)
            own, s = gram[some, some], covariance[some, some]
            if width < cells:
                own = own - gram[around, around].min()
            sums = s.sum(axis=1)
            total, along = float(np.sum(own * s)), float(sums @ own @ sums)
            best = int(np.argmin((total - a * along / (b + a * sums.sum())) / b))
            node, halves = a[best], b[best]
            shares[0, some], shares[1, some] = node, halves
            correction = node / (halves + node * sums.sum())
            covariance[some, some] = (s - correction * np.outer(sums, sums)) / halves
        weights = np.concatenate([weights * shares[1], shares[:1]])
        width *= 2
    nodes = tree(cells, 2)
    level = np.repeat(
        np.arange(len(weights))[::-1], [-(-cells // 2**k) for k in range(len(weights))][::-1]
    )
    return nodes * np.sqrt(weights[level])


def error(strategy: Matrix, gram: Matrix, queries: int, norm: int) -> float:
    """The root mean square error of a query, see above."""
    sensitivity = float(np.linalg.norm(strategy, norm, axis=0).max())
    inverse: Any = np.linalg.pinv(strategy.T @ strategy, hermitian=True)
    return sensitivity * math.sqrt(float(np.sum(gram * inverse)) / queries)
