"""Mechanisms of a curator of all kinds, and what they ask, by hand."""

import math
from itertools import combinations_with_replacement

import numpy as np

from rangeq.central import CentralFlat, Hierarchy, Wavelet
from rangeq.central.spectrum import tree_over
from rangeq.core.node_decomposition import nodes_used

TREES: list[Hierarchy | Wavelet | CentralFlat] = [
    Hierarchy(8, 1.0, 2),
    Hierarchy(9, 2.0, 3),
    Hierarchy(12, 1.0, [2, 3, 2]),
    Hierarchy(12, 1.0, [3, 2, 2], budget="geometric"),
    Hierarchy(16, 0.5, [4, 4], budget=[1, 3]),
    Hierarchy(16, 1.0, 2, budget="optimal"),
    Hierarchy(16, 1.0, 2, budget=[1, 0, 2, 3]),
    Hierarchy(5, 1.0, 2),
    Hierarchy(17, 1.0, 2, budget=[1, 2, 3, 4, 5]),
    Hierarchy(17, 3.0, [2, 3, 3]),
    Hierarchy(3, 1.0, 5),
    Hierarchy(1, 1.0, 2),
    Hierarchy(2, 1.0, 2),
]
PLAIN = [
    Hierarchy(8, 1.0, 2, inference=False),
    Hierarchy(12, 1.0, [2, 3, 2], inference=False, budget="geometric"),
    Hierarchy(16, 1.0, [4, 4], inference=False, budget=[1, 3]),
    Hierarchy(16, 1.0, 2, inference=False, budget="optimal"),
    Hierarchy(5, 1.0, 2, inference=False),
    Hierarchy(17, 1.0, [2, 3, 3], inference=False),
    Hierarchy(1, 1.0, 2, inference=False),
    Hierarchy(3, 1.0, 2, inference=False),
]
WAVELETS: list[Hierarchy | Wavelet | CentralFlat] = [Wavelet(d, 1.0) for d in (1, 2, 3, 5, 8, 17)]
FLATS: list[Hierarchy | Wavelet | CentralFlat] = [CentralFlat(d, 1.0) for d in (1, 2, 5, 17)]
ALL = TREES + PLAIN + WAVELETS + FLATS


def name(m):
    return repr(m).replace(" ", "")


def ranges(domain):
    return np.array(list(combinations_with_replacement(range(domain), 2))).T


def design(m):
    """The numbers that are asked, as rows over the padded cells, with their level; by hand."""
    if isinstance(m, CentralFlat):
        return np.eye(m.domain), [0] * m.domain
    if isinstance(m, Wavelet):
        n = 1
        while n < m.domain:
            n *= 2
        rows, levels = [np.ones(n)], [0]
        size, level = n, 1
        while size > 1:
            for start in range(0, n, size):
                row = np.zeros(n)
                row[start : start + size // 2], row[start + size // 2 : start + size] = 1, -1
                rows.append(row)
                levels.append(level)
            size, level = size // 2, level + 1
        return np.array(rows), levels
    rows, levels = [], []
    n = math.prod(m.fanouts)
    for level in range(len(m.fanouts)):
        size = math.prod(m.fanouts[level + 1 :])
        for start in range(0, n, size):
            row = np.zeros(n)
            row[start : start + size] = 1
            rows.append(row)
            levels.append(level)
    return np.array(rows), levels


def dense(m, variances):
    """The matrix of the least-squares estimate of the padded cells from the numbers asked, and its
    covariance.
    """
    rows, levels = design(m)
    asked = [i for i, level in enumerate(levels) if variances[level] is not None]
    weights = np.array(
        [0 if variances[level] is None else 1 / float(variances[level]) for level in levels]
    )
    information = rows.T @ (weights[:, None] * rows)
    assert asked
    return np.linalg.solve(information, rows.T * weights), np.linalg.inv(information)


def indicators(m, width):
    a, b = ranges(m.domain)
    cells = np.arange(width)
    return ((cells >= a[:, None]) & (cells <= b[:, None])).astype(float)


def uses(domain, fanouts):
    return nodes_used(tree_over(domain, fanouts), root=False)
