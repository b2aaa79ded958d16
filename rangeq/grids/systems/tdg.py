"""TDG: two-dimensional grids over all pairs of attributes (section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from frequency.core.aggregate import Aggregate
from frequency.oracles.choice import OracleChoice
from frequency.schema import Domain
from mechdesign.base.frozen import set_fields
from mechdesign.base.linear_algebra import Floats
from mechdesign.base.numbers import is_whole
from mechdesign.base.text import shown
from rangeq.grids.cells import MOST_CELLS, MOST_EDGES, Edges, Grid, equal_cells
from rangeq.grids.channel import GridChannel
from rangeq.grids.errors import GridErrors
from rangeq.grids.estimate import PairwiseEstimate
from rangeq.grids.fitting import Line, Plane, clean
from rangeq.grids.grid_likelihoods import of_grids
from rangeq.grids.guideline import line_granularity, plane_granularity
from rangeq.grids.protocol import ConjunctionProtocol
from rangeq.grids.wavegrid.likelihoods import Likelihoods


@dataclass(frozen=True)
class TDG(ConjunctionProtocol):
    """TDG: the 2-D domain of every pair cut into g2 x g2 cells, within which values are uniform.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: see `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        How many users are expected: needed unless the granularity is given.
    granularity : int or tuple of int, optional
        g2: how many cells along each axis, as equal as can be, and at most the number of values. It
        need not divide that. None: by the guideline, for each attribute's size.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        Of the cells of a grid, as for `rangeq.HierarchicalHistogram`.

    >>> TDG(sizes=[64] * 6, epsilon=1.0, n=10**6).granularity
    (4, 4, 4, 4, 4, 4)
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 4.5"

    granularity: int | tuple[int, ...] | None = None
    oracle: OracleChoice = "OLH"

    def __post_init__(self) -> None:
        self._check()
        super().__post_init__()
        set_fields(self, granularity=self._granularities("granularity", 2))
        _ = self.channel.parts  # an oracle that cannot be is refused now

    def _check(self) -> None:
        """Raise ValueError for what the grids cannot be made of."""
        set_fields(self, sizes=Domain.of(self.sizes))
        self._require_pairs()
        self._require_groups(len(self.attributes.pairs))

    @cached_property
    def channel(self) -> GridChannel:
        return GridChannel(
            self.attributes.size,
            self.epsilon,
            self.attributes,
            self.grids,
            self.oracle,
            probabilities=self._probabilities(),
        )

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The grids that users report on: one for each pair."""
        return self._planes(self._granularities("granularity", 2))

    def _planes(self, granularity: tuple[int, ...]) -> tuple[Grid, ...]:
        pairs = self.attributes.pairs
        cells = max((granularity[j] * granularity[k] for j, k in pairs), default=0)
        if cells > MOST_CELLS:
            raise ValueError(f"the grid of a pair would have {cells} cells, more than {MOST_CELLS}")
        edges = self._edges(granularity)
        return tuple(Grid((j, k), (edges[j], edges[k])) for j, k in pairs)

    def _edges(self, granularity: tuple[int, ...]) -> tuple[Edges, ...]:
        """The cells of each attribute."""
        if sum(granularity) > MOST_EDGES:
            raise ValueError(
                f"the attributes would have {sum(granularity)} cells, more than {MOST_EDGES}"
            )
        return tuple(map(equal_cells, self.attributes.sizes, granularity))

    def _probabilities(self) -> tuple[Fraction, ...] | None:
        """The probability of each grid; None: all the same."""
        return None

    def _granularities(self, name: str, places: int) -> tuple[int, ...]:
        """The granularities of the grids of so many attributes, as given or by the guideline.

        For each attribute, at most its size.
        """
        given, sizes = getattr(self, name), self.attributes.sizes
        if given is None:
            if self.n is None:
                raise ValueError(f"n, the number of users expected, is needed to choose the {name}")
            rule, users = (
                (line_granularity, plane_granularity)[places - 1],
                self._users_of_a_grid(places),
            )
            return tuple(rule(users, float(self.epsilon), c) for c in sizes)
        several = given if isinstance(given, (tuple, list)) else (given,) * len(sizes)
        counts = all(is_whole(g) and g >= 1 for g in several)
        if not counts or len(several) != len(sizes):
            raise ValueError(
                f"{name} must be a number of cells, at least 1, or one for each attribute, got"
                f" {shown(given)}"
            )
        return tuple(min(int(g), c) for g, c in zip(several, sizes, strict=True))

    def _users_of_a_grid(self, places: int) -> float:
        """The number of users expected to report on a grid of so many attributes."""
        return (self.n or 0) / len(self.attributes.pairs)

    def _estimate(self, aggregate: Aggregate) -> PairwiseEstimate:
        attributes, channel = self.attributes, self.channel
        if not aggregate.n:
            return PairwiseEstimate(attributes, 0, (), {})
        tables = [channel.frequencies(aggregate, k) for k in range(len(channel.grids))]
        tables = self._agreeing(tables, channel.precisions(aggregate))
        planes = {
            (grid.places[0], grid.places[1]): Plane((grid.edges[0], grid.edges[1]), table)
            for grid, table in zip(channel.grids, tables, strict=True)
        }
        return PairwiseEstimate(
            attributes,
            aggregate.n,
            lines_of(len(attributes), planes),
            planes,
            self._errors(aggregate, tables),
        )

    def _likelihoods(self, aggregate: Aggregate) -> Likelihoods:
        return of_grids(self.attributes, self.channel, aggregate)

    def _agreeing(self, tables: list[Floats], precisions: Floats) -> list[Floats]:
        """Make tables distributions that agree: phase 2."""
        return clean(self.channel.grids, tables, precisions)

    def _errors(self, aggregate: Aggregate, tables: list[Floats]) -> GridErrors | None:
        """The theory of the answers' errors; None if there is none."""
        return GridErrors(self.channel, aggregate, dict(enumerate(tables)))


def lines_of(attributes: int, planes: dict[tuple[int, int], Plane]) -> list[Line]:
    """The distribution of each attribute: the mean of those in its pairs, whose cells are alike."""
    lines = []
    for place in range(attributes):
        said = [
            plane.marginal(pair.index(place)) for pair, plane in planes.items() if place in pair
        ]
        lines.append(Line(said[0].edges, np.mean([line.cells for line in said], axis=0)))
    return lines
