"""Uniform: the benchmark that takes all records for equally frequent (Uni, section 5.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.core import Aggregate
from frequency.oracles import OracleChoice
from frequency.schema import Domain
from mechdesign.base import Floats, Rational, exact, is_whole, set_fields, shown
from rangeq.grids.cells import (
    MOST_CELLS,
    MOST_EDGES,
    Edges,
    Grid,
    equal_cells,
    line_granularity,
    plane_granularity,
)
from rangeq.grids.channel import GridChannel
from rangeq.grids.estimate import (
    MOST_TOLERANCE,
    Boxes,
    ConjunctionEstimate,
    PairwiseEstimate,
    ProductEstimate,
    even,
)
from rangeq.grids.fitting import Line, Plane, agreeing, clean, response_matrices
from rangeq.grids.grid_likelihoods import GridErrors, of_grids
from rangeq.grids.protocol import ConjunctionProtocol, Miniature, Simulation
from rangeq.grids.wavegrid.likelihoods import Likelihoods


@dataclass(frozen=True)
class Uniform(ConjunctionProtocol):
    """The benchmark that answers every query by its share of all possible records.

    Reports are counted, and say nothing of the records.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, and the privacy loss of a report; ``n`` is not used.

    Examples
    --------
    >>> from rangeq import Between
    >>> protocol = Uniform(sizes=[64, 10], epsilon=1.0)
    >>> estimate = protocol.estimate(protocol.aggregate(protocol.privatize([[3, 4]])))
    >>> estimate.answer({0: Between(0, 15), 1: Between(0, 4)}).value
    0.125
    """

    untold: ClassVar[str] = "they say nothing of the records"
    simulation = Simulation(others=False)

    @cached_property
    def channel(self) -> GridChannel:
        nothing = Grid((0,), ((0, self.attributes.sizes[0]),))
        return GridChannel(self.attributes.size, self.epsilon, self.attributes, (nothing,), "GRR")

    def _estimate(self, aggregate: Aggregate) -> ConjunctionEstimate:
        distributions = [even(size) for size in self.attributes.sizes]
        return UniformEstimate(self.attributes, aggregate.n, distributions)


class UniformEstimate(ProductEstimate):
    """The estimate from reports that say nothing: any fraction is possible."""

    def _bootstrapped(
        self, places: Sequence[int], boxes: Boxes, confidence: float
    ) -> tuple[Floats, Floats]:
        return np.zeros(len(boxes[0][0])), np.ones(len(boxes[0][0]))


# ------------------------------------------------------------------------------------------------
# TDG: two-dimensional grids over all pairs of attributes (section 4).


@dataclass(frozen=True)
class TDG(ConjunctionProtocol):
    """TDG: the 2-D domain of every pair cut into g2 x g2 cells, within which values are uniform.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, the privacy loss of a report, and the number of users expected:
        needed unless the granularity is given.
    granularity : int or tuple of int, optional
        g2: how many cells along each axis, as equal as can be, and at most the number of values,
        which it need not divide. None: by the guideline, for each attribute's size.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        Of the cells of a grid, as for `rangeq.HierarchicalHistogram`.

    Examples
    --------
    >>> TDG(sizes=[64] * 6, epsilon=1.0, n=10**6).granularity
    (4, 4, 4, 4, 4, 4)
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 4.5"
    simulation = Simulation()

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
        """The granularities of the grids of so many attributes: for each at most its size."""
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

    def _shrunk(self, places: tuple[int, ...], sizes: tuple[int, ...]) -> dict[str, Any]:
        return super()._shrunk(places, sizes) | self._shrunk_granularity(
            "granularity", places, sizes
        )

    def _shrunk_granularity(
        self, name: str, places: tuple[int, ...], sizes: tuple[int, ...]
    ) -> dict[str, Any]:
        cells = getattr(self, name)
        return {name: tuple(min(cells[k], size) for k, size in zip(places, sizes, strict=True))}

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


# ------------------------------------------------------------------------------------------------
# HDG: hybrid-dimensional grids, two-dimensional with finer one-dimensional ones (section 4).


@dataclass(frozen=True)
class HDG(TDG):
    """HDG: TDG's grids, and for each attribute a 1-D grid of g1 cells (section 4).

    The frequencies inside a 2-D cell are read off a response matrix.

    Parameters
    ----------
    sizes, epsilon, n, granularity, oracle : as of `TDG`
        The ``granularity`` is g2; ``n`` is needed unless both granularities are given.
    line_granularity : int or tuple of int, optional
        g1, of the 1-D grids: one number, or one for each attribute; None: by the guideline.
    line_share : Fraction, int, str or Decimal, optional
        The probability that a user reports on a 1-D grid: an exact rational, more than 0 and less
        than 1. None: every grid has as many users, so that it is d / (d + C(d, 2)), that is 2 / (d
        + 1).

    Examples
    --------
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

    def _shrunk(self, places: tuple[int, ...], sizes: tuple[int, ...]) -> dict[str, Any]:
        lines = self._shrunk_granularity("line_granularity", places, sizes)
        return super()._shrunk(places, sizes) | lines

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


# ------------------------------------------------------------------------------------------------
# CALM as a system for ranges: the marginals of all pairs, summed up value by value.
#
# Multi-dimensional ranges, section 3.2.


@dataclass(frozen=True)
class RangeCALM(TDG):
    """CALM over pairs: TDG whose cells are single values.

    Zhang et al., CCS 2018, as in section 3.2. By default marginals agree on single attributes, and
    are not made non-negative before they are summed up: answers about one or two attributes are
    unbiased, and may be negative. As the paper compares with it, CALM is ``nonnegative``.

    `frequency.marginals.CALM` chooses its own sets of attributes and answers any marginals; this
    one looks at all pairs, has no bound on the number of different records, and answers ranges like
    the other systems here. A pair may have 2^22 cells.

    Parameters
    ----------
    sizes, epsilon, n, granularity, oracle : as of `TDG`
        ``n`` is not used; ``granularity`` is not to be chosen: it is the sizes.
    nonnegative : bool, default False
        The published post-processing: norm-sub and consistency by turns, as in `TDG` (section 4.2).
        Marginals are then distributions, answers biased, and their errors not stated
        (`frequency.UnknownVariance`). Norm-sub over thousands of cells that are mostly noise leaves
        mostly noise: at 64 values, an epsilon of 1 and 10^6 users answers about two attributes err
        four times as much (`python benchmarks/published_grids.py`).

    Examples
    --------
    >>> RangeCALM(sizes=[64, 10], epsilon=1.0).granularity
    (64, 10)
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.2"

    nonnegative: bool = False

    @property
    def errs_as_noise(self) -> bool:
        return not self.nonnegative

    def miniature(self, places: tuple[int, ...], sizes: tuple[int, ...]) -> Miniature:
        full = [self.attributes.sizes[place] for place in places[:2]]
        coarser = math.prod(full) / math.prod(sizes[:2])  # as many more cells are summed up
        return super().miniature(places, sizes)._replace(coarser=coarser)

    def _check(self) -> None:
        super()._check()
        sizes = self.attributes.sizes
        if max(sizes[j] * sizes[k] for j, k in self.attributes.pairs) > MOST_CELLS:
            raise ValueError(f"a pair of attributes has more than {MOST_CELLS} cells")

    def _granularities(self, name: str, places: int) -> tuple[int, ...]:
        if self.granularity not in (None, self.attributes.sizes):
            raise ValueError(
                "the cells of CALM are single values: its granularity cannot be chosen"
            )
        return self.attributes.sizes

    def _agreeing(self, tables: list[Floats], precisions: Floats) -> list[Floats]:
        if self.nonnegative:
            return super()._agreeing(tables, precisions)
        return agreeing(self.channel.grids, tables, precisions)

    def _errors(self, aggregate: Aggregate, tables: list[Floats]) -> GridErrors | None:
        return None if self.nonnegative else super()._errors(aggregate, tables)
