"""Pairs of attributes through square waves of random period and phase: what a user reports.

Of attributes whose values are categories, through random partitions instead.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD
from frequency.core import Aggregate, PublicDraw, smallest_integer, weights_of
from frequency.oracles import SubsetSelection
from mechdesign.base import Floats, Items
from rangeq.core import ContrastLaw
from rangeq.grids.cells import Edges, Grid, axis, equal_cells, numbered_axes
from rangeq.grids.channel import GroupChannel
from rangeq.grids.wavegrid.partitions import Partition, ValueSets

#: The most shifts of a wave over one arc; those beyond it only number the arcs anew. The longest
#: arcs then begin at 64 places, as many as a pair has cells: up to 64 values are all told apart. Of
#: more some detail finer than 1/64 is left to the priors.
PHASES = 32

#: The most cells in which the distribution of an attribute is estimated: shorter arcs would tell
#: nothing that is kept.
FINE = 256

LARGEST = 1 << 31  #: The most values of an attribute: two together are an item of 62 bits.

#: The part of the users asked about a pair who report on its halves. Of data that are even but for
#: these, as those of an exclusive or are, only pairs of longest waves see anything, and of their
#: random phases a ninth of the squared signal.
HALVES = Fraction(1, 6)

#: The part of the users who report on one attribute, where pairs have four arcs of each or more. Of
#: sixteen cells of a pair one attribute takes four, while by itself it takes what it can use. Of
#: more than ten attributes it is 2 / d: each has so few reports on a pair that pairs err more than
#: attributes, to which all of their pairs' reports contribute.
ALONE = Fraction(1, 5)

#: The rule of arcs in pairs: four take the place of two where an attribute has 8 values and all
#: functions of 16 cells together become known 1.5 times as well as those of 4: they share what is
#: known among five times as many, most of them finer than data usually are. Eight do where those of
#: 64 become known 2.5 times as well again, from an epsilon of 5 on. Of fewer values each is an arc
#: where others have four; they have so few phases that nothing is asked about their halves. Of
#: categories there are four sets at most.
_WIDE, _FINER = 8, ((4, 1.5), (8, 2.5))

#: The rule of arcs for an attribute by itself: twice as many, up to 64, where all functions of them
#: together become known 1.2 times as well: at an epsilon of 1 four, of 2 eight, of 3 sixteen, of 4
#: 32.
_FINER_ALONE, _MOST_ALONE = 1.2, 64


@dataclass(frozen=True)
class Wave(ValueSets):
    """Ways to cut the values of an attribute into a few sets, each of every g-th of equal arcs.

    A configuration has a level m = 0, 1, ... and a phase: arcs of size / (2^m g) values repeat with
    the period size / 2^m, shifted by (phase + 1/2) / phases of an arc. Two arcs are the positive
    and the negative half-waves of a square wave. Levels end where an arc is one value, or one of
    `FINE` equal cells; there are at least as many phases as those in an arc, up to `PHASES`.

    The number of sets g is a power of two, or that of the values.
    """

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The numbers of phases at each level: powers of two; (1,) for a constant attribute."""
        if self.arcs == 1:
            return (1,)
        cells = min(self.size, FINE)
        levels = range((cells // self.arcs).bit_length())
        return tuple(
            min(PHASES, 1 << (-(-cells // (self.arcs << level)) - 1).bit_length())
            for level in levels
        )

    @cached_property
    def cuts(self) -> tuple[Items, Items, Items]:
        """The level, the phase and the number of phases of each configuration."""
        levels = np.arange(len(self.phases))
        phase = np.concatenate([np.arange(phases) for phases in self.phases])
        return np.repeat(levels, self.phases), phase, np.repeat(self.phases, self.phases)

    @cached_property
    def deck(self) -> Items:
        """All configurations, each as often as it is likely."""
        # A level is twice as likely as the next, and its phases are equally so: answers depend most
        # on sums of many values, about which the finest levels have least information
        level, _, phases = self.cuts
        return np.repeat(
            np.arange(len(level)), (max(self.phases) // phases) << (len(self.phases) - 1 - level)
        )

    def arc(self, configuration: Items, values: Items) -> Items:
        """Return the arc that holds the middle of each value."""
        # That is floor(g (x + 1/2) 2^m / size + (phase + 1/2) / phases) mod g, in integers, so that
        # client and server never differ
        level, phase, phases = (of[configuration] for of in self.cuts)
        whole = (
            ((2 * values + 1) << level) * (self.arcs * phases) + (2 * phase + 1) * self.size
        ) // (2 * phases * self.size)
        return np.asarray(whole % self.arcs)

    def shares(self, edges: Edges) -> Floats:
        """The part of each cell's values that lies in each arc: (configurations, arcs, cells)."""
        ends, result = np.array(edges), []
        for level, phase, phases in zip(*(of.tolist() for of in self.cuts), strict=True):
            # Arc t, counted on around the periods, begins with the first x such that (2 x + 1) step
            # >= first(t).
            step, turns = self.arcs * phases << level, np.arange((self.arcs << level) + 2)
            first = (2 * phases * turns - (2 * phase + 1)) * self.size
            starts = np.clip(-((step - first) // (2 * step)), 0, self.size)
            lengths = np.where(
                turns[:-1] % self.arcs == np.arange(self.arcs)[:, None], np.diff(starts), 0
            )
            # Cumulated lengths of each arc before the turns, so that a cell's share is a
            # difference, however many turns it covers
            before = np.concatenate(
                [np.zeros((self.arcs, 1), dtype=np.int64), lengths.cumsum(axis=1)], axis=1
            )
            turn = np.minimum(np.searchsorted(starts, ends, side="right") - 1, len(turns) - 2)
            cumulated = before[:, turn] + (turn % self.arcs == np.arange(self.arcs)[:, None]) * (
                ends - starts[turn]
            )
            result.append(np.diff(cumulated, axis=1) / np.diff(ends))
        return np.array(result)

    @property
    def details(self) -> dict[str, Any]:
        return {"size": self.size, "arcs": self.arcs, "phases": list(self.phases)}

    @property
    def expression(self) -> list[Any]:
        return ["wave", self.size, self.arcs, list(self.phases)]


@dataclass(frozen=True)
class WaveCells(PublicDraw):
    """The cell of the arcs of random waves, over one or two attributes, that holds the record.

    A report is the configurations, public and independent of the record, and ``cell``, the report
    of subset selection over the g_a x g_b cells: of four cells two at an epsilon up to 0.45, one
    above. The items are records of the attributes, the last counting fastest.

    Parameters
    ----------
    domain : int
        The number of different records of the waves' attributes.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    waves : tuple of Wave or Partition
        One for each attribute.
    """

    waves: tuple[ValueSets, ...]

    fields: ClassVar[tuple[str, str]] = ("waves", "cell")
    largest_domain: ClassVar[int] = LARGEST**2

    @cached_property
    def base(self) -> SubsetSelection:
        """The oracle of the cells."""
        return SubsetSelection(math.prod(self.arcs), self.epsilon)

    @property
    def arcs(self) -> tuple[int, ...]:
        """The number of arcs of each wave."""
        return tuple(wave.arcs for wave in self.waves)

    @property
    def information(self) -> float:
        """The precision of orthonormal functions of the cells from a report: see `information`."""
        return information(self.base)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        number = smallest_integer(max(wave.configurations for wave in self.waves) - 1)
        return np.dtype([("waves", number, (len(self.waves),)), ("cell", self.base.report_dtype)])

    @property
    def _settings(self) -> tuple[int, ...]:
        return tuple(wave.configurations for wave in self.waves)

    @property
    def _probabilities(self) -> tuple[Floats, ...]:
        return tuple(wave.probabilities for wave in self.waves)

    @property
    def _chances(self) -> tuple[tuple[int, Fraction], ...]:
        chances = Counter({Fraction(1): 1})
        for wave in self.waves:
            cards = Counter(np.bincount(wave.deck).tolist()).items()
            more = Counter[Fraction]()
            for chance, number in chances.items():
                for times, configurations in cards:
                    more[chance * times / len(wave.deck)] += number * configurations
            chances = more
        return tuple((number, chance) for chance, number in chances.items())

    @property
    def _coins(self) -> list[dict[str, Any]]:
        width = self.report_dtype["waves"].base.itemsize
        return [{"phases": list(wave.phases), "width": width} for wave in self.waves]

    @property
    def _expression(self) -> list[Any]:
        cuts = [wave.expression for wave in self.waves]
        if all(isinstance(wave, Wave) for wave in self.waves):
            return ["waves", [rest for _, *rest in cuts]]
        return ["cuts", cuts]

    def _draw(self, number: Callable[[int], Items]) -> tuple[Items, ...]:
        return tuple(wave.deck[number(len(wave.deck))] for wave in self.waves)

    def _cell(self, items: Items, setting: tuple[Items, ...]) -> Items:
        records = np.unravel_index(items, tuple(wave.size for wave in self.waves))
        cell = np.zeros(len(items), dtype=np.int64)
        for wave, configuration, values in zip(self.waves, setting, records, strict=True):
            cell = cell * wave.arcs + wave.arc(configuration, values)
        return cell

    def drawn_counts(
        self, shares: Floats, users: int, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Draw counts with the distribution of those of users drawn from a population.

        Parameters
        ----------
        shares : numpy.ndarray of float64
            Shape (sizes of the waves,): the records' shares of the population, of sum 1.
        users : int
            The number of users who report: the cost does not depend on it.
        rng : numpy.random.Generator
            The randomness.

        Returns
        -------
        numpy.ndarray of int64
            Shape `counts_shape`.
        """
        settings, cells = np.ones(()), shares
        for wave in self.waves:
            settings = np.multiply.outer(settings, wave.probabilities)
            # From (..., values) to (configurations, arcs) behind what comes before
            arcs = wave.shares(tuple(range(wave.size + 1)))
            cells = np.tensordot(cells, arcs, axes=([0], [2]))
        several = len(self.waves)
        cells = np.moveaxis(cells, range(1, 2 * several, 2), range(several, 2 * several))
        cells = cells.reshape(settings.size, math.prod(self.arcs))
        # Multinomial in two steps, configurations and then sets: the counts have the distribution
        # of so many users without drawing one of them
        asked = rng.multinomial(users, settings.ravel())
        # A set that holds the own cell has p over their number, any other one what is left
        sets = list(combinations(range(self.base.domain), self.base.size))
        holds = np.zeros((len(sets), self.base.domain), dtype=np.int64)
        holds[np.arange(len(sets))[:, None], sets] = 1
        containing, p = int(holds[:, 0].sum()), float(self.base.p)
        likelihoods = np.where(holds, p / containing, (1 - p) / max(len(sets) - containing, 1))
        chances = cells @ likelihoods.T
        drawn = rng.multinomial(asked, chances / chances.sum(axis=1, keepdims=True))
        return np.asarray((drawn @ holds).reshape(self.counts_shape))

    def _details(self) -> dict[str, Any]:
        return {
            "waves": [wave.details for wave in self.waves],
            "cells": {**self.base.parameters},
        }

    def held(self, counts: npt.NDArray[np.int64]) -> Floats:
        """Unbiased estimates of the users in each cell: see `Heard`."""
        return held(self.base, counts).reshape(*self.counts_shape[:-1], *self.arcs)


def held(oracle: SubsetSelection, counts: npt.NDArray[np.int64]) -> Floats:
    """Unbiased estimates of the numbers of users in cells: both of shape (..., cells)."""
    p, q, k = float(oracle.p), float(oracle.q), oracle.size
    return np.asarray((counts - q / k * counts.sum(axis=-1, keepdims=True)) / (p - q))


def information(oracle: SubsetSelection) -> float:
    """Return the least precision of an orthonormal function's score from one report."""
    # (p - q)^2 (D - 1) / (k (D - k)) for sets of k of D cells
    cells, k = oracle.domain, oracle.size
    return float((oracle.p - oracle.q) ** 2 * (cells - 1) / (k * (cells - k))) if cells > 1 else 0.0


class Heard(NamedTuple):
    """The estimates from the reports of one part."""

    places: tuple[int, ...]  # of its attributes
    law: ContrastLaw  # the error law of the estimates of one report
    # Shape (*configurations, *arcs): unbiased estimates of how many users who were asked with each
    # configuration are in each cell. Of halves (2, 2).
    held: Floats
    waves: tuple[ValueSets, ...] = ()  # of each attribute; of halves none


def half_of(edges: Edges) -> Floats:
    """Return 1 on cells in the lower half of the values, -1 in the upper, in between for both."""
    ends = np.array(edges)
    lower = np.diff(np.minimum(ends, ends[-1] // 2))
    return np.asarray(2 * lower / np.diff(ends) - 1)


@dataclass(frozen=True)
class WaveChannel(GroupChannel):
    """The channel of WaveGrid: a random pair of attributes, and its `WaveCells` or halves.

    Halves of two ordered attributes, with the probability `HALVES`. Or one of the attributes, each
    as likely, with the probability `ALONE` where pairs have four arcs.

    Parameters
    ----------
    domain, epsilon, attributes : as of `RecordChannel`
        Of the whole records.
    categorical : tuple of bool
        For each attribute whether its values are categories.
    pairs : tuple of (int, int), optional
        Places of the attributes of each pair that is asked about, the first before the second, in
        order; None: all pairs.
    """

    categorical: tuple[bool, ...]
    pairs: tuple[tuple[int, int], ...] | None = None

    def _known(self, cells: int) -> float:
        """The precision of all functions of so many cells together."""
        return (cells - 1) * information(SubsetSelection(cells, self.epsilon))

    @cached_property
    def _arcs(self) -> int:
        """The number of arcs of an attribute in a pair, if it is wide and ordered."""
        arcs = 2
        for more, times in _FINER:
            arcs = more if self._known(more**2) > times * self._known(arcs**2) else arcs
        return arcs

    @cached_property
    def waves(self) -> tuple[ValueSets, ...]:
        """The waves of each attribute in its pairs."""
        arcs = self._arcs
        return tuple(
            Partition(size, min(arcs, 4, size))
            if categories
            else Wave(size, arcs if size >= _WIDE else size if arcs > 2 else min(size, 2))
            for size, categories in zip(self.attributes.sizes, self.categorical, strict=True)
        )

    @cached_property
    def waves_alone(self) -> tuple[ValueSets, ...]:
        """The waves of each attribute by itself: of categories each is a set."""
        arcs = 2
        while arcs < _MOST_ALONE and self._known(2 * arcs) > _FINER_ALONE * self._known(arcs):
            arcs *= 2
        return tuple(
            Wave(size, size if categories else min(size, arcs))
            for size, categories in zip(self.attributes.sizes, self.categorical, strict=True)
        )

    @cached_property
    def asked_pairs(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each part that asks about waves of a pair: the first ones."""
        return self.attributes.pairs if self.pairs is None else self.pairs

    @cached_property
    def alone(self) -> tuple[int, ...]:
        """The attribute of each part that asks about one: the next."""
        sizes = self.attributes.sizes
        if not self.asked_pairs:
            return (0,)
        return tuple(place for place, size in enumerate(sizes) if size > 1 and self._arcs > 2)

    @property
    def chance_alone(self) -> Fraction:
        """The probability of being asked about one attribute."""
        if not self.alone:
            return Fraction(0)
        return min(ALONE, Fraction(2, len(self.attributes))) if self.asked_pairs else Fraction(1)

    @cached_property
    def halves(self) -> tuple[Grid, ...]:
        """The grid of each part that asks about the halves of a pair: the last ones."""
        sizes = self.attributes.sizes
        wide = [
            size >= _WIDE and not categories
            for size, categories in zip(sizes, self.categorical, strict=True)
        ]
        return tuple(
            Grid(pair, tuple(equal_cells(sizes[place], 2) for place in pair))
            for pair in self.asked_pairs
            if all(wide[place] for place in pair)
        )

    @cached_property
    def part_places(self) -> tuple[tuple[int, ...], ...]:
        """The attributes of each part."""
        alone = ((place,) for place in self.alone)
        return (*self.asked_pairs, *alone, *(grid.places for grid in self.halves))

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        alone = self.chance_alone
        halved = {grid.places for grid in self.halves}
        # Users that are not asked about one attribute share the pairs evenly; of a pair with halves
        # a sixth goes to these
        each = (1 - alone) / max(len(self.asked_pairs), 1)
        chances = [each * (1 - HALVES if pair in halved else 1) for pair in self.asked_pairs]
        chances += [alone / max(len(self.alone), 1)] * len(self.alone)
        chances += [each * HALVES] * len(self.halves)
        return weights_of(len(self.parts), chances, self.kind)

    @cached_property
    def parts(self) -> tuple[WaveCells | SubsetSelection, ...]:
        waves = [tuple(self.waves[place] for place in pair) for pair in self.asked_pairs]
        waves += [(self.waves_alone[place],) for place in self.alone]
        # Pairs with the same waves share one oracle, whose tables are the same
        made = {
            cut: WaveCells(math.prod(wave.size for wave in cut), self.epsilon, cut)
            for cut in dict.fromkeys(waves)
        }
        halves = [SubsetSelection(4, self.epsilon)] * len(self.halves)
        return (*(made[cut] for cut in waves), *halves)

    def _details(self) -> dict[str, Any]:
        chosen = {} if self.pairs is None else {"pairs": [list(pair) for pair in self.pairs]}
        named = [k for k, categories in enumerate(self.categorical) if categories]
        named_places = {"categorical": named} if named else {}
        return {**super()._details(), **named_places, **chosen}

    @cached_property
    def _axes(self) -> dict[Edges, int]:
        return numbered_axes(self.halves)

    @property
    def part_axes(self) -> list[Any]:
        return [axis(edges) for edges in self._axes]

    def _halves_of(self, part: int) -> Grid | None:
        """The grid of a part that asks about halves; None of any other."""
        number = part - len(self.asked_pairs) - len(self.alone)
        return self.halves[number] if number >= 0 else None

    def part_expression(self, part: int) -> list[Any]:
        halves = self._halves_of(part)
        return (
            self.combination(self.part_places[part])
            if halves is None
            else halves.expression(self._axes)
        )

    def part_items(self, part: int, items: Items) -> Items:
        halves = self._halves_of(part)
        return (
            self.combined(items, self.part_places[part])
            if halves is None
            else halves.cell_of(items)
        )

    @property
    def mean_information(self) -> float:
        """The mean precision of each orthonormal function of a pair's cells from a report."""
        precisions = [
            weight * (part.information if isinstance(part, WaveCells) else information(part))
            for part, places, weight in zip(
                self.parts, self.part_places, self.part_weights, strict=True
            )
            if len(places) == 2
        ]
        return math.fsum(precisions) / WORD

    def heard(self, aggregate: Aggregate) -> tuple[list[Heard], list[Heard]]:
        """The estimates from reports on waves, and from those on halves."""
        waves, halves = [], []
        for k, (places, part) in enumerate(zip(self.part_places, self.parts, strict=True)):
            counts = self.part_aggregate(aggregate, k).counts
            if isinstance(part, WaveCells):
                in_cells = part.held(counts)
                waves.append(Heard(places, ContrastLaw.of(part.base), in_cells, part.waves))
            else:
                users = held(part, counts).reshape(2, 2)
                halves.append(Heard(places, ContrastLaw.of(part), users))
        return waves, halves
