"""Noise on every cell, or on the nodes of a tree, with or without constrained inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from mechdesign.base import Floats, Integers, is_whole, set_fields, shown, whole
from rangeq.central import mechanism as budgets
from rangeq.central.answers import Errors
from rangeq.central.estimate import CentralEstimate, Layered, Summed
from rangeq.central.inputs import LARGEST_DOMAIN
from rangeq.central.mechanism import Budget, CentralMechanism
from rangeq.central.regions import FewestNodes
from rangeq.core import BoxTree, Haar, LevelInference, TreeErrors, blocks, cells_of, tree_over

#: The number of children a level from the top: for all attributes, or a list for each.
BranchingLists: TypeAlias = Sequence[int] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class CentralFlat(CentralMechanism):
    """Every cell with noise of its own, and boxes that add them up: the baseline.

    Qardaji et al., section 3.1. The variance of a box is that of the noise times its number of
    cells. `rangeq.Flat` is the same under local privacy.

    Parameters
    ----------
    shape, epsilon : as of `CentralMechanism`
        The number of cells along each attribute, and the privacy loss of one release.
    """

    privacy_source: ClassVar[str] = "hierarchical histograms, section 3.1"

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def levels(self, counts: Integers) -> list[Integers]:
        return [counts]

    def estimate(self, noisy: list[Integers]) -> CentralEstimate:
        return Summed(self, noisy[0])  # whole users: nothing is rounded

    def errors_of(self, variances: Sequence[Any]) -> TreeErrors:
        return LevelInference(BoxTree(self.sizes, (self.sizes,)), variances)


@dataclass(frozen=True)
class Hierarchy(CentralMechanism):
    """A tree of counts over the cells: H_b, or H_b^c with inference.

    The root is not asked. With inference the answers are the least-squares estimates from all noisy
    counts (weighted by the levels' variances; Hay et al. for equal ones), which also add up;
    without, a box is the sum of the fewest nodes that make it up.

    Sizes that are no products of the branchings are no matter: cells beyond the ends of the
    attributes are known to be empty, which the estimates use, and empty nodes are not asked.

    Parameters
    ----------
    shape, epsilon : as of `CentralMechanism`
        The number of cells along each attribute, and the privacy loss of one release.
    branching : int or sequence of int or sequence of sequences of int
        An integer b >= 2: every node is split into b along each attribute, the root into as few as
        needed: the least h with b^h >= size levels. Or a list from the top, [2, 16, 16] for 2
        children of the root; the product must reach the size, and that of all but the first must
        not. With several attributes a node has branching^attributes children, as in Qardaji et al.,
        section 2.2, and a list for each attribute may be given, all of one length; an attribute
        that takes fewer levels than others is split at the lowest.
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
    fanouts : tuple of int, or of tuple of int
        Into how many nodes are split, from the root down, as really used; with several attributes
        such a tuple for each.
    """

    privacy_source: ClassVar[str] = "hierarchical histograms, section 3.2"

    branching: int | BranchingLists
    inference: bool = True
    budget: Budget = "equal"
    fanouts: tuple[Any, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, branching=_checked(self.branching))
        by_attribute = tuple(zip(*self.tree.fanouts, strict=True))
        set_fields(self, fanouts=by_attribute[0] if len(self.sizes) == 1 else by_attribute)
        if not isinstance(self.inference, (bool, np.bool_)):
            raise TypeError(f"inference must be True or False, got {shown(self.inference)}")
        if not isinstance(self.budget, str):
            set_fields(self, budget=tuple(self.budget))
        self.noise  # noqa: B018  a budget that cannot be used is found here

    @cached_property
    def tree(self) -> BoxTree:
        """The nodes that are asked, but for the root."""
        return tree_over(self.sizes, self.branching)

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        h = self.tree.height
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
        if self.inference:
            return budgets.best_shares(self.tree)
        # Minimise the sum of uses / share^2 over shares of sum 1: shares as the cube roots.
        used = FewestNodes(self.tree, [1] * h).used()
        return [Fraction(math.exp(math.log(max(n, 1)) / 3)) for n in used]

    def errors_of(self, variances: Sequence[Any]) -> Errors:
        return (LevelInference if self.inference else FewestNodes)(self.tree, variances)

    def levels(self, counts: Integers) -> list[Integers]:
        return self.tree.sums(counts)

    def estimate(self, noisy: list[Integers]) -> CentralEstimate:
        if self.inference:
            return Summed(self, LevelInference(self.tree, self.rounded_variances).estimate(noisy))
        nodes = FewestNodes(self.tree, self.rounded_variances)
        # The shares as they are: the best ones with inference are others
        consistent = replace(self, inference=True, budget=self.shares)
        return Layered(self, nodes, noisy, lambda: consistent.estimate(noisy))


def _checked(branching: Any) -> int | BranchingLists:
    """Integers of Python, and tuples for lists."""
    if is_whole(branching):
        return whole(branching, "branching", 2, LARGEST_DOMAIN)
    if isinstance(branching, (list, tuple, np.ndarray)) and len(branching):
        if not any(isinstance(entry, (list, tuple, np.ndarray)) for entry in branching):
            return tuple(whole(b, "each branching", 2, LARGEST_DOMAIN) for b in branching)
        if all(
            isinstance(fanouts, (list, tuple, np.ndarray)) and len(fanouts) for fanouts in branching
        ):
            return tuple(
                tuple(whole(b, "each branching", 1, LARGEST_DOMAIN) for b in fanouts)
                for fanouts in branching
            )
    raise ValueError(f"branching must be an integer >= 2 or a list of them, got {shown(branching)}")


# ------------------------------------------------------------------------------------------------
# Noise on Haar coefficients.


@dataclass(frozen=True)
class Wavelet(CentralMechanism):
    """Privelet: noise on the Haar coefficients, of several attributes on their tensor products.

    Xiao, Wang, Gehrke 2010; Qardaji et al., section 4. Asked along an attribute are the total and,
    for each inner node of the binary tree, the difference left half - right half: 1 + log2 D levels
    of numbers, of each of which a user changes one by one. The paper's coefficients are these
    differences over the number of cells below, and its weights multiply by that number again: the
    noise is the same. Of several attributes all products are asked, and the numbers of levels
    multiply; epsilon is split equally.

    Sizes that are no powers of two are no matter: what lies beyond them is known to be empty, which
    least squares use (`rangeq.core.tree_inference`).

    Parameters
    ----------
    shape, epsilon : as of `CentralMechanism`
        The number of cells along each attribute, and the privacy loss of one release.
    """

    privacy_source: ClassVar[str] = "hierarchical histograms, section 4"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.noise  # noqa: B018  an epsilon too small for so many levels is found here

    @cached_property
    def _haar(self) -> list[Haar]:
        return [Haar(size) for size in self.sizes]

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        levels = math.prod(len(haar.levels) for haar in self._haar)
        return (Fraction(1, levels),) * levels

    def errors_of(self, variances: Sequence[Any]) -> TensorErrors:
        return TensorErrors(self._haar, variances[0])

    def levels(self, counts: Integers) -> list[Integers]:
        for axis, haar in enumerate(self._haar):
            counts = np.moveaxis(haar.coefficients(np.moveaxis(counts, axis, 0)), 0, axis)
        return [counts[block] for block in blocks(self._haar).values()]

    def estimate(self, noisy: list[Integers]) -> CentralEstimate:
        levels = dict(zip(blocks(self._haar), noisy, strict=True))
        return Summed(self, cells_of(self._haar, levels))


class TensorErrors:
    """The variances of queries, where those of each attribute multiply.

    `factors` are exact `TreeErrors`, one an attribute, and `noise` the variance of the noise of a
    coefficient, of which those are multiples: a Fraction for exact variances.
    """

    def __init__(self, factors: Sequence[TreeErrors], noise: float | Fraction) -> None:
        self._noise = noise
        self._factors = (
            factors
            if isinstance(noise, Fraction)
            else [
                TreeErrors(factor.tree, [table.astype(np.float64) for table in factor.variances])
                for factor in factors
            ]
        )

    def variance(self, first: Integers, last: Integers) -> Any:
        """The variances of the sums over boxes: see `rangeq.central.answers.Errors`."""
        result: Any = self._noise
        for factor, low, high in zip(self._factors, first, last, strict=True):
            result = result * factor.variance(low[None], high[None])
        return result

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """The variance of the sum over a product of sets of places."""
        return float(self._noise) * math.prod(
            factor.variance_of([axis_weights])
            for factor, axis_weights in zip(self._factors, weights, strict=True)
        )

    def mean(self) -> Any:
        """The mean of `variance` over all boxes."""
        return self._noise * math.prod(factor.mean() for factor in self._factors)
