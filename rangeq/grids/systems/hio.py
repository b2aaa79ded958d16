"""HIO: one hierarchy over all attributes at once (section 3.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar, TypeAlias

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.core.answer import ConfidenceInterval, normal_quantile
from mechdesign.base.linear_algebra import Floats, Items
from rangeq.grids.cells import Edges, Grid, tree_widths
from rangeq.grids.channel import GridChannel
from rangeq.grids.estimate import Boxes, ConjunctionEstimate
from rangeq.grids.level_sketch import LevelSketch
from rangeq.grids.queries import Queries, grouped
from rangeq.grids.systems.tree_system import TreeSystem

MOST_LEVELS = 1 << 20
"""The most d-dim levels of HIO."""
_MOST_TABLES = 1 << 13
"""The most levels with tables or sketches of their own."""
_MOST_COUNTS = 1 << 24
"""The most cells of all tables of a server together; levels beyond their share of it are kept in
sketches.
"""
_SKETCH = 256
"""The most numbers that a `LevelSketch` keeps of a level."""
_MOST_VALUES = 1 << 20
_QUERIES = 64
"""The number of queries to answer at a time."""

Block: TypeAlias = tuple[tuple[int, Items], ...]
"""A level of the tree of each attribute, and some nodes there."""


@dataclass(frozen=True)
class HIO(TreeSystem):
    """HIO (Wang et al., SIGMOD 2019): every user reports on one combination of tree levels.

    A query is the sum over the d-dim intervals that make it up, each from the users of its level:
    unbiased and linear, without any post-processing. A level that nobody reported on counts as
    uniform.

    With d attributes of h + 1 levels there are (h + 1)^d d-dim levels, at most 2^20, the finest
    with as many cells as there are different records. Levels with more cells than their share of
    2^24 are not kept in tables, but in count-mean sketches, whose noise is a little larger. More
    than 2^13 levels are all kept in one sketch (`rangeq.grids.level_sketch.LevelSketch`), with the
    noise of `frequency.HRR`: 1.3 times the variance of OLH at an epsilon of 1. Its answers are
    unbiased over the users' choice of levels too: a level that nobody reported on adds nothing, and
    with fewer users than levels most answers are 0 or far off.

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
        As for `TDG`, of the levels in tables: not to be chosen for more than 2^13 levels.
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.3"
    untold: ClassVar[str] = "few of them are on any pair of attributes"

    @cached_property
    def channel(self) -> GridChannel | LevelSketch:
        if max(self.attributes.sizes) > _MOST_VALUES:
            raise ValueError(f"an attribute of HIO has at most {_MOST_VALUES} values")
        number = math.prod(height + 1 for height in self.heights)
        if number > MOST_LEVELS:
            raise ValueError(
                f"HIO would divide users among {number} levels, more than {MOST_LEVELS}"
            )
        if number > _MOST_TABLES:
            return self._sketch(number)
        places = tuple(range(len(self.attributes)))
        self.attributes.require_numbered()
        grids = tuple(Grid(places, edges) for edges in product(*self.levels))
        limit = max(_MOST_COUNTS // number, 256)
        return GridChannel(
            self.attributes.size, self.epsilon, self.attributes, grids, self.oracle, limit
        )

    def _sketch(self, number: int) -> LevelSketch:
        """The sketch of so many d-dim levels."""
        if self.oracle != "OLH":
            raise ValueError(
                f"the {number} levels of HIO are kept in a sketch: its oracle cannot be chosen"
            )
        width = min(1 << (_MOST_COUNTS // number).bit_length() - 1, _SKETCH)
        _ = self.levels  # too many nodes are refused
        widths = tuple(tree_widths(size, self.branching) for size in self.attributes.sizes)
        return LevelSketch(self.attributes.size, self.epsilon, self.attributes, widths, width)

    def _estimate(self, aggregate: Aggregate) -> ConjunctionEstimate:
        kind = SketchedEstimate if isinstance(self.channel, LevelSketch) else HIOEstimate
        return kind(self, aggregate)


class SketchedEstimate(ConjunctionEstimate):
    """Sums of d-dim intervals of all levels at once, from a `LevelSketch`.

    An answer is a contraction: the coefficients of all d-dim levels are summed over the levels of
    one attribute after another, weighed by the coefficients of the range's nodes there. Not
    post-processed: answers may be negative.

    Parameters
    ----------
    protocol : HIO
        The protocol that collected the reports.
    aggregate : Aggregate
        Of its reports.
    """

    def __init__(self, protocol: HIO, aggregate: Aggregate) -> None:
        super().__init__(protocol.attributes, aggregate.n)
        assert isinstance(protocol.channel, LevelSketch)
        self._levels, self._channel, self.aggregate = protocol.levels, protocol.channel, aggregate

    def _answers(self, queries: Queries) -> Floats:
        tensor = self._channel.tensor(self.aggregate, queries.places)
        result = np.empty(len(queries.rows))
        for row, (left, right) in enumerate(zip(queries.left, queries.right, strict=True)):
            parts = tensor
            for place, a, b in zip(queries.places, left.tolist(), right.tolist(), strict=True):
                runs = intervals(self._levels[place], a, b)
                used = sorted({level for level, _, _ in runs})
                weights = self._channel.coefficients(place, runs)[used]
                # One axis at a time: each contraction makes the tensor smaller, and no product of
                # the levels is listed
                parts = np.einsum("l...r,lr->...r", parts[used], weights)
            result[row] = parts.sum()
        return result


class HIOEstimate(ConjunctionEstimate):
    """Sums of d-dim intervals. Not post-processed: answers may be negative.

    Parameters
    ----------
    protocol : HIO
        The protocol that collected the reports.
    aggregate : Aggregate
        Of its reports.
    """

    def __init__(self, protocol: HIO, aggregate: Aggregate) -> None:
        super().__init__(protocol.attributes, aggregate.n)
        assert isinstance(protocol.channel, GridChannel)
        self._levels, self._channel, self.aggregate = protocol.levels, protocol.channel, aggregate
        self._tables: dict[int, Floats] = {}

    def _answers(self, queries: Queries) -> Floats:
        result = np.zeros(len(queries.rows))
        for part, in_part in self._by_part(queries):
            result[[row for row, _ in in_part]] += self._sums(part, [block for _, block in in_part])
        return result

    def _by_part(self, queries: Queries) -> Iterator[tuple[int, list[tuple[int, Block]]]]:
        """The blocks that make up queries by their d-dim level, with the queries' numbers."""
        for start in range(0, len(queries.rows), _QUERIES):
            blocks: dict[int, list[tuple[int, Block]]] = {}
            for row in range(start, min(start + _QUERIES, len(queries.rows))):
                nodes = [[(0, np.zeros(1, dtype=np.int64))]] * len(self._levels)
                for axis, place in enumerate(queries.places):
                    nodes[place] = self._nodes(
                        place, int(queries.left[row, axis]), int(queries.right[row, axis])
                    )
                for block in product(*nodes):
                    blocks.setdefault(self._part(block), []).append((row, block))
            yield from blocks.items()

    def _simulated(
        self, places: Sequence[int], boxes: Boxes, shape: tuple[int, ...]
    ) -> Callable[[float], ConfidenceInterval]:
        """Normal intervals: the noise of the sum's cells, and the users of each level as a sample.

        Nothing is known where nobody reported on a level.
        """

        def within(confidence: float) -> ConfidenceInterval:
            quantile = normal_quantile(confidence)
            middle, squares = np.zeros(len(boxes[0][0])), np.zeros(len(boxes[0][0]))
            for left, right in boxes:
                middle += self.answers(places, left, right)
                _, groups = grouped(self.attributes, places, left, right)
                for group in groups:
                    for part, in_part in self._by_part(group):
                        rows = group.rows[[row for row, _ in in_part]]
                        np.add.at(
                            squares, rows, self._squares(part, [block for _, block in in_part])
                        )
            half = quantile * np.sqrt(squares + self._of_drawing(middle))
            # Nobody on a level: an infinite variance, and the interval is all of 0 .. 1
            half = np.where(np.isfinite(half), half, 1 + np.abs(middle))
            low = np.minimum(middle, np.maximum(middle - half, 0.0))
            high = np.maximum(middle, np.minimum(middle + half, 1.0))
            return ConfidenceInterval(low.reshape(shape), high.reshape(shape))

        return within

    def _squares(self, part: int, blocks: list[Block]) -> Floats:
        """The variances of the sums over blocks of cells of one d-dim level."""
        level = self._channel.part_aggregate(self.aggregate, part)
        if not level.n:
            return np.full(len(blocks), np.inf)
        cells = np.array([math.prod(len(nodes) for _, nodes in block) for block in blocks])
        shares = np.clip(self._sums(part, blocks), 0.0, 1.0)
        oracle = self._channel.parts[part]
        noise = [
            k * float(oracle.variance(level.n, share))
            for k, share in zip(cells.tolist(), (shares / cells).tolist(), strict=True)
        ]
        return np.array(noise) + shares * (1 - shares) / level.n

    def _nodes(self, place: int, left: int, right: int) -> list[tuple[int, Items]]:
        """The fewest nodes that make up a range of an attribute, by level."""
        by_level: dict[int, list[Items]] = {}
        for level, start, end in intervals(self._levels[place], left, right):
            by_level.setdefault(level, []).append(np.arange(start, end))
        return [(level, np.concatenate(runs)) for level, runs in by_level.items()]

    def _part(self, block: Block) -> int:
        """The number of a block's d-dim level."""
        part = 0
        for levels, (level, _) in zip(self._levels, block, strict=True):
            part = part * len(levels) + level
        return part

    def _sums(self, part: int, blocks: list[Block]) -> Floats:
        """The sums over blocks of cells of one d-dim level."""
        grid, oracle, level = (
            self._channel.grids[part],
            self._channel.parts[part],
            self._channel.part_aggregate(self.aggregate, part),
        )
        if not level.n:
            widths = [np.diff(edges) / edges[-1] for edges in grid.edges]
            shares = [
                math.prod(
                    shares_of[nodes].sum()
                    for shares_of, (_, nodes) in zip(widths, block, strict=True)
                )
                for block in blocks
            ]
            return np.array(shares)
        cells = []
        for block in blocks:
            inside = np.zeros(1, dtype=np.int64)
            for size, (_, nodes) in zip(grid.shape, block, strict=True):
                inside = (inside[:, None] * size + nodes).ravel()
            cells.append(inside)
        every = np.concatenate(cells)
        if oracle.domain <= (self._channel.largest_table or 0):
            if part not in self._tables:
                self._tables[part] = self._channel.frequencies(self.aggregate, part).ravel()
            frequencies = self._tables[part][every]
        else:
            frequencies = oracle.frequencies_of(level, every)
        result: Floats = np.add.reduceat(frequencies, np.cumsum([0, *map(len, cells[:-1])]))
        return result


def intervals(levels: tuple[Edges, ...], left: int, right: int) -> list[tuple[int, int, int]]:
    """Cut a range into the fewest nodes: a level, its first node, and the end."""
    runs, above, below = [], left, left  # what is covered so far is above .. below - 1
    for level, edges in enumerate(levels):
        # The whole nodes in the range; at a finer level, those to the left and to the right of what
        # is covered.
        start = int(np.searchsorted(edges, left, side="left"))
        end = int(np.searchsorted(edges, right + 1, side="right")) - 1
        if start >= end:
            continue
        if above == below:
            runs.append((level, start, end))
        else:
            middle = int(np.searchsorted(edges, above)), int(np.searchsorted(edges, below))
            runs += [(level, a, b) for a, b in ((start, middle[0]), (middle[1], end)) if a < b]
        above, below = edges[start], edges[end]
    return runs
