"""Prefixes of the words of long texts: a channel, and the walk down the tree of what is possible.

A word that has ended is decided by every longer prefix: so all who report on longer ones count for
its frequency. Few users are asked about the ends of long words.
"""

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
from frequency.core import Aggregate
from frequency.heavy.error_bound import ItemErrors
from frequency.heavy.found import Gate
from frequency.heavy.prefixes import ACCIDENT, Level, PartEstimates, Prefixes, without_sharing
from frequency.heavy.spelling import Prefixed, Spelling
from frequency.oracles import OLH
from mechdesign.base import Floats, Items, Rational, Words

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

    def attack_items(self) -> list[Items]:
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
