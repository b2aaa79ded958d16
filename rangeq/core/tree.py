"""A complete tree over an ordered domain, and variances of queries in its generalised Haar basis.

Estimates that are consistent (every node is the sum of its children) and weighted by least squares
have independent errors in the contrasts among the children of each node: see
`rangeq.core.tree_inference`. So all there is to know of an estimator's errors is one number for
each level of parents: the variance of a contrast of unit length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers, shown
from rangeq.core.workload_sums import pairs_together, queries

IN_CACHE = (
    1 << 14
)  #: How many ranges to look at together, so that the working arrays stay in cache.

_Number = TypeVar("_Number", np.float64, np.int64)

#: All ranges of at least two items, all ranges, all ranges that begin with item 0.
WORKLOADS = ("ranges", "all ranges", "prefixes")


def checked_workload(workload: str) -> str:
    """Return one of `WORKLOADS`, or raise ValueError."""
    if not isinstance(workload, str) or workload not in WORKLOADS:
        raise ValueError(f"workload must be one of {', '.join(WORKLOADS)}, got {shown(workload)}")
    return workload


@dataclass(frozen=True)
class Tree:
    """A complete tree over an ordered domain; its leaves are single items.

    Levels 1 .. height lie below the root, and a node of level l - 1 has ``branching[l - 1]``
    children. When the product of the branchings exceeds the domain, the leaves beyond it are
    padding: always empty.

    Parameters
    ----------
    domain : int
        The number of items, at least 1.
    branching : tuple of int
        The children of a node of each level, from the root: integers of at least 2, whose product
        is at least the domain.

    Raises
    ------
    ValueError
        For branchings below 2, or a product smaller than the domain.
    """

    domain: int
    branching: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.branching or any(type(b) is not int or b < 2 for b in self.branching):
            raise ValueError(
                "branching must be integers of at least 2, one a level, got"
                f" {shown(self.branching)}"
            )
        if self.leaves < self.domain:
            raise ValueError(
                f"branching {shown(self.branching)} has {self.leaves} leaves, fewer than the"
                f" {self.domain} items"
            )

    @classmethod
    def of(cls, domain: int, branching: int | Sequence[int]) -> Tree:
        """The tree with a list of branchings from the top, or with one for all levels.

        One branching B is used at every level but the first, which has as many nodes as it takes to
        cover the domain.

        Parameters
        ----------
        domain : int
            The number of items.
        branching : int or sequence of int
            An integer of at least 2, or a sequence of them.

        Returns
        -------
        Tree
            As low as it can be.

        Raises
        ------
        ValueError
            For a branching that is neither, or too small for the domain.
        """
        if isinstance(branching, int):
            if branching < 2:
                raise ValueError(f"branching must be at least 2, got {branching}")
            below = 1
            while below * branching < domain:
                below *= branching
            return cls(
                domain,
                (max(2, -(-domain // below)), *[branching] * round(math.log(below, branching))),
            )
        if not isinstance(branching, Sequence) or isinstance(branching, str):
            raise ValueError(
                f"branching must be an integer or a list of them, got {shown(branching)}"
            )
        return cls(domain, tuple(branching))

    @property
    def height(self) -> int:
        """The number of levels below the root."""
        return len(self.branching)

    @cached_property
    def leaves(self) -> int:
        """The number of leaves: items and padding."""
        return math.prod(self.branching)

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The number of nodes of levels 1 .. height."""
        return tuple(math.prod(self.branching[: level + 1]) for level in range(self.height))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of leaves below a node of levels 1 .. height."""
        return tuple(self.leaves // nodes for nodes in self.nodes)

    @cached_property
    def occupied(self) -> tuple[int, ...]:
        """The number of nodes of levels 1 .. height that are not all padding."""
        return tuple(-(-self.domain // width) for width in self.widths)

    def padded(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Return values of items as values of leaves.

        Parameters
        ----------
        values : numpy.ndarray
            Shape (..., domain).

        Returns
        -------
        numpy.ndarray
            Shape (..., leaves): 0 of the padding.
        """
        return padded(values, self.leaves)

    def sums(self, values: npt.NDArray[_Number], level: int) -> npt.NDArray[_Number]:
        """Return values of leaves summed up under the nodes of a level.

        Parameters
        ----------
        values : numpy.ndarray
            Shape (..., leaves).
        level : int
            From 0, for the children of the root, to height - 1.

        Returns
        -------
        numpy.ndarray
            Shape (..., nodes of the level).
        """
        return values.reshape(*values.shape[:-1], self.nodes[level], -1).sum(axis=-1)

    # Below, ``contrasts`` are the variances of contrasts of unit length among the children of nodes
    # of levels 0 .. height - 1, infinite where no user told them apart. Where there is padding, the
    # sum of all items is known to be 1 as well: one more exact measurement, which takes from the
    # variance of a query its squared covariance with that sum, over the sum's variance.

    def coverage(self, weights: Floats, level: int) -> Floats:
        """Return the mean weight of each node's leaves, less that of its parent's.

        Parameters
        ----------
        weights : numpy.ndarray of float64
            Shape (..., leaves).
        level : int
            From 0 to height - 1.

        Returns
        -------
        numpy.ndarray
            Shape (..., nodes of the level).
        """
        mean = weights.reshape(*weights.shape[:-1], self.nodes[level], -1).mean(axis=-1)
        parents = mean.reshape(*mean.shape[:-1], -1, self.branching[level]).mean(axis=-1)
        return mean - np.repeat(parents, self.branching[level], axis=-1)

    def linear_variance(self, weights: Floats, contrasts: Floats) -> Floats:
        """Return the variances of weights @ frequencies.

        Parameters
        ----------
        weights, contrasts : numpy.ndarray of float64
            Shape (..., domain); shape (height,), the variances of contrasts of unit length at each
            level of parents.

        Returns
        -------
        numpy.ndarray
            Shape (...); infinite where a query rests on a contrast that is unknown.
        """
        finite, limit = _bounded(contrasts)
        variance = self._linear(weights, finite)
        if self.leaves > self.domain:
            everything = self._linear(np.ones(self.domain), finite)
            covariance = (self._linear(weights + 1, finite) - variance - everything) / 2
            variance = variance - covariance**2 / everything
        scale = (weights**2).max(axis=-1, initial=np.finfo(np.float64).tiny)  # the limit may be inf
        return np.where(variance > limit * scale, np.inf, np.maximum(variance, 0.0))

    def _linear(self, weights: Floats, contrasts: Floats) -> Floats:
        mean = self.padded(weights)
        total = np.zeros(weights.shape[:-1])
        for level in range(self.height - 1, -1, -1):
            children, size = mean, self.branching[level]
            mean = children.reshape(*children.shape[:-1], -1, size).mean(axis=-1)
            total += contrasts[level] * ((children**2).sum(axis=-1) - size * (mean**2).sum(axis=-1))
        return total

    def range_variance(self, first: Integers, last: Integers, contrasts: Floats) -> Floats:
        """Return the variances of the sums of frequencies over first .. last: O(height) for each.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Integer arrays of one shape, 0 <= first <= last < domain.
        contrasts : numpy.ndarray of float64
            As for `linear_variance`.

        Returns
        -------
        numpy.ndarray
            Of the ends' shape; infinite where a range is unknown.
        """
        finite, limit = _bounded(contrasts)
        variance = self.range_form(first, last, finite)
        if self.leaves > self.domain:
            after, before = (
                self.with_everything(last, finite),
                self.with_everything(first - 1, finite),
            )
            variance = variance - (after - before) ** 2 / self.range_form(
                np.array(0), np.array(self.domain - 1), finite
            )
        return np.where(variance > limit, np.inf, np.maximum(variance, 0.0))

    def with_everything(self, last: Integers, contrasts: Floats) -> Floats:
        """The covariances of prefixes with the sum of all items, before that is known to be 1.

        Parameters
        ----------
        last : numpy.ndarray of int64
            Integers of any shape: the prefixes are 0 .. last, and -1 is the empty one.
        contrasts : numpy.ndarray of float64
            As for `linear_variance`.

        Returns
        -------
        numpy.ndarray
            Of the shape of ``last``.
        """
        contrasts, _ = _bounded(contrasts)
        zero, end = np.zeros_like(last), np.full_like(last, self.domain - 1)
        everything, prefix = (
            self.range_form(zero, end, contrasts),
            self.range_form(zero, last, contrasts),
        )
        return (everything + prefix - self.range_form(last + 1, end, contrasts)) / 2

    def range_form(self, first: Integers, last: Integers, contrasts: Floats) -> Floats:
        """Return what the contrasts add to the variances of ranges, without padding.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Checked ends of ranges, which broadcast.
        contrasts : numpy.ndarray of float64
            Shape (height,): the variances of contrasts of unit length.

        Returns
        -------
        numpy.ndarray of float64
            Of the ends' shape.
        """
        first, last = np.broadcast_arrays(first, last)
        total = np.zeros(first.size)
        for start in range(0, first.size, IN_CACHE):
            part = slice(start, start + IN_CACHE)
            a, after = first.ravel()[part], last.ravel()[part] + 1
            for level in range(self.height):
                total[part] += contrasts[level] * self.cut(a, after, level)
        return total.reshape(first.shape)

    def cut(self, first: Integers, after: Integers, level: int) -> Floats:
        """Return how ranges contrast the children of one level's nodes: summed squared lengths.

        Parameters
        ----------
        first, after : numpy.ndarray of int64
            Integer arrays of one shape: the ranges are first .. after - 1.
        level : int
            From 0 to height - 1.

        Returns
        -------
        numpy.ndarray
            Of the ends' shape.
        """
        child, size = self.widths[level], self.branching[level]
        # Each end cuts one node: so many of its children lie before the cut, and part of the next.
        # Only small numbers cancel where little lies between the cuts: what is behind a cut
        # contrasts the children as what is before it does.
        child_a, child_b = first // child, after // child
        node_a, node_b = child_a // size, child_b // size
        # Several times as fast as remainders
        whole_a, whole_b = child_a - node_a * size, child_b - node_b * size
        part_a, part_b = (first - child_a * child) / child, (after - child_b * child) / child

        def before(whole: Any, part: Any) -> Any:
            return whole + part**2 - (whole + part) ** 2 / size

        late = 2 * whole_a > size
        apart = before(
            np.where(late, size - 1 - whole_a, whole_a), np.where(late, 1 - part_a, part_a)
        ) + before(whole_b, part_b)
        between = np.where(
            whole_a == whole_b,
            (part_b - part_a) ** 2,
            (1 - part_a) ** 2 + (whole_b - whole_a - 1) + part_b**2,
        )
        between -= (whole_b - whole_a + (part_b - part_a)) ** 2 / size
        return np.where(node_a == node_b, between, apart)

    def average_variance(self, contrasts: Floats, workload: str = "ranges") -> float:
        """Return the mean variance over a workload of `WORKLOADS`.

        Parameters
        ----------
        contrasts : numpy.ndarray of float64
            As for `linear_variance`.
        workload : str, default "ranges"
            "ranges", "all ranges" or "prefixes".

        Returns
        -------
        float
            Infinite if some query of the workload is unknown.

        Raises
        ------
        ValueError
            For an unknown workload.
        """
        costs = self.costs(workload)
        if not np.isfinite(contrasts).all():
            return (
                math.inf
                if (costs[~np.isfinite(contrasts)] > 0).any()
                else float(costs @ np.nan_to_num(contrasts, posinf=0.0))
            )
        total = float(costs @ contrasts)
        if self.leaves > self.domain:
            shared = self.with_everything(np.arange(self.domain), contrasts)
            if shared[-1] > 0:
                total -= (
                    mean_over(
                        workload,
                        shared**2,
                        float(shared.sum() ** 2),
                        np.diff(shared, prepend=0.0) ** 2,
                    )
                    / shared[-1]
                )
        return max(total, 0.0)

    def costs(self, workload: str) -> Floats:
        """Return the cost of a unit of variance of each level's contrasts in a workload's mean.

        Without the gain from padding. In O(height) steps.

        Parameters
        ----------
        workload : str
            "ranges", "all ranges" or "prefixes".

        Returns
        -------
        numpy.ndarray of float64
            Shape (height,), one for each level of parents.

        Raises
        ------
        ValueError
            An unknown workload.
        """
        steps = zip(pairwise(self.moments(workload)), self.widths, strict=True)
        return np.array([float((below - above) / width) for (above, below), width in steps])

    def moments(self, workload: str = "all ranges") -> list[Fraction]:
        """Return the mean squared length of a workload's queries after averaging over nodes.

        Parameters
        ----------
        workload : str, default "all ranges"
            "ranges", "all ranges" or "prefixes".

        Returns
        -------
        list of Fraction
            Exactly, for the levels 0 .. height.

        Raises
        ------
        ValueError
            An unknown workload.
        """
        total = max(queries(self.domain, workload), 1)
        return [
            Fraction(pairs_together(self.domain, width, workload), width * total)
            for width in (self.leaves, *self.widths)
        ]


def padded(values: npt.NDArray[_Number], size: int) -> npt.NDArray[_Number]:
    """Return values of items with zeros behind them: shape (..., size)."""
    result = np.zeros((*values.shape[:-1], size), dtype=values.dtype)
    result[..., : values.shape[-1]] = values
    return result


def mean_over(workload: str, prefixes: Floats, sums: float, items: Floats) -> float:
    """The mean of a quadratic form over a workload, from its values of prefixes and items."""
    # A range is the difference of two of the domain + 1 prefixes, the empty one included, and over
    # all pairs i < j the squares (P_j - P_i)^2 add up to (domain + 1) sum P_i^2 - (sum P_i)^2
    domain = len(prefixes)
    number = queries(domain, workload)
    if workload == "prefixes":
        return float(prefixes.mean())
    total = (domain + 1) * float(prefixes.sum()) - sums
    if workload == "ranges":
        total -= float(items.sum())
    return total / number if number else 0.0


def spread(weights: Floats, frequencies: Floats) -> Floats:
    """Return the variance of the weight of a random member of a population.

    Shapes: `weights` (queries, items), `frequencies` (items,); returns (queries,).
    """
    return weights**2 @ frequencies - (weights @ frequencies) ** 2


def inverse(values: Floats) -> Floats:
    """Return 1 / values, infinite for 0."""
    return np.divide(1.0, values, out=np.full(len(values), np.inf), where=values > 0)


def _bounded(contrasts: Floats) -> tuple[Floats, float]:
    """Return the contrasts with a very large number for infinity, and a bound."""
    # Only multiples of that number exceed the bound. Large rather than infinite, so that what
    # padding makes certain comes out as certain: unknowns cancel.
    known = np.isfinite(contrasts)
    if known.all():
        return contrasts, math.inf
    most = float(contrasts[known].max(initial=0.0)) or 1.0
    return np.where(known, contrasts, most * 1e9), most * 1e5
