"""Channels of range protocols: each user reports on one random level of resolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core import Channel, Mixture, Oracle
from frequency.postprocess import norm_sub
from mechdesign.base import Floats, Integers, Items
from rangeq.core.tree import IN_CACHE, Tree
from rangeq.core.workload_sums import blocks_inside, queries

# ------------------------------------------------------------------------------------------------
# The variance of ranges on a tree for any population: O(height) for each range.
#
# The estimate of a range weighs the nodes of level l by the sum over the levels a <= l of a share
# s[a, l] times the range's coverage of the node's ancestor at level a (`Tree.coverage`). That of a
# prefix is 0 but for the children of the one node that the prefix cuts at level a, and among those
# it takes three values. So sums over nodes are differences of prefix sums of the population.


@dataclass(frozen=True)
class Cuts:
    """A quadratic form of the weights w[l] that a query gives to the nodes of every level l.

    It is the sum over the levels of ``even`` |w|^2 + ``held`` (w^2 @ f) - (w @ f)^2 / users, with f
    the fractions of the population in the nodes, and weights that are sums of coverages.
    """

    tree: Tree
    # Shape (height,): what a squared coverage of a child at each level adds for any population
    even: Floats
    # Shape (height,): the shares are `up[a]` times a factor of the level l
    up: Floats
    # Shape (height,): what the squares of these factors add for the users in a child, all l >= a
    held: Floats
    # Shape (height, height): row l has the shares s[a, l] over the root of the users on l
    means: Floats
    mass: Floats  # shape (leaves + 1,): the fraction of the population before each leaf
    # Shape (domain + 1,): which part of the error of the sum of all items each prefix gives up;
    # None: there is no padding
    shared: Floats | None

    def ranges(self, first: Integers, last: Integers) -> Floats:
        """The form at ranges: O(height) for each."""
        result = np.empty(first.size)
        for start in range(0, first.size, IN_CACHE):
            part = slice(start, start + IN_CACHE)
            result[part] = self._ranges(first.ravel()[part], last.ravel()[part] + 1)
        return result.reshape(first.shape)

    def _ranges(self, first: Integers, after: Integers) -> Floats:
        starts, ends = self._cut(first), self._cut(after)
        squares = self._product(ends, ends) + self._product(starts, starts)
        squares -= 2 * self._product(starts, ends)
        means = self._means(ends) - self._means(starts)
        if self.shared is not None:
            every = self._cut(np.array([self.tree.domain]))
            given = self.shared[after] - self.shared[first]
            squares += given**2 * self._product(every, every)
            squares -= 2 * given * (self._product(ends, every) - self._product(starts, every))
            means -= given * self._means(every)
        return squares - (means**2).sum(axis=0)

    def _product(self, one: list[Cut], two: list[Cut]) -> Floats:
        """The bilinear form of two prefixes, without ``means``."""
        total = np.zeros(np.broadcast_shapes(one[0].node.shape, two[0].node.shape))
        # Of the levels above: how much each prefix covers the node in which the other one ends.
        below_one, below_two = np.zeros_like(total), np.zeros_like(total)
        for level, (s, t) in enumerate(zip(one, two, strict=True)):
            size, up, squares = self.tree.branching[level], self.up[level], self.held[level]
            together, same = s.node == t.node, s.whole == t.whole
            both = np.where(same, s.whole + s.part * t.part, np.minimum(s.taken, t.taken))
            term = self.even[level] * (both - size * s.mean * t.mean)
            if squares:
                among = np.where(s.whole < t.whole, s.inside, t.inside)
                among = np.where(same, s.before + s.part * t.part * s.split, among)
                among += s.mean * t.mean * s.mass - s.mean * t.inside - t.mean * s.inside
                term = term + squares * up**2 * among
                total += squares * up * (below_two * t.outside + below_one * s.outside)
                below_two += np.where(together, up * s.covers(t), 0.0)
                below_one += np.where(together, up * t.covers(s), 0.0)
            total += np.where(together, term, 0.0)
        return total

    def _means(self, cuts: list[Cut]) -> Floats:
        """Shape (height, prefixes)."""
        return self.means @ np.array([cut.outside for cut in cuts])

    def _cut(self, after: Integers) -> list[Cut]:
        """Where prefixes that end before these items cut each level."""
        cuts, leaves = [], self.tree.leaves
        for width, size in zip(self.tree.widths, self.tree.branching, strict=True):
            child = after // width
            node, begin = child // size, child * width
            start = node * size * width
            end = np.minimum(start + size * width, leaves)
            before = self.mass[begin] - self.mass[start]
            split = self.mass[np.minimum(begin + width, end)] - self.mass[begin]
            mass = self.mass[end] - self.mass[start]
            whole, part = child - node * size, (after - begin) / width
            mean, inside = (whole + part) / size, before + part * split
            cuts.append(
                Cut(node, whole, part, mean, before, split, mass, inside, inside - mean * mass)
            )
        return cuts


class Cut(NamedTuple):
    """Where prefixes end in a level: the node that each cuts, and what it takes of its children."""

    node: Integers
    whole: Integers  # so many whole children
    part: Floats  # and this part of the next
    mean: Floats  # of all of them, how much is taken
    before: Floats  # the fraction of the population in the whole ones
    split: Floats  # in the next
    mass: Floats  # in the node

    inside: Floats  # the population by how much of its child is taken
    outside: Floats  # and by its coverage

    @property
    def taken(self) -> Floats:
        """The number of children that are taken."""
        return self.whole + self.part

    def covers(self, other: Cut) -> Floats:
        """The coverage of the child in which another prefix ends, in the same node."""
        return np.clip(self.taken - other.whole, 0.0, 1.0) - self.mean


# ------------------------------------------------------------------------------------------------
# NodeLaw: the errors of an oracle's estimates of nodes, where all nodes are alike; ContrastLaw.


class NodeLaw(NamedTuple):
    """The variances and covariances of an oracle's estimates, from one user with a given item.

    Exact for the oracles that treat all items alike (GRR, SUE, OUE, SubsetSelection and HRR). Over
    finite fields (OLH, ProjectiveGeometry) pairs of items differ a little, and the covariances are
    the means over the ways to number the items.

    Attributes
    ----------
    other, own : float
        The variance of another item's estimate, and of that of the user's own item.
    apart, near : float
        The covariance of the estimates of two other items, and of the own item with another.
    """

    other: float
    own: float
    apart: float
    near: float

    @classmethod
    def of(cls, oracle: Oracle) -> NodeLaw:
        """The law of an oracle of at least 2 items, from the variances that it states."""
        d, other, own_variance = oracle.domain, oracle.variance(1, 0.0), oracle.variance(1, 1.0)
        near = (other + own_variance - oracle.difference_variance(1, 2)) / 2
        if d == 2:
            return cls(other, own_variance, near, near)  # no two items are both other ones
        even = other + (own_variance - other) / d - oracle.difference_variance(1) / 2
        return cls(other, own_variance, (even - 2 * near / d) / (1 - 2 / d), near)

    @property
    def contrast(self) -> float:
        """The part of each squared weight in `drawn`, for weights of nodes that sum to 0."""
        return self.other - self.apart

    @property
    def held(self) -> float:
        """The part that the squared weight of the user's own node adds to that."""
        return self.own - self.other - 2 * (self.near - self.apart) + 1

    def drawn(self, number: Any, fraction: Any) -> Any:
        """Return the variance of the sum over some nodes' estimates, from one user drawn at random.

        Parameters
        ----------
        number : int or numpy.ndarray
            How many nodes there are in the sum.
        fraction : float or numpy.ndarray
            The fraction of the users that are in them, 0 to 1.

        Returns
        -------
        float or numpy.ndarray
            Squared fractions of the population, of the common shape.
        """
        m, f = number, fraction
        singles = m * self.other + (self.own - self.other) * f
        pairs = m * (m - 1) * self.apart + 2 * (m - 1) * f * (self.near - self.apart)
        return singles + pairs + f * (1 - f)

    def moments(self, width: float) -> Floats:
        """`drawn` for nodes that hold the fraction ``width`` each: the factors of m and of m^2."""
        single, pair = self.drawn(1, width), self.drawn(2, 2 * width)
        return np.array([2 * single - pair / 2, pair / 2 - single])


# Less noise than this of one report counts as this: that of an epsilon of 20 is about as much.
_LEAST = 1e-9


class ContrastLaw(NamedTuple):
    """The variance of weights w of sum 0 of an oracle's estimates, from a user drawn at random.

    It is noise w'w + held sum w^2 f - (w'f)^2, for the true frequencies f.
    """

    # Above 0. Of oracles that do not treat all items alike that of equal frequencies.
    noise: float
    held: float  # at least 0; 0 for those

    @classmethod
    def of(cls, oracle: Oracle) -> ContrastLaw:
        """The law of an oracle, from the variances that it states; of one item any will do."""
        if oracle.domain < 2:
            return cls(1.0, 0.0)
        if oracle.symmetric:
            law = NodeLaw.of(oracle)
            return cls(max(law.contrast, _LEAST), max(law.held, 0.0))
        return cls(max(oracle.difference_variance(1) / 2 + 1 / oracle.domain, _LEAST), 0.0)

    def information(self, items: int) -> float:
        """Return what a report tells of an orthonormal function of so many even items."""
        return 1 / (self.noise * items + self.held)


# ------------------------------------------------------------------------------------------------
# Ranges as sums of the fewest nodes of a tree, for estimates that are not consistent.
#
# Range queries, section 4.3.


def runs(
    tree: Tree, first: Integers, last: Integers, level: int
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return the nodes of one level in the decomposition of first .. last, as two runs."""
    # A node is used when it lies in the range and its parent does not: to the right of the first
    # cut within the parent that it cuts, and to the left of the second
    child, size = tree.widths[level], tree.branching[level]
    parent, after = child * size, last + 1
    left, right = -(-first // child), after // child
    within = first // parent == after // parent
    end = np.where(within, right, (first // parent + 1) * size)
    start = np.where(within, right, after // parent * size)
    return left, np.where(within | (first % parent != 0), np.maximum(end, left), left), start, right


def added_up(
    tree: Tree,
    cumulated: Sequence[npt.NDArray[Any]],
    first: Integers,
    last: Integers,
) -> Any:
    """Return the sum of the values of the nodes that make up first .. last; see `runs`."""
    parts = ((sums, *runs(tree, first, last, level)) for level, sums in enumerate(cumulated))
    return sum(
        sums[end] - sums[left] + sums[right] - sums[start]
        for sums, left, end, start, right in parts
    )


@dataclass(frozen=True)
class NodeSums:
    """Estimates of a tree's nodes that need not agree, of which ranges are sums."""

    tree: Tree  # over the domain
    # For each level from the top the sums of the estimates before each node, and of all
    cumulated: list[Floats]

    @cached_property
    def nearest(self) -> list[Floats]:
        """The ``cumulated`` of the distribution nearest to each level's estimates."""
        levels = [norm_sub(np.diff(sums)) for sums in self.cumulated]
        return [np.concatenate([[0.0], np.cumsum(level)]) for level in levels]

    def between(self, first: Integers, last: Integers) -> Floats:
        """The answers of checked ranges."""
        # Nothing is used of any level when the range is the root.
        whole = (first == 0) & (last == self.tree.leaves - 1)
        return whole + added_up(self.tree, self.cumulated, first, last)


def nodes_used(tree: Tree, workload: str = "all ranges") -> list[int]:
    """Count the nodes of each level that a workload uses in all, exactly; see `runs`: O(height)."""
    inside = [blocks_inside(tree.domain, width, workload) for width in (tree.leaves, *tree.widths)]
    return [
        below - size * above
        for (above, below), size in zip(pairwise(inside), tree.branching, strict=True)
    ]


def average_nodes(tree: Tree, workload: str) -> Floats:
    """Return how many nodes of each level a query of a workload uses on average: (height,)."""
    return np.array(
        [used / max(queries(tree.domain, workload), 1) for used in nodes_used(tree, workload)]
    )


def squared_nodes(tree: Tree, workload: str) -> Floats:
    """Return the mean over a workload of the squared number of nodes used of each level: (height,).

    In O(height * branching) steps.
    """
    total, result = max(queries(tree.domain, workload), 1), np.empty(tree.height)
    for level, (child, size) in enumerate(zip(tree.widths, tree.branching, strict=True)):
        whole, rest = divmod(tree.domain, child * size)
        # How many ends lie so many whole children into their parent, of all parents and of the
        # last, incomplete one. Behind a start lie as many children as before an end at its mirror.
        children = np.arange(size, dtype=np.float64)
        every = np.full(size, float(child))
        last = np.clip(rest + 1 - children * child, 0, child)
        if workload == "prefixes":
            result[level] = (whole * every + last) @ children**2 / total
            continue
        mean, square = every @ children, every @ children**2
        # Parents of the start before that of the end, all pairs; then both in the same one.
        pairs = whole * (whole - 1) / 2
        apart = pairs * 2 * (child * size * square + mean**2)
        apart += whole * (last.sum() * square + 2 * (last @ children) * mean)
        apart += whole * child * size * (last @ children**2)
        within = children**2 + child * (children - 1) * children * (2 * children - 1) / 6
        result[level] = (apart + (whole * every + last) @ within) / total
    if workload == "ranges":
        result[-1] -= tree.domain / total  # single items are leaves
    return result


@dataclass(frozen=True)
class Levels(Mixture):
    """The levels of a protocol: each channel takes its own items, or the nodes of its level.

    Parameters
    ----------
    domain : int
        The number of items.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    protocol : str
        The protocol's name, which client and server share.
    channels : tuple of Channel
        Of the levels, the coarsest first; some may have more items, which nobody holds.
    weights : tuple of int
        The probability of each level, in units of 2^-64.
    tree : Tree, optional
        Over the domain, whose levels 1 .. height these are; None: all channels take the items.
    """

    protocol: str
    channels: tuple[Channel, ...]
    weights: tuple[int, ...]
    tree: Tree | None = None

    kind: ClassVar[str] = "level"

    @property
    def _protocol_name(self) -> str:
        return self.protocol

    @property
    def parts(self) -> tuple[Channel, ...]:
        return self.channels

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        return self.weights

    def part_items(self, part: int, items: Items) -> Items:
        return items if self.tree is None else items // self.tree.widths[part]

    def part_expression(self, part: int) -> list[Any]:
        return ["same"] if self.tree is None else ["divide", self.tree.widths[part]]

    def _details(self) -> dict[str, Any]:
        branching = {} if self.tree is None else {"branching": list(self.tree.branching)}
        return {**branching, **super()._details()}
