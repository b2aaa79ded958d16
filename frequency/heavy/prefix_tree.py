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

from frequency.core import Aggregate, Protocol, Reports, json_integer, local_privacy
from frequency.heavy.error_bound import ItemErrors
from frequency.heavy.found import Found, Gate
from frequency.heavy.listing import Universe, listed, listed_texts, nothing
from frequency.heavy.prefixes import ACCIDENT, Prefixes, SpeltPrefixes, Walk
from frequency.heavy.spelling import LONGEST
from frequency.oracles import HRR, OLH, checked_size
from mechdesign.base import Floats, Rational, Words, is_whole, set_fields, shown, whole

# ------------------------------------------------------------------------------------------------
# HeavyHitterProtocol: the base of protocols that list frequent items.


@dataclass(frozen=True)
class HeavyHitterProtocol(Protocol):
    """A protocol that lists the frequent items of a universe too large to list.

    Every user has an integer or a string, and sends one report.

    Parameters
    ----------
    bits : int
        The length of an item, 1 .. 64: items are the integers 0 .. 2^bits - 1.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    text : bool, default False
        True: items are strings of up to bits / 8 bytes of UTF-8.

    Raises
    ------
    ValueError
        What the protocol cannot do.
    """

    bits: int
    epsilon: float | Rational
    text: bool = False

    #: The length in bytes of the longest strings that the protocol takes.
    longest_text: ClassVar[int] = 8

    def __post_init__(self) -> None:
        set_fields(self, bits=self.universe.bits)
        if self.bits > 8 * self.longest_text:
            raise ValueError(
                f"{type(self).__name__} takes strings of at most {self.longest_text} bytes, which"
                f" are {8 * self.longest_text} bits, got {self.bits} bits; PrefixExtension takes"
                f" longer ones"
            )
        if hasattr(self, "seed"):
            set_fields(self, seed=checked_size("seed", self.seed, 0))
        local_privacy(self.epsilon)  # refuses what is no epsilon, before sizes are computed from it
        _ = self.channel

    @cached_property
    def universe(self) -> Universe:
        """The universe of items."""
        return Universe(self.bits, self.text)

    @property
    def takes(self) -> dict[str, Any]:
        if self.universe.spelling is not None:
            return self.universe.spelling.described
        if self.text:
            return {"kind": "string", "bytes": self.bits // 8}
        return {"kind": "item", "size": json_integer(self.universe.size)}

    def items_of(self, values: Any) -> Words:
        return self.universe.words(values)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters that client and server must agree on."""
        return {
            "protocol": type(self).__name__,
            "text": self.text,
            "channel": self.channel.parameters,
        }

    def find(
        self,
        reports: Reports | Aggregate,
        k: int | None = None,
        threshold: float | None = None,
        confidence: float = 0.95,
        population: int | None = None,
    ) -> Found:
        """Return the most frequent items.

        Parameters
        ----------
        reports : structured numpy.ndarray or Aggregate
            Reports, or what they were aggregated to.
        k : int, optional
            At most so many items, at least 1. Of long items prefixes find some ten thousand.
        threshold : float, optional
            The least estimated frequency, a fraction of the users. Neither: a threshold that noise
            alone would exceed nowhere with probability ``confidence`` (`Found.noise`).
        confidence : float, default 0.95
            Of the intervals and of the default threshold, strictly between 0 and 1.
        population : int, optional
            How many users there are, if only a random part of them reported; None: all did.

        Returns
        -------
        Found
            The items, most frequent first, with their errors and what may be missing.

        Raises
        ------
        ValueError
            For a k, threshold or confidence out of range, before any work.
        InvalidReport, IncompatibleAggregate
            For what is not of this protocol.
        """
        check_request(k, threshold, confidence)
        aggregate = self.aggregated(reports)
        users = aggregate.n if population is None else population
        return self._find(aggregate, users, k, threshold, confidence)

    @abstractmethod
    def _find(
        self,
        aggregate: Aggregate,
        population: int,
        k: int | None,
        threshold: float | None,
        confidence: float,
    ) -> Found:
        """Return the same, for checked arguments and reports from a part of a ``population``."""


def check_request(k: int | None, threshold: float | None, confidence: float) -> None:
    """Refuse what `HeavyHitterProtocol.find` cannot be asked for."""
    if k is not None:
        whole(k, "k", 1, what="a number of items")
    if threshold is not None and not (
        isinstance(threshold, (int, float, np.number)) and 0 <= threshold <= 1
    ):
        raise ValueError(
            f"threshold must be a fraction of the users, 0 to 1, got {shown(threshold)}"
        )
    if not isinstance(confidence, (int, float, np.number)) or not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {shown(confidence)}")


# The number of prefixes that the server estimates for each length, in a second or two.
_BUDGET = 1 << 21

# The least number of the most frequent prefixes that are looked at once confusion by hashing is
# resolved.
_RESOLVED = 1 << 10

# The most prefixes that are estimated at a level for the sake of a large k.
_MOST_CHILDREN = 1 << 24

FEWEST_TEXTS = 1 << 7  #: The least number of prefixes of long texts that are kept.

_LISTED = 20  # the longest prefixes whose frequencies are estimated all, in bits

#: The most bits that a prefix is extended by, and the most if the user wishes.
_STEP, _LONGEST_STEP = 12, 16

_POWER = 1.645  # the deviations above a cut at which an item passes it with probability 95 %


class PrefixProtocol(HeavyHitterProtocol):
    """A walk down the tree of prefixes: see the module."""

    @property
    @abstractmethod
    def channel(self) -> Prefixes:
        """The channel by which an item becomes a report."""

    def _walk(self, aggregate: Aggregate, population: int, kept: int) -> Iterator[Step]:
        """Yield a step for each level, as far as there are reports."""
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
            # Heavy: more than noise explains of any of the prefixes considered (union bound). Only
            # these are taken for real when confusion by shared cells is resolved.
            cut, heavy = -np.inf, errors.beyond(ACCIDENT / considered)
            if level.functions:
                if considered > max(_RESOLVED, kept):
                    prefixes, estimates, cut = _largest(prefixes, estimates, max(_RESOLVED, kept))
                estimates = channel.resolved(tables, prefixes, estimates, heavy)
            # A beam search: whoever holds an item holds its prefixes, so that these are at least as
            # frequent, and a frequent item is lost by noise only, which `Gate` accounts for.
            if len(prefixes) > kept:
                prefixes, estimates, least = _largest(prefixes, estimates, kept)
                cut = max(cut, least)
            estimated = partial(channel.estimated, level, tables, prefixes, heavy)
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
            considered=last.considered,
            errors=last.errors,
            gates=gates,
            k=k,
            threshold=threshold,
            confidence=confidence,
            estimated=last.estimated,
        )


class Step(NamedTuple):
    """A step: the prefixes that are left of a level, and their estimates."""

    prefixes: Words  # shape (kept,)
    estimates: Floats  # shape (kept,)
    considered: int  # how many prefixes were looked at
    cut: float  # what estimates had to reach
    errors: ItemErrors
    estimated: Callable[[Words], Floats]  # any other prefixes of this length to their estimates


def _kept(lengths: Sequence[int], k: int = 0) -> int:
    """Return the number of prefixes of each length that are kept.

    As many as the budget lets the server extend, or more for the sake of k items.
    """
    step = max((later - earlier for earlier, later in pairwise(lengths)), default=0)
    return max(64, min(_RESOLVED, _BUDGET >> step), min(2 * k, _MOST_CHILDREN >> step))


def _largest(prefixes: Words, estimates: Floats, count: int) -> tuple[Words, Floats, float]:
    """Return the ``count`` prefixes with the largest estimates, these, and the least of them."""
    chosen = np.argpartition(-estimates, count - 1)[:count]
    return prefixes[chosen], estimates[chosen], float(estimates[chosen].min())


@dataclass(frozen=True)
class PrefixExtension(PrefixProtocol):
    """PEM, the prefix extending method, for items of up to 64 bits.

    Source: Wang, Li, Jha, IEEE TDSC 2021.

    The fewer lengths, the more users for each: the first is what can be listed whole, up to 20
    bits, and the next ones are as few and as far apart as the server can extend. Items of up to 20
    bits need no prefixes: then this is `frequency.OLH`, with no loss to the splitting of users.
    Each length gets users in proportion to the square of the deviations that an item must stand out
    by: what keeps its prefix among those that are kept, and what finds the item in the end.

    Parameters
    ----------
    bits : int
        The length of an item, 1 .. 64; of strings up to 512. See `HeavyHitterProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    text : bool, default False
        True: items are strings of up to bits / 8 bytes of UTF-8.
    lengths : tuple of int, optional
        Prefix lengths, increasing, the last one ``bits``; None: as said. Those of strings of more
        than 8 bytes are not to be chosen.
    seed : int, default 0
        Of the public hash functions.

    Raises
    ------
    ValueError
        A parameter out of range.

    Examples
    --------
    >>> import numpy as np
    >>> protocol = PrefixExtension(bits=16, epsilon=3.0)
    >>> values = np.repeat([7, 40_000, 9], [6_000, 3_000, 1_000])
    >>> reports = protocol.privatize(values, np.random.default_rng(1))
    >>> protocol.find(protocol.aggregate(reports), k=2).items.tolist()
    [7, 40000]

    Strings of more than 8 bytes are spelt by a code, in which frequent letters take four or five
    bits. There are many lengths, and few users report on the longest ones; but all who report on
    longer prefixes than a string has count for its frequency. So for short strings little is lost.

    >>> protocol = PrefixExtension(bits=512, epsilon=4.0, text=True)
    >>> names = ["Reykjavík"] * 6_000 + ["Kópavogur"] * 4_000
    >>> found = protocol.find(protocol.privatize(names, np.random.default_rng(1)))
    >>> found.items.tolist()
    ['Reykjavík', 'Kópavogur']
    """

    longest_text: ClassVar[int] = LONGEST
    privacy_source: ClassVar[str] = "Wang, Li and Jha 2021"

    lengths: tuple[int, ...] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.lengths is not None:
            given = tuple(self.lengths)
            if self.universe.spelling is not None:
                raise ValueError("lengths are not to be chosen for strings of more than 8 bytes")
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
        """The channel by which an item becomes a report."""
        if self.universe.spelling is not None:
            return SpeltPrefixes.of(self.universe.spelling, self.epsilon, self.seed)
        lengths = self.lengths or _far_apart(self.universe.bits)
        deviations = []
        considered, kept = 1 << lengths[0], _kept(lengths)
        for step in (*(later - earlier for earlier, later in pairwise(lengths)), 0):
            # The quantile of noise among the prefixes considered that an item has to stand above:
            # to be among those kept, and at the end above all others.
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

    def _find(
        self,
        aggregate: Aggregate,
        population: int,
        k: int | None,
        threshold: float | None,
        confidence: float,
    ) -> Found:
        channel, spelling = self.channel, self.universe.spelling
        if spelling is None or not isinstance(channel, SpeltPrefixes):
            return super()._find(aggregate, population, k, threshold, confidence)
        walk = Walk(channel, spelling, aggregate, population, _kept_texts(k or 0))
        return listed_texts(self.universe, walk, k, threshold, confidence)


def _kept_texts(k: int) -> int:
    """Return the number of prefixes of each length to keep of long texts, for k items."""
    # Twice as many, within `FEWEST_TEXTS` and as many as confusion by hashing is resolved for
    return max(FEWEST_TEXTS, min(2 * k, _RESOLVED))


def _far_apart(bits: int) -> tuple[int, ...]:
    """Return a first length that can be listed, and equal steps of at most `_STEP` bits."""
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
        """The channel by which an item becomes a report."""
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
