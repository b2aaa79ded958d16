"""TreeSystem: the common part of the systems that cut every attribute by a tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, TypeAlias

import numpy as np

from frequency.core import Aggregate, ConfidenceInterval, normal_quantile
from frequency.oracles import OracleChoice
from mechdesign.base import Floats, Items, set_fields, whole
from rangeq.grids.cells import (
    MOST_CELLS,
    MOST_EDGES,
    Edges,
    Grid,
    Queries,
    grouped,
    tree_cells,
    tree_widths,
)
from rangeq.grids.channel import GridChannel, LevelSketch
from rangeq.grids.estimate import Boxes, ConjunctionEstimate, PairwiseEstimate
from rangeq.grids.fitting import Plane, agreeing, clean
from rangeq.grids.grid_likelihoods import of_grids
from rangeq.grids.protocol import ConjunctionProtocol, Miniature, Simulation
from rangeq.grids.published.tdg_hdg_calm import lines_of
from rangeq.grids.wavegrid.likelihoods import Likelihoods


@dataclass(frozen=True)
class TreeSystem(ConjunctionProtocol):
    """A system with a tree of intervals for each attribute: cells are made of levels of trees.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, the privacy loss of a report, and the users expected.
    branching : int, default 4
        The children of a node, at least 2.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        Of the cells of a grid, as for `rangeq.HierarchicalHistogram`.
    """

    simulation = Simulation(step=1)

    branching: int = 4
    oracle: OracleChoice = "OLH"

    def __post_init__(self) -> None:
        set_fields(self, branching=whole(self.branching, "branching", 2))
        super().__post_init__()
        _ = self.channel.report_dtype  # an oracle that cannot be is refused now

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The height of the tree of each attribute: one less than the number of its levels."""
        return tuple(len(tree_widths(s, self.branching)) - 1 for s in self.attributes.sizes)

    @cached_property
    def levels(self) -> tuple[tuple[Edges, ...], ...]:
        """The cells of each level of the tree of each attribute, from the root."""
        cells = sum(
            -(-size // width)
            for size in self.attributes.sizes
            for width in tree_widths(size, self.branching)
        )
        if cells > MOST_EDGES:
            raise ValueError(f"the attributes' trees have {cells} nodes, more than {MOST_EDGES}")
        return tuple(tree_cells(size, self.branching) for size in self.attributes.sizes)

    def miniature(self, places: tuple[int, ...], sizes: tuple[int, ...]) -> Miniature:
        small = super().miniature(places, sizes)
        # Variances are in proportion to the numbers of levels of both attributes
        assert isinstance(small.protocol, TreeSystem)
        heights = zip(places[:2], small.protocol.heights, strict=False)
        coarser = math.prod(self.heights[place] / max(few, 1) for place, few in heights)
        return small._replace(coarser=coarser)


# ------------------------------------------------------------------------------------------------
# HIO: one hierarchy over all attributes at once (section 3.3).


MOST_LEVELS = 1 << 20  #: The most d-dim levels of HIO.
_MOST_TABLES = 1 << 13  # the most levels with tables or sketches of their own
# The most cells of all tables of a server together; levels beyond their share of it are kept in
# sketches.
_MOST_COUNTS = 1 << 24
_SKETCH = 256  # the most numbers that a `LevelSketch` keeps of a level
_MOST_VALUES = 1 << 20
_QUERIES = 64  # the number of queries to answer at a time

#: A level of the tree of each attribute, and some nodes there.
Block: TypeAlias = tuple[tuple[int, Items], ...]


@dataclass(frozen=True)
class HIO(TreeSystem):
    """HIO (Wang et al., SIGMOD 2019): every user reports on one combination of tree levels.

    A query is the sum over the d-dim intervals that make it up, each from the users of its level:
    unbiased and linear, without any post-processing. A level that nobody reported on counts as
    uniform.

    With d attributes of h + 1 levels there are (h + 1)^d d-dim levels, at most 2^20, the finest
    with as many cells as there are different records. Levels with more cells than their share of
    2^24 are not kept in tables, but in count-mean sketches, whose noise is a little larger. More
    than 2^13 levels are all kept in one sketch (`rangeq.grids.channel.LevelSketch`), with the
    noise of `frequency.HRR`: 1.3 times the variance of OLH at an epsilon of 1. Its answers are
    unbiased over the users' choice of levels too: a level that nobody reported on adds nothing, and
    with fewer users than levels most answers are 0 or far off.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, and the privacy loss of a report; ``n`` is not used.
    branching : int, default 4
        b, the children of a node.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        As for `TDG`, of the levels in tables: not to be chosen for more than 2^13 levels.
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.3"
    untold: ClassVar[str] = "few of them are on any pair of attributes"
    simulation = Simulation(others=False, step=1)
    errs_as_noise = True  #: as of `GridProtocol`

    @property
    def groups(self) -> int:
        return math.prod(height + 1 for height in self.heights)

    @property
    def _chances(self) -> tuple[float, float]:
        return 1 / self.groups, 1 / self.groups  # of parts, or of levels in a sketch of all

    @cached_property
    def channel(self) -> GridChannel | LevelSketch:
        if max(self.attributes.sizes) > _MOST_VALUES:
            raise ValueError(f"an attribute of HIO has at most {_MOST_VALUES} values")
        number = self.groups
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
    """Sums of d-dim intervals. Not post-processed: answers may be negative."""

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
    ) -> Callable[[float], ConfidenceInterval[Any]]:
        """Return normal intervals: the noise of the sum's cells, and users as a sample."""
        # Nothing is known where nobody reported on a level

        def within(confidence: float) -> ConfidenceInterval[Any]:
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
        return np.add.reduceat(frequencies, np.cumsum([0, *map(len, cells[:-1])]))


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


# ------------------------------------------------------------------------------------------------
# LHIO: a hierarchy over every pair of attributes, made consistent (section 3.4).


@dataclass(frozen=True)
class LHIO(TreeSystem):
    """LHIO: users are divided among the pairs of attributes and the 2-D levels of each.

    The levels of a pair are combined by weighted least squares (`hierarchy_fit`: for levels of as
    many users, Hay et al.'s constrained inference along one attribute, then along the other, as in
    the paper); then all pairs' distributions are made to agree on single attributes, as in CALM. By
    default answers about one or two attributes are unbiased, and may be negative. As the paper
    compares with it, LHIO is ``nonnegative``. No theory gives the errors of answers. Its
    `posterior` takes all levels of a pair for as precise as the least precise of them.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, and the privacy loss of a report; ``n`` is not used.
    branching, oracle : as of `HIO`
        The children of a node, and the oracle of the cells of a grid.
    nonnegative : bool, default False
        The published post-processing, whose details the paper omits: norm-sub and consistency of
        the single values by turns, as for `RangeCALM`.
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.4"

    nonnegative: bool = False

    @property
    def errs_as_noise(self) -> bool:
        return not self.nonnegative

    @cached_property
    def channel(self) -> GridChannel:
        return _levels_of_pairs(self, with_root=True)

    def _estimate(self, aggregate: Aggregate) -> PairwiseEstimate:
        return _combined(self, self.channel, aggregate, self.nonnegative)

    def _likelihoods(self, aggregate: Aggregate) -> Likelihoods:
        return of_grids(self.attributes, self.channel, aggregate)


@dataclass(frozen=True)
class HierarchicalHistogram2D(TreeSystem):
    """HH_B for pairs of attributes: every B-adic rectangle, of every pair.

    Range queries, section 6; thesis, section 7.1.2. As LHIO, but that no user is asked for the sum
    of all cells, which is known.

    Parameters
    ----------
    sizes, epsilon, n, branching, oracle, nonnegative : as of `LHIO`
        ``n`` is not used.
    """

    privacy_source: ClassVar[str] = "range queries, section 6"

    nonnegative: bool = False
    errs_as_noise = LHIO.errs_as_noise  #: what is estimated of pairs is as in LHIO
    _estimate, _likelihoods = LHIO._estimate, LHIO._likelihoods

    @cached_property
    def channel(self) -> GridChannel:
        return _levels_of_pairs(self, with_root=False)


def _levels_of_pairs(system: TreeSystem, with_root: bool) -> GridChannel:
    """The channel of the 2-D levels of all pairs, perhaps with that of one cell, which is known."""
    system._require_pairs()
    sizes, grids = system.attributes.sizes, []
    if max(sizes[j] * sizes[k] for j, k in system.attributes.pairs) > MOST_CELLS:
        raise ValueError(f"a pair of attributes has more than {MOST_CELLS} cells")
    heights = system.heights
    system._require_groups(
        sum((heights[j] + 1) * (heights[k] + 1) for j, k in system.attributes.pairs)
    )
    for j, k in system.attributes.pairs:
        for edges in product(system.levels[j], system.levels[k]):
            if with_root or len(edges[0]) + len(edges[1]) > 4:
                grids.append(Grid((j, k), edges))
    if not grids:
        raise ValueError("all records are the same: there is nothing to ask")
    return GridChannel(
        system.attributes.size, system.epsilon, system.attributes, tuple(grids), system.oracle
    )


def _combined(
    system: TreeSystem, channel: GridChannel, aggregate: Aggregate, nonnegative: bool
) -> PairwiseEstimate:
    """The fits to the levels of each pair, made to agree."""
    attributes, levels = system.attributes, system.levels
    if not aggregate.n:
        return PairwiseEstimate(attributes, 0, (), {})
    precisions = channel.precisions(aggregate)
    fits, weights, finest = [], [], []
    for j, k in attributes.pairs:
        estimates, level_precisions = {}, {}
        for part, grid in enumerate(channel.grids):
            if grid.places == (j, k) and precisions[part]:
                level = levels[j].index(grid.edges[0]), levels[k].index(grid.edges[1])
                estimates[level], level_precisions[level] = (
                    channel.frequencies(aggregate, part),
                    float(precisions[part]),
                )
        heights = len(levels[j]) - 1, len(levels[k]) - 1
        shape = attributes.sizes[j], attributes.sizes[k]
        fits.append(
            hierarchy_fit(estimates, level_precisions, heights, system.branching)[
                : shape[0], : shape[1]
            ]
        )
        weights.append(sum(level_precisions.values()))
        finest.append(Grid((j, k), (levels[j][-1], levels[k][-1])))
    tables = (clean if nonnegative else agreeing)(finest, fits, weights)
    planes = {
        (grid.places[0], grid.places[1]): Plane((grid.edges[0], grid.edges[1]), table)
        for grid, table in zip(finest, tables, strict=True)
    }
    return PairwiseEstimate(attributes, aggregate.n, lines_of(len(attributes), planes), planes)


def hierarchy_fit(
    tables: dict[tuple[int, int], Floats],
    precisions: dict[tuple[int, int], float],
    heights: tuple[int, int],
    branching: int,
) -> Floats:
    """Fit the leaves of a 2-D hierarchy to its levels by weighted least squares; of sum 1."""
    # The differences of the children of one node of level i - 1 of the first tree, and of level j -
    # 1 of the second, are an effect that all levels (l1, l2) with l1 >= i and l2 >= j estimate,
    # through sums of their nodes. Effects are orthogonal, so that each is the mean of these levels'
    # estimates, weighed by precision times the leaves under a node; where no level estimates it, it
    # is 0. With equal precisions that is constrained inference in one attribute, then in the other.
    b, (h1, h2) = branching, heights
    sums: dict[tuple[int, int], Floats] = {}
    weights: dict[tuple[int, int], float] = {}
    effects: dict[tuple[int, int], Floats] = {}
    for i in range(h1, -1, -1):
        for j in range(h2, -1, -1):
            # What levels (>= i, >= j) say of the density, averaged over the nodes of level (i, j):
            # by inclusion and exclusion.
            total, weight = np.zeros((b**i, b**j)), 0.0
            if (i, j) in tables:
                table = tables[i, j]
                weight = precisions[i, j] * b ** (h1 - i) * b ** (h2 - j)
                total[: table.shape[0], : table.shape[1]] = precisions[i, j] * table
            for di, dj, sign in ((1, 0, 1), (0, 1, 1), (1, 1, -1)):
                if i + di <= h1 and j + dj <= h2:
                    total += sign * _mean(sums[i + di, j + dj], b if di else 1, b if dj else 1)
                    weight += sign * weights[i + di, j + dj]
            sums[i, j], weights[i, j] = total, weight
            if i == j == 0:
                effects[i, j] = np.full((1, 1), float(b) ** -(h1 + h2))
            elif weight > 0:
                effect = total / weight
                if i:
                    # Beside the parents' means: what is left is orthogonal to all coarser effects,
                    # so each is fitted alone
                    _nodes(effect, b, 1)[...] -= _mean(effect, b, 1)[:, None, :, None]
                if j:
                    _nodes(effect, 1, b)[...] -= _mean(effect, 1, b)[:, None, :, None]
                effects[i, j] = effect
    # From the root down, so that a table is spread once, to the next level, and not every table to
    # the leaves.
    result = np.zeros((1, b**h2))
    for i in range(h1 + 1):
        row = np.zeros((b**i, 1))
        for j in range(h2 + 1):
            row = np.repeat(row, b if j else 1, axis=1)
            if (i, j) in effects:
                row += effects[i, j]
        result = np.repeat(result, b if i else 1, axis=0)
        result += row
    return result


def _nodes(table: Floats, rows: int, columns: int) -> Floats:
    """A view of the table by parents of so many rows and columns, in axes 0 and 2."""
    return table.reshape(table.shape[0] // rows, rows, table.shape[1] // columns, columns)


def _mean(table: Floats, rows: int, columns: int) -> Floats:
    return _nodes(table, rows, columns).mean(axis=(1, 3))
