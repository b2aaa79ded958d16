"""Prefixes: a channel over random prefixes of an item, and the estimates of any prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from frequency.algebra import LinearHash
from frequency.core import Aggregate, Mixture, Oracle, json_integer, weights_of
from frequency.oracles import GRR
from mechdesign.base import Floats, Items, Words

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
