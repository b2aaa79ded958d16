"""HDG: hybrid-dimensional grids, two-dimensional with finer one-dimensional ones (section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from frequency.core.aggregate import Aggregate
from frequency.schema import Domain
from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import Rational, exact
from mechdesign.base.text import shown
from rangeq.grids.cells import Grid
from rangeq.grids.estimate import MOST_TOLERANCE, PairwiseEstimate
from rangeq.grids.fitting import Line, Plane, response_matrices
from rangeq.grids.systems.tdg import TDG


@dataclass(frozen=True)
class HDG(TDG):
    """HDG: TDG's grids, and for each attribute a 1-D grid of g1 cells (section 4).

    The frequencies inside a 2-D cell are read off a response matrix.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: see `TDG`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        How many users are expected: needed unless both granularities are given.
    granularity : int or tuple of int, optional
        g2, of the 2-D grids: as for `TDG`.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        Of the cells of a grid, as for `rangeq.HierarchicalHistogram`.
    line_granularity : int or tuple of int, optional
        g1, of the 1-D grids: one number, or one for each attribute; None: by the guideline.
    line_share : Fraction, int, str or Decimal, optional
        The probability that a user reports on a 1-D grid: an exact rational, more than 0 and less
        than 1. None: every grid has as many users, so that it is d / (d + C(d, 2)), that is 2 / (d
        + 1).

    >>> protocol = HDG(sizes={"age": 100, "income": 64}, epsilon=1.0, n=10**6)
    >>> protocol.line_granularity, protocol.granularity
    ((32, 32), (8, 8))
    """

    line_granularity: int | tuple[int, ...] | None = None
    line_share: Rational | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, line_granularity=self._granularities("line_granularity", 1))

    def _check(self) -> None:
        set_fields(self, sizes=Domain.of(self.sizes))
        self._require_groups(len(self.attributes) + len(self.attributes.pairs))
        if self.line_share is None:
            return
        share = exact(self.line_share, "line_share")
        if not 0 < share < 1 or len(self.attributes) < 2:
            raise ValueError(
                "line_share must lie strictly between 0 and 1, for two attributes or more, got"
                f" {shown(self.line_share)}"
            )
        set_fields(self, line_share=share)

    @cached_property
    def _share(self) -> Fraction:
        return (
            Fraction(2, len(self.attributes) + 1)
            if self.line_share is None
            else Fraction(self.line_share)
        )

    def _probabilities(self) -> tuple[Fraction, ...] | None:
        if self.line_share is None:
            return None
        d, pairs = len(self.attributes), len(self.attributes.pairs)
        return (self._share / d,) * d + ((1 - self._share) / pairs,) * pairs

    def _users_of_a_grid(self, places: int) -> float:
        grids = len(self.attributes) if places == 1 else max(len(self.attributes.pairs), 1)
        share = self._share if places == 1 else 1 - self._share
        return (self.n or 0) * float(share) / grids

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The grids that users report on: one for each attribute, then one for each pair."""
        cut = self._edges(self._granularities("line_granularity", 1))
        lines = tuple(Grid((place,), (edges,)) for place, edges in enumerate(cut))
        return lines + self._planes(self._granularities("granularity", 2))

    def _estimate(self, aggregate: Aggregate) -> PairwiseEstimate:
        attributes, channel, d = self.attributes, self.channel, len(self.attributes)
        if not aggregate.n:
            return PairwiseEstimate(attributes, 0, (), {})
        tables = [channel.frequencies(aggregate, k) for k in range(len(channel.grids))]
        tables = self._agreeing(tables, channel.precisions(aggregate))
        lines = [
            Line(grid.edges[0], table)
            for grid, table in zip(channel.grids[:d], tables[:d], strict=True)
        ]
        cells = [
            Plane((grid.edges[0], grid.edges[1]), table)
            for grid, table in zip(channel.grids[d:], tables[d:], strict=True)
        ]
        matrices = response_matrices(
            lines, attributes.pairs, cells, min(1 / aggregate.n, MOST_TOLERANCE)
        )
        return PairwiseEstimate(
            attributes,
            aggregate.n,
            lines,
            dict(zip(attributes.pairs, matrices.planes, strict=True)),
            self._errors(aggregate, tables),
        )
