"""GenProt: any protocol with public coins, and one bit or a few from each user."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.core import Aggregate, Channel, Oracle, Protocol, Reports, channel_of, checked_users
from frequency.heavy.found import Found
from frequency.heavy.prefix_tree import HeavyHitterProtocol, check_request
from frequency.heavy.published.unique_heavy_hitter import UniqueHeavyHitter
from frequency.heavy.sampled import Sampled, SampledOracle
from frequency.oracles import checked_size
from mechdesign.base import Floats, Rational, set_fields, shown, whole

Wrapped: TypeAlias = Channel | Protocol  #: The type of what public coins may draw the reports of.

MOST_BITS = 16  #: The most bits of a user's choice: clients look at up to 2^16 - 1 candidates.


#: The least fraction of users to keep: for far fewer the units of probabilities would be felt.
LEAST_KEPT = 2.0**-20


@dataclass(frozen=True)
class GenProt(Protocol):
    """GenProt: any protocol, of which public coins draw the reports.

    Source: Bassily and Smith, STOC 2015, section 4.1, Algorithm 6; after McGregor et al., FOCS
    2010. Public coins draw what a user without an item might report; the user tells which of these
    reports to keep, if any. Those kept are distributed like those of users each chosen with
    probability `kept`, and are estimated from by the protocol itself, whose estimate then is about
    all users (`frequency.core.estimate.OfPopulation.of_population`): see `predicted_variance`.

    Parameters
    ----------
    inner : Channel or Protocol
        A frequency oracle, or any other protocol, that states the probabilities of its reports: see
        `frequency.core.channel.Channel.likelihoods`.
    seed : int, default 0
        Of the public coins.

    Raises
    ------
    ValueError
        Fewer than one report in 2^20 would be kept.
    TypeError
        For what does not state its probabilities.
    """

    inner: Wrapped
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.inner, (Channel, Protocol)):
            raise TypeError(
                f"inner must be a protocol, such as frequency.GRR(5, 0.5), got"
                f" {type(self.inner).__name__}"
            )
        set_fields(self, seed=checked_size("seed", self.seed, 0))
        if self.kept < LEAST_KEPT:
            raise ValueError(
                f"only one report in {1 / self.kept:.1g} would be kept at epsilon"
                f" {shown(self.epsilon)}: users who can afford it had better send theirs"
            )

    @property
    @abstractmethod
    def bits(self) -> int:
        """The number of bits that a user tells."""

    @cached_property
    def channel(self) -> Sampled:
        """The channel by which an item becomes a report."""
        inner = channel_of(self.inner)
        _ = inner.likelihoods  # which all of its parts must state
        kind = SampledOracle if isinstance(self.inner, Oracle) else Sampled
        return kind(inner.domain, inner.epsilon, inner, self.seed, self.bits)

    @property
    def epsilon(self) -> float | Rational:
        """The privacy loss of what a user tells."""
        return channel_of(self.inner).epsilon

    @property
    def kept(self) -> float:
        """The fraction of the users whose reports are kept, on average."""
        return float(self.channel.kept)

    def predicted_variance(self, own: npt.ArrayLike, n: int, among: npt.ArrayLike = 0.0) -> Floats:
        """Return the variance of an answer from n users, on average over how many are kept.

        Parameters
        ----------
        own : array_like
            The variance of the inner protocol's answer from as many users, which falls as 1 / n.
        n : int
            The number of users, at least 1.
        among : array_like, default 0.0
            The variance among users of what is asked: f (1 - f) of the answer f.

        Returns
        -------
        numpy.ndarray of float64
            own / kept + among (1 / kept - 1) / n.
        """
        rare = 1 / self.kept
        return np.asarray(own) * rare + np.asarray(among) * (rare - 1) / checked_users(n)

    @property
    def takes(self) -> dict[str, Any]:
        return self.inner.takes

    def items_of(self, values: Any) -> Any:
        return self.inner.items_of(values) if isinstance(self.inner, Protocol) else values

    def privatize(self, values: Any, rng: np.random.Generator | None = None) -> Reports:
        """Return what each user tells; around a `UniqueHeavyHitter` also without an item.

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

    def estimate(self, aggregate: Aggregate, **options: Any) -> Any:
        """Return the inner protocol's own estimate, about all users.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol.
        **options : Any
            What else the inner protocol's ``estimate`` takes, such as the ``items`` of an oracle.

        Returns
        -------
        Estimate, RangeEstimate, MarginalEstimate, ConjunctionEstimate or another
            Of the inner protocol.

        Raises
        ------
        TypeError
            The inner protocol finds heavy hitters.
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        inner: Any = self.inner
        if isinstance(inner, HeavyHitterProtocol):
            raise TypeError(f"{type(inner).__name__} finds heavy hitters: use find")
        kept = self.channel.sampled(self.channel.require_own(aggregate))
        return inner.estimate(kept, **options).of_population(aggregate.n)

    def find(
        self,
        reports: Reports | Aggregate,
        k: int | None = None,
        threshold: float | None = None,
        confidence: float = 0.95,
    ) -> Found:
        """Return heavy hitters, as `HeavyHitterProtocol.find` does.

        Parameters
        ----------
        reports : structured numpy.ndarray or Aggregate
            Reports, or what they were aggregated to.
        k : int, optional
            At most so many items, at least 1.
        threshold : float, optional
            The least estimated frequency, a fraction of the users: see `HeavyHitterProtocol.find`.
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
            raise TypeError(
                f"{type(self.inner).__name__} does not find heavy hitters: use estimate"
            )
        check_request(k, threshold, confidence)
        aggregate = self.aggregated(reports)
        kept = self.channel.sampled(aggregate)
        return self.inner.find(kept, k, threshold, confidence, population=aggregate.n)


@dataclass(frozen=True)
class OneBit(GenProt):
    """GenProt: any protocol with public coins, at one bit from each user.

    Source: Bassily and Smith, STOC 2015, section 4.1, Algorithm 6.

    Public coins draw the report that a user without an item might send; the user keeps it with
    probability c Pr[report | item] / Pr[report | no item], and sends only that decision.

    The paper takes c = 1/2. Then a 0 can lose more than epsilon: if one item is the most likely to
    have sent a report, by a factor of e^eps over the mean, and others are as likely as the mean,
    zeros differ by 1 / (2 - e^eps), which is more than e^eps, and infinite at ln 2. Here c (`kept`)
    is the largest that keeps epsilon, by an exact audit: 1/2 for protocols that send signs, whose
    likelihoods lie symmetrically about 1, whatever epsilon is; down to 1 / (e^eps + 1) for others.
    Above ln 2, which the paper does not go beyond, that costs users: see `FewBits`.

    Parameters
    ----------
    inner : Channel or Protocol
        As of `GenProt`.
    seed : int, default 0
        Of the public coins.

    Raises
    ------
    ValueError
        Fewer than one report in 2^20 would be kept.
    TypeError
        For what does not state its probabilities.

    Examples
    --------
    >>> from frequency import GRR, HRR
    >>> round(OneBit(HRR(1000, 0.5)).kept, 3), round(OneBit(GRR(1000, 0.5)).kept, 3)
    (0.5, 0.378)
    """

    @property
    def bits(self) -> int:
        return 1


@dataclass(frozen=True)
class FewBits(GenProt):
    """GenProt with more than one bit from each user: so that more reports are kept.

    Public coins draw up to 2^bits - 1 reports, and the user tells which of them to keep, if any.
    For any epsilon, pure: `Sampled` says why, and what can be gained. Independent candidates gain
    nothing over one bit. Here they are reports that have what is public in common and differ in
    what is private: of the k values of generalised randomised response or of a hash, the two signs
    of a Walsh-Hadamard coefficient, the turns of a set of items or of a square wave. With K of k
    values the fraction kept is K (e^eps + k - 1) / (k (e^eps + K)), about 1 / (1 + e^eps / K), and
    all with K = k: two bits for protocols of signs, and about epsilon / ln 2 + 1 for hashes. Others
    (unary encodings, count-mean sketches, tables, `SuccinctHistogram`, `InpEM`) keep what `OneBit`
    does. In mixtures the part with the fewest decides.

    Parameters
    ----------
    inner : Channel or Protocol
        As of `GenProt`.
    seed : int, default 0
        Of the public coins.
    bits : int, default 2
        How many bits a user tells, 1 .. 16.

    Raises
    ------
    ValueError
        For bits out of range, or fewer than one report in 2^20 kept.
    TypeError
        For what does not state its probabilities.

    Examples
    --------
    >>> from frequency import GRR, HRR
    >>> [round(FewBits(GRR(1000, 2.0), bits=bits).kept, 3) for bits in (1, 2, 4, 6)]
    [0.12, 0.291, 0.674, 0.901]
    >>> round(FewBits(HRR(1000, 2.0), bits=2).kept, 3)
    1.0
    """

    bits: int = 2

    def __post_init__(self) -> None:
        set_fields(self, bits=whole(self.bits, "bits", 1, MOST_BITS))
        super().__post_init__()
