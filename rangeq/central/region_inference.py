"""Constrained inference over any tree: regions of any number of parts, with noise of any variances.

`rangeq.central.inference` is for the trees over ordered cells, whose nodes of a level are alike.
Here every node has a variance of its own, so the two passes go over arrays of nodes. From below,

    best_p = (1 - h_p) below_p + h_p y_p,   below_p = the sum of best_c,   h_p = S_p / (O_p + S_p)

with the node's own count y_p of variance O_p, V_p = O_p S_p / (O_p + S_p), and S_p the sum of the
V_c of its children; of a leaf best is y and V is O. From above, the final estimates are

    x_c = best_c + (V_c / S_p) (x_p - below_p).

The estimate is linear in the counts whatever the variances are that it weighs by. So with other
true variances of the counts its own follow as well, exactly.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.linear_algebra import Floats, Integers


class RegionInference:
    """Weighted least squares over a tree, and the variances of what it estimates.

    Parameters
    ----------
    parents : numpy.ndarray of int64
        Shape (nodes,): the number of each node's parent, which is smaller than its own; -1 for
        roots. Nodes of less depth come first.
    noise : numpy.ndarray of float64
        Shape (nodes,): O, the variances that counts are weighted by, at least 0; infinite where a
        node was not asked. Leaves are.
    """

    def __init__(self, parents: Integers, noise: Floats) -> None:
        self.parents = parents
        self._levels = _levels(parents)
        inner = np.zeros(len(parents), dtype=np.bool_)
        inner[parents[parents >= 0]] = True
        below = np.zeros(len(parents))  # S
        variances = np.where(inner, 0.0, noise)  # V
        self._part = np.where(inner, 0.0, 1.0)  # h: of a leaf only its own count is known
        for nodes, above in self._upwards():
            here = nodes[inner[nodes]]
            total = noise[here] + below[here]
            certain = total == 0  # and so their counts agree
            self._part[here] = np.where(certain, 0.0, below[here] / np.where(certain, 1.0, total))
            variances[here] = (1 - self._part[here]) * below[here]
            _add(below, above, variances[nodes])
        whole = np.where(parents >= 0, below[parents], 0.0)
        # Parts that all are certain have nothing to share
        self._share = np.where(whole > 0, variances / np.where(whole > 0, whole, 1.0), 0.0)

    def _upwards(self) -> list[tuple[Integers, Integers]]:
        """The nodes of each depth and their parents, the deepest first."""
        return [(nodes, self.parents[nodes]) for nodes in reversed(self._levels)]

    def _downwards(self) -> list[tuple[Integers, Integers]]:
        """The nodes of each depth but the first, and their parents."""
        return [(nodes, self.parents[nodes]) for nodes in self._levels[1:]]

    def estimate(self, counts: Floats) -> Floats:
        """The least squares estimates of all nodes; those of children add up to their parent's.

        Shapes: `counts` (nodes,); returns (nodes,).
        """
        best, below = np.zeros(len(counts)), np.zeros(len(counts))
        for nodes, above in self._upwards():
            part = self._part[nodes]
            best[nodes] = (1 - part) * below[nodes] + part * counts[nodes]
            _add(below, above, best[nodes])
        for nodes, above in self._downwards():
            best[nodes] += self._share[nodes] * (best[above] - below[above])
        return best

    def variances(self, true: Floats) -> Floats:
        """The variances of the estimates of all nodes, in one pass over the tree each way.

        It is linear in the variances of the counts: unbiased estimates of these give unbiased
        estimates.

        Shapes: `true` (nodes,); returns (nodes,).
        """
        # x = kept best + apart, where what is apart is independent of the node's own part of the
        # tree; ``loose`` is the variance of that
        best, below = np.zeros(len(true)), np.zeros(len(true))
        for nodes, above in self._upwards():
            part = self._part[nodes]
            best[nodes] = (1 - part) ** 2 * below[nodes] + part**2 * true[nodes]
            _add(below, above, best[nodes])
        kept, loose = np.ones(len(true)), np.zeros(len(true))
        for nodes, above in self._downwards():
            part, share = self._part[above], self._share[nodes]
            missing = kept[above] * (1 - part) - 1
            kept[nodes] = 1 + share * missing
            others = missing**2 * (below[above] - best[nodes])
            own = (kept[above] * part) ** 2 * true[above]
            loose[nodes] = share**2 * (others + own + loose[above])
        result: Floats = kept**2 * best + loose
        return result

    def coefficients(self, weights: Floats) -> Floats:
        """What a weighted sum of the estimates of nodes is in terms of the counts.

        Shapes: `weights` (nodes,); returns (nodes,).
        """
        # The passes of `estimate` backwards
        final, of_best, of_below = weights.copy(), np.zeros_like(weights), np.zeros_like(weights)
        for nodes, above in reversed(self._downwards()):
            passed = self._share[nodes] * final[nodes]
            _add(final, above, passed)
            _add(of_below, above, -passed)
        of_best += final
        of_below += (1 - self._part) * of_best
        for nodes, above in self._downwards():
            of_best[nodes] += of_below[above]
            of_below[nodes] += (1 - self._part[nodes]) * of_below[above]
        result: Floats = self._part * of_best
        return result


def _levels(parents: Integers) -> list[Integers]:
    """The nodes of each depth, from the roots down."""
    depths = np.zeros(len(parents), dtype=np.int64)
    for node, parent in enumerate(parents.tolist()):
        depths[node] = depths[parent] + 1 if parent >= 0 else 0
    ends = np.flatnonzero(np.diff(depths)) + 1
    return np.split(np.arange(len(parents)), ends)


def _add(sums: Floats, places: Integers, values: Floats) -> None:
    """Add values to the sums of their places, but for those of roots."""
    inside = places >= 0
    np.add.at(sums, places[inside], values[inside])
