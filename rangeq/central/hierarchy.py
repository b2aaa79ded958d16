"""Noise on the nodes of a tree, with or without constrained inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from mechdesign._support.arrays import Floats, Integers
from mechdesign._support.frozen import set_fields
from mechdesign._support.numbers import is_whole, whole
from mechdesign._support.text import shown
from rangeq.central import budget as budgets
from rangeq.central.budget import Budget
from rangeq.central.estimate import CentralEstimate, Layered, Summed
from rangeq.central.inputs import LARGEST_DOMAIN
from rangeq.central.mechanism import CentralMechanism
from rangeq.central.spectrum import Spectrum, average_of_nodes, tree_over, tree_spectrum
from rangeq.core.node_decomposition import nodes_used, variance_of_nodes
from rangeq.core.tree import Tree, padded
from rangeq.core.tree_consistency import consistent_levels


@dataclass(frozen=True)
class Hierarchy(CentralMechanism):
    """A tree of counts over the cells: H_b, or H_b^c with inference.

    The root is not asked. With inference the answers are the least-squares estimates from all noisy
    counts (weighted by the levels' variances; Hay et al. for equal ones), which also add up;
    without, a range is the sum of the fewest nodes that make it up.

    A domain that is no product of the branchings is padded with empty cells at the right. They get
    noise like all others, but for whole children of the root, which nothing else depends on and
    which are left out; answers never show them.

    Parameters
    ----------
    branching : int or sequence of int
        An integer b >= 2: every node has b children, the root as few as needed: the least h with
        b^h >= domain levels. Or a list from the top, [2, 16, 16] for 2 children of the root; the
        product must reach the domain, and that of all but the first must not.
    inference : bool, default True
        Whether to combine all levels by least squares.
    budget : str or sequence of numbers, default "equal"
        How epsilon is split: "equal" over levels; "geometric", a level having 2^(1/3) times as much
        as the one above (Cormode et al. 2012); "optimal", for the smallest average variance: in
        closed form without inference, and with it the best of several local searches, never worse
        than equal ones. Or weights >= 0, one a level from the top; a level of weight 0 is not asked
        (with inference, and not the leaves).

    Attributes
    ----------
    fanouts : tuple of int
        The number of children of nodes, from the root down, as really used.
    """

    branching: int | Sequence[int]
    inference: bool = True
    budget: Budget = "equal"
    fanouts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_whole(self.branching):
            set_fields(self, branching=whole(self.branching, "branching", 2, LARGEST_DOMAIN))
        elif isinstance(self.branching, (list, tuple, np.ndarray)) and len(self.branching):
            numbers = tuple(whole(b, "each branching", 2, LARGEST_DOMAIN) for b in self.branching)
            set_fields(self, branching=numbers)
        else:
            raise ValueError(
                f"branching must be an integer >= 2 or a list of them, got {shown(self.branching)}"
            )
        set_fields(self, fanouts=fanouts_of(self.domain, self.branching))
        if not isinstance(self.inference, (bool, np.bool_)):
            raise TypeError(f"inference must be True or False, got {shown(self.inference)}")
        if not isinstance(self.budget, str):
            set_fields(self, budget=tuple(self.budget))
        self.noise  # noqa: B018  a budget that cannot be used is found here

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        h = len(self.fanouts)
        if isinstance(self.budget, str):
            if self.budget not in ("equal", "geometric", "optimal"):
                raise ValueError(
                    "budget must be 'equal', 'geometric', 'optimal' or weights, got"
                    f" {self.budget!r}"
                )
            weights = {
                "equal": budgets.equal,
                "geometric": budgets.geometric,
                "optimal": self._optimal,
            }[self.budget](h)
        else:
            weights = [budgets.weight(w) for w in self.budget]
            if len(weights) != h or weights[-1] == 0 or (0 in weights and not self.inference):
                raise ValueError(
                    f"budget must be {h} weights >= 0, one a level from the top, positive for the"
                    f" leaves and, without inference, for all levels; got {shown(self.budget)}"
                )
        total = sum(weights)
        return tuple(weight / total for weight in weights)

    def _optimal(self, h: int) -> list[Fraction]:
        if not self.inference:
            # Minimise the sum of uses / share^2 over shares of sum 1: shares as the cube roots.
            return [Fraction(math.exp(math.log(n) / 3)) for n in nodes_used(self._tree, root=False)]
        moments = [float(moment) for moment in self._tree.moments()[1:]]
        return budgets.best_shares(
            np.array(self._tree.widths, dtype=np.float64), np.diff([0.0, *moments])
        )

    @cached_property
    def _tree(self) -> Tree:
        return tree_over(self.domain, self.fanouts)

    def _spectrum(self, variances: Sequence[Fraction | None]) -> Spectrum:
        return tree_spectrum(self._tree, variances)

    def _average(self, variances: Sequence[Fraction | None]) -> Fraction:
        return (
            super()._average(variances)
            if self.inference
            else average_of_nodes(self._tree, variances)
        )

    def _variances(self, first: Integers, last: Integers) -> Floats:
        if self.inference:
            return super()._variances(first, last)
        # No level is left out here
        per_node = [float(variance) for variance in self._noise_variances if variance is not None]
        result: Floats = variance_of_nodes(self._tree, per_node, first, last, root=False)
        return result

    def _levels(self, counts: Integers) -> list[Integers]:
        level = padded(counts, math.prod(self.fanouts))
        levels = [level]
        for b in reversed(self.fanouts[1:]):
            level = level.reshape(-1, b).sum(axis=1)
            levels.append(level)
        return levels[::-1]

    def _estimate(self, noisy: list[Integers]) -> CentralEstimate:
        if not self.inference:
            return Layered(self, self._tree, noisy)
        precisions = [
            0.0 if variance is None else 1 / float(variance) for variance in self._noise_variances
        ]
        # The prefix of every node is carried down, so that rounding errors grow with the depth and
        # not with the number of cells.
        nodes = starts = np.zeros(1)
        for nodes in consistent_levels(self._tree, noisy, precisions, root=None):
            children = nodes.reshape(len(starts), -1)
            starts = (starts[:, None] + np.cumsum(children, axis=1) - children).ravel()
        return Summed(self, starts, nodes)


def fanouts_of(domain: int, branching: int | Sequence[int]) -> tuple[int, ...]:
    """Children of a node of each level as `Tree.of`, the root's cut to those that are needed.

    Parameters
    ----------
    domain : int
        The number of cells, at least 1.
    branching : int or sequence of int
        An integer of at least 2, or a sequence of them from the root down.

    Returns
    -------
    tuple of int
        From the root down.

    Raises
    ------
    ValueError
        The product of the branchings does not reach the domain, or that of all but the first does.
    """
    if isinstance(branching, int):
        branching = Tree.of(domain, branching).branching
    below = math.prod(branching[1:])
    if below * branching[0] < domain or (len(branching) > 1 and below >= domain):
        raise ValueError(
            f"the product of the branchings must reach the domain, {domain}, and that of all but"
            f" the first must not; got {shown(list(branching))}"
        )
    return (-(-domain // below), *branching[1:])
