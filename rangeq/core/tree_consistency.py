"""Least-squares consistency: all levels of a tree combined so that nodes are sums of children.

With levels of precision tau_l (one over the variance of a contrast between nodes), the weighted
least-squares solution is diagonal in the contrasts among the children of each node. A contrast at a
node of level j is seen by every level below, by level l through sums over the nodes under each
child; its precision is

    Q_{j+1} = sum over l > j of tau_l / (number of level-l nodes under a child),
    Q_l = tau_l + Q_{l+1} / B_{l+1}.

This is the two-stage pass of Hay et al. (2010; range queries, section 4.5) for levels of any
variances; with equal ones the weights are the printed (B^i - B^(i-1)) / (B^i - 1) and (B^(i-1) - 1)
/ (B^i - 1). The root is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Floats
from rangeq.core.tree import Tree


def contrast_precisions(tree: Tree, precisions: Sequence[Any] | Floats) -> npt.NDArray[Any]:
    """The precisions Q_1 .. Q_height of contrasts among the children of nodes, for each level.

    Shapes: `precisions` (height,); returns (height,).
    """
    result = np.array(precisions, dtype=np.result_type(np.asarray(precisions), np.float64))
    for level in range(tree.height - 2, -1, -1):
        result[level] += result[level + 1] / tree.branching[level + 1]
    return result


def consistent(
    tree: Tree, estimates: Sequence[Floats], precisions: Sequence[float] | Floats, root: float = 1.0
) -> Floats:
    """The weighted least-squares solution, in two linear passes.

    Parameters
    ----------
    tree : Tree
        The tree.
    estimates : sequence of numpy.ndarray of float64
        One array for each level 1 .. height: shape (nodes of the level,).
    precisions : sequence of float or numpy.ndarray of float64
        tau_l of each level, at least 0; where it is 0 the estimates are not used, and may be
        anything.
    root : float, default 1.0
        The sum of all leaves.

    Returns
    -------
    numpy.ndarray of float64
        Shape (leaves,). Where no level tells the children of a node apart, they share equally.
    """
    q = contrast_precisions(tree, precisions)
    best: list[Floats] = [np.zeros(0)] * tree.height
    for level in range(tree.height - 1, -1, -1):
        # What a level's own estimates and those of its children say of its nodes, weighted by
        # precision.
        own = (
            precisions[level] * estimates[level]
            if precisions[level]
            else np.zeros(tree.nodes[level])
        )
        if level + 1 < tree.height:
            size = tree.branching[level + 1]
            own = own + (q[level + 1] / size) * best[level + 1].reshape(-1, size).sum(axis=1)
        best[level] = own / q[level] if q[level] else np.zeros(tree.nodes[level])
    solution = np.array([root])
    for nodes, size in zip(best, tree.branching, strict=True):
        children = nodes.reshape(len(solution), -1)
        solution = (children + ((solution - children.sum(axis=1)) / size)[:, None]).ravel()
    return solution
