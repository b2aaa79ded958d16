"""GenProt: any protocol with public coins and one bit from each user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra.exact_draws import WORD, bernoulli
from frequency.algebra.hash_functions import Coins
from frequency.core.aggregate import Aggregate
from frequency.core.channel import Channel, Reports
from frequency.core.estimate import Estimate
from frequency.core.oracle import Oracle, variance_of
from frequency.core.protocol import Protocol
from frequency.core.public_coins import PublicCoinChannel, public_coin_channel
from frequency.core.tally import Sample, public
from frequency.heavy.found import Found
from frequency.heavy.protocol import HeavyHitterProtocol, check_request
from frequency.heavy.unique_heavy_hitter import UniqueHeavyHitter
from frequency.oracles.count_mean_sketch import checked_size
from mechdesign import Audit, Privacy
from mechdesign._support.arrays import Floats, Items
from mechdesign._support.frozen import set_fields
from mechdesign._support.numbers import Rational
from mechdesign._support.randomness import BitSource
from mechdesign._support.text import shown
from mechdesign.symbolic.proof_rules import OneBitProof, acceptances


@dataclass(frozen=True)
class Sampled(Channel):
    """Whether a report that public coins drew for a user is to be kept, as one bit.

    A report is ``coins``, a public number that decides what the report would be, and ``bit``. The
    counts are the number of bits that are 1, and the inner channel's counts of the reports kept.

    Parameters
    ----------
    domain : int
        The number of items of the inner channel.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one bit.
    inner : Channel
        Whose reports public coins draw.
    seed : int, default 0
        Of the public coins.
    """

    privacy_source: ClassVar[str] = "succinct histograms, Theorem 4.1"

    inner: PublicCoinChannel
    seed: int = 0

    largest_domain: ClassVar[int] = 1 << 64

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._acceptance

    @property
    def privacy(self) -> Privacy:
        return self.inner.privacy  # of a table it is exact, and its epsilon rounded up

    @cached_property
    def _acceptance(self) -> tuple[int, ...]:
        """For each of the inner likelihoods the probability of a 1, in units of 2^-64."""
        kinds = self.inner.likelihoods
        share = self.kept * (1 - Fraction(1, 1 << 40))
        # The least is rounded up: rounding keeps both ratios, of ones and of zeros, within the
        # likelihood ratio.
        return tuple(
            -int(-share * ratio * WORD // 1) if ratio == kind[0] else int(share * ratio * WORD)
            for kind in kinds
            for ratio in kind
        )

    @cached_property
    def kept(self) -> Fraction:
        """The probability that a report is kept.

        It is the largest for which the bit loses no more than epsilon.

        Where likelihoods go from ``low`` to ``high``, a 0 has probabilities from 1 - c high to 1 -
        c low; these are within the ratio e if c <= (e - 1) / (e high - low).
        """
        e = self.max_ratio
        ends = [(kind[0], kind[-1]) for kind in self.inner.likelihoods]
        return min(
            (e - 1) / (e * high - low) if high > low else Fraction(1, 2) for low, high in ends
        )

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("coins", "<u8"), ("bit", "u1")])

    @property
    def report_bits(self) -> int:
        return 1

    def _details(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "acceptance": [str(weight) for weight in self._acceptance],
            "inner": self.inner.parameters,
        }

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    def _coins(self, reports: Reports) -> Coins:
        return Coins(reports["coins"], self.seed)

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        reports["coins"] = source(len(items))
        which = self.inner.coins_likelihood(self._coins(reports), items)
        reports["bit"] = source(len(items)) < np.array(self._acceptance, dtype=np.uint64)[which]

    def idle(self, users: int, source: BitSource) -> Reports:
        """The reports of users without an item, for whom all likelihoods are 1.

        Parameters
        ----------
        users : int
            How many, at least 0.
        source : callable
            Gives as many random 64-bit words as it is asked for.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        """
        reports = np.zeros(users, dtype=self.report_dtype)
        reports["coins"], reports["bit"] = (
            source(users),
            bernoulli(users, int(self.kept * WORD), source),
        )
        return reports

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return reports["bit"] <= 1

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (1 + int(np.prod(self.inner.counts_shape)),)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        kept = reports[reports["bit"] == 1]
        counts = np.zeros(self.counts_shape, dtype=np.int64)
        counts[0] = len(kept)
        for start in range(0, len(kept), self.batch_size):
            counts[1:] += self.inner.counts_of(
                self.inner.blank(self._coins(kept[start : start + self.batch_size]))
            ).ravel()
        return counts

    def sampled(self, aggregate: Aggregate) -> Aggregate:
        """The inner channel's aggregate of the reports that were kept."""
        return Aggregate(
            self.inner.signature,
            int(aggregate.counts[0]),
            aggregate.counts[1:].reshape(self.inner.counts_shape),
        )

    def consistent(self, aggregate: Aggregate) -> bool:
        return 0 <= int(aggregate.counts[0]) <= aggregate.n and self.inner.consistent(
            self.sampled(aggregate)
        )

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        # Over the coins every item's report is kept as often, and the reports kept are distributed
        # as the inner channel's.
        kept, share = int(counts[0]), float(self.kept)
        return [
            public(n, [kept, n - kept], [share, 1 - share]),
            *self.inner.samples(kept, counts[1:].reshape(self.inner.counts_shape)),
        ]

    def audit(self) -> Audit:
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any bit", (0, 0))
        # Whatever the coins, a likelihood of the same kind of report decides both bits.
        worst, place = Fraction(1), 0
        for kind in self.inner.likelihoods:
            weights = self._acceptance[place : place + len(kind)]
            place += len(kind)
            low, high = min(weights), max(weights)
            worst = max(worst, Fraction(high, low), Fraction(WORD - low, WORD - high))
        return Audit(
            worst, self.max_ratio, "the bit, for coins where likelihoods are furthest apart", (0, 1)
        )

    def proof(self) -> OneBitProof:
        inner = self.inner.proof()
        name, source = type(self).__name__, self.privacy_source
        return OneBitProof(inner, acceptances(inner), name=name, source=source)


@dataclass(frozen=True)
class SampledOracle(Sampled, Oracle):
    """The same around a frequency oracle, and one itself: it estimates from the users kept."""

    @property
    def _oracle(self) -> Oracle:
        """The inner channel, which is an oracle too."""
        assert isinstance(self.inner, Oracle)
        return self.inner

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        kept = self.sampled(aggregate)
        if kept.n:
            return self._oracle.frequencies_of(kept, items)
        return np.full(self.domain if items is None else len(items), np.nan)

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        # That of the inner oracle from the reports kept, about n times `kept` of them. With what
        # drawing these users adds: f (1 - f) for each
        f = np.asarray(frequency, dtype=np.float64)
        return self._of_kept(lambda m: np.asarray(self._oracle.variance(m, f)), f * (1 - f), n)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # That of the inner oracle from the reports kept, about n times `kept` of them
        return float(
            self._of_kept(
                lambda m: self._oracle.difference_variance(m, held), 2 / (held or self.domain), n
            )
        )

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # That of the inner oracle from the reports kept, about n times `kept` of them. With what
        # drawing these users adds: the variance of the weight of a user's item
        among = weights**2 @ frequencies - (weights @ frequencies) ** 2
        result: Floats = self._of_kept(
            lambda m: self._oracle.linear_variance(m, weights, frequencies), among, n
        )
        return result

    def _of_kept(self, inner: Callable[[int], Any], among: Any, n: int) -> Any:
        """The variance from the users kept of n.

        ``inner`` is that of the inner oracle, ``among`` that among all users.

        The inner one is a part for each user and a part, the confusion of sketches, that more users
        do not lessen.
        """
        one, two = inner(1), inner(2)
        users, rest = 2 * (one - two), 2 * two - one
        return variance_of(n, users / float(self.kept) + among * float(1 / self.kept - 1)) + rest

    def variance_slope(self, n: int) -> float:
        return self._oracle.variance_slope(n) / float(self.kept)

    def _spread(self, aggregate: Aggregate) -> float:
        """What the choice of the users kept multiplies the variance among all users with."""
        return 1 / max(int(aggregate.counts[0]), 1) - 1 / aggregate.n

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        kept = self.sampled(aggregate)
        if not kept.n:
            return np.full(len(frequencies), np.inf)
        f = np.clip(frequencies, 0.0, 1.0)
        result: Floats = self._oracle.variances_of(kept, frequencies, items) + f * (
            1 - f
        ) * self._spread(aggregate)
        return result

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        kept = self.sampled(aggregate)
        if not kept.n:
            return np.full(len(weights), np.inf)
        f = np.clip(frequencies, 0.0, 1.0)
        among = weights**2 @ f - (weights @ f) ** 2
        result: Floats = self._oracle.linear_variances_of(
            weights, kept, frequencies, items
        ) + among * self._spread(aggregate)
        return result


@dataclass(frozen=True)
class OneBit(Protocol):
    """GenProt: any protocol with public coins, at one bit from each user.

    Source: Bassily and Smith, STOC 2015, section 4.1, Algorithm 6; after McGregor et al., FOCS
    2010.

    Public coins draw the report that a user without an item might send; the user keeps it with
    probability c Pr[report | item] / Pr[report | no item], and sends only that decision. The
    reports kept are distributed like those of users each chosen with probability c.

    The paper takes c = 1/2. Then a 0 can lose more than epsilon: if one item is the most likely to
    have sent a report, by a factor of e^eps over the mean, and others are as likely as the mean,
    zeros differ by 1 / (2 - e^eps), which is more than e^eps, and infinite at ln 2. Here c (`kept`)
    is the largest that keeps epsilon, by an exact audit: 1/2 for protocols that send signs, whose
    likelihoods lie symmetrically about 1, and down to 1 / (e^eps + 1) for others.

    Parameters
    ----------
    inner : Oracle or HeavyHitterProtocol
        A frequency oracle or a protocol for heavy hitters that states the probabilities of its
        reports, of epsilon at most ln 2.
    seed : int, default 0
        Of the public coins.

    Raises
    ------
    ValueError
        For an epsilon above ln 2: users who can afford it had better send their reports.
    TypeError
        For what does not state its probabilities.
    """

    inner: Oracle | HeavyHitterProtocol
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.inner, (Oracle, HeavyHitterProtocol)):
            raise TypeError(
                "inner must be a frequency oracle or a protocol for heavy hitters, got"
                f" {type(self.inner).__name__}"
            )
        if self._inner.max_ratio > 2:
            raise ValueError(
                "epsilon must be at most ln 2 = 0.693147 for one bit, got"
                f" {shown(self.inner.epsilon)}"
            )
        set_fields(self, seed=checked_size("seed", self.seed, 0))
        _ = self.channel

    @cached_property
    def channel(self) -> Sampled:
        """How an item becomes a report."""
        inner = public_coin_channel(self._inner)
        kind = SampledOracle if isinstance(inner, Oracle) else Sampled
        return kind(inner.domain, inner.epsilon, inner, self.seed)

    @property
    def _inner(self) -> Channel:
        """What the public coins draw from."""
        return self.inner if isinstance(self.inner, Oracle) else self.inner.channel

    @property
    def epsilon(self) -> float | Rational:
        """The privacy loss of one bit."""
        return self.inner.epsilon

    @property
    def kept(self) -> float:
        """The fraction of the users whose reports are kept, on average."""
        return float(self.channel.kept)

    def items_of(self, values: Any) -> Any:
        return values if isinstance(self.inner, Oracle) else self.inner.items_of(values)

    def privatize(self, values: Any, rng: np.random.Generator | None = None) -> Reports:
        """One bit for each user; around a `UniqueHeavyHitter` for users without an item, too.

        Parameters
        ----------
        values : array_like
            What the inner protocol's ``privatize`` takes.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.

        Returns
        -------
        numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        """
        if not isinstance(self.inner, UniqueHeavyHitter):
            return super().privatize(values, rng)
        return self.inner.privatized(self.channel, values, rng)

    def estimate(self, aggregate: Aggregate, items: npt.ArrayLike | None = None) -> Estimate:
        """Frequencies, as `Oracle.estimate`.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol.
        items : array_like, optional
            The items to estimate, distinct; None: all of the domain.

        Returns
        -------
        Estimate
            Of the items asked for, in their order.

        Raises
        ------
        TypeError
            The inner protocol is no frequency oracle.
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        if not isinstance(self.channel, SampledOracle):
            raise TypeError(f"{type(self.inner).__name__} finds heavy hitters: use find")
        return self.channel.estimate(aggregate, items)

    def find(
        self,
        reports: Reports | Aggregate,
        k: int | None = None,
        threshold: float | None = None,
        confidence: float = 0.95,
    ) -> Found:
        """Heavy hitters, as `HeavyHitterProtocol.find`.

        Parameters
        ----------
        reports : structured numpy.ndarray or Aggregate
            Reports, or what they were aggregated to.
        k : int, optional
            At most so many items.
        threshold : float, optional
            The least estimated frequency: see `HeavyHitterProtocol.find`.
        confidence : float, default 0.95
            Of the intervals and of the default threshold, strictly between 0 and 1.

        Returns
        -------
        Found
            The items, most frequent first.

        Raises
        ------
        TypeError
            The inner protocol does not find heavy hitters.
        ValueError
            A k, threshold or confidence out of range, before any work.
        InvalidReport, IncompatibleAggregate
            What is not of this protocol.
        """
        if not isinstance(self.inner, HeavyHitterProtocol):
            raise TypeError(f"{type(self.inner).__name__} is a frequency oracle: use estimate")
        check_request(k, threshold, confidence)
        aggregate = self.aggregated(reports)
        kept = self.channel.sampled(aggregate)
        return self.inner.find(kept, k, threshold, confidence, population=aggregate.n)
