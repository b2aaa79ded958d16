"""The variance of ranges on a tree for any population: O(height) for each range.

The estimate of a range weighs the nodes of level l by the sum over the levels a <= l of a share
s[a, l] times the range's coverage of the node's ancestor at level a (`Tree.coverage`). That of a
prefix is 0 but for the children of the one node that the prefix cuts at level a, and among those it
takes three values. So sums over nodes are differences of prefix sums of the population.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mechdesign.base import Floats, Integers
from rangeq.core.tree import IN_CACHE, Tree


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
        result: Floats = squares - (means**2).sum(axis=0)
        return result

    def _product(self, one: list[Cut], two: list[Cut]) -> Floats:
        """The bilinear form of two prefixes, without ``means``."""
        total = np.zeros(np.broadcast_shapes(one[0].node.shape, two[0].node.shape))
        # Of the levels above: how much each prefix covers the node in which the other one ends.
        below_one, below_two = np.zeros_like(total), np.zeros_like(total)
        for level, (s, t) in enumerate(zip(one, two, strict=True)):
            size, up, held = self.tree.branching[level], self.up[level], self.held[level]
            together, same = s.node == t.node, s.whole == t.whole
            both = np.where(same, s.whole + s.part * t.part, np.minimum(s.taken, t.taken))
            own = self.even[level] * (both - size * s.mean * t.mean)
            if held:
                among = np.where(s.whole < t.whole, s.inside, t.inside)
                among = np.where(same, s.before + s.part * t.part * s.split, among)
                among += s.mean * t.mean * s.mass - s.mean * t.inside - t.mean * s.inside
                own = own + held * up**2 * among
                total += held * up * (below_two * t.outside + below_one * s.outside)
                below_two += np.where(together, up * s.covers(t), 0.0)
                below_one += np.where(together, up * t.covers(s), 0.0)
            total += np.where(together, own, 0.0)
        return total

    def _means(self, cuts: list[Cut]) -> Floats:
        """Shape (height, prefixes)."""
        result: Floats = self.means @ np.array([cut.outside for cut in cuts])
        return result

    def _cut(self, after: Integers) -> list[Cut]:
        """Where prefixes that end before these items cut each level."""
        found, leaves = [], self.tree.leaves
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
            found.append(
                Cut(node, whole, part, mean, before, split, mass, inside, inside - mean * mass)
            )
        return found


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
        taken: Floats = np.clip(self.taken - other.whole, 0.0, 1.0) - self.mean
        return taken
