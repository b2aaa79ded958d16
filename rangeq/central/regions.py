"""Regions in regions, such as wards in counties in countries: a tree by names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from frequency.exceptions import InvalidQuestion
from mechdesign.base import Booleans, Floats, Integers, shown
from mechdesign.exceptions import InvalidTable
from rangeq.core import BoxTree, blocks_inside, queries

#: A region's name, where no other has it; or its path, the names from the top down to its own.
Region: TypeAlias = str | Sequence[str]


class Regions:
    """A tree of regions, of which some are parts of others. Its leaves have no parts.

    Made by `from_paths` or `from_parents`. Regions may have any numbers of parts, leaves may lie at
    any depth, and there may be several regions at the top.

    Parameters
    ----------
    paths : iterable of sequence of str
        Of each leaf, the names from the top down to its own, as in the columns of a table: one name
        at least. The regions above need not be told.

    Attributes
    ----------
    paths : tuple of tuple of str
        Of all regions, those of less depth first.
    parents : numpy.ndarray of int64
        Shape (regions,): the number of the region that each is a part of, -1 at the top.
    leaves : numpy.ndarray of int64
        Shape (leaves,): the numbers of the leaves, in the order in which they were told.

    Raises
    ------
    InvalidTable
        No regions, a name that is no text, a leaf that comes twice or has parts.
    """

    paths: tuple[tuple[str, ...], ...]
    parents: Integers
    leaves: Integers

    def __init__(self, paths: Iterable[Sequence[str]]) -> None:
        leaves = [_path(path) for path in paths]
        if not leaves:
            raise InvalidTable("a tree of regions needs one leaf at least")
        above = {path[:depth] for path in leaves for depth in range(1, len(path))}
        seen: set[tuple[str, ...]] = set()
        for path in leaves:
            if path in seen or path in above:
                what = "comes twice" if path in seen else "has parts, and is no leaf"
                raise InvalidTable(f"the region {shown(path)} {what}")
            seen.add(path)
        every = dict.fromkeys(path[:depth] for path in leaves for depth in range(1, len(path) + 1))
        self.paths = tuple(sorted(every, key=len))
        self._numbers = {path: number for number, path in enumerate(self.paths)}
        self.parents = np.array(
            [self._numbers.get(path[:-1], -1) for path in self.paths], dtype=np.int64
        )
        self.leaves = np.array([self._numbers[path] for path in leaves], dtype=np.int64)

    @classmethod
    def from_parents(cls, parents: Mapping[str, str]) -> Regions:
        """The tree in which each region is a part of another one.

        Parameters
        ----------
        parents : mapping of str to str
            For each region but those at the top, the name of the one that it is a part of. All
            names are different.

        Returns
        -------
        Regions
            Its leaves in the order of the mapping.

        Raises
        ------
        InvalidTable
            No regions, a name that is no text, or a region that is a part of itself.

        Examples
        --------
        >>> tree = Regions.from_parents({"Kent": "England", "Ashford": "Kent", "Dover": "Kent"})
        >>> tree.paths[-1], tree.leaves.tolist()
        (('England', 'Kent', 'Dover'), [2, 3])
        """
        inner = set(parents.values())
        paths = []
        for name in parents:
            if name in inner:
                continue
            path = [name]
            while path[-1] in parents:
                path.append(parents[path[-1]])
                if path[-1] in path[:-1]:
                    raise InvalidTable(f"the region {shown(path[-1])} is a part of itself")
            paths.append(path[::-1])
        reached = {name for path in paths for name in path}
        for name in parents:
            if name not in reached:
                raise InvalidTable(f"the region {shown(name)} is a part of itself")
        return cls(paths)

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def depths(self) -> Integers:
        """The number of regions that each one is a part of: shape (regions,)."""
        return np.array([len(path) - 1 for path in self.paths], dtype=np.int64)

    @cached_property
    def inner(self) -> Booleans:
        """The mask of the regions that have parts: shape (regions,)."""
        result = np.zeros(len(self), dtype=np.bool_)
        result[self.parents[self.parents >= 0]] = True
        return result

    @property
    def inner_depths(self) -> int:
        """The number of depths at which there are regions with parts."""
        return int(self.depths[self.inner].max(initial=-1)) + 1

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, path in enumerate(self.paths):
            numbers.setdefault(path[-1], []).append(number)
        return numbers

    def number(self, region: Region) -> int:
        """The place of a region in `paths`.

        Raises
        ------
        InvalidQuestion
            There is no such region, or there are several of this name.
        """
        if isinstance(region, str):
            matches = self._by_name.get(region, [])
            if len(matches) > 1:
                raise InvalidQuestion(
                    f"{len(matches)} regions are called {shown(region)}: give a path, such as"
                    f" {shown(self.paths[matches[0]])}"
                )
        else:
            number = self._numbers.get(tuple(region))
            matches = [] if number is None else [number]
        if not matches:
            raise InvalidQuestion(f"there is no region {shown(region)}")
        return matches[0]

    def sums(self, counts: Integers) -> Integers:
        """Return the sums of what the leaves of each region have.

        Parameters
        ----------
        counts : numpy.ndarray of int64
            Shape (leaves,).

        Returns
        -------
        numpy.ndarray of int64
            Shape (regions,).
        """
        result = np.zeros(len(self), dtype=np.int64)
        result[self.leaves] = counts
        for number in range(len(self) - 1, -1, -1):
            if self.parents[number] >= 0:
                result[self.parents[number]] += result[number]
        return result

    def covered(self, numbers: Sequence[int]) -> Integers:
        """Return in how many of some regions each leaf lies.

        Parameters
        ----------
        numbers : sequence of int
            Their places in `paths`.

        Returns
        -------
        numpy.ndarray of int64
            Shape (leaves,).
        """
        result = np.zeros(len(self), dtype=np.int64)
        np.add.at(result, np.asarray(numbers, dtype=np.int64), 1)
        for number, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                result[number] += result[parent]
        return result[self.leaves]

    def __repr__(self) -> str:
        return f"<Regions: {len(self)}, of which {len(self.leaves)} are leaves>"


def _path(path: Sequence[str]) -> tuple[str, ...]:
    names = () if isinstance(path, str) else tuple(path)
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidTable(f"the path of a region is a sequence of names, got {shown(path)}")
    return names


# ------------------------------------------------------------------------------------------------
# Boxes as sums of the fewest nodes of a tree, without inference (Qardaji et al., section 3.2).


class FewestNodes:
    """The nodes that make up boxes, and the variances of their sums.

    A node is used if it lies in the box and its parent does not; the root is not asked. `variances`
    are those of the noise of the levels 1 .. height: floats, or Fractions for exact results.
    """

    def __init__(self, tree: BoxTree, variances: Sequence[Any]) -> None:
        self.tree, self.variances = tree, variances

    def inside(self, level: int, first: Integers, last: Integers) -> tuple[Integers, Integers]:
        """The nodes of a level in boxes: along each attribute one run, of the ends' shape."""
        column = (-1, *(1,) * (first.ndim - 1))
        widths = np.reshape(self.tree.widths[level], column)
        at_end = last + 1 == np.reshape(self.tree.shape, column)
        start = -(-first // widths)
        nodes = np.reshape(self.tree.nodes[level], column)
        end = np.where(at_end, nodes, (last + 1) // widths)
        return (start, np.maximum(end, start)) if level else (start, start)

    def below_inside(
        self, level: int, first: Integers, last: Integers
    ) -> tuple[Integers, Integers]:
        """Return the nodes of a level whose parents lie within boxes, as `inside`."""
        column = (-1, *(1,) * (first.ndim - 1))
        start, end = self.inside(level - 1, first, last)
        fanouts = np.reshape(self.tree.fanouts[level - 1], column)
        nodes = np.reshape(self.tree.nodes[level], column)
        return np.minimum(start * fanouts, nodes), np.minimum(end * fanouts, nodes)

    def chosen(self, weights: Sequence[Floats]) -> list[tuple[list[Floats], list[Floats]]]:
        """The nodes within a product of sets of places, and those whose parents are."""
        tree, result = self.tree, []
        within = [np.zeros(1) for _ in tree.attributes]  # the root is not asked
        for level in range(1, tree.height + 1):
            below = [
                np.repeat(within[i], tree.fanouts[level - 1][i])[: tree.nodes[level][i]]
                for i in tree.attributes
            ]
            within = [
                np.minimum.reduceat(
                    axis_weights, np.arange(0, len(axis_weights), tree.widths[level][i])
                )
                for i, axis_weights in enumerate(weights)
            ]
            result.append((within, below))
        return result

    def variance(self, first: Integers, last: Integers) -> Any:
        """Return the variances of the sums over boxes: shape (boxes,)."""
        total: Any = np.zeros(first.shape[1])
        for level, variance in enumerate(self.variances, 1):
            used = np.zeros(first.shape[1], dtype=np.int64)
            for sign, runs in ((1, self.inside), (-1, self.below_inside)):
                start, end = runs(level, first, last)
                used += sign * np.prod(end - start, axis=0)
            total = total + variance * used
        return total

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """The variance of the sum over a product of sets of places."""
        return sum(
            float(variance) * (_product(within) - _product(below))
            for variance, (within, below) in zip(self.variances, self.chosen(weights), strict=True)
        )

    def used(self) -> list[int]:
        """Count the nodes of the levels 1 .. height that all boxes use together, exactly."""
        tree, result = self.tree, []
        for level in range(1, tree.height + 1):
            within = below = 1
            for i, (n, width) in enumerate(zip(tree.shape, tree.widths[level], strict=True)):
                within *= _inside_all(n, width)
                parent, nodes = tree.widths[level - 1][i], tree.nodes[level - 1][i]
                fanout, fewer = tree.fanouts[level - 1][i], tree.children_of_last(level - 1, i)
                # All parents have as many children, but for the last
                last = n - (nodes - 1) * parent
                below *= fanout * (_inside_all(n, parent) - (n - last + 1)) + fewer * (n - last + 1)
            result.append(within - (below if level > 1 else 0))
        return result

    def mean(self) -> Any:
        """The mean of `variance` over all boxes."""
        total = sum(n * variance for n, variance in zip(self.used(), self.variances, strict=True))
        return total / math.prod(queries(n, "all ranges") for n in self.tree.shape)


def _product(weights: Sequence[Floats]) -> float:
    return math.prod(float(axis_weights.sum()) for axis_weights in weights)


def _inside_all(n: int, width: int) -> int:
    """Count the pairs of a range of n places and a block in it; the last may be short."""
    rest = n % width
    return blocks_inside(n, width) + (n - rest + 1 if rest else 0)
