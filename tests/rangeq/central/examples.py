"""Mechanisms of a curator of all kinds, and what they ask, by hand."""

import math
from functools import reduce
from itertools import combinations_with_replacement, product

import numpy as np

from rangeq.central import CentralFlat, Hierarchy, Wavelet
from rangeq.central.regions import FewestNodes
from rangeq.core.boxes import tree_over

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
SEVERAL: list[Hierarchy | Wavelet | CentralFlat] = [
    Hierarchy((4, 8), 1.0, 2),
    Hierarchy((5, 6), 1.0, 2, budget="geometric"),
    Hierarchy((7, 3), 2.0, [[4, 2], [1, 3]]),
    Hierarchy((3, 4, 2), 1.0, 2),
    Hierarchy((6, 5), 1.0, [2, 3], budget=[1, 2]),
    Hierarchy((1, 4), 1.0, 2, budget="optimal"),
    Wavelet((4, 4), 1.0),
    Wavelet((5, 3), 1.0),
    Wavelet((2, 3, 3), 1.0),
    CentralFlat((3, 4), 1.0),
]
PLAIN_SEVERAL = [
    Hierarchy((5, 6), 1.0, 2, inference=False),
    Hierarchy((4, 4), 1.0, 2, inference=False, budget="optimal"),
    Hierarchy((3, 4, 2), 1.0, 2, inference=False),
]
ALL = TREES + PLAIN + WAVELETS + FLATS


def name(m):
    return repr(m).replace(" ", "")


def ranges(domain):
    return np.array(list(combinations_with_replacement(range(domain), 2))).T


def asked_along(m, attribute):
    """The numbers that are asked along one attribute, as rows over its places, by level."""
    n = m.sizes[attribute]
    if isinstance(m, CentralFlat):
        return [np.eye(n)]
    if isinstance(m, Wavelet):
        size = 1
        while size < n:
            size *= 2
        levels = [np.ones((1, n))]
        while size > 1:
            rows = np.zeros((-(-n // size), n))
            for k in range(len(rows)):
                middle = k * size + size // 2
                rows[k, k * size : middle], rows[k, middle : (k + 1) * size] = 1, -1
            levels.append(rows)
            size //= 2
        return levels
    fanouts = m.fanouts if len(m.sizes) == 1 else m.fanouts[attribute]
    levels = []
    for level in range(len(fanouts)):
        size = math.prod(fanouts[level + 1 :])
        rows = np.zeros((-(-n // size), n))
        for k in range(len(rows)):
            rows[k, k * size : (k + 1) * size] = 1
        levels.append(rows)
    return levels


def design(m):
    """The numbers that are asked, as rows over the cells, with their level; by hand."""
    parts = [asked_along(m, i) for i in range(len(m.sizes))]
    # All products of wavelets; of trees those of equal levels
    chosen = product(*parts) if isinstance(m, Wavelet) else zip(*parts, strict=True)
    blocks = [reduce(np.kron, which) for which in chosen]
    return np.concatenate(blocks), [k for k, block in enumerate(blocks) for _ in block]


def dense(m, variances):
    """The matrix of the least-squares estimate of the cells from the numbers asked, and its
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


def boxes(m):
    """The closed ends of all boxes: shape (attributes, boxes)."""
    every = list(product(*(ranges(size).T for size in m.sizes)))
    return tuple(np.array([[pair[end] for pair in box] for box in every]).T for end in (0, 1))


def indicators(m):
    """The cells of all boxes, one row each."""
    parts = []
    for size in m.sizes:
        (a, b), cells = ranges(size), np.arange(size)
        parts.append(((cells >= a[:, None]) & (cells <= b[:, None])).astype(float))
    return reduce(np.kron, parts)


def uses(domain, branching):
    tree = tree_over((domain,), branching)
    return FewestNodes(tree, [1] * tree.height).used()
