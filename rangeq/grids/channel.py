"""Channels whose users hold records, and report on one randomly chosen part of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

import frequency
from frequency.core import Aggregate, Mixture, Oracle, weights_of
from frequency.oracles import OracleChoice, oracle_over
from mechdesign.base import Floats, Items
from rangeq.core import RecordChannel
from rangeq.grids.cells import Edges, Grid, axis, numbered_axes


@dataclass(frozen=True)
class GroupChannel(RecordChannel, Mixture):
    """A `Mixture` over records of which each group of users reports on one part."""

    kind: ClassVar[str] = "group"

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
    domain, epsilon, attributes : int, float or Rational, and Domain
        The number of different records, the privacy loss of one report of a whole record, and what
        records consist of.
    grids : tuple of Grid
        Of one or more attributes each.
    oracle : str, class, Oracle or Mechanism
        Of the cells of all grids: see `frequency.oracles.tabular_response`.
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
