"""HaarHRR2D: the tensor products of two attributes' Haar transforms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.algebra import WORD
from frequency.core import Aggregate, two_likelihoods
from mechdesign.accounting.pair_law import PairLaw
from mechdesign.base import Floats, Items
from rangeq.core import Haar, cells_of
from rangeq.grids.cells import MOST_CELLS, Edges, Grid, equal_cells, overlap
from rangeq.grids.channel import GroupChannel
from rangeq.grids.estimate import PairwiseEstimate, ProductEstimate, even
from rangeq.grids.fitting import Plane, agreeing
from rangeq.grids.grid_likelihoods import Products, linear
from rangeq.grids.protocol import ConjunctionProtocol, Simulation
from rangeq.grids.published.tdg_hdg_calm import lines_of
from rangeq.grids.wavegrid.likelihoods import Likelihoods, Singles
from rangeq.local.haar import HaarLevel
from rangeq.local.square_wave import SquareWave


@dataclass(frozen=True)
class HaarCoefficients(GroupChannel):
    """Signs of Haar coefficients: one bit from each user.

    One level of the Haar transform of one attribute, or one of each of two, by a Walsh-Hadamard
    coefficient. An attribute is padded to 2^h values. At its level i >= 1 a user is under one of
    2^(i-1) nodes, on its left or its right side. Two levels together have the pairs of nodes; the
    sign is + if both sides are the same.
    """

    @cached_property
    def heights(self) -> tuple[int, ...]:
        """The height h of each attribute."""
        return tuple((size - 1).bit_length() for size in self.attributes.sizes)

    @cached_property
    def levels(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The parts that users report on: (attribute, level) alone, or two of them."""
        alone = tuple(
            ((place, i),) for place, height in enumerate(self.heights) for i in range(1, height + 1)
        )
        together = tuple(
            (first, other)
            for j, k in self.attributes.pairs
            for first in _of(alone, j)
            for other in _of(alone, k)
        )
        return alone + together

    @cached_property
    def parts(self) -> tuple[HaarLevel, ...]:
        domains = [2 << sum(level - 1 for _, level in levels) for levels in self.levels]
        made = {domain: HaarLevel(domain, self.epsilon) for domain in set(domains)}
        return tuple(made[domain] for domain in domains)

    @property
    def part_places(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(place for place, _ in levels) for levels in self.levels)

    def part_expression(self, part: int) -> list[Any]:
        steps = [
            [place, self.heights[place] - level, level - 1] for place, level in self.levels[part]
        ]
        return ["sides", steps]

    def part_items(self, part: int, items: Items) -> Items:
        node, side = np.zeros(len(items), dtype=np.int64), np.zeros(len(items), dtype=np.int64)
        for place, level in self.levels[part]:
            child = items[:, place] >> (self.heights[place] - level)
            node, side = (node << (level - 1)) + (child >> 1), side ^ (child & 1)
        return 2 * node + side

    def dominating_law(self) -> PairLaw:
        # For each pair of attributes the least probability that a sign is likely under two records,
        # over the levels at which these part; each attribute's own signs are shared by its pairs.
        least = 0
        for j, k in self.attributes.pairs:
            height, other_height = self.heights[j], self.heights[k]
            parting, other = np.arange(1, height + 2), np.arange(1, other_height + 2)[:, None]
            pair = _quarters(parting, other, height, other_height)
            alone = _quarters_alone(parting, height) + _quarters_alone(other, other_height)
            least += int(((len(self.heights) - 1) * pair + alone).min())
        together = Fraction(least * min(self.part_weights), 4 * (len(self.heights) - 1) * WORD)
        return two_likelihoods(*self.parts[0].low_and_high, together)


def _quarters_alone(parting: Items, height: int) -> Items:
    """Four times the sum over an attribute's levels of the probability that both are likely."""
    # Of two values that part at a level 1 .. height, or at none, height + 1: in one node above it,
    # opposite there, and as often alike as not below
    return 2 * (parting - 1) + np.maximum(height - parting, 0)


def _quarters(one: Items, other: Items, height: int, other_height: int) -> Items:
    """Four times the sum of those probabilities over the pairs of levels of two attributes."""
    # In one node of both: the side is another one at the level of parting of one, but not both
    levels, others = np.minimum(one, height), np.minimum(other, other_height)
    parts, other_parts = one <= height, other <= other_height
    opposite = parts * (others - other_parts) + other_parts * (levels - parts)
    return 2 * (levels * others - opposite) + (height * other_height - levels * others)


def _of(alone: tuple[tuple[tuple[int, int]], ...], place: int) -> list[tuple[int, int]]:
    return [levels[0] for levels in alone if levels[0][0] == place]


@dataclass(frozen=True)
class HaarHRR2D(ConjunctionProtocol):
    """HaarHRR for pairs of attributes (range queries, section 6; thesis 7.1.2).

    Users report on a level of one attribute, shared by all its pairs, or on a pair of levels.
    Answers about one or two attributes are unbiased, and may be negative; those of more are put
    together as in HDG.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, which are padded to powers of two (a pair may have 2^22 cells),
        and the privacy loss of a report; ``n`` is not used.
    """

    privacy_source: ClassVar[str] = "range queries, section 6"

    @cached_property
    def channel(self) -> HaarCoefficients:
        self._require_pairs()
        channel = HaarCoefficients(self.attributes.size, self.epsilon, self.attributes)
        heights = channel.heights
        if max(heights) == 0:
            raise ValueError("all records are the same: there is nothing to ask")
        if max(1 << heights[j] + heights[k] for j, k in self.attributes.pairs) > MOST_CELLS:
            raise ValueError(f"a pair of attributes has more than {MOST_CELLS} cells")
        pairs = sum(heights[j] * heights[k] for j, k in self.attributes.pairs)
        self._require_groups(sum(heights) + pairs)
        _ = channel.parts
        return channel

    def _estimate(self, aggregate: Aggregate) -> PairwiseEstimate:
        attributes, channel = self.attributes, self.channel
        if not aggregate.n:
            return PairwiseEstimate(attributes, 0, (), {})
        differences = {}
        for part, (levels, oracle) in enumerate(zip(channel.levels, channel.parts, strict=True)):
            level = channel.part_aggregate(aggregate, part)
            if level.n:
                differences[levels] = oracle.differences(level)
        grids, fits = [], []
        for j, k in attributes.pairs:
            shape = attributes.sizes[j], attributes.sizes[k]
            grids.append(
                Grid((j, k), (equal_cells(shape[0], shape[0]), equal_cells(shape[1], shape[1])))
            )
            heights = channel.heights[j], channel.heights[k]
            coefficients: dict[tuple[int, ...], Floats] = {(0, 0): np.ones((1, 1))}
            for i in range(heights[0] + 1):
                for m in range(heights[1] + 1):
                    levels = tuple(place for place in ((j, i), (k, m)) if place[1])
                    if levels in differences:
                        coefficients[i, m] = differences[levels].reshape(
                            1 << max(i - 1, 0), 1 << max(m - 1, 0)
                        )
            transforms = [Haar(1 << height) for height in heights]
            fits.append(cells_of(transforms, coefficients)[: shape[0], : shape[1]])
        tables = agreeing(grids, fits, np.ones(len(grids)))
        planes = {
            (grid.places[0], grid.places[1]): Plane((grid.edges[0], grid.edges[1]), table)
            for grid, table in zip(grids, tables, strict=True)
        }
        return PairwiseEstimate(attributes, aggregate.n, lines_of(len(attributes), planes), planes)

    def _likelihoods(self, aggregate: Aggregate) -> Likelihoods:
        attributes, channel = self.attributes, self.channel
        singles, products = Singles(attributes), []
        functions = [
            [_left_less_right(cut, height, level) for level in range(1, height + 1)]
            for cut, height in zip(singles.edges, channel.heights, strict=True)
        ]
        for part, (levels, oracle) in enumerate(zip(channel.levels, channel.parts, strict=True)):
            level_reports = channel.part_aggregate(aggregate, part)
            if not level_reports.n:
                continue
            # Coefficients err independently, but for their own squares, which are left out
            values, precision = (
                oracle.differences(level_reports),
                level_reports.n * float(oracle.contrast) ** 2,
            )
            if len(levels) == 1:
                ((place, level),) = levels
                rows = functions[place][level - 1]
                singles.add(place, precision * values @ rows, precision * rows.T @ rows)
            else:
                (j, first), (k, other) = levels
                table = values.reshape(1 << first - 1, 1 << other - 1)
                products.append(Products((j, k), (first - 1, other - 1), table, precision))
        return linear(attributes, functions, singles, products)


def _left_less_right(cells: Edges, height: int, level: int) -> Floats:
    """The part of a cell left less right in each node of a level: shape (nodes, cells)."""
    width = 1 << (height - level)
    starts = np.arange(1 << level) * width
    shares = overlap(cells, starts, starts + width - 1)
    return np.asarray(shares[0::2] - shares[1::2])


# ------------------------------------------------------------------------------------------------
# MSW: the product of the attributes' distributions, each by the square wave (section 3.5).


@dataclass(frozen=True)
class AttributeWaves(GroupChannel):
    """The channel of one random attribute, each as likely, by its square wave."""

    @cached_property
    def parts(self) -> tuple[SquareWave, ...]:
        return tuple(SquareWave(size, self.epsilon) for size in self.attributes.sizes)

    @property
    def part_places(self) -> tuple[tuple[int, ...], ...]:
        return tuple((place,) for place in range(len(self.parts)))

    def part_expression(self, part: int) -> list[Any]:
        return self.combination([part])

    def part_items(self, part: int, items: Items) -> Items:
        return items[:, part]


@dataclass(frozen=True)
class MSW(ConjunctionProtocol):
    """Multiplied square wave: every user reports on one attribute (section 3.5).

    A query's answer is the product of its ranges' answers: right for independent attributes,
    without any account of correlation. An attribute that nobody reported on counts as uniform.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, and the privacy loss of a report; ``n`` is not used.
    smooth : bool, default False
        EMS instead of EM (which this paper uses): see
        `rangeq.local.square_wave.SquareWave.estimate`.
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.5"
    untold: ClassVar[str] = "they tell of single attributes, and nothing of how these go together"
    # Fits take many steps, and long with many users
    simulation = Simulation(largest=32, others=False, step=2, most_users=1e7)

    smooth: bool = False

    @cached_property
    def channel(self) -> AttributeWaves:
        return AttributeWaves(self.attributes.size, self.epsilon, self.attributes)

    def _estimate(self, aggregate: Aggregate) -> ProductEstimate:
        distributions = []
        for k, wave in enumerate(self.channel.parts if aggregate.n else ()):
            level = self.channel.part_aggregate(aggregate, k)
            distributions.append(
                wave.estimate(level, self.smooth) if level.n else even(wave.domain)
            )
        return ProductEstimate(self.attributes, aggregate.n, distributions)
