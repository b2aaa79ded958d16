"""Prefixes: a channel over random prefixes of an item, and the estimates of any prefixes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.algebra import LinearHash
from frequency.core import Aggregate, Mixture, Oracle, json_integer, weights_of
from frequency.heavy.error_bound import ItemErrors
from frequency.heavy.found import Gate
from frequency.heavy.spelling import Prefixed, Spelling
from frequency.oracles import GRR, OLH
from mechdesign.base import Floats, Items, Rational, Words

#: The probability that some prefix of a level that nobody holds counts as heavy when confusion is
#: resolved.
ACCIDENT = 0.05

_LARGEST_SYSTEM = 1 << 12  # the largest number of prefixes whose confusion is resolved


class Level(NamedTuple):
    """A level: the users who report the first ``length`` bits.

    They are the parts ``first`` .. ``first + functions - 1`` of the mixture.
    """

    length: int  # bits that are reported, or hashed
    first: int  # the number of the first part
    # public functions that hash longer prefixes into the oracle's domain; 0: one part, none hashed
    functions: int

    @property
    def parts(self) -> range:
        """The numbers of the parts."""
        return range(self.first, self.first + max(1, self.functions))


class PartEstimates(NamedTuple):
    """The estimates from the reports on a part of a level."""

    part: int
    users: int  # reports on it
    share: float  # of the level's users
    frequencies: Floats  # of the items of its oracle


@dataclass(frozen=True)
class Prefixes(Mixture):
    """A mixture of prefix lengths, where an oracle reports the item's prefix.

    The prefix is hashed where there are too many prefixes to list. The domain is a power of two.
    """

    lengths: tuple[int, ...]  # of prefixes, increasing; the last one is the item's
    probabilities: tuple[Fraction, ...]  # of the lengths, of sum 1
    oracle: type[Oracle]  # reports prefixes, unless there are so few that GRR is better
    listed: int  # prefixes of more bits are hashed
    places: int  # the bits of a hash
    functions: int  # public hash functions of each longer length; a user chooses one
    seed: int
    text: bool = False  # whether items are strings

    largest_domain: ClassVar[int] = 1 << 64

    @property
    def bits(self) -> int:
        """The length of an item."""
        return self.domain.bit_length() - 1

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels, one for each length."""
        levels: list[Level] = []
        for length in self.lengths:
            first = levels[-1].parts.stop if levels else 0
            levels.append(Level(length, first, self.functions if length > self.listed else 0))
        return tuple(levels)

    @cached_property
    def _level_of(self) -> tuple[Level, ...]:
        """The levels of the parts."""
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
    def _hashes(self) -> Mapping[int, LinearHash]:
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
        """Return the number of users who reported on one of the ``levels``."""
        return int(aggregate.part(slice(level.first, level.parts.stop)).sum())

    def tables(self, aggregate: Aggregate, level: Level) -> list[PartEstimates]:
        """Return the estimates of those parts of a level that somebody reported on, in order."""
        users, total = self.part_users(aggregate), self.level_users(aggregate, level)
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
        self,
        level: Level,
        tables: list[PartEstimates],
        parents: Words,
        step: int,
        rest: float = 1.0,
    ) -> Floats:
        """Return estimates for all prefixes of the level that ``step`` bits make of each parent.

        They are fractions of the users, of whom ``tables``, at least one, have the fraction
        ``rest``. Shapes: `parents` (parents,), ``step`` bits shorter; returns (parents, 2^step).
        """
        high, low = self.extended(level, parents, step)
        if not level.functions:
            return tables[0].frequencies[(high[:, None] | low).astype(np.int64)]
        total: Floats = np.zeros((len(parents), 1 << step))
        for table in tables:
            # Linear: h(high ^ low) = h(high) ^ h(low) ^ h(0). Parents and endings are hashed apart,
            # and each of their combinations costs an exclusive or and a look-up.
            hash_ = self._hashes[table.part]
            total += (
                table.share * table.frequencies[hash_(high)[:, None] ^ (hash_(low) ^ hash_.zero)]
            )
        cells = 1 << self.places
        # Others are in the same cell with probability 1 / cells
        return (total - rest / cells) * (cells / (cells - 1))

    def extended(self, level: Level, parents: Words, step: int) -> tuple[Words, Words]:
        """Return prefixes of a level in two parts: any first one, or any second one.

        Shapes: `parents` (parents,), ``step`` bits shorter; returns (parents,) and (2^step,).
        """
        return parents << np.uint64(step), np.arange(1 << step, dtype=np.uint64)

    def resolved(
        self, tables: list[PartEstimates], prefixes: Words, estimates: Floats, least: float
    ) -> Floats:
        """Return estimates of hashed prefixes less what heavy prefixes add by sharing cells.

        The heavy ones have estimates, as of `children`, of ``least`` and more. Shapes: `prefixes`
        and `estimates` (prefixes,); returns (prefixes,).
        """
        heavy = np.flatnonzero(estimates >= least)
        heavy = heavy[np.argsort(-estimates[heavy], kind="stable")[:_LARGEST_SYSTEM]]
        # A linear system among the heavy ones alone: the others were selected by their noise, which
        # is no frequency that could be shared
        return without_sharing(self.cells_of(tables, prefixes), estimates, heavy)

    def cells_of(self, tables: list[PartEstimates], prefixes: Words) -> list[tuple[float, Items]]:
        """Return the shares of hashed tables, and the cell of each prefix in them."""
        return [(table.share, self._hashes[table.part](prefixes)) for table in tables]

    def estimated(
        self,
        level: Level,
        tables: list[PartEstimates],
        known: Words,
        least: float,
        prefixes: Words,
    ) -> Floats:
        """Return estimates of prefixes of a level, less what those that are known add to them.

        Known ones are heavy from an estimate of ``least`` on. Shapes: `known` (known,), among them
        all that may be heavy, `prefixes` (prefixes,), different; returns (prefixes,).
        """
        given = {prefix.tobytes() for prefix in prefixes}
        others = [prefix.tobytes() not in given for prefix in known]
        every = np.concatenate([prefixes, known[np.array(others, dtype=np.bool_)]])
        estimates = self.children(level, tables, every, 0).ravel()
        if level.functions:
            estimates = self.resolved(tables, every, estimates, least)
        return estimates[: len(prefixes)]

    def confusion(self, level: Level, tables: list[PartEstimates]) -> float:
        """Return the variance that sharing cells adds to an estimate; 0 without hashing."""
        if not level.functions:
            return 0.0
        # The sum of the others' squared frequencies over the number of cells. These squares are
        # estimated by those of the cells' frequencies, and taken three deviations higher
        cells = 1 << self.places
        squares = 0.0
        for table in tables:
            noise = float(self.parts[table.part].variance(table.users, 1 / cells))
            # E[estimate^2] is the squared frequency plus the noise: that is taken off. A sum of so
            # many squared normal errors has the deviation (2 cells)^(1/2) noise.
            squares += table.share * (
                float((table.frequencies**2).sum()) - cells * noise + 3 * np.sqrt(2 * cells) * noise
            )
        return min(max(squares, 0.0), 1.0) / (level.functions * (cells - 1))


def without_sharing(cells: list[tuple[float, Items]], estimates: Floats, heavy: Items) -> Floats:
    """Return estimates, (prefixes,), less what heavy ones add to all that share cells with them."""
    shared = np.zeros((len(estimates), len(heavy)))
    for share, mine in cells:
        shared += share * (mine[:, None] == mine[heavy])
    among = shared[heavy]
    np.fill_diagonal(among, 1 + 1e-9)  # two that share all cells are told apart by nothing
    frequencies = np.linalg.solve(among, estimates[heavy])
    result: Floats = estimates - shared @ frequencies
    result[heavy] = frequencies
    return result


# ------------------------------------------------------------------------------------------------
# Prefixes of the words of long texts: a channel, and the walk down the tree of what is possible.
#
# A word that has ended is decided by every longer prefix: so all who report on longer ones count
# for its frequency. Few users are asked about the ends of long words.


#: The number of bits of the shortest prefixes, and the step from each to the next longer one.
_FIRST, _STEP = 16, 12

_FUNCTIONS = 8  # the number of public hash functions of each length

_PLACES = 12  # the largest number of bits of a hash

# The most counts that the server keeps for each value of a hash: where local hashing would need
# more, a hash takes fewer values, down to so few that randomised response is best for them.
_CELLS = 8

# The number of the most frequent prefixes that are looked at, and the most that are kept.
_RESOLVED = 1 << 10


@dataclass(frozen=True)
class SpeltPrefixes(Prefixes):
    """A mixture where an oracle reports a hashed random prefix of a text's word: see `Prefixes`."""

    largest_domain: ClassVar[int] = 1 << 1024

    @classmethod
    def of(cls, spelling: Spelling, epsilon: float | Rational, seed: int) -> SpeltPrefixes:
        """Return the channel for texts, whose i-th length gets users in proportion to 1 / i."""
        lengths = (*range(_FIRST, spelling.most, _STEP), spelling.most)
        # So what a word of i lengths is found by is, up to a logarithm, what it would be if all
        # users were asked about these lengths alone, for each i
        total = sum(Fraction(1, i + 1) for i in range(len(lengths)))
        probabilities = tuple(Fraction(1, i + 1) / total for i in range(len(lengths)))
        domain = 1 << (64 * spelling.limbs)
        sizes = [
            cls(domain, epsilon, lengths, probabilities, OLH, 0, places, _FUNCTIONS, seed, True)
            for places in range(_PLACES, 0, -1)
        ]
        return next(channel for channel in sizes if channel.cells <= _CELLS << channel.places)

    @property
    def cells(self) -> int:
        """The number of counts that the server keeps of the reports on each hash function."""
        return math.prod(self._oracle(1 << self.places).counts_shape)

    @cached_property
    def _limbs(self) -> int:
        return self.bits // 64

    def items_of(self, values: Any) -> Items:
        # Words, as `Spelling.words` makes them of the users' texts
        rows: Any = values
        if not isinstance(rows, np.ndarray) or rows.dtype != np.uint64 or rows.ndim != 2:
            raise ValueError("expected words of texts: numpy.ndarray of uint64, one row a user")
        if rows.shape[1] != self._limbs:
            raise ValueError(f"words have {self._limbs} limbs, got {rows.shape[1]}")
        return rows

    @cached_property
    def _hashes(self) -> Mapping[int, LinearHash]:
        return {
            part: LinearHash(f"spelt prefix {part}", self.seed, self.places, -(-level.length // 64))
            for level in self.levels
            for part in level.parts
        }

    def part_expression(self, part: int) -> list[Any]:
        return ["spelt", self._level_of[part].length, self._hashes[part].text, self.places]

    def part_items(self, part: int, items: Items) -> Items:
        limb, rest = divmod(self._level_of[part].length, 64)
        prefixes = np.asarray(items).astype(np.uint64)
        if rest:
            prefixes[:, limb] &= np.uint64((1 << 64) - (1 << (64 - rest)))
        return self._hashes[part](prefixes)

    def _attack_items(self) -> list[Items]:
        words: Any = np.zeros((4, self._limbs), dtype=np.uint64)
        words[:, 0] = (0, (1 << 64) - 1, 1 << 63, 1 << 62)
        return [words[list(three)] for three in ((0, 1, 2), (0, 2, 1), (0, 2, 3))]

    def extended(self, level: Level, parents: Words, step: int) -> tuple[Words, Words]:
        return parents, Spelling.ends(self._limbs, step, level.length)

    def resolved(
        self, tables: list[PartEstimates], prefixes: Words, estimates: Floats, least: float
    ) -> Floats:
        return self.peeled(tables, prefixes, estimates, least)[0]

    def peeled(
        self, tables: list[PartEstimates], prefixes: Words, estimates: Floats, least: float
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return as `resolved`, where many seem heavy by sharing a cell with a heavy prefix.

        The heaviest are taken first, and their shares from all others; then the next ones, as long
        as any are heavy without what the heavier ones add to them.
        Shapes: `prefixes` (prefixes, limbs), `estimates` (prefixes,); returns (prefixes,).
        """
        cells = self.cells_of(tables, prefixes)
        heavy, result = np.zeros(len(prefixes), dtype=np.bool_), estimates.copy()
        while True:
            waiting = np.where(heavy, -np.inf, result)
            top = float(waiting.max(initial=-np.inf))
            if top < least or heavy.sum() >= _RESOLVED:
                return result, heavy
            # Those within a factor of two of the heaviest. A cell that is shared under one of eight
            # functions adds an eighth of a heavy frequency: what seems heavy by that alone waits
            # until it has been subtracted.
            heavy |= waiting >= max(least, top / 2)
            result = without_sharing(cells, estimates, np.flatnonzero(heavy))

    def without(
        self, tables: list[PartEstimates], prefixes: Words, held: Floats
    ) -> list[PartEstimates]:
        """Return the tables of all users but those with some prefixes, held by these fractions."""
        rest = []
        for table in tables:
            cells = self._hashes[table.part](prefixes)
            less = np.bincount(cells, weights=held, minlength=len(table.frequencies))
            rest.append(table._replace(frequencies=table.frequencies - less))
        return rest


class Reached(NamedTuple):
    """The knowledge of the prefixes of one length."""

    level: Level
    users: int  # reports on it; without any the other fields say nothing
    tables: list[PartEstimates]
    known: Words  # shape (known, limbs): prefixes, among them all that may be heavy
    errors: ItemErrors
    heavy: float  # what hardly any estimate of a prefix that nobody has exceeds, of those looked at


class Walk:
    """The walk down the tree of prefixes, from the reports on each length.

    Shapes: ``words`` (words, limbs), of the texts that were reached; ``ends`` (words,), the number
    of the first length at which each has ended.
    """

    def __init__(
        self,
        channel: SpeltPrefixes,
        spelling: Spelling,
        aggregate: Aggregate,
        population: int,
        kept: int,
    ) -> None:
        self.channel, self.spelling, self.population = channel, spelling, population
        # So many prefixes of each length are kept; more where more are heavy
        self._kept, self._reached = kept, list[Reached]()
        self.considered, self.gates = 0, list[Gate]()
        frontier, length, settled = spelling.root, 0, spelling.root.rows[:0]
        words, ends = [settled], [np.zeros(0, dtype=np.int64)]
        for number, level in enumerate(channel.levels):
            users = channel.level_users(aggregate, level)
            tables = channel.tables(aggregate, level)
            confusion = channel.confusion(level, tables) if users else 0.0
            oracle = channel.parts[level.first]
            errors = ItemErrors.of(oracle, max(users, 1), population, confusion)
            if not users:  # and so nothing longer is found
                frontier = frontier.only(slice(0))
            step = level.length - length
            considered = len(frontier.nodes) << step
            least = errors.beyond(ACCIDENT / max(considered, _RESOLVED))
            reached = Reached(level, users, tables, settled, errors, least)
            children, estimates = self._step(reached, frontier, step)
            known = np.concatenate([children.rows, settled])
            self._reached.append(reached._replace(known=known))
            ended = children.ended
            words.append(children.rows[ended])
            ends.append(np.full(int(ended.sum()), number))
            heavy = ended & (estimates >= least)
            settled = np.concatenate([settled, children.rows[heavy]])
            frontier, length = children.only(~ended), level.length
        self.words, self.ends = np.concatenate(words), np.concatenate(ends)
        reporting = np.array([reached.users for reached in self._reached], dtype=np.float64)
        #: Shape (lengths,): how many reported on each length or a longer one.
        self.users = np.cumsum(reporting[::-1])[::-1]

    def _step(self, reached: Reached, parents: Prefixed, step: int) -> tuple[Prefixed, Floats]:
        """Return the children of prefixes that are kept, and their estimates."""
        channel, (level, _, tables, settled, errors, least) = self.channel, reached
        nodes, used = self.spelling.children(parents, step)
        good = nodes >= 0
        if not good.any():
            self.gates.append(Gate(np.inf, errors.deviation))
            return Prefixed(parents.rows[:0], nodes[:0, 0], used[:0, 0]), np.zeros(0)
        self.considered += int((nodes == 1).sum())
        every = np.flatnonzero(good)
        ends = Spelling.ends(channel.bits // 64, step, level.length)

        def rows(places: Items) -> Words:
            return np.asarray(parents.rows[places >> step] | ends[places & ((1 << step) - 1)])

        values = channel.children(level, tables, parents.rows, step).ravel()[every]
        some = _largest(values, max(_RESOLVED, self._kept))
        # Heavy prefixes add to all that share a cell: who they are is found first, and then what is
        # left without them.
        first = np.concatenate([rows(every[some]), settled])
        among_settled = channel.children(level, tables, settled, 0).ravel()
        raw = np.concatenate([values[some], among_settled])
        solved, heavy = channel.peeled(tables, first, raw, least)
        if heavy.any():
            frequencies = solved[heavy]
            left = channel.without(tables, first[heavy], frequencies)
            rest = 1 - float(frequencies.sum())
            values = channel.children(level, left, parents.rows, step, rest).ravel()[every]
            values[some[heavy[: len(some)]]] = solved[: len(some)][heavy[: len(some)]]
        kept = max(self._kept, min(2 * int(heavy.sum()), _RESOLVED))
        chosen = _largest(values, kept)
        cut = float(values[chosen].min()) if len(chosen) < len(values) else -np.inf
        self.gates.append(Gate(cut, errors.deviation))
        places = every[chosen]
        return Prefixed(rows(places), nodes.ravel()[places], used.ravel()[places]), values[chosen]

    def errors(self, number: int) -> ItemErrors:
        """Return the errors of estimates of words that end at a length, by its number."""
        later = self._reached[number:]
        users = np.array([reached.users for reached in later], dtype=np.float64)
        confusion = np.array([reached.errors.confusion for reached in later])
        oracle = self.channel.parts[later[0].level.first]
        pooled = float((users**2 * confusion).sum()) / max(users.sum(), 1.0) ** 2
        return ItemErrors.of(oracle, int(users.sum()), self.population, pooled)

    def estimated(self, words: Words, ends: Items) -> Floats:
        """Return the estimates of words from all who report on prefixes that decide them.

        Shapes: `words` (words, limbs), `ends` (words,); returns (words,).
        """
        total = np.zeros(len(words))
        for number, reached in enumerate(self._reached):
            mine = ends <= number
            if reached.users and mine.any():
                estimates = self.channel.estimated(
                    reached.level, reached.tables, reached.known, reached.heavy, words[mine]
                )
                # Weighted by users: the variances of all lengths are nearly the same for each.
                total[mine] += reached.users * estimates
        with np.errstate(invalid="ignore"):
            return total / self.users[ends]

    def ends_of(self, words: Words) -> npt.NDArray[np.int64]:
        """Return the number of the first length at which each word has ended."""
        return np.searchsorted(self.channel.lengths, self.spelling.bits(words))


def _largest(estimates: Floats, count: int) -> Items:
    """Return the places of the largest estimates."""
    if count >= len(estimates):
        return np.arange(len(estimates))
    return np.argpartition(-estimates, count - 1)[:count]
