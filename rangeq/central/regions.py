"""Regions in regions, such as wards in counties in countries: a tree by names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from frequency.exceptions import InvalidQuestion
from mechdesign.base import Booleans, Integers, shown
from mechdesign.exceptions import InvalidTable

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
        told = [_path(path) for path in paths]
        if not told:
            raise InvalidTable("a tree of regions needs one leaf at least")
        above = {path[:depth] for path in told for depth in range(1, len(path))}
        seen: set[tuple[str, ...]] = set()
        for path in told:
            if path in seen or path in above:
                what = "comes twice" if path in seen else "has parts, and is no leaf"
                raise InvalidTable(f"the region {shown(path)} {what}")
            seen.add(path)
        every = dict.fromkeys(path[:depth] for path in told for depth in range(1, len(path) + 1))
        self.paths = tuple(sorted(every, key=len))
        self._numbers = {path: number for number, path in enumerate(self.paths)}
        self.parents = np.array(
            [self._numbers.get(path[:-1], -1) for path in self.paths], dtype=np.int64
        )
        self.leaves = np.array([self._numbers[path] for path in told], dtype=np.int64)

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
        """Which regions have parts: shape (regions,)."""
        result = np.zeros(len(self), dtype=np.bool_)
        result[self.parents[self.parents >= 0]] = True
        return result

    @property
    def inner_depths(self) -> int:
        """The number of depths at which there are regions with parts."""
        return int(self.depths[self.inner].max(initial=-1)) + 1

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, path in enumerate(self.paths):
            found.setdefault(path[-1], []).append(number)
        return found

    def number(self, region: Region) -> int:
        """The place of a region in `paths`.

        Raises
        ------
        InvalidQuestion
            There is no such region, or there are several of this name.
        """
        if isinstance(region, str):
            found = self._by_name.get(region, [])
            if len(found) > 1:
                raise InvalidQuestion(
                    f"{len(found)} regions are called {shown(region)}: give a path, such as"
                    f" {shown(self.paths[found[0]])}"
                )
        else:
            number = self._numbers.get(tuple(region))
            found = [] if number is None else [number]
        if not found:
            raise InvalidQuestion(f"there is no region {shown(region)}")
        return found[0]

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
        covered: Integers = result[self.leaves]
        return covered

    def __repr__(self) -> str:
        return f"<Regions: {len(self)}, of which {len(self.leaves)} are leaves>"


def _path(path: Sequence[str]) -> tuple[str, ...]:
    found = () if isinstance(path, str) else tuple(path)
    if not found or not all(isinstance(name, str) and name.strip() for name in found):
        raise InvalidTable(f"the path of a region is a sequence of names, got {shown(path)}")
    return found
