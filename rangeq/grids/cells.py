"""Grids: the domain of one, two or more attributes cut into cells (Phase 1, section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from mechdesign.base.linear_algebra import Floats, Items

Edges: TypeAlias = tuple[int, ...]
"""The starts of the cells of an axis, and at last the end of the domain: cell k is the values
edges[k] .. edges[k + 1] - 1.
"""


MOST_CELLS = 1 << 22
"""The most cells of the grid of a pair of attributes."""

MOST_EDGES = 3 << 20
"""The most cells along all attributes together, on all levels of their trees."""


def equal_cells(size: int, granularity: int) -> Edges:
    """Cut into ``granularity`` cells (at most one a value), as equal as can be.

    Cell k begins at floor(k size / granularity). Nothing is lost where the granularity does not
    divide the size; and cells nest wherever one granularity divides the other.
    """
    g = min(granularity, size)
    return tuple((np.arange(g + 1) * size // g).tolist())


def tree_cells(size: int, branching: int) -> tuple[Edges, ...]:
    """The cells of each level of a tree over one attribute: from one cell down to single values.

    A node of level l stands for branching^(height - l) values, except that the last ends with the
    domain.
    """
    widths = tree_widths(size, branching)
    return tuple((*range(0, size, width), size) for width in widths)


def tree_widths(size: int, branching: int) -> tuple[int, ...]:
    """The number of values that a node of each level stands for."""
    widths = [1]
    # By products and not by logarithms, which round at powers
    while widths[-1] < size:
        widths.append(widths[-1] * branching)
    return tuple(reversed(widths))


def axis(edges: Edges) -> Any:
    """The cut of an attribute in descriptions: a width, or the edges within."""
    cells, width = len(edges) - 1, edges[1]
    if edges[:-1] == tuple(range(0, cells * width, width)):
        return {"width": width, "cells": cells}
    return list(edges[1:-1])


def common(*axes: Edges) -> Edges:
    """The finest cells that are unions of the cells of every axis."""
    return tuple(sorted(set.intersection(*map(set, axes))))


def refined(*axes: Edges) -> Edges:
    """The coarsest cells of which the cells of every axis are unions."""
    return tuple(sorted(set.union(*map(set, axes))))


@dataclass(frozen=True)
class Grid:
    """Cells of some attributes.

    Attributes
    ----------
    places : tuple of int
        The places of the attributes.
    edges : tuple of tuple of int
        The cut of each. The last axis counts fastest in the cells' numbers.
    """

    places: tuple[int, ...]
    edges: tuple[Edges, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(len(edges) - 1 for edges in self.edges)

    @cached_property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def even(self) -> Floats:
        """The frequencies of the cells if all records are equally frequent: shaped as the grid."""
        result: Floats = np.ones(())
        for edges in self.edges:
            result = np.multiply.outer(result, np.diff(edges) / edges[-1])
        return result

    def cell_of(self, table: Items) -> Items:
        """The cell of each record: a table of shape (n, attributes) to (n,)."""
        result = np.zeros(len(table), dtype=np.int64)
        for place, edges in zip(self.places, self.edges, strict=True):
            if len(edges) > 2:
                result *= len(edges) - 1
                result += np.searchsorted(edges[1:-1], table[:, place], side="right")
        return result

    def expression(self, axes: Mapping[Edges, int]) -> list[Any]:
        """The expression of `cell_of` in descriptions; axes by `numbered_axes`."""
        cut = [pair for pair in zip(self.places, self.edges, strict=True) if len(pair[1]) > 2]
        return ["grid", [[place, axes[edges]] for place, edges in cut]]


def numbered_axes(grids: Iterable[Grid]) -> dict[Edges, int]:
    """The different ways in which grids cut attributes, and a number of each."""
    cut = dict.fromkeys(edges for grid in grids for edges in grid.edges if len(edges) > 2)
    return {edges: number for number, edges in enumerate(cut)}
