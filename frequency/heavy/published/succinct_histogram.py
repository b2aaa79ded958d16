"""PROT-S-Hist: copies of the protocol for a unique heavy hitter, and a frequency oracle."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.algebra import MOST_FUNCTIONS, Coins, LinearHash, TruthOrLie, uniform
from frequency.algebra import Code as Code
from frequency.core import (
    Aggregate,
    Channel,
    Estimate,
    JointLaw,
    Reports,
    Sample,
    SignSum,
    Step,
    checked_users,
    independent,
    json_integer,
    local_privacy,
    of_two_likelihoods,
    product_law,
    signs,
    smallest_integer,
    two_likelihoods,
)
from frequency.heavy.error_bound import ItemErrors, null_of_signs
from frequency.heavy.found import Found
from frequency.heavy.listing import listed, nothing
from frequency.heavy.prefix_tree import HeavyHitterProtocol
from frequency.heavy.published.unique_heavy_hitter import CodeGate, code_of
from frequency.oracles import JLOracle
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw
from mechdesign.base import BitSource, Floats, Items, Words, set_fields, shown, whole
from mechdesign.symbolic.proof_rules import (
    BudgetShare,
    CompositionProof,
    PublicDrawProof,
    Randomiser,
    in_either,
    unchanged,
)

LARGEST_STATE = 1 << 27  #: The largest number of sums of signs that the server keeps.

#: The most signs that all users together tell, where the sizes are chosen: the server adds up so
#: many in some seconds.
MOST_SIGNS = 1 << 28

MOST_HASHES = 1 << 10  #: The most hash functions that divide epsilon.

_AT_ONCE = 1 << 22  # the number of signs that are drawn at a time, about

# The number of channels that are chosen among in any case, however many users there are.
_FEWEST = 64

# The shares of an item's holders that others in its channel may be: see `ChannelsGate`.
_SHARES = np.arange(1, 20) / 20


@dataclass(frozen=True)
class Channels(Channel):
    """Signs in each of ``hashes`` times ``channels`` channels, and a sign for the oracle.

    Source: Bassily and Smith, STOC 2015, Algorithm 7. For each of the public hash functions the
    user's item falls into one channel. There the user tells a sign of its codeword by the basic
    randomiser, in all other channels a fair coin. Two items that fall into different channels
    differ there by p / (1/2) and (1/2) / q at most, together by p / q: each of ``hashes`` pairs of
    channels, and the oracle's sign, costs what one sign does, so that each is told at epsilon /
    (hashes + 1).
    """

    privacy_source: ClassVar[str] = "succinct histograms, Theorem 3.4"

    code: Code  # of the items
    hashes: int  # T, the number of public hash functions
    channels: int  # K, of each of them: a power of two
    rows: int  # of the oracle's matrix
    seed: int  # of the public functions
    text: bool = False  # whether items are strings

    largest_domain: ClassVar[int] = 1 << 64

    @cached_property
    def oracle(self) -> JLOracle:
        """The frequency oracle, at its share of epsilon: a little less, since shares are floats."""
        share = self.privacy.epsilon / (self.hashes + 1) * (1 - 2.0**-40)
        return JLOracle(self.domain, share, rows=self.rows, seed=self.seed)

    @cached_property
    def _choice(self) -> TruthOrLie:
        return TruthOrLie.within(self.oracle.max_ratio, 2)  # channels have the same share

    @property
    def contrast(self) -> float:
        """The contrast: the mean of a reported sign times the true one."""
        return float(self._choice.p - self._choice.q)

    @cached_property
    def _hash(self) -> tuple[LinearHash, ...]:
        return tuple(
            LinearHash(f"channel {t}", self.seed, self.channels.bit_length() - 1)
            for t in range(self.hashes)
        )

    def channel_of(self, words: Words) -> npt.NDArray[np.int64]:
        """Return each word's channel by each hash function, numbered through: (words, hashes)."""
        return np.stack(
            [t * self.channels + hash_(words) for t, hash_ in enumerate(self._hash)], axis=1
        )

    @property
    def _all(self) -> int:
        return self.hashes * self.channels

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        index = smallest_integer(self.code.length - 1)
        return np.dtype(
            [
                ("index", index, (self._all,)),
                ("sign", "i1", (self._all,)),
                ("oracle", self.oracle.report_dtype),
            ]
        )

    @property
    def report_bits(self) -> int:
        return self._all * ((self.code.length - 1).bit_length() + 1) + self.oracle.report_bits

    @property
    def batch_size(self) -> int:
        return max(1, _AT_ONCE // self._all)

    def _details(self) -> dict[str, Any]:
        return {
            "code": [self.code.bits, self.code.symbol],
            "hashes": self.hashes,
            "channels": self.channels,
            "rows": self.rows,
            "seed": self.seed,
            "text": self.text,
            "truth": str(self._choice.truth),
            "lie": str(self._choice.lie),
        }

    @property
    def client_half(self) -> Step:
        return {
            "do": "channels",
            "channels": self.channels,
            "length": self.code.length,
            "lie": json_integer(self._choice.lie),
            "texts": [hash_.text for hash_ in self._hash],
            "code": self.code.described,
            "width": self.report_dtype["index"].base.itemsize,
            "oracle": self.oracle.client_half,
        }

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        users, words = len(items), items.astype(np.uint64)
        reports["index"] = uniform(users * self._all, self.code.length, source).reshape(
            users, self._all
        )
        reports["sign"] = 1 - 2 * uniform(users * self._all, 2, source).reshape(users, self._all)
        row = np.arange(users)
        for mine in self.channel_of(words).T:
            minus = self.code.minus(
                words, reports["index"][row, mine].astype(np.int64)
            ) ^ self._choice.draw(users, source)
            reports["sign"][row, mine] = 1 - 2 * minus
        self.oracle.fill(items, reports["oracle"], source)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        good = (reports["index"] < self.code.length) & (
            (reports["sign"] == 1) | (reports["sign"] == -1)
        )
        return good.all(axis=1) & self.oracle.possible(reports["oracle"])

    # The counts are the sums of signs of each place of each channel, and then those of the oracle's
    # rows.

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self._all * self.code.length + self.rows,)

    def sums(self, aggregate: Aggregate) -> npt.NDArray[np.int64]:
        """Return the sums of signs of each channel: shape (hashes * channels, code length)."""
        return aggregate.counts[: -self.rows].reshape(self._all, self.code.length)

    def of_oracle(self, aggregate: Aggregate) -> Aggregate:
        """Return the aggregate of what was told to the oracle."""
        return Aggregate(self.oracle.signature, aggregate.n, aggregate.counts[-self.rows :])

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        counts = np.zeros(self.counts_shape, dtype=np.int64)
        first = np.arange(self._all) * self.code.length
        for start in range(0, len(reports), self.batch_size):
            part = reports[start : start + self.batch_size]
            place, sign = (first + part["index"]).ravel(), part["sign"].ravel()
            counts[: -self.rows] += np.bincount(
                place, weights=sign, minlength=len(counts) - self.rows
            ).astype(np.int64)
        counts[-self.rows :] = self.oracle.counts_of(reports["oracle"])
        return counts

    @property
    def sign_sums(self) -> tuple[SignSum, ...]:
        places = self._all * self.code.length
        oracle = (part.within(places, None) for part in self.oracle.sign_sums)
        return (SignSum(0, places, self._all), *oracle)

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        # Given the items, channels are independent, and so are places.
        words, every = items.astype(np.uint64), np.arange(self.code.length)
        mine, even = self.channel_of(words), np.full(len(every), 1 / len(every))
        idle = np.full(self._all, counts.sum())
        np.subtract.at(idle, mine, counts[:, None])
        reported = rng.multinomial(idle, even)
        sums = 2 * rng.binomial(reported, 0.5) - reported
        p, q = float(self._choice.p), float(self._choice.q)
        step = max(1, _AT_ONCE // (self.hashes * len(every)))
        for start in range(0, len(items), step):
            some = slice(start, start + step)
            minus = self.code.minus(words[some, None], every)
            for cells in mine[some].T:
                reported = rng.multinomial(counts[some], even)
                signs = 2 * rng.binomial(reported, np.where(minus, q, p)) - reported
                np.add.at(sums, cells, signs)
        of_oracle = self.oracle.simulated_counts(items, counts, rng)
        return np.concatenate([sums.ravel(), of_oracle.ravel()])

    def consistent(self, aggregate: Aggregate) -> bool:
        total = np.abs(self.sums(aggregate)).sum(axis=1)
        good = (total <= aggregate.n) & ((aggregate.n - total) % 2 == 0)
        return bool(good.all()) and self.oracle.consistent(self.of_oracle(aggregate))

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        # One sign in every channel, nearly all of them fair coins: their small correlations are
        # left out.
        sample = signs(n, counts[: -self.rows], 1 / self.code.length)
        sample = sample._replace(
            spread=sample.spread - (counts[: -self.rows] / max(n, 1)) ** 2, common=None
        )
        return [sample, *self.oracle.samples(n, counts[-self.rows :])]

    # With public coins the idle channels' signs need not be told: they are the coins.

    @property
    def likelihoods(self) -> tuple[tuple[Any, ...], ...]:
        lie, truth = self._choice.likelihoods
        return (tuple(truth**k * lie ** (self.hashes + 1 - k) for k in range(self.hashes + 2)),)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        for start in range(0, len(coins), self.batch_size):
            end = start + self.batch_size
            index, sign = self._coins(coins[start:end], np.arange(self._all)[None])
            reports["index"][start:end], reports["sign"][start:end] = index, sign
        reports["oracle"] = self.oracle.blank(coins.after(self._all))
        return reports

    def _coins(self, coins: Coins, channels: npt.NDArray[np.int64]) -> tuple[Items, Items]:
        """Return what the coins say in some channels: places and signs."""
        index = coins.uniform(channels, 2 * self.code.length)
        return index >> 1, 1 - 2 * (index & 1)

    def likelihood(self, reports: Reports, items: Items) -> Items:
        mine, row = self.channel_of(items.astype(np.uint64)), np.arange(len(items))[:, None]
        index, sign = reports["index"][row, mine].astype(np.int64), reports["sign"][row, mine]
        return self._agreements(items, index, sign) + self.oracle.likelihood(
            reports["oracle"], items
        )

    def coins_likelihood(self, coins: Coins, items: Items) -> Items:
        # Only the item's own channels matter: a client computes `hashes` of the coins' signs and
        # not all.
        index, sign = self._coins(coins, self.channel_of(items.astype(np.uint64)))
        return self._agreements(items, index, sign) + self.oracle.coins_likelihood(
            coins.after(self._all), items
        )

    def _agreements(self, items: Items, index: Items, sign: npt.NDArray[Any]) -> Items:
        minus = self.code.minus(items.astype(np.uint64)[:, None], index)
        return (sign == 1 - 2 * minus).sum(axis=1)

    def joint_law(self, items: Items) -> JointLaw:
        mine = self.channel_of(items.astype(np.uint64)).T.tolist()
        return independent(
            [self.oracle.joint_law(items), *(self._of_channels(items, channel) for channel in mine)]
        )

    def _of_channels(self, items: Items, mine: list[int]) -> JointLaw:
        """Return the joint law of the signs in the items' channels of one hash function."""
        every = np.arange(self.code.length)
        minus = [self.code.minus(np.array([x]), every) for x in items.astype(np.uint64)]

        def together(chosen: tuple[int, ...]) -> Fraction:
            chance = Fraction(1)
            for channel in {mine[k] for k in chosen}:  # with signs of their own
                first, *others = (minus[k] for k in chosen if mine[k] == channel)
                alike = np.logical_and.reduce([first == first, *(first == sign for sign in others)])
                chance *= Fraction(int(alike.sum()), 2 * len(every))
            return chance

        return of_two_likelihoods(len(items), *self._choice.likelihoods, together)

    def dominating_law(self) -> PairLaw:
        # Of items that share all channels, with opposite codewords
        sign = two_likelihoods(*self._choice.likelihoods, Fraction(0))
        return product_law([self.oracle.dominating_law(), *[sign] * self.hashes])

    def audit(self) -> Audit:
        ratio = self._choice.ratio ** (self.hashes + 1)
        return Audit(
            ratio,
            self.max_ratio,
            "signs of 0 in its channels and the oracle, signs against 1 in 1's",
            (0, 1),
        )

    def proof(self) -> CompositionProof:
        # Whatever the public hash functions, an item has one channel of each
        share, places = Fraction(1, self.hashes + 1), self.code.length
        pair = in_either(name="signs of the channels of two items, one of them fair")
        idle = unchanged(Fraction(1, 2), Fraction(1, 2), name="a fair sign of any other channel")

        def at_places(signs: Randomiser, channels: int) -> PublicDrawProof:
            number = places**channels
            return PublicDrawProof(signs, ((number, Fraction(1, number)),), name="at random places")

        return CompositionProof(
            (
                BudgetShare(share, self.hashes, at_places(pair, 2)),
                BudgetShare(share, self.hashes * (self.channels - 2), at_places(idle, 1)),
                BudgetShare(share, 1, self.oracle.proof()),
            ),
            name=type(self).__name__,
            source=self.privacy_source,
        )


@dataclass(frozen=True)
class ChannelsGate:
    """A gate of isolation and decoding: an item is decoded in the channel of some hash function.

    Of ``channels``, pairwise independent hashing puts on average 1 / channels of all other users
    into an item's. Either nobody else is there (but for a probability of (1 - f) n / channels), or
    others hold at most a share s of what the item does (but for (1 - f) / (channels s f), Markov),
    and the codeword keeps 1 - s of its lead. That holds for any s and whatever the others hold, and
    is nearly what happens where these hold items a little less frequent than s f.
    """

    decoding: CodeGate  # of a single channel
    hashes: int
    channels: int  # of each hash function
    n: int  # reports

    def __call__(self, frequency: Floats) -> Floats:
        """Return at most the probability that an item of this frequency is in no channel's list."""
        f = np.asarray(frequency, dtype=np.float64)
        others = (1 - np.minimum(f, 1.0)) / self.channels
        alone = self.n * others + self.decoding(f)
        rivals = np.maximum(f, 1e-300)[..., None] * _SHARES
        # Markov's bound on the others' number, and the decoder with what is left of the lead
        ahead = others[..., None] / rivals + self.decoding(f[..., None] * (1 - _SHARES))
        missed = np.minimum(alone, ahead.min(axis=-1))
        # Hash functions are independent, and reports too given them: all have to fail.
        return np.minimum(1.0, missed) ** self.hashes


@dataclass(frozen=True)
class SuccinctHistogram(HeavyHitterProtocol):
    """PROT-S-Hist: a protocol with error of the least order in n, items and epsilon.

    Source: Bassily and Smith, STOC 2015, section 3.2, Algorithm 5.

    Public hash functions put items into channels, so that a frequent item is likely to be alone in
    one of its channels; there it is found as by `UniqueHeavyHitter`. What all channels name is
    looked up in a frequency oracle.

    Each hash function more divides epsilon further, each channel more is a sign more in every
    report. The sizes are chosen such that the least frequency that is found with probability 1 -
    beta (`least_frequency`), whatever the other users hold, is the least that n users can have
    found with 2^28 signs in all. `theory_sizes` are the paper's, n^(3/2) channels, with which a
    report is longer than anybody would send beyond a thousand users. `OneBit` sends one bit, and
    its clients compute only what their item decides.

    Parameters
    ----------
    bits : int
        The length of an item, 1 .. 64. See `HeavyHitterProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    text : bool, default False
        True: items are strings of up to bits / 8 bytes of UTF-8.
    n : int, default 1000
        How many users are expected: decides the defaults only, and what can be found.
    beta : float, default 0.05
        The probability to miss an item that the defaults are for, strictly between 0 and 1.
    hashes, channels, rows : int, optional
        T (at most 1024), K (a power of two, at least 2) and the rows of the oracle's matrix (at
        most 2^24); None: by n and beta.
    symbol : int, optional
        The symbols of the code, in bits: see `UniqueHeavyHitter`. None: the best with the other
        sizes, or `Code.best` where hashes and channels are given.
    soft : bool, default True
        Decode the sums themselves; False: round them to signs first.
    seed : int, default 0
        Of the public hash functions and the oracle's matrix.

    Raises
    ------
    ValueError
        For sizes that the server could not hold, or that are out of range; and for hashes or
        channels that are to be chosen where nothing can be found: the message says how many users,
        or which epsilon, it takes.

    Examples
    --------
    >>> protocol = SuccinctHistogram(16, 2.0, n=200_000)
    >>> protocol.channel.hashes, protocol.channel.channels, round(protocol.least_frequency, 3)
    (1, 1024, 0.064)
    """

    n: int = 1000
    beta: float = 0.05
    hashes: int | None = None
    channels: int | None = None
    rows: int | None = None
    symbol: int | None = None
    soft: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        set_fields(self, n=whole(self.n, "n", 1, 1 << 53, what="a number of users"))
        if not 0 < self.beta < 1:
            raise ValueError(
                f"beta must be a probability, strictly between 0 and 1, got {shown(self.beta)}"
            )
        for name, least, most in (
            ("hashes", 1, MOST_HASHES),
            ("channels", 2, LARGEST_STATE),
            ("rows", 1, MOST_FUNCTIONS),
        ):
            value = getattr(self, name)
            if value is not None:
                set_fields(self, **{name: whole(value, name, least, most)})
        if self.channels is not None and self.channels & (self.channels - 1):
            raise ValueError(f"channels must be a power of two, got {self.channels}")
        super().__post_init__()
        _ = self.channel.oracle

    @cached_property
    def channel(self) -> Channels:
        """The channel by which an item becomes a report."""
        hashes, channels, symbol = self.hashes, self.channels, self.symbol
        _require_room(hashes or 1, channels or 2, code_of(self.universe.bits, symbol))
        if hashes is None or channels is None:
            bits = self.universe.bits
            chosen = best_sizes(
                bits, self._loss, self.n, self.beta, hashes=hashes, channels=channels, symbol=symbol
            )
            hashes, channels, symbol = chosen
        code = code_of(self.universe.bits, symbol)
        _require_room(hashes, channels, code)
        rows = self.rows or _rows_of(self.universe.size, self._loss, self.n, self.beta, hashes)
        return Channels(
            self.universe.size,
            self.epsilon,
            code,
            int(hashes),
            int(channels),
            int(rows),
            self.seed,
            self.text,
        )

    @property
    def _loss(self) -> float:
        return float(local_privacy(self.epsilon).epsilon)

    @staticmethod
    def theory_sizes(n: int, beta: float = 0.05) -> tuple[int, int]:
        """Return the paper's numbers of hash functions and channels.

        Every item above the threshold is alone in some channel with probability 1 - beta / 3, by
        the union bound over the users: channels = n^(3/2), in powers of two.

        Parameters
        ----------
        n : int
            How many users are expected, at least 1.
        beta : float, default 0.05
            The probability of failure, strictly between 0 and 1.

        Returns
        -------
        tuple of (int, int)
            T and K.
        """
        channels = 1 << max(1, math.ceil(1.5 * math.log2(checked_users(n))))
        hashes = 1.0
        if channels > n:
            hashes += math.log(3 / beta) / max(math.log(channels / n), math.log(2))
        return math.ceil(hashes), channels

    @cached_property
    def expected(self) -> Found:
        """The list from n users, whatever they hold, as far as it is known beforehand: its recall.

        Confidence is 1 - beta, and the oracle's errors are those of the worst population.
        """
        return self._listed(
            np.zeros(0, dtype=np.uint64),
            np.zeros(0),
            self.n,
            population=self.n,
            moment=1.0,
            k=None,
            threshold=None,
            confidence=1 - self.beta,
        )

    @property
    def least_frequency(self) -> float:
        """The least frequency of an item that n users have found with probability 1 - beta.

        Whatever others hold, over hash functions and reports; infinite if nothing is sure.
        """
        return self.expected.complete_above

    def __str__(self) -> str:
        channel, least = self.channel, self.least_frequency
        sure = f"{100 * (1 - self.beta):g}%"
        guarantee = (
            f"an item held by {least:.2%} of them or more is found with probability {sure}"
            if math.isfinite(least)
            else f"nothing is found with probability {sure}"
        )
        return (
            f"{self!r}: {channel.hashes} x {channel.channels} channels of {channel.code.length}"
            f" signs; of {self.n} users {guarantee}"
        )

    @property
    def theory_threshold(self) -> float:
        """The threshold of Algorithm 5 for n: (T + 1) / eps sqrt(log d log(1 / beta) / n).

        T + 1 stands for the paper's 2 T + 1.
        """
        spread = math.log(self.universe.size) * math.log(1 / self.beta) / self.n
        return (self.channel.hashes + 1) / self._loss * math.sqrt(spread)

    def candidates(self, aggregate: Aggregate) -> Words:
        """Return the words that the channels' sums decode to.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.

        Returns
        -------
        numpy.ndarray of uint64
            Distinct words, ascending: those that some item can have.
        """
        words = np.unique(self.channel.code.decode(self.channel.sums(aggregate), self.soft))
        return words[self.universe.possible(words, self.bits)]

    def _find(
        self,
        aggregate: Aggregate,
        population: int,
        k: int | None,
        threshold: float | None,
        confidence: float,
    ) -> Found:
        channel, users = self.channel, aggregate.n
        if not users:
            return nothing(self.universe, confidence, population)
        words = self.candidates(aggregate)
        level = channel.of_oracle(aggregate)
        estimated = partial(_estimated, channel.oracle, level)
        return self._listed(
            words,
            estimated(words),
            users,
            population=population,
            moment=channel.oracle.second_moment(level),
            k=k,
            threshold=threshold,
            confidence=confidence,
            estimated=estimated,
        )

    def _listed(
        self,
        words: Words,
        estimates: Floats,
        users: int,
        *,
        population: int,
        moment: float,
        k: int | None,
        threshold: float | None,
        confidence: float,
        estimated: Callable[[Words], Floats] | None = None,
    ) -> Found:
        """Return the list of what the channels named, by its estimates from so many reports."""
        channel = self.channel
        contrast, confusion = float(channel.contrast), float(channel.oracle.confusion)
        # `moment` is the sum of the squared frequencies of all items
        errors = ItemErrors(
            users,
            population,
            partial(channel.oracle.variance, users, second_moment=0.0),
            partial(null_of_signs, 1 / contrast, users),
            confusion * moment,
        )
        decoding = CodeGate(channel.code, contrast, users, self.soft)
        gates = [ChannelsGate(decoding, channel.hashes, channel.channels, users)]
        size = self.universe.size
        return listed(
            self.universe,
            words,
            estimates,
            considered=size,
            errors=errors,
            gates=gates,
            k=k,
            threshold=threshold,
            confidence=confidence,
            estimated=estimated,
        )


def _estimated(oracle: JLOracle, told: Aggregate, words: Words) -> Floats:
    """Return the estimates of any words."""
    return Estimate(oracle, told, words.astype(np.int64)).frequencies


def _require_room(hashes: int, channels: int, code: Code) -> None:
    """Raise ValueError for more sums of signs than the server may keep."""
    if hashes * channels * code.length > LARGEST_STATE:
        raise ValueError(
            f"{hashes} times {channels} channels of {code.length} places are over"
            f" {LARGEST_STATE} sums: choose fewer channels"
        )


class Sizes(NamedTuple):
    """The sizes of a `SuccinctHistogram`."""

    hashes: int
    channels: int  # of each hash function
    symbol: int  # of the code, in bits


_LEAST = np.geomspace(1e-4, 1.0, 200)  # the frequencies by which sizes are compared


@lru_cache(maxsize=64)
def best_sizes(
    bits: int,
    epsilon: float,
    n: int,
    beta: float,
    *,
    hashes: int | None = None,
    channels: int | None = None,
    symbol: int | None = None,
) -> Sizes:
    """Return the sizes of up to 2^28 signs with which the least frequency is found."""
    # What is found is what `SuccinctHistogram.expected` says, for the decoding of sums. Of sizes
    # that find nearly as rare items, within a twentieth, the fewest channels are chosen
    choices = list(
        _findable(bits, epsilon, n, beta, hashes=hashes, channels=channels, symbol=symbol)
    )
    least = min((frequency for frequency, _ in choices), default=math.inf)
    if not math.isfinite(least):
        raise ValueError(
            f"{n} users are too few to find anything at epsilon {epsilon:g} with probability"
            f" {1 - beta:g}: it takes {_needed(bits, epsilon, n, beta)}; or give hashes and"
            " channels"
        )
    near = [(sizes.hashes * sizes.channels, f, sizes) for f, sizes in choices if f <= 1.05 * least]
    return min(near)[2]


def _findable(
    bits: int,
    epsilon: float,
    n: int,
    beta: float,
    *,
    hashes: int | None = None,
    channels: int | None = None,
    symbol: int | None = None,
    frequencies: Floats = _LEAST,
) -> Iterator[tuple[float, Sizes]]:
    """Yield sizes, and the least of some ascending frequencies found with them; inf if none."""
    for several in range(1, 9) if hashes is None else [hashes]:
        # (e^x - 1) / (e^x + 1) at the epsilon of each sign.
        contrast = math.tanh(epsilon / (2 * (several + 1)))
        rows = _rows_of(1 << bits, epsilon, n, beta, several)
        null = null_of_signs(1 / contrast, n, beta / (1 << bits))
        # The union bound over all 2^bits items; a sketch adds the confusion 1 / rows.
        noise = math.hypot(null, scipy.special.ndtri(beta / (1 << bits)) / math.sqrt(rows))
        deviation = np.sqrt((1 / contrast**2 - frequencies) / n + 1 / rows)
        lost = scipy.special.ndtr((noise - frequencies) / deviation)
        for code in _codes(bits, symbol):
            decoding = CodeGate(code, contrast, n)
            signs = several * max(n, code.length << 1)
            most = min(max(_FEWEST, MOST_SIGNS // signs), LARGEST_STATE // (several * code.length))
            for each in (
                [1 << place for place in range(1, most.bit_length())]
                if channels is None
                else [channels]
            ):
                missed = ChannelsGate(decoding, several, each, n)(frequencies) + lost
                good = missed <= beta
                least = float(frequencies[int(np.argmax(good))]) if good.any() else math.inf
                yield least, Sizes(several, each, code.symbol)


def _codes(bits: int, symbol: int | None) -> list[Code]:
    """Return the codes of these symbols, or of all that have room for the blocks."""
    if symbol is not None:
        return [Code(bits, symbol)]
    room = [s for s in range(1, 9) if 2 * -(-bits // s) <= 1 << s]
    return [Code(bits, s) for s in room]


def _needed(bits: int, epsilon: float, n: int, beta: float) -> str:
    """Return how many users, or which epsilon, it takes to find the item that all users hold."""
    all_users = np.ones(1)

    def enough(loss: float, users: int) -> bool:
        # Nobody else is in any channel: two are as good as many
        choices = _findable(bits, loss, users, beta, channels=2, frequencies=all_users)
        return any(math.isfinite(least) for least, _ in choices)

    answers = []
    users = next((n << k for k in range(1, 60) if enough(epsilon, n << k)), None)
    if users is not None:
        few = bisect_left(range(64), True, key=lambda k: enough(epsilon, users * (64 + k) // 128))
        answers.append(f"about {users * (64 + few) // 128} users")
    larger = next((epsilon * 2**k for k in range(1, 12) if enough(epsilon * 2**k, n)), None)
    if larger is not None:
        few = bisect_left(range(64), True, key=lambda k: enough(larger * (64 + k) / 128, n))
        answers.append(f"an epsilon of about {larger * (64 + few) / 128:.3g}")
    return " or ".join(answers) or "more users and a larger epsilon"


def _rows_of(d: int, epsilon: float, n: int, beta: float, hashes: int) -> int:
    """Return the rows of the oracle's matrix by section 2.2, at the oracle's eps."""
    share = epsilon / (2 * hashes + 1)
    # log(d + 1) log(2 / beta) / gamma^2 with gamma^2 = log(2 d / beta) / (eps^2 n)
    rows = math.log(d + 1) * math.log(2 / beta) * share**2 * n / math.log(2 * d / beta)
    return min(max(64, math.ceil(rows)), 1 << 20)
