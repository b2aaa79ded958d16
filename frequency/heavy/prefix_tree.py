"""Heavy hitters by prefixes: TreeHist and prefix extension (PEM), for items of up to 64 bits.

Each user reports the first bits of their item, how many of them chosen at random, by a frequency
oracle. The server estimates all prefixes of the least length, keeps the most frequent, extends
these by all that can follow up to the next length, and so on: an item's prefix is held by all that
hold the item, and perhaps others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from frequency.algebra.hash_functions import LinearHash
from frequency.core.aggregate import Aggregate
from frequency.core.deployable import json_integer
from frequency.core.mixture import Mixture, weights_of
from frequency.core.oracle import Oracle
from frequency.heavy.errors import ItemErrors
from frequency.heavy.found import Found, Gate
from frequency.heavy.listing import listed, nothing
from frequency.heavy.protocol import HeavyHitterProtocol
from frequency.oracles.hadamard_response import HRR
from frequency.oracles.local_hashing import OLH
from frequency.oracles.randomized_response import GRR
from mechdesign._support.arrays import Floats, Items, Words
from mechdesign._support.frozen import set_fields
from mechdesign._support.numbers import is_whole
from mechdesign._support.text import shown

_BUDGET = 1 << 21
"""How many prefixes the server estimates for each length, about: what takes a second or two."""

_RESOLVED = 1 << 10
"""How many of the most frequent prefixes are looked at, at least, once confusion by hashing is
resolved.
"""

_ACCIDENT = 0.05
"""The probability that some prefix of a level that nobody holds counts as heavy when confusion is
resolved.
"""

_MOST_CHILDREN = 1 << 24
"""Prefixes that are estimated at a level for the sake of a large k, at most."""

_LARGEST_SYSTEM = 1 << 12
"""For how many at most, whatever is asked for."""

_LISTED = 20
"""The longest prefixes whose frequencies are estimated all, in bits."""

_STEP, _LONGEST_STEP = 12, 16
"""How many bits a prefix is extended by at most, and if the user wishes."""

_POWER = 1.645
"""Deviations above a cut that an item must lie for a chance of 95 % to pass it."""


class Level(NamedTuple):
    """The users who report the first ``length`` bits.

    They are the parts ``first`` .. ``first + functions - 1`` of the mixture.

    Attributes
    ----------
    length : int
        How many bits they report, or hash.
    first : int
        The number of the first part.
    functions : int
        How many public functions hash longer prefixes into the oracle's domain; 0: a single part
        without hashing.
    """

    length: int
    first: int
    functions: int

    @property
    def parts(self) -> range:
        """The numbers of the parts."""
        return range(self.first, self.first + max(1, self.functions))


class PartEstimates(NamedTuple):
    """The estimates from the reports on a part of a level.

    Attributes
    ----------
    part : int
        Its number.
    users : int
        How many reported on it.
    share : float
        Which part of the level's users they are.
    frequencies : numpy.ndarray of float64
        Of the items of its oracle.
    """

    part: int
    users: int
    share: float
    frequencies: Floats


@dataclass(frozen=True)
class Prefixes(Mixture):
    """A random prefix length, and the item's prefix by an oracle.

    The prefix is hashed where there are too many prefixes to list.

    Parameters
    ----------
    domain : int
        The number of items, a power of two.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    lengths : tuple of int
        Of the prefixes, increasing; the last one is the item's.
    probabilities : tuple of Fraction
        Of the lengths, of sum 1.
    oracle : type
        By which prefixes are reported, unless there are so few that GRR is better.
    listed : int
        Prefixes of more bits are hashed.
    places : int
        The bits of a hash.
    functions : int
        How many public hash functions each longer length has; a user chooses one at random.
    seed : int
        Of these functions.
    text : bool, default False
        Whether items are strings.
    """

    lengths: tuple[int, ...]
    probabilities: tuple[Fraction, ...]
    oracle: type[Oracle]
    listed: int
    places: int
    functions: int
    seed: int
    text: bool = False

    largest_domain: ClassVar[int] = 1 << 64

    @property
    def bits(self) -> int:
        """The length of an item."""
        return self.domain.bit_length() - 1

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """One for each length."""
        found: list[Level] = []
        for length in self.lengths:
            first = found[-1].parts.stop if found else 0
            found.append(Level(length, first, self.functions if length > self.listed else 0))
        return tuple(found)

    @cached_property
    def _level_of(self) -> tuple[Level, ...]:
        """The level of each part."""
        return tuple(level for level in self.levels for _ in level.parts)

    def _oracle(self, domain: int) -> Oracle:
        # Where the truth is told often enough: Wang et al. 2017, section 4
        few = domain < 3 * self.max_ratio + 2
        return (GRR if few else self.oracle)(domain, self.epsilon)

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        return tuple(
            self._oracle(1 << (self.places if level.functions else level.length))
            for level in self.levels
            for _ in level.parts
        )

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        shares = [
            share / len(level.parts)
            for level, share in zip(self.levels, self.probabilities, strict=True)
            for _ in level.parts
        ]
        return weights_of(len(shares), shares)

    @cached_property
    def _hashes(self) -> dict[int, LinearHash]:
        hashed = [part for level in self.levels if level.functions for part in level.parts]
        return {part: LinearHash(f"prefix {part}", self.seed, self.places) for part in hashed}

    def _details(self) -> dict[str, Any]:
        return {
            **super()._details(),
            "lengths": list(self.lengths),
            "seed": self.seed,
            "text": self.text,
        }

    def part_expression(self, part: int) -> list[Any]:
        level = self._level_of[part]
        shift = self.bits - level.length
        if not level.functions:
            return ["divide", json_integer(1 << shift)]
        return ["hashed", shift, self._hashes[part].text, self.places]

    def part_items(self, part: int, items: Items) -> Items:
        level = self._level_of[part]
        prefixes = items.astype(np.uint64) >> np.uint64(self.bits - level.length)
        return self._hashes[part](prefixes) if level.functions else prefixes.astype(np.int64)

    # ----------------------------------------------------------------------------- the server half

    def level_users(self, aggregate: Aggregate, level: Level) -> int:
        """How many users reported on a level.

        Parameters
        ----------
        aggregate : Aggregate
            Of this channel's reports.
        level : Level
            One of ``levels``.

        Returns
        -------
        int
            At least 0.
        """
        return int(aggregate.counts[level.first : level.parts.stop].sum())

    def tables(self, aggregate: Aggregate, level: Level) -> list[PartEstimates]:
        """The estimates of those parts of a level that somebody reported on.

        Parameters
        ----------
        aggregate : Aggregate
            Of this channel's reports.
        level : Level
            One of ``levels``.

        Returns
        -------
        list of PartEstimates
            In the order of the parts; empty if nobody reported on the level.
        """
        users = self.part_users(aggregate)
        total = float(users[level.first : level.parts.stop].sum())
        return [
            PartEstimates(
                part,
                int(users[part]),
                users[part] / total,
                self.parts[part].frequencies_of(self.part_aggregate(aggregate, part), None),
            )
            for part in level.parts
            if users[part]
        ]

    def children(
        self, level: Level, tables: list[PartEstimates], parents: Words, step: int
    ) -> Floats:
        """Estimates for all prefixes of the level that ``step`` bits make of each parent.

        Parameters
        ----------
        level : Level
            Whose prefixes are estimated.
        tables : list of PartEstimates
            What `tables` found for the level; at least one.
        parents : numpy.ndarray of uint64
            Shape (parents,): prefixes that are ``step`` bits shorter.
        step : int
            How many bits are appended, at least 1.

        Returns
        -------
        numpy.ndarray of float64
            Shape (parents, 2^step): estimated fractions of the users.
        """
        low = np.arange(1 << step, dtype=np.uint64)
        high = parents << np.uint64(step)
        if not level.functions:
            return tables[0].frequencies[(high[:, None] | low).astype(np.int64)]
        total: Floats = np.zeros((len(parents), 1 << step))
        for table in tables:
            hash_ = self._hashes[table.part]
            total += (
                table.share * table.frequencies[hash_(high)[:, None] ^ (hash_(low) ^ hash_.zero)]
            )
        cells = 1 << self.places
        # Others are in the same cell with probability 1 / cells
        return (total - 1 / cells) * (cells / (cells - 1))

    def resolved(
        self, tables: list[PartEstimates], prefixes: Words, estimates: Floats, least: float
    ) -> Floats:
        """Estimates of hashed prefixes less what heavy prefixes add to them by sharing cells.

        The heavy ones have estimates of ``least`` and more. A linear system among the heavy ones
        alone is solved: the others were selected by their noise, which is no frequency that could
        be shared.

        Parameters
        ----------
        tables : list of PartEstimates
            What `tables` found for the level.
        prefixes : numpy.ndarray of uint64
            Shape (prefixes,).
        estimates : numpy.ndarray of float64
            Shape (prefixes,), from `children`.
        least : float
            The estimate from which on a prefix is heavy.

        Returns
        -------
        numpy.ndarray of float64
            Shape (prefixes,): corrected estimates.
        """
        heavy = np.flatnonzero(estimates >= least)
        heavy = heavy[np.argsort(-estimates[heavy], kind="stable")[:_LARGEST_SYSTEM]]
        shared = np.zeros((len(prefixes), len(heavy)))
        for table in tables:
            cells = self._hashes[table.part](prefixes)
            shared += table.share * (cells[:, None] == cells[heavy])
        among = shared[heavy]
        np.fill_diagonal(among, 1 + 1e-9)  # two that share all cells are told apart by nothing
        held = np.linalg.solve(among, estimates[heavy])
        result: Floats = estimates - shared @ held
        result[heavy] = held
        return result

    def estimated(
        self,
        level: Level,
        tables: list[PartEstimates],
        known: Words,
        errors: ItemErrors,
        prefixes: Words,
    ) -> Floats:
        """Estimates of any prefixes of a level, less what those that are known add to them.

        Parameters
        ----------
        level : Level
            One of ``levels``.
        tables : list of PartEstimates
            What `tables` found for it; at least one.
        known : numpy.ndarray of uint64
            Shape (known,): prefixes, among them those that may be heavy.
        errors : ItemErrors
            Of single estimates.
        prefixes : numpy.ndarray of uint64
            Shape (prefixes,), different ones.

        Returns
        -------
        numpy.ndarray of float64
            Shape (prefixes,).
        """
        every = np.concatenate([prefixes, known[~np.isin(known, prefixes)]])
        told = self.children(level, tables, every, 0).ravel()
        if level.functions:
            told = self.resolved(tables, every, told, errors.beyond(_ACCIDENT / len(every)))
        return told[: len(prefixes)]

    def confusion(self, level: Level, tables: list[PartEstimates]) -> float:
        """The variance that sharing cells with others adds to an estimate.

        It is the sum of the others' squared frequencies over the number of cells. These squares are
        estimated by those of the cells' frequencies, and taken three deviations higher.

        Parameters
        ----------
        level : Level
            One of ``levels``.
        tables : list of PartEstimates
            What `tables` found for it.

        Returns
        -------
        float
            A squared fraction of the users; 0 for a level without hashing.
        """
        if not level.functions:
            return 0.0
        cells = 1 << self.places
        squares = 0.0
        for table in tables:
            noise = float(self.parts[table.part].variance(table.users, 1 / cells))
            squares += table.share * (
                float((table.frequencies**2).sum()) - cells * noise + 3 * np.sqrt(2 * cells) * noise
            )
        return min(max(squares, 0.0), 1.0) / (level.functions * (cells - 1))


class PrefixProtocol(HeavyHitterProtocol):
    """A walk down the tree of prefixes: see the module."""

    @property
    @abstractmethod
    def channel(self) -> Prefixes:
        """How an item becomes a report."""

    def _walk(self, aggregate: Aggregate, population: int, kept: int) -> Iterator[Step]:
        """Level by level, as far as there are reports."""
        channel, universe, parents, length = (
            self.channel,
            self.universe,
            np.zeros(1, dtype=np.uint64),
            0,
        )
        for level in channel.levels:
            step = level.length - length
            users = channel.level_users(aggregate, level)
            tables = channel.tables(aggregate, level)
            if not users:
                return
            estimates = channel.children(level, tables, parents, step).ravel()
            prefixes = (
                parents[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)
            ).ravel()
            good = universe.possible_children(parents, length, step).ravel()
            prefixes, estimates = prefixes[good], estimates[good]
            considered = len(prefixes)
            errors = ItemErrors.of(
                channel.parts[level.first], users, population, channel.confusion(level, tables)
            )
            cut = -np.inf
            if level.functions:
                if considered > max(_RESOLVED, kept):
                    prefixes, estimates, cut = _largest(prefixes, estimates, max(_RESOLVED, kept))
                estimates = channel.resolved(
                    tables, prefixes, estimates, errors.beyond(_ACCIDENT / considered)
                )
            if len(prefixes) > kept:
                prefixes, estimates, least = _largest(prefixes, estimates, kept)
                cut = max(cut, least)
            estimated = partial(channel.estimated, level, tables, prefixes, errors)
            yield Step(prefixes, estimates, considered, cut, errors, estimated)
            parents, length = prefixes, level.length

    def _find(
        self,
        aggregate: Aggregate,
        population: int,
        k: int | None,
        threshold: float | None,
        confidence: float,
    ) -> Found:
        steps = list(self._walk(aggregate, population, _kept(self.channel.lengths, k or 0)))
        if len(steps) < len(self.channel.levels):  # nobody reported on some length
            return nothing(self.universe, confidence, population)
        last = steps[-1]
        gates = [Gate(step.cut, step.errors.deviation) for step in steps]
        return listed(
            self.universe,
            last.prefixes,
            last.estimates,
            last.considered,
            last.errors,
            gates,
            k,
            threshold,
            confidence,
            last.estimated,
        )


class Step(NamedTuple):
    """What is left of a level: prefixes and their estimates.

    Attributes
    ----------
    prefixes, estimates : numpy.ndarray
        Shape (kept,): the prefixes, and their estimated frequencies.
    considered : int
        How many prefixes were looked at.
    cut : float
        What estimates had to reach.
    errors : ItemErrors
        Of the estimates.
    estimated : callable
        Maps any other prefixes of this length to their estimates.
    """

    prefixes: Words
    estimates: Floats
    considered: int
    cut: float
    errors: ItemErrors
    estimated: Callable[[Words], Floats]


def _kept(lengths: Sequence[int], k: int = 0) -> int:
    """How many prefixes of each length are kept.

    As many as the budget lets the server extend, or more for the sake of k items.
    """
    step = max((later - earlier for earlier, later in pairwise(lengths)), default=0)
    return max(64, min(_RESOLVED, _BUDGET >> step), min(2 * k, _MOST_CHILDREN >> step))


def _largest(prefixes: Words, estimates: Floats, count: int) -> tuple[Words, Floats, float]:
    """The ``count`` prefixes with the largest estimates, these, and the least of them."""
    chosen = np.argpartition(-estimates, count - 1)[:count]
    return prefixes[chosen], estimates[chosen], float(estimates[chosen].min())


@dataclass(frozen=True)
class PrefixExtension(PrefixProtocol):
    """PEM, the prefix extending method, for items of up to 64 bits.

    Source: Wang, Li, Jha, IEEE TDSC 2021.

    The fewer lengths, the more users for each: the first is what can be listed whole, up to 20
    bits, and the next ones are as few and as far apart as the server can extend. Items of up to 20
    bits need no prefixes at all: then this is `frequency.OLH`, with no loss to the splitting of
    users. Each length gets users in proportion to the square of the deviations that an item must
    stand out by: what keeps its prefix among those that are kept, and what finds the item in the
    end.

    Parameters
    ----------
    bits : int
        The length of an item, 1 .. 64. See `HeavyHitterProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    text : bool, default False
        True: items are strings of up to bits / 8 bytes of UTF-8.
    lengths : tuple of int, optional
        Prefix lengths, increasing, the last one ``bits``; None: as said.
    seed : int, default 0
        Of the public hash functions.

    Raises
    ------
    ValueError
        A parameter out of range.

    >>> import numpy as np
    >>> protocol = PrefixExtension(bits=16, epsilon=3.0)
    >>> values = np.repeat([7, 40_000, 9], [6_000, 3_000, 1_000])
    >>> reports = protocol.privatize(values, np.random.default_rng(1))
    >>> protocol.find(protocol.aggregate(reports), k=2).items.tolist()
    [7, 40000]
    """

    privacy_source: ClassVar[str] = "Wang, Li and Jha 2021"

    lengths: tuple[int, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.lengths is not None:
            given = tuple(self.lengths)
            if (
                not given
                or not all(map(is_whole, given))
                or not all(a < b for a, b in pairwise((0, *given)))
                or given[-1] != self.bits
            ):
                raise ValueError(
                    f"lengths must increase from at least 1 to bits = {self.bits}, got"
                    f" {shown(self.lengths)}"
                )
            step = max((b - a for a, b in pairwise(given)), default=0)
            if given[0] > _LISTED or step > _LONGEST_STEP:
                raise ValueError(
                    f"the first length can be {_LISTED} bits at most, got {given[0]}, and a step"
                    f" {_LONGEST_STEP}, got {step}"
                )
            set_fields(self, lengths=tuple(int(length) for length in given))
        super().__post_init__()

    @cached_property
    def channel(self) -> Prefixes:
        """How an item becomes a report."""
        lengths = self.lengths or _far_apart(self.universe.bits)
        deviations = []
        considered, kept = 1 << lengths[0], _kept(lengths)
        for step in (*(later - earlier for earlier, later in pairwise(lengths)), 0):
            needed = kept / considered if step else 1 / considered
            deviations.append(max(0.0, -float(scipy.special.ndtri(min(needed, 0.5)))) + _POWER)
            considered = min(kept, considered) << step
        squares = [Fraction(round(value**2 * 1000)) for value in deviations]
        probabilities = tuple(value / sum(squares) for value in squares)
        return Prefixes(
            self.universe.size,
            self.epsilon,
            lengths,
            probabilities,
            OLH,
            _LISTED,
            18,
            4,
            seed=self.seed,
            text=self.text,
        )


def _far_apart(bits: int) -> tuple[int, ...]:
    """A first length that can be listed, and equal steps of at most `_STEP` bits to the end."""
    if bits <= _LISTED:
        return (bits,)
    steps = -(-(bits - _LISTED) // _STEP)
    return tuple(_LISTED + (bits - _LISTED) * step // steps for step in range(steps + 1))


@dataclass(frozen=True)
class TreeHist(PrefixProtocol):
    """TreeHist: prefixes of every length, one bit longer each time.

    Source: Bassily, Nissim, Stemmer, Thakurta, NIPS 2017, section 3.

    Half of the users report a prefix of random length, by the Hadamard oracle in a count-mean
    sketch; the other half their whole item, for the frequencies of what is found. (The paper has
    each user send both, at half of epsilon; splitting users costs less.)

    Parameters
    ----------
    bits : int
        The length of an item, 1 .. 64. See `HeavyHitterProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    text : bool, default False
        True: items are strings of up to bits / 8 bytes of UTF-8.
    seed : int, default 0
        Of the public hash functions.
    """

    privacy_source: ClassVar[str] = "Bassily et al. 2017, section 3"

    seed: int = 0

    @cached_property
    def channel(self) -> Prefixes:
        """How an item becomes a report."""
        bits = self.universe.bits
        lengths = tuple(range(1, bits + 1))
        walk = Fraction(1, 2 * bits)
        probabilities = (*(walk,) * (bits - 1), 1 - (bits - 1) * walk)
        return Prefixes(
            self.universe.size,
            self.epsilon,
            lengths,
            probabilities,
            HRR,
            14,
            14,
            8,
            seed=self.seed,
            text=self.text,
        )
