"""Boxes of ordered cells: trees of boxes, sums over boxes, and histograms by halving boxes.

Every level of a tree splits every attribute, or leaves some of them as they are. Cells beyond the
ends of the attributes do not exist: a node at such an end is smaller than others, and has fewer
children.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers, is_whole, shown
from rangeq.core.tree import Tree

_Number = TypeVar("_Number", np.float64, np.int64)


@dataclass(frozen=True)
class BoxTree:
    """A tree over the cells of one attribute or several; its leaves are single cells.

    Below, level 0 is the root, and the levels 1 .. height lie below it.

    Parameters
    ----------
    shape : tuple of int
        The number of cells along each attribute.
    fanouts : tuple of tuple of int
        For each level of parents from the root, into how many a node is split along each attribute:
        at least 1. At the ends of the attributes into fewer.
    """

    shape: tuple[int, ...]
    fanouts: tuple[tuple[int, ...], ...]

    @property
    def height(self) -> int:
        """The number of levels below the root."""
        return len(self.fanouts)

    @cached_property
    def widths(self) -> tuple[tuple[int, ...], ...]:
        """The cells of a node along each attribute, for the levels 0 .. height."""
        return tuple(
            tuple(math.prod(below[i] for below in self.fanouts[level:]) for i in self.attributes)
            for level in range(self.height + 1)
        )

    @property
    def attributes(self) -> range:
        """The places of the attributes."""
        return range(len(self.shape))

    @cached_property
    def nodes(self) -> tuple[tuple[int, ...], ...]:
        """The number of nodes along each attribute, for the levels 0 .. height."""
        return tuple(
            tuple(-(-n // width) for n, width in zip(self.shape, widths, strict=True))
            for widths in self.widths
        )

    def children_of_last(self, level: int, attribute: int) -> int:
        """Return into how many the last node of a level is split along an attribute.

        Parameters
        ----------
        level, attribute : int
            From 0 to height - 1, and the attribute's place.

        Returns
        -------
        int
            From 1 to the fanout.
        """
        before = self.fanouts[level][attribute] * (self.nodes[level][attribute] - 1)
        return self.nodes[level + 1][attribute] - before

    def sums(self, counts: Integers) -> list[Integers]:
        """Return the sums of the cells below the nodes of the levels 1 .. height, from the top.

        Shapes: `counts` of the cells; returns an array for each level, of its nodes.
        """
        levels = [counts]
        for level in range(self.height - 1, 0, -1):
            levels.append(sums_of_children(levels[-1], self.fanouts[level]))
        return levels[::-1]


def sums_of_children(values: npt.NDArray[_Number], fanouts: Sequence[int]) -> npt.NDArray[_Number]:
    """The sums over blocks of nodes, the last of which may be smaller."""
    for axis, size in enumerate(fanouts):
        if size > 1:
            values = np.add.reduceat(values, np.arange(0, values.shape[axis], size), axis=axis)
    return values


def tree_over(shape: tuple[int, ...], branching: Any) -> BoxTree:
    """The tree with these branchings, the root's cut to those that are needed."""
    if is_whole(branching):
        lists = [Tree.of(n, int(branching)).branching if n > 1 else (1,) for n in shape]
        height = max(map(len, lists))
        lists = [(1,) * (height - len(numbers)) + numbers for numbers in lists]
    elif is_whole(branching[0]):
        lists = [tuple(branching)] * len(shape)
    else:
        lists = [tuple(numbers) for numbers in branching]
        if len(lists) != len(shape) or len({len(numbers) for numbers in lists}) != 1:
            raise ValueError(
                f"branching must have a list for each of the {len(shape)} attributes, all of one"
                f" length, got {shown(branching)}"
            )
    below = [math.prod(numbers[1:]) for numbers in lists]
    if any(size * numbers[0] < n for n, numbers, size in zip(shape, lists, below, strict=True)) or (
        len(lists[0]) > 1 and all(size >= n for n, size in zip(shape, below, strict=True))
    ):
        whole = f"the domain, {shape[0]}," if len(shape) == 1 else f"the shape, {shape},"
        raise ValueError(
            f"the product of the branchings must reach {whole} and that of all but the first must"
            f" not; got {shown(branching)}"
        )
    used = []
    for n, numbers in zip(shape, lists, strict=True):
        # A level that this attribute does not need leaves it as it is
        fanouts, nodes = [], n
        for size in numbers[:0:-1]:
            fanouts.append(min(size, nodes))
            nodes = -(-nodes // size)
        used.append((nodes, *reversed(fanouts)))
    levels = tuple(zip(*used, strict=True))
    if len(levels) > 1 and any(max(fanouts) == 1 for fanouts in levels):
        raise ValueError(f"every level must split an attribute, got {shown(branching)}")
    return BoxTree(shape, levels)


class BoxSums:
    """The sums over any boxes of an array, 2^axes steps for each.

    Of integers, or floats of less than 2^63. Floats are split into integers and rests of at most a
    half, and each kind is cumulated by itself: so the error does not grow with the size of the
    values.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        whole = np.rint(values)
        self._parts = [cumulated(whole.astype(np.int64))]
        if values.dtype.kind == "f":
            self._parts.append(cumulated(values - whole))

    def between(self, first: Integers, after: Integers) -> Any:
        """Return the sums over boxes: ends of shape (axes, ...), `after` excluded."""
        total: Any = 0
        for part in self._parts:
            sums: Any = 0
            for ends in product((0, 1), repeat=len(first)):
                corner = tuple(
                    last if end else start
                    for end, start, last in zip(ends, first, after, strict=True)
                )
                sums = sums + (-1) ** (len(first) - sum(ends)) * part[corner]
            total = total + sums
        return total


def contrasts(table: Floats, axes: Sequence[int] | None = None) -> Floats:
    """Return what a table says beyond its sums along some axes, along which it sums to 0 then.

    None: along all.
    """
    for axis in range(table.ndim) if axes is None else axes:
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def cumulated(values: npt.NDArray[Any], axes: Sequence[int] | None = None) -> npt.NDArray[Any]:
    """Return sums of what is before each place along some axes, longer by one; None: along all."""
    along = range(values.ndim) if axes is None else axes
    shape = list(values.shape)
    places: list[Any] = [slice(None)] * values.ndim
    for axis in along:
        shape[axis] += 1
        places[axis] = slice(1, None)
    result = np.zeros(shape, dtype=values.dtype)
    inner = result[(*places, ...)]  # a view, also of no axes
    inner[...] = values
    for axis in along:
        np.cumsum(inner, axis=axis, out=inner)
    return result


def halved(
    box_sums: Callable[[Integers, Integers], Floats], sizes: Sequence[int], total: float
) -> Floats:
    """Share a total out to cells: box by box, to two halves at a time.

    The halves get what is nearest to their estimates, of all that is not negative and adds up to
    the box's. So noise in empty cells does not add up, as it does where negative cells are set to
    0: boxes of any size err about as the estimate does, or less.

    Shapes: `box_sums` (attributes, boxes) or (boxes,).
    """
    result = np.zeros(sizes)
    first = np.zeros((len(sizes), 1), dtype=np.int64)
    last = np.array(sizes, dtype=np.int64)[:, None] - 1
    mass = np.array([float(total)])
    while mass.size:
        length = last - first
        single = ~length.any(axis=0)
        result[tuple(first[:, single])] = mass[single]
        first, last, mass, length = (each[..., ~single] for each in (first, last, mass, length))
        # Along the longest side of each box
        side = length.argmax(axis=0), np.arange(mass.size)
        end, begin = last.copy(), first.copy()
        end[side] = (first[side] + last[side]) // 2
        begin[side] = end[side] + 1
        lead = box_sums(first, end) - box_sums(begin, last)
        lower = np.clip((mass + lead) / 2, 0.0, mass)
        first, last = np.hstack([first, begin]), np.hstack([end, last])
        mass = np.concatenate([lower, mass - lower])
    return result
