"""Grids: the domain of one, two or more attributes cut into cells (Phase 1, section 4.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.core import place_of
from frequency.schema import Domain
from mechdesign.base import Floats, Items
from rangeq.core import InvalidRange

#: The starts of the cells of an axis, and at last the end of the domain: cell k is the values
#: edges[k] .. edges[k + 1] - 1.
Edges: TypeAlias = tuple[int, ...]


MOST_CELLS = 1 << 22  #: The most cells of the grid of a pair of attributes.

MOST_EDGES = 3 << 20  #: The most cells along all attributes together, on all levels of their trees.


def equal_cells(size: int, granularity: int) -> Edges:
    """Cut into ``granularity`` cells (at most one a value), as equal as can be."""
    # Cell k begins at floor(k size / granularity): nothing is lost where the granularity does not
    # divide the size, and cells nest wherever one granularity divides the other
    g = min(granularity, size)
    return tuple((np.arange(g + 1) * size // g).tolist())


def tree_cells(size: int, branching: int) -> tuple[Edges, ...]:
    """Return the cells of each level of a tree, from one cell to single values."""
    # A node of level l stands for branching^(height - l) values, but the last ends with the domain
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


def overlap(edges: Edges, left: Items, right: Items) -> Floats:
    """Return the part of each cell that lies in each range: shape (ranges, cells)."""
    begin, end = np.array(edges[:-1]), np.array(edges[1:])
    inside = np.minimum(end, right[:, None] + 1) - np.maximum(begin, left[:, None])
    return np.maximum(inside, 0) / (end - begin)


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


# ------------------------------------------------------------------------------------------------
# The guideline for the granularities of TDG and HDG (section 4.6).


#: The constant of the non-uniformity error of a 1-D query, which is taken to be ALPHA1 / g1.
ALPHA1 = 0.7
#: The constant of the non-uniformity error of a 2-D query, taken to be ALPHA2 times the frequency
#: of the cells that its border cuts, 2 / g2.
ALPHA2 = 0.03


def granularities(
    d: int, n: int, epsilon: float, c: int, alpha1: float = ALPHA1, alpha2: float = ALPHA2
) -> tuple[int, int]:
    """Return the granularities (g1, g2) of 1-D and 2-D grids of HDG, by section 4.6's guideline.

    For n users in d + C(d, 2) groups of the same size.

    Parameters
    ----------
    d, n : int
        The numbers of attributes and of users, at least 1.
    epsilon : float
        The privacy loss of a report, above 0.
    c : int
        The number of values of an attribute: of several, ask for each.
    alpha1 : float, default 0.7
        The constant of the non-uniformity of 1-D grids: see `ALPHA1`.
    alpha2 : float, default 0.03
        The constant of the non-uniformity of 2-D grids: see `ALPHA2`.

    Returns
    -------
    tuple
        Two powers of two, of at least 2 and at most c.

    Raises
    ------
    ValueError
        For numbers out of range.

    Examples
    --------
    >>> granularities(d=6, n=10**6, epsilon=1.0, c=64)
    (16, 4)
    """
    if min(d, n, c) < 1 or not epsilon > 0:
        raise ValueError(
            f"d, n and c must be at least 1 and epsilon positive, got {d}, {n}, {c} and {epsilon}"
        )
    users = n / (d * (d + 1) // 2)
    return line_granularity(users, epsilon, c, alpha1), plane_granularity(users, epsilon, c, alpha2)


def line_granularity(users: float, epsilon: float, c: int, alpha1: float = ALPHA1) -> int:
    """Return the granularity g1 of a 1-D grid that so many users report on (section 4.6)."""
    # Noise of g1 / 2 cells, 2 g1 e^eps / (users (e^eps - 1)^2), and non-uniformity (alpha1 / g1)^2
    # are least in sum at the cube root of users (e^eps - 1)^2 alpha1^2 / e^eps. The source prints,
    # and its Table 2 uses, the cube root of half of that: taken is the power of two nearest to it,
    # the larger of two that are as near.
    return _nearest_power((users * _gain(epsilon) ** 2 * alpha1**2 / 2) ** (1 / 3), c)


def plane_granularity(users: float, epsilon: float, c: int, alpha2: float = ALPHA2) -> int:
    """Return the granularity g2 of a 2-D grid that so many users report on (section 4.6)."""
    # Noise of (g2 / 2)^2 cells, g2^2 e^eps / (users (e^eps - 1)^2), and non-uniformity (2 alpha2 /
    # g2)^2 are least in sum at the square root of 2 alpha2 (e^eps - 1) (users / e^eps)^(1/2). Taken
    # is the power of two nearest to it, as above.
    return _nearest_power(math.sqrt(2 * alpha2 * _gain(epsilon) * math.sqrt(users)), c)


def _gain(epsilon: float) -> float:
    """The ratio (e^eps - 1) / e^(eps / 2)."""
    # As a hyperbolic sine: no difference of nearly equal numbers at a small epsilon, and no
    # overflow
    return 2 * math.sinh(min(epsilon, 700.0) / 2)


def _nearest_power(value: float, largest: int) -> int:
    # No power of two need fit the number of values: the last line may return it itself
    value = min(value, float(largest))
    below = 1 << max(math.floor(math.log2(value)), 1) if value >= 2 else 2
    return min(below if value - below < 2 * below - value else 2 * below, largest)


# ------------------------------------------------------------------------------------------------
# Conjunctions of closed intervals, checked, and grouped by the attributes that they ask about.


#: The most attributes that a query may name: the answer of many is one of 2^lambda numbers that are
#: estimated together.
MOST_ATTRIBUTES = 20


class Queries(NamedTuple):
    """Queries that ask about the same attributes, each for less than all of its values."""

    rows: Items  # shape (queries,): their positions among all queries
    # Of the attributes, increasing; none for queries that all records answer
    places: tuple[int, ...]
    left: Items  # shape (queries, attributes): the first values of closed ranges
    right: Items  # and the last


class Rectangles(NamedTuple):
    """Rectangles that do not overlap."""

    left: Items  # shape (rectangles, 2): the first values of the closed ranges of both attributes
    right: Items  # and the last


def rectangles(mask: npt.NDArray[np.bool_]) -> Rectangles:
    """Cut a region into rectangles: runs of a row, with the same runs of the next rows."""
    steps = np.diff(np.pad(mask, [(0, 0), (1, 1)]).astype(np.int8), axis=1)
    open_since, boxes = dict[tuple[int, int], int](), []
    for row in range(len(mask) + 1):
        runs = set[tuple[int, int]]()
        if row < len(mask):
            first, last = np.flatnonzero(steps[row] == 1), np.flatnonzero(steps[row] == -1) - 1
            runs = set(zip(first.tolist(), last.tolist(), strict=True))
        # Invariant: `open_since` has the runs of the row before with the row where they began;
        # those that do not go on are closed
        for run in [run for run in open_since if run not in runs]:
            boxes.append((open_since.pop(run), run[0], row - 1, run[1]))
        for run in runs:
            open_since.setdefault(run, row)
    ends = np.array(boxes, dtype=np.int64).reshape(-1, 2, 2)
    return Rectangles(ends[:, 0], ends[:, 1])


def grouped(
    attributes: Domain,
    places: npt.ArrayLike,
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    most: int = MOST_ATTRIBUTES,
) -> tuple[int, list[Queries]]:
    """Return the number of queries, and the queries of each set of attributes.

    Shapes: `places`, `left` and `right` (m, lambda). An attribute asked for in whole is left out.
    """
    p, a, b = np.asarray(places), np.asarray(left), np.asarray(right)
    if p.dtype.kind == "U":
        p = np.array(
            [place_of(str(name), attributes.names, InvalidRange) for name in p.ravel()],
            dtype=np.int64,
        ).reshape(p.shape)
    if any(array.dtype.kind not in "iu" and array.size for array in (p, a, b)):
        raise InvalidRange(
            f"attributes and ends of queries must be integers, got {p.dtype}, {a.dtype} and"
            f" {b.dtype}"
        )
    if (
        a.ndim != 2
        or b.shape != a.shape
        or p.shape not in (a.shape, a.shape[1:])
        or not 1 <= a.shape[1] <= most
    ):
        given = f"attributes {p.shape}, ends {a.shape} and {b.shape}"
        raise InvalidRange(f"queries must have shape (m, lambda), lambda 1 to {most}, got {given}")
    p, a, b = np.broadcast_to(p, a.shape).astype(np.int64), a.astype(np.int64), b.astype(np.int64)
    _first(
        ((p < 0) | (p >= len(attributes))).any(axis=1),
        lambda k: f"attributes are 0 .. {len(attributes) - 1}, got {p[k].tolist()}",
    )
    order = np.argsort(p, axis=1, kind="stable")
    p, a, b = (np.take_along_axis(array, order, axis=1) for array in (p, a, b))
    _first(
        (np.diff(p, axis=1) == 0).any(axis=1),
        lambda k: f"a query must name distinct attributes, got {p[k].tolist()}",
    )
    sizes = np.array(attributes.sizes)[p]
    bad = ((a < 0) | (a > b) | (b >= sizes)).any(axis=1)
    _first(
        bad,
        lambda k: (
            f"{a[k].tolist()} to {b[k].tolist()} are not ranges within {sizes[k].tolist()} values"
        ),
    )
    kept = np.where((a == 0) & (b == sizes - 1), -1, p)
    order = np.argsort(kept, axis=1, kind="stable")
    kept, a, b = (np.take_along_axis(array, order, axis=1) for array in (kept, a, b))
    return len(p), list(_groups(kept, a, b))


def _groups(kept: Items, a: Items, b: Items) -> Iterator[Queries]:
    """Group queries by the places that restrict them, after a -1 for each that does not."""
    if not len(kept):
        return
    sets, which = np.unique(kept, axis=0, return_inverse=True)
    for k, places in enumerate(sets):
        rows, first = np.flatnonzero(which.ravel() == k), int((places < 0).sum())
        yield Queries(rows, tuple(places[first:].tolist()), a[rows, first:], b[rows, first:])


def _first(bad: Any, message: Callable[[int], str]) -> None:
    if bad.any():
        k = int(np.argmax(bad))
        raise InvalidRange(message(k), k)
