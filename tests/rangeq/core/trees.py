"""Trees of all shapes and ranges over their items, by the definition."""

from __future__ import annotations

import numpy as np

from rangeq.core.tree import Tree

SHAPES = [
    *[(d, b) for d in (1, 2, 3, 5, 7, 16, 17, 27) for b in (2, 3, 4, 16)],
    *[(100, b) for b in (2, 3, 16)],
    (5, (3, 2)),
    (7, (2, 2, 3)),
    (17, (5, 2, 2)),
    (27, (9, 3)),
    (27, (3, 9)),
    (16, (16,)),
    (13, (13,)),
    (100, (3, 7, 5)),
    (3, (2, 2, 2, 2)),  # half of the root is padding
]


def level_matrices(tree: Tree) -> list[np.ndarray]:
    """Which leaves are below each node: levels 1 .. height."""
    return [np.kron(np.eye(nodes), np.ones(tree.leaves // nodes)) for nodes in tree.nodes]


def all_ranges(domain: int) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.triu_indices(domain)
    return first, last


def indicators(first: np.ndarray, last: np.ndarray, length: int) -> np.ndarray:
    x = np.arange(length)
    return ((first[:, None] <= x) & (x <= last[:, None])).astype(float)


def of_workload(workload: str, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    return {"ranges": last > first, "all ranges": last >= first, "prefixes": first == 0}[workload]


def quadratic(weights: np.ndarray, form: np.ndarray) -> np.ndarray:
    return ((weights @ form) * weights).sum(axis=-1)


def ranges_of(domain, workload):
    first, last = np.triu_indices(domain)
    if workload == "prefixes":
        return first[first == 0], last[first == 0]
    kept = (last > first) | (workload == "all ranges")
    return first[kept], last[kept]
