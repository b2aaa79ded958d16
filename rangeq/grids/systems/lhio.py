"""LHIO: a hierarchy over every pair of attributes, made consistent (section 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np

from frequency.core.aggregate import Aggregate
from mechdesign.base.linear_algebra import Floats
from rangeq.grids.cells import MOST_CELLS, Grid
from rangeq.grids.channel import GridChannel
from rangeq.grids.estimate import PairwiseEstimate
from rangeq.grids.fitting import Plane, agreeing, clean
from rangeq.grids.grid_likelihoods import of_grids
from rangeq.grids.systems.tdg import lines_of
from rangeq.grids.systems.tree_system import TreeSystem
from rangeq.grids.wavegrid.likelihoods import Likelihoods


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
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: see `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        Not used.
    branching : int, default 4
        The children of a node: see `HIO`.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        Of the cells of a grid, as for `rangeq.HierarchicalHistogram`.
    nonnegative : bool, default False
        The published post-processing, whose details the paper omits: norm-sub and consistency of
        the single values by turns, as for `RangeCALM`.
    """

    nonnegative: bool = False

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.4"

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
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: see `LHIO`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        Not used.
    branching : int, default 4
        The children of a node.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        Of the cells of a grid, as for `rangeq.HierarchicalHistogram`.
    nonnegative : bool, default False
        Norm-sub and consistency by turns: see `LHIO`.
    """

    nonnegative: bool = False

    privacy_source: ClassVar[str] = "range queries, section 6"

    @cached_property
    def channel(self) -> GridChannel:
        return _levels_of_pairs(self, with_root=False)

    def _estimate(self, aggregate: Aggregate) -> PairwiseEstimate:
        return _combined(self, self.channel, aggregate, self.nonnegative)

    def _likelihoods(self, aggregate: Aggregate) -> Likelihoods:
        return of_grids(self.attributes, self.channel, aggregate)


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
        found, held = {}, {}
        for part, grid in enumerate(channel.grids):
            if grid.places == (j, k) and precisions[part]:
                level = levels[j].index(grid.edges[0]), levels[k].index(grid.edges[1])
                found[level], held[level] = (
                    channel.frequencies(aggregate, part),
                    float(precisions[part]),
                )
        heights = len(levels[j]) - 1, len(levels[k]) - 1
        shape = attributes.sizes[j], attributes.sizes[k]
        fits.append(hierarchy_fit(found, held, heights, system.branching)[: shape[0], : shape[1]])
        weights.append(sum(held.values()))
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
    """Fit the leaves of a 2-D hierarchy to its levels by weighted least squares; of sum 1.

    The differences of the children of one node of level i - 1 of the first tree, and of level j - 1
    of the second, are an effect that all levels (l1, l2) with l1 >= i and l2 >= j estimate, through
    sums of their nodes. Effects are orthogonal, so that each is the mean of these levels'
    estimates, weighed by precision times the leaves under a node; where no level estimates it, it
    is 0. With equal precisions that is constrained inference in one attribute, then in the other.
    """
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
    result: Floats = _nodes(table, rows, columns).mean(axis=(1, 3))
    return result
