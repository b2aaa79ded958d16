"""Channels whose users hold records, and report on one randomly chosen part of them."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import frequency
from frequency.algebra import PublicBits, binary_basis, features, walsh_hadamard
from frequency.core import Aggregate, Mixture, Oracle, weights_of
from frequency.oracles import OracleChoice, SignChannel, oracle_over
from mechdesign import Audit
from mechdesign.base import Floats, Items
from rangeq.core import RecordChannel
from rangeq.grids.cells import Edges, Grid, axis, numbered_axes


@dataclass(frozen=True)
class GroupChannel(RecordChannel, Mixture):
    """A `Mixture` over records of which each group of users reports on one part."""

    kind: ClassVar[str] = "group"

    @property
    @abstractmethod
    def part_places(self) -> tuple[tuple[int, ...], ...]:
        """The attributes that each part tells of."""

    def _details(self) -> dict[str, Any]:
        oracles = sorted({channel.signature for channel in self._channels[0]})
        attributes = [list(self.attributes.names), list(self.attributes.sizes)]
        return {
            "attributes": attributes,
            "groups": len(self.parts),
            "weights": _digest(self.part_weights),
            "oracles": oracles,
        }


@dataclass(frozen=True)
class GridChannel(GroupChannel):
    """The cell of the record in one of some grids, chosen at random, by the grid's oracle.

    Parameters
    ----------
    domain : int
        The number of different records.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    attributes : Domain
        Of the records.
    grids : tuple of Grid
        Of one or more attributes each.
    oracle : str, class, Oracle or Mechanism
        Of the cells of all grids: see `frequency.oracles.randomized_response`.
    largest_table : int, optional
        Grids with more cells are counted in a sketch; None: no limit.
    probabilities : tuple of Fraction, optional
        Of the grids, of sum 1; None: all the same.
    """

    grids: tuple[Grid, ...]
    oracle: OracleChoice
    #: The most cells of a grid that is not counted in a sketch: None for no limit.
    largest_table: int | None = None
    #: The probabilities of the grids, summing to 1; None: all the same.
    probabilities: tuple[Fraction, ...] | None = None

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        made: dict[int, Oracle] = {}
        for grid in self.grids:
            if grid.cells not in made:
                made[grid.cells] = self._oracle(grid.cells)
        return tuple(made[grid.cells] for grid in self.grids)

    @property
    def part_places(self) -> tuple[tuple[int, ...], ...]:
        return tuple(grid.places for grid in self.grids)

    def _oracle(self, cells: int) -> Oracle:
        if self.largest_table is not None and cells > self.largest_table:
            return frequency.HadamardCountMeanSketch(cells, self.epsilon, hashes=4, width=256)
        return oracle_over(self.oracle, cells, self.epsilon)

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        return weights_of(len(self.grids), self.probabilities, self.kind)

    def _details(self) -> dict[str, Any]:
        axes = {id(edges): edges for grid in self.grids for edges in grid.edges}  # mostly shared
        names = {key: _digest(edges) for key, edges in axes.items()}
        cut = [(grid.places, [names[id(edges)] for edges in grid.edges]) for grid in self.grids]
        return {**super()._details(), "grids": _digest(cut)}

    def part_items(self, part: int, items: Items) -> Items:
        return self.grids[part].cell_of(items)

    @cached_property
    def _axes(self) -> dict[Edges, int]:
        return numbered_axes(self.grids)

    @property
    def part_axes(self) -> list[Any]:
        return [axis(edges) for edges in self._axes]

    def part_expression(self, part: int) -> list[Any]:
        return self.grids[part].expression(self._axes)

    def frequencies(self, aggregate: Aggregate, part: int) -> Floats:
        """Return unbiased estimates of the cells of a grid.

        Parameters
        ----------
        aggregate : Aggregate
            Of this channel's reports.
        part : int
            The number of the grid.

        Returns
        -------
        numpy.ndarray of float64
            Fractions of the population, shaped as the grid: even ones if nobody reported on it.
        """
        grid, level = self.grids[part], self.part_aggregate(aggregate, part)
        if not level.n:
            return grid.even
        return self.parts[part].frequencies_of(level, None).reshape(grid.shape)

    def precisions(self, aggregate: Aggregate) -> Floats:
        """Return 1 / variance of a cell of each grid, shape (grids,); 0 where nobody reported."""
        # Of noise and sampling
        users = self.part_users(aggregate)
        variances = [cell_variance(oracle) for oracle in self.parts]
        return users / np.array(variances)


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def cell_variance(oracle: Oracle) -> float:
    """Return the variance of a cell, noise and sampling, from one user of an even population."""
    share = 1 / oracle.domain
    return max(float(oracle.variance(1, share)) + share * (1 - share), 1e-300)


# ------------------------------------------------------------------------------------------------
# LevelSketch: combinations of tree levels, too many for tables, in a few numbers each.


@dataclass(frozen=True)
class LevelSketch(RecordChannel, SignChannel):
    """A random combination of levels, and one bit about the record's nodes there.

    Every attribute has a tree; a d-dim level is a level of each, its cells are combinations of
    nodes. Public random functions hash the nodes of every level of every tree to 0 .. width - 1,
    and a cell to the bitwise sum modulo 2 of what its nodes are hashed to: two cells agree with
    probability 1 / width, over the ``seed``. A report is the number of a ``level``, the ``index``
    of a Walsh-Hadamard coefficient of the record's hash there, and its ``sign`` by randomised
    response.

    As the coefficients of a sum are products of those of the nodes, those of a union of boxes are
    put together attribute by attribute: an answer never lists its cells, nor its levels one by one.

    Parameters
    ----------
    domain, epsilon, attributes : as of `RecordChannel`
        Of the whole records.
    widths : tuple of tuple of int
        For each attribute the values that a node of each level stands for, from the root.
    width : int
        How many numbers a level is kept in: a power of two, at least 2.
    seed : int, default 0
        Of the public functions.
    """

    widths: tuple[tuple[int, ...], ...]
    width: int
    seed: int = 0

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.3"

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of the tree of each attribute."""
        return tuple(map(len, self.widths))

    @property
    def _indices(self) -> dict[str, range]:
        return {"level": range(math.prod(self.levels)), "index": range(1, self.width)}

    @property
    def _public(self) -> PublicBits:
        return PublicBits("level", self.seed, sum(self.levels) * self._places)

    @property
    def _places(self) -> int:
        """The bits of a hash."""
        return self.width.bit_length() - 1

    @cached_property
    def hashes(self) -> tuple[tuple[Items, ...], ...]:
        """The hash of every node, for each attribute and each level of its tree."""
        places, public = self._places, self._public
        rows = iter(range(public.rows))
        result = []
        for size, widths in zip(self.attributes.sizes, self.widths, strict=True):
            of_levels = []
            for width in widths:
                nodes = features(np.arange(-(-size // width)))
                cell = np.zeros(len(nodes[0]), dtype=np.int64)
                for place in range(places):
                    cell |= public.bits(np.array(next(rows)), nodes).astype(np.int64) << place
                of_levels.append(cell)
            result.append(tuple(of_levels))
        return tuple(result)

    def cell_of(self, records: Items, levels: Items) -> Items:
        """Return the hash of each record at a d-dim level of its own: 0 .. width - 1.

        Parameters
        ----------
        records, levels : numpy.ndarray of int64
            Shapes (users, attributes) and (users,): a level's number counts its last attribute
            fastest.

        Returns
        -------
        numpy.ndarray of int64
            Shape (users,).
        """
        result = np.zeros(len(records), dtype=np.int64)
        for place, level in enumerate(np.unravel_index(levels, self.levels)):
            starts = np.cumsum([0, *map(len, self.hashes[place][:-1])])
            nodes = records[:, place] // np.array(self.widths[place])[level]
            result ^= np.concatenate(self.hashes[place])[starts[level] + nodes]
        return result

    @property
    def _expression(self) -> list[Any]:
        public = self._public
        return ["levels", public.text, self._places, [list(widths) for widths in self.widths]]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        level, coefficient = (numbers.astype(np.int64) for numbers in index)
        return np.bitwise_count(coefficient & self.cell_of(items, level)) & 1

    def _details(self) -> dict[str, Any]:
        return {
            **super()._details(),
            "attributes": [list(self.attributes.names), list(self.attributes.sizes)],
            "widths": [list(widths) for widths in self.widths],
            "width": self.width,
            "seed": self.seed,
        }

    def share_alike(self, items: Items) -> Fraction:
        # Coefficients orthogonal to the differences of the hashes, at each level
        levels = np.arange(math.prod(self.levels))
        cells = [self.cell_of(np.repeat(item[None], len(levels), axis=0), levels) for item in items]
        differences = np.array([cell ^ cells[0] for cell in cells]).T.tolist()
        alike = sum((self.width >> len(binary_basis(row))) - 1 for row in differences)
        return Fraction(alike, len(levels) * (self.width - 1))

    @property
    def least_alike(self) -> Fraction:
        # Records with different hashes at all levels but those of a single cell
        alone = math.prod(
            sum(width >= size for width in widths)
            for widths, size in zip(self.widths, self.attributes.sizes, strict=True)
        )
        share, apart = Fraction(alone, math.prod(self.levels)), self.width // 2 - 1
        return share + (1 - share) * Fraction(apart, self.width - 1)

    def audit(self) -> Audit:
        # Level and index do not depend on the record; given them, one sign has weight ``truth`` and
        # the other ``lie``.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        where = "a level and index where the signs of the first and last record differ"
        return Audit(self._choice.ratio, self.max_ratio, where, (0, self.domain - 1))

    # ----------------------------------------------------------------------------- the server half

    def tensor(self, aggregate: Aggregate, places: Sequence[int]) -> Floats:
        """Return estimated coefficients of all levels of some attributes, at the others' roots.

        Parameters
        ----------
        aggregate : Aggregate
            Of this channel's reports, at least one.
        places : sequence of int
            The attributes, increasing.

        Returns
        -------
        numpy.ndarray of float64
            Shape (levels of each, width), unbiased over the users' choice of levels too, and
            divided by width - 1, such that an answer is the sum of products. That of index 0 is 0.
        """
        chosen = tuple(slice(None) if k in places else 0 for k in range(len(self.levels)))
        sums = aggregate.counts.reshape(*self.levels, self.width)[chosen].astype(np.float64)
        root = 0
        for place, hashes in enumerate(self.hashes):
            root ^= 0 if place in places else int(hashes[0][0])
        # Attributes that are not asked about stand at the root, whose hash is the same for every
        # record: its coefficients are signs
        signs = 1.0 - 2 * (np.bitwise_count(np.arange(self.width) & root) & 1)
        return sums * signs * (math.prod(self.levels) / (aggregate.n * self.contrast))

    def coefficients(self, place: int, runs: Sequence[tuple[int, int, int]]) -> Floats:
        """Return the coefficients of a union of an attribute's nodes at each level of its tree.

        Parameters
        ----------
        place : int
            The attribute.
        runs : sequence of (int, int, int)
            A level, its first node, and up to but without the last.

        Returns
        -------
        numpy.ndarray of float64
            Shape (levels, width).
        """
        counts = np.zeros((self.levels[place], self.width))
        for level, start, end in runs:
            counts[level] += np.bincount(self.hashes[place][level][start:end], minlength=self.width)
        # The transform is linear, and turns the sum modulo 2 of hashes into a product of
        # coefficients: so attributes are put together by products, and no cell is listed
        return walsh_hadamard(counts)
