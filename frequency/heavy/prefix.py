"""Heavy hitters by prefixes: TreeHist and prefix extension (PEM), for strings and integers of up to 64 bits.

Each user reports the first bits of their item, how many of them chosen at random, by a frequency oracle. The server estimates all
prefixes of the least length, keeps the most frequent, extends these by all that can follow up to the next length, and so on: an
item's prefix is held by all that hold the item, and perhaps others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from frequency.aggregate import Aggregate
from frequency.channel import Floats, Items
from frequency.grr import GRR
from frequency.hadamard import HRR
from frequency.hashing import LinearHash
from frequency.heavy.found import Found, Gate
from frequency.heavy.listing import listed, nothing
from frequency.heavy.protocol import HeavyHitterProtocol
from frequency.heavy.universe import Words
from frequency.mixture import Mixture, weights_of
from frequency.olh import OLH
from frequency.oracle import Oracle
from mechdesign.text import shown

_BUDGET = 1 << 21
"""How many prefixes the server estimates for each length, about: what takes a second or two."""

_RESOLVED = 1 << 10
"""Among how many of the most frequent prefixes confusion by hashing is resolved."""

_LISTED = 20
"""The longest prefixes whose frequencies are estimated all, in bits."""

_STEP = 12
"""How many bits a prefix is extended by at most."""

_POWER = 1.645
"""Deviations above a cut that an item must lie for a chance of 95 % to pass it."""


class Level(NamedTuple):
    """The users who report the first ``length`` bits: the parts ``first`` .. ``first + functions - 1`` of the mixture.

    ``functions`` public functions hash longer prefixes into the oracle's domain; a single part without hashing if it is 0.
    """

    length: int
    first: int
    functions: int

    @property
    def parts(self) -> range:
        """The numbers of the parts."""
        return range(self.first, self.first + max(1, self.functions))


@dataclass(frozen=True)
class Prefixes(Mixture):
    """A random prefix length, and the item's prefix by an oracle: itself, or hashed if there are too many prefixes to list.

    ``probabilities`` are those of the ``lengths``. Prefixes of more than ``listed`` bits are hashed into ``places`` bits by one of
    ``functions`` public functions, of the user's random choice.
    """

    lengths: tuple[int, ...]
    probabilities: tuple[Fraction, ...]
    oracle: type[Oracle]
    listed: int
    places: int
    functions: int
    seed: int

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

    def _oracle(self, domain: int) -> Oracle:
        few = domain < 3 * self.odds + 2  # where the truth is told often enough: Wang et al. 2017, section 4
        return (GRR if few else self.oracle)(domain, self.epsilon)

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        return tuple(
            self._oracle(1 << (self.places if level.functions else level.length)) for level in self.levels for _ in level.parts
        )

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        shares = [
            share / len(level.parts) for level, share in zip(self.levels, self.probabilities, strict=True) for _ in level.parts
        ]
        return weights_of(len(shares), shares)

    @cached_property
    def _hashes(self) -> dict[int, LinearHash]:
        hashed = [part for level in self.levels if level.functions for part in level.parts]
        return {part: LinearHash(f"prefix {part}", self.seed, self.places) for part in hashed}

    def _details(self) -> dict[str, Any]:
        return {**super()._details(), "lengths": list(self.lengths), "seed": self.seed}

    def _nodes(self, part: int, items: Items) -> Items:
        level = next(level for level in self.levels if part in level.parts)
        prefixes = items.astype(np.uint64) >> np.uint64(self.bits - level.length)
        return self._hashes[part](prefixes) if level.functions else prefixes.astype(np.int64)

    # ------------------------------------------------------------------------------------------------ the server half

    def level_users(self, aggregate: Aggregate, level: Level) -> int:
        """How many users reported on a level."""
        return int(aggregate.counts[level.first : level.parts.stop].sum())

    def tables(self, aggregate: Aggregate, level: Level) -> list[tuple[int, float, Floats]]:
        """The parts of a level that somebody reported on, their shares of its users, and the frequencies of the parts' items."""
        users = self._users(aggregate)
        total = users[level.first : level.parts.stop].sum()
        return [
            (part, float(users[part] / total), self.parts[part]._frequencies(self._level(aggregate, part), None))
            for part in level.parts
            if users[part]
        ]

    def children(self, level: Level, tables: list[tuple[int, float, Floats]], parents: Words, step: int) -> Floats:
        """Estimates for all prefixes of the level that ``step`` bits make of each parent: shape (parents, 2^step)."""
        low = np.arange(1 << step, dtype=np.uint64)
        high = parents << np.uint64(step)
        if not level.functions:
            return tables[0][2][(high[:, None] | low).astype(np.int64)]
        total: Floats = np.zeros((len(parents), 1 << step))
        for part, share, frequencies in tables:
            hash_ = self._hashes[part]
            total += share * frequencies[hash_(high)[:, None] ^ (hash_(low) ^ hash_.zero)]
        cells = 1 << self.places
        return (total - 1 / cells) * (cells / (cells - 1))  # others are in the same cell with probability 1 / cells

    def resolved(self, tables: list[tuple[int, float, Floats]], prefixes: Words, estimates: Floats) -> Floats:
        """Estimates of hashed prefixes less what these prefixes lend each other by sharing cells: a linear system."""
        shared = np.zeros((len(prefixes), len(prefixes)))
        for part, share, _ in tables:
            cells = self._hashes[part](prefixes)
            shared += share * (cells[:, None] == cells)
        np.fill_diagonal(shared, 1 + 1e-9)  # two that share all cells are told apart by nothing
        return np.asarray(np.linalg.solve(shared, estimates), dtype=np.float64)

    def confusion(self, level: Level) -> float:
        """The variance that sharing cells with others adds to an estimate, whoever reports: at most, when these hold one item."""
        return 1 / (level.functions * ((1 << self.places) - 1)) if level.functions else 0.0


class PrefixProtocol(HeavyHitterProtocol):
    """A walk down the tree of prefixes: see the module."""

    seed: int

    @property
    @abstractmethod
    def channel(self) -> Prefixes:
        """How an item becomes a report."""

    def _walk(self, aggregate: Aggregate, population: int, kept: int) -> Iterator[tuple[Level, Words, Floats, int, Gate]]:
        """Level by level: what is kept of it and its estimates, how many prefixes were considered, and what they had to pass."""
        channel, universe, parents, length = self.channel, self.universe, np.zeros(1, dtype=np.uint64), 0
        for level in channel.levels:
            step = level.length - length
            users = channel.level_users(aggregate, level)
            tables = channel.tables(aggregate, level)
            if not users:
                return
            estimates = channel.children(level, tables, parents, step).ravel()
            prefixes = (parents[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)).ravel()
            good = universe.possible(prefixes, level.length)
            prefixes, estimates = prefixes[good], estimates[good]
            considered = len(prefixes)
            if level.functions:
                prefixes, estimates = _largest(prefixes, estimates, max(_RESOLVED, kept))
                estimates = channel.resolved(tables, prefixes, estimates)
            if len(prefixes) > kept:
                prefixes, estimates = _largest(prefixes, estimates, kept)
                cut = float(estimates.min())
            else:
                cut = -np.inf
            gate = Gate(cut, _Deviation(channel.parts[level.first], users, population, channel.confusion(level)))
            yield level, prefixes, estimates, considered, gate
            parents, length = prefixes, level.length

    def _find(self, aggregate: Aggregate, population: int, k: int | None, threshold: float | None, confidence: float) -> Found:
        steps = list(self._walk(aggregate, population, max(_kept(self.channel.lengths), 2 * (k or 0))))
        if len(steps) < len(self.channel.levels):  # nobody reported on some length
            return nothing(self.universe, confidence, population)
        _, words, estimates, considered, gate = steps[-1]
        gates = [step[-1] for step in steps]
        return listed(self.universe, words, estimates, considered, gate.deviation, gates, population, k, threshold, confidence)


def _kept(lengths: Sequence[int]) -> int:
    """How many prefixes of each length are kept, at least: as many as the budget lets the server extend."""
    step = max((later - earlier for earlier, later in pairwise(lengths)), default=0)
    return max(64, min(_RESOLVED, _BUDGET >> step))


@dataclass(frozen=True)
class _Deviation:
    """The deviation of an estimate from the fraction of all ``n`` users, made from ``users`` of them, drawn at random."""

    oracle: Oracle
    users: int
    n: int
    confusion: float

    def __call__(self, frequency: Floats) -> Floats:
        f = np.clip(frequency, 0.0, 1.0)
        sampling = f * (1 - f) * (1 / self.users - 1 / self.n)
        result: Floats = np.sqrt(np.asarray(self.oracle.variance(self.users, f)) + sampling + self.confusion)
        return result


def _largest(prefixes: Words, estimates: Floats, count: int) -> tuple[Words, Floats]:
    if len(estimates) > count:
        chosen = np.argpartition(-estimates, count - 1)[:count]
        return prefixes[chosen], estimates[chosen]
    return prefixes, estimates


@dataclass(frozen=True)
class PrefixExtension(PrefixProtocol):
    """PEM, the prefix extending method (Wang, Li, Jha, IEEE TDSC 2021), for items of up to 64 bits.

    The fewer lengths, the more users for each: the first is what can be listed whole, up to 20 bits, and the next ones are as few
    and as far apart as the server can extend. Items of up to 20 bits need no prefixes at all: then this is `frequency.OLH`, with no
    loss to the splitting of users. Each length gets users in proportion to the square of the deviations that an item must stand out
    by: what keeps its prefix among those that are kept, and what finds the item in the end.

    Parameters
    ----------
    lengths
        Prefix lengths, increasing, the last one bits; None: as said.
    seed
        Of the public hash functions.

    >>> import numpy as np
    >>> protocol = PrefixExtension(bits=16, epsilon=3.0)
    >>> reports = protocol.privatize(np.repeat([7, 40_000, 9], [6_000, 3_000, 1_000]), np.random.default_rng(1))
    >>> protocol.find(protocol.aggregate(reports), k=2).items.tolist()
    [7, 40000]
    """

    lengths: tuple[int, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.lengths is not None:
            given = tuple(self.lengths)
            whole = all(isinstance(length, (int, np.integer)) and not isinstance(length, bool) for length in given)
            if not given or not whole or not all(a < b for a, b in pairwise((0, *given))) or given[-1] != self.bits:
                raise ValueError(f"lengths must increase from at least 1 to bits = {self.bits}, got {shown(self.lengths)}")
            steps = [b - a for a, b in pairwise((0, *given))]
            if max(steps) > _LISTED:
                raise ValueError(f"a step of {max(steps)} bits is more than can be listed, {_LISTED}: put lengths in between")
            object.__setattr__(self, "lengths", tuple(int(length) for length in given))
        super().__post_init__()

    @cached_property
    def channel(self) -> Prefixes:
        """How an item becomes a report."""
        lengths = self.lengths or _far_apart(self.universe.bits)
        deviations = []
        considered, kept = 1 << lengths[0], _kept(lengths)
        for step in (*(later - earlier for earlier, later in pairwise(lengths)), 0):
            needed = kept / considered if step else 1 / considered
            deviations.append(max(0.0, -float(ndtri(min(needed, 0.5)))) + _POWER)
            considered = min(kept, considered) << step
        squares = [Fraction(round(value**2 * 1000)) for value in deviations]
        probabilities = tuple(value / sum(squares) for value in squares)
        return Prefixes(
            self.universe.size, self.epsilon, lengths, probabilities, OLH, _LISTED, places=18, functions=4, seed=self.seed
        )


def _far_apart(bits: int) -> tuple[int, ...]:
    """A first length that can be listed, and equal steps of at most `_STEP` bits to the end."""
    if bits <= _LISTED:
        return (bits,)
    steps = -(-(bits - _LISTED) // _STEP)
    return tuple(_LISTED + (bits - _LISTED) * step // steps for step in range(steps + 1))


@dataclass(frozen=True)
class TreeHist(PrefixProtocol):
    """TreeHist (Bassily, Nissim, Stemmer, Thakurta, NIPS 2017, section 3): prefixes of every length, one bit longer each time.

    Half of the users report a prefix of random length, by the Hadamard oracle in a count-mean sketch; the other half their whole
    item, for the frequencies of what is found. (The paper has each user send both, at half of epsilon; splitting users costs less.)

    Parameters
    ----------
    seed
        Of the public hash functions.
    """

    seed: int = 0

    @cached_property
    def channel(self) -> Prefixes:
        """How an item becomes a report."""
        bits = self.universe.bits
        lengths = tuple(range(1, bits + 1))
        walk = Fraction(1, 2 * bits)
        probabilities = (*(walk,) * (bits - 1), 1 - (bits - 1) * walk)
        return Prefixes(
            self.universe.size, self.epsilon, lengths, probabilities, HRR, listed=14, places=14, functions=8, seed=self.seed
        )
