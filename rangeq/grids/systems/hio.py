"""HIO: one hierarchy over all attributes at once (section 3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, TypeAlias

import numpy as np

from frequency.core.aggregate import Aggregate
from mechdesign._support.arrays import Floats
from rangeq.grids.cells import Edges, Grid
from rangeq.grids.channel import GridChannel
from rangeq.grids.estimate import ConjunctionEstimate
from rangeq.grids.queries import Queries
from rangeq.grids.systems.tree_system import TreeSystem

MOST_LEVELS = 1 << 13
"""How many d-dim levels HIO may have."""
_MOST_COUNTS = 1 << 24
"""How many cells all tables of a server may have; levels beyond their share of it are kept in
sketches.
"""
_MOST_VALUES = 1 << 20
_QUERIES = 64
"""How many queries to answer at a time."""

Runs: TypeAlias = tuple[tuple[int, int, int], ...]
"""For each attribute a level of its tree, and the nodes there from the first, up to but without the
second.
"""


@dataclass(frozen=True)
class HIO(TreeSystem):
    """HIO (Wang et al., SIGMOD 2019): every user reports on one combination of tree levels.

    A query is the sum over the d-dim intervals that make it up, each from the users of its level:
    unbiased and linear, without any post-processing. A level that nobody reported on counts as
    uniform.

    With d attributes of h + 1 levels there are (h + 1)^d d-dim levels, at most 2^13, the finest
    with as many cells as there are different records. Levels with more cells than their share of
    2^24 are not kept in tables, but in count-mean sketches, whose noise is a little larger.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: see `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        Not used.
    branching : int, default 4
        b, the children of a node.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        As for `TDG`.
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.3"

    @cached_property
    def channel(self) -> GridChannel:
        if max(self.attributes.sizes) > _MOST_VALUES:
            raise ValueError(f"an attribute of HIO has at most {_MOST_VALUES} values")
        number = math.prod(height + 1 for height in self.heights)
        if number > MOST_LEVELS:
            raise ValueError(
                f"HIO would divide users among {number} levels, more than {MOST_LEVELS}"
            )
        places = tuple(range(len(self.attributes)))
        if self.attributes.size > 1 << 62:
            raise ValueError("HIO numbers all different records, and there are more than 2^62")
        grids = tuple(Grid(places, edges) for edges in product(*self.levels))
        limit = max(_MOST_COUNTS // number, 256)
        return GridChannel(
            self.attributes.size, self.epsilon, self.attributes, grids, self.oracle, limit
        )

    def _estimate(self, aggregate: Aggregate) -> ConjunctionEstimate:
        return HIOEstimate(self, aggregate)


class HIOEstimate(ConjunctionEstimate):
    """Sums of d-dim intervals. Not post-processed: answers may be negative.

    Parameters
    ----------
    protocol : HIO
        What collected the reports.
    aggregate : Aggregate
        Of its reports.
    """

    def __init__(self, protocol: HIO, aggregate: Aggregate) -> None:
        super().__init__(protocol.attributes, aggregate.n)
        self._levels, self._channel, self.aggregate = protocol.levels, protocol.channel, aggregate
        self._tables: dict[int, Floats] = {}

    def _answers(self, queries: Queries) -> Floats:
        result = np.zeros(len(queries.rows))
        for start in range(0, len(result), _QUERIES):
            rows = range(start, min(start + _QUERIES, len(result)))
            blocks: dict[int, list[tuple[int, Runs]]] = {}
            for row in rows:
                runs = [[(0, 0, 1)]] * len(self._levels)
                for axis, place in enumerate(queries.places):
                    runs[place] = intervals(
                        self._levels[place],
                        int(queries.left[row, axis]),
                        int(queries.right[row, axis]),
                    )
                for block in product(*runs):
                    blocks.setdefault(self._part(block), []).append((row, block))
            for part, held in blocks.items():
                np.add.at(
                    result, [row for row, _ in held], self._sums(part, [block for _, block in held])
                )
        return result

    def _part(self, block: Runs) -> int:
        """The number of a block's d-dim level."""
        part = 0
        for levels, (level, _, _) in zip(self._levels, block, strict=True):
            part = part * len(levels) + level
        return part

    def _sums(self, part: int, blocks: list[Runs]) -> Floats:
        """The sums over blocks of cells of one d-dim level."""
        grid, oracle, level = (
            self._channel.grids[part],
            self._channel.parts[part],
            self._channel.part_aggregate(self.aggregate, part),
        )
        if not level.n:
            shares = [
                [
                    grid.edges[axis][end] - grid.edges[axis][start]
                    for axis, (_, start, end) in enumerate(b)
                ]
                for b in blocks
            ]
            return np.array([math.prod(share) / self.attributes.size for share in shares])
        if oracle.domain <= (self._channel.largest_table or 0):
            if part not in self._tables:
                self._tables[part] = self._channel.frequencies(self.aggregate, part)
            table = self._tables[part]
            return np.array(
                [
                    table[tuple(slice(start, end) for _, start, end in block)].sum()
                    for block in blocks
                ]
            )
        cells = []
        for block in blocks:
            inside = np.ix_(*(np.arange(start, end) for _, start, end in block))
            cells.append(np.ravel_multi_index(inside, grid.shape).ravel())
        found, starts = (
            oracle.frequencies_of(level, np.concatenate(cells)),
            np.cumsum([0, *map(len, cells[:-1])]),
        )
        result: Floats = np.add.reduceat(found, starts)
        return result


def intervals(levels: tuple[Edges, ...], left: int, right: int) -> list[tuple[int, int, int]]:
    """The fewest nodes that make up a range.

    Parameters
    ----------
    levels : tuple of tuple of int
        The cells of each level of the tree, from the root.
    left, right : int
        The ends of the closed range.

    Returns
    -------
    list of (int, int, int)
        Runs of a level's nodes: (level, the first, up to but without the last).
    """
    found, above, below = [], left, left  # what is covered so far is above .. below - 1
    for level, edges in enumerate(levels):
        # The whole nodes in the range; at a finer level, those to the left and to the right of what
        # is covered.
        start = int(np.searchsorted(edges, left, side="left"))
        end = int(np.searchsorted(edges, right + 1, side="right")) - 1
        if start >= end:
            continue
        if above == below:
            found.append((level, start, end))
        else:
            middle = int(np.searchsorted(edges, above)), int(np.searchsorted(edges, below))
            found += [(level, a, b) for a, b in ((start, middle[0]), (middle[1], end)) if a < b]
        above, below = edges[start], edges[end]
    return found
